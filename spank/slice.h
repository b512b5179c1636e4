/* A part of a text, never changed and never copied; and the one line about a bad one. */
#ifndef PLIANT_SLICE_H
#define PLIANT_SLICE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    QUOTED_BYTES = 40, /* of a bad value, in a message */
    WHY_SIZE = 256,    /* every message fits */
};

struct slice {
    const char *at;
    size_t size;
};

struct why {
    char text[WHY_SIZE];
};

struct slice slice_of(const char *text);
struct slice slice_after(struct slice text, size_t bytes);
bool slice_is(struct slice text, const char *word);
bool slice_same(struct slice one, struct slice other);

/* Cut the part before the first of `separators` off `rest`; false when nothing is left. */
bool slice_next(struct slice *rest, const char *separators, struct slice *part);

/* Split at the first, or the last, `separator`. Without one `before` is all and `behind` empty,
 * and the result is false. */
bool slice_split(struct slice text, char separator, struct slice *before, struct slice *behind);
bool slice_split_last(struct slice text, char separator, struct slice *before,
                      struct slice *behind);

/* Write "OPTION: 'VALUE': RIGHT", the value cut and in printable ASCII; always returns false. */
bool bad(struct why *why, const char *option, struct slice value, const char *right);

#endif
