/* source_errors.c - what a compiler says of a unit, as errors in the user's terms: at lines of the
 * source, and of the entry's parameters as the stage's option `args`.
 *
 * The entry's declaration is looked for in the text: where that misses it a message is less exact. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "base/plural.h"
#include "device/source.h"

/* ---- the entry's declaration ----------------------------------------------- */

/* The parameters of the entry's declaration: from '(' to ')'. */
static bool entry_params(const gp_unit *u, const char **from, const char **to)
{
    for (const char *p = u->code; (p = gp_find_word(u->code, p, "__global__"));) {
        size_t n;
        const char *name = gp_kernel_name(p += strlen("__global__"), &n);
        if (name && strlen(u->src->entry) == n && strncmp(name, u->src->entry, n) == 0) {
            *from = strchr(name, '(');
            return (*to = gp_closing(*from)) != NULL;
        }
    }
    return false;
}

/* The end of the template arguments that the < at `p` opens; NULL: it is less-than. */
static const char *angle(const char *p, const char *end)
{
    int deep = 0;
    for (; p && p < end && !strchr("=;)]}", *p); p++) {
        deep += *p == '<';
        deep -= *p == '>' && p[-1] != '-';
        if (!deep)
            return p;
        if (strchr("([{", *p) && !(p = gp_closing(p)))
            break;
    }
    return NULL;
}

/* Parameter `k` of the entry as the user wrote it, up to a default argument. */
static bool entry_param(const gp_unit *u, int k, const char **text, size_t *len)
{
    const char *p, *end;
    if (!entry_params(u, &p, &end))
        return false;
    for (p++;; k--) {
        const char *stop = p;
        for (const char *last; stop < end && *stop != ','; stop = (last ? last : stop) + 1)
            last = *stop == '<' ? angle(stop, end) : strchr("([{", *stop) ? gp_closing(stop) : NULL;
        if (k == 0 || stop >= end) {
            const char *value = memchr(p, '=', (size_t)(stop - p));
            stop = value ? value : stop;
            while (p < stop && isspace((unsigned char)*p))
                p++;
            while (stop > p && isspace((unsigned char)stop[-1]))
                stop--;
            *text = u->user + (p - u->code), *len = (size_t)(stop - p);
            return k == 0 && stop > p;
        }
        p = stop + 1;
    }
}

/* ---- errors ---------------------------------------------------------- */

/* One line "FILE:LINE:COL: error: TEXT" (gcc, clang) or "FILE(LINE): error: TEXT"
 * (NVRTC). */
typedef struct report {
    const char *file, *text;
    int nfile, ntext, line, col;
} report;

/* The number that ends at `end`, back to no earlier than `from`. */
static const char *number_before(const char *from, const char *end, int *n)
{
    const char *p = end;
    while (p > from && isdigit((unsigned char)p[-1]))
        p--;
    *n = p < end ? atoi(p) : 0;
    return p;
}

static bool read_report(const char *line, size_t len, report *r)
{
    static const char error[] = "error: ";
    const char *e = memmem(line, len, error, sizeof error - 1), *p;
    if (!e)
        return false;
    *r = (report){ .text = e + sizeof error - 1 };
    r->ntext = (int)(line + len - r->text);
    if (e - line >= 6 && memcmp(e - 6, "fatal ", 6) == 0)
        e -= 6;
    else if (e - line >= 13 && memcmp(e - 13, "catastrophic ", 13) == 0)
        e -= 13;
    if (e - line < 4 || e[-1] != ' ' || e[-2] != ':')
        return false;
    e -= 2;
    if (e[-1] == ')') {
        p = number_before(line, e - 1, &r->line);
    } else {
        p = number_before(line, e, &r->line);
        int before;
        const char *q = p > line && p[-1] == ':' ? number_before(line, p - 1, &before) : p;
        if (q < p && before)
            p = q, r->col = r->line, r->line = before;
    }
    r->file = line, r->nfile = p > line ? (int)(p - 1 - line) : 0;
    return r->line > 0;
}

static bool is(const char *s, int n, const char *word)
{
    return strlen(word) == (size_t)n && memcmp(s, word, (size_t)n) == 0;
}

/* "name(const float *, int)": what the entry has to be. */
static const char *signature(const gp_source *src, char buf[400])
{
    size_t n = (size_t)snprintf(buf, 400, "%s(", src->entry);
    for (int i = 0; i < src->nparam && n < 400; i++)
        n += (size_t)snprintf(buf + n, 400 - n, "%s%s", i ? ", " : "", src->param[i]);
    if (n < 399)
        strcpy(buf + n, ")");
    else
        strcpy(buf + 396, "...");
    return buf;
}

/* " (p.yaml:7:20)": where the YAML passes parameter k; "" where that is not known. */
static const char *passed_at(const gp_source *src, int k, char buf[200])
{
    *buf = '\0';
    if (src->param_at && k < src->nparam && src->param_at[k].file)
        snprintf(buf, 200, " (%.160s:%d:%d)", src->param_at[k].file, src->param_at[k].line,
                 src->param_at[k].col);
    return buf;
}

static void count_error(const gp_unit *u, gp_errs *errs)
{
    const char *p, *end;
    size_t len;
    int has = 0, gives = u->src->nparam;
    char buf[400], from[200];
    gp_loc at = gp_source_at(u->src);
    while (entry_param(u, has, &p, &len))
        has++;
    if (has == 1 && entry_param(u, 0, &p, &len) && is(p, (int)len, "void"))
        has = 0;
    bool found = entry_params(u, &p, &end);
    if (found)
        at = gp_unit_place(u, p, (size_t)(end + 1 - p));
    passed_at(u->src, has < gives ? has : 0, from);    /* the first that is too many */
    if (found && has != gives)
        gp_fail(errs, GP_E_SPEC, at, "'%s' has %d parameter%s, but args gives %d value%s%s%s: %s",
                u->src->entry, has, gp_plural(has), gives, gp_plural(gives), from,
                has > gives && memchr(p, '=', (size_t)(end - p))
                ? ", and a default argument is never used" : "", signature(u->src, buf));
    else                               /* a macro's work */
        gp_fail(errs, GP_E_SPEC, at, "'%s' does not take the %d value%s that args gives%s: %s",
                u->src->entry, gives, gp_plural(gives), from, signature(u->src, buf));
}

static void type_error(const gp_unit *u, int k, gp_errs *errs)
{
    const char *p;
    size_t n;
    char buf[400], from[200];
    gp_loc at = gp_source_at(u->src);
    passed_at(u->src, k, from);
    if (k < 0 || k >= u->src->nparam)
        return;
    if (entry_param(u, k, &p, &n)) {
        at = gp_unit_place(u, u->code + (p - u->user), n);
        gp_fail(errs, GP_E_SPEC, at, "parameter %d of '%s' is '%.*s', but args passes '%s'%s; "
                "args asks for %s", k + 1, u->src->entry, (int)n, p, u->src->param[k], from,
                signature(u->src, buf));
    } else {
        gp_fail(errs, GP_E_SPEC, at, "parameter %d of '%s' is not '%s', which args passes%s; "
                "args asks for %s", k + 1, u->src->entry, u->src->param[k], from,
                signature(u->src, buf));
    }
}

/* Something is wrong with the entry as a whole. */
static void entry_error(const gp_unit *u, const report *r, gp_errs *errs)
{
    const char *from, *to;
    char names[200] = "";
    if (entry_params(u, &from, &to)) {
        gp_fail(errs, GP_E_SPEC, gp_unit_place(u, from, 1), "'%s' is not an extern \"C\" __global__ "
                "function: %.*s", u->src->entry, r->ntext, r->text);
        return;
    }
    for (const char *p = u->code; (p = gp_find_word(u->code, p, "__global__"));) {
        size_t n, used = strlen(names);
        const char *name = gp_kernel_name(p += strlen("__global__"), &n);
        if (name && used + n + 5 < sizeof names)
            snprintf(names + used, sizeof names - used, "%s'%.*s'", used ? ", " : "", (int)n,
                     name);
    }
    gp_fail(errs, GP_E_SPEC, u->src->at, "no kernel '%s' in '%s'; %s%s", u->src->entry,
            gp_source_name(u->src), *names ? "set 'entry' to one of its kernels: " : "it has none",
            names);
}

/* A call that kernels/cpu.h or groups.h deleted, because it needs a GPU. */
static bool gpu_only(const report *r, gp_loc at, gp_errs *errs)
{
    static const char *const starts[] = { "__", "tiled_partition", "coalesced_threads" };
    const char *deleted = memmem(r->text, (size_t)r->ntext, "deleted function", 16), *p = NULL;
    const char *end = r->text + r->ntext;
    for (size_t i = 0; deleted && !p && i < sizeof starts / sizeof *starts; i++)
        p = memmem(deleted, (size_t)(end - deleted), starts[i], strlen(starts[i]));
    if (!p)
        return false;
    int n = 0;
    while (p + n < end && gp_in_word(p[n]))
        n++;
    gp_fail(errs, GP_E_SPEC, at, "'%.*s' needs a GPU: use a warp function whose name ends in _sync, with a mask of the threads "
            "that call it, or run with 'device: cuda'", n, p);
    return true;
}

bool gp_source_changes(const gp_source *src, const char *variable, gp_errs *errs)
{
    return gp_fail(errs, GP_E_SPEC, src->at, "kernel '%s' of '%s' may change its variable '%s', which launches for several "
                   "frames share and change at the same time: if it is only read, declare it const, with a value that the "
                   "compiler knows, or __constant__ where its address is stored or passed on; else set 'serial: true', so "
                   "that frames take turns",
                   src->entry, gp_source_name(src), variable);
}

bool gp_source_waits(const gp_source *src, gp_errs *errs)
{
    return gp_fail(errs, GP_E_SPEC, src->at, "kernel '%s' of '%s' waits for all blocks, by this_grid().sync(), which "
                   "needs them to run at once: set 'cooperative: true'", src->entry, gp_source_name(src));
}

/* What to do about a header that is not there. */
static const char *advice(const report *r)
{
    bool missing = memmem(r->text, (size_t)r->ntext, "No such file", 12)
                || memmem(r->text, (size_t)r->ntext, "not found", 9)
                || memmem(r->text, (size_t)r->ntext, "cannot open", 11);
    const char *name = missing ? memmem(r->text, (size_t)r->ntext, "cuda_", 5) : NULL;
    return name ? "; it is of the CUDA toolkit: install it in /usr/local/cuda, or set CPATH" : "";
}

void gp_unit_errors(const gp_unit *u, const char *log, gp_errs *errs)
{
    enum { SHOWN = 5 };
    int told = 0, more = 0, before = errs->failed;
    report entry = { 0 };              /* of our own lines after the source */
    bool count = strstr(log, GP_UNIT_MARK " count") != NULL;
    int include = 0;                   /* the user's line that includes what follows */
    if (strstr(log, GP_UNIT_MARK " cooperative")) {
        gp_source_waits(u->src, errs);
        return;
    }
    for (const char *p = log; *p; p += strspn(p, "\n")) {
        size_t len = strcspn(p, "\n");
        const char *line = p, *mark, *from;
        report r;
        p += len;
        from = memmem(line, len, "from ", 5);
        if (from && strncmp(from + 5, u->name, strlen(u->name)) == 0 && from[5 + strlen(u->name)] == ':')
            include = atoi(from + 6 + strlen(u->name));
        if (!read_report(line, len, &r))
            continue;
        if (told == SHOWN) {
            more++;
            continue;
        }
        if (is(r.file, r.nfile, GP_UNIT_MARK)) {
            mark = memmem(r.text, (size_t)r.ntext, GP_UNIT_MARK " ", sizeof GP_UNIT_MARK);
            if (mark && isdigit((unsigned char)mark[sizeof GP_UNIT_MARK]) && !count)
                type_error(u, atoi(mark + sizeof GP_UNIT_MARK), errs), told++;
            else if (!mark && !entry.file)
                entry = r;
            continue;
        }
        bool own = is(r.file, r.nfile, u->name);
        gp_loc at = gp_unit_at(u, own ? r.line : include, own ? r.col : 0, 0);
        told++;
        if (own && gpu_only(&r, at, errs))
            continue;
        if (own && u->name == u->src->path)
            gp_fail(errs, GP_E_SPEC, at, "%.*s%s", r.ntext, r.text, advice(&r));
        else
            gp_fail(errs, GP_E_SPEC, at, "in '%.*s', line %d: %.*s%s", r.nfile, r.file, r.line,
                    r.ntext, r.text, own ? advice(&r) : "");
    }
    if (!told && entry.file)
        entry_error(u, &entry, errs);
    else if (!told && count)
        count_error(u, errs);
    if (more)
        gp_fail(errs, GP_E_SPEC, gp_source_at(u->src),
                "the compiler found %d more error%s", more, more == 1 ? "" : "s");
    if (errs->failed == before)
        gp_fail(errs, GP_E_SPEC, gp_source_at(u->src), "does not compile: %.400s",
                *log ? log : "the compiler does not say why");
}
