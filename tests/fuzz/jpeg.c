/* jpeg.c - JPEG files, upright, as they are stored, and smaller. */
#include "jpeg_file.h"
#include "pictures.h"

/* What the file says of itself, for other decoders, is what libjpeg finds, which has the last word of shapes. */
static void look(const char *data, size_t n, const gp_picfile_how *how)
{
    gp_jpeg_is is;
    gp_type type;
    char err[GP_WHY] = "", why[GP_WHY] = "";
    bool looks = gp_jpeg_look(data, n, how, &is, err), head = gp_jpeg.head(data, n, how, &type, why);
    MUST(looks ? head && gp_type_same(&is.type, &type) && is.stored.ndim == type.ndim : *err != 0);
    MUST(!looks || is.turned || gp_type_same(&is.stored, &type));
}

static void one(const char *data, size_t n)
{
    gp_picfile_how how = { .quality = 1 + (int)(n % 100), .subsampling = (int)(n % 3) };
    look(data, n, &how);
    fuzz_picture(&gp_jpeg, &how, "a.jpg", false, data, n);
    how.keep_orientation = true;
    look(data, n, &how);
    fuzz_picture(&gp_jpeg, &how, "a.jpg", false, data, n);
    how.keep_orientation = n & 1, how.halvings = 1 + (int)(n % 3);
    fuzz_picture(&gp_jpeg, &how, "a.jpg", false, data, n);
}

const fuzz_harness fuzz_jpeg = { .name = "jpeg", .one = one };
