/* zarr_write.c - writes Zarr arrays, version 3, see zarr_file.h and rows_file.h.
 *
 * zarr.json has the same length however many rows there are, so it is written again in its place whenever a row of chunks
 * is there: it never says more than what is whole. Chunks are rows of the array, whole along its other axes, compressed
 * with zstd and its checksum. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/npy.h"
#include "zarr_file.h"

typedef struct zarr_out {
    gp_rows_out out;
    int fd, json;              /* the folder; zarr.json in it */
    int compression;
    gp_type whole;             /* dim[0]: rows that are there */
    size_t row;                /* bytes */
    int64_t chunk, has;        /* rows of a chunk; of that which is not whole yet, */
    char *rows;                /* ... in here; or NULL */
    gp_growbuf encoded;
    gp_zarr_work work;
} zarr_out;

static bool put_file(int in, const char *name, const void *from, size_t n, char err[GP_WHY])
{
    int fd = openat(in, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return gp_why(err, "cannot be written: %s", gp_strerror(errno));
    bool ok = gp_put_at(fd, from, n, 0, err);
    int error = errno;
    if (close(fd) && ok)
        return gp_why(err, "cannot be written: %s", gp_strerror(errno));
    errno = error;
    return ok;
}

static bool put_json(zarr_out *o, char err[GP_WHY])
{
    char text[1500], name[GP_NUMPY_NAME], *p = text;
    const gp_dtype t = o->whole.dtype;
    p += sprintf(p, "{\n  \"zarr_format\": 3,\n  \"node_type\": \"array\",\n  \"shape\": [%19lld", (long long)o->whole.dim[0]);
    for (int k = 1; k < o->whole.ndim; k++)
        p += sprintf(p, ", %lld", (long long)o->whole.dim[k]);
    p += sprintf(p, "],\n  \"data_type\": \"%s\",\n  \"chunk_grid\": {\"name\": \"regular\", \"configuration\": {\"chunk_shape\": "
                 "[%lld", gp_numpy_name(t, name), (long long)o->chunk);
    for (int k = 1; k < o->whole.ndim; k++)
        p += sprintf(p, ", %lld", (long long)o->whole.dim[k]);
    p += sprintf(p, "]}},\n  \"chunk_key_encoding\": {\"name\": \"default\", \"configuration\": {\"separator\": \".\"}},\n"
                 "  \"fill_value\": %s,\n  \"codecs\": [{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}",
                 t == GP_C64 ? "[0.0, 0.0]" : t >= GP_F16 ? "0.0" : "0");
    if (o->compression)
        p += sprintf(p, ", {\"name\": \"zstd\", \"configuration\": {\"level\": %d, \"checksum\": true}}", o->compression);
    p += sprintf(p, "],\n  \"attributes\": {}\n}\n");
    return gp_put_at(o->json, text, (size_t)(p - text), 0, err);
}

/* A chunk of `rows` rows, which are there from now on. */
static bool put_chunk(zarr_out *o, const void *from, int64_t rows, char err[GP_WHY])
{
    char name[24 + 2 * GP_MAXDIM], *p = name;
    size_t n = o->row * (size_t)o->chunk;
    p += sprintf(p, "c.%lld", (long long)(o->whole.dim[0] / o->chunk));
    for (int k = 1; k < o->whole.ndim; k++)
        p = stpcpy(p, ".0");
    if (o->compression) {
        if (!gp_zarr_encode(&o->work, o->compression, from, n, &o->encoded, err))
            return false;
        from = o->encoded.data, n = o->encoded.n;
    }
    if (!put_file(o->fd, name, from, n, err))
        return false;
    o->whole.dim[0] += rows;
    if (put_json(o, err))
        return true;
    o->whole.dim[0] -= rows;
    return false;
}

static void forget(zarr_out *o)
{
    int error = errno;
    if (o->json >= 0)
        close(o->json);
    gp_zarr_leave(&o->work);
    free(o->rows), free(o->encoded.data), free(o);
    errno = error;
}

gp_rows_out *gp_zarr_create(int fd, const gp_rowsfile_how *how, const gp_type *frame, const char *path, char err[GP_WHY])
{
    const gp_zarr_chain chain = { .n = how->compression > 0, .codec = { GP_ZARR_ZSTD } };
    int in = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const bool nested = in >= 0 && gp_zarr_is_array(&(gp_zarr_from){ gp_zarr_beside, &in }, err);
    if (in >= 0)
        close(in);
    if (nested)
        return GP_NULL(gp_why(err, "cannot be written: the folder that it would be in is a Zarr array"));
    if (!gp_zarr_load(&chain, err))
        return NULL;
    zarr_out *o = calloc(1, sizeof *o);
    if (!o)
        return GP_NULL(gp_why(err, GP_WHY_MEMORY));
    *o = (zarr_out){ .out.as = &gp_zarr_array, .fd = fd, .compression = how->compression, .whole = *frame };
    if (how->stack) {
        o->whole.ndim++;
        memcpy(o->whole.dim + 1, frame->dim, sizeof *frame->dim * (size_t)frame->ndim);
        o->whole.dim[0] = 1;
    }
    o->chunk = how->chunk ? how->chunk : o->whole.dim[0];
    o->whole.dim[0] = 1, o->row = gp_bytes(&o->whole), o->whole.dim[0] = 0;
    o->json = openat(fd, "zarr.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (o->json < 0)
        gp_why(err, "cannot be written: %s", gp_strerror(errno));
    if (o->json >= 0 && put_json(o, err))
        return &o->out;
    forget(o);
    return NULL;
}

bool gp_zarr_append(gp_rows_out *out, const void *rows, int64_t n, char err[GP_WHY])
{
    zarr_out *o = (zarr_out *)out;
    for (int64_t k; n; n -= k, rows = (const char *)rows + (size_t)k * o->row) {
        k = n < o->chunk - o->has ? n : o->chunk - o->has;
        if (k == o->chunk) {
            if (!put_chunk(o, rows, k, err))
                return false;
            continue;
        }
        if (!o->rows && !(o->rows = malloc(o->row * (size_t)o->chunk)))
            return gp_why(err, "cannot be written: " GP_WHY_MEMORY);
        memcpy(o->rows + (size_t)o->has * o->row, rows, (size_t)k * o->row);
        o->has += k;
        if (o->has == o->chunk && !put_chunk(o, o->rows, o->chunk, err))
            return false;
        o->has %= o->chunk;
    }
    return true;
}

bool gp_zarr_finish(gp_rows_out *out, char err[GP_WHY])
{
    zarr_out *o = (zarr_out *)out;
    bool ok = true;
    if (o->has) {                      /* a chunk at the edge has all its elements */
        memset(o->rows + (size_t)o->has * o->row, 0, (size_t)(o->chunk - o->has) * o->row);
        ok = put_chunk(o, o->rows, o->has, err);
    }
    forget(o);
    return ok;
}

/* Is all in the folder at `path` part of an array? At the top that is what says what it is; else names of chunks. What else
 * is there is named as it is behind the first `top` bytes of the path. */
static bool has_no_more(const char *path, size_t top, int depth, char err[GP_WHY])
{
    char inner[PATH_MAX];
    DIR *d = opendir(path);
    bool ok = d || errno == ENOTDIR || gp_why(err, "cannot be written: what is there cannot be read: %s", gp_strerror(errno));
    for (struct dirent *e; ok && d && (e = readdir(d));) {
        const char *name = e->d_name, *numbers = !depth && *name == 'c' && (!name[1] || name[1] == '.') ? name + 1 : name;
        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        const bool says = !depth && (!strcmp(name, "zarr.json") || !strcmp(name, ".zarray") || !strcmp(name, ".zattrs"));
        const bool fits = snprintf(inner, sizeof inner, "%s/%s", path, name) < (int)sizeof inner;
        if (!says && (!fits || depth > GP_MAXDIM || numbers[strspn(numbers, "0123456789.")]))
            ok = gp_why(err, "cannot be written: it would replace a Zarr array, and '%s' there is no part of that", inner + top);
        else if (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN)
            ok = has_no_more(inner, top, depth + 1, err);
    }
    if (d)
        closedir(d);
    return ok;
}

/* An array, or nothing yet: all else stays, as a group of arrays. */
bool gp_zarr_may_replace(const char *path, char err[GP_WHY])
{
    DIR *d = opendir(path);
    int fd = d ? dirfd(d) : -1, n = 0;
    while (d && n < 3 && readdir(d))
        n++;                           /* two are the folder and that which it is in */
    bool may = d && (n < 3 || gp_zarr_is_array(&(gp_zarr_from){ gp_zarr_beside, &fd }, err));
    if (d)
        closedir(d);
    return may ? has_no_more(path, strlen(path) + 1, 0, err)
               : gp_why(err, "cannot be written: it is a folder, and no array of Zarr, which alone would be replaced");
}
