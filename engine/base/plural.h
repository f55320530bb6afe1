/* plural.h - "1 frame", "2 frames". */
#ifndef GP_PLURAL_H
#define GP_PLURAL_H

#include <stdint.h>

/* What stands after a noun of which there are n. */
static inline const char *gp_plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

#endif
