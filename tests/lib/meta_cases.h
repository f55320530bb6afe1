/* meta_cases.h - tests of numbers that travel with frames, on either back end. */
#pragma once

#include "cases.h"

/* Puts the scripts that pipelines of these tests have into a folder. */
void meta_put_scripts(const char *dir);
/* Compares a text file with what is due: "1 2 | 3 4" for two lines. */
void meta_is(const char *dir, const char *name, const char *want, const char *what);
