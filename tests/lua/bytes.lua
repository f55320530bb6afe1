-- bytes.lua - text and packed records in u8 views, the helpers of gpipe.lua.

local gpipe = require "gpipe"

local function fails(text, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error, expected: " .. text)
  assert(message:find(text, 1, true), "'" .. message .. "' does not say: " .. text)
end

local function records(y)
  local at = y:pack("<bBhHi4I4f d", 1, -1, 255, -2, 65535, -3, 4294967295, 0.5, 0.1)
  assert(at == 27)
  local b, B, h, H, i, I, f, d, next = y:unpack("<bBhHi4I4fd")
  assert(b == -1 and B == 255 and h == -2 and H == 65535 and i == -3 and I == 4294967295)
  assert(f == 0.5 and d == 0.1 and next == 27)
  y:pack(">I2 <I2 xi8", 30, 258, 258, -9)
  assert(y[30] == 1 and y[31] == 2 and y[32] == 2 and y[33] == 1 and y[34] == 0)
  assert(y:unpack(">i2", 30) == 258 and y:unpack("<i8", 35) == -9 and y:unpack("i3", 30) == 131585)
  if string.pack then
    local s = string.pack("<bhi3>dI5", -7, 300, -70000, 1e100, 549755813888)
    assert(y:write(s, 50) == 50 + #s)
    for k, v in ipairs { string.unpack("<bhi3>dI5", s) } do
      if k < 6 then assert(select(k, y:unpack("<bhi3>dI5", 50)) == v) end
    end
    y:pack("<bhi3>dI5", 80, string.unpack("<bhi3>dI5", s))
    assert(y:string(80, 79 + #s) == s)
  end
  fails("past the end of 'y', which has 100", y.unpack, y, "i4", 98)
  fails("past the end of 'y'", y.pack, y, "d", 94, 1)
  fails("is outside 1..101", y.unpack, y, "b", 102)
  fails("does not fit its field of 1 bytes", y.pack, y, "B", 1, 256)
  fails("is not a whole number that fits its field", y.pack, y, "i4", 1, 1.5)
  fails("is not a whole number that fits its field", y.pack, y, "i4", 1)
  fails("a format has no 'z'", y.unpack, y, "z")
  fails("1 to 8 bytes", y.unpack, y, "i9")
  fails("1 to 8 bytes", y.unpack, y, "i16")
end

local function text(y)
  assert(y:write("hello", 3) == 8)
  assert(y:string(3, 7) == "hello" and y:string(4, 3) == "" and #y:string() == 100)
  fails("past the end", y.write, y, "hello", 97)
  fails("the place of its first byte: y:write(\"a\", 1)", y.write, y, "hello")
  fails("is outside", y.string, y, 0)
  fails("works on u8", y.string, gpipe.array("f32", 2))
  fails("needs an output with one axis, and neither a slice nor another array", y.print, y:slice(1), 1)
  fails("needs an output with one axis, and neither a slice nor another array", y.print, gpipe.array("u8", 9), 1)
end

local function helpers()
  local json = gpipe.json
  assert(json { b = 1, a = { 1, 2.5, "x" }, c = true } == '{"a":[1,2.5,"x"],"b":1,"c":true}')
  assert(json('q"\\\n\1') == '"q\\"\\\\\\n\\u0001"' and json(nil) == "null" and json {} == "{}")
  assert(json(0.1) == "0.1" and json(1 / 3) == "0.33333333333333331" and json(0 / 0) == "null")
  fails("JSON has no function", json, print)
  fails("a key of an object", json, { [true] = 1 })
  local loop = {}
  loop.self = loop
  fails("inside itself", json, loop)
  assert(gpipe.round(0.5) == 0 and gpipe.round(1.5) == 2 and gpipe.round(-2.5) == -2)
  fails("round takes one number", gpipe.round, 2.345, 2)
  assert(gpipe.round(2.4) == 2 and gpipe.round(-2.6) == -3)
  assert(gpipe.clamp(5, 1, 3) == 3 and gpipe.clamp(-5, 1, 3) == 1 and gpipe.clamp(2, 1, 3) == 2)
  local r = gpipe.ring(3)
  assert(r:mean() == nil and r[1] == nil)
  for i = 1, 5 do r:push(i) end
  assert(r[1] == 5 and r[2] == 4 and r[3] == 3 and r[4] == nil and r.count == 3 and r:mean() == 4)
end

function process(frame, x, y)
  records(y)
  text(y)
  helpers()
  fails("os.exit() would end the whole run", os.exit, 0)
  fails("there is no dtype 'f80'", gpipe.array, "f80", 1)
  fails("1 to 8 axes", gpipe.array, "f32")
  fails("a size 0 is outside", gpipe.array, "f32", 0)
  fails("larger than any memory", gpipe.array, "f32", 2 ^ 30, 2 ^ 30)
end
