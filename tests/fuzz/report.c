/* report.c - a report that `plan --with` colors a pipeline by, on both machines; and any
 * bytes as a string and as numbers of JSON, which are read again. */
#include <inttypes.h>
#include <math.h>
#include "base/json.h"
#include "base/yaml.h"
#include "draw/dump.h"
#include "fuzz.h"

static const char pipeline[] =
    "stages:\n  - {use: read, path: photo.png}\n  - {use: gray}\n"
    "  - {name: clean, use: lua, script: clean.lua, workers: 2}\n  - {use: blur, sigma: 1.4}\n"
    "  - {use: sobel}\n  - {use: write, path: out/%05d.npy}\n  - {use: take, in: gray}\n";

struct colored { const fuzz_forms *f; const gp_measured *m; };

static void draw(FILE *to, const void *arg)
{
    const struct colored *c = arg;
    gp_errs errs = { 0 };
    MUST(gp_dump_dot(to, c->f->graph, c->f->plan, c->m, &errs));
}

static void color(const fuzz_forms *f, const char *data, size_t n)
{
    gp_arena a = { 0 };
    gp_errs errs = { 0 };
    jmp_buf oom;
    if (setjmp(oom)) {
        gp_arena_free(&a);
        return;
    }
    a.oom = &oom;
    const gp_measured *m = gp_measured_read(&a, f->plan, data, n, "report.json", &errs);
    MUST((m == NULL) == (errs.failed > 0));
    if (m) {
        struct colored c = { f, m };
        size_t len;
        free(fuzz_text(draw, &c, &len));
    }
    gp_arena_free(&a);
}

struct quoted { const char *s; size_t n; int64_t i; double x; };

static void quote(FILE *to, const void *arg)
{
    const struct quoted *q = arg;
    const int parts[] = { (int)(q->i & 0xff), (int)(q->i >> 40 & 0xff) };
    gp_json j = { .f = to };
    gp_json_open(&j, NULL, '{');
    gp_json_strn(&j, "it", q->s, q->n);
    gp_json_str(&j, "none", NULL);
    gp_json_int(&j, "i", q->i);
    gp_json_num(&j, "x", q->x);
    gp_json_ints(&j, "parts", parts, 2);
    gp_json_open(&j, "raw", '[');
    gp_json_size(&j, NULL, q->n);
    gp_json_bool(&j, NULL, q->i & 1);
    gp_json_raw(&j, NULL, "{}");
    gp_json_close(&j, ']');
    gp_json_close(&j, '}');
}

/* Of `x` 15 digits are kept, so that the largest may come back as infinite; "null" where it is not finite. */
static void check_numbers(const gp_node *root, const struct quoted *q)
{
    const gp_node *parts = gp_node_get(root, "parts"), *raw = gp_node_get(root, "raw");
    const char *x = gp_node_get(root, "x")->text;
    MUST(strtoll(gp_node_get(root, "i")->text, NULL, 10) == q->i);
    MUST(isfinite(q->x) || !strcmp(x, "null"));
    MUST(!(fabs(q->x) < 1e308) || fabs(strtod(x, NULL) - q->x) <= 1e-14 * fabs(q->x));
    MUST(parts->n == 2 && atoi(parts->item[1]->text) == (int)(q->i >> 40 & 0xff));
    MUST(raw->n == 3 && strtoumax(raw->item[0]->text, NULL, 10) == q->n && raw->item[2]->kind == GP_MAP);
    MUST(!strcmp(raw->item[1]->text, q->i & 1 ? "true" : "false"));
}

/* Text that is UTF-8 comes back as it was, and so do numbers. */
static void string(const char *data, size_t n)
{
    struct quoted q = { .s = data, .n = n };
    memcpy(&q.i, data, n < sizeof q.i ? n : sizeof q.i);
    memcpy(&q.x, &q.i, sizeof q.x);
    gp_arena a = { 0 };
    gp_errs errs = { 0 };
    bool valid = true;
    for (size_t i = 0, len; valid && i < n; i += len) {
        unsigned code;
        len = gp_utf8(data + i, n - i, &code);
        valid = len > 0 && code;
    }
    size_t len;
    char *text = fuzz_text(quote, &q, &len);
    const gp_node *root = gp_yaml_value(&a, text, (gp_loc){ .file = "json" }, &errs);
    const gp_node *it = root ? gp_node_get(root, "it") : NULL;
    MUST(!valid || (it && it->len == n && !memcmp(it->text, data, n)));
    if (root)
        check_numbers(root, &q);
    gp_arena_free(&a);
    free(text);
}

static void one(const char *data, size_t n)
{
    static fuzz_forms f[2];
    for (int ngpus = 0; ngpus < 2; ngpus++) {
        if (!f[ngpus].plan)
            fuzz_compile(&f[ngpus], pipeline, sizeof pipeline - 1, NULL, 0, ngpus, false);
        MUST(f[ngpus].plan != NULL);
        color(&f[ngpus], data, n);
    }
    string(data, n);
}

const fuzz_harness fuzz_report = { .name = "report", .one = one };
