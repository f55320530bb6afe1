/* test_report.c - reports and traces of runs on the CPU back end. */
#include "run/measure.h"
#include "reportrig.h"

/* Of a run of days the sums of times wrap; what was held does not. */
TEST(test_held)
{
    const gp_ring ring = { .depth = 4, .nconsumers = 1 };
    gp_cursor c = { .at = 98, .got = 400 };
    gp_ringrt r = { .produced = { .at = 100 }, .consumed = &c, .ring = &ring,
                    .put = UINT64_MAX - 599 };
    gp_run run = { .start_ns = 50 };
    ck_assert_int_eq(gp_measure_held(&run, &(gp_ring_end){ &r, 0 }, 1050), 1000 + 2 * 1000);
    c.at = 90;                         /* never more than the buffer */
    ck_assert_int_eq(gp_measure_held(&run, &(gp_ring_end){ &r, 0 }, 1050), 4 * 1000);
}

/* More workers than help are not proposed: a FLAC file is read in order, a WAV is not. */
static const struct { const char *file; int channels; bool alone; } recordings[] = {
    { "five.flac", 5, true }, { "i16.wav", 2, false },
};

TEST_EACH(test_workers_that_help, recordings)
{
    char here[400];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    char *yaml = format("buffers: {x: {shape: [50, %d]}}\nstages:\n  - {use: read, path: '%s/tests/data/sound/%s', "
                        "out: x, workers: 1}\n  - {use: discard}\n", recordings[_i].channels, here, recordings[_i].file);
    report_seen s = report_run(yaml, "", (gp_run_options){ .timed = true });
    ck_assert_int_eq(s.report->actor[0].most_workers, recordings[_i].alone ? 1 : s.report->cpus);
    report_done(&s);
}

CASES_AND(report)
