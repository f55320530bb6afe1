/* pnm.c - PGM, PPM and PFM files: each input as both formats. */
#include "pictures.h"

static void one(const char *data, size_t n)
{
    fuzz_picture(&gp_pnm, &(gp_picfile_how){ 0 }, "a.pnm", true, data, n);
    fuzz_picture(&gp_pfm, &(gp_picfile_how){ 0 }, "a.pfm", true, data, n);
}

const fuzz_harness fuzz_pnm = { .name = "pnm", .one = one };
