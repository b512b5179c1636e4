/* Reads OPTION NUL VALUE NUL ... and answers each pair by one line: "ok", or what is wrong.
 *
 * For the tests, which compare the answers with the Python parser's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "grammar.h"

int main(void)
{
    char *option = NULL, *value = NULL;
    size_t option_size = 0, value_size = 0;

    while (getdelim(&option, &option_size, '\0', stdin) > 0 &&
           getdelim(&value, &value_size, '\0', stdin) > 0) {
        struct why why;

        puts(check_option(option, value, &why) ? "ok" : why.text);
        fflush(stdout);
    }
    free(option);
    free(value);
    return ferror(stdin) ? EXIT_FAILURE : EXIT_SUCCESS;
}
