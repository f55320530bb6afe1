/* npy.c - the header of a .npy file, as a source, a constant and what `compare` reads. */
#include "base/npy.h"
#include "cut.h"
#include "fuzz.h"

/* What was read is written and read again. */
static void header(const char *data, size_t n)
{
    gp_type t, again;
    size_t at, end;
    bool fortran;
    char err[160] = "", head[GP_NPY_HEADER_MAX];
    if (!gp_npy_parse(data, n, &t, &at, &fortran, err)) {
        MUST(*err && strnlen(err, sizeof err) < sizeof err);
        return;
    }
    MUST(at <= n && t.ndim >= 1 && t.ndim <= GP_MAXDIM && t.dtype);
    end = gp_npy_header(&t, head, sizeof head);
    MUST(end && end % 64 == 0 && gp_npy_parse(head, end, &again, &at, &fortran, err));
    MUST(at == end && !fortran && again.dtype == t.dtype && again.ndim == t.ndim
         && !memcmp(again.dim, t.dim, sizeof *t.dim * (size_t)t.ndim));
    char name[GP_NUMPY_NAME];
    bool big;
    MUST(gp_numpy_dtype(gp_numpy_name(t.dtype, name), &big) == t.dtype && !big);
}

typedef struct bytes { const char *at; size_t n; } bytes;

static bool get(void *user, int64_t at, void *to, size_t n)
{
    const bytes *b = user;
    MUST(at >= 0 && (uint64_t)at <= b->n && n <= b->n - (uint64_t)at);
    memcpy(to, b->at + at, n);
    return true;
}

/* Of an array in any order: its rows one by one are those that come at once. */
static void rows(const char *data, size_t n)
{
    const gp_cut_how any = { .any_order = true, .ignore_tail = true };
    gp_type t, row;
    size_t at;
    bool fortran, big;
    char err[GP_WHY] = "";
    gp_cut c;
    int64_t from, count;
    if (!gp_npy_parse_any(data, n, &t, &at, &fortran, &big, err) || gp_bytes(&t) > n - at || !gp_bytes(&t))
        return;
    MUST(gp_cut_npy(&c, data, n, (int64_t)n, &t, &any, err) && c.rows == t.dim[0] && c.swap == big);
    MUST(gp_cut_frame(&c, 0, &from, &count) && from == (int64_t)at && count == c.rows);
    MUST(!gp_cut_frame(&c, 1, &from, &count));
    row = t, row.dim[0] = 1;
    char *all = malloc(gp_bytes(&t)), *one = malloc(gp_bytes(&row));
    bytes b = { data + at, n - at };
    MUST(all && one);
    if (c.columns.ndim)
        MUST(gp_cut_columns(&c.columns, 0, t.dim[0], all, get, &b));
    else
        memcpy(all, data + at, gp_bytes(&t));
    gp_columns *kept = gp_columns_new();
    for (int64_t i = 0; i < t.dim[0] && i < 20 && c.columns.ndim; i++)
        MUST((i % 2 ? gp_cut_columns(&c.columns, i, 1, one, get, &b) : gp_columns_read(kept, &c.columns, i, 1, one, get, &b))
             && !memcmp(one, all + (size_t)i * gp_bytes(&row), gp_bytes(&row)));
    gp_columns_free(kept);
    gp_swap(all, &t);
    free(all), free(one);
}

/* Bytes of any number as frames of raw data. */
static void raw(size_t n)
{
    const gp_type frame = { .dtype = GP_I16, .ndim = 2, .dim = { 3, 2 } };
    char err[GP_WHY] = "";
    gp_cut c;
    int64_t at, rows, all = 0;
    for (int i = 0; i < 3; i++) {
        const gp_cut_how how = { .offset = 5, .skip = 2, .ignore_tail = i > 0, .whole = i > 1 };
        if (!gp_cut_raw(&c, (int64_t)n, &frame, &how, err)) {
            MUST(*err);
            continue;
        }
        for (int64_t f = all = 0; gp_cut_frame(&c, f, &at, &rows); f++, all += rows)
            MUST(at >= 7 && (size_t)(at + rows * 4) <= n && (rows == 3 || (rows > 0 && i < 2)));
        MUST(all == c.rows);
    }
}

static void one(const char *data, size_t n)
{
    static const char *const pipelines[] = {
        "stages: [{use: read, path: x.npy}, {use: compare, file: x.npy}]",
        "stages: [{use: read, path: x.npy, skip: 1}, {use: write, path: y.npy}]",
        ("buffers: {a: {dtype: f32, shape: [2, 3]}, k: {const: x.npy}}\n"
         "stages: [{use: read, path: x.npy, out: a, tail: drop}, {use: take, in: [a, k]}]"),
    };
    header(data, n);
    rows(data, n);
    raw(n);
    fuzz_file("x.npy", data, n);
    for (int i = 0; i < 3; i++) {
        fuzz_forms f;
        fuzz_compile(&f, pipelines[i], strlen(pipelines[i]), NULL, 0, 0, false);
        fuzz_print_errs(&f.errs, pipelines[i], strlen(pipelines[i]));
        fuzz_forms_free(&f);
    }
    fuzz_file(NULL, NULL, 0);
}

const fuzz_harness fuzz_npy = { .name = "npy", .one = one };
