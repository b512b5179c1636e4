#include "slice.h"

#include <stdio.h>
#include <string.h>

struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

bool slice_is(struct slice text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.at, word, text.size) == 0;
}

bool slice_same(struct slice one, struct slice other)
{
    return one.size == other.size && memcmp(one.at, other.at, one.size) == 0;
}

struct slice slice_after(struct slice text, size_t bytes)
{
    return (struct slice){text.at + bytes, text.size - bytes};
}

bool slice_next(struct slice *rest, const char *separators, struct slice *part)
{
    size_t size = 0;

    if (!rest->at)
        return false;
    while (size < rest->size && !strchr(separators, rest->at[size]))
        size++;
    *part = (struct slice){rest->at, size};
    *rest = size < rest->size ? slice_after(*rest, size + 1) : (struct slice){NULL, 0};
    return true;
}

bool slice_split(struct slice text, char separator, struct slice *before, struct slice *behind)
{
    const char *found = text.size ? memchr(text.at, separator, text.size) : NULL;
    size_t size = found ? (size_t)(found - text.at) : text.size;

    *before = (struct slice){text.at, size};
    *behind = slice_after(text, found ? size + 1 : size);
    return found != NULL;
}

bool slice_split_last(struct slice text, char separator, struct slice *before,
                      struct slice *behind)
{
    for (size_t size = text.size; size > 0; size--) {
        if (text.at[size - 1] == separator) {
            *before = (struct slice){text.at, size - 1};
            *behind = slice_after(text, size);
            return true;
        }
    }
    *before = text;
    *behind = slice_after(text, text.size);
    return false;
}

bool bad(struct why *why, const char *option, struct slice value, const char *right)
{
    char shown[QUOTED_BYTES + 1];
    size_t size = value.size < QUOTED_BYTES ? value.size : QUOTED_BYTES;

    for (size_t i = 0; i < size; i++)
        shown[i] = value.at[i] >= 0x20 && value.at[i] <= 0x7e ? value.at[i] : '?';
    shown[size] = '\0';
    snprintf(why->text, sizeof why->text, "%s: '%s%s': %s", option, shown,
             value.size > QUOTED_BYTES ? "..." : "", right);
    return false;
}
