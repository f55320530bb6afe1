/* test_y4m.c - video as .y4m: every subsampling and depth, in and out, as a file and as a stream; odd sizes; what is
 * cut off, damaged, or says what cannot be. */
#include <sys/stat.h>
#include "iotest.h"

#define DISCARD "  - {use: discard}\n"

/* ---- files of each kind ---------------------------------------------- */

/* `bytes` of a frame that is declared so; how `write` is told. */
static const struct { const char *space, *declared, *options, *written; int w, h, bytes; } kinds[] = {
    { " C420jpeg", "u8, shape: [6, 6]", "", "C420jpeg", 6, 4, 36 },
    { "", "u8, shape: [6, 6]", "", "C420jpeg", 6, 4, 36 },
    { " C420", "u8, shape: [3, 2]", ", siting: none", "C420", 2, 2, 6 },
    { " C420mpeg2 XYSCSS=420MPEG2", "u8, shape: [9, 2]", ", siting: mpeg2", "C420mpeg2", 2, 6, 18 },
    { " C420paldv", "u8, shape: [6, 6]", ", siting: paldv", "C420paldv", 6, 4, 36 },
    { " C420p10 XYSCSS=420P10", "u16, shape: [6, 6]", ", bits: 10", "C420p10", 6, 4, 72 },
    { " C420p12", "u16, shape: [6, 6]", ", bits: 12, subsampling: 4:2:0", "C420p12", 6, 4, 72 },
    { " C420p14", "u16, shape: [6, 6]", ", bits: 14", "C420p14", 6, 4, 72 },
    { " C420p16", "u16, shape: [6, 6]", "", "C420p16", 6, 4, 72 },
    { " C422", "u8, shape: [10, 4]", ", subsampling: 4:2:2", "C422", 4, 5, 40 },
    { " C422p10", "u16, shape: [10, 4]", ", subsampling: 4:2:2, bits: 10", "C422p10", 4, 5, 80 },
    { " C444", "u8, shape: [3, 5, 3]", "", "C444", 3, 5, 45 },
    { " C444p9", "u16, shape: [3, 5, 3]", ", bits: 9, subsampling: 4:4:4", "C444p9", 3, 5, 90 },
    { " Cmono", "u8, shape: [3, 5]", ", subsampling: mono", "Cmono", 5, 3, 15 },
    { " Cmono9", "u16, shape: [3, 5]", ", subsampling: mono, bits: 9", "Cmono9", 5, 3, 30 },
    { " Cmono16", "u16, shape: [1, 1]", ", subsampling: mono", "Cmono16", 1, 1, 2 },
};
enum { KINDS = sizeof kinds / sizeof *kinds, FRAMES = 5 };

static size_t put(char *to, const char *text)
{
    return (size_t)(stpcpy(to, text) - to);
}

/* Frames of bytes that count up; `line`: what stands before every second one. */
static size_t make_file(char *to, const char *header, const char *line, int bytes)
{
    size_t n = put(to, header);
    for (int i = 0; i < FRAMES; i++) {
        n += put(to + n, i % 2 ? line : "FRAME\n");
        for (int k = 0; k < bytes; k++)
            to[n++] = (char)(i * bytes + k);
    }
    return n;
}

static void kind_file(int k, const char *line)
{
    char file[2000];
    char *header = format("YUV4MPEG2 W%d H%d F30000:1001 Ip A16:11%s\n", kinds[k].w, kinds[k].h, kinds[k].space);
    pipe_file(io_dir, "a.y4m", file, make_file(file, header, line, kinds[k].bytes));
}

static void is_kind_file(const char *name, int k)
{
    char file[2000];
    char *header = format("YUV4MPEG2 W%d H%d F30000:1001 Ip A16:11 %s\n", kinds[k].w, kinds[k].h, kinds[k].written);
    io_holds(name, file, make_file(file, header, "FRAME\n", kinds[k].bytes));
}

#define RATE "frame_rate: 30000/1001, pixel_aspect: 16:11"

TEST_LOOP(there_and_back, 0, KINDS)
{
    char raw[1000];
    kind_file(_i, "FRAME Ip Xone\n");
    ck_assert_uint_eq(io_runs(format("buffers: {p: {dtype: %s}}\nstages:\n  - {use: read, path: a.y4m, out: p}\n"
        "  - {use: write, path: b.y4m, " RATE "%s}\n  - {name: l, use: write, path: c.y4m, live: true, " RATE "%s, in: p}\n"
        "  - {name: r, use: write, path: a.raw, in: p}\n", kinds[_i].declared, kinds[_i].options, kinds[_i].options)),
        FRAMES);
    is_kind_file("b.y4m", _i);
    is_kind_file("c.y4m", _i);
    for (int k = 0; k < FRAMES * kinds[_i].bytes; k++)
        raw[k] = (char)k;
    io_holds("a.raw", raw, (size_t)(FRAMES * kinds[_i].bytes));
    io_runs(format("stages:\n  - {use: read, path: a.y4m, workers: 3}\n  - {use: write, path: d.y4m, " RATE "%s}\n",
                 kinds[_i].options));
    is_kind_file("d.y4m", _i);
}

/* The same through a FIFO and through processes. */
TEST_LOOP(as_a_stream, 0, KINDS)
{
    char *path = io_at("f.y4m");
    kind_file(_i, "FRAME XSOMETHING=1\n");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(system(format("cat '%s/a.y4m' >'%s' &", io_dir, path)), 0);
    io_runs(format("buffers: {p: {dtype: %s}}\nstages:\n  - {use: read, path: f.y4m, out: p}\n"
                 "  - {use: write, command: [sh, -c, 'cat >b.y4m'], format: y4m, " RATE "%s}\n", kinds[_i].declared,
                 kinds[_i].options));
    is_kind_file("b.y4m", _i);
    io_runs(format("buffers: {p: {dtype: %s}}\nstages:\n  - {use: read, command: [cat, a.y4m], format: y4m, out: p}\n"
                 "  - {use: write, path: c.y4m, " RATE "%s}\n", kinds[_i].declared, kinds[_i].options));
    is_kind_file("c.y4m", _i);
}

/* One file a frame, each with a header; all of them again as frames one after the other. */
TEST(numbered)
{
    kind_file(0, "FRAME\n");
    io_runs("stages:\n  - {use: read, path: a.y4m}\n  - {use: write, path: 'n/%d.y4m', " RATE ", workers: 2}\n");
    ck_assert_int_eq(io_files("n"), FRAMES);
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: 'n/*.y4m'}\n  - {use: write, path: b.y4m, " RATE "}\n"),
                      FRAMES);
    is_kind_file("b.y4m", 0);
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: 'n/*.y4m', loop: true, frames: 12}\n" DISCARD), 12);
}

static const struct { const char *rate, *says; } rates[] = {
    { "25", "F25:1" }, { "12.5", "F25:2" }, { "30000:1001", "F30000:1001" }, { "0.1", "F1:10" }, { "60.00", "F60:1" },
};

/* The rate, as it may be spelled; no frame at all; an aspect that is not said. */
TEST_EACH(heads, rates)
{
    pipe_text(io_dir, "none.raw", "");
    io_runs(format("buffers: {p: {dtype: u8, shape: [3, 2]}}\nstages:\n  - {use: read, path: none.raw, out: p}\n"
                 "  - {use: write, path: b.y4m, frame_rate: %s, pixel_aspect: 0:0}\n", rates[_i].rate));
    char *header = format("YUV4MPEG2 W2 H2 %s Ip A0:0 C420jpeg\n", rates[_i].says);
    io_holds("b.y4m", header, strlen(header));
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: b.y4m}\n" DISCARD), 0);
}

/* The range that a header says, as files, streams and options have it. */
static const struct { const char *said, *option, *wrong; } ranges[] = {
    { "", "", NULL },
    { " XCOLORRANGE=LIMITED", "", NULL },
    { " XCOLORRANGE=FULL", "", "has values of the full range (XCOLORRANGE=FULL), not 16 to 235: set 'range: full' for" },
    { " Cmono XCOLORRANGE=FULL", "", NULL },
    { " Cmono XCOLORRANGE=FULL", ", range: limited", "says that its range is full (XCOLORRANGE=FULL), and 'range'" },
    { "", ", range: full", NULL },
    { " XCOLORRANGE=FULL", ", range: full", NULL },
    { " XCOLORRANGE=LIMITED", ", range: full", "says that its range is limited (XCOLORRANGE=LIMITED), and 'range'" },
    { " XYSCSS=420 XCOLORRANGE=OTHER", ", range: limited", NULL },
};

TEST_EACH(range, ranges)
{
    bool mono = strstr(ranges[_i].said, "mono");
    pipe_text(io_dir, "a.y4m", format("YUV4MPEG2 W2 H2 F25:1%s\nFRAME\n%s", ranges[_i].said, mono ? "abcd" : "abcdef"));
    for (int stream = 0; stream < 2; stream++) {
        char *y = format("buffers: {p: {dtype: u8, shape: [%d, 2]}}\nstages:\n  - {use: read, %s, out: p%s}\n"
            "  - {use: write, path: a.raw}\n", mono ? 2 : 3, stream ? "command: [cat, a.y4m], format: y4m" : "path: a.y4m",
            ranges[_i].option);
        if (ranges[_i].wrong)
            io_fails(y, stream ? 1 : 3, ranges[_i].wrong);
        else
            ck_assert_uint_eq(io_runs(y), 1);
    }
}

TEST(range_is_written)
{
    static const char *const words[] = { "none", "limited", "full" }, *const says[] = { "", "LIMITED", "FULL" };
    for (int i = 0; i < 3; i++) {
        io_runs(format("buffers: {p: {dtype: u8, shape: [3, 2]}}\nstages:\n"
                     "  - {use: generate, frames: 1, pattern: constant, value: 97, out: p}\n"
                     "  - {use: write, path: a.y4m, frame_rate: 25, range: %s}\n", words[i]));
        char *file = format("YUV4MPEG2 W2 H2 F25:1 Ip A1:1 C420jpeg%s%s\nFRAME\naaaaaa", i ? " XCOLORRANGE=" : "", says[i]);
        io_holds("a.y4m", file, strlen(file));
    }
}

/* ---- what cannot be read --------------------------------------------- */

#define LONG "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX"
static const struct { const char *header, *text; } wrong[] = {
    { "", "is not a YUV4MPEG2 stream" },
    { "RIFF W2 H2\n", "is not a YUV4MPEG2 stream" },
    { "YUV4MPEG W2 H2\n", "is not a YUV4MPEG2 stream" },
    { "YUV4MPEG2W2 H2\n", "is not a YUV4MPEG2 stream" },
    { "YUV4MPEG2 H2\n", "does not say its width" },
    { "YUV4MPEG2 W2 F1:1\n", "does not say its height" },
    { "YUV4MPEG2 W0 H2\n", "has '0' for its width, not 1 to 1048576" },
    { "YUV4MPEG2 W2 H-2\n", "has '-2' for its height" },
    { "YUV4MPEG2 W1048578 H2\n", "has '1048578' for its width" },
    { "YUV4MPEG2 W99999999999999999999 H2\n", "for its width, not 1 to 1048576" },
    { "YUV4MPEG2 W2 H2x C444\n", "has '2x' for its height" },
    { "YUV4MPEG2 W2 H2 C411\n", "has the color space '411'" },
    { "YUV4MPEG2 W2 H2 C444alpha\n", "has the color space '444alpha'" },
    { "YUV4MPEG2 W2 H2 C420p7\n", "has the color space '420p7'" },
    { "YUV4MPEG2 W2 H2 C420p17\n", "has the color space '420p17'" },
    { "YUV4MPEG2 W2 H2 C\n", "has the color space ''" },
    { "YUV4MPEG2 W2 H2 It\n", "is interlaced ('It')" },
    { "YUV4MPEG2 W3 H2\n", "is 3 x 2, 4:2:0: the planes of such a frame make no array where the width is odd" },
    { "YUV4MPEG2 W2 H3\n", "where the height is odd" },
    { "YUV4MPEG2 W3 H3 C422\n", "where the width is odd" },
    { "YUV4MPEG2 W2 H2" , "is cut off in it" },
    { "YUV4MPEG2 W2 H2 " LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG "\n", "a header of more than 1024 bytes" },
};

TEST_EACH(wrong_header, wrong)
{
    pipe_text(io_dir, "a.y4m", wrong[_i].header);
    io_fails("stages:\n  - {use: read, path: a.y4m}\n" DISCARD, 3, wrong[_i].text);
    io_fails("stages:\n  - {use: read, path: a.y4m}\n" DISCARD, 3, format("'%s/a.y4m' ", io_dir));
}

#define HEADER "YUV4MPEG2 W2 H2 F25:1\n"
#define FRAME(x) "FRAME\n" x x x x x x
#define FOUR "buffers: {p: {dtype: u8, shape: [3, 2]}}\nstages:\n"

/* Frames that are cut off or have no line: `good` of them can be read before. */
static const struct { const char *file; int good; const char *text, *stream; } cut[] = {
    { HEADER FRAME("a") "FRAME\nbbbbb", 1, "is cut off in its frame 1, which has 5 of 6 bytes",
      "ends within the frame, which has 5 of 6 bytes" },
    { HEADER FRAME("a") FRAME("b") "FRAME\n", 2, "is cut off in its frame 2, which has 0 of 6 bytes",
      "ends within the frame, which has 0 of 6 bytes" },
    { HEADER FRAME("a") "FRA", 1, "has no line 'FRAME' at byte 34, where its frame 1 begins", "has no line 'FRAME'" },
    { HEADER "frame\naaaaaa", 0, "has no line 'FRAME' at byte 22", "has no line 'FRAME'" },
    { HEADER FRAME("a") "x" FRAME("b"), 1, "has no line 'FRAME' at byte 34", "has no line 'FRAME'" },
    { HEADER FRAME("a") "FRAME Ixxxx", 1, "has no line 'FRAME' at byte 34", "has no line 'FRAME'" },
    { HEADER FRAME("a") "FRAMES\nbbbbbb", 1, "has no line 'FRAME' at byte 34", "has no line 'FRAME'" },
};

TEST_EACH(cut_off, cut)
{
    char y[300];
    pipe_text(io_dir, "a.y4m", cut[_i].file);
    io_fails("stages:\n  - {use: read, path: a.y4m}\n" DISCARD, 1, cut[_i].text);
    io_fails("stages:\n  - {use: read, path: a.y4m}\n" DISCARD, 1, format("frame %d: '", cut[_i].good));
    pipe_result r = io_go("on_error: drop\nstages:\n  - {use: read, path: a.y4m}\n" DISCARD);
    ck_assert_uint_eq(r.account[0].out, (unsigned)cut[_i].good);
    ck_assert_uint_eq(r.account[0].failed, 1);
    TEXT(y, FOUR "  - {use: read, command: [cat, a.y4m], format: y4m, out: p}\n" DISCARD);
    io_fails(y, 1, format("frame %d: 'cat' %s", cut[_i].good, cut[_i].stream));
    r = io_go(TEXT(y, "on_error: drop\n" FOUR "  - {use: read, command: [cat, a.y4m], format: y4m, out: p}\n" DISCARD));
    ck_assert_uint_eq(r.account[0].out, (unsigned)cut[_i].good);
    ck_assert_uint_eq(r.account[0].failed, 1);
}

/* What only the run finds: a stream that is another, a file that is another than the first. */
TEST(another)
{
    pipe_text(io_dir, "a.y4m", HEADER FRAME("a"));
    pipe_text(io_dir, "b.y4m", "YUV4MPEG2 W4 H2\nFRAME\n");
    pipe_text(io_dir, "long.y4m", HEADER "FRAME " LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG "\naaaaaa");
    io_fails("stages:\n  - {use: read, path: '*.y4m'}\n" DISCARD, 1, "holds u8 [1, 3, 4], which cannot be cut");
    io_fails(FOUR "  - {use: read, command: [cat, b.y4m], format: y4m, out: p}\n" DISCARD, 1,
             "frame 0: 'cat' has frames of u8 [3, 4] (4 x 2, 4:2:0), and 'buffers' declares u8 [3, 2]");
    io_fails(FOUR "  - {use: read, command: ['true'], format: y4m, out: p}\n" DISCARD, 1, "is not a YUV4MPEG2 stream: it ends");
    io_fails(FOUR "  - {use: read, command: [cat, /dev/zero], format: y4m, out: p}\n" DISCARD, 1,
             "goes on for more than 1024 bytes, without a header");
    io_fails(FOUR "  - {use: read, path: long.y4m, out: p}\n" DISCARD, 1, "has no line 'FRAME' at byte 22");
    io_fails(FOUR "  - {use: read, command: [cat, long.y4m], format: y4m, out: p}\n" DISCARD, 1, "has no line 'FRAME'");
    io_fails("buffers: {p: {dtype: u8, shape: [6, 2]}}\nstages:\n  - {use: read, path: a.y4m, out: p}\n" DISCARD, 3,
             "has frames of u8 [3, 2], and 'buffers' declares u8 [6, 2]");
    io_fails("buffers: {p: {dtype: u16}}\nstages:\n  - {use: read, path: a.y4m, out: p}\n" DISCARD, 3, "holds u8, and");
    io_fails("stages:\n  - {use: read, path: a.y4m, endian: big}\n" DISCARD, 3, "'endian' is only for raw data");
    io_fails("buffers: {p: {dtype: u8, shape: ['<=3', '<=2']}}\nstages:\n  - {use: read, path: a.y4m, out: p}\n" DISCARD, 3,
             "the frames of a video are of one size");
}

/* ---- what cannot be written ------------------------------------------ */

#define MAKE(declared) "buffers: {p: {dtype: " declared "}}\nstages:\n  - {use: generate, frames: 2, out: p}\n"
static const struct { const char *yaml, *text; } unwritable[] = {
    { MAKE("u8, shape: [3, 2]") "  - {use: write, path: a.y4m}\n", "set 'frame_rate', for instance to 25 or 30000/1001" },
    { MAKE("u8, shape: [3, 2]") "  - {use: write, path: a.y4m, frame_rate: 0}\n", "'0' is not a frame rate such as" },
    { MAKE("u8, shape: [3, 2]") "  - {use: write, path: a.y4m, frame_rate: 1/0}\n", "'1/0' is not a frame rate such "
                                        "as" },
    { MAKE("u8, shape: [3, 2]") "  - {use: write, path: a.y4m, frame_rate: 25/}\n", "'25/' is not a frame rate such "
                                        "as" },
    { MAKE("u8, shape: [3, 2]") "  - {use: write, path: a.y4m, frame_rate: ten}\n", "'ten' is not a frame rate such "
                                        "as" },
    { MAKE("u8, shape: [3, 2]") "  - {use: write, path: a.y4m, frame_rate: 25, pixel_aspect: wide}\n", "'wide' is "
                                        "not a ratio such as 1:1" },
    { MAKE("u8, shape: [4, 2]") "  - {use: write, path: a.y4m, frame_rate: 25}\n",
      "cannot hold u8 [4, 2]: 4:2:0 of H rows and W columns, both even, is [3 H / 2, W]" },
    { MAKE("u8, shape: [3, 3]") "  - {use: write, path: a.y4m, frame_rate: 25}\n", "cannot hold u8 [3, 3]" },
    { MAKE("u8, shape: [9, 2]") "  - {use: write, path: a.y4m, frame_rate: 25, subsampling: 4:2:2}\n", "cannot hold u8 [9, 2]" },
    { MAKE("u8, shape: [4, 2, 3]") "  - {use: write, path: a.y4m, frame_rate: 25}\n",
      "cannot hold u8 [4, 2, 3]: 4:4:4 of H rows and W columns is [3, H, W]" },
    { MAKE("u8, shape: [3, 2, 2]") "  - {use: write, path: a.y4m, frame_rate: 25, subsampling: 4:2:0}\n",
      "cannot hold u8 [3, 2, 2]" },
    { MAKE("u8, shape: [7]") "  - {use: write, path: a.y4m, frame_rate: 25, subsampling: mono}\n", "a mono frame is [H, W]" },
    { MAKE("f32, shape: [3, 2]") "  - {use: write, path: a.y4m, frame_rate: 25}\n", "y4m holds u8 or u16" },
    { MAKE("u8, shape: [3, 2]") "  - {use: write, path: a.y4m, frame_rate: 25, bits: 10}\n", "frames of 'in' are u8" },
    { MAKE("u16, shape: [3, 2]") "  - {use: write, path: a.y4m, frame_rate: 25, bits: 8}\n", "frames of 'in' are u16" },
    { MAKE("u8, shape: [3, 2]") "  - {use: write, path: a.y4m, frame_rate: 25, subsampling: mono, siting: mpeg2}\n",
      "'siting' has no effect on a video that is not 4:2:0" },
    { MAKE("u8, shape: [3, 2]") "  - {use: write, path: a.raw, frame_rate: 25}\n", "'frame_rate' has no effect on" },
    { MAKE("u8, shape: [3, 2]") "  - {use: write, path: a.raw, range: full}\n", "'range' has no effect on" },
    { MAKE("u8, shape: [3, 2, 3]") "  - {use: write, path: '%d.jpg', subsampling: mono}\n", "'mono' is for .y4m" },
    { MAKE("u8, shape: [3, 2]") "  - {use: write, path: a.y4m, frame_rate: 25, stack: true}\n", "'stack'" },
};

TEST_EACH(cannot_be_written, unwritable)
{
    io_fails(unwritable[_i].yaml, 3, unwritable[_i].text);
}

/* The last frame of a raw file may lack rows. */
TEST(partial)
{
    io_count_raw("a.raw", 10);
    io_fails("buffers: {p: {dtype: u8, shape: [3, 2]}}\nstages:\n  - {use: read, path: a.raw, out: p}\n"
             "  - {use: write, path: a.y4m, frame_rate: 25}\n", 1, "pictures of one size, and this frame has 2 of 3 rows");
    io_fails("buffers: {p: {dtype: u8, shape: [3, 2]}}\nstages:\n  - {use: read, path: a.raw, out: p}\n"
             "  - {use: write, path: '%d.y4m', frame_rate: 25}\n", 1, "holds a picture of 3 rows, and this frame has 2");
}

TEST_SUITE(y4m, io_set_up, NULL, 0)
