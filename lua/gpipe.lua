-- gpipe.lua - small helpers for scripts: local gpipe = require "gpipe"
--
--   gpipe.array("f32", n, ...)  memory of the script's own: a view that may be kept
--                               from frame to frame, zeroed
--   gpipe.round(x)              to the nearest integer, halves to even
--   gpipe.clamp(x, lo, hi)      x within lo .. hi
--   gpipe.json(value)           a value as one line of JSON: keys in order, NaN as null;
--                               a table with t[1] is a list, any other an object
--   gpipe.ring(n)               the last n numbers: r:push(x), r[k] (1 the newest),
--                               r:mean(), r.count

local core = require "gpipe.core"

local gpipe = { array = core.array }

function gpipe.round(x)
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
  if depth > 64 then error("a table inside itself is no JSON", 0) end
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
  local sum = 0
  for i = 1, self.count do sum = sum + self.slots[i] end
  return self.count > 0 and sum / self.count or nil
end

function gpipe.ring(n)
  return setmetatable({ size = n, count = 0, last = 0, slots = {} }, ring)
end

return gpipe
