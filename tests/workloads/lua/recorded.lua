-- One chain of calls, through C, for memory that is recorded. The chain is said from root to leaf,
-- as Lua itself has it, by the lines at which its functions begin; then the program runs until it is killed.

if jit then jit.off() end

local function burn()
  local lines, level = {}, 1
  while true do
    local info = debug.getinfo(level, 'S')
    if not info then break end
    if info.what ~= 'C' then table.insert(lines, 1, math.max(info.linedefined, 1)) end
    level = level + 1
  end
  print('chain ' .. table.concat(lines, ';'))
  io.flush()
  while true do end
end

local function compare(one, other)
  burn()
  return one < other
end

local function run()
  table.sort({ 2, 1 }, compare)
end

print('ready')
io.flush()
pcall(run)
