/* test_text.c - numbers as text: CSV and JSON lines, in and out, by any number of workers; each number is read back to
 * its bits; broken lines are errors that name theirs. */
#include <math.h>
#include <sys/stat.h>
#include "iotest.h"

#define DISCARD "  - {use: discard}\n"
#define READ(type, shape, options)                                                                 \
    "buffers: {x: {dtype: " type ", shape: " shape "}}\nstages:\n  - {use: read, path: a.csv" options \
    ", out: x}\n  - {use: write, path: a.raw}\n"

static void holds(const char *name, const char *text)
{
    io_holds(name, text, strlen(text));
}

/* ---- in -------------------------------------------------------------- */

static const double six[] = { 1, 2, 3, 4, 5, 6 };
static const struct { const char *text; } ways[] = {
    { "1,2,3\n4,5,6\n" },
    { "\"1\",2,\" 3 \"\r\n4,\"5\" , 6" },
    { "\"a;b\",\"c, \"\"d\"\"\",e\n1,2,3\n4,5,6\n" },
    { "\"a b\" c d\n1 2 3\n4 \"5\" 6\n" },
    { "a \"b\"; c,d;e\n1;2;3\n4;5;6\n" },
    { "1,2,3\n4,5,6" },
    { "1 , 2,3\r\n 4,5, 6\r\n" },
    { "a,b,c\n1,2,3\n4,5,6\n" },
    { ",b,c\n1,2,3\n4,5,6\n" },
    { "# of today\n\ninfo,nano,b\n# and this\n1,2,3\n\n4,5,6\n\n# the end" },
    { "1;2;3\n4;5;6\n" },
    { "1\t2\t3\n4\t5\t6\n" },
    { "1   2 3\n 4  5 6  \n" },
    { "\xef\xbb\xbf" "1,2,3\n4,5,6\n" },
    { "\xef\xbb\xbfx,y,z\n+1,2.0,3e0\n0.4e1,50e-1,.6E+1\n" },
};

TEST_EACH(is_read, ways)
{
    pipe_text(io_dir, "a.csv", ways[_i].text);
    ck_assert_uint_eq(io_runs(READ("f64", "[10, 3]", "")), 1);
    io_holds("a.raw", six, sizeof six);
    ck_assert_uint_eq(io_runs(READ("f64", "[3]", ", workers: 2")), 2);         /* a row is a frame */
    io_holds("a.raw", six, sizeof six);
    io_runs("buffers: {x: {shape: [1, 3]}}\nstages:\n  - {use: read, path: a.csv, out: x}\n  - {use: write, path: "
            "a.raw}\n");
    io_holds("a.raw", six, sizeof six);
}

static const char *const lines[] = { "[1, 2, 3]\n[4,5,6]\n", "\n [ 1 ,2, 3 ] \r\n\n[4, 5, 6]", "1, 2, 3\n4, 5, 6\n" };

TEST_EACH(json, lines)
{
    pipe_text(io_dir, "a.jsonl", lines[_i]);
    io_runs("buffers: {x: {shape: [2, 3]}}\nstages:\n  - {use: read, path: a.jsonl, out: x}\n  - {use: write, path: "
            "a.raw}\n");
    io_holds("a.raw", six, sizeof six);
    pipe_text(io_dir, "b.ndjson", "NaN\n-Infinity\n[7]\n");
    io_runs("buffers: {x: {shape: [2]}}\nstages:\n  - {use: read, path: b.ndjson, out: x}\n  - {use: write, path: "
            "b.raw}\n");
    OWNED double *b = pipe_read_all(io_dir, "b.raw", 24);
    ck_assert(isnan(b[0]) && b[1] == -HUGE_VAL && b[2] == 7);
}

/* One column is no axis, unless it is declared. */
TEST(one_column)
{
    static const int32_t want[] = { -5, 0, 2147483647, -2147483647 - 1 };
    pipe_text(io_dir, "a.csv", "n\n-5\n0\n2147483647\n-2147483648\n");
    ck_assert_uint_eq(io_runs(READ("i32", "[3]", "")), 2);
    io_holds("a.raw", want, sizeof want);
    ck_assert_uint_eq(io_runs(READ("i32", "[4, 1]", "")), 1);
    io_holds("a.raw", want, sizeof want);
}

/* Is the first line a header, and what `auto` made of it where that can be doubted; fields in quotes, and without a
 * number, which are NaN; decimal commas. */
static const struct { const char *text, *options, *want, *said; } ways_of_others[] = {
    { "a,b\n1,2\n", "", "1,2\n", "a.csv' begins with a line without a number, 'a,b', line 1, which is taken for a "
      "header: 'header: yes' says that it is one, 'header: no' that it is a row" },
    { "a,b\n1,2\n", ", header: yes", "1,2\n", NULL },
    { "# c\n\n-, NA\n1,2\n", "", "1,2\n", "'-, NA', line 3, which is taken for a header" },
    { "1,2\n3,4\n", "", "1,2\n3,4\n", NULL },
    { "1,2\n3,4\n", ", header: yes", "3,4\n", NULL },
    { "2024,2025\n3,4\n", ", header: no", "2024,2025\n3,4\n", NULL },
    { ",\n3,4\n", "", "nan,nan\n3,4\n", "a.csv' begins with a line in which numbers are missing, ',', line 1, which "
      "is taken for a row: 'header: no' says that it is one, 'header: yes' that it is none" },
    { ",\n3,4\n", ", header: no", "nan,nan\n3,4\n", NULL },
    { ",0\n3,4\n", "", "nan,0\n3,4\n", "in which numbers are missing" },
    { ",0\n3,4\n", ", header: yes", "3,4\n", NULL },
    { "\"1;5\",\"2\"\n3,4\n", ", header: yes", "3,4\n", NULL },
    { "\"x\nin m\", y\n1,2\n", "", "1,2\n", "'\"x in m\", y', line 1, which is taken for a header" },
    { "\xef\xbb\xbf\"x,\r\n\n1,2\",\"say \"\"y\"\"\n\"\r\n1,2\n", ", header: yes", "1,2\n", NULL },
    { "# it's \"so\n# \"\n\"a\nb\",c\n1,2\n3,4\n", ", header: yes", "1,2\n3,4\n", NULL },
    { "\"a,b\n1,2\n3,4\n", ", header: yes", "1,2\n3,4\n", NULL },
    { "1,\n,2\n,\n", "", "1,nan\nnan,2\nnan,nan\n", "in which numbers are missing" },
    { "1, \n\"\",2\n\" \", \n", "", "1,nan\nnan,2\nnan,nan\n", "in which numbers are missing" },
    { "1\t\n\t2\n\t\n", "", "1,nan\nnan,2\nnan,nan\n", "in which numbers are missing" },
    { "a;b\n1;\n;2\n", ", header: yes", "1,nan\nnan,2\n", NULL },
    { "1,5;-2,25\n;,5\n1e3;+7,e1\nnan;-inf\n", ", decimal: comma", "1.5,-2.25\nnan,0.5\n1000,70\nnan,-inf\n", NULL },
    { "1,5\t2\n\"3,5\"\t4\n", ", decimal: comma", "1.5,2\n3.5,4\n", NULL },
    { "1,5 2\n3,5 4\n", ", decimal: comma", "1.5,2\n3.5,4\n", NULL },
    { "t, in s;u\n1,5;2\n", ", decimal: comma", "1.5,2\n", "which is taken for a header" },
    { "t,u\n\"1,5\",\"2\"\n3,\"4,25\"\n\"-,5\",\n", ", decimal: comma", "1.5,2\n3,4.25\n-0.5,nan\n", "which is taken for a header" },
    { "1,\"2,5\"\n\"3,5\",4\n", ", decimal: comma", "1,2.5\n3.5,4\n", NULL },
    { "\"1,5\";2\n\"3,5\";\"4\"\n", ", decimal: comma", "1.5,2\n3.5,4\n", NULL },
};

TEST_EACH(of_others, ways_of_others)
{
    pipe_text(io_dir, "a.csv", ways_of_others[_i].text);
    pipe_result r = io_go(format("buffers: {x: {dtype: f64, shape: [9, 2]}}\nstages:\n"
                               "  - {use: read, path: a.csv%s, out: x}\n  - {use: write, path: b.csv}\n",
                               ways_of_others[_i].options));
    const char *said = ways_of_others[_i].said;
    ck_assert_msg(r.outcome == GP_DONE, "%s", io_error(&r));
    holds("b.csv", ways_of_others[_i].want);
    ck_assert_msg(said ? r.errs.n == 1 && strstr(r.errs.e[0].msg, said) : !r.errs.n, "%s", io_error(&r));
}

/* What the first file has for a header is one in each: nothing of a later file is left out without a word. */
static const struct { const char *first, *second, *third, *want, *error; } of_globs[] = {
    { "a,b\n1,2\n", "a,b\n3,4\n", "5,6\n", "1,2\n3,4\n5,6\n", NULL },
    { "a,b\n1,2\n", " a,b\r\n3,4\n", ",\n", "1,2\n3,4\nnan,nan\n", NULL },
    { "a,b\n1,2\n", "NA,NA\n3,4\n", "5,6\n", "1,2\n5,6\n",
      "2.csv' begins with a line without a number, 'NA,NA', line 1, which is not the header of the first file: 'header: yes' leaves "
      "out the first line of each" },
    { "1,2\n", "# c\nNA,NA\n3,4\n", "a,b\n5,6\n", "1,2\n",
      "2.csv' begins with a line without a number, 'NA,NA', line 2, and the first file has no header: 'header: no' says that it "
      "is a row" },
    { "x\n", "a,b\n3,4\n", "a,b\n5,6\n", "3,4\n5,6\n",
      "1.csv' begins with a line without a number, 'x', line 1, which is not the header of the first file" },
};

TEST_EACH(header_of_many, of_globs)
{
    const char *const text[] = { of_globs[_i].first, of_globs[_i].second, of_globs[_i].third };
    for (int i = 0; i < 3; i++)
        pipe_text(io_dir, (char[]){ (char)('1' + i), '.', 'c', 's', 'v', 0 }, text[i]);
    pipe_result r = io_done(format("buffers: {x: {dtype: f64, shape: [9, 2]}}\non_error: drop\nstages:\n"
                               "  - {use: read, path: '?.csv', out: x}\n  - {use: write, path: b.csv_, format: csv}\n"));
    holds("b.csv_", of_globs[_i].want);
    bool said = !of_globs[_i].error;
    for (int i = 0; i < r.errs.n; i++)
        said = said || strstr(r.errs.e[i].msg, of_globs[_i].error);
    ck_assert_msg(said, "%s", io_error(&r));
}

TEST(one_column_with_commas)
{
    pipe_text(io_dir, "a.csv", "1,5\n2,25\n");
    ck_assert_uint_eq(io_runs(READ("f64", "[2]", ", decimal: comma")), 1);
    io_holds("a.raw", (const double[]){ 1.5, 2.25 }, 16);
    static const char *const no_text[] = { ", header: no", ", decimal: comma" };
    for (int i = 0; i < 2; i++) {
        pipe_text(io_dir, "a.jsonl", "1\n");
        io_fails(format("buffers: {x: {shape: [1]}}\nstages:\n  - {use: read, path: a.jsonl%s, out: x}\n" DISCARD,
                      no_text[i]), 3, "has no effect on a file that is not a .csv or .tsv");
    }
}

/* A missing number of a spreadsheet is no comment, and no header. */
TEST(missing)
{
    pipe_text(io_dir, "a.csv", "#N/A,#n/a\n1, #N/A\n# N/A\n#N/A\n2,3\n");
    io_fails(READ("f32", "[2]", ""), 1, "has 1 number in line 4, and 2 in its first row");
    pipe_text(io_dir, "a.csv", "#N/A,#n/a\n1, #N/A\n# N/A\n#NA\n2,3\n");
    ck_assert_uint_eq(io_runs(READ("f32", "[2]", "")), 3);
    OWNED float *a = pipe_read_all(io_dir, "a.raw", 24);
    ck_assert(isnan(a[0]) && isnan(a[1]) && a[2] == 1 && isnan(a[3]) && a[4] == 2 && a[5] == 3);
}

/* Many rows, of which each has its number: in blocks, by workers, repeated. */
TEST_LOOP(many, 0, 4)
{
    FILE *f;
    ck_assert_ptr_nonnull(f = fopen(io_at("a.csv"), "w"));
    fputs("i, square\n", f);
    for (int i = 0; i < 20000; i++)
        fprintf(f, i % 1000 == 7 ? "%d,%d\n# between\n\n" : "%d,%d\n", i, i * i);
    fclose(f);
    uint64_t frames = io_runs(format("buffers: {x: {dtype: i32, shape: [%d, 2]}}\nstages:\n"
        "  - {use: read, path: a.csv, workers: %d, out: x, loop: true, frames: %d}\n  - {use: write, path: a.raw}\n",
        _i % 2 ? 700 : 3001, 1 + _i / 2 * 3, _i % 2 ? 58 : 14));
    ck_assert_uint_eq(frames, _i % 2 ? 58 : 14);
    OWNED int32_t *x = pipe_read_all(io_dir, "a.raw", 40000 * 2 * sizeof *x);
    for (int i = 0; i < 40000; i++)
        ck_assert(x[2 * i] == i % 20000 && x[2 * i + 1] == (i % 20000) * (i % 20000));
}

/* A file that is longer than what `check` looks at; a glob of files, each a frame. */
/* By its name: numbers have tabs between them. */
TEST(tabs)
{
    io_runs("buffers: {x: {dtype: u8, shape: [2, 2]}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
            "  - {use: write, path: a.tsv}\n");
    io_holds("a.tsv", "0\t1\n2\t3\n", 8);
}

/* The first row may lie behind what is looked at beforehand. */
TEST(far_behind)
{
    enum { COMMENTS = 1 << 20 };
    char *text = malloc(COMMENTS + 100), *end = text;
    while (end - text < COMMENTS)
        end += sprintf(end, "# nothing\n");
    sprintf(end, "7,8\n9,10\n");
    pipe_text(io_dir, "a.csv", text);
    free(text);
    ck_assert_uint_eq(io_runs("buffers: {x: {dtype: u8, shape: [2, 2]}}\nstages:\n  - {use: read, path: a.csv, out: x}\n"
                              "  - {use: write, path: a.raw}\n"), 1);
    io_holds("a.raw", "\7\10\11\12", 4);
    io_fails("stages:\n  - {use: read, path: a.csv}\n" DISCARD, 3, "says what it holds behind its first MiB");
}

TEST(large)
{
    FILE *f;
    ck_assert_ptr_nonnull(f = fopen(io_at("a.csv"), "w"));
    for (int i = 0; i < 300000; i++)
        fprintf(f, "%d,%d\n", i, -i);
    fclose(f);
    ck_assert_uint_eq(io_runs(READ("i32", "[100000, 2]", ", workers: 3")), 3);
    size_t n;
    OWNED int32_t *x = (int32_t *)(void *)pipe_read(io_dir, "a.raw", &n);
    for (int i = 0; i < 300000; i++)
        ck_assert(x[2 * i] == i && x[2 * i + 1] == -i);
    io_fails("stages:\n  - {use: read, path: '?.csv'}\n" DISCARD, 3,
             "holds rows of f64 [2]: how many rows make a frame? declare the shape of the output under 'buffers:', for "
             "instance shape: [1000, 2]");
    io_fails("buffers: {x: {shape: [10, 3]}}\nstages:\n  - {use: read, path: a.csv, out: x}\n" DISCARD, 3,
             "holds rows of f64 [2], which cannot be cut into frames of f64 [10, 3]");
    ck_assert_uint_eq(io_runs("buffers: {x: {shape: ['<=400000', 2]}}\nstages:\n  - {use: read, path: '?.csv', out: "
                              "x}\n"
                              DISCARD), 1);
    pipe_text(io_dir, "b1.csv", "1,2\n3,4\n");
    pipe_text(io_dir, "b2.csv", "5,6\n7,8\n");
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: 'b?.csv'}\n  - {use: write, path: '%n-again.csv'}\n"), 2);
    holds("b2-again.csv", "5,6\n7,8\n");
}

/* ---- out, and back --------------------------------------------------- */

static const struct { const char *dtype; size_t size; } types[] = {
    { "u8", 1 }, { "i8", 1 }, { "u16", 2 }, { "i16", 2 }, { "u32", 4 }, { "i32", 4 }, { "u64", 8 }, { "i64", 8 },
    { "f32", 4 }, { "f64", 8 },
};
enum { TYPES = sizeof types / sizeof *types, ROWS = 400, COLUMNS = 5 };

/* Any bits: those of a NaN alone may differ. */
TEST_LOOP(there_and_back, 0, 2 * TYPES)
{
    const char *dtype = types[_i % TYPES].dtype, *as = _i < TYPES ? "csv" : "jsonl";
    size_t size = types[_i % TYPES].size, n = ROWS * COLUMNS;
    OWNED unsigned char *bits = malloc(n * size);
    unsigned seed = (unsigned)_i + 1;
    for (size_t i = 0; i < n * size; i++)
        bits[i] = (unsigned char)(rand_r(&seed) >> 8);
    if (*dtype == 'f')                 /* small, large, tenths, -0, the least */
        for (size_t i = 0; i < 200; i++) {
            double d = i < 100 ? (double)i / 10 : i == 100 ? -0.0 : i == 101 ? 5e-324 : i == 102 ? INFINITY : i == 103
                ? 1.7976931348623157e308
                     : pow(10, (double)i - 150) * (i % 2 ? 1 : -1);
            float f = i == 101 ? 1e-45f : (float)d;
            memcpy(bits + i * size, size == 4 ? (void *)&f : (void *)&d, size);
        }
    pipe_file(io_dir, "in.raw", bits, n * size);
    io_runs(format("buffers: {x: {dtype: %s, shape: [30, %d]}}\nstages:\n  - {use: read, path: in.raw, out: x}\n"
                 "  - {use: write, path: a.%s, in: x}\n", dtype, COLUMNS, as));
    ck_assert_uint_eq(io_runs(format("buffers: {x: {dtype: %s, shape: [90, %d]}}\nstages:\n"
                                   "  - {use: read, path: a.%s, out: x}\n  - {use: write, path: out.raw}\n", dtype,
                                       COLUMNS, as)), 5);
    OWNED unsigned char *back = pipe_read_all(io_dir, "out.raw", n * size);
    for (size_t i = 0; i < n; i++) {
        float a, b;
        double c, d;
        memcpy(&a, bits + i * size, 4 < size ? 4 : size), memcpy(&b, back + i * size, 4 < size ? 4 : size);
        memcpy(&c, bits + i * size, size), memcpy(&d, back + i * size, size);
        bool nan = *dtype == 'f' && (size == 4 ? isnan(a) && isnan(b) : isnan(c) && isnan(d));
        ck_assert_msg(nan || !memcmp(bits + i * size, back + i * size, size), "element %zu of %s in %s", i, dtype, as);
    }
}

/* The shortest text of a number; a row a line; one column: a number a line. */
TEST(spelling)
{
    static const float f[] = { 0.1f, 1.0f, -0.0f, 16777216, 1e-7f, 3.14159274f, INFINITY, -INFINITY };
    pipe_file(io_dir, "f.raw", f, sizeof f);
    io_runs("buffers: {x: {dtype: f32, shape: [2, 2]}}\nstages:\n  - {use: read, path: f.raw, out: x}\n"
            "  - {use: write, path: a.csv, in: x}\n  - {name: w, use: write, path: a.jsonl, in: x}\n"
            "  - {name: v, use: write, path: 'b%d.csv', in: x}\n");
    holds("a.csv", "0.1,1\n-0,16777216\n1e-07,3.1415927\ninf,-inf\n");
    holds("a.jsonl", "[0.1, 1]\n[-0, 16777216]\n[1e-07, 3.1415927]\n[Infinity, -Infinity]\n");
    holds("b1.csv", "1e-07,3.1415927\ninf,-inf\n");
    io_runs("buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n  - {use: read, path: f.raw, out: x}\n"
            "  - {use: write, path: a.csv, in: x}\n  - {name: w, use: write, path: a.jsonl, stack: true, in: x}\n");
    holds("a.csv", "0.1\n1\n-0\n16777216\n1e-07\n3.1415927\ninf\n-inf\n");
    holds("a.jsonl", "[0.1, 1, -0, 16777216]\n[1e-07, 3.1415927, Infinity, -Infinity]\n");
}

/* ---- tables ----------------------------------------------------------- */

/* x is f32 [2] (0, 1; 2, 3; ...), v f32 [2, 2], n u64 [1] around 2^53, z f32 [1]: NaN and infinities. */
#define TABLE(write) "depth: 4\nbuffers: {x: {dtype: f32, shape: [2]}, v: {dtype: f32, shape: [2, 2]}}\nstages:\n" \
    "  - {use: generate, frames: 3, out: x}\n  - {use: generate, frames: 3, out: v, name: g}\n" \
    "  - {use: reduce, op: sum, in: x, out: s}\n" \
    "  - {use: expr, in: s, expr: '9007199254740993 + frame.index', out: n}\n" \
    "  - {use: expr, in: s, expr: '(frame.index - 1.0) / (0.0 * in)', out: z}\n  - {use: discard, in: v}\n" \
    "  - {use: discard, in: n, name: d}\n  - {use: discard, in: z, name: e}\n  - {name: w, use: write, " write "}\n"

static const struct { const char *write, *want; } tables[] = {
    { "in: x, path: t.csv, columns: [a]", "a\n0\n1\n2\n3\n4\n5\n" },
    { "in: x, path: t.csv, stack: true, columns: [a, 'b [px]']", "a,b [px]\n0,1\n2,3\n4,5\n" },
    { "in: x, path: t.csv, stack: true, live: true, columns: [a, b]", "a,b\n0,1\n2,3\n4,5\n" },
    { "in: x, path: t.csv, stack: true, columns: [a, frame.index, b]", "a,frame.index,b\n0,0,1\n2,1,3\n4,2,5\n" },
    { "in: x, path: t.csv, stack: true, columns: [a, b, frame.name, frame.file]",
      "a,b,frame.name,frame.file\n0,1,,\n2,3,,\n4,5,,\n" },
    { "in: v, path: t.tsv, columns: [frame.index, a, b]",
      "frame.index\ta\tb\n0\t0\t1\n0\t2\t3\n1\t4\t5\n1\t6\t7\n2\t8\t9\n2\t10\t11\n" },
    { "in: [v, x], path: t.csv, columns: [a, b, c]", "a,b,c\n0,1,0\n2,3,1\n4,5,2\n6,7,3\n8,9,4\n10,11,5\n" },
    { "in: [x, n, z], path: t.csv, stack: true, columns: [a, b, n, z]",
      "a,b,n,z\n0,1,9007199254740993,-inf\n2,3,9007199254740994,nan\n4,5,9007199254740995,inf\n" },
    { "in: {in: n, more: z}, path: t.csv, columns: [n, frame.index, z]",
      "n,frame.index,z\n9007199254740993,0,-inf\n9007199254740994,1,nan\n9007199254740995,2,inf\n" },
    { "in: x, path: t.csv, stack: true, columns: ['a, b', ' \"c\" ']", "\"a, b\",\" \"\"c\"\" \"\n0,1\n2,3\n4,5\n" },
    { "in: x, path: t.csv, stack: true, columns: ['#a', \"b\\nc\"]", "\"#a\",\"b\nc\"\n0,1\n2,3\n4,5\n" },
    { "in: x, path: t.csv, stack: true, columns: [\"${x}\", 2]", "7,2\n0,1\n2,3\n4,5\n" },
    { "in: x, path: 't.csv%d', format: csv, columns: [a]", "a\n0\n1\n" },
    { "in: x, path: 't.csv%d', format: csv, stack: true, rotate_frames: 1, columns: [a, b]", "a,b\n0,1\n" },
    { "in: x, path: 't.csv%d', format: csv, stack: true, rotate_size: 12, columns: [a, b]", "a,b\n0,1\n2,3\n" },
    { "in: x, command: [sh, -c, 'cat >t.csv'], format: csv, stack: true, columns: [a, b]", "a,b\n0,1\n2,3\n4,5\n" },
};

TEST_EACH(table, tables)
{
    io_runs(format("vars: {x: 7}\n" TABLE("%s"), tables[_i].write));
    const char *name = strstr(tables[_i].write, "%d") ? "t.csv0" : strstr(tables[_i].write, ".tsv") ? "t.tsv" : "t.csv";
    holds(name, tables[_i].want);
}

/* Names of files, past those that cannot be read, across a segment; without frames there is the header. */
static const struct { const char *read, *want; } of_files[] = {
    { "path: 'in/*.pgm', workers: 2", "\"a\nb.tar.pgm\",0,7,\"a\nb.tar\"\n\"a\"\"b.pgm\",1,7,\"a\"\"b\"\nplain.pgm,3,7,plain\n" },
    { "path: 'in/*,?.pgm'", "" },
};

TEST_EACH(table_of_files, of_files)
{
    static const char *const names[] = { "a\nb.tar.pgm", "a\"b.pgm", "a,b.pgm", "plain.pgm" };
    mkdir(io_at("in"), 0777);
    for (int i = 0; i < 4; i++)
        pipe_text(io_dir, format("in/%s", names[i]), i == 2 ? "P5 1 1 255\n" : "P5 1 1 255\n\7");
    io_done(format("on_error: drop\nbuffers: {p: {dtype: u8, shape: [1, 1]}}\nstages:\n  - {use: read, %s, out: p}\n"
                   "  - {use: reduce, op: max, in: p, out: m}\n"
                   "  - {use: write, path: t.csv, columns: [frame.file, frame.index, m, frame.name]}\n", of_files[_i].read));
    holds("t.csv", format("frame.file,frame.index,m,frame.name\n%s", of_files[_i].want));
}

/* Rows of a group that are frames again have no name but that of a buffer from before it, whatever the group left out; a
 * group of one frame has its name. */
TEST_LOOP(table_of_a_group, 0, 3)
{
    static const char *const want[] = {
        "s\n0,,1\n1,,2\n3,,4\n4,,5\n5,,6\n",
        "m,s\n0,0.pgm,97,1\n1,1.pgm,98,2\n3,3.pgm,100,4\n4,4.pgm,101,5\n5,5.pgm,102,6\n",
        "s\n0,0.pgm,1\n1,1.pgm,2\n3,3.pgm,4\n4,4.pgm,5\n5,5.pgm,6\n",
    };
    mkdir(io_at("in"), 0777);
    for (int i = 0; i < 6; i++)
        pipe_text(io_dir, format("in/%d.pgm", i), i == 2 ? "P5 1 1 255\n" : format("P5 1 1 255\n%c", 'a' + i));
    io_done(format("on_error: drop\ndepth: 9\nbuffers: {p: {dtype: u8, shape: [1, 1]}}\nstages:\n"
                   "  - {use: read, path: 'in/*.pgm', out: p}\n  - {use: reduce, op: max, in: p, out: m}\n"
                   "  - {use: group, frames: %d, in: m, out: g}\n  - {use: expr, in: g, expr: in - 96, out: h}\n"
                   "  - {use: split, in: h, out: s}\n"
                   "  - {use: write, in: [%s], path: t.csv, columns: [frame.index, frame.file, %s]}\n",
                   _i == 2 ? 1 : 4, _i == 1 ? "m, s" : "s", _i == 1 ? "m, s" : "s"));
    holds("t.csv", format("frame.index,frame.file,%s", want[_i]));
}

/* The first buffer of `in` says which file, wherever it was made. */
TEST_LOOP(table_of_two_sources, 0, 2)
{
    static const char *const in[] = { "p, q", "q, p" }, *const file[] = { "a.raw", "b.raw" };
    for (int i = 0; i < 2; i++)
        pipe_text(io_dir, file[i], "7");
    io_runs(format("buffers: {p: {dtype: u8, shape: [1]}, q: {dtype: u8, shape: [1]}}\nstages:\n"
                   "  - {use: read, path: a.raw, out: p}\n  - {use: read, path: b.raw, out: q}\n"
                   "  - {use: write, in: [%s], path: t.csv, columns: [frame.file, one, two]}\n", in[_i]));
    holds("t.csv", format("frame.file,one,two\n%s,55,55\n", file[_i]));
}

/* The time, and numbers of metadata, of which a frame may have none. */
TEST(table_of_metadata)
{
    pipe_text(io_dir, "some.lua", "function produce(frame, y)\n  if frame.index == 2 then return false end\n  y:fill(0.1)\n"
              "  frame.time = 1e9 + frame.index / 4\n  if frame.index == 1 then frame.meta.gain = 0.1 end\nend\n");
    io_runs("metadata: [gain]\nbuffers: {x: {dtype: f32, shape: [1]}}\nstages:\n  - {use: lua, script: some.lua, in: [], out: x}\n"
            "  - {use: expr, expr: in}\n  - {use: write, path: t.csv, columns: [frame.time, x, frame.meta.gain]}\n");
    holds("t.csv", "frame.time,x,frame.meta.gain\n2001-09-09T01:46:40.000000000Z,0.1,\n2001-09-09T01:46:40.250000000Z,0.1,0.1\n");
}

/* Rows of two buffers that do not go together in a frame are an error of that frame; those before it stay. */
TEST_LOOP(table_of_parts, 0, 2)
{
    pipe_text(io_dir, "part.lua", "stateless = true\nfunction process(f, x, y)\n  y:copy(x)\n  if f.index == 2 then f.valid = 1 end\nend\n");
    io_fails(format("buffers: {x: {dtype: u8, shape: [2]}, y: {dtype: u8, shape: [2]}}\nstages:\n"
                    "  - {use: generate, frames: 4, out: x}\n  - {use: lua, script: part.lua, out: y}\n"
                    "  - {use: write, in: [x, y], path: t.csv, live: true, %s}\n", _i ? "columns: [a, b]"
                    : "stack: true, columns: [a, b, c, d]"), 1, _i ? "t.csv' cannot be written: a row is one of each buffer, and of the first the frame has 2 rows, of another 1" : "cannot stack a frame of 1 row on frames of 2");
    holds("t.csv", _i ? "a,b\n0,0\n1,1\n2,2\n3,3\n" : "a,b,c,d\n0,1,0,1\n2,3,2,3\n");
}

static const struct { const char *write, *said; } no_tables[] = {
    { "in: x, path: t.npy, columns: [a, b]", "'columns' has no effect on a file that is not a .csv or .tsv" },
    { "in: x, path: t.jsonl, columns: [a, b]", "'columns' has no effect on a file that is not a .csv or .tsv" },
    { "in: [x, n], path: t.npy", "t.npy' takes one buffer: several are in a table, which is a .csv or .tsv with 'columns'" },
    { "in: [x, n], path: t.csv", "t.csv' takes one buffer" },
    { "in: x, path: t.csv, columns: [a, b]", "2 names of numbers, and a row has 1 number: 'stack: true' makes one row" },
    { "in: x, path: t.csv, stack: true, columns: [a]", "1 name of a number, and a row has 2 numbers" },
    { "in: x, path: t.csv, stack: true, columns: [frame.index]", "0 names of numbers, and a row has 2 numbers" },
    { "in: [x, n], path: t.csv, stack: true, columns: [a, b]", "2 names of numbers, and a row has 3 numbers" },
    { "in: [x, n], path: t.csv, columns: [a, b]", "'in' has 2 rows, 'n' 1: 'stack: true' makes one row of each frame" },
    { "in: v, path: t.csv, stack: true, columns: [a, b, c, d]", "text has frames of shape [rows] or [rows, columns]" },
    { "in: x, path: t.csv, columns: []", "a table has a name for each number of a row" },
    { "in: x, path: t.csv, stack: true, columns: [a, a]", "two columns are called 'a'" },
    { "in: x, path: t.csv, stack: true, columns: [a, '']", "a column needs a name" },
    { "in: x, path: t.csv, stack: true, columns: [a, b, frame.number]", "a frame has no 'frame.number': frame.index, frame.time" },
    { "in: x, path: t.csv, stack: true, columns: [a, b, frame.meta.gain]", "'frame.meta.gain': say 'metadata: [...]' with it" },
    { "in: x, path: t.csv, stack: true, columns: [a, b, frame.meta.time]", "the time of a frame is 'frame.time'" },
};

TEST_EACH(no_table, no_tables)
{
    io_fails(format(TABLE("%s"), no_tables[_i].write), 3, no_tables[_i].said);
}

/* What is live can be read at any time; what failed keeps its rows. */
TEST_LOOP(live_and_partial, 0, 2)
{
    pipe_text(io_dir, "fail.lua", "function process(f, x, y)\n  if f.index == 3 then error('as it should') end\n"
              "  y:copy(x)\nend\n");
    io_fails(format("buffers: {x: {dtype: u8, shape: [2]}}\nstages:\n  - {use: generate, frames: 5, out: x}\n"
                  "  - {use: lua, script: fail.lua}\n  - {use: write, path: a.csv, stack: true%s}\n", _i
                      ? ", live: true" : ""),
             1, "as it should");
    size_t n;
    OWNED char *text = pipe_read(io_dir, _i ? "a.csv" : "a.csv.partial", &n);
    int count = 0;
    for (const char *p = text; *p; p++)
        count += *p == '\n';
    ck_assert_int_eq(count, 3);
}

/* ---- broken, refused ------------------------------------------------- */

static const struct { const char *type, *text; int code; const char *said; } broken[] = {
    { "dtype: f32, shape: [2, 2]", "", 3, "a.csv' has no rows of numbers" },
    { "dtype: f32, shape: [2, 2]", "a,b\n", 3, "has no rows of numbers" },
    { "dtype: f32, shape: [2, 2]", "a,b\nc,d\n1,2\n", 3, "has no numbers in line 2" },
    { "dtype: f32, shape: [2, 2]", "1,2\n3,4\n5\n", 1, "frame 1: '" },
    { "dtype: f32, shape: [2, 2]", "1,2\n3,4\n5\n", 1, "a.csv' has 1 number in line 3, and 2 in its first row" },
    { "dtype: f32, shape: [2, 2]", "# x\n1,2\n3,4,5\n", 1, "has 3 numbers in line 3, and 2 in its first row" },
    { "dtype: i32, shape: [2, 2]", "1,2\n3,\n", 1, "has a place without a number in line 2" },
    { "dtype: f32, shape: [2, 2]", "1,2\n3,four\n", 1, "has 'four' in line 2, column 2, where a number is due" },
    { "dtype: f32, shape: [2, 2]", "1,2\n3,0x4\n", 1, "has '0x4' in line 2, column 2, where a number is due" },
    { "dtype: f32, shape: [2, 2]", "1,2\n3,4 4\n", 1, "has '4 4' in line 2, column 2, where a number is due" },
    { "dtype: f32, shape: [2, 2]", "1;2\n3;4,5\n", 1,
      "has '4,5' in line 2, column 2, where a number is due: 'decimal: comma' reads such numbers" },
    { "dtype: i32, shape: [2, 2]", "1,2\n,3\n", 1,
      "has a place without a number in line 2, column 1: it would be NaN, which i32 cannot hold, and f32 and f64 can" },
    { "dtype: f32, shape: [2, 2]", "\"1,5\",\"2\"\n\"3,5\",4\n", 1,
      "has '1,5' in line 1, column 1, where a number is due: 'decimal: comma' reads such numbers" },
    { "dtype: f32, shape: [2, 2]", "1,2\n3,\"4\n", 1, "has '\"4' in line 2, column 2, where a number is due" },
    { "dtype: f32, shape: [2, 2]", "1,2\n3,\"4\" 5\n", 1, "has '\"4\" 5' in line 2, column 2, where a number is due" },
    { "dtype: f32, shape: [2, 2]", "1,2\n3,\"4\"\"\"\n", 1, "in line 2, column 2, where a number is due" },
    { "dtype: f32, shape: [2, 2]", "1,2\n3,4\x01\n", 1, "in line 2, column 2, where a number is due" },
    { "dtype: f32, shape: [2, 2]", "1,2\n3,1e39\n", 1, "has '1e39' in line 2, column 2, which f32 cannot hold" },
    { "dtype: f64, shape: [2, 2]", "1,2\n3,1e309\n", 1, "has '1e309' in line 2, column 2, which f64 cannot hold" },
    { "dtype: u8, shape: [2, 2]", "1,2\n3,256\n", 1, "has '256' in line 2, column 2, which u8 cannot hold" },
    { "dtype: u8, shape: [2, 2]", "1,2\n3,-1\n", 1, "has '-1' in line 2, column 2, which u8 cannot hold" },
    { "dtype: i8, shape: [2, 2]", "1,-128\n3,-129\n", 1, "has '-129' in line 2, column 2, which i8 cannot hold" },
    { "dtype: i8, shape: [2, 2]", "1,127\n3,128\n", 1, "has '128' in line 2, column 2, which i8 cannot hold" },
    { "dtype: u64, shape: [2, 2]", "1,18446744073709551615\n3,18446744073709551616\n", 1,
      "in line 2, column 2, which u64 cannot hold" },
    { "dtype: i64, shape: [2, 2]", "1,-9223372036854775808\n3,9223372036854775808\n", 1,
      "in line 2, column 2, which i64 cannot hold" },
    { "dtype: i32, shape: [2, 2]", "1,2\n3,4.0\n", 1, "has '4.0' in line 2, column 2, where a whole number is due" },
    { "dtype: i32, shape: [2, 2]", "1,2\n#N/A,4\n", 1, "has '#N/A' in line 2, column 1, where a whole number is due" },
    { "dtype: f32, shape: [2, 2]", "1,2\n#DIV/0!,4\n", 1, "has '#DIV/0!' in line 2, column 1, where a number is due" },
    { "dtype: f32, shape: [2]", "#REF!\n1\n", 1, "has '#REF!' in line 1, column 1, where a number is due" },
    { "dtype: i32, shape: [2, 2]", "1,2\n3,x\n", 1, "has 'x' in line 2, column 2, where a number is due" },
    { "dtype: i32, shape: [2, 2]", "1\t2\n3\t\n", 1, "has a place without a number in line 2" },
    { "dtype: i32, shape: [2, 2]", "1\t2\n\t3\n", 1, "has a place without a number in line 2" },
    { "dtype: i32, shape: [2, 2]", "1\t2\n\t\n", 1, "has a place without a number in line 2" },
    { "dtype: f16, shape: [2, 2]", "1,2\n", 3, "is text, which is read as any type but f16 and c64" },
    { "dtype: f32, shape: [2, 3]", "1,2\n", 3, "holds f32 [1, 2], which cannot be cut into frames of f32 [2, 3]" },
    { "dtype: f32, shape: [2, 2]", "1,2\n3,123456789012345678901234567890123456789012345678901234567890x\n", 1,
      "has '1234567890123456789012345678901234567890...' in line 2" },
};

TEST_EACH(not_read, broken)
{
    pipe_text(io_dir, "a.csv", broken[_i].text);
    io_fails(format("buffers: {x: {%s}}\nstages:\n  - {use: read, path: a.csv, out: x}\n" DISCARD, broken[_i].type),
             broken[_i].code, broken[_i].said);
}

static const struct { const char *text, *said; } broken_json[] = {
    { "[1, 2]\n[3, 4\n", "has no closing ']' in line 2" },
    { "[1, 2]\n[3, [4]]\n", "has '[4]' in line 2, column 2, where a number is due" },
    { "[1, 2]\n[]\n", "has a place without a number in line 2" },
    { "[1, 2]\n{\"a\": 1}\n", "in line 2, column 1, where a number is due" },
    { "[1, 2]\n# 3\n", "has '# 3' in line 2, column 1, where a number is due" },
    { "[1, 2]\n[3, null]\n", "has 'null' in line 2, column 2, where a number is due" },
};

TEST_EACH(not_json, broken_json)
{
    pipe_text(io_dir, "a.jsonl", broken_json[_i].text);
    io_fails("buffers: {x: {shape: [2, 2]}}\nstages:\n  - {use: read, path: a.jsonl, out: x}\n" DISCARD, 1,
             broken_json[_i].said);
}

/* A line that is wrong costs the frames that need it, and no other. */
TEST(one_frame)
{
    pipe_text(io_dir, "a.csv", "1\n2\n3\nfour\n5\n6\n7\n");
    pipe_result r = io_done("buffers: {x: {dtype: u8, shape: [2]}}\non_error: drop\nstages:\n"
                          "  - {use: read, path: a.csv, workers: 3, out: x}\n  - {use: write, path: a.raw}\n");
    ck_assert_uint_eq(r.account[0].in, 4);
    io_holds("a.raw", "\1\2\5\6\7", 5);
}

static const struct { const char *type, *write, *said; } refused[] = {
    { "dtype: c64, shape: [2]", "path: a.csv", "text holds no f16 and no c64" },
    { "dtype: f16, shape: [2]", "path: a.jsonl", "text holds no f16 and no c64" },
    { "dtype: f32, shape: [2, 2, 2]", "path: a.csv", "text has frames of shape [rows] or [rows, columns]" },
    { "dtype: f32, shape: [2, 2]", "path: a.csv, stack: true", "text has frames of shape [rows] or [rows, columns]" },
    { "dtype: f32, shape: [2]", "path: 'a%d.csv', stack: true", "'stack' joins frames in one .npy, .npz, Zarr or text file" },
    { "dtype: f32, shape: [2]", "path: a.csv, sample_rate: 8000", "'sample_rate' has no effect" },
};

TEST_EACH(not_written, refused)
{
    io_fails(format("buffers: {x: {%s}}\nstages:\n  - {use: generate, frames: 1, out: x}\n  - {use: write, %s}\n",
                  refused[_i].type, refused[_i].write), 3, refused[_i].said);
}

TEST_SUITE(text, io_set_up, NULL, 0)
