/* Whether an option's value follows Pliant's request grammar.
 *
 * The C twin of pliant.grammar.parse_option: it reads nothing out of the value (the daemon does),
 * it only says whether the value is well formed and, if not, what would be right, in exactly the
 * words of the Python parser. tests/unit/test_spank_grammar.py compares the two.
 */
#ifndef PLIANT_GRAMMAR_H
#define PLIANT_GRAMMAR_H

#include "values.h"

/* Return true where `value` is right for `option`; else false, with one line in `why`. */
bool check_option(const char *option, const char *value, struct why *why);

#endif
