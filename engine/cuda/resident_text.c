/* resident_text.c - see nvrtc.h.
 *
 * Each source has a namespace of its own, which all kernels of it share, so that equal names in two sources do not
 * collide. C names are the same in every namespace, so C linkage becomes C++ linkage. Behind each source stands a
 * function gp_dN for each of its kernels, before the macros of the next source can change a name. */
#include <stdlib.h>
#include <string.h>
#include "base/embed.h"
#include "base/memfile.h"
#include "base/module.h"
#include "cuda/nvrtc.h"
#include "device/source.h"

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool same_source(const gp_member *a, const gp_member *b)
{
    if (a->name || b->name)
        return a->name && b->name && !strcmp(a->file, b->file);
    const gp_source *x = a->source, *y = b->source;
    bool same = !strcmp(x->path, y->path) && same_text(x->text, y->text) && x->ndefine == y->ndefine;
    for (int i = 0; same && i < x->ndefine; i++)
        same = !strcmp(x->define[i], y->define[i]);
    return same;
}

/* The first kernel that has the source of kernel i. */
static int first_of(const gp_member *k, int i)
{
    int first = 0;
    while (!same_source(&k[first], &k[i]))
        first++;
    return first;
}

/* The functions that call the kernels of the source of kernel `first`. */
static void put_calls(FILE *out, const gp_member *k, int n, int first)
{
    for (int i = first; i < n; i++)
        if (same_source(&k[first], &k[i]))
            fprintf(out, "static __device__ void gp_d%d(const char *args) { gp_call(gp_b%d::%s, args); }\n", i, first,
                    k[i].name ? k[i].name : k[i].source->entry);
}

static bool put_builtin(FILE *out, const gp_member *k, int n, int first, gp_errs *errs)
{
    char name[200];
    const gp_blob *b = gp_blobs;
    snprintf(name, sizeof name, "%.*s.cu", (int)strcspn(k[first].file, "."), k[first].file);
    while (b->name && strcmp(b->name, name) != 0)
        b++;
    if (!b->name)
        return gp_fail(errs, GP_E_BUG, (gp_loc){ 0 }, "no text of '%s'", name);
    fprintf(out, "#line 1 \"%s\"\nnamespace gp_b%d {\n%s\n}\n", name, first, (const char *)b->data);
    put_calls(out, k, n, first);
    return true;
}

/* The source, with C++ linkage in place of C linkage. `code`: the same bytes without comments and strings. */
static void put_linked(FILE *out, const char *text, const char *code)
{
    const char *from = text;
    for (const char *p = code; (p = gp_find_word(code, p, "extern"));) {
        p += strlen("extern");
        const char *name = text + (p - code);
        name += strspn(name, " \t\r\n");
        if (strncmp(name, "\"C\"", 3) != 0)
            continue;
        fprintf(out, "%.*s\"C++\"", (int)(name - from), from);
        from = name + 3;
    }
    fputs(from, out);
}

/* Takes back what a source defines: the next one is compiled as if it stood alone. */
static void put_undefs(FILE *out, const char *code)
{
    for (const char *p = code; (p = strchr(p, '#')); p++) {
        const char *word = p + 1 + strspn(p + 1, " \t");
        if (strncmp(word, "define", 6) != 0)
            continue;
        const char *name = word + 6 + strspn(word + 6, " \t");
        int len = 0;
        while (gp_in_word(name[len]))
            len++;
        if (len && name > word + 6)
            fprintf(out, "#undef %.*s\n", len, name);
    }
}

static bool put_source(FILE *out, const gp_member *k, int n, int first, gp_errs *errs)
{
    const gp_source *src = k[first].source;
    if (!src->text && gp_module_is(src->path))
        return gp_fail(errs, GP_E_SPEC, src->at, "'%s' is compiled already, and 'launch: persistent' needs the source of all "
                       "kernels: set 'launch: graph'", src->path);
    char *text = gp_source_read(src, errs), *code = text ? gp_code_blank(text) : NULL;
    if (text && !code)
        gp_fail(errs, GP_E_RESOURCE, src->at, "no memory to compile '%s'", gp_source_name(src));
    if (!code) {
        free(text);
        return false;
    }
    for (int i = 0; i < src->ndefine; i++) {
        int name = (int)strcspn(src->define[i], "=");
        const char *value = src->define[i] + name;
        fprintf(out, "#define %.*s %s\n", name, src->define[i], *value ? value + 1 : "1");
    }
    fprintf(out, "namespace gp_b%d {\n", first);
    gp_source_line(out, src);
    put_linked(out, text, code);
    fputs("\n}\n", out);
    put_calls(out, k, n, first);
    for (int i = 0; i < src->ndefine; i++)
        fprintf(out, "#undef %.*s\n", (int)strcspn(src->define[i], "="), src->define[i]);
    put_undefs(out, code);
    free(text), free(code);
    return true;
}

/* Built-ins first: no user's macro reaches them. Behind a user's source all names are
 * reserved ones. */
char *gp_resident_text(const gp_member *k, int n, gp_errs *errs)
{
    gp_memfile m;
    size_t len;
    bool ok = true;
    if (!gp_memfile_open(&m))
        return GP_NULL(gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory"));
    fputs(gp_resident_head, m.f);
    for (int i = 0; ok && i < n; i++)
        ok = !k[i].name || first_of(k, i) < i || put_builtin(m.f, k, n, i, errs);
    for (int i = 0; ok && i < n; i++)
        ok = k[i].name || first_of(k, i) < i || put_source(m.f, k, n, i, errs);
    fprintf(m.f, "static __device__ void gp_dispatch(int gp_kernel, const char *gp_args)\n{\n    switch (gp_kernel) {\n");
    for (int i = 0; i < n; i++)
        fprintf(m.f, "    case %d: gp_d%d(gp_args); break;\n", i, i);
    fprintf(m.f, "    }\n}\n");
    char *text = gp_memfile_close(&m, &len);
    if (!text)
        ok = gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    if (!ok)
        free(text), text = NULL;
    return text;
}
