/* cases.h - suites of both programs: tests/lib/NAME_cases.c is the suite NAME on the CPU back end (tests/run.c) and on
 * CUDA (tests/gpu/run.c), or a part of it where the program has a test_NAME.c, which then calls NAME_cases(). */
#pragma once

#include "device/backend.h"
#include "every.h"
#include "pipe.h"

extern const char *on;         /* the device of this program: "cpu" or "cuda", or NULL if it has none */
const gp_backend *cases_backend(void);
/* One case in so many: those of tests_every(), or on a GPU `gpu`, or GPIPE_THIN; see tests_every(). */
int cases_every(int quick, int all, int gpu);
/* The same for cases of which each compiles kernels: under a sanitizer there are as few as GPIPE_THIN says. */
int cases_thin(int quick, int all, int gpu);
/* Settings under which a pipeline makes the same bytes, as keys at its top; the last two have to do with batches. */
enum { CASES_KNOBS = 8, CASES_PERSISTENT = 5 };
extern const char *const cases_knobs[CASES_KNOBS];
/* Runs it with settings `i`, or as usual where kernels that stay on the device are not for this pipeline, and where a
 * sanitizer runs one kernel at a time. */
pipe_result cases_run(const char *dir, const char *yaml, int i);
gp_pipeline *cases_compiled(const char *dir, const char *device, const char *yaml);
void cases_add(TCase *tc, SFun up, SFun down, double seconds, const suite_item *list, int every);
/* NULL without a device. */
Suite *cases_suite(const char *name, const char *on_cuda, void (*add)(TCase *tc));

/* At the end of NAME_cases.c; as TEST_SUITE, and of TEST_THIN one case in `every`. */
#define CASES_SUITE(name, up, down, seconds, every) \
    void name##_cases(TCase *tc); \
    void name##_cases(TCase *tc) \
    { \
        cases_add(tc, up, down, seconds, suite_items, every); \
    } \
    Suite *suite_##name(void); \
    __attribute__((weak)) Suite *suite_##name(void) \
    { \
        return cases_suite(#name, #name " on cuda", name##_cases); \
    }

/* At the end of test_NAME.c, whose tests are more of the same suite. */
#define CASES_AND(name) \
    void name##_cases(TCase *tc); \
    SUITE(name, name##_cases(tc))
