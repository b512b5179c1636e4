/* Pliant's SPANK plugin: the options of sbatch, salloc and srun, and the truth in the job.
 *
 *   sbatch, salloc, srun   init: register the options        option: refuse a malformed value
 *   slurmstepd             option: remember what was said    task_init: environment.c
 *
 * The options travel to slurmctld and to the node by themselves (spank(8)); nothing else is sent.
 * In a job nothing here may fail: what goes wrong on a node is a debug message.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

#include "client.h"
#include "environment.h"
#include "grammar.h"

SPANK_PLUGIN(pliant, 1)

enum { NO_VALUE = 0, VALUE = 1, MAYBE_VALUE = 2 }; /* struct spank_option's has_arg */

static int on_option(int val, const char *value, int remote);

/* --class is the grammar's job-class: --job-class would make --job, which many scripts write for
 * --job-name, ambiguous to getopt and have sbatch refuse them. */
static const char *const words[] = {"moldable",   "malleable", "job-class",
                                    "throughput", "steps",     "colocate"};
static struct spank_option options[] = {
    {"moldable", "SPEC", "shapes the job may run as: gpus=1-4,nodes=1-2", VALUE, 0, on_option},
    {"malleable", "SPEC", "may be resized; alone, or with grace=2m,max-resizes=5,min-run=2h ...", MAYBE_VALUE, 1, on_option},
    {"class", "CLASS", "trial or best-effort", VALUE, 2, on_option},
    {"throughput", "SPEC", "steps per second by shape: 1:5.2,2x4:16.9", VALUE, 3, on_option},
    {"steps", "N", "how many steps the job takes", VALUE, 4, on_option},
    {"colocate", "no", "may share a node or a GPU; no: may not", MAYBE_VALUE, 5, on_option},
};
enum { OPTION_COUNT = sizeof options / sizeof *options };

static struct settings settings;
static struct said said;

/* Refuse a malformed value, by the flag's own name where the grammar's begins the text, and end the
 * client: after a callback that returns an error Slurm prints the value once more, raw, newlines
 * and all. */
static void refuse(int val, const struct why *why)
{
    size_t size = strlen(words[val]);
    bool named = strncmp(why->text, words[val], size) == 0;

    slurm_error("pliant: %s%s", named ? options[val].name : "", why->text + (named ? size : 0));
    exit(EXIT_FAILURE);
}

/* A step takes its job's options from its environment: they were accepted when the job was
 * submitted, and must not end the step now. */
static int on_option(int val, const char *value, int remote)
{
    struct why why;

    value = plain_value(value);
    if (remote) {
        remember(&said, words[val], value);
        return 0;
    }
    if (settings.off)
        return 0;
    if (spank_context() == S_CTX_ALLOCATOR)
        forget_outer_run();
    if (!is_inherited(options[val].name, value) && !check_option(words[val], value, &why))
        refuse(val, &why);
    return 0;
}

int slurm_spank_init(spank_t spank, int argc, char *argv[])
{
    bool new_job = spank_context() == S_CTX_ALLOCATOR;

    read_settings(&settings, argc, argv);
    if (new_job)
        forget_outer_job();
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (new_job)
            forget_outer_option(options[i].name);
        if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS)
            slurm_debug("pliant: --%s could not be registered", options[i].name);
    }
    return 0;
}

int slurm_spank_task_init(spank_t spank, int argc, char *argv[])
{
    (void)argc;
    (void)argv;
    if (said.anything)
        tell_job(spank, &settings, &said);
    else
        forget_told(spank);
    return 0;
}
