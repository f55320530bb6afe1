/* test_png.c - pictures of every kind in, compared and out; broken ones. The
 * pictures are made by tests/data/make.py. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "iotest.h"

Suite *suite_png(void);

/* ---- pictures -------------------------------------------------------- */

static const char *const pictures[] = {
    "gray1", "gray2", "gray4", "gray8", "gray16", "graya8", "graya16", "rgb8", "rgb16", "rgba8",
    "rgba16", "gray1_adam7", "gray2_adam7", "gray4_adam7", "gray8_adam7", "gray16_adam7",
    "graya8_adam7", "graya16_adam7", "rgb8_adam7", "rgb16_adam7", "rgba8_adam7", "rgba16_adam7",
    "gray8_trns", "gray16_trns", "rgb8_trns", "rgb16_trns", "palette1", "palette2", "palette4",
    "palette8", "palette1_trns", "palette2_trns", "palette4_trns", "palette8_trns",
};

/* Reads a picture, compares it with what it should be, and writes it with every
 * compression; what was written reads the same again. */
START_TEST(picture)
{
    char y[2000], here[400];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    const char *p = pictures[_i];
    io_runs(TEXT(y, "stages:\n"
              "  - {use: read, path: '%s/tests/data/png/%s.png', out: p}\n"
              "  - {use: compare, file: '%s/tests/data/png/%s.npy', in: p}\n"
              "  - {name: w0, use: write, path: out/0.png, compression: 0, in: p}\n"
              "  - {name: w9, use: write, path: out/%%n.png, compression: 9, in: p}\n"
              "  - {name: w3, use: write, path: out/%%d-3.png, in: p}\n", here, p, here, p));
    io_runs(TEXT(y, "stages:\n"
              "  - {use: read, path: out/*.png, out: p}\n"
              "  - {use: write, path: out/all.npy, in: p}\n"));
    io_runs(TEXT(y, "stages:\n"
              "  - {use: read, path: out/0.png, out: p}\n"
              "  - {use: compare, file: '%s/tests/data/png/%s.npy', in: p}\n"
              "  - {name: r9, use: read, path: out/%s.png, out: q}\n"
              "  - {name: c9, use: compare, in: [p, q]}\n"
              "  - {name: r3, use: read, path: out/0-3.png, out: r}\n"
              "  - {name: c3, use: compare, in: {in: p, with: r}}\n", here, p, p));
}
END_TEST

START_TEST(pictures_cut_off)
{
    char y[1000];
    size_t n;
    char *png = pipe_read("tests/data/png", "rgb8_adam7.png", &n);
    ck_assert_ptr_nonnull(png);
    pipe_file(io_dir, "a.png", png, n);
    for (size_t k = 0; k < n; k += k < 40 || k > n - 20 ? 1 : 7) {
        pipe_file(io_dir, "b.png", png, k);
        io_fails("stages:\n  - {use: read, path: '?.png'}\n  - {use: discard}\n", 1,
              k < 8 ? "b.png' is not a PNG file" : "frame 1: '");
    }
    for (size_t k = 33; k < n; k++) {      /* one bit flipped: never a crash */
        png[k] ^= 4;
        pipe_file(io_dir, "b.png", png, n);
        pipe_result r = io_go("stages:\n  - {use: read, path: '?.png'}\n  - {use: discard}\n");
        ck_assert(r.outcome == GP_DONE || r.outcome == GP_ERROR);
        png[k] ^= 4;
    }
    pipe_file(io_dir, "b.png", png, n / 2);
    io_fails("stages:\n  - {use: read, path: '?.png'}\n  - {use: discard}\n", 1, "is cut off");
    free(png);
    /* The bad one is a hole when the run may go on. */
    pipe_result r = io_go(TEXT(y, "on_error: drop\nstages:\n  - {use: read, path: '?.png'}\n"
                            "  - {use: write, path: 'out/%%d.png'}\n"));
    ck_assert_int_eq(r.outcome, GP_DONE);
    ck_assert_uint_eq(r.account[0].failed, 1);
    ck_assert_uint_eq(r.account[0].out, 1);
    ck_assert_int_eq(io_files("out"), 1);
}
END_TEST

Suite *suite_png(void)
{
    Suite *s = suite_create("png");
    TCase *tc = tcase_create("pictures");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, io_set_up, io_tear_down);
#define LOOP(test, table) tcase_add_loop_test(tc, test, 0, sizeof table / sizeof *table)
    LOOP(picture, pictures);
    tcase_add_test(tc, pictures_cut_off);
    suite_add_tcase(s, tc);
    return s;
}
