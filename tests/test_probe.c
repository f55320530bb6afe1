/* test_probe.c - looking at files, and lists of them. */
#include <errno.h>
#include <sys/stat.h>
#include "compile/resolve.h"
#include "pipe.h"

static gp_arena arena;
static gp_probe probe;
static const char *folder;

static int looks;

static void look(gp_arena *a, gp_probed *x)
{
    looks++;
    gp_probe_look(a, x);
}

static void enter_folder(void)
{
    probe = (gp_probe){ .arena = &arena, .look = look };
    looks = 0;
    folder = pipe_dir();
}

static void leave_folder(void)
{
    gp_arena_free(&arena);
}

static const char *in_folder(const char *name)
{
    return format("%s/%s", folder, name);
}

static const gp_probed *looked(const char *path, bool glob)
{
    int before = looks;
    const gp_probed *p = gp_probe_get(&probe, path, glob);
    ck_assert_ptr_eq(gp_probe_get(&probe, gp_strdup(&arena, path), glob), p);
    ck_assert_int_eq(looks, before + 1);
    return p;
}

TEST(probe_sees_files)
{
    pipe_file(folder, "five", "12345", 5);
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0600), 0);
    const gp_file *f = &looked(in_folder("five"), false)->file;
    ck_assert(!f->error && f->kind == GP_FILE_REGULAR && f->size == 5 && f->nhead == 5);
    ck_assert_str_eq(f->head, "12345");
    ck_assert_int_eq(looked(in_folder("none"), false)->file.error, ENOENT);
    ck_assert_int_eq(looked(folder, false)->file.kind, GP_FILE_DIR);
    ck_assert_int_eq(looked(in_folder("pipe"), false)->file.kind, GP_FILE_STREAM);
    ck_assert_int_eq(looked("stdin", false)->file.kind, GP_FILE_STREAM);
    ck_assert_int_eq(looked("/dev/null", false)->file.kind, GP_FILE_STREAM);

    OWNED char *large = calloc(1, GP_PROBE_HEAD + 10);
    pipe_file(folder, "large", large, GP_PROBE_HEAD + 10);
    f = &looked(in_folder("large"), false)->file;
    ck_assert(f->size == GP_PROBE_HEAD + 10 && f->nhead == GP_PROBE_HEAD);
}

TEST(probe_lists_files)
{
    static const char *const names[] = { "b.png", "a.png", "B.png", "x_9.raw", "x_10.raw",
        "x_11.raw", "x_13.raw", "x_011.raw", "y003.raw", "y004.raw", "y0005.raw", "y1000.raw",
        "[1]_0.raw", "1_1.raw", "n0", "n1",
        "w000000000007", "w000000000020", "w8" };
    static const struct { const char *pattern, *list; } cases[] = {
        { "*.png", "B.png a.png b.png " }, { "*.gif", "" }, { "[ab].png", "a.png b.png " },
        { "{b,a}.png", "a.png b.png " }, { "{*,[ab]}.png", "B.png a.png b.png " }, { "{a}.png", "" }, { "x_{9,1}%d.raw", "" },
        { "x_%d.raw", "x_9.raw x_10.raw x_11.raw x_13.raw " }, { "x_%03d.raw", "x_011.raw " },
        { "y%03d.raw", "y003.raw y004.raw y1000.raw " }, { "[1]_%d.raw", "[1]_0.raw " }, { "n%d", "n0 n1 " },
        { "z%d", "" }, { "x_*.raw", "x_9.raw x_10.raw x_011.raw x_11.raw x_13.raw " },
        { "w%012d", "w000000000007 w000000000020 " }, { "w%12d", "" },
        { "w%0d", "w8 " }, { "w%99d", "" } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        pipe_file(folder, names[i], "", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gp_files *f = &looked(in_folder(cases[i].pattern), true)->files;
        char got[500] = "";
        for (int k = 0; k < f->n; k++)
            strcat(strcat(got, strrchr(f->path[k], '/') + 1), " ");
        ck_assert_msg(!strcmp(got, cases[i].list), "%s: %s", cases[i].pattern, got);
    }
}

/* So many names, and no more, are looked at for all patterns. */
TEST(probe_is_bounded)
{
    for (int i = 0; i < 30; i++)
        pipe_file(folder, gp_format(&arena, "f%02d", i), "", 0);
    for (int most = 0; most < 60; most += 7) {
        probe.most = most, probe.seen = 0;
        char stars[80] = "f";
        memset(stars + 1, '*', (size_t)most + 1);      /* each a pattern of its own */
        const gp_probed *p = looked(in_folder(stars), true);
        ck_assert_int_eq(p->cut, most > 0 && most < 32);   /* . and .. are names, too */
        ck_assert_int_eq(p->files.n == 30, !p->cut);
        ck_assert_int_ge(p->files.n, most - 2 < 30 ? most - 2 : 30);
    }
    probe.most = 50, probe.seen = 0;
    ck_assert_int_eq(looked(in_folder("f?*"), true)->files.n, 30);
    const gp_probed *p = looked(in_folder("f??*"), true);
    ck_assert(p->cut);
    ck_assert_int_le(p->files.n, 18);
    p = looked(in_folder("f*?"), true);
    ck_assert(p->cut && !p->files.n);
    p = looked(in_folder("f07"), true);            /* nothing to look for */
    ck_assert(!p->cut && p->files.n == 1);
}

TEST(one_table_for_many)
{
    enum { MANY = 3000 };
    for (int i = 0; i < 2 * MANY; i++) {
        const char *path = in_folder(gp_format(&arena, "%d", i % MANY));
        const gp_probed *p = gp_probe_get(&probe, path, i % 2);
        ck_assert_ptr_nonnull(p);
        ck_assert_str_eq(p->path, path);
        ck_assert_int_eq(i % 2 ? p->files.n : p->file.error, i % 2 ? 0 : ENOENT);
    }
    ck_assert_int_eq(looks, MANY);
}

TEST_SUITE(probe, enter_folder, leave_folder, 0)
