/* test_io_partial.c - what is kept of a joined file when its run fails. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "iotest.h"

Suite *suite_io_partial(void);

static const struct {
    const char *write, *file;  /* its options; what is kept, NULL: nothing */
    size_t head, row;          /* bytes before the data; of a frame */
    int fails;                 /* the frame that does */
} kept[] = {
    { "path: out.npy", "out.npy.partial", 128, 12, 7 },
    { "path: out.raw", "out.raw.partial", 0, 12, 7 },
    { "path: out.npy, stack: true", "out.npy.partial", 128, 12, 7 },
    { "path: out.npy, durable: file", "out.npy.partial", 128, 12, 3 },
    { "path: new/er/out.npy, if_exists: error", "new/er/out.npy.partial", 128, 12, 3 },
    { "path: out.npy, live: true", NULL, 0, 0, 7 },
    { "path: 'out%d.npy'", NULL, 0, 0, 7 },
    { "path: out.npy", NULL, 0, 0, 0 },
};

static pipe_result fail_at(const char *write, int frame)
{
    char y[600];
    TEXT(y, "function process(f, x, y)\n  if f.index == %d then error('as it should') end\n"
         "  y:copy(x)\nend\n", frame);
    pipe_text(io_dir, "fail.lua", y);
    io_count_npy("in.npy", U8(20, 3, 4), 0);
    return io_go(TEXT(y, "buffers: {x: {dtype: u8, shape: [3, 4]}}\nstages:\n"
                      "  - {use: read, path: in.npy, out: x}\n  - {use: lua, script: fail.lua}\n"
                      "  - {use: write, %s}\n", write));
}

/* All frames that came out are in it, whole; what had the name before is untouched. */
START_TEST(a_failed_run_keeps_what_it_wrote)
{
    char path[600], say[300];
    size_t n;
    if (strstr(kept[_i].write, "path: out.npy") && !strstr(kept[_i].write, "live"))
        pipe_text(io_dir, "out.npy", "of an earlier run");
    pipe_result r = fail_at(kept[_i].write, kept[_i].fails);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(gp_errs_exit(&r.errs), 1);
    ck_assert_uint_eq(r.account[0].out, (unsigned)kept[_i].fails);
    if (!access(io_path("out.npy", path), F_OK) && !strstr(kept[_i].write, "live"))
        io_holds("out.npy", "of an earlier run", 17);
    if (!kept[_i].file) {
        ck_assert_int_eq(r.errs.n, 1);
        ck_assert(access(io_path("out.npy.partial", path), F_OK));
        return;
    }
    TEXT(say, "is kept as '%s'", io_path(kept[_i].file, path));
    ck_assert_msg(r.errs.n == 2 && strstr(r.errs.e[1].msg, say), "%d: %s", r.errs.n, r.errs.e[r.errs.n - 1].msg);
    char *file = pipe_read(io_dir, kept[_i].file, &n);
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(n, kept[_i].head + kept[_i].row * (size_t)kept[_i].fails);
    for (size_t i = kept[_i].head; i < n; i++)
        ck_assert_int_eq((unsigned char)file[i], i - kept[_i].head);
    if (kept[_i].head) {
        gp_type t;
        size_t data;
        bool fortran;
        char why[160];
        ck_assert_msg(gp_npy_parse(file, n, &t, &data, &fortran, why), "%s", why);
        ck_assert_uint_eq(gp_bytes(&t) + data, n);
    }
    free(file);
}
END_TEST

/* A file that is read is not replaced: it is what somebody goes on from. */
START_TEST(not_over_an_input)
{
    char y[600];
    pipe_text(io_dir, "fail.lua", "function process(f, x, y) if f.index == 2 then error('x') end y:copy(x) end\n");
    io_count_npy("out.npy.partial", U8(20, 3, 4), 0);
    size_t n, now;
    char *was = pipe_read(io_dir, "out.npy.partial", &n);
    pipe_result r = io_go(TEXT(y, "buffers: {x: {dtype: u8, shape: [3, 4]}}\nstages:\n"
                               "  - {use: read, path: out.npy.partial, format: npy, out: x}\n"
                               "  - {use: lua, script: fail.lua}\n  - {use: write, path: %s}\n", "out.npy"));
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_int_eq(r.errs.n, 1);
    char *is = pipe_read(io_dir, "out.npy.partial", &now);
    ck_assert(n == now && !memcmp(was, is, n));
    ck_assert_int_eq(io_files("."), 2);
    free(was), free(is);
}
END_TEST

Suite *suite_io_partial(void)
{
    Suite *s = suite_create("io_partial");
    TCase *tc = tcase_create("partial");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, io_set_up, io_tear_down);
    tcase_add_loop_test(tc, a_failed_run_keeps_what_it_wrote, 0, sizeof kept / sizeof *kept);
    tcase_add_test(tc, not_over_an_input);
    suite_add_tcase(s, tc);
    return s;
}
