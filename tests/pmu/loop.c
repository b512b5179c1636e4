/* A program whose instructions are known.
 *
 * usage: loop COUNT THREADS CHILDREN
 *
 * Its thread i (0: main) executes (i + 1) times COUNT instructions and, once all are done, each of
 * its children COUNT. It begins when a byte comes on standard input, says "done" when all is done,
 * and ends when standard input does: so that counters can be opened before and read after. What it
 * executes beside the loop, in libc, is some thousand instructions.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long count;
static pthread_barrier_t begin;

/* Two instructions a turn. */
static void spin(unsigned long instructions)
{
    unsigned long turns = instructions / 2;
#if defined(__x86_64__)
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(turns) : : "cc");
#elif defined(__aarch64__)
    __asm__ volatile("1: subs %0, %0, #1\n b.ne 1b" : "+r"(turns) : : "cc");
#else
#error "x86-64 or AArch64 is expected"
#endif
}

static void *thread(void *number)
{
    pthread_barrier_wait(&begin);
    spin((1 + (unsigned long)number) * count);
    return NULL;
}

static void say(const char *word)
{
    puts(word);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    unsigned long threads = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    pthread_t others[64];
    char byte;

    count = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
    if (count < 2 || threads < 1 || threads > 64) {
        fputs("usage: loop COUNT THREADS CHILDREN, COUNT from 2 and 1 to 64 threads\n", stderr);
        return 2;
    }
    pthread_barrier_init(&begin, NULL, (unsigned)threads);
    for (unsigned long i = 1; i < threads; i++)
        pthread_create(&others[i], NULL, thread, (void *)i);
    say("ready");
    if (read(0, &byte, 1) != 1)
        return 1;
    thread((void *)0);
    for (unsigned long i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    for (long child = strtol(argv[3], NULL, 10); child > 0; child--)
        if (fork() == 0) {
            spin(count);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    say("done");
    while (read(0, &byte, 1) > 0)
        ;
    return 0;
}
