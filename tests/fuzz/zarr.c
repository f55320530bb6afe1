/* zarr.c - what Zarr arrays say of themselves, and one chunk: an input is zarr.json, .zarray, .zgroup, .zattrs and the
 * bytes of the chunk, with a NUL between them; of what is empty there is no file. */
#include <errno.h>
#include "zarr_file.h"
#include "fuzz.h"

enum { FILES = 4, MOST = 1 << 16 };

typedef struct store { const char *text[FILES]; size_t n[FILES]; } store;

static int64_t get(void *user, const char *name, int64_t at, void *to, size_t n)
{
    static const char *const names[] = { "zarr.json", ".zarray", ".zgroup", ".zattrs" };
    const store *s = user;
    const char *slash = strrchr(name, '/');
    int i = 0;
    while (i < FILES && strcmp(names[i], slash ? slash + 1 : name))
        i++;
    MUST(i < FILES && !at && !strstr(name, ".."));
    errno = ENOENT;
    if (!s->n[i])
        return -1;
    n = n < s->n[i] ? n : s->n[i];
    memcpy(to, s->text[i], n);
    return (int64_t)n;
}

static void decode(const gp_zarr *z, const char *data, size_t n)
{
    gp_zarr_work work = { 0 };
    char err[GP_WHY] = "";
    size_t want = gp_dtype_size(z->whole.dtype);
    for (int k = 0; k < z->whole.ndim; k++)
        want *= want <= MOST ? (size_t)z->chunk[k] : 0;
    if (!want || want > MOST)
        return;
    char *to = malloc(want);
    bool may = gp_zarr_may_hold(&z->chain, n, want, err), ok = gp_zarr_decode(&z->chain, &work, data, n, to, want, err);
    MUST(ok ? may || n > MOST : *err);
    gp_zarr_leave(&work);
    free(to);
}

static void one(const char *data, size_t n)
{
    const char *end = data + n;
    store s = { .n = { 0 } };
    for (int i = 0; i < FILES && data < end; i++) {
        const char *nul = memchr(data, 0, (size_t)(end - data)), *to = nul ? nul : end;
        s.text[i] = data, s.n[i] = (size_t)(to - data);
        data = nul ? nul + 1 : end;
    }
    for (int level = 0; level < 2; level++) {
        gp_zarr z;
        char err[GP_WHY] = "";
        if (!gp_zarr_look(&z, &(gp_zarr_from){ get, &s }, level, err)) {
            MUST(*err);
            continue;
        }
        int64_t chunks = 1;            /* of a file */
        MUST(z.whole.dtype && z.whole.ndim >= 1 && z.whole.ndim <= GP_MAXDIM);
        for (int k = 0; k < z.whole.ndim; k++)
            MUST(z.whole.dim[k] >= 0 && z.chunk[k] > 0 && z.shard[k] % z.chunk[k] == 0 && z.order[k] < z.whole.ndim);
        for (int k = 0; k < z.whole.ndim; k++)
            MUST(!__builtin_mul_overflow(chunks, z.shard[k] / z.chunk[k], &chunks) && chunks <= 1 << 26);
        decode(&z, data, (size_t)(end - data));
    }
}

const fuzz_harness fuzz_zarr = { .name = "zarr", .one = one };
