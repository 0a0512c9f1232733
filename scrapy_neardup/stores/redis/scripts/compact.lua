-- Removes from some buckets of equal fingerprints (ARGV: the first, how many) what leads to documents that are held no
-- more. Returns how many buckets there are.
local first, count = tonumber(ARGV[1]), tonumber(ARGV[2])
local k = opened('k')
local buckets = k.size + k.split

-- Those of a hash that very many share stay: how many there are tells that there are more.
local has_hot = call('EXISTS', root .. ':hot') == 1
local function is_hot(tag, bucket)
  local high, bits = 0, 36 - 8 * #tag
  for at = 1, #tag do high = high * 256 + byte(tag, at) end
  return call('SISMEMBER', root .. ':hot', pack('>I5', high * 2 ^ bits + bucket % 2 ^ bits)) == 1
end

for bucket = first, math.min(first + count, buckets) - 1 do
  local key, width = key_of(k, bucket), tag_width(k, bucket)
  local value, kept = call('GET', key) or '', {}
  for at = 1, #value, width + 4 do
    local tag = sub(value, at, at + width - 1)
    if not is_gone((unpacked('>I4', value, at + width))) or (has_hot and is_hot(tag, bucket)) then
      kept[#kept + 1] = sub(value, at, at + width + 3)
    end
  end
  local removed = #value / (width + 4) - #kept
  if removed > 0 then
    put(key, concat(kept))
    k.entries = k.entries - removed
  end
end
saved(k)
return buckets
