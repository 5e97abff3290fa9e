<?php
/* Included by chains.php, again and again. */

if (!function_exists('included')) {
    function included(): void
    {
        Work\burn();
    }
}
included();
