<?php
# A fiber, which hands over to the script and is resumed all the time. Until it is killed.

function inside(): void
{
    for ($turn = 0; $turn < 20000; $turn++) {
        $sum = sqrt($turn);
    }
}

$fiber = new Fiber(function (): void {
    while (true) {
        inside();
        Fiber::suspend();
    }
});
echo "ready\n";
$fiber->start();
while (true) {
    $fiber->resume();
}
