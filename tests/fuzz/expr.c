/* expr.c - expressions and times, as text that stands where a number is expected; the same text with its ${...}
 * replaced; and as the program of a stage of kind `expr`. */
#include <time.h>
#include "base/memfile.h"
#include "base/yaml.h"
#include "compile/expr.h"
#include "compile/resolve.h"
#include "expr_scope.h"
#include "fuzz.h"

enum { LONGEST = 4000, LINE = 3, COL = 10 };

/* Errors stand at the text, or just behind it. */
static void check_errs(const gp_errs *errs, bool ok, size_t len)
{
    MUST(ok == !errs->failed);
    for (int i = 0; i < errs->n; i++) {
        const gp_loc *at = &errs->e[i].at;
        MUST(errs->e[i].msg[0] && at->file && at->line == LINE);
        MUST(at->col >= COL && at->col <= COL + (int)len);
    }
}

static gp_node *node(gp_arena *a, const char *text)
{
    gp_node *n = GP_NEW(a, gp_node, 1);
    size_t len = strlen(text);
    *n = (gp_node){ .kind = GP_SCALAR, .text = text, .len = len,
                    .at = { "p.yaml", LINE, COL, (int)len } };
    return n;
}

static bool same(gp_num a, gp_num b)
{
    return a.is_int == b.is_int && a.i == b.i && !memcmp(&a.f, &b.f, sizeof a.f);
}

/* Once parsed anew, once from the tree that the node keeps. */
static bool eval(gp_arena *a, const char *text, gp_num *out)
{
    gp_errs errs = { 0 }, again = { 0 };
    const gp_node *n = node(a, text);
    gp_num kept;
    bool ok = gp_eval(n, &scope, out, &errs), parsed = gp_expr_keep(a, n);
    check_errs(&errs, ok, strlen(text));
    MUST(parsed || !ok);
    MUST(gp_eval(n, &scope, &kept, &again) == ok);
    MUST(ok ? same(*out, kept) : !strcmp(errs.e[0].msg, again.e[0].msg));
    return ok;
}

/* What is the same by the rules of arithmetic is so here, unless it is nested too deeply. */
static void laws(gp_arena *a, const char *text, gp_num value)
{
    static const char *const as[] = { "(%s)", "%s\n+ 0", "min(%s, %s)", "--(%s)", "1 * (%s)" };
    for (size_t i = 0; i < sizeof as / sizeof *as; i++) {
        char wrapped[2 * LONGEST + 20];
        gp_num other;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(wrapped, sizeof wrapped, as[i], text, text);
#pragma GCC diagnostic pop
        if (eval(a, wrapped, &other))
            MUST(same(value, other) || (!value.f && value.f == other.f)); /* -0 + 0 is 0 */
    }
}

/* The text in double quotes of YAML. */
static void put_quoted(FILE *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p < ' ' || *p > '~')
            fprintf(out, "\\x%02x", *p);
        else
            fputc(*p, out);
}

/* A stage with it, for frames of three shapes; no plan, or one. */
static void program(const char *text)
{
    static const char *const edges[] = { "reflect", "nearest", "zero", "wrap" };
    gp_memfile m;
    fuzz_forms f;
    size_t n;
    MUST(gp_memfile_open(&m));
    fputs("vars: {gain: 1.5, width: 1024, word: x, none: }\nbuffers: {a: {dtype: u16, shape: [4, 3]}, b: {dtype: f32, shape: "
          "[3]}, in: {dtype: i64, shape: [\"<=4\", 1]}}\nstages:\n  - {use: give, out: [a, b, in]}\n"
          "  - {use: expr, in: [a, b, in], out: y, ", m.f);
    fprintf(m.f, "edge: %s, expr: \"", edges[strlen(text) % 3]);
    put_quoted(m.f, text);
    fputs("\"}\n  - {use: write, path: \"%05d.npy\"}\n", m.f);
    char *yaml = gp_memfile_close(&m, &n);
    MUST(yaml != NULL);
    fuzz_compile(&f, yaml, n, NULL, 0, 1, true);
    fuzz_print_errs(&f.errs, yaml, n);
    fuzz_forms_free(&f);
    free(yaml);
}

static void one(const char *data, size_t n)
{
    static const char vars[] = "{dir: x y, rate: 360, empty: '', dollar: \"$\", odd: [1], null: ~}";
    gp_arena a = { 0 };
    gp_errs errs = { 0 };
    gp_num value;
    int64_t ns;
    static const struct tm date = { .tm_year = 126, .tm_mon = 10, .tm_mday = 22 };
    gp_env env = { .date = &date };
    const char *text = gp_strndup(&a, data, strnlen(data, n < LONGEST ? n : LONGEST)), *out;
    if (eval(&a, text, &value)) {
        MUST(value.is_int ? value.f == (double)value.i : value.f - value.f == 0);
        laws(&a, text, value);
    }
    program(text);
    errs = (gp_errs){ 0 };
    MUST((gp_expr_parse_program(&a, node(&a, text), &errs) != NULL) == !errs.failed);
    check_errs(&errs, !errs.failed, strlen(text));
    errs = (gp_errs){ 0 };
    bool ok = gp_eval_time(node(&a, text), &scope, &ns, &errs);
    check_errs(&errs, ok, strlen(text));
    errs = (gp_errs){ 0 };
    const gp_node *map = gp_yaml_value(&a, vars, (gp_loc){ .file = "vars" }, &errs);
    MUST(map != NULL);
    ok = gp_interpolate(&a, node(&a, text), map, &env, &out, &errs);
    check_errs(&errs, ok, strlen(text));
    MUST(!ok || strchr(text, '$') || !strcmp(out, text));
    gp_arena_free(&a);
}

const fuzz_harness fuzz_expr = { .name = "expr", .one = one };
