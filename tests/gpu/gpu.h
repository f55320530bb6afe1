/* gpu.h - for tests/gpu: CUDA does not survive fork, so these suites run in one process, after the driver was started.
 * A suite_X() may return NULL where there is nothing to test without a GPU. */
#pragma once

#include <check.h>
#include <stdbool.h>

extern bool have_gpu;

/* `run --fault SOURCE [INDEX]`: makes a GPU fault with the kernel `bad` of a file and checks
 * what is said of it, in a process of its own. The exit code. `second`: it is GPU 1, beside GPU 0. */
int fault_main(const char *source, bool second);
/* Runs that for GPU `gpu`, as text; NULL: the first. */
void fault_check(const char *gpu);

/* A suite of the CUDA back end, if there is a GPU; what follows the name adds to `tc`. */
#define GPU_SUITE(name, ...) \
    Suite *suite_##name(void); \
    Suite *suite_##name(void) \
    { \
        if (!have_gpu) \
            return NULL; \
        Suite *s = suite_create(#name " on cuda"); \
        TCase *tc = tcase_create("cuda"); \
        suite_add_tcase(s, tc); \
        __VA_ARGS__; \
        return s; \
    }
