/* err.c - see err.h, why.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include "base/json.h"
#include "base/plain.h"
#include "base/why.h"
#include "gpipe/err.h"

static bool is_error(gp_code code)
{
    return code != GP_E_WARN && code != GP_E_NOTE;
}

/* Room for an error and its notes: the last warnings go, each with the notes behind it, which explain it. */
static void drop_warnings(gp_errs *errs)
{
    enum { ROOM = 18 };              /* a report of a stall */
    for (int i = errs->n - 1, end = errs->n; i >= 0 && errs->n > GP_ERRS_MAX - ROOM; i--) {
        if (errs->e[i].code == GP_E_NOTE)
            continue;
        if (errs->e[i].code == GP_E_WARN) {
            memmove(&errs->e[i], &errs->e[end], sizeof *errs->e * (size_t)(errs->n - end));
            errs->n -= end - i;
            errs->dropped++;
        }
        end = i;
    }
}

/* Is the byte one inside a UTF-8 character? */
static bool inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* A text that does not fit loses its middle: messages end with what is wrong. */
static void format(char *msg, size_t size, const char *fmt, va_list ap)
{
    char whole[16 * 1024];             /* more than two paths */
    int n = vsnprintf(whole, sizeof whole, fmt, ap), most = (int)size - 1, head = (most - 3) / 2;
    n = n < (int)sizeof whole ? n : (int)sizeof whole - 1;
    if (n <= most) {
        memcpy(msg, whole, (size_t)n + 1);
        return;
    }
    const char *tail = whole + n - (most - 3 - head);
    while (head > 0 && inside(whole[head]))
        head--;
    while (inside(*tail))
        tail++;
    snprintf(msg, size, "%.*s...%s", head, whole, tail);
}

bool gp_why(char err[GP_WHY], const char *fmt, ...)
{
    int kept = errno;
    va_list ap;
    va_start(ap, fmt);
    format(err, GP_WHY, fmt, ap);
    va_end(ap);
    errno = kept;
    return false;
}

const char *gp_strerror(int e)
{
    return e == EMFILE ? GP_MARK_FILES "Too many open files" : e == ENFILE ? GP_MARK_SHORT "Too many open files in system"
        : e == ENOMEM ? GP_MARK_SHORT "Cannot allocate memory"
        : e == EAGAIN ? GP_MARK_THREADS "Resource temporarily unavailable" : strerror(e);
}

/* Appends a limit of this process to a message: "%s'ulimit -n' is 4". */
static void tell_limit(gp_err *e, const char *before, const char *option, int which, rlim_t unit)
{
    struct rlimit l;
    size_t n = strlen(e->msg);
    bool known = !getrlimit((unsigned)which, &l);
    char value[24] = "unlimited";
    if (known && l.rlim_cur != RLIM_INFINITY)
        snprintf(value, sizeof value, "%llu", (unsigned long long)(l.rlim_cur / unit));
    if (known)
        snprintf(e->msg + n, sizeof e->msg - n, "%s'ulimit %s' is %s", before, option, value);
}

/* Removes the marks that why.h defines. One of a shortage sets GP_E_RESOURCE, because the pipeline is not at fault. */
static void take_marks(gp_err *e)
{
    bool is_short = false, files = false, threads = false;
    for (char *at = e->msg; (at = strchr(at, GP_MARK_SHORT[0]));) {
        bool f = !strncmp(at, GP_MARK_FILES, 3), t = !strncmp(at, GP_MARK_THREADS, 3);
        bool mark = f || t || !strncmp(at, GP_MARK_SHORT, 3);
        is_short |= mark, files |= f, threads |= t;
        if (mark)
            memmove(at, at + 3, strlen(at + 3) + 1);
        else
            at++;
    }
    if (!is_short || (e->code != GP_E_RUN && e->code != GP_E_USAGE && e->code != GP_E_SPEC && e->code != GP_E_RESOURCE))
        return;
    e->code = GP_E_RESOURCE;
    if (files)
        tell_limit(e, " (", "-n", RLIMIT_NOFILE, 1);
    if (threads) {
        tell_limit(e, " (", "-u", RLIMIT_NPROC, 1);
        tell_limit(e, ", ", "-v", RLIMIT_AS, 1024);
    }
    if (files || threads)
        strncat(e->msg, ")", sizeof e->msg - 1 - strlen(e->msg));
}

/* What looks like another character, or like none, is named behind the message that quotes it. */
static void name_odd(gp_err *e)
{
    unsigned c;
    char *end = e->msg + strlen(e->msg), code[12], name[60];
    for (const char *s = e->msg, *stop = end; s < stop;) {
        size_t n = gp_utf8(s, (size_t)(stop - s), &c);
        s += n ? n : 1;
        const char *is = gp_odd_name(c, true);
        if (!is)
            continue;
        snprintf(code, sizeof code, "U+%04X", c);
        size_t len = (size_t)snprintf(name, sizeof name, " (%s: %s)", code, is);
        if (!strstr(e->msg, code) && len < sizeof e->msg - (size_t)(end - e->msg))
            end = memcpy(end, name, len + 1), end += len;
    }
}

/* Was the same said of another copy of a line, which has the name of its file in another place (compile/inside.h)? */
static bool is_of_copy(const gp_errs *errs, gp_code code, gp_loc at, const char *c_file, int c_line)
{
    bool is = false;
    for (int i = 0; i < errs->n && !is; i++) {
        const gp_err *e = &errs->e[i];
        is = e->at.file && at.file && e->at.file != at.file && at.line && e->at.line == at.line && e->at.col == at.col
            && is_error(e->code) == is_error(code) && e->c_line == c_line && !strcmp(e->c_file, c_file) && !strcmp(e->at.file, at.file);
    }
    return is;
}

bool gp_fail_(gp_errs *errs, gp_code code, gp_loc at, const char *c_file,
              int c_line, const char *fmt, ...)
{
    static _Thread_local bool left_out;        /* the last one, and so are its notes */
    if (is_error(code))
        errs->failed++;
    if (code != GP_E_NOTE)
        left_out = is_of_copy(errs, code, at, c_file, c_line);
    if (left_out)
        return false;
    if (errs->n == GP_ERRS_MAX && is_error(code))      /* an error is worth more than a warning */
        drop_warnings(errs);
    if (errs->n == GP_ERRS_MAX) {
        errs->dropped += code != GP_E_NOTE;
        return false;
    }
    gp_err *e = &errs->e[errs->n++];
    e->code = code, e->at = at.file ? at : errs->at, e->c_file = c_file, e->c_line = c_line;
    va_list ap;
    va_start(ap, fmt);
    format(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    take_marks(e);
    if (code == GP_E_SPEC)
        name_odd(e);
    return false;
}

void gp_errs_add(gp_errs *to, const gp_errs *from)
{
    for (int i = 0; i < from->n; i++) {
        const gp_err *e = &from->e[i];
        gp_fail_(to, e->code, e->at, e->c_file, e->c_line, "%s", e->msg);
    }
    to->dropped += from->dropped;
    int stored = 0;
    for (int i = 0; i < from->n; i++)
        stored += is_error(from->e[i].code);
    to->failed += from->failed - stored;
}

int gp_errs_exit(const gp_errs *errs)
{
    static const int status[] = {
#define X(name, exit, text) [GP_E_##name] = exit,
        GP_CODES(X)
#undef X
    };
    for (int i = 0; i < errs->n; i++)
        if (is_error(errs->e[i].code))
            return status[errs->e[i].code];
    return errs->failed ? status[GP_E_RUN] : 0;
}

const char *gp_text_line(const char *text, size_t len, int line, int *n)
{
    const char *end = text + len;
    for (int i = 1; text < end; i++) {
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        const char *stop = nl ? nl : end;
        if (i == line) {
            *n = (int)(stop - text);
            return text;
        }
        text = stop + 1;
    }
    return NULL;
}

enum { SHOWN = 160 };   /* bytes of a source line that are worth showing */

/* The line number `line`, of which a long one shows what is around column `at` (from
 * 0), and below it a caret at `at` that is as wide as `len` bytes are. */
static void print_line(FILE *to, const char *s, int n, int line, int at, int len, const char *on,
                       const char *off)
{
    int from = 0, end = n;
    if (n > SHOWN) {
        from = at > SHOWN / 2 ? at - SHOWN / 2 : 0;
        from = from > n - SHOWN ? n - SHOWN : from;
        end = from + SHOWN;
        while (from < at && inside(s[from]))
            from++;
        while (end < n && end > from && inside(s[end]))
            end--;
    }
    const char *before = from ? "..." : "", *after = end < n ? "..." : "";
    fprintf(to, "%5d | %s", line, before);
    gp_put_plain(to, s + from, (size_t)(end - from), "\t");
    fprintf(to, "%s\n      | %*s", after, (int)strlen(before), "");
    at = at < end ? at : end;
    for (int i = from, tab; i < at; i = tab + (tab < at)) {
        for (tab = i; tab < at && s[tab] != '\t'; tab++)
            ;
        fprintf(to, "%*s%s", gp_put_plain(NULL, s + i, (size_t)(tab - i), ""), "",
                tab < at ? "\t" : "");
    }
    unsigned c;
    int first = at < end ? (int)gp_utf8(s + at, (size_t)(end - at), &c) : 0;
    len = len > first ? len : first;
    len = len < end - at ? len : end - at;
    fprintf(to, "%s^", on);
    for (int i = len > 0 ? gp_put_plain(NULL, s + at, (size_t)len, "\t") : 0; i > 1; i--)
        fputc('~', to);
    fprintf(to, "%s\n", off);
}

/* A message may have several lines; those after the first stand below it. */
static void print_message(FILE *to, const char *msg)
{
    for (size_t n; ; msg += n + 1) {
        n = strcspn(msg, "\n");
        gp_put_plain(to, msg, n, "\t");
        if (!msg[n])
            return;
        fprintf(to, "\n%s", msg[n + 1] == ' ' || !msg[n + 1] ? "" : "      ");
    }
}

void gp_err_print(FILE *to, const gp_err *e, const char *file,
                  const char *text, size_t len, bool color)
{
    const char *word = e->code == GP_E_WARN ? "warning" : "error";
    const char *on = !color ? "" : e->code == GP_E_WARN ? "\033[35m" : "\033[31m";
    const char *bold = color ? "\033[1m" : "", *off = color ? "\033[0m" : "";

    if (e->code == GP_E_NOTE) {
        fputs("      ", to);
        print_message(to, e->msg);
        fputc('\n', to);
        return;
    }
    fputs(bold, to);
    if (e->at.file) {
        gp_put_plain(to, e->at.file, strlen(e->at.file), "");
        if (e->at.line)
            fprintf(to, ":%d", e->at.line);
        if (e->at.line && e->at.col)
            fprintf(to, ":%d", e->at.col);
    } else {
        fputs("gpipe", to);
    }
    fprintf(to, ": %s%s%s%s: %s", on, word, off, bold, off);
    print_message(to, e->msg);
    fputc('\n', to);
    if (e->code == GP_E_BUG)
        fprintf(to, "      noticed at %s:%d; please report it\n", e->c_file,
                e->c_line);

    int n;
    const char *s;
    if (!text || !e->at.line || !e->at.col || !e->at.file || !file
        || strcmp(e->at.file, file) || !(s = gp_text_line(text, len, e->at.line, &n)))
        return;
    n -= n && s[n - 1] == '\r';
    print_line(to, s, n, e->at.line, e->at.col - 1, e->at.len, on, off);
}

/* Optimal string alignment distance (Damerau-Levenshtein without repeated
 * edits of one substring); words of more than 31 bytes are never near. */
static int distance(const char *a, const char *b)
{
    enum { N = 32 };
    size_t la = strlen(a), lb = strlen(b);
    int d[N][N];
    if (la >= N || lb >= N)
        return 1 << 20;
    for (size_t i = 0; i <= la; i++)
        for (size_t j = 0; j <= lb; j++) {
            if (!i || !j) {
                d[i][j] = (int)(i + j);
                continue;
            }
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]
                && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[la][lb];
}

/* The largest edit distance at which a candidate is suggested. */
static int reach(const char *word)
{
    return 1 + (int)strlen(word) / 4;
}

void gp_near_try(gp_near *near, const char *candidate)
{
    if (!candidate || !near->word)
        return;
    int longer = abs((int)strlen(candidate) - (int)strlen(near->word));
    if (longer > reach(near->word))        /* the distance is at least this */
        return;
    int n = distance(near->word, candidate);
    bool another = !longer && n == 1 && strlen(candidate) == 1 && strcasecmp(near->word, candidate);   /* letter */
    if (n < near->distance && !another)
        near->distance = n, near->best = candidate;
}

const char *gp_near_text(gp_near *near)
{
    near->text[0] = 0;
    if (near->best && near->distance <= reach(near->word))
        snprintf(near->text, sizeof near->text, "; did you mean '%s'?",
                 near->best);
    return near->text;
}
