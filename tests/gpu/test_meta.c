/* test_meta.c - numbers that travel with frames, on the CUDA back end; a sanitizer, which makes each many times as
 * slow, gets every 5th case. */
#include <stdlib.h>
#include "gpu.h"
#include "meta_cases.h"

GPU_SUITE(meta, meta_cases(tc, "cuda", getenv("GPIPE_SANITIZED") ? 5 : 1))
