# Every way in which one sub of Perl comes to run another, one after the other. First the call chains that there are, and that
# there may be, are said as `chain FUNCTION;FUNCTION;…` and `rare FUNCTION;…` lines from root to leaf, behind `ready`; then the
# program runs until it is killed. Where a function that Perl's C code calls runs, it stands behind the one that has it called.
use strict;
use warnings;
use FindBin;
use List::Util qw(first);

sub burn {
    my $sum = 0;
    $sum += $_ ^ ($sum & 7) for 1 .. 3000;
    return $sum;
}

sub compare { burn(); return $a <=> $b }
sub by_sub { my @sorted = sort compare 1, 2, 3 }
sub by_block { my @sorted = sort { burn(); $a <=> $b } 1, 2, 3 }
sub by_call { my @sorted = sort { compare() } 1, 2, 3 }
sub by_pattern { 'ab' =~ /a(?{ burn() })b/ }
sub guarded { eval { burn() }; return $a <=> $b }
sub eval_in_sort { eval { my @sorted = sort guarded 1, 2, 3 } }
sub eval_in_sort_block { my @sorted = sort { eval { burn() }; $a <=> $b } 1, 2, 3 }
sub eval_block { eval { eval { burn() }; die "no\n" } }
sub eval_string { eval 'burn(); 1' or die $@ }
sub guarded_string { eval 'burn(); 1' or die $@; return $a <=> $b }
sub string_in_sort { my @sorted = sort guarded_string 1, 2 }
sub require_file { delete $INC{'Required.pm'}; require "$FindBin::Bin/Required.pm"; delete $INC{"$FindBin::Bin/Required.pm"} }

my $anonymous = sub { burn() };
sub call_anonymous { $anonymous->() }

package Tied { sub TIESCALAR { return bless [] } sub FETCH { main::burn() } }
tie my $tied, 'Tied';
sub fetch_tied { my $copy = $tied }

package Number { use overload '+' => \&add; sub add { main::burn() } }
my $number = bless [], 'Number';
sub overloaded { my $sum = $number + 1 }

package Temporary { sub DESTROY { eval { main::burn() } } }
sub destroyed { my $temporary = bless [], 'Temporary'; undef $temporary }

package Loaded { our $AUTOLOAD; sub AUTOLOAD { main::burn() } }
sub autoloaded { Loaded::unknown() }

sub substitute { (my $text = 'ab') =~ s/(.)/burn(); 'c'/ge }
sub on_signal { eval { burn() } }
$SIG{USR1} = \&on_signal;
sub signaled { kill USR1 => $$ }
sub replaced { no warnings 'redefine'; local *burning = sub { burn() }; burning() }
sub burning { die }
sub forwarded { goto &burn }
sub go { forwarded() }
sub callback { my $found = first { burn(); 0 } 1, 2 }

my @chains = (
    'by_sub;compare;burn', 'by_block;burn', 'by_call;compare;burn', 'by_pattern;burn',
    'eval_in_sort;guarded;burn', 'eval_in_sort_block;burn', 'eval_block;burn',
    'eval_string;(eval);burn', 'string_in_sort;guarded_string;(eval);burn', 'require_file;<file>;burn',
    'call_anonymous;__ANON__;burn', 'fetch_tied;Tied::FETCH;burn', 'overloaded;Number::add;burn',
    'destroyed;Temporary::DESTROY;burn', 'autoloaded;Loaded::AUTOLOAD;burn', 'substitute;burn',
    'signaled;on_signal;burn', 'replaced;__ANON__;burn', 'go;burn', 'callback;__ANON__;burn',
);
$| = 1;
print "ready\n";
for my $chain (@chains) {
    print 'chain <file>;', join(';', map { /::|[<(]/ ? $_ : "main::$_" } split /;/, $chain), "\n";
}
print "rare <file>;main::go;main::forwarded\n";
my @subs = do { no strict 'refs'; map { /^(\w+)/; \&{$1} } @chains };
while (1) {
    $_->() for @subs;
}
