<?php
/*
 * One chain of calls, through C and a closure, for memory that is recorded. The chain is said from root to leaf, as PHP itself
 * has it; then the program runs until it is killed.
 */

namespace Work;

function burn(): void
{
    $names = [];
    foreach (debug_backtrace() as $call) {
        $name = isset($call['class']) ? "{$call['class']}::{$call['function']}" : $call['function'];
        array_unshift($names, $name);
    }
    echo 'chain <file>;', implode(';', $names), "\n";
    while (true) {
    }
}

class Worker
{
    public static function compare(int $one, int $other): int
    {
        $burn = fn () => burn();
        $burn();
        return $one <=> $other;
    }

    public function run(): void
    {
        $numbers = [2, 1];
        usort($numbers, [self::class, 'compare']);
    }
}

echo "ready\n";
(new Worker())->run();
