-- Removes from some buckets what leads to rows that are gone. ARGV[2]: `k` for buckets of keys, `n` for those of
-- SimHashes; the first bucket, the last one. Returns how many were removed.
local what, first, final = unpack(ARGV, 2)
local removed, is_there = 0, {}

local function is_gone(place)
  if is_there[place] == nil then
    is_there[place] = call('EXISTS', rows .. place) == 1 or call('HEXISTS', pending, place) == 1
  end
  return not is_there[place]
end

for number = tonumber(first), tonumber(final) do
  local bucket = struct.pack('>I3', number)
  if what == 'n' then
    removed = removed + thin_block(root .. 'n' .. bucket, is_gone)
  else
    for _, field in ipairs(call('HKEYS', root .. 'k' .. bucket)) do removed = removed + thin(bucket .. field, is_gone) end
  end
end
return removed
