/* test_formats.c - all that is known of formats follows from their list in files.h: the choices and the help of `read`
 * and `write`, names, first bytes; and each makes files that are read back. */
#include "iotest.h"
#include "picture_file.h"
#include "rows_file.h"

#define WORD(word, constant, extensions) { #word, extensions },
static const struct { const char *word, *extensions; } formats[] = { { "auto", "" }, GP_ALL_FORMATS(WORD) };

extern const gp_kind gp_kind_read, gp_kind_write;

TEST_LOOP(follows, GP_RAW, GP_WHOLE)
{
    const char *word = formats[_i].word;
    char name[40];
    for (int i = 0; i < 2; i++) {
        const gp_opt *o = (i ? &gp_kind_write : &gp_kind_read)->opts;
        while (strcmp(o->name, "format"))
            o++;
        ck_assert_ptr_nonnull(strstr(o->choices, format("|%s", word)));
        ck_assert_ptr_nonnull(strstr(o->help, format("; %s: %s", word, formats[_i].extensions)));
    }
    ck_assert_str_eq(gp_filetype_word((gp_filetype)_i), word);
    ck_assert_int_eq(!gp_picfile_of((gp_filetype)_i) + !gp_rowsfile_of((gp_filetype)_i), _i > GP_NPY ? 1 : 2);
    for (const char *e = formats[_i].extensions; *e; e += strspn(e, " ")) {
        int n = (int)strcspn(e, " ");
        ck_assert_int_eq(gp_filetype_of(TEXT(name, "a.b/c.d%.*s", n, e)), _i);
        ck_assert_int_eq(gp_filetype_of(TEXT(name, "%.*s.x", n, e)), GP_AUTO);
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
    gp_filetype as = (gp_filetype)_i;
    const gp_picfile *picture = gp_picfile_of(as);
    const gp_rowsfile *rows = gp_rowsfile_of(as);
    int k = 0;
    if ((rows == &gp_video && !io_has_video()) || (rows == &gp_mp3 && !io_has_mp3()))
        return;
    char yaml[800];
    size_t n;
    char *name = format("a%.*s", (int)strcspn(formats[_i].extensions, " "), formats[_i].extensions);
    while (picture ? picture->why_not(&frames[k].is, name) : rows ? rows->why_not(&frames[k].is, name) : NULL)
        ck_assert_int_lt(++k, sizeof frames / sizeof *frames);
    const char *more = gp_filetype_takes(as, "sample_rate") ? ", sample_rate: 8000"
                     : gp_filetype_takes(as, "codec") ? ", frame_rate: '25', codec: png"
                     : gp_filetype_takes(as, "frame_rate") ? ", frame_rate: '25', subsampling: mono" : "";
    io_runs(TEXT(yaml, "buffers: {x: {%s}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
                 "  - {use: write, path: %s%s, in: x}\n", frames[k].text, name, more));
    ck_assert_uint_eq(io_runs(TEXT(yaml, "buffers: {x: {%s}}\nstages:\n  - {use: read, path: %s, out: x}\n"
                                   "  - {use: discard, in: x}\n", frames[k].text, name)), 1);
    /* Another name: known by its first bytes, or not at all. */
    if (rows && rows->is_folder)       /* test_zarr.c */
        return;
    OWNED char *file = pipe_read(io_dir, name, &n);
    bool plain = as == GP_RAW || (rows && rows->encode);
    ck_assert_int_eq(gp_filetype_begun(file, n), plain ? GP_AUTO : as);
    rename(io_at(name), io_at("no.name"));
    for (int said = 0; said < 2; said++) {
        TEXT(yaml, "buffers: {x: {%s}}\nstages:\n  - {use: read, path: no.name%s%s, out: x}\n  - {use: discard, in: x}\n",
             frames[k].text, said ? ", format: " : "", said ? formats[_i].word : "");
        if (plain && !said)
            io_fails(yaml, 3, "no.name' is of no format that gpipe reads, neither by its name nor by its first bytes ('");
        else
            ck_assert_uint_eq(io_runs(yaml), 1);
    }
}

/* A file that joins frames shows no gap where some failed, which is said once, whatever its format; where each has a file of
 * its own, its name shows it; and what a script leaves out is meant to be. */
TEST_LOOP(says_what_is_missing, GP_RAW, GP_WHOLE)
{
    const gp_picfile *picture = gp_picfile_of((gp_filetype)_i);
    const gp_rowsfile *rows = gp_rowsfile_of((gp_filetype)_i);
    int k = 0;
    if ((rows == &gp_video && !io_has_video()) || (rows == &gp_mp3 && !io_has_mp3()))
        return;
    char *name = format("a%.*s", (int)strcspn(formats[_i].extensions, " "), formats[_i].extensions);
    while (picture ? picture->why_not(&frames[k].is, name) : rows ? rows->why_not(&frames[k].is, name) : NULL)
        k++;
    const char *more = gp_filetype_takes((gp_filetype)_i, "sample_rate") ? ", sample_rate: 8000"
                     : gp_filetype_takes((gp_filetype)_i, "codec") ? ", frame_rate: '25', codec: png"
                     : gp_filetype_takes((gp_filetype)_i, "frame_rate") ? ", frame_rate: '25', subsampling: mono" : "";
    pipe_text(io_dir, "f.lua", "function process(f, x, y)\n    if f.index == 1 or f.index == 2 then return 'drop' end\n"
              "    if f.index == 3 or f.index == 5 then error('no') end\n    y:copy(x)\nend\n");
    for (int joined = 0; joined < 2; joined++) {
        if (joined && picture)
            break;
        const char *yaml = format("on_error: drop\nbuffers: {x: {%s}}\nstages:\n  - {use: generate, frames: 8, out: x}\n"
                                  "  - {use: lua, script: f.lua, in: x, out: y}\n  - {use: write, path: %s%s%s, in: y}\n",
                                  frames[k].text, joined ? "" : "f%05d", name, more);
        pipe_result r = pipe_run(io_dir, yaml, "cpu", NULL, (gp_run_options){ .poison = false });
        ck_assert_msg(r.outcome == GP_DONE, "%s", pipe_said(&r.errs));
        int said = 0;
        for (int i = 0; i < r.errs.n; i++)
            said += strstr(r.errs.e[i].msg, "has no gap where 2 frames are missing (2 failed), frame 3 first: ") != NULL;
        ck_assert_int_eq(said, joined);
    }
}

/* Files of one stage are of one kind, and what is written has the name of one. */
#define READ(path) "read, path: " path ", out: x}\n  - {use: discard, in: x"
#define MADE "generate, frames: 1, out: x}\n  - {use: "
static const struct { const char *files[2], *stage, *says; } refused[] = {
    { { "a.png", "a.tif" }, READ("'*'"), "a.tif' is tiff, and '" },
    { { "a.csv", "a.png" }, READ("'*'"), "a.csv', the first file, is csv: one stage does" },
    { { "a.dat", "b.txt" }, READ("'*'"), "b.txt' is of no format that gpipe reads, and '" },
    { { "a.txt" }, READ("a.txt"), "neither by its name nor by its first bytes ('\\x01~a\\x00\\xff'): set" },
    { { "a.none" }, READ("a.none"), "neither by its name nor by its first bytes (there are none): set" },
    { { "b.png" }, MADE "write, path: a.fits, in: x", "a.fits' does not end in the extension of a format that gpipe" },
    { { "b.png" }, MADE "write, path: b.png/%05d, in: x", "b.png/%05d' does not end in the extension of a format that" },
    { { "b.png" }, MADE "compare, file: b.png, in: x", "b.png' is neither a .npy nor a raw file" },
};

TEST_EACH(is_refused, refused)
{
    static const struct { const char *of, *bytes; size_t n; } made[] = {
        { "png", "\x89PNG\r\n\x1a\n", 8 }, { "tif", "II*\0", 4 }, { "txt", "\1~a\0\xff", 5 }, { "csv", "1\n", 2 },
        { "dat", "12", 2 }, { "none", "", 0 },
    };
    for (int i = 0; i < 2 && refused[_i].files[i]; i++)
        for (size_t k = 0; k < sizeof made / sizeof *made; k++)
            if (!strcmp(strchr(refused[_i].files[i], '.') + 1, made[k].of))
                pipe_file(io_dir, refused[_i].files[i], made[k].bytes, made[k].n);
    io_fails(format("buffers: {x: {dtype: u8, shape: [2]}}\nstages:\n  - {use: %s}\n", refused[_i].stage), 3,
             refused[_i].says);
}

TEST_SUITE(formats, io_set_up, NULL, 0)
