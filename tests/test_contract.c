/* test_contract.c - kinds from elsewhere that do not keep to stage.h: each is an error that
 * names the stage, and never a wrong byte or an account that does not add up. */
#include <time.h>
#include "idle.h"
#include "pipe.h"

enum { FRAMES = 5 };

typedef enum wrong {
    FEWER_THAN_NONE, TOO_MANY_ROWS, FAILS_SILENTLY, RETURNS_FALSE, ENDS, STOPS, NO_STATUS,
    ADDS, ADDS_AND_DROPS, FINISH_SILENT, FINISH_ADDS, OPEN_SILENT, OPEN_ADDS, NO_TABLE,
    NO_TYPE, NO_FILE, NO_GLOB, NO_REASON, PARTIAL_FILE, PARTIAL_TEXT, PARTIAL_PROGRAM, SOURCE_FAILS, SOURCE_ADDS, SOURCE_ENDS, SOURCE_STOPS, LEAVES_A_PART,
    FIRST_AGAIN, FILLS_IN_ORDER, ZEROS_MORE, MEETS_IN_NO_ORDER, NOTHING, WRONGS
} wrong;

static const struct { const char *says; bool at_compile; } expected[WRONGS] = {
    [FEWER_THAN_NONE] = { "stage 'filter' made -5 rows of 'out' in frame 2, which is outside 0..64", false },
    [TOO_MANY_ROWS] = { "stage 'filter' made 65 rows of 'out' in frame 2, which is outside 0..64", false },
    [FAILS_SILENTLY] = { "stage 'filter' failed in frame 2 and does not say why", false },
    [RETURNS_FALSE] = { "stage 'filter' failed in frame 2 and does not say why", false },
    [ENDS] = { "stage 'filter' gave frame 2 the status 3 (GP_END), which it may not return", false },
    [STOPS] = { "stage 'filter' gave frame 2 the status GP_STOPPED, and nobody asked the run to stop: a frame that it leaves", false },
    [NO_STATUS] = { "stage 'filter' gave frame 2 the status 77", false },
    [ADDS] = { "it was too bright", false },
    [ADDS_AND_DROPS] = { "it was too bright", false },
    [FINISH_SILENT] = { "stage 'filter' failed at its end and does not say why", false },
    [FINISH_ADDS] = { "it was not kept", false },
    [OPEN_SILENT] = { "stage 'filter' cannot be opened and does not say why", false },
    [OPEN_ADDS] = { "it was too bright", false },
    [NO_TABLE] = { "kind 'filter' asks for a table of 64 bytes and has no table()", true },
    [NO_TYPE] = { "shape() of kind 'filter' gives 'filter' an invalid type", true },
    [NO_FILE] = { "stage 'filter': shape() of kind 'filter' looks at a file without a name", true },
    [NO_GLOB] = { "stage 'filter': shape() of kind 'filter' looks at a file without a name", true },
    [NO_REASON] = { "stage 'filter': shape() of kind 'filter' refuses it and gave no reason: gp_shape_fail() gives one", true },
    [PARTIAL_FILE] = { "stage 'filter': shape() of kind 'filter' looks at a file in a partial call", false },
    [PARTIAL_TEXT] = { "stage 'filter': shape() of kind 'filter' reads a text in a partial call", false },
    [PARTIAL_PROGRAM] = { "stage 'filter': shape() of kind 'filter' parses a program in a partial call", false },
    [SOURCE_FAILS] = { "stage 'made' failed in frame 2 and does not say why", false },
    [SOURCE_ADDS] = { "it was too bright", false },
    [SOURCE_ENDS] = { "it was too bright", false },
    [SOURCE_STOPS] = { "stage 'made' gave frame 2 the status GP_STOPPED, and nobody asked the run to stop: where there are no "
                       "more frames it is GP_END", false },
    [LEAVES_A_PART] = { "stage 'filter' leaves about 5 of the 64 elements of 'out' unwritten in frame 0, such as [60]", false },
    [FIRST_AGAIN] = { "stage 'filter' gave frame 2 the status GP_AGAIN, which the first frame of a call may not have", false },
    [FILLS_IN_ORDER] = { "stage 'filter' takes frames in order, and fills the memory of the device", true },
    [ZEROS_MORE] = { "kind 'filter' wants 65 bytes of its scratch memory zero, and asks for 64", true },
    [MEETS_IN_NO_ORDER] = { "kind 'filter' is collective, and its shape() does not say that frames take turns", true },
};

static wrong how(void *user) { return *(wrong *)user; }

static void add(gp_errs *errs)
{
    gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "it was too bright");
}

static bool made_shape(gp_shape *s)
{
    s->out[0] = (gp_type){ GP_U8, 1, { 64 } };
    return true;
}

static bool made_run(gp_call *c, gp_frame *f, int n)
{
    memset(f->out[0].data, 1, 64);
    if (f->index == 2 && how(c->user) == SOURCE_FAILS)
        f->status = GP_FAILED;
    else if (f->index == 2 && how(c->user) == SOURCE_STOPS)
        f->status = GP_STOPPED;
    else if (f->index == FRAMES)
        f->status = GP_END;
    else if (f->index == 2 && how(c->user) >= PARTIAL_FILE && how(c->user) <= PARTIAL_PROGRAM)
        f->out[0].type.dim[0] = 32;
    if (how(c->user) == SOURCE_ADDS ? f->index == 2 : how(c->user) == SOURCE_ENDS && f->status)
        add(c->errs);
    return true;
}

static bool filter_shape(gp_shape *s)
{
    s->out[0] = s->in[0];
    s->writes_all = true;
    if (how(s->user) == NO_TABLE)
        s->table = 64;
    if (how(s->user) == FILLS_IN_ORDER)
        s->fills_device = s->serial = true;
    if (how(s->user) == ZEROS_MORE)
        s->scratch = 64, s->scratch_zero = 65;
    if (how(s->user) == NO_TYPE)
        s->out[0].dtype = (gp_dtype)77;
    if (how(s->user) == NO_FILE)
        return gp_probe_file(s, NULL) != NULL;
    if (how(s->user) == NO_GLOB)
        return gp_probe_glob(s, NULL) != NULL;
    if (s->partial && how(s->user) == PARTIAL_FILE)
        return gp_probe_file(s, "x") != NULL;
    if (s->partial && how(s->user) == PARTIAL_TEXT)
        return gp_shape_text(s, NULL) != NULL;
    if (s->partial && how(s->user) == PARTIAL_PROGRAM)
        return gp_shape_program(s, NULL) != NULL;
    return how(s->user) != NO_REASON;
}

static bool filter_open(const gp_open *o, void **state)
{
    if (how(o->user) == OPEN_ADDS)
        add(o->errs);
    return how(o->user) != OPEN_SILENT;
}

static bool filter_run(gp_call *c, gp_frame *f, int n)
{
    memcpy(f->out[0].data, f->in[0].data, how(c->user) == LEAVES_A_PART ? 60 : 64);
    if (f->index != 2)
        return true;
    switch (how(c->user)) {
    case FEWER_THAN_NONE: f->out[0].type.dim[0] = -5; break;
    case TOO_MANY_ROWS:   f->out[0].type.dim[0] = 65; break;
    case FAILS_SILENTLY:  f->status = GP_FAILED; break;
    case RETURNS_FALSE:   return false;
    case ENDS:            f->status = GP_END; break;
    case STOPS:           f->status = GP_STOPPED; break;
    case NO_STATUS:       f->status = (gp_status)77; break;
    case FIRST_AGAIN:     f->status = GP_AGAIN; break;
    case ADDS:            add(c->errs); break;
    case ADDS_AND_DROPS:  add(c->errs), f->status = GP_DROP; break;
    default:              break;
    }
    return true;
}

static bool filter_finish(gp_call *c)
{
    if (how(c->user) == FINISH_ADDS)
        gp_fail(c->errs, GP_E_RUN, c->at, "it was not kept");
    return how(c->user) != FINISH_SILENT;
}

static const gp_port in_bytes[] = { { "in", GP_ACCEPT_ANY, .help = "bytes" }, { 0 } };
static const gp_port out_bytes[] = { { "out", 0, .help = "bytes" }, { 0 } };

/* With n kinds more, for a machine without a GPU. */
static gp_pipeline *compile(const char *yaml, const gp_kind *more, size_t n, gp_errs *errs)
{
    gp_machine *m = gp_machine_create(false);
    pipe_kinds(more, n);
    gp_pipeline *p = pipe_compile(".", yaml, (gp_config){ .machine = m }, errs);
    gp_machine_destroy(m);
    return p;
}

TEST_LOOP(is_an_error, 0, WRONGS)
{
    static const char yaml[] = "stages:\n  - {use: made}\n  - {use: filter}\n  - {use: discard}\n";
    wrong w = (wrong)_i;
    gp_kind made = { GP_KIND("made"), .help = "a source", .out = out_bytes, .shape = made_shape,
                     .run = made_run, .user = &w };
    gp_kind filter = { GP_KIND("filter"), .help = "a filter", .in = in_bytes, .out = out_bytes,
                       .shape = filter_shape, .open = filter_open, .run = filter_run,
                       .finish = filter_finish, .user = &w, .fills_device = w == FILLS_IN_ORDER,
                       .collective = w == MEETS_IN_NO_ORDER };
    gp_errs errs = { .n = 0 };
    gp_pipeline *p = compile(yaml, (const gp_kind[]){ made, filter }, 2, &errs);
    ck_assert_msg((p == NULL) == expected[w].at_compile, "%s", pipe_said(&errs));
    if (p) {
        gp_outcome outcome = gp_pipeline_run(p, NULL, &errs);
        gp_account a;
        ck_assert_int_eq(outcome, w == NOTHING ? GP_DONE : GP_ERROR);
        ck_assert_int_eq(gp_accounts(p, &a, 1), 1);
        ck_assert_uint_eq(a.in, a.out + a.dropped + a.failed + a.cancelled);
        ck_assert_uint_eq(a.dropped, 0);
        if (w == NOTHING)
            ck_assert(a.in == FRAMES && a.out == FRAMES);
    }
    const char *says = expected[w].says;
    ck_assert_msg(!says == !errs.n, "%s", pipe_said(&errs));
    for (int i = 0; i < errs.n; i++)
        ck_assert_msg(errs.e[i].code != GP_E_BUG && errs.e[i].at.line, "%s", errs.e[i].msg);
    ck_assert_msg(!says || !strncmp(errs.e[0].msg, says, strlen(says)), "%s", errs.e[0].msg);
    gp_pipeline_destroy(p);
}

/* Of a run of one frame an error is that frame's, of one of several nobody's: then the run
 * stops even where frames may be lost. */
static bool several_run(gp_call *c, gp_frame *f, int n)
{
    int done = *(int *)c->user == 1 ? 1 : n;
    for (int i = 0; i < done; i++)
        if (f[i].index == 2)
            add(c->errs);
    if (done < n)
        f[done].status = GP_AGAIN;
    return true;
}

static bool takes_any(gp_shape *s)
{
    return s->any_length = true;
}

TEST_LOOP(whose_error_it_is, 0, 2)
{
    static const char yaml[] = "on_error: drop\nbuffers: {a: {dtype: u8, shape: [64]}}\nstages:\n"
        "  - {use: read, path: /dev/zero, format: raw, frames: 40, out: a}\n  - {use: several}\n";
    int one = _i;
    gp_kind several = { GP_KIND("several"), .help = "a sink", .in = in_bytes, .shape = takes_any,
                        .run = several_run, .max_run = 2, .user = &one };
    gp_errs errs = { .n = 0 };
    gp_pipeline *p = compile(yaml, (const gp_kind[]){ several }, 1, &errs);
    ck_assert_msg(p != NULL, "%s", errs.e[0].msg);
    gp_account a;
    gp_outcome outcome = gp_pipeline_run(p, NULL, &errs);
    ck_assert_int_eq(gp_accounts(p, &a, 1), 1);
    ck_assert_uint_eq(a.in, a.out + a.dropped + a.failed + a.cancelled);
    ck_assert_int_eq(errs.n, 1);
    first_error_is(&errs, 5, one ? "it was too bright, in frame 2" : "it was too bright");
    if (one)
        ck_assert(outcome == GP_DONE && a.failed == 1 && a.out == 39 && errs.e[0].code == GP_E_WARN);
    gp_pipeline_destroy(p);
}

static bool stops_run(gp_call *c, gp_frame *f, int n)
{
    return f->status = f->index == 1 ? GP_STOPPED : GP_OK, true;
}

/* As a filter and a source (is_an_error) does a sink. */
TEST(sink_stops)
{
    static const gp_kind kind = { GP_KIND("sink"), .help = "a sink", .in = in_bytes, .shape = takes_any, .run = stops_run };
    gp_errs errs = { .n = 0 };
    gp_pipeline *p = compile("buffers: {a: {dtype: u8, shape: [64]}}\nstages:\n"
                             "  - {use: read, path: /dev/zero, format: raw, frames: 40, out: a}\n  - {use: sink}\n", &kind, 1, &errs);
    ck_assert_msg(p != NULL, "%s", pipe_said(&errs));
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), GP_ERROR);
    ck_assert_msg(strstr(errs.e[0].msg, "'sink' gave frame 1 the status GP_STOPPED, and nobody"), "%s", errs.e[0].msg);
    gp_pipeline_destroy(p);
}

/* ---- on a device ------------------------------------------------------- */

typedef enum odd {
    NO_BLOCKS, NO_KERNEL, NO_ARGUMENTS, COPY_FAR, COPY_HUGE, COPY_NULL, FILL_FAR, FILL_INPUT, FILL_SCRATCH, ODD_SILENT, ODD_ADDS,
    ODD_NOTHING, ODDS
} odd;

static const char *const odd_says[ODDS] = {
    [NO_BLOCKS] = "stage 'odd': a grid of 1 x 0 x 1 blocks computes nothing",
    [NO_KERNEL] = "stage 'odd': no built-in kernel 'nonesuch'",
    [NO_ARGUMENTS] = "stage 'odd': kernel 'gray_u8' takes ",
    [COPY_FAR] = "stage 'odd': copies to 65 bytes from byte 4 of 'out', which has 64",
    [COPY_HUGE] = "stage 'odd': copies 18446744073709551615 bytes at ",
    [COPY_NULL] = "stage 'odd': copies 64 bytes at (nil)",
    [FILL_FAR] = "stage 'odd': fills 1000000 bytes from byte 0 of 'out', which has 64",
    [FILL_INPUT] = "stage 'odd': fills 'in', which is not an output",
    [FILL_SCRATCH] = "stage 'odd': fills 101 bytes from byte 0 of 'its scratch memory', which has 100",
    [ODD_SILENT] = "stage 'odd' cannot queue frame 0 and does not say why",
    [ODD_ADDS] = "it was too bright",
};

static bool odd_shape(gp_shape *s)
{
    s->out[0] = s->in[0];
    s->scratch = 100;
    return true;
}

static bool odd_record(gp_dcall *c)
{
    char *in = c->in[0].data, *out = c->out[0].data;
    const gp_dim3 one = { 1, 1, 1 };
    char mine[80] = "";                /* a kind may have memory of its own */
    if (!gp_copy(c, out, in, 64) || !gp_fill(c, c->scratch, 0, 100) || !gp_fill(c, mine, 0, 0))
        return false;
    switch (*(odd *)c->user) {
    case NO_BLOCKS:    return gp_launch(c, "gray_u8", (gp_dim3){ 1, 0, 1 }, one, 0, NULL, 0);
    case NO_KERNEL:    return gp_launch(c, "nonesuch", one, one, 0, NULL, 0);
    case NO_ARGUMENTS: return gp_launch(c, "gray_u8", one, one, 0, NULL, 0);
    case COPY_FAR:     return gp_copy(c, out + 4, mine, 65);
    case COPY_HUGE:    return gp_copy(c, out, in, SIZE_MAX);
    case COPY_NULL:    return gp_copy(c, out, NULL, 64);
    case FILL_FAR:     return gp_fill(c, out, 0, 1000000);
    case FILL_INPUT:   return gp_fill(c, in, 0, 1);
    case ODD_SILENT:   return false;
    case ODD_ADDS:     return add(c->errs), true;
    case FILL_SCRATCH: return gp_fill(c, c->scratch, 0, 101);
    default:           return true;
    }
}

TEST_LOOP(device_work_is_checked, 0, ODDS)
{
    static const char yaml[] = "device: cpu\nstages:\n  - {use: made}\n  - {use: odd}\n  - {use: discard}\n";
    odd o = (odd)_i;
    wrong w = NOTHING;
    gp_kind made = { GP_KIND("made"), .help = "a source", .out = out_bytes, .shape = made_shape,
                     .run = made_run, .user = &w };
    gp_kind kind = { GP_KIND("odd"), .help = "odd", .in = in_bytes, .out = out_bytes, .shape = odd_shape,
                     .record = odd_record, .user = &o };
    gp_errs errs = { .n = 0 };
    gp_pipeline *p = compile(yaml, (const gp_kind[]){ made, kind }, 2, &errs);
    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), o == ODD_NOTHING ? GP_DONE : GP_ERROR);
    const char *says = odd_says[o];
    ck_assert_msg(!says == !errs.n, "%s", pipe_said(&errs));
    ck_assert_msg(!says || !strncmp(errs.e[0].msg, says, strlen(says)), "%s", errs.e[0].msg);
    ck_assert(!says || (errs.e[0].at.line == 4 && errs.e[0].code != GP_E_BUG));
    gp_pipeline_destroy(p);
}

/* A pipeline whose graphs are being built, and how many have been. */
typedef struct building { gp_pipeline *p; gp_errs errs; int n; bool fails; } building;

/* Compiles stages 'made', 'odd', whose record() this is, and 'discard' behind `head`, and runs them. */
static gp_outcome build(building *b, const char *head, bool (*record)(gp_dcall *c))
{
    wrong w = NOTHING;
    gp_kind made = { GP_KIND("made"), .help = "a source", .out = out_bytes, .shape = made_shape, .run = made_run,
                     .user = &w };
    gp_kind kind = { GP_KIND("odd"), .help = "copies", .in = in_bytes, .out = out_bytes, .shape = odd_shape,
                     .record = record, .user = b };
    char *yaml = format("device: cpu\n%sstages:\n  - {use: made}\n  - {use: odd}\n  - {use: discard}\n", head);
    b->p = compile(yaml, (const gp_kind[]){ made, kind }, 2, &b->errs);
    ck_assert_ptr_nonnull(b->p);
    gp_outcome outcome = gp_pipeline_run(b->p, NULL, &b->errs);
    gp_pipeline_destroy(b->p);
    return outcome;
}

static bool building_record(gp_dcall *c)
{
    building *b = c->user;
    if (++b->n == 3)
        gp_cancel(b->p, 1);
    if (b->n > 3)
        nanosleep(&(struct timespec){ .tv_nsec = 20 * 1000000 }, NULL);
    return gp_copy(c, c->out[0].data, c->in[0].data, 64);
}

/* There is one for each range of slots; who wants the run to end need not wait for all. */
TEST(building_is_broken_off)
{
    building b = { .n = 0 };
    ck_assert_int_eq(build(&b, "depth: 1000\n", building_record), GP_DRAINED);
    ck_assert_msg(!b.errs.n, "%s", b.errs.e[0].msg);
    ck_assert_int_ge(b.n, 3);
    ck_assert_int_lt(b.n, 900);
}

static bool memory_record(gp_dcall *c)
{
    building *b = c->user;
    return ++b->n < 9 ? gp_copy(c, c->out[0].data, c->in[0].data, 64)
                      : gp_fail(c->errs, b->fails ? GP_E_RUN : GP_E_RESOURCE, (gp_loc){ 0 }, "nothing is left");
}

/* An error names what needs less memory, and only where it is memory that there is too little of. */
TEST_LOOP(too_many_graphs, 0, 2)
{
    building b = { .fails = _i };
    ck_assert_int_eq(build(&b, "batch: 2\nbuffers: {made: {depth: 3}, odd: {depth: 96}}\n", memory_record), GP_ERROR);
    ck_assert_str_eq(b.errs.e[0].msg, "nothing is left");
    ck_assert_int_eq(b.errs.n, _i ? 1 : 2);
    ck_assert(_i || (b.errs.e[1].at.line == 6 && !strcmp(b.errs.e[1].msg, "memory has room for 8 of the 128 graphs of segment "
              "'odd', one for each batch that its slots can have: lower the largest 'depth' of its buffers (96), or set "
              "'launch: stream'")));
}

static bool warns_run(gp_call *c, gp_frame *f, int n)
{
    const int *fails = c->user;
    if (f->index == 1 || f->index == 3)
        gp_fail(c->errs, GP_E_WARN, c->at, "frame %d is dark", (int)f->index);
    return !*fails || f->index != 4;
}

static bool warns_finish(gp_call *c)
{
    gp_fail(c->errs, GP_E_WARN, (gp_loc){ 0 }, "it was dark");
    return true;
}

static int count(const gp_errs *errs, const char *msg)
{
    int n = 0;
    for (int i = 0; i < errs->n; i++)
        n += errs->e[i].code == GP_E_WARN && !strcmp(errs->e[i].msg, msg) && errs->e[i].at.line == 4;
    return n;
}

/* Each once, at its stage, whether the run fails or not; with one worker and with two. */
TEST_LOOP(warnings_are_told, 0, 4)
{
    int fails = _i / 2;
    wrong w = NOTHING;
    gp_kind made = { GP_KIND("made"), .help = "a source", .out = out_bytes, .shape = made_shape,
                     .run = made_run, .user = &w };
    gp_kind sink = { GP_KIND("sink"), .help = "a sink", .in = in_bytes, .shape = as_declared,
                     .run = warns_run, .finish = warns_finish, .user = &fails };
    gp_errs errs = { .n = 0 };
    char *yaml = format("on_error: stop\nstages:\n  - {use: made}\n"
                        "  - {use: sink, workers: %d}\n", 1 + _i % 2);
    gp_pipeline *p = compile(yaml, (const gp_kind[]){ made, sink }, 2, &errs);
    ck_assert_msg(p != NULL, "%s", errs.e[0].msg);
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), fails ? GP_ERROR : GP_DONE);
    ck_assert_int_eq(errs.failed, fails);
    ck_assert_int_eq(gp_errs_exit(&errs), fails);
    ck_assert_int_eq(count(&errs, "frame 1 is dark"), 1);
    ck_assert_int_eq(count(&errs, "frame 3 is dark"), 1);
    ck_assert_int_eq(count(&errs, "it was dark"), !fails);
    gp_pipeline_destroy(p);
}

/* What an application may give that is nothing. */
TEST(nothing_is_an_error)
{
    gp_errs errs = { .n = 0 };
    gp_registry *r = gp_registry_create();
    gp_config config = { .registry = r };
    ck_assert(!gp_register(r, NULL, &errs));
    ck_assert(!gp_compile(NULL, 0, NULL, &config, &errs));
    ck_assert_int_eq(errs.n, 2);
    gp_kind wraps = { GP_KIND("wraps"), .help = "h", .shape = filter_shape, .run = filter_run,
                      .opts = (const gp_opt[]){ { .name = "n", .type = GP_OPT_INT, .help = "h",
                                                  .off = (size_t)-4 }, { 0 } },
                      .opts_size = 8 };
    ck_assert(!gp_register(r, &wraps, &errs));
    ck_assert_str_eq(errs.e[2].msg, "kind 'wraps': option 'n' lies outside of opts_size");
    gp_registry_destroy(r);
}

/* An application that says there are several ranks, and has no way for them to meet. */
TEST_LOOP(ranks_that_cannot_meet, 0, 2)
{
    static const char yaml[] = "buffers: {x: {dtype: i32, shape: [4]}}\nstages:\n"
        "  - {use: generate, frames: 8, out: x}\n  - {use: all_reduce}\n  - {use: discard}\n";
    gp_errs errs = { .n = 0 };
    gp_registry *r = gp_registry_create();
    gp_machine *m = gp_machine_create(false);
    gp_config config = { .registry = r, .machine = m, .env = { .rank = _i, .ranks = 2 * _i } };
    ck_assert(gp_register_builtin(r, &errs));
    gp_pipeline *p = gp_compile(yaml, strlen(yaml), NULL, &config, &errs);
    ck_assert_msg(p != NULL, "%s", pipe_said(&errs));
    ck_assert_int_eq(gp_pipeline_run(p, NULL, &errs), _i ? GP_ERROR : GP_DONE);
    ck_assert_int_eq(errs.n, _i);
    ck_assert(!_i || (!strcmp(errs.e[0].msg, "stage 'all_reduce' needs what 2 ranks have, and the run has no 'gather'")
                      && errs.e[0].at.line == 4));
    gp_pipeline_destroy(p);
    gp_machine_destroy(m);
    gp_registry_destroy(r);
}

TEST_SUITE(contract, NULL, NULL, 0)
