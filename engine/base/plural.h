/* plural.h - "1 frame", "2 frames". */
#pragma once

#include <stdint.h>

/* What stands after a noun of which there are n. */
static inline const char *gp_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}
