# Stops at 50 places that chance chooses, and burns there; the interpreter's own account of its frames says what they are.
#
# First each place is visited once, to say its frames as a `chain FUNCTION;FUNCTION;…` line, and those on the way to it as
# `rare` ones, without functions that are written in C and without classes, which Ruby's account lacks; then all of them again
# and again, until it is killed.

STOPS = 50
TURNS = 150_000
# Where these are written in C, they stand with their caller's file.
IN_C = %w[
  call default each each_slice each_entry fetch inject instance_eval instance_exec join loop map map! new next public_send
  resume send sort sort! sort_by tap then times to_s upto each_with_index eval initialize inspect gsub catch __send__ step
  each_pair sum block_call yield <=>
].freeze

def said(location)
  location.label unless IN_C.include?(location.label) && !location.path.to_s.start_with?('<internal:')
end

# Says who called, and what they call next.
def say(word, *called)
  callers = caller_locations(1).filter_map { |location| said(location) }
  puts "#{word} #{[*callers.reverse, *called].join(';')}"
end

def stop
  return say('chain') if $saying

  sum = 0
  turn = 0
  while turn < TURNS
    sum += turn ^ (sum & 7)
    turn += 1
  end
end

def go(path)
  say('rare', *path.first(1)) if $saying
  path.empty? ? stop : send(path[0], path.drop(1))
end

def by_call(path)
  go(path)
end

def by_each(path)
  [0].each { |_| go(path) }
end

def by_blocks(path)
  [0].each { |_| 1.times { [0].map { |_| go(path) } } }
end

def by_sort(path)
  [2, 1].sort { |_, _| go(path); 0 }
end

def by_lambda(path)
  ->(inner) { go(inner) }.call(path)
end

def by_method(path)
  [path].each(&method(:go))
end

def by_rescue(path)
  raise KeyError
rescue KeyError
  go(path)
end

def by_ensure(path)
  1
ensure
  go(path)
end

def by_eval(path)
  eval('go(path)')
end

def by_instance_eval(path)
  Object.new.instance_eval { go(path) }
end

def by_tap(path)
  0.tap { |_| go(path) }
end

def by_loop(path)
  loop do
    go(path)
    break
  end
end

def by_fiber(path)
  Fiber.new { go(path) }.resume
end

def by_enumerator(path)
  Enumerator.new { |out| out << go(path) }.next
end

def by_thread(path)
  Thread.new { go(path) }.join
end

def by_hash(path)
  Hash.new { |_, _| go(path) }[0]
end

module Passing
  def passed(path)
    super
  end
end

class Base
  def passed(path)
    go(path)
  end
end

class Holder < Base
  prepend Passing
  define_method(:defined) { |path| go(path) }

  def passed(path)
    super
  end

  def method_missing(name, path)
    name == :unknown ? go(path) : super
  end

  def respond_to_missing?(*)
    true
  end

  def self.made(path)
    new.passed(path)
  end

  class << self
    def opened(path)
      yield path
    end
  end
end

def by_class_method(path)
  Holder.made(path)
end

def by_definition(path)
  Holder.new.defined(path)
end

def by_missing(path)
  Holder.new.unknown(path)
end

def by_yield(path)
  Holder.opened(path) { |inner| go(inner) }
end

def visit
  PATHS.each { |path| go(path) }
end

WAYS = private_methods.grep(/\Aby_/).sort
CHANCE = Random.new(7)
PATHS = Array.new(STOPS) { Array.new(CHANCE.rand(12)) { WAYS.sample(random: CHANCE) } }

puts 'ready'
# A thread or fiber that runs nothing of Ruby's yet, or no more.
puts 'rare '
$saying = true
visit
$saying = false
$stdout.flush
visit while true
