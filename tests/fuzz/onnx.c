/* onnx.c - models: what a library says of one, a pipeline with it, and smaller frames of that.
 *
 * gpipe reads nothing of a model itself, so that the input says what the library in ONNX Runtime's place
 * (tests/onnx_fake.c) answers. Lines up to one of "%%":
 *
 *   in NAME KIND ELEMENT AXIS...   an input, and `out` likewise. AXIS: a size; ?: none is said; !: nor a name; N: as many
 *                                  as N; N=5: 5 where the inputs' sizes are known; @9: there are 9 axes. NAME ~: ""
 *   fail FUNCTION AFTER TEXT       this call fails, after so many
 *   version TEXT, newest N, cuda
 *
 * The rest is the pipeline, by default one with a frame f32 [2, 4]. Whatever is
 * said, all that the library made is released again, and a failure has a text. */
#include <stdio.h>
#include "base/dl.h"
#include "../onnx_fake.h"
#include "fuzz.h"
#include "onnx_model.h"

enum { PORTS = 24 };

/* ---- the library ----------------------------------------------------- */

extern onnx_fake onnx_fake_does;
const void *OrtGetApiBase(void);

static bool stands_in;         /* for the library, while an input runs */

bool __wrap_gp_dl_open(const char *const *library, const gp_dl_symbol *symbol, const char *what, const char *advice,
                       gp_loc at, gp_errs *errs);
bool __real_gp_dl_open(const char *const *library, const gp_dl_symbol *symbol, const char *what, const char *advice,
                       gp_loc at, gp_errs *errs);

bool __wrap_gp_dl_open(const char *const *library, const gp_dl_symbol *symbol, const char *what, const char *advice,
                       gp_loc at, gp_errs *errs)
{
    const void *(*base)(void) = OrtGetApiBase;
    if (!stands_in || strcmp(symbol->name, "OrtGetApiBase"))
        return __real_gp_dl_open(library, symbol, what, advice, at, errs);
    memcpy(symbol->to, &base, sizeof base);
    return true;
}

/* ---- what it says ---------------------------------------------------- */

typedef struct model { onnx_fake_port in[PORTS], out[PORTS]; int nin, nout; } model;

/* The next word of a line, which ends it; NULL: there is none. */
static char *word(char **at)
{
    char *w = strsep(at, " ");
    return w && *w ? w : NULL;
}

static long long number(char **at)
{
    const char *w = word(at);
    return w ? strtoll(w, NULL, 10) : 0;
}

static void read_axis(onnx_fake_port *p, char *w)
{
    size_t k = p->ndim;
    char *equals = strchr(w, '=');
    if (*w == '@') {
        p->ndim = (size_t)strtoull(w + 1, NULL, 10);
        return;
    }
    if (k >= ONNX_FAKE_DIMS)
        return;
    p->ndim++, p->fixed[k] = -1, p->symbol[k] = "";
    if (*w == '-' || (*w >= '0' && *w <= '9')) {
        p->dim[k] = strtoll(w, NULL, 10);
        return;
    }
    p->dim[k] = -1;
    if (equals)
        *equals = 0, p->fixed[k] = strtoll(equals + 1, NULL, 10);
    p->symbol[k] = *w == '!' ? NULL : *w == '?' ? "" : w;
}

static void read_port(onnx_fake_port *p, char *line)
{
    const char *name = word(&line);
    p->name = name && strcmp(name, "~") ? name : "";
    p->kind = (int)number(&line), p->element = (int)number(&line);
    for (char *w; (w = word(&line));)
        read_axis(p, w);
}

static void read_line(model *m, char *line)
{
    onnx_fake *d = &onnx_fake_does;
    const char *first = word(&line);
    if (!first)
        return;
    if (!strcmp(first, "in") && m->nin < PORTS)
        read_port(&m->in[m->nin++], line);
    else if (!strcmp(first, "out") && m->nout < PORTS)
        read_port(&m->out[m->nout++], line);
    else if (!strcmp(first, "fail"))
        d->fails = word(&line), d->after = (int)number(&line), d->says = line ? line : "";
    else if (!strcmp(first, "version"))
        d->version = line ? line : "";
    else if (!strcmp(first, "newest"))
        d->newest = (unsigned)number(&line);
    else if (!strcmp(first, "cuda"))
        d->cuda = 1;
}

/* ---- the pipeline ---------------------------------------------------- */

static const char plain[] = "buffers: {x: {dtype: f32, shape: [2, 4]}}\nstages:\n  - {use: give, out: {x: x}}\n"
                            "  - {use: onnx, model: m.onnx, in: x, out: y}\n  - {use: take, in: {a: y}}\n";

static void print_plan(FILE *f, const void *arg)
{
    gp_dump_plan(f, arg, GP_DUMP_TEXT);
}

/* Frames of the stage that are shorter in some axes: all of a number of sizes below those of the plan. */
static void make_smaller(const fuzz_forms *f, const gp_stage *st)
{
    for (unsigned less = 1; less < 16; less++) {
        gp_type in[GP_MAXPORT] = { { 0 } }, out[GP_MAXPORT] = { { 0 } };
        gp_errs errs = { 0 };
        for (int p = 0; p < st->nin; p++) {
            in[p] = f->graph->buffer[st->in[p]].type;
            for (int k = 0; k < in[p].ndim; k++)
                in[p].dim[k] -= less >> k & 1 && in[p].dim[k] > 1;
        }
        bool ok = gp_partial_shape(f->graph, st, in, out, &errs);
        MUST(ok == !errs.failed);
        for (int p = 0; ok && p < st->nout; p++)
            for (int k = 0; k < out[p].ndim; k++)
                MUST(out[p].dim[k] >= 0);
    }
}

static void compile(const char *yaml, size_t n, int ngpus)
{
    fuzz_forms f;
    size_t bytes;
    fuzz_compile(&f, yaml, n, NULL, 0, ngpus, false);
    fuzz_print_errs(&f.errs, yaml, n);
    MUST(!onnx_fake_does.live);
    if (f.plan)
        free(fuzz_text(print_plan, f.plan, &bytes));
    for (int i = 0; f.plan && i < f.graph->nstages; i++)
        if (!strcmp(f.graph->stage[i].kind->name, "onnx"))
            make_smaller(&f, &f.graph->stage[i]);
    fuzz_forms_free(&f);
}

static void look_for_cuda(void)
{
    gp_ort l;
    gp_errs errs = { 0 };
    char why[GP_WHY] = "";
    if (gp_ort_open(&l, (gp_loc){ 0 }, &errs))
        MUST(gp_onnx_has_cuda(&l, 0, why) || *why);
    else
        MUST(errs.failed == 1 && *errs.e[0].msg);
    MUST(!onnx_fake_does.live);
}

static void one(const char *data, size_t n)
{
    char *text = malloc(n + 1), *line = text;
    model *m = calloc(1, sizeof *m);
    MUST(text && m);
    memcpy(text, data, n);
    text[n] = 0;
    for (int gpus = 0; gpus < 2; gpus++) {
        stands_in = true;
        *m = (model){ .nin = 0 };
        onnx_fake_does = (onnx_fake){ .version = "1.23.0", .newest = 23, .says = "", .in = m->in, .out = m->out };
        memcpy(text, data, n);
        line = text;
        for (char *l; (l = strsep(&line, "\n")) && strcmp(l, "%%");)
            read_line(m, l);
        onnx_fake_does.nin = m->nin, onnx_fake_does.nout = m->nout;
        int after = onnx_fake_does.after;
        look_for_cuda();
        onnx_fake_does.after = after;
        compile(line ? line : plain, line ? n - (size_t)(line - text) : sizeof plain - 1, gpus);
        stands_in = false;
    }
    free(m);
    free(text);
}

const fuzz_harness fuzz_onnx = { .name = "onnx", .one = one };
