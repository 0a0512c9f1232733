-- Forgets documents (ARGV[1]: numbers of four bytes), with all that leads to them. ARGV[2]: rows of the hashes that
-- find the one document, where they are known (of the record its place stays, so that an import knows it); ARGV[3]: pending for that run only, or ''. Returns how many there were.
local numbers, rows, run = unpack(ARGV)
local count = 0

local function drop_links(number)
  local t, kept = opened('u'), {}
  local value = call('GET', links_key(number)) or ''
  local mine = {}
  for at = 1, #value, 9 do
    if byte(value, at) == number % PER_BLOCK then mine[#mine + 1] = sub(value, at + 1, at + 8) end
  end
  for _, url in ipairs(mine) do put_link(t, url, '') end
  if #mine > 0 then saved(t) end
end

local function drop_simhash(number, simhash)
  local s, entry = opened('s'), simhash .. pack('>I4', number)
  for block = 0, 3 do
    local key = key_of(s, bucket_of(s, 4 * unpacked('<I2', simhash, 2 * block + 1) + block))
    local value = call('GET', key) or ''
    local places = places_of(value, entry, 12)
    if #places > 0 then
      put(key, sub(value, 1, places[1] - 1) .. sub(value, places[1] + 12))
      s.entries = s.entries - 1
    end
  end
  call('HSET', root, 's.entries', s.entries)
end

local function drop_hashes(number)
  local k = opened('k')
  for at = 1, #rows, 5 do
    local v = hash_of(rows, at)
    local bucket = bucket_of(k, v)
    local key, width = key_of(k, bucket), tag_width(k, bucket)
    local value = call('GET', key) or ''
    local places = places_of(value, sub(rows, at, at + width - 1) .. pack('>I4', number), width + 4)
    if #places > 0 then
      put(key, sub(value, 1, places[1] - 1) .. sub(value, places[1] + width + 4))
      k.entries = k.entries - 1
    end
  end
  call('HSET', root, 'k.entries', k.entries)
end

local function drop(number)
  local pending = call('HGET', root .. ':pending', number)
  if is_gone(number) or (run ~= '' and pending ~= run) then return end
  count = count + 1
  if pending then call('HDEL', root .. ':pending', number) else call('HINCRBY', root, 'documents', -1) end
  drop_links(number)
  local key = number_key('d', number, PER_BLOCK)
  local block = call('GET', key)
  local first, last = record_places(block, number)
  local record = sub(block, first + 3, last)
  if byte(record, 183) >= 2 then drop_simhash(number, sub(record, 145, 152)) end
  put(key, sub(block, 1, first - 1) .. pack('<I3', 10) .. sub(record, 173, 182) .. sub(block, last + 1))
  call('SETBIT', root .. ':gone', number, 1)
  add_repeats(number, -repeats_of(number))
  drop_hashes(number)
end

for at = 1, #numbers, 4 do drop((unpacked('>I4', numbers, at))) end
return count
