-- Returns what is known of URLs (ARGV[1]: hashes of eight bytes), each followed by what is to be known of its document.
local urls = ARGV[1]
local t, result = opened('u'), {}
for at = 1, #urls, 8 do
  local url = sub(urls, at, at + 7)
  local _, value = link_bucket(t, url)
  local first, last = link_in(value, url)
  local link = first and sub(value, first + 3, last) or ''
  local document = first and unpacked('<I4', link, 9) or NOWHERE
  result[#result + 1] = link
  result[#result + 1] = document < VOID and told(document, true) or ''
end
return result
