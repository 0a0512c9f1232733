-- Does operations in order. ARGV[2], in MessagePack, of each its name and arguments:
-- `row` place, value, keys, SimHash, keys that it was not held with or false, keeps its place, news
-- `hold` place, value, keys, SimHash   `free`, if it is held, and `drop` place, keys, SimHash
-- `set` hash, name, value, is to be there only once, keeps its place
-- Returns how many rows there were not before.
local KEPT = 100000 -- news
local HEARD = { documents = call('EXISTS', root .. ':hears') == 1, news = true }
local made, last, gone, gone_near = 0, {}, {}, {}

local function tell(stream, name, value)
  if HEARD[stream] then call('XADD', root .. ':' .. stream, 'MAXLEN', '~', KEPT, '*', name, value) end
end

local function note(list, key, place)
  list[key] = list[key] or {}
  list[key][place] = true
end

local function apply()
  for key, places in pairs(gone) do
    local bucket, field = root .. 'k' .. sub(key, 1, 3), sub(key, 4)
    local list = call('HGET', bucket, field)
    if list then thin_field(bucket, field, list, function(place) return places[place] end) end
  end
  for key, places in pairs(gone_near) do
    thin(key, ENTRY, function(place) return places[place] end)
  end
  gone, gone_near = {}, {}
end

local operations = { hold = hold }

function operations.row(place, value, keys, simhash, others, keeps, news)
  local old = call('SET', rows .. place, value, 'GET')
  if old == value then return end
  if not old then made = made + 1 end
  local was_pending = call('HDEL', pending, place) == 1
  if was_pending and others then
    add_all(others, '', place, true)
  elseif not (old and keeps) then
    add_all(keys, simhash, place, old or was_pending)
  end
  local run, number = sub(place, 1, 3), struct.unpack('>I4', place, 4)
  local kind = run .. char(floor(number / 0x40000000))
  last[kind] = math.max(last[kind] or 0, number % 0x40000000)
  if news and not (old and keeps) then tell(news, 'place', place) end
end

function operations.drop(place, keys, simhash)
  call('DEL', rows .. place)
  call('HDEL', pending, place)
  for at = 1, #keys, KEY do note(gone, sub(keys, at, at + KEY - 1), place) end
  if #simhash == 8 then
    for block = 0, 3 do note(gone_near, block_key(simhash, block), place) end
  end
end

function operations.free(place, keys, simhash)
  if call('HEXISTS', pending, place) == 1 then operations.drop(place, keys, simhash) end
end

function operations.set(hash, name, value, once, keeps)
  if not value then
    call('HDEL', root .. ':' .. hash, name)
  elseif once then
    made = made + call('HSETNX', root .. ':' .. hash, name, value)
  else
    made = made + call('HSET', root .. ':' .. hash, name, value)
    if hash == 'run' and not keeps then tell('news', 'run', name) end
  end
end

for _, operation in ipairs(cmsgpack.unpack(ARGV[2])) do
  if operation[1] ~= 'drop' and operation[1] ~= 'free' then apply() end -- so that many that leave one list are removed at once
  operations[operation[1]](unpack(operation, 2))
end
apply()
for kind, number in pairs(last) do
  if number >= tonumber(call('HGET', root .. ':last', kind) or 0) then call('HSET', root .. ':last', kind, number) end
end
return made
