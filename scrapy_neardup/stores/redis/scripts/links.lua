-- Links to documents: 16 documents to a string of entries, each a place among the 16 and the hash of a URL.
local FEW = 4096  -- bytes of such a string that are moved for the sake of the order

local function links_key(number)
  return number_key('o', number, PER_BLOCK)
end

local function linked(number, url)
  local key, entry = links_key(number), string.char(number % PER_BLOCK) .. url
  local size = call('STRLEN', key)
  if size > 512 then call('APPEND', key, entry) else put(key, (call('GET', key) or '') .. entry) end
end

local function unlinked(number, url)
  local key = links_key(number)
  local value = call('GET', key)
  local places = value and places_of(value, string.char(number % PER_BLOCK) .. url, 9) or {}
  if #places > 0 then put(key, sub(value, 1, places[1] - 1) .. sub(value, places[1] + 9)) end
end

-- A link: hash of the URL (8 bytes), document (4), seen (8), size (4), flags (1), run (4), segment (4), the rest.
local NOWHERE, VOID = 2 ^ 32 - 1, 2 ^ 32 - 2  -- from VOID on, it is none: VOID where nothing is known of the URL

local function link_in(value, url)
  local at = 1
  while at < #value do
    local last = at + 2 + unpacked('<I3', value, at)
    if sub(value, at + 3, at + 10) == url then return at, last end
    at = last + 1
  end
end

local function link_bucket(t, url)
  local key = key_of(t, bucket_of(t, (unpacked('<I4', url))))
  return key, call('GET', key) or ''
end

-- Puts a link in place of the one that is known of its URL; '' drops that. Returns the documents that either leads to.
local function put_link(t, url, link)
  local key, value = link_bucket(t, url)
  local first, last = link_in(value, url)
  local document = link ~= '' and unpacked('<I4', link, 9) or NOWHERE
  local before = NOWHERE
  if first then
    before = unpacked('<I4', value, first + 11)
    if before < VOID then
      add_repeats(before, -(byte(value, first + 27) % 2))
      if before ~= document or call('STRLEN', links_key(before)) < FEW then
        unlinked(before, url)
      else
        document = nil
      end
    end
    value = sub(value, 1, first - 1) .. sub(value, last + 1)
    t.entries = t.entries - 1
  end
  if link ~= '' then
    local known = document == nil and unpacked('<I4', link, 9) or document
    if known < VOID then
      add_repeats(known, byte(link, 25) % 2)
      if document then linked(known, url) end
    end
    value = value .. pack('<I3', #link) .. link
    t.entries = t.entries + 1
  end
  put(key, value)
  return before, link ~= '' and unpacked('<I4', link, 9) or NOWHERE
end

