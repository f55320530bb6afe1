-- The steps of all lines of a file, `sequences` of them side by side: of each line its bytes, then -1.
local sequences, steps
local lines = {}
local first, step = 1, 0          -- of those that are side by side; from 0

function init(stage)
  sequences, steps = stage.params.sequences, stage.params.steps
  for line in io.lines(stage.params.file) do lines[#lines + 1] = line end
end

function produce(frame, out)
  if step == steps then
    first, step = first + sequences, 0
  end
  if first > #lines then return false end
  for i = 1, sequences do
    out.prompt[i] = (lines[first + i - 1] or ""):byte(step + 1) or -1
  end
  out.step[1] = step
  step = step + 1
end
