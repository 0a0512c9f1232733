-- Finds documents, and enters one. ARGV: 1 mode: 'look', 'ask' (enter where none newer than ARGV[2] is found), 'enter'
-- 2 the number from which on documents count  3 rows of hashes  4 of each how many are wanted, a byte  5 the SimHash,
-- or ''  6 the record  7 the run's number
--
-- Returns the number given or -1, the number that comes next, and what hashes found: place of the hash, number. Those
-- near in SimHash the client finds itself, in the buckets that it reads after this: those below the number given.
local mode, above, rows, newest, simhash, record, run = unpack(ARGV)
above = tonumber(above)
local HOT, KEPT = 64, 16  -- entries of one hash: where there are so many, all but the newest are kept elsewhere
local CROWD = 2048  -- entries of a bucket of SimHashes

local k, s = opened('k'), opened('s')
local hashes, keys, width = {}, {}, {}
local digits = {unpacked('>' .. string.rep('I3I2', #newest), rows)}  -- in one call: it is most of what a look costs
for n = 1, #newest do
  local v = digits[2 * n - 1] * 4096 + digits[2 * n]
  local bucket = bucket_of(k, v)
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
  k.entries = k.entries + #keys
  if #simhash == 8 then
    local blocks = {unpacked('<I2I2I2I2', simhash)}
    local own = {}
    for block = 0, 3 do own[block + 1] = key_of(s, bucket_of(s, 4 * blocks[block + 1] + block)) end
    for block, value in ipairs(call('MGET', unpack(own))) do
      value = (value or '') .. simhash .. packed
      if #value > 12 * CROWD then
        s.entries = s.entries - CROWD / 2
        value = sub(value, 6 * CROWD + 1)
      end
      now[own[block]] = value
    end
    s.entries = s.entries + 4
  end
  local written = {}
  for key, value in pairs(now) do
    written[#written + 1] = key
    written[#written + 1] = value
  end
  if #written > 0 then call('MSET', unpack(written)) end
  saved(k)
  saved(s)
  local key = number_key('d', given, PER_BLOCK)
  call('APPEND', key, pack('<I3', #record) .. record)
  if given % PER_BLOCK == PER_BLOCK - 1 then call('SET', key, call('GET', key)) end  -- without room for more
  call('HSET', root .. ':pending', given, run)
  call('RPUSH', root .. ':open.' .. run, 'd' .. packed)
  call('HSET', root, 'next', given + 1)
end
return {given, next_number, concat(found)}
