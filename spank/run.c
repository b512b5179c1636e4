#include "run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "grammar.h"

void remember(struct said *said, const char *option, const char *value)
{
    struct why why;

    said->anything = true;
    if (strcmp(option, "moldable") == 0 && check_option(option, value, &why))
        snprintf(said->moldable, sizeof said->moldable, "%s", value);
}

/* Slurm counts the GPU that shards lie on as a GPU of the job; a job of several has no share. */
void read_share(struct run *run, const struct settings *settings)
{
    run->share = 1;
    if (!run->shards || run->gpus > 1)
        return;
    run->gpus = 1;
    if (!settings->shards)
        run->share = 0;
    else if (run->shards < settings->shards)
        run->share = (settings->shards + run->shards / 2) / run->shards;
}

static struct slice moldable_value(const struct said *said, const char *key)
{
    struct slice rest = slice_of(said->moldable), item, name, value;

    while (slice_next(&rest, ",+", &item))
        if (slice_split(item, '=', &name, &value) && slice_is(name, key))
            return value;
    return slice_of("");
}

static bool allows(const struct said *said, const char *kind)
{
    struct slice rest = moldable_value(said, "type"), word;

    while (slice_next(&rest, ":", &word))
        if (slice_is(word, kind))
            return true;
    return false;
}

/* Whether a run with GPUs has the cores too: the request allows both and, where it also allows
 * gpu, the run has as many CPUs as the request names for it. */
static bool has_both(const struct run *run, const struct settings *settings,
                     const struct said *said)
{
    struct slice cores = moldable_value(said, "cores");
    struct why why;
    long wanted = settings->cores ? settings->cores : sysconf(_SC_NPROCESSORS_ONLN);

    if (!allows(said, "both"))
        return false;
    if (!allows(said, "gpu") || cores.size == 0)
        return true;
    if (!slice_is(cores, "all") && !read_count(&why, "cores", cores, &wanted))
        return false;
    return run->cpus >= wanted;
}

const char *run_type(const struct run *run, const struct settings *settings,
                     const struct said *said)
{
    if (!run->gpus)
        return "cpu";
    return has_both(run, settings, said) ? "both" : "gpu";
}

/* The GPU type is known where the request names one alone. */
static struct slice gpu_type(const struct said *said)
{
    struct slice names = moldable_value(said, "gpu-type"), one, others;

    return slice_split(names, ':', &one, &others) ? slice_of("") : names;
}

void write_shape(char text[SHAPE_SIZE], const struct run *run, const char *type,
                 const struct said *said)
{
    struct slice gpus_of = gpu_type(said);
    bool both = strcmp(type, "both") == 0;
    char nodes[32] = "", gpus[32];

    if (!run->gpus) {
        snprintf(text, SHAPE_SIZE, "%ldx0@cpu", run->nodes);
        return;
    }
    if (run->nodes > 1)
        snprintf(nodes, sizeof nodes, "%ldx", run->nodes);
    snprintf(gpus, sizeof gpus, run->share > 1 ? "1/%ld" : "%ld",
             run->share > 1 ? run->share : run->gpus);
    snprintf(text, SHAPE_SIZE, "%s%s%s%.*s%s%s", nodes, gpus, gpus_of.size || both ? "@" : "",
             (int)gpus_of.size, gpus_of.at, gpus_of.size && both ? ":" : "", both ? "both" : "");
}

