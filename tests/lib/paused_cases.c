/* paused_cases.c - runs that pause at random frames, and go on with random settings, make the bytes of one that does
 * not pause. */
#include "knobs_cases.h"

enum { PARTS = 6, RUNS = 24 };

TEST_SOME(same_bytes, RUNS, 12, 1)
{
    unsigned seed = (unsigned)_i * 2654435761u + 17;
    const char *const *sets[PARTS];
    knobs_set any[PARTS];
    unsigned long long at[PARTS];
    size_t want_n, n;
    const char *dir = pipe_dir();
    const char *device = strcmp(on, "cpu") || _i % 3 == 0 ? on : _i % 3 == 1 ? "cpu:0" : "cpu:0-1";        /* these copy */
    knobs_put_files(dir);
    pipe_result r = pipe_done(dir, knobs_yaml, on, NULL, (gp_run_options){ .isolate = getenv("GPIPE_SANITIZED") });
    OWNED char *want = knobs_read_files(dir, &want_n);

    int parts = 0, cuts = 1 + (int)(knobs_draw(&seed) % (PARTS - 1));
    for (int i = 0; i <= cuts; i++) {
        sets[i] = knobs_goes_on[knobs_draw(&seed) % KNOBS_GOES_ON];
        knobs_any(&any[i], knobs_draw(&seed), true);
        if (_i % 2)
            sets[i] = any[i].set;
        at[i] = (i ? at[i - 1] : 0) + (i || _i % 4 ? knobs_draw(&seed) % 16 : 0);        /* of 81 in all */
    }
    dir = pipe_dir();
    knobs_put_files(dir);
    r = pipe_run_paused(dir, knobs_yaml, device, sets, at, cuts, (gp_run_options){ .poison = _i & 4, .timed = _i & 2,
                                                                                 .isolate = getenv("GPIPE_SANITIZED") },
                        &parts);
    pipe_no_errors(&r, knobs_yaml);
    ck_assert_msg(r.outcome == GP_DONE, "run %d: outcome %d after %d parts", _i, r.outcome, parts);
    ck_assert_msg(parts > 1 || at[0], "run %d has not paused", _i);
    knobs_check_accounts(&r);
    OWNED char *have = knobs_read_files(dir, &n);
    ck_assert_msg(n == want_n && !memcmp(have, want, n), "run %d, in %d parts, makes other bytes", _i, parts);
}

CASES_SUITE(paused, NULL, NULL, 0, 1)
