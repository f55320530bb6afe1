/* test_zarr.c - Zarr stores that zarr-python made (tests/data/make_zarr.py), cut in any way, by any number of workers;
 * damaged ones, and such as gpipe does not know; stores that are written. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "iotest.h"
#include "rows_file.h"

#define DISCARD "  - {use: discard, in: x}\n"

/* Rows of a frame, where that is declared, and the type of a row. */
static const struct { const char *store, *array, *type, *row; int rows; } reads[] = {
    { "2_blosc", "2_blosc", "f32", ", 5, 6", 7 }, { "2_bits", "2_bits", "u32", ", 64", 6 },
    { "2_zlib", "2_zlib", "u16", ", 5, 3", 6 }, { "2_lz4", "2_lz4", "c64", ", 4", 5 }, { "2_gzip", "2_gzip", "u8", ", 3", 9 },
    { "2_plain", "2_plain", "i64", ", 3, 2, 2", 4 }, { "2_zstd", "2_zstd", "f16", ", 7", 5 },
    { "2_ome", "2_ome_0", "u16", ", 8, 8", 3 }, { "2_ome, level: 1", "2_ome_1", "u16", ", 4, 4", 3 },
    { "2_ome/1", "2_ome_1", "u16", ", 4, 4", 3 }, { "3_zstd", "3_zstd", "f32", ", 6, 4", 5 },
    { "3_blosc", "3_blosc", "i16", ", 6, 4", 5 }, { "3_shards", "3_shards", "u8", ", 8, 6", 9 },
    { "3_start", "3_start", "f64", ", 6", 6 }, { "3_sums", "3_sums", "u32", ", 3", 7 }, { "3_names", "3_names", "i32", ", 3", 4 },
    { "3_dots", "3_dots", "c64", ", 3, 2", 4 }, { "3_none", "3_none", "u64", ", 3", 4 }, { "3_half", "3_half", "f16", ", 3", 4 },
    { "3_ome", "3_ome_a", "u16", ", 8, 8", 3 }, { "3_ome, level: 1", "3_ome_b_c", "u16", ", 4, 4", 3 },
};

/* As zarr-python reads it, bit for bit: an index of axis 0 a frame, then several. */
TEST_EACH(is_read, reads)
{
    size_t n, all;
    OWNED char *want = pipe_read(format("%s/tests/data/zarr", io_here), format("%s.npy", reads[_i].array), &all);
    for (int rows = 0; rows <= reads[_i].rows; rows++)
        for (int workers = 1; workers <= 3; workers += 2) {
            char declared[120] = "";
            if (rows)
                TEXT(declared, "buffers: {x: {dtype: %s, shape: [%d%s]}}\n", reads[_i].type, rows, reads[_i].row);
            int frames = rows ? (reads[_i].rows + rows - 1) / rows : reads[_i].rows;
            ck_assert_uint_eq(io_runs(format("%sstages:\n  - {use: read, path: %s/tests/data/zarr/%s, workers: %d, out: x}\n"
                                             "  - {use: write, path: a.raw, in: x}\n", declared, io_here, reads[_i].store,
                                             workers)), frames);
            OWNED char *got = pipe_read(io_dir, "a.raw", &n);
            ck_assert_uint_gt(n, 0);
            ck_assert_uint_lt(n, all);
            ck_assert_msg(!memcmp(got, want + all - n, n), "%s, frames of %d rows", reads[_i].store, rows);
        }
}

/* Chunks that several frames share, by several workers, also in another order and from some frame on; start and frames
 * mean what they mean of a .npy. */
TEST_LOOP(is_shared, 0, 6)
{
    static const char *const how[] = { "", ", start: 3", ", start: 11, frames: 9", ", shuffle: 4", ", shuffle: 4, start: 5",
                                       ", loop: true, frames: 90" };
    size_t n, m;
    io_runs("buffers: {x: {dtype: u16, shape: [5, 40]}}\nstages:\n  - {use: generate, frames: 8, pattern: noise, out: x}\n"
            "  - {use: write, path: a.zarr, chunk: 7, in: x}\n  - {use: write, path: a.npy, in: x}\n");
    for (int i = 0; i < 2; i++)
        io_runs(format("stages:\n  - {use: read, path: a.%s, workers: 4%s, out: x}\n  - {use: write, path: %d.raw, in: x}\n",
                       i ? "npy" : "zarr", how[_i], i));
    OWNED char *of_zarr = pipe_read(io_dir, "0.raw", &n), *of_npy = pipe_read(io_dir, "1.raw", &m);
    ck_assert_uint_eq(n, m);
    ck_assert(!memcmp(of_zarr, of_npy, n));
}

static void put(const char *name, const char *text)
{
    pipe_file(io_dir, name, text, strlen(text));
}

/* ---- what is damaged --------------------------------------------------- */

/* A store of 6 rows of 8 bytes in chunks of 2, of which that of rows 2 and 3 becomes the text, or NULL: a hole. */
static const struct { const char *codecs, *chunk; size_t n; const char *says; } damaged[] = {
    { "", "0123456789", 10, "(chunk 'c/1/0') holds 10 bytes, where its elements have 16" },
    { ", zstd", "0123456789", 10, "(chunk 'c/1/0') is damaged: zstd says '" },
    { ", gzip", "0123456789", 10, "(chunk 'c/1/0') is damaged: as gzip it cannot be decoded" },
    { ", crc32c", "0123456789abcdef0123", 20, "(chunk 'c/1/0') is damaged: its checksum (crc32c) is another" },
    { ", zstd", NULL, (size_t)3 << 30, "(chunk 'c/1/0') has 3221225472 bytes, which cannot be the 16 of its elements" },
    { ", zlib", "", 0, "(chunk 'c/1/0') has 0 bytes, which cannot be the 16 of its elements" },
    { ", blosc", "\2\1\1\1\20\0\0\0\20\0\0\0\21\0\0\0", 16, "(chunk 'c/1/0') is damaged: as blosc it has a header that is broken" },
    { ", numcodecs.lz4", "\21\0\0\0abc", 7, "(chunk 'c/1/0') holds 17 bytes, where its elements have 16" },
    { ", numcodecs.lz4", "\20\0\0\0\xff", 5, "(chunk 'c/1/0') is damaged: as lz4 it cannot be decoded" },
};

#define V3(shape, type, grid, more) "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": " shape ",\n\"data_type\": \"" type \
    "\", \"chunk_grid\": {\"name\": \"regular\", \"configuration\": {\"chunk_shape\": " grid "}},\n\"chunk_key_encoding\": " \
    "{\"name\": \"default\"}, \"fill_value\": 0, " more "}"

#define V3_NAMED(keys) "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": [6], \"data_type\": \"uint8\", \"chunk_grid\": " \
    "{\"name\": \"regular\", \"configuration\": {\"chunk_shape\": [2]}}, \"chunk_key_encoding\": {" keys "}, \"fill_value\": 0, " \
    "\"codecs\": [bytes]}"

TEST_EACH(is_damaged, damaged)
{
    ck_assert_int_eq(mkdir(io_at("a.zarr"), 0700) | mkdir(io_at("a.zarr/c"), 0700) | mkdir(io_at("a.zarr/c/1"), 0700), 0);
    put("a.zarr/zarr.json", format(V3("[6, 8]", "uint8", "[2, 8]", "\"codecs\": [bytes%s]"), damaged[_i].codecs));
    pipe_file(io_dir, "a.zarr/c/1/0", damaged[_i].chunk ? damaged[_i].chunk : "", damaged[_i].chunk ? damaged[_i].n : 0);
    ck_assert_int_eq(truncate(io_at("a.zarr/c/1/0"), (off_t)damaged[_i].n), 0);
    for (int rows = 1; rows <= 3; rows++) {            /* a window; a chunk each; two windows a frame */
        const char *yaml = format("buffers: {x: {dtype: u8, shape: [%d, 8]}}\nstages:\n"
                                  "  - {use: read, path: a.zarr, workers: 2, out: x%%s}\n" DISCARD, rows);
        io_fails(format(yaml, ""), 1, damaged[_i].says);
        pipe_result r = io_done(format(yaml, ", on_error: drop"));
        ck_assert_uint_eq(r.account[0].failed, rows == 2 ? 1 : 2);
        ck_assert_uint_eq(r.account[0].out, rows == 1 ? 4 : rows == 2 ? 2 : 0);
    }
}

/* A chunk that is missing is `fill`, while the store is what was opened. */
static const struct { const char *does, *says; } changed[] = {
    { "true", NULL }, { "sed 's/\\[6, /[8, /' a.zarr/zarr.json > b; cat b > a.zarr/zarr.json", NULL },      /* as a writer does */
    { "sed 's/\\[6, /[4, /' a.zarr/zarr.json > b; cat b > a.zarr/zarr.json", "the store was changed or removed" },
    { "sed 's/uint8/ int8/' a.zarr/zarr.json > b; cat b > a.zarr/zarr.json", "the store was changed or removed" },
    { "cp -r a.zarr b; rm -r a.zarr; mv b a.zarr", "the store was changed or removed" },
    { "cp -r a.zarr b; mv a.zarr c; mv b a.zarr", "the store was changed or removed" },
    { "rm -r a.zarr", "the store was changed or removed" },
    { "cp a.zarr/zarr.json b; rm a.zarr/zarr.json; cp b a.zarr/zarr.json", "the store was changed or removed" },
    { "rm -r a.zarr/c", NULL },
    { "mkdir a.zarr/c/1; ln -s nowhere a.zarr/c/1/0", "is a symbolic link that leads nowhere" },
    { "ln -s nowhere a.zarr/c/1", "is a symbolic link that leads nowhere" },
    { "touch a.zarr/c/1", "cannot be read: Not a directory" },
};

TEST_EACH(changes_while_read, changed)
{
    gp_rowsfile_how how = { .as = &gp_zarr_array };
    char err[GP_WHY] = "", to[16];
    void *own = NULL;
    ck_assert_int_eq(mkdir(io_at("a.zarr"), 0700) | mkdir(io_at("a.zarr/c"), 0700), 0);
    put("a.zarr/zarr.json", V3("[6, 8]", "uint8", "[2, 8]", "\"codecs\": [bytes]"));
    utimensat(AT_FDCWD, io_at("a.zarr/zarr.json"), (struct timespec[2]){ { 0 } }, 0);     /* another than what is written below */
    int fd = open(io_at("a.zarr"), O_RDONLY | O_DIRECTORY);
    gp_rows *rows = gp_zarr_array.open(fd, &how, err);
    ck_assert_msg(rows && gp_zarr_array.read(rows, &own, 2, 2, to, err), "%s", err);
    ck_assert_int_eq(system(format("cd %s && %s", io_dir, changed[_i].does)), 0);
    bool ok = gp_zarr_array.read(rows, &own, 2, 2, to, err);
    ck_assert_msg(ok == !changed[_i].says && (ok || strstr(err, changed[_i].says)), "%d: %s", _i, err);
    gp_zarr_array.leave(own);
    gp_zarr_array.close(rows);
    close(fd);
}

/* ---- what gpipe does not know --------------------------------------------- */

#define PLAIN "\"codecs\": [bytes]"
#define SHARDS(more) "\"codecs\": [{\"name\": \"sharding_indexed\", \"configuration\": {" more "}}]"
static const struct { const char *file, *text, *says; } refused[] = {
    { "zarr.json", V3("[6, 8]", "uint8", "[2, 8]", "\"codecs\": [bytes, fancy]"), "(zarr.json:3:79) has the codec 'fancy', which" },
    { "zarr.json", V3("[6, 8]", "complex128", "[2, 8]", PLAIN), "(zarr.json:2:14) has elements of type 'complex128', which" },
    { "zarr.json", V3("[6, 8]", "uint8", "[2, 8, 1]", PLAIN), "has no 'chunk_shape' of 2 numbers" },
    { "zarr.json", V3("[6, 8]", "uint8", "[0, 8]", PLAIN), "has a 'chunk_shape' of '0', which is no whole number from 1 on" },
    { "zarr.json", V3("[6, -8]", "uint8", "[2, 8]", PLAIN), "has a 'shape' of '-8'" },
    { "zarr.json", V3("[6, 4000000000, 4000000000]", "uint8", "[2, 8, 8]", PLAIN), "has an array of more than 2^60 bytes" },
    { "zarr.json", V3("[6, 8]", "uint8", "[2, 8000000000000000000]", PLAIN), "has chunks of more than 2^60 bytes" },
    { "zarr.json", V3("[1, 1, 1, 1, 1, 1, 1, 1, 1]", "uint8", "[2]", PLAIN), "has 9 axes, and gpipe has 1 to 8" },
    { "zarr.json", V3("[6, 8]", "uint8", "[2, 8]", PLAIN ", \"x\": {\"must_understand\": true}"), "has 'x' in it, which gpipe" },
    { "zarr.json", V3("[6, 8]", "uint8", "[2, 8], \"x\": 1", PLAIN), "has 'x' in its 'chunk_grid', which gpipe" },
    { "zarr.json", V3("[6, 8]", "uint8", "[2, 8]}, \"x\": {\"y\": 1", PLAIN), "has 'x' in its 'chunk_grid', which gpipe" },
    { "zarr.json", V3_NAMED("\"name\": \"default\", \"x\": 1"), "has 'x' in its 'chunk_key_encoding', which gpipe" },
    { "zarr.json", V3_NAMED("\"name\": \"default\", \"configuration\": {\"separator\": \"/\", \"x\": 1}"),
      "has 'x' in its 'chunk_key_encoding', which gpipe" },
    { "zarr.json", V3("[6, 8]", "uint8", "[2, 8]", "\"codecs\": [zstd]"), "has the codec 'zstd', which gpipe does not know" },
    { "zarr.json", V3("[6, 8]", "uint8", "[2, 8]", "\"codecs\": [bytes, zstd, gzip]"), "is compressed twice, with 'zstd' and with 'gzip'" },
    { "zarr.json", V3("[6, 8]", "uint8", "[2, 8]", "\"codecs\": []"), "has no codec 'bytes'" },
    { "zarr.json", V3("[6, 8]", "uint8", "[2, 8]", PLAIN ", \"storage_transformers\": [x]"), "has 'storage_transformers', which" },
    { "zarr.json", V3("[6, 8]", "uint8", "[4, 8]", SHARDS("\"chunk_shape\": [3, 8], \"codecs\": [bytes], \"index_codecs\": [bytes]")),
      "has shards of 4 elements of chunks of 3" },
    { "zarr.json", V3("[64, 64]", "uint8", "[1073741824, 1073741824]", SHARDS("\"chunk_shape\": [1, 1], \"codecs\": [bytes], \"index_codecs\": [bytes]")),
      "has shards of more than 2^26 chunks" },
    { "zarr.json", V3("[6, 8]", "uint8", "[4, 8]", SHARDS("\"chunk_shape\": [2, 8], \"codecs\": [bytes], \"index_codecs\": [bytes, gzip]")),
      "has 'index_codecs' of which gpipe knows" },
    { "zarr.json", V3("[6, 8]", "uint8", "[4, 8]", "\"codecs\": [{\"name\": \"transpose\", \"configuration\": {\"order\": [0, 0]}}, bytes]"),
      "has a 'transpose' that names no axis, or one twice" },
    { "zarr.json", "{\"zarr_format\": 3, \"node_type\": \"group\"}", "is a group, and of no 'multiscales': name an array behind it" },
    { "zarr.json", "[1]", "(zarr.json) holds no JSON object" },
    { "zarr.json", "{\n\"a\": ]", "(zarr.json:2:6) is no JSON" },
    { ".zarray", "{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [2], \"dtype\": \"<f4\", \"order\": \"C\", \"fill_value\": 0,\n"
      "\"compressor\": {\"id\": \"bz2\"}, \"filters\": null}", "(.zarray:2:15) has the codec 'bz2', which gpipe does not know" },
    { ".zarray", "{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [2], \"dtype\": \"<f4\", \"order\": \"C\", \"fill_value\": 0,\n"
      "\"compressor\": null, \"filters\": [{\"id\": \"delta\"}]}", "(.zarray:2:32) has the filter 'delta', which gpipe does not" },
    { ".zarray", "{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [2], \"dtype\": [[\"a\", \"<f4\"]], \"order\": \"C\"}",
      "has elements of type 'a list of fields'" },
    { ".zarray", "{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [2], \"dtype\": \"|u1\", \"order\": \"C\", \"fill_value\": 256}",
      "has a 'fill_value' of '256', which is no u8" },
    { ".zarray", "{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [2], \"dtype\": \"|u1\", \"order\": \"C\", \"fill_value\": true}",
      "has a 'fill_value' of 'true', which is no u8" },
    { ".zarray", "{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [2], \"dtype\": \"|b1\", \"order\": \"C\", \"fill_value\": 5}",
      "has a 'fill_value' of '5', which is no bool" },
    { ".zgroup", "{\"zarr_format\": 2}", "is a group, and of no 'multiscales'" },
    { "else", "", "is a folder that has no array: there is no zarr.json, .zarray or .zgroup" },
};

TEST_EACH(is_refused, refused)
{
    ck_assert_int_eq(mkdir(io_at("a.zarr"), 0700), 0);
    put(format("a.zarr/%s", refused[_i].file), refused[_i].text);
    io_fails("stages:\n  - {use: read, path: a.zarr, out: x}\n" DISCARD, 3, refused[_i].says);
}

/* A folder that is no store is none; one without an extension is. Levels are those of groups. */
TEST(folders)
{
    mkdir(io_at("b"), 0700);
    io_fails("stages:\n  - {use: read, path: b, out: x}\n" DISCARD, 3, "b' is a folder: say which of its files, as in '");
    put("a.zarr", "x");
    io_fails("stages:\n  - {use: read, path: a.zarr, out: x}\n" DISCARD, 3, "a.zarr' is no folder, as a Zarr store is");
    put("b/zarr.json", V3("[6, 8]", "uint8", "[2, 8]", PLAIN));
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: b, out: x}\n" DISCARD), 6);
    put("b/zarr.json", V3("[6,\t8]", "uint8", "[2, 8]", PLAIN ", \n\t\"attributes\": {\"a\\n\\/\": \"\\ud83d\\uDE00 \\u00e9 NaN\", \"b\": NaN}"));
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: b, out: x}\n" DISCARD), 6);
    io_fails("stages:\n  - {use: read, path: b, level: 1, out: x}\n" DISCARD, 3, "is an array, and has no levels");
    io_fails(format("stages:\n  - {use: read, path: %s/tests/data/zarr/2_ome, level: 2, out: x}\n" DISCARD, io_here), 3,
             "has 2 levels, of which 'level: 2' is none");
    put("a.raw", "12345678");
    io_fails("buffers: {x: {dtype: u8, shape: [2]}}\nstages:\n  - {use: read, path: a.raw, level: 1, out: x}\n" DISCARD, 3,
             "'level' has no effect on a file that is not a Zarr");
}

/* Each store of a glob is a frame. */
TEST(a_store_a_frame)
{
    io_runs("buffers: {x: {dtype: i16, shape: [4, 3]}}\nstages:\n  - {use: generate, frames: 3, pattern: noise, out: x}\n"
            "  - {use: write, path: 'a_%d.zarr', in: x}\n  - {use: write, path: want.raw, in: x}\n");
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: 'a_*.zarr', workers: 2, out: x}\n"
                              "  - {use: compare, file: want.raw, in: x}\nbuffers: {x: {dtype: i16}}\n"), 3);
}

/* ---- writing ------------------------------------------------------------ */

/* Comes back, whatever the frames, chunks and levels are. */
TEST_LOOP(comes_back, 1, GP_NDTYPES * 6)
{
    static const char *const how[] = { "", ", chunk: 3", ", chunk: 7, compression: 0", ", stack: true", ", live: true, compression: 9",
                                       ", stack: true, chunk: 4, compression: 1" };
    size_t n, m;
    if (_i / 6 == GP_NO_DTYPE)
        return;
    io_runs(format("buffers: {x: {dtype: %s, shape: [5, 3]}}\nstages:\n  - {use: generate, frames: 5, pattern: noise, out: x}\n"
                   "  - {use: write, path: a.zarr%s, in: x}\n  - {use: write, path: a.raw, in: x}\n", gp_dtype_name((gp_dtype)(_i / 6)),
                   how[_i % 6]));
    io_runs("stages:\n  - {use: read, path: a.zarr, workers: 2, out: x}\n  - {use: write, path: b.raw, in: x}\n");
    OWNED char *a = pipe_read(io_dir, "a.raw", &n), *b = pipe_read(io_dir, "b.raw", &m);
    ck_assert_uint_eq(n, m);
    ck_assert(!memcmp(a, b, n));
}

#define WRITES(n, more) "buffers: {x: {dtype: u8, shape: [4, 3]}}\nstages:\n  - {use: generate, frames: " n ", out: x}\n" \
    "  - {use: write, path: a.zarr, in: x" more "}\n"

/* A store is replaced as a whole, once the new one is: no chunk of the old one stays. What is no array stays. */
TEST(is_replaced)
{
    io_runs(WRITES("9", ""));
    ck_assert_int_eq(io_files("a.zarr"), 10);
    io_fails(WRITES("2", ", if_exists: error"), 1, "a.zarr' is there already");
    ck_assert_int_eq(io_files("a.zarr"), 10);
    pipe_result r = io_done(WRITES("2", ""));
    ck_assert_msg(strstr(io_error(&r), "stage 'write' replaced a store, '") != NULL, "%s", io_error(&r));
    ck_assert_int_eq(io_files("a.zarr"), 3);
    unlink(io_at("a.zarr/zarr.json"));
    io_fails(WRITES("2", ""), 1, "a.zarr' cannot be written: it is a folder, and no array of Zarr");
    put("a.zarr/zarr.json", "{\"zarr_format\": 3, \"node_type\": \"group\"}");
    io_fails(WRITES("2", ""), 1, "a.zarr' cannot be written: it is a folder, and no array of Zarr");
    ck_assert_int_eq(io_files("a.zarr"), 3);
    ck_assert_int_eq(io_files("."), 1);
}

/* What is no part of an array is not removed with it. */
static const struct { const char *does, *says; } holds[] = {
    { "touch a.zarr/notes", "'notes' there is no part of that" }, { "mkdir a.zarr/sub", "'sub' there is no part of that" },
    { "mkdir -p a.zarr/c/1; touch a.zarr/c/1/x", "'c/1/x' there is no part of that" },
    { "mkdir a.zarr/0; touch a.zarr/0/zarr.json", "'0/zarr.json' there is no part of that" },
    { "mkdir -p a.zarr/c/1 a.zarr/2/3; touch a.zarr/.zattrs a.zarr/0.1 a.zarr/c/1/2", NULL },
    { "mkdir b; mv a.zarr/* b; mkdir b/a.zarr; mv b/* a.zarr; rm -r a.zarr/a.zarr; mv a.zarr b/x; ln -s b/x a.zarr", NULL },
};

TEST_EACH(keeps_others, holds)
{
    io_runs(WRITES("9", ""));
    ck_assert_int_eq(system(format("cd %s && %s", io_dir, holds[_i].does)), 0);
    int files = io_files("a.zarr");
    if (holds[_i].says)
        io_fails(WRITES("2", ""), 1, holds[_i].says);
    else
        io_runs(WRITES("2", ""));
    ck_assert_int_eq(io_files("a.zarr"), holds[_i].says ? files : 3);
    io_fails("buffers: {x: {dtype: u8, shape: [4, 3]}}\nstages:\n  - {use: generate, frames: 2, out: x}\n"
             "  - {use: write, path: a.zarr/b.zarr, in: x}\n", 1, "the folder that it would be in is a Zarr array");
    ck_assert_int_eq(io_files("a.zarr"), holds[_i].says ? files : 3);
}

/* By whatever name: a store is never written over one that the same run reads. */
TEST_LOOP(is_not_its_own_input, 0, 4)
{
    io_runs(WRITES("9", ""));
    ck_assert_int_eq(symlink("a.zarr", io_at("l.zarr")) | symlink(".", io_at("link")), 0);
    io_fails(format("stages:\n  - {use: read, path: a.zarr, out: x}\n  - {use: write, path: %s.zarr, in: x%s}\n",
                    _i & 1 ? "link/a" : "l", _i & 2 ? ", live: true" : ""), 1, "zarr' is read by stage 'read': give it another");
    ck_assert_int_eq(io_files("a.zarr"), 10);
}

/* A run that fails keeps what was whole as a store that can be read; one that is live has its name. */
TEST_LOOP(breaks_off, 0, 2)
{
    pipe_text(io_dir, "f.lua", "function process(f, x, y)\n    if f.index == 3 then error('no') end\n    y:copy(x)\nend\n");
    io_fails(format("buffers: {x: {dtype: u8, shape: [4, 3]}}\nstages:\n  - {use: generate, frames: 9, out: x}\n"
                    "  - {use: lua, script: f.lua, in: x, out: y}\n  - {use: write, path: a.zarr, in: y%s}\n",
                    _i ? ", live: true" : ""), 1, "no");
    ck_assert_uint_eq(io_runs(format("stages:\n  - {use: read, path: a.zarr%s, out: x}\n" DISCARD, _i ? "" : ".partial")), 12);
    ck_assert_int_eq(io_files("."), 2);
}

/* Of a run whose frames all failed nothing is left. */
TEST(leaves_nothing)
{
    pipe_text(io_dir, "f.lua", "function process(f, x, y)\n    error('no')\nend\n");
    io_fails("buffers: {x: {dtype: u8, shape: [4, 3]}}\nstages:\n  - {use: generate, frames: 9, out: x}\n"
             "  - {use: lua, script: f.lua, in: x, out: y}\n  - {use: write, path: a.zarr, in: y}\n", 1, "no");
    ck_assert_int_eq(io_files("."), 1);
}

static const struct { const char *options, *says; } unfit[] = {
    { "path: a.zarr/, format: zarr", "ends in '/': it is made as a whole" },
    { "path: a.npy, chunk: 4", "'chunk' has no effect on a file that is not a Zarr" },
    { "path: stdout, format: zarr", "only raw data, npy, text and y4m can be written to stdout" },
    { "path: 'a_%d.zarr', rotate_frames: 2, keep: 3", "'keep' has no effect on Zarr stores, which are folders" },
    { "path: 'a_%d.zarr', rotate_size: 200", "how large Zarr becomes is known once it is finished" },
    { "path: a.zarr, append: true", "not to Zarr" },
    { "path: a.zarr, chunk: 300000000000", "a chunk of 300000000000 rows would have more than 64 GiB" },
};

TEST_EACH(does_not_fit, unfit)
{
    io_fails(format("buffers: {x: {dtype: u8, shape: [4, 3]}}\nstages:\n  - {use: generate, frames: 9, out: x}\n"
                    "  - {use: write, %s, in: x}\n", unfit[_i].options), 3, unfit[_i].says);
}

TEST_SUITE(zarr, io_set_up, NULL, 0)
