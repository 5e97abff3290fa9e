<?php
/*
 * Stops at 50 places that chance chooses, and burns there; the interpreter's own account of its frames says what they are.
 *
 * First each place is visited once, to say its frames as a `chain FUNCTION;FUNCTION;…` line; then all of them again and again,
 * until it is killed.
 */

namespace Work;

const STOPS = 50;
const TURNS = 300000;

function said(array $call): string
{
    $name = $call['function'];
    if (str_contains($name, '{closure')) {
        return 'Work\{closure}';
    }
    if (in_array($name, ['include', 'eval'], true)) {
        return '<file>';
    }
    return isset($call['class']) ? "{$call['class']}::$name" : $name;
}

function stop(): void
{
    global $saying;
    if ($saying) {
        $names = array_map(said(...), array_reverse(debug_backtrace()));
        echo 'chain <file>;', implode(';', $names), "\n";
        return;
    }
    $sum = 0;
    for ($turn = 0; $turn < TURNS; $turn++) {
        $sum += $turn ^ ($sum & 7);
    }
}

function go(array $path): int
{
    if ($path === []) {
        stop();
    } else {
        $way = array_shift($path);
        $way($path);
    }
    return 0;
}

function by_call(array $path): void
{
    go($path);
}

function by_map(array $path): void
{
    array_map(fn(array $inner): int => go($inner), [$path]);
}

function by_usort(array $path): void
{
    $numbers = [2, 1];
    usort($numbers, fn(int $one, int $other): int => go($path));
}

function by_closure(array $path): void
{
    (function () use ($path): void {
        go($path);
    })();
}

function by_callable(array $path): void
{
    call_user_func('Work\go', $path);
}

function produced(array $path): \Generator
{
    yield go($path);
}

function by_generator(array $path): void
{
    foreach (produced($path) as $number) {
    }
}

function delegated(array $path): \Generator
{
    yield from produced($path);
}

function by_delegation(array $path): void
{
    iterator_to_array(delegated($path));
}

function by_eval(array $path): void
{
    eval('\Work\go($path);');
}

function by_include(array $path): void
{
    include __DIR__ . '/going.php';
}

function by_catch(array $path): void
{
    try {
        throw new \Exception();
    } catch (\Exception $exception) {
        go($path);
    }
}

function by_finally(array $path): void
{
    try {
        return;
    } finally {
        go($path);
    }
}

function by_replacing(array $path): void
{
    preg_replace_callback('/a/', fn(array $found): string => (string) go($path), 'a');
}

function by_reflection(array $path): void
{
    (new \ReflectionFunction('Work\go'))->invoke($path);
}

function by_fiber(array $path): void
{
    (new \Fiber(go(...)))->start($path);
}

class Base
{
    public function __construct(protected array $path) {}

    public function inherited(): void
    {
        go($this->path);
    }
}

class Holder extends Base implements \Countable
{
    public static function made(array $path): void
    {
        go($path);
    }

    public function __invoke(): void
    {
        go($this->path);
    }

    public function __toString(): string
    {
        return (string) go($this->path);
    }

    public function __call(string $name, array $arguments): int
    {
        return go($this->path);
    }

    public static function __callStatic(string $name, array $arguments): int
    {
        return go($arguments[0]);
    }

    public function __get(string $name): int
    {
        return go($this->path);
    }

    public function count(): int
    {
        return go($this->path);
    }

    public function inherited(): void
    {
        parent::inherited();
    }
}

function by_static(array $path): void
{
    Holder::made($path);
}

function by_object(array $path): void
{
    (new Holder($path))();
}

function by_string(array $path): void
{
    strlen((string) new Holder($path));
}

function by_magic(array $path): void
{
    (new Holder($path))->unknown();
}

function by_static_magic(array $path): void
{
    Holder::unknown($path);
}

function by_property(array $path): void
{
    (new Holder($path))->nothing;
}

function by_count(array $path): void
{
    count(new Holder($path));
}

function by_parent(array $path): void
{
    (new Holder($path))->inherited();
}

function visit(array $paths): void
{
    foreach ($paths as $path) {
        go($path);
    }
}

$ways = array_values(array_filter(get_defined_functions()['user'], fn(string $name): bool => str_starts_with($name, 'work\by_')));
mt_srand(7);
$paths = [];
for ($place = 0; $place < STOPS; $place++) {
    $path = [];
    for ($left = mt_rand(0, 11); $left > 0; $left--) {
        $path[] = $ways[mt_rand(0, count($ways) - 1)];
    }
    $paths[] = $path;
}
echo "ready\n";
$saying = true;
visit($paths);
$saying = false;
while (true) {
    visit($paths);
}
