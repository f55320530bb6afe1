/* test_exec.c - the executor on the CUDA back end. GPIPE_THIN=n runs every n-th combination of the determinism test. */
#include "cases.h"
#include "gpu.h"

GPU_SUITE(exec,
          const char *thin = getenv("GPIPE_THIN");
          exec_cases(tc, "cuda", thin ? atoi(thin) : 1);
          end_cases(tc, "cuda");
          cooperative_cases(tc, "cuda");
          unwritten_cases(tc, "cuda"))
