<?php
/* What a FastCGI worker is asked for: two seconds of work. */

class Page
{
    public static function render(): void
    {
        $end = hrtime(true) + 2000000000;
        while (hrtime(true) < $end) {
        }
    }
}

Page::render();
