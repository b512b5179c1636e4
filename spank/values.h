/* One value each: counts, amounts, lists, names, sizes, times, shapes.
 *
 * The C twin of pliant.grammar.values: the same verdicts, the same words. What is not ASCII
 * matches nothing. Every reader takes the option's name first, for its message, and returns false
 * with the message in `why`.
 */
#ifndef PLIANT_VALUES_H
#define PLIANT_VALUES_H

#include "slice.h"

enum {
    MAX_COUNT = 4096, /* GPUs, nodes or cores that a request may name */
    MAX_SHARE = 64,   /* 1/64 of a GPU */
    MAX_VALUE = 4096, /* bytes of one option's value */
    MAX_SHAPES = 64,  /* shapes in one throughput */
    MAX_PAIRS = 4096, /* totals x numbers of nodes x types of GPU in one request */
    MAX_GRACE_S = 24 * 3600,
    MAX_PATH = 255, /* bytes of a named checkpoint */
};

/* An amount of GPUs: `whole` of them, or one `share`-th of one (then whole is 0). */
struct amount {
    long whole;
    long share;
};

enum kind { KIND_GPU, KIND_CPU, KIND_BOTH };

struct shape {
    long nodes;
    struct amount gpus;
    enum kind kind;
    struct slice gpu_type;
};

bool is_number(struct slice text);
bool is_steps(struct slice text);

bool read_count(struct why *why, const char *option, struct slice text, long *count);
bool read_resizes(struct why *why, const char *option, struct slice text);
bool read_gpus(struct why *why, const char *option, struct slice text);
bool read_nodes(struct why *why, const char *option, struct slice text);
bool read_kinds(struct why *why, const char *option, struct slice text);
bool read_cores(struct why *why, const char *option, struct slice text);
bool read_names(struct why *why, const char *option, struct slice text);
bool read_path(struct why *why, const char *option, struct slice text);
bool read_size(struct why *why, const char *option, struct slice text);
bool read_time(struct why *why, const char *option, struct slice text);
bool read_shape(struct why *why, const char *option, struct slice text, struct shape *shape);
bool same_shape(const struct shape *one, const struct shape *other);

/* How many different values a list names, ranges written out; each takes what its reader took. */
size_t count_gpus(struct slice text);
size_t count_nodes(struct slice text);
size_t count_names(struct slice text);

#endif
