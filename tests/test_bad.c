/* test_bad.c - what is said of pipelines with a mistake: tests/bad/NAME.cases. Behind a comment such a file has a
 * pipeline that is right, and cases. Each changes lines of it, and ends with the first errors that have to be said:
 *
 *   N| TEXT       in place of line N       N+ TEXT   behind line N, as the pipeline has it; of 0: before line 1       N-
 *   LINE:COL: error: MESSAGE      MESSAGE may be cut off; `error (4)` is for another exit code than 3
 *
 * world.txt is such a file of the kinds of tests/lib/world.c, which has all errors of each case. */
#include <glob.h>
#include "pipe.h"
#include "world.h"

enum { LINES = 20, MORE = 20 };

typedef struct text {
    const char *line[LINES + 1][MORE]; /* [n]: what stands for line n, and behind it */
    int n[LINES + 1];
} text;

/* As `gpipe check` compiles it. */
static void compile(const text *t, const char *file, bool in_world, gp_errs *errs)
{
    static char yaml[20000];
    size_t n = 0;
    gp_machine machine;
    gp_config c = { .registry = pipe_registry(), .machine = &machine, .lenient = true };
    for (int i = 0; i <= LINES; i++)
        for (int k = 0; k < t->n[i]; k++)
            n += (size_t)snprintf(yaml + n, sizeof yaml - n, "%s\n", t->line[i][k]);
    ck_assert_uint_lt(n, sizeof yaml);
    gp_machine_fixed(&machine, 1);
    *errs = (gp_errs){ .n = 0 };
    if (in_world)
        world_resolve(yaml), *errs = world.errs;
    else
        gp_pipeline_destroy(gp_compile(yaml, n, file, &c, errs));
}

/* Error k as a case has it. */
static const char *said(const gp_errs *errs, int k)
{
    static char line[900];
    int i = 0, n = 0;
    while (i < errs->n && (errs->e[i].code == GP_E_WARN || errs->e[i].code == GP_E_NOTE || k--))
        i++;
    if (i == errs->n)
        return "nothing";
    if (errs->e[i].at.line)
        n = snprintf(line, sizeof line, "%d:%d: ", errs->e[i].at.line, errs->e[i].at.col);
    snprintf(line + n, sizeof line - (size_t)n, "error%s: %s", gp_errs_exit(errs) == 4 ? " (4)" : "", errs->e[i].msg);
    return line;
}

/* A line that changes the text. */
static bool edits(text *t, char *line)
{
    char *op;
    long n = strtol(line, &op, 10);
    if (op == line || !strchr("|+-", *op))
        return false;
    ck_assert_msg(n <= LINES && (op[1] == ' ' || *op == '-'), "%s", line);
    if (*op != '+')
        t->n[n] = 0;
    if (*op != '-')
        t->line[n][t->n[n]++] = op + 2;
    ck_assert_int_lt(t->n[n], MORE);
    return true;
}

static bool is_error(const char *line)
{
    line += strspn(line, "0123456789:");
    return !strncmp(line + (*line == ' '), "error", 5);
}

static int check_file(const char *path, bool in_world)
{
    gp_errs errs = { .n = 0 };
    size_t bytes;
    int cases = 0, lines = 0, nth = 1; /* of errors of this case so far */
    text right = { .n = { 0 } }, now;
    OWNED char *all = pipe_read("tests/bad", strrchr(path, '/') + 1, &bytes);
    strtok(all, "\n");                 /* the comment */
    for (char *line; (line = strtok(NULL, "\n"));) {
        bool error = is_error(line);
        if (!error && nth) {           /* behind the pipeline, or behind a case */
            ck_assert_msg(!in_world || !strcmp(said(&errs, nth), "nothing"), "%s: also says\n%s", path, said(&errs, nth));
            now = right;
        }
        if (error && !nth)
            compile(&now, path, in_world, &errs);
        if (error) {
            const char *got = said(&errs, nth++);
            cases += nth == 1;
            ck_assert_msg(!strncmp(got, line, strlen(line)), "%s: got\n%s\nnot\n%s", path, got, line);
        } else if (edits(&now, line)) {
            nth = 0;
        } else {
            right.line[++lines][0] = line, right.n[lines] = 1;
        }
    }
    ck_assert_msg(!in_world || !nth || !strcmp(said(&errs, nth), "nothing"), "%s: also says\n%s", path, said(&errs, nth));
    compile(&right, path, in_world, &errs);
    ck_assert_msg(!errs.failed, "%s: its pipeline is not right: %s", path, pipe_said(&errs));
    return cases;
}

TEST(says_what_is_wrong)
{
    glob_t g;
    int cases = 0;
    ck_assert_int_eq(glob("tests/bad/*.cases", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++)
        cases += check_file(g.gl_pathv[i], false);
    ck_assert_int_gt(cases, 350);
    globfree(&g);
}

TEST(says_it_of_kinds_for_tests)
{
    world_up();
    ck_assert_int_gt(check_file("tests/bad/world.txt", true), 150);
    world_down();
}

TEST_SUITE(bad, NULL, NULL, 0)
