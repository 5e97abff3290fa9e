# Two phases that take 70 and 30 percent of the program's time by construction, through subs and callbacks. Until SIGTERM; then
# the measured truth as `truth FUNCTION NANOSECONDS` lines.
use strict;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID);

sub burn {
    my ($turns) = @_;
    my $sum = 0;
    for my $turn (1 .. $turns) {
        $sum += $turn ^ ($sum & 7);
    }
    return $sum;
}

sub long_phase {
    burn(20000) for 1 .. 7;
}

sub short_phase {
    for (1 .. 3) {
        my @sorted = sort { burn(20000); $a <=> $b } 1, 2;
    }
}

my $stopped = 0;
$SIG{TERM} = sub { $stopped = 1 };
my %phases = (long_phase => \&long_phase, short_phase => \&short_phase);
my %spent;
$| = 1;
print "ready\n";
while (!$stopped) {
    for my $phase ('long_phase', 'short_phase') {
        my $before = clock_gettime(CLOCK_PROCESS_CPUTIME_ID);
        $phases{$phase}->();
        $spent{$phase} += clock_gettime(CLOCK_PROCESS_CPUTIME_ID) - $before;
    }
}
printf "truth main::%s %d\n", $_, $spent{$_} * 1e9 for sort keys %spent;
