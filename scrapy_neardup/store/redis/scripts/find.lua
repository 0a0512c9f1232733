-- Answers questions, and holds documents. ARGV[2], in MessagePack: the questions, and places of rows that are wanted.
-- A question: keys; of each how many rows are wanted, a byte; blocks of SimHashes; what is to be held if nothing is
-- found (place, value, keys, SimHash) or false; the last place of each key that is known, then only newer ones matter,
-- or false, or nothing where what is to be held has all the keys.
-- Returns rows (place, value, whether it is pending), and of each question: hits (which key, place), the last places,
-- the entries of the blocks, whether the document is held.
local NONE = string.rep('\0', PLACE)
local LOOKED = 4096 -- places of one key that are looked at, where most have no rows
local known, lives, told = {}, {}, {}

local function is_alive(run)
  if lives[run] == nil then lives[run] = call('EXISTS', root .. ':lease.' .. run) == 1 end
  return lives[run]
end

-- Returns whether a place has a row, and takes it into the answer.
local function take(place)
  if known[place] == nil then
    local value, waits = call('GET', rows .. place), 0
    if not value and is_alive(sub(place, 1, 3)) then value, waits = call('HGET', pending, place), 1 end
    known[place] = value and true or false
    if value then
      local at = #told
      told[at + 1], told[at + 2], told[at + 3] = place, value, waits
    end
  end
  return known[place]
end

local function newest(hits, n, key, most, own)
  local list = call('HGET', root .. 'k' .. sub(key, 1, 3), sub(key, 4))
  if not list then return NONE end
  local long = list == '' and root .. 'K' .. key
  local stop = long and call('STRLEN', long) or #list
  local least, last = stop - PLACE * LOOKED, NONE
  while stop > 0 and stop > least and most > 0 do
    local start = math.max(0, stop - PLACE * 16)
    local part = long and call('GETRANGE', long, start, stop - 1) or sub(list, start + 1, stop)
    for at = #part - PLACE + 1, 1, -PLACE do
      local place = sub(part, at, at + PLACE - 1)
      if last == NONE then last = place end
      if most > 0 and place ~= own and take(place) then
        hits[#hits + 1], hits[#hits + 2] = n, place
        most = most - 1
      end
    end
    stop = start
  end
  return last
end

local function last_of(key)
  local list = call('HGET', root .. 'k' .. sub(key, 1, 3), sub(key, 4))
  if list == '' then list = call('GETRANGE', root .. 'K' .. key, -PLACE, -1) end
  return list and list ~= '' and sub(list, -PLACE) or NONE
end

local function read_blocks(blocks)
  local names, near = {}, {}
  for at = 1, #blocks, 3 do names[#names + 1] = root .. 'n' .. sub(blocks, at, at + 2) end
  for n, list in ipairs(#names > 0 and call('MGET', unpack(names)) or {}) do near[n] = list or '' end
  return concat(near)
end

-- Holds a document of which no key is known, as most are; returns the entries of the blocks, else nil.
local function hold_unknown(blocks, place, value, keys, simhash)
  for at = 1, #keys, KEY do
    local made = redis.pcall('HSETNX', root .. 'k' .. sub(keys, at, at + 2), sub(keys, at + 3, at + KEY - 1), place)
    if made ~= 1 then -- it is known, or the server is full: then what is known is found all the same
      for set = 1, at - 1, KEY do
        call('HDEL', root .. 'k' .. sub(keys, set, set + 2), sub(keys, set + 3, set + KEY - 1))
      end
      return nil
    end
  end
  local near = read_blocks(blocks)
  call('HSET', pending, place, value)
  if #simhash == 8 then add_near(simhash, place) end
  return near
end

local holds = true
local function answer(keys, most, blocks, entry, seen)
  local near = entry and holds and seen == nil and hold_unknown(blocks, unpack(entry))
  if near then return { {}, '', near, 1 } end
  local hits, lasts, own = {}, {}, entry and entry[1]
  for n = 1, #keys / KEY do
    local key = sub(keys, KEY * n - KEY + 1, KEY * n)
    lasts[n] = seen and last_of(key) or newest(hits, n - 1, key, string.byte(most, n), own)
  end
  near, lasts = read_blocks(blocks), concat(lasts)
  local held = entry and holds and #hits == 0 and (not seen or seen == lasts or call('HEXISTS', pending, own) == 1)
  if held then hold(unpack(entry)) end
  holds = holds and (held or not entry)
  return { hits, lasts, near, held and 1 or 0 }
end

local questions, places = unpack(cmsgpack.unpack(ARGV[2]))
local answers = {}
for at, question in ipairs(questions) do answers[at] = answer(unpack(question)) end
for at = 1, #places, PLACE do take(sub(places, at, at + PLACE - 1)) end
return { told, answers }
