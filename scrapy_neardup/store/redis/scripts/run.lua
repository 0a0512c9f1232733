-- Takes a run, or keeps it, or lets go of it. ARGV[2]: its code, its id, for how many milliseconds; 0 lets go of it.
-- Returns 0 where another process has it, 1 where this one had it, 2 where none had.
local code, run, milliseconds = unpack(ARGV, 2)
local holder, is_given_up = call('GET', lease_of(code)), milliseconds == '0'
local is_of_another = holder and sub(holder, 1, 32) ~= sub(token, 1, 32)
if is_of_another or (call('HGET', root .. ':names', code) or run) ~= run then return 0 end
if is_given_up then call('DEL', lease_of(code)) else call('SET', lease_of(code), token, 'PX', milliseconds) end
if is_given_up or not holder then -- what the dead held is held no more; who lives holds it again
  for _, place in ipairs(call('HKEYS', pending)) do
    if sub(place, 1, CODE) == code then call('HDEL', pending, place) end
  end
end
return holder and 1 or 2
