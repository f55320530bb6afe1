/* test_io_outputs.c - what becomes of files that are there already, and that no output
 * destroys an input or another output. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "iotest.h"

Suite *suite_io_outputs(void);

#define IN "stages:\n  - {use: read, path: in.npy}\n"

static char *at(const char *name)
{
    static char buf[4][600];
    static int turn;
    return io_path(name, buf[turn++ % 4]);
}

static unsigned mode_of(const char *name)
{
    struct stat st;
    ck_assert_int_eq(stat(at(name), &st), 0);
    return st.st_mode & 07777;
}

/* ---- what a replaced file keeps -------------------------------------- */

static const struct { unsigned mode; const char *write; } modes[] = {
    { 0600, "path: out.raw" }, { 0600, "path: '%d.raw'" }, { 0640, "path: out.raw" },
    { 0666, "path: out.raw" }, { 0444, "path: '%d.raw'" },
};

START_TEST(keeps_the_mode)
{
    char y[300];
    const char *name = strchr(modes[_i].write, '%') ? "0.raw" : "out.raw";
    io_count_npy("in.npy", U8(1, 10), 0);
    pipe_text(io_dir, name, "old");
    ck_assert_int_eq(chmod(at(name), modes[_i].mode), 0);
    io_runs(TEXT(y, IN "  - {use: write, %s}\n", modes[_i].write));
    io_holds(name, "\0\1\2\3\4\5\6\7\10\11", 10);
    ck_assert_uint_eq(mode_of(name), modes[_i].mode);
}
END_TEST

/* A new file has what the umask leaves. */
START_TEST(new_files_have_the_umask)
{
    mode_t was = umask(027);
    io_count_npy("in.npy", U8(1, 10), 0);
    io_runs(IN "  - {use: write, path: out.raw}\n");
    umask(was);
    ck_assert_uint_eq(mode_of("out.raw"), 0640);
}
END_TEST

START_TEST(keeps_the_owner)
{
    struct stat st;
    io_count_npy("in.npy", U8(1, 10), 0);
    pipe_text(io_dir, "out.raw", "old");
    if (chown(at("out.raw"), 1234, 2345)) {
        fprintf(stderr, "skipped: keeps_the_owner needs root\n");
        return;
    }
    ck_assert_int_eq(chmod(at("out.raw"), 0604), 0);
    io_runs(IN "  - {use: write, path: out.raw}\n");
    ck_assert_int_eq(stat(at("out.raw"), &st), 0);
    ck_assert_uint_eq(st.st_uid, 1234);
    ck_assert_uint_eq(st.st_gid, 2345);
    ck_assert_uint_eq(st.st_mode & 07777, 0604);
}
END_TEST

/* Links and what they lead to; `there`: that exists before. Every link stays one. */
static const struct { const char *link, *to, *file; bool there; } links[] = {
    { "out.raw", "data/x.raw", "data/x.raw", true },
    { "out.raw", "data/x.raw", "data/x.raw", false },
    { "out.raw", "new/folder/x.raw", "new/folder/x.raw", false },
    { "data/out.raw", "../x.raw", "x.raw", true },
    { "data/out.raw", "x.raw", "data/x.raw", false },
};

START_TEST(follows_links)
{
    char y[300];
    struct stat st;
    io_count_npy("in.npy", U8(1, 10), 0);
    mkdir(at("data"), 0777);
    if (links[_i].there)
        pipe_text(io_dir, links[_i].file, "old");
    ck_assert_int_eq(symlink(links[_i].to, at(links[_i].link)), 0);
    ck_assert_int_eq(symlink(strrchr(links[_i].link, 'o'), at("data/twice.raw")), 0);
    io_runs(TEXT(y, IN "  - {use: write, path: %s}\n",
                 !strncmp(links[_i].link, "data/", 5) ? "data/twice.raw" : links[_i].link));
    ck_assert_int_eq(lstat(at(links[_i].link), &st), 0);
    ck_assert_msg(S_ISLNK(st.st_mode), "the link is gone");
    ck_assert_int_eq(lstat(at("data/twice.raw"), &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    io_holds(links[_i].file, "\0\1\2\3\4\5\6\7\10\11", 10);
}
END_TEST

START_TEST(links_in_a_circle)
{
    io_count_npy("in.npy", U8(1, 10), 0);
    ck_assert_int_eq(symlink("b", at("a")), 0);
    ck_assert_int_eq(symlink("a", at("b")), 0);
    io_fails(IN "  - {use: write, path: a}\n", 1, "cannot be written: Too many levels");
    ck_assert_int_eq(io_files("."), 3);
}
END_TEST

/* ---- outputs over inputs --------------------------------------------- */

/* A pipeline whose output is its input: `text` is in the error. Exit code 3: seen before
 * anything runs; 1: when the file is opened. No input changes. */
static const struct { const char *yaml, *text; int code; } over_inputs[] = {
    { "stages:\n  - {use: read, path: '*.raw.npy'}\n  - {use: write, path: '%n.npy'}\n",
      "/b1.raw.npy', which stage 'read' reads", 3 },
    { "stages:\n  - {use: read, path: in.npy}\n  - {use: write, path: x/../in.npy}\n",
      "in.npy' would replace '", 3 },
    { "stages:\n  - {use: read, path: 'n%03d.npy'}\n  - {use: write, path: 'n%03d.npy'}\n",
      "n000.npy', which stage 'read' reads", 3 },
    { "stages:\n  - {use: read, path: 'n*.npy'}\n  - {use: write, path: 'n%03d.npy'}\n",
      "would replace '", 3 },
    { "stages:\n  - {use: generate, frames: 4, out: x}\n  - {use: compare, file: c.raw, in: x}\n"
      "  - {use: write, path: c.raw, in: x}\nbuffers: {x: {dtype: u8, shape: [2]}}\n",
      "which stage 'compare' reads", 3 },
    { "stages:\n  - {use: read, path: in.npy}\n  - {use: write, path: soft.npy}\n",
      "soft.npy' is read by stage 'read'", 1 },
    { "stages:\n  - {use: read, path: in.npy}\n  - {use: write, path: hard.npy}\n",
      "hard.npy' is read by stage 'read'", 1 },
    { "stages:\n  - {use: read, path: soft.npy}\n  - {use: write, path: in.npy}\n",
      "in.npy' is read by stage 'read'", 1 },
    { "stages:\n  - {use: read, path: 'n*.npy'}\n  - {use: write, path: 'link/%n.npy'}\n",
      "frame 0: '", 1 },
    { "stages:\n  - {use: read, path: 'n*.npy'}\n  - {use: write, path: 'link/%n.npy', workers: 3}\n",
      "is read by stage 'read'", 1 },
    { "stages:\n  - {use: read, path: in.npy}\n  - {use: write, path: test.yaml}\n",
      "is read by gpipe as the pipeline", 1 },
    { "stages:\n  - {use: generate, frames: 1, out: x}\n  - {use: write, path: in.npy, in: x}\n"
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

START_TEST(never_over_an_input)
{
    io_count_npy("in.npy", U8(4, 10), 0);
    io_count_npy("b1.raw.npy", U8(4, 10), 0);
    io_count_npy("b2.raw.npy", U8(4, 10), 0);
    io_count_npy("n000.npy", U8(1, 2), 0);
    io_count_npy("n001.npy", U8(1, 2), 1);
    io_count_raw("c.raw", 8);
    pipe_text(io_dir, "test.yaml", "the pipeline");
    ck_assert_int_eq(symlink("in.npy", at("soft.npy")), 0);
    ck_assert_int_eq(link(at("in.npy"), at("hard.npy")), 0);
    ck_assert_int_eq(symlink(".", at("link")), 0);
    int before = io_files(".");
    pipe_result r = io_go(over_inputs[_i].yaml);
    ck_assert_msg(r.outcome == GP_ERROR, "it did not fail:\n%s", over_inputs[_i].yaml);
    ck_assert_msg(strstr(io_error(&r), over_inputs[_i].text) != NULL, "'%s' is not in '%s'",
                  over_inputs[_i].text, io_error(&r));
    ck_assert_int_eq(gp_errs_exit(&r.errs), over_inputs[_i].code);
    ck_assert_int_ge(r.errs.e[0].at.col, 24);
    ck_assert_int_eq(io_files("."), before);
    same_inputs();
}
END_TEST

/* What looks alike and is no danger. */
static const char *const beside[] = {
    "stages:\n  - {use: read, path: in.npy}\n  - {use: write, path: out/in.npy}\n",
    "stages:\n  - {use: read, path: 'n*.npy'}\n  - {use: write, path: '%n_out.npy'}\n",
    "stages:\n  - {use: read, path: 'n*.npy'}\n  - {use: write, path: '%n.raw'}\n",
    "stages:\n  - {use: read, path: n002.npy}\n  - {use: write, path: 'n%03d.npy'}\n",
    "stages:\n  - {use: read, path: 'n%03d.npy'}\n  - {use: write, path: 'n%04d.npy'}\n",
};

START_TEST(beside_an_input)
{
    io_count_npy("in.npy", U8(1, 10), 0);
    io_count_npy("n002.npy", U8(1, 2), 2);
    io_count_npy("n003.npy", U8(1, 2), 3);
    io_runs(beside[_i]);
}
END_TEST

/* ---- two outputs with one name --------------------------------------- */

#define TWO(a, b) \
    IN "  - {name: a, use: write, path: " a "}\n  - {name: b, use: write, in: read, path: " b "}\n"

static const struct { const char *yaml; bool same; } twice[] = {
    { TWO("out/%05d.raw", "out/00000.raw"), true },
    { TWO("out/00003.raw", "out/%05d.raw"), true },
    { TWO("out/00004.raw", "out/%05d.raw"), false },
    { TWO("out/%05d.raw", "link/%05d.raw"), true },
    { TWO("out/%d.raw", "link/%05d.raw"), false },
    { TWO("out/x.raw", "link/x.raw"), true },
    { TWO("out/%n%d.raw", "link/in.raw"), false },
    { TWO("out/%n%d.raw", "link/in2.raw"), true },
    { TWO("out/in%d.raw", "link/%n%d.raw"), true },
    { TWO("out/in%d.raw", "other/%n%d.raw"), false },
    { TWO("out/soft.raw", "out/%05d.raw"), true },
    { TWO("out/%d/x.raw", "link/%d/x.raw"), true },
    { TWO("out/%d/x.raw", "out/1/x.raw"), true },
    { TWO("out/1%d.raw", "link/%d.raw"), false },
};

START_TEST(one_name_twice)
{
    char y[600];
    io_count_npy("in.npy", U8(4, 10), 0);
    mkdir(at("out"), 0777);
    ck_assert_int_eq(symlink("out", at("link")), 0);
    ck_assert_int_eq(symlink("00002.raw", at("out/soft.raw")), 0);
    TEXT(y, "buffers: {read: {}}\n%s", twice[_i].yaml);
    char *first = strstr(y, "in.npy}");
    memmove(first + 17, first + 6, strlen(first + 6) + 1);
    memcpy(first + 6, ", out: read", 11);
    pipe_result r = io_go(y);
    const char *text = io_error(&r);
    if (!twice[_i].same) {
        ck_assert_msg(r.outcome == GP_DONE, "%s", text);
        return;
    }
    ck_assert_msg(r.outcome == GP_ERROR, "it did not fail:\n%s", y);
    ck_assert_int_eq(gp_errs_exit(&r.errs), 1);
    ck_assert_msg(strstr(text, "is written by stage 'a' too") || strstr(text, "is written by stage 'b' too"),
                  "%s", text);
    ck_assert_int_ge(r.errs.e[0].at.line, 4);
}
END_TEST

Suite *suite_io_outputs(void)
{
    Suite *s = suite_create("io_outputs");
    TCase *tc = tcase_create("outputs");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, io_set_up, io_tear_down);
#define LOOP(test, table) tcase_add_loop_test(tc, test, 0, sizeof table / sizeof *table)
    LOOP(keeps_the_mode, modes);
    LOOP(follows_links, links);
    LOOP(never_over_an_input, over_inputs);
    LOOP(beside_an_input, beside);
    LOOP(one_name_twice, twice);
    tcase_add_test(tc, new_files_have_the_umask);
    tcase_add_test(tc, keeps_the_owner);
    tcase_add_test(tc, links_in_a_circle);
    suite_add_tcase(s, tc);
    return s;
}
