-- Writes the bytes of each sequence as a line of a text. One alone is written while it is made.
local file, steps
local made = {}                   -- of each sequence, its bytes so far

function init(stage)
  steps = stage.params.steps
  file = assert(io.open(stage.params.file, "w"))
end

function process(frame, token)
  for i = 1, #token do
    made[i] = made[i] or {}
    table.insert(made[i], string.char(token[i]))
  end
  if #token == 1 then
    file:write(made[1][#made[1]])
    file:flush()
  end
  if #made[1] < steps then return end
  for i = 1, #token do
    file:write(#token > 1 and table.concat(made[i]) or "", "\n")
  end
  made = {}
end

function finish()
  if file then file:close() end
end
