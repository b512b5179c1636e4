/* What a job's own environment is told on the node. */
#ifndef PLIANT_ENVIRONMENT_H
#define PLIANT_ENVIRONMENT_H

#include <stdint.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

#include "run.h"
#include "settings.h"

/* Set PLIANT_* and, in the batch script, make the SLURM_* sizes those of this run. */
void tell_job(spank_t spank, const struct settings *settings, const struct said *said);

/* Take the PLIANT_* of tell_job() from a batch script that says nothing to Pliant: they are those of
 * the job that submitted it, on a host without this plugin. */
void forget_told(spank_t spank);

#endif
