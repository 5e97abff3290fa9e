# Perl: counting, sorting and rewriting words.
prepare() {
    cat > words.pl <<'END'
use strict;
use warnings;
no warnings 'recursion';
my @words = map { join '', map { chr(97 + ($_ * 7919 + $_[0] // 0) % 26) } ($_ .. $_ + $_ % 9 + 2) } 1 .. 20000;
sub depth { my $n = shift; return $n ? 1 + depth($n - 1) : 0 }
while (1) {
    my %count;
    $count{$_}++ for @words;
    my @sorted = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
    my $text = join ' ', @sorted;
    $text =~ s/([aeiou]+)([^aeiou ]*)/$2$1/g;
    my @long = grep { /(.).*\1/ } split / /, $text;
    depth(200);
    my $packed = pack 'N*', map { length } @long;
    my %copy = map { $_ => [split //] } @long;
}
END
}
work() { exec perl words.pl; }
