/* test_decode.c - the bytes of files, and pictures of them, on the CPU: the same as `read` makes of the files. What
 * a GPU decodes is in gpu/test_decode.c; here is what of it shows in the plan. */
#include <dirent.h>
#include "jpeg_file.h"
#include "device/libraries.h"
#include "pipe.h"

/* ---- whole files ----------------------------------------------------- */

static pipe_result read_bytes(const char *dir, const char *buffers, const char *more)
{
    char *yaml = format("%sstages:\n  - {use: read, path: \"in-*\", format: bytes, out: x%s}\n"
                        "  - {use: write, path: \"out/%%n.raw\", durable: none}\n", buffers, more);
    return pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ .poison = true });
}

static void put_files(const char *dir, char *data, const int *size, int n)
{
    for (int i = 0; i < 5000; i++)
        data[i] = (char)(i * 31);
    for (int i = 0; i < n; i++) {
        pipe_file(dir, format("in-%d", i), data + i, (size_t)size[i]);
    }
}

TEST_LOOP(files_are_frames, 0, 4)
{
    static const int size[] = { 10, 4000, 1, 3999, 77 };
    static const struct { const char *buffers, *more; } cases[] = {
        { "", "" }, { "", ", workers: 3" }, { "buffers: {x: {shape: [\"<=5000\"]}}\n", "" },
        { "buffers: {x: {dtype: u8, shape: [\"<=4000\"], depth: 1}}\n", "" },
    };
    const char *dir = pipe_dir();
    char data[5000];
    size_t n;
    put_files(dir, data, size, 5);
    pipe_result r = read_bytes(dir, cases[_i].buffers, cases[_i].more);
    pipe_no_errors(&r, cases[_i].buffers);
    ck_assert_uint_eq(r.account[0].out, 5);
    for (int i = 0; i < 5; i++) {
        char *name = format("out/in-%d.raw", i);
        OWNED char *out = pipe_read(dir, name, &n);
        ck_assert_msg(out && n == (size_t)size[i] && !memcmp(out, data + i, n), "%s", name);
    }
}

/* A file that is larger than its bound, or empty, is named, and a hole where these are. */
TEST_LOOP(files_that_do_not_fit, 0, 2)
{
    static const int size[] = { 10, 400, 0, 5 };
    const char *dir = pipe_dir();
    char data[5000];
    put_files(dir, data, size, 4);
    pipe_result r = read_bytes(dir, "buffers: {x: {shape: [\"<=100\"]}}\n", _i ? ", on_error: drop" : "");
    ck_assert_msg(strstr(r.errs.e[0].msg, "frame 1: '") && strstr(r.errs.e[0].msg, "in-1' holds u8 [400], which does not fit in u8 "
                  "[<=100]"), "%s", r.errs.e[0].msg);
    ck_assert_int_eq(r.outcome, _i ? GP_DONE : GP_ERROR);
    if (_i) {
        ck_assert_msg(strstr(r.errs.e[1].msg, "in-2' is empty"), "%s", r.errs.e[1].msg);
        ck_assert(r.account[0].out == 2 && r.account[0].failed == 2);
    }
    free(pipe_read_all(dir, "out/in-0.raw", 10));
}

/* ---- pictures -------------------------------------------------------- */

static void run_pictures(const char *dir, const char *stages, const char *to, const char *shape, const char *knobs, int o)
{
    char *yaml = format("%son_error: drop\nbuffers: {photo: {dtype: u8, shape: %s}}\nstages:\n%s"
                        "  - {use: write, path: \"%s/%%n.npy\", in: photo, durable: none}\n", knobs, shape, stages, to);
    pipe_done(dir, yaml, "cpu", NULL, (gp_run_options){ .poison = o & 1, .timed = o & 2 });
}

/* Every picture of tests/data/jpeg is what `read` makes of it, or nothing where that makes nothing. */
TEST_LOOP(as_read_has_them, 0, 24)
{
    static const char *const shapes[] = { "[\"<=400\", \"<=400\", 3]", "[\"<=400\", \"<=400\"]", "[19, 33, 3]" };
    static const char *const files[] = { "*.jpg", "g*.jpg", "rgb*_19x33.jpg" };
    static const char *const knobs[] = { "", "depth: 1\n", "depth: 9\n" };
    static const char *const options[] = { "", ", orientation: keep", ", colors: rgb", ", colors: gray" };
    const char *dir = pipe_dir(), *option = options[_i < 18 ? _i / 9 : 2 + _i % 2], *file = _i >= 18 ? "*.jpg" : files[_i % 3];
    const char *shape = _i >= 18 ? shapes[_i % 2] : shapes[_i % 3];
    char cwd[300], one[600], two[600];
    int there = 0;
    size_t n, m;
    ck_assert_ptr_nonnull(getcwd(cwd, sizeof cwd));
    char *stages = format("  - {use: read, path: \"%s/tests/data/jpeg/%s\", out: photo%s}\n", cwd, file, option);
    run_pictures(dir, stages, "read", shape, "", 0);
    stages = format("  - {use: read, path: \"%s/tests/data/jpeg/%s\", out: coded, format: bytes}\n"
                    "  - {use: decode, in: coded, out: photo, workers: %d%s}\n", cwd, file, 1 + _i % 4, option);
    run_pictures(dir, stages, "decoded", shape, knobs[_i / 3 % 3], _i);
    snprintf(one, sizeof one, "%s/decoded", dir);
    DIR *d = opendir(one);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (*e->d_name == '.')
            continue;
        snprintf(one, sizeof one, "decoded/%s", e->d_name), snprintf(two, sizeof two, "read/%s", e->d_name);
        OWNED char *a = pipe_read(dir, one, &n), *b = pipe_read(dir, two, &m);
        ck_assert_msg(a && b && n == m && !memcmp(a, b, n), "%s", e->d_name);
        there++;
    }
    closedir(d);
    ck_assert_int_ge(there, 1);
    snprintf(one, sizeof one, "%s/read", dir);
    d = opendir(one);
    for (struct dirent *e; (e = readdir(d));)
        there -= *e->d_name != '.';
    closedir(d);
    ck_assert_int_eq(there, 0);
}

/* What is no picture, or not whole, is an error that names the file. */
TEST_LOOP(wrong_files, 0, 7)
{
    static const struct { const char *file; size_t bytes; const char *says; } cases[] = {
        { "cmyk.jpg", 500, "'in' is cut off: its picture goes on after 500 bytes" },
        { "rgb444_19x33.jpg", 20, "'in' has no picture in its first 20 bytes" },
        { "rgb420_19x33.jpg", 700, "'in' is cut off: its picture goes on after 700 bytes" },
        { "gray_19x33.jpg", 0, "'in' holds u8 [19, 33], and 'buffers' declares u8 [<=34, <=34, 3]: 'colors: rgb'" },
        { "orient1.jpg", 0, "'in' holds u8 [19, 35, 3], which does not fit in u8 [<=34, <=34, 3]: declare the largest under 'buffers'" },
        { "../png/rgb8.png", 30, "'in' " }, { "../make.py", 0, "'in' is not a picture that gpipe reads" },
    };
    const char *dir = pipe_dir();
    size_t n;
    OWNED char *data = pipe_read("tests/data", format("jpeg/%s", cases[_i].file), &n);
    ck_assert_ptr_nonnull(data);
    pipe_file(dir, "in.jpg", data, cases[_i].bytes ? cases[_i].bytes : n);
    pipe_result r = pipe_run(dir, "buffers: {photo: {shape: [\"<=34\", \"<=34\", 3]}}\nstages:\n"
                             "  - {use: read, path: in.jpg, format: bytes, out: coded}\n  - {use: decode, in: coded, out: photo}\n"
                             "  - {use: discard}\n", "cpu", NULL, (gp_run_options){ 0 });
    ck_assert(r.outcome == GP_ERROR && r.errs.n);
    ck_assert_msg(strstr(r.errs.e[0].msg, "stage 'decode': frame 0: ") && strstr(r.errs.e[0].msg, cases[_i].says), "%s",
                  r.errs.e[0].msg);
}

/* What is wrong with a picture that is made all the same is a warning, and the frame counts as faulty, unless
 * 'strict'. */
TEST_LOOP(faults, 0, 4)
{
    static const char says[] = "stage 'decode': frame 0: 'in' is cut off: of its last 4 rows of 19 not all is in the file";
    const char *dir = pipe_dir();
    size_t n;
    bool cut = _i & 1, strict = _i & 2;
    OWNED char *data = pipe_read("tests/data", "jpeg/rgb420_19x33.jpg", &n);
    pipe_file(dir, "in.jpg", data, n - (cut ? 5 : 0));
    char *yaml = format("buffers: {photo: {shape: [\"<=34\", \"<=34\", 3]}}\nstages:\n"
        "  - {use: read, path: in.jpg, format: bytes, out: coded}\n"
        "  - {use: decode, in: coded, out: photo%s}\n  - {use: discard}\n", strict ? ", strict: true" : "");
    pipe_result r = pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_int_eq(r.outcome, cut && strict ? GP_ERROR : GP_DONE);
    ck_assert_uint_eq(r.account[0].faulty, cut && !strict);
    if (cut)
        ck_assert_msg(r.errs.n && strstr(r.errs.e[0].msg, strict ? "'in' is cut off: its picture goes on" : says), "%s",
                      pipe_said(&r.errs));
}

/* ---- what a file says ------------------------------------------------ */

/* A whole file that libjpeg decodes is plain, and is found to be of its shape; one that is cut anywhere is for the
 * CPU. */
TEST_LOOP(looks, 0, 9)
{
    static const struct { const char *file; bool huffman, rgb, turned, gray; } cases[] = {
        { "rgb420_19x33.jpg", true, false, false, false }, { "gray_19x33.jpg", true, false, false, true },
        { "progressive.jpg", true, false, false, false }, { "arithmetic.jpg", false, false, false, false },
        { "as_rgb.jpg", true, true, false, false }, { "orient6.jpg", true, false, true, false },
        { "orient1.jpg", true, false, false, false }, { "restarts.jpg", true, false, false, false },
        { "profile.jpg", true, false, false, false },
    };
    gp_picfile_how how = { 0 };
    gp_jpeg_is is;
    gp_type t;
    char err[GP_WHY];
    size_t n;
    OWNED char *data = pipe_read("tests/data", format("jpeg/%s", cases[_i].file), &n);
    ck_assert_msg(data && gp_jpeg_look(data, n, &how, &is, err), "%s", data ? err : "no file");
    ck_assert(gp_jpeg.head(data, n, &how, &t, err) && gp_type_same(&t, &is.type));
    ck_assert_msg(is.huffman == cases[_i].huffman && is.rgb == cases[_i].rgb && is.turned == cases[_i].turned
                  && (is.type.ndim == 2) == cases[_i].gray, "%s: %d %d %d", cases[_i].file, is.huffman, is.rgb, is.turned);
    ck_assert(is.plain);
    for (size_t k = 1; k < n && k < 3000; k++)
        ck_assert_msg(!gp_jpeg_look(data, n - k, &how, &is, err) || !is.plain, "%s without its last %zu bytes",
                      cases[_i].file, k);
}

/* ---- plans ----------------------------------------------------------- */

/* Who decodes, on a machine with a GPU of this compute capability that is not this one. */
TEST_LOOP(who_decodes, 0, 12)
{
    static const struct { int cc; const char *keys, *stages, *says; } cases[] = {
        { 90, "", "  - {use: gray}\n", "; nvJPEG, hardware\n" }, { 89, "", "  - {use: gray}\n", "; nvJPEG, cuda\n" },
        { 80, "", "  - {use: gray}\n", "; nvJPEG, hardware\n" }, { 90, ", decoder: cuda", "  - {use: gray}\n", "; nvJPEG, cuda\n" },
        { 89, ", decoder: hardware", "  - {use: gray}\n", "; nvJPEG, hardware\n" },
        { 90, ", decoder: cpu", "  - {use: gray}\n", "; on the CPU" },
        { 90, "", "", "; on the CPU (stage 'discard' reads it on the host)" },
        { 90, ", decoder: cuda", "", "error: stage 'decode': no GPU can decode: stage 'discard' reads it on the host" },
        { 0, "", "  - {use: gray}\n", "; on the CPU" },
        { 0, ", decoder: hardware", "  - {use: gray}\n", "error: stage 'decode': no GPU can decode: the pipeline runs on the CPU" },
        { 90, "", "  - {use: group, frames: 2}\n", "host x 2    coded -> photo u8 [30, 40, 3]; nvJPEG, hardware\n" },
        { 90, "", "  - {use: gray}\n", "error: stage 'decode' itself writes or reads the memory of the device, which "
          "'launch: persistent' does not support: set 'launch: graph', or an option of the stage that keeps it on the host "
          "('gpipe stages decode')" },
    };
    const char *dir = pipe_dir();
    char yaml[1000], *text = NULL;
    size_t n;
    gp_errs errs = { .n = 0 };
    gp_machine m;
    gp_machine_fixed(&m, cases[_i].cc != 0);
    m.device[0].cc = cases[_i].cc;
    pipe_text(dir, "a.jpg", "not a picture, which shows later");
    snprintf(yaml, sizeof yaml, "buffers: {photo: {shape: [30, 40, 3]}}\nstages:\n  - {use: read, path: \"*.jpg\", format: "
             "bytes, out: coded}\n  - {use: decode, in: coded, out: photo%s}\n%s  - {use: discard}\n", cases[_i].keys, cases[_i].stages);
    const char *set[] = { strstr(cases[_i].says, "persistent") ? "launch=persistent" : "launch=graph" };
    gp_pipeline *p = pipe_compile(dir, yaml, (gp_config){ .machine = &m, .set = set, .nset = 1 }, &errs);
    if (!strncmp(cases[_i].says, "error: ", 7)) {
        ck_assert_msg(!p && !strcmp(errs.e[0].msg, cases[_i].says + 7), "%s", p ? "it compiles" : errs.e[0].msg);
    } else {
        ck_assert_msg(p != NULL, "%s", pipe_said(&errs));
        FILE *f = open_memstream(&text, &n);
        gp_dump_plan(f, gp_pipeline_plan(p), GP_DUMP_TEXT);
        fclose(f);
        ck_assert_msg(strstr(text, cases[_i].says), "%s", text);
        gp_pipeline_destroy(p);
    }
    free(text);
}

/* On this machine, if it had a GPU: with nvJPEG its version is a part of the plan; without, the CPU decodes, or who
 * asked for nvJPEG is told what to install. */
TEST_LOOP(library, 0, 2)
{
    const char *dir = pipe_dir();
    char yaml[1000], says[80], *text = NULL;
    size_t n;
    gp_errs errs = { .n = 0 }, none = { .n = 0 };
    gp_machine m;
    char name[GP_GPU_TEXT];
    bool there = gp_gpu_open(GP_GPU_JPEG, name, "", (gp_loc){ 0 }, &none);
    gp_machine_fixed(&m, 1);
    m.here = true;
    pipe_text(dir, "a.jpg", "not a picture, which shows later");
    snprintf(yaml, sizeof yaml, "buffers: {photo: {shape: [30, 40, 3]}}\nstages:\n  - {use: read, path: \"*.jpg\", format: "
             "bytes, out: coded}\n  - {use: decode, decoder: %s, in: coded, out: photo}\n  - {use: gray}\n  - {use: discard}\n",
             _i ? "hardware" : "auto");
    if (there)
        snprintf(says, sizeof says, "; %s, hardware\n", name);
    else
        snprintf(says, sizeof says, "; on the CPU (no nvJPEG)");
    gp_pipeline *p = pipe_compile(dir, yaml, (gp_config){ .machine = &m }, &errs);
    ck_assert_msg((p != NULL) == (there || !_i), "%s", pipe_said(&errs));
    if (p) {
        FILE *f = open_memstream(&text, &n);
        gp_dump_plan(f, gp_pipeline_plan(p), GP_DUMP_TEXT);
        fclose(f);
        ck_assert_msg(strstr(text, says), "%s", text);
        gp_pipeline_destroy(p);
    } else {
        ck_assert_msg(strstr(errs.e[0].msg, "stage 'decode': no GPU can decode: nvJPEG needs libnvjpeg.so.13")
                      && strstr(errs.e[0].msg, "install the package libnvjpeg-13-0"), "%s", errs.e[0].msg);
    }
    free(text);
}

TEST_SUITE(decode, NULL, NULL, 0)
