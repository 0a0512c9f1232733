-- Undoes some of what a run (ARGV[1]) did since it was opened, from the end (ARGV[2]: how much at once; ARGV[3]: 1 where
-- its links are to be forgotten). Returns the numbers of the documents among it: to drop them is another script's work.
local run, most, forgets = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local key = root .. ':open.' .. run
local t, documents = opened('u'), {}
for _, entry in ipairs(call('LRANGE', key, -most, -1)) do
  local rest = sub(entry, 2)
  if byte(entry) == 100 then
    documents[#documents + 1] = rest
  elseif forgets then
    local _, value = link_bucket(t, rest)
    local first = link_in(value, rest)
    if first and unpacked('<I4', value, first + 28) == tonumber(run) then put_link(t, rest, '') end
  end
end
saved()
return concat(documents)
