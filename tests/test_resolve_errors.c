/* test_resolve_errors.c - ways to be refused by resolve that are made here, and the files tests/bad/resolve_*.yaml, of
 * the real kinds. Those of kinds for tests are in tests/bad/world.txt (test_bad.c). */
#include <glob.h>
#include <stdarg.h>
#include "compile/resolve.h"
#include "pipe.h"
#include "world.h"

/* ---- long names, long chains ----------------------------------------- */

static char made[10000];

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *fmt, ...)
{
    va_list ap;
    size_t n = strlen(made);
    va_start(ap, fmt);
    vsnprintf(made + n, sizeof made - n, fmt, ap);
    va_end(ap);
}

static const char *only_error(void)
{
    ck_assert_ptr_null(world_resolve(made));
    ck_assert_int_eq(world.errs.n, 1);
    return world.errs.e[0].msg;
}

TEST(integers_as_large_as_they_are)
{
    world_must("stages: [{use: src}, {use: both, ints: [1, 99]}, {use: sink}]\n");
}

TEST(chains_of_vars)
{
    for (int n = 60; n <= 70; n++) {
        strcpy(made, "stages: [{use: src}, {use: host}, {use: sink}]\ndepth: v0\nvars:\n");
        for (int i = 0; i < n; i++)
            put("  v%d: v%d + 1\n", i, i + 1);
        put("  v%d: 1\n", n);
        if (n < GP_VARS_DEEPEST)
            ck_assert_int_eq(world_must(made)->depth, n + 1);
        else
            ck_assert_str_eq(only_error(), "'v0' depends on a chain of more than 64 variables; put "
                             "some of them into one expression");
    }
}

TEST(long_names)
{
    for (int n = 60; n <= 66; n++) {
        strcpy(made, "stages: [{use: src}, {use: host}, {use: sink}]\n");
        put("vars: {%0*d: 5}\ndepth: %0*d\n", n, 0, n, 0);
        for (char *zero = made; (zero = strstr(zero, "00")); zero += n)
            memset(zero, 'v', (size_t)n);
        if (n < 64)
            ck_assert_int_eq(world_must(made)->depth, 5);
        else
            ck_assert_str_eq(only_error(), "a name in an expression has at most 63 letters");
    }
}

/* All of a cycle is told, however long its names are. */
TEST(long_cycle)
{
    enum { N = 7 };
    char want[1000] = "a cycle: ";
    strcpy(made, "stages:\n");
    for (int i = 0; i < N; i++)
        put("  - {use: host, name: s%039d, in: s%039d}\n", i, (i + 1) % N);
    put("  - {use: sink, in: s%039d}\n", 0);
    for (int i = N; i >= 0; i--)
        snprintf(want + strlen(want), 60, "s%039d%s", (i + N - 1) % N, i ? " -> " : "; a stage");
    ck_assert_msg(!strncmp(only_error(), want, strlen(want)), "%s\nnot\n%s", world.errs.e[0].msg, want);
}

/* ---- files ----------------------------------------------------------- */

/* The first lines of a file of tests/bad are "# error: FILE:LINE:COL: error: MSG", all the errors it has. */
static void check_bad_file(const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    ck_assert_ptr_null(world_resolve_file(text, strrchr(path, '/') + 1));
    const char *line = text;
    int n = 0;
    for (; !strncmp(line, "# error: ", 9); line = strchr(line, '\n') + 1, n++) {
        char got[1000] = "none";
        size_t len = strcspn(line, "\n") - 9;
        if (n < world.errs.n)
            snprintf(got, sizeof got, "%s:%d:%d: error: %s", world.errs.e[n].at.file,
                     world.errs.e[n].at.line, world.errs.e[n].at.col, world.errs.e[n].msg);
        ck_assert_msg(!strncmp(got, line + 9, len), "%s: got\n%s\nnot\n%.*s", path, got, (int)len, line + 9);
    }
    ck_assert_int_gt(n, 0);
    ck_assert_msg(world.errs.n == n, "%s: %d errors more: %s", path, world.errs.n - n, world.errs.e[n].msg);
}

TEST(bad_files)
{
    gp_registry *mine = world.registry;
    glob_t g;
    world.registry = (gp_registry *)pipe_registry();
    ck_assert_int_eq(glob("tests/bad/resolve_*.yaml", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++)
        check_bad_file(g.gl_pathv[i]);
    globfree(&g);
    world.registry = mine;
}

TEST_SUITE(resolve_errors, world_up, world_down, 0)
