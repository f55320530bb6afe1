/* dl.h - libraries that are opened when something asks for them (dl.c). */
#pragma once

#include "gpipe/err.h"

typedef struct gp_dl_symbol {
    const char *name;
    void *to;                  /* the address of the pointer that gets it */
} gp_dl_symbol;

/* Opens the first of `library` that is there and finds all of `symbol`; both end with an
 * empty one. The library stays open until the process ends. False after one error at
 * `at` that says what is missing, as in "WHAT needs LIBRARY, which cannot be opened (WHY); ADVICE". */
bool gp_dl_open(const char *const *library, const gp_dl_symbol *symbol, const char *what,
                const char *advice, gp_loc at, gp_errs *errs);
