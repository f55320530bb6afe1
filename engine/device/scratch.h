/* scratch.h - a folder for what a compiler writes, which does not outlive its process (scratch.c).
 *
 * It is a temporary one (base/stale.c) in $TMPDIR or /tmp, for its owner only, and locked while it is used. Who makes one
 * removes those of the same user that dead processes left. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include "base/outfile.h"

typedef struct gp_scratch {
    char *path;
    DIR *folder;                       /* open; it holds the lock */
} gp_scratch;

/* False with `err`: "no folder can be made in '/tmp': ...; set TMPDIR". */
bool gp_scratch_open(gp_scratch *s, char err[GP_WHY]);
void gp_scratch_close(gp_scratch *s);  /* removes it, and all files in it */
