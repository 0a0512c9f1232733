-- Does what waits for no answer, in order. ARGV[1]: MessagePack, a list of operations, each with its arguments; a number
-- of a document is four bytes. Returns what each of them returns. ARGV[2]: how many this session did before.
if KEYS[2] and call('GET', KEYS[2]) ~= ARGV[2] then return redis.error_reply('ERR neardup: not in order') end

local DO = {}

-- Commits documents that are pending for a run; returns how many were.
function DO.commit(run, numbers)
  local count, pending = 0, root .. ':pending'
  for at = 1, #numbers, 4 do
    local number = unpacked('>I4', numbers, at)
    if call('HGET', pending, number) == run then count = count + call('HDEL', pending, number) end
  end
  return count
end

-- Forgets documents, with all that leads to them; of each its place stays, so that an import knows it. `rows`: of the
-- hashes that find the one document, where they are known. `run`: only what is pending for it, or ''.
function DO.drop(numbers, rows, run)  -- what it needs is made here: not for every call
  local function drop_links(number)
    local t, key = opened('u'), links_key(number)
    local value = call('GET', key) or ''
    local mine, rest = {}, {}
    for at = 1, #value, 9 do
      if byte(value, at) == number % PER_BLOCK then
        mine[#mine + 1] = sub(value, at + 1, at + 8)
      else
        rest[#rest + 1] = sub(value, at, at + 8)
      end
    end
    if #rest > 0 then call('SET', key, concat(rest)) else call('DEL', key) end  -- once: not for every URL
    for _, url in ipairs(mine) do put_link(t, url, '', number) end
  end

  -- Takes an entry out of a bucket of a table.
  local function drop_entry(t, name, entry)
    local value = call('HGET', t.key, name) or ''
    local places = places_of(value, entry, #entry)
    if #places == 0 then return end
    put(t, name, sub(value, 1, places[1] - 1) .. sub(value, places[1] + #entry))
    t.entries = t.entries - 1
  end

  local function drop_simhash(number, simhash)
    local s, entry = opened('s'), simhash .. pack('>I4', number)
    for block = 0, 3 do
      drop_entry(s, field_of(s, 4 * unpacked('<I2', simhash, 2 * block + 1) + block), entry)
    end
  end

  local function drop_hashes(number, rows)
    local k = opened('k')
    for at = 1, #rows, 5 do
      local v = hash_of(rows, at)
      local bucket = bucket_of(k, v)
      -- Where very many share a hash, those in the bucket tell that there are more: they stay, though they are gone.
      if call('SISMEMBER', root .. ':hot', pack('>I5', v)) == 0 then
        local width = tag_width(k, bucket)
        drop_entry(k, field(bucket), sub(rows, at, at + width - 1) .. sub(pack('>I4', number), width - 1))
      end
    end
  end

  local function drop(number, rows, run)
    local pending = call('HGET', root .. ':pending', number)
    if is_gone(number) or (run ~= '' and pending ~= run) then return end
    if pending then call('HDEL', root .. ':pending', number) end
    drop_links(number)
    local key = number_key('d', number, PER_BLOCK)
    local block = call('GET', key)
    local first, last = record_places(block, number)
    local record = sub(block, first + 3, last)
    if byte(record, 575) >= 2 then drop_simhash(number, sub(record, 537, 544)) end
    call('SET', key, sub(block, 1, first - 1) .. pack('<I3', 10) .. sub(record, 565, 574) .. sub(block, last + 1))
    call('SETBIT', root .. ':gone', number, 1)
    add_repeats(number, -repeats_of(number))
    drop_hashes(number, rows)
    return true
  end

  local count = 0
  for at = 1, #numbers, 4 do
    if drop(unpacked('>I4', numbers, at), rows, run) then count = count + 1 end
  end
  return count
end

local function repeats_told(number)
  return number < VOID and pack('>I4I4', number, repeats_of(number)) or ''
end

local recorded = {}  -- by run, what is to be undone if it dies

-- Keeps what a URL led to. Returns numbers and repeats of the documents that this changes.
function DO.link(url, link, run)
  local document = unpacked('<I4', link, 9)
  if document < VOID and is_gone(document) then return '' end
  local before, now = put_link(opened('u'), url, link)
  recorded[run] = recorded[run] or {}
  table.insert(recorded[run], 'l' .. url)
  if before >= VOID and byte(link, 25) % 2 == 0 then return '' end
  return repeats_told(before) .. repeats_told(now)
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

-- What can't be done since a key is damaged is told of, and leaves the rest alone.
local function refused(why)
  local text = type(why) == 'table' and why.err or tostring(why)
  for _, sign in ipairs({'WRONGTYPE', 'bad argument', 'attempt to'}) do
    if find(text, sign, 1, true) then return {err = text} end
  end
  error(why, 0)
end

local results = {}
local operations = cmsgpack.unpack(ARGV[1])
for n, operation in ipairs(operations) do
  local done, result = pcall(DO[operation[1]], operation[2], operation[3], operation[4])
  results[n] = done and result or not done and refused(result) or false
end
for run, entries in pairs(recorded) do call('RPUSH', root .. ':open.' .. run, unpack(entries)) end
saved()
if KEYS[2] then call('INCRBY', KEYS[2], #operations) end  -- last, since a full server refuses it as the first
return results
