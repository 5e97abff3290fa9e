<?php
/*
 * Every way in which one function of PHP comes to run another, one after the other. First the call chains that there are and
 * that there may be are said, as `chain FUNCTION;FUNCTION;…` and `rare FUNCTION;…` lines from root to leaf, behind `ready`;
 * then the program runs until it is killed.
 */

namespace Work;

const TURNS = 400;

function burn(): int
{
    $sum = 0;
    for ($turn = 0; $turn < TURNS; $turn++) {
        $sum += $turn ^ ($sum & 7);
    }
    return $sum;
}

class Item
{
    public function __construct(public int $value) {}

    public static function compare(Item $one, Item $other): int
    {
        burn();
        return $one->value <=> $other->value;
    }

    public function __toString(): string
    {
        return (string) burn();
    }

    public function __call(string $name, array $arguments): int
    {
        return burn();
    }

    public static function __callStatic(string $name, array $arguments): int
    {
        return burn();
    }

    public function __get(string $name): int
    {
        return burn();
    }
}

class Temporary
{
    public function __destruct()
    {
        burn();
    }
}

class Failure extends \Exception
{
    public function __construct()
    {
        parent::__construct('failed');
        burn();
    }
}

class Many implements \IteratorAggregate, \Countable
{
    public function getIterator(): \Iterator
    {
        burn();
        return new \ArrayIterator([1, 2]);
    }

    public function count(): int
    {
        return burn();
    }
}

function items(): array
{
    return [new Item(3), new Item(1), new Item(2), new Item(5), new Item(4)];
}

function sorting(): void
{
    $items = items();
    usort($items, [Item::class, 'compare']);
}

function mapping(): void
{
    array_map(function (int $value): int {
        return burn() + $value;
    }, [1, 2, 3]);
}

function arrows(): void
{
    array_filter([1, 2, 3], fn(int $value): bool => burn() > $value);
}

function internal_mapping(): void
{
    array_map('strrev', [str_repeat('ab', 2000), str_repeat('cd', 2000)]);
}

function strings(): void
{
    strlen((string) new Item(1));
}

function magic(): void
{
    $item = new Item(1);
    $item->unknown();
    Item::unknown();
    $item->nothing;
}

function numbers(): \Generator
{
    for ($number = 0; $number < 3; $number++) {
        burn();
        yield $number;
    }
}

function generating(): void
{
    foreach (numbers() as $number) {
        burn();
    }
}

function delegating_numbers(): \Generator
{
    yield from numbers();
}

function delegating(): void
{
    foreach (delegating_numbers() as $number) {
        burn();
    }
}

function iterating(): void
{
    foreach (new Many() as $number) {
        burn();
    }
    count(new Many());
}

function evaluating(): void
{
    eval('\Work\burn();');
}

function including(): void
{
    include __DIR__ . '/included.php';
}

function thrower(): void
{
    throw new Failure();
}

function throwing(): void
{
    try {
        thrower();
    } catch (Failure $failure) {
        burn();
    } finally {
        burn();
    }
}

function holder(): void
{
    $temporary = new Temporary();
}

function destroying(): void
{
    holder();
}

function destroying_in_callbacks(): void
{
    array_map(function (int $value): void {
        $temporary = new Temporary();
    }, [1, 2]);
}

function replacing(): void
{
    preg_replace_callback('/a/', fn(array $found): string => (string) burn(), 'banana');
}

function autoload(string $class): void
{
    burn();
}

function loading(): void
{
    class_exists('Work\Missing');
}

function anonymous_class(): void
{
    $thing = new class {
        public function act(): int
        {
            return burn();
        }
    };
    $thing->act();
}

function fibers(): void
{
    $fiber = new \Fiber(function (): void {
        burn();
        \Fiber::suspend();
        burn();
    });
    $fiber->start();
    $fiber->resume();
}

spl_autoload_register('Work\autoload');

// A function that is written in C begins with `^`.
$chains = [
    ['sorting', '^usort', 'Item::compare', 'burn'],
    ['mapping', '^array_map', '{closure}', 'burn'],
    ['arrows', '^array_filter', '{closure}', 'burn'],
    ['internal_mapping', '^array_map', '^strrev'],
    ['strings', 'Item::__toString', 'burn'],
    ['magic', 'Item::__call', 'burn'],
    ['magic', 'Item::__callStatic', 'burn'],
    ['magic', 'Item::__get', 'burn'],
    ['generating', 'numbers', 'burn'],
    ['generating', 'burn'],
    ['delegating', 'delegating_numbers', 'numbers', 'burn'],
    ['delegating', 'burn'],
    ['iterating', 'Many::getIterator', 'burn'],
    ['iterating', 'burn'],
    ['iterating', '^count', 'Many::count', 'burn'],
    ['evaluating', '<file>', 'burn'],
    ['including', '<file>', 'included', 'burn'],
    ['throwing', 'thrower', 'Failure::__construct', 'burn'],
    ['throwing', 'burn'],
    ['destroying', 'holder', 'Temporary::__destruct', 'burn'],
    ['destroying_in_callbacks', '^array_map', '{closure}', 'Temporary::__destruct', 'burn'],
    ['replacing', '^preg_replace_callback', '{closure}', 'burn'],
    // Since 8.4, this function needs no frame.
    ['loading', ...(PHP_VERSION_ID < 80400 ? ['^class_exists'] : []), 'autoload', 'burn'],
    ['anonymous_class', 'class@anonymous::act', 'burn'],
    ['fibers', '^Fiber::start', '{closure}', 'burn'],
    ['fibers', '^Fiber::resume', '{closure}', 'burn'],
];
$rare = [
    ['sorting', 'items', 'Item::__construct'],
    ['internal_mapping', '^str_repeat'],
    ['strings', 'Item::__construct'],
    ['strings', '^strlen'],
    ['magic', 'Item::__construct'],
    ['magic', 'Item::unknown'],
    ['delegating', 'delegating_numbers'],
    ['iterating', 'Many::getIterator', '^ArrayIterator::__construct'],
    ['throwing', 'thrower', 'Failure::__construct', '^Exception::__construct'],
    // The function may be left already when what it held is destroyed.
    ['destroying', 'Temporary::__destruct', 'burn'],
    ['destroying_in_callbacks', '^array_map', 'Temporary::__destruct', 'burn'],
    ['fibers', '^Fiber::__construct'],
    ['fibers', '^Fiber::start', '{closure}', '^Fiber::suspend'],
    ['fibers', '^Fiber::resume', '{closure}', '^Fiber::suspend'],
];

function say(string $word, array $chains): void
{
    foreach ($chains as $chain) {
        $names = array_map(function (string $name): string {
            if ($name[0] === '^') {
                return substr($name, 1);
            }
            $is_global = $name[0] === '<' || $name === 'included' || str_starts_with($name, 'class@');
            return $is_global ? $name : "Work\\$name";
        }, $chain);
        echo "$word <file>;", implode(';', $names), "\n";
    }
}

echo "ready\n";
say('chain', $chains);
say('rare', $rare);
echo "end\n";
$ways = array_values(array_unique(array_column($chains, 0)));
while (true) {
    foreach ($ways as $way) {
        ("Work\\$way")();
    }
}
