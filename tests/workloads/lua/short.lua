-- Burns for 20 ms and ends.

function brief_work()
  local before, sum = os.clock(), 0
  while os.clock() - before < 0.02 do
    for turn = 1, 1000 do
      sum = sum + turn
    end
  end
  return sum
end

local sum = brief_work()
