/* What a run is: its size as the node knows it, and its shape in the words of the grammar. */
#ifndef PLIANT_RUN_H
#define PLIANT_RUN_H

#include <stdbool.h>

#include "settings.h"
#include "values.h"

enum { SHAPE_SIZE = 256 };

struct run {
    long nodes;
    long tasks; /* 0: nobody said how many */
    long cpus;  /* of the job, on this node */
    long gpus;  /* on this node; 1 for a share */
    long shards;
    long restarts;
    long share; /* 1/share of a GPU; 1: whole GPUs or none; 0: a share, but not known which */
};

/* What reached the node of the job's options. */
struct said {
    bool anything;
    char moldable[MAX_VALUE + 1]; /* well formed, or empty */
};

void remember(struct said *said, const char *option, const char *value);

/* Find the share of a run that has shards. */
void read_share(struct run *run, const struct settings *settings);

/* gpu, cpu or both. */
const char *run_type(const struct run *run, const struct settings *settings,
                     const struct said *said);

/* 4, 2x4, 1/4, 1x0@cpu, 2@a100:both. The GPU type stands where the request names one alone. */
void write_shape(char text[SHAPE_SIZE], const struct run *run, const char *type,
                 const struct said *said);

#endif
