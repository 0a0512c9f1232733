-- Does operations in order. ARGV[2], in MessagePack, of each its name and arguments:
-- `row` place, value, keys, SimHash, keys that it was not held with or false, keeps its place, is news
-- `hold` place, value, keys, SimHash   `free`, if it is held, and `drop` place, keys, SimHash
-- `set` hash, name, value or false, is news   `add`, if it is not there, hash, name, value
-- Returns why something can't ever be written, or nothing.
local KEPT = 100000 -- news
local IS_HEARD = call('EXISTS', root .. ':hears') == 1
local operations, last, damage = {}, {}, false

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
  local run, number = sub(place, 1, CODE), struct.unpack('>I4', place, CODE + 1) % 0x80000000
  last[run] = math.max(last[run] or 0, number)
  if is_news and IS_HEARD and not (old and keeps) then tell('document', place) end
end

function operations.drop(place, keys, simhash)
  call('DEL', rows .. place)
  call('HDEL', pending, place)
  for at = 1, #keys, KEY do
    local key = sub(keys, at, at + KEY - 1)
    put(key, without(places_of(key), place))
  end
  for block = 0, #simhash / 2 - 1 do
    local key = block_key(simhash, block)
    put_block(key, without(call('GET', key) or '', place .. simhash))
  end
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

local function note_last()
  for run, number in pairs(last) do
    if number > tonumber(call('HGET', root .. ':last', run) or -1) then call('HSET', root .. ':last', run, number) end
  end
end

-- Does some work; returns why the server refuses it. What can't ever be done, as a key is damaged, is left.
local function refusal(work, ...)
  local is_done, why = pcall(work, ...)
  if is_done then return nil end
  local text = why.err or why
  local is_damage = string.find(text, 'WRONGTYPE') or string.find(text, 'attempt to ') or string.find(text, 'bad argument')
  if not is_damage then return redis.error_reply(text) end
  damage = redis.error_reply(text)
end

for _, operation in ipairs(cmsgpack.unpack(ARGV[2])) do
  local why = refusal(operations[operation[1]], unpack(operation, 2))
  if why then return why end
end
return refusal(note_last) or { damage }
