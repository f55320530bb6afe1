/* paused_cases.c - runs that pause at random frames, and go on with random settings, make the bytes of one that does
 * not pause. */
#include "knobs_cases.h"


static const char *const settings[][8] = {
    { NULL },
    { "depth=1", NULL },
    { "depth=2", "streams=1", "sync=block", NULL },
    { "depth=9", "streams=4", "batch=8", NULL },
    { "depth=16", "batch=16", NULL },
    { "depth=16", "batch=16", "latency=2ms", NULL },
    { "depth=12", "batch=4", "latency=50us", "launch=stream", NULL },
    { "depth=5", "launch=stream", NULL },
    { "depth=8", "launch=stream", "batch=1", "sync=yield", NULL },
    { "depth=33", "streams=2", "batch=2", NULL },
    { "buffers.kept.depth=1", "buffers.sum.depth=7", "buffers.x.depth=3", "depth=12", NULL },
};
enum { SETTINGS = sizeof settings / sizeof *settings, PARTS = 6, RUNS = 24 };

static unsigned next(unsigned *seed)
{
    return (*seed = *seed * 1103515245u + 12345u) >> 8;
}

TEST_SOME(same_bytes, RUNS, 12, 1)
{
    unsigned seed = (unsigned)_i * 2654435761u + 17;
    const char *const *sets[PARTS];
    knobs_set any[PARTS];
    unsigned long long at[PARTS];
    size_t want_n, n;
    const char *dir = pipe_dir();
    knobs_put_files(dir);
    pipe_result r = pipe_done(dir, knobs_yaml, on, NULL, (gp_run_options){ .isolate = getenv("GPIPE_SANITIZED") });
    OWNED char *want = knobs_read_files(dir, &want_n);
    pipe_dir_remove(dir);

    int parts = 0, cuts = 1 + (int)(next(&seed) % (PARTS - 1));
    for (int i = 0; i <= cuts; i++) {
        sets[i] = settings[next(&seed) % SETTINGS];
        knobs_any(&any[i], next(&seed), true);
        if (_i % 2)
            sets[i] = any[i].set;
        at[i] = (i ? at[i - 1] : 0) + (i || _i % 4 ? next(&seed) % 16 : 0);        /* of 81 in all */
    }
    dir = NULL;
    for (int tries = 0; !tries || (parts < 2 && tries < 20); tries++) {    /* it may be over before it is asked to pause */
        if (dir)
            pipe_dir_remove(dir);
        dir = pipe_dir();
        knobs_put_files(dir);
        r = pipe_run_paused(dir, knobs_yaml, on, sets, at, cuts, (gp_run_options){ .poison = _i & 1, .timed = _i & 2,
                                                                                     .isolate = getenv("GPIPE_SANITIZED") },
                            &parts);
        pipe_no_errors(&r, knobs_yaml);
    }
    ck_assert_msg(r.outcome == GP_DONE, "run %d: outcome %d after %d parts", _i, r.outcome, parts);
    ck_assert_msg(parts > 1 || at[0], "run %d has not paused", _i);
    knobs_check_accounts(&r);
    OWNED char *have = knobs_read_files(dir, &n);
    ck_assert_msg(n == want_n && !memcmp(have, want, n), "run %d, in %d parts, makes other bytes", _i, parts);
}

CASES_SUITE(paused, NULL, NULL, 0, 1)
