/* includes.c - what a user's kernel includes: each file is read and hashed once, so that a
 * binary in the cache is never older than what it was made of. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device/source.h"

/* The files that a unit is made of, each once. */
typedef struct files {
    char **path, **text;           /* as place_of() spells it; NULL once it was scanned */
    int n, cap;
} files;

/* Where `name` lies in `dir`, with the folder spelled in one way, so that one file has
 * one path however it is reached. False: there is no such folder. */
static bool place_of(const char *dir, const char *name, size_t n, char path[PATH_MAX])
{
    char spelled[PATH_MAX], folder[PATH_MAX];
    int len = *name == '/' ? snprintf(spelled, sizeof spelled, "%.*s", (int)n, name)
                           : snprintf(spelled, sizeof spelled, "%s/%.*s", dir, (int)n, name);
    if (len < 0 || len >= (int)sizeof spelled)
        return false;
    char *file = strrchr(spelled, '/');
    *file++ = '\0';
    return realpath(*spelled ? spelled : "/", folder)
        && snprintf(path, PATH_MAX, "%s/%s", strcmp(folder, "/") ? folder : "", file) < PATH_MAX;
}

static bool add_file(files *f, const char *path, char *text)
{
    if (f->n == f->cap) {
        int cap = f->cap ? 2 * f->cap : 16;
        char **paths = realloc(f->path, sizeof *paths * (size_t)cap);
        f->path = paths ? paths : f->path;
        char **texts = realloc(f->text, sizeof *texts * (size_t)cap);
        f->text = texts ? texts : f->text;
        if (!paths || !texts)
            return false;
        f->cap = cap;
    }
    if (!(f->path[f->n] = strdup(path)))
        return false;
    f->text[f->n++] = text;
    return true;
}

/* Adds what `dir`/`name` names unless it is known. False: there is no such file. */
static bool find_file(gp_unit *u, files *f, const char *dir, const char *name, size_t n)
{
    char path[PATH_MAX], *text;
    size_t bytes;
    if (!place_of(dir, name, n, path))
        return false;
    for (int i = 0; i < f->n; i++)
        if (!strcmp(f->path[i], path))
            return true;
    if (!(text = gp_slurp(path, &bytes)))
        return false;
    gp_hash_text(&u->hash, path);
    gp_hash_text(&u->hash, text);
    if (!add_file(f, path, text))
        free(text);
    return true;
}

/* The operand of the directive whose word `include` is at `word` in `text`, of which `code`
 * is blanked: what follows `#`, which is first in its line. NULL: it is none that is
 * written so. */
static const char *operand_of(const char *text, const char *code, const char *word)
{
    const char *p = word;
    while (p > code && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    if (p == code || *--p != '#')
        return NULL;
    while (p > code && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    if (p > code && p[-1] != '\n')
        return NULL;
    p = text + (word - code) + 7;
    return p + strspn(p, " \t");
}

/* Is a header in <> one that comes with the compiler? Not if it may be found elsewhere. */
static bool is_system(const char *name)
{
    const char *a = getenv("CPATH"), *b = getenv("CPLUS_INCLUDE_PATH");
    return *name != '/' && !(a && *a) && !(b && *b);
}

/* Finds each file that `text`, of a file in `dir`, includes in quotes. What may include
 * something in another way, by a macro or a line that is continued, makes u->traced false. */
static void find_includes(gp_unit *u, files *f, const char *text, const char *dir)
{
    char *code = gp_code_blank(text);
    if (!code) {
        u->traced = false;
        return;
    }
    for (const char *p = strstr(code, "\\\n"); p; p = strstr(p + 1, "\\\n"))
        if (p > code && gp_in_word(p[-1]) && gp_in_word(p[2]))
            u->traced = false;
    for (const char *p = code; (p = strstr(p, "include")); p += 7) {
        if ((p > code && gp_in_word(p[-1])) || (gp_in_word(p[7]) && strncmp(p, "include_next", 12)))
            continue;
        const char *name = operand_of(text, code, p);
        char end = !name ? 0 : *name == '"' ? '"' : *name == '<' ? '>' : 0;
        size_t n = end ? strcspn(name + 1, end == '"' ? "\"\n" : ">\n") : 0;
        if (!n || (end == '>' && !is_system(name + 1)))
            u->traced = false;
        else if (end == '"' && !find_file(u, f, dir, name + 1, n))
            find_file(u, f, u->dir, name + 1, n);
    }
    free(code);
}

void gp_unit_hash_includes(gp_unit *u)
{
    files f = { 0 };
    const char *slash = strrchr(u->src->path, '/'), *name = slash ? slash + 1 : u->src->path;
    char path[PATH_MAX];
    if (place_of(u->dir, name, strlen(name), path))
        add_file(&f, path, NULL);      /* it is in the text */
    find_includes(u, &f, u->user, u->dir);
    for (int i = 0; i < f.n; i++) {    /* grows meanwhile */
        char *text = f.text[i];
        f.text[i] = NULL;
        char *folder = text ? strndup(f.path[i], (size_t)(strrchr(f.path[i], '/') - f.path[i]))
                            : NULL;
        if (folder)
            find_includes(u, &f, text, folder);
        free(folder), free(text);
    }
    for (int i = 0; i < f.n; i++)
        free(f.path[i]);
    free(f.path), free(f.text);
}
