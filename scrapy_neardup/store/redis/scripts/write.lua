-- Executes operations in order. ARGV[2], in MessagePack: the operations, each with its name and arguments:
-- `row` (place, value, keys, SimHash, others, keeps, is_news) writes the row of a document or visit. `others`: the keys
--   that were added after the document was held as pending, or false. `keeps`: an existing row needs no new postings.
-- `hold` (place, value, keys, SimHash) holds a document as pending.
-- `drop` (place, keys, SimHash) deletes a row. `free`, with the same arguments, deletes only a pending document.
-- `set` (hash, name, value or false, is_news) writes or deletes a row of another kind. `add` (hash, name, value) writes
--   it only if it is missing.
-- Returns the error of an operation that can never succeed, or false.
local KEPT = 100000 -- entries of the stream of news
local IS_HEARD = call('EXISTS', root .. ':hears') == 1
local operations, last = {}, {}
local gone = { keys = {}, blocks = {} } -- dropped entries that are still in a list, by the key of the list

local damage = false -- the error of an operation that can never succeed

-- Calls a function. An error of a damaged key is noted, and the script continues; any other error ends the script.
local function attempt(work, ...)
  local is_done, why = pcall(work, ...)
  if is_done then return end
  local text = why.err or why
  local is_damage = string.find(text, 'WRONGTYPE') or string.find(text, 'attempt to ') or string.find(text, 'bad argument')
  if not is_damage then error(why, 0) end
  damage = redis.error_reply(text)
end

each = attempt

local function tell(kind, name) call('XADD', root .. ':news', 'MAXLEN', '~', KEPT, '*', kind, name) end

function operations.hold(...) hold(nil, ...) end

function operations.row(place, value, keys, simhash, others, keeps, is_news)
  local old = call('SET', rows .. place, value, 'GET')
  if old == value then return end
  local was_pending = call('HDEL', pending, place) == 1
  if was_pending and others then
    add_all(others, '', place, true)
  elseif not (old and keeps) then
    add_all(keys, simhash, place, old or was_pending)
  end
  local run, number = sub(place, 1, CODE), struct.unpack('>I4', place, CODE + 1)
  if number < 0x80000000 then last[run] = math.max(last[run] or 0, number) end -- other places are those of visits
  if is_news and IS_HEARD and not (old and keeps) then tell('document', place) end
end

local function note_gone(of, key, entry)
  of[key] = of[key] or {}
  table.insert(of[key], entry)
end

function operations.drop(place, keys, simhash)
  call('DEL', rows .. place)
  call('HDEL', pending, place)
  for at = 1, #keys, KEY do note_gone(gone.keys, sub(keys, at, at + KEY - 1), place) end
  for block = 0, #simhash / 2 - 1 do note_gone(gone.blocks, block_key(simhash, block), place .. simhash) end
end

-- Returns a list without some of its entries.
local function thin(list, entries)
  local cuts, parts, from = {}, {}, 1
  for _, entry in ipairs(entries) do cuts[#cuts + 1] = find(list, entry) end
  table.sort(cuts)
  for _, cut in ipairs(cuts) do
    parts[#parts + 1] = sub(list, from, cut - 1)
    from = cut + #entries[1]
  end
  return concat(parts) .. sub(list, from)
end

local function thin_key(key, entries) put(key, thin(places_of(key), entries)) end
local function thin_block(key, entries) put_block(key, thin(call('GET', key) or '', entries)) end

-- Removes dropped entries from the lists. A list is written once, even for many dropped rows.
local function thin_all()
  for key, entries in pairs(gone.keys) do attempt(thin_key, key, entries) end
  for key, entries in pairs(gone.blocks) do attempt(thin_block, key, entries) end
  gone = { keys = {}, blocks = {} }
end

function operations.free(place, keys, simhash)
  if call('HEXISTS', pending, place) == 1 then operations.drop(place, keys, simhash) end
end

function operations.set(hash, name, value, is_news)
  if value then call('HSET', root .. ':' .. hash, name, value) else call('HDEL', root .. ':' .. hash, name) end
  if is_news then tell(hash, name) end
end

function operations.add(hash, name, value)
  call('HSETNX', root .. ':' .. hash, name, value)
end

-- Writes the highest row number of each run, if it is higher than before.
local function note_last()
  for run, number in pairs(last) do
    if number > tonumber(call('HGET', root .. ':last', run) or -1) then call('HSET', root .. ':last', run, number) end
  end
end

local function work()
  for _, operation in ipairs(cmsgpack.unpack(ARGV[2])) do
    if operation[1] ~= 'drop' then thin_all() end
    attempt(operations[operation[1]], unpack(operation, 2))
  end
  thin_all()
  attempt(note_last)
end

local is_done, why = pcall(work)
if not is_done then return redis.error_reply(why.err or why) end
return { damage }
