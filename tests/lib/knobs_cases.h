/* knobs_cases.h - tests that no setting changes a bit of what is made, on either back end. */
#pragma once

#include "cases.h"

/* The pipeline with all that there is, the files that it reads, and those that it writes. */
extern const char knobs_yaml[];
void knobs_put_files(const char *dir);
extern const char *const knobs_written[];      /* ends with NULL */
/* All that it wrote, one file behind the other: malloc'd. */
char *knobs_read_files(const char *dir, size_t *bytes);
/* What becomes of the frames of its sources. */
void knobs_check_accounts(const pipe_result *r);

/* Settings as they come, for --set; those under which a run that was paused may go on. */
typedef struct knobs_set { char text[16][40]; const char *set[32]; } knobs_set;
void knobs_any(knobs_set *k, unsigned seed, bool goes_on);
/* Some of the latter, of which the last has buffers that only this pipeline has; and a number by a seed that moves on. */
enum { KNOBS_GOES_ON = 13 };
extern const char *const knobs_goes_on[KNOBS_GOES_ON][8];
unsigned knobs_draw(unsigned *seed);
