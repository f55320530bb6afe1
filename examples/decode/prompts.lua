-- The steps of all prompts, `sequences` of them side by side: of each its bytes, then -1.
local sequences, steps
local prompts = {}
local first, step = 1, 0          -- of those that are side by side; from 0

function init(stage)
  sequences, steps = stage.params.sequences, stage.params.steps
  for prompt in stage.params.prompts:gmatch("[^|]+") do table.insert(prompts, prompt) end
end

function produce(frame, out)
  if step == steps then
    first, step = first + sequences, 0
  end
  if first > #prompts then return false end
  for i = 1, sequences do
    out.prompt[i] = (prompts[first + i - 1] or " "):byte(step + 1) or -1
  end
  out.step[1] = step
  step = step + 1
end
