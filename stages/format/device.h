/* device.h - what record() of the device stages shares: grids, strides, names of
 * kernels, and the error for frames that do not fit.
 *
 * Every built-in kernel walks its frame in steps of its grid, and blockIdx.z is
 * the frame in the launch; so a grid only says how many threads share the work,
 * never what they compute. */
#pragma once

#include "gpipe/stage.h"
#include "lanes.h"

/* Types of pixels, whose values f32 holds: what filters compute in, rounding once. */
enum {
    GP_ACCEPT_PIXELS = GP_ACCEPT(GP_U8) | GP_ACCEPT(GP_I8) | GP_ACCEPT(GP_U16) | GP_ACCEPT(GP_I16) | GP_ACCEPT(GP_F16)
                     | GP_ACCEPT(GP_F32)
};

/* The elements (of the view's dtype) from one frame to the next in a launch. */
size_t gp_stride(const gp_view *v);

/* Blocks of `size` threads for n threads: one at least, and `most`. */
unsigned gp_blocks(int64_t n, int64_t size, int64_t most);

/* Queues built-in kernel `kernel` for all frames of the call. gp_launch_map: for
 * work of `threads` threads along x. gp_launch_image: for cols x rows along x and
 * y. `args` as for gp_launch. */
bool gp_launch_map(gp_dcall *c, const char *kernel, int64_t threads,
                   void *const *args, int nargs);
bool gp_launch_image(gp_dcall *c, const char *kernel, int64_t rows, int64_t cols,
                     void *const *args, int nargs);

/* gp_launch_map of kernel KIND_DTYPE, for maps of n elements, four a thread. */
bool gp_launch_typed(gp_dcall *c, const char *kind, gp_dtype t, int64_t n,
                     void *const *args, int nargs);

/* The axes from `first` to `last` as lines, see kernels/lanes.h; a kernel KIND_DTYPE, of the first input's type, for
 * all of them. */
gp_lanes gp_lanes_of(const gp_type *t, int first, int last);
bool gp_launch_lines(gp_dcall *c, const char *kind, const gp_lanes *n, void *const *args, int nargs);

/* The input is an image of at most 2^30 rows and values in a row: (H, W), or
 * also (H, W, C) when `channels`. False with an error that names both shapes. */
bool gp_shape_image(gp_shape *s, bool channels);
