/* pictures.h - what the harnesses of the formats of pictures share. */
#pragma once

#include "picture_file.h"
#include "fuzz.h"

/* What a head promises is what the decoder fills, and what was decoded is encoded (as `path` is
 * called) and decoded again; the same bytes where the format is exact. */
void fuzz_picture(const gp_picfile *format, const gp_picfile_how *how, const char *path, bool exact, const char *data,
                  size_t n);
