/* npy.h - the header of NumPy's .npy files: versions 1, 2 and 3 are read,
 * version 1 is written. The format: numpy/lib/format.py, NEP 1.
 *
 * Any thread; nothing is allocated. */
#pragma once

#include "gpipe/stage.h"

enum { GP_NPY_HEADER_MAX = 512 };  /* room for any header gp_npy_header makes */

/* Reads the header at `head`, of which `n` bytes are there. Sets the type as it
 * stands in the file (a 0-d array has shape [1]; axes may be 0), where the data
 * start, and whether they are column-major (then `type` has the axes in the
 * file's order, and data with several axes are not in the order that gpipe
 * uses). gp_bytes of the type does not overflow. False with a text in `err` that
 * continues after the file's name: "'x.npy' is big-endian, ...". */
bool gp_npy_parse(const char *head, size_t n, gp_type *type, size_t *data_offset,
                  bool *fortran, char err[160]);
/* The same, but big-endian elements are no error: whether they are, is in *big. */
bool gp_npy_parse_any(const char *head, size_t n, gp_type *type, size_t *data_offset,
                      bool *fortran, bool *big, char err[160]);

/* Writes a header for a row-major array. Its length, a multiple of 64, does not
 * depend on dim[0], so that it can be written again in place when the number of
 * rows is known. Returns the length, or 0 when `cap` is too small. */
size_t gp_npy_header(const gp_type *type, char *buf, size_t cap);
/* The same with a comment, of one line, that readers leave out, as the header is a text of Python's. */
size_t gp_npy_header_with(const gp_type *type, const char *comment, char *buf, size_t cap);

/* The type that NumPy calls so: as str(a.dtype) does, "float32", or as a header, "<f4". GP_NO_DTYPE: gpipe has none of
 * that name, which "u8" is, too, as it is another type in NumPy. Whether its elements are big-endian is in *big. */
gp_dtype gp_numpy_dtype(const char *name, bool *big);
/* "float32", in `to`, which it returns. */
enum { GP_NUMPY_NAME = 16 };
char *gp_numpy_name(gp_dtype t, char to[GP_NUMPY_NAME]);
