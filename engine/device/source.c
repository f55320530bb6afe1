/* source.c - see source.h.
 *
 * The check of the entry's type is C++, so that typedefs, macros and includes are
 * understood; its failures are short marks ("gpipe-check 2") that are looked for
 * in the compiler's output (source_errors.c). The source is also scanned as text, for declarations
 * of dynamic shared memory: of one that the scan misses the C++ compiler reports an undefined name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/cxx.h"
#include "base/memfile.h"
#include "base/embed.h"
#include "device/cache.h"
#include "device/source.h"

const char *gp_source_name(const gp_source *src)
{
    return src->text ? "code" : src->path;
}

gp_loc gp_source_at(const gp_source *src)
{
    gp_loc at = { .file = src->path, .line = src->text ? src->line : 0, .col = src->text ? src->col : 0 };
    return src->text && !src->line ? src->at : at;
}

gp_loc gp_unit_at(const gp_unit *u, int line, int col, int len)
{
    const gp_source *src = u->src;
    if (!line || (src->text && !src->line))
        return gp_source_at(src);
    return (gp_loc){ src->path, line, col && src->text ? col + src->col - 1 : col, len };
}

gp_loc gp_unit_place(const gp_unit *u, const char *p, size_t len)
{
    int line = u->src->text && u->src->line ? u->src->line : 1, col = 1;
    for (const char *q = u->code; q < p; q++)
        col = *q == '\n' ? 1 : col + 1, line += *q == '\n';
    return gp_unit_at(u, line, col, (int)len);
}

bool gp_source_is_early(const char *text, const char *entry)
{
    size_t n = strlen(entry);
    if (!gp_find_word(text, text, "gp_grid_wait"))
        return false;
    for (const char *p = text; (p = gp_find_word(text, p, "GP_EARLY")); p++) {
        const char *name = p + strlen("GP_EARLY");
        name += strspn(name, " (");
        if (!strncmp(name, entry, n) && name[n + strspn(name + n, " ")] == ')')
            return true;
    }
    return false;
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

/* On the CPU: a variable of each worker thread, which has no meaning in CUDA, would keep something from one frame to a
 * later one by chance. __shared__, which is made of it, was defined before. */
static const char no_threads[] = "#pragma GCC poison thread_local __thread\n";

static void put_header(FILE *out, const char *name)
{
    fputs("#line 1 \"gpipe.h\"\n", out);
    for (const char *p = (const char *)gp_blob_find(name)->data; *p;) {
        size_t n = strcspn(p, "\n");
        n += p[n] == '\n';
        if (strncmp(p, "#include \"", 10) != 0)
            fwrite(p, 1, n, out);
        p += n;
    }
}

static void put_line(FILE *out, int line, const char *path)
{
    fprintf(out, "#line %d \"", line);
    for (const char *p = path; *p; p++) {
        if (*p == '"' || *p == '\\')
            fputc('\\', out);
        fputc(*p, out);
    }
    fputs("\"\n", out);
}

const char *gp_source_line(FILE *out, const gp_source *src)
{
    const char *name = src->text && !src->line ? gp_source_name(src) : src->path;
    put_line(out, src->text && src->line ? src->line : 1, name);
    return name;
}

/* On the CPU the arrays of dynamic shared memory, `extern __shared__ T name[]`,
 * have to be defined; the size is known here. As labels of one piece of
 * thread-local memory they need no type, and are one memory as on a GPU. */
static void put_dynamic(FILE *out, const gp_unit *u)
{
    const char *code = u->code;
    fputs("__asm__(\".pushsection .tbss,\\\"awT\\\",%nobits\\n.balign 128\\n\"\n", out);
    for (const char *p = code; (p = gp_find_word(code, p, "__shared__")); p++) {
        const char *from = p, *end = p + strcspn(p, "[;{}");
        while (from > code && !strchr(";{}", from[-1]))
            from--;
        const char *ext = gp_find_word(code, from, "extern");
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
    "template <class A, class B> struct gp_alike { enum { gp_ok = 0 }; };\n"
    "template <class A> struct gp_alike<A, A> { enum { gp_ok = 1 }; };\n"
    "template <int I, class W, class... A> struct gp_nth { enum { gp_ok = 1 }; };\n"
    "template <int I, class W, class H, class... A> struct gp_nth<I, W, H, A...>"
    " : gp_nth<I - 1, W, A...> {};\n"
    "template <class W, class H, class... A> struct gp_nth<0, W, H, A...>"
    " : gp_alike<typename gp_plain<W>::type, typename gp_plain<H>::type> {};\n"
    "template <class F> struct gp_takes { enum { gp_n = -1 }; typedef F gp_type;"
    " template <int I, class W> struct gp_arg { enum { gp_ok = 1 }; }; };\n"
    "template <class... A> struct gp_takes<void(A...)> { enum { gp_n = sizeof...(A) };"
    " typedef void gp_type(A...);"             /* without default arguments */
    " template <int I, class W> struct gp_arg : gp_nth<I, W, A...> {}; };\n";

/* What is ours behind the source is made of these words, which may be macros of the source; those
 * that begin with gp_ are reserved. */
static const char *const words[] = {
    "__asm__", "__attribute__", "__visibility__", "char", "const", "decltype", "default", "double", "extern",
    "float", "int", "long", "short", "signed", "size_t", "static_assert", "unsigned",
};

static void put_undefs(FILE *out)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        fprintf(out, "#undef %s\n", words[i]);
}

static void put_check(FILE *out, const gp_source *src, bool cpu)
{
    const char *entry = src->entry;
    put_line(out, 1, GP_UNIT_MARK);
    fprintf(out, "static_assert(gp_takes<decltype(%s)>::gp_n == %d, \"" GP_UNIT_MARK " count\");\n", entry,
            src->nparam);
    for (int i = 0; i < src->nparam; i++)
        fprintf(out, "static_assert(gp_takes<decltype(%s)>::gp_arg<%d, %s>::gp_ok, \"" GP_UNIT_MARK " %d\");\n",
                entry, i, src->param[i], i);
    if (cpu)
        fprintf(out, "extern \"C\" gp_takes<decltype(%s)>::gp_type %s;\nextern \"C\" {\n"
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
    for (const char *p = u->code; (p = gp_find_word(u->code, p, "include")); p++) {
        const char *text = u->user + (p - u->code), *name = text + 7 + strspn(text + 7, " \t");
        size_t n = *name == '"' ? strcspn(name + 1, "\"\n") : *name == '<' ? strcspn(name + 1, ">\n") : 0;
        char path[PATH_MAX];
        struct stat st;
        if (n && snprintf(path, sizeof path, "%s/%.*s", name[1] == '/' ? "" : u->dir, (int)n, name + 1)
                < (int)sizeof path
            && !stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
            ok = gp_fail(errs, GP_E_SPEC, gp_unit_place(u, u->code + (name - u->user), n + 2),
                         "'%.*s' is not a regular file", (int)n, name + 1);
    }
    return ok;
}

char *gp_source_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
}

char *gp_source_read(const gp_source *src, gp_errs *errs)
{
    char err[GP_WHY], *text = src->text ? strdup(src->text) : NULL;
    size_t n = src->text ? strlen(src->text) : 0;
    if (src->text && !text)
        gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", gp_source_name(src));
    if (!src->text && !(text = gp_slurp(src->path, GP_SOURCE_MAX, &n, err)))
        gp_fail(errs, GP_E_SPEC, src->at, "'%s' %s", src->path, err);
    if (!text || strlen(text) == n)
        return text;
    free(text);
    gp_fail(errs, GP_E_SPEC, src->at, "'%s' is not text", src->path);
    return NULL;
}

bool gp_unit_make(gp_unit *u, const gp_source *src, bool cpu, gp_errs *errs)
{
    *u = (gp_unit){ .src = src };
    if (!(u->user = gp_source_read(src, errs)))
        return false;
    u->dir = gp_source_folder(src->path);
    u->code = gp_code_blank(u->user);
    gp_memfile m;
    if (u->code && !check_includes(u, errs))
        return false;
    if (!u->dir || !u->code || !gp_memfile_open(&m))
        return gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", gp_source_name(src));
    FILE *out = m.f;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (cpu || strcmp(headers[i], "kernels/kernel.h") == 0)
            put_header(out, headers[i]);
    put_line(out, 1, GP_UNIT_MARK);
    fputs(cpu ? toolkit : "", out);
    fputs(cpu ? no_threads : "", out);
    fprintf(out, "#define GP_COOPERATIVE %d\n", src->cooperative);
    fputs(check, out);
    put_line(out, 1, "define");           /* the stage's option; behind what is ours */
    for (int i = 0; i < src->ndefine; i++) {
        int name = (int)strcspn(src->define[i], "=");
        const char *value = src->define[i] + name;
        fprintf(out, "#define %.*s %s\n", name, src->define[i], *value ? value + 1 : "1");
    }
    u->name = gp_source_line(out, src);
    fputs(u->user, out);
    fputs("\n", out);
    put_line(out, 1, GP_UNIT_MARK);
    put_undefs(out);
    if (cpu)
        put_dynamic(out, u);
    put_check(out, src, cpu);
    if (!(u->text = gp_memfile_close(&m, &u->len)))
        return gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", gp_source_name(src));
    return true;
}

void gp_unit_free(gp_unit *u)
{
    free(u->text);
    free(u->user);
    free(u->code);
    free(u->dir);
}
