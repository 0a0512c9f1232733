-- Undoes some of what a run did since it was opened, from the end. ARGV: its number, the token, the lease's
-- milliseconds, how much is left (the rest was undone before), how much at once, and 1 where its links are to be
-- forgotten. Returns the numbers of the documents among it: to drop them is another script's work; nil where others
-- have taken the run.
local run, token, milliseconds, left, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local forgets = ARGV[6] == '1'
if call('HGET', root .. ':holders', run) ~= token then return false end
local key = root .. ':open.' .. run
-- First, since it is done though the server is full.
if left > 0 then call('LTRIM', key, 0, left - 1) else call('DEL', key) end
call('SET', root .. ':lease.' .. run, token, 'PX', milliseconds)
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
