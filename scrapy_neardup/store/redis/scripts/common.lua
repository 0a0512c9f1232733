-- What the scripts share. KEYS[1]: what all keys begin with. ARGV[1]: leases that must be held, ordinal and token in turn.
local root = KEYS[1]
local call, sub, char, concat, floor = redis.call, string.sub, string.char, table.concat, math.floor
local PLACE, ENTRY, KEY = 7, 15, 7 -- bytes of a row's place; of a place with a SimHash; of a key
local SHORT = 63 -- bytes of a list in its bucket: a longer value would turn the bucket into a full table
local EXACT = 4096 -- bytes of SimHashes up to which they take no more room than they need
local rows, pending = root .. 'r', root .. ':pending'

local leases = cmsgpack.unpack(ARGV[1])
for at = 1, #leases, 2 do
  if call('GET', root .. ':lease.' .. leases[at]) ~= leases[at + 1] then
    return redis.error_reply('ERR neardup: the run is not held')
  end
end

-- Returns whether a place is in a list of them.
local function has(list, place)
  local at = string.find(list, place, 1, true)
  while at and (at - 1) % PLACE ~= 0 do at = string.find(list, place, at + 1, true) end
  return at
end

-- Adds a place to a key's list. `again`: it may be there, however long the list is.
local function add(key, place, again)
  local bucket, field = root .. 'k' .. sub(key, 1, 3), sub(key, 4)
  if call('HSETNX', bucket, field, place) == 1 then return end
  local list = call('HGET', bucket, field)
  local long = list == '' and root .. 'K' .. key
  if long then
    if not (again and has(call('GET', long) or '', place)) then call('APPEND', long, place) end
  elseif not has(list, place) then
    list = list .. place
    if #list > SHORT then
      call('SET', root .. 'K' .. key, list)
      list = ''
    end
    call('HSET', bucket, field, list)
  end
end

local function block_key(simhash, block)
  return root .. 'n' .. char(block) .. sub(simhash, 2 * block + 1, 2 * block + 2)
end

local function add_near(simhash, place, again)
  for block = 0, 3 do
    local key, entry = block_key(simhash, block), place .. simhash
    local list = call('GET', key) or ''
    if not (again and string.find(list, entry, 1, true)) then
      if #list < EXACT then call('SET', key, list .. entry) else call('APPEND', key, entry) end
    end
  end
end

local function add_all(keys, simhash, place, again)
  for at = 1, #keys, KEY do add(sub(keys, at, at + KEY - 1), place, again) end
  if #simhash == 8 then add_near(simhash, place, again) end
end

-- Holds a document, unless it is held already: place, value, keys, SimHash.
local function hold(place, value, keys, simhash, again)
  if call('HSETNX', pending, place, value) == 1 then add_all(keys, simhash, place, again) end
end

-- Returns a list of entries without some of them; nil where it is the same.
local function without(list, width, is_gone)
  local kept, count = {}, 0
  for at = 1, #list, width do
    local entry = sub(list, at, at + width - 1)
    if is_gone(sub(entry, 1, PLACE)) then count = count + 1 else kept[#kept + 1] = entry end
  end
  return count > 0 and concat(kept) or nil, count
end

-- Removes places from a list of its own; returns what is left of it, '' for nothing, and how many are gone.
local function thin(key, width, is_gone)
  local left, count = without(call('GET', key) or '', width, is_gone)
  if left == '' then call('DEL', key) elseif left then call('SET', key, left) end
  return left, count
end

-- Removes places from a field of a bucket; returns how many are gone.
local function thin_field(bucket, field, list, is_gone)
  if list == '' then
    local left, count = thin(root .. 'K' .. sub(bucket, -3) .. field, PLACE, is_gone)
    if left == '' then call('HDEL', bucket, field) end
    return count
  end
  local left, count = without(list, PLACE, is_gone)
  if left == '' then call('HDEL', bucket, field) elseif left then call('HSET', bucket, field, left) end
  return count
end
