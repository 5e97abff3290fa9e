-- Burns on one line of a function that begins on another, until it is killed.

local function burn()
  local sum, turn = 0, 0
  while true do
    sum = sum + turn; turn = turn + 1; sum = sum % 255; turn = turn % 255; sum = sum + turn; turn = turn + 1; sum = sum % 7
  end
end

print('ready')
io.stdout:flush()
burn()
