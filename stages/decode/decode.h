/* decode.h - what the files of the kind `decode` share. */
#pragma once

#include "jpeg_file.h"

enum { GP_DECODER_AUTO, GP_DECODER_CPU, GP_DECODER_CUDA, GP_DECODER_HARDWARE };
enum { GP_UPRIGHT, GP_AS_STORED };
enum { GP_DECODE_AT_ONCE = 32 };       /* frames that a worker hands to the GPU */

typedef struct gp_decode_opts {
    int decoder, orientation, colors;
    bool strict;
    int64_t max_pixels;
    /* found by shape() */
    gp_loc at;                 /* of `decoder` */
    int by;                    /* CPU, CUDA or HARDWARE */
    unsigned varies;           /* of the output */
    gp_picfile_how how;
} gp_decode_opts;

/* The CPU decodes a frame's file into `to`, as the type of its output says; the frame gets the file's numbers. */
bool gp_decode_by_cpu(gp_call *c, gp_frame *f, void *to, char why[GP_WHY]);
/* Gives a frame the type that its file has, which has to fit in `most`. */
bool gp_decode_take(const gp_decode_opts *o, gp_view *v, const gp_type *most, const gp_type *found, char why[GP_WHY]);
/* Says what is wrong with a frame. */
void gp_decode_fail(gp_call *c, gp_frame *f, const char *why);

/* gpu.c: pictures that a GPU decodes: open, where *made may be made in part when it fails; close; run(). */
typedef struct gp_decode_gpu gp_decode_gpu;
bool gp_decode_gpu_open(const gp_open *o, gp_decode_gpu **made);
void gp_decode_gpu_close(gp_decode_gpu *d);          /* accepts NULL */
bool gp_decode_gpu_run(gp_decode_gpu *d, gp_call *c, gp_frame *f, int n);
