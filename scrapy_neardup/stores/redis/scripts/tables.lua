-- Tables of packed entries: a hash each, whose fields are buckets (their numbers as four bytes, the lowest first). They
-- grow by linear hashing (Litwin 1980): of B buckets, with 2^L <= B < 2^(L+1), a hash v is in bucket v mod 2^L, or
-- v mod 2^(L+1) where the former was split already. So memory per entry and time stay flat.
local TABLES = {  -- least buckets, entries a bucket, most buckets
  k = {4096, 48, 2 ^ 28},  -- equal fingerprints; see `entry_of`
  s = {1024, 16, 2 ^ 18},  -- blocks of SimHashes: SimHash (little-endian), number; hashed by 16 bits and which block
  u = {256, 12, 2 ^ 31},  -- URLs: length, hash of the URL, and the rest of the link
}
local ENTRY = 6  -- bytes of an entry of `k`
local STATE = '>I5I5I5I5I5I5I5'  -- number that comes next, then of each table how many buckets and entries it has

local tables, next_number  -- by kind

local function table_of(kind, buckets, entries)
  local _, exponent = math.frexp(buckets)
  local size = 2 ^ (exponent - 1)
  return {kind = kind, key = root .. kind, size = size, split = buckets - size, entries = entries}
end

local function loaded(state)
  if not state then state = pack(STATE, 0, TABLES.k[1], 0, TABLES.s[1], 0, TABLES.u[1], 0) end
  local following, k, in_k, s, in_s, u, in_u = unpacked(STATE, state)
  next_number = following
  tables = {k = table_of('k', k, in_k), s = table_of('s', s, in_s), u = table_of('u', u, in_u)}
end

local function opened(kind)
  if not tables then loaded(call('HGET', root .. 'k', 'state')) end
  return tables[kind]
end

local function field(bucket)
  return char(bucket % 256, floor(bucket / 256) % 256, floor(bucket / 65536) % 256, floor(bucket / 16777216))
end

local function bucket_of(t, v)
  local bucket = v % t.size
  if bucket < t.split then bucket = v % (2 * t.size) end
  return bucket
end

local function field_of(t, v)
  return field(bucket_of(t, v))
end

local function put(t, name, value)
  if value == '' then call('HDEL', t.key, name) else call('HSET', t.key, name, value) end
end

-- Returns the values of fields. Lua can't pass on very many at once.
local AT_ONCE = 1000
local function read(key, names)
  if #names <= AT_ONCE then return call('HMGET', key, unpack(names)) end
  local values = {}
  for first = 1, #names, AT_ONCE do
    for n, value in ipairs(call('HMGET', key, unpack(names, first, math.min(first + AT_ONCE - 1, #names)))) do
      values[first + n - 1] = value
    end
  end
  return values
end

-- Of `k`: the upper bits of the hash that its bucket does not tell, and the number of the document. Up to 2^20 buckets
-- that are three bytes each; from there on the place tells eight bits more, and the number has four bytes.
local WIDE = 2 ^ 20
local function tag_width(t, bucket)
  local level = (bucket < t.split or bucket >= t.size) and 2 * t.size or t.size
  return level < WIDE and 3 or 2
end

-- Returns a row of five bytes as the hash of 36 bits that it stands for, the lower bits being the lower.
local function hash_of(rows, at)
  local high, low = unpacked('>I3I2', rows, at)
  return high * 4096 + low
end

-- Returns where the aligned entries with a tag begin, ascending.
local function places_of(value, tag, width)
  local places, at = {}, 1
  while true do
    local place = find(value, tag, at, true)
    if not place then return places end
    if (place - 1) % width == 0 then
      places[#places + 1] = place
      at = place + width
    else
      at = place + 1
    end
  end
end

