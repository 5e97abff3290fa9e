-- Two phases that take 70 and 30 percent of the program's time by construction: each round deals that many equal slots in a
-- random order, so no sampling rate can march in step. For as many seconds of CPU time as the first argument says; then the
-- measured truth as `truth FUNCTION NANOSECONDS` lines.

local function burn(turns)
  local sum = 0
  for turn = 1, turns do
    sum = (sum + turn * 7) % 1021
  end
  return sum
end

function long_phase()
  local sum = burn(20000)
  return sum
end

function short_phase()
  local list = { 1, 2 }
  table.sort(list, function(one, other)
    burn(20000)
    return one < other
  end)
end

local spent = { long_phase = 0, short_phase = 0 }

local function measured(name)
  local before = os.clock()
  -- For the name that the code calls it.
  if name == 'long_phase' then
    long_phase()
  else
    short_phase()
  end
  spent[name] = spent[name] + os.clock() - before
end

print('ready')
io.stdout:flush()
local limit = tonumber(arg[1])
while os.clock() < limit do
  local round = {}
  for slot = 1, 10 do
    table.insert(round, math.random(slot), slot <= 7 and 'long_phase' or 'short_phase')
  end
  for _, name in ipairs(round) do
    measured(name)
  end
end
for name, seconds in pairs(spent) do
  print(string.format('truth %s %d', name, math.floor(seconds * 1e9)))
end
