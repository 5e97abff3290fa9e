# Forks ten children, one after the other, each of which works for 20 milliseconds in a sub that only children run.
use strict;
use warnings;
use Time::HiRes qw(time);

sub in_child {
    my $end = time + 0.02;
    my $sum = 0;
    while (time < $end) {
        $sum += $_ ^ ($sum & 7) for 1 .. 100;
    }
}

sub spawn {
    my $child = fork // die "$!\n";
    if (!$child) {
        in_child();
        exit;
    }
    waitpid $child, 0;
}
spawn() for 1 .. 10;
