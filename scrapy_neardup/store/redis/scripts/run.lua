-- Takes, renews or releases the lease of a run.
-- ARGV[2], ARGV[3]: the code and the id of the run. ARGV[4]: the duration in milliseconds; 0 releases the lease.
-- Returns 0 if another process holds the lease, 1 if this process held it, 2 if no process held it.
local code, run, milliseconds = unpack(ARGV, 2)
local holder, is_given_up = call('GET', lease_of(code)), milliseconds == '0'
local is_of_another = holder and sub(holder, 1, 32) ~= sub(token, 1, 32)
if is_of_another or (call('HGET', root .. ':names', code) or run) ~= run then return 0 end
if is_given_up then call('DEL', lease_of(code)) else call('SET', lease_of(code), token, 'PX', milliseconds) end
if is_given_up or not holder then -- discard the run's pending documents; a living process holds them again
  for _, place in ipairs(call('HKEYS', pending)) do
    if sub(place, 1, CODE) == code then call('HDEL', pending, place) end
  end
end
return holder and 1 or 2
