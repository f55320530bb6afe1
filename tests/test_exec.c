/* test_exec.c - the executor on the CPU back end. */
#include "cases.h"
#include "every.h"

SUITE(exec,
          exec_cases(tc, "cpu", tests_every(61, 1));
          end_cases(tc, "cpu");
          cooperative_cases(tc, "cpu");
          unwritten_cases(tc, "cpu"))
