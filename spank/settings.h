/* The plugin's arguments, behind its path in plugstack.conf. */
#ifndef PLIANT_SETTINGS_H
#define PLIANT_SETTINGS_H

#include <stdbool.h>

struct settings {
    bool off;    /* off: any value is taken as it is */
    long shards; /* shards=N: into how many shards a GPU is divided; 0: not said */
    long cores;  /* cores=N: the CPUs that Slurm counts on a node; 0: as the kernel counts */
};

void read_settings(struct settings *settings, int argc, char *argv[]);

#endif
