/* cu.h - kernels written in tests, compiled for the CPU. */
#pragma once

#include "cpu/kernel.h"

/* Makes a folder for sources, with a cache of compiled kernels inside, where
 * XDG_CACHE_HOME points until cu_close() removes it. */
void cu_open(void);
void cu_close(void);
/* "FOLDER/name". */
const char *cu_path(const char *name);
void cu_write(const char *name, const char *text);

/* Compiles `text` as FOLDER/ENTRY.cu; fails the test when it does not compile. `params` ends with NULL. */
gp_cpu_entry cu_compile(const char *entry, const char *const *params, const char *text, size_t shared);
#define CU_PARAMS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Prints what `errs` holds, for a failing test. */
void cu_print(const gp_errs *errs);
