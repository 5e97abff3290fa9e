# Burns on one line of a function that begins on another, until it is killed.

def burn
  sum = 0
  turn = 0
  while true
    sum ^= turn; turn += 1; sum += 7; turn ^= sum; sum &= 255; turn &= 255; sum ^= turn; turn += 1; sum += 7; turn ^= sum
  end
end

puts 'ready'
$stdout.flush
burn
