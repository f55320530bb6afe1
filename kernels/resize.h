/* resize.h - what the stage `resize` and its kernels say to each other. */
#ifndef GP_RESIZE_H
#define GP_RESIZE_H

enum { BILINEAR, AREA, CUBIC, NEAREST };

/* Rows of the output that a block makes at a time, where there are blocks enough. */
enum { RESIZE_ROWS = 8 };

/* One axis: pixels there are, pixels to be made, each of from / to pixels, so that the middle is made of the middle;
 * `smooth`: all that a pixel covers counts; `taps`: the most pixels that one is made of. */
struct resize_axis { int in, out, from, to, method, smooth, taps; };

/* Pixels [first, first + n) of the input are what one of the output is made of. */
struct resize_span { int first, n; };

#endif
