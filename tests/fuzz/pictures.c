/* pictures.c - see pictures.h. */
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

static gp_filemeta said_by(const gp_picfile *format, const void *file, size_t n)
{
    static const char *const keys[] = { "a", "exposure", "time" };
    gp_filemeta said = { .n = 3, .key = keys };
    char err[GP_WHY] = "";
    MUST(!format->said || format->said(file, n, &said, err) || *err);
    return said;
}

/* A frame that was read can be written, with its numbers; one of one channel has an axis less. */
static void and_back(const gp_picfile *format, const gp_picfile_how *how, const char *path, bool exact,
                     const gp_type *type, const void *frame)
{
    gp_growbuf file = { 0 };
    gp_type again;
    char err[GP_WHY] = "";
    bool more = type->ndim == 3 && type->dim[2] != 3;  /* PAM is read alone */
    if (more && format == &gp_pnm)
        return;
    MUST(!format->why_not(type, path) && format->encode(frame, type, how, &file, err));
    MUST(format->head(file.data, file.n, how, &again, err) && again.dtype == type->dtype
         && gp_bytes(&again) == gp_bytes(type));
    gp_filemeta said = said_by(format, file.data, file.n);
    MUST(!how->said || said.has == how->said->has);
    for (int i = 0; i < said.n; i++)   /* the last is the time */
        MUST(!(said.has & 1u << i) || (i == 2 ? said.time_ns == how->said->time_ns
                                              : !memcmp(&said.value[i], &how->said->value[i], sizeof said.value[i])));
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
    gp_picfile_how with = *how;
    with.halvings = 0;
    gp_filemeta said = { .n = 0 };
    if (frame && format->said)
        said = said_by(format, data, n), with.said = &said;
    if (frame)
        and_back(format, &with, path, exact, &type, frame);
    free(frame);
}
