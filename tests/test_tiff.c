/* test_tiff.c - TIFF: what tifffile wrote (tests/data/make_tiffs.py), pages made of bytes io_here, what is written and
 * read again, by any number of workers; broken and refused ones. */
#include <sys/mman.h>
#include "iotest.h"
#include "rows_file.h"

#define DISCARD "  - {use: discard}\n"
#define N(a) (int)(sizeof(a) / sizeof *(a))

/* ---- what tifffile wrote ---------------------------------------------- */

static const struct { const char *name; uint64_t pages; } files[] = {
    { "plain", 5 },    { "big_endian", 2 }, { "bigtiff", 3 },      { "lzw", 2 },     { "deflate", 4 },
    { "floats", 2 },   { "packbits", 2 },   { "zstd", 2 },         { "lzma", 1 },    { "tiles", 2 },
    { "packed_tiles", 2 }, { "planes", 2 }, { "tiled_planes", 2 }, { "jpeg", 1 },    { "imagej", 4 },
    { "ome", 12 },
};

TEST_LOOP(is_read, 0, 2 * N(files))
{
    ck_assert_uint_eq(io_runs(format("stages:\n  - {use: read, path: '%s/tests/data/tiff/%s.tif', workers: %d, out: x}\n"
        "  - {use: compare, file: '%s/tests/data/tiff/%s.npy', abs: %s, in: x}\n", io_here, files[_i / 2].name,
        _i % 2 ? 3 : 1, io_here, files[_i / 2].name, strcmp(files[_i / 2].name, "jpeg") ? "0" : "2")), files[_i / 2].pages);
}

/* In a glob, too, each page is a frame. */
TEST(many_files)
{
    io_link("tiff/plain.tif", "a.tif"), io_link("tiff/plain.tif", "b.tiff"), io_link("tiff/plain.tif", "c.tif");
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: '?.tif*', workers: 3}\n  - {use: write, path: all.npy, stack: "
                              "true}\n"), 15);
    size_t n, k;
    OWNED char *all = pipe_read(io_dir, "all.npy", &n), *one = pipe_read("tests/data/tiff", "plain.npy", &k);
    k -= 128;
    ck_assert_uint_eq(n, 128 + 3 * k);
    for (size_t i = 0; i < 3; i++)
        ck_assert_mem_eq(all + 128 + i * k, one + 128, k);
    /* A frame may have several pages; each file may be one. */
    ck_assert_uint_eq(io_runs("buffers: {x: {shape: [2, 13, 17]}}\nstages:\n  - {use: read, path: a.tif, out: x}\n"
                              "  - {use: write, path: b.npy}\n"), 3);
    ck_assert_uint_eq(io_runs("buffers: {x: {shape: ['<=9', 13, 17]}}\nstages:\n  - {use: read, path: '?.tif*', out: x}\n"
                              DISCARD), 3);
    ck_assert_uint_eq(io_runs(format("stages:\n  - {use: read, path: b.npy}\n"
                                   "  - {use: compare, file: '%s/tests/data/tiff/plain.npy'}\n", io_here)), 5);
}

/* ---- bytes ------------------------------------------------------------ */

typedef struct made { bool big, mm; size_t n, link; unsigned char b[1 << 21]; } made;
typedef struct tag { int tag, type; uint32_t count; uint64_t value[8]; } tag;      /* type 0: it is not there */
enum { BYTE = 1, ASCII, SHORT, LONG, LONG8 = 16 };

static made m;

static void put(size_t at, uint64_t x, int n)
{
    for (int i = 0; i < n; i++)
        m.b[at + (size_t)(m.mm ? n - 1 - i : i)] = (unsigned char)(x >> 8 * i);
}

static void add(uint64_t x, int n)
{
    put(m.n, x, n);
    m.n += (size_t)n;
}

static void begin(bool big, bool mm)
{
    memset(&m, 0, sizeof m);
    m.big = big, m.mm = mm;
    memset(m.b, mm ? 'M' : 'I', 2), m.n = 2;
    add(big ? 43 : 42, 2);
    if (big)
        add(8, 2), add(0, 2);
    m.link = m.n;
    add(0, big ? 8 : 4);
}

/* A directory with these tags, the later of one number; values that have no room lie before it. Its place. */
static size_t add_page(const tag *tags, int n)
{
    int room = m.big ? 8 : 4, count = 0;
    uint64_t at[40];
    m.n += m.n % 2;
    for (int i = 0; i < n; i++) {
        int size = tags[i].type == SHORT ? 2 : tags[i].type == LONG ? 4 : tags[i].type == LONG8 ? 8 : 1;
        at[i] = m.n;
        count += tags[i].type != 0;
        if (tags[i].count * (unsigned)size > (unsigned)room)
            for (unsigned k = 0; k < tags[i].count && k < 8; k++)
                add(tags[i].value[k], size);
    }
    m.n += m.n % 2;
    size_t at_page = m.n;
    put(m.link, at_page, room);
    add((uint64_t)count, m.big ? 8 : 2);
    for (int i = 0; i < n; i++) {
        int size = tags[i].type == SHORT ? 2 : tags[i].type == LONG ? 4 : tags[i].type == LONG8 ? 8 : 1;
        if (!tags[i].type)
            continue;
        add((uint64_t)tags[i].tag, 2), add((uint64_t)tags[i].type, 2), add(tags[i].count, room);
        size_t value = m.n;
        if (tags[i].count * (unsigned)size > (unsigned)room)
            add(at[i], room);
        for (unsigned k = 0; tags[i].count * (unsigned)size <= (unsigned)room && k < tags[i].count; k++)
            add(tags[i].value[k], size);
        m.n = value + (size_t)room;
    }
    m.link = m.n;
    add(0, room);
    return at_page;
}

/* Two rows of three u8, first, first + 1, ..., with other tags in place of these, or in addition. */
static size_t page(int first, const tag *more, int n)
{
    tag all[40] = {
        { 256, SHORT, 1, { 3 } }, { 257, SHORT, 1, { 2 } },    { 258, SHORT, 1, { 8 } }, { 259, SHORT, 1, { 1 } },
        { 262, SHORT, 1, { 1 } }, { 273, LONG, 1, { m.n } },   { 277, SHORT, 1, { 1 } }, { 278, SHORT, 1, { 2 } },
        { 279, LONG, 1, { 6 } },
    };
    int count = 9;
    for (int i = 0; i < 6; i++)
        add((unsigned)(first + i), 1);
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < count && all[k].tag != more[i].tag)
            k++;
        all[k] = more[i];
        count += k == count;
    }
    return add_page(all, count);
}

static void save(const char *name)
{
    pipe_file(io_dir, name, m.b, m.n);
}

static const unsigned char *holds(const char *name, size_t want)
{
    static char *npy;
    size_t n;
    free(npy);
    npy = pipe_read(io_dir, name, &n);
    ck_assert_ptr_nonnull(npy);
    ck_assert_uint_eq(n, 128 + want);
    return (unsigned char *)npy + 128;
}

#define STACK(more) "stages:\n  - {use: read, path: a.tif" more "}\n  - {use: write, path: a.npy, stack: true}\n"

/* Smaller copies and masks are no frames, in any order; both forms, both orders. */
TEST_LOOP(pages, 0, 4)
{
    static const tag reduced[] = { { 254, LONG, 1, { 1 } }, { 256, SHORT, 1, { 1 } } }, mask = { 254, LONG, 1, { 4 } },
                     page_of_many = { 254, LONG, 1, { 2 } };
    begin(_i & 1, _i & 2);
    page(90, reduced, 2);
    page(10, NULL, 0);
    page(91, reduced, 2);
    page(92, &mask, 1);
    page(30, &page_of_many, 1);
    save("a.tif");
    ck_assert_uint_eq(io_runs(STACK("")), 2);
    ck_assert_mem_eq(holds("a.npy", 12), "\12\13\14\15\16\17\36\37\40\41\42\43", 12);
}

static const char *const turned[9] = { "", "abcdef", "cbafed", "fedcba", "defabc", "adbecf", "daebfc", "fcebda", "cfbead" };

TEST_LOOP(orientations, 0, 18)
{
    int how = _i % 9;                  /* 0 is none: as 1 */
    const tag tags[] = { { 274, SHORT, 1, { (unsigned)how } }, { 322, SHORT, 1, { 16 } }, { 323, SHORT, 1, { 16 } },
                         { 324, LONG, 1, { 16 } },             { 325, LONG, 1, { 256 } }, { 273, 0, 0, { 0 } },
                         { 279, 0, 0, { 0 } },                 { 278, 0, 0, { 0 } } };
    begin(false, _i & 1);
    m.n = 16;                          /* a tile of 16 x 16 */
    memcpy(m.b + 16, "abc", 3), memcpy(m.b + 32, "def", 3);
    m.n += 256;
    page('a', tags, _i < 9 ? 1 : 8);
    save("a.tif");
    ck_assert_uint_eq(io_runs(STACK("")), 1);
    ck_assert_mem_eq(holds("a.npy", 6), turned[how ? how : 1], 6);
    OWNED char *npy = pipe_read(io_dir, "a.npy", &(size_t){ 0 });
    ck_assert_ptr_nonnull(strstr(npy + 10, how < 5 ? "(1, 2, 3)" : "(1, 3, 2)"));
    ck_assert_uint_eq(io_runs(STACK(", orientation: keep")), 1);
    ck_assert_mem_eq(holds("a.npy", 6), "abcdef", 6);
}

/* Strips in any place, one without byte counts, a directory behind the first MiB; WhiteIsZero stays as it is. */
TEST(places)
{
    const tag apart[] = { { 278, LONG, 1, { 1 } }, { 273, LONG, 2, { 1500000, 100 } }, { 279, SHORT, 2, { 4, 3 } },
                          { 262, SHORT, 1, { 0 } } };
    const tag bare[] = { { 279, 0, 0, { 0 } }, { 278, 0, 0, { 0 } } };
    begin(false, true);
    memcpy(m.b + 1500000, "abc", 3), memcpy(m.b + 100, "def", 3);
    m.n = 1500004;
    page(0, apart, 4);
    page('u', bare, 2);
    save("a.tif");
    ck_assert_uint_eq(io_runs(STACK("")), 2);
    ck_assert_mem_eq(holds("a.npy", 12), "abcdefuvwxyz", 12);
}

/* ImageJ has one directory for more than 4 GiB, and says in a text how many images there are. */
TEST(images)
{
    static const char text[] = "ImageJ=1.53t\nimages=3\nslices=3\n";
    begin(false, true);
    page(0, (const tag[]){ { 273, LONG, 1, { 500 } }, { 270, ASCII, sizeof text, { 400 } } }, 2);
    /* The text's place, in its entry, which is the last. */
    size_t entry = m.n - 4 - 12;
    put(entry + 8, 400, 4);
    memcpy(m.b + 400, text, sizeof text);
    memcpy(m.b + 500, "abcdefghijklmnopqr", 18);
    m.n = 518;
    save("a.tif");
    ck_assert_uint_eq(io_runs(STACK(", workers: 2")), 3);
    ck_assert_mem_eq(holds("a.npy", 18), "abcdefghijklmnopqr", 18);
    m.n = 517;
    save("a.tif");
    io_fails(STACK(""), 3, "is cut off: ImageJ says that it has 3 images, and 2 are there");
    m.n = 506;                         /* one page of them, which was copied with its text */
    save("a.tif");
    ck_assert_uint_eq(io_runs(STACK("")), 1);
    ck_assert_mem_eq(holds("a.npy", 6), "abcdef", 6);
}

/* A file a frame where shapes differ. */
TEST(shapes)
{
    const tag small[] = { { 256, SHORT, 1, { 1 } }, { 257, SHORT, 1, { 6 } }, { 278, SHORT, 1, { 6 } } };
    begin(false, false), page('a', NULL, 0), save("a.tif");
    begin(false, false), page('g', small, 3), save("b.tif");
    ck_assert_uint_eq(io_runs("buffers: {x: {dtype: u8, shape: ['<=6', '<=5']}}\nstages:\n"
                              "  - {use: read, path: '?.tif', out: x}\n  - {use: write, path: '%n.npy'}\n"
                              "  - {name: w, use: write, in: x, path: 'to-%n.tif'}\n"), 2);
    ck_assert_mem_eq(holds("a.npy", 6), "abcdef", 6);
    ck_assert_mem_eq(holds("b.npy", 6), "ghijkl", 6);
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: to-b.tif}\n  - {use: write, path: b.npy}\n"), 1);
    ck_assert_mem_eq(holds("b.npy", 6), "ghijkl", 6);
    page('g', small, 3), save("b.tif");
    io_fails("buffers: {x: {dtype: u8, shape: ['<=6', '<=5']}}\nstages:\n  - {use: read, path: b.tif, out: x}\n" DISCARD, 3,
             "has 2 pages, and where the shape is declared by bounds ('<=') each file is a frame");
    io_fails("buffers: {x: {dtype: u8, shape: ['<=6', '<=5']}}\nstages:\n  - {use: read, path: '?.tif', out: x}\n" DISCARD, 1,
             "b.tif' has 2 pages, and where");
    io_fails("buffers: {x: {dtype: u8, shape: ['<=6', '<=5']}}\nstages:\n  - {use: read, path: a.tif, out: x}\n"
             "  - {use: write, path: c.tif}\n", 3, "joins frames along axis 0, and those of 'in' may differ in shape: give each a file of its own");
}

/* ---- refused, broken -------------------------------------------------- */

#define PIXELS(w, h) { 256, LONG, 1, { w } }, { 257, LONG, 1, { h } }, { 278, LONG, 1, { h } }
static const struct { tag tags[8]; const char *said; } refused[] = {
    { { { 258, SHORT, 1, { 3 } } }, "(page 0) has samples of 3 bits, and gpipe reads those of 1, 2, 4, 8, 10, 12, 14, 16" },
    { { { 258, SHORT, 3, { 8, 8, 16 } }, { 277, SHORT, 1, { 3 } } },
      "(page 0) is cut off or damaged: libtiff says 'Cannot handle different values per sample" },
    { { { 339, SHORT, 1, { 6 } }, { 258, SHORT, 1, { 64 } } }, "are neither whole numbers nor floats" },
    { { { 339, SHORT, 3, { 1, 2, 1 } }, { 277, SHORT, 1, { 3 } } },
      "libtiff says 'Cannot handle different values per sample" },
    { { { 339, SHORT, 1, { 3 } } }, "samples of 8 bits that are neither" },
    { { { 262, SHORT, 1, { 3 } }, { 277, SHORT, 1, { 3 } }, { 320, SHORT, 768, { 1, 2, 3 } } },
      "has a palette of another form than TIFF has, and gpipe reads gray and RGB" },
    { { { 262, SHORT, 1, { 5 } }, { 277, SHORT, 1, { 5 } } }, "has inks that are not CMYK of 8 bits" },
    { { { 262, SHORT, 1, { 6 } }, { 277, SHORT, 1, { 3 } } }, "has YCbCr" },
    { { { 262, SHORT, 1, { 999 } } }, "has colors that gpipe does not know" },
    { { { 259, SHORT, 1, { 6 } } }, "is compressed by the JPEG of TIFF 6.0" },
    { { { 259, SHORT, 1, { 60001 } } }, "is compressed by method 60001 of TIFF, which this libtiff does not have" },
    { { { 32997, LONG, 1, { 3 } } }, "is a volume of several slices" },
    { { PIXELS(1 << 21, 1 << 20) }, "says that it has 2097152 x 1048576 pixels, which is more than 1 TiB" },
    { { { 277, SHORT, 1, { 0 } } }, "is cut off or damaged" },
    { { { 256, SHORT, 1, { 0 } } }, "is cut off or damaged" },
    { { { 257, ASCII, 1, { 2 } } }, "is cut off or damaged" },
    { { PIXELS(1 << 20, 1) }, "is cut off or damaged: it needs 1048576 bytes for its pixels, and the file has 3128" },
    { { PIXELS(1 << 20, 1 << 12), { 259, SHORT, 1, { 5 } } }, "it needs 1048576 bytes for its pixels at least, and the file" },
    { { PIXELS(1 << 20, 1 << 12), { 259, SHORT, 1, { 8 } } }, "it needs 4161790 bytes for its pixels at least, and the file" },
    { { PIXELS(1 << 20, 1 << 12), { 259, SHORT, 1, { 32773 } } }, "it needs 67108864 bytes for its pixels at least, and the" },
    { { { 259, SHORT, 1, { 0 } } }, "is compressed by method 0 of TIFF" },
    { { { 278, SHORT, 1, { 0 } } }, "is cut off or damaged" },
    { { { 284, SHORT, 1, { 3 } } }, "is cut off or damaged" },
    { { { 322, LONG, 1, { 1 << 20 } }, { 323, LONG, 1, { 1 << 20 } }, { 324, LONG, 1, { 8 } }, { 325, LONG, 1, { 6 } } },
      "says that its tiles have 1048576 x 1048576 pixels, far more than the page" },
    { { { 322, SHORT, 1, { 16 } }, { 323, SHORT, 1, { 0 } }, { 324, LONG, 1, { 8 } } }, "is cut off or damaged" },
    { { { 254, LONG, 1, { 1 } } }, "has no page that is not a smaller copy of one or a mask" },
    { { { 278, SHORT, 1, { 1 } } }, "its strip 1 has too few bytes" },
    { { { 273, LONG, 2, { 8, 8 } }, { 278, SHORT, 1, { 1 } } }, "its strip 1 has too few bytes" },
    { { { 284, SHORT, 1, { 2 } }, { 277, SHORT, 1, { 3 } } }, "its strip 1 has too few bytes" },
    { { { 322, SHORT, 1, { 16 } }, { 323, SHORT, 1, { 16 } }, { 324, LONG, 1, { 8 } }, { 325, LONG, 1, { 256 } },
        PIXELS(40, 40) }, "its tile 1 has too few bytes" },
};

TEST_EACH(refuses, refused)
{
    int n = 0;
    while (n < 8 && refused[_i].tags[n].tag)
        n++;
    begin(false, false);
    page(0, refused[_i].tags, n);
    m.n += 3000;
    save("a.tif");
    /* Of pixels that are not there it is the frame that fails. */
    io_fails(STACK(", max_pixels: 1e15"), strstr(refused[_i].said, "too few bytes") ? 1 : 3, refused[_i].said);
}

/* A page whose tags are odd has its pixels all the same: it counts as faulty. Tags that nobody knows are none of
 * that. */
static const struct { tag tags[2]; const char *said; } odd[] = {
    { { { 285, ASCII, 1, { 0 } } }, NULL },
    { { { 65000, SHORT, 1, { 7 } } }, NULL },
    { { { 18246, SHORT, 1, { 7 } } }, NULL },                       /* Rating, of Windows */
    { { { 297, SHORT, 1, { 7 } } }, "has an odd tag in page 1: libtiff says 'incorrect count for field \"PageNumber\", expected 2" },
    { { { 305, ASCII, 2, { 'a', 'b' } } }, "in page 1: libtiff says 'ASCII value for tag \"Software\" does not end in null byte" },
    { { { 255, SHORT, 1, { 1 } } }, "in page 1: libtiff says 'Invalid TIFF directory; tags are not sorted in ascending order" },
};

TEST_EACH(odd_tags, odd)
{
    begin(false, false);
    page(0, NULL, 0), page(6, odd[_i].tags, 1), page(12, NULL, 0);
    save("a.tif");
    pipe_result r = io_done(STACK(""));
    ck_assert_uint_eq(r.account[0].faulty, odd[_i].said ? 3 : 0);
    ck_assert_msg(odd[_i].said ? r.errs.n == 1 && strstr(r.errs.e[0].msg, odd[_i].said) : !r.errs.n, "%s", io_error(&r));
    for (int i = 0; i < 18; i++)
        ck_assert_int_eq(holds("a.npy", 18)[i], i);
    if (odd[_i].said)
        io_fails(STACK(", strict: true"), 3, odd[_i].said);
    else
        io_runs(STACK(", strict: true"));
}

/* What is no TIFF, and chains of directories that lead nowhere. */
TEST(chains)
{
    const tag wide = { 257, LONG, 1, { 1 } };
    pipe_text(io_dir, "a.tif", "");
    io_fails(STACK(""), 3, "is empty");
    pipe_text(io_dir, "a.tif", "II*");
    io_fails(STACK(""), 3, "is not a TIFF file");
    pipe_text(io_dir, "a.tif", "\x89PNG\r\n\x1a\n and so on");
    io_fails(STACK(""), 3, "is cut off within its header");
    io_fails(STACK(", format: tiff"), 3, "is not a TIFF file");
    begin(false, false), save("a.tif");
    io_fails(STACK(""), 3, "has no pages: it was never finished");
    begin(true, false), put(4, 4, 2), page(0, NULL, 0), save("a.tif");
    io_fails(STACK(""), 3, "is not a TIFF file");
    begin(false, false), page(0, NULL, 0), put(4, 999, 4), save("a.tif");
    io_fails(STACK(""), 3, "is cut off: its first page is at byte 999 of");
    begin(false, false), page(0, NULL, 0), put(m.link, 99999, 4), save("a.tif");
    io_fails(STACK(""), 3, "(page 1) is cut off or damaged");
    begin(false, false), page(0, NULL, 0), put(m.link, 4, 4), save("a.tif");
    io_fails(STACK(""), 3, "(page 1) ");
    begin(false, false), page(0, NULL, 0), page(0, &wide, 1), save("a.tif");
    io_fails(STACK(""), 3, "has pages of different types: page 0 holds u8 [2, 3], page 1 u8 [1, 3]; split it");
    /* To itself; to the first; to one behind the first. */
    for (int k = 0; k < 3; k++) {
        begin(k & 1, false);
        size_t at[5];
        for (int i = 0; i < 5; i++)
            at[i] = page(i, NULL, 0);
        put(m.link, at[k == 0 ? 4 : k == 1 ? 0 : 2], k & 1 ? 8 : 4), save("a.tif");
        io_fails(STACK(""), 3, "(page 5) is cut off or damaged");
    }
}

/* A page whose bytes are not there costs its frame. */
TEST_LOOP(a_page_less, 0, 2)
{
    static const tag far = { 273, LONG, 1, { 999999 } }, near = { 273, LONG, 1, { 1000 } };
    const tag *bad[] = { &far, &near };
    begin(false, false);
    page(10, NULL, 0), page(20, bad[_i], 1), page(30, NULL, 0);
    ck_assert_uint_lt(m.n, 1000);
    m.n = 1003;
    save("a.tif");
    io_fails(STACK(""), 1, format("frame 1: '%s/a.tif' (page 1) ", io_dir));
    io_fails(STACK(""), 1, "is cut off or damaged");
    io_done("on_error: drop\n" STACK(", workers: 2"));
    ck_assert_mem_eq(holds("a.npy", 12), "\12\13\14\15\16\17\36\37\40\41\42\43", 12);
}

/* All pages of a file as `want` bytes at most, through the functions of the format; NULL, with an error. */
static char *read_bytes(const void *file, size_t n, size_t most, gp_type *whole, char why[GP_WHY])
{
    int fd = memfd_create("tiff", MFD_CLOEXEC);
    ck_assert(fd >= 0 && write(fd, file, n) == (ssize_t)n);
    gp_rowsfile_how how = { .quality = 1 };
    gp_rows_own own = { 0 };
    gp_type none = { 0 }, head;
    char *to = NULL;
    bool ok = gp_rowsfile_head(&how, gp_filetype_of("a.tif"), &(gp_rows_head){ .data = file, .n = n, .size = (int64_t)n },
                               &none, &head, why);
    gp_rows *f = gp_rowsfile_open(&how, gp_filetype_of("a.tif"), fd, &none, why);
    ck_assert(ok == (f != NULL) && (!ok || gp_type_same(&head, &f->whole)));
    if (f && gp_bytes(&head) <= most) {
        to = calloc(1, gp_bytes(&head) + 1);
        *whole = head;
        if (!gp_rowsfile_read(f, &own, 0, head.dim[0], to, why))
            free(to), to = NULL;
    }
    gp_rowsfile_leave(&own);
    gp_rowsfile_close(f);
    close(fd);
    return to;
}

/* Wherever a file is cut off, it is an error, or nothing of it is missing; libtiff says nothing to standard error. */
TEST_EACH(cut_off, files)
{
    size_t n;
    char why[GP_WHY];
    OWNED char *file = pipe_read("tests/data/tiff", format("%s.tif", files[_i].name), &n);
    gp_type whole, part;
    int said = dup(2);
    ck_assert_ptr_nonnull(freopen(io_at("said"), "w", stderr));
    OWNED char *all = read_bytes(file, n, 1 << 20, &whole, why);
    ck_assert_ptr_nonnull(all);
    for (size_t k = 0; k < n; k += 1 + n / 400) {
        *why = 0;
        OWNED char *got = read_bytes(file, k, 1 << 20, &part, why);
        ck_assert(got || *why);
        if (got)
            ck_assert(gp_type_same(&part, &whole) && !memcmp(got, all, gp_bytes(&whole)));
    }
    fflush(stderr);
    dup2(said, 2), close(said);
    OWNED char *text = pipe_read(io_dir, "said", &n);
    ck_assert_str_eq(text, "");
}

/* Any byte may be any other. */
TEST_EACH(damaged, files)
{
    size_t n;
    char why[GP_WHY];
    OWNED char *file = pipe_read("tests/data/tiff", format("%s.tif", files[_i].name), &n);
    unsigned seed = 1;
    for (int k = 0; k < 1500; k++) {
        seed = seed * 1664525u + 1013904223u;
        size_t at = (seed >> 8) % (k % 2 ? n : n < 400 ? n : 400);
        char was = file[at];
        gp_type t;
        file[at] = (char)(k % 3 ? file[at] ^ (1 << seed % 8) : (int)(seed >> 3));
        *why = 0;
        char *got = read_bytes(file, n, 1 << 20, &t, why);
        free(got);
        if (k % 5)                     /* others stay */
            file[at] = was;
    }
}

/* ---- out -------------------------------------------------------------- */

static void count_raw(const char *name, size_t n)
{
    OWNED unsigned char *b = malloc(n);
    for (size_t i = 0; i < n; i++)
        b[i] = (unsigned char)(i + i / 1000);
    pipe_file(io_dir, name, b, n);
}

static const struct { gp_dtype dtype; const char *shape; size_t bytes; } out[] = {
    { GP_U8, "13, 17", 221 },      { GP_U8, "60, 70, 3", 12600 }, { GP_U8, "5, 7, 4", 140 },  { GP_U16, "5, 7, 2", 140 },
    { GP_U16, "500, 601", 601000 }, { GP_I8, "3, 1", 3 },         { GP_I16, "9, 4", 72 },     { GP_U32, "9, 4", 144 },
    { GP_I32, "9, 4, 3", 432 },    { GP_U64, "9, 4", 288 },       { GP_I64, "9, 4", 288 },    { GP_F16, "9, 4", 72 },
    { GP_F32, "9, 4", 144 },       { GP_F64, "90, 40, 3", 86400 }, { GP_U8, "9, 5, 1", 45 },
};
static const int compressions[] = { -1, 0, 1, 6, 9 };

TEST_SOME(there_and_back, N(out) * N(compressions), 4, 1)
{
    char y[1200], how[40] = "";
    int i = _i % N(out), level = compressions[_i / N(out)];
    if (level >= 0)
        TEXT(how, ", compression: %d", level);
    count_raw("in.raw", 3 * out[i].bytes);
    TEXT(y, "buffers: {x: {dtype: %s, shape: [%s]}}\nstages:\n  - {use: read, path: in.raw, out: x}\n"
         "  - {use: write, path: a.tif%s}\n  - {name: w, use: write, in: x, path: 'b%%d.tiff'%s, workers: 2}\n"
         "  - {name: n, use: write, in: x, path: n.npy, stack: true}\n",
         gp_dtype_name(out[i].dtype), out[i].shape, how, how);
    ck_assert_uint_eq(io_runs(y), 3);
    size_t n, k;
    OWNED char *file = pipe_read(io_dir, "a.tif", &n), *raw = pipe_read(io_dir, "in.raw", &k);
    ck_assert_mem_eq(file, "II*", 4);
    if (level > 0 && k > 10000)
        ck_assert_uint_lt(n, k);
    ck_assert_uint_eq(io_runs(y), 3);
    OWNED char *again = pipe_read(io_dir, "a.tif", &k);
    ck_assert(n == k && !memcmp(file, again, n));
    for (int b = 0; b < 2; b++) {
        ck_assert_uint_eq(io_runs(TEXT(y, "stages:\n  - {use: read, path: '%s', workers: 3}\n  - {use: write, path: out.npy, "
                                       "stack: true}\n", b ? "b*.tiff" : "a.tif")), 3);
        ck_assert_mem_eq(holds("out.npy", 3 * out[i].bytes), raw, 3 * out[i].bytes);
    }
}

/* A thousand pages by four workers. */
TEST_LOOP(many_pages, 0, 2)
{
    count_raw("in.raw", 1000 * 35);
    ck_assert_uint_eq(io_runs(format("buffers: {x: {dtype: u8, shape: [5, 7]}}\nstages:\n  - {use: read, path: in.raw, out: "
                                   "x}\n  - {use: write, path: a.tif, compression: %d}\n", 3 * _i)), 1000);
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: a.tif, workers: 4}\n  - {use: write, path: b.raw}\n"), 1000);
    size_t n;
    OWNED char *raw = pipe_read(io_dir, "in.raw", &n);
    io_holds("b.raw", raw, n);
}

static gp_rows_out *create(FILE *f, bool alone, int64_t narrow, int compression)
{
    char why[GP_WHY] = "";
    gp_type t = { GP_U8, 2, { 2, 3 } };
    gp_rowsfile_how how = { .format = gp_filetype_of("a.tif"), .alone = alone, .narrow = narrow,
                            .compression = compression };
    gp_rows_out *o = gp_tiff.create(fileno(f), &how, &t, "a.tif", why);
    ck_assert_msg(o != NULL, "%s", why);
    return o;
}

/* How large the file is, whose pages 0 to `last` have to be there. */
static size_t has_pages(int last, bool *big)
{
    size_t n;
    char why[GP_WHY] = "";
    gp_type whole;
    char *file = pipe_read(io_dir, "a.tif", &n), *got = read_bytes(file, n, 1000, &whole, why);
    ck_assert_msg(got != NULL, "%s", why);
    ck_assert(file[2] == 42 || file[2] == 43);
    *big = file[2] == 43;
    ck_assert_int_eq(whole.dim[0], last + 1);
    for (int i = 0; i <= last; i++)
        ck_assert(got[6 * i] == i && !memcmp(got + 6 * i + 1, "\1\2\3\4\5", 5));
    free(got), free(file);
    return n;
}

/* What has no room in 4 GiB, here in few bytes, is a BigTIFF: before and after that all pages are there. */
TEST_LOOP(grows_big, 0, 40)
{
    char why[GP_WHY];
    int64_t narrow = 100 + 150 * _i;
    FILE *f = fopen(io_at("a.tif"), "w+b");
    gp_rows_out *o = create(f, false, narrow, _i % 2);
    bool big = false, was_big = false;
    for (int k = 0; k < 9; k++, was_big = big) {
        ck_assert(gp_tiff.append(o, (char[6]){ (char)k, 1, 2, 3, 4, 5 }, 1, why));
        size_t n = has_pages(k, &big);
        ck_assert(big ? k >= _i / 4 : n <= (size_t)narrow && !was_big);
    }
    ck_assert(_i < 20 ? big : true);
    ck_assert(gp_tiff.finish(o, why));
    fclose(f);
}

TEST_LOOP(alone_is_as_small_as_can_be, 0, 2)
{
    char why[GP_WHY];
    size_t n = 0;
    for (int k = 0; k < 3; k++) {      /* any; as much as it takes; a byte less */
        bool big;
        FILE *f = fopen(io_at("a.tif"), "w+b");
        gp_rows_out *o = create(f, true, (int64_t)n - (k == 2), _i);
        ck_assert(gp_tiff.append(o, "\0\1\2\3\4\5", 1, why) && gp_tiff.finish(o, why));
        fclose(f);
        size_t found = has_pages(0, &big);
        ck_assert(big == (k == 2) && (k ? big ? found > n : found == n : found < 250));
        n = found;
    }
}

/* What a run that failed keeps is a TIFF, and what cannot grow. */
TEST(a_part)
{
    pipe_text(io_dir, "fail.lua", "function process(f, x, y)\n  if f.index == 3 then error('as it should') end\n"
              "  y:copy(x)\nend\n");
    count_raw("in.raw", 500);
    io_fails("buffers: {x: {dtype: u8, shape: [10, 5]}}\nstages:\n  - {use: read, path: in.raw, out: x}\n"
             "  - {use: lua, script: fail.lua}\n  - {use: write, path: a.tif}\n", 1, "as it should");
    ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: a.tif.partial, format: tiff}\n  - {use: write, path: b.raw}\n"),
                      3);
    size_t n;
    OWNED char *raw = pipe_read(io_dir, "in.raw", &n);
    io_holds("b.raw", raw, 150);
}

TEST_LOOP(no_room, 0, 2)
{
    pipe_result r = io_go_limited(format("buffers: {x: {dtype: u8, shape: [40, 50]}}\nstages:\n"
                               "  - {use: generate, pattern: noise, amplitude: 100, frames: 20, out: x}\n"
                               "  - {use: write, path: '%s'}\n", _i ? "a%d.tif" : "a.tif"), _i ? 500 : 10000);
    ck_assert_int_eq(r.outcome, GP_ERROR);
    ck_assert_msg(strstr(io_error(&r), "cannot be written: File too large") && strstr(io_error(&r), "frame"), "%s",
                  io_error(&r));
    if (!_i)
        ck_assert_uint_eq(io_runs("stages:\n  - {use: read, path: a.tif.partial, format: tiff}\n" DISCARD), 4);
    ck_assert(access(io_at("a.tif"), F_OK));
}

/* A number that an entry of a directory has room for. */
TEST_LOOP(short_text, 0, 2)
{
    pipe_text(io_dir, "g.lua", "function process(frame, x) assert(frame.meta.g == 1, frame.meta.g) end\n");
    begin(true, _i);
    page(1, &(tag){ 270, ASCII, 8, { '{', '"', 'g', '"', ':', '1', '}', 0 } }, 1);
    save("a.tif");
    ck_assert_uint_eq(io_runs("metadata: [g]\nstages:\n  - {use: read, path: a.tif}\n"
                              "  - {use: lua, script: g.lua, out: []}\n"), 1);
}

/* One of 20,000 bytes, with its number at the end, is read; a part of it is an error for those who want the number. */
TEST_LOOP(long_text, 0, 2)
{
    enum { AT = 400, BYTES = 20000 };
    static const char number[] = "\"g\": 1}";
    pipe_text(io_dir, "g.lua", "function process(frame, x) assert(frame.meta.g == 1, frame.meta.g) end\n");
    begin(false, false);
    page(1, &(tag){ 270, ASCII, BYTES, { 0 } }, 1);
    put(m.n - 4 - 4, AT, 4);           /* the text's place, in its entry, which is the last */
    memset(m.b + AT, ' ', BYTES);
    m.b[AT] = '{';
    memcpy(m.b + AT + BYTES - sizeof number, number, sizeof number);
    m.n = AT + BYTES - _i;
    save("a.tif");
    if (_i)
        io_fails("metadata: [g]\nstages:\n  - {use: read, path: a.tif}\n" DISCARD, 1,
                 "has a description that cannot be read");
    else
        ck_assert_uint_eq(io_runs("metadata: [g]\nstages:\n  - {use: read, path: a.tif}\n"
                                  "  - {use: lua, script: g.lua, out: []}\n"), 1);
    ck_assert_uint_eq(io_runs(STACK("")), 1);
}

#define MAKE(type, rest) "buffers: {x: {" type "}}\nstages:\n  - {use: generate, frames: 2, out: x}\n  - {use: write, " rest "}\n"
static const struct { const char *text; int code; const char *said; } wrong[] = {
    { MAKE("dtype: c64, shape: [4, 4]", "path: a.tif"), 3, "a.tif' cannot hold c64 [4, 4]: TIFF holds whole numbers" },
    { MAKE("dtype: u8, shape: [4]", "path: a.tif"), 3, "a page of a TIFF is a frame of shape [H, W] or [H, W, 1 to 4]" },
    { MAKE("dtype: u8, shape: [4, 4, 5]", "path: 'a%d.tif'"), 3, "[H, W, 1 to 4]: put a 'split' stage" },
    { MAKE("dtype: u8, shape: [4, 4]", "path: a.tif, live: true"), 3, "'live' has no effect on a TIFF" },
    { MAKE("dtype: u8, shape: [4, 4]", "path: a.tif, stack: true"), 3, "'stack' joins frames in one .npy, .npz, Zarr or text file" },
    { MAKE("dtype: u8, shape: [4, 4]", "path: a.tif, quality: 3"), 3, "'quality' has no effect" },
    { MAKE("dtype: u8, shape: [4, 4]", "path: a.npy, compression: 3"), 3, "a file that is not a PNG, TIFF or Zarr" },
    { MAKE("dtype: u8, shape: [4, 4]", "path: stdout, format: tiff"), 3, "only raw data, npy, text and y4m can be written to stdout" },
    { MAKE("dtype: u8, shape: [4, 4]", "path: /dev/null, format: tiff"), 1, "is not a regular file, which TIFF needs" },
    { "stages:\n  - {use: read, path: in.raw, out: x}\n  - {use: write, path: a.tif}\nbuffers: {x: {dtype: u8, shape: [4, 5]}}\n",
      1, "cannot stack a frame of 2 rows on frames of 4: give each frame a file, or leave it out before" },
    { "stages:\n  - {use: read, path: in.raw, frames: 3, out: x}\n  - {use: lua, script: none.lua}\n  - {use: write, path: a.tif}\n"
      "buffers: {x: {dtype: u8, shape: [4, 5]}}\n", 1, "a TIFF has pages, and there were no frames" },
    { "stages:\n  - {use: read, path: stdin, format: tiff}\n" DISCARD, 3, "only raw data ('format: raw'), npy and y4m can be read from one" },
    { "stages:\n  - {use: read, path: p.tif, tail: ignore}\n" DISCARD, 3, "'tail' is only for raw and .npy" },
    { "stages:\n  - {use: read, path: p.tif, offset: 8}\n" DISCARD, 3, "'offset' is only for raw data" },
    { "stages:\n  - {use: read, path: p.tif, out: x}\n" DISCARD "buffers: {x: {shape: [6, 17]}}\n", 3,
      "holds u16 [5, 13, 17], which cannot be cut into frames of u16 [6, 17]" },
    { "stages:\n  - {use: read, path: p.tif, out: x}\n" DISCARD "buffers: {x: {dtype: u8}}\n", 3,
      "holds u16, and 'buffers' declares u8" },
};

TEST_EACH(says_what_is_wrong, wrong)
{
    pipe_text(io_dir, "none.lua", "function process(f, x, y) return 'drop' end\n");
    count_raw("in.raw", 50);
    io_link("tiff/plain.tif", "p.tif");
    io_fails(wrong[_i].text, wrong[_i].code, wrong[_i].said);
}

TEST_SUITE(tiff, io_set_up, NULL, 0)
