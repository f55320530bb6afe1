-- gpipe.elements.lua - v[i], v[i] = e and #v as Lua that LuaJIT compiles into the loops
-- of scripts; not used under Lua 5.4.
--
-- Only what can be told to be right from the part of a view that is in lua/view.h is
-- done here: a whole index within the view's, of a view that is alive, an element
-- that fits. All else goes on to the functions of view.c, which know the errors.
--
-- A compiled loop over i = 1 .. #v pays for two comparisons an element, since what
-- does not change is looked at once, before. To notice that the run is cancelled
-- costs more than that; it is done at #v and at index 1, which every loop uses.

local ffi = require "ffi"

local template = [[
local ffi, index, newindex, len, methods = ...
local cast, floor, type = ffi.cast, math.floor, type
local part, unsigned = ffi.typeof("struct gp_lua_part *"), ffi.typeof("uint64_t")

local function get(self, i)
  if type(i) == "number" then
    local v = cast(part, self)
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
  return index(self, i)
end

local function put(self, i, e)
  if type(i) == "number" and type(e) == "number" and FITS then
    local v = cast(part, self)
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
  return newindex(self, i, e)
end

local function count(self)
  local v = cast(part, self)
  if v.reads > 0 and v.born == v.now[0] and v.budget[0] > 1 then
    v.budget[0] = v.budget[0] - 1
    return v.reads
  end
  return len(self)
end

return get, put, count
]]

-- Does the number e fit? Compared as unsigned, negative numbers are large.
local fits = {
  u8 = "cast(unsigned, e) <= 255", u16 = "cast(unsigned, e) <= 65535",
  u32 = "cast(unsigned, e) <= 4294967295",
  i8 = "e >= -128 and e <= 127", i16 = "e >= -32768 and e <= 32767",
  i32 = "e >= -2147483648 and e <= 2147483647",
}

-- Source text for each dtype, so that each is compiled separately.
return function(dtype, meta, methods, part)
  if not pcall(ffi.typeof, "struct gp_lua_part") then
    ffi.cdef("struct gp_lua_part { " .. part .. " };")
  end
  local text = template:gsub("%u+", {
    DTYPE = dtype, FITS = fits[dtype] and fits[dtype] .. " and floor(e) == e" or "true",
  })
  meta.__index, meta.__newindex, meta.__len = assert(loadstring(text, "=elements"))(
    ffi, meta.__index, meta.__newindex, meta.__len, methods)
end
