/* report_cases.c - the numbers of a report and the events of a trace, against what the
 * pipeline was built to do. */
#include "reportrig.h"

enum { FRAMES = 40, ELEMENTS = 4096, PERIOD_NS = 5000000 };

/* A source at 200 Hz, a script that works for a millisecond or so, a device segment. */
static const char yaml[] =
    "depth: 4\n"
    "copies: dma\n"
    "buffers: {x: {dtype: f32, shape: [4096]}}\n"
    "stages:\n"
    "  - {use: generate, frames: 40, rate: 200, out: x}\n"
    "  - {name: work, use: lua, script: work.lua}\n"
    "  - {use: scale, a: 2}\n"
    "  - {use: scale, b: 2}\n"
    "  - {use: discard}\n"
    "fuse: none\n";

static const char work[] =
    "function process(f, x, y)\n"
    "    local sum = 0\n"
    "    y:copy(x)\n"
    "    for i = 1, 300000 do sum = sum + i % 7 end\n"
    "end\n";

static report_seen run(gp_run_options options)
{
    return report_run(yaml, work, options);
}

static double part(int64_t ns, const gp_report *r)
{
    return (double)ns / (double)r->wall_ns;
}

TEST(test_numbers)
{
    report_seen s = run((gp_run_options){ .timed = true, .stamped = true });
    /* Where much else runs, a source may be late with each frame, and wait for none: not in each run. */
    for (int i = 0; i < 20 && !s.report->actor[0].idle_ns; i++) {
        report_done(&s);
        s = run((gp_run_options){ .timed = true, .stamped = true });
    }
    const gp_report *r = s.report;
    ck_assert(!s.made);                /* nothing was traced */
    ck_assert_int_eq(r->nactors, 4);
    ck_assert(r->wall_ns > (FRAMES - 1) * PERIOD_NS);
    for (int i = 0; i < r->nactors; i++) {
        const gp_actor_report *p = &r->actor[i];
        int64_t sum = p->busy_ns + p->wait_in_ns + p->wait_out_ns + p->wait_stream_ns;
        ck_assert_uint_eq(p->frames, FRAMES);
        ck_assert_uint_eq(p->time.n, FRAMES);
        ck_assert_msg(p->end_ns >= (FRAMES - 1) * PERIOD_NS && p->end_ns <= r->wall_ns,
                      "%s: ended at %.3f", p->name, part(p->end_ns, r));
        /* All of a thread's time is one of these, but for its own bookkeeping and until it
           is started: never more than the run. How much less depends on who else keeps the
           machine busy. */
        ck_assert_msg(sum > 0 && part(sum, r) < 1.01, "%s: %.3f", p->name, part(sum, r));
    }
    const gp_actor_report *source = &r->actor[0], *script = &r->actor[1], *segment = &r->actor[2];
    ck_assert_msg(source->idle_ns > 0 && source->idle_ns <= source->busy_ns, "%.3f of %.3f ms", 1e-6 * (double)source->idle_ns,
                  1e-6 * (double)source->busy_ns);
    /* what the script did and when it waited are all of its time up to its last frame */
    ck_assert(script->busy_ns > 0 && gp_hist_at(&script->time, 1) > 0);
    ck_assert(gp_hist_at(&script->time, 1) <= script->busy_ns * 2);
    ck_assert(script->stage >= 0 && script->segment < 0 && segment->segment == 0);
    ck_assert(segment->launches > 0 && segment->launches <= FRAMES);
    for (int i = 0; i < r->nbuffers; i++)
        ck_assert_msg(r->buffer[i].held >= 0 && r->buffer[i].held <= r->buffer[i].depth, "%s: %.2f",
                      r->buffer[i].name, r->buffer[i].held);
    /* a frame is held by the script while it works */
    ck_assert(r->buffer[0].held >= 0.99 * part(script->busy_ns, r));
    ck_assert_uint_eq(r->latency.n, FRAMES);
    ck_assert(r->overlap >= 0 && r->overlap <= 1);

    const gp_engine_report *e = r->engine;
    ck_assert(e[GP_ENGINE_COMPUTE].used && e[GP_ENGINE_COMPUTE].measured);
    ck_assert(e[GP_ENGINE_COMPUTE].busy_ns > 0 && part(e[GP_ENGINE_COMPUTE].busy_ns, r) <= 1);
    bool copies = strcmp(on, "cpu");
    for (int i = 0; i < GP_ENGINES; i += GP_ENGINE_COPY_OUT - GP_ENGINE_COPY_IN) {
        ck_assert_uint_eq(e[i].bytes, copies ? FRAMES * ELEMENTS * 4 : 0);
        ck_assert(e[i].used == copies && (e[i].limit > 1e9) == copies);
        ck_assert((e[i].busy_ns > 0) == copies && part(e[i].busy_ns, r) <= 1);
    }
    report_done(&s);
}

/* What a stage does at its end is its work too. A thread computes no longer than it takes,
 * and here it is the only one that has not ended; half is for those that are about to. */
TEST(test_finish)
{
    enum { MS = 30 };
    report_seen s = report_run("buffers: {x: {dtype: f32, shape: [16]}}\nstages:\n"
        "  - {use: generate, frames: 3, out: x}\n"
        "  - {name: work, use: lua, script: work.lua, out: []}\n",
        "function process(f, x) end\n"
        "function finish() local t = os.clock() while os.clock() < t + 0.03 do end end\n",
        (gp_run_options){ .timed = true });
    ck_assert_int_eq(s.report->nactors, 2);      /* the second is `work` */
    ck_assert_msg(s.report->actor[1].busy_ns >= MS / 2 * INT64_C(1000000), "%.3f ms",
                  1e-6 * (double)s.report->actor[1].busy_ns);
    report_done(&s);
}

/* What kernels move in the place of a copy engine is a part of their time; the engine has nothing to do, but for the
 * launches in which it is looked at what stages write. */
TEST_LOOP(test_by_kernels, 0, 2)
{
    static const char mapped[] = "depth: 4\ncopies: mapped\nbuffers: {x: {dtype: f32, shape: [64, 64]}}\nstages:\n"
        "  - {use: generate, frames: 40, out: x}\n  - {use: %s}\n  - {use: discard}\n";
    char *text = format(mapped, _i ? "'blur', sigma: 1" : "scale");
    report_on = strcmp(on, "cpu") ? on : "cpu:0";
    report_seen s = report_run(text, "", (gp_run_options){ .timed = true, .stamped = true, .trace_ns = 60000000000 });
    report_on = NULL;
    const gp_engine_report *e = s.report->engine;
    ck_assert(e[GP_ENGINE_COMPUTE].used && e[GP_ENGINE_COMPUTE].measured && e[GP_ENGINE_COMPUTE].busy_ns > 0);
    for (int i = 0; i < 2; i++) {
        const gp_engine_report *x = &e[i ? GP_ENGINE_COPY_OUT : GP_ENGINE_COPY_IN];
        int moved = 0;
        for (const char *line = s.trace; (line = strchr(line, '\n')); )
            moved += line_has(++line, "\"ph\": \"X\"") && line_has(line, i ? "\"cat\": \"copy out\"" : "\"cat\": \"copy in\"");
        ck_assert_msg(x->used && x->bytes + x->by_kernels == FRAMES * ELEMENTS * 4 && x->by_kernels > x->bytes
                          && x->bytes == (size_t)moved * ELEMENTS * 4 && (x->busy_ns > 0) == (moved > 0),
                      "%s: %d copies, %lld bytes in %lld ns, and %lld by kernels", x->name, moved, (long long)x->bytes,
                      (long long)x->busy_ns, (long long)x->by_kernels);
    }
    report_done(&s);
}

/* Without stamps copies are estimated, and say so. */
TEST(test_estimated)
{
    report_seen s = run((gp_run_options){ .timed = true });
    bool copies = strcmp(on, "cpu");
    for (int i = 0; i < GP_ENGINES; i++)
        ck_assert(!s.report->engine[i].measured);
    ck_assert(s.report->engine[GP_ENGINE_COPY_IN].used == copies);
    ck_assert((s.report->engine[GP_ENGINE_COPY_IN].busy_ns > 0) == copies);
    ck_assert_uint_eq(s.report->actor[2].time.n, FRAMES);
    report_done(&s);
}

TEST(test_trace)
{
    report_seen s = run((gp_run_options){ .timed = true, .stamped = true, .trace_ns = 60000000000 });
    int made[FRAMES] = { 0 }, worked[FRAMES] = { 0 }, computed[FRAMES] = { 0 }, moved[2] = { 0 };
    int starts = 0, ends = 0, held = 0;
    double launched[FRAMES], wall = (double)s.report->wall_ns * 1e-3;
    ck_assert(s.made);
    for (const char *line = s.trace; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        starts += line_has(line, "\"ph\": \"s\"");
        ends += line_has(line, "\"ph\": \"f\"");
        if (line_has(line, "\"ph\": \"C\"")) {
            double n = line_member(line, "held");
            ck_assert(n >= 0 && n <= 4);
            held += n > 0;
        }
        if (!line_has(line, "\"ph\": \"X\""))
            continue;
        double ts = line_member(line, "ts"), end = ts + line_member(line, "dur");
        ck_assert_msg(ts >= 0 && end <= wall + 500, "%.150s", line);
        int first = (int)line_member(line, "frame"), n = (int)line_member(line, "frames");
        for (int f = first; f < first + n && !line_has(line, "\"cat\": \"wait\""); f++) {
            ck_assert_int_lt(f, FRAMES);
            made[f] += line_has(line, "\"name\": \"generate\"");
            worked[f] += line_has(line, "\"name\": \"work\"");
            moved[0] += line_has(line, "\"cat\": \"copy in\"");
            moved[1] += line_has(line, "\"cat\": \"copy out\"");
            if (line_has(line, "\"cat\": \"launch\""))
                launched[f] = ts;
        }
    }
    /* device tracks come after their launcher's */
    for (const char *line = strstr(s.trace, "\"cat\": \"compute\""); line;
         line = strstr(line + 1, "\"cat\": \"compute\"")) {
        while (line[-1] != '\n')
            line--;
        int first = (int)line_member(line, "frame"), n = (int)line_member(line, "frames");
        for (int f = first; f < first + n; f++) {
            computed[f]++;
            /* the device's clock is the host's, to a tenth of a millisecond */
            ck_assert_msg(line_member(line, "ts") > launched[f] - 100, "%.1f, launched at %.1f",
                          line_member(line, "ts"), launched[f]);
        }
        line = strchr(line, '\n') - 1;
    }
    bool cpu = !strcmp(on, "cpu");     /* where each stage of the segment has a slice */
    for (int f = 0; f < FRAMES; f++) {
        ck_assert_int_eq(made[f], 1);
        ck_assert_int_eq(worked[f], 1);
        ck_assert_int_eq(computed[f], cpu ? 2 : 1);
    }
    ck_assert_int_eq(moved[0], cpu ? 0 : FRAMES);
    ck_assert_int_eq(moved[1], cpu ? 0 : FRAMES);
    ck_assert_int_eq(starts, ends);
    ck_assert_int_gt(starts, FRAMES / 8);
    ck_assert_int_gt(held, FRAMES / 8);        /* a change may be of several frames */
    report_done(&s);
}

/* Slices of a run that keeps only its end, each of which is of that end. */
static int count_last(void)
{
    report_seen s = run((gp_run_options){ .timed = true, .trace_ns = 40000000 });
    double from = (double)s.report->wall_ns * 1e-3 - 40000;
    int n = 0;
    ck_assert(s.made);
    for (const char *line = s.trace; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!line_has(line, "\"ph\": \"X\""))
            continue;
        n++;
        ck_assert_msg(line_member(line, "ts") + line_member(line, "dur") > from - 1, "%.150s", line);
    }
    report_done(&s);
    return n;
}

/* Where other processes hold up the threads when they are done, nothing was done in the last 40 ms. */
TEST(test_trace_last)
{
    int n = 0;
    for (int i = 0; i < 8 && !n; i++)
        n = count_last();
    ck_assert(n > 0 && n < FRAMES * 6);
}

static int by_start(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Two segments at once, one of them with long launches: an engine is busy while one of
 * them has it. */
TEST(test_segments)
{
    report_seen s = report_run(
        "buffers:\n"
        "  x: {dtype: f32, shape: [16]}\n"
        "  y: {dtype: f32, shape: [1000000]}\n"
        "stages:\n"
        "  - {name: few, use: generate, frames: 200, rate: 1000, out: x}\n"
        "  - {name: a, use: scale, in: x}\n"
        "  - {name: end_a, use: discard}\n"
        "  - {name: many, use: generate, fill: once, frames: 40, in: [], out: y}\n"
        "  - {name: b, use: fir, taps: [1, 2, 3, 4, 5, 6, 7, 8], in: y}\n"
        "  - {name: end_b, use: discard}\n", "",
        (gp_run_options){ .timed = true, .stamped = true, .trace_ns = 60000000000 });
    double slice[300][2], busy = 0, end = 0;
    int n = 0;
    for (const char *line = s.trace; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!line_has(line, "\"cat\": \"compute\""))
            continue;
        ck_assert_int_lt(n, 300);
        slice[n][0] = line_member(line, "ts"), slice[n][1] = slice[n][0] + line_member(line, "dur");
        n++;
    }
    qsort(slice, (size_t)n, sizeof *slice, by_start);
    for (int i = 0; i < n; i++) {
        double from = slice[i][0] > end ? slice[i][0] : end;
        busy += slice[i][1] > from ? slice[i][1] - from : 0;
        end = slice[i][1] > end ? slice[i][1] : end;
    }
    double said = 1e-3 * (double)s.report->engine[GP_ENGINE_COMPUTE].busy_ns;
    ck_assert_msg(said > 0.99 * busy && said < 1.01 * busy, "%.1f us, but %.1f", said, busy);
    report_done(&s);
}

/* One of two readers ends long before the other: what comes then is not held for it. */
TEST(test_early_end)
{
    enum { ENDLESS = 0, FEW = 1, SHORT = 3, LONG = 4, STAGES = 7 };
    static const char join[] = "function process(f, x, y) y:copy(x.a) end\n";
    report_seen s = report_run(
        "depth: 4\n"
        "buffers:\n"
        "  a: {dtype: f32, shape: [16]}\n"
        "  b: {dtype: f32, shape: [16]}\n"
        "  c: {dtype: f32, shape: [16]}\n"
        "  x: {dtype: f32, shape: [16]}\n"
        "  y: {dtype: f32, shape: [16]}\n"
        "stages:\n"
        "  - {name: endless, use: generate, rate: 500, out: a}\n"
        "  - {name: few, use: generate, rate: 500, frames: 5, in: [], out: b}\n"
        "  - {name: many, use: generate, rate: 500, frames: 100, in: [], out: c}\n"
        "  - {name: short, use: lua, script: work.lua, in: {a: a, b: b}, out: x}\n"
        "  - {name: long, use: lua, script: work.lua, in: {a: a, b: c}, out: y}\n"
        "  - {name: end_x, use: discard, in: x}\n"
        "  - {name: end_y, use: discard, in: y}\n", join,
        (gp_run_options){ .timed = true, .trace_ns = 60000000000 });
    const gp_report *r = s.report;
    int found = 0, held = 0;
    int64_t ended[STAGES] = { 0 };
    for (int i = 0; i < r->nactors; i++)
        ended[r->actor[i].stage] = r->actor[i].end_ns;
    ck_assert_int_lt(ended[FEW], ended[LONG]);
    ck_assert_int_lt(ended[SHORT], ended[LONG]);
    for (int i = 0; i < r->nbuffers; i++) {
        const gp_buffer_report *b = &r->buffer[i];
        if (r->actor[b->from].stage == ENDLESS && r->actor[b->to].stage == SHORT) {
            double most = b->depth * part(ended[SHORT], r);
            ck_assert_msg(b->held <= most * 1.001, "%.2f, of %.2f at most", b->held, most);
            found++;
        }
    }
    ck_assert_int_eq(found, 1);
    for (const char *line = s.trace; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (line_has(line, "\"ph\": \"C\"")) {
            ck_assert_msg(line_member(line, "held") <= 4, "%.150s", line);
            held++;
        }
    }
    ck_assert_int_gt(held, 25);
    report_done(&s);
}

/* Two readers of one buffer have a counter each, however long the names are. */
TEST(test_long_names)
{
    enum { LONG = 150 };
    char name[LONG + 1];
    memset(name, 'n', LONG);
    name[LONG] = 0;
    char *text = format("buffers: {%s: {dtype: f32, shape: [16]}}\nstages:\n"
                        "  - {use: generate, frames: 20, out: %s}\n"
                        "  - {name: %s1, use: discard, in: %s}\n  - {name: %s2, use: discard, in: %s}\n",
                        name, name, name, name, name, name);
    report_seen s = report_run(text, "", (gp_run_options){ .timed = true, .trace_ns = 60000000000 });
    for (int i = 1; i <= 2; i++) {
        char *want = format("\"name\": \"buffer %s for %s%d\"", name, name, i);
        ck_assert_msg(strstr(s.trace, want) != NULL, "no %s", want);
    }
    report_done(&s);
}

/* ---- runs that regroup frames -------------------------------------------- */

/* Where frames are regrouped they have other numbers behind it: slices say whose, arrows do not go on, and a
 * buffer's counter counts its frames. */
TEST(test_trace_of_rates)
{
    enum { ROWS = 16, TRACKS = 64, ARROWS = 4096 };
    static const char *const of[] = { "\"of\": \"g\"", "\"of\": \"rows\"", "\"of\": \"four\"", "\"of\": \"some\"" };
    const struct { const char *name, *of; int frames; } slices[] = {
        { "\"name\": \"generate\"", of[0], FRAMES }, { "\"name\": \"split\"", of[0], FRAMES },
        { "\"name\": \"scale\"", of[1], FRAMES * ROWS }, { "\"name\": \"group\"", of[2], FRAMES * ROWS / 4 },
        { "\"name\": \"window\"", of[2], FRAMES * ROWS / 4 }, { "\"name\": \"decimate\"", of[3], FRAMES * ROWS / 8 },
        { "\"name\": \"discard\"", of[3], FRAMES * ROWS / 8 },
    };
    static const struct { const char *name; int least, most; } counters[] = {
        { "\"buffer g\"", 1, 4 }, { "\"buffer rows\"", ROWS, 4 * ROWS }, { "\"buffer s\"", 1, 4 * ROWS },
        { "\"buffer four\"", 1, 6 }, { "\"buffer w\"", 1, 4 }, { "\"buffer some\"", 1, 4 },
    };
    enum { SLICES = sizeof slices / sizeof *slices, COUNTERS = sizeof counters / sizeof *counters };
    static const char *track_of[TRACKS], *arrow_of[ARROWS];    /* by tid, by id */
    int seen_to[SLICES] = { 0 }, most[COUNTERS] = { 0 }, last[COUNTERS] = { 0 }, arrows = 0;
    report_seen s = report_run(
        "depth: 4\nbuffers: {g: {dtype: f32, shape: [16, 64]}}\nstages:\n"
        "  - {use: generate, frames: 40, out: g}\n  - {use: split, out: rows}\n  - {use: scale, a: 2, out: s}\n"
        "  - {use: group, frames: 4, out: four}\n  - {use: window, frames: 3, out: w}\n"
        "  - {use: decimate, frames: 2, out: some}\n  - {use: discard}\n", "",
        (gp_run_options){ .timed = true, .trace_ns = 60000000000 });
    for (const char *line = s.trace; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        for (int i = 0; i < COUNTERS && line_has(line, "\"ph\": \"C\""); i++)
            if (line_has(line, counters[i].name)) {
                last[i] = (int)line_member(line, "held");
                most[i] = last[i] > most[i] ? last[i] : most[i];
            }
        if (!line_has(line, "\"ph\": \"X\""))
            continue;
        const char *its = NULL;
        for (int i = 0; i < 4; i++)
            its = line_has(line, of[i]) ? of[i] : its;
        ck_assert_msg(its != NULL, "of what? %.200s", line);
        int tid = (int)line_member(line, "tid");
        ck_assert(tid > 0 && tid < TRACKS && (!track_of[tid] || track_of[tid] == its));
        track_of[tid] = its;
        for (int i = 0; i < SLICES; i++)
            if (line_has(line, slices[i].name) && !line_has(line, "\"cat\": \"wait\"")) {
                int to = (int)(line_member(line, "frame") + line_member(line, "frames"));
                ck_assert_msg(its == slices[i].of, "of another: %.200s", line);
                seen_to[i] = to > seen_to[i] ? to : seen_to[i];
            }
    }
    ck_assert_int_eq(s.report->actor[1].stage, 1);     /* the split on the host takes no workers */
    ck_assert_int_eq(s.report->actor[1].most_workers, 1);
    for (int i = 0; i < SLICES; i++)
        ck_assert_msg(seen_to[i] == slices[i].frames, "%s: %d", slices[i].name, seen_to[i]);
    for (int i = 0; i < COUNTERS; i++)
        ck_assert_msg(most[i] >= counters[i].least && most[i] <= counters[i].most && last[i] == 0,
                      "%s: at most %d, at the end %d", counters[i].name, most[i], last[i]);
    for (const char *line = s.trace; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!line_has(line, "\"ph\": \"s\"") && !line_has(line, "\"ph\": \"t\"") && !line_has(line, "\"ph\": \"f\""))
            continue;
        int id = (int)line_member(line, "id"), tid = (int)line_member(line, "tid");
        ck_assert_msg(id >= 0 && id < ARROWS && tid > 0 && tid < TRACKS && track_of[tid], "%.200s", line);
        ck_assert_msg(!arrow_of[id] || arrow_of[id] == track_of[tid], "an arrow of %s goes on in %s", arrow_of[id],
                      track_of[tid]);
        arrow_of[id] = track_of[tid];
        arrows++;
    }
    ck_assert_int_gt(arrows, FRAMES);
    report_done(&s);
}

/* What a buffer held in the mean is what its counter shows: also where a reader is done with frames that are still to
 * be made, and so none is held at times; and where the last few frames make one. */
TEST_LOOP(test_held_is_counted, 0, 2)
{
    static const struct { const char *yaml, *counter; int buffer; } cases[] = {
        { "  - {use: generate, rate: 4000, frames: 800, out: g}\n  - {use: decimate, frames: 40}\n", "\"buffer g\"", 0 },
        { "  - {use: generate, rate: 1000, frames: 90, out: g}\n  - {use: mix, op: sum, frames: 20}\n", "\"buffer mix\"",
          1 },
    };
    gp_arena a = { 0 };
    const char *text = gp_format(&a, "depth: 4\nbuffers: {g: {dtype: f32, shape: [16]}}\nstages:\n%s"
                                 "  - {name: work, use: lua, script: work.lua, out: []}\n", cases[_i].yaml);
    report_seen s = report_run(text, "local n = 0\nfunction process(f, x)\n    n = n + 1\n    local t = os.clock()\n"
                               "    while n > 4 and n < 10 and os.clock() < t + 0.03 do end\nend\n",
                               (gp_run_options){ .timed = true, .trace_ns = 60000000000 });
    const gp_buffer_report *b = &s.report->buffer[cases[_i].buffer];
    double sum = 0, since = 0, held = 0, wall = 1e-3 * (double)s.report->wall_ns;
    for (const char *line = s.trace; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!line_has(line, "\"ph\": \"C\"") || !line_has(line, cases[_i].counter))
            continue;
        sum += held * (line_member(line, "ts") - since);
        since = line_member(line, "ts"), held = line_member(line, "held");
    }
    ck_assert(sum > 0 && held == 0);
    ck_assert_msg(b->held > 0.98 * sum / wall - 0.02 && b->held < 1.02 * sum / wall + 0.02, "held %.3f, counted %.3f",
                  b->held, sum / wall);
    report_done(&s);
    gp_arena_free(&a);
}

CASES_SUITE(report, NULL, NULL, 0, 1)
