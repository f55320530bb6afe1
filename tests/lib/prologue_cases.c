/* prologue_cases.c - constants that are cast have the bytes that the kind `cast` makes of frames, on either side; what
 * stages make of constants is what they would make of frames, and is there for the device and for the host. */
#include "base/npy.h"
#include "cases.h"

enum { N = 301 };

static const gp_dtype real[] = { GP_U8, GP_I8, GP_U16, GP_I16, GP_U32, GP_I32, GP_U64, GP_I64, GP_F16, GP_F32, GP_F64 };
enum { REAL = sizeof real / sizeof *real };

static char *run(const char *dir, const char *yaml, size_t *bytes)
{
    pipe_done(dir, yaml, on, NULL, (gp_run_options){ 0 });
    char *out = pipe_read(dir, "out.raw", bytes);
    ck_assert_ptr_nonnull(out);
    return out;
}

/* Random bytes, and numbers about the ends of integers. */
static void put_numbers(const char *dir, gp_dtype t)
{
    static const double ends[] = { 0.5, 1.5, -0.5, -1.5, 127.5, -128.5, 255.5, 65535.5, -32768.5, 2147483647, -2147483649.0,
                                   4294967295.5, 9.3e18, -9.3e18, 1.9e19, 65519, 65520, 1e-7, 3e38, 1e300, -0.0 };
    static const uint64_t nans[] = { 0x7ff8000000000000, 0xfff8000012345678, 0x7ff0000000000001 };
    gp_type type = { .dtype = t, .ndim = 1, .dim = { N } };
    char file[GP_NPY_HEADER_MAX + 8 * N];
    size_t head = gp_npy_header(&type, file, GP_NPY_HEADER_MAX), each = gp_dtype_size(t);
    unsigned seed = 5;
    for (size_t i = 0; i < N * each; i++)
        file[head + i] = (char)((seed = seed * 1103515245u + 12345u) >> 16);
    for (size_t i = 0; i < sizeof nans / sizeof *nans && t == GP_F64; i++)
        memcpy(file + head + N * each - 8 * (i + 1), &nans[i], 8);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (t == GP_F64)
            memcpy(file + head + 8 * i, &ends[i], 8);
        else if (t == GP_F32)
            memcpy(file + head + 4 * i, &(float){ (float)ends[i] }, 4);
    pipe_file(dir, "c.npy", file, head + N * each);
}

/* c.npy, of type t, as frames that are cast on that side. */
static char *cast_frame(const char *dir, gp_dtype t, const char *to, const char *side, size_t *bytes)
{
    char *yaml = format("buffers: {x: {dtype: %s, shape: [%d]}}\nstages:\n  - {use: read, path: c.npy, out: x}\n"
                        "  - {use: cast, dtype: %s, on: %s}\n  - {use: write, path: out.raw, durable: none}\n",
                        gp_dtype_name(t), N, to, side);
    return run(dir, yaml, bytes);
}

/* Of each type to all types; under a sanitizer to some. */
TEST_LOOP(casts, 0, REAL)
{
    const char *dir = pipe_dir();
    put_numbers(dir, real[_i]);
    pipe_text(dir, "c.lua", "function process(f, x, y) y:copy(x.c) end\n");
    for (int k = 0; k < REAL; k += getenv("GPIPE_SANITIZED") ? 4 : 1) {
        const char *to = gp_dtype_name(real[k]);
        size_t n[3];
        char *yaml = format("buffers: {x: {dtype: u8, shape: [1]}, c: {const: c.npy, dtype: %s}, y: {dtype: %s, shape: "
            "[%d]}}\nstages:\n  - {use: generate, frames: 1, out: x}\n  - {use: lua, script: c.lua, in: [x, c], out: y}\n"
            "  - {use: write, path: out.raw, durable: none}\n", to, to, N);
        OWNED char *konst = run(dir, yaml, &n[0]);
        OWNED char *frame = cast_frame(dir, real[_i], to, "device", &n[1]);
        OWNED char *here = cast_frame(dir, real[_i], to, "host", &n[2]);
        ck_assert_msg(n[0] == n[1] && n[1] == n[2] && !memcmp(frame, here, n[1]), "%s to %s on the host",
                      gp_dtype_name(real[_i]), to);
        for (size_t i = 0, each = gp_dtype_size(real[k]); i < n[0]; i += each) {
            bool kept = real[k] == real[_i] && real[k] == GP_F16 && (*(uint16_t *)(konst + i) & 0x7fff) > 0x7c00;
            ck_assert_msg(kept || !memcmp(konst + i, frame + i, each), "element %zu, %s to %s", i / each,
                          gp_dtype_name(real[_i]), to);
        }
    }
}

/* On a GPU casts at its borders run on the host, unless the file says otherwise: with the same bytes, also of a last
 * frame with fewer rows. */
TEST(borders)
{
    static const char *const says[] = { "", ", on: device", ", on: host" };
    const char *dir = pipe_dir();
    char *out[3];
    size_t n[3];
    put_numbers(dir, GP_F64);
    for (int i = 0; i < 3; i++) {
        char *yaml = format("buffers: {x: {dtype: f64, shape: [50]}}\nstages:\n  - {use: read, path: c.npy, out: x}\n"
                 "  - {use: cast, dtype: f32%s}\n  - {use: scale, a: 3}\n  - {use: cumsum}\n  - {use: cast, dtype: f64%s}\n"
                 "  - {use: write, path: out.raw, durable: none}\n", says[i], says[i]);
        out[i] = run(dir, yaml, &n[i]);
        ck_assert_msg(n[i] == N * sizeof(double) && !memcmp(out[i], out[0], n[i]), "%s", yaml);
    }
    for (int i = 0; i < 3; i++)
        free(out[i]);
}

static float ramp(int64_t i)
{
    return (float)(i + 1);
}

#define TOP(buffers) "buffers: {x: {dtype: f32, shape: [4, 5]}, c: {const: c.npy, dtype: f32}" buffers "}\n" \
                     "stages:\n  - {use: generate, frames: 6, out: x}\n"
#define END "  - {use: write, in: y, path: out.raw, durable: none}\n"
static const struct { const char *what, *once, *frames; } pairs[] = {
    { "one expression",
      TOP("") "  - {use: expr, in: c, out: g, expr: c / 7}\n  - {use: expr, in: [x, g], out: y, expr: x * g}\n" END,
      TOP("") "  - {use: expr, in: [x, c], out: y, expr: x * (c / 7)}\n" END },
    { "a chain, a reduction, what is read twice",
      TOP(", h: {dtype: f32}") "  - {use: expr, in: c, out: h, expr: c + 1}\n  - {use: scale, a: 2, in: h, out: k}\n"
      "  - {use: reduce, op: sum, axes: [0], in: k, out: s}\n  - {use: expr, in: [x, k, s], out: y, expr: x + k / s}\n" END,
      TOP("") "  - {use: expr, in: [x, c], out: h, expr: 'c + 1 + 0 * x'}\n  - {use: scale, a: 2, in: h, out: k}\n"
      "  - {use: reduce, op: sum, axes: [0], in: k, out: s}\n  - {use: expr, in: [x, k, s], out: y, expr: x + k / s}\n" END },
    { "for the host",
      TOP("") "  - {use: scale, a: 3, in: c, out: k}\n  - {use: lua, script: add.lua, in: [x, k], out: y}\n" END,
      TOP("") "  - {use: expr, in: [x, c], out: y, expr: x + 3 * c}\n" END },
    { "for both, by a user's kernel",
      TOP(", k: {dtype: f32, shape: [4, 5]}") "  - {use: kernel, source: k.cu, args: [in, out], grid: 1, block: 20, in: c, out: k}\n"
      "  - {use: lua, script: add.lua, in: [x, k], out: z}\n  - {use: expr, in: [z, k], out: y, expr: z - k * 0.5}\n" END,
      TOP("") "  - {use: expr, in: [x, c], out: y, expr: 'x + (c - 1) - (c - 1) * 0.5'}\n" END },
    { "of two outputs one, with a table",
      TOP("") "  - {use: blur, sigma: 1, in: c, out: b}\n  - {use: expr, in: b, out: {o: o, p: p}, expr: \"o = b * 2; p = b * 3\"}\n"
      "  - {use: expr, in: [x, o, p], out: y, expr: x + o - p}\n" END,
      TOP("") "  - {use: expr, in: [x, c], out: h, expr: c + 0 * x}\n  - {use: blur, sigma: 1, in: h, out: b}\n"
      "  - {use: expr, in: [x, b], out: y, expr: x + b * 2 - b * 3}\n" END },
    { "in a loop, as its input",
      TOP("") "  - {use: scale, a: 2, in: c, out: k}\n  - {use: loop, in: {u: x, k: k}, out: {v: y}, carry: {u: v}, times: 3,\n"
      "     stages: [{use: expr, in: [u, k], out: v, expr: u + k}]}\n" END,
      TOP("") "  - {use: expr, in: [x, c], out: y, expr: '((x + 2 * c) + 2 * c) + 2 * c'}\n" END },
};

TEST_EACH(same_as_of_frames, pairs)
{
    const char *dir = pipe_dir();
    size_t n[2];
    pipe_npy(dir, "c.npy", 4, 5, ramp);
    pipe_text(dir, "add.lua", "function process(f, x, y) y:add(x.x, x.k) end\n");
    pipe_text(dir, "k.cu", "extern \"C\" __global__ void k(const float *a, float *o) { o[threadIdx.x] = a[threadIdx.x] - 1; }\n");
    OWNED char *once = run(dir, pairs[_i].once, &n[0]), *frames = run(dir, pairs[_i].frames, &n[1]);
    ck_assert_msg(n[0] && n[0] == n[1] && !memcmp(once, frames, n[0]), "%s", pairs[_i].what);
}

CASES_SUITE(prologue, NULL, NULL, 120, 1)
