/* fuse_cases.h - stages that are fused make the bytes that they make one by one, on either back end. */
#ifndef TEST_FUSE_CASES_H
#define TEST_FUSE_CASES_H

#include <check.h>

/* Random graphs, `graphs` of them in steps of `step`. */
void fuse_cases(TCase *tc, const char *device, int graphs, int step);

#endif
