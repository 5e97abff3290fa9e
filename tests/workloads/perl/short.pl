# Works for 20 milliseconds.
use Time::HiRes qw(time);

sub brief_work {
    my $end = time + 0.02;
    my $sum = 0;
    while (time < $end) {
        $sum += $_ ^ ($sum & 7) for 1 .. 100;
    }
}

brief_work();
