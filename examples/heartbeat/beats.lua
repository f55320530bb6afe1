-- Finds QRS complexes in a band-passed electrocardiogram.
--
-- The detector is that of J. Pan and W. J. Tompkins, "A real-time QRS detection
-- algorithm", IEEE Trans. Biomed. Eng. BME-32(3), 1985: derivative, square,
-- integration over 150 ms, then peaks against two adaptive thresholds, with a
-- look back for a missed beat and a test for T waves. The paper's band-pass
-- filter is the stage before this one.
--
-- Samples come in blocks; all that must survive a block is in `s`.

local RATE, DELAY          -- Hz; samples by which the band-pass is late
local WINDOW               -- samples of the integration
local REFRACTORY, T_WAVE   -- samples: no beat this soon; maybe a T wave this soon
local LEARN                -- samples before the first beat is reported
local HISTORY = 1024       -- samples of the band-passed signal that are kept

local s = {n = 0, sum = 0, peak = 0, peak_at = 0, signal = 0, noise = 0, beats = 0}
local x, slope, square, candidate, rr = {}, {}, {}, {}, {}

function init(stage)
  RATE, DELAY = stage.params.rate, stage.params.delay
  WINDOW = math.floor(0.150 * RATE + 0.5)
  REFRACTORY = math.floor(0.200 * RATE + 0.5)
  T_WAVE = math.floor(0.360 * RATE + 0.5)
  LEARN = 2 * RATE
  for i = 0, HISTORY - 1 do x[i], slope[i], square[i] = 0, 0, 0 end
end

-- The steepest slope in the integration window that ends at sample `at`.
local function steepest(at)
  local most = 0
  for i = at - WINDOW + 1, at do
    local d = math.abs(slope[i % HISTORY])
    if d > most then most = d end
  end
  return most
end

-- Where the band-passed signal is largest in that window: the R wave.
local function r_wave(at)
  local best, where = -1, at
  for i = at - WINDOW + 1, at do
    local v = math.abs(x[i % HISTORY])
    if v > best then best, where = v, i end
  end
  return where
end

local function mean_rr()
  local sum = 0
  for _, v in ipairs(rr) do sum = sum + v end
  return #rr > 0 and sum / #rr or nil
end

-- Takes the peak as a beat.
local function accept(p, weight, out)
  s.signal = weight * p.height + (1 - weight) * s.signal
  if s.last then
    rr[#rr + 1] = p.at - s.last
    if #rr > 8 then table.remove(rr, 1) end
  end
  s.last, s.last_slope = p.at, p.slope
  s.beats = s.beats + 1
  candidate = {}
  out:print(string.format('{"beat": %d, "time": %.3f, "rr": %s}', s.beats, (p.r - DELAY) / RATE,
    #rr > 0 and string.format("%.3f", rr[#rr] / RATE) or "null"))
end

-- A peak of the integrated signal: a beat, or noise.
local function judge(p, out)
  local threshold = s.noise + 0.25 * (s.signal - s.noise)
  local since = s.last and p.at - s.last or math.huge
  if p.height > threshold and not (since < T_WAVE and p.slope < 0.5 * s.last_slope) then
    accept(p, 0.125, out)
    return
  end
  s.noise = 0.125 * p.height + 0.875 * s.noise
  if since >= T_WAVE then candidate[#candidate + 1] = p end
end

-- No beat for 166 % of the mean interval: the highest peak since the last one
-- is a beat when it passes the lower threshold.
local function look_back(out)
  local mean = mean_rr()
  if not mean or s.n - s.last < 1.66 * mean or #candidate == 0 then return end
  local best = candidate[1]
  for _, p in ipairs(candidate) do if p.height > best.height then best = p end end
  if best.height > 0.5 * (s.noise + 0.25 * (s.signal - s.noise)) then accept(best, 0.25, out) end
end

function process(frame, input, out)
  for i = 1, #input do
    local n = s.n
    x[n % HISTORY] = input[i]
    local d = (2 * x[n % HISTORY] + x[(n - 1) % HISTORY] - x[(n - 3) % HISTORY]
               - 2 * x[(n - 4) % HISTORY]) / 8
    slope[n % HISTORY] = d
    s.sum = s.sum + d * d - square[(n - WINDOW) % HISTORY]
    square[n % HISTORY] = d * d
    local height = math.max(s.sum, 0) / WINDOW

    if n < LEARN then
      s.signal = math.max(s.signal, height / 3)
      s.noise = s.noise + height / LEARN / 2
    end
    -- A peak stands when nothing higher follows within the refractory period.
    if height > s.peak then
      s.peak, s.peak_at = height, n
    elseif s.peak > 0 and n - s.peak_at == REFRACTORY then
      if n >= LEARN then
        local at = s.peak_at
        judge({at = at, height = s.peak, slope = steepest(at), r = r_wave(at)}, out)
      end
      s.peak = 0
    end
    s.n = n + 1
    if s.last then look_back(out) end
  end
end
