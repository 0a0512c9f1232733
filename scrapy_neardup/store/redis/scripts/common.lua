-- Code shared by all scripts. It is put before the text of each script.
-- KEYS[1]: the prefix of all keys.
-- ARGV[1]: the token of the connection (40 bytes), then the codes of the runs whose leases it must hold.
local root, token = KEYS[1], string.sub(ARGV[1], 1, 40)
local call, sub, concat, floor = redis.call, string.sub, table.concat, math.floor
local CODE, PLACE, ENTRY, KEY = 4, 8, 16, 7 -- bytes of a run's code, a place, a place with SimHash, a key
local SHORT = 63 -- max. bytes of a list in its bucket; a longer one would turn the compact bucket into a full hash table
local EXACT = 4096 -- bytes; a list of SimHashes up to this size is stored without spare room
local rows, pending = root .. 'r', root .. ':pending'

local function lease_of(code) return root .. ':lease.' .. code end

for at = 41, #ARGV[1], CODE do
  if call('GET', lease_of(sub(ARGV[1], at, at + CODE - 1))) ~= token then
    return redis.error_reply('ERR neardup: the run is not held')
  end
end

-- Returns the name of the list of SimHashes with the same bits in a block.
local function block_key(simhash, block)
  return root .. 'n' .. string.char(block) .. sub(simhash, 2 * block + 1, 2 * block + 2)
end

-- Calls a function that works on one key. write.lua replaces `each`, to continue after damaged keys.
local function each(work, ...) work(...) end

-- Returns the position of an entry in a list of entries of the same length, or nil.
local function find(list, entry)
  local at = string.find(list, entry, 1, true)
  while at and (at - 1) % #entry ~= 0 do at = string.find(list, entry, at + 1, true) end
  return at
end

-- Returns the bucket and the field of a key. `long` returns the name of its list if the list is long.
local function names(key) return root .. 'k' .. sub(key, 1, 3), sub(key, 4) end
local function long(key) return root .. 'K' .. key end

-- Returns the list of places of a key.
local function places_of(key)
  local list = call('HGET', names(key))
  return list == '' and call('GET', long(key)) or list or ''
end

-- Replaces the list of places of a key.
local function put(key, list)
  local bucket, field = names(key)
  local is_long = #list > SHORT
  if is_long then call('SET', long(key), list) else call('DEL', long(key)) end
  if list == '' then call('HDEL', bucket, field) else call('HSET', bucket, field, is_long and '' or list) end
end

-- Replaces the list of SimHashes of a block.
local function put_block(key, list)
  if list == '' then call('DEL', key) else call('SET', key, list) end
end

-- Adds a place to the list of a key. `again`: search a long list first, since it may already have the place.
local function add(key, place, again)
  local bucket, field = names(key)
  if call('HSETNX', bucket, field, place) == 1 then return end
  local list = call('HGET', bucket, field)
  if list ~= '' then
    if not find(list, place) then put(key, list .. place) end
  elseif not (again and find(call('GET', long(key)) or '', place)) then
    call('APPEND', long(key), place)
  end
end

-- Adds a place with its SimHash to the list of a block. `again`: as above.
local function add_to_block(key, entry, again)
  local list = call('GET', key) or ''
  if again and find(list, entry) then return end
  if #list < EXACT then call('SET', key, list .. entry) else call('APPEND', key, entry) end
end

-- Adds a place to the lists of its keys, except those in `added`, and to the lists of its SimHash.
local function add_all(keys, simhash, place, again, added)
  for at = 1, #keys, KEY do
    local key = sub(keys, at, at + KEY - 1)
    if not (added and added[key]) then each(add, key, place, again) end
  end
  for block = 0, #simhash / 2 - 1 do each(add_to_block, block_key(simhash, block), place .. simhash, again) end
end

-- Holds a document as pending, unless it is pending already.
local function hold(added, place, value, keys, simhash)
  if call('HSETNX', pending, place, value) == 1 then add_all(keys, simhash, place, false, added) end
end
