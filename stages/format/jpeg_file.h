/* jpeg_file.h - what a JPEG file says of itself, for who decodes it without libjpeg. */
#pragma once

#include "picture_file.h"
#include "turn.h"

typedef struct gp_jpeg_is {
    gp_type stored, type;      /* as the pixels are stored; as the frame is, by gp_picfile_how */
    bool turned;               /* they are to be turned, or mirrored: */
    gp_turn turn;
    bool huffman;              /* its codes are Huffman's, not arithmetic */
    bool rgb;                  /* three colors that are not YCbCr, by what libjpeg goes by */
    bool plain;                /* it is not CMYK, and no fault shows before what is coded and at its end */
} gp_jpeg_is;

/* Looks at a whole file; false, with what is wrong with it: it is none that gpipe reads. */
bool gp_jpeg_look(const void *file, size_t n, const gp_picfile_how *how, gp_jpeg_is *is, char err[GP_WHY]);
