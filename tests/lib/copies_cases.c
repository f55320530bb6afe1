/* copies_cases.c - what launches are made of, by who copies (compile/mapped.c): copies by engines and by kernels, words
 * that say that a launch is done, stamps. A stage of the test puts a back end in the place of its device's that counts
 * what is recorded. */
#include "cases.h"
#include "run/run.h"

extern const gp_kind gp_kind_scale;

typedef struct counts { int bodies, words, engines, kernels, stamps; } counts;

static struct { gp_backend backend; const gp_backend *own; gp_rec_ops ops; const gp_rec_ops *rec; } counting;
static counts one, all, most;          /* of the body that is recorded; sums over all; the most of one */

static bool count_copy(gp_rec *r, void *dst, const void *src, size_t bytes)
{
    *(r->by_kernel ? &one.kernels : &one.engines) += 1;
    return counting.rec->copy(r, dst, src, bytes);
}

static bool count_stamp(gp_rec *r, int i)
{
    one.stamps++;
    return counting.rec->stamp(r, i);
}

/* The CPU back end needs no word. */
static bool count_word(gp_rec *r)
{
    one.words++;
    return !counting.rec->done || counting.rec->done(r);
}

struct body { gp_body does; void *arg; };

static bool count(gp_rec *r, void *arg)
{
    const struct body *b = arg;
    counting.rec = r->ops, counting.ops = *r->ops, one = (counts){ .bodies = 1 };
    counting.ops.copy = count_copy, counting.ops.stamp = count_stamp, counting.ops.done = count_word;
    r->ops = &counting.ops;
    bool ok = b->does(r, b->arg);
    r->ops = counting.rec;
    for (size_t i = 0; i < sizeof one / sizeof(int); i++) {
        int *sum = (int *)&all + i, *top = (int *)&most + i, n = ((int *)&one)[i];
        *sum += n, *top = n > *top ? n : *top;
    }
    return ok;
}

static gp_exec *build(gp_dev *dev, int stream, gp_body body, void *arg, gp_errs *errs)
{
    return counting.own->build(dev, stream, count, &(struct body){ body, arg }, errs);
}

static bool put_it_there(const gp_open *o, void **state)
{
    *state = NULL;
    counting.own = o->dev->backend, counting.backend = *counting.own, counting.backend.build = build;
    o->dev->backend = &counting.backend;
    return true;
}

/* each: of a launch. */
#define X "buffers: {x: {dtype: f32, shape: [32, 32]}}\nstages:\n  - {use: generate, frames: 40, out: x}\n"
#define END "  - {use: discard}\n"
#define ONE "batch: 1\n"
static const struct { const char *what, *yaml; counts each; } cases[] = {
    { "copy engines", ONE "copies: dma\n" X "  - {use: counts}\n" END, { 1, 0, 2, 0, 4 } },
    { "the stage uses the host's memory", ONE X "  - {use: counts}\n" END, { 1, 1, 0, 0, 2 } },
    { "what a blur writes a kernel copies", ONE X "  - {use: counts, out: y}\n  - {use: blur, sigma: 1}\n" END,
      { 1, 1, 0, 1, 2 } },
    { "kernels copy both ways", ONE X "  - {use: blur, sigma: 1}\n  - {use: counts}\n  - {use: blur, sigma: 1}\n" END,
      { 1, 1, 0, 2, 2 } },
    /* one pool, and so one copy, of two rings */
    { "two outputs that can be mapped", ONE X "  - {use: counts, out: y}\n" END "  - {use: scale, in: x, out: z}\n" END,
      { 1, 1, 0, 1, 2 } },
    { "two outputs, of which one cannot", ONE X "  - {use: counts, out: y}\n" END "  - {use: blur, sigma: 1, in: x, out: z}\n"
      END, { 1, 1, 0, 2, 2 } },
    { "a frame that is too large", ONE "buffers: {x: {dtype: f32, shape: [512, 1024]}}\nstages:\n"
      "  - {use: generate, frames: 4, out: x}\n  - {use: counts}\n" END, { 1, 0, 2, 0, 4 } },
};

static pipe_result run(const char *yaml, gp_run_options options)
{
    const char *dir = pipe_dir(), *device = strcmp(on, "cpu") ? on : "cpu:0";
    gp_kind counts_kind = gp_kind_scale;
    counts_kind.name = "counts", counts_kind.open = put_it_there;
    pipe_kinds(&counts_kind, 1);
    all = most = (counts){ 0 };
    pipe_result r = pipe_run_then(dir, yaml, device, NULL, options, NULL, NULL);
    ck_assert_msg(r.outcome == GP_DONE, "%s", pipe_said(&r.errs));
    return r;
}

/* Launches of one frame are alike: a word where kernels do it all, and no stamps but at the start and the end. */
TEST_EACH(of_one_launch, cases)
{
    run(cases[_i].yaml, (gp_run_options){ .timed = true, .stamped = true });
    const counts *want = &cases[_i].each;
    ck_assert_int_gt(all.bodies, 0);
    for (size_t i = 0; i < sizeof most / sizeof(int); i++)
        ck_assert_msg(((int *)&most)[i] == ((const int *)want)[i] && ((int *)&all)[i] == all.bodies * ((const int *)want)[i],
                      "%s: of %d launches %d words, %d copies by engines, %d by kernels, %d stamps", cases[_i].what,
                      all.bodies, all.words, all.engines, all.kernels, all.stamps);
}

/* Long launches leave to copy engines what short ones map. */
TEST(of_long_launches)
{
    run("depth: 64\nbatch: 64\nbuffers: {x: {dtype: f32, shape: [128, 128]}}\nstages:\n"
        "  - {use: generate, frames: 4, out: x}\n  - {use: counts}\n" END, (gp_run_options){ .timed = true });
    ck_assert_msg(all.words > 0 && all.engines == 2 * (all.bodies - all.words) && all.engines > 0 && !all.kernels,
                  "of %d launches %d words, %d copies", all.bodies, all.words, all.engines);
    ck_assert_int_eq(all.stamps, 0);
}

CASES_SUITE(copies, NULL, NULL, 0, 1)
