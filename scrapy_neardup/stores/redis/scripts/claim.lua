-- Finds documents, and enters one. ARGV: 1 mode: 'look', 'ask' (enter where none newer than ARGV[2] is found), 'enter'
-- 2 the number from which on documents count  3 rows of hashes  4 of each how many are wanted, a byte
-- 5 blocks of SimHashes to look up, three bytes each  6 the SimHash, or ''  7 the record  8 the run's number
--
-- Returns the number given or -1, the number that comes next, what hashes found (place of the hash, number), and the
-- entries of the SimHashes looked up.
local mode, above, rows, newest, probes, simhash, record, run = unpack(ARGV)
above = tonumber(above)
local HOT, KEPT = 64, 16  -- entries of one hash: where there are so many, all but the newest are kept elsewhere
local CROWD = 2048  -- entries of a bucket of SimHashes

local k = opened('k')
local hashes, keys, width = {}, {}, {}
for at = 1, #rows, 5 do
  local v = hash_of(rows, at)
  local bucket = bucket_of(k, v)
  local n = #hashes + 1
  hashes[n], keys[n], width[n] = v, key_of(k, bucket), tag_width(k, bucket)
end
local values = #keys > 0 and call('MGET', unpack(keys)) or {}

local function overflow_key(v)
  return root .. 'h' .. pack('>I5', v)
end

local found = {}
local hits = {}
local function take(n, number)
  if number < above or is_gone(number) then return 0 end
  found[#found + 1] = pack('>I2I4', n - 1, number)
  return 1
end

for n = 1, #keys do
  local value = values[n]
  local tag = sub(rows, 5 * n - 4, 5 * n - 5 + width[n])
  if value then
    local places = places_of(value, tag, width[n] + 4)
    hits[n] = #places
    local wanted = byte(newest, n)
    for at = #places, 1, -1 do
      if wanted == 0 then break end
      wanted = wanted - take(n, (unpacked('>I4', value, places[at] + width[n])))
    end
    if wanted > 0 and #places >= KEPT then
      local key, last = overflow_key(hashes[n]), -1
      while wanted > 0 do
        local older = call('LRANGE', key, last - 63, last)
        for at = #older, 1, -1 do
          if wanted > 0 then wanted = wanted - take(n, tonumber(older[at])) end
        end
        if #older < 64 then break end
        last = last - 64
      end
    end
  end
end

local s = opened('s')
local near = {}
if #probes > 0 then
  local asked, seen = {}, {}
  for at = 1, #probes, 3 do
    local bucket = bucket_of(s, (unpacked('>I3', probes, at)))
    if not seen[bucket] then
      seen[bucket] = true
      asked[#asked + 1] = key_of(s, bucket)
    end
  end
  for _, value in ipairs(call('MGET', unpack(asked))) do
    if value then near[#near + 1] = value end
  end
end

local given, next_number = -1, tonumber(call('HGET', root, 'next') or 0)
if mode == 'enter' or (mode == 'ask' and #found == 0) then
  given = next_number
  local packed = pack('>I4', given)
  local now = {}
  for n = 1, #keys do
    local key, w = keys[n], width[n]
    local value = now[key] or values[n] or ''
    local tag = sub(rows, 5 * n - 4, 5 * n - 5 + w)
    if (hits[n] or 0) >= HOT then
      local places, kept, last, moved = places_of(value, tag, w + 4), {}, 1, {}
      for at = 1, #places - KEPT do
        kept[#kept + 1] = sub(value, last, places[at] - 1)
        last = places[at] + w + 4
        moved[at] = unpacked('>I4', value, places[at] + w)
      end
      call('SADD', root .. ':hot', pack('>I5', hashes[n]))
      call('RPUSH', overflow_key(hashes[n]), unpack(moved))
      k.entries = k.entries - #moved
      value = concat(kept) .. sub(value, last)
    end
    now[key] = value .. tag .. packed
  end
  for key, value in pairs(now) do call('SET', key, value) end
  k.entries = k.entries + #keys
  saved(k)
  if #simhash == 8 then
    for block = 0, 3 do
      local key = key_of(s, bucket_of(s, 4 * unpacked('<I2', simhash, 2 * block + 1) + block))
      local value = (call('GET', key) or '') .. simhash .. packed
      if #value > 12 * CROWD then
        s.entries = s.entries - CROWD / 2
        value = sub(value, 6 * CROWD + 1)
      end
      call('SET', key, value)
    end
    s.entries = s.entries + 4
    saved(s)
  end
  local key = number_key('d', given, PER_BLOCK)
  call('SET', key, (call('GET', key) or '') .. pack('<I3', #record) .. record)
  call('HSET', root .. ':pending', given, run)
  call('RPUSH', root .. ':open.' .. run, 'd' .. packed)
  call('HSET', root, 'next', given + 1)
end
return {given, next_number, concat(found), concat(near)}
