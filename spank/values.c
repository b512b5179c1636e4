#include "values.h"

#include <stdio.h>
#include <string.h>

static size_t digits(struct slice text)
{
    size_t count = 0;

    while (count < text.size && text.at[count] >= '0' && text.at[count] <= '9')
        count++;
    return count;
}

/* Read a text of 1 to `most` (at most 9) digits; -1 for anything else. */
static long whole_number(struct slice text, size_t most)
{
    long number = 0;

    if (text.size == 0 || text.size > most || digits(text) != text.size)
        return -1;
    for (size_t i = 0; i < text.size; i++)
        number = number * 10 + (text.at[i] - '0');
    return number;
}

/* Read 1 to `most` digits and at most one letter of `letters`; `letter` is '\0' without one. */
static long number_with_unit(struct slice text, size_t most, const char *letters, char *letter)
{
    size_t count = digits(text);

    *letter = '\0';
    if (text.size > count) {
        if (text.size > count + 1 || !memchr(letters, text.at[count], strlen(letters)))
            return -1;
        *letter = text.at[count];
    }
    return whole_number((struct slice){text.at, count}, most);
}

bool is_number(struct slice text)
{
    struct slice whole, part;
    bool point = slice_split(text, '.', &whole, &part);

    return whole_number(whole, 9) >= 0 && (!point || whole_number(part, 9) >= 0);
}

bool is_steps(struct slice text)
{
    size_t zeros = 0;

    while (zeros < text.size && text.at[zeros] == '0')
        zeros++;
    return text.size <= 15 && digits(text) == text.size && zeros < text.size;
}

bool read_count(struct why *why, const char *option, struct slice text, long *count)
{
    *count = whole_number(text, 9);
    if (*count < 1 || *count > MAX_COUNT)
        return bad(why, option, text, "a whole number from 1 to 4096 is expected");
    return true;
}

static bool read_amount(struct why *why, const char *option, struct slice text,
                        struct amount *amount)
{
    if (text.size >= 2 && memcmp(text.at, "1/", 2) == 0) {
        *amount = (struct amount){0, whole_number(slice_after(text, 2), 9)};
        if (amount->share < 2 || amount->share > MAX_SHARE)
            return bad(why, option, text, "a share is 1/2 to 1/64 of one GPU");
        return true;
    }
    *amount = (struct amount){whole_number(text, 9), 1};
    if (amount->whole < 1 || amount->whole > MAX_COUNT)
        return bad(why, option, text,
                   "a number of GPUs from 1 to 4096, or a share like 1/4, is expected");
    return true;
}

static bool read_node_amount(struct why *why, const char *option, struct slice text,
                             struct amount *amount)
{
    amount->share = 1;
    return read_count(why, option, text, &amount->whole);
}

/* An amount's place among all that there are: 1/64 is the first, then 1/63 ... 1/2, 1, 2 ... */
static long place(struct amount amount)
{
    return amount.whole ? MAX_SHARE - 2 + amount.whole : MAX_SHARE - amount.share;
}

typedef bool read_one(struct why *, const char *, struct slice, struct amount *);

/* Read LOW{-HIGH} of amounts that `one` reads, separated by colons. */
static bool read_list(struct why *why, const char *option, struct slice text, read_one *one)
{
    struct slice item, low_text, high_text;
    struct amount low, high;

    while (slice_next(&text, ":", &item)) {
        bool dash = slice_split(item, '-', &low_text, &high_text);

        if (!one(why, option, low_text, &low) || (dash && !one(why, option, high_text, &high)))
            return false;
        if (dash && place(low) > place(high)) {
            char right[80]; /* each end was read, so it has 11 bytes at most */

            snprintf(right, sizeof right, "the range runs backwards; write %.*s-%.*s",
                     (int)high_text.size, high_text.at, (int)low_text.size, low_text.at);
            return bad(why, option, item, right);
        }
    }
    return true;
}

/* Count the different amounts of a list that read_list took. */
static size_t count_list(struct slice text, read_one *one)
{
    bool seen[MAX_SHARE + MAX_COUNT] = {false};
    struct slice item, low_text, high_text;
    struct amount low, high;
    struct why why;
    size_t count = 0;

    while (slice_next(&text, ":", &item)) {
        bool dash = slice_split(item, '-', &low_text, &high_text);

        if (!one(&why, "", low_text, &low) || !one(&why, "", dash ? high_text : low_text, &high))
            continue;
        for (long at = place(low); at <= place(high); at++) {
            count += !seen[at];
            seen[at] = true;
        }
    }
    return count;
}

size_t count_gpus(struct slice text)
{
    return count_list(text, read_amount);
}

size_t count_nodes(struct slice text)
{
    return count_list(text, read_node_amount);
}

bool read_resizes(struct why *why, const char *option, struct slice text)
{
    long count = whole_number(text, 9);

    if (count < 0 || count > MAX_COUNT)
        return bad(why, option, text, "a whole number from 0 to 4096 is expected");
    return true;
}

bool read_gpus(struct why *why, const char *option, struct slice text)
{
    return read_list(why, option, text, read_amount);
}

bool read_nodes(struct why *why, const char *option, struct slice text)
{
    return read_list(why, option, text, read_node_amount);
}

bool read_kinds(struct why *why, const char *option, struct slice text)
{
    struct slice word;

    while (slice_next(&text, ":", &word))
        if (!slice_is(word, "gpu") && !slice_is(word, "cpu") && !slice_is(word, "both"))
            return bad(why, option, word, "one of gpu, cpu, both is expected");
    return true;
}

bool read_cores(struct why *why, const char *option, struct slice text)
{
    long count = whole_number(text, 9);

    if (!slice_is(text, "all") && (count < 1 || count > MAX_COUNT))
        return bad(why, option, text, "a whole number from 1 to 4096, or all, is expected");
    return true;
}

static bool letter_or_digit(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9');
}

static bool is_name(struct slice text)
{
    if (text.size == 0 || text.size > 64 || !letter_or_digit(text.at[0]))
        return false;
    for (size_t i = 1; i < text.size; i++)
        if (!letter_or_digit(text.at[i]) && !memchr("._-", text.at[i], 3))
            return false;
    return !slice_is(text, "cpu") && !slice_is(text, "both");
}

bool read_names(struct why *why, const char *option, struct slice text)
{
    struct slice name;

    while (slice_next(&text, ":", &name))
        if (!is_name(name))
            return bad(why, option, name, "the name of a GPU type, like a100, is expected");
    return true;
}

static bool is_among(struct slice names, struct slice name)
{
    struct slice one;

    while (slice_next(&names, ":", &one))
        if (slice_same(one, name))
            return true;
    return false;
}

size_t count_names(struct slice text)
{
    struct slice rest = text, name;
    size_t count = 0;

    while (slice_next(&rest, ":", &name))
        count += !is_among(rest, name); /* the last of its like counts */
    return count;
}

bool read_path(struct why *why, const char *option, struct slice text)
{
    size_t good = 0;

    while (good < text.size &&
           (letter_or_digit(text.at[good]) || memchr("._/@-", text.at[good], 5)))
        good++;
    if (text.size == 0 || text.size > MAX_PATH || good != text.size)
        return bad(why, option, text, "a path of at most 255 letters, digits and ._/@- is expected");
    return true;
}

bool read_size(struct why *why, const char *option, struct slice text)
{
    char letter;

    if (number_with_unit(text, 7, "MGT", &letter) < 1)
        return bad(why, option, text, "a size like 6G or 512M is expected");
    return true;
}

bool read_time(struct why *why, const char *option, struct slice text)
{
    char letter;
    long seconds = number_with_unit(text, 6, "smh", &letter);

    seconds *= letter == 'h' ? 3600 : letter == 'm' ? 60 : 1;
    if (seconds < 1 || seconds > MAX_GRACE_S)
        return bad(why, option, text, "a time like 90s, 2m or 1h, at most 24h, is expected");
    return true;
}

/* Read what stands after @: cpu, both, a GPU type, or a type and both. */
static bool read_tail(struct slice tail, struct shape *shape)
{
    struct slice type, last;

    if (!slice_split_last(tail, ':', &type, &last)) {
        last = tail;
        type = (struct slice){tail.at, 0};
        if (!slice_is(last, "cpu") && !slice_is(last, "both")) {
            shape->gpu_type = tail;
            return is_name(tail);
        }
    } else if (!is_name(type)) {
        return false;
    }
    shape->gpu_type = type;
    shape->kind = slice_is(last, "cpu") ? KIND_CPU : KIND_BOTH;
    return slice_is(last, "cpu") || slice_is(last, "both");
}

/* Split [NODESx]GPUS[@TAIL] by its characters alone; `tail.at` is NULL without one. */
static bool split_shape(struct slice text, struct slice *nodes, struct slice *gpus,
                        struct slice *tail)
{
    struct slice size, share;

    if (!slice_split(text, '@', &size, tail))
        tail->at = NULL;
    else if (tail->size && memchr(tail->at, '@', tail->size))
        return false;
    if (!slice_split(size, 'x', nodes, gpus)) {
        *gpus = size;
        nodes->at = NULL;
    } else if (whole_number(*nodes, 9) < 0) {
        return false;
    }
    share = gpus->size >= 2 && memcmp(gpus->at, "1/", 2) == 0 ? slice_after(*gpus, 2) : *gpus;
    return whole_number(share, 9) >= 0;
}

bool read_shape(struct why *why, const char *option, struct slice text, struct shape *shape)
{
    struct slice nodes, gpus, tail;

    *shape = (struct shape){1, {0, 1}, KIND_GPU, {text.at, 0}};
    if (!split_shape(text, &nodes, &gpus, &tail))
        return bad(why, option, text, "a shape like 4, 2x4, 1/4, 2x4@a100 or 1x0@cpu is expected");
    if (nodes.at && !read_count(why, option, nodes, &shape->nodes))
        return false;
    if (tail.at && !read_tail(tail, shape))
        return bad(why, option, text, "after @ stands cpu, both, or the name of a GPU type");
    if (shape->kind == KIND_CPU) {
        if (!slice_is(gpus, "0") || shape->gpu_type.size)
            return bad(why, option, text, "a CPU shape has no GPU: write 1x0@cpu");
        return true;
    }
    if (slice_is(gpus, "0"))
        return bad(why, option, text, "a shape without a GPU is written 1x0@cpu");
    if (!read_amount(why, option, gpus, &shape->gpus))
        return false;
    if (shape->gpus.whole == 0 && shape->nodes > 1)
        return bad(why, option, text,
                   "a share lies on one node: write 1/4, without a number of nodes");
    return true;
}

bool same_shape(const struct shape *one, const struct shape *other)
{
    return one->nodes == other->nodes && one->gpus.whole == other->gpus.whole &&
           one->gpus.share == other->gpus.share && one->kind == other->kind &&
           slice_same(one->gpu_type, other->gpu_type);
}
