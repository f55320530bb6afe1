/* npz_file.h - the two halves of .npz: npz_file.c reads a member, npz_write.c writes archives. See rows_file.h. */
#pragma once

#include "rows_file.h"

/* The name that np.savez gives an array without one. */
#define GP_NPZ_MEMBER "arr_0"

gp_rows_out *gp_npz_create(int fd, const gp_rowsfile_how *how, const gp_type *frame, const char *path, char err[GP_WHY]);
bool gp_npz_append(gp_rows_out *out, const void *rows, int64_t n, char err[GP_WHY]);
bool gp_npz_finish(gp_rows_out *out, char err[GP_WHY]);
