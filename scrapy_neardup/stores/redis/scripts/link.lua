-- Keeps what a URL led to. ARGV: the hash of the URL, the link ('': nothing is known any more), the run's number. Returns numbers and repeats of
-- the documents that this changes.
local url, link, run = unpack(ARGV)
local t = opened('u')
local document = link ~= '' and unpacked('<I4', link, 9) or NOWHERE
if document < VOID and is_gone(document) then return '' end
local before, now = put_link(t, url, link)
saved(t)
call('RPUSH', root .. ':open.' .. run, 'l' .. url)
local repeats = {}
for _, each in ipairs({before, now}) do
  if each < VOID then repeats[#repeats + 1] = pack('>I4I4', each, repeats_of(each)) end
end
return concat(repeats)
