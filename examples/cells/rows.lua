-- The rows of 'objects' as lines of a table, with the name of the picture and the number of the cell in it.
function process(frame, cells, out)
  if frame.index == 0 then out:print("picture,cell,area,x0,y0,x1,y1,x,y") end
  for i = 1, cells.shape[1] do
    local c = cells:slice(i, i)
    out:print(string.format("%s,%d,%d,%d,%d,%d,%d,%.2f,%.2f", frame.name, i, c[1], c[2], c[3], c[4], c[5], c[6], c[7]))
  end
end
