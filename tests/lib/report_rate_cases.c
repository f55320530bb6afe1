/* report_rate_cases.c - reports and traces of runs that regroup frames. */
#include "cases.h"
#include "reportrig.h"

/* Where frames are regrouped they have other numbers behind it: slices say whose, arrows do not go on, and a
 * buffer's counter counts its frames. */
TEST(test_trace_of_rates)
{
    enum { FRAMES = 40, ROWS = 16, TRACKS = 64, ARROWS = 4096 };
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
    const char *yaml = gp_format(&a, "depth: 4\nbuffers: {g: {dtype: f32, shape: [16]}}\nstages:\n%s"
                                 "  - {name: work, use: lua, script: work.lua, out: []}\n", cases[_i].yaml);
    report_seen s = report_run(yaml, "local n = 0\nfunction process(f, x)\n    n = n + 1\n    local t = os.clock()\n"
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

void report_rate_cases(TCase *tc)
{

    suite_fill(tc, suite_items, 1);
}
