-- Takes a run. ARGV: its id, the lease's token, its milliseconds. Returns its number, or 0 where a living process has it.
local id, token, milliseconds = unpack(ARGV)
local run = call('HGET', root .. ':numbers', id)
if not run then
  run = call('HINCRBY', root, 'runs', 1)
  call('HSET', root .. ':numbers', id, run)
  call('HSET', root .. ':ids', run, id)
end
if not call('SET', root .. ':lease.' .. run, token, 'NX', 'PX', milliseconds) then return 0 end
call('HSET', root .. ':holders', run, token)
return tonumber(run)
