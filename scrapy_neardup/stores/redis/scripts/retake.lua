-- Goes on with a run over a new connection. ARGV: its number, the token, milliseconds, the session before, the new one,
-- how many operations that has done at least, and how many documents there are at least.
-- Returns how many it has done, or -1 where others took the run for dead, or the server has lost what was written.
local run, token, milliseconds, before, session, least, documents = unpack(ARGV)
local state = call('HGET', root .. 'k', 'state')  -- begins with the number that comes next
local done = tonumber(call('GET', before) or call('GET', session) or -1)
if call('HGET', root .. ':holders', run) ~= token or done < tonumber(least)
    or (state and unpacked('>I5', state) or 0) < tonumber(documents) then
  return -1
end
if call('EXISTS', before) == 1 then call('RENAME', before, session) end  -- first: it is done though the server is full
call('HSET', root .. ':sessions', run, session)
call('EXPIRE', session, 86400)
call('SET', root .. ':lease.' .. run, token, 'PX', milliseconds)
return done
