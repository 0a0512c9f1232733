-- What all scripts share. KEYS[1] is the namespace's state (a hash); every other key begins with its name.
--
-- Tables of packed entries grow by linear hashing (Litwin 1980): of B buckets, with 2^L <= B < 2^(L+1), a hash v is in
-- bucket v mod 2^L, or v mod 2^(L+1) where the former was split already. So memory per entry and time stay flat.
local root = KEYS[1]
local call, find, sub, byte, concat = redis.call, string.find, string.sub, string.byte, table.concat
local pack, unpacked = struct.pack, struct.unpack

local TABLES = {  -- least buckets, entries a bucket, most buckets
  k = {4096, 32, 2 ^ 28},  -- equal fingerprints: tag, number; of 36 bits the tag has those that the place does not tell
  s = {1024, 24, 2 ^ 18},  -- blocks of SimHashes: SimHash (little-endian), number; hashed by 16 bits and which block
  u = {256, 12, 2 ^ 31},  -- URLs: length, hash of the URL, and the rest of the link
}

local function opened(kind)
  local state = call('HMGET', root, kind .. '.buckets', kind .. '.entries')
  local buckets = tonumber(state[1]) or TABLES[kind][1]
  local _, exponent = math.frexp(buckets)
  local size = 2 ^ (exponent - 1)
  return {kind = kind, size = size, split = buckets - size, entries = tonumber(state[2]) or 0, was = state[1]}
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

-- Lists the entries of a bucket: calls back with first and last place, and whether the entry goes to the upper half.
local EACH = {}

function EACH.k(t, bucket, value, visit)
  local wide = t.size < 2 ^ 20
  local tag = wide and 3 or 2
  local place, weight = tag - 1, t.size / (wide and 2 ^ 12 or 2 ^ 20)
  while weight >= 256 do place, weight = place - 1, weight / 256 end
  for at = 1, #value, tag + 4 do
    visit(at, at + tag + 3, math.floor(byte(value, at + place) / weight) % 2 == 1)
  end
end

function EACH.s(t, bucket, value, visit)
  local bit, block = t.size / 4, bucket % 4
  local place, weight = 2 * block, bit
  if weight >= 256 then place, weight = place + 1, weight / 256 end
  for at = 1, #value, 12 do
    visit(at, at + 11, math.floor(byte(value, at + place) / weight) % 2 == 1)
  end
end

function EACH.u(t, bucket, value, visit)
  local at = 1
  while at < #value do
    local last = at + 2 + unpacked('<I3', value, at)
    local v = unpacked('<I4', value, at + 3)
    visit(at, last, math.floor(v / t.size) % 2 == 1)
    at = last + 1
  end
end

-- Splits the next bucket of a table in two.
local function split(t)
  local lower, upper = t.split, t.split + t.size
  local key = key_of(t, lower)
  local value = call('GET', key)
  if value then
    local low, high = {}, {}
    local narrower = t.kind == 'k' and t.size == 2 ^ 19  -- from here on, the place tells eight bits more
    EACH[t.kind](t, lower, value, function(first, last, is_high)
      local entry = sub(value, first, last)
      if narrower then entry = sub(entry, 1, 2) .. sub(entry, 4) end
      local half = is_high and high or low
      half[#half + 1] = entry
    end)
    put(key, concat(low))
    put(key_of(t, upper), concat(high))
  end
  t.split = t.split + 1
  if t.split == t.size then t.size, t.split = 2 * t.size, 0 end
end

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

-- Documents

local function number_key(kind, number, share)
  return root .. kind .. pack('>I4', math.floor(number / share))
end

local function is_gone(number)
  return call('GETBIT', root .. ':gone', number) == 1
end

-- Records lie 16 to a string: length (three bytes) and the rest, one after another.
local PER_BLOCK = 16

local function record_places(block, number)
  local at = 1
  for _ = 1, number % PER_BLOCK do at = at + 3 + unpacked('<I3', block, at) end
  return at, at + 2 + unpacked('<I3', block, at)
end

local function record_of(number)
  local block = call('GET', number_key('d', number, PER_BLOCK))
  if not block then return '' end
  local first, last = record_places(block, number)
  return sub(block, first + 3, last)
end

local function repeats_of(number)
  return call('BITFIELD', number_key('r', number, 256), 'GET', 'u32', '#' .. number % 256)[1]
end

local function add_repeats(number, more)
  if more ~= 0 then
    call('BITFIELD', number_key('r', number, 256), 'OVERFLOW', 'SAT', 'INCRBY', 'u32', '#' .. number % 256, more)
  end
end

-- Returns what is to be known of a document: '' where it is not held, else the run for which it is pending (or 0), its
-- repeats, and the record where that is wanted.
local function told(number, full)
  if is_gone(number) then return '' end
  local run = tonumber(call('HGET', root .. ':pending', number) or 0)
  return pack('>I4I4', run, repeats_of(number)) .. (full and record_of(number) or '')
end

-- Links to documents: 16 documents to a string of entries, each a place among the 16 and the hash of a URL.
local FEW = 4096  -- bytes of such a string that are moved for the sake of the order

local function links_key(number)
  return number_key('o', number, PER_BLOCK)
end

local function linked(number, url)
  local key, entry = links_key(number), string.char(number % PER_BLOCK) .. url
  local size = call('STRLEN', key)
  if size > 512 then call('APPEND', key, entry) else put(key, (call('GET', key) or '') .. entry) end
end

local function unlinked(number, url)
  local key = links_key(number)
  local value = call('GET', key)
  local places = value and places_of(value, string.char(number % PER_BLOCK) .. url, 9) or {}
  if #places > 0 then put(key, sub(value, 1, places[1] - 1) .. sub(value, places[1] + 9)) end
end

-- A link: hash of the URL (8 bytes), document (4), seen (8), size (4), flags (1), run (4), segment (4), the rest.
local NOWHERE, VOID = 2 ^ 32 - 1, 2 ^ 32 - 2  -- from VOID on, it is none: VOID where nothing is known of the URL

local function link_in(value, url)
  local at = 1
  while at < #value do
    local last = at + 2 + unpacked('<I3', value, at)
    if sub(value, at + 3, at + 10) == url then return at, last end
    at = last + 1
  end
end

local function link_bucket(t, url)
  local key = key_of(t, bucket_of(t, (unpacked('<I4', url))))
  return key, call('GET', key) or ''
end

-- Puts a link in place of the one that is known of its URL; '' drops that. Returns the documents that either leads to.
local function put_link(t, url, link)
  local key, value = link_bucket(t, url)
  local first, last = link_in(value, url)
  local document = link ~= '' and unpacked('<I4', link, 9) or NOWHERE
  local before = NOWHERE
  if first then
    before = unpacked('<I4', value, first + 11)
    if before < VOID then
      add_repeats(before, -(byte(value, first + 27) % 2))
      if before ~= document or call('STRLEN', links_key(before)) < FEW then
        unlinked(before, url)
      else
        document = nil
      end
    end
    value = sub(value, 1, first - 1) .. sub(value, last + 1)
    t.entries = t.entries - 1
  end
  if link ~= '' then
    local known = document == nil and unpacked('<I4', link, 9) or document
    if known < VOID then
      add_repeats(known, byte(link, 25) % 2)
      if document then linked(known, url) end
    end
    value = value .. pack('<I3', #link) .. link
    t.entries = t.entries + 1
  end
  put(key, value)
  return before, link ~= '' and unpacked('<I4', link, 9) or NOWHERE
end
