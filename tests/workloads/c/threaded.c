/* A thread that burns CPU, in `thread_main;thread_work;burn`, while `main` waits for it. */
#include "workload.h"
#include <pthread.h>

FRAME void thread_work(void)
{
    burn(100000);
    __asm__ volatile("");
}

FRAME void *thread_main(void *nothing)
{
    while (!stopped)
        thread_work();
    return nothing;
}

int main(void)
{
    pthread_t thread;
    announce("");
    if (pthread_create(&thread, NULL, thread_main, NULL))
        return 1;
    return pthread_join(thread, NULL);
}
