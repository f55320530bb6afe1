/* test_expr.c - expressions, times and text with ${}. */
#include <pthread.h>
#include "compile/expr.h"
#include "compile/resolve.h"
#include "expr_scope.h"
#include "suite.h"

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

/* The node of `text` at line 3, column 10. */
static gp_node *node(const char *text)
{
    gp_node *n = GP_NEW(&arena, gp_node, 1);
    *n = (gp_node){ .kind = GP_SCALAR, .text = text, .len = strlen(text),
                    .at = { "p.yaml", 3, 10, (int)strlen(text) } };
    return n;
}

static const struct { const char *text; gp_int128 want; } ints[] = {
    { "1", 1 }, { " 2 + 3 * 4 ", 14 }, { "(2 + 3) * 4", 20 }, { "-3", -3 }, { "- -3", 3 },
    { "2 - 3 - 4", -5 }, { "24 / 4 / 2", 3 }, { "7 % 4", 3 }, { "010", 10 }, { "k_2", 7 },
    { "width / 16", 64 }, { "ceil(in.shape[1] / 16)", 65 }, { "floor(in.shape[1]/16)", 64 },
    { "in.size", 768 * 1025 * 3 }, { "in.shape[ 0 ]", 768 }, { "min(3, 1, 2)", 1 },
    { "max(3, width, 2)", 1024 }, { "ceil(-7 / 2)", -3 }, { "floor(-7 / 2)", -4 },
    { "ceil(1/3 + 1/3 + 1/3)", 1 }, { "floor((2 / 3) * 3)", 2 }, { "ceil(max(1/2, 5/2))", 3 },
    { "ceil(2.1)", 3 }, { "4KiB", 4096 }, { "1.5 KiB", 0 }, { "2MB", 2000000 }, { "2TB", 2000000000000 }, { "48kHz", 48000 },
    { "1.5kHz", 1500 }, { "2TiB", (int64_t)2 << 40 }, { "10ms", 10000000 },
    { "0xff", 255 }, { "-0X1f * 2", -62 }, { "0xFfFfFfFfFfFfFfFf", UINT64_MAX }, { "0x00000000000000000001", 1 },
    { "18446744073709551615", UINT64_MAX }, { "-9223372036854775808", INT64_MIN },
    { "9223372036854775807 + 1", (gp_int128)INT64_MAX + 1 },
    { "-(-9223372036854775807 - 1) + 9223372036854775807", UINT64_MAX },
    { "min(18446744073709551615, 18446744073709551614)", UINT64_MAX - 1 }, { "18446744073709551615 % 16", 15 },
    { "9223372036854775807", INT64_MAX }, { "-9223372036854775807 - 1", INT64_MIN },
    { "(-9223372036854775807 - 1) % -1", 0 }, { "ceil(9223372036854775807 / 2)", (int64_t)1 << 62 },
    { "min(9223372036854775806, 9223372036854775807)", INT64_MAX - 1 }, { "2 *\n 3", 6 },
    { "2 + 3 * 4 - 10 / 5", 12 }, { "20 / 2 * 5", 50 }, { "2 * 9 % 4", 2 }, { "9 % 4 * 2", 2 },
    { "-2 * -3", 6 }, { "2 - -3", 5 }, { "-(2 + 3) * 2", -10 }, { "+7 - +2", 5 }, { "-7 % 4", -3 },
    { "7 - (2 - (3 - 4))", 4 }, { "min(7)", 7 }, { "max(1, min(5, 3), 2) * 2", 6 },
    { "min(2 + 3, 2 * 3) - max(1, 2)", 3 }, { "ceil(7 / 2) * 2", 8 }, { "2 * ceil(7 / 2)", 8 },
    { "floor(ceil(3 / 2) / 3 + 1 / 3)", 1 }, { "min(ceil(1 / 2), 6 / 2)", 1 },
    { "ceil(4611686018427387903 / 2 - 1 / 2)", INT64_MAX / 4 },
};

TEST_EACH(integers, ints)
{
    gp_num n;
    if (!strcmp(ints[_i].text, "1.5 KiB")) {             /* a unit follows its number */
        ck_assert(!gp_eval(node(ints[_i].text), &scope, &n, &errs));
        return;
    }
    ck_assert_msg(gp_eval(node(ints[_i].text), &scope, &n, &errs), "%s: %s", ints[_i].text, errs.e[0].msg);
    ck_assert_msg(n.is_int && n.i == ints[_i].want && n.f == (double)n.i, "%s gave %s %lld %g",
                  ints[_i].text, n.is_int ? "integer" : "double", (long long)n.i, n.f);
}

static const struct { const char *text; double want; } doubles[] = {
    { "1.5", 1.5 }, { "gain * 2", 3 }, { "1e3", 1000 }, { ".5", 0.5 }, { "2.0 / 4", 0.5 },
    { "1 / 4.0", 0.25 }, { "-gain", -1.5 }, { "2.5e-1 + 1", 1.25 }, { "max(1, 1.5)", 1.5 },
    { "min(1, 1.5)", 1 }, { "1.0", 1 }, { "0.1KiB", 102.4 }, { "3E+2", 300 },
};

TEST_EACH(floats, doubles)
{
    gp_num n;
    ck_assert_msg(gp_eval(node(doubles[_i].text), &scope, &n, &errs), "%s: %s", doubles[_i].text, errs.e[0].msg);
    ck_assert_msg(!n.is_int && n.f == doubles[_i].want, "%s gave %g", doubles[_i].text, n.f);
}

static const struct { const char *text; int col; const char *msg; } bad[] = {
    { "", 10, "expected a number, and there is nothing" },
    { "7 / 2", 12, "7 / 2 leaves a remainder; write ceil(a / b) or floor(a / b), or 7.0" },
    { "1 + ", 14, "expected a number or a name at the end" },
    { "1 2", 12, "expected an operator or the end, not '2'; a list is written [1, 2]" },
    { "$gain", 10, "write the bare name: 'gain'" },
    { "$", 10, "expected a number or a name, not '$'" },
    { "(1", 12, "expected ')' at the end" },
    { "min(1 2)", 16, "expected ',' or ')', not '2'" },
    { "ceil(1, 2)", 16, "expected ')', not ','" },
    { "1 / 0", 12, "division by zero" },
    { "1 / (1.0 - 1)", 12, "division by zero" },
    { "1 % 0", 12, "division by zero" },
    { "1.5 % 2", 14, "'%' is for integers" },
    { "widht * 2", 10, "'widht' is neither a number nor a variable that is a number; did you mean 'width'?" },
    { "2 * cel(3)", 14, "no function 'cel'; did you mean 'ceil'?" },
    { "4KB + 4Kib", 17, "no unit 'Kib'; did you mean 'KiB'?" },
    { "16px", 12, "no unit 'px'" },
    { "1K", 11, "no unit 'K'; did you mean 'KB'?" },
    { "1S", 11, "no unit 'S'; did you mean 's'?" },
    { "1x", 11, "no unit 'x'" },
    { "2\xc2\xa0* 3", 11, "expected an operator or the end, not '\xc2\xa0' (U+00A0: no-break space)" },
    { "2 \xe2\x80\x93 1", 12, "expected an operator or the end, not '\xe2\x80\x93' (U+2013: en dash)" },
    { "\xe2\x80\x9cgain\xe2\x80\x9d", 10, "expected a number or a name, not '\xe2\x80\x9c' (U+201C: left double quotation "
      "mark)" },
    { "1.5f", 13, "numbers have no suffix 'f': leave it out" },
    { "7u", 11, "numbers have no suffix 'u': leave it out" },
    { "0xfg", 10, "a hexadecimal number has no fraction and no unit" },
    { "0xf.8", 10, "a hexadecimal number has no fraction and no unit" },
    { "0x10000000000000000", 10, "the number does not fit in 64 bits" },
    { "0x", 11, "no unit 'x'" },
    { "in.shape[3]", 10, "'in' has no axis 3; axes count from 0" },
    { "im.shape[0]", 10, "no port 'im' of this stage with a known shape; did you mean 'in'?" },
    { "in.shape[-1]", 19, "expected the number of an axis, counted from 0, not '-'" },
    { "in.width", 13, "a port has 'in.shape[k]' and 'in.size', no 'width'" },
    { "2 * ${gain}", 14, "'${' is for text; in an expression write the bare name: 'gain'" },
    { "18446744073709551615 + 1", 31, "the result does not fit in 64 bits" },
    { "4294967296 * 4294967296", 21, "the result does not fit in 64 bits" },
    { "18446744073709551616", 10, "the number does not fit in 64 bits" },
    { "99999999GiB * 1000", 22, "the result does not fit in 64 bits" },
    { "1e999", 10, "the number is too large" },
    { "1e308 * 10", 16, "the result is not a finite number" },
    { "#", 10, "expected a number or a name, not '#'" },
    { "ceil(7 / 2) + 7 / 2", 26, "7 / 2 leaves a remainder" },
    { "min(7 / 2, 1)", 16, "7 / 2 leaves a remainder" },
    { "min(1, 1 / 0)", 19, "division by zero" },
    { "ceil(1 / (2 - 2))", 17, "division by zero" },
    { "1 / 0 + widht", 12, "division by zero" },
    { "widht + 1 / 0", 10, "'widht' is neither a number nor" },
    { "-(9223372036854775807 + 2)", 10, "the result does not fit in 64 bits" },
    { "9223372036854775809 / -1", 30, "the result does not fit in 64 bits" },
    { "-9223372036854775807 - 2", 31, "the result does not fit in 64 bits" },
    { "-9223372036854775809", 10, "the result does not fit in 64 bits" },
    { "2 * ceil(1e300)", 14, "the result does not fit in 64 bits" },
    { "floor(1 / 4294967296 / 4294967296)", 31, "the result does not fit in 64 bits" },
    { "1 + 99999999999GiB", 14, "the number does not fit in 64 bits" },
    { "in.shape", 18, "expected '[' and the number of an axis at the end" },
    { "in.shape[0", 20, "expected ']' at the end" },
    { "in.shape[99999999999]", 10, "'in' has no axis 1000; axes count from 0" },
    { "a_name_of_more_letters_than_an_expression_may_have_in_one_of_them", 10,
      "a name in an expression has at most 63 letters" },
    /* what is no expression is refused before anything of it is evaluated */
    { "1 / 0 +", 17, "expected a number or a name at the end" },
    { "widht + #", 18, "expected a number or a name, not '#'" },
};

static void ck_error(int col, const char *msg)
{
    ck_assert_int_eq(errs.n, 1);
    ck_assert_msg(!strncmp(errs.e[0].msg, msg, strlen(msg)) && errs.e[0].at.col == col
                  && errs.e[0].at.line == 3, "got %d: %s\nwant %d: %s", errs.e[0].at.col, errs.e[0].msg, col, msg);
}

TEST_EACH(refused, bad)
{
    gp_num n;
    ck_assert_msg(!gp_eval(node(bad[_i].text), &scope, &n, &errs), "%s", bad[_i].text);
    ck_error(bad[_i].col, bad[_i].msg);
}

TEST(no_scope)
{
    gp_num n;
    ck_assert(!gp_eval(node("x"), NULL, &n, &errs));
    ck_assert(!gp_eval(node("x.size"), NULL, &n, &errs));
    ck_assert_str_eq(errs.e[1].msg, "'x' has no shape or size here: those of inputs can be used in 'shape' of what a stage makes of "
                     "them, and in options that say so");
}

TEST_LOOP(deep, 0, 2)
{
    char text[4001];
    gp_num n;
    memset(text, _i ? '-' : '(', 4000);
    text[4000] = 0;
    ck_assert(!gp_eval(node(text), &scope, &n, &errs));
    ck_assert_str_eq(errs.e[0].msg, "nested more than 64 deep");
}

/* `n` levels, each with as much that waits for the next as there can be. */
TEST_LOOP(deepest, 0, 4)
{
    static const char *const form[][3] = { { "(", "1", ")" }, { "-", "1", "" },
                                           { "1 + 1 * min(1, ", "1 + 1 * 2", ")" },
                                           { "ceil(", "1", ")" } };
    for (int n = 64; n <= 65; n++) {
        char text[4000] = "";
        for (int i = 0; i < n; i++)
            strcat(text, form[_i][0]);
        strcat(text, form[_i][1]);
        for (int i = 0; i < n; i++)
            strcat(text, form[_i][2]);
        gp_num v = { 0 };
        ck_assert_msg(gp_eval(node(text), &scope, &v, &errs) == (n == 64), "%d: %s", n, text);
        ck_assert_int_eq(v.i, n == 65 ? 0 : _i == 2 ? 2 : 1);
    }
    ck_assert_str_eq(errs.e[0].msg, "nested more than 64 deep");
}

/* There is no bound on what is in a row. */
TEST_LOOP(long_rows, 0, 4)
{
    enum { N = 100000 };
    static const struct { const char *head, *each, *tail; int want; } c[] = {
        { "1", " + 1", "", N + 1 }, { "1", "*1", "", 1 }, { "max(0", ", 1", ")", 1 },
        { "0", " - 1 * 1", "", -N } };
    char *text = malloc(20 * N), *s = text;
    s += sprintf(s, "%s", c[_i].head);
    for (int i = 0; i < N; i++)
        s += sprintf(s, "%s", c[_i].each);
    sprintf(s, "%s", c[_i].tail);
    gp_num n;
    ck_assert(gp_eval(node(text), &scope, &n, &errs) && n.is_int);
    ck_assert_int_eq(n.i, c[_i].want);
    free(text);
}

/* ---- trees ----------------------------------------------------------- */

/* The nodes of a tree, each with its column and length: "1@1+1 k@5+1 +@3+1 named". */
static const char *tree(const gp_expr *e)
{
    static const char *const sign[] = {
        [GP_EXPR_NEGATE] = "neg", [GP_EXPR_CEIL] = "ceil", [GP_EXPR_FLOOR] = "floor",
        [GP_EXPR_ADD] = "+", [GP_EXPR_SUBTRACT] = "-", [GP_EXPR_MULTIPLY] = "*",
        [GP_EXPR_DIVIDE] = "/", [GP_EXPR_QUOTIENT] = "exact/", [GP_EXPR_REMAINDER] = "%",
        [GP_EXPR_MIN] = "min", [GP_EXPR_MAX] = "max" };
    static char text[1000];
    char *s = text;
    for (int i = 0; i < e->n; i++) {
        const gp_expr_node *n = &e->node[i];
        s += i ? sprintf(s, " ") : 0;
        if (n->op == GP_EXPR_NUMBER)
            s += sprintf(s, "%g%s%s", n->value.f, n->unit ? ":" : "", n->unit ? n->unit->name : "");
        else if (n->op == GP_EXPR_PORT)
            s += sprintf(s, "%s[%d]", n->name, n->axis);
        else
            s += sprintf(s, "%s", n->op == GP_EXPR_VAR ? n->name : sign[n->op]);
        s += sprintf(s, "@%d+%d", (int)n->from + 1, (int)n->len);
    }
    sprintf(s, "%s", e->named ? " named" : "");
    return text;
}

static const struct { const char *text, *tree; } trees[] = {
    { "1", "1@1+1" }, { "((1))", "1@3+1" }, { "+1", "1@2+1" }, { "-1", "1@2+1 neg@1+1" },
    { "1 + 2 * 3", "1@1+1 2@5+1 3@9+1 *@7+1 +@3+1" },
    { "1 * 2 + 3", "1@1+1 2@5+1 *@3+1 3@9+1 +@7+1" },
    { "1 - 2 - 3", "1@1+1 2@5+1 -@3+1 3@9+1 -@7+1" },
    { "1 - (2 - 3)", "1@1+1 2@6+1 3@10+1 -@8+1 -@3+1" },
    { "-1 % 2", "1@2+1 neg@1+1 2@6+1 %@4+1" },
    { "1.5KiB", "1536:KiB@1+6 named" }, { "2e1", "20@1+3" }, { "k", "k@1+1 named" },
    { "ceil(in.shape[1] / 16)", "in[1]@6+11 16@20+2 exact/@18+1 ceil@1+4 named" },
    { "x.size / 2", "x[-1]@1+6 2@10+1 /@8+1 named" },
    { "min(1)", "1@5+1 named" }, { "max(1, 2, 3)", "1@5+1 2@8+1 max@1+3 3@11+1 max@1+3 named" },
    { "floor(min(1 / 2, 3)) / 4", "1@11+1 2@15+1 exact/@13+1 3@18+1 min@7+3 floor@1+5 4@24+1 /@22+1 named" },
};

TEST_EACH(parsed, trees)
{
    const gp_expr *e = gp_expr_parse(&arena, node(trees[_i].text), &errs);
    ck_assert_ptr_nonnull(e);
    ck_assert_str_eq(tree(e), trees[_i].tree);
}

/* The first value or error of a text, as text. */
static const char *outcome(const gp_node *n)
{
    static char text[1000];
    gp_num v;
    errs.n = errs.failed = 0;
    if (gp_eval(n, &scope, &v, &errs))
        sprintf(text, "%d %lld %a", v.is_int, (long long)v.i, v.f);
    else
        sprintf(text, "%d+%d: %s", errs.e[0].at.col, errs.e[0].at.len, errs.e[0].msg);
    return gp_strdup(&arena, text);
}

static void ck_kept(const char *text)
{
    const gp_node *n = node(text);
    const char *first = outcome(n);
    const gp_expr *e = gp_expr_keep(&arena, n);
    ck_assert_ptr_eq(n->expr, e);
    ck_assert_str_eq(outcome(n), first);
    ck_assert_str_eq(outcome(n), first);
    if (e)
        ck_assert_ptr_eq(gp_expr_keep(&arena, n), e);
    else
        ck_assert_int_eq(errs.failed, 1);
}

/* Whether a node keeps its tree or not, the outcome is the same. */
TEST(kept)
{
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        ck_kept(ints[i].text);
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        ck_kept(doubles[i].text);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_kept(bad[i].text);
}

/* A kind may copy a node and give it another text. */
TEST(copied)
{
    gp_node n = *node("1 + 2");
    gp_num v;
    ck_assert_ptr_nonnull(gp_expr_keep(&arena, &n));
    n.text = "4 * 5";
    ck_assert_ptr_null(gp_expr_kept(&n));
    ck_assert(gp_eval(&n, NULL, &v, &errs));
    ck_assert_int_eq(v.i, 20);
    ck_assert_str_eq(tree(gp_expr_keep(&arena, &n)), "4@1+1 5@5+1 *@3+1");
}

static void *evaluate(void *arg)
{
    const gp_node *const *n = arg;
    static _Thread_local gp_errs own;
    gp_num v;
    for (int i = 0; i < 1000; i++)
        if (!gp_eval(n[i % 2], &scope, &v, &own) || v.i != 65 || gp_eval(n[2], &scope, &v, &own))
            return arg;
    return NULL;
}

/* Launchers evaluate the same nodes at the same time; what no pass has parsed, too. */
TEST(threads)
{
    enum { N = 4 };
    const gp_node *n[] = { node("ceil(in.shape[1] / 16)"), node("width / 16 + 1"), node("k_2 +") };
    pthread_t t[N];
    void *wrong;
    ck_assert_ptr_nonnull(gp_expr_keep(&arena, n[0]));
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, evaluate, n), 0);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(pthread_join(t[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
}

/* A caret stands where the error is, inside quotes too; where lines were joined the whole scalar is the place. */
TEST_LOOP(places_in_quotes, 0, 8)
{
    static const struct { const char *text; int line, col; } c[] = {
        { "a: \"1 + x\"\n", 1, 9 }, { "a: '1 + x'\n", 1, 9 }, { "a: 1 +\n  x\n", 1, 4 },
        { "a: \"1 \\\n  + x\"\n", 1, 4 }, { "a: >\n  1 + x\n", 2, 7 },
        { "a: |\n  1 +\n  2 * x\n", 3, 7 }, { "a: >\n  1 +\n  2 * x\n", 1, 4 }, { "a: |\n  1 + 2 +\n\n", 2, 10 },
    };
    gp_spec *s = gp_parse(&arena, c[_i].text, strlen(c[_i].text), "p.yaml", &errs);
    gp_num n;
    ck_assert_ptr_nonnull(s);
    ck_assert(!gp_eval(s->root->item[0], NULL, &n, &errs));
    ck_assert_int_eq(errs.e[0].at.line, c[_i].line);
    ck_assert_int_eq(errs.e[0].at.col, c[_i].col);
}

TEST(not_a_scalar)
{
    gp_node list = { .kind = GP_LIST, .at = { "p.yaml", 3, 10, 1 } };
    gp_num n;
    ck_assert(!gp_eval(&list, &scope, &n, &errs));
    ck_error(10, "expected a number, not a list");
}

static const struct { const char *text; int64_t ns; } times[] = {
    { "30s", 30000000000 }, { "1.5ms", 1500000 }, { "2 * 10ms", 20000000 }, { "0", 0 },
    { "1h + 30min", 5400000000000 }, { "5us", 5000 }, { "7ns", 7 }, { "1s / 3.0", 333333333 },
    { "width * 1us", 1024000 }, { "0.3ns", 0 }, { "1.7ns", 2 },
};

TEST_EACH(durations, times)
{
    int64_t ns = -1;
    ck_assert_msg(gp_eval_time(node(times[_i].text), &scope, &ns, &errs), "%s: %s", times[_i].text, errs.e[0].msg);
    ck_assert_int_eq(ns, times[_i].ns);
}

static const struct { const char *text; int col; const char *msg; } bad_times[] = {
    { "30", 10, "'30' has no unit; write 30s, or with ns, us, ms, min or h" },
    { "30KB", 12, "'KB' is not a unit of time" },
    { "30sec", 12, "no unit 'sec'" },
    { "", 10, "expected a time, like 30s or 1.5ms, and there is nothing" },
    { "1e30s", 10, "the time is too long" },
    { "2 * (1s + 1.5KiB)", 23, "'KiB' is not a unit of time; use ns, us, ms, s, min or h" },
    { "2 * 15", 10, "'2 * 15' has no unit" },
};

TEST_EACH(refused_durations, bad_times)
{
    int64_t ns;
    ck_assert(!gp_eval_time(node(bad_times[_i].text), &scope, &ns, &errs));
    ck_error(bad_times[_i].col, bad_times[_i].msg);
}

/* ---- text ------------------------------------------------------------ */

static const char *env(const void *arg, const char *name)
{
    ck_assert_str_eq(arg, "arg");
    return !strcmp(name, "HOME") ? "/home/me" : !strcmp(name, "EMPTY") ? "" : NULL;
}

/* Monday, 3 February 2025, 04:05:06 */
static const struct tm text_date = { .tm_year = 125, .tm_mon = 1, .tm_mday = 3, .tm_wday = 1,
                                     .tm_yday = 33, .tm_hour = 4, .tm_min = 5, .tm_sec = 6 };
static const gp_env text_env = { .get = env, .arg = "arg", .date = &text_date, .nanoseconds = 7654321 };

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

TEST_EACH(interpolated, texts)
{
    const char *out = NULL;
    ck_assert_msg(gp_interpolate(&arena, node(texts[_i].text), text_vars(), &text_env, &out,
                                 &errs), "%s: %s", texts[_i].text, errs.e[0].msg);
    ck_assert_str_eq(out, texts[_i].want);
}

static const struct { const char *text; int col, len; const char *msg; } bad_texts[] = {
    { "a/${dri}", 12, 6, "no variable 'dri' under 'vars'; did you mean 'dir'?" },
    { "a/${dir", 12, 5, "'${' has no '}'; write '$${' for the characters themselves" },
    { "${}", 10, 3, "'${}' names nothing" },
    { "${env:}", 10, 7, "'${}' names nothing" },
    { "${env:NOPE}", 10, 11, "the environment has no 'NOPE'; set it, or give a default: ${env:NOPE:-...}" },
    { "${out}", 10, 6, "'out' has no value; give one with --set vars.out=..." },
    { "xx${bare}", 12, 7, "'out' has no value; give one with --set vars.out=..." },
    { "x${date:%Y%Q}", 20, 2, "'%Q' is not a part of a date, as in ${date:%Y%m%d-%H%M%S}" },
    { "${date:%Y%}", 19, 1, "'%' is not a part of a date" },
    { "${date:%s}", 17, 2, "'%s' is not a part of a date" },
    { "${date:}", 10, 8, "'${date:}' names nothing; write ${date:%Y%m%d-%H%M%S}" },
    { "${date}", 10, 7, "no variable 'date'" },
    { "${list}", 10, 7, "'list' is a list; only a single value fits in text" },
    { "${dir:x}", 10, 8, "'${dir:x}' is not understood; a default is written ${name:-default}" },
    { "${self}", 10, 7, "the value refers to itself, or is nested more than 16 deep" },
    { "${nope:-${dri}}", 18, 6, "no variable 'dri'" },
};

TEST_EACH(refused_texts, bad_texts)
{
    const char *out;
    ck_assert(!gp_interpolate(&arena, node(bad_texts[_i].text), text_vars(), &text_env, &out, &errs));
    ck_error(bad_texts[_i].col, bad_texts[_i].msg);
    ck_assert_int_eq(errs.e[0].at.len, bad_texts[_i].len);
}

TEST(no_date)
{
    const char *out;
    gp_env none = { .get = env, .arg = "arg" };
    ck_assert(!gp_interpolate(&arena, node("${date:%Y}"), text_vars(), &none, &out, &errs));
    ck_error(10, "no date is known here");
}

/* Vars that double fifteen times over: refused at once. */
TEST(text_bomb)
{
    char yaml[4000] = "v0: \"\"\n";
    for (int i = 1; i < 15; i++)
        sprintf(yaml + strlen(yaml), "v%d: \"${v%d}${v%d}${v%d}${v%d}\"\n", i, i - 1, i - 1, i - 1, i - 1);
    gp_spec *s = gp_parse(&arena, yaml, strlen(yaml), "v.yaml", &errs);
    const char *out;
    ck_assert(!gp_interpolate(&arena, node("${v14}"), s->root, NULL, &out, &errs));
    ck_error(10, "more than 10000 values in one text");
}

TEST_SUITE(expr, setup, teardown, 0)
