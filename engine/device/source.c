/* source.c - see source.h.
 *
 * The check of the entry's type is C++, so that typedefs, macros and includes are
 * understood; its failures are short marks ("gpipe-check 2") that are looked for
 * in the compiler's output and reported in terms of the stage's options. The source is
 * also scanned as text, to make messages better and to find declarations of dynamic
 * shared memory: where the scan misses something a message is less exact, or the C++
 * compiler reports an undefined name. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/memfile.h"
#include "base/plural.h"
#include "base/embed.h"
#include "device/cache.h"
#include "device/source.h"

#define MARK "gpipe-check"

/* ---- scanning -------------------------------------------------------- */

char *gp_code_blank(const char *text)
{
    char *copy = strdup(text), *p = copy;
    while (p && *p) {
        char *from = p;
        if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*') {
            char *end = strstr(p + 2, "*/");
            p = end ? end + 2 : p + strlen(p);
        } else if (*p == '"' || (*p == '\'' && (p == copy || !isalnum((unsigned char)p[-1])))) {
            char quote = *p++;
            while (*p && *p != quote && *p != '\n')
                p += p[0] == '\\' && p[1] ? 2 : 1;
            p += *p == quote;
        } else {
            p++;
            continue;
        }
        for (; from < p; from++)
            if (*from != '\n')
                *from = ' ';
    }
    return copy;
}

/* The next `word` at or after `p`, as a whole word. */
static const char *find_word(const char *text, const char *p, const char *word)
{
    size_t n = strlen(word);
    for (; (p = strstr(p, word)); p += n)
        if ((p == text || !gp_in_word(p[-1])) && !gp_in_word(p[n]))
            return p;
    return NULL;
}

/* The end of a bracket that opens at `p`; NULL when it does not close. */
static const char *closing(const char *p)
{
    int deep = 0;
    for (; *p; p++) {
        deep += *p == '(' || *p == '[' || *p == '{';
        deep -= *p == ')' || *p == ']' || *p == '}';
        if (!deep)
            return p;
    }
    return NULL;
}

static gp_loc place(const gp_unit *u, const char *p, size_t len)
{
    gp_loc at = { u->src->path, 1, 1, (int)len };
    for (const char *q = u->code; q < p; q++)
        at.col = *q == '\n' ? 1 : at.col + 1, at.line += *q == '\n';
    return at;
}

/* The name of the kernel declared after `__global__` at `p`, NULL when there is
 * none: the last word before a bracket that is no attribute. */
static const char *kernel_name(const char *p, size_t *len)
{
    const char *name = NULL;
    for (; *p && *p != ';' && *p != '{'; p++) {
        if (gp_in_word(*p)) {
            name = p;
            while (gp_in_word(p[1]))
                p++;
            *len = (size_t)(p + 1 - name);
        } else if (*p == '(') {
            if (name && strncmp(name, "__", 2) != 0 && strncmp(name, "alignas", 7) != 0)
                return name;
            if (!(p = closing(p)))
                break;
        }
    }
    return NULL;
}

/* The parameters of the entry's declaration: from '(' to ')'. */
static bool entry_params(const gp_unit *u, const char **from, const char **to)
{
    for (const char *p = u->code; (p = find_word(u->code, p, "__global__"));) {
        size_t n;
        const char *name = kernel_name(p += strlen("__global__"), &n);
        if (name && strlen(u->src->entry) == n && strncmp(name, u->src->entry, n) == 0) {
            *from = strchr(name, '(');
            return (*to = closing(*from)) != NULL;
        }
    }
    return false;
}

/* Parameter `k` of the entry as the user wrote it. */
static bool entry_param(const gp_unit *u, int k, const char **text, size_t *len)
{
    const char *p, *end;
    if (!entry_params(u, &p, &end))
        return false;
    for (p++;; k--) {
        const char *stop = p;
        int deep = 0;
        for (; stop < end && (deep || *stop != ','); stop++)
            deep += (*stop == '(' || *stop == '<') - (*stop == ')' || *stop == '>');
        if (k == 0 || stop >= end) {
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

/* ---- the text -------------------------------------------------------- */

/* gpipe's headers, in the order they include each other. */
static const char *const headers[] = {
    "engine/base/embed.h", "engine/cpu/fiber.h", "kernels/cpu.h", "kernels/kernel.h",
};

/* On the CPU: headers of the CUDA toolkit that others of it include, cuda_bf16.h for one. What
 * they have kernels/cpu.h has; so they are to be empty. */
static const char toolkit[] =
    "#define __CUDA_RUNTIME_H__\n#define __HOST_DEFINES_H__\n#define __VECTOR_TYPES_H__\n"
    "#define __VECTOR_FUNCTIONS_H__\n";

static void put_header(FILE *out, const char *name)
{
    const gp_blob *b = gp_blobs;
    while (strcmp(b->name, name) != 0)
        b++;
    fputs("#line 1 \"gpipe.h\"\n", out);
    for (const char *p = (const char *)b->data; *p;) {
        size_t n = strcspn(p, "\n");
        n += p[n] == '\n';
        if (strncmp(p, "#include \"", 10) != 0)
            fwrite(p, 1, n, out);
        p += n;
    }
}

static void put_line(FILE *out, const char *path)
{
    fputs("#line 1 \"", out);
    for (const char *p = path; *p; p++) {
        if (*p == '"' || *p == '\\')
            fputc('\\', out);
        fputc(*p, out);
    }
    fputs("\"\n", out);
}

/* On the CPU the arrays of dynamic shared memory, `extern __shared__ T name[]`,
 * have to be defined; the size is known here. As labels of one piece of
 * thread-local memory they need no type, and are one memory as on a GPU. */
static void put_dynamic(FILE *out, const gp_unit *u)
{
    const char *code = u->code;
    fputs("__asm__(\".pushsection .tbss,\\\"awT\\\",%nobits\\n.balign 128\\n\"\n", out);
    for (const char *p = code; (p = find_word(code, p, "__shared__")); p++) {
        const char *from = p, *end = p + strcspn(p, "[;{}");
        while (from > code && !strchr(";{}", from[-1]))
            from--;
        const char *ext = find_word(code, from, "extern");
        if (*end != '[' || end[1 + strspn(end + 1, " \t\n")] != ']' || !ext || ext > end)
            continue;
        while (end > from && !gp_in_word(end[-1]))
            end--;
        const char *name = end;
        while (name > from && gp_in_word(name[-1]))
            name--;
        int n = (int)(end - name);
        fprintf(out, "\".ifndef %.*s\\n.globl %.*s\\n.hidden %.*s\\n.type %.*s, %%object\\n"
                     "%.*s:\\n.endif\\n\"\n", n, name, n, name, n, name, n, name, n, name);
    }
    fprintf(out, "\".zero %zu\\n.popsection\\n\");\n", u->src->shared ? u->src->shared : 16);
}

/* Same types, up to names for one layout: long and long long, float2 and gp_c64,
 * __half and gp_half. */
static const char check[] =
    "struct __half;\n"
    "template <class T> struct gp_plain { typedef T type; };\n"
    "template <class T> struct gp_plain<T *> { typedef typename gp_plain<T>::type *type; };\n"
    "template <class T> struct gp_plain<const T>"
    " { typedef const typename gp_plain<T>::type type; };\n"
    "template <> struct gp_plain<long> { typedef long long type; };\n"
    "template <> struct gp_plain<unsigned long> { typedef unsigned long long type; };\n"
    "template <> struct gp_plain<float2> { typedef gp_c64 type; };\n"
    "template <> struct gp_plain<__half> { typedef gp_half type; };\n"
    "template <class A, class B> struct gp_same { enum { gp_ok = 0 }; };\n"
    "template <class A> struct gp_same<A, A> { enum { gp_ok = 1 }; };\n"
    "template <int I, class W, class... A> struct gp_nth { enum { gp_ok = 1 }; };\n"
    "template <int I, class W, class H, class... A> struct gp_nth<I, W, H, A...>"
    " : gp_nth<I - 1, W, A...> {};\n"
    "template <class W, class H, class... A> struct gp_nth<0, W, H, A...>"
    " : gp_same<typename gp_plain<W>::type, typename gp_plain<H>::type> {};\n"
    "template <class F> struct gp_takes { enum { gp_n = -1 };"
    " template <int I, class W> struct gp_arg { enum { gp_ok = 1 }; }; };\n"
    "template <class... A> struct gp_takes<void(A...)> { enum { gp_n = sizeof...(A) };"
    " template <int I, class W> struct gp_arg : gp_nth<I, W, A...> {}; };\n";

static void put_check(FILE *out, const gp_source *src, bool cpu)
{
    const char *entry = src->entry;
    put_line(out, MARK);
    fprintf(out, "static_assert(gp_takes<decltype(%s)>::gp_n == %d, \"" MARK " count\");\n", entry,
            src->nparam);
    for (int i = 0; i < src->nparam; i++)
        fprintf(out, "static_assert(gp_takes<decltype(%s)>::gp_arg<%d, %s>::gp_ok, \"" MARK " %d\");\n",
                entry, i, src->param[i], i);
    if (cpu)
        fprintf(out, "extern \"C\" decltype(%s) %s;\nextern \"C\" {\n"
                     "extern __attribute__((__visibility__(\"default\")))"
                     " const gp_cpu_entry gp_entry;\n"
                     "const gp_cpu_entry gp_entry = gp_trampoline<%s>::gp_entry_of(\"%s\"); }\n",
                entry, entry, entry, entry);
}

/* ---- the unit --------------------------------------------------------- */

/* Before a compiler waits for a FIFO, or reads a device for ever, because the source
 * includes it. What a header includes is not looked at. */
static bool check_includes(const gp_unit *u, gp_errs *errs)
{
    bool ok = true;
    for (const char *p = u->code; (p = find_word(u->code, p, "include")); p++) {
        const char *text = u->user + (p - u->code), *name = text + 7 + strspn(text + 7, " \t");
        size_t n = *name == '"' ? strcspn(name + 1, "\"\n") : *name == '<' ? strcspn(name + 1, ">\n") : 0;
        char path[PATH_MAX];
        struct stat st;
        if (n && snprintf(path, sizeof path, "%s/%.*s", name[1] == '/' ? "" : u->dir, (int)n, name + 1)
                < (int)sizeof path
            && !stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
            ok = gp_fail(errs, GP_E_SPEC, place(u, u->code + (name - u->user), n + 2),
                         "'%.*s' is not a regular file", (int)n, name + 1);
    }
    return ok;
}

char *gp_source_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
}

bool gp_unit_make(gp_unit *u, const gp_source *src, bool cpu, gp_errs *errs)
{
    *u = (gp_unit){ .src = src };
    char err[GP_WHY];
    size_t n;
    if (!(u->user = gp_slurp(src->path, GP_SOURCE_MAX, &n, err)))
        return gp_fail(errs, GP_E_SPEC, src->at, "'%s' %s", src->path, err);
    if (strlen(u->user) != n)
        return gp_fail(errs, GP_E_SPEC, src->at, "'%s' is not text", src->path);
    u->dir = gp_source_folder(src->path);
    u->code = gp_code_blank(u->user);
    gp_memfile m;
    if (u->code && !check_includes(u, errs))
        return false;
    if (!u->dir || !u->code || !gp_memfile_open(&m))
        return gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", src->path);
    FILE *out = m.f;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (cpu || strcmp(headers[i], "kernels/kernel.h") == 0)
            put_header(out, headers[i]);
    put_line(out, MARK);
    fputs(cpu ? toolkit : "", out);
    fputs(check, out);
    put_line(out, "define");           /* the stage's option; behind what is ours */
    for (int i = 0; i < src->ndefine; i++) {
        int name = (int)strcspn(src->define[i], "=");
        const char *value = src->define[i] + name;
        fprintf(out, "#define %.*s %s\n", name, src->define[i], *value ? value + 1 : "1");
    }
    put_line(out, src->path);
    fputs(u->user, out);
    fputs("\n", out);
    put_line(out, MARK);
    if (cpu)
        put_dynamic(out, u);
    put_check(out, src, cpu);
    if (!(u->text = gp_memfile_close(&m, &u->len)))
        return gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", src->path);
    return true;
}

void gp_unit_free(gp_unit *u)
{
    free(u->text);
    free(u->user);
    free(u->code);
    free(u->dir);
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
    gp_loc at = { .file = u->src->path };
    if (entry_params(u, &p, &end))
        at = place(u, p, (size_t)(end + 1 - p));
    while (entry_param(u, has, &p, &len))
        has++;
    if (has == 1 && entry_param(u, 0, &p, &len) && is(p, (int)len, "void"))
        has = 0;
    passed_at(u->src, has < gives ? has : 0, from);    /* the first that is too many */
    if (at.line && has != gives)
        gp_fail(errs, GP_E_SPEC, at, "'%s' has %d parameter%s, but args gives %d value%s%s: %s",
                u->src->entry, has, gp_plural(has), gives, gp_plural(gives), from,
                signature(u->src, buf));
    else                               /* a macro's work */
        gp_fail(errs, GP_E_SPEC, at, "'%s' does not take the %d value%s that args gives%s: %s",
                u->src->entry, gives, gp_plural(gives), from, signature(u->src, buf));
}

static void type_error(const gp_unit *u, int k, gp_errs *errs)
{
    const char *p;
    size_t n;
    char buf[400], from[200];
    gp_loc at = { .file = u->src->path };
    passed_at(u->src, k, from);
    if (k < 0 || k >= u->src->nparam)
        return;
    if (entry_param(u, k, &p, &n)) {
        at = place(u, u->code + (p - u->user), n);
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
        gp_fail(errs, GP_E_SPEC, place(u, from, 1), "'%s' is not an extern \"C\" __global__ "
                "function: %.*s", u->src->entry, r->ntext, r->text);
        return;
    }
    for (const char *p = u->code; (p = find_word(u->code, p, "__global__"));) {
        size_t n, used = strlen(names);
        const char *name = kernel_name(p += strlen("__global__"), &n);
        if (name && used + n + 5 < sizeof names)
            snprintf(names + used, sizeof names - used, "%s'%.*s'", used ? ", " : "", (int)n,
                     name);
    }
    gp_fail(errs, GP_E_SPEC, u->src->at, "no kernel '%s' in '%s'; %s%s", u->src->entry,
            u->src->path, *names ? "set 'entry' to one of its kernels: " : "it has none",
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
    gp_fail(errs, GP_E_SPEC, at, "warp intrinsics need a GPU: '%.*s'; use shared memory and "
            "__syncthreads(), or run with 'device: cuda'", n, p);
    return true;
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
    bool count = strstr(log, MARK " count") != NULL;
    int include = 0;                   /* the user's line that includes what follows */
    for (const char *p = log; *p; p += strspn(p, "\n")) {
        size_t len = strcspn(p, "\n");
        const char *line = p, *mark, *from;
        report r;
        p += len;
        from = memmem(line, len, "from ", 5);
        if (from && strncmp(from + 5, u->src->path, strlen(u->src->path)) == 0 &&
            from[5 + strlen(u->src->path)] == ':')
            include = atoi(from + 6 + strlen(u->src->path));
        if (!read_report(line, len, &r))
            continue;
        if (told == SHOWN) {
            more++;
            continue;
        }
        if (is(r.file, r.nfile, MARK)) {
            mark = memmem(r.text, (size_t)r.ntext, MARK " ", sizeof MARK);
            if (mark && isdigit((unsigned char)mark[sizeof MARK]) && !count)
                type_error(u, atoi(mark + sizeof MARK), errs), told++;
            else if (!mark && !entry.file)
                entry = r;
            continue;
        }
        gp_loc at = { .file = u->src->path };
        told++;
        if (is(r.file, r.nfile, u->src->path)) {
            at.line = r.line, at.col = r.col;
            if (!gpu_only(&r, at, errs))
                gp_fail(errs, GP_E_SPEC, at, "%.*s%s", r.ntext, r.text, advice(&r));
        } else {
            at.line = include;
            gp_fail(errs, GP_E_SPEC, at, "in '%.*s', line %d: %.*s", r.nfile, r.file, r.line,
                    r.ntext, r.text);
        }
    }
    if (!told && entry.file)
        entry_error(u, &entry, errs);
    else if (!told && count)
        count_error(u, errs);
    if (more)
        gp_fail(errs, GP_E_SPEC, (gp_loc){ .file = u->src->path },
                "the compiler found %d more error%s", more, more == 1 ? "" : "s");
    if (errs->failed == before)
        gp_fail(errs, GP_E_SPEC, (gp_loc){ .file = u->src->path }, "does not compile: %.400s",
                *log ? log : "the compiler does not say why");
}
