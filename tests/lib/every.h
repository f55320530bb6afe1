/* every.h - how many cases of a long list are run.
 *
 * `make check` runs one case in so many, the same ones each time; GPIPE_SEED=n chooses others. `make check-all` sets
 * GPIPE_TESTS=all and runs many more. GPIPE_THIN=n overrides both: one case in n. */
#pragma once

#include <check.h>

/* One case in `quick` for make check, one in `all` for make check-all. At least 1. */
int tests_every(int quick, int all);
/* The first case to run, in [0, every), from the seed. */
int tests_first(int every);
/* Says on stdout what was chosen, and how to repeat it. */
void tests_say_every(void);

/* Adds cases 0 to n - 1 of `test`, one in `every`. */
#define ADD_SOME(tc, test, n, every) do { \
        const int n_ = (n), every_ = (every); \
        for (int i_ = tests_first(every_ < n_ ? every_ : n_); i_ < n_; i_ += every_) \
            tcase_add_loop_test(tc, test, i_, i_ + 1); \
    } while (0)
