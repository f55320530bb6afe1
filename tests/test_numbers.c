/* test_numbers.c - numbers at the ends of their types: of each kind of computation one element, NaN, infinities, and
 * what only a value in between does not hold. What is expected is the number that is right, as NumPy has it with
 * longer floats; but where squares are beyond an f64, `std` is inf and `normalize` by it NaN. */
#include <ctype.h>
#include "iotest.h"

#define MEAN "{use: reduce, op: mean}"
#define FUSED(text) "{use: expr, expr: 'in + 0'}, {use: reduce, op: mean" text "}"
#define STD "{use: reduce, op: std}"
#define RANGE "{use: normalize}"
#define DEVIATION "{use: normalize, to: deviation}"
#define DB "{use: db, reference: 1e-12, floor: -1000}"
#define DB_FUSED DB ", {use: expr, expr: 'in + 0'}"
#define COLUMNS "{use: reshape, shape: [2, 2]}, {use: reduce, op: mean, axes: [0]}"
#define SOBEL "{use: reshape, shape: [2, 2]}, {use: sobel}, {use: reshape, shape: [4]}"
#define HALF(level) "{use: cast, dtype: f16}, {use: threshold, level: " level "}, {use: cast, dtype: f32}"
#define NANO "1764000000000000000"
#define FAR "9223372036854775807"
#define FAR_U "18446744073709551615"

/* A frame of `n` numbers, one a line; "nan" and so on as `write` has them. */
static const struct { const char *dtype; int n; const char *stage, *in, *out; } rows[] = {
    { "i64", 1, MEAN, NANO, "1.764e+18" },
    { "i64", 8, MEAN, NANO " " NANO " " NANO " " NANO " " NANO " " NANO " " NANO " " NANO, "1.764e+18" },
    { "i64", 3, MEAN, FAR " " FAR " " FAR, "9.223372e+18" },
    { "i64", 3, FUSED(""), FAR " " FAR " " FAR, "9.223372e+18" },
    { "i64", 3, FUSED(", axes: [0], keep: true"), FAR " " FAR " " FAR, "9.223372e+18" },
    { "i64", 2, MEAN, "-9223372036854775808 -9223372036854775808", "-9.223372e+18" },
    { "i64", 2, MEAN, "-3 4", "0.5" },
    { "u64", 2, MEAN, FAR_U " " FAR_U, "1.8446744e+19" },
    { "u64", 2, FUSED(""), FAR_U " " FAR_U, "1.8446744e+19" },
    { "u64", 1, MEAN, FAR_U, "1.8446744e+19" },
    { "i32", 2, MEAN, "2147483647 2147483647", "2.1474836e+09" },
    { "u32", 2, MEAN, "4294967295 4294967295", "4.2949673e+09" },
    { "f32", 2, MEAN, "3e38 3e38", "3e+38" },
    { "i64", 4, COLUMNS, FAR " 1 " FAR " 2", "9.223372e+18 1.5" },
    { "u64", 4, COLUMNS, FAR_U " 1 " FAR_U " 2", "1.8446744e+19 1.5" },
    { "i64", 1, "{use: mix, op: mean}", FAR " " FAR " " FAR, "9.223372e+18" },
    { "u64", 1, "{use: mix, op: mean}", FAR_U " " FAR_U " " FAR_U, "1.8446744e+19" },
    { "i64", 1, "{use: mix, op: mean}", "-3 4", "0.5" },
    { "i64", 1, "{use: mix, op: sum}", "9007199254740993 2", "9007199254740995" },
    { "i64", 2, "{use: threshold, level: 9007199254740992}", "9007199254740992 9007199254740993", "0 1" },
    { "u64", 2, "{use: threshold, level: 18446744073709551614}", "18446744073709551614 18446744073709551615", "0 1" },
    { "i64", 3, "{use: threshold, level: -2.5}", "-3 -2 3", "0 1 1" },
    { "f32", 3, HALF("2049.5"), "2048 2050 2052", "0 1 1" },
    { "f32", 3, HALF("-2050.5"), "-2048 -2050 -2052", "1 1 0" },
    { "f32", 3, HALF("-65519.9"), "65504 -65504 -inf", "1 1 0" },
    { "f32", 3, HALF("-1e-9"), "0 -6e-8 1", "1 0 1" },
    { "f32", 2, HALF("2050.0"), "2050 2052", "0 1" },
    { "u64", 1, "{use: expr, expr: 'in + 9223372036854775808'}", "5", "9223372036854775813" },
    { "u64", 2, "{use: expr, expr: 'in > 18446744073709551614'}", "18446744073709551614 18446744073709551615", "0 1" },
    { "u64", 1, "{use: expr, expr: 'in + (18446744073709551615 >> 1)'}", "0", FAR },
    { "f32", 1, "{use: pad, after: 1, value: -0.0}", "1", "1 -0" },
    { "f32", 1, STD, "nan", "nan" },
    { "f64", 4, DEVIATION, "1e-200 2e-200 3e-200 4e-200", "nan nan nan nan" },
    { "f32", 1, STD, "inf", "nan" },
    { "f32", 1, STD, "5", "0" },
    { "f32", 3, STD, "1 nan 2", "nan" },
    { "f32", 10, STD, "1 1 1 1 1 1 1 1 1 nan", "nan" },
    { "f32", 10, STD, "1 1 1 inf 1 1 1 1 1 1", "nan" },
    { "f32", 2, STD, "-3e38 3e38", "3e+38" },
    { "f64", 10, STD, "0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1", "0" },
    { "f64", 2, STD, "-1.7e308 1.7e308", "inf" },
    { "f32", 1, RANGE, "nan", "nan" },
    { "f32", 1, RANGE, "inf", "nan" },
    { "f32", 1, RANGE, "5", "0" },
    { "f32", 3, RANGE, "1 nan 2", "nan nan nan" },
    { "f32", 3, RANGE, "inf 1 2", "nan 0 0" },
    { "f32", 3, RANGE, "-3.4e38 0 3.4e38", "0 0.5 1" },
    { "f32", 2, RANGE, "0 1e-45", "0 1" },
    { "f64", 3, RANGE, "-1.7e308 0 1.7e308", "0 0.5 1" },
    { "f64", 2, RANGE, "5e-324 0", "1 0" },
    { "i64", 3, RANGE, "-9223372036854775808 0 " FAR, "0 0.5 1" },
    { "f32", 1, DEVIATION, "nan", "nan" },
    { "f32", 1, DEVIATION, "inf", "nan" },
    { "f32", 1, DEVIATION, "5", "0" },
    { "f32", 3, DEVIATION, "7 7 7", "0 0 0" },
    { "f32", 3, DEVIATION, "1 inf 2", "nan nan nan" },
    { "f32", 2, DEVIATION, "-3e38 3e38", "-1 1" },
    { "f64", 10, DEVIATION, "0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1", "0 0 0 0 0 0 0 0 0 0" },
    { "f64", 2, DEVIATION, "1.7e308 1", "nan nan" },
    { "f64", 2, DEVIATION, "1e-200 -1e-200", "nan nan" },
    { "f32", 7, DB, "1e27 1e-12 0 inf nan -1 1e-45", "390 0 -1000 inf nan nan -328.5347" },
    { "f32", 7, DB_FUSED, "1e27 1e-12 0 inf nan -1 1e-45", "390 0 -1000 inf nan nan -328.5347" },
    { "f32", 2, "{use: db, reference: 1e30, floor: -1000}", "1e-38 1e30", "-680 0" },
    { "f32", 1, "{use: db, reference: 1e-30}", "1e38", "680" },
    { "f64", 2, "{use: db, reference: 1e-30, floor: -1000}", "1e300 1e-30", "3300 0" },
    { "f32", 4, SOBEL, "1e20 1e20 0 0", "4e+20 4e+20 4e+20 4e+20" },
    { "f32", 4, SOBEL, "1e-25 1e-25 0 0", "4e-25 4e-25 4e-25 4e-25" },
    { "f32", 4, SOBEL, "0 3 4 7", "20 20 20 20" },
    { "f32", 1, "{use: reshape, shape: [1, 1]}, {use: sobel}, {use: reshape, shape: [1]}", "inf", "nan" },
};

TEST_EACH(of_stages, rows)
{
    char *lines = format("%s\n", rows[_i].in), *want = format("%s\n", rows[_i].out);
    for (char *c = lines; *c; c++)
        *c = *c == ' ' ? '\n' : *c;
    for (char *c = want; *c; c++)
        *c = *c == ' ' ? '\n' : *c;
    pipe_text(io_dir, "in.csv", lines);
    char *y = format("buffers: {x: {dtype: %s, shape: [%d]}}\nstages: [{use: read, path: in.csv, out: x}, %s, "
                     "{use: write, path: out.csv}]\n", rows[_i].dtype, rows[_i].n, rows[_i].stage);
    ck_assert_uint_ge(io_runs(y), 1);
    size_t n;
    OWNED char *got = pipe_read(io_dir, "out.csv", &n);
    ck_assert_msg(n == strlen(want) && !memcmp(got, want, n), "%s of %s is\n%.*s, not\n%s", rows[_i].stage, rows[_i].in,
                  (int)n, got, want);
}

/* ---- whole numbers at the ends of 64 bits ------------------------------------- */

static const char *const wholes[] = { "9007199254740993", FAR, "9223372036854775808", FAR_U, "-9223372036854775808",
                                      "18446744073709551616", "-9223372036854775809" };
enum { WHOLES = sizeof wholes / sizeof *wholes };

/* Which of these a type holds: without rounding, in f64 too. */
static const struct { const char *dtype; bool holds[WHOLES]; } wide[] = {
    { "i64", { 1, 1, 0, 0, 1, 0, 0 } }, { "u64", { 1, 1, 1, 1, 0, 0, 0 } }, { "f64", { 0, 0, 1, 0, 1, 0, 0 } },
};

/* What takes such a number, N, of type T, behind a frame that is 0; the last line that is written is N, or `last`. */
static const struct { const char *buffers, *stages, *last; bool rounds; } takers[] = {
    { ", z: {like: x}", "{use: discard}, {name: g, use: generate, pattern: constant, value: N, frames: 1, out: z}", NULL,
      false },
    { "", "{use: pad, after: 1, value: N}", NULL, false },
    { "", "{use: pad, after: 1, value: N}, {use: threshold, level: N}", "0", false },
    { "", "{use: threshold, level: 0, below: N}", NULL, false },
    { "", "{use: pad, after: 1, value: 1}, {use: threshold, level: 0, above: N}", NULL, false },
    { ", c: {const: [N], dtype: T}", "{use: expr, in: [x, c], expr: 'c'}", NULL, false },
    { ", u: {carry: x, init: N}", "{use: expr, in: [u, x], expr: 'u + x'}", NULL, false },
    { ", y: {like: x}", "{use: kernel, out: y, threads: 1, args: [out, {T: 'N'}], "
      "code: 'extern \"C\" __global__ void k(D *y, D n) { *y = n; }'}", NULL, true },
    { "", "{use: expr, out: y, expr: 'in * 0 + N'}", NULL, true },
};

static char *with(const char *text, const char *dtype, const char *number)
{
    static char out[1200];
    const char *c_type = *dtype == 'f' ? "double" : *dtype == 'u' ? "unsigned long long" : "long long";
    char *to = out, before = ' ';
    for (; *text; before = *text++) {
        bool word = isalnum((unsigned char)text[1]) || isalnum((unsigned char)before);
        const char *put = word ? NULL : *text == 'T' ? dtype : *text == 'N' ? number : *text == 'D' ? c_type : NULL;
        to += put ? sprintf(to, "%s", put) : (*to = *text, 1);
    }
    *to = '\0';
    return out;
}

TEST_EACH(of_options, takers)
{
    for (size_t t = 0; t < sizeof wide / sizeof *wide; t++)
        for (size_t w = 0; w < WHOLES; w++) {
            char y[1000];
            bool holds = wide[t].holds[w];
            if (takers[_i].rounds && (*wide[t].dtype == 'f' || !holds))
                continue;
            TEXT(y, "buffers: {x: {dtype: T, shape: [1]}%s}\nstages: [{use: generate, frames: 1, out: x}, %s, "
                 "{use: write, path: out.csv}]\n", takers[_i].buffers, takers[_i].stages);
            strcpy(y, with(y, wide[t].dtype, wholes[w]));
            if (!holds) {
                io_fails(y, 3, w < 5 ? "hold" : "64 bits");
                continue;
            }
            ck_assert_uint_ge(io_runs(y), 1);
            size_t n;
            char *got = pipe_read(io_dir, "out.csv", &n), *line = got;
            for (char *c = got; c + 1 < got + n; c++)
                line = *c == '\n' ? c + 1 : line;
            const char *last = takers[_i].last ? takers[_i].last : wholes[w];
            if (*wide[t].dtype == 'f' && !takers[_i].last)
                ck_assert_msg(strtod(line, NULL) == strtod(last, NULL), "%s gave %s", y, line);
            else
                ck_assert_msg(!strncmp(line, last, strlen(last)) && line[strlen(last)] == '\n', "%s gave %s", y, line);
            free(got);
        }
}

TEST_SUITE(numbers, io_set_up, NULL, 0)
