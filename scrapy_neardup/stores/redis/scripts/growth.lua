-- Splits the next buckets of a table in two. These functions are made where they are used: not for every call.
local function grow(t, wanted)
  local halved = {}  -- by kind, what puts the entries of a bucket into its two halves, by one bit of their hashes

  local function digit(weight)  -- returns the least digit that tells, counted from the least, and its bit
    local place = 0
    while weight >= 256 do place, weight = place + 1, weight / 256 end
    return place, weight
  end

  local function halved_by_width(value, width, at, weight)  -- the byte that tells is `at` in an entry
    local halves, twice = {[true] = {}, [false] = {}}, 2 * weight
    local start, upper = 1, byte(value, at) % twice >= weight
    for first = 1 + width, #value, width do
      local now = byte(value, first + at - 1) % twice >= weight
      if now ~= upper then
        table.insert(halves[upper], sub(value, start, first - 1))
        start, upper = first, now
      end
    end
    table.insert(halves[upper], sub(value, start))
    return concat(halves[false]), concat(halves[true])
  end

  local function narrowed(half)  -- from here on, the place tells eight bits more, and the number has them
    return (string.gsub(half, '(..).(...)', '%1\0%2'))
  end

  function halved.k(_, value)
    local tag = t.size < WIDE and 3 or 2
    local place, weight = digit(t.size / (tag == 3 and 2 ^ 12 or 2 ^ 20))
    local low, high = halved_by_width(value, ENTRY, tag - place, weight)
    if 2 * t.size == WIDE then low, high = narrowed(low), narrowed(high) end
    return low, high
  end

  function halved.s(bucket, value)
    local place, weight = digit(t.size / 4)
    return halved_by_width(value, 12, 2 * (bucket % 4) + 1 + place, weight)
  end

  function halved.u(_, value)
    local place, weight = digit(t.size)
    local low, high, at = {}, {}, 1
    while at < #value do
      local last = at + 2 + unpacked('<I3', value, at)
      local half = byte(value, at + 3 + place) % (2 * weight) >= weight and high or low
      half[#half + 1] = sub(value, at, last)
      at = last + 1
    end
    return concat(low), concat(high)
  end

  for _ = 1, 8 do
    local lower, upper = field(t.split), field(t.split + t.size)
    local value = call('HGET', t.key, lower)
    if value then
      local low, high = halved[t.kind](t.split, value)
      if high ~= '' then call('HSET', t.key, lower, low, upper, high) end
      if low == '' then call('HDEL', t.key, lower) end
    end
    t.split = t.split + 1
    if t.split == t.size then t.size, t.split = 2 * t.size, 0 end
    if t.size + t.split >= wanted then return end
  end
end

-- Lets tables grow, `k` also so that the numbers fit its entries, and keeps how far they have grown.
local function saved()
  if not tables then return end
  local counts = {}
  for n, kind in ipairs({'k', 's', 'u'}) do
    local t, limits = tables[kind], TABLES[kind]
    local wanted = t.entries / limits[2]
    if n == 1 and next_number / 16 > wanted then wanted = next_number / 16 end
    if wanted > t.size + t.split and t.size + t.split < limits[3] then grow(t, wanted) end
    counts[2 * n - 1], counts[2 * n] = t.size + t.split, t.entries
  end
  call('HSET', root .. 'k', 'state', pack(STATE, next_number, unpack(counts)))
end

