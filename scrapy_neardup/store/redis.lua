-- Everything that a server does for a store, as one atomic script.
-- KEYS[1]: the prefix of all keys. ARGV[1], in MessagePack: the operations, which write; the requests, which are
-- answered; the codes of the runs that the caller holds; the id of the caller; the number of this call; the number of
-- the last call that the caller knows to have written. An operation or request is its name and its arguments.
-- By the numbers, the script refuses a call that arrives late, and notices that the server lost data.
-- Returns false if another process holds a run, or if data were lost. Otherwise: the error of an operation that can
-- never succeed, the error that ended the operations, the answers to requests, and 1 if the call counts as written.
local call, concat, reply = redis.call, table.concat, redis.error_reply
local sub, byte, char, bxor = string.sub, string.byte, string.char, bit.bxor
local root, damage, writes = KEYS[1], false, false
local given, asked, codes, id, number, written = unpack(cmsgpack.unpack(ARGV[1]))
local operations, requests = {}, {}
local CODE, PLACE, ENTRY = 4, 8, 16 -- bytes of a run's code, a place, a place with SimHash
local KEY, NAME = 8, 6 -- bytes of a key, and how many of them name its list
local of_keys, of_blocks = root .. 'k', root .. 'n' -- how the keys of lists begin
local SHORT = 63 -- max. bytes of a list in its bucket; a longer one would turn the bucket into a full hash table
local LOOKED = 256 -- max. places of a key to look at, in case most of them have no rows
local WIDE, CROWD, NEAREST = 1024, 64, 16 -- max. entries of a block to look at, near ones among them, and answers
local ONES = { [0] = 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4 } -- bits that are set in a number
local KEPT = 100000 -- entries of a stream
local NOWHERE = '\0\0\0\0\0\0\0\0' -- the last place of a key without rows

-- Returns the lease of a run, given its code or the place of one of its documents. A lease is a hash of pending
-- documents by place. Its field '' has the id of the holder, followed by the number of the holder's last call.
local function lease(place) return root .. ':lease.' .. sub(place, 1, CODE) end

local function is_document(place) return #place == PLACE and byte(place) < 128 end

-- Returns the hash that has the row at a place, and the field of the row. A row with a text key has the place
-- `key/KIND/NAME`.
local function at(place)
  if #place > PLACE then return root .. ':' .. place:match('/(.-)/'), place:match('/.-/(.*)') end
  if is_document(place) then return root .. ':document.' .. sub(place, 1, CODE), place end
  return root .. (byte(place) < 192 and ':visit' or ':name'), place
end

for _, code in ipairs(codes) do
  local holder = call('HGET', lease(code), '') or ''
  local last = sub(holder, 1, #id) == id and tonumber(sub(holder, #id + 1))
  if not last or last < written or last > number then return false end
end

-- Calls a function. If a key is damaged, notes the error and goes on. Raises any other error.
local function attempt(work, ...)
  local is_done, why = pcall(work, ...)
  if is_done then return end
  local text = why.err or why
  if not (text:find('WRONGTYPE') or text:find('attempt to ') or text:find('bad argument')) then error(text, 0) end
  damage = reply(text)
end

-- Lists of the index. The list of a key has places, oldest first; its name is the first 6 bytes of the key. The list of
-- a block has places with SimHashes; its name is the 3 bytes of the block. In Redis, a list is a string. But a short
-- list of a key is a field of its bucket, which is a small hash. If this field is '', the list is long, and a string.
local function is_of_key(name) return #name == NAME end

local function string_of(name) return (is_of_key(name) and of_keys or of_blocks) .. name end

local buckets, fields = {}, {} -- by list; made once, since most time of a lookup goes into making strings

local function bucket(name)
  if not buckets[name] then
    buckets[name] = of_keys .. sub(name, 1, 2) .. char(byte(name, 3) - byte(name, 3) % 64)
    fields[name] = sub(name, 3)
  end
  return buckets[name], fields[name]
end

-- Returns a list; with `from`, a negative offset, only its end; '' if there is no such list.
local function read(name, from)
  local list = ''
  if is_of_key(name) then list = call('HGET', bucket(name)) or nil end
  return list == '' and call('GETRANGE', string_of(name), from or 0, -1) or list or ''
end

local function replace(name, list)
  local is_string = not is_of_key(name) or #list > SHORT
  if is_of_key(name) then
    local key, field = bucket(name)
    if list == '' then call('HDEL', key, field) else call('HSET', key, field, is_string and '' or list) end
  end
  if is_string and list ~= '' then call('SET', string_of(name), list) else call('DEL', string_of(name)) end
end

-- Returns the position of an entry in a list, at or after another position, or nil.
local function find(list, entry, from)
  local at = string.find(list, entry, from, true)
  while at and (at - 1) % #entry ~= 0 do at = string.find(list, entry, at + 1, true) end
  return at
end

local cuts = {} -- by list, the entries to remove, so that the list is written once for all of them

local function cut(name, entry)
  cuts[name] = cuts[name] or {}
  cuts[name][#cuts[name] + 1] = entry
end

-- Removes from a list the entries that were cut. It is fast if they come in the order of the list.
local function settle(name)
  local list, gone, kept, from = read(name), cuts[name], {}, 1
  cuts[name] = nil
  for _, entry in ipairs(gone) do
    local at = find(list, entry, from)
    if not at and from > 1 then
      list, kept, from = concat(kept) .. sub(list, from), {}, 1
      at = find(list, entry, 1)
    end
    if at then kept[#kept + 1], from = sub(list, from, at - 1), at + #entry end
  end
  replace(name, concat(kept) .. sub(list, from))
end

-- Adds an entry to a list. If it is there already, lookups still find its row once.
local function append(name, entry)
  if cuts[name] then settle(name) end -- a repeated call may delete a row, then write it anew
  local list = ''
  if is_of_key(name) then
    local key, field = bucket(name)
    if call('HSETNX', key, field, entry) == 1 then return end
    list = call('HGET', key, field)
  end
  if list ~= '' then replace(name, list .. entry) else call('APPEND', string_of(name), entry) end
end

-- Calls a function for each list that a row is in, with the name of the list and the entry of the row.
local function each_list(work, place, keys, simhash)
  for at = 1, #keys, KEY do attempt(work, sub(keys, at, at + NAME - 1), place) end
  for at = 1, #simhash, 2 do
    attempt(work, char((at - 1) / 2) .. sub(simhash, at, at + 1), place .. simhash)
  end
end

local function announce(stream, place) call('XADD', root .. stream, 'MAXLEN', '~', KEPT, '*', 'place', place) end

-- Holds a document as pending. Does nothing if it is pending already, or if nobody holds its run.
function operations.hold(place, keys, simhash, value)
  if call('EXISTS', lease(place)) == 0 or call('HSETNX', lease(place), place, value) == 0 then return end
  each_list(append, place, keys, simhash)
end

-- Writes a row; with `if_missing`, only if it does not exist. `known`: if the row is pending or written already, the
-- index has so many bytes of `keys`, from their beginning.
function operations.row(place, keys, simhash, value, known, if_missing)
  local hash, field = at(place)
  local old = call('HGET', hash, field)
  if old == value or old and if_missing then return end
  call('HSET', hash, field, value)
  if #place > PLACE then announce(':news', place) end
  local is_known = old or is_document(place) and call('HDEL', lease(place), place) == 1
  each_list(append, place, is_known and sub(keys, known + 1) or keys, is_known and '' or simhash)
  if old or not is_document(place) then return end
  local run, row = sub(place, 1, CODE), struct.unpack('>I4', place, CODE + 1)
  if row > tonumber(call('HGET', root .. ':last', run) or -1) then call('HSET', root .. ':last', run, row) end
  announce(':added', place)
end

-- Deletes a row; with `if_pending`, only a pending document.
function operations.drop(place, keys, simhash, if_pending)
  if if_pending and call('HEXISTS', lease(place), place) == 0 then return end
  call('HDEL', at(place))
  call('HDEL', lease(place), place)
  each_list(cut, place, keys, simhash)
end

-- Requests

function requests.call(...) return call(...) end

-- Takes the lease of a run, or releases it if the duration is 0. Returns 0 if another process holds it.
function requests.lease(code, milliseconds)
  local holder = call('HGET', lease(code), '') or id
  if sub(holder, 1, #id) ~= id then return 0 end
  if milliseconds > 0 then call('HSET', lease(code), '', id .. number) end
  return call('PEXPIRE', lease(code), milliseconds)
end

local known, told, holds = {}, {}, true -- `holds` is false once a document could not be held

-- Returns whether a row exists at a place, and adds the row to the answer: place, value, 1 if pending.
local function take(place)
  if known[place] == nil then
    local row = call('HGET', at(place))
    local value = row or is_document(place) and call('HGET', lease(place), place)
    known[place] = value and true or false
    if value then told[#told + 1], told[#told + 2], told[#told + 3] = place, value, row and 0 or 1 end
  end
  return known[place]
end

-- Adds the newest rows of a key to the answer. Returns the last place of the key.
local function newest(hits, n, name, most, own)
  local list = read(name, -PLACE * LOOKED)
  if list == '' then return NOWHERE end
  for at = #list - PLACE + 1, 1, -PLACE do
    local place = sub(list, at, at + PLACE - 1)
    if most == 0 then break end
    if place ~= own and take(place) then
      hits[#hits + 1], hits[#hits + 2], most = n, place, most - 1
    end
  end
  return sub(list, -PLACE)
end

-- Returns the Hamming distance between the SimHash of an entry and given bytes, or a number above `most` if it is more.
-- It begins with the byte `first`, and ends with the block by which the entry was found, since few bits differ there.
local function distance(list, entry, bytes, most, first)
  local sum = 0
  for n = first, first + 7 do
    local bits = bxor(byte(list, entry + PLACE + n % 8), bytes[n % 8 + 1])
    sum = sum + ONES[bits % 16] + ONES[(bits - bits % 16) / 16]
    if sum > most then break end
  end
  return sum
end

-- Adds the documents with a near SimHash to the answer. Returns their places, the nearest first.
local function near(blocks, simhash, most, own)
  local far, found, nearest, bytes = {}, {}, {}, { byte(simhash, 1, 8) }
  for block = 1, #blocks, 3 do
    local list = #found < CROWD and read(sub(blocks, block, block + 2), -ENTRY * WIDE) or ''
    assert(#list % ENTRY == 0, 'bad argument: a list has a part of an entry')
    for at = #list - ENTRY + 1, 1, -ENTRY do
      if #found >= CROWD then break end
      local bits = distance(list, at, bytes, most, 2 * byte(blocks, block) + 2)
      local place = bits <= most and sub(list, at, at + PLACE - 1)
      if place and place ~= own and not far[place] then far[place], found[#found + 1] = bits, place end
    end
  end
  for bits = 0, most do
    for _, place in ipairs(found) do
      if far[place] == bits and #nearest < NEAREST and take(place) then nearest[#nearest + 1] = place end
    end
  end
  return nearest
end

-- Answers a lookup by keys, with at most `most` rows of each, and by a SimHash, with the blocks to search and the
-- maximum distance `far`. Holds `document`, if it is given, and if the keys find nothing. With `seen`, the last place
-- of each key in an earlier lookup, these places must be the same now, unless the document is pending already.
-- Returns hits (number of the key, place), the last place of each key, places of near documents, 1 if the document is
-- held.
local function answer(keys, most, blocks, simhash, far, document, seen)
  local hits, lasts, own = {}, {}, document and document[1]
  for n = 0, #keys / KEY - 1 do
    lasts[n + 1] = newest(hits, n, sub(keys, KEY * n + 1, KEY * n + NAME), most, own)
  end
  local last, nearest = concat(lasts), near(blocks, simhash, far, own)
  local is_new = #hits == 0 and (not seen or seen == last or call('HEXISTS', lease(own), own) == 1)
  local is_held = document and holds and is_new
  if is_held then operations.hold(unpack(document)) end
  holds, writes = holds and (is_held or not document), writes or document
  return { hits, last, nearest, is_held and 1 or 0 }
end

-- Answers lookups. Returns all rows found, with the rows at `places`, and the answer to each lookup.
function requests.look(questions, places)
  local answers = {}
  for n, question in ipairs(questions) do answers[n] = answer(unpack(question)) end
  for _, place in ipairs(places) do take(place) end
  return { told, answers }
end

function requests.places(key) return read(sub(key, 1, NAME)) end

-- Returns 1 if a row is missing in one of its lists.
function requests.lacks(...)
  local missing = 0
  each_list(function(name, entry) missing = find(read(name), entry, 1) and missing or 1 end, ...)
  return damage and 1 or missing
end

local function write()
  for _, each in ipairs(given) do attempt(operations[each[1]], unpack(each, 2)) end
  for name in pairs(cuts) do attempt(settle, name) end
end

local answers, is_done, why = {}, pcall(write)
for n, each in ipairs(asked) do
  local is_answered, answer = pcall(requests[each[1]], unpack(each, 2))
  if is_answered then answers[n] = answer or false else answers[n] = reply(answer.err or answer) end
end
local is_noted = is_done and (writes or #given > 0)
for _, code in ipairs(is_noted and codes or {}) do -- a full server refuses this, but then it has refused the writes too
  is_noted = is_noted and pcall(call, 'HSET', lease(code), '', id .. number)
end
return { damage, not is_done and reply(why.err or why), answers, is_noted and 1 or 0 }
