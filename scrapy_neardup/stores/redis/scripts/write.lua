-- Does what waits for no answer, in order. ARGV[1]: MessagePack, a list of operations, each with its arguments; a number
-- of a document is four bytes. Returns what each of them returns. ARGV[2]: how many this session did before.
if KEYS[2] and call('GET', KEYS[2]) ~= ARGV[2] then return redis.error_reply('ERR neardup: not in order') end

local function drop_links(number)
  local t, kept = opened('u'), {}
  local value = call('GET', links_key(number)) or ''
  local mine = {}
  for at = 1, #value, 9 do
    if byte(value, at) == number % PER_BLOCK then mine[#mine + 1] = sub(value, at + 1, at + 8) end
  end
  for _, url in ipairs(mine) do put_link(t, url, '') end
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
end

local function drop_hashes(number, rows)
  local k = opened('k')
  for at = 1, #rows, 5 do
    local v = hash_of(rows, at)
    local bucket = bucket_of(k, v)
    local key, width = key_of(k, bucket), tag_width(k, bucket)
    local value = call('GET', key) or ''
    local places = places_of(value, sub(rows, at, at + width - 1) .. pack('>I4', number), width + 4)
    -- Where very many share a hash, those in the bucket tell that there are more: they stay, though they are gone.
    if #places > 0 and call('SISMEMBER', root .. ':hot', pack('>I5', v)) == 0 then
      put(key, sub(value, 1, places[1] - 1) .. sub(value, places[1] + width + 4))
      k.entries = k.entries - 1
    end
  end
end

local function drop(number, rows, run)
  local pending = call('HGET', root .. ':pending', number)
  if is_gone(number) or (run ~= '' and pending ~= run) then return end
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
  drop_hashes(number, rows)
  return true
end


local DO = {}

-- Commits documents that are pending for a run; returns how many were.
function DO.commit(run, numbers)
  local count = 0
  for at = 1, #numbers, 4 do
    local number = unpacked('>I4', numbers, at)
    if call('HGET', root .. ':pending', number) == run then
      call('HINCRBY', root, 'documents', 1)  -- first, since it is refused where the server is full
      call('HDEL', root .. ':pending', number)
      count = count + 1
    end
  end
  return count
end

-- Forgets documents, with all that leads to them; of each its place stays, so that an import knows it. `rows`: of the
-- hashes that find the one document, where they are known. `run`: only what is pending for it, or ''.
function DO.drop(numbers, rows, run)
  local count = 0
  for at = 1, #numbers, 4 do
    if drop(unpacked('>I4', numbers, at), rows, run) then count = count + 1 end
  end
  return count
end

-- Keeps what a URL led to. Returns numbers and repeats of the documents that this changes.
function DO.link(url, link, run)
  local document = unpacked('<I4', link, 9)
  if document < VOID and is_gone(document) then return '' end
  local before, now = put_link(opened('u'), url, link)
  call('RPUSH', root .. ':open.' .. run, 'l' .. url)
  local repeats = {}
  for _, each in ipairs({before, now}) do
    if each < VOID then repeats[#repeats + 1] = pack('>I4I4', each, repeats_of(each)) end
  end
  return concat(repeats)
end

-- Counts one more repeat of a document that is held.
DO['repeat'] = function(packed)
  local number = unpacked('>I4', packed)
  if is_gone(number) then return '' end
  add_repeats(number, 1)
  return packed .. pack('>I4', repeats_of(number))
end

-- Keeps what a run learned of hosts.
function DO.learn(run, token, body)
  return call('XADD', root .. ':news', '*', 'run', run, 'token', token, 'body', body)
end

local results = {}
local operations = cmsgpack.unpack(ARGV[1])
for n, operation in ipairs(operations) do
  results[n] = DO[operation[1]](operation[2], operation[3], operation[4])
end
for _, t in pairs(open) do saved(t) end
if KEYS[2] then call('INCRBY', KEYS[2], #operations) end  -- last, since a full server refuses it as the first
return results
