-- Stops at 50 places that chance chooses, and burns there; what `debug.getinfo` says there is the truth.
--
-- First each place is visited once, to say its functions as a `chain FUNCTION;FUNCTION;…` line from root to leaf; then all of
-- them again and again, until it is killed. A function is what the code of any of its callers calls it, and the line on which it
-- is defined: `step:12`.

local STOPS = 50
local SECONDS = 0.01

local load = loadstring or load
local clock, getinfo, running = os.clock, debug.getinfo, coroutine.running

local is_saying = true
-- The frames of each place, from the leaf.
local places = {}
-- For each line on which a function is defined what callers call it.
local names = {}
-- For each coroutine the frames of who resumed it last.
local resumers = setmetatable({}, { __mode = 'k' })

local IS_NAMED = { global = true, ['local'] = true, upvalue = true, method = true, field = true }

-- Whether a caller's code has the name: events have none there, `?` is what Lua does not know, and `(for generator)` and the
-- like are the compiler's own.
local function is_named(info)
  return IS_NAMED[info.namewhat] and string.find(info.name, '^[%a_]')
end

-- The lines of the running functions, from the second on; of who resumed them, too.
local function frames()
  local lines, level = {}, 2
  while true do
    local info = getinfo(level, 'nS')
    if not info then break end
    if info.what ~= 'C' then
      local line = info.what == 'main' and 0 or info.linedefined
      table.insert(lines, line)
      if is_named(info) then
        names[line] = names[line] or {}
        names[line][info.name] = true
      end
    end
    level = level + 1
  end
  local thread = running()
  for _, line in ipairs(thread and resumers[thread] or {}) do
    table.insert(lines, line)
  end
  return lines
end

local function stop()
  if is_saying then
    table.insert(places, frames())
    return
  end
  local limit, sum = clock() + SECONDS, 0
  while clock() < limit do
    for turn = 1, 1000 do
      sum = (sum + turn * 7) % 1021
    end
  end
end

local go

local object = { path = false }
function object:method(path)
  local done = go(path)
  return done
end
function object.field(path)
  local done = go(path)
  return done
end

function everywhere(path)
  local done = go(path)
  return done
end

local function variable(...)
  local done = go(...)
  return done
end

local function tail_target(path)
  local done = go(path)
  return done
end

local function failing()
  error('failed')
end

-- Whatever is done to a holder goes on along its path.
local function on_event(holder)
  go(holder.path)
  return true
end
local Holder = {
  __add = on_event,
  __concat = on_event,
  __eq = on_event,
  __lt = on_event,
  __le = on_event,
  __unm = on_event,
  __newindex = on_event,
  -- What is called may have a name.
  __call = function(holder)
    go(holder.path)
  end,
  __tostring = function(holder)
    go(holder.path)
    return ''
  end,
}
local function hold(path)
  return setmetatable({ path = path }, Holder)
end

local function by_handler(path)
  xpcall(failing, function()
    go(path)
  end)
end

local ways = {
  function(path)
    go(path)
  end,
  function(path)
    local alias = function()
      go(path)
    end
    alias()
  end,
  function(path)
    object:method(path)
  end,
  function(path)
    object.field(path)
  end,
  function(path)
    everywhere(path)
  end,
  function(path)
    variable(path)
  end,
  function(path)
    return tail_target(path)
  end,
  function(path)
    pcall(go, path)
  end,
  function(path)
    pcall(pcall, function()
      go(path)
    end)
  end,
  function(path)
    pcall(failing)
    go(path)
  end,
  function(path)
    xpcall(function()
      go(path)
    end, failing)
  end,
  by_handler,
  function(path)
    table.sort({ 2, 1 }, function(one, other)
      go(path)
      return one < other
    end)
  end,
  function(path)
    string.gsub('a', 'a', function()
      go(path)
    end)
  end,
  function(path)
    local missing = setmetatable({}, {
      __index = function()
        return go(path) and nil
      end,
    }).missing
    return missing
  end,
  function(path)
    hold(path).other = 1
  end,
  function(path)
    local sum = hold(path) + 1
    return sum
  end,
  function(path)
    local text = hold(path) .. 'text'
    return text
  end,
  function(path)
    local is_same = hold(path) == hold(path)
    return is_same
  end,
  function(path)
    local is_less = hold(path) < hold(path)
    return is_less
  end,
  function(path)
    local is_less = hold(path) <= hold(path)
    return is_less
  end,
  function(path)
    local negative = -hold(path)
    return negative
  end,
  function(path)
    local held = hold(path)
    held()
  end,
  function(path)
    tostring(hold(path))
  end,
  function(path)
    for _ in function(_, last)
      if not last then
        go(path)
        return 1
      end
    end do
    end
  end,
  function(path)
    local chunk = load('local go, path = ... go(path)', '=chunk')
    chunk(go, path)
  end,
  function(path)
    local thread = coroutine.create(go)
    resumers[thread] = is_saying and frames()
    coroutine.resume(thread, path)
  end,
  function(path)
    local behind = is_saying and frames()
    coroutine.wrap(function()
      resumers[running()] = behind
      go(path)
    end)()
  end,
  -- Goes on where it yielded, within a call that is protected.
  function(path)
    local thread = coroutine.create(function()
      pcall(function()
        coroutine.yield()
        go(path)
      end)
    end)
    coroutine.resume(thread)
    resumers[thread] = is_saying and frames()
    coroutine.resume(thread)
  end,
  -- The outer has begun the inner, and resumes it again when it goes on itself.
  function(path)
    local inner = coroutine.create(function()
      coroutine.yield()
      go(path)
    end)
    local outer = coroutine.create(function()
      coroutine.resume(inner)
      coroutine.yield()
      resumers[inner] = is_saying and frames()
      coroutine.resume(inner)
    end)
    coroutine.resume(outer)
    resumers[outer] = is_saying and frames()
    coroutine.resume(outer)
  end,
}

function go(path)
  local way = path[1]
  if not way then
    stop()
    return
  end
  local rest = {}
  for place = 2, #path do
    rest[place - 1] = path[place]
  end
  ways[way](rest)
end

local function visit(paths)
  for _, path in ipairs(paths) do
    go(path)
  end
end

-- One more for each way, so that none is missing by chance.
math.randomseed(7)
local paths = {}
for way = 1, #ways do
  paths[way] = { way }
end
for _ = 1, STOPS do
  local path, is_handling = {}, false
  for place = 1, math.random(11) do
    local way = math.random(#ways)
    -- LuaJIT calls no handler of errors while one runs.
    if ways[way] == by_handler then
      way, is_handling = is_handling and 1 or way, true
    end
    path[place] = way
  end
  table.insert(paths, path)
end

local function said(line)
  if line == 0 then
    return '<main>'
  end
  local name = next(names[line] or {})
  assert(not name or not next(names[line], name), 'several names')
  return (name or '<anonymous>') .. ':' .. line
end

visit(paths)
is_saying = false
assert(#places == #paths, 'a place was not reached')
print('ready')
for _, lines in ipairs(places) do
  local chain = {}
  for place, line in ipairs(lines) do
    chain[#lines - place + 1] = said(line)
  end
  print('chain ' .. table.concat(chain, ';'))
end
io.stdout:flush()
while true do
  visit(paths)
end
