# Every way in which one sub of Perl comes to run another, one after the other. First the call chains that there are, and that
# there may be, are said as `chain FUNCTION;FUNCTION;…` and `rare FUNCTION;…` lines from root to leaf, behind `ready`; then the
# program runs until it is killed. Where a function that Perl's C code calls runs, it stands behind the one that has it called.
use strict;
use warnings;
use feature qw(try defer);
no warnings qw(experimental::try experimental::defer);
use Digest::MD5 qw(md5);
use FindBin;
use List::Util qw(first reduce);

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
sub reduced { my $sum = reduce { burn() } 1, 2 }
my $bytes = 'a' x 100_000;
sub digested { md5($bytes) }

package Holder { sub work { main::burn() } }
sub by_method { Holder->work }
sub by_lexical_sub {
    my sub inner { burn() }
    inner();
}
package Handle { sub TIEHANDLE { return bless [] } sub PRINT { main::burn() } }
tie *HANDLE, 'Handle';
sub printed { print HANDLE 'a' }
package Callable { use overload '&{}' => \&code; sub code { main::burn(); return \&main::burn } }
my $callable = bless [], 'Callable';
sub by_code { $callable->() }
sub by_warning { local $SIG{__WARN__} = sub { burn() }; warn "no\n" }
sub by_death { local $SIG{__DIE__} = sub { burn() }; eval { die "no\n" } }
sub by_try { try { burn() } catch ($error) { die $error } }
sub by_catch { try { die "no\n" } catch ($error) { burn() } }
sub by_defer { defer { burn() } }
sub by_begin { eval 'BEGIN { burn() } 1' or die $@ }
package Imported { sub import { main::burn() } $INC{'Imported.pm'} = 1 }
sub by_import { eval 'use Imported; 1' or die $@ }
sub by_hook { local @INC = (sub { burn(); return }); eval { require Not::There } }
format PAGE =
@>>>>>>>
burn()
.
open my $page, '>', '/dev/null' or die;
select((select($page), $~ = 'PAGE')[0]);
sub written { write $page }

my @chains = (
    'by_sub;compare;burn', 'by_block;burn', 'by_call;compare;burn', 'by_pattern;burn',
    'eval_in_sort;guarded;burn', 'eval_in_sort_block;burn', 'eval_block;burn',
    'eval_string;(eval);burn', 'string_in_sort;guarded_string;(eval);burn', 'require_file;<file>;burn',
    'call_anonymous;__ANON__;burn', 'fetch_tied;Tied::FETCH;burn', 'overloaded;Number::add;burn',
    'destroyed;Temporary::DESTROY;burn', 'autoloaded;Loaded::AUTOLOAD;burn', 'substitute;burn',
    'signaled;on_signal;burn', 'replaced;__ANON__;burn', 'go;burn', 'callback;__ANON__;burn',
    'reduced;__ANON__;burn', 'digested', 'by_method;Holder::work;burn', 'by_lexical_sub;inner;burn',
    'printed;Handle::PRINT;burn', 'by_code;Callable::code;burn', 'by_code;burn', 'by_warning;__ANON__;burn', 'by_death;__ANON__;burn',
    'by_try;burn', 'by_catch;burn', 'by_defer;burn', 'by_begin;(eval);BEGIN;burn',
    'by_import;(eval);BEGIN;Imported::import;burn', 'by_hook;__ANON__;burn', 'written;PAGE;burn',
);
# Classes are of 5.38.
if ($] >= 5.038) {
    eval q{
        use feature 'class';
        no warnings 'experimental::class';
        class Point { field $x = main::burn(); method length { main::burn() } ADJUST { main::burn() } }
        sub by_class { Point->new->length }
    1} or die $@;
    push @chains, 'by_class;Point::__ANON__;burn', 'by_class;Point::length;burn';
}
$| = 1;
print "ready\n";
for my $chain (@chains) {
    print 'chain <file>;', join(';', map { /::|[<(]/ ? $_ : "main::$_" } split /;/, $chain), "\n";
}
print "rare <file>;main::go;main::forwarded\n";
my %is_there;
my @subs = do { no strict 'refs'; map { /^(\w+)/; $is_there{$1}++ ? () : \&{$1} } @chains };
while (1) {
    $_->() for @subs;
}
