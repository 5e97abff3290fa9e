# As late.py: `work` uses the CPU, waits, makes system calls, asks for memory.
#
# late.pl SECONDS
use strict;
use warnings;
use Time::HiRes qw(sleep time);

sub work {
    my $total = 0;
    $total += $_ ^ ( $total & 7 ) for 1 .. 20000;
    sleep 0.001;
    getppid;
    my $memory = 'x' x 300_000;
    return $total + length $memory;
}

my $end = time + $ARGV[0];
work() while time < $end;
