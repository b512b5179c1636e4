/* sbatch, salloc and srun that run inside a job, and what they find of it in their environment. */
#ifndef PLIANT_CLIENT_H
#define PLIANT_CLIENT_H

#include <stdbool.h>

/* Take away what belongs to the outer job alone, so that the new one says only what its own owner
 * wrote: Slurm would hand the options on. */
void forget_outer_job(void);
void forget_outer_option(const char *option);

/* Take away what Slurm sets anew in jobs that were restarted and in steps alone. Of jobs that say
 * something to Pliant: all others find what they find without it. */
void forget_outer_run(void);

/* Whether Slurm took the value of an option from the job that this client runs in. */
bool is_inherited(const char *option, const char *value);

/* Slurm hands an absent optional value on as NULL, as "" or as "(null)". */
const char *plain_value(const char *value);

#endif
