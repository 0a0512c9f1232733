-- Takes a run. ARGV: its id, the lease's token, its milliseconds, the session, and its record for where it has none.
-- Returns its number, or 0 where a living process has it. Who had it before can write no more.
local id, token, milliseconds, session, record = unpack(ARGV)
local run = call('HGET', root .. ':numbers', id)
if not run then
  run = call('HINCRBY', root, 'runs', 1)
  call('HSET', root .. ':numbers', id, run)
  call('HSET', root .. ':ids', run, id)
end
local lease = root .. ':lease.' .. run
if not call('SET', lease, token, 'NX', 'PX', milliseconds) and call('GET', lease) ~= token then return 0 end
call('HSETNX', root .. ':runs', id, record)
local before = call('HGET', root .. ':sessions', run)
if before then call('DEL', before) end
call('HSET', root .. ':holders', run, token)
call('HSET', root .. ':sessions', run, session)
call('SET', session, 0, 'EX', 86400)
return tonumber(run)
