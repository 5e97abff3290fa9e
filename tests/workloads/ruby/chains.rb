# Every way in which one function of Ruby's comes to run another, one after the other. First the call chains that there are
# and that there may be are said, as `chain FUNCTION;FUNCTION;…` and `rare FUNCTION;…` lines from root to leaf, behind `ready`;
# then the program runs until it is killed.

def burn
  sum = 0
  turn = 0
  while turn < 300
    sum += turn ^ (sum & 7)
    turn += 1
  end
  sum
end

class Item
  attr_reader :value

  def initialize(value)
    @value = value
    burn
  end

  def <=>(other)
    burn
    @value <=> other.value
  end

  def to_s
    burn.to_s
  end

  define_method(:defined) { |extra| burn + extra }

  def method_missing(name, *arguments)
    return super unless name == :unknown

    burn + arguments.size
  end

  def respond_to_missing?(name, all = false)
    name == :unknown || super
  end

  def self.make(value)
    new(value)
  end

  def each
    yield burn
    yield burn
  end
  include Enumerable
end

class Failure < StandardError
  def initialize
    super('failed')
    burn
  end
end

def making
  Item.make(1)
end

def sorting
  $items.sort
end

def sorting_by_block
  [3, 1, 2].sort { |one, other| burn; one <=> other }
end

def iterating
  [1, 2, 3].each { |_value| burn }
end

def enumerating
  $items[0].map { |value| value + burn }
end

def calling
  $items[0].defined(1)
end

def missing
  $items[0].unknown(1, 2)
end

def strings
  "item #{$items[0]}"
end

def evaluating
  eval('burn')
end

def in_an_instance
  $items[0].instance_eval { burn }
end

def fibers
  fiber = Fiber.new do
    burn
    Fiber.yield 1
    burn
  end
  fiber.resume
  fiber.resume
end

def enumerators
  enumerator = Enumerator.new { |out| out << burn }
  enumerator.next
end

def threads
  Thread.new { burn }.join
end

def thrower
  raise Failure
end

def throwing
  thrower
rescue Failure
  burn
ensure
  burn
end

def defaults
  Hash.new { |_hash, _key| burn }[:key]
end

def replacing
  'banana'.gsub(/a/) { |_found| burn.to_s }
end

def procs
  [1, 2].map(&:itself)
  $block.call(1)
end

$block = ->(value) { value + burn }

$items = [3, 1, 2].map { |value| Item.new(value) }

OUTER = ['<main>', 'block in <main>', 'block (2 levels) in <main>'].freeze
CHAINS = [
  %w[making make initialize burn],
  %w[sorting <=> burn],
  ['sorting_by_block', 'block in sorting_by_block', 'burn'],
  ['iterating', 'block in iterating', 'burn'],
  %w[enumerating each burn],
  ['enumerating', 'each', 'block in enumerating', 'burn'],
  ['calling', 'block in <class:Item>', 'burn'],
  %w[missing method_missing burn],
  %w[strings to_s burn],
  ['evaluating', 'evaluating', 'burn'],
  ['in_an_instance', 'block in in_an_instance', 'burn'],
  %w[throwing thrower initialize burn],
  ['throwing', 'rescue in throwing', 'burn'],
  %w[throwing burn],
  ['defaults', 'block in defaults', 'burn'],
  ['replacing', 'block in replacing', 'burn'],
  ['procs', 'block in <main>', 'burn']
].map { |chain| OUTER + chain } + [
  # What has a stack of its own begins there.
  ['block in fibers', 'burn'],
  ['block in enumerators', 'burn'],
  ['block in threads', 'burn']
]
RARE = [
  %w[fibers],
  %w[enumerators],
  %w[threads],
  ['throwing', 'ensure in throwing', 'burn'],
  %w[sorting_by_block],
  %w[enumerating each]
].map { |chain| OUTER + chain } + [
  ['each', 'block in enumerators', 'burn'],
  # A thread or fiber that runs nothing of Ruby's yet, or no more.
  []
]
puts 'ready'
CHAINS.each { |chain| puts "chain #{chain.join(';')}" }
RARE.each { |chain| puts "rare #{chain.join(';')}" }
puts 'end'
$stdout.flush
WAYS = %i[making sorting sorting_by_block iterating enumerating calling missing strings evaluating in_an_instance fibers
          enumerators threads throwing defaults replacing procs].freeze
[nil].cycle do
  WAYS.each { |way| send(way) }
end
