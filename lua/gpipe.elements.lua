-- gpipe.elements.lua - v[i], v[i] = e and #v as Lua that LuaJIT compiles into the loops
-- of scripts; not used under Lua 5.4.
--
-- Only what can be told to be right from the part of a view that is in lua/view.h is
-- done here: a whole index within the view's, of a view that is alive, an element
-- that fits. All else goes on to the functions of view.c and handle.c, which know the errors.
--
-- A compiled loop over i = 1 .. #v pays for two comparisons an element, since what
-- does not change is looked at once, before. To notice that the run is cancelled
-- costs more than that; it is done at #v and at index 1, which every loop uses.

local ffi = require "ffi"

local elements = {}

local head = [[
local ffi, index, newindex, len, methods, handles, parts = ...
local cast, floor, type = ffi.cast, math.floor, type
local part, unsigned = ffi.typeof("struct gp_lua_part *"), ffi.typeof("uint64_t")
]]

-- The text of a function that reads the view v.
local get = [[
  if type(i) == "number" then
    if cast(unsigned, i) - 2 < v.more_reads and floor(i) == i and v.born == v.now[0] then
      return v.DTYPE[i - 1]
    end
    if i == 1 and v.reads > 0 and v.born == v.now[0] and v.budget[0] > 1 then
      v.budget[0] = v.budget[0] - 1
      return v.DTYPE[0]
    end
  else
    local method = methods[i]
    if method then return method end
  end
]]

local put = [[
  if type(i) == "number" and type(e) == "number" and FITS then
    if cast(unsigned, i) - 2 < v.more_writes and floor(i) == i and v.born == v.now[0] then
      v.DTYPE[i - 1] = e
      return
    end
    if i == 1 and v.writes > 0 and v.born == v.now[0] and v.budget[0] > 1 then
      v.budget[0] = v.budget[0] - 1
      v.DTYPE[0] = e
      return
    end
  end
]]

local count = [[
  if v.reads > 0 and v.born == v.now[0] and v.budget[0] > 1 then
    v.budget[0] = v.budget[0] - 1
    return v.reads
  end
]]

-- Does the number e fit? Compared as unsigned, negative numbers are large.
local fits = {
  u8 = "cast(unsigned, e) <= 255", u16 = "cast(unsigned, e) <= 65535",
  u32 = "cast(unsigned, e) <= 4294967295",
  i8 = "e >= -128 and e <= 127", i16 = "e >= -32768 and e <= 32767",
  i32 = "e >= -2147483648 and e <= 2147483647",
}

local function of(dtype, text)
  return (text:gsub("%u+", {
    DTYPE = dtype, FITS = fits[dtype] and fits[dtype] .. " and floor(e) == e" or "true",
  }))
end

-- Source text for each dtype or stage, so that each is compiled separately.
local function compile(meta, text, ...)
  text = ([[
HEAD
local function get(self, i)
GET
  return index(self, i)
end
local function put(self, i, e)
PUT
  return newindex(self, i, e)
end
local function count(self)
COUNT
  return len(self)
end
return get, put, count
]]):gsub("%u+", text)
  meta.__index, meta.__newindex, meta.__len = assert(loadstring(text, "=elements"))(
    ffi, meta.__index, meta.__newindex, meta.__len, ...)
end

-- Userdata of one dtype: arrays, and parts of views.
function elements.views(dtype, meta, methods, part)
  if not pcall(ffi.typeof, "struct gp_lua_part") then
    ffi.cdef("struct gp_lua_part { " .. part .. " };")
  end
  local v = "  local v = cast(part, self)\n"
  compile(meta, {
    HEAD = head, GET = v .. of(dtype, get), PUT = v .. of(dtype, put), COUNT = v .. of(dtype, count),
  }, methods)
end

-- A stage's ports: self is the handle of port k in the call that runs. dtypes[k] is "" where
-- LuaJIT has no such elements.
function elements.ports(meta, methods, handles, dtypes, parts)
  local text = { HEAD = head, GET = "", PUT = "", COUNT = "" }
  for k, dtype in ipairs(dtypes) do
    if dtype ~= "" then
      text.HEAD = text.HEAD .. ("local p%d = cast(part, parts[%d])\n"):format(k, k)
      local is = ("  if self == handles[%d] then\n  local v = p%d\n"):format(k, k)
      text.GET = text.GET .. is .. of(dtype, get) .. "  end\n"
      text.PUT = text.PUT .. is .. of(dtype, put) .. "  end\n"
      text.COUNT = text.COUNT .. is .. of(dtype, count) .. "  end\n"
    end
  end
  compile(meta, text, methods, handles, parts)
end

-- LuaJIT's own pairs() does not ask the metatable: of several inputs or outputs.
function elements.pairs(ports)
  local plain, type = pairs, type
  function pairs(t)
    if type(t) == "userdata" then return ports(t) end
    return plain(t)
  end
end

return elements
