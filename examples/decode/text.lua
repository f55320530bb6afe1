-- The bytes of each sequence, as a line of text; of one alone each byte when it is made.
local steps
local made = {}                   -- of each sequence, its bytes so far

function init(stage)
  steps = stage.params.steps
end

function process(frame, token, text)
  local out = ""
  for i = 1, #token do
    made[i] = made[i] or {}
    table.insert(made[i], string.char(token[i]))
  end
  local ends = #made[1] == steps
  if #token == 1 then
    out = made[1][#made[1]] .. (ends and "\n" or "")
  elseif ends then
    for i = 1, #token do out = out .. table.concat(made[i]) .. "\n" end
  end
  if ends then made = {} end
  text:write(out, 1)
  frame.valid = #out
end
