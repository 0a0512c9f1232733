-- Tables of packed entries. They grow by linear hashing (Litwin 1980): of B buckets, with 2^L <= B < 2^(L+1), a hash v is
-- in bucket v mod 2^L, or v mod 2^(L+1) where the former was split already. So memory per entry and time stay flat.
local TABLES = {  -- least buckets, entries a bucket, most buckets
  k = {4096, 32, 2 ^ 28},  -- equal fingerprints: tag, number; of 36 bits the tag has those that the place does not tell
  s = {1024, 12, 2 ^ 18},  -- blocks of SimHashes: SimHash (little-endian), number; hashed by 16 bits and which block
  u = {256, 12, 2 ^ 31},  -- URLs: length, hash of the URL, and the rest of the link
}

local open = {}  -- by kind, tables that were looked at

local function opened(kind)
  if open[kind] then return open[kind] end
  local state = call('HMGET', root, kind .. '.buckets', kind .. '.entries')
  local buckets = tonumber(state[1]) or TABLES[kind][1]
  local _, exponent = math.frexp(buckets)
  local size = 2 ^ (exponent - 1)
  local t = {kind = kind, size = size, split = buckets - size, entries = tonumber(state[2]) or 0}
  open[kind] = t
  return t
end

local function bucket_of(t, v)
  local bucket = v % t.size
  if bucket < t.split then bucket = v % (2 * t.size) end
  return bucket
end

local function key_of(t, bucket)
  return root .. t.kind .. pack('>I4', bucket)
end

local function put(key, value)
  if value == '' then call('DEL', key) else call('SET', key, value) end
end

-- By kind, what calls back for each entry of a bucket with its first and last place, and the byte that tells whether it
-- goes to the upper half; returns what that byte is to be divided by, so that its lowest bit is the one.
local EACH = {}

local function each_of_width(value, width, at, visit)  -- the byte that tells is `at` in an entry
  for first = 1, #value, width do visit(first, first + width - 1, byte(value, first + at - 1)) end
end

-- Returns the least digit that tells, counted from the least, and what it is to be divided by.
local function digit(weight)
  local place = 0
  while weight >= 256 do place, weight = place + 1, weight / 256 end
  return place, weight
end

function EACH.k(t, _, value, visit)
  local wide = t.size < 2 ^ 20
  local tag = wide and 3 or 2
  local place, weight = digit(t.size / (wide and 2 ^ 12 or 2 ^ 20))
  each_of_width(value, tag + 4, tag - place, visit)
  return weight
end

function EACH.s(t, bucket, value, visit)
  local place, weight = digit(t.size / 4)
  each_of_width(value, 12, 2 * (bucket % 4) + 1 + place, visit)
  return weight
end

function EACH.u(t, bucket, value, visit)
  local place, weight = digit(t.size)
  local at = 1
  while at < #value do
    local last = at + 2 + unpacked('<I3', value, at)
    visit(at, last, byte(value, at + 3 + place))
    at = last + 1
  end
  return weight
end

-- Splits the next bucket of a table in two.
local function split(t)
  local lower, upper = t.split, t.split + t.size
  local key = key_of(t, lower)
  local value = call('GET', key)
  if value then
    local low, high = {}, {}
    local narrower = t.kind == 'k' and t.size == 2 ^ 19  -- from here on, the place tells eight bits more
    local entries, digits = {}, {}
    local weight = EACH[t.kind](t, lower, value, function(first, last, told)
      entries[#entries + 1] = sub(value, first, last)
      digits[#digits + 1] = told
    end)
    for n, entry in ipairs(entries) do
      if narrower then entry = sub(entry, 1, 2) .. sub(entry, 4) end
      local half = floor(digits[n] / weight) % 2 == 1 and high or low
      half[#half + 1] = entry
    end
    put(key, concat(low))
    put(key_of(t, upper), concat(high))
  end
  t.split = t.split + 1
  if t.split == t.size then t.size, t.split = 2 * t.size, 0 end
end

-- Lets a table grow if it must, and keeps how far it has grown.
local function saved(t)
  local _, fill, most = unpack(TABLES[t.kind])
  local steps = 0
  while t.entries > fill * (t.size + t.split) and t.size + t.split < most and steps < 8 do
    split(t)
    steps = steps + 1
  end
  call('HSET', root, t.kind .. '.buckets', t.size + t.split, t.kind .. '.entries', t.entries)
end

-- Of a table of equal fingerprints: how wide the tags are in a bucket.
local function tag_width(t, bucket)
  local level = bucket < t.split and 2 * t.size or t.size
  if bucket >= t.size then level = 2 * t.size end
  return level < 2 ^ 20 and 3 or 2
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

