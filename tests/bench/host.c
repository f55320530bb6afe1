/* host.c - runs a pipeline as `gpipe run` does, with stage kinds of its own, in C:
 * those that are timed, and what Lua stages are measured beside.
 *
 *   host [-t | -p FRAMES] FILE [PATH=VALUE...]
 *
 * Prints `host FRAMES SECONDS` of the run alone, and with -t `stage NAME US` for each
 * host stage: busy microseconds per frame. Every frame must come out. With -p it pushes
 * frames into stage 'in', by a thread, and pulls them from stage 'out': a number into
 * the first bytes, which must come out. Its kinds:
 *   touch   writes a few bytes of each frame; the rest of a slot stays as it is
 *   sum     takes what touch wrote, and fails the run when that is wrong
 *   nop     does nothing
 *   copy    memcpy
 *   madd    y = 1.5 x + 0.5 for each element of f32 frames
 *   lag     prints `lag P50 P99`, microseconds since the source made the frame */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "gpipe/gpipe.h"

static bool same(gp_shape *s)
{
    for (int i = 0; i < s->nout; i++)
        s->out[i] = s->in[0];
    return true;
}

static bool same_slots(gp_shape *s)
{
    s->keeps_slots = true;
    return same(s);
}

static bool touch(gp_call *c, gp_frame *f, int n)
{
    (void)c;
    for (int i = 0; i < n; i++) {
        gp_view *out = &f[i].out[0];
        if (out->fresh)
            memset(out->data, 0, gp_bytes(&out->type));
        *(uint64_t *)out->data = f[i].index + *(const uint8_t *)f[i].in[0].data;
    }
    return true;
}

/* The ramp of the source begins with 0. */
static bool sum(gp_call *c, gp_frame *f, int n)
{
    uint64_t wrong = 0;
    for (int i = 0; i < n; i++)
        wrong |= *(const uint64_t *)f[i].in[0].data ^ f[i].index;
    return !wrong || gp_fail(c->errs, GP_E_MISMATCH, c->at, "stage '%s': not what was written", c->name);
}

static bool nop(gp_call *c, gp_frame *f, int n)
{
    (void)c, (void)f, (void)n;
    return true;
}

static bool copy(gp_call *c, gp_frame *f, int n)
{
    (void)c;
    for (int i = 0; i < n; i++)
        memcpy(f[i].out[0].data, f[i].in[0].data, gp_bytes(&f[i].in[0].type));
    return true;
}

static bool madd(gp_call *c, gp_frame *f, int n)
{
    (void)c;
    for (int i = 0; i < n; i++) {
        const float *x = f[i].in[0].data;
        float *y = f[i].out[0].data;
        int64_t count = gp_count(&f[i].in[0].type);
        for (int64_t k = 0; k < count; k++)
            y[k] = x[k] * 1.5f + 0.5f;
    }
    return true;
}

/* ---- lag: a sink that says how late frames are ----------------------- */

enum { LAG_WARM = 100, LAG_MAX = 1 << 20 };

typedef struct lags { int seen, n; int64_t ns[LAG_MAX]; } lags;

static bool lag_open(const gp_open *o, void **state)
{
    *state = calloc(1, sizeof(lags));
    return *state || gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name);
}

static bool lag(gp_call *c, gp_frame *f, int n)
{
    lags *l = c->state;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    for (int i = 0; i < n && l->n < LAG_MAX; i++)
        if (l->seen++ >= LAG_WARM)
            l->ns[l->n++] = t.tv_sec * 1000000000LL + t.tv_nsec - f[i].time_ns;
    return true;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool lag_finish(gp_call *c)
{
    lags *l = c->state;
    if (!l->n)
        return gp_fail(c->errs, GP_E_RUN, c->at, "stage '%s': fewer than %d frames", c->name, LAG_WARM + 1);
    qsort(l->ns, (size_t)l->n, sizeof *l->ns, by_value);
    printf("lag %.3f %.3f\n", 1e-3 * (double)l->ns[l->n / 2], 1e-3 * (double)l->ns[(int64_t)l->n * 99 / 100]);
    return true;
}

/* ---- the kinds ------------------------------------------------------- */

static const gp_port any_in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
static const gp_port f32_in[] = { { "in", GP_ACCEPT(GP_F32), .help = "frames" }, { 0 } };
static const gp_port out[] = { { "out", .help = "frames" }, { 0 } };

static const gp_kind kinds[] = {
    { GP_KIND("touch"), .help = "write a few bytes", .in = any_in, .out = out, .max_run = 64,
      .shape = same_slots, .run = touch },
    { GP_KIND("sum"), .help = "take what touch wrote", .in = any_in, .max_run = 64, .shape = same, .run = sum },
    { GP_KIND("nop"), .help = "do nothing", .in = any_in, .out = out, .max_run = 64, .shape = same, .run = nop },
    { GP_KIND("copy"), .help = "memcpy", .in = any_in, .out = out, .shape = same, .run = copy },
    { GP_KIND("madd"), .help = "1.5 x + 0.5", .in = f32_in, .out = out, .shape = same, .run = madd },
    { GP_KIND("lag"), .help = "say how late frames are", .in = any_in, .shape = same,
      .open = lag_open, .close = free, .run = lag, .finish = lag_finish },
};

/* ---- running --------------------------------------------------------- */

static const char *environment(const void *arg, const char *name)
{
    (void)arg;
    return getenv(name);
}

static char *read_text(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    char *text = f ? malloc(1 << 22) : NULL;
    *len = text ? fread(text, 1, 1 << 22, f) : 0;
    if (f)
        fclose(f);
    return text;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct pusher { gp_input *in; uint64_t frames; } pusher;

static void *push(void *arg)
{
    pusher *p = arg;
    gp_loan l;
    for (uint64_t i = 0; i < p->frames && gp_push_begin(p->in, &l, -1) == GP_LOAN_OK; i++) {
        memcpy(l.view.data, &i, sizeof i);
        gp_push_end(p->in, &l);
    }
    gp_push_close(p->in);
    return NULL;
}

/* Without a push of its own it runs; else frames go through it. */
static gp_outcome go(gp_pipeline *p, const gp_run_options *options, uint64_t pushed, gp_errs *errs)
{
    pusher from = { pushed ? gp_pipeline_input(p, "in") : NULL, pushed };
    gp_output *to = pushed ? gp_pipeline_output(p, "out") : NULL;
    gp_loan l;
    pthread_t thread;
    uint64_t seen = 0, wrong = 0;
    if (!pushed)
        return gp_pipeline_run(p, options, errs);
    if (!from.in || !to || !gp_pipeline_start(p, options, errs) || pthread_create(&thread, NULL, push, &from))
        return GP_ERROR;
    for (; gp_pull_begin(to, &l, -1) == GP_LOAN_OK; seen++) {
        wrong |= *(const uint64_t *)l.view.data ^ seen;
        gp_pull_end(to, &l);
    }
    pthread_join(thread, NULL);
    gp_outcome outcome = gp_pipeline_wait(p);
    return wrong || seen != pushed ? GP_ERROR : outcome;
}

/* Runs it, and prints how long that took. False after errors. */
static bool run(gp_pipeline *p, bool timed, uint64_t pushed, gp_errs *errs)
{
    enum { MAX = 64 };
    gp_run_options options = { .timed = timed };
    gp_account account[MAX];
    gp_stage_status stage[MAX];
    uint64_t frames = 0;
    double start = seconds();
    gp_outcome outcome = go(p, &options, pushed, errs);
    double took = seconds() - start;
    int n = gp_accounts(p, account, MAX);
    for (int i = 0; i < n; i++) {
        frames += account[i].out;
        if (outcome != GP_DONE || account[i].out != account[i].in)
            return false;
    }
    printf("host %llu %.9f\n", (unsigned long long)frames, took);
    n = timed ? gp_stages_status(p, stage, MAX) : 0;
    for (int i = 0; i < n && i < MAX; i++)
        if (stage[i].workers && stage[i].frames)
            printf("stage %s %.4f\n", stage[i].name, 1e-3 * (double)stage[i].busy_ns / (double)stage[i].frames);
    return true;
}

int main(int argc, char **argv)
{
    gp_errs errs = { 0 };
    size_t len = 0;
    bool timed = argc > 1 && !strcmp(argv[1], "-t"), pushes = argc > 2 && !strcmp(argv[1], "-p");
    int options = pushes ? 2 : timed;
    uint64_t pushed = pushes ? strtoull(argv[2], NULL, 10) : 0;
    char **arg = argv + 1 + options;
    const char *file = arg[0];
    char *text = file ? read_text(file, &len) : NULL;
    if (!text) {
        fprintf(stderr, file ? "host: cannot read '%s'\n"
                             : "usage: host [-t | -p FRAMES] FILE [PATH=VALUE...]%s\n", file ? file : "");
        return 2;
    }
    gp_registry *registry = gp_registry_create();
    gp_config config = { .registry = registry, .env = { .get = environment },
                         .set = (const char *const *)arg + 1, .nset = argc - 2 - options };
    bool ok = gp_register_builtin(registry, &errs);
    for (size_t i = 0; ok && i < sizeof kinds / sizeof *kinds; i++)
        ok = gp_register(registry, &kinds[i], &errs);
    gp_pipeline *p = ok ? gp_compile(text, len, file, &config, &errs) : NULL;
    ok = p && run(p, timed, pushed, &errs);
    for (int i = 0; i < errs.n; i++)
        gp_err_print(stderr, &errs.e[i], file, text, len, false);
    gp_pipeline_destroy(p);
    gp_registry_destroy(registry);
    free(text);
    return ok ? 0 : 1;
}
