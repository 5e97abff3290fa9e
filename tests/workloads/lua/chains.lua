-- Every way in which one function of Lua's comes to run another, one after the other. First the call chains that there are,
-- and that there may be, are said as `chain FUNCTION;FUNCTION;…` and `rare FUNCTION;…` lines from root to leaf, behind `ready`;
-- then the program runs until it is killed. Functions that are called from C, by the interpreter itself, or by a tail call
-- have no name that a caller's code gives them.

local load = loadstring or load
-- A function without a name, by its line.
local function nameless(it)
  return '<anonymous>:' .. debug.getinfo(it, 'S').linedefined
end

function burn()
  local sum = 0
  for turn = 1, 2000 do
    sum = (sum + turn * 7) % 1021
  end
  return sum
end

local function work(depth)
  local sum = burn()
  return sum + depth
end

local function by_upvalue()
  local sum = work(1)
  return sum
end

local object = { value = 1 }
function object:method()
  local sum = burn()
  return sum
end
function object.field()
  local sum = burn()
  return sum
end

local function by_method()
  local sum = object:method()
  return sum
end

local function by_field()
  local sum = object.field()
  return sum
end

local function by_local()
  local alias = function()
    local sum = burn()
    return sum
  end
  local sum = alias()
  return sum
end

local function tail_called()
  return burn()
end

local function by_tail_call()
  local sum = tail_called()
  return sum
end

local function variable(...)
  local sum = burn()
  return select('#', ...) + sum
end

local function by_variable()
  local sum = variable(1, 2, 3)
  return sum
end

local function by_pcall()
  local _, sum = pcall(work, 1)
  return sum
end

local function failing()
  burn()
  error('failed')
end

local function by_error()
  local kept = pcall(failing)
  return kept
end

local function handler(message)
  burn()
  return message
end

local function by_xpcall()
  local kept = xpcall(failing, handler)
  return kept
end

local function compare(one, other)
  burn()
  return one < other
end

local function by_sort()
  local list = { 3, 1, 2 }
  table.sort(list, compare)
  return list
end

local function replace(found)
  burn()
  return found
end

local function by_gsub()
  local text = string.gsub('banana', 'a', replace)
  return text
end

local proxy = setmetatable({}, {
  __index = function(_, key)
    local sum = burn()
    return sum, key
  end,
  __add = function()
    local sum = burn()
    return sum
  end,
  __call = function()
    local sum = burn()
    return sum
  end,
})

local function by_index()
  local value = proxy.missing
  return value
end

local function by_addition()
  local value = proxy + 1
  return value
end

local function by_call()
  local value = proxy()
  return value
end

local function iterate(last, turn)
  burn()
  if turn < last then
    return turn + 1
  end
end

local function by_iterator()
  local sum = 0
  for turn in iterate, 3, 0 do
    sum = sum + turn
  end
  return sum
end

local chunk = load('local sum = burn() return sum', '=chunk')

local function by_chunk()
  local sum = chunk()
  return sum
end

local function inner_body()
  burn()
  coroutine.yield(1)
  burn()
  return 2
end

local function by_resume()
  local thread = coroutine.create(inner_body)
  local _, first = coroutine.resume(thread)
  local _, second = coroutine.resume(thread)
  return first, second
end

local function nested_body()
  local sum = by_resume()
  burn()
  return sum
end

local function by_nested_resume()
  local thread = coroutine.create(nested_body)
  local _, sum = coroutine.resume(thread)
  return sum
end

local function yielding()
  burn()
  coroutine.yield(1)
  burn()
  return 2
end

local function wrapped_body()
  local _, sum = pcall(yielding)
  burn()
  return sum
end

local function by_wrap()
  local step = coroutine.wrap(wrapped_body)
  step()
  local sum = step()
  return sum
end

local meta = getmetatable(proxy)
local chains = {
  'by_upvalue;work;burn',
  'by_method;method;burn',
  'by_field;field;burn',
  'by_local;alias;burn',
  'by_tail_call;burn',
  'by_variable;variable;burn',
  'by_pcall;work;burn',
  'by_error;' .. nameless(failing) .. ';burn',
  'by_xpcall;' .. nameless(failing) .. ';burn',
  'by_xpcall;' .. nameless(failing) .. ';' .. nameless(handler) .. ';burn',
  'by_sort;' .. nameless(compare) .. ';burn',
  'by_gsub;' .. nameless(replace) .. ';burn',
  'by_index;' .. nameless(meta.__index) .. ';burn',
  'by_addition;' .. nameless(meta.__add) .. ';burn',
  'by_call;proxy;burn',
  'by_iterator;' .. nameless(iterate) .. ';burn',
  'by_chunk;<main>;burn',
  'by_resume;' .. nameless(inner_body) .. ';burn',
  'by_nested_resume;' .. nameless(nested_body) .. ';burn',
  'by_nested_resume;' .. nameless(nested_body) .. ';by_resume;' .. nameless(inner_body) .. ';burn',
  'by_wrap;' .. nameless(wrapped_body) .. ';' .. nameless(yielding) .. ';burn',
  'by_wrap;' .. nameless(wrapped_body) .. ';burn',
}

print('ready')
for _, chain in ipairs(chains) do
  print('chain <main>;' .. chain)
end
print('rare <main>;by_tail_call;tail_called')
io.stdout:flush()

while true do
  by_upvalue()
  by_method()
  by_field()
  by_local()
  by_tail_call()
  by_variable()
  by_pcall()
  by_error()
  by_xpcall()
  by_sort()
  by_gsub()
  by_index()
  by_addition()
  by_call()
  by_iterator()
  by_chunk()
  by_resume()
  by_nested_resume()
  by_wrap()
end
