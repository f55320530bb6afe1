-- ops.lua - bulk operations against plain loops. x[i] is i - 20, or i when x has
-- no sign; params.to is the dtype that copies go to.

local gpipe = require "gpipe"
local ranges = {
  u8 = { 0, 255 }, i8 = { -128, 127 }, u16 = { 0, 65535 }, i16 = { -32768, 32767 },
  u32 = { 0, 4294967295 }, i32 = { -2147483648, 2147483647 },
  u64 = { 0, 2 ^ 64 }, i64 = { -2 ^ 63, 2 ^ 63 },
}
local to

function init(stage) to = stage.params.to end

local function is_int(dtype) return ranges[dtype] ~= nil end

-- What an element of `dtype` becomes when it is given the number v.
local function stored(dtype, v)
  local range = ranges[dtype]
  if range then
    if v ~= v then return 0 end
    return gpipe.clamp(math.abs(v) < 2 ^ 52 and gpipe.round(v) or v, range[1], range[2])
  end
  local cell = gpipe.array(dtype, 1)
  cell[1] = v
  return cell[1]
end

local function same(got, want, what)
  if got ~= want and (got == got or want == want) then
    error(string.format("%s: got %.17g, expected %.17g", what, got, want), 2)
  end
end

local function fails(text, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error, expected: " .. text)
  assert(message:find(text, 1, true), "'" .. message .. "' does not say: " .. text)
end

local function copies(x)
  local z = gpipe.array(to, #x)
  z:copy(x)
  for i = 1, #x do same(z[i], stored(to, x[i]), "copy to " .. to) end
  z:fill(1)
  z:copy(x, 10, 19, 31)
  for i = 1, #x do
    same(z[i], i >= 31 and i <= 40 and stored(to, x[i - 21]) or 1, "part of a copy")
  end
  z:copy(x, 5, 4)
  fails("do not fit 'array'", z.copy, z, x, 1, #x, 2)
  fails("is outside", z.copy, z, x, 0)
  fails("is outside", z.copy, z, x, 1, #x + 1)
  -- extremes of floats and wide integers
  if x.dtype:sub(1, 1) == "f" then
    local e = gpipe.array(x.dtype, 11)
    local values = { 0.5, 1.5, 2.5, -0.5, -1.5, 300.5, -70000, 1e30, -1e30, 1 / 0, 0 / 0 }
    for i, v in ipairs(values) do e[i] = v end
    local d = gpipe.array(to, 11)
    d:copy(e)
    if to ~= "u64" and to ~= "i64" then
      for i = 1, 11 do same(d[i], stored(to, e[i]), "copy to " .. to) end
    elseif math.type then
      if to == "i64" then assert(d[8] == math.maxinteger and d[9] == math.mininteger)
      else
        fails("18446744073709551615 is neither an integer", function() return d[8] end)
        assert(d[9] == 0)
      end
      assert(d[11] == 0)
    end
  end
end

local function arithmetic(x)
  local n, dtype = #x, x.dtype
  local y, a = gpipe.array(dtype, n), gpipe.array(dtype, n)
  for i = 1, n do a[i] = i % 7 + 1 end
  local ops = {
    add = function(p, q) return p + q end, sub = function(p, q) return p - q end,
    mul = function(p, q) return p * q end, div = function(p, q) return p / q end,
  }
  local scalars = is_int(dtype) and { 3, 0.5, 100 } or { 3, 0.5, -2 }
  for name, f in pairs(ops) do
    y[name](y, x, a)
    for i = 1, n do same(y[i], stored(dtype, f(x[i], a[i])), name) end
    for _, s in ipairs(scalars) do
      y[name](y, x, s)
      for i = 1, n do same(y[i], stored(dtype, f(x[i], s)), name .. " with a number") end
    end
  end
  y:scale(x, 2, 5)
  for i = 1, n do same(y[i], stored(dtype, x[i] * 2 + 5), "scale") end
  y:copy(x)
  y:add(y, y)
  for i = 1, n do same(y[i], stored(dtype, x[i] * 2), "in place") end
  fails("take slices of one size", y.add, y, x:slice(2), 1)
  fails("take slices of one size", y.add, y, x, a:slice(2))
  fails("number expected", y.add, y, x, "much")
  local other = gpipe.array(dtype == "f32" and "u8" or "f32", n)
  fails("copy() converts", y.add, y, other, 1)
  y:fill(7)
  for i = 1, n do same(y[i], 7, "fill") end
end

local function reductions(x)
  local n = #x
  local order = gpipe.array(x.dtype, n)
  for i = 1, n do order[i] = x[(i * 37) % n + 1] end      -- n has no factor 37
  local sum, lo, hi, at_lo, at_hi = 0, order[1], order[1], 1, 1
  for i = 1, n do
    local v = order[i]
    sum = sum + v
    if v < lo then lo, at_lo = v, i end
    if v > hi then hi, at_hi = v, i end
  end
  same(order:sum(), sum, "sum")
  same(order:mean(), sum / n, "mean")
  same(order:min(), lo, "min")
  same(order:max(), hi, "max")
  local a, b = order:minmax()
  assert(a == lo and b == hi)
  a, b = order:argmin()
  assert(a == at_lo and b == lo)
  a, b = order:argmax()
  assert(a == at_hi and b == hi)
  if math.type and is_int(x.dtype) then assert(math.type(order:sum()) == "integer") end
  local tests = {
    ["<"] = function(v) return v < 9 end, ["<="] = function(v) return v <= 9 end,
    [">"] = function(v) return v > 9 end, [">="] = function(v) return v >= 9 end,
    ["=="] = function(v) return v == 9 end, ["~="] = function(v) return v ~= 9 end,
  }
  for op, test in pairs(tests) do
    for _, start in ipairs { 1, 2, 120, n, n + 1 } do
      local at
      for i = n, start, -1 do if test(order[i]) then at = i end end
      assert(order:find(op, 9, start) == at, "find " .. op)
    end
  end
  fails("invalid option", order.find, order, "!", 1)
  local none = x:slice(1, 0)
  assert(none:sum() == 0 and none:mean() == nil and none:min() == nil and none:argmax() == nil)
  assert(none:find(">", 0) == nil)
end

local function nans(x)
  if x.dtype:sub(1, 1) ~= "f" then return end
  local z = gpipe.array(x.dtype, 40)
  z:fill(0 / 0)
  assert(z:min("skip") == nil and z:argmax("skip") == nil and z:argmax() == 1)
  z[20], z[33] = 3, -4
  assert(z:min("skip") == -4 and z:max("skip") == 3 and z:argmin("skip") == 33)
  for n = 1, 40 do                                  -- a NaN wins, wherever it is
    local w = gpipe.array(x.dtype, n)
    for i = 1, n do
      w:fill(1)
      w[i] = 0 / 0
      local low, high = w:minmax()
      assert(low ~= low and high ~= high and w:min() ~= w:min() and w:max() ~= w:max())
      assert(w:argmin() == i and w:argmax() == i and w:max("skip") == (n > 1 and 1 or nil))
    end
  end
  fails("invalid option", z.max, z, "all")
end

local function overlapping()
  local y = gpipe.array("f32", 6, 2)
  y:fill(1)
  y:slice(1, 5):add(y:slice(2, 6), 1)
  y:add(y, y)
  assert(y[1] == 4 and y[12] == 2)
  fails("copy() the rows first", function() y:slice(2, 6):add(y:slice(1, 5), 1) end)
  fails("copy() the rows first", function() y:slice(2, 6):mul(y:slice(2, 6), y:slice(1, 5)) end)
  y:slice(4, 6):scale(y:slice(1, 3), 2, 1)
  assert(y[7] == 9)
end

local function wide()
  if not math.type then return end
  local w, u, f = gpipe.array("i64", 4), gpipe.array("u64", 4), gpipe.array("f32", 4)
  w[1] = math.tointeger(2 ^ 60 + 2 ^ 36) + 1
  w[2], w[3], w[4] = math.maxinteger, -5, 12345678901234567
  f:copy(w)
  assert(f[1] == 2.0 ^ 60 + 2.0 ^ 37, "an i64 is rounded once")
  u:copy(w)
  assert(u[2] == math.maxinteger and u[3] == 0 and u[4] == w[4])
  u:add(u, u)
  assert(u[4] == 2 * w[4])
  fails("18446744073709551614 is neither an integer", function() return u[2] end)
  u:add(u, 10)
  fails("18446744073709551615 is neither", u.max, u)      -- saturates
  fails("does not fit in 64 bits", u.sum, u)
  w:add(w, w)
  assert(w[2] == math.maxinteger and w[3] == -10)
  w:add(w, 0.5)
  assert(w[2] == math.maxinteger, "2^63 - 0.5 is rounded to 2^63, which saturates")
  w:add(w, -0.5)
  assert(w:slice(2, 2):mean() == 2.0 ^ 63)
  w:fill(math.maxinteger)
  assert(w:mean() == 2.0 ^ 63)                      -- the sum is beyond 64 bits
  fails("does not fit in 64 bits", w.sum, w)
  u:fill(math.maxinteger)
  u:add(u, u)
  assert(u:mean() == 2.0 ^ 64)
  w[3] = -10
  w:div(w, 4)
  assert(w[3] == -2)                                -- -2.5, to even
end

function process(frame, x)
  copies(x)
  arithmetic(x)
  reductions(x)
  nans(x)
  wide()
  overlapping()
end
