-- Finds documents, and enters one. ARGV: 1 mode: 'look', 'ask' (enter where none newer than ARGV[2] is found), 'enter',
-- 'import' (enter as committed; the run is that which may yet be undone, or 0)
-- 2 the number from which on documents count  3 rows of hashes  4 of each how many are wanted, a byte  5 the fields of
-- their buckets where there are so many as  6 says  7 the SimHash, or ''  8 the record  9 the run's number
--
-- Returns the number given or -1, the number that comes next, what hashes found (place of the hash, number), how many
-- buckets of hashes, of SimHashes and of URLs there are. Documents near in SimHash the client finds itself, in the
-- buckets that it reads after this: those below the number given.
local mode, above, rows, newest, fields, supposed, simhash, record, run = unpack(ARGV)
above = tonumber(above)
local HOT, KEPT = 64, 16  -- entries of one hash: where there are so many, all but the newest are kept elsewhere
local CROWD = 2048  -- entries of a bucket of SimHashes

local count, names, tags = #newest, {}, {}
for n = 1, count do names[n] = sub(fields, 4 * n - 3, 4 * n) end
names[count + 1] = 'state'
local values = read(root .. 'k', names)
loaded(values[count + 1])
local k, s = tables.k, tables.s
if count > 0 and k.size + k.split ~= tonumber(supposed) then
  for n = 1, count do names[n] = field_of(k, hash_of(rows, 5 * n - 4)) end
  values = read(k.key, names)
end

local found, hits = {}, {}

local function number_at(value, place, width)
  return (unpacked(width == 3 and '>I3' or '>I4', value, place + width))
end

local function overflow_key(n)
  return root .. 'h' .. pack('>I5', hash_of(rows, 5 * n - 4))
end

-- Takes the documents that share a hash, the newest first.
local function take(n, value, tag)
  local wanted = byte(newest, n)
  local function take_one(number)
    if number < above then
      wanted = 0  -- all others came before, too
    elseif call('GETBIT', root .. ':gone', number) == 0 then
      found[#found + 1] = pack('>I2I4', n - 1, number)
      wanted = wanted - 1
    end
  end
  local places = places_of(value, tag, ENTRY)
  hits[n] = #places
  for at = #places, 1, -1 do
    if wanted > 0 then take_one(number_at(value, places[at], #tag)) end
  end
  local last, older = -1, {}
  while wanted > 0 and #places >= KEPT and (last == -1 or #older == 64) do
    older = call('LRANGE', overflow_key(n), last - 63, last)
    for at = #older, 1, -1 do
      if wanted > 0 then take_one(tonumber(older[at])) end
    end
    last = last - 64
  end
end

local width = k.size >= WIDE and 2 or 2 * k.size < WIDE and 3  -- of all tags
for n = 1, count do
  local tag = sub(rows, 5 * n - 4, 5 * n - 5 + (width or tag_width(k, bucket_of(k, hash_of(rows, 5 * n - 4)))))
  local value = values[n]
  tags[n] = tag
  if value and find(value, tag, 1, true) then take(n, value, tag) end
end

-- Returns a bucket without the older entries of a hash that very many share; these are kept elsewhere.
local function thinned(n, value)
  local tag, kept, last, moved = tags[n], {}, 1, {}
  local places = places_of(value, tag, ENTRY)
  for at = 1, #places - KEPT do
    kept[at] = sub(value, last, places[at] - 1)
    last = places[at] + ENTRY
    moved[at] = number_at(value, places[at], #tag)
  end
  call('SADD', root .. ':hot', pack('>I5', hash_of(rows, 5 * n - 4)))
  call('RPUSH', overflow_key(n), unpack(moved))
  k.entries = k.entries - #moved
  return concat(kept) .. sub(value, last)
end

local given, following = -1, next_number
if mode == 'enter' or mode == 'import' or (mode == 'ask' and #found == 0) then
  given, next_number = next_number, next_number + 1
  local packed = pack('>I4', given)
  local low, now, written = sub(packed, 2), {}, {}
  for n = 1, count do
    local name, tag = names[n], tags[n]
    local value = now[name] or values[n] or ''
    if hits[n] and hits[n] >= HOT then value = thinned(n, value) end
    now[name] = value .. tag .. (#tag == 3 and low or packed)
  end
  for name, value in pairs(now) do
    written[#written + 1] = name
    written[#written + 1] = value
  end
  for at = 1, #written, 2 * AT_ONCE do
    call('HSET', k.key, unpack(written, at, math.min(at + 2 * AT_ONCE - 1, #written)))
  end
  k.entries = k.entries + count
  if #simhash == 8 then
    local a, b, c, d = unpacked('<I2I2I2I2', simhash)
    local own = {field_of(s, 4 * a), field_of(s, 4 * b + 1), field_of(s, 4 * c + 2), field_of(s, 4 * d + 3)}
    local old = call('HMGET', s.key, unpack(own))
    for block = 1, 4 do
      local value = (old[block] or '') .. simhash .. packed
      if #value > 12 * CROWD then
        s.entries = s.entries - CROWD / 2
        value = sub(value, 6 * CROWD + 1)
      end
      old[block] = value
    end
    call('HSET', s.key, own[1], old[1], own[2], old[2], own[3], old[3], own[4], old[4])
    s.entries = s.entries + 4
  end
  local key = number_key('d', given, PER_BLOCK)
  call('APPEND', key, pack('<I3', #record) .. record)
  if next_number % PER_BLOCK == 0 then call('SET', key, call('GET', key)) end  -- without room for more
  if mode ~= 'import' then call('HSET', root .. ':pending', given, run) end
  if run ~= '0' then call('RPUSH', root .. ':open.' .. run, 'd' .. packed) end
  saved()
end
local u = tables.u
return {given, following, concat(found), k.size + k.split, s.size + s.split, u.size + u.split}
