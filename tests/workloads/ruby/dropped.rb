# Makes classes, each with a name of its own, runs their methods for a moment and drops them, so that later ones lie where
# earlier ones lay.
#
# The method `made` of `MadeN` calls `tell` of `TellN`, made with it. So a stack in which these two numbers differ has a wrong
# name. Until it is killed.

SOURCE = <<RUBY
class Tell%<number>06d
  def self.tell
    sum = 0
    turn = 0
    while turn < 4000
      sum += turn ^ (sum & 7)
      turn += 1
    end
  end
end
class Made%<number>06d
  def made
    Tell%<number>06d.tell
  end
end
Made%<number>06d.new.made
Object.send(:remove_const, :Made%<number>06d)
Object.send(:remove_const, :Tell%<number>06d)
RUBY

puts 'ready'
$stdout.flush
number = 0
while true
  eval(format(SOURCE, number: number))
  number += 1
  GC.start if (number % 50).zero?
end
