# Two threads of perl's own, each with an interpreter, that work beside the first until the program is killed.
use strict;
use warnings;
use threads;

sub burn {
    my $sum = 0;
    $sum += $_ ^ ($sum & 7) for 1 .. 3000;
    return $sum;
}
sub compare { burn(); return 0 }
sub in_one { burn() while 1 }
sub in_two { my @sorted = sort compare 1, 2 while 1 }

$| = 1;
print "ready\n";
my @threads = (threads->create(\&in_one), threads->create(\&in_two));
print "chain $_\n" for 'main::in_one;main::burn', 'main::in_two;main::compare;main::burn', '<file>;main::burn';
burn() while 1;
