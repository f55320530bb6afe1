/* set.c - `--set PATH=VALUE`, one a line, on one pipeline that has a bit of everything. */
#include "fuzz.h"

enum { MOST = 8 };

static const char pipeline[] =
    "pipeline: set\ndepth: 3\nvars: {dir: ., rate: 6, gain: 2, odd: \"a b\", must: }\n"
    "buffers:\n"
    "  ecg: {dtype: f32, shape: [rate, 8], depth: 4}\n"
    "  wide: {like: ecg, dtype: f64}\n"
    "  taps: {const: taps.npy}\n"
    "stages:\n  - {use: read, path: \"${dir}/data.npy\", out: ecg}\n"
    "  - {use: fir, in: {in: ecg, taps: taps}}\n  - {name: louder, use: scale, a: gain}\n"
    "  - {use: cast, dtype: f64, out: wide}\n"
    "  - {name: script, use: lua, script: x.lua, params: {floor: [1, 2], deep: {a: b}}}\n"
    "  - {use: kernel, source: k.cu, threads: out.size, args: [in, out, {i32: 3}], define: {N: 2}}\n"
    "  - {use: write, path: \"out/${must:-louder}.npy\"}\n"
    "  - {name: copy, use: write, in: ecg, path: out/copy.npy}\n"
    "  - {name: ch, in: ecg, stages: [{use: scale, a: k}, {use: discard}], repeat: {over: {k: 2}}}\n"
    "  - {name: part, include: part.yaml, in: ecg, out: more, vars: {n: 8}}\n  - {use: discard}\n"
    "  - {in: ecg, stages: [{use: discard}]}\n  - {include: part.yaml, in: ecg, out: other}\n  - {use: discard}\n";

static void one(const char *data, size_t n)
{
    const char *set[MOST];
    char *lines = strndup(data, n), *rest = lines;
    int nset = 0;
    while (nset < MOST && rest)
        set[nset++] = strsep(&rest, "\n");
    fuzz_forms f;
    fuzz_compile(&f, pipeline, sizeof pipeline - 1, set, nset, 1, true);
    fuzz_print_errs(&f.errs, pipeline, sizeof pipeline - 1);
    fuzz_forms_free(&f);
    free(lines);
}

const fuzz_harness fuzz_set = { .name = "set", .one = one };
