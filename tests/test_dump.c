/* test_dump.c - golden plans, and dumps that are what they say they are.
 *
 * tests/golden/NAME.yaml is planned for a fixed machine with a CUDA device and
 * for one without; the texts must be NAME.cuda.txt and NAME.cpu.txt. With
 * UPDATE_GOLDEN=1 these files are written instead. ranks.yaml is planned for the first of two ranks. */
#include <jansson.h>
#include "draw/dump.h"
#include "pipe.h"
#include "planned.h"

static const char *const golden[] = {
    "chain", "reentry", "fan-out", "twins", "const", "rounding", "raise", "work", "slow-way", "rows", "carry",
    "window", "loop", "fills", "peers", "priority", "managed",
    "ranks", "slots", "reuse",
};

enum { GOLDEN = sizeof golden / sizeof *golden };

static planned plan_golden(const char *name, bool cuda)
{
    static char path[200];     /* places point to it */
    snprintf(path, sizeof path, "tests/golden/%s.yaml", name);
    OWNED char *yaml = pipe_read(".", path, &(size_t){ 0 });
    ck_assert_msg(yaml != NULL, "no %s", path);
    planned p = plan_ranks(yaml, path, cuda, strcmp(name, "ranks") ? 1 : 2);
    ck_assert_msg(p.pipeline != NULL, "%s: %s", path, p.errs.e[0].msg);
    return p;
}

enum { GRAPH, PLAN };

static char *dumped(const planned *p, int form, gp_dump how)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (form == GRAPH)
        gp_dump_graph(f, p->graph, how);
    else
        gp_dump_plan(f, p->plan, how);
    fclose(f);
    return text;
}

TEST_LOOP(test_golden, 0, GOLDEN)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        planned p = plan_golden(golden[_i], cuda);
        OWNED char *got = dumped(&p, PLAN, GP_DUMP_TEXT);
        char *path = format("tests/golden/%s.%s.txt", golden[_i], cuda ? "cuda" : "cpu");
        if (getenv("UPDATE_GOLDEN"))
            pipe_text(".", path, got);
        OWNED char *want = pipe_read(".", path, &(size_t){ 0 });
        ck_assert_msg(want && !strcmp(want, got), "%s differs from this (UPDATE_GOLDEN=1 writes "
                      "it anew):\n%s", path, got);
    }
}

/* A depth that was asked for and made another is no default. */
TEST(test_why_a_depth)
{
    planned p = plan_golden("rounding", true);
    OWNED char *text = dumped(&p, PLAN, GP_DUMP_TEXT), *json = dumped(&p, PLAN, GP_DUMP_JSON);
    ck_assert_ptr_nonnull(strstr(text, "depth 12 (you asked for 7; segments need 3 * 2^k)"));
    ck_assert_ptr_nonnull(strstr(text, "depth 6 (you asked for 4; segments need 3 * 2^k)"));
    ck_assert_ptr_null(strstr(text, "default"));
    ck_assert_ptr_nonnull(strstr(json, "\"why\": \"you asked for 4; segments need 3 * 2^k\""));
}

TEST_LOOP(test_lines_are_short, 0, GOLDEN)
{
    planned p = plan_golden(golden[_i], true);
    for (int form = GRAPH; form <= PLAN; form++) {
        OWNED char *text = dumped(&p, form, GP_DUMP_TEXT);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            ck_assert_msg(strlen(line) <= 100, "too long: %s", line);
            ck_assert_msg(line[strlen(line) - 1] != ' ', "ends with a blank: '%s'", line);
        }
    }
}

/* ---- JSON and DOT ---------------------------------------------------- */

static void assert_json(const char *text)
{
    json_error_t why;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    ck_assert_msg(json, "no JSON: %s\n%s", why.text, text);
    json_decref(json);
}

TEST_LOOP(test_json, 0, GOLDEN)
{
    for (int form = GRAPH; form <= PLAN; form++)
        for (int cuda = 0; cuda < 2; cuda++) {
            planned p = plan_golden(golden[_i], cuda);
            OWNED char *text = dumped(&p, form, GP_DUMP_JSON), *again = dumped(&p, form, GP_DUMP_JSON);
            assert_json(text);
            ck_assert_str_eq(text, again);
        }
}

TEST(test_json_of_grids)
{
    static const char *const has[] = { "\"block\": [256, 1, 1], \"grid\": [16, 1, 1]}",
        "\"block\": [32, 8, 1], \"grid\": [2, 3, 4]}", "\"block\": [], \"grid\": []}" };
    for (int form = GRAPH; form <= PLAN; form++) {
        planned p = plan_golden("work", true);
        OWNED char *text = dumped(&p, form, GP_DUMP_JSON);
        for (size_t i = 0; i < sizeof has / sizeof *has; i++)
            ck_assert_msg(strstr(text, has[i]) != NULL, "no %s in\n%s", has[i], text);
    }
}

/* What regroups says how, and where rates differ each stage and buffer has one. */
TEST(test_json_of_rates)
{
    static const char *const has[] = {
        "\"name\": \"lines\", \"use\": \"split\", \"on\": \"device\"",
        "\"regroup\": {\"step\": 1, \"repeat\": 1, \"take\": 1, \"back\": 0, \"make\": 16, \"stack\": false, "
        "\"split\": true, \"drop_tail\": false, \"every\": 1, \"drop_partial\": false}, \"rate\": 5}",
        "\"regroup\": {\"step\": 1, \"repeat\": 1, \"take\": 4, \"back\": 3, \"make\": 1, \"stack\": true, "
        "\"split\": false, \"drop_tail\": false, \"every\": 1, \"drop_partial\": false}, \"rate\": 80}",
        "\"from\": \"lines\", \"to\": [\"window\"], \"endless\": false, \"rate\": 80}",
    };
    for (int form = GRAPH; form <= PLAN; form++) {
        planned p = plan_golden("rows", true), same = plan_golden("reentry", true);
        OWNED char *text = dumped(&p, form, GP_DUMP_JSON), *none = dumped(&same, form, GP_DUMP_JSON);
        int rates = 0;
        for (size_t i = 0; i < sizeof has / sizeof *has; i++)
            ck_assert_msg(strstr(text, has[i]) != NULL, "no %s in\n%s", has[i], text);
        for (const char *s = text; (s = strstr(s, "\"rate\": ")); s++)
            rates++;
        ck_assert_int_eq(rates, p.graph->nstages + p.graph->nbuffers);
        ck_assert(!strstr(none, "\"rate\"") && !strstr(none, "\"regroup\""));
    }
}

/* The words, also of kinds that are not gpipe's. */
TEST(test_regroup_text)
{
    static const struct { gp_regroup r; const char *text; } cases[] = {
        { { .step = 4, .repeat = 1, .take = 4, .make = 1, .stack = true }, "4 frames -> 1" },
        { { .step = 1, .repeat = 1, .take = 1, .make = 1, .stack = true }, "1 frame -> 1" },
        { { .step = 1, .repeat = 1, .take = 1, .make = 16, .split = true }, "1 frame -> 16" },
        { { .step = 1, .repeat = 4, .take = 1, .make = 1 }, "1 frame -> 4" },
        { { .step = 1, .repeat = 1, .take = 1, .make = 1, .every = 4 }, "4 frames -> 1" },
        { { .step = 1, .repeat = 1, .take = 1, .make = 1, .every = INT64_MAX }, "all frames -> 1" },
        { { .step = 4, .repeat = 1, .take = 1, .make = 1 }, "1 of 4 frames" },
        { { .step = 4, .repeat = 1, .take = 1, .make = 3, .split = true }, "1 of 4 frames -> 3" },
        { { .step = 1, .repeat = 1, .take = 4, .back = 3, .make = 1, .stack = true }, "each frame with 3 before it" },
        { { .step = 2, .repeat = 1, .take = 4, .make = 1, .stack = true }, "1 of 2 frames with 3 after it" },
        { { .step = 2, .repeat = 1, .take = 5, .back = 2, .make = 1, .stack = true },
          "1 of 2 frames with 2 before it and 2 after it" },
        { { .step = 1, .repeat = 3, .take = 2, .back = 1, .make = 1, .stack = true },
          "each frame with 1 before it -> 3" },
        { { .step = INT64_MAX, .repeat = 1, .take = INT64_MAX, .back = INT64_MAX / 2, .make = INT64_MAX, .stack = true },
          "1 of 9223372036854775807 frames with 4611686018427387903 before it and 4611686018427387903 after it "
          "-> 9223372036854775807" },
    };
    char text[GP_REGROUP_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(gp_regroup_text(&cases[i].r, text), cases[i].text);
}

/* A drawing says it at the stage, and what PCIe carries of how many frames. */
TEST(test_drawn_rates)
{
    static const char *const has[] = { ">group, 4 frames -&#62; 1<", ">1 frame -&#62; 4<",
                                       ">PCIe per 4 frames of 'photo': 4.0 KiB in, 5.0 KiB out<" };
    OWNED char *as_is = pipe_read(".", "tests/golden/slow-way.yaml", &(size_t){ 0 });
    char *text = NULL;
    size_t size;
    gp_errs errs = { 0 };
    planned p = plan_ok(pipe_edited(as_is, "use: group,", "name: by_four,use: group,"), true);
    FILE *f = open_memstream(&text, &size);
    ck_assert(gp_dump_dot(f, p.graph, p.plan, NULL, &errs));
    fclose(f);
    for (size_t i = 0; i < sizeof has / sizeof *has; i++)
        ck_assert_msg(strstr(text, has[i]) != NULL, "no %s in\n%.2000s", has[i], text);
    free(text);
}

/* What comes when a source has ended is of no rate, and PCIe has it once. */
TEST(test_at_the_end)
{
    planned p = plan_ok("stages:\n  - {use: src, name: a}\n  - {use: mix, name: four, op: max, frames: 4}\n"
                        "  - {use: sink, name: some}\n  - {use: mix, name: most, op: max, in: a}\n"
                        "  - {use: dev}\n  - {use: sink, name: one}\n", true);
    char *text = dumped(&p, PLAN, GP_DUMP_TEXT);
    ck_assert_msg(strstr(text, "\nrates\n  a 4 -> some 1, one at the end\n\n") != NULL, "%.2000s", text);
    ck_assert_msg(strstr(text, "most u8 [1000]; all frames -> 1\n") != NULL, "%.2000s", text);
    ck_assert_msg(strstr(text, "\nPCIe per 4 frames of 'a'\n  to cuda:0 8.0 KiB, back 1.0 KiB\n") != NULL, "%.3000s",
                  text);
    free(text);
    text = dumped(&p, PLAN, GP_DUMP_JSON);
    ck_assert(strstr(text, "\"every\": null, ") && strstr(text, "\"every\": 4, "));
    assert_json(text);
    free(text);
}

/* What a stage says the shape of each frame for is launched one by one, and nothing is built for that. */
TEST(test_each_shape)
{
    static const char *const launch[] = { "graph", "persistent", "stream" };
    for (int i = 0; i < 3; i++) {
        char *yaml = format("launch: %s\ndepth: 12\nbuffers: {x: {dtype: u8, shape: [\"<=1000\"]}}\nstages:\n"
                            "  - {use: src, out: x}\n  - {use: box}\n  - {use: sink}\n", launch[i]);
        planned p = plan_ok(yaml, true);
        char *text = dumped(&p, PLAN, GP_DUMP_TEXT);
        ck_assert_msg(strstr(text, i < 2 ? "at most 1 frame a launch, no graphs\n" : "at most 1 frame a launch\n")
                      != NULL, "%s", text);
        free(text);
        text = dumped(&p, PLAN, GP_DUMP_JSON);
        ck_assert_msg(strstr(text, "\"execs\": 0,") != NULL, "%s", text);
        free(text);
    }
}

/* Of many sources the first say what a period is. */
TEST(test_period_of_many_sources)
{
    planned p = plan_ok("stages:\n  - {use: src, name: a}\n  - {use: src, name: b}\n  - {use: src, name: c}\n"
                        "  - {use: src, name: d}\n  - {use: dev, name: all, in: [a, b, c, d]}\n"
                        "  - {use: group, frames: 2, out: two}\n  - {use: sink}\n", true);
    OWNED char *text = dumped(&p, PLAN, GP_DUMP_TEXT);
    ck_assert_msg(strstr(text, "\nPCIe per 2 frames of 'a', 2 of 'b', 2 of 'c', ...\n  to cuda:0 8.0 KiB, back 2.0 KiB\n")
                  != NULL, "%s", text);
    ck_assert_msg(strstr(text, "\nrates\n  a 2 -> sink 1\n  b 2 -> sink 1\n  c 2 -> sink 1\n  d 2 -> sink 1\n\n")
                  != NULL, "%s", text);
}

/* ---- odd texts ------------------------------------------------------- */

TEST(test_odd_strings)
{
    static const struct { const char *text, *json; } cases[] = {
        { "plain", "\"plain\"" },
        { "", "\"\"" },
        { "a\"b\\c", "\"a\\\"b\\\\c\"" },
        { "tab\tend", "\"tab\\u0009end\"" },
        { "line\nbreak", "\"line\\nbreak\"" },
        { "\x7f", "\"\\u007f\"" },
        { "Gr\xc3\xbc\xc3\x9f" "e", "\"Gr\xc3\xbc\xc3\x9f" "e\"" },
        { "\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"" },
        { "bad \xff end", "\"bad \\ufffd end\"" },
        { "cut \xe2\x82", "\"cut \\ufffd\\ufffd\"" },
        { "long \xc0\xaf", "\"long \\ufffd\\ufffd\"" },
        { "half \xed\xa0\x80", "\"half \\ufffd\\ufffd\\ufffd\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        gp_json_quote(f, cases[i].text, strlen(cases[i].text));
        fclose(f);
        ck_assert_str_eq(text, cases[i].json);
        assert_json(text);
        free(text);
    }
}

TEST_SUITE(dump, NULL, NULL, 0)
