/* test_picture.c - the graph for Graphviz of golden plans shows everything once; a name is only ever
 * text; what was measured is shown where it belongs. What Graphviz makes of it is in picture.py. */
#include "draw/dump.h"
#include "planned.h"

static const char *const golden[] = { "chain", "reentry", "fan-out", "twins", "const", "rounding",
                                      "raise", "work", "slow-way", "rows", "carry", "loop" };
enum { GOLDEN = sizeof golden / sizeof *golden };

static planned plan_golden(const char *name, bool cuda)
{
    static char path[200], yaml[1 << 14];
    snprintf(path, sizeof path, "tests/golden/%s.yaml", name);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "no %s", path);
    yaml[fread(yaml, 1, sizeof yaml - 1, f)] = 0;
    fclose(f);
    planned p = plan_yaml(yaml, path, cuda);
    ck_assert_msg(p.pipeline != NULL, "%s: %s", path, p.errs.e[0].msg);
    return p;
}

static char *drawn_with(const planned *p, bool plan, const gp_measured *m)
{
    char *text = NULL;
    size_t size;
    gp_errs errs = { 0 };
    FILE *f = open_memstream(&text, &size);
    ck_assert(gp_dump_dot(f, p->graph, plan ? p->plan : NULL, m, &errs));
    fclose(f);
    return text;
}

static char *drawn(const planned *p, bool plan)
{
    return drawn_with(p, plan, NULL);
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

static int copies(const gp_plan *p)
{
    int n = 0;
    for (int i = 0; i < p->ntasks; i++)
        n += p->task[i].stage < 0;
    return n;
}

/* The least that there are: from a buffer to each stage that reads it, and to it from the one that makes it. */
static int lines(const gp_graph *g)
{
    int n = 0;
    for (int i = 0; i < g->nstages; i++) {
        const gp_stage *s = &g->stage[i];
        for (int k = 0; k < s->nin; k++) {
            bool new = s->in[k] >= 0;
            for (int j = 0; j < k; j++)
                new &= s->in[j] != s->in[k];
            n += new;
        }
        for (int k = 0; k < s->nout; k++)
            n += s->out[k] >= 0;
    }
    return n;
}

TEST_LOOP(test_dot, 0, GOLDEN)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        planned p = plan_golden(golden[_i], cuda);
        for (int plan = 0; plan < 2; plan++) {
            OWNED char *text = drawn(&p, plan), *again = drawn(&p, plan);
            char name[200];
            ck_assert_str_eq(text, again);
            ck_assert(!strncmp(text, "digraph ", 8));
            ck_assert_int_eq(count(text, "subgraph cluster_"), plan ? p.plan->nsegments : 0);
            ck_assert_int_eq(count(text, "class=\"copy\""), plan ? copies(p.plan) : 0);
            ck_assert_int_ge(count(text, " -> "), lines(p.graph) + (plan ? copies(p.plan) : 0));
            ck_assert_int_eq(count(text, " id=\"stage "), p.graph->nstages + p.graph->nprologue);
            for (int i = 0; i < p.graph->nstages; i++) {
                snprintf(name, sizeof name, " id=\"stage %s\"", p.graph->stage[i].name);
                ck_assert_int_eq(count(text, name), 1);
            }
            for (int i = 0; i < p.graph->nbuffers; i++) {
                snprintf(name, sizeof name, " id=\"buffer %s\"", p.graph->buffer[i].name);
                ck_assert_int_eq(count(text, name), 1);
            }
        }
    }
}

TEST_LOOP(test_names, 0, 3)
{
    static const struct { const char *yaml, *dot; } name[] = {
        { "'<b>&\"x\"'", "<b>&#60;b&#62;&#38;&#34;x&#34;</b>" },
        { "Größe 日本", "<b>Größe 日本</b>" },
        { "\"a\\x01b\\uFFFEc\"", "<b>a\xef\xbf\xbd" "b\xef\xbf\xbd" "c</b>" },
    };
    char *yaml = format("pipeline: %s\nstages:\n  - {use: src}\n  - {use: dev}\n"
                        "  - {use: sink}\n", name[_i].yaml);
    planned p = plan_ok(yaml, true);
    OWNED char *dot = drawn(&p, true);
    ck_assert_msg(strstr(dot, name[_i].dot) != NULL, "%s", dot);
}

/* ---- what was measured ------------------------------------------------ */

static const char chain[] = "depth: 4\nstages:\n  - {use: src, out: a}\n  - {use: dev, out: b}\n"
                            "  - {use: sink}\n";
#define SRC  "{\"name\": \"src\", \"busy\": 0.31, \"frame_p50_us\": 812.4}"
#define SINK "{\"name\": \"sink\", \"busy\": 0.97, \"frame_p50_us\": 12400}"
#define SEGMENT "\"segments\": [{\"name\": \"dev\", \"stages\": [\"dev\"], \"frame_p50_us\": 2.25e6}]"
#define REST SEGMENT ", \"engines\": [{\"name\": \"copy in\", \"busy\": 0.12, " \
    "\"measured\": false}, " \
    "{\"name\": \"compute\", \"busy\": 0.55, \"measured\": true}, {\"name\": \"copy out\", \"busy\": null}], " \
    "\"buffers\": [{\"name\": \"a\", \"depth\": 4, \"held\": 2.7}], " \
    "\"verdict\": {\"text\": \"bound by 'sink' <x>: try more\"}"
static const char report[] = "{\"stages\": [" SRC ", " SINK "], " REST "}\n";

static const gp_measured *measured(gp_arena *a, const planned *p, const char *json, gp_errs *errs)
{
    return gp_measured_read(a, p->plan, json, strlen(json), "r.json", errs);
}

TEST(test_measured)
{
    planned p = plan_ok(chain, true);
    gp_arena a = { 0 };
    gp_errs errs = { 0 };
    const gp_measured *m = measured(&a, &p, report, &errs);
    ck_assert_msg(m != NULL, "%s", errs.e[0].msg);
    ck_assert_double_eq(m->stage[plan_stage(&p, "src")].busy, 0.31);
    ck_assert_double_eq(m->stage[plan_stage(&p, "sink")].p50_us, 12400);
    ck_assert_double_lt(m->stage[plan_stage(&p, "dev")].busy, 0);
    ck_assert_double_eq(m->segment[0].busy, 0.55);
    ck_assert_double_eq(m->held[plan_buffer(&p, "a")], 2.7);
    ck_assert_double_lt(m->held[plan_buffer(&p, "b")], 0);
    ck_assert_double_lt(m->copy_out.busy, 0);
    ck_assert_double_eq(m->most, 0.97);
    static const struct { bool plan; const char *has[13]; } want[] = {
        { true, { "class=\"host heat\" shape=box style=filled id=\"stage src\"",
            "fillcolor=\"#fbdcb8\" color=\"#8f4a0e\" label=<<b>src</b>",
            "fillcolor=\"#e27d2f\" color=\"#8f4a0e\" penwidth=4",
            "class=\"device\"", "class=\"segment heat\"", "class=\"copy heat\"", "class=\"copy\"", ">~12 % busy<",
            ">31 % busy, 812 us a frame<", ">97 % busy, 12 ms a frame, the busiest<", ">55 % busy, 2.2 s a frame<",
            ">2.7 of 4 in use<", ">bound by 'sink' &#60;x&#62;: try more<" } },
        { false, { " heat\"", ">2.7 of 4 in use<" } } };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        OWNED char *text = drawn_with(&p, want[i].plan, m);
        for (int k = 0; k < 13 && want[i].has[k]; k++)
            ck_assert_msg(strstr(text, want[i].has[k]) != NULL, "%s is not in %s", want[i].has[k], text);
    }
    gp_arena_free(&a);
}

#define ON(device, gpu) "{\"pipeline\": {\"device\": \"" device "\"}, \"environment\": {\"cpu\": \"x\", " \
    "\"gpu\": " gpu "}, \"stages\": [" SRC ", " SINK "], " REST "}"

/* A report is of the device that it was measured on: on a plan for another one its times
 * of copies and segments are not drawn, and it is said where the others are from. */
TEST_LOOP(test_measured_elsewhere, 0, 7)
{
    static const struct { const char *json, *says; bool cuda; } on[] = {
        { ON("cpu", "null"), NULL, false },
        { ON("cuda:1", "\"NVIDIA H200\""), NULL, true },
        { ON("cuda:0", "null"), NULL, true },
        { ON("cpu", "null"), "measured on the CPU back end, while this plan is for NVIDIA H200: bound "
          "by 'sink'", true },
        { ON("cuda:0", "\"NVIDIA T4\""), "measured on NVIDIA T4, while this plan is for NVIDIA H200: "
          "bound by 'sink'", true },
        { ON("cuda:0", "\"NVIDIA T4\""), "measured on NVIDIA T4, while this plan is for the CPU back "
          "end: bound by 'sink'", false },
        { ON("cuda:0", "null"), "measured on cuda:0, while this plan is for the CPU back end: ", false },
    };
    planned p = plan_ok(chain, on[_i].cuda);
    gp_arena a = { 0 };
    gp_errs errs = { 0 };
    const gp_measured *m = measured(&a, &p, on[_i].json, &errs);
    const char *says = on[_i].says;
    ck_assert_msg(m != NULL, "%s", errs.e[0].msg);
    ck_assert_msg(says ? !strncmp(m->verdict, says, strlen(says)) : !strncmp(m->verdict, "bound", 5), "%s", m->verdict);
    ck_assert_double_eq(m->stage[plan_stage(&p, "src")].busy, 0.31);
    ck_assert_double_eq(m->segment[0].busy, says ? -1 : 0.55);
    ck_assert_double_eq(m->segment[0].p50_us, says ? -1 : 2.25e6);
    ck_assert_double_eq(m->copy_in.busy, says ? -1 : 0.12);
    ck_assert_int_eq(gp_is_busiest(m, 0.97), !says);   /* who was is not in the picture */
    gp_arena_free(&a);
}

/* However long it is, all of a verdict is drawn. */
TEST(test_long_verdict)
{
    enum { WORDS = 600 };
    planned p = plan_ok(chain, true);
    gp_arena a = { 0 };
    gp_errs errs = { 0 };
    char json[WORDS * 6 + 400], word[16];
    int n = sprintf(json, "{\"stages\": [" SRC ", " SINK "], \"verdict\": {\"text\": \"");
    for (int i = 0; i < WORDS; i++)
        n += sprintf(json + n, "%sw%d", i ? " " : "", i);
    sprintf(json + n, "\"}}");
    const gp_measured *m = measured(&a, &p, json, &errs);
    ck_assert_msg(m != NULL, "%s", errs.e[0].msg);
    char *text = drawn_with(&p, true, m);
    for (int i = 0; i < WORDS; i++) {
        sprintf(word, "w%d", i);
        ck_assert_msg(strstr(text, word) != NULL, "no %s", word);
    }
    free(text);
    gp_arena_free(&a);
}

static const struct { const char *json, *says; } bad[] = {
    { "", "this is not a report" },
    { "[1, 2]", "this is not a report" },
    { "{\"stages\": 1, \"verdict\": {}}", "this is not a report" },
    { "{\"stages\": [], \"seconds\": 1}", "this is not a report" },
    { "{\"stages\": [{}], \"verdict\": {}}", "this is not a report" },
    { "{\"stages\": [1], \"verdict\": {}}", "this is not a report" },
    { "{\"stages\": [", "this is not a report" },
    { "{\"stages\": [" SRC "], " REST "}", "another pipeline: it has no stage 'sink'" },
    { "{\"stages\": [" SRC ", " SINK ", {\"name\": \"more\"}], " REST "}",
      "another pipeline: there is no stage 'more'" },
    { "{\"stages\": [" SRC ", " SINK "], \"segments\": [{\"stages\": [\"x\"]}], \"verdict\": {}}",
      "another pipeline: there is no stage 'x'" },
    { "{\"stages\": [" SRC ", " SINK "], \"buffers\": [{\"name\": \"c\"}], \"verdict\": {}}",
      "another pipeline: there is no buffer 'c'" },
};

TEST_EACH(test_no_report, bad)
{
    planned p = plan_ok(chain, true);
    gp_arena a = { 0 };
    gp_errs errs = { 0 };
    ck_assert(!measured(&a, &p, bad[_i].json, &errs));
    ck_assert_int_eq(errs.n, 1);
    ck_assert_int_eq(errs.e[0].code, GP_E_USAGE);
    ck_assert_str_eq(errs.e[0].at.file, "r.json");
    ck_assert_msg(strstr(errs.e[0].msg, bad[_i].says) != NULL, "%s", errs.e[0].msg);
    gp_arena_free(&a);
}

/* Values that no run has are not known; nothing at all is a report too. */
TEST(test_odd_values)
{
    static const struct { const char *busy; double want; } value[] = {
        { "1.01", 1 }, { "-1", -1 }, { "nan", -1 }, { "1e400", -1 }, { "\"x\"", -1 }, { "{}", -1 },
        { "null", -1 }, { "0", 0 },
    };
    planned p = plan_ok(chain, true);
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        gp_arena a = { 0 };
        gp_errs errs = { 0 };
        char *json = format("{\"stages\": [" SRC ", {\"name\": \"sink\", \"busy\": %s}], "
                            "\"verdict\": null}", value[i].busy);
        const gp_measured *m = measured(&a, &p, json, &errs);
        ck_assert_msg(m != NULL, "%s", errs.e[0].msg);
        ck_assert_double_eq(m->stage[plan_stage(&p, "sink")].busy, value[i].want);
        ck_assert_double_lt(m->segment[0].p50_us, 0);
        char *text = drawn_with(&p, true, m);
        ck_assert_int_eq(count(text, "class=\"segment\""), 1);
        free(text);
        gp_arena_free(&a);
    }
}

TEST_LOOP(test_utf8, 0, 8)
{
    static const struct { const char *s; size_t n, length; unsigned code; } c[] = {
        { "a", 1, 1, 'a' }, { "é", 2, 2, 0xe9 }, { "日", 3, 3, 0x65e5 }, { "𝄞", 4, 4, 0x1d11e },
        { "é", 1, 0, 0xfffd }, { "\xff", 1, 0, 0xfffd }, { "\xc0\x80", 2, 0, 0xfffd },
        { "\xed\xa0\x80", 3, 0, 0xfffd },
    };
    unsigned code;
    ck_assert_uint_eq(gp_utf8(c[_i].s, c[_i].n, &code), c[_i].length);
    ck_assert_uint_eq(code, c[_i].code);
}

TEST_SUITE(picture, NULL, NULL, 0)
