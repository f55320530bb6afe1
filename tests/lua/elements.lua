-- elements.lua - every dtype: reading, writing, bounds, shape. x[i] is i, of c64
-- (i, -i); y is like x, 4 by 3.

local gpipe = require "gpipe"
local ranges = {
  u8 = { 0, 255 }, i8 = { -128, 127 }, u16 = { 0, 65535 }, i16 = { -32768, 32767 },
  u32 = { 0, 4294967295 }, i32 = { -2147483648, 2147483647 },
}

local function fails(text, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error, expected: " .. text)
  assert(message:find(text, 1, true), "'" .. message .. "' does not say: " .. text)
end

local function put(v, i, value) v[i] = value end
local function get(v, i) return v[i] end

local function bounds(x, y)
  for _, i in ipairs { 0, 13, -1, 1.5, 2 ^ 60, 0 / 0 } do
    fails("is outside 1..12 of 'x'", get, x, i)
    fails("is outside 1..12 of 'y'", put, y, i, 1)
  end
  fails("is outside 1..12", get, x, nil)
  fails("is outside 1..12", get, x, true)
  fails("index 5 is outside 1..4 of axis 1 of 'x'", x.at, x, 5, 1)
  fails("index 0 is outside 1..3 of axis 2 of 'y'", y.at, y, 1, 0)
  fails("2 axes, but 1 index is", x.at, x, 1)
  fails("2 axes, but 0 indices", y.set, y, 1)
  fails("no field or method 'color'", get, x, "color")
  fails("expected a view, not a string", x.sum, "x")
  fails("expected a view, not a userdata", x.sum, io.stdout)
  fails("expected a view, not nil", x.sum)
  assert(getmetatable(x) == false)
end

local function integers(y)
  local range = ranges[y.dtype]
  for _, value in ipairs(range) do
    y[1] = value
    assert(y[1] == value)
    y:set(4, 3, value)
    assert(y:at(4, 3) == value and y[12] == value)
  end
  fails("does not fit 'y', which holds " .. y.dtype, put, y, 1, range[1] - 1)
  fails("does not fit 'y', which holds " .. y.dtype, put, y, 1, range[2] + 1)
  fails("is not a whole number that fits 'y'", put, y, 1, 0.5)
  fails("is not a whole number that fits 'y'", put, y, 1, 0 / 0)
  fails("is not a whole number that fits 'y'", put, y, 1, 1e300)
end

local function wide(y)
  y[1] = 2 ^ 53
  assert(y[1] == 2 ^ 53)
  y[1] = 2 ^ 62
  assert(y[1] == 2 ^ 62)
  fails("is not a whole number", put, y, 1, 2 ^ 64)
  fails("is not a whole number", put, y, 1, 0.5)
  if math.type then
    y[1] = math.maxinteger
    assert(y[1] == math.maxinteger)
  end
  if y.dtype == "u64" then
    fails("does not fit", put, y, 1, -1)
    y[1] = 2 ^ 63
    assert(y[1] == 2 ^ 63)
    local two = gpipe.array("u64", 2)
    two[1], two[2] = 2 ^ 63, 2.0 ^ 64 - 2048
    assert(two[2] == 2.0 ^ 64 - 2048 and two:max() == two[2] and two:min() == 2.0 ^ 63)
    assert(two:slice(1, 1):sum() == 2.0 ^ 63)
    local bytes = gpipe.array("u8", 8)
    for _, v in ipairs { 2.0 ^ 63, 2.0 ^ 64 - 2048, 0 } do
      bytes:pack("I8", 1, v)
      assert(bytes:unpack("I8") == v)
    end
    fails("does not fit", bytes.pack, bytes, "I8", 1, -1)
    fails("is not a whole number", bytes.pack, bytes, "I8", 1, 2 ^ 64)
    bytes:fill(255)
    fails("18446744073709551615 is neither an integer", bytes.unpack, bytes, "I8")
  elseif math.type then
    y[1] = math.mininteger
    assert(y[1] == math.mininteger)
    y[1] = -1
    assert(y[1] == -1)
  else
    local bytes = gpipe.array("u8", 8)
    bytes:pack("i8", 1, 2 ^ 53)
    bytes[1] = 1
    fails("is not exact in LuaJIT", bytes.unpack, bytes, "i8")
  end
end

local exact = { f16 = 65504, f32 = 2 ^ 127, f64 = 1.7976931348623157e308 }
local rounded = { f16 = 0.0999755859375, f32 = 0.10000000149011612, f64 = 0.1 }

local function floats(y)
  for _, value in ipairs { 0.5, -2.25, 1 / 0, -1 / 0, exact[y.dtype] } do
    y[1] = value
    assert(y[1] == value)
  end
  y[1] = 0.1
  assert(y[1] == rounded[y.dtype])
  y[1] = 0 / 0
  assert(y[1] ~= y[1])
end

local function complex(x, y)
  local re, im = x:at(2, 1)
  assert(re == 4 and im == -4)
  y:set(4, 3, 0.5, -7)
  re, im = y:at(4, 3)
  assert(re == 0.5 and im == -7)
  fails("use at(), set() or parts()", get, x, 1)
  fails("use at(), set() or parts()", put, y, 1, 1)
  fails("takes a number, not nil", y.set, y, 1, 1, 3, nil)
  local p = x:parts()
  assert(#p == 24 and p.dtype == "f32" and p.shape[3] == 2 and p[3] == 2 and p[4] == -2)
  fails("inputs are read-only", put, p, 1, 1)
  y:parts():fill(3)
  re, im = y:at(1, 1)
  assert(re == 3 and im == 3)
end

function process(frame, x, y)
  assert(#x == 12 and #y == 12 and x.rows == 4 and x.valid == 4)
  assert(x.name == "x" and y.name == "y" and x.dtype == y.dtype)
  assert(#x.shape == 2 and x.shape[1] == 4 and x.shape[2] == 3)
  bounds(x, y)
  if x.dtype == "c64" then return complex(x, y) end
  fails("index 0 is outside 1..3 of axis 2 of 'y'", y.set, y, 1, 0, 1)
  fails("index 5 is outside 1..4 of axis 1 of 'y'", y.set, y, 5, 3, 1)
  for i = 1, #x do
    assert(x[i] == i)
    y[i] = 13 - i
    assert(y[i] == 13 - i)
  end
  assert(x:at(3, 2) == 8)
  fails("inputs are read-only", put, x, 1, 1)
  fails("inputs are read-only", x.set, x, 1, 1, 1)
  fails("inputs are read-only", x.fill, x, 1)
  fails("inputs are read-only", put, x:slice(2), 1, 1)
  fails("takes a number, not a string", put, y, 1, "1")
  fails("takes a number, not nil", put, y, 1, nil)
  local s = x:slice(2, 3)
  assert(#s == 6 and s[1] == 4 and s[6] == 9 and s.shape[1] == 2 and s:at(2, 3) == 9)
  fails("outside 1..6", get, s, 7)
  assert(#x:slice(5) == 0 and #x:slice(2, 1) == 0)
  fails("the last row 5 is outside", x.slice, x, 1, 5)
  fails("the first row 0 is outside", x.slice, x, 0)
  y:slice(4)[1] = 77
  assert(y:at(4, 1) == 77)
  local t = x:values()
  assert(#t == 12 and t[12] == 12 and x:values(t, 7, 9) == t and t[1] == 7)
  if ranges[y.dtype] then integers(y)
  elseif y.dtype:find("64") and y.dtype ~= "f64" then wide(y)
  else floats(y) end
  local own = gpipe.array(x.dtype, 2, 3)
  assert(#own == 6 and own[6] == 0)
  own[6] = 5
  assert(own:at(2, 3) == 5)
end
