-- Commits documents (ARGV[2]: numbers of four bytes) that are pending for a run (ARGV[1]); returns how many were.
local run, numbers = unpack(ARGV)
local count = 0
for at = 1, #numbers, 4 do
  local number = unpacked('>I4', numbers, at)
  if call('HGET', root .. ':pending', number) == run then
    call('HDEL', root .. ':pending', number)
    count = count + 1
  end
end
if count > 0 then call('HINCRBY', root, 'documents', count) end
return count
