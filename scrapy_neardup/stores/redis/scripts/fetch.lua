-- Returns what is to be known of documents (ARGV[1]: numbers of four bytes; ARGV[2]: a byte each, 1: with the record).
local numbers, full = unpack(ARGV)
local result = {}
for n = 1, #full do
  result[n] = told(unpacked('>I4', numbers, 4 * n - 3), byte(full, n) == 1)
end
return result
