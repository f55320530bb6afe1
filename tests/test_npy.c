/* test_npy.c - headers of .npy files: what is read, what is refused, what is
 * written. */
#include "base/dtypes.h"
#include "base/npy.h"
#include "suite.h"

/* A file of version `major` whose dict is `dict`; returns its length. */
static size_t make(char *buf, int major, const char *dict)
{
    size_t n = strlen(dict), at = major == 1 ? 10 : 12;
    memcpy(buf, "\x93NUMPY", 6);
    buf[6] = (char)major, buf[7] = 0;
    buf[8] = (char)(n & 255), buf[9] = (char)(n >> 8), buf[10] = buf[11] = 0;
    memcpy(buf + at, dict, n + 1);
    return at + n;
}

static const struct { const char *dict, *type; bool fortran; } good[] = {
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", "f32 [3, 4]", false },
    { "{'shape': (5,), 'fortran_order': True, 'descr': '|u1'}", "u8 [5]", true },
    { "{\"descr\":\"|b1\",\"fortran_order\":False,\"shape\":(2,)}", "u8 [2]", false },
    { "{'descr': '<i1', 'fortran_order': False, 'shape': (1,)}", "i8 [1]", false },
    { "{'descr': '>u1', 'fortran_order': False, 'shape': (1,)}", "u8 [1]", false },
    { "{'descr': '<u2', 'fortran_order': False, 'shape': (1,)}", "u16 [1]", false },
    { "{'descr': '<i2', 'fortran_order': False, 'shape': (1,)}", "i16 [1]", false },
    { "{'descr': '<u4', 'fortran_order': False, 'shape': (1,)}", "u32 [1]", false },
    { "{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", "i32 [1]", false },
    { "{'descr': '=u8', 'fortran_order': False, 'shape': (1,)}", "u64 [1]", false },
    { "{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}", "i64 [1]", false },
    { "{'descr': '<f2', 'fortran_order': False, 'shape': (1,)}", "f16 [1]", false },
    { "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", "f64 [1]", false },
    { "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "c64 [1]", false },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "f32 [1]", false },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7)}", "f32 [0, 7]", false },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4L)}", "f32 [3, 4]", false },
    { "{'descr': '<u1', 'fortran_order': False, 'shape': (1,2,3,4,5,6,7,8)}", "u8 [1, 2, 3, 4, 5, 6, 7, 8]", false },
};

TEST_EACH(reads, good)
{
    for (int major = 1; major <= 3; major++) {
        char buf[256], err[160] = "", text[128];
        size_t n = make(buf, major, good[_i].dict), data;
        gp_type t;
        bool fortran;
        ck_assert_msg(gp_npy_parse(buf, n, &t, &data, &fortran, err), "%s %s", good[_i].dict, err);
        ck_assert_str_eq(gp_type_text(&t, text), good[_i].type);
        ck_assert_uint_eq(data, n);
        ck_assert_int_eq(fortran, good[_i].fortran);
    }
}

#define SHAPE(s) "{'descr': '<f4', 'fortran_order': False, 'shape': (" s ")}"
#define DESCR(s) "{'descr': " s ", 'fortran_order': False, 'shape': (2,)}"

static const struct { const char *dict, *err; } bad[] = {
    { DESCR("'>f4'"), "is big-endian" },
    { DESCR("'<c16'"), "holds complex128, which gpipe has no type for: save it with "
      ".astype('complex64'), or its .real" },
    { DESCR("'|O'"), "Python objects" },
    { DESCR("'<U5'"), "strings" },
    { DESCR("'|S5'"), "strings" },
    { DESCR("'<M8[ns]'"), "dates" },
    { DESCR("'<f16'"), "holds longdouble, which gpipe has no type for: save it with .astype('float64')" },
    { DESCR("'<f3'"), "element type '<f3'" },
    { DESCR("''"), "element type ''" },
    { DESCR("[('a', '<f4'), ('b', '<i4')]"), "records" },
    { DESCR("7"), "'descr' is not a short string" },
    { DESCR("'<f4"), "element type '<f4, '" },
    { SHAPE("1,2,3,4,5,6,7,8,9"), "more than 8 axes" },
    { SHAPE("-1,"), "an axis is not a number" },
    { SHAPE("99999999999999999999,"), "too long" },
    { SHAPE("4611686018427387904, 2"), "has a shape of more than 2^63 bytes" },
    { SHAPE("0, 4611686018427387904, 2"), "has a shape of more than 2^63 bytes" },
    { SHAPE("3 4"), "shape does not end" },
    { SHAPE("3,"), NULL },
    { "", "it is not a dict" },
    { "{", "a key is expected" },
    { "{}", "is missing" },
    { "{'descr': '<f4', 'shape': (2,)}", "is missing" },
    { "{'descr': '<f4', 'descr': '<f4'}", "unknown or repeated key" },
    { "{'color': 1}", "unknown or repeated key" },
    { "{'fortran_order': 0}", "neither True nor False" },
    { DESCR("'<f4'") " x", "something after" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2", "shape does not end" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "dict does not end" },
};

TEST_EACH(refuses, bad)
{
    char buf[256], err[160] = "";
    size_t n = make(buf, 1, bad[_i].dict), data;
    gp_type t;
    bool fortran, ok = gp_npy_parse(buf, n, &t, &data, &fortran, err);
    ck_assert_msg(ok == !bad[_i].err, "%s: %s", bad[_i].dict, err);
    ck_assert_msg(ok || strstr(err, bad[_i].err), "%s: '%s' is not in '%s'", bad[_i].dict, bad[_i].err, err);
}

/* Names of types from elsewhere. */
static const struct { const char *name, *hint; } hints[] = {
    { "uint8", "; did you mean 'u8'?" }, { "UINT8", "; did you mean 'u8'?" },
    { "bool", "; did you mean 'u8'?" }, { "int8_t", "; did you mean 'i8'?" },
    { "int16", "; did you mean 'i16'?" }, { "ushort", "; did you mean 'u16'?" },
    { "int", "; did you mean 'i32'?" }, { "unsigned int", "; did you mean 'u32'?" },
    { "long long", "; did you mean 'i64'?" }, { "size_t", "; did you mean 'u64'?" },
    { "half", "; did you mean 'f16'?" }, { "float", "; did you mean 'f32'?" },
    { "float32", "; did you mean 'f32'?" }, { "double", "; did you mean 'f64'?" },
    { "f8", "; did you mean 'f64'?" }, { "complex64", "; did you mean 'c64'?" },
    { "u9", "; did you mean 'u8'?" }, { "F32", "; did you mean 'f32'?" },
    { "c128", ": c64 holds two f32 (complex64); two f64 are f64 with a last axis of 2" },
    { "bf16", ": f16 and f32 are the floats of up to 32 bits" }, { "color", "" },
};

TEST_EACH(hint, hints)
{
    char text[GP_DTYPE_HINT];
    ck_assert_str_eq(gp_dtype_hint(hints[_i].name, text), hints[_i].hint);
    ck_assert_ptr_eq(gp_dtype_hint(hints[_i].name, text), text);
}

/* Every prefix of a header is refused; so is every change of its first bytes. */
TEST(cut_off)
{
    for (int major = 1; major <= 3; major++) {
        char buf[256], err[160];
        size_t n = make(buf, major, good[0].dict), data;
        gp_type t;
        bool fortran;
        for (size_t k = 0; k < n; k++) {
            ck_assert(!gp_npy_parse(buf, k, &t, &data, &fortran, err));
            ck_assert_msg(strstr(err, k < 6 ? "is not a .npy file" : "is cut off"), "%zu: %s", k, err);
        }
        buf[6] = 4;
        ck_assert(!gp_npy_parse(buf, n, &t, &data, &fortran, err));
        ck_assert(strstr(err, "version 4.0"));
    }
}

/* Bytes that nobody wrote: no crash (the sanitizers look), and if it reads as a
 * header, the type makes sense. */
TEST(noise)
{
    unsigned x = 12345;
    for (int round = 0; round < 20000; round++) {
        char buf[256], err[160];
        size_t n = make(buf, 1 + round % 3, good[round % 18].dict), data;
        for (int k = 0; k < 1 + round % 4; k++) {
            x = x * 1664525 + 1013904223;
            buf[6 + (x >> 8) % (n - 6)] = (char)(x >> 24);
        }
        gp_type t;
        bool fortran;
        if (!gp_npy_parse(buf, n, &t, &data, &fortran, err))
            continue;
        ck_assert(t.ndim >= 1 && t.ndim <= GP_MAXDIM && data <= n);
        ck_assert(t.dtype > GP_NO_DTYPE && t.dtype < GP_NDTYPES && gp_count(&t) >= 0);
    }
}

TEST(writes)
{
    for (int d = 1; d < GP_NDTYPES; d++)
        for (int ndim = 1; ndim <= GP_MAXDIM; ndim++) {
            gp_type t = { .dtype = (gp_dtype)d, .ndim = ndim }, back;
            char buf[GP_NPY_HEADER_MAX + 64], err[160] = "";
            size_t data, first = 0;
            bool fortran;
            for (int i = 0; i < ndim; i++)
                t.dim[i] = i ? 3 : 0;
            for (int64_t rows = 0; rows < INT64_C(1) << 40; rows = 1000 * rows + 1) {
                t.dim[0] = rows;
                size_t n = gp_npy_header(&t, buf, sizeof buf);
                ck_assert_uint_eq(n % 64, 0);
                ck_assert_uint_le(n, GP_NPY_HEADER_MAX);
                ck_assert_int_eq(buf[n - 1], '\n');
                first = first ? first : n;
                ck_assert_uint_eq(n, first);
                ck_assert_msg(gp_npy_parse(buf, n, &back, &data, &fortran, err), "%s", err);
                ck_assert(gp_type_same(&t, &back) && data == n && !fortran);
                ck_assert_uint_eq(gp_npy_header(&t, buf, n - 1), 0);
            }
        }
}

TEST_SUITE(npy, NULL, NULL, 0)
