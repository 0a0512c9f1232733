-- Returns some buckets of a table: how many there are, then their values. ARGV: which table, the first, how many.
local kind, first, count = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local t = opened(kind)
local buckets = t.size + t.split
local keys = {}
for bucket = first, math.min(first + count, buckets) - 1 do keys[#keys + 1] = key_of(t, bucket) end
return {buckets, #keys > 0 and call('MGET', unpack(keys)) or {}}
