/* knobs_cases.h - tests that no setting changes a bit of what is made, on either back end. */
#ifndef TEST_KNOBS_CASES_H
#define TEST_KNOBS_CASES_H

#include <check.h>

struct pipe_result;

/* The pipeline with all that there is, the files that it reads, and those that it writes. */
extern const char knobs_yaml[];
void knobs_put_files(const char *dir);
extern const char *const knobs_written[];      /* ends with NULL */
/* What becomes of the frames of its sources. */
void knobs_check_accounts(const struct pipe_result *r);

/* Adds them, for `device` ("cpu" or "cuda"). */
void knobs_cases(TCase *tc, const char *device);

#endif
