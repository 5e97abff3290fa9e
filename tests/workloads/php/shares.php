<?php
/*
 * Two phases that take 70 and 30 percent of the program's time by construction, through functions and callbacks: each round deals
 * that many equal slots in a random order, so no sampling rate can march in step. Until SIGTERM; then the measured truth as
 * `truth FUNCTION NANOSECONDS` lines.
 */

function burn(int $turns): int
{
    $sum = 0;
    for ($turn = 0; $turn < $turns; $turn++) {
        $sum += $turn ^ ($sum & 7);
    }
    return $sum;
}

function long_phase(): void
{
    burn(60000);
}

function short_phase(): void
{
    array_map(fn(int $slot): int => burn(60000), [0]);
}

function cpu_ns(): int
{
    $usage = getrusage();
    return ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) * 1000000000
        + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) * 1000;
}

function measured(string $phase): int
{
    $before = cpu_ns();
    $phase();
    return cpu_ns() - $before;
}

$stopped = false;
pcntl_async_signals(true);
pcntl_signal(SIGTERM, function () use (&$stopped) {
    $stopped = true;
});
$spent = ['long_phase' => 0, 'short_phase' => 0];
echo "ready\n";
while (!$stopped) {
    $slots = [...array_fill(0, 7, 'long_phase'), ...array_fill(0, 3, 'short_phase')];
    shuffle($slots);
    foreach ($slots as $phase) {
        $spent[$phase] += measured($phase);
    }
}
foreach ($spent as $phase => $nanoseconds) {
    echo "truth $phase $nanoseconds\n";
}
