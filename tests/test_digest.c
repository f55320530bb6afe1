/* test_digest.c - which vars say something else than before. What digests of stages are good for: tests/tune.py. */
#include "base/yaml.h"
#include "compile/ir.h"
#include "suite.h"

static const struct { const char *was, *now, *changed; } vars[] = {
    { "{a: 1, b: a + 1, c: 3}", "{a: 1, b: a + 1, c: 3}", "" },
    { "{a: 1, b: a + 1, c: 3}", "{a: 2, b: a + 1, c: 3}", "a b" },
    { "{a: 1, b: a + 1, c: b}", "{c: b, b: a + 1, a: 2}", "c b a" },
    { "{a: 1, b: 2}", "{a: 1}", "" },
    { "{a: 1}", "{a: 1, b: 2}", "b" },
    { "{a: b, b: \"${a}\", c: b}", "{a: b , b: \"${a}\", c: b}", "" },
    { "{a: b 1, b: \"${a}\", c: b}", "{a: b 2, b: \"${a}\", c: b}", "a b c" },        /* one says the other's name */
    { "{b: \"${a}\", a: b 1, c: b}", "{b: \"${a}\", a: b 2, c: b}", "b a c" },
    { "{aa: 1, b: a}", "{aa: 2, b: a}", "aa" },
};

TEST_EACH(vars_that_change, vars)
{
    gp_arena a = { 0 };
    bool changed[8] = { false };
    char text[100] = "";
    gp_errs errs = { .n = 0 };
    const gp_node *was = gp_yaml_value(&a, vars[_i].was, (gp_loc){ 0 }, &errs);
    const gp_node *now = gp_yaml_value(&a, vars[_i].now, (gp_loc){ 0 }, &errs);
    ck_assert(was && now);
    gp_vars_changed(&a, was, now, changed);
    for (int i = 0; i < now->n; i++)
        if (changed[i])
            strcat(strcat(text, *text ? " " : ""), now->key[i]->text);
    ck_assert_str_eq(text, vars[_i].changed);
    gp_arena_free(&a);
}

TEST_SUITE(digest, NULL, NULL, 0)
