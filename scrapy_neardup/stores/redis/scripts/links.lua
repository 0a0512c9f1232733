-- Links to documents: 16 documents to a string of entries, each a place among the 16 and the hash of a URL.
local FEW = 4096  -- bytes of such a string that are moved for the sake of the order

local function links_key(number)
  return number_key('o', number, PER_BLOCK)
end

local function linked(number, url)
  local key, entry = links_key(number), char(number % PER_BLOCK) .. url
  local value = call('GETRANGE', key, 0, 512)
  if #value > 512 then call('APPEND', key, entry) else call('SET', key, value .. entry) end
end

local function unlinked(number, url)
  local key = links_key(number)
  local value = call('GET', key)
  local places = value and places_of(value, char(number % PER_BLOCK) .. url, 9) or {}
  if #places == 0 then return end
  local rest = sub(value, 1, places[1] - 1) .. sub(value, places[1] + 9)
  if rest == '' then call('DEL', key) else call('SET', key, rest) end
end

-- A link: hash of the URL (8 bytes), document (4), seen (8), size (4), flags (1), run (4), segment (4), the rest.
local NOWHERE, VOID = 2 ^ 32 - 1, 2 ^ 32 - 2  -- from VOID on, it is none: VOID where nothing is known of the URL

local function link_in(value, url)
  if not find(value, url, 1, true) then return end
  local at = 1
  while at < #value do
    local last = at + 2 + unpacked('<I3', value, at)
    if sub(value, at + 3, at + 10) == url then return at, last end
    at = last + 1
  end
end

local function link_bucket(t, url)
  local name = field_of(t, (unpacked('<I4', url)))
  return name, call('HGET', t.key, name) or ''
end

-- Takes the link that is known of a URL out of its bucket; returns that, and the document that the link leads to. The
-- document keeps the URL among its own if it is to be `next`, and has too many to put them in order; the one that is
-- `dropped` has no list of them any more.
local function taken_out(value, first, last, url, next_document, dropped)
  local before = unpacked('<I4', value, first + 11)
  local stays = false
  if before < VOID then
    add_repeats(before, -(byte(value, first + 27) % 2))
    stays = before == next_document and call('STRLEN', links_key(before)) >= FEW
    if not stays and before ~= dropped then unlinked(before, url) end
  end
  return sub(value, 1, first - 1) .. sub(value, last + 1), before, stays
end

-- Puts a link in place of the one that is known of its URL; '' drops that. Returns the documents that either leads to.
-- `dropped`: the document that is dropped with it.
local function put_link(t, url, link, dropped)
  local name, value = link_bucket(t, url)
  local first, last = link_in(value, url)
  local document = link ~= '' and unpacked('<I4', link, 9) or NOWHERE
  local before, stays = NOWHERE, false
  if first then
    value, before, stays = taken_out(value, first, last, url, document, dropped)
    t.entries = t.entries - 1
  end
  if link ~= '' then
    if document < VOID then
      add_repeats(document, byte(link, 25) % 2)
      if not stays then linked(document, url) end
    end
    value = value .. pack('<I3', #link) .. link
    t.entries = t.entries + 1
  end
  put(t, name, value)
  return before, document
end

