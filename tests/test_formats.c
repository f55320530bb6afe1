/* test_formats.c - all that is known of formats follows from their list in files.h: the choices and the help of `read`
 * and `write`, names, first bytes; and each makes files that are read back. */
#include <stdlib.h>
#include <string.h>
#include "iotest.h"
#include "picture_file.h"
#include "rows_file.h"
#include "suite.h"

#define WORD(word, constant, extensions) { #word, extensions },
static const struct { const char *word, *extensions; } formats[] = { { "auto", "" }, GP_ALL_FORMATS(WORD) };

extern const gp_kind gp_kind_read, gp_kind_write;

TEST_LOOP(follows, GP_RAW, GP_WHOLE)
{
    const char *word = formats[_i].word;
    char name[40], item[100];
    for (int i = 0; i < 2; i++) {
        const gp_opt *o = (i ? &gp_kind_write : &gp_kind_read)->opts;
        while (strcmp(o->name, "format"))
            o++;
        ck_assert_ptr_nonnull(strstr(o->choices, TEXT(item, "|%s", word)));
        ck_assert_ptr_nonnull(strstr(o->help, TEXT(item, "; %s: %s", word, formats[_i].extensions)));
    }
    ck_assert_str_eq(gp_filetype_word((gp_filetype)_i), word);
    ck_assert_int_eq(!gp_picfile_of((gp_filetype)_i) + !gp_rowsfile_of((gp_filetype)_i), _i > GP_NPY ? 1 : 2);
    for (const char *e = formats[_i].extensions; *e; e += strspn(e, " ")) {
        int n = (int)strcspn(e, " ");
        ck_assert_int_eq(gp_filetype_of(TEXT(name, "a.b/c.d%.*s", n, e)), _i);
        ck_assert_int_eq(gp_filetype_of(TEXT(name, "%.*s.x", n, e)), GP_RAW);
        for (char *c = TEXT(name, "A%.*s", n, e); *c; c++)
            *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 32) : *c;
        ck_assert_int_eq(gp_filetype_of(name), _i);
        e += n;
    }
}

/* The first of these that such a file can hold. */
static const struct { gp_type is; const char *text; } frames[] = {
    { { GP_U8, 2, { 8, 8 } }, "dtype: u8, shape: [8, 8]" }, { { GP_I16, 2, { 8, 2 } }, "dtype: i16, shape: [8, 2]" },
    { { GP_F32, 2, { 8, 2 } }, "dtype: f32, shape: [8, 2]" },
};

TEST_LOOP(comes_back, GP_RAW, GP_WHOLE)
{
    gp_filetype as = (gp_filetype)_i, begun;
    const gp_picfile *picture = gp_picfile_of(as);
    const gp_rowsfile *rows = gp_rowsfile_of(as);
    int k = 0;
    char name[40], yaml[800];
    size_t n;
    TEXT(name, "a%.*s", (int)strcspn(formats[_i].extensions, " "), formats[_i].extensions);
    while (picture ? picture->why_not(&frames[k].is, name) : rows ? rows->why_not(&frames[k].is, name) : NULL)
        ck_assert_int_lt(++k, sizeof frames / sizeof *frames);
    const char *more = gp_filetype_takes(as, "sample_rate") ? ", sample_rate: 8000"
                     : gp_filetype_takes(as, "frame_rate") ? ", frame_rate: '25', subsampling: mono" : "";
    io_runs(TEXT(yaml, "buffers: {x: {%s}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
                 "  - {use: write, path: %s%s, in: x}\n", frames[k].text, name, more));
    ck_assert_uint_eq(io_runs(TEXT(yaml, "buffers: {x: {%s}}\nstages:\n  - {use: read, path: %s, out: x}\n"
                                   "  - {use: discard, in: x}\n", frames[k].text, name)), 1);
    char *file = pipe_read(io_dir, name, &n);
    ck_assert((begun = gp_filetype_begun(file, n)) == as || begun == GP_AUTO);
    free(file);
}

TEST_SUITE(formats, io_set_up, io_tear_down, 0)
