-- Counts one more repeat of a document (ARGV[1]) that is held.
local number = tonumber(ARGV[1])
if not is_gone(number) then add_repeats(number, 1) end
return pack('>I4I4', number, repeats_of(number))
