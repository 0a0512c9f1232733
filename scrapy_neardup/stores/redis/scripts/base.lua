-- What all scripts share. KEYS[1] is the namespace's state (a hash); every other key begins with its name.
local root = KEYS[1]
local call, find, sub, byte, concat = redis.call, string.find, string.sub, string.byte, table.concat
local floor, char, pack, unpacked = math.floor, string.char, struct.pack, struct.unpack

