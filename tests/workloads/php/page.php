<?php
/* The page that a FastCGI worker is asked for: at least two seconds of CPU time. */

class Page
{
    public static function render(): void
    {
        do {
            for ($turn = 0; $turn < 100000; $turn++) {
            }
            $used = getrusage();
        } while ($used["ru_utime.tv_sec"] + $used["ru_stime.tv_sec"] < 2);
    }
}

Page::render();
