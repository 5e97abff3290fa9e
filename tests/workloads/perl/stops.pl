# Stops at 50 places that chance chooses, and burns there; what `caller` says in a signal's handler there is the truth. First each
# place is visited once, to say its subs as a `chain FUNCTION;FUNCTION;…` line from root to leaf; then all of them again and
# again, until it is killed.
use strict;
use warnings;
use List::Util qw(first reduce);
use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID);

use constant { STOPS => 50, SECONDS => 0.02 };

# A sub of Time::HiRes, unlike the function that reads the clock.
my $clock = CLOCK_PROCESS_CPUTIME_ID;
my $is_saying = 1;
my $said = 0;

# Blocks of `eval` have no frame, and the newest is the handler's own.
sub on_signal {
    my @names;
    for (my $level = 1; my @caller = caller($level); $level++) {
        my ($sub, $text, $is_require) = @caller[3, 6, 7];
        next if $sub eq '(eval)' && !defined $text;
        push @names, $sub ne '(eval)' ? $sub : $is_require ? '<file>' : '(eval)';
    }
    print 'chain ', join(';', '<file>', reverse @names), "\n";
    $said++;
}
$SIG{USR1} = \&on_signal;

sub stop {
    if ($is_saying) {
        kill USR1 => $$;
        return;
    }
    my $end = clock_gettime($clock) + SECONDS;
    my $sum = 0;
    while (clock_gettime($clock) < $end) {
        $sum += $_ ^ ($sum & 7) for 1 .. 1000;
    }
}

my @path;
sub go {
    my $way = shift @path or return stop();
    $way->();
}

sub compare { go(); return 0 }
sub guarded { eval { go() }; return 0 }

package Tied { sub TIEHASH { return bless {} } sub FETCH { main::go() } sub STORE { main::go() } }
tie my %tied, 'Tied';
package Number {
    use overload '""' => \&text, '<=>' => \&order;
    sub text { main::go(); return '' }
    sub order { main::go(); return 0 }
}
package Temporary { sub DESTROY { main::go() } }
package Loaded { our $AUTOLOAD; sub AUTOLOAD { main::go() } }

sub by_call { go() }
sub by_goto { goto &go }
sub by_sort { my @sorted = sort compare 1, 2 }
sub by_sort_block { my @sorted = sort { go(); 0 } 1, 2 }
sub by_guarded_sort { eval { my @sorted = sort guarded 1, 2 } }
sub by_guarded_sort_block { my @sorted = sort { eval { go() }; 0 } 1, 2 }
sub by_eval { eval { eval { go() } } }
sub by_string { eval 'go()' }
sub by_string_in_string { eval q{eval 'go()'} }
sub by_fetch { my $copy = $tied{a} }
sub by_store { $tied{a} = 1; return }
sub by_text { my $number = bless [], 'Number'; my $text = "$number" }
sub by_order { my @sorted = sort { $a <=> $b } bless([], 'Number'), bless([], 'Number') }
sub by_destroy { my $temporary = bless [], 'Temporary'; undef $temporary }
sub by_autoload { Loaded::unknown() }
sub by_method { Loaded->another() }
sub by_substitution { (my $text = 'a') =~ s/(a)/go(); 'b'/e }
sub by_pattern { 'ab' =~ /a(?{ go() })b/ }
sub by_first { my $found = first { go(); 1 } 1 }
sub by_reduce { my $sum = reduce { go(); 1 } 1, 2 }
sub by_map { my @made = map { go() } 1 }
# perl calls no handler that runs already, so each is one of its own.
sub by_death { my $go = \&go; local $SIG{__DIE__} = sub { $go->() }; eval { die "stop\n" } }
sub by_local { no warnings 'redefine'; local *replaced = sub { go() }; replaced() }
sub replaced { die }

my @ways = (
    \&by_call, \&by_goto, \&by_sort, \&by_sort_block, \&by_guarded_sort, \&by_guarded_sort_block, \&by_eval, \&by_string,
    \&by_string_in_string, \&by_fetch, \&by_store, \&by_text, \&by_order, \&by_destroy, \&by_autoload, \&by_method,
    \&by_substitution, \&by_pattern, \&by_first, \&by_reduce, \&by_map, \&by_death, \&by_local,
);
srand 7;
my @paths = map { [map { $ways[rand @ways] } 1 .. int rand 12] } 1 .. STOPS;

sub visit {
    for my $path (@paths) {
        @path = @$path;
        go();
    }
}

$| = 1;
print "ready\n";
visit();
die "$said stops\n" if $said != STOPS;
$is_saying = 0;
visit() while 1;
