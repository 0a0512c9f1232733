-- Removes from some buckets what leads to rows that are gone. ARGV[2]: `k` for buckets of keys, `n` for those of
-- SimHashes, `pending` for documents of the dead; the first bucket, the last one. Returns how many were removed.
local what, first, final = unpack(ARGV, 2)
local removed, is_there = 0, {}

local function is_gone(place)
  if is_there[place] == nil then
    is_there[place] = call('EXISTS', rows .. place) == 1 or call('HEXISTS', pending, place) == 1
  end
  return not is_there[place]
end

if what == 'pending' then
  for _, place in ipairs(call('HKEYS', pending)) do
    if call('EXISTS', root .. ':lease.' .. sub(place, 1, 3)) == 0 then removed = removed + call('HDEL', pending, place) end
  end
  return removed
end
for number = tonumber(first), tonumber(final) do
  local bucket, count = root .. what .. struct.pack('>I3', number), 0
  if what == 'k' then
    local fields = call('HGETALL', bucket)
    for at = 1, #fields, 2 do removed = removed + thin_field(bucket, fields[at], fields[at + 1], is_gone) end
  else
    local _, gone = thin(bucket, ENTRY, is_gone)
    removed = removed + gone
  end
end
return removed
