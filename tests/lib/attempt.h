/* attempt.h - users' kernels, compiled for the CPU or by NVRTC as the back ends have it done. */
#pragma once

#include "cu.h"

typedef struct attempt { bool ok; gp_errs errs; } attempt;

extern bool attempt_nvrtc;         /* is NVRTC there? */

/* A fixture, with cu_close(): cu_open(), and looks for NVRTC. */
void attempt_setup(void);
/* Of k.cu in the folder, at line 3 of a test.yaml. `params` ends with NULL. */
gp_source attempt_source(const char *entry, const char *const *params);
attempt attempt_compile(const gp_source *src, bool cuda);
/* Writes k.cu, and compiles its kernel k. */
attempt attempt_text(const char *text, const char *const *params, bool cuda);
