/* test_fuse.c - fused stages on the CUDA back end: every 40th random graph, since each takes two to three seconds to
 * compile, or with GPIPE_THIN=n every n-th. */
#include "cases.h"
#include "gpu.h"

GPU_SUITE(fuse, const char *thin = getenv("GPIPE_THIN");
          fuse_cases(tc, "cuda", thin && atoi(thin) > 0 ? atoi(thin) : 40))
