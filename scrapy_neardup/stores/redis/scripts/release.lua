-- Lets go of a run. ARGV: its number, the token, and its record, or '' to leave that as it is; with a record all that
-- the run did since it was opened holds for good. Returns 0 where others took it for dead.
local run, token, record = unpack(ARGV)
local id = call('HGET', root .. ':ids', run)
if call('HGET', root .. ':holders', run) ~= token then
  return id and call('HGET', root .. ':runs', id) == record and 1 or 0  -- 1: it was let go of before
end
local session = call('HGET', root .. ':sessions', run)
call('HDEL', root .. ':sessions', run)  -- first: what follows is done though the server is full
call('HDEL', root .. ':holders', run)
if session then call('DEL', session) end
if record ~= '' then
  call('HSET', root .. ':runs', id, record)
  call('DEL', root .. ':open.' .. run)
end
call('DEL', root .. ':lease.' .. run)
return 1
