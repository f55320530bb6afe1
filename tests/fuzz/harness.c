/* harness.c - the list of harnesses, and how one says that something does not hold. */
#include <stdio.h>
#include "fuzz.h"

const fuzz_harness *const fuzz_all[] = {
    &fuzz_cu, &fuzz_edit, &fuzz_expr, &fuzz_jpeg, &fuzz_lua, &fuzz_module, &fuzz_npy, &fuzz_npz, &fuzz_onnx, &fuzz_png,
    &fuzz_pnm, &fuzz_report, &fuzz_set, &fuzz_text_rows, &fuzz_tiff, &fuzz_top, &fuzz_wire, &fuzz_y4m, &fuzz_yaml, &fuzz_zarr,
    NULL
};

const fuzz_harness *fuzz_find(const char *name)
{
    for (const fuzz_harness *const *h = fuzz_all; *h; h++)
        if (!strcmp((*h)->name, name))
            return *h;
    return NULL;
}

void fuzz_wrong(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

char *fuzz_text(void (*write)(FILE *f, const void *arg), const void *arg, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);
    MUST(f != NULL);
    write(f, arg);
    MUST(!fclose(f));
    return text;
}
