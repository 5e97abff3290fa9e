<?php
/*
 * Makes closures, each at a line of its own, runs them for a moment and drops them, so that later ones lie where earlier ones
 * lay. Each calls another of its own line, so a stack in which the lines of two closures differ has a wrong one. Until it is
 * killed.
 */

const SOURCE = 'return function (): int { $tell = function (): int {'
    . ' for ($sum = 0, $turn = 0; $turn < 4000; $turn++) { $sum += $turn ^ ($sum & 7); } return $sum; }; return $tell(); };';

echo "ready\n";
for ($number = 0; true; $number = ($number + 1) % 1000) {
    $made = eval(str_repeat("\n", $number) . SOURCE);
    $made();
    unset($made);
}
