/* signal_cases.h - stages that run on from frame to frame. */
#ifndef SIGNAL_CASES_H
#define SIGNAL_CASES_H

#include <check.h>

/* On one device: "cpu", "cuda". One call per program. */
TCase *signal_cases(const char *device);

#endif
