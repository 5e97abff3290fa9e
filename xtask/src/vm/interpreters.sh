#!/bin/busybox sh
# Starts interpreters, each of which works in a function of its own until it is killed, and prints their process IDs. Python
# comes later than the others.

run() {
    "$@" >/dev/null 2>&1 &
    echo $!
}

lua='function work() local t = 0 for i = 1, 1000 do t = t + i % 7 end return t end while true do work() end'
run lua5.4 -e "$lua"
run luajit -joff -e "$lua"
run perl -e 'sub work { my $t = 0; $t += $_ % 7 for 1 .. 1000; $t } work() while 1'
run php -n -r 'function work() { for ($t = $i = 0; $i < 1000; $i++) $t += $i % 7; return $t; } while (true) work();'
run ruby --disable=gems -e 'def work; t = i = 0; while i < 1000; t += i % 7; i += 1; end; t; end; work while true'
run sh -c 'sleep 9; exec python3 -S -E -c "
def work():
    t = 0
    for i in range(1000): t += i % 7
    return t
while True: work()"'
