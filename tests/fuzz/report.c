/* report.c - a report that `plan --with` colors a pipeline by, on both machines; and any
 * bytes as a string of JSON, which is read again. */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/yaml.h"
#include "draw/dump.h"
#include "fuzz.h"

static const char pipeline[] =
    "stages:\n"
    "  - {use: read, path: photo.png}\n"
    "  - {use: gray}\n"
    "  - {name: clean, use: lua, script: clean.lua, workers: 2}\n"
    "  - {use: blur, sigma: 1.4}\n"
    "  - {use: sobel}\n"
    "  - {use: write, path: out/%05d.npy}\n"
    "  - {use: take, in: gray}\n";

struct colored { const fuzz_forms *f; const gp_measured *m; };

static void draw(FILE *to, const void *arg)
{
    const struct colored *c = arg;
    gp_errs errs = { 0 };
    MUST(gp_dump_svg(to, c->f->graph, c->f->plan, c->m, &errs));
    MUST(gp_dump_mermaid(to, c->f->graph, c->f->plan, c->m, &errs));
    gp_dump_dot(to, c->f->graph, c->f->plan, c->m);
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

struct quoted { const char *s; size_t n; };

static void quote(FILE *to, const void *arg)
{
    const struct quoted *q = arg;
    gp_json j = { .f = to };
    gp_json_open(&j, NULL, '{');
    gp_json_strn(&j, "it", q->s, q->n);
    gp_json_close(&j, '}');
}

/* Text that is UTF-8 comes back as it was. */
static void string(const char *data, size_t n)
{
    struct quoted q = { data, n };
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
