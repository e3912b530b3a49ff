-- Writes each value whose version is newer than what its key holds; atomic, without a read by the
-- client. The layout is described in docs/store-layout.md.
--
-- KEYS[i]         a key; in a cluster, all of one hash slot
-- ARGV[2i - 1]    its new value, header included
-- ARGV[2i]        its expiry in milliseconds, 0 for none
--
-- Returns one integer a key:
--    1  written
--    0  the same version was there already
--   -1  a newer version was there
--   -2  what is there is not a value of this layout; it was left alone
--
-- Lua numbers are doubles, exact to 2^53, so the 64-bit timestamp is compared as two halves.

local LAYOUT = 1
local HEADER_BYTES = 28
local FLAGS_MAX = 5 -- bit 0 and encodings 0 to 2; more is a layout to come
local VERSION = '<I1I1I2I4I4' -- layout, flags, origin, timestamp low and high

local results = {}
for i, key in ipairs(KEYS) do
  local value = ARGV[2 * i - 1]
  local stored = redis.pcall('GETRANGE', key, 0, HEADER_BYTES - 1)
  local result = 1
  if type(stored) == 'table' then
    if not string.find(stored.err, 'WRONGTYPE', 1, true) then
      return stored
    end
    result = -2
  elseif #stored == HEADER_BYTES then
    local layout, flags, origin, low, high = struct.unpack(VERSION, stored)
    if layout ~= LAYOUT or flags > FLAGS_MAX then
      result = -2
    else
      local _, _, new_origin, new_low, new_high = struct.unpack(VERSION, value)
      local newer = new_high - high
      if newer == 0 then newer = new_low - low end
      if newer == 0 then newer = new_origin - origin end
      if newer < 0 then
        result = -1
      elseif newer == 0 then
        result = 0
      end
    end
  elseif #stored > 0 or redis.call('EXISTS', key) == 1 then
    result = -2
  end
  if result == 1 then
    local expiry_ms = ARGV[2 * i]
    if expiry_ms == '0' then
      redis.call('SET', key, value)
    else
      redis.call('SET', key, value, 'PX', expiry_ms)
    end
  end
  results[i] = result
end
return results
