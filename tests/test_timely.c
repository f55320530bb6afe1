/* test_timely.c - how many frames a launch takes and how long it waits, from tables of times: no clock, no device. */
#include "run/timely.h"
#include "suite.h"

enum { SIZES = 5, US = 1000, LATENCY = 5000 };         /* launches of 1 to 16 frames; us */

/* In us: what all frames of launches of 1, 2, 4, ... took, 0: there was none; frames come each `gap`, 0: one came. The
 * oldest of n frames is `age` old, the newest was seen `seen` ago. Expected: the size, and for how long it waits. Then,
 * where some would be left: how many are ready in all, for how many launches side by side (0: any), and the age of the
 * newest. */
#define ALONE 0, 0, 0

static const struct {
    const char *what;
    int tail[SIZES], gap, n, able, most, age, seen, size, until, all, lanes, newest;
} chosen[] = {
    /* how many */
    { "nothing is known", { 0 }, 0, 9, 3, 4, 0, 0, 0, 0, ALONE },
    { "what is ready", { 100, 110, 120, 140, 180 }, 0, 9, 3, 3, 0, 0, 3, 0, ALONE },
    { "as many as end in time", { 1000, 1900, 3700, 7300, 9000 }, 0, 9, 3, 3, 0, 0, 2, 0, ALONE },
    { "and fewer when they are older", { 1000, 1900, 3700, 7300, 9000 }, 0, 9, 3, 3, 1500, 0, 1, 0, ALONE },
    { "or one", { 1000, 1900, 3700, 7300, 9000 }, 0, 9, 3, 3, 3500, 0, 0, 0, ALONE },
    { "all where the oldest is late anyway", { 1000, 1900, 3700, 7300, 9000 }, 0, 9, 3, 3, 4500, 0, 3, 0, ALONE },
    { "to the microsecond", { 1000, 1900, 3700, 7300, 9000 }, 0, 9, 3, 3, 1000, 0, 2, 0, ALONE },
    { "a size that was not tried takes at most twice as long as half of it", { 1000 }, 0, 9, 3, 3, 0, 0, 2, 0, ALONE },
    { "so that it may be too long", { 3000 }, 0, 9, 3, 3, 0, 0, 0, 0, ALONE },
    { "and at most as long as a longer one", { 0, 0, 4000 }, 0, 9, 3, 3, 0, 0, 2, 0, ALONE },
    { "which may end in time where a longer one does not", { 0, 0, 4000 }, 0, 9, 3, 3, 500, 0, 2, 0, ALONE },
    { "one that takes as long as two of half", { 100, 200, 400, 800, 1600 }, 0, 9, 3, 3, 0, 0, 3, 0, ALONE },
    { "no size that is slower than two of half", { 100, 400, 420, 430, 440 }, 0, 2, 1, 1, 0, 0, 0, 0, ALONE },
    { "but a longer one that is not", { 100, 400, 420, 430, 440 }, 0, 4, 2, 2, 0, 0, 2, 0, ALONE },
    { "a frame alone takes longer than all may", { 6000 }, 0, 9, 3, 3, 0, 0, 3, 0, ALONE },

    /* those that are left */
    { "small launches end a burst no sooner", { 1000, 1900, 3700, 7300, 9000 }, 0, 9, 3, 3, 0, 0, 3, 0, 9, 1, 0 },
    { "but what comes later has time", { 500, 900, 1700, 3300, 6500 }, 0, 16, 4, 4, 3000, 0, 2, 0, 16, 4, 0 },
    { "or not", { 500, 900, 1700, 3300, 6500 }, 0, 16, 4, 4, 3000, 0, 4, 0, 16, 1, 3000 },
    { "with many behind a launch", { 500, 900, 1700, 3300, 6500 }, 0, 16, 4, 4, 3000, 0, 4, 0, 100, 4, 0 },
    { "which have time", { 10, 20, 40, 80, 6500 }, 0, 16, 4, 4, 3000, 0, 3, 0, 100, 1, 0 },

    /* for how long: frames come each 100 us */
    { "for one more", { 100, 110, 120, 140, 180 }, 100, 1, 0, 4, 0, 0, 0, 400, ALONE },
    { "for two, one is there", { 100, 110, 120, 140, 180 }, 100, 3, 1, 4, 300, 0, 1, 400, ALONE },
    { "four times as long as it takes as a rule, from when the last one came", { 100, 110, 120, 140, 180 }, 100, 2, 1,
      4, 300, 60, 1, 800 - 60, ALONE },
    { "no longer than so many can", { 100, 110, 120, 140, 4300 }, 100, 8, 3, 4, 0, 0, 3, 0, ALONE },
    { "which is when the oldest must go", { 100, 110, 120, 140, 180 }, 1000, 1, 0, 4, 2000, 0, 0, 3000 - 110, ALONE },
    { "not for those that come too late", { 100, 110, 120, 140, 180 }, 5000, 1, 0, 4, 0, 0, 0, 0, ALONE },
    { "not where no more go with it", { 100, 110, 120, 140, 180 }, 100, 1, 0, 0, 0, 0, 0, 0, ALONE },
    { "not for a size that is slow", { 100, 400, 900 }, 100, 1, 0, 4, 0, 0, 0, 0, ALONE },
    { "not when fewer go than are ready", { 1000, 1900, 3700, 7300, 9000 }, 1, 9, 3, 4, 1500, 0, 1, 0, ALONE },
    { "not when it is late", { 100, 110, 120, 140, 180 }, 100, 1, 0, 4, 5000, 0, 0, 0, ALONE },
    { "not before it is known how they come", { 100, 110, 120, 140, 180 }, 0, 1, 0, 4, 0, 0, 0, 0, ALONE },
};

static gp_timely *timely(const int tail[SIZES], int gap)
{
    gp_timely *t = calloc(1, sizeof *t);
    *t = (gp_timely){ .latency_ns = LATENCY * US, .tail = calloc(SIZES, sizeof *t->tail), .sizes = SIZES };
    for (int k = 0; k < SIZES; k++)
        for (int i = 0; i < 150 && tail[k]; i++)
            gp_timely_ended(t, k, tail[k] * US);
    for (int i = 0; i < 20 && gap; i++)
        gp_timely_came(t, 1 + (int64_t)i * gap * US);
    return t;
}

static void drop(gp_timely *t)
{
    free(t->tail);
    free(t);
}

/* A histogram's answer is at most 1/16 above. */
static bool is_about(int64_t ns, double us)
{
    return (double)ns >= 1e3 * us - 1 && (double)ns <= 1e3 * us * 17 / 16 + 1;
}

TEST_EACH(follows_from_a_table, chosen)
{
    int64_t now = 1000000 * US;
    gp_timely *t = timely(chosen[_i].tail, chosen[_i].gap);
    for (int k = 0; k < SIZES; k++)    /* the exact ones: the histogram has its own test */
        ck_assert_msg(is_about(t->tail[k].most_ns, chosen[_i].tail[k]), "%s: size %d", chosen[_i].what, k),
        t->tail[k].most_ns = t->tail[k].middle_ns = chosen[_i].tail[k] * US;
    ck_assert_msg(is_about(t->gap_ns, chosen[_i].gap), "%s: gap %lld", chosen[_i].what, (long long)t->gap_ns);
    t->gap_ns = chosen[_i].gap * US;
    gp_timely_ready w = { .now_ns = now, .born_ns = now - chosen[_i].age * US, .came_ns = now - chosen[_i].seen * US,
                          .n = chosen[_i].n, .able = chosen[_i].able, .most = chosen[_i].most,
                          .all = chosen[_i].all ? chosen[_i].all : chosen[_i].n,
                          .lanes = chosen[_i].lanes ? chosen[_i].lanes : 64,
                          .newest_ns = now - chosen[_i].newest * US };
    gp_timely_choice c = gp_timely_choose(t, &w);
    long until = c.until_ns > now ? (c.until_ns - now) / US : 0;
    ck_assert_msg(c.size == chosen[_i].size && until == chosen[_i].until, "%s: size %d until %ld, not %d until %d",
                  chosen[_i].what, c.size, until, chosen[_i].size, chosen[_i].until);
    drop(t);
}

/* One frame in 100 may be late; one in 50 may not. */
TEST(is_of_99_in_100)
{
    static const int none[SIZES];
    for (int every = 50; every <= 200; every *= 4) {
        gp_timely *t = timely(none, 0);
        for (int i = 0; i < 1000; i++)
            gp_timely_ended(t, 0, (i % every ? 100 : 3000) * US);
        ck_assert_msg(is_about(gp_timely_tail(t, 0), every > 100 ? 100 : 3000), "one in %d: %lld", every,
                      (long long)gp_timely_tail(t, 0));
        drop(t);
    }
}

/* Times change, both ways: within the frames that are kept. */
TEST(goes_with_the_times)
{
    static const int slow[SIZES] = { 3000 };
    gp_timely *t = timely(slow, 100);
    for (int i = 0; i < 64; i++)
        gp_timely_ended(t, 0, 4000 * US);
    ck_assert(is_about(gp_timely_tail(t, 0), 4000));
    for (int i = 0; i < 1 << 14; i++) {
        gp_timely_ended(t, 0, 50 * US);
        gp_timely_came(t, t->born_ns + 700 * US);
    }
    ck_assert(is_about(gp_timely_tail(t, 0), 50));
    ck_assert(is_about(t->gap_ns, 700));
    drop(t);
}

/* What was too slow is tried again, after so many launches that these frames are fewer than one in 100. */
TEST(forgets_what_was_slow)
{
    static const int once[SIZES] = { 100, 9000 };
    gp_timely *t = timely(once, 0);
    gp_timely_ready w = { .now_ns = 1, .born_ns = 1, .newest_ns = 1, .n = 2, .all = 2, .lanes = 2, .able = 1,
                          .most = 1 };
    int launches = 0;
    for (; gp_timely_choose(t, &w).size == 0; launches++)
        gp_timely_launched(t, 0);
    ck_assert_msg(launches > 200 && launches < 100000, "%d launches", launches);
    gp_timely_ended(t, 1, 9000 * US);
    ck_assert_int_eq(gp_timely_choose(t, &w).size, 0);
    for (int i = 0; i < 2000; i++)     /* longer launches do not make shorter ones unknown */
        gp_timely_launched(t, 4);
    ck_assert(is_about(gp_timely_tail(t, 0), 100));
    drop(t);
}

/* Nothing goes over the top of an integer. */
TEST(holds_for_all_times)
{
    static const int none[SIZES];
    gp_timely *t = timely(none, 0);
    for (int i = 0; i < 3; i++)
        gp_timely_ended(t, 0, INT64_MAX);
    gp_timely_ready w = { .now_ns = INT64_MAX / 2, .born_ns = INT64_MAX / 2,
                          .newest_ns = INT64_MAX / 2, .n = 16, .all = 1 << 20, .lanes = 1, .able = 4, .most = 4 };
    ck_assert_int_eq(gp_timely_choose(t, &w).size, 4);
    ck_assert(gp_timely_tail(t, 4) >= gp_timely_tail(t, 0));
    gp_timely_ended(t, 0, -5);
    gp_timely_came(t, 10), gp_timely_came(t, 5);
    drop(t);
}

static const struct { gp_late is; int64_t latency_us; int depth; const char *text; } late[] = {
    { { 1000, 10, 4000000, 9, 100000 }, 5000, 8, NULL },
    { { 99, 99, 9000000, 9, 100000 }, 5000, 8, NULL },
    { { 1000, 1000, 9000000, 9, 100000 }, 0, 8, NULL },
    { { 1000, 11, 6000000, 1, 100000 }, 5000, 8, "'latency: 5ms' was not kept: 99 frames in 100 took up to 6 ms" },
    { { 1000, 11, 20000000, 7.5, 100000 }, 5000, 8, "'latency: 5ms' was not kept: 99 frames in 100 took up to 20 ms, "
      "and 7.5 were under way at a time: fewer slots hold fewer, as with depth: 2" },
    { { 1000, 11, 90000000, 7.5, 100000 }, 5000, 8, "'latency: 5ms' was not kept: 99 frames in 100 took up to 90 ms, "
      "and 7.5 were under way at a time: fewer slots hold fewer, as with depth: 1" },
    { { 1000, 999, 7000000, 1, 6500000 }, 250, 8, "'latency: 0.25ms' was not kept: 99 frames in 100 took up to 7 ms, "
      "and those that were launched alone up to 6.5 ms from their launch on: no batch is small enough" },
};

TEST_EACH(says_what_was_late, late)
{
    char text[GP_LATE_TEXT];
    const char *is = gp_late_text(&late[_i].is, 1000 * late[_i].latency_us, late[_i].depth, text);
    ck_assert_msg(late[_i].text ? is && !strcmp(is, late[_i].text) : !is, "%s, not %s", is ? is : "nothing",
                  late[_i].text ? late[_i].text : "nothing");
}

TEST_SUITE(timely, NULL, NULL, 0)
