-- Documents

local function is_gone(number)
  return call('GETBIT', root .. ':gone', number) == 1
end

-- Records lie 16 to a string: length (three bytes) and the rest, one after another.

local function record_places(block, number)
  local at = 1
  for _ = 1, number % PER_BLOCK do at = at + 3 + unpacked('<I3', block, at) end
  return at, at + 2 + unpacked('<I3', block, at)
end

local function record_of(number)
  local block = call('GET', number_key('d', number, PER_BLOCK))
  if not block then return '' end
  local first, last = record_places(block, number)
  return sub(block, first + 3, last)
end

local function repeats_of(number)
  return call('BITFIELD_RO', number_key('r', number, 256), 'GET', 'u32', '#' .. number % 256)[1]
end

local function add_repeats(number, more)
  if more ~= 0 then
    call('BITFIELD', number_key('r', number, 256), 'OVERFLOW', 'SAT', 'INCRBY', 'u32', '#' .. number % 256, more)
  end
end

-- Returns what is to be known of a document: '' where it is not held, else the run for which it is pending (or 0), its
-- repeats, and the record where that is wanted.
local function told(number, full)
  if is_gone(number) then return '' end
  local run = tonumber(call('HGET', root .. ':pending', number) or 0)
  return pack('>I4I4', run, repeats_of(number)) .. (full and record_of(number) or '')
end

