-- Runs, by ordinals of three bytes. ARGV[2]: what is to be done, then the run's name and
-- `name`: the ordinal that it gets if it has none, or ''   Returns its ordinal, or nil.
-- `take`: an ordinal, a token, the token before, milliseconds   Returns its ordinal; and 0 where a living process has
-- it, 1 where this one had it, 2 where none had.
-- `renew`: the ordinal, the token, '', milliseconds   `release`: the same   Return 0 where another process has it.
local operation, run, wanted, token, before, milliseconds = unpack(ARGV, 2)
local names = root .. ':names'

if operation == 'renew' or operation == 'release' then
  local lease = root .. ':lease.' .. wanted
  if call('GET', lease) ~= token then return 0 end
  return operation == 'renew' and call('PEXPIRE', lease, milliseconds) or call('DEL', lease)
end

local ordinal = call('HGET', names, run)
if not ordinal and wanted == '' then return nil end
if not ordinal then
  local number = struct.unpack('>I3', wanted)
  repeat
    ordinal = struct.pack('>I3', number)
    number = (number + 1) % 0x1000000
  until call('HSETNX', names, '=' .. ordinal, run) == 1 or call('HGET', names, '=' .. ordinal) == run
  call('HSET', names, run, ordinal)
end
if operation == 'name' then return ordinal end
local lease = root .. ':lease.' .. ordinal
local holder = call('GET', lease)
if holder and holder ~= before and holder ~= token then return { ordinal, 0 } end
call('SET', lease, token, 'PX', milliseconds)
if not holder then -- what the dead held is held no more; who lives holds it again
  for _, place in ipairs(call('HKEYS', pending)) do
    if sub(place, 1, 3) == ordinal then call('HDEL', pending, place) end
  end
end
return { ordinal, holder and 1 or 2 }
