/* cu.c - see cu.h. */
#include "pipe.h"
#include "cu.h"

static const char *folder, *cache_before;

void cu_open(void)
{
    folder = pipe_dir(), cache_before = format("%s", getenv("XDG_CACHE_HOME"));
    setenv("XDG_CACHE_HOME", cu_path("cache"), 1);
}

void cu_close(void)
{
    setenv("XDG_CACHE_HOME", cache_before, 1);
}

const char *cu_path(const char *name)
{
    return format("%s/%s", folder, name);
}

void cu_write(const char *name, const char *text)
{
    pipe_text(folder, name, text);
}

void cu_print(const gp_errs *errs)
{
    for (int i = 0; i < errs->n; i++)
        fprintf(stderr, "%s:%d:%d: %s\n", errs->e[i].at.file ? errs->e[i].at.file : "-",
                errs->e[i].at.line, errs->e[i].at.col, errs->e[i].msg);
}

gp_cpu_entry cu_compile(const char *entry, const char *const *params, const char *text, size_t shared)
{
    gp_errs errs = { 0 };
    gp_cpu_entry k = { 0 };
    void *dl;
    char *name = format("%s.cu", entry);
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
