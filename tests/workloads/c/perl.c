/* Runs a Perl program by a perl that is linked into this one, as perlembed says. */
#include <EXTERN.h>
#include <perl.h>

int main(int argc, char **argv, char **env) {
    PERL_SYS_INIT3(&argc, &argv, &env);
    PerlInterpreter *my_perl = perl_alloc();
    perl_construct(my_perl);
    PL_exit_flags |= PERL_EXIT_DESTRUCT_END;
    int failed = perl_parse(my_perl, NULL, argc, argv, NULL) || perl_run(my_perl);
    perl_destruct(my_perl);
    perl_free(my_perl);
    PERL_SYS_TERM();
    return failed;
}
