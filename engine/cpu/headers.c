/* headers.c - headers of the CUDA toolkit as gpipe has them for the CPU.
 *
 * A source may have made macros of any names before it includes one, as the option `define` does.
 * Such macros are undefined while a header of ours is read; so it must not need a macro of the C library,
 * unless its name begins with two underscores. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cpu/kernel.h"

static const struct { const char *name, *file; } ours[] = {
    { "cuda_fp16.h", "kernels/half.h" }, { "cooperative_groups.h", "kernels/groups.h" },
    { "cuda_runtime.h", NULL },            /* nothing is missing */
};
enum { NOURS = sizeof ours / sizeof *ours };

static const char *text_of(const char *file)
{
    return file ? (const char *)gp_blob_find(file)->data : "";
}

void gp_cc_headers_hash(gp_hash *h)
{
    for (int i = 0; i < NOURS; i++)
        gp_hash_text(h, text_of(ours[i].file));
}

/* Is the word [p, end) the first of its kind in `code`? */
static bool is_first(const char *code, const char *p, size_t n)
{
    for (const char *q = code; (q = memmem(q, (size_t)(p - q), p, n)); q++)
        if ((q == code || !gp_in_word(q[-1])) && !gp_in_word(q[n]))
            return false;
    return true;
}

/* Lines of C++ for each word of `code` that may be a macro of the source's, as `format` says. */
static bool put_words(FILE *f, const char *code, const char *format)
{
    bool ok = true;
    for (const char *p = code; *p && ok; ) {
        size_t n = 0;
        while (gp_in_word(p[n]))
            n++;
        bool word = n && !isdigit((unsigned char)*p) && strncmp(p, "__", 2) && strncmp(p, "gp_", 3)
            && strncmp(p, "GP_", 3);
        if (word && is_first(code, p, n))
            ok = fprintf(f, format, (int)n, p, (int)n, p) > 0;
        p += n ? n : 1;
    }
    return ok;
}

bool gp_cc_headers_put(const gp_source *src, const char *dir, gp_errs *errs)
{
    for (int i = 0; i < NOURS; i++) {
        char path[PATH_MAX];
        const char *text = text_of(ours[i].file);
        char *code = gp_code_blank(text);
        snprintf(path, sizeof path, "%s/%s", dir, ours[i].name);
        FILE *f = code ? fopen(path, "we") : NULL;
        bool ok = f && put_words(f, code, "#pragma push_macro(\"%.*s\")\n#undef %.*s\n")
            && fprintf(f, "#line 1 \"gpipe.h\"\n%s", text) > 0
            && put_words(f, code, "#pragma pop_macro(\"%.*s\")\n");
        ok = f && !fclose(f) && ok;
        free(code);
        if (!ok)
            return gp_fail(errs, GP_E_RESOURCE, src->at, "to compile '%s' '%s' cannot be written: "
                           "%s", gp_source_name(src), path, gp_strerror(errno));
    }
    return true;
}
