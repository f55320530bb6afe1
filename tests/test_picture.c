/* test_picture.c - the drawing and the flowchart of golden plans show everything once; a name is only ever text; what
 * was measured is shown where it belongs. What a drawing looks like is in picture.py. */
#include <ctype.h>
#include "draw/dump.h"
#include "planned.h"
#include "suite.h"

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

typedef bool drawer(FILE *, const gp_graph *, const gp_plan *, const gp_measured *, gp_errs *);

static char *drawn_with(const planned *p, drawer *draw, bool plan, const gp_measured *m)
{
    char *text = NULL;
    size_t size;
    gp_errs errs = { 0 };
    FILE *f = open_memstream(&text, &size);
    ck_assert(draw(f, p->graph, plan ? p->plan : NULL, m, &errs));
    fclose(f);
    return text;
}

static char *drawn(const planned *p, drawer *draw, bool plan)
{
    return drawn_with(p, draw, plan, NULL);
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

TEST_LOOP(test_svg, 0, GOLDEN)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        planned p = plan_golden(golden[_i], cuda);
        for (int plan = 0; plan < 2; plan++) {
            char *text = drawn(&p, gp_dump_svg, plan), *again = drawn(&p, gp_dump_svg, plan);
            char name[200];
            ck_assert_str_eq(text, again);
            ck_assert(!strncmp(text, "<svg ", 5));
            ck_assert_str_eq(strstr(text, "</svg>"), "</svg>\n");
            ck_assert_int_eq(count(text, "<g "), count(text, "</g>"));
            ck_assert_int_eq(count(text, "data-segment="), plan ? p.plan->nsegments : 0);
            ck_assert_int_eq(count(text, "data-copy="), plan ? copies(p.plan) : 0);
            ck_assert_int_eq(count(text, "data-stage="), p.graph->nstages);
            for (int i = 0; i < p.graph->nstages; i++) {
                snprintf(name, sizeof name, "data-stage=\"%s\"", p.graph->stage[i].name);
                ck_assert_int_eq(count(text, name), 1);
            }
            for (int i = 0; i < p.graph->nbuffers; i++) {
                snprintf(name, sizeof name, "data-buffer=\"%s\"", p.graph->buffer[i].name);
                ck_assert_int_eq(count(text, name), 1);
            }
            free(text);
            free(again);
        }
    }
}

/* "n12" or "g3" at `s`; its end, or NULL. */
static const char *id(const char *s, char letter)
{
    return *s == letter && isdigit((unsigned char)s[1]) ? s + 1 + strspn(s + 1, "0123456789") : NULL;
}

/* A label in quotes and brackets: text, <br/>, and codes like #34; */
static const char *quoted(const char *s)
{
    s = strchr(s, '"');
    for (s = s ? s + 1 : NULL; s && *s != '"';)
        if (!strncmp(s, "<br/>", 5))
            s += 5;
        else if (*s == '#' && isdigit((unsigned char)s[1]))
            s += 2 + strspn(s + 1, "0123456789");
        else if (*s == ';' || (*s && !strchr("<>&#`*;{}|", *s)))
            s++;
        else
            return NULL;
    return s;
}

/* The lines that a flowchart consists of; how many nodes and edges it has. */
static void check_flowchart(char *text, int *nodes, int *edges)
{
    static const char *const edge[] = { " --- ", " --> ", " -.-> " };
    int deep = 0;
    *nodes = *edges = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const char *s = line + strspn(line, " "), *end = id(s, 'n');
        size_t e = 0;
        while (end && e < 3 && strncmp(end, edge[e], strlen(edge[e])))
            e++;
        if (end && e < 3) {
            end = id(end + strlen(edge[e]), 'n');
            ck_assert_msg(end && !*end, "an edge? %s", line);
            ++*edges;
        } else if (end) {
            ck_assert_msg(strchr("[({", *end) && (end = quoted(end)) && strstr(end, ":::"), "a node? %s", line);
            ++*nodes;
        } else if (!strncmp(s, "subgraph ", 9)) {
            ck_assert_msg(id(s + 9, 'g') && (end = quoted(s)) && !strcmp(end, "\"]"), "a frame? %s", line);
            deep++;
        } else if (!strcmp(s, "end")) {
            deep--;
        } else {
            ck_assert_msg(!strcmp(s, "---") || !strncmp(s, "title: \"", 8)
                          || !strcmp(s, "flowchart TB") || !strncmp(s, "classDef ", 9) || !strncmp(s, "style ", 6),
                          "what is this? %s", line);
        }
        ck_assert(deep == 0 || deep == 1);
    }
    ck_assert_int_eq(deep, 0);
}

TEST_LOOP(test_mermaid, 0, GOLDEN)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        planned p = plan_golden(golden[_i], cuda);
        for (int plan = 0; plan < 2; plan++) {
            char *text = drawn(&p, gp_dump_mermaid, plan);
            int nodes, edges, want = p.graph->nstages + p.graph->nbuffers;
            check_flowchart(text, &nodes, &edges);
            ck_assert_int_eq(nodes, want + (plan ? copies(p.plan) : 0));
            ck_assert_int_ge(edges, nodes - 1 - p.graph->nstages);
            free(text);
        }
    }
}

TEST_LOOP(test_names, 0, 4)
{
    static const struct { const char *yaml, *svg, *title; } name[] = {
        { "'<b>&\"x\"'", ">&#60;b&#62;&#38;&#34;x&#34;</text>", "title: \"<b>&\\\"x\\\"\"\n" },
        { "Größe 日本", ">Größe 日本</text>", "title: \"Größe 日本\"\n" },
        { "\"a\\x01b\\uFFFEc\"", ">a\xef\xbf\xbd" "b\xef\xbf\xbd" "c</text>", "title: \"a\\u0001b\\ufffec\"\n" },
        { "a very long name of a pipeline that is cut where it does not fit any more, or is it",
          "…</text>", "or is it\"\n" },
    };
    char yaml[400];
    snprintf(yaml, sizeof yaml, "pipeline: %s\nstages:\n  - {use: src}\n  - {use: dev}\n"
             "  - {use: sink}\n", name[_i].yaml);
    planned p = plan_ok(yaml, true);
    char *svg = drawn(&p, gp_dump_svg, true), *chart = drawn(&p, gp_dump_mermaid, true);
    ck_assert_msg(strstr(svg, name[_i].svg) != NULL, "%s", svg);
    ck_assert_msg(strstr(chart, name[_i].title) != NULL, "%s", chart);
    free(svg);
    free(chart);
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
    static const struct { drawer *draw; bool plan; const char *has[13]; } want[] = {
        { gp_dump_svg, true, { "class=\"host heat heat1\" data-stage=\"src\"",
            "class=\"host heat heat4 most\" data-stage=\"sink\"", "class=\"device\" data-stage=\"dev\"",
            "class=\"segment heat heat2\"", "class=\"copy heat heat0\" data-copy=\"copy in\"",
            "class=\"copy\" data-copy=\"copy out\"", ">~12 % busy</text>", ">31 % busy, 812 us a frame</text>",
            ">97 % busy, 12 ms a frame, the busiest</text>", ">55 % busy, 2.2 s a frame</text>",
            ">2.7 of 4 in use</text>", "class=\"slots free\"",
            ">bound by 'sink' &#60;x&#62;: try more</text>" } },
        { gp_dump_svg, false, { "class=\"host heat heat4 most\"", ">2.7 of 4 in use</text>" } },
        { gp_dump_mermaid, true, { "31 #37; busy, 812 us a frame\"]:::heat1", ":::heat4",
            "style g0 fill:", "stroke-width:4px", "2.7 of 4 in use",
            "title: \"test: bound by 'sink' <x>: try more\"" } },
        { gp_dump_mermaid, false, { ":::heat4", "2.7 of 4 in use" } } };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        char *text = drawn_with(&p, want[i].draw, want[i].plan, m);
        for (int k = 0; k < 13 && want[i].has[k]; k++)
            ck_assert_msg(strstr(text, want[i].has[k]) != NULL, "%s is not in %s", want[i].has[k], text);
        int nodes, edges;
        if (want[i].draw == gp_dump_mermaid)
            check_flowchart(text, &nodes, &edges);
        free(text);
    }
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    gp_dump_dot(f, p.graph, p.plan, m);
    fclose(f);
    ck_assert(strstr(text, "31 % busy, 812 us a frame\" fillcolor=\"#fbdcb8\""));
    ck_assert_int_eq(count(text, "penwidth=4"), 1);
    ck_assert(strstr(text, "\\n55 % busy, 2.2 s a frame\";"));
    ck_assert(strstr(text, "2.7 in use"));
    ck_assert(strstr(text, "label=\"bound by 'sink' <x>: try more\";"));
    free(text);
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
    char *text = drawn_with(&p, gp_dump_svg, true, m);
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
        char json[400];
        snprintf(json, sizeof json, "{\"stages\": [" SRC ", {\"name\": \"sink\", \"busy\": %s}], "
                 "\"verdict\": null}", value[i].busy);
        const gp_measured *m = measured(&a, &p, json, &errs);
        ck_assert_msg(m != NULL, "%s", errs.e[0].msg);
        ck_assert_double_eq(m->stage[plan_stage(&p, "sink")].busy, value[i].want);
        ck_assert_double_lt(m->segment[0].p50_us, 0);
        char *text = drawn_with(&p, gp_dump_svg, true, m);
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
