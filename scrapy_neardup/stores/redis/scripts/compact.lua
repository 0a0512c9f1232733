-- Removes from some buckets of equal fingerprints (ARGV: the first, how many) what leads to documents that are held no
-- more. Returns how many buckets there are.
local first, count = tonumber(ARGV[1]), tonumber(ARGV[2])
local k = opened('k')
local buckets = k.size + k.split

-- Those of a hash that very many share stay: how many there are tells that there are more.
local has_hot = call('EXISTS', root .. ':hot') == 1
local function is_hot(tag, bucket)
  local high, weight = 0, 2 ^ (36 - 8 * #tag)
  for at = 1, #tag do high = high * 256 + byte(tag, at) end
  return call('SISMEMBER', root .. ':hot', pack('>I5', high * weight + bucket % weight)) == 1
end

local function is_dead(value, at, width, bucket)
  local number = width == 3 and unpacked('>I3', value, at + 3) or unpacked('>I4', value, at + 2)
  return is_gone(number) and not (has_hot and is_hot(sub(value, at, at + width - 1), bucket))
end

for bucket = first, math.min(first + count, buckets) - 1 do
  local name, width, kept = field(bucket), tag_width(k, bucket), {}
  local value = call('HGET', k.key, name) or ''
  for at = 1, #value, ENTRY do
    if not is_dead(value, at, width, bucket) then kept[#kept + 1] = sub(value, at, at + ENTRY - 1) end
  end
  local removed = #value / ENTRY - #kept
  if removed > 0 then
    put(k, name, concat(kept))
    k.entries = k.entries - removed
  end
end
if next_number > 0 then saved() end
return buckets
