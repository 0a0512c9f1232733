-- Returns the number of a run (ARGV[1]: its id), which it is given if it has none; so is its record (ARGV[2], if any).
local number = call('HGET', root .. ':numbers', ARGV[1])
if not number then
  number = call('HINCRBY', root, 'runs', 1)
  call('HSET', root .. ':numbers', ARGV[1], number)
  call('HSET', root .. ':ids', number, ARGV[1])
end
if ARGV[2] then call('HSETNX', root .. ':runs', ARGV[1], ARGV[2]) end
return tonumber(number)
