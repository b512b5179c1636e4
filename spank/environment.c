#include "environment.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 256 };

static bool get(spank_t spank, const char *name, char text[TEXT])
{
    return spank_getenv(spank, name, text, TEXT) == ESPANK_SUCCESS;
}

static bool has(spank_t spank, const char *name)
{
    char text[TEXT];
    spank_err_t error = spank_getenv(spank, name, text, TEXT);

    return error == ESPANK_SUCCESS || error == ESPANK_NOSPACE;
}

static void put(spank_t spank, const char *name, const char *text)
{
    if (spank_setenv(spank, name, text, 1) != ESPANK_SUCCESS)
        slurm_debug("pliant: %s=%s could not be set", name, text);
}

static void put_number(spank_t spank, const char *name, long number)
{
    char text[32];

    snprintf(text, sizeof text, "%ld", number);
    put(spank, name, text);
}

static long get_number(spank_t spank, const char *name, long otherwise)
{
    char text[TEXT], *end;
    long number;

    if (!get(spank, name, text) || *text < '0' || *text > '9')
        return otherwise;
    errno = 0;
    number = strtol(text, &end, 10);
    return errno || *end ? otherwise : number;
}

static bool is_batch(spank_t spank)
{
    uint32_t step = 0;

    return spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
           step == SLURM_BATCH_SCRIPT;
}

static bool read_run(spank_t spank, const struct settings *settings, struct run *run)
{
    uint32_t tasks = 0;

    run->nodes = get_number(spank, "SLURM_NNODES", 0);
    run->cpus = get_number(spank, "SLURM_CPUS_ON_NODE", 0);
    run->gpus = get_number(spank, "SLURM_GPUS_ON_NODE", 0);
    run->shards = get_number(spank, "SLURM_SHARDS_ON_NODE", 0);
    run->restarts = get_number(spank, "SLURM_RESTART_COUNT", 0);
    run->tasks = spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &tasks) == ESPANK_SUCCESS
                     ? (long)tasks
                     : 0;
    read_share(run, settings);
    return run->nodes > 0;
}

/* ---- PLIANT_* ---- */

static void tell_shape(spank_t spank, const struct run *run, const struct settings *settings,
                       const struct said *said)
{
    const char *type = run_type(run, settings, said);
    char shape[SHAPE_SIZE];

    put(spank, "PLIANT_TYPE", type);
    put_number(spank, "PLIANT_NODES", run->nodes);
    put_number(spank, "PLIANT_GPUS", run->nodes * run->gpus);
    put_number(spank, "PLIANT_RESTART_COUNT", run->restarts);
    if (!run->share) {
        slurm_debug("pliant: a share of unknown size: plugstack.conf needs shards=N");
        return;
    }
    write_shape(shape, run, type, said);
    put(spank, "PLIANT_SHAPE", shape);
    put_number(spank, "PLIANT_SHARE", run->share);
}

/* ---- SLURM_*: what sbatch wrote at submission and srun reads in the job ---- */

/* Whether -n is less than --ntasks-per-node comes to on these very nodes, which Slurm counts as the
 * job's tasks: `-N2 -n6 --ntasks-per-node=4` are 8 to it, and srun starts the 6 that were written. */
static bool is_fewer(spank_t spank, const struct run *run)
{
    long written = get_number(spank, "SLURM_NTASKS", 0);
    long each = get_number(spank, "SLURM_NTASKS_PER_NODE", 0);

    return each > 0 && run->tasks == each * run->nodes && written < run->tasks &&
           written > each * (run->nodes - 1);
}

/* `-n`, `--ntasks-per-node`: srun starts as many tasks as the job has now. Zero means that nobody
 * asked for a number; setting it would break srun. */
static void correct_tasks(spank_t spank, const struct run *run)
{
    if (run->tasks < 1 || is_fewer(spank, run))
        return;
    if (has(spank, "SLURM_NTASKS"))
        put_number(spank, "SLURM_NTASKS", run->tasks);
    if (has(spank, "SLURM_NPROCS"))
        put_number(spank, "SLURM_NPROCS", run->tasks);
    if (has(spank, "SLURM_NTASKS_PER_NODE"))
        put_number(spank, "SLURM_NTASKS_PER_NODE", (run->tasks + run->nodes - 1) / run->nodes);
}

/* `--gpus` counts over all nodes. A job in Slurm's own form may have unequal numbers on its
 * nodes: where the number written can still be true and is not ours, there is none to write. */
static void correct_total(spank_t spank, const struct run *run)
{
    char text[TEXT];
    const char *colon;
    long here = run->nodes * run->gpus, written;
    struct why why;

    if (!get(spank, "SLURM_GPUS", text))
        return;
    colon = strrchr(text, ':');
    if (!read_count(&why, "", slice_of(colon ? colon + 1 : text), &written))
        written = here;
    if (run->nodes > 1 && written != here && written - run->gpus >= run->nodes - 1)
        spank_unsetenv(spank, "SLURM_GPUS");
    else
        put_number(spank, "SLURM_GPUS", here);
}

/* A number with a type, a100:1, asks for that type, which a job whose type Pliant chose does not
 * have in 22.05's eyes. 24.11 understands, writes SLURM_TRES_PER_TASK instead, and has srun end
 * where the two differ. */
static void correct_type_per_task(spank_t spank)
{
    char text[TEXT];
    const char *colon;

    if (has(spank, "SLURM_TRES_PER_TASK") || !get(spank, "SLURM_GPUS_PER_TASK", text) ||
        strchr(text, ','))
        return;
    colon = strrchr(text, ':');
    if (colon)
        put(spank, "SLURM_GPUS_PER_TASK", colon + 1);
}

/* Take the GPUs out of cpu=8,gres/gpu=1 (24.11 and later). */
static void drop_gpus_per_task(spank_t spank)
{
    char text[TEXT], kept[TEXT] = "";
    struct slice rest, item;
    size_t used = 0;

    if (!get(spank, "SLURM_TRES_PER_TASK", text))
        return;
    for (rest = slice_of(text); slice_next(&rest, ",", &item);)
        if (!memmem(item.at, item.size, "gpu", 3))
            used += (size_t)snprintf(kept + used, sizeof kept - used, "%s%.*s", used ? "," : "",
                                     (int)item.size, item.at);
    if (used)
        put(spank, "SLURM_TRES_PER_TASK", kept);
    else
        spank_unsetenv(spank, "SLURM_TRES_PER_TASK");
}

/* Without whole GPUs (on CPUs, or with shards) srun refuses every word about them. */
static void drop_gpus(spank_t spank)
{
    static const char *const names[] = {
        "SLURM_GPUS",           "SLURM_GPUS_PER_NODE",  "SLURM_GPUS_PER_SOCKET",
        "SLURM_GPUS_PER_TASK",  "SLURM_CPUS_PER_GPU",   "SLURM_MEM_PER_GPU",
        "SLURM_NTASKS_PER_GPU", "SLURM_NTASKS_PER_TRES"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has(spank, names[i]))
            spank_unsetenv(spank, names[i]);
    drop_gpus_per_task(spank);
}

/* `--mem-per-gpu`, which Slurm changes on no waiting job, is memory of each node by now. Where that
 * is what the GPUs make of it the job's steps have it by the GPU, as it was written: each would take
 * all the memory of its node else, and the others would wait. srun ends at once where it finds two
 * of the three; slurmd wrote the true one. */
static void correct_memory(spank_t spank, const struct run *run)
{
    long each, node = 0;

    if (!has(spank, "SLURM_MEM_PER_GPU"))
        return;
    each = get_number(spank, "SLURM_MEM_PER_GPU", 0);
    if (!has(spank, "SLURM_MEM_PER_CPU"))
        node = get_number(spank, "SLURM_MEM_PER_NODE", 0);
    if (each > 0 && node == each * run->gpus)
        spank_unsetenv(spank, "SLURM_MEM_PER_NODE");
    else if (has(spank, "SLURM_MEM_PER_NODE") || has(spank, "SLURM_MEM_PER_CPU"))
        spank_unsetenv(spank, "SLURM_MEM_PER_GPU");
}

static void correct_gpus(spank_t spank, const struct run *run)
{
    if (!run->gpus || run->shards) {
        drop_gpus(spank);
        return;
    }
    correct_total(spank, run);
    if (has(spank, "SLURM_GPUS_PER_NODE"))
        put_number(spank, "SLURM_GPUS_PER_NODE", run->gpus);
    correct_type_per_task(spank);
    correct_memory(spank, run);
}

void forget_told(spank_t spank)
{
    static const char *const names[] = {"PLIANT_SHAPE", "PLIANT_GPUS",  "PLIANT_NODES",
                                        "PLIANT_TYPE",  "PLIANT_SHARE", "PLIANT_RESTART_COUNT"};

    if (!is_batch(spank))
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has(spank, names[i]))
            spank_unsetenv(spank, names[i]);
}

void tell_job(spank_t spank, const struct settings *settings, const struct said *said)
{
    struct run run;

    if (!is_batch(spank) && has(spank, "PLIANT_NODES"))
        return; /* a step of a batch job has its script's environment */
    if (!read_run(spank, settings, &run)) {
        slurm_debug("pliant: SLURM_NNODES is not known here; the job stays as it is");
        return;
    }
    tell_shape(spank, &run, settings, said);
    /* the sizes of heterogeneous jobs are not ours: they are never changed while they wait */
    if (is_batch(spank) && !has(spank, "SLURM_HET_SIZE")) {
        correct_tasks(spank, &run);
        correct_gpus(spank, &run);
    }
}
