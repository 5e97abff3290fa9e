# Two phases that take 70 and 30 percent of the program's time by construction, through methods and blocks: each round deals
# that many equal slots in a random order, so no sampling rate can march in step. Until SIGTERM; then the measured truth as
# `truth FUNCTION NANOSECONDS` lines.

def burn(turns)
  sum = 0
  turn = 0
  while turn < turns
    sum += turn ^ (sum & 7)
    turn += 1
  end
  sum
end

def long_phase
  1.times { burn(30_000) }
end

def short_phase
  [1].map { |_slot| burn(30_000) }
end

def cpu_ns
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
end

stopped = false
trap('TERM') { stopped = true }
spent = { long_phase: 0, short_phase: 0 }
puts 'ready'
$stdout.flush
until stopped
  ([:long_phase] * 7 + [:short_phase] * 3).shuffle.each do |phase|
    before = cpu_ns
    send(phase)
    spent[phase] += cpu_ns - before
  end
end
spent.each { |phase, nanoseconds| puts "truth Object##{phase} #{nanoseconds}" }
