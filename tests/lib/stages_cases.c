/* stages_cases.c - the device stages against NumPy and SciPy (tests/ref), against
 * plain C, and against themselves: batches, partial frames, blocks of a signal. */
#include <math.h>
#include "device/libraries.h"
#include "harness.h"
#include "cases.h"

static gp_dev *dev;

static void open_device(void) { dev = trial_device(cases_backend()); }
static void close_device(void) { dev->backend->close(dev); }

/* ---- the cases --------------------------------------------------------- */

typedef struct stage_case {
    char kind[20], options[1200];
    array in[4];
    int nin;
    array want;                /* type.dtype 0: there is no reference */
    double tolerance;
    char name[60];
} stage_case;

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Integers are any bits, floats between -100 and 100. */
static array random_array(gp_dtype t, int ndim, const int64_t *dim)
{
    array a = array_new(t, ndim, dim);
    uint32_t seed = 12345;
    size_t bytes = gp_bytes(&a.type);
    if (t == GP_F32 || t == GP_C64) {
        for (size_t i = 0; i < bytes / 4; i++)
            ((float *)a.data)[i] = (float)next_random(&seed) * (200.0f / (1 << 24)) - 100;
    } else if (t == GP_F64) {
        for (size_t i = 0; i < bytes / 8; i++)
            ((double *)a.data)[i] = (double)next_random(&seed) * (200.0 / (1 << 24)) - 100;
    } else {
        for (size_t i = 0; i < bytes; i++)
            ((unsigned char *)a.data)[i] = (unsigned char)next_random(&seed);
    }
    return a;
}

#define LOW "[0.02, 0.04, 0.02, 1, -1.56, 0.64]"

static char *trim(char *s)
{
    while (*s == ' ')
        s++;
    size_t n = strlen(s);
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\n'))
        s[--n] = 0;
    return s;
}

static array reference(const char *name)
{
    return array_load(format("tests/ref/%s.npy", name));
}

static void release(stage_case *c)
{
    for (int i = 0; i < c->nin; i++)
        array_free(&c->in[i]);
    array_free(&c->want);
}

/* The next line of such a list; how many fields it has. */
static int next_line(FILE *list, char line[2000], char *field[5])
{
    int n = 0;
    char *save = NULL, *more = NULL;
    do
        more = fgets(line, 2000, list);
    while (more && *line == '#');
    for (char *at = more ? strtok_r(line, "|", &save) : NULL; at && n < 5; at = strtok_r(NULL, "|", &save))
        field[n++] = trim(at);
    if (n && !strcmp(field[1], "{}"))
        *field[1] = 0;
    return n;
}

static FILE *open_list(const char *name)
{
    FILE *list = fopen(format("tests/ref/%s", name), "r");
    ck_assert_msg(list != NULL, "cannot open tests/ref/%s", name);
    return list;
}

/* A type as it is written: "f32 [3, 4]". */
static gp_type type_of(char *text)
{
    gp_type t = { .ndim = 0 };
    char *at = strchr(text, ' ');
    ck_assert_msg(at && at[1] == '[', "no type: %s", text);
    *at++ = 0;
    for (t.dtype = gp_dtype_parse(text); *at != ']'; t.ndim++)
        t.dim[t.ndim] = strtoll(at + 1, &at, 10);
    return t;
}

/* A line of cases.txt, or of large.txt, which has no reference. */
static stage_case parse_case(char *field[5], bool large)
{
    stage_case c = { .nin = large };
    char *save = NULL;
    snprintf(c.kind, sizeof c.kind, "%s", field[0]);
    snprintf(c.options, sizeof c.options, "%s", field[1]);
    snprintf(c.name, sizeof c.name, "%s, %s", large ? "large" : field[3], field[2]);
    if (large) {
        gp_type t = type_of(field[2]);
        c.in[0] = random_array(t.dtype, t.ndim, t.dim);
        return c;
    }
    for (char *in = strtok_r(field[2], ",", &save); in && c.nin < 4; in = strtok_r(NULL, ",", &save))
        c.in[c.nin++] = reference(trim(in));
    c.want = reference(field[3]);
    c.tolerance = atof(field[4]);
    return c;
}

/* A library does it on a GPU: its bits are not those of the CPU, and others where lines are fewer. */
static double by_library(const char *kind)
{
    return strcmp(kind, "fft") && strcmp(kind, "ifft") && strcmp(kind, "channelize") ? 0 : 2e-6;
}

/* Is what a stage of this kind calls on a GPU there? */
static bool has_library(const char *kind)
{
    static int there = -1;
    gp_errs errs = { .n = 0 };
    if (dev->backend == &gp_backend_cpu || !by_library(kind))
        return true;
    if (there < 0 && !(there = gp_gpu_open(GP_GPU_FFT, NULL, "fft", (gp_loc){ 0 }, &errs)))
        fprintf(stderr, "stages: without fft, ifft and channelize: %s\n", errs.e[0].msg);
    return there;
}

/* Of what repeats with other numbers racecheck, the slowest sanitizer, gets one in five. */
static bool is_left_out(int i)
{
    const char *thin = getenv("GPIPE_THIN");
    return getenv("GPIPE_SANITIZED") && thin && atoi(thin) > 400 && i % 5;
}

static void as_reference(const stage_case *c);

/* All of cases.txt, then of large.txt. */
static void each_case(void (*f)(const stage_case *))
{
    char line[2000], *field[5];
    int lines = 0, before = 0;
    for (int large = 0; large < 2; large++) {
        FILE *list = open_list(large ? "large.txt" : "cases.txt");
        for (int n; (n = next_line(list, line, field)); lines++) {
            ck_assert_int_eq(n, large ? 3 : 5);
            stage_case c = parse_case(field, large);
            if (has_library(c.kind) && (large || f == as_reference || !is_left_out(lines)))
                f(&c);
            release(&c);
        }
        fclose(list);
        ck_assert_int_gt(lines - before, large ? 80 : 1000);
        before = lines;
    }
}

static trial *open_case(const stage_case *c, const array *in, int n)
{
    gp_errs errs = { 0 };
    trial *t = trial_open(dev, c->kind, c->options, in, c->nin, n, &errs);
    ck_assert_msg(t != NULL, "%s: %s: %s", c->name, c->options, pipe_said(&errs));
    return t;
}

/* ---- against references -------------------------------------------------- */

static void as_reference(const stage_case *c)
{
    if (!c->want.type.dtype)
        return;
    array got = trial_once(dev, c->kind, c->options, c->in, c->nin);
    SAME(got, c->want, c->tolerance, "%s: %s: %.80s", c->name, c->kind, c->options);
    array_free(&got);
}

TEST(test_references)
{
    each_case(as_reference);
}

/* ---- batches and partial frames ------------------------------------------ */

/* The rows of `a` in another order. */
static array rotated(const array *a, int64_t by)
{
    int64_t n = a->type.dim[0];
    array tail = array_rows(a, by % n, n - by % n), head = array_rows(a, 0, by % n);
    array r = array_rows(a, 0, n);
    memcpy(r.data, tail.data, gp_bytes(&tail.type));
    memcpy((char *)r.data + gp_bytes(&tail.type), head.data, gp_bytes(&head.type));
    array_free(&tail);
    array_free(&head);
    return r;
}

static void as_singles(const stage_case *c)
{
    enum { N = 3 };
    trial *t = open_case(c, c->in, N);
    array in[N * 4], out[N], alone;

    for (int j = 0; trial_batched(t) && j < N; j++)
        for (int i = 0; i < c->nin; i++)
            in[j * c->nin + i] = rotated(&c->in[i], j);
    if (trial_batched(t)) {
        trial_run(t, in, N, out);
        for (int j = 0; j < N; j++) {
            trial_run(t, &in[j * c->nin], 1, &alone);
            SAME(out[j], alone, 0, "%s: %.80s: frame %d of a batch", c->name, c->options, j);
            array_free(&alone);
            array_free(&out[j]);
        }
        for (int i = 0; i < N * c->nin; i++)
            array_free(&in[i]);
    }
    trial_close(t);
}

TEST(test_batches)
{
    each_case(as_singles);
}

/* Of a frame with fewer rows these make one that is as wide as that of a whole one; for others
 * tests/test_rearrange.c. */
static bool takes_rows(const char *kind, const char *options)
{
    static const struct { const char *kind, *option; } all[] = {
        { "transpose", "axes: [0" }, { "rotate90", "times: 2" }, { "concat", "axis: 0" }, { "reshape", "shape: [-1" },
        { "slice", "index: \"::" }, { "slice", "index: \"..." }, { "crop", NULL },
        { "slide", NULL }, { "resample", NULL }, { "correlate", NULL }, { "fft", "axes: 1" }, { "fft", "axes: [1" },
        { "ifft", "axes: 1" }, { "ifft", "axes: [1" }, { "gather", "axis: 1" }, { "gather", "axis: 2" }, { "gather", "mode" },
        { "topk", "k: " }, { "topk", "largest" }, { "channelize", NULL },
    };
    bool listed = false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!strcmp(kind, all[i].kind) && all[i].option && !strncmp(options, all[i].option, strlen(all[i].option)))
            return true;
        listed |= !strcmp(kind, all[i].kind);
    }
    return !listed;
}

static void as_rows(const stage_case *c)
{
    int64_t n = c->in[0].type.dim[0], rows[] = { 1, n / 2, n - 1 };
    double tolerance = dev->backend == &gp_backend_cpu ? 0 : by_library(c->kind);
    if (!strcmp(c->kind, "color") && strstr(c->options, "yuv"))
        return;                        /* planes, which have no part of such rows: tests/test_color.c */
    if (!strcmp(c->kind, "resize") && (strstr(c->options, "inside") || !strstr(c->options, "width")) && !strstr(c->options, "scale"))
        return;                        /* fewer rows would make it wider: tests/test_resize.c */
    bool product = !strcmp(c->kind, "matmul") || !strcmp(c->kind, "linear");
    if (product && (strstr(c->options, "transpose_a") || c->in[0].type.ndim == 1 || c->in[1].type.ndim > 2))
        return;                        /* they would not fit the other factor */
    if (!takes_rows(c->kind, c->options))
        return;
    for (int k = 0; k < 3; k++) {
        if (rows[k] < 1 || rows[k] >= n)
            continue;
        array in[4] = { array_rows(&c->in[0], n - rows[k], rows[k]), c->in[1], c->in[2] }, got;
        if (c->nin > 3)                    /* what `linear` adds */
            in[3] = array_rows(&c->in[3], n - rows[k], rows[k]);
        array alone = trial_once(dev, c->kind, c->options, in, c->nin);
        trial *t = open_case(c, c->in, 1);
        trial_run(t, in, 1, &got);
        SAME(got, alone, tolerance, "%s: %.80s: a partial frame of %lld rows", c->name, c->options, (long long)rows[k]);
        trial_close(t);
        array_free(&got);
        array_free(&alone);
        array_free(&in[0]);
        if (c->nin > 3)
            array_free(&in[3]);
    }
}

TEST(test_partial)
{
    each_case(as_rows);
}

/* ---- cast: every pair ----------------------------------------------------- */

/* long double holds every value of every type (its 64-bit or longer fraction is
 * checked); half() below is the value of bits h. */
static long double half(unsigned h)
{
    int e = h >> 10 & 31, m = h & 1023;
    long double x = e == 31 ? m ? (long double)NAN : (long double)INFINITY
                  : e ? ldexpl(1024 + m, e - 25) : ldexpl(m, -24);
    return h >> 15 ? -x : x;
}

static bool is_float(gp_dtype t) { return t == GP_F16 || t == GP_F32 || t == GP_F64; }

static long double value(const array *a, int64_t i)
{
    switch (a->type.dtype) {
#define X(NAME, name, ctype, bytes) case GP_##NAME: return ((ctype *)a->data)[i];
    X(U8, u8, uint8_t, 1) X(I8, i8, int8_t, 1) X(U16, u16, uint16_t, 2)
    X(I16, i16, int16_t, 2) X(U32, u32, uint32_t, 4) X(I32, i32, int32_t, 4)
    X(U64, u64, uint64_t, 8) X(I64, i64, int64_t, 8) X(F32, f32, float, 4) X(F64, f64, double, 8)
#undef X
    default: return half(((uint16_t *)a->data)[i]);
    }
}

/* The nearest half by search: between two neighbors, the even one on a tie. */
static unsigned nearest_half(long double x)
{
    unsigned sign = signbit(x) ? 0x8000 : 0, lo = 0, hi = 0x7c00;
    x = fabsl(x);
    if (isnan(x))
        return 0x7fff;
    while (hi - lo > 1) {
        unsigned mid = (lo + hi) / 2;
        if (half(mid) <= x)
            lo = mid;
        else
            hi = mid;
    }
    long double up = hi == 0x7c00 ? 65536 : half(hi), a = x - half(lo), b = up - x;
    return sign | (a < b || (a == b && !(lo & 1)) ? lo : hi);
}

static void store(array *a, int64_t i, long double x)
{
    int bits = 8 * (int)gp_dtype_size(a->type.dtype);
    switch (a->type.dtype) {
    case GP_F16: ((uint16_t *)a->data)[i] = (uint16_t)nearest_half(x); return;
    case GP_F32: ((float *)a->data)[i] = (float)x; return;
    case GP_F64: ((double *)a->data)[i] = (double)x; return;
#define X(NAME, ctype, lo, hi)                                                              \
    case GP_##NAME:                                                                         \
        ((ctype *)a->data)[i] = isnan(x) ? 0 : x <= (lo) ? (ctype)(lo) : x >= (hi) ? (ctype)(hi) \
                              : (ctype)rintl(x);                                            \
        return;
    X(U8, uint8_t, 0, 255) X(U16, uint16_t, 0, 65535) X(U32, uint32_t, 0, UINT32_MAX)
    X(U64, uint64_t, 0, UINT64_MAX) X(I8, int8_t, -128, 127) X(I16, int16_t, -32768, 32767)
    X(I32, int32_t, INT32_MIN, INT32_MAX) X(I64, int64_t, INT64_MIN, INT64_MAX)
#undef X
    default: ck_abort_msg("%d bits", bits);
    }
}

TEST(test_cast_all)
{
    static const long double special[] = {
        0, 0.5L, 1, 1.5L, 2.5L, 126.5L, 127.5L, 254.5L, 255.5L, 32766.5L, 65503.9L, 65519.9L, 65520,
        65534.5L, 65535.5L, 131072, 16777217, 2147483646.5L, 2147483648.0L, 4294967295.5L,
        0x1p53L + 1, 0x1p63L - 1, 0x1p63L, 0x1p64L - 1, 0x1p64L, 1e30L, 1e300L, 0x1p-14L, 0x1p-24L,
        0x1p-25L, 0x1.0000000001p-25L, 0x1.002p-1L, 0x1.0020000001p-1L, 0x1.001ffffffffffp-1L,
        0x1.006p0L, 0x1.0060000000001p0L, INFINITY, NAN };
    enum { SPECIAL = sizeof special / sizeof *special, N = 2 * SPECIAL + 201 };
    const int64_t dim[] = { N };

    ck_assert_int_ge(__LDBL_MANT_DIG__, 64);
    for (int from = 1; from < GP_NDTYPES; from++)
        for (int to = 1; to < GP_NDTYPES; to++) {
            if (from == GP_C64 || to == GP_C64 || is_left_out(from * GP_NDTYPES + to))
                continue;
            array in = random_array((gp_dtype)from, 1, dim), want = array_new((gp_dtype)to, 1, dim);
            for (int i = 0; i < 2 * SPECIAL; i++)
                store(&in, i, i < SPECIAL ? special[i] : -special[i - SPECIAL]);
            for (int i = 0; i < N; i++)
                store(&want, i, value(&in, i));
            array got = trial_once(dev, "cast", format("dtype: %s", gp_dtype_name((gp_dtype)to)), &in, 1);
            SAME(got, want, 0, "%s to %s", gp_dtype_name((gp_dtype)from), gp_dtype_name((gp_dtype)to));
            array_free(&in);
            array_free(&want);
            array_free(&got);
        }
}

/* ---- reduce: large, against plain sums ------------------------------------ */

TEST(test_reduce_large)
{
    static const int64_t sizes[] = { 1, 2, 63, 64, 65, 1023, 1025, 4097, 70001, 600011 };
    static const gp_dtype types[] = { GP_U8, GP_I32, GP_F32 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int k = 0; k < 3; k++) {
            array in = random_array(types[k], 1, &sizes[s]), got;
            long double sum = 0, min = INFINITY, max = -INFINITY;
            for (int64_t i = 0; i < sizes[s]; i++) {
                long double v = value(&in, i);
                sum += v, min = v < min ? v : min, max = v > max ? v : max;
            }
            static const char *const ops[] = { "op: sum", "op: min", "op: max", "op: mean" };
            const long double want[] = { sum, min, max, sum / sizes[s] };
            for (int o = 0; o < 4; o++) {
                got = trial_once(dev, "reduce", ops[o], &in, 1);
                long double v = value(&got, 0);
                /* one rounding to f32, and what f64 loses before it */
                long double slack = is_float(got.type.dtype) && o % 3 == 0
                                  ? fabsl(want[o]) * 0x1p-23L + 1e-9L * (o ? 1 : sizes[s]) : 0;
                ck_assert_msg(fabsl(v - want[o]) <= slack, "%s of %lld %s: %.9Lg, not %.9Lg", ops[o],
                              (long long)sizes[s], gp_dtype_name(types[k]), v, want[o]);
                array_free(&got);
            }
            array_free(&in);
        }
}

/* ---- topk: both outputs, by what they have to be ------------------------------- */

/* Does element i of a line come before element j? */
static bool comes_before(long double a, int64_t i, long double b, int64_t j, bool largest)
{
    if (isnan(a) != isnan(b))
        return isnan(a) == largest;
    return isnan(a) || a == b ? i < j : largest ? a > b : a < b;
}

static void check_line(const array *x, const array *y, const array *z, int64_t line, int64_t n, int64_t inner, int64_t k,
                       bool largest)
{
    int64_t from = line / inner * n * inner + line % inner, to = line / inner * k * inner + line % inner, ahead = 0, last = -1;
    size_t size = gp_dtype_size(x->type.dtype);
    long double v = 0;
    for (int64_t i = 0; i < k; i++) {
        int64_t at = ((int32_t *)z->data)[to + i * inner];
        ck_assert(at >= 0 && at < n);
        ck_assert(!memcmp((char *)y->data + (size_t)(to + i * inner) * size,
                          (char *)x->data + (size_t)(from + at * inner) * size, size));
        long double w = value(x, from + at * inner);
        ck_assert(!i || comes_before(v, last, w, at, largest));
        v = w, last = at;
    }
    for (int64_t j = 0; j < n; j++)
        ahead += comes_before(value(x, from + j * inner), j, v, last, largest);
    ck_assert_int_eq(ahead, k - 1);
}

TEST(test_topk)
{
    static const struct { int64_t outer, n, inner; int k; } sizes[] = {
        { 1, 1, 1, 1 }, { 37, 2, 1, 1 }, { 300, 7, 1, 7 }, { 9, 5, 130, 3 }, { 3, 64, 1, 64 }, { 2, 100, 3, 65 }, { 1, 2048, 1, 1024 },
        { 2, 2049, 1, 1 }, { 1, 4096, 2, 1024 }, { 3, 10007, 1, 12 }, { 1, 30000, 1, 700 },
        { 5, 9, 3, 0 }, { 1, 2048, 1, 0 }, { 3, 2049, 1, 0 }, { 2, 2500, 2, 2048 }, { 1, 30001, 1, 0 }, { 2, 20000, 1, 1025 },
        { 1, 9000, 2, 7000 },
    };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int d = 1; d < GP_NDTYPES; d++) {
            if (d == GP_C64 || is_left_out(d + (int)s))
                continue;
            const int64_t dim[] = { sizes[s].outer, sizes[s].n, sizes[s].inner };
            array x = random_array((gp_dtype)d, 3, dim), out[2];
            bool largest = (s + (size_t)d) % 2;
            int64_t k = sizes[s].k ? sizes[s].k : dim[1];
            uint32_t seed = 7;
            gp_errs errs = { 0 };
            for (int64_t i = 0; i < gp_count(&x.type); i += 2)     /* equal ones, zeros of both signs, NaN */
                store(&x, i, (long double[]){ 0, -0.0L, 3, 90, -5, NAN, INFINITY }[next_random(&seed) % 7]);
            char *yaml = format("device: %s\nbuffers: {x: {dtype: %s, shape: [%d, %d, %d]}}\nstages:\n"
                "  - {use: give, out: x}\n  - {name: it, use: topk, axis: 1, k: %d, largest: %s, out: {out: y, indices: z}}\n"
                "  - {use: take, in: y}\n  - {name: t, use: take, in: z}\n", dev->backend->name,
                gp_dtype_name((gp_dtype)d), (int)dim[0], (int)dim[1], (int)dim[2], sizes[s].k, largest ? "true" : "false");
            trial *t = trial_open_text(dev, yaml, 1, &errs);
            ck_assert_msg(t != NULL, "%s: %s", yaml, pipe_said(&errs));
            trial_run(t, &x, 1, out);
            for (int64_t line = 0; line < dim[0] * dim[2]; line++)
                check_line(&x, &out[0], &out[1], line, dim[1], dim[2], k, largest);
            trial_close(t);
            array_free(&x), array_free(&out[0]), array_free(&out[1]);
        }
}

/* ---- a signal in blocks ------------------------------------------------------- */

/* A signal in frames of any multiples of `step` rows is as in one frame, of which every `step` rows make `makes`. */
static void in_blocks(const char *kind, const char *options, const array *x, int64_t step, int64_t makes,
                      double tolerance)
{
    static const int64_t blocks[] = { 1, 2, 3, 7, 32, 100 };
    array whole = trial_once(dev, kind, options, x, 1);
    int64_t n = x->type.dim[0] / step;
    uint32_t seed = 99;

    for (int b = 0; b < 7; b++) {
        if (is_left_out(b))
            continue;
        int64_t most = b < 6 ? blocks[b] : 50;
        array first = array_rows(x, 0, most * step);
        gp_errs errs = { 0 };
        trial *t = trial_open(dev, kind, options, &first, 1, 1, &errs);
        ck_assert_msg(t != NULL, "%s", errs.e[0].msg);
        /* the last time, blocks of any length up to `most` */
        for (int64_t at = 0, m; at < n; at += m) {
            m = b < 6 ? most : 1 + next_random(&seed) % most;
            m = m < n - at ? m : n - at;
            array part = array_rows(x, at * step, m * step), want = array_rows(&whole, at * makes, m * makes), got;
            trial_run(t, &part, 1, &got);
            SAME(got, want, tolerance, "%s: %.80s: rows %lld to %lld", kind, options, (long long)(at * step),
                 (long long)((at + m) * step));
            array_free(&part);
            array_free(&want);
            array_free(&got);
        }
        trial_close(t);
        array_free(&first);
    }
    array_free(&whole);
}

TEST(test_fir_blocks)
{
    static const struct { gp_dtype dtype; int ndim; int64_t dim[2]; } shapes[] = {
        { GP_F32, 1, { 211 } }, { GP_F32, 2, { 157, 3 } }, { GP_C64, 1, { 130 } } };
    static const int taps[] = { 1, 2, 5, 40 };

    for (int s = 0; s < 3; s++)
        for (int k = 0; k < 4; k++) {
            array x = random_array(shapes[s].dtype, shapes[s].ndim, shapes[s].dim);
            char options[1000] = "taps: [0.3";
            uint32_t seed = 99;
            for (int i = 1; i < taps[k]; i++)
                snprintf(options + strlen(options), 20, ", %.6f", next_random(&seed) * 1e-7 - 0.8);
            strcat(options, "]");
            in_blocks("fir", options, &x, 1, 1, 0);
            array_free(&x);
        }
}

TEST(test_signal_blocks)
{
    static const struct {
        const char *kind, *options;
        gp_dtype dtype;
        int ndim;
        int64_t dim[2], step, makes;
        double tolerance;
    } all[] = {
        { "slide", "length: 5, hop: 2", GP_U8, 2, { 240, 3 }, 2, 1, 0 },
        { "slide", "length: 90, hop: 1", GP_I64, 1, { 150 }, 1, 1, 0 },
        { "slide", "length: 3, hop: 3", GP_F16, 1, { 360 }, 3, 1, 0 },
        { "slide", "length: 1, hop: 4, taper: hann", GP_F64, 1, { 480 }, 4, 1, 0 },
        { "slide", "length: 25, hop: 10, taper: hann", GP_C64, 2, { 1300, 2 }, 10, 1, 0 },
        { "iir", "sos: [" LOW ", [1, 0, 0, 1, -1.9, 0.95]]", GP_F32, 2, { 4950, 3 }, 11, 11, 1e-6 },
        { "resample", "up: 3, down: 4", GP_F32, 2, { 480, 3 }, 4, 3, 0 },
        { "resample", "up: 160, down: 147", GP_F32, 1, { 14700 }, 147, 160, 0 },
        { "resample", "up: 4, down: 2, taps: [1, 2, 3, 4, 5, 6, 7, 8, 9]", GP_C64, 1, { 300 }, 1, 2, 0 },
        { "resample", "up: 5, down: 2, taps: [1, 2, 3]", GP_F32, 1, { 300 }, 2, 5, 0 },
        { "channelize", "channels: 6, taps: 9", GP_F32, 2, { 1200, 3 }, 6, 1, 2e-6 },
        { "channelize", "channels: 7, taps: 1", GP_C64, 1, { 1400 }, 7, 1, 2e-6 },
        { "iir", "sos: [[1, 0, 0, 1, -1, 0]]", GP_F64, 1, { 20000 }, 100, 100, 1e-12 },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        array x = random_array(all[i].dtype, all[i].ndim, all[i].dim);
        in_blocks(all[i].kind, all[i].options, &x, all[i].step, all[i].makes, all[i].tolerance);
        array_free(&x);
    }
}

/* ---- how exact ---------------------------------------------------------------- */

/* One channel as scipy.signal.sosfilt has it, in the same order of operations, with states of type T. */
#define DIRECT(name, T)                                                                                         \
    static void name(T *y, const double *x, int64_t rows, const double (*sos)[6], int sections)                 \
    {                                                                                                           \
        T z[3][2] = { { 0 } };                                                                                  \
        for (int64_t r = 0; r < rows; r++) {                                                                    \
            T v = x[r];                                                                                         \
            for (int i = 0; i < sections; i++) {                                                                \
                const double *s = sos[i];                                                                       \
                T w = s[0] * v + z[i][0];                                                                       \
                z[i][0] = s[1] * v - s[4] * w + z[i][1];                                                        \
                z[i][1] = s[2] * v - s[5] * w;                                                                  \
                v = w;                                                                                          \
            }                                                                                                   \
            y[r] = v;                                                                                           \
        }                                                                                                       \
    }
DIRECT(direct, double)
DIRECT(direct_wide, long double)

/* Narrow filters, in frames of any size, are at most twice as far from what they should be as SciPy's, but for the
 * rounding of what they return. */
TEST(test_iir_exact)
{
    enum { ROWS = 30000, CHANNELS = 2 };
    static const struct { const char *what; int sections; double sos[3][6]; } of[] = {
        { "0.05 Hz of 48 kHz", 2, {
            { 1.1468611593774248e-22, 2.2937223187548496e-22, 1.1468611593774248e-22, 1, -1.99998790647549, 0.9999879065183265 },
            { 1, 2, 1, 1, -1.9999949906552938, 0.9999949906981306 },
        } },
        { "1 Hz", 3, {
            { 0.0009999249006986345, -0.0019998494349103167, 0.0009999249006986345, 1, -1.9999124264706134, 0.9999124302622309 },
            { 1, -1.9999999427756088, 0.9999999999999999, 1, -1.9999510345812883, 0.9999510464343274 },
            { 1, -1.99999996468028, 1.0000000000000002, 1, -1.9999860911892045, 0.9999861086475353 },
        } },
        { "a mean of 1e6 rows", 1, {
            { 1e-06, 0, 0, 1, -0.999999, 0 },
        } },
        { "two slow poles", 1, {
            { 1e-08, 0, 0, 1, -1.99899, 0.9989900100000001 },
        } },
        { "a tone of 440 Hz", 1, {
            { 2.879784972709132e-06, 0, -2.879784972709132e-06, 1, -1.9966778832085348, 0.9999942404300549 },
        } },
        { "a high-pass near the end", 1, {
            { 4.279720543263113e-07, -8.559441086526226e-07, 4.279720543263113e-07, 1, 1.9981487993036977, 0.998150511191915 },
        } },
        { "above 0.05 Hz", 1, {
            { 0.9999953720076484, -1.9999907440152969, 0.9999953720076484, 1, -1.9999907439938787, 0.9999907440367153 },
        } },
        { "wide", 3, {
            { 0.005836832356058141, 0.011673664712116281, 0.005836832356058141, 1, -0.6758373142864055, 0 },
            { 1, 2, 1, 1, -1.0744506241086464, 0.5839800565170754 },
            { 1, 1, 0, 1, -0.7159871847590839, 0.8468108814163933 },
        } },
    };
    static const int64_t frames[] = { 40, 65, 1000, 4133, ROWS };
    static double x[CHANNELS][ROWS], near[ROWS];
    static long double right[CHANNELS][ROWS];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int kind = 0; kind < 3; kind++) {
            bool wide = kind < 2;
            int64_t channels = kind ? CHANNELS : 1;
            array all = array_new(wide ? GP_F64 : GP_F32, 2, (int64_t[]){ ROWS, channels });
            long double most[CHANNELS] = { 0 }, within[CHANNELS] = { 0 };
            uint32_t seed = 7;
            char options[1000] = "sos: [";
            for (int64_t k = 0; k < ROWS * channels; k++) {
                double v = (float)next_random(&seed) * 0x1p-24f + 0.5f;
                x[k % channels][k / channels] = v;
                if (wide)
                    ((double *)all.data)[k] = v;
                else
                    ((float *)all.data)[k] = (float)v;
            }
            for (int64_t c = 0; c < channels; c++) {
                direct(near, x[c], ROWS, of[i].sos, of[i].sections);
                direct_wide(right[c], x[c], ROWS, of[i].sos, of[i].sections);
                for (int64_t r = 0; r < ROWS; r++) {
                    most[c] = fmaxl(most[c], fabsl(right[c][r]));
                    within[c] = fmaxl(within[c], 2 * fabsl(near[r] - right[c][r]));
                }
                within[c] += 4 * (wide ? 0x1p-53L : 0x1p-24L) * most[c];
            }
            for (int k = 0; k < of[i].sections; k++) {
                const double *s = of[i].sos[k];
                snprintf(options + strlen(options), 200, "%s[%.17g, %.17g, %.17g, 1, %.17g, %.17g]", k ? ", " : "", s[0],
                         s[1], s[2], s[4], s[5]);
            }
            strcat(options, "]");
            for (size_t f = 0; f < sizeof frames / sizeof *frames; f++) {
                array first = array_rows(&all, 0, frames[f]), got;
                gp_errs errs = { 0 };
                trial *t = trial_open(dev, "iir", options, &first, 1, 1, &errs);
                ck_assert_msg(t != NULL, "%s", errs.e[0].msg);
                long double off[CHANNELS] = { 0 };
                for (int64_t at = 0, n; at < ROWS; at += n) {
                    n = frames[f] < ROWS - at ? frames[f] : ROWS - at;
                    array part = array_rows(&all, at, n);
                    trial_run(t, &part, 1, &got);
                    for (int64_t m = 0; m < n * channels; m++) {
                        double y = wide ? ((double *)got.data)[m] : (double)((float *)got.data)[m];
                        int64_t c = m % channels;
                        off[c] = fmaxl(off[c], fabsl(y - right[c][at + m / channels]));
                    }
                    array_free(&part);
                    array_free(&got);
                }
                for (int64_t c = 0; c < channels; c++)
                    ck_assert_msg(off[c] <= within[c], "%s, %s, frames of %lld: off by %Lg of %Lg, not %Lg", of[i].what,
                                  wide ? "f64" : "f32", (long long)frames[f], off[c], most[c], within[c]);
                trial_close(t);
                array_free(&first);
            }
            array_free(&all);
        }
}

/* ---- what makes no sense ------------------------------------------------------ */

TEST(test_errors)
{
    char line[2000], *field[5];
    int lines = 0;
    FILE *list = open_list("refused.txt");
    for (int n; (n = next_line(list, line, field)); lines++) {
        gp_errs errs = { 0 };
        ck_assert_int_eq(n, 4);
        gp_type t = type_of(field[2]);
        array in = array_new(t.dtype, t.ndim, t.dim);
        ck_assert_ptr_null(trial_open(dev, field[0], field[1], &in, 1, 1, &errs));
        ck_assert_msg(errs.n == 1 && strstr(errs.e[0].msg, field[3]), "%s: %s: %d errors: %s", field[0], field[1], errs.n,
                      errs.e[0].msg);
        array_free(&in);
    }
    fclose(list);
    ck_assert_int_gt(lines, 70);
}

/* ---- two back ends -------------------------------------------------------------- */

static gp_dev *other;

/* How far the back ends are from each other: libraries, and the logarithm, are the device's own. */
static double apart(const stage_case *c)
{
    bool product = !strcmp(c->kind, "matmul") || !strcmp(c->kind, "linear");
    return product ? 2 * c->tolerance : strcmp(c->kind, "db") ? by_library(c->kind) : 1e-6;
}

static void agrees(const stage_case *c)
{
    array a = trial_once(other, c->kind, c->options, c->in, c->nin);
    array b = trial_once(dev, c->kind, c->options, c->in, c->nin);
    SAME(a, b, apart(c), "%s: %.80s: %s and %s", c->name, c->options, other->backend->name, dev->backend->name);
    array_free(&a);
    array_free(&b);
}

/* A GPU's bits are the CPU's. */
TEST(test_agree)
{
    if (dev->backend == &gp_backend_cpu)
        return;
    other = trial_device(&gp_backend_cpu);
    each_case(agrees);
    gp_backend_cpu.close(other);
}

CASES_SUITE(stages, open_device, close_device, 300, 1)
