-- Removes the entries of deleted rows from a range of buckets.
-- ARGV[2]: `k` for buckets of keys, `n` for buckets of SimHashes. ARGV[3], ARGV[4]: the first and the last bucket.
local what, first, final = unpack(ARGV, 2)

-- Returns the entries of a list whose rows exist.
local function left(list, width)
  local kept = {}
  for at = 1, #list, width do
    local place = sub(list, at, at + PLACE - 1)
    if call('EXISTS', rows .. place) == 1 or call('HEXISTS', pending, place) == 1 then
      kept[#kept + 1] = sub(list, at, at + width - 1)
    end
  end
  return concat(kept)
end

local function replace(put, key, list, width)
  local kept = left(list, width)
  if #kept < #list then put(key, kept) end
end

for number = tonumber(first), tonumber(final) do
  local bucket = struct.pack('>I3', number)
  if what == 'n' then
    replace(put_block, root .. 'n' .. bucket, call('GET', root .. 'n' .. bucket) or '', ENTRY)
  else
    for _, field in ipairs(call('HKEYS', root .. 'k' .. bucket)) do
      replace(put, bucket .. field, places_of(bucket .. field), PLACE)
    end
  end
end
