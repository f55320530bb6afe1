/* test_npz.c - members of .npz archives that NumPy made (tests/data/make_npz.py), stored and compressed, in pieces, by
 * any number of workers; broken ones; archives that are written. */
#include "iotest.h"
#include "rows_file.h"

#define DISCARD "  - {use: discard}\n"

/* As NAME.npy is read, declared or not. */
static const struct { const char *member, *shape; uint64_t frames; } reads[] = {
    { "u", NULL, 7 },       { "u", "[2, 3, 5]", 4 },    { "u.npy", "[7, 3, 5]", 1 }, { "line", "[300]", 4 },
    { "c", "[4, 2]", 3 },   { "c", NULL, 11 },
};
enum { READS = sizeof reads / sizeof *reads };

TEST_LOOP(is_read, 0, READS * 4)
{
    char y[1300], declared[80] = "";
    int i = _i / 4;
    const char *archive = _i % 2 ? "packed" : "stored";
    if (reads[i].shape)
        TEXT(declared, "buffers: {x: {shape: %s}}\n", reads[i].shape);
    ck_assert_uint_eq(io_runs(TEXT(y, "%sstages:\n"
        "  - {use: read, path: '%s/tests/data/npz/%s.npz', member: %s, workers: %d, out: x}\n"
        "  - {use: compare, file: '%s/tests/data/npz/%.*s.npy', in: x}\n", declared, io_here, archive, reads[i].member,
        _i % 4 < 2 ? 1 : 3, io_here, (int)strcspn(reads[i].member, "."), reads[i].member)), reads[i].frames);
}

/* Of several that are called the same NumPy reads the last; the very name counts before that with .npy. */
TEST_LOOP(twice, 0, 3)
{
    static const struct { const char *member, *array; } of[] = { { "u", "line" }, { "v", "u" }, { "v.npy", "line" } };
    ck_assert_uint_ge(io_runs(format("stages:\n  - {use: read, path: '%s/tests/data/npz/twice.npz', member: %s, out: x}\n"
        "  - {use: compare, file: '%s/tests/data/npz/%s.npy', in: x}\nbuffers: {x: {shape: %s}}\n", io_here, of[_i].member, io_here,
        of[_i].array, strcmp(of[_i].array, "u") ? "[100]" : "[7, 3, 5]")), 1);
}

/* More than is unpacked at once; repeated; the only member needs no name. */
TEST_LOOP(a_long_one, 0, 2)
{
    ck_assert_uint_eq(io_runs(format("buffers: {x: {shape: [7000, 2]}}\nstages:\n"
        "  - {use: read, path: '%s/tests/data/npz/long.npz', workers: %d, loop: true, frames: 14, out: x}\n"
        "  - {use: write, path: a.raw}\n", io_here, 1 + _i * 3)), 14);
    OWNED int32_t *x = pipe_read_all(io_dir, "a.raw", 2 * 90000 * sizeof *x);
    for (int i = 0; i < 180000; i++)
        ck_each(x[i] == i % 90000 / 7 * 3, "element %d is %d", i, x[i]);
}

/* Each archive of a glob is a frame. */
TEST(a_file_a_frame)
{
    io_link("npz/stored.npz", "a.npz");
    io_link("npz/packed.npz", "b.npz");
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: '?.npz', member: u, workers: 2}\n"
                              "  - {use: write, path: '%n.npy'}\n"), 2);
    ck_assert_uint_eq(io_runs(format("buffers: {x: {shape: ['<=9', 3, 5]}}\nstages:\n"
                                   "  - {use: read, path: '?.npz', member: u, out: x}\n  - {use: write, path: "
                                   "'%%n2.npy'}\n")), 2);
    OWNED char *u = pipe_read("tests/data/npz", "u.npy", &(size_t){ 0 });
    for (int i = 0; i < 4; i++) {
        OWNED char *got = pipe_read_all(io_dir, i == 0 ? "a.npy" : i == 1 ? "b.npy" : i == 2 ? "a2.npy" : "b2.npy",
                                        128 + 105);
        ck_assert(!memcmp(got + 128, u + 128, 105));
    }
}

/* An archive whose list of members is behind its first MiB. */
TEST(large)
{
    enum { MORE = 2 << 20 };
    size_t n;
    OWNED char *npz = pipe_read("tests/data/npz", "packed.npz", &n), *grown = calloc(1, MORE + n);
    memcpy(grown, npz, n);
    /* What is between the last member and the list is nobody's: the list moves, and its place with it. */
    size_t end = n - 22;
    uint32_t list;
    memcpy(&list, npz + end + 16, 4);
    memcpy(grown + list + MORE, npz + list, n - list);
    list += MORE;
    memcpy(grown + end + MORE + 16, &list, 4);
    pipe_file(io_dir, "a.npz", grown, MORE + n);
    ck_assert_uint_eq(io_runs(format("buffers: {x: {dtype: f32, shape: [300]}}\nstages:\n"
                                   "  - {use: read, path: a.npz, member: line, out: x}\n"
                                   "  - {use: compare, file: '%s/tests/data/npz/line.npy'}\n", io_here)), 4);
    io_fails("buffers: {x: {dtype: f32, shape: [300]}}\nstages:\n  - {use: read, path: a.npz, member: u, out: "
             "x}\n" DISCARD, 3,
             "holds u8, and 'buffers' declares f32");
    io_fails("stages:\n  - {use: read, path: a.npz, member: line}\n" DISCARD, 3,
             "holds f32 [1000]: how many elements make a frame?");
    ck_assert_uint_eq(io_runs("buffers: {x: {shape: ['<=2000']}}\nstages:\n  - {use: read, path: a.npz, member: line, out: "
                              "x}\n" DISCARD), 1);
    ck_assert_uint_eq(io_runs("buffers: {x: {dtype: f32, shape: ['<=2000']}}\nstages:\n"
                              "  - {use: read, path: a.npz, member: line, out: x}\n" DISCARD), 1);
}

/* ---- refused, broken -------------------------------------------------- */

static const struct { const char *type, *read, *said; } refused[] = {
    { "", "stored.npz', member: v", "stored.npz' has no member 'v'; it has 'u', 'line', 'c'" },
    { "", "stored.npz'", "stored.npz' has 3 members: set 'member' to one of 'u', 'line', 'c'" },
    { "", "stored.npz', member: line", "how many elements make a frame" },
    { "dtype: f64, shape: [10]", "packed.npz', member: line", "holds f32, and 'buffers' declares f64" },
    { "shape: [10]", "packed.npz', member: u", "holds u8 [7, 3, 5], which cannot be cut into frames of u8 [10]" },
    { "", "strange.npz'", "is compressed by method 12" },
    { "", "none.npz'", "has no members" },
    { "", "u.npy', format: npz", "is not a .npz file" },
    { "", "u.npy', member: u", "'member' has no effect on a file that is not a .npz" },
    { "", "stored.npz', member: u, tail: ignore", "'tail' is only for raw and .npy" },
};

TEST_EACH(refuses, refused)
{
    io_fails(format("buffers: {x: {%s}}\nstages:\n  - {use: read, path: '%s/tests/data/npz/%s, out: x}\n" DISCARD,
                  *refused[_i].type ? refused[_i].type : "depth: 3", io_here, refused[_i].read), 3, refused[_i].said);
}

TEST(not_written)
{
    static const struct { const char *metadata, *options, *said; } cases[] = {
        { "[]", "path: a.npz, compression: 3", "'compression' has no effect on a file that is not a PNG, TIFF or Zarr" },
        { "[]", "path: '%d.npz', stack: true", "'stack' joins frames in one .npy, .npz, Zarr or text file" },
        { "[]", "path: a.npy, member: u", "'member' has no effect on a file that is not a .npz" },
        { "[]", "path: a.npz, member: 'a/b'", "'a/b' cannot name an array: a name has 1 to 200 bytes and no '/'" },
        { "[]", "path: a.npz, member: ''", "'' cannot name an array" },
        { "[u]", "path: a.npz, member: u", "'u' is a number that 'metadata' lists, which is in the file, too" },
        { "[]", "path: a.npz, live: true", "'live' has no effect on a .npz, whose list of arrays is at its end" },
        { "[]", "path: stdout, format: npz", "only raw data, npy, text and y4m can be written to stdout" },
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        io_fails(format("metadata: %s\nbuffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
                      "  - {use: generate, frames: 1, out: x}\n  - {use: write, %s}\n", cases[i].metadata, cases[i].options), 3,
                 cases[i].said);
}

/* ---- written ---------------------------------------------------------- */

/* One file for all, stacked or not, and one a frame, of each type: what is read is what was written. */
TEST_LOOP(is_written, 0, 12)
{
    static const char *const types[] = { "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "c64" };
    char *raw;
    const char *type = types[_i];
    size_t n;
    io_count_raw("in.raw", 5 * 21 * 16);
#define TYPED(shape) "buffers: {x: {dtype: %s, shape: " shape "}}\nstages:\n"
    uint64_t frames = io_runs(format(TYPED("[3, 7]") "  - {use: read, path: in.raw, out: x}\n"
                 "  - {use: write, path: all.npz}\n  - {use: write, path: stack.npz, stack: true, member: my frames, in: x}\n"
                 "  - {use: write, path: '%%03d.npz', workers: 3, in: x}\n", type));
    io_runs(format(TYPED("[3, 7]") "  - {use: read, path: all.npz, out: x}\n  - {use: write, path: all.raw}\n", type));
    io_runs("stages:\n  - {use: read, path: stack.npz}\n  - {use: write, path: stack.raw}\n");
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: '*.npz', member: arr_0, frames: 2}\n  - {use: discard}\n"), 2);
    ck_assert_uint_eq(io_runs(format(TYPED("[3, 7]") "  - {use: read, path: '%%03d.npz', out: x}\n"
                                   "  - {use: write, path: each.raw}\n", type)), frames);
    raw = pipe_read(io_dir, "in.raw", &n);
    io_holds("all.raw", raw, n), io_holds("stack.raw", raw, n), io_holds("each.raw", raw, n);
    free(raw);
}

/* Sizes and places that have no room in 32 bits, here in few: all that is there is read again. */
TEST_LOOP(wide, 0, 20)
{
    char why[GP_WHY] = "", as[] = "a.npz";
    static const char *const keys[] = { "gain", "time" };
    float rows[5][6];
    gp_type t = { GP_F32, 2, { 1, 6 } };
    for (int i = 0; i < 30; i++)
        rows[i / 6][i % 6] = (float)i;
    FILE *f = fopen(io_at(as), "w+b");
    gp_rowsfile_how how = { .format = gp_filetype_of(as), .alone = _i % 2, .narrow = 1 + 60 * _i, .key = keys, .nkeys = 2,
                            .member = "u" };
    gp_rows_out *o = gp_npz.create(fileno(f), &how, &t, as, why);
    ck_assert_msg(o != NULL, "%s", why);
    for (int i = 0; i < 5; i += 1 + 4 * how.alone) {
        o->said = &(gp_filemeta){ .n = 2, .key = keys, .has = i == 3 ? 2 : 3, .value = { 0.5 + i },
                                .time_ns = 1000000000 + i };
        ck_assert_msg(gp_npz.append(o, rows[i], how.alone ? 5 : 1, why), "%s", why);
    }
    ck_assert_msg(gp_npz.finish(o, why), "%s", why);
    gp_rows *in = gp_rowsfile_open(&how, how.format, fileno(f), &(gp_type){ 0 }, why);
    ck_assert_msg(in != NULL, "%s", why);
    float got[5][6];
    gp_rows_own own = { 0 };
    ck_assert_int_eq(in->whole.dim[0], 5);
    ck_assert(gp_rowsfile_read(in, &own, 0, 5, got, why) && !memcmp(got, rows, sizeof got));
    for (int i = 0; i < 5; i++) {
        gp_filemeta said = { .n = 2, .key = keys };
        ck_assert_msg(gp_rowsfile_metadata(in, &own, i, &said, why), "%s", why);
        ck_assert_uint_eq(said.has, !how.alone && i == 3 ? 2 : 3);
        ck_assert(said.has == 2 || said.value[0] == (how.alone ? 0.5 : 0.5 + i));
        ck_assert_int_ge(said.time_ns, 1000000000);
        ck_assert_int_le(said.time_ns, 1000000300);    /* an f64 */
    }
    gp_rowsfile_leave(&own), gp_rowsfile_close(in);
    fclose(f);
}

/* What a run that failed keeps is an archive of the frames before. */
TEST(a_part)
{
    pipe_text(io_dir, "fail.lua", "function process(f, x, y)\n  if f.index == 3 then error('as it should') end\n"
              "  y:copy(x)\nend\n");
    io_count_raw("in.raw", 500);
    io_fails("buffers: {x: {dtype: u8, shape: [10, 5]}}\nstages:\n  - {use: read, path: in.raw, out: x}\n"
             "  - {use: lua, script: fail.lua}\n  - {use: write, path: a.npz}\n", 1, "as it should");
    ck_assert_uint_eq(io_runs("buffers: {x: {shape: [10, 5]}}\nstages:\n  - {use: read, path: a.npz.partial, format: npz, out: "
                              "x}\n  - {use: write, path: b.raw}\n"), 3);
    size_t n;
    OWNED char *raw = pipe_read(io_dir, "in.raw", &n);
    io_holds("b.raw", raw, 150);
    io_fails("buffers: {x: {dtype: u8, shape: [10, 5]}}\nstages:\n  - {use: read, path: in.raw, out: x}\n"
             "  - {use: write, path: /dev/null, format: npz}\n", 1, "is not a regular file, which .npz needs");
}

/* A byte of the packed data that is another is an error; so is a missing part. */
TEST_LOOP(damaged, 0, 2)
{
    size_t n;
    char *npz = pipe_read("tests/data/npz", "long.npz", &n), y[400];
    static const char *const run = "buffers: {x: {dtype: i32, shape: [7000, 2]}}\nstages:\n"
                                   "  - {use: read, path: a.npz, out: x}\n" DISCARD;
    for (size_t at = 60; at < n - 200; at += 997) {
        npz[at] ^= 16;
        pipe_file(io_dir, "a.npz", npz, n);
        pipe_result r = io_go(run);
        ck_assert_msg(r.outcome == GP_ERROR && strstr(io_error(&r), "damaged"), "%zu: %s", at, io_error(&r));
        npz[at] ^= 16;
    }
    for (size_t k = 0; k < n; k += 1 + n / 50) {
        pipe_file(io_dir, "a.npz", npz, k);
        io_fails(TEXT(y, "%s", run), 3, "is not a .npz file, or is cut off or damaged");
    }
    /* Any bytes in the list of members, and before it. */
    unsigned seed = 1;
    free(npz);
    npz = pipe_read("tests/data/npz", _i ? "packed.npz" : "stored.npz", &n);
    OWNED char *bad = malloc(n);
    for (int k = 0; k < 200; k++) {
        memcpy(bad, npz, n);
        for (int i = 0; i < 3; i++)
            bad[k % 2 ? n - 1 - (unsigned)rand_r(&seed) % 200
                : (unsigned)rand_r(&seed) % n] = (char)(rand_r(&seed) >> 8);
        pipe_file(io_dir, "a.npz", bad, n);
        pipe_result r = io_go("stages:\n  - {use: read, path: a.npz, member: u}\n" DISCARD);
        ck_assert(r.outcome == GP_DONE || r.errs.failed);
    }
    free(npz);
}

TEST_SUITE(npz, io_set_up, NULL, 0)
