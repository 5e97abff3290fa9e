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
  alias written to_s

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

class Special < Item
  def to_s
    super
  end
end

# What several classes include belongs to the module.
module Common
  def common
    burn
  end

  def lent
    burn
  end
end

class First
  include Common
end

class Second
  include Common
  define_method(:taken, Common.instance_method(:lent))
end

module Tools
  module_function

  def tool
    burn
  end
end

module Around
  def wrapped
    super
  end
end

module Outer
  class Inner
    prepend Around

    class << self
      def single
        burn
      end

      def define(name)
        define_method(name) { burn }
      end
    end

    define(:made)

    def wrapped
      [1].each { [1].each { burn } }
    end
  end
end

# Classes and objects that have no names.
NAMELESS = [Class.new { def nameless = burn }.new, Object.new].freeze

class << NAMELESS[1]
  def own
    burn
  end
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

def commons
  First.new.common
  Second.new.common
end

def taking
  Second.new.taken
end

def tooling
  Tools.tool
end

def nesting
  Outer::Inner.single
  Outer::Inner.new.made
  Outer::Inner.new.wrapped
end

def inheriting
  Special.new(1).to_s
end

def other_names
  $items[0].written
end

def nameless_ones
  NAMELESS[0].nameless
  NAMELESS[1].own
end

# What a match found is kept where the method was.
def matching
  'banana' =~ /n/
  burn
end

def collecting
  $round += 1
  GC.start(full_mark: false) if ($round % 8).zero?
end

$round = 0
$block = ->(value) { value + burn }

$items = [3, 1, 2].map { |value| Item.new(value) }

# The classes of methods, where they are not those of `Object`.
CLASSES = {
  '<=>' => 'Item#', 'to_s' => 'Item#', 'method_missing' => 'Item#', 'each' => 'Item#', 'make' => 'Item.'
}.freeze

# A label with the class of its method: `block in each` is `block in Item#each`.
def qualified(label)
  return label if label.match?(/[#.<^]/) && label != '<=>'

  part, _, method = label.rpartition(' in ')
  "#{part}#{' in ' unless part.empty?}#{CLASSES.fetch(method, 'Object#')}#{method}"
end

OUTER = ['<main>', 'block in <main>', 'block (2 levels) in <main>'].freeze
# What has no class begins with `^`.
CHAINS = [
  %w[making make Item#initialize burn],
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
  %w[throwing thrower Failure#initialize burn],
  ['throwing', 'rescue in throwing', 'burn'],
  %w[throwing burn],
  ['defaults', 'block in defaults', 'burn'],
  ['replacing', 'block in replacing', 'burn'],
  ['procs', 'block in <main>', 'burn'],
  %w[commons Common#common burn],
  %w[taking ^lent burn],
  %w[tooling Tools.tool burn],
  %w[nesting Outer::Inner.single burn],
  ['nesting', 'block in Outer::Inner.define', 'burn'],
  ['nesting', 'Around#wrapped', 'Outer::Inner#wrapped', 'block in Outer::Inner#wrapped',
   'block (2 levels) in Outer::Inner#wrapped', 'burn'],
  %w[inheriting Special#to_s to_s burn],
  %w[other_names to_s burn],
  %w[nameless_ones ^nameless burn],
  %w[nameless_ones ^own burn],
  %w[matching burn],
  %w[collecting GC.start]
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
  %w[enumerating each],
  %w[inheriting Item#initialize burn],
  %w[collecting Integer#zero?]
].map { |chain| OUTER + chain } + [
  ['each', 'block in enumerators', 'burn'],
  # A thread or fiber that runs nothing of Ruby's yet, or no more.
  []
]
puts 'ready'
{ chain: CHAINS, rare: RARE }.each do |word, chains|
  chains.each { |chain| puts "#{word} #{chain.map { |label| qualified(label).delete('^') }.join(';')}" }
end
puts 'end'
$stdout.flush
WAYS = %i[making sorting sorting_by_block iterating enumerating calling missing strings evaluating in_an_instance fibers
          enumerators threads throwing defaults replacing procs commons taking tooling nesting inheriting other_names
          nameless_ones matching collecting].freeze
[nil].cycle do
  WAYS.each { |way| send(way) }
end
