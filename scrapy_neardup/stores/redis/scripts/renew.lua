-- Renews the lease of a run. ARGV: its number, the token, milliseconds. Returns 0 where others took it for dead.
local run, token, milliseconds = unpack(ARGV)
if call('HGET', root .. ':holders', run) ~= token then return 0 end
local session = call('HGET', root .. ':sessions', run)
if session then call('EXPIRE', session, 86400) end
call('SET', root .. ':lease.' .. run, token, 'PX', milliseconds)
return 1
