-- Removes from some buckets what leads to rows that are gone. ARGV[2]: `k` for buckets of keys, `n` for those of
-- SimHashes; the first bucket, the last one.
local what, first, final = unpack(ARGV, 2)

local function is_gone(place)
  return call('EXISTS', rows .. place) == 0 and call('HEXISTS', pending, place) == 0
end

for number = tonumber(first), tonumber(final) do
  local bucket = struct.pack('>I3', number)
  if what == 'n' then
    thin_block(root .. 'n' .. bucket, is_gone)
  else
    for _, field in ipairs(call('HKEYS', root .. 'k' .. bucket)) do thin(bucket .. field, is_gone) end
  end
end
