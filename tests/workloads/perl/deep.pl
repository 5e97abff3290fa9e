# Calls a sub in itself, as deep as the argument says, and works there until it is killed.
no warnings 'recursion';

sub descend {
    my ($left) = @_;
    return descend($left - 1) if $left > 0;
    my $sum = 0;
    $sum += $_ ^ ($sum & 7) while ++$_;
}

$| = 1;
print "ready\n";
descend($ARGV[0]);
