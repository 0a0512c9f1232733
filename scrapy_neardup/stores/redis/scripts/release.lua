-- Lets go of a run. ARGV: its number, the token, and its record, or '' to leave that as it is; with a record all that
-- the run did since it was opened holds for good. Returns 0 where others took it for dead.
local run, token, record = unpack(ARGV)
if call('HGET', root .. ':holders', run) ~= token then return 0 end
if record ~= '' then
  call('HSET', root .. ':runs', call('HGET', root .. ':ids', run), record)
  call('DEL', root .. ':open.' .. run)
end
call('HDEL', root .. ':holders', run)
call('DEL', root .. ':lease.' .. run)
return 1
