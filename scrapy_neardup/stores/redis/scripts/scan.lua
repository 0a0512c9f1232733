-- Returns some buckets of a table: how many there are, then their values. ARGV: which table, the first, how many.
local kind, first, count = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local t = opened(kind)
local buckets = t.size + t.split
local fields = {}
for bucket = first, math.min(first + count, buckets) - 1 do fields[#fields + 1] = field(bucket) end
return {buckets, #fields > 0 and call('HMGET', t.key, unpack(fields)) or {}}
