/* pictures.c - see pictures.h. */
#include <stdlib.h>
#include <string.h>
#include "pictures.h"

enum { BYTES = 1 << 20 };

static void *decoded(const gp_picfile *format, const gp_picfile_how *how, const void *file, size_t n,
                     const gp_type *type)
{
    char err[GP_WHY] = "";
    void *frame = malloc(gp_bytes(type));
    if (format->decode(file, n, how, type, frame, err))
        return frame;
    MUST(*err);
    free(frame);
    return NULL;
}

/* A frame that was read can be written; one of one channel has an axis less. */
static void and_back(const gp_picfile *format, const gp_picfile_how *how, const char *path, bool exact,
                     const gp_type *type, const void *frame)
{
    gp_growbuf file = { 0 };
    gp_type again;
    char err[GP_WHY] = "";
    MUST(!format->why_not(type, path) && format->encode(frame, type, how, &file, err));
    MUST(format->head(file.data, file.n, how, &again, err) && again.dtype == type->dtype
         && gp_bytes(&again) == gp_bytes(type));
    void *copy = decoded(format, how, file.data, file.n, &again);
    MUST(copy && (!exact || !memcmp(copy, frame, gp_bytes(type))));
    free(copy);
    free(file.data);
}

void fuzz_picture(const gp_picfile *format, const gp_picfile_how *how, const char *path, bool exact, const char *data,
                  size_t n)
{
    gp_type type;
    char err[GP_WHY] = "";
    if (!format->head(data, n, how, &type, err)) {
        MUST(*err);
        return;
    }
    MUST(type.ndim >= 2 && type.ndim <= 3 && type.dim[0] > 0 && type.dim[1] > 0);
    if (type.dim[0] > BYTES || type.dim[1] > BYTES || gp_bytes(&type) > BYTES)
        return;
    void *frame = decoded(format, how, data, n, &type);
    if (frame)
        and_back(format, how, path, exact, &type, frame);
    free(frame);
}
