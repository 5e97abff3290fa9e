# One chain of calls, through C, an eval and a closure, for memory that is recorded. The chain is said from root to leaf, as perl
# itself has it, but for blocks; then the program runs until it is killed.

use strict;
use warnings;

package Worker;

sub burn {
    my @names;
    for (my $level = 0; my @caller = caller($level); $level++) {
        unshift @names, $caller[3] unless $caller[3] eq '(eval)';
    }
    print 'chain <file>;', join(';', @names), "\n";
    while (1) { }
}

sub run {
    my ($self) = @_;
    my $closure = sub { eval { burn() } };
    my $text = 'a';
    $text =~ s/a/$closure->()/e;
    return $text;
}

sub DESTROY {
    my ($self) = @_;
    $self->run();
}

package main;

$| = 1;
print "ready\n";
my $worker = bless {}, 'Worker';
undef $worker;
