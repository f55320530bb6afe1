/* includes.c - which files a text for NVRTC includes, which NVRTC does not tell: its time
 * trace names them, but has been seen to fault when a process compiles again.
 *
 * Directives are read as text, all branches of #if. What could include a file in any other
 * way than by a plain directive makes the list unknown, so that nothing is kept in the cache. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cuda/nvrtc.h"
#include "device/cache.h"
#include "device/source.h"

/* Adds the file `name` of folder `dir` unless it is known. False: there is none. */
static bool add_file(gp_deps *r, const char *dir, size_t ndir, const char *name, size_t n)
{
    char path[PATH_MAX];
    int len = *name == '/' ? snprintf(path, sizeof path, "%.*s", (int)n, name)
                           : snprintf(path, sizeof path, "%.*s/%.*s", (int)ndir, dir, (int)n, name);
    if (len < 0 || len >= (int)sizeof path || access(path, F_OK) != 0)
        return false;
    for (int i = 0; i < r->npaths; i++)
        if (!strcmp(r->path[i], path))
            return true;
    gp_deps_path(r, path, (size_t)len);
    return true;
}

/* As written in quotes (`dir`: the folder of what includes it) or in <> (dir NULL). */
static void find_file(gp_deps *r, const char *dir, const char *name, size_t n)
{
    char word[80];
    bool there = dir && add_file(r, dir, strlen(dir), name, n);
    for (int i = 0; !there && i < r->nfolders; i++)
        there = add_file(r, r->folder[i], strlen(r->folder[i]), name, n);
    snprintf(word, sizeof word, "%.*s", (int)n, name);
    if (gp_nvrtc_has_header(word))
        r->unknown |= there;           /* it may be either */
    else
        r->unknown |= !there;
}

static void find_includes(gp_deps *r, const char *text, const char *dir)
{
    char *code = gp_code_blank(text);
    if (!code) {
        r->unknown = true;
        return;
    }
    for (const char *p = code; (p = strchr(p, '\\')); p++)
        r->unknown |= p > code && gp_in_word(p[-1]) && (p[1] == '\n' || p[1] == '\r' || p[1] == ' ');
    for (const char *p = code; (p = strstr(p, "include")); p += 7) {
        if ((p > code && gp_in_word(p[-1])) || (gp_in_word(p[7]) && strncmp(p, "include_next", 12)))
            continue;
        const char *name = gp_include_operand(text, code, p);
        char end = !name ? 0 : *name == '"' ? '"' : *name == '<' ? '>' : 0;
        size_t n = end ? strcspn(name + 1, end == '"' ? "\"\n" : ">\n") : 0;
        if (n)
            find_file(r, end == '"' ? dir : NULL, name + 1, n);
        else
            r->unknown = true;
    }
    free(code);
}

void gp_nvrtc_includes(gp_deps *r, const char *text, const char *toolkit)
{
    find_includes(r, text, NULL);
    for (int i = 0; i < r->npaths && !r->unknown; i++) {       /* grows meanwhile */
        char err[GP_WHY], *dir = gp_source_folder(r->path[i]);
        size_t bytes;
        bool theirs = !strncmp(r->path[i], toolkit, strlen(toolkit));
        char *header = theirs ? NULL : gp_slurp(r->path[i], GP_SOURCE_MAX, &bytes, err);
        if (header && dir)
            find_includes(r, header, dir);
        else if (!theirs)
            r->unknown = true;
        free(header), free(dir);
    }
}
