-- Keys by number

local function number_key(kind, number, share)
  return root .. kind .. pack('>I4', floor(number / share))
end

local PER_BLOCK = 16  -- documents to a string

