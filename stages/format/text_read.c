/* text_read.c - reading numbers as text, see text_file.h.
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
#include "base/arena.h"
#include "base/plural.h"
#include "text_file.h"

enum { CHUNK = 1 << 18, MARK_ROWS = 1024, LINE_MAX_BYTES = 1 << 26, HEADER_MAX = 1 << 16, SHOWN = 40, DIGITS_MAX = 1100 };

/* ---- lines ------------------------------------------------------------ */

typedef struct place { int64_t at, line; } place;      /* the offset where a line begins, and its number, from 1 */

/* Where rows are. */
typedef struct layout {
    bool json, comma;          /* comma: numbers have a decimal comma */
    int header;                /* gp_header; */
    uint64_t first_file;       /* as gp_rowsfile_how.header_line */
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

/* Spreadsheets write these in place of a number that is missing, or that cannot be computed. */
static bool is_cell_error(const char *from, const char *to)
{
    static const char *const words[] = { missing, "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#SPILL!",
                                         "#CALC!",
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

/* A character in quotes separates nothing; a comma beside quotes is in no number. */
static char separator_of(const layout *l, const char *line, const char *end)
{
    bool semicolon = false, tab = false, comma = false, begins = true;
    for (const char *q = line; q < end; q++) {
        const char *behind = begins ? skip_quoted(q, end) : q;
        bool quoted = behind > q || (q + 1 < end && q[1] == '"');
        q = behind;
        semicolon |= q < end && *q == ';', tab |= q < end && *q == '\t';
        comma |= q < end && *q == ',' && (!l->comma || quoted);
        begins = q < end && (isspace((unsigned char)*q) || *q == ';' || *q == ',');
    }
    return semicolon ? ';' : tab ? '\t' : comma ? ',' : ' ';
}

/* A text of UTF-8 may begin with a mark that says so. */
static void skip_byte_order_mark(const char **line, const char *end)
{
    if (end - *line >= 3 && !memcmp(*line, "\xef\xbb\xbf", 3))
        *line += 3;
}

/* Where a line ends of which a field in quotes may have line breaks. NULL: not here. */
static const char *end_of_quoted(const char *line, const char *end)
{
    bool begins = true;
    skip_byte_order_mark(&line, end);
    for (const char *q = line; q < end; q++) {
        q = begins ? skip_quoted(q, end) : q;
        if (q == end || *q == '\n')
            return q < end ? q : NULL;
        begins = isspace((unsigned char)*q) || *q == ';' || *q == ',';
    }
    return NULL;
}

/* Says what `header: auto` made of the first line, where that can be doubted, or why nothing. */
static bool say_first(char to[GP_WHY], const char *what, const char *line, const char *end, int64_t number, const char *taken)
{
    char shown[SHOWN + 4];
    int n = end - line > SHOWN ? SHOWN : (int)(end - line);
    snprintf(shown, sizeof shown, "%.*s%s", n, line, n < end - line ? "..." : "");
    for (char *p = shown; *p; p++)
        *p = isspace((unsigned char)*p) ? ' ' : *p;
    return gp_why(to, "begins with a line %s, '%s', line %lld, %s", what, shown, (long long)number, taken);
}

enum { NO_HEADER = 1 };        /* as a gp_rowsfile_how.header_line, which of a header has another bit */

static uint64_t digest(const char *from, const char *to)
{
    uint64_t h = 0xcbf29ce484222325;   /* FNV-1a (Fowler, Noll, Vo) */
    for (; from < to; from++)
        h = (h ^ (unsigned char)*from) * 0x100000001b3;
    return h | NO_HEADER << 1;
}

/* Is a first line of words a header by `header: auto`? In the first file it is, which is said; in a later one if it
 * is the same. */
static bool is_header(layout *l, const char *line, const char *end, int64_t number, char err[GP_WHY])
{
    static const char what[] = "without a number";
    if (!l->first_file && !l->note)
        return say_first(err, what, line, end, number, "behind the first MiB, which is all that is read before the run: "
                         "'header: yes' says that it is a header, 'header: no' that it is a row");
    if (l->first_file)
        return l->first_file == digest(line, end)
            || say_first(err, what, line, end, number, l->first_file == NO_HEADER
                         ? "and the first file has no header: 'header: no' says that it is a row"
                         : "which is not the header of the first file: 'header: yes' leaves out the first line of each");
    say_first(l->note, what, line, end, number, "which is taken for a header: 'header: yes' says that it is one, 'header: no' "
              "that it is a row");
    l->first_file = digest(line, end);
    return true;
}

/* The first line that is neither empty nor a comment, or the one behind a header: says how the file is written. In CSV
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
    bool doubted = first && l->header == GP_HEADER_AUTO, header = first && l->header == GP_HEADER_YES;
    if (doubted && only_words && !(header = is_header(l, line, end, number, err)))
        return false;
    if (doubted && !header && gaps && l->note && !l->first_file)
        say_first(l->note, "in which numbers are missing", line, end, number, "which is taken for a row: 'header: no' says "
                  "that it is one, 'header: yes' that it is none");
    l->began = true, l->columns = header ? 0 : columns, l->first_file = l->first_file ? l->first_file : NO_HEADER;
    return header || !only_words || gp_why(err, "has no numbers in line %lld", (long long)number);
}

static bool mark(layout *l, place at, char err[GP_WHY])
{
    if (!GP_ROOM(l->mark, l->marks, l->room))
        return gp_why(err, GP_WHY_MEMORY);
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
    bool quotes;               /* the next line may be several, with breaks in fields that are in quotes */
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
        size_t header = s->n - at < HEADER_MAX ? s->n - at : HEADER_MAX;
        const char *stop = at + looked >= s->n ? NULL : s->quotes ? end_of_quoted(from, from + header)
                         : memchr(from + looked, '\n', s->n - at - looked);
        if (!stop && s->quotes && (s->ended || header == HEADER_MAX)) {
            s->quotes = false, looked = 0;     /* it has a quote without an end */
            continue;
        }
        if (stop || s->ended) {
            *was = s->now;
            *line = stop || at < s->n ? from : NULL;
            *end = stop ? stop : s->n ? s->text + s->n : NULL;
            s->now.at += *line ? *end - *line + (stop != NULL) : 0;
            s->now.line += *line != NULL;
            for (const char *p = *line; s->quotes && p && (p = memchr(p, '\n', (size_t)(*end - p))); p++)
                s->now.line++;
            return true;
        }
        looked = s->quotes ? 0 : s->n - at;
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

/* Finds all rows there are, as far as lines are whole. */
static bool find_rows(layout *l, lines *s, char err[GP_WHY])
{
    const char *line, *end;
    place at;
    while (s->quotes = !l->json && l->header != GP_HEADER_NO && !l->began, next_line(s, &line, &end, &at, err)) {
        if (!line)
            return true;
        if (at.line == 1)
            skip_byte_order_mark(&line, end);
        bool several = s->quotes && memchr(line, '\n', (size_t)(end - line)), blank = is_blank(l, line, end);
        if (!blank && !l->columns && !take_first(l, line, end, at.line, err))
            return false;
        if (several && (blank || l->columns)) {        /* it is no header, so it is one line */
            s->quotes = false, go_to(s, at);
            if (!next_line(s, &line, &end, &at, err))
                return false;
        }
        if (blank)
            continue;
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

bool gp_text_number(const char *s, double *x)
{
    bool fits;
    pthread_once(&once, make_locale);
    return *s && to_double(s, s + strlen(s), '.', false, x, &fits) && isfinite(*x);
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
    if (!l->json && !l->comma && to_double(from, to, ',', false, &d, &fits))
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

bool gp_text_head(const gp_rows_head *h, const gp_rowsfile_how *how, gp_type *whole, char err[GP_WHY])
{
    char note[GP_WHY];
    layout l = { .json = !how->as->separator, .comma = how->decimal_comma, .header = how->header,
                 .note = h->note ? h->note : note };
    bool all = (int64_t)h->n == h->size;
    lines s = { .fd = -1, .text = h->data, .n = h->n, .now = { 0, 1 } };
    while (!all && s.n && s.text[s.n - 1] != '\n')     /* a line that is not all here */
        s.n--;
    bool ok = find_rows(&l, &s, err);
    if (ok && !all && !l.columns)
        *whole = (gp_type){ .ndim = 0 };       /* its first row lies further behind */
    else
        ok = ok && take_type(&l, how->dtype, whole, err);
    if (ok && !all && l.columns)
        whole->dim[0] = -1;
    if (h->header_line)
        *h->header_line = l.first_file;
    free(l.mark);
    return ok;
}

void gp_text_close(gp_rows *f)
{
    text *t = (text *)f;
    free(t->layout.mark);
    free(t);
}

gp_rows *gp_text_open(int fd, const gp_rowsfile_how *how, char err[GP_WHY])
{
    lines s = { .fd = fd, .now = { 0, 1 } };
    text *t = calloc(1, sizeof *t);
    if (!t)
        return GP_NULL(gp_why(err, GP_WHY_MEMORY));
    pthread_once(&once, make_locale);
    t->fd = fd;
    t->layout = (layout){ .json = !how->as->separator, .comma = how->decimal_comma, .header = how->header,
                          .first_file = how->header_line };
    bool ok = find_rows(&t->layout, &s, err) && take_type(&t->layout, how->dtype, &t->rows.whole, err);
    free(s.room.data);
    if (ok)
        return &t->rows;
    gp_text_close(&t->rows);
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
bool gp_text_read(gp_rows *f, void **own, int64_t first, int64_t n, void *to, char err[GP_WHY])
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

void gp_text_leave(void *own)
{
    cursor *c = own;
    free(c->from.room.data);
    free(c);
}
