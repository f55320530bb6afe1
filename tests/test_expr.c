/* test_expr.c - expressions, times and text with ${}. */
#include <check.h>
#include <string.h>
#include "compile/resolve.h"

Suite *suite_expr(void);

static gp_arena arena;
static gp_errs errs;

static void setup(void)
{
    arena = (gp_arena){ 0 };
    errs = (gp_errs){ 0 };
}

static void teardown(void)
{
    gp_arena_free(&arena);
}

static const struct { const char *name; gp_num value; } vars[] = {
    { "gain", { false, 0, 1.5 } }, { "width", { true, 1024, 1024 } }, { "k_2", { true, 7, 7 } },
};
enum { NVARS = sizeof vars / sizeof *vars };

static bool var(const gp_scope *s, const char *name, gp_num *out)
{
    (void)s;
    for (int i = 0; i < NVARS; i++)
        if (!strcmp(vars[i].name, name))
            return *out = vars[i].value, true;
    return false;
}

static bool port(const gp_scope *s, const char *name, int k, gp_num *out)
{
    static const int dim[] = { 768, 1025, 3 };
    (void)s;
    if (strcmp(name, "in") || k > 2)
        return false;
    int v = k < 0 ? 768 * 1025 * 3 : dim[k];
    return *out = (gp_num){ true, v, v }, true;
}

static void each(const gp_scope *s, gp_near *near)
{
    (void)s;
    for (int i = 0; i < NVARS; i++)
        gp_near_try(near, vars[i].name);
    gp_near_try(near, "in");
}

static const gp_scope scope = { var, port, each, NULL };

/* The node of `text` at line 3, column 10. */
static gp_node *node(const char *text)
{
    gp_node *n = GP_NEW(&arena, gp_node, 1);
    *n = (gp_node){ .kind = GP_SCALAR, .text = text, .len = strlen(text),
                    .at = { "p.yaml", 3, 10, (int)strlen(text) } };
    return n;
}

static const struct { const char *text; int64_t want; } ints[] = {
    { "1", 1 }, { " 2 + 3 * 4 ", 14 }, { "(2 + 3) * 4", 20 }, { "-3", -3 }, { "- -3", 3 },
    { "2 - 3 - 4", -5 }, { "24 / 4 / 2", 3 }, { "7 % 4", 3 }, { "010", 10 }, { "k_2", 7 },
    { "width / 16", 64 }, { "ceil(in.shape[1] / 16)", 65 }, { "floor(in.shape[1]/16)", 64 },
    { "in.size", 768 * 1025 * 3 }, { "in.shape[ 0 ]", 768 }, { "min(3, 1, 2)", 1 },
    { "max(3, width, 2)", 1024 }, { "ceil(-7 / 2)", -3 }, { "floor(-7 / 2)", -4 },
    { "ceil(1/3 + 1/3 + 1/3)", 1 }, { "floor((2 / 3) * 3)", 2 }, { "ceil(max(1/2, 5/2))", 3 },
    { "ceil(2.1)", 3 }, { "4KiB", 4096 }, { "1.5 KiB", 0 }, { "2MB", 2000000 }, { "48kHz", 48000 },
    { "1.5kHz", 1500 }, { "2TiB", (int64_t)2 << 40 }, { "10ms", 10000000 },
    { "9223372036854775807", INT64_MAX }, { "-9223372036854775807 - 1", INT64_MIN },
    { "(-9223372036854775807 - 1) % -1", 0 }, { "ceil(9223372036854775807 / 2)", (int64_t)1 << 62 },
    { "min(9223372036854775806, 9223372036854775807)", INT64_MAX - 1 }, { "2 *\n 3", 6 },
};

START_TEST(integers)
{
    gp_num n;
    if (!strcmp(ints[_i].text, "1.5 KiB")) {             /* a unit follows its number */
        ck_assert(!gp_eval(node(ints[_i].text), &scope, &n, &errs));
        return;
    }
    ck_assert_msg(gp_eval(node(ints[_i].text), &scope, &n, &errs), "%s: %s", ints[_i].text,
                  errs.e[0].msg);
    ck_assert_msg(n.is_int && n.i == ints[_i].want && n.f == (double)n.i, "%s gave %s %lld %g",
                  ints[_i].text, n.is_int ? "integer" : "double", (long long)n.i, n.f);
}
END_TEST

static const struct { const char *text; double want; } doubles[] = {
    { "1.5", 1.5 }, { "gain * 2", 3 }, { "1e3", 1000 }, { ".5", 0.5 }, { "2.0 / 4", 0.5 },
    { "1 / 4.0", 0.25 }, { "-gain", -1.5 }, { "2.5e-1 + 1", 1.25 }, { "max(1, 1.5)", 1.5 },
    { "min(1, 1.5)", 1 }, { "1.0", 1 }, { "0.1KiB", 102.4 }, { "3E+2", 300 },
};

START_TEST(floats)
{
    gp_num n;
    ck_assert_msg(gp_eval(node(doubles[_i].text), &scope, &n, &errs), "%s: %s", doubles[_i].text,
                  errs.e[0].msg);
    ck_assert_msg(!n.is_int && n.f == doubles[_i].want, "%s gave %g", doubles[_i].text, n.f);
}
END_TEST

static const struct { const char *text; int col; const char *msg; } bad[] = {
    { "", 10, "expected a number, and there is nothing" },
    { "7 / 2", 12, "7 / 2 leaves a remainder; write ceil(a / b) or floor(a / b), or 7.0" },
    { "1 + ", 14, "expected a number or a name at the end" },
    { "1 2", 12, "expected an operator or the end, not '2'" },
    { "(1", 12, "expected ')' at the end" },
    { "min(1 2)", 16, "expected ',' or ')', not '2'" },
    { "ceil(1, 2)", 16, "expected ')', not ','" },
    { "1 / 0", 12, "division by zero" },
    { "1 / (1.0 - 1)", 12, "division by zero" },
    { "1 % 0", 12, "division by zero" },
    { "1.5 % 2", 14, "'%' is for integers" },
    { "widht * 2", 10,
      "'widht' is neither a number nor a variable that is a number; did you mean 'width'?" },
    { "2 * cel(3)", 14, "no function 'cel'; did you mean 'ceil'?" },
    { "4KB + 4Kib", 17, "no unit 'Kib'; did you mean 'KiB'?" },
    { "16px", 12, "no unit 'px'" },
    { "in.shape[3]", 10, "'in' has no axis 3; axes count from 0" },
    { "im.shape[0]", 10, "no port 'im' of this stage with a known shape; did you mean 'in'?" },
    { "in.shape[-1]", 19, "expected the number of an axis, counted from 0, not '-'" },
    { "in.width", 13, "a port has 'in.shape[k]' and 'in.size', no 'width'" },
    { "2 * ${gain}", 14, "'${' is for text; in an expression write the bare name: 'gain'" },
    { "9223372036854775807 + 1", 30, "the result does not fit in 64 bits" },
    { "4294967296 * 4294967296", 21, "the result does not fit in 64 bits" },
    { "9223372036854775808", 10, "the number does not fit in 64 bits" },
    { "99999999GiB * 1000", 22, "the result does not fit in 64 bits" },
    { "1e999", 10, "the number is too large" },
    { "1e308 * 10", 16, "the result is not a finite number" },
    { "#", 10, "expected a number or a name, not '#'" },
};

static void ck_error(int col, const char *msg)
{
    ck_assert_int_eq(errs.n, 1);
    ck_assert_msg(!strncmp(errs.e[0].msg, msg, strlen(msg)) && errs.e[0].at.col == col
                  && errs.e[0].at.line == 3, "got %d: %s\nwant %d: %s", errs.e[0].at.col,
                  errs.e[0].msg, col, msg);
}

START_TEST(refused)
{
    gp_num n;
    ck_assert_msg(!gp_eval(node(bad[_i].text), &scope, &n, &errs), "%s", bad[_i].text);
    ck_error(bad[_i].col, bad[_i].msg);
}
END_TEST

START_TEST(no_scope)
{
    gp_num n;
    ck_assert(!gp_eval(node("x"), NULL, &n, &errs));
    ck_assert(!gp_eval(node("x.size"), NULL, &n, &errs));
    ck_assert_str_eq(errs.e[1].msg, "'x' is not a port: shapes are not known here");
}
END_TEST

START_TEST(deep)
{
    char text[4001];
    gp_num n;
    memset(text, _i ? '-' : '(', 4000);
    text[4000] = 0;
    ck_assert(!gp_eval(node(text), &scope, &n, &errs));
    ck_assert_str_eq(errs.e[0].msg, "nested more than 64 deep");
}
END_TEST

/* A caret stands where the error is, inside quotes too; where lines were joined
 * the whole scalar is the place. */
START_TEST(places_in_quotes)
{
    static const struct { const char *text; int line, col; } c[] = {
        { "a: \"1 + x\"\n", 1, 9 }, { "a: '1 + x'\n", 1, 9 }, { "a: 1 +\n  x\n", 1, 4 },
        { "a: \"1 \\\n  + x\"\n", 1, 4 }, { "a: >\n  1 + x\n", 1, 4 },
    };
    gp_spec *s = gp_parse(&arena, c[_i].text, strlen(c[_i].text), "p.yaml", &errs);
    gp_num n;
    ck_assert_ptr_nonnull(s);
    ck_assert(!gp_eval(s->root->item[0], NULL, &n, &errs));
    ck_assert_int_eq(errs.e[0].at.line, c[_i].line);
    ck_assert_int_eq(errs.e[0].at.col, c[_i].col);
}
END_TEST

START_TEST(not_a_scalar)
{
    gp_node list = { .kind = GP_LIST, .at = { "p.yaml", 3, 10, 1 } };
    gp_num n;
    ck_assert(!gp_eval(&list, &scope, &n, &errs));
    ck_error(10, "expected a number, not a list");
}
END_TEST

static const struct { const char *text; int64_t ns; } times[] = {
    { "30s", 30000000000 }, { "1.5ms", 1500000 }, { "2 * 10ms", 20000000 }, { "0", 0 },
    { "1h + 30min", 5400000000000 }, { "5us", 5000 }, { "7ns", 7 }, { "1s / 3.0", 333333333 },
    { "width * 1us", 1024000 }, { "0.3ns", 0 }, { "1.7ns", 2 },
};

START_TEST(durations)
{
    int64_t ns = -1;
    ck_assert_msg(gp_eval_time(node(times[_i].text), &scope, &ns, &errs), "%s: %s",
                  times[_i].text, errs.e[0].msg);
    ck_assert_int_eq(ns, times[_i].ns);
}
END_TEST

static const struct { const char *text; int col; const char *msg; } bad_times[] = {
    { "30", 10, "'30' has no unit; write 30s, or with ns, us, ms, min or h" },
    { "30KB", 12, "'KB' is not a unit of time" },
    { "30sec", 12, "no unit 'sec'" },
    { "", 10, "expected a time, like 30s or 1.5ms, and there is nothing" },
    { "1e30s", 10, "the time is too long" },
};

START_TEST(refused_durations)
{
    int64_t ns;
    ck_assert(!gp_eval_time(node(bad_times[_i].text), &scope, &ns, &errs));
    ck_error(bad_times[_i].col, bad_times[_i].msg);
}
END_TEST

/* ---- text ------------------------------------------------------------ */

static const char *env(const void *arg, const char *name)
{
    ck_assert_str_eq(arg, "arg");
    return !strcmp(name, "HOME") ? "/home/me" : !strcmp(name, "EMPTY") ? "" : NULL;
}

/* Monday, 3 February 2025, 04:05:06 */
static const struct tm text_date = { .tm_year = 125, .tm_mon = 1, .tm_mday = 3, .tm_wday = 1,
                                     .tm_yday = 33, .tm_hour = 4, .tm_min = 5, .tm_sec = 6 };
static const gp_env text_env = { env, "arg", &text_date, 7654321 };

static gp_node *text_vars(void)
{
    static const char yaml[] =
        "{dir: photos, n: 3, out: null, nil: , tilde: ~, empty: '', quoted: 'null', list: [1],\n"
        " nested: \"${dir}/x\", self: \"a${self}\", deep: \"${nested}/$$\", bare: \"${out}\"}\n";
    gp_spec *s = gp_parse(&arena, yaml, sizeof yaml - 1, "v.yaml", &errs);
    ck_assert_ptr_nonnull(s);
    return s->root;
}

static const struct { const char *text, *want; } texts[] = {
    { "plain", "plain" }, { "", "" }, { "${dir}/*.png", "photos/*.png" },
    { "a${n}b${n}", "a3b3" }, { "$$", "$" }, { "$${dir}", "${dir}" }, { "5$", "5$" },
    { "$x", "$x" }, { "${nope:-d}", "d" }, { "${dir:-d}", "photos" }, { "${out:-d}", "d" },
    { "${nil:-d}", "d" }, { "${tilde:-d}", "d" }, { "${empty:-d}", "d" }, { "${empty}", "" },
    { "${quoted}", "null" }, { "${nope:-}", "" }, { "${env:HOME}/x", "/home/me/x" },
    { "${env:NOPE:-d}", "d" }, { "${env:EMPTY}", "" }, { "${env:EMPTY:-d}", "d" },
    { "${nope:-${dir}}", "photos" }, { "${nope:-a:b}", "a:b" }, { "${nope:-$$}}", "$}" },
    { "${date:%Y%m%d-%H%M%S}", "20250203-040506" }, { "${date:%F}/${n}", "2025-02-03/3" },
    { "${date:%S.%N}", "06.007654321" }, { "${date:%N%N}", "007654321007654321" },
    { "a${date:day %j, %a 100%%}", "aday 034, Mon 100%" }, { "${nope:-${date:%y}}", "25" },
    { "${date:-no var}", "no var" }, { "${date:now}", "now" },
    { "${nested}", "photos/x" }, { "${deep}", "photos/x/$" }, { "{}", "{}" },
};

START_TEST(interpolated)
{
    const char *out = NULL;
    ck_assert_msg(gp_interpolate(&arena, node(texts[_i].text), text_vars(), &text_env, &out,
                                 &errs), "%s: %s", texts[_i].text, errs.e[0].msg);
    ck_assert_str_eq(out, texts[_i].want);
}
END_TEST

static const struct { const char *text; int col, len; const char *msg; } bad_texts[] = {
    { "a/${dri}", 12, 6, "no variable 'dri' under 'vars'; did you mean 'dir'?" },
    { "a/${dir", 12, 5, "'${' has no '}'; write '$${' for the characters themselves" },
    { "${}", 10, 3, "'${}' names nothing" },
    { "${env:}", 10, 7, "'${}' names nothing" },
    { "${env:NOPE}", 10, 11, "the environment has no 'NOPE'; set it, or give a default: "
                             "${env:NOPE:-...}" },
    { "${out}", 10, 6, "'out' has no value; give one with --set vars.out=..." },
    { "xx${bare}", 12, 7, "'out' has no value; give one with --set vars.out=..." },
    { "x${date:%Y%Q}", 20, 2, "'%Q' is no part of a date, as in ${date:%Y%m%d-%H%M%S}" },
    { "${date:%Y%}", 19, 1, "'%' is no part of a date" },
    { "${date:%s}", 17, 2, "'%s' is no part of a date" },
    { "${date:}", 10, 8, "'${date:}' names nothing; write ${date:%Y%m%d-%H%M%S}" },
    { "${date}", 10, 7, "no variable 'date'" },
    { "${list}", 10, 7, "'list' is a list; only a single value fits in text" },
    { "${dir:x}", 10, 8, "'${dir:x}' is not understood; a default is written ${name:-default}" },
    { "${self}", 10, 7, "the value refers to itself, or is nested more than 16 deep" },
    { "${nope:-${dri}}", 18, 6, "no variable 'dri'" },
};

START_TEST(refused_texts)
{
    const char *out;
    ck_assert(!gp_interpolate(&arena, node(bad_texts[_i].text), text_vars(), &text_env, &out,
                              &errs));
    ck_error(bad_texts[_i].col, bad_texts[_i].msg);
    ck_assert_int_eq(errs.e[0].at.len, bad_texts[_i].len);
}
END_TEST

START_TEST(no_date)
{
    const char *out;
    gp_env none = { .get = env, .arg = "arg" };
    ck_assert(!gp_interpolate(&arena, node("${date:%Y}"), text_vars(), &none, &out, &errs));
    ck_error(10, "no date is known here");
}
END_TEST

/* Vars that double fifteen times over: refused at once. */
START_TEST(text_bomb)
{
    char yaml[4000] = "v0: \"\"\n";
    for (int i = 1; i < 15; i++)
        sprintf(yaml + strlen(yaml), "v%d: \"${v%d}${v%d}${v%d}${v%d}\"\n", i, i - 1, i - 1,
                i - 1, i - 1);
    gp_spec *s = gp_parse(&arena, yaml, strlen(yaml), "v.yaml", &errs);
    const char *out;
    ck_assert(!gp_interpolate(&arena, node("${v14}"), s->root, NULL, &out, &errs));
    ck_error(10, "more than 10000 values in one text");
}
END_TEST

#define LOOP(t, f, table) tcase_add_loop_test(t, f, 0, (int)(sizeof table / sizeof *table))

Suite *suite_expr(void)
{
    Suite *s = suite_create("expr");
    TCase *t = tcase_create("expr");
    tcase_add_checked_fixture(t, setup, teardown);
    LOOP(t, integers, ints);
    LOOP(t, floats, doubles);
    LOOP(t, refused, bad);
    tcase_add_test(t, no_scope);
    tcase_add_loop_test(t, deep, 0, 2);
    tcase_add_loop_test(t, places_in_quotes, 0, 5);
    tcase_add_test(t, not_a_scalar);
    LOOP(t, durations, times);
    LOOP(t, refused_durations, bad_times);
    LOOP(t, interpolated, texts);
    LOOP(t, refused_texts, bad_texts);
    tcase_add_test(t, text_bomb);
    tcase_add_test(t, no_date);
    suite_add_tcase(s, t);
    return s;
}
