/* Programs that count what they do: programs NAME FILE SIZE.
 *
 * FILE of SIZE bytes is mapped: a 64-bit number for each thread, one more after each unit of work.
 * Units are small (a few milliseconds at most) and always the same work, so that units per second
 * are the program's true speed at any moment. Nothing is random but by a seed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define STREAM (4u << 20) /* doubles in each of three arrays: 32 MiB */
#define NODES (2u << 20)  /* nodes of one cache line each: 128 MiB */
#define CACHED (64u << 10) /* numbers of eight bytes: 512 KiB, within most second-level caches */
#define SORTED 8192
#define SIDE 96

static volatile uint64_t *beats;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void *room(size_t bytes) {
    void *found = malloc(bytes);
    if (!found)
        fail("malloc");
    memset(found, 1, bytes);
    return found;
}

static uint64_t next(uint64_t *state) { /* xorshift64 */
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static volatile uint64_t kept; /* so that no result may be left out */

static void integers(long times) {
    uint64_t x = 88172645463325252u;
    for (long i = 0; i < times; i++)
        next(&x);
    kept = x;
}

static void integer(void) {
    for (;; beats[0]++)
        integers(100000);
}

static void half(void) { /* a fixed piece of work, then a pause about as long */
    const struct timespec pause = {0, 5000000};
    for (;;) {
        for (int i = 0; i < 25; i++, beats[0]++)
            integers(100000);
        nanosleep(&pause, NULL);
    }
}

static void *products(void *place) {
    volatile uint64_t *own = place;
    double *a = room(3 * SIDE * SIDE * sizeof *a), *b = a + SIDE * SIDE, *c = b + SIDE * SIDE;
    for (int i = 0; i < SIDE * SIDE; i++)
        a[i] = i % 7, b[i] = i % 5, c[i] = 0;
    for (;; ++*own)
        for (int i = 0; i < SIDE; i++)
            for (int k = 0; k < SIDE; k++)
                for (int j = 0; j < SIDE; j++)
                    c[i * SIDE + j] = 0.5 * c[i * SIDE + j] + a[i * SIDE + k] * b[k * SIDE + j];
    return NULL;
}

static void matrix(void) { products((void *)beats); }

static void threads(void) {
    pthread_t second;
    if (pthread_create(&second, NULL, products, (void *)(beats + 1)))
        fail("pthread_create");
    products((void *)beats);
}

static void cached(void) {
    uint64_t *numbers = room(CACHED * sizeof *numbers), x = 42;
    for (;; beats[0]++)
        for (int i = 0; i < 100000; i++)
            numbers[next(&x) % CACHED] += x;
}

static void stream(void) {
    double *a = room(3ul * STREAM * sizeof *a), *b = a + STREAM, *c = b + STREAM;
    for (;;)
        for (size_t from = 0; from < STREAM; from += 65536, beats[0]++)
            for (size_t i = from; i < from + 65536; i++)
                a[i] = b[i] + 3.0 * c[i];
}

struct node {
    struct node *to;
    char rest[64 - sizeof(struct node *)];
};

static void chase(void) {
    struct node *nodes = room(NODES * sizeof *nodes), *at = nodes;
    uint32_t *order = room(NODES * sizeof *order);
    uint64_t x = 7;
    for (uint32_t i = 0; i < NODES; i++)
        order[i] = i;
    for (uint32_t i = NODES - 1; i > 0; i--) { /* Sattolo's shuffle: one cycle through all */
        uint32_t j = next(&x) % i, other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    for (uint32_t i = 0; i < NODES; i++)
        nodes[order[i]].to = &nodes[order[(i + 1) % NODES]];
    free(order);
    for (;; beats[0]++, kept = (uintptr_t)at)
        for (int i = 0; i < 5000; i++)
            at = at->to;
}

static int by_size(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void sort(void) {
    uint64_t *numbers = room(SORTED * sizeof *numbers);
    for (;; beats[0]++) {
        uint64_t x = 4711;
        for (int i = 0; i < SORTED; i++)
            numbers[i] = next(&x);
        qsort(numbers, SORTED, sizeof *numbers, by_size);
    }
}

static void files(void) { /* system calls and the page cache; the disk need not follow */
    char block[4096];
    FILE *file = tmpfile();
    if (!file)
        fail("tmpfile");
    memset(block, 7, sizeof block);
    for (;; beats[0]++)
        for (off_t at = 0; at < 256 * (off_t)sizeof block; at += (off_t)sizeof block)
            if (pwrite(fileno(file), block, sizeof block, at) != sizeof block ||
                pread(fileno(file), block, sizeof block, at) != sizeof block)
                fail("tmpfile");
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"integer", integer}, {"matrix", matrix}, {"cached", cached}, {"stream", stream}, {"chase", chase},
    {"sort", sort},       {"files", files},   {"half", half},     {"threads", threads},
};

int main(int count, char **words) {
    if (count != 4) {
        fprintf(stderr, "usage: programs NAME FILE SIZE\n");
        return 2;
    }
    int file = open(words[2], O_RDWR);
    if (file < 0)
        fail(words[2]);
    beats = mmap(NULL, strtoul(words[3], NULL, 10), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (beats == MAP_FAILED)
        fail("mmap");
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (!strcmp(programs[i].name, words[1]))
            programs[i].run();
    fprintf(stderr, "%s: no such program\n", words[1]);
    return 2;
}
