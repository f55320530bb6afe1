-- gpipe.lua - small helpers for scripts: local gpipe = require "gpipe"
--
--   gpipe.array("f32", n, ...)  zeroed memory of the script's own: a view that may be
--                               kept from frame to frame
--   gpipe.round(x)              to the nearest integer, halves to even
--   gpipe.clamp(x, lo, hi)      x within lo .. hi
--   gpipe.json(value)           a value as one line of JSON: keys in order, NaN as null;
--                               a table with t[1] is a list, any other an object
--   gpipe.ring(n)               the last n numbers: r:push(x), r[k] (r[1] the newest),
--                               r:mean(), r.count
--
-- A script is called with a frame (index, from 0; valid; time, in seconds since 1970;
-- name, of the source's file; meta.NAME, a number that the pipeline lists, or nil) and
-- views of its inputs and outputs. Setting frame.valid sets the number of rows that were
-- made. Of a view v, an input x, an output y:
--
--   v[i]  #v  v:at(i, j, ...)  v:set(i, j, ..., value)  v:values([t [, first [, last]]])
--   v.shape  v.dtype  v.name  v.valid (may be set)  v.rows
--   v:slice(first, last)  v:parts()                      no copy: rows; c64 as f32
--   y:copy(x [, from, to, at])  y:fill(value)            copy converts dtypes, as cast does
--   y:add(x, a)  y:sub  y:mul  y:div                     a: a number or a view
--   y:scale(x, a, b)                                     x * a + b
--   v:sum()  v:mean()  v:min()  v:max()  v:minmax()  v:argmin()  v:argmax()
--                                                        of NaN: reduce's rule; v:min("skip") and so on
--   v:find(">", level [, start])                         < <= > >= == ~=; an index or nil
--   v:string([first, last])  y:write(s, at)              u8
--   v:unpack(format [, at])  y:pack(format, at, ...)     u8, as string.pack
--   y:print(...)                                         u8: appends a line of text

local core = require "gpipe.core"

local gpipe = { array = core.array }

function gpipe.round(x, digits)
  if digits ~= nil then
    error("gpipe.round takes one number: gpipe.round(x * 100) / 100 keeps two digits", 2)
  end
  local low = math.floor(x)
  local rest = x - low
  if rest > 0.5 or (rest == 0.5 and low % 2 == 1) then low = low + 1 end
  return low
end

function gpipe.clamp(x, lo, hi)
  if x < lo then return lo end
  if x > hi then return hi end
  return x
end

-- JSON

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function text(s)
  s = s:gsub('[%c"\\]', function(c)
    return escapes[c] or string.format("\\u%04x", c:byte())
  end)
  return '"' .. s .. '"'
end

local function number(x)
  if x ~= x or x == math.huge or x == -math.huge then return "null" end
  if math.type and math.type(x) == "integer" then return string.format("%d", x) end
  local s = string.format("%.15g", x)
  if tonumber(s) ~= x then s = string.format("%.17g", x) end
  return s
end

local encode

local function list(t, depth)
  local parts = {}
  for i = 1, #t do parts[i] = encode(t[i], depth) end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function object(t, depth)
  local keys, parts = {}, {}
  for k in pairs(t) do
    if type(k) ~= "string" then
      error("a key of an object in JSON is a string, not a " .. type(k), 0)
    end
    keys[#keys + 1] = k
  end
  table.sort(keys)
  for i, k in ipairs(keys) do parts[i] = text(k) .. ":" .. encode(t[k], depth) end
  return "{" .. table.concat(parts, ",") .. "}"
end

function encode(v, depth)
  local kind = type(v)
  if kind == "nil" then return "null" end
  if kind == "boolean" then return tostring(v) end
  if kind == "number" then return number(v) end
  if kind == "string" then return text(v) end
  if kind ~= "table" then error("JSON has no " .. kind, 0) end
  if depth > 64 then error("a table inside itself cannot be JSON", 0) end
  return (v[1] ~= nil and list or object)(v, depth + 1)
end

function gpipe.json(value)
  return encode(value, 0)
end

-- The last n numbers

local ring = {}

function ring.__index(r, k)
  if type(k) ~= "number" then return ring[k] end
  if k < 1 or k > r.count then return nil end
  return r.slots[(r.last - k) % r.size + 1]
end

function ring:push(x)
  self.last = self.last % self.size + 1
  self.slots[self.last] = x
  if self.count < self.size then self.count = self.count + 1 end
end

function ring:mean()
  local sum = 0.0
  for i = 1, self.count do sum = sum + self.slots[i] end
  return self.count > 0 and sum / self.count or nil
end

function gpipe.ring(n)
  return setmetatable({ size = n, count = 0, last = 0, slots = {} }, ring)
end

return gpipe
