/* test_sound.c - recordings: what soundfile and SciPy wrote (tests/data/make_sounds.py), in blocks of any length, by
 * any number of workers; what is written, by its bytes and read again; broken and refused ones. */
#include "iotest.h"
#include "rows_file.h"

/* libsndfile loses some memory of libvorbis where an Ogg file cannot be opened. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:vorbis_info_init\n";
}

#define DISCARD "  - {use: discard}\n"

static void set_up(void)
{
    io_set_up();
    pipe_text(io_dir, "none.lua", "function process(f, x, y) return 'drop' end\n");
}

/* ---- in -------------------------------------------------------------- */

static const struct { const char *name, *dtype; int channels, rows; } files[] = {
    { "i16.wav", "i16", 2, 300 },    { "i24.wav", "i32", 2, 300 },   { "i32.wav", "i32", 2, 300 },
    { "f32.wav", "f32", 2, 300 },    { "f64.wav", "f64", 2, 300 },   { "u8.wav", "i16", 1, 300 },
    { "mono.wav", "i16", 1, 300 },   { "chunks.wav", "i16", 2, 300 }, { "endless.wav", "i16", 2, 300 },
    { "wide.rf64", "i16", 2, 300 },  { "five.flac", "i16", 5, 300 }, { "deep.flac", "i32", 2, 300 },
    { "big.aiff", "i16", 2, 300 },   { "float.aiff", "f32", 2, 300 }, { "vorbis.ogg", "f32", 2, 5000 },
    { "layer3.mp3", "f32", 2, 3000 }, { "coded.opus", "f32", 1, 4000 },
    { "tagged-five.flac", "i16", 5, 300 }, { "tagged-i16.wav", "i16", 2, 300 },
};
enum { FILES = sizeof files / sizeof *files, WAYS = 5 };
static const struct { int rows, workers; } ways[WAYS] = { { 64, 1 }, { 1, 1 }, { 300, 2 }, { 37, 4 }, { 10000, 3 } };

/* Another version of a library may round the last bit of what Vorbis holds; MP3 and Opus were decoded by another
 * one. */
TEST_LOOP(is_read, 0, FILES * WAYS)
{
    char y[1200], shape[80], last[40] = "";
    int i = _i % FILES, block = ways[_i / FILES].rows;
    if (files[i].channels > 1)
        TEXT(last, ", %d", files[i].channels);
    TEXT(shape, "[%d%s]", block, last);
    if (strstr(files[i].name, ".mp3") && !io_has_mp3())
        return;
    static const char tagged[] = "tagged-";
    const char *as = files[i].name + (strstr(files[i].name, tagged) ? strlen(tagged) : 0);
    const char *abs = strstr(as, ".ogg") ? "1e-6" : strstr(as, ".mp3") || strstr(as, ".opus") ? "1e-5" : "0";
    int stem = (int)strcspn(as, ".");
    uint64_t frames = io_runs(TEXT(y, "buffers: {x: {shape: %s}}\nstages:\n"
        "  - {use: read, path: '%s/tests/data/sound/%s', workers: %d, out: x}\n"
        "  - {use: compare, file: '%s/tests/data/sound/%.*s.npy', abs: %s, in: x}\n"
        "  - {use: write, path: a.npy, in: x}\n", shape, io_here, files[i].name, ways[_i / FILES].workers, io_here, stem, as, abs));
    ck_assert_uint_eq(frames, (unsigned)((files[i].rows + block - 1) / block));
    gp_type want = pipe_npy_type("tests/data/sound", TEXT(y, "%.*s.npy", stem, as));
    ck_assert_str_eq(gp_dtype_name(want.dtype), files[i].dtype);
    ck_assert_int_eq(want.dim[0], files[i].rows);
}

/* Where a row is a frame, one channel has an axis, or a file is a frame of its own length. */
static const struct { const char *shape, *path; uint64_t frames; } shapes[] = {
    { "[2]", "i16.wav", 300 }, { "[100, 1]", "mono.wav", 3 }, { "['<=400', 2]", "{big.aiff,i16.wav}", 2 },
    { "['<=300']", "mono.wav", 1 },
};

TEST_EACH(other_shapes, shapes)
{
    io_link("sound/i16.wav", "a.wav");
    io_link("sound/mono.wav", "mono.wav");
    io_link("sound/big.aiff", "b.wav");            /* its first bytes say what it is */
    bool two = *shapes[_i].path == '{';
    uint64_t frames = io_runs(format("buffers: {x: {shape: %s}}\nstages:\n  - {use: read, path: '%s', out: x, "
                                   "workers: 2}\n"
                                   "  - {use: write, path: '%%d.npy'}\n", shapes[_i].shape,
                                   two ? "[ab].wav" : !strcmp(shapes[_i].path, "i16.wav") ? "a.wav" : "mono.wav"));
    ck_assert_uint_eq(frames, shapes[_i].frames);
    size_t n, head = 128;
    OWNED char *got = pipe_read(io_dir, two ? "1.npy" : "0.npy", &n);
    OWNED char *want = pipe_read("tests/data/sound", strstr(shapes[_i].path, "mono") ? "mono.npy" : "i16.npy",
                           &(size_t){ 0 });
    ck_assert(!memcmp(got + head, want + head, n - head));
}

/* Undeclared, a glob's files are frames of the first one's shape; stems are names. */
TEST(a_file_a_frame)
{
    io_link("sound/i16.wav", "a.wav");
    io_link("sound/chunks.wav", "b.wav");
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: '?.wav', sample_rate: 8000}\n"
                              "  - {use: write, path: 'out/%n.wav', sample_rate: 8000}\n"), 2);
    ck_assert_int_eq(io_files("out"), 2);
    io_runs(format("buffers: {x: {shape: [50, 2]}}\nstages:\n  - {use: read, path: out/b.wav, out: x}\n"
                 "  - {use: compare, file: '%s/tests/data/sound/chunks.npy'}\n", io_here));
}

/* The values of another type: floats are in [-1, 1), whole numbers at full scale. */
static const struct { const char *file, *dtype, *expr; } types[] = {
    { "i16.wav", "f32", "x / 32768" }, { "i16.wav", "f64", "x / 32768" }, { "i16.wav", "i32", "x * 65536" },
    { "deep.flac", "f64", "x / 2147483648" }, { "f32.wav", "f64", "x" },
};

TEST_EACH(another_type, types)
{
    io_runs(format("buffers: {x: {shape: [64, 2]}, y: {dtype: %s, shape: [64, 2]}, z: {dtype: %s}}\nstages:\n"
                 "  - {use: read, path: '%s/tests/data/sound/%s', out: x}\n"
                 "  - {name: r, use: read, path: '%s/tests/data/sound/%s', out: y}\n"
                 "  - {use: cast, dtype: f64, in: x, out: c}\n"
                 "  - {use: expr, expr: '%s', in: {x: c}, out: z}\n"
                 "  - {use: compare, in: [z, y]}\n", types[_i].dtype, types[_i].dtype, io_here, types[_i].file, io_here,
                 types[_i].file, types[_i].expr));
}

/* ---- out ------------------------------------------------------------- */

static const struct { const char *name, *write, *file; } out[] = {
    { "i16", "a.wav", NULL },   { "i24", "a.wav", NULL },  { "f32", "a.wav", NULL }, { "f64", "a.wav", NULL },
    { "mono", "a.wav", NULL },  { "i16", "a.rf64", NULL }, { "i16", "a.flac", NULL }, { "deep", "a.flac", NULL },
    { "five", "a.flac", NULL }, { "i16", "a.aiff", NULL }, { "float", "a.aif", NULL }, { "i32", "a.wav", NULL },
    { "i16", "a%d.flac", "a?.flac" }, { "f32", "a%d.wav", "a?.wav" },
};

/* Joined or in files of their own, all rows are there, and the same on every run. */
TEST_EACH(there_and_back, out)
{
    const char *row = !strcmp(out[_i].name, "mono") ? "" : !strcmp(out[_i].name, "five") ? ", 5" : ", 2";
    for (int i = 0; i < 2; i++)
        io_runs(format("buffers: {x: {shape: [70%s]}}\nstages:\n"
                     "  - {use: read, path: '%s/tests/data/sound/%s.npy', out: x}\n"
                     "  - {use: write, path: '%d%s', sample_rate: 8000, in: x}\n", row, io_here, out[_i].name, i,
                         out[_i].write));
    const char *file = out[_i].file ? out[_i].file : out[_i].write;
    io_runs(format("buffers: {x: {shape: [70%s]}}\nstages:\n  - {use: read, path: '0%s', sample_rate: 8000, out: x}\n"
                 "  - {use: compare, file: '%s/tests/data/sound/%s.npy'}\n", row, file, io_here, out[_i].name));
    if (out[_i].file)
        return;
    size_t n;
    OWNED char *first = pipe_read(io_dir, format("0%s", out[_i].write), &n);
    io_holds(format("1%s", out[_i].write), first, n);
}

/* The fields that any reader goes by; of each sample, the bytes. */
TEST(bytes_of_a_wav)
{
    size_t n;
    io_count_npy("in.npy", (gp_type){ GP_I16, 2, { 10, 3 } }, 0);
    io_runs("buffers: {x: {shape: [4, 3]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
            "  - {use: write, path: a.wav, sample_rate: 22050}\n");
    OWNED char *wav = pipe_read(io_dir, "a.wav", &n);
    static const unsigned char head[] = "RIFF\x60\0\0\0WAVEfmt \x10\0\0\0\1\0\3\0\x22\x56\0\0\xcc\x04\2\0\6\0\x10\0"
                                        "data\x3c\0\0";
    ck_assert_uint_eq(n, 44 + 60);
    ck_assert(!memcmp(wav, head, sizeof head));
    for (int i = 0; i < 60; i++)
        ck_assert_int_eq(wav[44 + i], i);
}

/* A few rows, fewer bytes than a header has. */
TEST_LOOP(short_ones, 0, 3)
{
    static const char *const names[] = { "a.wav", "a.aiff", "a.rf64" };
    io_count_npy("in.npy", (gp_type){ GP_F32, 1, { 1 } }, 60);
    io_runs(format("buffers: {x: {shape: [4]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
                 "  - {use: write, path: %s, sample_rate: 22050}\n", names[_i]));
    ck_assert_uint_eq(io_runs(format("buffers: {x: {shape: [1]}}\nstages:\n  - {use: read, path: %s, out: x}\n"
                                   "  - {use: compare, file: in.npy}\n", names[_i])), 1);
}

/* As near as a lossy format is; and its quality matters. */
TEST(vorbis)
{
    size_t good, small;
    io_runs(format("buffers: {x: {shape: [777, 2]}}\nstages:\n"
                 "  - {use: read, path: '%s/tests/data/sound/vorbis.npy', out: x}\n"
                 "  - {use: write, path: good.ogg, sample_rate: 8000, in: x}\n"
                 "  - {name: w, use: write, path: small.ogg, quality: 1, sample_rate: 8000, in: x}\n", io_here));
    io_runs(format("buffers: {x: {shape: [333, 2]}}\nstages:\n  - {use: read, path: good.ogg, out: x}\n"
                 "  - {use: compare, file: '%s/tests/data/sound/vorbis.npy', abs: 0.15}\n", io_here));
    free(pipe_read(io_dir, "good.ogg", &good));
    free(pipe_read(io_dir, "small.ogg", &small));
    ck_assert_uint_gt(good, small + small / 2);
}

/* What a run that failed keeps is a recording. */
TEST_LOOP(a_part, 0, 2)
{
    pipe_text(io_dir, "fail.lua", "function process(f, x, y)\n  if f.index == 3 then error('as it should') end\n"
              "  y:copy(x)\nend\n");
    io_count_npy("in.npy", (gp_type){ GP_I16, 2, { 100, 2 } }, 0);
    const char *name = _i ? "a.flac" : "a.wav";
    io_fails(format("buffers: {x: {dtype: i16, shape: [10, 2]}}\nstages:\n  - {use: read, path: in.npy, out: x}\n"
                  "  - {use: lua, script: fail.lua}\n  - {use: write, path: %s, sample_rate: 8000}\n", name), 1,
                      "as it should");
    ck_assert_uint_eq(io_runs(format("buffers: {x: {shape: [10, 2]}}\nstages:\n"
                                   "  - {use: read, path: %s.partial, format: %s, out: x}\n"
                                   "  - {use: write, path: b.npy}\n", name, name + 2)), 3);
    io_counts("b.npy", (gp_type){ GP_I16, 2, { 30, 2 } }, 0);
}

static const char *const full[] = { "a.wav", "a.flac", "a%d.wav", "a.ogg" };

/* A file that cannot grow: the frame is named, and what came before is kept whole. */
TEST_EACH(no_room, full)
{
    const char *dtype = strstr(full[_i], "ogg") ? "f32" : "i16";
    pipe_result r = io_go_limited(format("buffers: {x: {dtype: %s, shape: [1000, 2]}}\nstages:\n"
                               "  - {use: generate, pattern: noise, amplitude: %s, frames: 200, out: x}\n"
                               "  - {use: write, path: '%s', sample_rate: 8000}\n", dtype,
                               strstr(dtype, "f") ? "0.5" : "20000", full[_i]), strchr(full[_i], '%') ? 1000 : 20000);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(strstr(io_error(&r), "cannot be written: File too large") && strstr(io_error(&r), "frame"), "%s",
                  io_error(&r));
    if (!strcmp(full[_i], "a.wav"))
        ck_assert_uint_eq(io_runs("buffers: {x: {dtype: i16, shape: [1000, 2]}}\nstages:\n"
                                  "  - {use: read, path: a.wav.partial, format: wav, out: x}\n" DISCARD), 4);
    ck_assert(access(io_at("a.wav"), F_OK));
}

/* A header counts in 32 bits: more is refused before anything is written. */
TEST(four_gigabytes)
{
    char why[GP_WHY];
    FILE *f = fopen(io_at("a.wav"), "wb");
    ck_assert_ptr_nonnull(f);
    gp_type t = { GP_I16, 2, { 100, 2 } };
    gp_rows_out *o = gp_wav.create(fileno(f), &(gp_rowsfile_how){ .format = gp_filetype_of("a.wav"),
                                                                  .sample_rate = 8000 }, &t, "a.wav", why);
    ck_assert_ptr_nonnull(o);
    ck_assert(!gp_wav.append(o, "", (int64_t)1 << 30, why));
    ck_assert_msg(strstr(why, "would be larger than 4 GiB, the most that WAV holds: name it .rf64"), "%s", why);
    ck_assert(gp_wav.append(o, "abcd", 1, why));
    ck_assert(gp_wav.finish(o, why));
    fclose(f);
}

/* ---- broken, refused ------------------------------------------------- */

static const struct { const char *file; size_t bytes; int code; const char *said; } cut[] = {
    { "i16.wav", 0, 3, "is not a recording that gpipe reads" },   { "i16.wav", 11, 3, "is not a recording" },
    { "i16.wav", 40, 3, "is not a recording" },
    { "i16.wav", 44, 3, "says 1200 bytes of data, 0 are there" },
    { "i16.wav", 1243, 3, "says 1200 bytes of data, 1199 are" },  { "wide.rf64", 1000, 3, "is cut off" },
    { "big.aiff", 1000, 3, "is cut off" },                        { "five.flac", 2000, 1, "is cut off or damaged" },
    { "five.flac", 20, 3, "is not a recording" },                 { "vorbis.ogg", 6000, 3, "is cut off" },
    { "vorbis.ogg", 4500, 3, "is cut off" },                      { "vorbis.ogg", 2830, 3, "is cut off: its last page" },
    { "vorbis.ogg", 100, 3, "is not a recording" },
};

TEST_EACH(cut_off, cut)
{
    size_t n;
    OWNED char *all = pipe_read("tests/data/sound", cut[_i].file, &n);
    const char *as = strrchr(cut[_i].file, '.');
    pipe_file(io_dir, format("a%s", as), all, cut[_i].bytes);
    io_fails(format("buffers: {x: {shape: [100, %d]}}\nstages:\n  - {use: read, path: a%s, strict: true, out: x}\n" DISCARD,
                  strstr(as, "flac") ? 5 : 2, as), cut[_i].code, cut[_i].said);
}

/* The header has this size of the data, and the file so many bytes: all rows that are there are read, with a
 * warning. */
#define CHUNKS "LIST\5\0\0\0INFOx\0id3 \2\0\0\0ab"
static const struct { const char *file; uint32_t says; size_t bytes; int rows; const char *said, *behind; } sizes[] = {
    { "i16.wav", 1200, 1243, 299, "a.wav' is cut off: its header says 1200 bytes of data, 1199 are there", NULL },
    { "i16.wav", 1200, 848, 201, "a.wav' is cut off: its header says 1200 bytes of data, 804 are there", NULL },
    { "i16.wav", 4000, 1244, 300, "a.wav' is cut off: its header says 4000 bytes of data, 1200 are there", NULL },
    { "i16.wav", 0, 1244, 300, "a.wav' says that it holds no data, and 1200 bytes follow: it was never finished", NULL },
    { "i16.wav", UINT32_MAX, 1244, 300, NULL, NULL },
    { "i16.wav", 0, 1244, 300, "a.wav' says that it holds no data, and 1200 bytes follow: it was never finished", CHUNKS },
    { "i16.wav", UINT32_MAX, 1244, 300, NULL, CHUNKS },
    { "i16.wav", 0x7ffff000, 1244, 300, NULL, CHUNKS },
};

TEST_EACH(wrong_sizes, sizes)
{
    size_t n, made, whole;
    char *all = pipe_read("tests/data/sound", sizes[_i].file, &n), y[700];
    memcpy(all + 40, &sizes[_i].says, 4);
    size_t behind = sizes[_i].behind ? sizeof CHUNKS - 1 : 0;
    all = realloc(all, n + behind);
    memcpy(all + sizes[_i].bytes, sizes[_i].behind ? sizes[_i].behind : "", behind);
    pipe_file(io_dir, "a.wav", all, sizes[_i].bytes + behind);
    for (int strict = 0; strict < 2; strict++) {
        TEXT(y, "buffers: {x: {shape: [100, 2]}}\nstages:\n  - {use: read, path: a.wav, strict: %s, out: x}\n"
             "  - {use: write, path: a.raw}\n", strict ? "true" : "false");
        if (strict && sizes[_i].said) {
            io_fails(y, 3, sizes[_i].said);
            continue;
        }
        pipe_result r = io_done(y);
        ck_assert_uint_eq(r.account[0].faulty, sizes[_i].said ? 3 : 0);          /* each frame of such a file */
        ck_assert_msg(!sizes[_i].said || strstr(r.errs.e[0].msg, sizes[_i].said), "%s", r.errs.e[0].msg);
        OWNED char *raw = pipe_read(io_dir, "a.raw", &made), *npy = pipe_read("tests/data/sound", "i16.npy", &whole);
        ck_assert_uint_eq(made, 4 * (size_t)sizes[_i].rows);
        ck_assert_mem_eq(raw, npy + whole - 1200, made);
    }
    free(all);
}

/* What is coded in blocks is not read where a part is missing. */
TEST(cut_adpcm)
{
    static const char head[] = "RIFF\x7c\0\0\0WAVEfmt \x14\0\0\0\x11\0\1\0\x40\x1f\0\0\x50\x11\0\0\x24\0\4\0\2\0\x41\0"
                               "fact\4\0\0\0\x82\0\0\0data\x48\0\0\0";
    static const char run[] = "buffers: {x: {shape: [65]}}\nstages:\n  - {use: read, path: a.wav, out: x}\n" DISCARD;
    char file[sizeof head - 1 + 72] = { 0 };
    memcpy(file, head, sizeof head - 1);
    pipe_file(io_dir, "a.wav", file, sizeof file);
    ck_assert_uint_eq(io_runs(run), 2);
    pipe_file(io_dir, "a.wav", file, sizeof file - 20);
    io_fails(run, 3, "a.wav' is cut off: its header says 72 bytes of data, 52 are there");
}

/* One error, not one for each frame of what is not there. */
TEST(a_flac_that_claims_more)
{
    size_t n;
    char *all = pipe_read("tests/data/sound", "five.flac", &n), said[200];
    all[21] |= 1;                      /* 2^32 rows more, in blocks of 4,096 */
    pipe_file(io_dir, "a.flac", all, n);
    io_fails("buffers: {x: {shape: [100, 5]}}\non_error: drop\nstages:\n  - {use: read, path: a.flac, out: x}\n" DISCARD, 3,
             TEXT(said, "it says that it has 4294967596 rows, for which %zu bytes are too few", n));
    free(all);
}

/* libsndfile stops at damage of such a file without a word. */
TEST(a_flac_of_a_pipe)
{
    io_fails(format("buffers: {x: {shape: [100, 2]}}\nstages:\n  - {use: read, path: '%s/tests/data/sound/piped.flac', "
                     "out: x}\n" DISCARD, io_here), 3, "piped.flac' does not say how long it is, as where it was written to a "
             "pipe: 'flac -d IN.flac -c | flac - -o OUT.flac' or 'ffmpeg -i IN.flac OUT.flac' makes a file that does");
}

/* Nobody could tell damage of what ends with a pipe from its end. */
static const struct { const char *format, *said; } streams[] = {
    { "flac", "other formats need a file; or let a program make raw data of it, whose failure is told: 'command: [flac, -dcs, "
      "--force-raw-format, --endian=little, --sign=signed, FILE]'" },
    { "mp3", "whose failure is told: 'command: [ffmpeg, -v, error, -xerror, -i, FILE, -f, f32le, '-']'" },
};

TEST_EACH(a_stream, streams)
{
    io_fails(format("buffers: {x: {dtype: i16, shape: [100, 2]}}\nstages:\n  - {use: read, path: stdin, format: %s, out: x}\n"
                  DISCARD, streams[_i].format), 3, streams[_i].said);
}

/* An MP3 says how much there is, or is refused: libsndfile would guess, and leave out what is behind. */
TEST(an_mp3_that_is_not_whole)
{
    static const char run[] = "buffers: {x: {shape: [100, 2]}}\nstages:\n  - {use: read, path: a.mp3, out: x}\n" DISCARD;
    size_t n;
    if (!io_has_mp3())
        return;
    OWNED char *all = pipe_read("tests/data/sound", "layer3.mp3", &n), *twice = malloc(2 * n);
    pipe_file(io_dir, "a.mp3", all, n - 1);
    io_fails(run, 3, "is cut off: its header says ");
    memcpy(twice, all, n), memcpy(twice + n, all, n);
    pipe_file(io_dir, "a.mp3", twice, 2 * n);
    io_fails(run, 3, " bytes that its header says: it holds several recordings");
    memcpy(memmem(all, n, "Info", 4) ? memmem(all, n, "Info", 4) : memmem(all, n, "Xing", 4), "none", 4);
    pipe_file(io_dir, "a.mp3", all, n);
    io_fails(run, 3, "does not say how long it is: its first frame has no Xing, Info or VBRI header");
}

/* Tags behind an MP3 are none of its samples, and no reason for its library to complain to standard error. */
#define APE_ITEM "\1\0\0\0\0\0\0\0a\0b"
#define APE(is) "APETAGEX\xd0\7\0\0\x2b\0\0\0\1\0\0\0\0\0\0" is "\0\0\0\0\0\0\0\0"
#define ID3V1 "TAG012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789" \
              "01234567890123456789012345678901234"
static const struct { const char *name, *tag; size_t n; } tags[] = {
#define T(name, tag) { name, tag, sizeof tag - 1 }
    T("none", ""), T("ID3v1", ID3V1), T("APE", APE("\xa0") APE_ITEM APE("\x80")),
    T("APE, ID3v1", APE("\xa0") APE_ITEM APE("\x80") ID3V1), T("ID3v2", "ID3\4\0\x10\0\0\0\4abcd" "3DI\4\0\x10\0\0\0\4"),
    T("others", "LYRICSBEGIN and so on"),
};

TEST_EACH(tags_behind, tags)
{
    size_t n, plain, made, told;
    if (!io_has_mp3())
        return;
    char *all = pipe_read("tests/data/sound", "layer3.mp3", &n);
    ck_assert_uint_eq(sizeof ID3V1 - 1, 128);
    pipe_file(io_dir, "a.mp3", all, n);
    all = realloc(all, n + tags[_i].n + 1);
    memcpy(all + n, tags[_i].tag, tags[_i].n);
    pipe_file(io_dir, "b.mp3", all, n + tags[_i].n);
    int old = dup(2);
    ck_assert_ptr_nonnull(freopen(io_at("told"), "w", stderr));
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(io_runs(format("buffers: {x: {shape: [100, 2]}}\nstages:\n  - {use: read, path: %c.mp3, out: x}\n"
                                       "  - {use: write, path: %c.raw}\n", 'a' + i, 'a' + i)), 30);
    fflush(stderr);
    dup2(old, 2), close(old);
    OWNED char *a = pipe_read(io_dir, "a.raw", &plain), *b = pipe_read(io_dir, "b.raw", &made);
    OWNED char *said = pipe_read(io_dir, "told", &told);
    ck_assert(plain == made && !memcmp(a, b, made));
    ck_assert_msg(!told, "%s: '%s'", tags[_i].name, said);
    free(all);
}

/* Any bytes instead of some: an error or other samples, no crash. */
TEST_LOOP(damaged, 0, 8)
{
    size_t n;
    unsigned seed = 1;
    static const char *const which[] = { "i24.wav", "five.flac", "vorbis.ogg", "float.aiff", "wide.rf64",
                                         "layer3.mp3", "coded.opus", "piped.flac" };
    OWNED char *all = pipe_read("tests/data/sound", which[_i], &n), *bad = malloc(n);
    for (int k = 0; k < 60; k++) {
        memcpy(bad, all, n);
        for (int i = 0; i < 4; i++)
            bad[(unsigned)rand_r(&seed) % (i < 2 ? 100 : n)] = (char)rand_r(&seed);
        pipe_file(io_dir, "a.wav", bad, n);
        pipe_result r = io_go(format("buffers: {x: {dtype: f64, shape: [100, %d]}}\non_error: drop\nstages:\n"
                                   "  - {use: read, path: a.wav, out: x, frames: 100}\n" DISCARD,
                                   _i == 1 ? 5 : _i == 6 ? 1 : 2));
        ck_assert(r.outcome == GP_DONE || r.errs.failed);
    }
}

/* Of an Ogg file every byte is in some checksum, and pages are counted: libsndfile goes on behind what is wrong. */
TEST(an_ogg_that_is_not_whole)
{
    static const char run[] = "buffers: {x: {shape: [100, 2]}}\nstages:\n  - {use: read, path: a.ogg, out: x}\n" DISCARD;
    enum { PAGE_2 = 58, PAGE_3 = 2830 };
    size_t n;
    OWNED char *all = pipe_read("tests/data/sound", "vorbis.ogg", &n), *twice = malloc(2 * n);
    for (size_t at = PAGE_2; at < n; at += 61) {
        all[at] ^= 4;
        pipe_file(io_dir, "a.ogg", all, n);
        pipe_result r = io_go(run);
        ck_assert_msg(r.outcome == GP_ERROR, "byte %zu", at);
        all[at] ^= 4;
    }
    memcpy(twice, all, n), memcpy(twice + n, all, n);
    pipe_file(io_dir, "a.ogg", twice, 2 * n);
    io_fails(run, 3, "holds several recordings");
    memmove(twice + PAGE_2, all + PAGE_3, n - PAGE_3);
    pipe_file(io_dir, "a.ogg", twice, n - PAGE_3 + PAGE_2);
    pipe_result r = io_go(run);
    ck_assert_int_eq(r.outcome, GP_ERROR);
}

/* One damaged place costs the frames that it is in, the same ones for any number of workers. */
TEST(a_flac_that_is_damaged)
{
    size_t n, have[2];
    char *all = pipe_read("tests/data/sound", "five.flac", &n), y[400], *made[2];
    all[n / 2] ^= 4;
    pipe_file(io_dir, "a.flac", all, n);
    for (int k = 0; k < 2; k++) {
        pipe_result r = io_done(TEXT(y, "buffers: {x: {shape: [10, 5]}}\non_error: drop\nstages:\n"
                                   "  - {use: read, path: a.flac, workers: %d, out: x}\n  - {use: write, path: a.raw}\n", 1 + 2 * k));
        ck_assert_uint_gt(r.account[0].failed, 0);
        made[k] = pipe_read(io_dir, "a.raw", &have[k]);
    }
    ck_assert_uint_eq(have[0], have[1]);
    ck_assert_mem_eq(made[0], made[1], have[0]);
    free(all), free(made[0]), free(made[1]);
}

/* What a recorder leaves that was killed; what stands before the first byte. */
TEST(unfinished)
{
    io_fails("buffers: {x: {dtype: i16, shape: [4]}}\nstages:\n  - {use: generate, frames: 3, out: x}\n"
             "  - {use: lua, script: none.lua}\n  - {use: write, path: a.flac, sample_rate: 8000}\n", 1,
             "a FLAC file has rows, and there were none");
}

#define SOUND(file) "'%s/tests/data/sound/" file "'"
static const struct { const char *text; int code; const char *said; } refused[] = {
    { "stages:\n  - {use: read, path: " SOUND("i16.wav") "}\n" DISCARD, 3,
      "holds i16 [300, 2]: how many rows make a frame? declare the shape of the output under 'buffers:', for instance "
      "shape: [4096, 2]" },
    { "stages:\n  - {use: read, path: " SOUND("mono.wav") "}\n" DISCARD, 3, "for instance shape: [4096]" },
    { "buffers: {x: {dtype: u8, shape: [10, 2]}}\nstages:\n"
      "  - {use: read, path: " SOUND("i16.wav") ", out: x}\n" DISCARD,
      3,
      "holds i16, and 'buffers' declares u8: recordings are read as i16, i32, f32 or f64" },
    { "buffers: {x: {dtype: i16, shape: [10, 2]}}\nstages:\n"
      "  - {use: read, path: " SOUND("i24.wav") ", out: x}\n" DISCARD,
      3,
      "holds samples of 24 or 32 bits, of which i16 has not all bits: declare i32" },
    { "buffers: {x: {dtype: i32, shape: [10, 2]}}\nstages:\n"
      "  - {use: read, path: " SOUND("f32.wav") ", out: x}\n" DISCARD,
      3,
      "holds floats, of which i32 has not all bits: declare f32" },
    { "buffers: {x: {shape: [10, 3]}}\nstages:\n  - {use: read, path: " SOUND("i16.wav") ", out: x}\n" DISCARD, 3,
      "holds i16 [300, 2], which cannot be cut into frames of i16 [10, 3]" },
    { "buffers: {x: {shape: [10, 2]}}\nstages:\n  - {use: read, path: " SOUND("i16.wav") ", sample_rate: 44100, out: "
      "x}\n"
      DISCARD, 3, "has a sample rate of 8000 Hz, not 44100" },
    { "buffers: {x: {shape: [10, 2]}}\nstages:\n  - {use: read, path: " SOUND("i16.wav") ", format: flac, out: "
      "x}\n" DISCARD, 3,
      "is not a FLAC file" },
    { "buffers: {x: {shape: [10, 2]}}\nstages:\n  - {use: read, path: " SOUND("i16.wav") ", tail: ignore, out: "
      "x}\n" DISCARD, 3,
      "'tail' is only for raw and .npy" },
    { "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n  - {use: generate, out: x}\n  - {use: write, path: a.wav, "
      "sample_rate: 8000}\n# %s", 3, "WAV and AIFF hold i16, i32, f32 or f64: put a 'cast'" },
    { "buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n  - {use: generate, out: x}\n  - {use: write, path: a.flac, "
      "sample_rate: 8000}\n# %s", 3, "FLAC holds i16, or i32 of 24 bits: for floats in [-1, 1) put" },
    { "buffers: {x: {dtype: i16, shape: [4, 9]}}\nstages:\n  - {use: generate, out: x}\n  - {use: write, path: a.flac, "
      "sample_rate: 8000}\n# %s", 3, "of 8 channels at most" },
    { "buffers: {x: {dtype: i16, shape: [4]}}\nstages:\n  - {use: generate, out: x}\n  - {use: write, path: a.ogg, "
      "sample_rate: 8000}\n# %s", 3, "Ogg/Vorbis holds f32" },
    { "buffers: {x: {dtype: i16, shape: [4, 2, 2]}}\nstages:\n  - {use: generate, out: x}\n  - {use: write, path: "
      "a.wav, sample_rate: 8000}\n# %s", 3, "recordings have frames of shape [rows] or [rows, channels]" },
    { "buffers: {x: {dtype: i16, shape: [4]}}\nstages:\n  - {use: generate, out: x}\n  - {use: write, path: a.wav}\n# "
      "%s", 3,
      "set 'sample_rate'" },
    { "buffers: {x: {dtype: i16, shape: [4]}}\nstages:\n  - {use: generate, out: x}\n  - {use: write, path: a.raw, "
      "sample_rate: 8000}\n# %s", 3, "'sample_rate' has no effect on a file that is not a recording" },
    { "buffers: {x: {dtype: i16, shape: [4]}}\nstages:\n  - {use: generate, out: x}\n  - {use: write, path: a.wav, "
      "sample_rate: 8000, live: true}\n# %s", 3, "'live' has no effect on a recording" },
    { "buffers: {x: {dtype: i16, shape: [4]}}\nstages:\n  - {use: generate, out: x}\n  - {use: write, path: stdout, "
      "format: wav, sample_rate: 8000}\n# %s", 3, "only raw data, npy, text and y4m can be written to stdout" },
    { "buffers: {x: {dtype: i32, shape: [4]}}\nstages:\n  - {use: generate, pattern: constant, value: 3, frames: 1, "
      "out: x}\n"
      "  - {use: write, path: a.flac, sample_rate: 8000}\n# %s", 1, "frame 0: '" },
    { "buffers: {x: {dtype: i16, shape: [4]}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
      "  - {use: write, path: /dev/null, format: wav, sample_rate: 8000}\n# %s", 1, "is not a regular file" },
    { "buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
      "  - {use: write, path: a.ogg, sample_rate: 999999999}\n# %s", 1, "a.ogg' cannot be written: libsndfile says '" },
    { "buffers: {x: {dtype: i16, shape: [4]}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
      "  - {use: write, path: a.flac, sample_rate: 999999999}\n# %s", 1,
          "a.flac' cannot be written: libsndfile says '" },
};

TEST_EACH(refuses, refused)
{
    io_fails(format(refused[_i].text, io_here), refused[_i].code, refused[_i].said);
}

/* An empty recording has no frames; one that is gone among others costs one. */
TEST(empty)
{
    ck_assert_uint_eq(io_runs(format("buffers: {x: {shape: [10, 2]}}\nstages:\n  - {use: read, path: "
                                   SOUND("empty.wav")
                                   ", out: x}\n" DISCARD, io_here)), 0);
    io_link("sound/i16.wav", "a.wav");
    pipe_text(io_dir, "b.wav", "no recording");
    io_link("sound/chunks.wav", "c.wav");
    pipe_result r = io_done("buffers: {x: {shape: [100, 2]}}\non_error: drop\nstages:\n"
                          "  - {use: read, path: '?.wav', workers: 3, out: x}\n" DISCARD);
    ck_assert_uint_eq(r.account[0].in, 7);
    ck_assert_uint_eq(r.account[0].out, 6);
}

TEST_SUITE(sound, set_up, NULL, 0)
