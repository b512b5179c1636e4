#include "grammar.h"

#include <stdio.h>
#include <string.h>

enum { MAX_KEYS = 6 };

/* KEY=VALUE pairs: the valid keys, and what was found, in the order written. */
struct pairs {
    const char *keys[MAX_KEYS + 1];
    const char *expected;
    const char *key[MAX_KEYS];
    struct slice value[MAX_KEYS];
    size_t count;
};

static const char *valid_key(const struct pairs *pairs, struct slice key)
{
    for (size_t i = 0; pairs->keys[i]; i++)
        if (slice_is(key, pairs->keys[i]))
            return pairs->keys[i];
    return NULL;
}

static const struct slice *pair(const struct pairs *pairs, const char *key)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->key[i], key) == 0)
            return &pairs->value[i];
    return NULL;
}

/* Split KEY=VALUE,KEY=VALUE (PBS: +). */
static bool read_pairs(struct why *why, const char *option, struct slice text,
                       struct pairs *pairs)
{
    struct slice item, key_text, value;
    char right[64];

    while (slice_next(&text, ",+", &item)) {
        bool equals = slice_split(item, '=', &key_text, &value);
        const char *key = valid_key(pairs, key_text);

        if (!key)
            return bad(why, option, key_text, pairs->expected);
        if (!equals || value.size == 0) {
            snprintf(right, sizeof right, "a value is expected after %s=", key);
            return bad(why, option, item, right);
        }
        if (pair(pairs, key)) {
            snprintf(right, sizeof right, "%s= stands twice; say it once", key);
            return bad(why, option, item, right);
        }
        pairs->key[pairs->count] = key;
        pairs->value[pairs->count++] = value;
    }
    return true;
}

static const struct {
    const char *key;
    const char *option;
    bool (*read)(struct why *, const char *, struct slice);
} MOLDABLE[] = {
    {"gpus", "moldable gpus", read_gpus},
    {"nodes", "moldable nodes", read_nodes},
    {"type", "moldable type", read_kinds},
    {"cores", "moldable cores", read_cores},
    {"gpu-type", "moldable gpu-type", read_names},
    {"gpu-mem", "moldable gpu-mem", read_size},
};

static bool check_moldable_value(struct why *why, const char *key, struct slice value)
{
    size_t i = 0;

    while (strcmp(MOLDABLE[i].key, key) != 0)
        i++;
    return MOLDABLE[i].read(why, MOLDABLE[i].option, value);
}

/* See that a request names no more shapes than can be looked at in every cycle. */
static bool check_size(struct why *why, const struct pairs *pairs)
{
    const struct slice *gpus = pair(pairs, "gpus"), *nodes = pair(pairs, "nodes");
    const struct slice *types = pair(pairs, "gpu-type");
    unsigned long long size = gpus ? count_gpus(*gpus) : 1;
    char shown[24], right[96];

    size *= nodes ? count_nodes(*nodes) : 1;
    size *= types ? count_names(*types) : 1;
    if (size <= MAX_PAIRS)
        return true;
    snprintf(shown, sizeof shown, "%llu", size);
    snprintf(right, sizeof right,
             "gpus= times nodes= times gpu-type= may be at most %d: name fewer of them", MAX_PAIRS);
    return bad(why, "moldable", slice_of(shown), right);
}

static bool check_moldable(struct why *why, struct slice text)
{
    struct pairs pairs = {
        .keys = {"gpus", "nodes", "type", "cores", "gpu-type", "gpu-mem"},
        .expected = "one of gpus=, nodes=, type=, cores=, gpu-type=, gpu-mem= is expected",
    };

    if (!read_pairs(why, "moldable", text, &pairs))
        return false;
    for (size_t i = 0; i < pairs.count; i++)
        if (!check_moldable_value(why, pairs.key[i], pairs.value[i]))
            return false;
    if (!pair(&pairs, "gpus") && !pair(&pairs, "nodes") && !pair(&pairs, "type") &&
        !pair(&pairs, "gpu-type"))
        return bad(why, "moldable", text, "one of gpus=, nodes=, type=, gpu-type= is needed");
    return check_size(why, &pairs);
}

static bool is_signal(struct slice text)
{
    static const char *const signals[] = {"HUP",  "INT",  "QUIT", "USR1", "USR2",
                                          "TERM", "CONT", "URG",  "WINCH"};

    if (text.size >= 3 && memcmp(text.at, "SIG", 3) == 0)
        text = (struct slice){text.at + 3, text.size - 3};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (slice_is(text, signals[i]))
            return true;
    return false;
}

static bool check_malleable(struct why *why, struct slice text)
{
    struct pairs pairs = {
        .keys = {"grace", "signal", "stalled", "max-resizes", "min-run", "checkpoint"},
        .expected = "one of grace=, signal=, stalled=, max-resizes=, min-run=, checkpoint= is "
                    "expected",
    };
    const struct slice *grace, *signal, *stalled, *most, *least, *path;

    if (text.size == 0)
        return true;
    if (!read_pairs(why, "malleable", text, &pairs))
        return false;
    grace = pair(&pairs, "grace");
    signal = pair(&pairs, "signal");
    if (grace && !read_time(why, "malleable grace", *grace))
        return false;
    if (signal && !is_signal(*signal))
        return bad(why, "malleable signal", *signal,
                   "one of HUP, INT, QUIT, USR1, USR2, TERM, CONT, URG, WINCH is expected");
    stalled = pair(&pairs, "stalled");
    if (stalled && !slice_is(*stalled, "requeue") && !slice_is(*stalled, "leave"))
        return bad(why, "malleable stalled", *stalled, "one of requeue, leave is expected");
    most = pair(&pairs, "max-resizes");
    if (most && !read_resizes(why, "malleable max-resizes", *most))
        return false;
    least = pair(&pairs, "min-run");
    if (least && !read_time(why, "malleable min-run", *least))
        return false;
    path = pair(&pairs, "checkpoint");
    return !path || read_path(why, "malleable checkpoint", *path);
}

static bool check_job_class(struct why *why, struct slice text)
{
    if (!slice_is(text, "trial") && !slice_is(text, "best-effort"))
        return bad(why, "job-class", text, "one of trial, best-effort is expected");
    return true;
}

static bool check_throughput(struct why *why, struct slice text)
{
    struct shape shapes[MAX_SHAPES];
    struct slice rest = text, item, shape, number;
    size_t count = 0;

    while (slice_next(&rest, ",+", &item))
        count++;
    if (count > MAX_SHAPES)
        return bad(why, "throughput", text, "at most 64 shapes are expected");
    count = 0;
    for (rest = text; slice_next(&rest, ",+", &item); count++) {
        if (!slice_split_last(item, ':', &shape, &number) || !is_number(number))
            return bad(why, "throughput", item,
                       "a shape and its steps per second, like 2x4:16.9, is expected");
        if (!read_shape(why, "throughput", shape, &shapes[count]))
            return false;
        for (size_t i = 0; i < count; i++)
            if (same_shape(&shapes[i], &shapes[count]))
                return bad(why, "throughput", item, "this shape stands twice; say it once");
    }
    return true;
}

static bool check_steps(struct why *why, struct slice text)
{
    if (!is_steps(text))
        return bad(why, "steps", text, "a whole number of steps is expected");
    return true;
}

static bool check_colocate(struct why *why, struct slice text)
{
    if (text.size && !slice_is(text, "yes") && !slice_is(text, "no"))
        return bad(why, "colocate", text, "yes or no is expected");
    return true;
}

static const struct {
    const char *option;
    bool (*check)(struct why *, struct slice);
} CHECKS[] = {
    {"moldable", check_moldable},     {"malleable", check_malleable}, {"job-class", check_job_class},
    {"throughput", check_throughput}, {"steps", check_steps},         {"colocate", check_colocate},
};

bool check_option(const char *option, const char *value, struct why *why)
{
    struct slice text = slice_of(value);

    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; i++) {
        if (strcmp(option, CHECKS[i].option) != 0)
            continue;
        if (text.size > MAX_VALUE)
            return bad(why, option, text, "at most 4096 bytes are expected");
        return CHECKS[i].check(why, text);
    }
    return bad(why, "option", slice_of(option), "not one of Pliant's options");
}
