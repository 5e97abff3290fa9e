-- Burns below as many calls as the first argument says, until it is killed.

local function burn()
  local turn = 0
  while true do
    turn = turn + 1
  end
end

local function descend(left)
  if left == 0 then
    burn()
  end
  local result = descend(left - 1)
  return result
end

print('ready')
io.stdout:flush()
descend(tonumber(arg[1]))
