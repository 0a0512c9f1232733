-- What all scripts share. KEYS[1] is the namespace's state (a hash); every other key begins with its name.
local root = KEYS[1]
local call, find, sub, byte, concat = redis.call, string.find, string.sub, string.byte, table.concat
local floor, char, pack, unpacked = math.floor, string.char, struct.pack, struct.unpack


-- KEYS[2]: the session of who writes, with how many operations it has done. It is gone where the run is another's.
if KEYS[2] and call('EXISTS', KEYS[2]) == 0 then
  return redis.error_reply('ERR neardup: this connection is not that of the run')
end

