/* jpeg.c - JPEG files, upright and as they are stored. */
#include "pictures.h"

static void one(const char *data, size_t n)
{
    gp_picfile_how how = { .quality = 1 + (int)(n % 100), .subsampling = (int)(n % 3) };
    fuzz_picture(&gp_jpeg, &how, "a.jpg", false, data, n);
    how.keep_orientation = true;
    fuzz_picture(&gp_jpeg, &how, "a.jpg", false, data, n);
}

const fuzz_harness fuzz_jpeg = { .name = "jpeg", .one = one };
