#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* sbatch and salloc leave each option in the job under this name (spank(8)); salloc's shell has it
 * without the first prefix too. */
static const char PREFIX[] = "SLURM_SPANK_";
static const char *name_in_job(const char *option, char name[128])
{
    snprintf(name, 128, "%s_SLURM_SPANK_OPTION_pliant_%s", PREFIX, option);
    return name;
}

const char *plain_value(const char *value)
{
    return value && strcmp(value, "(null)") != 0 ? value : "";
}

bool is_inherited(const char *option, const char *value)
{
    char name[128];
    const char *known = getenv(name_in_job(option, name));

    return known && getenv("SLURM_JOB_ID") && strcmp(plain_value(known), value) == 0;
}

void forget_outer_option(const char *option)
{
    char name[128];

    if (!getenv("SLURM_JOB_ID"))
        return;
    unsetenv(name_in_job(option, name));
    unsetenv(name + strlen(PREFIX));
}

/* Only a directory that `pliant run` chose for its own job: JOB:DIRECTORY says so. */
static void forget_outer_directory(void)
{
    const char *directory = getenv("PLIANT_CHECKPOINT_DIR");
    const char *chosen = getenv("PLIANT_CHECKPOINT_DIR_OF");
    const char *colon = chosen ? strchr(chosen, ':') : NULL;

    if (directory && colon && strcmp(colon + 1, directory) == 0)
        unsetenv("PLIANT_CHECKPOINT_DIR");
    unsetenv("PLIANT_CHECKPOINT_DIR_OF");
}

void forget_outer_job(void)
{
    static const char *const names[] = {
        "PLIANT_SHAPE", "PLIANT_GPUS",          "PLIANT_NODES",               "PLIANT_TYPE",
        "PLIANT_SHARE", "PLIANT_RESTART_COUNT", "PLIANT_CHECKPOINT_REQUESTED"};

    if (!getenv("SLURM_JOB_ID"))
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    forget_outer_directory();
}

void forget_outer_run(void)
{
    if (!getenv("SLURM_JOB_ID"))
        return;
    unsetenv("SLURM_RESTART_COUNT");
    unsetenv("SLURM_STEP_NUM_TASKS");
}
