-- The range of a picture -> the factor that stretches it to 0 .. 255, and a line of text.
stateless = true

function process(frame, x, y)
  local low, high = x.low[1], x.high[1]
  local factor = high > low and 255 / (high - low) or 1
  y.factor[1] = factor
  y.lines:print(string.format("%d: %.2f to %.2f, factor %.3f", frame.index, low, high, factor))
end
