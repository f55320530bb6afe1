/* test_io_outputs.c - what becomes of files that are there already, and that no output
 * destroys an input or another output. */
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "base/outfile.h"
#include "iotest.h"

#define IN "stages:\n  - {use: read, path: in.npy}\n"

static unsigned mode_of(const char *name)
{
    struct stat st;
    ck_assert_int_eq(stat(io_at(name), &st), 0);
    return st.st_mode & 07777;
}

/* ---- what a replaced file keeps -------------------------------------- */

static const struct { unsigned mode; const char *write; } modes[] = {
    { 0600, "path: out.raw" }, { 0600, "path: '%d.raw'" }, { 0640, "path: out.raw" },
    { 0666, "path: out.raw" }, { 0444, "path: '%d.raw'" },
};

TEST_EACH(keeps_the_mode, modes)
{
    const char *name = strchr(modes[_i].write, '%') ? "0.raw" : "out.raw";
    io_count_npy("in.npy", U8(1, 10), 0);
    pipe_text(io_dir, name, "old");
    ck_assert_int_eq(chmod(io_at(name), modes[_i].mode), 0);
    io_runs(format(IN "  - {use: write, %s}\n", modes[_i].write));
    io_holds(name, "\0\1\2\3\4\5\6\7\10\11", 10);
    ck_assert_uint_eq(mode_of(name), modes[_i].mode);
}

/* A new file has what the umask leaves. */
TEST(new_files_have_the_umask)
{
    mode_t was = umask(027);
    io_count_npy("in.npy", U8(1, 10), 0);
    io_runs(IN "  - {use: write, path: out.raw}\n");
    umask(was);
    ck_assert_uint_eq(mode_of("out.raw"), 0640);
}

TEST(keeps_the_owner)
{
    struct stat st;
    io_count_npy("in.npy", U8(1, 10), 0);
    pipe_text(io_dir, "out.raw", "old");
    if (chown(io_at("out.raw"), 1234, 2345)) {
        fprintf(stderr, "skipped: keeps_the_owner needs root\n");
        return;
    }
    ck_assert_int_eq(chmod(io_at("out.raw"), 0604), 0);
    io_runs(IN "  - {use: write, path: out.raw}\n");
    ck_assert_int_eq(stat(io_at("out.raw"), &st), 0);
    ck_assert_uint_eq(st.st_uid, 1234);
    ck_assert_uint_eq(st.st_gid, 2345);
    ck_assert_uint_eq(st.st_mode & 07777, 0604);
}

/* Links and what they lead to; `there`: that exists before. Every link stays one. */
static const struct { const char *link, *to, *file; bool there; } links[] = {
    { "out.raw", "data/x.raw", "data/x.raw", true },
    { "out.raw", "data/x.raw", "data/x.raw", false },
    { "out.raw", "new/folder/x.raw", "new/folder/x.raw", false },
    { "data/out.raw", "../x.raw", "x.raw", true },
    { "data/out.raw", "x.raw", "data/x.raw", false },
};

TEST_EACH(follows_links, links)
{
    struct stat st;
    io_count_npy("in.npy", U8(1, 10), 0);
    mkdir(io_at("data"), 0777);
    if (links[_i].there)
        pipe_text(io_dir, links[_i].file, "old");
    ck_assert_int_eq(symlink(links[_i].to, io_at(links[_i].link)), 0);
    ck_assert_int_eq(symlink(strrchr(links[_i].link, 'o'), io_at("data/twice.raw")), 0);
    io_runs(format(IN "  - {use: write, path: %s}\n",
                 !strncmp(links[_i].link, "data/", 5) ? "data/twice.raw" : links[_i].link));
    ck_assert_int_eq(lstat(io_at(links[_i].link), &st), 0);
    ck_assert_msg(S_ISLNK(st.st_mode), "the link is gone");
    ck_assert_int_eq(lstat(io_at("data/twice.raw"), &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    io_holds(links[_i].file, "\0\1\2\3\4\5\6\7\10\11", 10);
}

TEST(links_in_a_circle)
{
    io_count_npy("in.npy", U8(1, 10), 0);
    ck_assert_int_eq(symlink("b", io_at("a")), 0);
    ck_assert_int_eq(symlink("a", io_at("b")), 0);
    io_fails(IN "  - {use: write, path: a, format: raw}\n", 1, "cannot be written: Too many levels");
    ck_assert_int_eq(io_files("."), 3);
}

/* ---- outputs over inputs --------------------------------------------- */

/* A pipeline whose output is its input: `text` is in the error. Exit code 3: seen before
 * anything runs; 1: when the file is opened. No input changes. */
static const struct { const char *yaml, *text; int code; } over_inputs[] = {
    { "stages:\n  - {use: read, path: '*.raw.npy'}\n  - {use: write, path: '%n.npy'}\n",
      "/b1.raw.npy', which stage 'read' reads", 3 },
    { "stages:\n  - {use: read, path: in.npy}\n  - {use: write, path: x/../in.npy}\n", "in.npy' would replace '", 3 },
    { "stages:\n  - {use: read, path: 'n%03d.npy'}\n  - {use: write, path: 'n%03d.npy'}\n",
      "n000.npy', which stage 'read' reads", 3 },
    { "stages:\n  - {use: read, path: 'n*.npy'}\n  - {use: write, path: 'n%03d.npy'}\n", "would replace '", 3 },
    { "stages:\n  - {use: generate, frames: 4, out: x}\n  - {use: compare, file: c.raw, in: x}\n"
      "  - {use: write, path: c.raw, in: x}\nbuffers: {x: {dtype: u8, shape: [2]}}\n",
      "which stage 'compare' reads", 3 },
    { "stages:\n  - {use: read, path: in.npy}\n  - {use: write, path: soft.npy}\n",
      "soft.npy' is read by stage 'read'", 1 },
    { "stages:\n  - {use: read, path: in.npy}\n  - {use: write, path: hard.npy}\n",
      "hard.npy' is read by stage 'read'", 1 },
    { "stages:\n  - {use: read, path: soft.npy}\n  - {use: write, path: in.npy}\n",
      "in.npy' is read by stage 'read'", 1 },
    { "stages:\n  - {use: read, path: 'n*.npy'}\n  - {use: write, path: 'link/%n.npy'}\n", "frame 0: '", 1 },
    { "stages:\n  - {use: read, path: 'n*.npy'}\n  - {use: write, path: 'link/%n.npy', workers: 3}\n",
      "is read by stage 'read'", 1 },
    { "stages:\n  - {use: read, path: in.npy}\n  - {use: write, path: link/test.yaml, format: raw}\n",
      "is read by gpipe as the pipeline", 1 },
    { "stages:\n  - {use: generate, frames: 1, out: x}\n  - {use: write, path: link/in.npy, in: x}\n"
      "  - {use: compare, in: [x, y]}\n"
      "buffers: {x: {dtype: u8, shape: [4, 10]}, y: {const: in.npy}}\n",
      "in.npy' is read by buffer 'y'", 1 },
};

static void same_inputs(void)
{
    io_counts("in.npy", U8(4, 10), 0);
    io_counts("b1.raw.npy", U8(4, 10), 0);
    io_counts("b2.raw.npy", U8(4, 10), 0);
    io_counts("n000.npy", U8(1, 2), 0);
    io_counts("n001.npy", U8(1, 2), 1);
    io_holds("c.raw", "\0\1\2\3\4\5\6\7", 8);
    io_holds("test.yaml", "the pipeline", 12);
}

TEST_EACH(never_over_an_input, over_inputs)
{
    io_count_npy("in.npy", U8(4, 10), 0);
    io_count_npy("b1.raw.npy", U8(4, 10), 0);
    io_count_npy("b2.raw.npy", U8(4, 10), 0);
    io_count_npy("n000.npy", U8(1, 2), 0);
    io_count_npy("n001.npy", U8(1, 2), 1);
    io_count_raw("c.raw", 8);
    pipe_text(io_dir, "test.yaml", "the pipeline");
    ck_assert_int_eq(symlink("in.npy", io_at("soft.npy")), 0);
    ck_assert_int_eq(link(io_at("in.npy"), io_at("hard.npy")), 0);
    ck_assert_int_eq(symlink(".", io_at("link")), 0);
    int before = io_files(".");
    pipe_result r = io_fails(over_inputs[_i].yaml, over_inputs[_i].code, over_inputs[_i].text);
    ck_assert_int_ge(r.errs.e[0].at.col, 24);
    ck_assert_int_eq(io_files("."), before);
    same_inputs();
}

/* What looks alike and is no danger. */
static const char *const beside[] = {
    "stages:\n  - {use: read, path: in.npy}\n  - {use: write, path: out/in.npy}\n",
    "stages:\n  - {use: read, path: 'n*.npy'}\n  - {use: write, path: '%n_out.npy'}\n",
    "stages:\n  - {use: read, path: 'n*.npy'}\n  - {use: write, path: '%n.raw'}\n",
    "stages:\n  - {use: read, path: n002.npy}\n  - {use: write, path: 'n%03d.npy'}\n",
    "stages:\n  - {use: read, path: 'n%03d.npy'}\n  - {use: write, path: 'n%04d.npy'}\n",
};

TEST_EACH(beside_an_input, beside)
{
    io_count_npy("in.npy", U8(1, 10), 0);
    io_count_npy("n002.npy", U8(1, 2), 2);
    io_count_npy("n003.npy", U8(1, 2), 3);
    io_runs(beside[_i]);
}

/* ---- two outputs with one name --------------------------------------- */

#define TWO(a, b) \
    IN "  - {name: a, use: write, path: " a "}\n  - {name: b, use: write, in: read, path: " b "}\n"

/* The exit code; 3: seen before anything runs, 0: no two are the same. */
static const struct { const char *yaml; int code; } twice[] = {
    { TWO("out/%05d.raw", "out/00000.raw"), 3 },
    { TWO("out/%05d.raw", "out/0%04d.raw"), 3 },
    { TWO("out/%05d.raw, start: 7", "out/../out/00007.raw"), 3 },
    { TWO("out/%05d.raw", "out/0%04d.raw, start: 2"), 1 },
    { TWO("out/%05d.raw", "out/0%04d.raw, start: 4"), 0 },
    { TWO("out/00003.raw", "out/%05d.raw"), 1 },
    { TWO("out/00004.raw", "out/%05d.raw"), 0 },
    { TWO("out/%05d.raw", "link/%05d.raw"), 1 },
    { TWO("out/%d.raw", "link/%05d.raw"), 0 },
    { TWO("out/x.raw", "link/x.raw"), 1 },
    { TWO("out/%n%d.raw", "link/in.raw"), 0 },
    { TWO("out/%n%d.raw", "link/in2.raw"), 1 },
    { TWO("out/in%d.raw", "link/%n%d.raw"), 1 },
    { TWO("out/in%d.raw", "other/%n%d.raw"), 0 },
    { TWO("out/soft.raw", "out/%05d.raw"), 1 },
    { TWO("out/%d/x.raw", "link/%d/x.raw"), 1 },
    { TWO("out/%d/x.raw", "out/1/x.raw"), 1 },
    { TWO("out/1%d.raw", "link/%d.raw"), 0 },
    { TWO("out/%d.raw, rotate_frames: 2", "out/%d.raw, rotate_frames: 2"), 3 },
    { TWO("out/%d.raw, rotate_frames: 2", "out/%d.raw"), 3 },
    { TWO("out/%d.raw, rotate_frames: 2", "link/%d.raw, rotate_frames: 3"), 1 },
    { TWO("out/%t.raw, rotate_time: 1h", "out/%t.raw, rotate_time: 2h"), 3 },
};

TEST_EACH(one_name_twice, twice)
{
    io_count_npy("in.npy", U8(4, 10), 0);
    mkdir(io_at("out"), 0777);
    ck_assert_int_eq(symlink("out", io_at("link")), 0);
    ck_assert_int_eq(symlink("00002.raw", io_at("out/soft.raw")), 0);
    const char *at = strstr(twice[_i].yaml, "in.npy}") + 6;
    char *y = format("buffers: {read: {}}\n%.*s, out: read%s", (int)(at - twice[_i].yaml), twice[_i].yaml, at);
    if (!twice[_i].code) {
        io_done(y);
        return;
    }
    pipe_result r = io_fails(y, twice[_i].code, "is written by stage '");
    ck_assert_msg(strstr(io_error(&r), "'a' too") || strstr(io_error(&r), "'b' too"), "%s", io_error(&r));
    ck_assert_int_ge(r.errs.e[0].at.line, 4);
}

/* ---- files of an earlier run ----------------------------------------- */

/* Three frames, with files f00001.raw, f00003.raw, f9.raw, all.raw and all.npy there already:
 * either an error, or so many new files, and what is said of those replaced. */
static const struct { const char *write, *error; int code, more; const char *said; } earlier[] = {
    { "path: 'out/f%05d.raw'", NULL, 0, 2, "replaced a file, '" },
    { "path: 'out/f%05d.raw', start: 1", NULL, 0, 1, "replaced 2 files, the first '" },
    { "path: 'out/f%05d.raw', start: 4", NULL, 0, 3, NULL },
    { "path: 'out/f%05d.raw', if_exists: next", NULL, 0, 3, "'write' went on at number 4" },
    { "path: 'out/f%05d.raw', if_exists: next, start: 20", NULL, 0, 3, NULL },
    { "path: 'new/f%05d.raw', if_exists: next, start: 7", NULL, 0, 0, NULL },
    { "path: 'out/f%05d.raw', if_exists: error", "frame 1: '", 1, 1, NULL },
    { "path: 'out/f%05d.raw', if_exists: error, start: 1", "f%05d.raw' is there already with number 1", 1, 0, NULL },
    { "path: 'out/f%05d.raw', if_exists: error, start: 4", NULL, 0, 3, NULL },
    { "path: out/all.raw, if_exists: error", "all.raw' is there already", 1, 0, NULL },
    { "path: out/all.npy, if_exists: error", "all.npy' is there already", 1, 0, NULL },
    { "path: out/all.npy", NULL, 0, 0, "replaced a file, '" },
    { "path: out/n%d_%n.raw, if_exists: error", NULL, 0, 3, NULL },
    { "path: out/all.raw, if_exists: next", "'next' is for files that differ only in the number", 3, 0, NULL },
    { "path: out/%n%05d.raw, if_exists: next", "'next' is for files", 3, 0, NULL },
    { "path: 'out/%d/%05d.raw', if_exists: next", "'next' is for files", 3, 0, NULL },
    { "path: out/all.raw, start: 3", "'start' has no effect on a path without a number", 3, 0, NULL },
    { "path: stdout, if_exists: error", "'if_exists' has no effect on standard output", 3, 0, NULL },
    { "path: 'out/f%5d.raw'", "'%5d' has no meaning here; %05d is the frame's number", 3, 0, NULL },
    { "path: '${no:-out/f%5d.raw}'", "f%5d.raw' has no number: that is %d, or with its digits %05d", 3, 0, NULL },
    { "path: 'out/f%%5d.raw'", NULL, 0, 1, NULL },
    { "path: 'out/f%05d.raw', start: -1", "'start'", 3, 0, NULL },
};

TEST_EACH(files_of_an_earlier_run, earlier)
{
    static const char *const there[] = { "out/f00001.raw", "out/f00003.raw", "out/f9.raw",
                                         "out/all.raw", "out/all.npy" };
    io_count_npy("in.npy", U8(3, 2), 0);
    mkdir(io_at("out"), 0777);
    for (size_t i = 0; i < 5; i++)
        pipe_text(io_dir, there[i], "old");
    pipe_result r = io_go(format(IN "  - {use: write, %s}\n", earlier[_i].write));
    const char *text = io_error(&r);
    ck_assert_int_eq(io_files("out"), 5 + earlier[_i].more);
    ck_assert_int_eq(gp_errs_exit(&r.errs), earlier[_i].code);
    if (earlier[_i].error)
        ck_assert_msg(strstr(text, earlier[_i].error) != NULL, "%s", text);
    else if (earlier[_i].said)
        ck_assert_msg(r.errs.n == 1 + (r.errs.e[1].code == GP_E_NOTE) && strstr(text, earlier[_i].said), "%d: %s",
                      r.errs.n, text);
    else
        ck_assert_int_eq(r.errs.n, 0);
    for (size_t i = 0; earlier[_i].code && i < 5; i++)
        io_holds(there[i], "old", 3);
}

/* A run of three frames replaces some of those that are there: the others that have higher numbers are told. */
static const struct { const char *write, *there[5], *says; } higher[] = {
    { "path: 'out/f%03d.raw'", { "f000.raw", "f002.raw" }, NULL },
    { "path: 'out/f%03d.raw'", { "f000.raw", "f003.raw" }, "a file with a higher number is still there, '@f003.raw'" },
    { "path: 'out/f%03d.raw', workers: 3", { "f1000.raw", "f000.raw", "f004.raw", "f999.raw" },
      "3 files with higher numbers are still there, the first '@f004.raw'" },
    { "path: 'out/f%03d.raw', start: 5", { "f000.raw", "f006.raw", "f007.raw" }, NULL },
    { "path: 'out/f%03d.raw', start: 5", { "f000.raw", "f006.raw", "f008.raw" },
      "a file with a higher number is still there, '@f008.raw'" },
    { "path: 'out/f%03d.raw'", { "f000.raw", "f4.raw", "f0004.raw", "g004.raw", "f004.raw.partial" }, NULL },
    { "path: 'out/f%d.raw', format: raw", { "f0.raw", "f4.raw", "f04.raw" },
      "a file with a higher number is still there, '@f4.raw'" },
    { "path: 'out/f%03d.raw'", { "f003.raw" }, NULL },
};

TEST_EACH(higher_numbers_are_told, higher)
{
    char y[400], name[50], path[700], says[900] = "";
    const char *at_sign = higher[_i].says ? strchr(higher[_i].says, '@') : NULL;
    if (at_sign)
        TEXT(says, "%.*s%s%s", (int)(at_sign - higher[_i].says), higher[_i].says, TEXT(path, "%s/out/", io_dir), at_sign + 1);
    io_count_npy("in.npy", U8(3, 2), 0);
    mkdir(io_at("out"), 0777);
    for (int i = 0; i < 5 && higher[_i].there[i]; i++)
        pipe_text(io_dir, TEXT(name, "out/%s", higher[_i].there[i]), "old");
    pipe_result r = io_done(TEXT(y, IN "  - {use: write, %s}\n", higher[_i].write));
    ck_assert_str_eq(r.errs.n == 2 && r.errs.e[1].code == GP_E_NOTE ? r.errs.e[1].msg : "", says);
    ck_assert_int_le(r.errs.n, 2);
}

TEST(numbers_go_on)
{
    io_count_npy("in.npy", U8(3, 2), 0);
    for (int i = 0; i < 3; i++)
        io_runs(IN "  - {use: write, path: 'out/%03d.raw', if_exists: next, workers: 2}\n");
    ck_assert_int_eq(io_files("out"), 9);
    io_holds("out/000.raw", "\0\1", 2);
    io_holds("out/007.raw", "\2\3", 2);
    io_runs(IN "  - {use: write, path: 'out/%03d.raw', start: 998}\n");
    io_holds("out/1000.raw", "\4\5", 2);
    io_runs(IN "  - {use: write, path: 'out/%03d.raw', if_exists: next}\n");
    io_holds("out/1001.raw", "\0\1", 2);
}

/* ---- names that would leave their folder ------------------------------ */

static const struct { const char *in, *out; bool ok; } names[] = {
    { "...raw", "out/%n/x.raw", false }, { "..raw", "out/%n", false },
    { "..raw", "out/%n.raw", false }, { "...raw", "out/.%n", false },
    { ".x.raw", "out/%n.raw", true }, { "a\tb.raw", "out/%n.raw", true },
};

TEST_EACH(names_stay_in_their_folder, names)
{
    pipe_text(io_dir, names[_i].in, "1234");
    mkdir(io_at("out"), 0777);
    char in[40] = "";
    for (const char *c = names[_i].in; *c; c++)
        strcat(in, *c == '\t' ? "\\t" : (char[2]){ *c });
    char *y = format("buffers: {a: {dtype: u8, shape: [4]}}\nstages:\n  - {use: read, path: \"./%s\", "
                     "format: raw, out: a}\n  - {use: write, path: %s, format: raw}\n", in, names[_i].out);
    if (names[_i].ok) {
        io_runs(y);
        ck_assert_int_eq(io_files("out"), 1);
    } else {
        io_fails(y, 1, "' cannot take the name '.");
        ck_assert_int_eq(io_files("out"), 0);
        ck_assert_int_eq(io_files("."), 2);
    }
}

/* ---- live files ------------------------------------------------------ */

#define GENERATE(more) "buffers: {a: {dtype: u8, shape: [2, 8]}}\nstages:\n" \
                       "  - {use: generate, " more ", out: a}\n"

/* Reads a live file again and again: what it says is there is there, is right, and grows. */
static void look_on(gp_pipeline *p, void *arg)
{
    const char *name = arg;
    int64_t rows = 0, before = 0;
    int grew = 0;
    while (grew < 4) {
        size_t n = 0, data;
        gp_type t;
        bool fortran;
        char err[160];
        char *file = pipe_read(io_dir, name, &n);
        if (file && strstr(name, ".npy")) {
            ck_assert_msg(gp_npy_parse(file, n, &t, &data, &fortran, err), "%s", err);
            free(file);
            file = pipe_read(io_dir, name, &n);    /* the header may be newer than the size that was read before it */
            ck_assert_uint_le(data + gp_bytes(&t), n);
            rows = t.dim[0];
            for (int64_t i = 0; i < (int64_t)gp_bytes(&t); i++)
                ck_assert_uint_eq((unsigned char)file[data + (size_t)i], (unsigned char)i);
        } else if (file) {
            rows = (int64_t)n / 8;
        }
        ck_assert_int_ge(rows, before);
        grew += rows > before;
        before = rows;
        free(file);
        nap();
    }
    ck_assert_int_eq(io_files("."), 1);            /* it has its name and no other */
    gp_cancel(p, 2);
}

static const struct { const char *name, *options; } live[] = {
    { "out.npy", "" }, { "out.npy", ", stack: true" }, { "out.raw", "" },
    { "out.npy", ", durable: file" }, { "out.npy", ", if_exists: error" },
};

TEST_EACH(live_files, live)
{
    char *y = format(GENERATE("pattern: ramp, rate: 500") "  - {use: write, path: %s, live: true%s}\n",
                     live[_i].name, live[_i].options);
    pipe_result r = pipe_run_with(io_dir, y, "cpu", NULL, (gp_run_options){ 0 }, look_on, (void *)live[_i].name);
    ck_assert_int_eq(r.outcome, GP_NOT_DRAINED);
    size_t n = 0;
    OWNED char *file = pipe_read(io_dir, live[_i].name, &n);
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(n % 8, 0);
}

static const struct { const char *write, *text; int code; } not_live[] = {
    { "path: '%d.npy', live: true", "'live' has no effect on a file for each frame", 3 },
    { "path: stdout, format: raw, live: true", "'live' has no effect on standard output", 3 },
    { "path: /dev/null, live: true", "is not a regular file, on which 'live' has no effect", 1 },
};

TEST_EACH(not_to_be_live, not_live)
{
    io_fails(format(GENERATE("frames: 3") "  - {use: write, %s}\n", not_live[_i].write),
             not_live[_i].code, not_live[_i].text);
}

/* A live file is whole at its end, and a frame that fails leaves those before it. */
TEST(live_to_the_end)
{
    io_count_npy("in.npy", U8(6, 2, 5), 0);
    io_runs(IN "  - {use: write, path: out.npy, live: true}\n");
    io_counts("out.npy", U8(12, 5), 0);
    io_count_npy("two.npy", U8(4, 10), 0);
    io_fails("buffers: {x: {shape: [3, 10]}}\nstages:\n  - {use: read, path: two.npy, out: x}\n"
             "  - {use: write, path: out.npy, stack: true, live: true}\n", 1, "frame 1: '");
    io_counts("out.npy", U8(1, 3, 10), 0);
}

/* As long as a name can be. */
#define TEN "0123456789"
#define LONG TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN \
    TEN TEN TEN TEN "12"

/* ---- what killed runs left ------------------------------------------- */

/* What a name is made of; `whose` 0: a process that is no more. */
static const struct { const char *name; int whose, n; const char *more; bool goes; } stale[] = {
    { "out.raw", 0, 0, "", true }, { "00037.raw", 0, 999, "", true }, { "a.gpipe-7", 0, 3, "", true },
    { "a.gpipe-7-1-", 0, 3, "", true }, { LONG, 0, 0, "", true }, { "x", 0, 0, "", true },
    { "out.raw", 1, 0, "", false }, { "out.raw", 0, 0, "x", false }, { "out.raw", 0, 0, "-", false },
    { "", 0, 0, "", false },
};

static pid_t dead_process(void)
{
    pid_t dead = fork();
    if (!dead)
        _exit(0);
    ck_assert_int_eq(waitpid(dead, NULL, 0), dead);
    return dead;
}

TEST_EACH(removes_what_killed_runs_left, stale)
{
    char made[NAME_MAX + 1];
    gp_temporary_name(made, stale[_i].name, stale[_i].whose ? stale[_i].whose : dead_process(),
                      stale[_i].n);
    ck_assert_uint_le(strlen(made), NAME_MAX);
    char *name = format("%s%s", made, stale[_i].more);
    io_count_npy("in.npy", U8(1, 10), 0);
    pipe_text(io_dir, name, "half a file");
    io_runs(IN "  - {use: write, path: out.raw}\n");
    ck_assert_int_eq(access(io_at(name), F_OK) != 0, stale[_i].goes);
}

/* Names that somebody may give to a file of his own. */
static const char *const alike[] = {
    ".out.raw.gpipe-%d", ".out.raw.gpipe-%d-0", ".out.raw.gpipe-%d-0-00000000", "..gpipe-%d",
    ".gpipe-%d", ".out.raw.gpipe-%dx", ".out.raw.gpipe-", "out.raw.gpipe-%d", ".gpipe-%d.raw",
};

TEST_EACH(leaves_what_is_called_alike, alike)
{
    char *name = format(alike[_i], (int)dead_process());
    io_count_npy("in.npy", U8(1, 10), 0);
    pipe_text(io_dir, name, "somebody's");
    io_runs(IN "  - {use: write, path: out.raw}\n");
    io_holds(name, "somebody's", 10);
}

TEST(leaves_what_it_reads)
{
    char name[NAME_MAX + 1];
    gp_temporary_name(name, "in.raw", dead_process(), 0);
    io_count_raw(name, 8);
    char *y = format("buffers: {a: {dtype: u8, shape: [2]}}\nstages:\n  - {use: read, path: %s, format: raw, "
                     "out: a}\n  - {use: write, path: out.raw}\n", name);
    io_runs(y);
    io_holds("out.raw", "\0\1\2\3\4\5\6\7", 8);
    io_holds(name, "\0\1\2\3\4\5\6\7", 8);
}

/* One that somebody has open under a lock stays, as if its process were on another machine. */
TEST(leaves_what_is_held)
{
    char name[NAME_MAX + 1];
    io_count_npy("in.npy", U8(1, 10), 0);
    gp_temporary_name(name, "other.raw", dead_process(), 0);
    pipe_text(io_dir, name, "half a file");
    int fd = open(io_at(name), O_RDWR);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    io_runs(IN "  - {use: write, path: out.raw}\n");
    ck_assert_int_eq(access(io_at(name), F_OK), 0);
    close(fd);
    io_runs(IN "  - {use: write, path: out.raw}\n");
    ck_assert_int_ne(access(io_at(name), F_OK), 0);
}

/* Another run that writes a file just now holds its temporary file, or that itself if it is
 * live; one that writes numbered files holds one that is called like their pattern. MEETS: that may
 * make a name that the path has, too. */
enum { MEETS = 2 };
static const struct { const char *held, *write; int fails; } at_once[] = {
    { "out.raw", "path: out.raw", true },   { "out.raw", "path: out.raw, live: true", true },
    { "live", "path: out.raw", true },      { "live", "path: out.raw, live: true", true },
    { "ut.raw", "path: out.raw", false },   { "out.ra", "path: out.raw", false },
    { "out.raw2", "path: out.raw", false }, { "0.raw", "path: '%d.raw'", false },
    { LONG "1", "path: " LONG, false },
    { "%d.raw", "path: '%d.raw'", true },   { "%d.raw", "path: ./%d.raw, if_exists: next", true },
    { "%05d.raw", "path: '%d.raw'", MEETS }, { "%d.raw", "path: 'sub/%d.raw'", false },
    { "%05d.raw", "path: '0%04d.raw'", MEETS }, { "%05d.raw", "path: '%06d.raw'", MEETS },
    { "0%04d.raw", "path: '%05d.raw', start: 7", MEETS }, { "1%d.raw", "path: '%d.raw'", MEETS },
    { "a%d.raw", "path: 'b%d.raw'", false }, { "%d_a.raw", "path: '%d_b.raw'", false },
    { "0%d.raw", "path: '1%d.raw'", false }, { "1%05d.raw", "path: '2%05d.raw'", false },
    { "%d%d.raw", "path: '1%d.raw'", MEETS }, { "%03d.raw", "path: '9%%%03d.raw'", false },
    { "9%%%03d.raw", "path: '9%%%d.raw'", MEETS }, { "%d.raw", "path: 00007.raw", false },
    { "%d.raw", "path: 7.raw", MEETS }, { "%d.raw", "path: 7a.raw", false },
    { "%d\\x%d.raw", "path: '%d/x%d.raw'", true }, { "%dx%d.raw", "path: '%d/x%d.raw'", false },
    { "%n%d.raw", "path: '%n%d.raw'", false }, { "5%%%d.raw", "path: '5%%%d.raw'", true },
};

TEST_EACH(two_runs_at_once, at_once)
{
    char y[900], name[NAME_MAX + 1] = "out.raw", says[200];
    TEXT(says, "' cannot be written: another run is writing it (process %ld)", (long)getppid());
    if (at_once[_i].fails == MEETS)
        TEXT(says, "' cannot be written: another run is writing '%s' there, which may be the same file "
             "(process %ld)", at_once[_i].held, (long)getppid());
    io_count_npy("in.npy", U8(1, 10), 0);
    if (strcmp(at_once[_i].held, "live"))
        gp_temporary_name(name, at_once[_i].held, getppid(), 0);
    pipe_text(io_dir, name, "half a file");
    int fd = open(io_at(name), O_RDWR);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    TEXT(y, IN "  - {use: write, format: raw, %s}\n", at_once[_i].write);
    if (at_once[_i].fails)
        io_fails(y, 1, strcmp(at_once[_i].held, "live") ? says
                                                        : "' cannot be written: another run is writing it");
    else
        io_runs(y);
    io_holds(name, "half a file", 11);
    if (at_once[_i].fails)
        ck_assert_int_eq(io_files("."), 2);
    close(fd);
}

/* Each stage of one run may write some of a pattern's numbers; nothing of what holds it stays. */
TEST(one_run_writes_a_pattern_twice)
{
    io_count_npy("in.npy", U8(3, 10), 0);
    mkdir(io_at("out"), 0777);
    ck_assert_int_eq(symlink("out", io_at("link")), 0);
    static const char y[] = "buffers: {x: {}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
                            "  - {use: write, path: 'link/%d.raw'}\n"
                            "  - {use: write, in: x, path: 'out/%d.raw', start: 10}\n"
                            "  - {use: write, in: x, path: link/7.raw}\n";
    io_runs(y);
    ck_assert_int_eq(io_files("out"), 7);
    pipe_result r = io_go(y);
    ck_assert_int_eq(r.errs.n, 3);     /* each replaced some, and left none */
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(r.errs.e[i].code, GP_E_WARN);
}

TEST_SUITE(io_outputs, io_set_up, NULL, 0)
