<?php
/* Burns below as many calls as the first argument says, until it is killed. */

function burn(): void
{
    while (true) {
    }
}

function descend(int $left): void
{
    if ($left === 0) {
        burn();
    }
    descend($left - 1);
}

echo "ready\n";
descend((int) $argv[1]);
