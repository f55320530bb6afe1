/* scan.c - a user's kernel as `check` looks at it: as text, from which comes what it needs of a
 * grid, and which of its variables it changes. No compiler runs.
 *
 * An input is the source, k.cu; what it includes is itself or made up, see world.c. */
#include <string.h>
#include "fuzz.h"

#define PIPELINE(shape, more, options) \
    "buffers: {a: {dtype: f32, shape: " shape "}}\nstages:\n  - {use: give, out: a}\n" \
    "  - {use: kernel, source: k.cu, entry: k, args: [in, out" more "], define: {N: v}" \
    options "}\n  - {use: take}\n"

/* An input w that is smaller than the frame. */
#define SMALLER \
    "buffers: {a: {dtype: f32, shape: [48, 64]}, b: {dtype: f32, shape: [16]}}\n" \
    "stages: [{use: give, out: a}, {use: give, out: b},\n\n" \
    "  {use: kernel, source: k.cu, entry: k, in: {in: a, w: b}, args: [in, w, out, {i32: 3000}, {i32: 16}], " \
    "serial: true, out: c},\n  {use: take, in: c}]\n"

/* With a grid, and when frames take turns, any text is right that has the kernel, but for its
 * parameters. */
static const struct { const char *text; bool right; } pipeline[] = {
    { PIPELINE("[48, 64]", "", ""), false },
    { PIPELINE("[2, 48, 64]", "", ", batched: true"), false },
    { PIPELINE("[64]", ", {i32: 3}", ", grid: 1"), false },
    { SMALLER, false },
    { PIPELINE("[64]", "", ", grid: 1, serial: true, cooperative: true"), true },
};

static void one(const char *data, size_t n)
{
    fuzz_file("k.cu", data, n);
    for (size_t i = 0; i < sizeof pipeline / sizeof *pipeline; i++) {
        const char *text = pipeline[i].text;
        fuzz_forms f;
        fuzz_compile(&f, text, strlen(text), NULL, 0, 0, false);
        fuzz_print_errs(&f.errs, text, strlen(text));
        MUST(!pipeline[i].right || f.plan || strstr(f.errs.e[0].msg, ", but args ")
             || strstr(f.errs.e[0].msg, "no kernel 'k' in ")
             || strstr(f.errs.e[0].msg, " (k.cu:"));       /* a slip in the text, where the kernel is not plain */
        for (int e = 0; e < f.errs.n; e++)
            MUST(f.errs.e[e].at.line == 4);
        fuzz_forms_free(&f);
    }
    fuzz_file(NULL, NULL, 0);
}

const fuzz_harness fuzz_scan = { .name = "scan", .one = one };
