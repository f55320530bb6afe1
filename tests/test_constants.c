/* test_constants.c - constants that are lists of numbers in the pipeline's file. */
#include "iotest.h"

/* What a stage on the host and one on the device see of a constant. */
static const struct { const char *buffer, *dtype, *shape; size_t bytes; const void *data; } cases[] = {
    { "{const: [0.5, -1, 3]}", "f32", "[3]", 12, (const float[]){ 0.5f, -1, 3 } },
    { "{const: [[1, 2], [3, 4], [n, n / 4.0]]}", "f32", "[3, 2]", 24, (const float[]){ 1, 2, 3, 4, 10, 2.5f } },
    { "{const: [[[7]]], dtype: u8}", "u8", "[1, 1, 1]", 1, (const uint8_t[]){ 7 } },
    { "{const: [-32768, 32767], dtype: i16}", "i16", "[2]", 4, (const int16_t[]){ -32768, 32767 } },
    { "{const: [-9007199254740993, 5], dtype: i64}", "i64", "[2]", 16, (const int64_t[]){ -9007199254740993, 5 } },
    { "{const: [0.1], dtype: f64}", "f64", "[1]", 8, (const double[]){ 0.1 } },
    { "{const: [1, -2], dtype: f16}", "f16", "[2]", 4, (const uint16_t[]){ 0x3c00, 0xc000 } },
    { "{const: [1e18, '2 + 3'], dtype: u64}", "u64", "[2]", 16, (const uint64_t[]){ 1000000000000000000, 5 } },
    { "{const: [65519.0, -0.0], dtype: f16}", "f16", "[2]", 4, (const uint16_t[]){ 0x7bff, 0x8000 } },
    { "{const: [3.4028235e38, -0.0]}", "f32", "[2]", 8, (const float[]){ 3.4028234663852886e38f, -0.0f } },
    { "{const: [1, -2], dtype: c64}", "c64", "[2]", 16, (const float[]){ 1, 0, -2, 0 } },
};

TEST_EACH(numbers, cases)
{
    char y[1200];
    pipe_text(io_dir, "same.lua", "function process(frame, x, y)\n  y:copy(x.c)\nend\n");
    TEXT(y, "vars: {n: 10}\nbuffers:\n  x: {dtype: i32, shape: [1]}\n  c: %s\n  y: {dtype: %s, shape: %s}\nstages:\n"
         "  - {use: generate, frames: 2, out: x}\n  - {use: lua, script: same.lua, in: {x: x, c: c}, out: y}\n"
         "  - {use: write, path: host.npy}\n  - {use: reshape, shape: %s, in: c, out: made}\n"
         "  - {use: lua, script: same.lua, in: {x: x, c: made}, out: z}\n  - {name: device, use: write, path: device.npy}\n",
         cases[_i].buffer, cases[_i].dtype, cases[_i].shape, cases[_i].shape);
    char *with_z = strstr(y, "stages:"), rest[1200];
    strcpy(rest, with_z);
    snprintf(with_z, sizeof y - (size_t)(with_z - y), "  z: {dtype: %s, shape: %s}\n%s", cases[_i].dtype, cases[_i].shape, rest);
    ck_assert_uint_eq(io_runs(y), 2);
    for (int k = 0; k < 2; k++) {
        OWNED char *got = pipe_read_all(io_dir, k ? "device.npy" : "host.npy", 128 + 2 * cases[_i].bytes);
        for (size_t i = 0; i < 2; i++)
            ck_assert(!memcmp(got + 128 + i * cases[_i].bytes, cases[_i].data, cases[_i].bytes));
    }
}

/* Of each channel its own: what files were needed for. */
TEST(channels)
{
    float want[6] = { 0, 10, 20, 0, 10, 20 };
    ck_assert_uint_eq(io_runs("buffers:\n  x: {dtype: f32, shape: [2, 3]}\n  mean: {const: [0, -10, -20]}\nstages:\n"
                              "  - {use: generate, pattern: constant, frames: 1, out: x}\n"
                              "  - {use: expr, in: [x, mean], expr: x * 0 - mean}\n  - {use: write, path: out.raw}\n"), 1);
    io_holds("out.raw", (const char *)want, sizeof want);
}

TEST_SUITE(constants, io_set_up, NULL, 0)
