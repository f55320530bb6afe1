/* test_linear.c - compiling, as `gpipe check` does it, takes time and memory in proportion to the number of stages: each
 * form of file once small and once four times as long. And a short run is short. */
#include <stdarg.h>
#include "base/clock.h"
#include "effort.h"
#include "pipe.h"
#include "run/pipeline.h"

/* ---- texts ----------------------------------------------------------- */

struct text { char *s; size_t len, cap; };

__attribute__((format(printf, 2, 3)))
static void add(struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (t->cap - t->len < 400)
        t->s = realloc(t->s, t->cap = 2 * t->cap + 4000);
    t->len += (size_t)vsnprintf(t->s + t->len, t->cap - t->len, fmt, ap);
    va_end(ap);
}

#define SIGNAL "{dtype: f32, shape: [8, 8]}"

static void begin(struct text *t)
{
    add(t, "buffers: {s: " SIGNAL "}\nstages:\n  - {name: s, use: generate}\n");
}

static void end(struct text *t)
{
    add(t, "  - {use: discard}\n");
}

static void device_chain(struct text *t, int n)
{
    static const char *const kinds[] = { "scale, a: 2", "threshold, level: 1", "blur, sigma: 1" };
    begin(t);
    for (int i = 0; i < n; i++)
        add(t, "  - {use: %s}\n", kinds[i % 3]);
    end(t);
}

static void carrying_chain(struct text *t, int n)
{
    add(t, "buffers: {s: {dtype: f32, shape: [64]}}\nstages:\n  - {name: s, use: generate}\n");
    for (int i = 0; i < n; i++)
        add(t, "  - {use: fir, taps: [1, 2]}\n");
    end(t);
}

/* One script under many names: ./, or .// for a 1 among the bits of k. */
static void script(struct text *t, int k)
{
    add(t, "  - {use: lua, script: ");
    for (int bit = 0; bit < 12; bit++)
        add(t, k >> bit & 1 ? ".//" : "./");
    add(t, "s.lua}\n");
}

static void scripts(struct text *t, int n)
{
    begin(t);
    for (int i = 0; i < n; i++)
        script(t, i);
    end(t);
}

/* A segment between every two scripts. */
static void in_turns(struct text *t, int n)
{
    begin(t);
    for (int i = 0; i < n / 2; i++) {
        script(t, 0);
        add(t, "  - {use: scale, a: 2}\n");
    }
    end(t);
}

static void readers(struct text *t, int n)
{
    begin(t);
    for (int i = 0; i < n; i++)
        add(t, "  - {use: discard, in: s}\n");
}

static void writers(struct text *t, int n)
{
    begin(t);
    for (int i = 0; i < n; i++)
        add(t, "  - {use: write, in: s, path: %d.raw}\n", i);
}

static void device_readers(struct text *t, int n)
{
    begin(t);
    for (int i = 0; i < n / 2; i++)
        add(t, "  - {name: r%d, use: reduce, op: max, in: s}\n  - {use: discard}\n", i);
}

static void joins(struct text *t, int n)
{
    add(t, "buffers: {s: " SIGNAL ", t: " SIGNAL "}\nstages:\n"
        "  - {name: s, use: generate}\n  - {name: t, use: generate}\n");
    for (int i = 0; i < n; i++)
        add(t, "  - {use: compare, in: [s, t]}\n");
}

static void pipelines(struct text *t, int n)
{
    add(t, "buffers:\n");
    for (int i = 0; i < n / 3; i++)
        add(t, "  s%d: " SIGNAL "\n", i);
    add(t, "stages:\n");
    for (int i = 0; i < n / 3; i++)
        add(t, "  - {name: s%d, use: generate}\n  - {name: m%d, use: scale, a: 2}\n"
            "  - {use: discard}\n", i, i);
}

/* What depends on what comes before it in the file. */
static void backwards(struct text *t, int n)
{
    add(t, "buffers:\n");
    for (int i = n; i > 0; i--)
        add(t, "  b%d: {like: b%d}\n", i, i - 1);
    add(t, "  b0: " SIGNAL "\nstages:\n  - {use: discard, in: b%d}\n", n);
    for (int i = n; i > 0; i--)
        add(t, "  - {use: scale, a: 2, in: b%d, out: b%d}\n", i - 1, i);
    add(t, "  - {use: generate, out: b0}\n");
}

static void list_vars(struct text *t, int n)
{
    add(t, "vars:\n");
    for (int i = 0; i < n; i++)
        add(t, "  v%d: %d\n", i, i);
}

static void vars(struct text *t, int n)
{
    list_vars(t, n);
    begin(t);
    for (int i = 0; i < n; i++)
        add(t, "  - {use: scale, a: v%d + 1, in: s}\n  - {use: discard}\n"
            "  - {use: write, path: \"${v%d}.raw\", in: s}\n", i, i);
}

static void anchors(struct text *t, int n)
{
    begin(t);
    for (int i = 0; i < n / 2; i++)
        add(t, "  - &a%d {use: scale, a: 2}\n  - {<<: *a%d, b: 1}\n", i, i);
    end(t);
}

static void wrong_vars(struct text *t, int n)
{
    list_vars(t, n);
    begin(t);
    for (int i = 0; i < n; i++)
        add(t, "  - {use: scale, a: w%d}\n  - {use: write, path: \"${w%d}.raw\"}\n", i, i);
    end(t);
}

static void wrong_buffers(struct text *t, int n)
{
    begin(t);
    for (int i = 0; i < n; i++)
        add(t, "  - {name: b%d, use: scale, in: c%d}\n", i, i);
    end(t);
}

static void leaky(struct text *t, int n)
{
    begin(t);
    for (int i = 0; i < n; i++)
        add(t, "  - {use: discard, in: s, when_full: drop-oldest}\n");
}

static void copies(struct text *t, int n)
{
    begin(t);
    add(t, "  - {name: r, use: scale, a: 1 + c, in: s, repeat: {over: {c: %d}}}\n"
        "  - {name: d, use: discard, in: \"r.${c}\", repeat: {over: {c: %d}}}\n", n, n);
}

/* Each state is changed by one stage and read by another, on one of two devices. */
static void states(struct text *t, int n)
{
    add(t, "buffers:\n  s: " SIGNAL "\n");
    for (int i = 0; i < n; i++)
        add(t, "  t%d: {state: true, dtype: f32, shape: [8, 8]}\n", i);
    add(t, "stages:\n  - {name: s, use: generate}\n");
    for (int i = 0; i < n; i++)
        add(t, "  - {name: a%d, use: expr, in: {x: s, t: t%d}, out: [t%d], expr: t + x, device: cuda:%d}\n"
            "  - {name: b%d, use: expr, in: t%d, expr: t%d * 2, device: cuda:%d}\n  - {use: discard}\n", i, i, i, i % 2, i, i,
            i, i % 2);
}

static void rates(struct text *t, int n)
{
    begin(t);
    for (int i = 0; i < n; i++)
        add(t, "  - {use: decimate, frames: 2, in: s}\n  - {use: discard}\n");
}

static const struct {
    const char *name;
    void (*make)(struct text *t, int n);
    int n;                     /* stages of the small one */
    bool wrong;
} forms[] = {
    { "a chain of device stages", device_chain, 250, false },
    { "a chain that carries state", carrying_chain, 250, false },
    { "a chain of scripts", scripts, 150, false },
    { "scripts and device stages in turns", in_turns, 150, false },
    { "many readers", readers, 250, false },
    { "many files", writers, 250, false },
    { "many readers on the device", device_readers, 250, false },
    { "joins", joins, 250, false },
    { "many pipelines", pipelines, 250, false },
    { "a file from its end to its beginning", backwards, 200, false },
    { "vars", vars, 150, false },
    { "anchors", anchors, 250, false },
    { "variables that are not there", wrong_vars, 250, true },
    { "buffers that are not there", wrong_buffers, 250, true },
    { "branches that lose frames", leaky, 250, false },
    { "copies", copies, 500, false },
    { "other rates", rates, 250, false },
    { "states on two devices", states, 200, false },
};

/* ---- measuring -------------------------------------------------------- */

static const char *dir;

static void up(void)
{
    dir = pipe_dir();
    pipe_text(dir, "s.lua", "function process(frame, x, y) end\n");
}

/* The work of one compilation; its memory in *bytes, of one without errors. */
static double measure(int form, int n, double *bytes)
{
    static gp_errs errs;
    struct text t = { 0 };
    gp_machine machine;
    gp_config config = { .registry = pipe_registry(), .machine = &machine, .lenient = true };
    gp_machine_fixed(&machine, 2);
    errs = (gp_errs){ 0 };
    char *file = format("%s/p.yaml", dir);
    forms[form].make(&t, n);
    effort_begin();
    gp_pipeline *p = gp_compile(t.s, t.len, file, &config, &errs);
    if (p)
        gp_lint(gp_pipeline_plan(p), gp_pipeline_spec(p), &machine, t.s, t.len, &errs);
    double took = effort_end();
    free(t.s);
    if (forms[form].wrong)
        ck_assert_ptr_null(p);
    else
        ck_assert_msg(p != NULL, "%s: line %d: %s", forms[form].name, errs.e[0].at.line, errs.e[0].msg);
    *bytes = p ? (double)p->arena.total : 0;
    gp_pipeline_destroy(p);
    return took;
}

struct measured { int form; double bytes[2]; int smallest; };

static double compile_form(int n, void *arg)
{
    struct measured *m = arg;
    return measure(m->form, n, &m->bytes[n > m->smallest]);
}

TEST_EFFORT(takes_work_in_proportion, sizeof forms / sizeof *forms)
{
    enum { MORE = 8 };
    struct measured m = { .form = _i, .smallest = forms[_i].n };
    effort_is_linear(forms[_i].name, compile_form, &m, forms[_i].n);
    ck_assert_msg(m.bytes[1] <= MORE * m.bytes[0], "%s: %d stages take %.0f bytes, 4 times as many "
                  "%.0f", forms[_i].name, forms[_i].n, m.bytes[0], m.bytes[1]);
}

/* A pipeline with next to nothing to do waits for no clock, from its text to its end: its time is what it computes, and
 * one that waited would take much longer than that. Others may keep the machine busy, but not each time. */
TEST(little_takes_no_time)
{
    static const char yaml[] = "buffers: {s: " SIGNAL "}\nstages:\n"
                               "  - {name: s, use: generate, frames: 1}\n  - {use: discard}\n";
    const double most = 0.015;
    double best = 1;
    for (int i = 0; i < 2000 && best > most; i++) {
        gp_errs errs = { 0 };
        gp_config config = { .registry = pipe_registry() };
        int64_t from = gp_now_ns();
        clock_t computed = clock();
        gp_pipeline *p = gp_compile(yaml, sizeof yaml - 1, "p.yaml", &config, &errs);
        ck_assert_ptr_nonnull(p);
        ck_assert_int_eq(gp_pipeline_run(p, &(gp_run_options){ 0 }, &errs), GP_DONE);
        gp_pipeline_destroy(p);
        double took = 1e-9 * (double)(gp_now_ns() - from) - (double)(clock() - computed) / CLOCKS_PER_SEC;
        best = took < best ? took : best;
    }
    ck_assert_msg(best <= most, "it waits for %.1f ms", 1e3 * best);
}

TEST_SUITE(linear, up, NULL, 0)
