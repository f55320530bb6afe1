/* npy.c - the header of a .npy file, as a source, a constant and what `compare` reads. */
#include <string.h>
#include "base/npy.h"
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
}

static void one(const char *data, size_t n)
{
    static const char *const pipelines[] = {
        "stages: [{use: read, path: x.npy}, {use: compare, file: x.npy}]",
        "stages: [{use: read, path: x.npy, skip: 1}, {use: write, path: y.npy}]",
        ("buffers: {a: {dtype: f32, shape: [2, 3]}, k: {const: x.npy}}\n"
         "stages: [{use: read, path: x.npy, out: a, tail: partial}, {use: take, in: [a, k]}]"),
    };
    header(data, n);
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
