#include "settings.h"

#include <stdint.h>
#include <string.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

#include "values.h"

static bool read_number(const char *argument, const char *name, long *number)
{
    struct why why;
    size_t size = strlen(name);

    return strncmp(argument, name, size) == 0 &&
           read_count(&why, name, slice_of(argument + size), number);
}

void read_settings(struct settings *settings, int argc, char *argv[])
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "off") == 0)
            settings->off = true;
        else if (!read_number(argv[i], "shards=", &settings->shards) &&
                 !read_number(argv[i], "cores=", &settings->cores))
            slurm_verbose("pliant: '%s': off, shards=N or cores=N is expected in plugstack.conf",
                          argv[i]);
    }
}
