/* test_try.c - gp_try_stage: one stage alone, with frames of this program. */
#include <math.h>
#include "gpipe/gpipe.h"
#include "idle.h"
#include "pipe.h"

static gp_registry *kinds;
static gp_errs errs;

/* A source that does what it should not. */
enum { BEHIND, REFUSES, GOES_ON, FORGETS, FAILS, NAMES };
struct odd { int how; int64_t frames, size; };

static bool odd_shape(gp_shape *s)
{
    const struct odd *o = s->opts;
    s->out[0] = (gp_type){ GP_U8, 1, { o->size } };
    s->known.frames = o->frames;
    return o->how != REFUSES;
}

static bool odd_run(gp_call *c, gp_frame *f, int n)
{
    const struct odd *o = c->opts;
    if (o->how != FORGETS || f->index != 2)
        memset(f->out[0].data, 0, (size_t)o->size + (o->how == BEHIND && f->index == 1));
    if (o->how >= FAILS && f->index == 1)
        return gp_fail(c->errs, GP_E_RUN, c->at, o->how == FAILS ? "frame 11 is no good" : "frame 1 is no good");
    if (o->how == BEHIND && f->index == 2)
        f->status = GP_END;
    return true;
}

static const gp_port odd_out[] = { { .name = "out" }, { 0 } };
static const gp_opt odd_opts[] = { { GP_ENUM(struct odd, how), .choices = "behind|refuses|goes_on|forgets|fails|names", .required = true, .help = "how" },
                                   { GP_INT(struct odd, frames), .help = "how many" },
                                   { GP_INT(struct odd, size), .def = "256", .help = "of one" }, { 0 } };
static const gp_kind odd_kind = { GP_KIND("odd"), .help = "odd", .out = odd_out, .opts = odd_opts,
                                  .opts_size = sizeof(struct odd), .shape = odd_shape, .run = odd_run };

static void up(void)
{
    errs = (gp_errs){ .n = 0 };
    kinds = gp_registry_create();
    ck_assert(gp_register_builtin(kinds, &errs) && gp_register(kinds, &odd_kind, &errs));
#ifdef __x86_64__
    ck_assert(gp_plugin_load(kinds, "tests/data/plugin/kept.so", &errs));
#endif
}

static void down(void)
{
    gp_registry_destroy(kinds);
}

#define F32(count, ...) { .type = { GP_F32, 1, { 3 } }, .n = (count), .data = (float[]){ __VA_ARGS__ } }

static const struct {
    const char *kind, *options;
    int nin, nout;
    gp_frames in[2];
    int64_t most;
    gp_frames out[2];
} good[] = {
    { "scale", "a: 2", 1, 1, { F32(2, 1, 2, 3, 4, 5, 6) }, 0, { F32(2, 2, 4, 6, 8, 10, 12) } },
    { "scale", "a: 1\n, b: 1", 1, 1, { F32(0, 0) }, 0, { F32(0, 0) } },
    { "expr", "expr: in0 - in1", 2, 1, { F32(1, 1, 2, 3), F32(1, 3, 2, 1) }, 0, { F32(1, -2, 0, 2) } },
    { "decimate", "frames: 2", 1, 1, { F32(3, 1, 1, 1, 2, 2, 2, 3, 3, 3) }, 0, { F32(2, 1, 1, 1, 3, 3, 3) } },
    { "scale", NULL, 1, 1, { F32(2, 1, 2, 3, 4, 5, 6) }, 1, { F32(1, 1, 2, 3) } },
#ifdef __x86_64__
    { "kept_ramp", "size: 3", 0, 1, { { .n = 0 } }, 2, { F32(2, 0, 1, 2, 1, 2, 3) } },
    { "kept_pick", "how: most, drop: true", 1, 2, { F32(3, 1, 2, 3, 4, 5, 6, 3, 2, 1) }, 0,
      { F32(2, 2, 4, 6, 6, 4, 2), { .type = { GP_F32, 1, { 1 } }, .n = 2, .data = (float[]){ 3, 3 } } } },
    { "kept_pick", "how: most", 1, 1, { F32(1, 1, 2, 3) }, 0, { F32(1, 2, 4, 6) } },
#endif
};

TEST_EACH(gives, good)
{
    gp_frames out[2] = { { .n = good[_i].most }, { .n = good[_i].most } };
    bool ok = gp_try_stage(kinds, good[_i].kind, good[_i].options, good[_i].in, good[_i].nin, out, good[_i].nout, &errs);
    ck_assert_msg(ok && !errs.n, "%s: %s", good[_i].kind, errs.n ? errs.e[0].msg : "");
    for (int k = 0; k < good[_i].nout; k++) {
        const gp_frames *want = &good[_i].out[k];
        ck_assert_int_eq(out[k].n, want->n);
        ck_assert(gp_type_same(&out[k].type, &want->type));
        ck_assert_msg(!want->n || !memcmp(out[k].data, want->data, gp_bytes(&want->type) * (size_t)want->n), "%s",
                      good[_i].kind);
        gp_frames_free(&out[k]);
    }
}

/* Puts twice the frame's number `in` under `twice`, and drops frame 1. */
static bool meta_run(gp_call *c, gp_frame *f, int n)
{
    double in;
    if (f->index == 1)
        f->status = GP_DROP;
    else if (gp_meta_get(c, f, "in", &in))
        gp_meta_set(c, f, "twice", &(double){ 2 * in });
    memcpy(f->out[0].data, f->in[0].data, gp_bytes(&f->in[0].type));
    return true;
}

/* What travels with frames goes in, and what of it is asked for comes out. */
TEST(travels)
{
    enum { N = 4 };
    static const gp_port port[] = { { "x", GP_ACCEPT_ANY, .help = "x" }, { 0 } };
    static const char *const given[] = { "other", "in" }, *const taken[] = { "twice", "in", "none" };
    static const gp_kind kind = { GP_KIND("meta"), .help = "numbers", .in = port, .out = port, .shape = like_first,
                                  .run = meta_run };
    int64_t time_ns[N] = { 10, 20, 30, 1700000000000000001 };
    double meta[N][2] = { { 1, 2 }, { 3, 4 }, { 5, NAN }, { 7, -0.5 } };
    gp_type each[] = { { GP_F32, 1, { 3 } }, { GP_F32, 1, { 3 } }, { GP_F32, 1, { 1 } }, { GP_F32, 1, { 3 } } };
    gp_frames in = F32(N, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), out = { .keys = taken, .nkeys = 3 };
    in.each = each, in.time_ns = time_ns, in.keys = given, in.nkeys = 2, in.meta = *meta;
    ck_assert(gp_register(kinds, &kind, &errs));
    ck_assert_msg(gp_try_stage(kinds, "meta", NULL, &in, 1, &out, 1, &errs), "%s", errs.e[0].msg);
    ck_assert_int_eq(out.n, 3);
    for (int i = 0; i < 3; i++) {
        const int of[] = { 0, 2, 3 };
        double want[] = { 2 * meta[of[i]][1], meta[of[i]][1] }, *got = out.meta + 3 * i;
        ck_assert(out.number[i] == (uint64_t)of[i] && out.time_ns[i] == time_ns[of[i]]);
        ck_assert(out.each[i].dim[0] == each[of[i]].dim[0]);
        ck_assert(of[i] == 2 ? isnan(got[0]) && isnan(got[1]) : got[0] == want[0] && got[1] == want[1]);
        ck_assert(isnan(got[2]));
    }
    gp_frames_free(&out);
    in.meta[0] = INFINITY;
    ck_assert(!gp_try_stage(kinds, "meta", NULL, &in, 1, &out, 1, &errs));
    ck_assert_msg(!strcmp(errs.e[0].msg, "input 0: a number of its frames is infinite"), "%s", errs.e[0].msg);
    in.meta[0] = 0, in.keys = (const char *const[]){ "other", "a-b" };
    errs.n = errs.failed = 0;
    ck_assert(!gp_try_stage(kinds, "meta", NULL, &in, 1, &out, 1, &errs));
    ck_assert_msg(strstr(errs.e[0].msg, "'a-b' cannot be a name under 'metadata'"), "%s", errs.e[0].msg);
}

/* A source that sets no times has those at which its frames came. */
TEST(times)
{
    gp_frames out = { .n = 2 };
    ck_assert_msg(gp_try_stage(kinds, "odd", "how: goes_on", NULL, 0, &out, 1, &errs), "%s", errs.e[0].msg);
    ck_assert(out.n == 2 && out.number[1] == 1 && out.time_ns[0] > 0 && out.time_ns[1] >= out.time_ns[0]);
    gp_frames_free(&out);
}

/* Frames that have fewer rows lie as far apart as whole ones, on both sides. */
TEST(shorter)
{
    gp_type each[] = { { GP_F32, 1, { 3 } }, { GP_F32, 1, { 1 } }, { GP_F32, 1, { 2 } } };
    gp_frames in = F32(3, 1, 2, 3, 4, 9, 9, 5, 6, 9), out = { .n = 0 };
    const float want[] = { 2, 4, 6, 8, 0, 0, 10, 12, 0 };
    in.each = each;
    ck_assert_msg(gp_try_stage(kinds, "scale", "a: 2", &in, 1, &out, 1, &errs), "%s", errs.e[0].msg);
    ck_assert(out.n == 3 && !memcmp(out.data, want, sizeof want) && !memcmp(out.each, each, sizeof each));
    gp_frames_free(&out);
}

static const struct { const char *kind, *options; int col; const char *says; } bad[] = {
    { "scaled", "a: 1", 29, "no stage kind 'scaled'; did you mean 'scale'?" },
    { "scale", "aa: 1", 60, "stage 'stage' has no option 'aa'" },
    { "scale", "a: [", 0, "" },
    { "scale", "in: x", 60, "" },
#ifdef __x86_64__
    { "kept_pick", "how: less", 0, "must be one of least, most, not 'less'" },
    { "kept_pick", "how: least", 0, "a negative number in frame 0" },
#endif
};

TEST_EACH(fails, bad)
{
    gp_frames in = F32(1, -1, 2, 3), out[2] = { { .n = 0 }, { .n = 0 } };
    ck_assert(!gp_try_stage(kinds, bad[_i].kind, bad[_i].options, &in, 1, out, 1 + (*bad[_i].kind == 'k'), &errs));
    ck_assert_msg(errs.failed && strstr(errs.e[0].msg, bad[_i].says), "%s", errs.e[0].msg);
    ck_assert_str_eq(errs.e[0].at.file, "stage");
    ck_assert_msg(!bad[_i].col || errs.e[0].at.col == bad[_i].col, "%d", errs.e[0].at.col);
    ck_assert(!out[0].data && !out[1].data && !out[0].n);
}

static const struct { const char *options, *says; } odd[] = {
    { "how: behind", "stage 'stage' wrote behind the end of 'out' in frame 1: byte 256, and a frame has 256" },
    { "how: behind, size: 300", "wrote behind the end of 'out' in frame 1: byte 300, and a frame has 300" },
    { "how: refuses", "stage 'stage': shape() of kind 'odd' refuses it and gave no reason" },
    { "how: goes_on, frames: 3", "stage 'stage' made more than the 3 frames that its shape() says (known.frames): run() has to "
      "give the next one the status GP_END" },
    { "how: forgets, frames: 3", "stage 'stage' leaves about 256 of the 256 elements of 'out' unwritten in frame 2, such as [0] "
      "(counted from 0): they would be what an earlier frame left there. Write them all, make fewer rows, or set 'zero" },
    { "how: fails", "frame 11 is no good, in frame 1" },
    { "how: names", "frame 1 is no good" },
    { "how: goes_on, size: 60e6", "the stage has made 5 frames, 256 MiB, and goes on: say how many are wanted" },
};

TEST_EACH(odd_ones, odd)
{
    gp_frames out = { .n = 0 };
    ck_assert(!gp_try_stage(kinds, "odd", odd[_i].options, NULL, 0, &out, 1, &errs));
    ck_assert_msg(strstr(errs.e[0].msg, odd[_i].says) && !out.data, "%s", errs.e[0].msg);
    ck_assert(!strstr(errs.e[0].msg, "frame 1 is no good,"));
}

#ifdef __x86_64__
TEST(endless)
{
    gp_frames out = { .n = 0 };
    ck_assert(!gp_try_stage(kinds, "kept_ramp", "size: 3", NULL, 0, &out, 1, &errs));
    ck_assert_str_eq(errs.e[0].msg, "the stage makes frames without end: say how many are wanted");
    ck_assert(!gp_try_stage(kinds, "kept_ramp", NULL, NULL, 17, &out, 1, &errs));
}
#endif

/* A place in a script is in the message: the pipeline, and its names of files, are gone. */
TEST(place)
{
    gp_frames in = F32(1, 1, 2, 3), out = { .n = 0 };
    const char *dir = pipe_dir();
    pipe_text(dir, "e.lua", "function process(f, x, y)\n    error('not this one')\nend\n");
    ck_assert(!gp_try_stage(kinds, "lua", format("script: '%s/e.lua'", dir), &in, 1, &out, 1, &errs));
    ck_assert_str_eq(errs.e[0].at.file, "stage");
    ck_assert_msg(strstr(errs.e[0].msg, "e.lua:2: ") && strstr(errs.e[0].msg, "not this one"), "%s", errs.e[0].msg);
}

/* Writes into its input, behind a frame that has fewer rows, or into rows that it makes more than that. */
static bool far_run(gp_call *c, gp_frame *f, int n)
{
    float *in = f->in[0].data, *out = f->out[0].data;
    int64_t rows = f->in[0].type.dim[0];
    for (int64_t i = 0; i < rows; i++)
        out[i] = in[i];
    if (f->index == 1)
        switch (*(int *)c->user) {
        case 0: in[1] = 9; break;
        case 1: out[rows] = 9; break;
        case 2: out[2] = 9; break;
        default: out[rows] = 9, f->out[0].type.dim[0] = rows + 1; break;
        }
    return true;
}

static const char *const far_says[] = {
    "stage 'stage' wrote into its input 'x': element [1] of frame 1 (counted from 0) changed while run() had it",
    "stage 'stage' wrote behind the end of 'x' in frame 1: byte 4, and that frame has 4",
    "stage 'stage' wrote behind the end of 'x' in frame 1: byte 8, and that frame has 4",
    NULL,
};

TEST_LOOP(too_far, 0, 4)
{
    static const gp_port port[] = { { "x", GP_ACCEPT_ANY, .help = "x" }, { 0 } };
    gp_kind far = { GP_KIND("far"), .help = "far", .in = port, .out = port, .shape = like_first, .run = far_run, .user = &_i };
    gp_type each[] = { { GP_F32, 1, { 3 } }, { GP_F32, 1, { _i ? 1 : 2 } }, { GP_F32, 1, { 3 } } };
    gp_frames in = F32(3, 1, 2, 3, 4, 5, 6, 7, 8, 9), out = { .n = 0 };
    in.each = each;
    ck_assert(gp_register(kinds, &far, &errs));
    bool ok = gp_try_stage(kinds, "far", NULL, &in, 1, &out, 1, &errs);
    ck_assert_msg(ok == !far_says[_i] && (ok || strstr(errs.e[0].msg, far_says[_i])), "%s", errs.n ? errs.e[0].msg : "no error");
    gp_frames_free(&out);
}

static bool copy_run(gp_call *c, gp_frame *f, int n)
{
    ++*(int *)c->user;
    memcpy(f->out[0].data, f->in[0].data, gp_bytes(&f->in[0].type));
    return true;
}

/* What a filter makes is as much as it was given: that may be more than a source is let make. It gets all of that, even
 * where nothing is wanted of it. */
TEST(much)
{
    static const gp_port port[] = { { "x", GP_ACCEPT_ANY, .help = "x" }, { 0 } };
    int ran = 0;
    gp_kind copy = { GP_KIND("copy"), .help = "copies", .in = port, .out = port, .shape = like_first, .run = copy_run,
                     .user = &ran };
    gp_frames in = { .type = { GP_U8, 1, { 30000000 } }, .n = 10 }, out = { .n = 0 };
    in.data = calloc((size_t)in.n, gp_bytes(&in.type));
    ck_assert(in.data && gp_register(kinds, &copy, &errs));
    ck_assert_msg(gp_try_stage(kinds, "copy", NULL, &in, 1, &out, 1, &errs), "%s", errs.e[0].msg);
    ck_assert_int_eq(out.n, in.n);
    ck_assert(gp_try_stage(kinds, "copy", NULL, &in, 1, NULL, 0, &errs));
    ck_assert_int_eq(ran, 2 * in.n);
    gp_frames_free(&in), gp_frames_free(&out);
}

/* An output of which all frames are wanted has them, however few are of another. */
TEST(all_of_one)
{
    enum { N = 200 };
    static float x[3 * N];
    gp_frames in = { .type = { GP_F32, 1, { 3 } }, .n = N, .data = x }, out[2] = { { .n = 0 }, { .n = 1 } };
    gp_type longer = { GP_F32, 1, { 4 } };
#ifdef __x86_64__
    ck_assert_msg(gp_try_stage(kinds, "kept_pick", "how: most", &in, 1, out, 2, &errs), "%s", errs.e[0].msg);
    ck_assert(out[0].n == N && out[1].n == 1);
    gp_frames_free(&out[0]), gp_frames_free(&out[1]);
#endif
    in.n = 1, in.each = &longer;
    ck_assert(!gp_try_stage(kinds, "scale", NULL, &in, 1, out, 1, &errs));
    ck_assert_str_eq(errs.e[0].msg, "input 0: its frames have no type, or some are not of it with fewer rows");
}

TEST_SUITE(try, up, down, 0)
