/* test_decode.c - JPEG files that nvJPEG decodes, beside those that libjpeg-turbo does. The files are made here, by libjpeg.
 *
 * How far the pictures are from libjpeg's is printed, whether it is too far or not: decoders round the transform as they
 * like, by up to 3 of 255, and make chroma that is stored at half the size as large as luma by repeating it or by
 * interpolation. So a picture of 4:2:0 is compared with both of what libjpeg can do, and counts by the nearer. Without
 * nvJPEG the suite says so, and that the CPU decodes. */
#include <stdio.h>
#include <jpeglib.h>
#include <math.h>
#include "gpu.h"
#include "device/libraries.h"
#include "pipe.h"

Suite *suite_decode(void);

static bool have_nvjpeg;
static const char *const decoders[] = { "hardware", "cuda" };
static bool lacks[2];          /* this GPU has no such decoder */

/* ---- files ----------------------------------------------------------- */

typedef enum sort { PLAIN, PROGRESSIVE, RESTARTS, AS_RGB, ARITHMETIC, TURNED, FOUR } sort;

typedef struct made { const char *name; int w, h, colors, across, down; sort sort; } made;

static const made files[] = {
    { "a444-640x480", 640, 480, 3, 1, 1, PLAIN },         { "b420-640x480", 640, 480, 3, 2, 2, PLAIN },
    { "c422-333x221", 333, 221, 3, 2, 1, PLAIN },         { "d420-17x9", 17, 9, 3, 2, 2, PLAIN },
    { "e444-1x1", 1, 1, 3, 1, 1, PLAIN },                 { "f440-200x150", 200, 150, 3, 1, 2, PLAIN },
    { "g420-progressive", 501, 377, 3, 2, 2, PROGRESSIVE }, { "h444-progressive", 64, 64, 3, 1, 1, PROGRESSIVE },
    { "i420-restarts", 320, 240, 3, 2, 2, RESTARTS },     { "j444-rgb", 101, 53, 3, 1, 1, AS_RGB },
    { "k420-arithmetic", 120, 90, 3, 2, 2, ARITHMETIC },  { "l444-turned", 300, 200, 3, 1, 1, TURNED },
    { "m411-160x120", 160, 120, 3, 4, 1, PLAIN },         { "n444-640x479", 640, 479, 3, 1, 1, PLAIN },
};
enum { FILES = sizeof files / sizeof *files };

static const made grays[] = {
    { "a-640x480", 640, 480, 1, 1, 1, PLAIN }, { "b-33x19", 33, 19, 1, 1, 1, PLAIN },
    { "c-progressive", 90, 60, 1, 1, 1, PROGRESSIVE }, { "d-1x1", 1, 1, 1, 1, 1, PLAIN },
};
enum { GRAYS = sizeof grays / sizeof *grays };

/* A smooth picture, so that what a decoder does with chroma shows as little as it does in photos. */
static unsigned char level(int x, int y, int c)
{
    return (unsigned char)lround(127 + 80 * sin(0.021 * x + 0.8 * c) * cos(0.017 * y - c) + 30 * sin(0.05 * (x + y)));
}

/* The bytes of such a file in *data; freed by the caller. */
static size_t encode(const made *m, unsigned char **data)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    static const unsigned char exif[] = "Exif\0\0MM\0*\0\0\0\10\0\1\1\22\0\3\0\0\0\1\0\6\0\0\0\0\0\0";
    unsigned long n = 0;
    unsigned char row[4 * 1024];
    *data = NULL;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, data, &n);
    c.image_width = (JDIMENSION)m->w, c.image_height = (JDIMENSION)m->h;
    c.input_components = m->sort == FOUR ? 4 : m->colors;
    c.in_color_space = m->sort == FOUR ? JCS_CMYK : m->colors == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 90, TRUE);
    if (m->sort == AS_RGB)
        jpeg_set_colorspace(&c, JCS_RGB);
    c.arith_code = m->sort == ARITHMETIC;
    c.restart_interval = m->sort == RESTARTS ? 3 : 0;
    c.comp_info[0].h_samp_factor = m->across, c.comp_info[0].v_samp_factor = m->down;
    if (m->sort == PROGRESSIVE)
        jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    if (m->sort == TURNED)
        jpeg_write_marker(&c, JPEG_APP0 + 1, exif, sizeof exif - 1);
    while (c.next_scanline < c.image_height) {
        for (int x = 0; x < m->w; x++)
            for (int k = 0; k < c.input_components; k++)
                row[x * c.input_components + k] = level(x, (int)c.next_scanline, k);
        jpeg_write_scanlines(&c, &(JSAMPROW){ row }, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return n;
}

static void put(const char *dir, const char *folder, const made *m)
{
    unsigned char *data;
    size_t n = encode(m, &data);
    char *name = format("%s-%s.jpg", folder, m->name);
    pipe_file(dir, name, data, n);
    free(data);
}

/* What libjpeg makes of it, w * h * colors bytes, with chroma repeated or interpolated; the caller frees it. */
static unsigned char *by_libjpeg(const made *m, bool interpolated)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    unsigned char *data, *to = malloc((size_t)(m->w * m->h * m->colors));
    size_t n = encode(m, &data);
    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, data, n);
    jpeg_read_header(&d, TRUE);
    d.do_fancy_upsampling = interpolated;
    jpeg_start_decompress(&d);
    while (d.output_scanline < d.output_height)
        jpeg_read_scanlines(&d, &(JSAMPROW){ to + (size_t)d.output_scanline * (size_t)(m->w * m->colors) }, 1);
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    free(data);
    return to;
}

/* ---- running --------------------------------------------------------- */

static const char *const knobs[] = { "", "depth: 1\n", "depth: 3\n", "depth: 12\nlaunch: stream\n",
                                     "depth: 70\nstreams: 3\nbatch: 2\nsync: block\n" };
static const char *const workers[] = { "", ", workers: 1", ", workers: 4" };

static pipe_result decode(const char *dir, const char *pattern, const char *to, const char *shape, const char *decoder,
                          const char *knob, const char *more)
{
    char *yaml = format("%sbuffers: {photo: {shape: %s}}\nstages:\n"
        "  - {use: read, path: \"%s\", format: bytes, out: coded, on_error: drop}\n"
        "  - {use: decode, decoder: %s, in: coded, out: photo%s}\n  - {use: cast, dtype: f32}\n"
        "  - {use: write, path: \"%s/%%n.raw\", durable: none}\n", knob, shape, pattern, decoder, more, to);
    return pipe_run(dir, yaml, "cuda", NULL, (gp_run_options){ .poison = *knob });
}

/* The picture that a run wrote, as f32; NULL: there is none. */
static float *picture(const char *dir, const char *to, const char *folder, const made *m, size_t *bytes)
{
    char *name = format("%s/%s-%s.raw", to, folder, m->name);
    return (float *)pipe_read(dir, name, bytes);
}

/* The largest difference from `want`; *mean. */
static int distance(const float *got, const unsigned char *want, size_t n, double *mean)
{
    double sum = 0;
    int most = 0;
    for (size_t i = 0; i < n; i++) {
        int d = abs((int)got[i] - want[i]);
        most = d > most ? d : most, sum += d;
    }
    *mean = sum / (double)n;
    return most;
}

static void check_picture(const char *dir, const char *folder, const made *m, const char *decoder)
{
    size_t bytes, n = (size_t)(m->w * m->h * m->colors);
    double mean[2];
    int off[2];
    float *got = picture(dir, decoder, folder, m, &bytes);
    ck_assert_msg(got != NULL, "decoder %s: %s %s did not come out", decoder, folder, m->name);
    ck_assert_msg(bytes == n * sizeof *got, "decoder %s: %s %s has %zu values, not %zu", decoder, folder, m->name, bytes / 4, n);
    for (int k = 0; k < 2; k++) {
        unsigned char *want = by_libjpeg(m, k);
        off[k] = distance(got, want, n, &mean[k]);
        free(want);
    }
    int k = off[1] < off[0], limit = m->across * m->down > 1 ? 8 : 3;
    printf("decode: %-9s %-5s %-18s off by %3d, in the mean %.3f, from libjpeg (%s; else %d, %.3f)\n", decoder, folder, m->name,
           off[k], mean[k], k ? "interpolated" : "repeated", off[!k], mean[!k]);
    fflush(stdout);
    ck_assert_msg(off[k] <= limit, "decoder %s: %s %s is off by %d from libjpeg's, more than %d; first values %g %g %g", decoder,
                  folder, m->name, off[k], limit, got[0], n > 1 ? got[1] : 0, n > 2 ? got[2] : 0);
    free(got);
}

/* One that is turned by a quarter: its first row is what libjpeg has as the first column, from below. */
static void check_turned(const char *dir, const char *folder, const made *m, const char *decoder)
{
    size_t bytes;
    int most = 0;
    float *got = picture(dir, decoder, folder, m, &bytes);
    unsigned char *want = by_libjpeg(m, true);
    ck_assert_msg(got && bytes == (size_t)(m->w * m->h * 3) * sizeof *got, "decoder %s: %s %s: %s", decoder, folder, m->name,
                  got ? "it has another size" : "did not come out");
    for (int y = 0; y < m->h; y++)
        for (int x = 0; x < m->w; x++)
            for (int c = 0; c < 3; c++) {
                int d = abs((int)got[(x * m->h + m->h - 1 - y) * 3 + c] - want[(y * m->w + x) * 3 + c]);
                most = d > most ? d : most;
            }
    printf("decode: %-9s %-5s %-18s off by %3d, turned\n", decoder, folder, m->name, most);
    ck_assert_msg(most <= 3, "decoder %s: %s %s, which is to be turned by a quarter, is off by %d: is it upright?", decoder, folder,
                  m->name, most);
    free(want), free(got);
}

/* ---- the tests ------------------------------------------------------- */

/* Of all sorts and sizes, many a call. Those that nvJPEG is not asked for are as the CPU makes them. */
START_TEST(near_libjpeg)
{
    const char *dir = pipe_dir(), *decoder = decoders[_i / 2], *folder = _i % 2 ? "gray" : "rgb";
    int n = _i % 2 ? GRAYS : FILES;
    const made *m = _i % 2 ? grays : files;
    if (lacks[_i / 2])
        return;
    for (int i = 0; i < n; i++)
        put(dir, folder, &m[i]);
    char *pattern = format("%s-*.jpg", folder);
    pipe_result r = decode(dir, pattern, decoder, _i % 2 ? "[\"<=480\", \"<=640\"]" : "[\"<=480\", \"<=640\", 3]", decoder, "",
                           ", on_error: drop");
    for (int i = 0; i < r.errs.n; i++)
        printf("decode: %s: %s\n", decoder, r.errs.e[i].msg);
    ck_assert_msg(r.outcome == GP_DONE, "decoder %s, %s: outcome %d: %s", decoder, folder, (int)r.outcome,
                  pipe_said(&r.errs));
    ck_assert_msg(r.account[0].failed == 0, "decoder %s, %s: %d frames failed, the first: %s", decoder, folder,
                  (int)r.account[0].failed, pipe_said(&r.errs));
    for (int i = 0; i < n; i++)
        (m[i].sort == TURNED ? check_turned : check_picture)(dir, folder, &m[i], decoder);
    pipe_dir_remove(dir);
}
END_TEST

enum { KNOBS = sizeof knobs / sizeof *knobs, WORKERS = sizeof workers / sizeof *workers, COPIES = 5 };

/* Each file several times, in an order in which it has other neighbors each time: always the same bits. */
static void put_many(const char *dir)
{
    for (int k = 0; k < COPIES * FILES; k++) {
        made m = files[(k * 5 + k / FILES) % FILES];
        char *name = format("%03d-%s", k, m.name);
        m.name = name;
        put(dir, "many", &m);
    }
}

START_TEST(same_bits)
{
    const char *dir = pipe_dir(), *decoder = decoders[_i];
    size_t first_bytes, bytes;
    if (lacks[_i])
        return;
    put_many(dir);
    for (int run = 0; run < KNOBS * WORKERS; run++) {
        pipe_result r = decode(dir, "many-*.jpg", "out", "[\"<=480\", \"<=640\", 3]", decoder, knobs[run % KNOBS],
                               workers[run / KNOBS]);
        ck_assert_msg(r.outcome == GP_DONE && !r.errs.failed, "decoder %s, '%s'%s: %s", decoder, knobs[run % KNOBS],
                      workers[run / KNOBS], pipe_said(&r.errs));
        for (int i = 0; i < FILES; i++) {
            float *first = NULL;
            for (int k = 0; k < COPIES * FILES; k++) {
                if ((k * 5 + k / FILES) % FILES != i)
                    continue;
                char *name = format("out/many-%03d-%s.raw", k, files[i].name);
                char *reference = format("first-%s.raw", files[i].name);
                float *got = (float *)pipe_read(dir, name, &bytes);
                ck_assert_msg(got != NULL, "decoder %s, '%s'%s: no %s", decoder, knobs[run % KNOBS], workers[run / KNOBS], name);
                if (!run && !first)
                    pipe_file(dir, reference, got, bytes);
                if (!first)
                    first = (float *)pipe_read(dir, reference, &first_bytes);
                ck_assert_msg(first && bytes == first_bytes && !memcmp(got, first, bytes),
                              "decoder %s, '%s'%s: frame %d, which is %s, has other bits than the first frame of the first run",
                              decoder, knobs[run % KNOBS], workers[run / KNOBS], k, files[i].name);
                free(got);
            }
            free(first);
        }
    }
    pipe_dir_remove(dir);
}
END_TEST

/* Files that are wrong are holes that name them, also in the middle of a batch; the others are as they would be
 * alone. */
START_TEST(wrong_files)
{
    static const char *const wrong[][2] = {
        { "many-000b-cut.jpg", "'many-000b-cut' is cut off: its picture goes on after" },
        { "many-003b-cmyk.jpg", "'many-003b-cmyk' is cut off: its picture goes on after" },
        { "many-004b-gray.jpg", "'many-004b-gray' holds u8 [19, 33], and 'buffers' declares u8 [<=480, <=640, 3]: 'colors: rgb'" },
        { "many-004c-text.jpg", "'many-004c-text' " },
        { "many-005b-large.jpg", "'many-005b-large' holds u8 [500, 300, 3], which does not fit" },
        { "many-006b-empty.jpg", "many-006b-empty.jpg' is empty" },
    };
    const char *dir = pipe_dir(), *decoder = decoders[_i / 2];
    const made four = { "", 64, 48, 3, 1, 1, FOUR }, large = { "", 300, 500, 3, 1, 1, PLAIN };
    unsigned char *data;
    size_t n, bytes;
    if (lacks[_i / 2])
        return;
    put_many(dir);
    n = encode(&files[0], &data);
    pipe_file(dir, wrong[0][0], data, n / 2), free(data);
    n = encode(&four, &data);
    pipe_file(dir, wrong[1][0], data, n / 2), free(data);  /* whole, the CPU decodes it */
    n = encode(&grays[1], &data);
    pipe_file(dir, wrong[2][0], data, n), free(data);
    pipe_text(dir, wrong[3][0], "this is not a picture, and not coded");
    n = encode(&large, &data);
    pipe_file(dir, wrong[4][0], data, n), free(data);
    pipe_text(dir, wrong[5][0], "");
    pipe_result r = decode(dir, "many-*.jpg", "out", "[\"<=480\", \"<=640\", 3]", decoder, _i % 2 ? "depth: 70\n" : "depth: 2\n",
                           ", on_error: drop");
    ck_assert_msg(r.outcome == GP_DONE, "decoder %s: %s", decoder, pipe_said(&r.errs));
    ck_assert_msg(r.account[0].failed == 6 && r.account[0].out == COPIES * FILES, "decoder %s: %d failed, not 6; %d came out, not "
                  "%d; the first error: %s", decoder, (int)r.account[0].failed, (int)r.account[0].out, COPIES * FILES,
                  pipe_said(&r.errs));
    for (int i = 0; i < 6; i++) {
        bool said = false;
        for (int k = 0; k < r.errs.n; k++)
            said |= strstr(r.errs.e[k].msg, wrong[i][1]) != NULL;
        ck_assert_msg(said, "decoder %s: no error has \"%s\"; the first is: %s", decoder, wrong[i][1],
                      pipe_said(&r.errs));
    }
    r = decode(dir, "many-[0-9][0-9][0-9]-*.jpg", "alone", "[\"<=480\", \"<=640\", 3]", decoder, "depth: 1\n", "");
    ck_assert_msg(r.outcome == GP_DONE, "decoder %s: %s", decoder, pipe_said(&r.errs));
    for (int k = 0; k < COPIES * FILES; k++) {
        const char *of = files[(k * 5 + k / FILES) % FILES].name;
        char *name = format("out/many-%03d-%s.raw", k, of);
        char *all = pipe_read(dir, name, &n);
        name = format("alone/many-%03d-%s.raw", k, of);
        char *alone = pipe_read(dir, name, &bytes);
        ck_assert_msg(all && alone && n == bytes && !memcmp(all, alone, n), "decoder %s: %s is another beside files that are wrong",
                      decoder, name);
        free(all), free(alone);
    }
    pipe_dir_remove(dir);
}
END_TEST

/* What is coded is wrong: nvJPEG says so or makes some picture, and the files beside it are as they were. */
START_TEST(garbled_files)
{
    const char *dir = pipe_dir(), *decoder = decoders[_i];
    unsigned char *data;
    size_t bytes;
    if (lacks[_i])
        return;
    for (int k = 0; k < 12; k++) {
        size_t n = encode(&files[k % 2], &data);
        for (size_t i = n / 2; k % 3 == 1 && i < n / 2 + 400; i++)
            data[i] = (unsigned char)(i * 73 % 251);
        char *name = format("in-%02d.jpg", k);
        pipe_file(dir, name, data, n);
        free(data);
    }
    pipe_result r = decode(dir, "in-*.jpg", "out", "[\"<=480\", \"<=640\", 3]", decoder, "", ", on_error: drop");
    printf("decode: %s: of 4 garbled files %d failed%s%s\n", decoder, (int)r.account[0].failed, r.errs.n ? ": " : "",
           pipe_said(&r.errs));
    fflush(stdout);
    ck_assert_msg(r.outcome == GP_DONE, "decoder %s: outcome %d: %s", decoder, (int)r.outcome, pipe_said(&r.errs));
    for (int k = 0; k < 12; k++) {
        size_t first_bytes;
        char *name = format("out/in-%02d.raw", k);
        char *got = pipe_read(dir, name, &bytes);
        ck_assert_msg(got || k % 3 == 1, "decoder %s: frame %d, which is whole, did not come out", decoder, k);
        name = format("out/in-%02d.raw", k % 2 ? 3 : 0);
        char *first = pipe_read(dir, name, &first_bytes);
        ck_assert_msg(k % 3 == 1 || (bytes == first_bytes && !memcmp(got, first, bytes)),
                      "decoder %s: frame %d, beside garbled ones, has other bits than frame %d", decoder, k, k % 2 ? 3 : 0);
        free(got), free(first);
    }
    pipe_dir_remove(dir);
}
END_TEST

/* Who decodes where it is left open: nvJPEG for the device, the CPU for readers on the host and where there is none. */
START_TEST(chosen)
{
    const char *dir = pipe_dir();
    for (int i = 0; i < FILES; i++)
        put(dir, "rgb", &files[i]);
    char *yaml = format("buffers: {photo: {shape: [\"<=480\", \"<=640\", 3]}}\nstages:\n"
        "  - {use: read, path: \"rgb-*.jpg\", format: bytes, out: coded}\n  - {use: decode, in: coded, out: photo}\n"
        "%s  - {use: discard}\n", _i ? "" : "  - {use: gray}\n");
    pipe_result r = pipe_run(dir, yaml, "cuda", NULL, (gp_run_options){ .timed = true });
    ck_assert_msg(r.outcome == GP_DONE && r.account[0].out == FILES, "%s: %s", yaml, pipe_said(&r.errs));
    pipe_dir_remove(dir);
}
END_TEST

/* Is there such a decoder? That is for the tests behind this one. */
START_TEST(there)
{
    const char *dir = pipe_dir();
    int k = 0;
    put(dir, "rgb", &files[0]);
    pipe_result r = decode(dir, "rgb-*.jpg", "out", "[480, 640, 3]", decoders[k], "", "");
    lacks[k] = r.outcome != GP_DONE && r.errs.n && strstr(r.errs.e[0].msg, "nvJPEG finds no JPEG decoder in this GPU");
    if (lacks[k])
        printf("**** decode: this GPU has no JPEG decoder: 'hardware' was not tested: %s ****\n", r.errs.e[0].msg);
    ck_assert_msg(lacks[k] || r.outcome == GP_DONE, "decoder %s: one picture of 640 x 480: %s", decoders[k],
                  pipe_said(&r.errs));
    pipe_dir_remove(dir);
}
END_TEST

Suite *suite_decode(void)
{
    if (!have_gpu)
        return NULL;
    gp_errs errs = { .n = 0 };
    char name[GP_GPU_TEXT];
    Suite *s = suite_create("decode on cuda");
    TCase *tc = tcase_create("cuda");
    have_nvjpeg = gp_gpu_open(GP_GPU_JPEG, name, "nvJPEG", (gp_loc){ 0 }, &errs);
    if (have_nvjpeg)
        printf("decode: %s\n", name);
    else
        printf("**** decode: nvJPEG was not tested: %s ****\n", errs.e[0].msg);
    fflush(stdout);
    tcase_set_timeout(tc, 240);
    if (have_nvjpeg)
        tcase_add_test(tc, there);
    tcase_add_loop_test(tc, chosen, 0, 2);
    if (have_nvjpeg) {
        tcase_add_loop_test(tc, near_libjpeg, 0, 4);
        tcase_add_loop_test(tc, same_bits, 0, 2);
        tcase_add_loop_test(tc, wrong_files, 0, 4);
        tcase_add_loop_test(tc, garbled_files, 0, 2);
    }
    suite_add_tcase(s, tc);
    return s;
}
