-- Replaces the record of what the store was made with (ARGV[1], '' for none) by another; returns the one there is then.
local key = root .. ':meta'
if (call('GET', key) or '') == ARGV[1] then call('SET', key, ARGV[2]) end
return call('GET', key)
