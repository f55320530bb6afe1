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

Suite *suite_io_outputs(void)
{
    Suite *s = suite_create("io_outputs");
    TCase *tc = tcase_create("outputs");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, io_set_up, io_tear_down);
#define LOOP(test, table) tcase_add_loop_test(tc, test, 0, sizeof table / sizeof *table)
    LOOP(keeps_the_mode, modes);
    LOOP(follows_links, links);
    tcase_add_test(tc, new_files_have_the_umask);
    tcase_add_test(tc, keeps_the_owner);
    tcase_add_test(tc, links_in_a_circle);
    suite_add_tcase(s, tc);
    return s;
}
