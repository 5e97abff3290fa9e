# Works on line 6 until it is killed, in a sub that line 14 calls.
$| = 1;

sub on_a_line {
    my $sum = 0;
    $sum += $_ ^ ($sum & 7) for 1 .. 1000;
    return $sum;
}

print "ready\n";

while (1) {

    on_a_line();
}
