/* test_locale.c - a program that embeds gpipe may have a locale with a decimal comma: numbers are read and written
 * with a point all the same, by scripts too, and the program's locale is its own again afterwards. */
#include <locale.h>
#include "pipe.h"

static const char *folder;
static bool have_comma;

/* Makes the locale de_DE, which few machines have; a program that is embedded sets it for all threads. */
static void set_up(void)
{
    folder = pipe_dir();
    char *command = format("localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    have_comma = system(command) == 0 && !setenv("LOCPATH", folder, 1) && setlocale(LC_ALL, "de_DE.UTF-8");
    if (!have_comma)
        printf("**** SKIPPED: a locale with a decimal comma cannot be made: install the package locales ****\n");
}

static void tear_down(void)
{
    setlocale(LC_ALL, "C");
}

static void is_comma(void)
{
    ck_assert_str_eq(format("%.1f", 1.5), "1,5");
}

TEST(numbers_have_a_point)
{
    const char *dir = pipe_dir(), *sets[] = { "vars.b=0.25", "stages.scale.b=b + 0.5", NULL };
    size_t n;
    if (!have_comma)
        return;
    is_comma();
    pipe_text(dir, "s.lua", "function init(stage) half = stage.params.half end\n"
              "function process(f, x, y) y[1] = x[1] + half + tonumber('0.125') print(0.5, string.format('%g', 2.5))\n"
              "  assert(tostring(0.5) == '0.5' and string.format('%.1f', 0.5) == '0.5' and os.setlocale() == 'C') end\n");
    pipe_done(dir, "vars: {b: 0}\nbuffers: {x: {dtype: f32, shape: [1]}, k: {const: [0.0625]}}\n"
              "stages:\n  - {use: generate, pattern: constant, value: 2.5, frames: 1, out: x}\n"
              "  - {use: scale, a: 1.75}\n  - {use: lua, script: s.lua, params: {half: 0.5}}\n"
              "  - {use: expr, in: {p: lua, k: k}, expr: \"p + 0.03125 + k\", out: o}\n"
              "  - {use: write, in: o, path: o.csv}\n", "cpu", sets, (gp_run_options){ 0 });
    OWNED char *text = pipe_read(dir, "o.csv", &n);
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(text, "5.84375\n");       /* 2.5 * 1.75 + 0.75 + 0.5 + 0.125 + 0.03125 + 0.0625 */
    is_comma();
}

TEST(machines_have_a_point)
{
    char *text = NULL;
    size_t n;
    gp_errs errs = { .n = 0 };
    if (!have_comma)
        return;
    static const char wanted[] = "{\"format\": 1, \"devices\": [{\"name\": \"A\", \"compute_capability\": 8.6, "
                                 "\"memory\": \"1.5GB\", \"total_memory\": \"2.5GB\"}]}";
    gp_machine *m = gp_machine_create_from(wanted, strlen(wanted), "m.json", &errs);
    ck_assert_msg(m != NULL, "%s", pipe_said(&errs));
    FILE *f = open_memstream(&text, &n);
    gp_machine_print(m, f);
    fclose(f);
    ck_assert_msg(strstr(text, "8.6") && !strstr(text, "8,6"), "%s", text);
    is_comma();
    free(text);
    gp_machine_destroy(m);
}

/* What a descriptor says is read as well. */
TEST(kinds_have_a_point)
{
    static const gp_opt opts[] = { { .name = "x", .type = GP_OPT_FLOAT, .def = "0.5", .min = 0.25, .max = 1, .help = "x" }, { 0 } };
    gp_errs errs = { .n = 0 };
    gp_registry *r = gp_registry_create();
    if (!have_comma)
        return;
    ck_assert(gp_register_builtin(r, &errs));
    gp_kind kind = *gp_kind_find(r, "discard");
    kind.name = "mine", kind.opts = opts, kind.opts_size = sizeof(double);
    ck_assert_msg(gp_register(r, &kind, &errs), "%s", pipe_said(&errs));
    is_comma();
    gp_registry_destroy(r);
}

/* The locale belongs to the whole program. */
TEST(scripts_set_none)
{
    const char *dir = pipe_dir();
    pipe_text(dir, "s.lua", "function process(f, x, y) os.setlocale('C') end\n");
    pipe_result r = pipe_run(dir, "buffers: {x: {dtype: f32, shape: [1]}}\nstages:\n  - {use: generate, frames: 1, out: x}\n"
                             "  - {use: lua, script: s.lua}\n  - {use: discard}\n", "cpu", NULL, (gp_run_options){ 0 });
    pipe_ends(&r, "os.setlocale()");
}

TEST_SUITE(locale, set_up, tear_down, 0)
