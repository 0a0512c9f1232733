-- Answers lookups, and holds documents.
-- ARGV[2], in MessagePack: the lookups, and the places of further rows to return. A lookup has
-- - keys,
-- - the maximum number of rows for each key, one byte each,
-- - blocks of SimHashes,
-- - the document to hold if the keys find nothing (place, value, keys, SimHash), or false,
-- - optionally, the last known place of each key. If given, the document is held unless a key has a newer place.
-- Returns rows (place, value, 1 if pending), and for each lookup: hits (number of the key, place), the last place of
-- each key, the entries of the blocks, and 1 if the document is held.
local NONE = string.rep('\0', PLACE)
local LOOKED = 256 -- max. places of a key to look at, in case most of them have no rows
local known, told = {}, {}

-- Returns whether a row exists at a place, and adds the row to the answer.
local function take(place)
  if known[place] == nil then
    local value, waits = call('GET', rows .. place), 0
    if not value and call('EXISTS', lease_of(sub(place, 1, CODE))) == 1 then
      value, waits = call('HGET', pending, place), 1
    end
    known[place] = value and true or false
    if value then
      local at = #told
      told[at + 1], told[at + 2], told[at + 3] = place, value, waits
    end
  end
  return known[place]
end

-- Adds the newest rows of a key to the answer. Returns the last place of the key.
local function newest(hits, n, key, most, own)
  local list = call('HGET', names(key))
  if not list then return NONE end
  if list == '' then list = call('GETRANGE', long(key), -PLACE * LOOKED, -1) end
  for at = #list - PLACE + 1, 1, -PLACE do
    local place = sub(list, at, at + PLACE - 1)
    if most == 0 then break end
    if place ~= own and take(place) then
      hits[#hits + 1], hits[#hits + 2] = n, place
      most = most - 1
    end
  end
  return sub(list, -PLACE)
end

-- Adds a place to a key if the key has no rows, as most keys have none. Returns whether the place was added.
-- A full server refuses to write. The lookup continues then.
local function add_unknown(key, place)
  local bucket, field = names(key)
  return redis.pcall('HSETNX', bucket, field, place) == 1
end

-- Returns all entries (place and SimHash) of the given blocks.
local function entries_of(blocks)
  local names = {}
  for at = 1, #blocks, 3 do names[#names + 1] = root .. 'n' .. sub(blocks, at, at + 2) end
  local lists = #names > 0 and call('MGET', unpack(names)) or {}
  for n, list in ipairs(lists) do lists[n] = list or '' end
  return concat(lists)
end

local holds = true -- false once a document could not be held; later documents are not held then

-- Answers a lookup, and holds its document if the lookup allows it.
local function answer(keys, most, blocks, entry, seen)
  local hits, lasts, added, own = {}, {}, {}, entry and entry[1]
  for n = 1, #keys / KEY do
    local key = sub(keys, KEY * n - KEY + 1, KEY * n)
    if own and holds and #hits == 0 and add_unknown(key, own) then
      added[key], lasts[n] = true, NONE
    else
      lasts[n] = newest(hits, n - 1, key, string.byte(most, n) or 0, own)
    end
  end
  local near, last = entries_of(blocks), concat(lasts)
  local held = entry and holds and #hits == 0 and (not seen or seen == last or call('HEXISTS', pending, own) == 1)
  if held then
    hold(added, unpack(entry))
  else
    for key in pairs(added) do put(key, '') end
  end
  holds = holds and (held or not entry)
  return { hits, held and '' or last, near, held and 1 or 0 }
end

local questions, places = unpack(cmsgpack.unpack(ARGV[2]))
local answers = {}
for at, question in ipairs(questions) do answers[at] = answer(unpack(question)) end
for at = 1, #places, PLACE do take(sub(places, at, at + PLACE - 1)) end
return { told, answers }
