/* cu.c - see cu.h. */
#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cu.h"

static char folder[200], path[64][400], *cache_before;
static int next_path;

void cu_open(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/gpipe-cu-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    cache_before = getenv("XDG_CACHE_HOME") ? strdup(getenv("XDG_CACHE_HOME")) : NULL;
    setenv("XDG_CACHE_HOME", cu_path("cache"), 1);
}

static int remove_one(const char *name, const struct stat *st, int type, struct FTW *w)
{
    (void)st, (void)type, (void)w;
    return remove(name);
}

void cu_close(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (cache_before)
        setenv("XDG_CACHE_HOME", cache_before, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    free(cache_before);
    cache_before = NULL;
}

const char *cu_path(const char *name)
{
    ck_assert_int_lt(next_path, 64);
    char *p = path[next_path++];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

void cu_write(const char *name, const char *text)
{
    FILE *f = fopen(cu_path(name), "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

void cu_print(const gp_errs *errs)
{
    for (int i = 0; i < errs->n; i++)
        fprintf(stderr, "%s:%d:%d: %s\n", errs->e[i].at.file ? errs->e[i].at.file : "-",
                errs->e[i].at.line, errs->e[i].at.col, errs->e[i].msg);
}

gp_cpu_entry cu_compile(const char *entry, const char *const *params, const char *text, size_t shared)
{
    char name[100];
    gp_errs errs = { 0 };
    gp_cpu_entry k = { 0 };
    void *dl;
    snprintf(name, sizeof name, "%s.cu", entry);
    cu_write(name, text);
    gp_source src = { .path = cu_path(name), .entry = entry, .param = params,
                      .shared = shared, .at = { "test.yaml", 3, 5, 1 },
                      .cooperative = strstr(text, "this_grid") != NULL };
    while (params[src.nparam])
        src.nparam++;
    if (!gp_cc_compile(&src, NULL, &k, &dl, &errs)) {
        cu_print(&errs);
        ck_abort_msg("'%s' does not compile", entry);
    }
    return k;
}
