-- gpipe.elements.lua - v[i], v[i] = e and #v as Lua that LuaJIT compiles into the loops
-- of scripts; under Lua 5.4 nobody asks for it.
--
-- Only what can be told to be right from the part of a view that is in lua/view.h is
-- done here: a whole index within the view's, of a view that is alive, an element
-- that fits. All else goes on to the functions of view.c, which know the errors.
--
-- A compiled loop over i = 1 .. #v pays for two comparisons an element, since what
-- does not change is looked at once, before. To notice that the run is cancelled
-- costs more than that; it is done at #v and at index 1, where loops come by.

local ffi = require "ffi"

local template = [[
local ffi, index, newindex, len, methods = ...
local cast, floor, type = ffi.cast, math.floor, type
local part = ffi.typeof("struct gp_lua_part *")
local lo, hi = LO, HI

local function get(self, i)
  if type(i) == "number" then
    local v = cast(part, self)
    if i > 1 and i <= v.get and floor(i) == i and v.born == v.now[0] then
      return v.DTYPE[i - 1]
    end
    if i == 1 and v.get > 0 and v.born == v.now[0] and v.budget[0] > 1 then
      v.budget[0] = v.budget[0] - 1
      return v.DTYPE[0]
    end
  else
    local method = methods[i]
    if method then return method end
  end
  return index(self, i)
end

local function put(self, i, e)
  if type(i) == "number" and type(e) == "number" and FITS then
    local v = cast(part, self)
    if i > 1 and i <= v.put and floor(i) == i and v.born == v.now[0] then
      v.DTYPE[i - 1] = e
      return
    end
    if i == 1 and v.put > 0 and v.born == v.now[0] and v.budget[0] > 1 then
      v.budget[0] = v.budget[0] - 1
      v.DTYPE[0] = e
      return
    end
  end
  return newindex(self, i, e)
end

local function count(self)
  local v = cast(part, self)
  if v.get > 0 and v.born == v.now[0] and v.budget[0] > 1 then
    v.budget[0] = v.budget[0] - 1
    return v.get
  end
  return len(self)
end

return get, put, count
]]

local ranges = {
  u8 = { 0, 255 }, i8 = { -128, 127 }, u16 = { 0, 65535 }, i16 = { -32768, 32767 },
  u32 = { 0, 4294967295 }, i32 = { -2147483648, 2147483647 },
}

-- A text of its own for each dtype, so that each is compiled for itself.
return function(dtype, meta, methods, part)
  if not pcall(ffi.typeof, "struct gp_lua_part") then
    ffi.cdef("struct gp_lua_part { " .. part .. " };")
  end
  local range = ranges[dtype]
  local text = template:gsub("%u+", {
    DTYPE = dtype, LO = range and range[1] or "nil", HI = range and range[2] or "nil",
    FITS = range and "e >= lo and e <= hi and floor(e) == e" or "true",
  })
  meta.__index, meta.__newindex, meta.__len = assert(loadstring(text, "=elements"))(
    ffi, meta.__index, meta.__newindex, meta.__len, methods)
end
