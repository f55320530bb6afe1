/* y4m_file.c - video as YUV4MPEG2, see y4m_file.h and https://wiki.multimedia.cx/index.php/YUV4MPEG2: a line of
 * parameters, then of each frame a line "FRAME", which may have parameters too, and its planes. Where those lines
 * lie is found when a file is opened; frames are read where they are, by any worker. A frame that is cut off, or has
 * something else in place of its line, is an error when it is read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "rows_file.h"
#include "y4m_file.h"

enum { SIDE = 1 << 20 };               /* pixels, at most */

/* ---- the header ------------------------------------------------------ */

/* The names of color spaces. Depths above 8 bits follow the name: 420p10, mono10. */
static const struct { const char *name, *deep; int subsampling, siting; } spaces[] = {
    { "420jpeg", NULL, GP_Y4M_420, GP_Y4M_JPEG },  { "420mpeg2", NULL, GP_Y4M_420, GP_Y4M_MPEG2 },
    { "420paldv", NULL, GP_Y4M_420, GP_Y4M_PALDV }, { "420", "420p", GP_Y4M_420, GP_Y4M_UNSAID },
    { "422", "422p", GP_Y4M_422, GP_Y4M_UNSAID },  { "444", "444p", GP_Y4M_444, GP_Y4M_UNSAID },
    { "mono", "mono", GP_Y4M_MONO, GP_Y4M_UNSAID },
};
enum { SPACES = sizeof spaces / sizeof *spaces };

/* A whole number of at most 9 digits that is all of the text; -1: it is none. */
static int64_t whole(const char *s, size_t n)
{
    int64_t v = 0;
    if (!n || n > 9)
        return -1;
    for (; n; n--, s++) {
        if (*s < '0' || *s > '9')
            return -1;
        v = v * 10 + (*s - '0');
    }
    return v;
}

static bool is(const char *s, size_t n, const char *word)
{
    return n == strlen(word) && !memcmp(s, word, n);
}

static bool take_space(gp_y4m *v, const char *s, size_t n, char err[GP_WHY])
{
    for (int i = 0; i < SPACES; i++) {
        size_t deep = spaces[i].deep ? strlen(spaces[i].deep) : n;
        int64_t bits = is(s, n, spaces[i].name)                     ? 8
                     : deep < n && !memcmp(s, spaces[i].deep, deep) ? whole(s + deep, n - deep) : 0;
        if (bits < 8 || bits > 16)
            continue;
        v->subsampling = spaces[i].subsampling, v->siting = spaces[i].siting, v->bits = (int)bits;
        return true;
    }
    return gp_why(err, "has the color space '%.*s': 420 (jpeg, mpeg2, paldv), 422, 444 and mono are read, of 8 bits or, "
                  "as in 420p10, up to 16", n < 40 ? (int)n : 40, s);
}

static bool take_side(int64_t *side, const char *what, const char *s, size_t n, char err[GP_WHY])
{
    *side = whole(s, n);
    return (*side > 0 && *side <= SIDE)
        || gp_why(err, "has '%.*s' for its %s, not 1 to %d", n < 40 ? (int)n : 40, s, what, SIDE);
}

/* A ratio "A:B"; one that is no such thing is not said. */
static void take_ratio(int64_t ratio[2], const char *s, size_t n)
{
    const char *colon = memchr(s, ':', n);
    size_t left = colon ? (size_t)(colon - s) : n;
    int64_t a = whole(s, left), b = colon ? whole(colon + 1, n - left - 1) : 0;
    ratio[0] = a > 0 && b > 0 ? a : 0, ratio[1] = a > 0 && b > 0 ? b : 0;
}

static bool take(gp_y4m *v, const char *s, size_t n, char err[GP_WHY])
{
    switch (*s) {
    case 'W':
        return take_side(&v->width, "width", s + 1, n - 1, err);
    case 'H':
        return take_side(&v->height, "height", s + 1, n - 1, err);
    case 'C':
        return take_space(v, s + 1, n - 1, err);
    case 'F':
        take_ratio(v->rate, s + 1, n - 1);
        return true;
    case 'A':
        take_ratio(v->aspect, s + 1, n - 1);
        return true;
    case 'X':
        v->range = is(s, n, "XCOLORRANGE=FULL")    ? GP_Y4M_FULL
                 : is(s, n, "XCOLORRANGE=LIMITED") ? GP_Y4M_LIMITED : v->range;
        return true;
    case 'I':
        return (n == 2 && (s[1] == 'p' || s[1] == '?'))
            || gp_why(err, "is interlaced ('%.*s'): make whole pictures of its fields first", n < 40 ? (int)n : 40, s);
    }
    return true;                       /* what others have added */
}

static const char magic[] = "YUV4MPEG2";

bool gp_y4m_parse(const char *line, size_t n, gp_y4m *v, char err[GP_WHY])
{
    size_t at = strlen(magic);
    *v = (gp_y4m){ .subsampling = GP_Y4M_420, .siting = GP_Y4M_JPEG, .bits = 8 };
    if (n < at || memcmp(line, magic, at) || (n > at && line[at] != ' '))
        return gp_why(err, "is not a YUV4MPEG2 stream: it does not begin with '%s'", magic);
    while (at < n) {
        size_t len = 0;
        at++;                          /* a blank */
        while (at + len < n && line[at + len] != ' ')
            len++;
        if (len && !take(v, line + at, len, err))
            return false;
        at += len;
    }
    return (v->width && v->height) || gp_why(err, "does not say its %s in its header", v->width ? "height" : "width");
}

bool gp_y4m_has_range(const gp_y4m *v, int range, char err[GP_WHY])
{
    if (range == GP_Y4M_RANGE_UNSAID && v->range == GP_Y4M_FULL && v->subsampling != GP_Y4M_MONO)
        return gp_why(err, "has values of the full range (XCOLORRANGE=FULL), not 16 to 235: set 'range: full' for 'read' "
                      "if what comes behind takes them so, as 'color' does with 'range: full'");
    return !range || !v->range || range == v->range
        || gp_why(err, "says that its range is %s, and 'range' of this stage says the other", v->range == GP_Y4M_FULL
                  ? "full (XCOLORRANGE=FULL)" : "limited (XCOLORRANGE=LIMITED)");
}

char *gp_y4m_text(const gp_y4m *v, char buf[80])
{
    static const char *const name[] = { "4:2:0", "4:2:2", "4:4:4", "mono" };
    snprintf(buf, 80, "%lld x %lld, %s", (long long)v->width, (long long)v->height, name[v->subsampling]);
    return buf;
}

bool gp_y4m_type(const gp_y4m *v, gp_type *frame, char err[GP_WHY])
{
    char is[80];
    int64_t w = v->width, h = v->height;
    bool two = v->subsampling == GP_Y4M_420 || v->subsampling == GP_Y4M_422, rows = v->subsampling == GP_Y4M_420;
    if ((two && w % 2) || (rows && h % 2))
        return gp_why(err, "is %s: the planes of such a frame make no array where the %s is odd; crop it, or convert it to "
                      "4:4:4, first", gp_y4m_text(v, is), two && w % 2 ? "width" : "height");
    frame->dtype = v->bits > 8 ? GP_U16 : GP_U8;
    *frame = v->subsampling == GP_Y4M_444  ? (gp_type){ frame->dtype, 3, { 3, h, w } }
           : v->subsampling == GP_Y4M_MONO ? (gp_type){ frame->dtype, 2, { h, w } }
                                           : (gp_type){ frame->dtype, 2, { rows ? h / 2 * 3 : h * 2, w } };
    return true;
}

bool gp_y4m_take(gp_y4m *v, const gp_type *frame, char err[GP_WHY])
{
    char text[128];
    gp_type again;
    bool three = v->subsampling == GP_Y4M_444;
    v->height = frame->dim[three], v->width = frame->dim[three + 1];
    if (v->subsampling == GP_Y4M_420)
        v->height = v->height / 3 * 2;
    if (v->subsampling == GP_Y4M_422)
        v->height = v->height / 2;
    if (frame->ndim == 2 + three && v->width <= SIDE && v->height <= SIDE && v->height > 0
        && gp_y4m_type(v, &again, err) && gp_type_same(&again, frame))
        return true;
    static const char *const want[] = {
        "4:2:0 of H rows and W columns, both even, is [3 H / 2, W]",
        "4:2:2 of H rows and W columns, W even, is [2 H, W]",
        "4:4:4 of H rows and W columns is [3, H, W]",
        "a mono frame is [H, W]",
    };
    return gp_why(err, "cannot hold %s: %s, u8 or, of 9 to 16 bits, u16", gp_type_text(frame, text),
                  want[v->subsampling]);
}

size_t gp_y4m_header(const gp_y4m *v, char to[GP_Y4M_LINE])
{
    static const char *const plain[] = { "420", "422", "444", "mono" };
    static const char *const siting[] = { "jpeg", "mpeg2", "paldv", "" };
    char space[40];
    if (v->bits > 8)
        snprintf(space, sizeof space, "%s%s%d", plain[v->subsampling], v->subsampling == GP_Y4M_MONO ? "" : "p", v->bits);
    else
        snprintf(space, sizeof space, "%s%s", plain[v->subsampling],
                 v->subsampling == GP_Y4M_420 ? siting[v->siting] : "");
    return (size_t)snprintf(to, GP_Y4M_LINE, "%s W%lld H%lld F%lld:%lld Ip A%lld:%lld C%s%s\n", magic,
                            (long long)v->width, (long long)v->height, (long long)v->rate[0], (long long)v->rate[1],
                            (long long)v->aspect[0], (long long)v->aspect[1], space, v->range == GP_Y4M_FULL
                                ? " XCOLORRANGE=FULL"
                            : v->range == GP_Y4M_LIMITED ? " XCOLORRANGE=LIMITED" : "");
}

bool gp_y4m_ratio(const char *text, int64_t ratio[2])
{
    size_t n = strlen(text), left = strcspn(text, ":/."), right = left < n ? n - left - 1 : 0;
    int64_t a = whole(text, left), b = right ? whole(text + left + 1, right) : 1;
    if (a < 0 || b < 0 || (left < n && !right))
        return false;
    if (text[left] == '.') {
        int64_t part = b;
        for (b = 1; right; right--)
            b *= 10;
        a = a * b + part;
        for (int64_t k = 2; k <= 5; k += 3)
            while (a % k == 0 && b % k == 0)
                a /= k, b /= k;
    }
    ratio[0] = a, ratio[1] = b;
    return a > 0 && b > 0 && a <= INT32_MAX && b <= INT32_MAX;
}

/* ---- files that are read --------------------------------------------- */

typedef struct y4m {
    gp_rows rows;
    int fd;
    int64_t size;              /* of the file */
    int64_t *at; int64_t n;    /* where the data of each frame begin; the last one may be cut off, */
    bool broken;               /* or has no line of its own: then this is where that should be */
} y4m;

static bool parse_head(const char *head, size_t n, const gp_rowsfile_how *how, gp_type *whole, size_t *data,
                       char err[GP_WHY])
{
    gp_y4m v;
    gp_type frame;
    const char *end = memchr(head, '\n', n < GP_Y4M_LINE ? n : GP_Y4M_LINE);
    size_t have = end ? (size_t)(end - head) : n;
    if (!end && have >= strlen(magic) && !memcmp(head, magic, strlen(magic)))
        return gp_why(err, "has a header of more than %d bytes, or is cut off in it", GP_Y4M_LINE);
    if (!gp_y4m_parse(head, have, &v, err) || !gp_y4m_type(&v, &frame, err) || !gp_y4m_has_range(&v, how->range, err))
        return false;
    *data = have + 1;
    *whole = frame;
    whole->ndim++;
    memcpy(whole->dim + 1, frame.dim, sizeof *frame.dim * (size_t)frame.ndim);
    whole->dim[0] = -1;
    return true;
}

static const char before[] = "FRAME\n";

/* How many frames there are, if no line before one has parameters; else it is not known yet. */
static bool y4m_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    size_t data;
    if (!parse_head(h->data, h->n, how, whole, &data, err))
        return false;
    gp_type one = *whole;
    one.dim[0] = 1;
    int64_t each = (int64_t)(gp_bytes(&one) + strlen(before)), left = h->size - (int64_t)data;
    if (left % each == 0)
        whole->dim[0] = left / each;
    return true;
}

/* Where the data begin behind a frame's line at `at`; -1: there is no such line. */
static int64_t skip_line(const y4m *f, int64_t at)
{
    char line[GP_Y4M_LINE];
    size_t word = strlen(before);
    int64_t n = gp_read_at(f->fd, line, word, at);
    if (n != (int64_t)word || memcmp(line, before, word - 1) || (line[word - 1] != '\n' && line[word - 1] != ' '))
        return -1;
    if (line[word - 1] == '\n')
        return at + n;
    n = gp_read_at(f->fd, line, sizeof line, at);
    const char *end = n > 0 ? memchr(line, '\n', (size_t)n) : NULL;
    return end ? at + (end - line) + 1 : -1;
}

static bool find_frames(y4m *f, int64_t at, int64_t bytes, char err[GP_WHY])
{
    int64_t cap = 0;
    while (at < f->size && !f->broken) {
        if (!GP_ROOM(f->at, f->n, cap))
            return gp_why(err, GP_WHY_MEMORY);
        int64_t data = skip_line(f, at);
        f->broken = data < 0;
        f->at[f->n++] = f->broken ? at : data;
        at = data + bytes;
    }
    f->rows.whole.dim[0] = f->n;
    return true;
}

static void y4m_close(gp_rows *rows)
{
    y4m *f = (y4m *)rows;
    free(f->at);
    free(f);
}

static gp_rows *y4m_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY])
{
    char head[GP_Y4M_LINE];
    size_t data = 0;
    int64_t size, n = gp_read_at(fd, head, sizeof head, 0);
    y4m *f = gp_rows_new(sizeof *f, fd, &size, err);
    if (!f)
        return NULL;
    f->fd = fd, f->size = size;
    bool ok = (n >= 0 || gp_why(err, "cannot be read: %s", gp_strerror(errno)))
        && parse_head(head, (size_t)n, how, &f->rows.whole, &data, err);
    if (ok) {
        gp_type one = f->rows.whole;
        one.dim[0] = 1;
        ok = find_frames(f, (int64_t)data, (int64_t)gp_bytes(&one), err);
    }
    if (ok)
        return &f->rows;
    y4m_close(&f->rows);
    return NULL;
}

static bool y4m_read(gp_rows *rows, void **own, int64_t first, int64_t n, void *to, char err[GP_WHY])
{
    const y4m *f = (const y4m *)rows;
    gp_type one = rows->whole;
    one.dim[0] = 1;
    int64_t bytes = (int64_t)gp_bytes(&one);
    for (int64_t i = first; i < first + n; i++, to = (char *)to + bytes) {
        if (f->broken && i == f->n - 1)
            return gp_why(err, "has no line 'FRAME' at byte %lld, where its frame %lld begins", (long long)f->at[i],
                          (long long)i);
        int64_t got = gp_read_at(f->fd, to, (size_t)bytes, f->at[i]);
        if (got < 0)
            return gp_why(err, "cannot be read: %s", gp_strerror(errno));
        if (got != bytes)
            return gp_why(err, "is cut off in its frame %lld, which has %lld of %lld bytes", (long long)i, (long long)got,
                          (long long)bytes);
    }
    return true;
}

/* ---- files that are written ------------------------------------------ */

static size_t y4m_begin(const gp_rowsfile_how *how, const gp_type *frame, char to[GP_Y4M_LINE])
{
    return gp_y4m_header(how->video, to);
}

/* Options, too, say what frames have to be: see write/check.c. */
static const char *y4m_why_not(const gp_type *type, const char *path)
{
    return type->dtype == GP_U8 || type->dtype == GP_U16 ? NULL : "y4m holds u8 or u16";
}

const gp_rowsfile gp_y4m_video = {
    .name = ".y4m", .magic = { "YUV4MPEG2 " },
    .options = { "subsampling", "frame_rate", "pixel_aspect", "siting", "bits", "range" },
    .is_video = true,
    .head = y4m_head, .open = y4m_open, .read = y4m_read, .close = y4m_close,
    .why_not = y4m_why_not, .begin = y4m_begin, .before = before,
};
