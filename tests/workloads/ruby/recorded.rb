# One chain of calls, through C and blocks, for memory that is recorded. The chain is said from root to leaf, as Ruby itself has
# it, but for what is written in C; then the program runs until it is killed.

class Worker
  def burn
    names = caller_locations(0).map(&:label).reverse - %w[each sort_by]
    puts "chain #{names.join(';')}"
    while true
    end
  end

  def run
    [2, 1].sort_by { |_| burn }
  end
end

$stdout.sync = true
puts 'ready'
Worker.new.run
