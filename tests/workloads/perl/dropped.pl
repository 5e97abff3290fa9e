# Runs a thousand strings a second, each of which makes a sub with a name of its own, which calls another, and drops both. The
# sub `made_N` calls `tell_N`, and the number of its string stays N behind that of the string. So a stack in which these numbers
# do not go together has a wrong name. Until it is killed.
use strict;
use warnings;

$| = 1;
print "ready\n";
for (my $number = 0; ; $number++) {
    eval qq{
        package Made;
        sub tell_$number { my \$sum = 0; \$sum += \$_ ^ (\$sum & 7) for 1 .. 16000; return \$sum }
        sub made_$number { my \@told = tell_$number(); return \@told }
        made_$number();
        1;
    } or die \$@;
    delete @Made::{"tell_$number", "made_$number"};
}
