-- The replay buffer: keeps the newest digits, and draws batches of them, each digit anew and by chance.
local gpipe = require "gpipe"

local keep, size, draws           -- digits that are kept, digits of a batch, batches of a frame
local pixels, answers             -- what is kept, place after place; the oldest is written over
local seen = 0                    -- digits so far
local chance = 1                  -- Park and Miller's numbers, exact in doubles, too

function init(stage)
  keep, size, draws = stage.params.keep, stage.params.size, stage.params.draws
  pixels, answers = gpipe.array("u8", keep * 64), gpipe.array("i64", keep)
end

function process(frame, new, batch)
  for i = 1, frame.valid do
    local place = seen % keep
    pixels:copy(new.digits, 64 * i - 63, 64 * i, 64 * place + 1)
    answers:copy(new.labels, i, i, place + 1)
    seen = seen + 1
  end
  local kept = math.min(seen, keep)
  for i = 1, draws * size do
    chance = chance * 16807 % 2147483647
    local place = chance % kept
    batch.digits:copy(pixels, 64 * place + 1, 64 * place + 64, 64 * i - 63)
    batch.answers:copy(answers, place + 1, place + 1, i)
  end
end
