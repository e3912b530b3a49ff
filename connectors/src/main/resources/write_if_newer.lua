-- Writes each value whose version is newer than what its key holds; atomic, without a read by the
-- client. The layout is described in docs/store-layout.md.
--
-- KEYS[i]               a key; in a cluster, all of one hash slot
-- ARGV[2i - 1]          its new value, header included: one version
-- ARGV[2i]              its expiry in milliseconds, 0 for none
-- ARGV[2 * #KEYS + 1]   how many versions to keep; left out for one, the newest
--
-- Returns one integer a key:
--    2  kept as one of the older versions
--    1  written; it is the newest version now
--    0  the same version was there already, as the newest or as an older one
--   -1  newer versions were there, as many as are kept, or a newer tombstone
--   -2  what is there is not a value of this layout; it was left alone
--
-- What a key holds is a function of the set of versions that were ever written to it: the newest
-- ones, as many as are kept, and none older than a tombstone among them. So writes may come in any
-- order and any number of times. A tombstone that is not the newest stays as a mark, so that what
-- it deleted does not come back.
--
-- Lua numbers are doubles, exact to 2^53, so the 64-bit timestamp is compared as two halves.

local LAYOUT = 1
local HEADER_BYTES = 28
local FLAGS_MAX = 5 -- bit 0 and encodings 0 to 2
local TOMBSTONE = 1
local KEEPS_OLDER = 8
local LENGTH_BYTES = 4
local LENGTH = '<I4'
local VERSION = '<I1I1I2I4I4' -- layout, flags, origin, timestamp low and high

-- Looked up once a call, not once a key.
local call, try = redis.call, redis.pcall
local byte, char, sub = string.byte, string.char, string.sub
local pack, unpack = struct.pack, struct.unpack

-- Above 0 if the value's version is newer than the other, 0 if they are the same.
local function compare(value, origin, low, high)
  local _, _, new_origin, new_low, new_high = unpack(VERSION, value)
  local newer = new_high - high
  if newer == 0 then newer = new_low - low end
  if newer == 0 then newer = new_origin - origin end
  return newer
end

-- Flags that are not known are those of a layout to come.
local function is_known(layout, flags)
  return layout == LAYOUT
    and (flags <= FLAGS_MAX or flags >= KEEPS_OLDER and flags <= KEEPS_OLDER + FLAGS_MAX)
end

-- The answer where reading a key gave an error.
local function not_read(failure)
  return string.find(failure.err, 'WRONGTYPE', 1, true) and -2 or failure
end

-- The common case, with nothing in its way: a header is read, not the value.
local function keep_newest(key, value, expiry_ms)
  local stored = try('GETRANGE', key, 0, HEADER_BYTES - 1)
  if type(stored) == 'table' then
    return not_read(stored)
  end
  if #stored == HEADER_BYTES then
    local layout, flags, origin, low, high = unpack(VERSION, stored)
    if layout ~= LAYOUT or flags > FLAGS_MAX and not is_known(layout, flags) then
      return -2
    end
    local newer = compare(value, origin, low, high)
    if newer <= 0 then
      return newer == 0 and 0 or -1
    end
  elseif #stored > 0 or call('EXISTS', key) == 1 then
    return -2
  end
  if expiry_ms == '0' then
    call('SET', key, value)
  else
    call('SET', key, value, 'PX', expiry_ms)
  end
  return 1
end

-- Where each version starts in what a key holds, newest first, and where the last one ends; nil if
-- it is not a value of this layout.
local function starts_of(stored)
  local starts = {1}
  local stop = #stored -- of the version at hand and all older ones
  local at = 1
  while true do
    if stop - at + 1 < HEADER_BYTES then
      return nil
    end
    local layout, flags = byte(stored, at, at + 1)
    if not is_known(layout, flags) then
      return nil
    end
    if flags < KEEPS_OLDER then
      starts[#starts + 1] = stop + 1
      return starts
    end
    local older_bytes = unpack(LENGTH, stored, stop - LENGTH_BYTES + 1)
    stop = stop - LENGTH_BYTES
    if stop - older_bytes + 1 < at + HEADER_BYTES then
      return nil
    end
    at = stop - older_bytes + 1
    starts[#starts + 1] = at
  end
end

-- A part of what a key holds, with other flags for the version that starts at a place in it.
local function with_flags(stored, first, last, at, flags)
  return sub(stored, first, at) .. char(flags) .. sub(stored, at + 2, last)
end

-- What a key holds after a value came in as the version of this rank; the versions up to the last
-- one of those that were there stay.
local function insert(stored, starts, value, rank, last)
  local newer, older, lengths = '', '', ''
  local count = #starts - 1
  local bytes = {} -- of each version, newest first
  for i = 1, last do
    bytes[#bytes + 1] = i == rank and #value or nil
    bytes[#bytes + 1] = starts[i + 1] - starts[i]
  end
  if rank > last then
    bytes[#bytes + 1] = #value
  end
  if rank > 1 then
    local before = starts[rank - 1]
    local flags = byte(stored, before + 1) % KEEPS_OLDER + KEEPS_OLDER
    newer = with_flags(stored, 1, starts[rank] - 1, before, flags)
  end
  if last >= rank then
    value = with_flags(value, 1, #value, 1, byte(value, 2) + KEEPS_OLDER)
    if last == count then
      older = sub(stored, starts[rank], starts[last + 1] - 1)
    else
      local flags = byte(stored, starts[last] + 1) % KEEPS_OLDER
      older = with_flags(stored, starts[rank], starts[last + 1] - 1, starts[last], flags)
    end
  end
  local behind = 0
  for i = #bytes, 2, -1 do
    behind = behind + bytes[i]
    lengths = lengths .. pack(LENGTH, behind)
    behind = behind + LENGTH_BYTES
  end
  return newer .. value .. older .. lengths
end

local function keep_several(key, value, expiry_ms, most)
  local stored = try('GET', key)
  if not stored then
    return keep_newest(key, value, expiry_ms)
  end
  if type(stored) == 'table' then
    return not_read(stored)
  end
  local starts = starts_of(stored)
  if not starts then
    return -2
  end
  local count = #starts - 1
  local rank = count + 1 -- which version the value is, 1 for the newest
  for i = 1, count do
    local _, flags, origin, low, high = unpack(VERSION, stored, starts[i])
    local newer = compare(value, origin, low, high)
    if newer == 0 then
      return 0
    end
    if newer > 0 then
      rank = i
      break
    end
    if flags % 2 == TOMBSTONE then
      return -1
    end
  end
  if rank > most then
    return -1
  end
  local is_tombstone = byte(value, 2) % 2 == TOMBSTONE
  if is_tombstone and rank == 1 then
    return keep_newest(key, value, expiry_ms)
  end
  local last = is_tombstone and rank - 1 or math.min(count, most - 1)
  call('SET', key, insert(stored, starts, value, rank, last))
  return rank == 1 and 1 or 2
end

local most = tonumber(ARGV[2 * #KEYS + 1] or 1)
local write = most == 1 and keep_newest or keep_several
local results = {}
for i, key in ipairs(KEYS) do
  local result = write(key, ARGV[2 * i - 1], ARGV[2 * i], most)
  if type(result) == 'table' then
    return result
  end
  results[i] = result
end
return results
