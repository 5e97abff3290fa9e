# Calls one function over and over, from a block that a method in C calls, so that a compiler takes an interest, until it is
# killed.

def inner(turns)
  sum = 1
  turn = 0
  while turn < turns
    sum = (sum * 31 + turn) % 1000003
    turn += 1
  end
  sum
end

def outer
  sum = 0
  50.times { sum += inner(2000) }
  sum
end

puts 'ready'
$stdout.flush
outer while true
