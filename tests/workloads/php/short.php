<?php
/* Works for 20 ms of CPU time and ends. */

function brief_work(): void
{
    $end = hrtime(true) + 20000000;
    while (hrtime(true) < $end) {
    }
}

brief_work();
