/* colormaps.h - tables of colors. */
#ifndef GP_COLORMAPS_H
#define GP_COLORMAPS_H

#include <stdint.h>

enum { GP_VIRIDIS, GP_MAGMA, GP_TURBO, GP_NCOLORMAPS };

extern const uint8_t gp_colormaps[][256][3];   /* red, green, blue of each level */

#endif
