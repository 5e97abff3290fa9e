# Makes methods of one class, each with a name and a line of its own, runs them for a moment and drops them, so that later ones
# lie where earlier ones lay.
#
# The method `made_N` calls `tell_N`, made with it. So a stack in which these two numbers differ has a wrong name. What
# names begin with is the first argument: names may differ in their first letters, behind them, or where strings keep them
# elsewhere. Until it is killed.

SOURCE = <<RUBY
def %<begin>stell_%<number>06d
  sum = 0
  turn = 0
  while turn < 4000
    sum += turn ^ (sum & 7)
    turn += 1
  end
end
def %<begin>smade_%<number>06d
  %<begin>stell_%<number>06d
end
RUBY

class Holder
end

holder = Holder.new
puts 'ready'
$stdout.flush
number = 0
while true
  names = %w[made tell].map { |end_of| format('%s%s_%06d', ARGV[0], end_of, number) }
  Holder.class_eval(format(SOURCE, begin: ARGV[0], number: number), '(eval)', 1 + number % 1000)
  holder.send(names[0])
  Holder.send(:remove_method, *names)
  number += 1
  GC.start if (number % 10).zero?
end
