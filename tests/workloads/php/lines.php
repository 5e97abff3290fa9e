<?php
/* Burns on one line of a function that begins on another, until it is killed. */

function burn(): void
{
    $sum = 0;
    while (true) {
        for ($turn = 0; $turn < 100000; $turn++) { $sum += $turn ^ ($sum & 7); }
    }
}

echo "ready\n";
burn();
