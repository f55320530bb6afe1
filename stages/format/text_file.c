/* text_file.c - numbers as text: CSV, and JSON lines, see rows_file.h.
 *
 * A line is a row. Opening a file finds where its rows are, and keeps the place of one in many; the numbers in them are
 * read when a frame is due, by all workers at the same time. Numbers are spelled with a point, whatever the locale. */
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include "base/plural.h"
#include "rows_file.h"

enum { CHUNK = 1 << 18, MARK_ROWS = 1024, LINE_MAX_BYTES = 1 << 26, SHOWN = 40, DIGITS_MAX = 1100 };

/* ---- lines ------------------------------------------------------------ */

typedef struct place { int64_t at, line; } place;      /* the offset where a line begins, and its number, from 1 */

/* Where rows are. */
typedef struct layout {
    bool json, comma;          /* comma: numbers have a decimal comma */
    int header;                /* gp_header */
    char separator;            /* of CSV: , ; tab, or a blank for any number of blanks; 0: not known yet */
    int64_t columns, rows;     /* columns 0: no row was seen yet */
    bool began;                /* a header, or a row, was seen */
    char *note;                /* NULL, or GP_WHY bytes: what was guessed of the first one */
    place *mark;               /* of every row of which MARK_ROWS is a divisor */
    size_t marks, room;
} layout;

/* A token without the blanks around it: [*from, *to). */
static void trim(const char **from, const char **to)
{
    while (*from < *to && isspace((unsigned char)**from))
        ++*from;
    while (*to > *from && isspace((unsigned char)(*to)[-1]))
        --*to;
}

/* A line likewise, but that tabs which separate, or may, stay. */
static void trim_line(const layout *l, const char **from, const char **to)
{
    bool tabs = !l->json && (!l->separator || l->separator == '\t');
    while (*from < *to && isspace((unsigned char)**from) && !(tabs && **from == '\t'))
        ++*from;
    while (*to > *from && isspace((unsigned char)(*to)[-1]) && !(tabs && (*to)[-1] == '\t'))
        --*to;
}

/* Behind a field of CSV that is in quotes, where one begins here, else q. In it "" is a quote. */
static const char *skip_quoted(const char *q, const char *end)
{
    if (q == end || *q != '"')
        return q;
    for (q++; q < end && (*q != '"' || (q + 1 < end && q[1] == '"')); q++)
        q += *q == '"';
    return q < end ? q + 1 : end;
}

/* The next token of a line, without quotes around it; *p goes behind its separator. False: there is none left. */
static bool next_token(const layout *l, const char **p, const char *end, const char **from, const char **to)
{
    if (*p > end)
        return false;
    char separator = l->json ? ',' : l->separator;
    const char *q = *p;
    while (q < end && isspace((unsigned char)*q) && (separator == ' ' || *q != separator))
        q++;
    *from = q;
    q = l->json ? q : skip_quoted(q, end);
    while (q < end && (separator == ' ' ? !isspace((unsigned char)*q) : *q != separator))
        q++;
    *to = q;
    *p = q + 1;
    trim(from, to);
    if (!l->json && *to - *from > 1 && **from == '"' && skip_quoted(*from, *to) == *to && (*to)[-1] == '"') {
        ++*from, --*to;
        trim(from, to);
    }
    return true;
}

static bool is_word(const char *from, const char *to, const char *word)
{
    return (size_t)(to - from) == strlen(word) && !strncasecmp(from, word, strlen(word));
}

static const char missing[] = "#N/A";

/* What spreadsheets write in place of a number: one that is missing, or that cannot be computed. */
static bool is_cell_error(const char *from, const char *to)
{
    static const char *const words[] = { missing, "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#SPILL!", "#CALC!",
                                         "#FIELD!", "#BLOCKED!", "#CONNECT!", "#UNKNOWN!", "#BUSY!", "#PYTHON!", "#ERROR!",
                                         "#GETTING_DATA" };
    for (size_t i = 0; from < to && *from == '#' && i < sizeof words / sizeof *words; i++)
        if (is_word(from, to, words[i]))
            return true;
    return false;
}

/* Is a line none of the rows: empty, or a comment? */
static bool is_blank(const layout *l, const char *line, const char *end)
{
    trim_line(l, &line, &end);
    if (line == end || l->json || *line != '#')
        return line == end;
    const char *word = line;
    while (word < end && !isspace((unsigned char)*word) && *word != ',' && *word != ';')
        word++;
    return !is_cell_error(line, word);
}

/* Takes the brackets off a line of JSON. False: they are not in order. */
static bool open_brackets(const layout *l, const char **line, const char **end)
{
    trim_line(l, line, end);
    if (!l->json || *line == *end || **line != '[')
        return true;
    if ((*end)[-1] != ']' || *end - *line < 2)
        return false;
    ++*line, --*end;
    trim(line, end);
    return true;
}

/* Might this be a number? *infinite: it says so. */
static bool is_number_like(const char *from, const char *to, char point, bool *infinite)
{
    from += from < to && (*from == '-' || *from == '+');
    *infinite = is_word(from, to, "inf") || is_word(from, to, "infinity");
    return *infinite || is_word(from, to, "nan") || is_cell_error(from, to)
        || (from < to && (isdigit((unsigned char)*from) || *from == point));
}

static char point_of(const layout *l)
{
    return l->comma ? ',' : '.';
}

/* What stands in quotes separates nothing. */
static char separator_of(const layout *l, const char *line, const char *end)
{
    bool semicolon = false, tab = false, comma = false, begins = true;
    for (const char *q = line; q < end; q++) {
        q = begins ? skip_quoted(q, end) : q;
        semicolon |= q < end && *q == ';', tab |= q < end && *q == '\t', comma |= q < end && *q == ',';
        begins = q < end && (isspace((unsigned char)*q) || *q == ';' || *q == ',');
    }
    return semicolon ? ';' : tab ? '\t' : comma && !l->comma ? ',' : ' ';
}

/* What `header: auto` made of the first line, where that can be doubted. */
static void note_first(const layout *l, bool header, const char *line, const char *end, int64_t number)
{
    if (!l->note || *l->note)
        return;
    int n = end - line > SHOWN ? SHOWN : (int)(end - line);
    snprintf(l->note, GP_WHY, header ? "begins with a line without a number, '%.*s%s', line %lld, which is taken for a "
             "header: 'header: yes' says that it is one, 'header: no' that it is a row"
             : "begins with a line in which numbers are missing, '%.*s%s', line %lld, which is taken for a row: "
             "'header: no' says that it is one, 'header: yes' that it is none", n, line, n < end - line ? "..." : "",
             (long long)number);
}

/* The first line that is neither empty nor a comment, or the one behind a header: says how the file is written. Of CSV
 * it may be a header, as `header` says, or else if there is something in it and nothing is a number; then columns stay
 * 0. */
static bool take_first(layout *l, const char *line, const char *end, int64_t number, char err[GP_WHY])
{
    const char *from, *to;
    bool numbers = false, words = false, gaps = false, infinite;
    int64_t columns = 0;
    open_brackets(l, &line, &end);
    l->separator = separator_of(l, line, end);
    for (const char *p = line; next_token(l, &p, end, &from, &to); columns++) {
        bool is = is_number_like(from, to, point_of(l), &infinite);
        numbers |= is, words |= !is && from < to, gaps |= from == to;
    }
    bool first = !l->json && !l->began, only_words = !l->json && words && !numbers;
    bool header = first && (l->header == GP_HEADER_YES || (l->header == GP_HEADER_AUTO && only_words));
    if (first && l->header == GP_HEADER_AUTO && (header || gaps))
        note_first(l, header, line, end, number);
    l->began = true, l->columns = header ? 0 : columns;
    return header || !only_words || gp_why(err, "has no numbers in line %lld", (long long)number);
}

static bool mark(layout *l, place at, char err[GP_WHY])
{
    if (l->marks == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        place *more = realloc(l->mark, room * sizeof *more);
        if (!more)
            return gp_why(err, GP_WHY_MEMORY);
        l->mark = more, l->room = room;
    }
    l->mark[l->marks++] = at;
    return true;
}

/* ---- where lines come from: memory, or a file ------------------------- */

typedef struct lines {
    int fd;                    /* -1: all is in memory */
    gp_growbuf room;           /* a part of the file, */
    int64_t begins;            /* from here on; */
    const char *text;          /* or what is in memory, */
    size_t n;                  /* that many bytes of either */
    place now;                 /* the next line */
    bool ended;                /* no more bytes come */
} lines;

/* Brings more of the file, from the next line on. */
static bool bring_more(lines *s, char err[GP_WHY])
{
    size_t done = (size_t)(s->now.at - s->begins), left = s->n - done;
    if (s->fd < 0)
        return s->ended = true;
    if (left > LINE_MAX_BYTES)
        return gp_why(err, "has a line of more than 64 MiB, line %lld", (long long)s->now.line);
    if (!gp_growbuf_need(&s->room, left + CHUNK + 1))
        return gp_why(err, GP_WHY_MEMORY);
    memmove(s->room.data, s->room.data + done, left);
    int64_t got = gp_read_at(s->fd, s->room.data + left, CHUNK, s->now.at + (int64_t)left);
    if (got < 0)
        return gp_why(err, "cannot be read: %s", gp_strerror(errno));
    s->begins = s->now.at;
    s->n = left + (size_t)got;
    s->room.data[s->n] = 0;            /* a number may be the last that there is */
    s->text = (const char *)s->room.data;
    s->ended = got < CHUNK;
    return true;
}

/* The next line, without its end: [*line, *end), and where it was. *line NULL: there are no more. */
static bool next_line(lines *s, const char **line, const char **end, place *was, char err[GP_WHY])
{
    size_t looked = 0;
    for (;;) {
        size_t at = (size_t)(s->now.at - s->begins);
        const char *from = s->n ? s->text + at : NULL;
        const char *stop = at + looked < s->n ? memchr(from + looked, '\n', s->n - at - looked) : NULL;
        if (stop || s->ended) {
            *was = s->now;
            *line = stop || at < s->n ? from : NULL;
            *end = stop ? stop : s->n ? s->text + s->n : NULL;
            s->now.at += *line ? *end - *line + (stop != NULL) : 0;
            s->now.line += *line != NULL;
            return true;
        }
        looked = s->n - at;
        if (!bring_more(s, err))
            return false;
    }
}

/* Starts over at a place. What is there of the file is kept, where the place is in it. */
static void go_to(lines *s, place at)
{
    if (at.at < s->begins || at.at > s->begins + (int64_t)s->n)
        s->begins = at.at, s->n = 0, s->ended = false;
    s->now = at;
}

/* A text of UTF-8 may begin with a mark that says so. */
static void skip_byte_order_mark(const char **line, const char *end)
{
    if (end - *line >= 3 && !memcmp(*line, "\xef\xbb\xbf", 3))
        *line += 3;
}

/* Finds all rows there are, as far as lines are whole. */
static bool find_rows(layout *l, lines *s, char err[GP_WHY])
{
    const char *line, *end;
    place at;
    while (next_line(s, &line, &end, &at, err)) {
        if (!line)
            return true;
        if (at.line == 1)
            skip_byte_order_mark(&line, end);
        if (is_blank(l, line, end))
            continue;
        if (!l->columns && !take_first(l, line, end, at.line, err))
            return false;
        if (!l->columns) {
            l->separator = 0;
            continue;
        }
        if (l->rows % MARK_ROWS == 0 && !mark(l, at, err))
            return false;
        l->rows++;
    }
    return false;
}

/* ---- numbers ---------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* As strtod and strtof, of [from, to), behind which there is a byte that is of no number; NaN of a missing one. False:
 * it is none. */
static bool to_double(const char *from, const char *to, char point, bool single, double *x, bool *fits)
{
    char *end, copy[DIGITS_MAX];
    bool infinite;
    const char *p = from + (from < to && (*from == '-' || *from == '+')), *comma;
    if (!is_number_like(from, to, point, &infinite)
        || (p[0] == '0' && p + 1 < to && tolower((unsigned char)p[1]) == 'x'))
        return false;
    if (*from == '#' && is_word(from, to, missing))
        return *x = NAN, *fits = true;
    if (point == ',') {
        size_t n = (size_t)(to - from);
        if (n >= sizeof copy || memchr(from, '.', n))
            return false;
        memcpy(copy, from, n);
        copy[n] = 0;
        if ((comma = memchr(from, ',', n)))
            copy[comma - from] = '.';
        from = copy, to = copy + n;
    }
    *x = single ? (double)strtof_l(from, &end, c_locale) : strtod_l(from, &end, c_locale);
    *fits = infinite || !isinf(*x);
    return end == to;
}

/* A whole number within its type. */
static bool to_integer(const char *from, const char *to, gp_dtype t, uint64_t *x, bool *fits)
{
    bool negative = from < to && *from == '-', is_signed = t == GP_I8 || t == GP_I16 || t == GP_I32 || t == GP_I64;
    int bits = 8 * (int)gp_dtype_size(t);
    uint64_t most = UINT64_MAX >> (64 - bits) >> is_signed, v = 0;
    most = negative ? (is_signed ? most + 1 : 0) : most;
    from += from < to && (*from == '-' || *from == '+');
    if (from == to)
        return false;
    for (*fits = true; from < to; from++) {
        if (!isdigit((unsigned char)*from))
            return false;
        uint64_t digit = (uint64_t)(*from - '0');
        *fits = *fits && v <= (most - digit) / 10 && digit <= most;
        v = 10 * v + digit;
    }
    *x = negative ? 0 - v : v;
    return true;
}

typedef struct spot { int64_t line, column; } spot;        /* from 1 */

static bool wrong(const char *from, const char *to, spot in, const char *what, char err[GP_WHY])
{
    int n = to - from > SHOWN ? SHOWN : (int)(to - from);
    return gp_why(err, "has '%.*s%s' in line %lld, column %lld, %s", n, from, n < to - from ? "..." : "",
                  (long long)in.line, (long long)in.column, what);
}

/* Why what is no number of such a type is none. */
static const char *what_is_due(const layout *l, const char *from, const char *to, bool real)
{
    double d;
    bool fits;
    if (!real && to_double(from, to, point_of(l), false, &d, &fits))
        return "where a whole number is due";
    if (!l->json && !l->comma && l->separator != ',' && to_double(from, to, ',', false, &d, &fits))
        return "where a number is due: 'decimal: comma' reads such numbers";
    return l->comma && to_double(from, to, '.', false, &d, &fits) ? "where a number with a decimal comma is due"
                                                                  : "where a number is due";
}

/* One number of the row, to its place: of an empty field of CSV NaN. */
static bool put_number(const layout *l, const char *from, const char *to, gp_dtype t, void *at, spot in,
                       char err[GP_WHY])
{
    char beyond[40];
    uint64_t whole = 0;
    double d = NAN;
    bool fits = true, real = t == GP_F32 || t == GP_F64;
    if (from == to && (l->json || !real))
        return gp_why(err, "has a place without a number in line %lld, column %lld%s%s%s", (long long)in.line,
                      (long long)in.column, l->json ? "" : ": it would be NaN, which ", l->json ? "" : gp_dtype_name(t),
                      l->json ? "" : " cannot hold, and f32 and f64 can");
    if (from < to && (real ? !to_double(from, to, point_of(l), t == GP_F32, &d, &fits)
                           : !to_integer(from, to, t, &whole, &fits)))
        return wrong(from, to, in, what_is_due(l, from, to, real), err);
    snprintf(beyond, sizeof beyond, "which %s cannot hold", gp_dtype_name(t));
    if (!fits)
        return wrong(from, to, in, beyond, err);
    float single = (float)d;
    memcpy(at, t == GP_F32 ? (void *)&single : t == GP_F64 ? (void *)&d : (void *)&whole, gp_dtype_size(t));
    return true;
}

static bool put_row(const layout *l, const char *line, const char *end, gp_dtype t, char *to, int64_t number,
                    char err[GP_WHY])
{
    const char *p = line, *from, *until;
    size_t size = gp_dtype_size(t);
    int64_t k = 0;
    if (!open_brackets(l, &p, &end))
        return gp_why(err, "has no closing ']' in line %lld", (long long)number);
    for (; next_token(l, &p, end, &from, &until); k++)
        if (k < l->columns && !put_number(l, from, until, t, to + (size_t)k * size, (spot){ number, k + 1 }, err))
            return false;
    return k == l->columns || gp_why(err, "has %lld number%s in line %lld, and %lld in its first row", (long long)k,
                                     gp_plural(k), (long long)number, (long long)l->columns);
}

/* ---- reading ---------------------------------------------------------- */

typedef struct text {
    gp_rows rows;
    layout layout;
    int fd;
} text;

typedef struct cursor {        /* a worker's */
    lines from;
    int64_t next;              /* the row that it is before; -1: none */
} cursor;

static bool take_type(const layout *l, gp_dtype dtype, gp_type *whole, char err[GP_WHY])
{
    if (!l->columns)
        return gp_why(err, "has no rows of numbers");
    if (dtype == GP_F16 || dtype == GP_C64)
        return gp_why(err, "is text, which is read as any type but f16 and c64: declare f32, and put a 'cast' stage "
                      "behind this one");
    *whole = (gp_type){ dtype ? dtype : GP_F64, l->columns > 1 ? 2 : 1, { l->rows, l->columns > 1 ? l->columns : 0 } };
    return true;
}

static bool look(bool json, const gp_rows_head *h, const gp_rowsfile_how *how, gp_dtype dtype, gp_type *whole,
                 char err[GP_WHY])
{
    layout l = { .json = json, .comma = how->decimal_comma, .header = how->header, .note = h->note };
    bool all = (int64_t)h->n == h->size;
    lines s = { .fd = -1, .text = h->data, .n = h->n, .now = { 0, 1 } };
    while (!all && s.n && s.text[s.n - 1] != '\n')     /* a line that is not all here */
        s.n--;
    bool ok = find_rows(&l, &s, err);
    if (ok && !all && !l.columns)
        *whole = (gp_type){ .ndim = 0 };       /* its first row lies further behind */
    else
        ok = ok && take_type(&l, dtype, whole, err);
    if (ok && !all && l.columns)
        whole->dim[0] = -1;
    free(l.mark);
    return ok;
}

static void text_close(gp_rows *f)
{
    text *t = (text *)f;
    free(t->layout.mark);
    free(t);
}

static gp_rows *open_text(bool json, int fd, const gp_rowsfile_how *how, gp_dtype dtype, char err[GP_WHY])
{
    lines s = { .fd = fd, .now = { 0, 1 } };
    text *t = calloc(1, sizeof *t);
    if (!t) {
        gp_why(err, GP_WHY_MEMORY);
        return NULL;
    }
    pthread_once(&once, make_locale);
    t->fd = fd, t->layout = (layout){ .json = json, .comma = how->decimal_comma, .header = how->header };
    bool ok = find_rows(&t->layout, &s, err) && take_type(&t->layout, dtype, &t->rows.whole, err);
    free(s.room.data);
    if (ok)
        return &t->rows;
    text_close(&t->rows);
    return NULL;
}

static cursor *own_cursor(const text *t, void **own, char err[GP_WHY])
{
    cursor *c = *own;
    if (c)
        return c;
    if (!(*own = c = calloc(1, sizeof *c)))
        gp_why(err, GP_WHY_MEMORY);
    else
        c->from.fd = t->fd, c->next = -1;
    return c;
}

/* Rows from `first` on: to the nearest place before it that is known, and from there line by line. */
static bool text_read(gp_rows *f, void **own, int64_t first, int64_t n, void *to, char err[GP_WHY])
{
    const text *t = (const text *)f;
    const layout *l = &t->layout;
    const char *line, *end;
    place at;
    cursor *c = own_cursor(t, own, err);
    if (!c)
        return false;
    size_t row = gp_dtype_size(f->whole.dtype) * (size_t)l->columns;
    int64_t marked = first / MARK_ROWS * MARK_ROWS;
    if (c->next < marked || c->next > first) {
        go_to(&c->from, l->mark[first / MARK_ROWS]);
        c->next = marked;
    }
    int64_t k = c->next;
    c->next = -1;
    while (k < first + n) {
        if (!next_line(&c->from, &line, &end, &at, err))
            return false;
        if (!line)
            return gp_why(err, "became shorter: it has no row %lld any more", (long long)k);
        if (at.line == 1)
            skip_byte_order_mark(&line, end);
        if (is_blank(l, line, end))
            continue;
        if (k >= first && !put_row(l, line, end, f->whole.dtype, (char *)to + (size_t)(k - first) * row, at.line, err))
            return false;
        k++;
    }
    c->next = k;
    return true;
}

static void text_leave(void *own)
{
    cursor *c = own;
    free(c->from.room.data);
    free(c);
}

/* ---- writing ---------------------------------------------------------- */

enum { NUMBER_MAX = 32 };              /* bytes that a number and its separator need at most */

/* The fewest digits that are read back to the same bits. */
static int put_float(char *to, double x, bool single, bool json)
{
    if (!isfinite(x))
        return sprintf(to, "%s", isnan(x) ? (json ? "NaN" : "nan") : json ? (x < 0 ? "-Infinity" : "Infinity")
                                                                          : x < 0 ? "-inf" : "inf");
    int n = 0;
    if (fabs(x) < 1e6 && x == (int)x && !(x == 0 && signbit(x)))
        return sprintf(to, "%d", (int)x);
    for (int digits = single ? 6 : 15; digits <= (single ? 9 : 17); digits++) {
        n = sprintf(to, "%.*g", digits, x);
        double again = single ? (double)strtof(to, NULL) : strtod(to, NULL);
        if (again == x)
            break;
    }
    for (char *p = to; *p; p++)        /* some locales have a comma */
        if (!isdigit((unsigned char)*p) && !strchr("+-e", *p))
            *p = '.';
    return n;
}

int gp_text_spell(char to[GP_FILEMETA_NUMBER], double x)
{
    return put_float(to, x, false, true);
}

bool gp_text_number(const char *s, double *x)
{
    bool fits;
    pthread_once(&once, make_locale);
    return *s && to_double(s, s + strlen(s), '.', false, x, &fits) && isfinite(*x);
}

static int put_element(char *to, const char *from, gp_dtype t, bool json)
{
    switch (t) {
#define WHOLE(NAME, ctype, format, wide)         \
    case NAME: {                                 \
        ctype x;                                 \
        memcpy(&x, from, sizeof x);              \
        return sprintf(to, "%" format, (wide)x); \
    }
    WHOLE(GP_U8, uint8_t, "u", unsigned)
    WHOLE(GP_I8, int8_t, "d", int)
    WHOLE(GP_U16, uint16_t, "u", unsigned)
    WHOLE(GP_I16, int16_t, "d", int)
    WHOLE(GP_U32, uint32_t, "u", unsigned)
    WHOLE(GP_I32, int32_t, "d", int)
    WHOLE(GP_U64, uint64_t, "llu", unsigned long long)
    WHOLE(GP_I64, int64_t, "lld", long long)
#undef WHOLE
    default: {
        float f;
        double d;
        memcpy(t == GP_F32 ? (void *)&f : (void *)&d, from, gp_dtype_size(t));
        return put_float(to, t == GP_F32 ? (double)f : d, t == GP_F32, json);
    }
    }
}

/* separator 0: JSON. */
static bool encode(char separator, const void *frame, const gp_type *t, gp_growbuf *out, char err[GP_WHY])
{
    size_t size = gp_dtype_size(t->dtype), count = (size_t)gp_count(t);
    size_t columns = t->ndim > 1 ? (size_t)t->dim[1] : 1;
    const char *from = frame;
    bool json = !separator;
    if (!gp_growbuf_need(out, out->n + count * (NUMBER_MAX + 1) + 1))
        return gp_why(err, "cannot be written: " GP_WHY_MEMORY);
    char *to = (char *)out->data + out->n;
    for (size_t i = 0; i < count; i++, from += size) {
        size_t k = i % columns;
        if (json)
            to += sprintf(to, "%s", k ? ", " : t->ndim > 1 ? "[" : "");
        else if (k)
            *to++ = separator;
        to += put_element(to, from, t->dtype, json);
        if (k + 1 == columns)
            to += sprintf(to, "%s\n", json && t->ndim > 1 ? "]" : "");
    }
    out->n = (size_t)(to - (char *)out->data);
    return true;
}

static const char *why_not(const gp_type *t, const char *path)
{
    (void)path;
    if (t->dtype == GP_F16 || t->dtype == GP_C64)
        return "text holds no f16 and no c64: put a 'cast' stage before this one";
    return t->ndim <= 2 ? NULL : "text has frames of shape [rows] or [rows, columns]";
}

/* ---- the three of them -------------------------------------------------- */

static bool csv_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_dtype dtype, gp_type *whole,
                     char err[GP_WHY])
{
    return look(false, h, how, dtype, whole, err);
}

static bool jsonl_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_dtype dtype, gp_type *whole,
                       char err[GP_WHY])
{
    return look(true, h, how, dtype, whole, err);
}

static gp_rows *csv_open(int fd, const gp_rowsfile_how *how, gp_dtype dtype, char err[GP_WHY])
{
    return open_text(false, fd, how, dtype, err);
}

static gp_rows *jsonl_open(int fd, const gp_rowsfile_how *how, gp_dtype dtype, char err[GP_WHY])
{
    return open_text(true, fd, how, dtype, err);
}

static bool csv_encode(const void *frame, const gp_type *type, gp_growbuf *out, char err[GP_WHY])
{
    return encode(',', frame, type, out, err);
}

static bool tsv_encode(const void *frame, const gp_type *type, gp_growbuf *out, char err[GP_WHY])
{
    return encode('\t', frame, type, out, err);
}

static bool jsonl_encode(const void *frame, const gp_type *type, gp_growbuf *out, char err[GP_WHY])
{
    return encode(0, frame, type, out, err);
}

#define TEXT .decode_ns = 20, .read = text_read, .leave = text_leave, .close = text_close, .why_not = why_not

const gp_rowsfile gp_csv = { .name = "CSV", .options = { "header", "decimal" }, .head = csv_head, .open = csv_open,
                             .encode = csv_encode, TEXT };
const gp_rowsfile gp_tsv = { .name = "TSV", .options = { "header", "decimal" }, .head = csv_head, .open = csv_open,
                             .encode = tsv_encode, TEXT };
const gp_rowsfile gp_jsonl = { .name = "JSON lines", .head = jsonl_head,
                               .open = jsonl_open, .encode = jsonl_encode, TEXT };
