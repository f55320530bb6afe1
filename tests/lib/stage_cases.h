/* stage_cases.h - what must hold of the device stages on any back end. */
#ifndef STAGE_CASES_H
#define STAGE_CASES_H

#include <check.h>
#include "device/backend.h"

/* All of them, on one back end (one call per program). */
TCase *stage_cases(const gp_backend *b);

/* The same bits on both. */
void stage_cases_agree(const gp_backend *a, const gp_backend *b);

#endif
