-- Returns what is known of URLs (ARGV[1]: hashes of eight bytes), each followed by what is to be known of its document.
local t, result = opened('u'), {}
for at = 1, #ARGV[1], 8 do
  local _, value = link_bucket(t, sub(ARGV[1], at, at + 7))
  local first, last = link_in(value, sub(ARGV[1], at, at + 7))
  local document = first and unpacked('<I4', value, first + 11) or NOWHERE
  result[#result + 1] = first and sub(value, first + 3, last) or ''
  result[#result + 1] = document < VOID and told(document, true) or ''
end
return result
