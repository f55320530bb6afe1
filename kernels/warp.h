/* warp.h - what the stage `warp` and its kernels say to each other. */
#ifndef GP_WARP_H
#define GP_WARP_H

/* Pixel (x, y) is taken from (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]), with `perspective` divided by
 * m[6] x + m[7] y + m[8]; or from where the map says, if there is one. `edge` is as in pad.h. */
struct warp_how {
    double m[9];
    int rows, cols, channels;              /* of the input */
    int high, wide;                        /* of the output */
    int perspective, edge;
    float value;                           /* of what is nowhere */
};

#endif
