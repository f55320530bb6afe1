/* test_room.c - when a segment of small frames gets more slots of the rings around it: a ring before it and one behind
 * it, made by hand, of which the counters say what waits. */
#include "base/clock.h"
#include "run/segment.h"
#include "suite.h"

enum { BEGINS = 6, DEPTH = 192, SECOND = 1000000000 };

typedef struct rig {
    gp_ring plan[2];
    gp_cursor consumed[2][2];
    gp_ringrt ring[2];
    gp_ring_end in;
    gp_ringrt *out;
    gp_segmentrt seg;
    gp_actorrt actor, sink;
    gp_run run;
} rig;

static void set_up(rig *r)
{
    static int sinks[2];
    memset(r, 0, sizeof *r);
    gp_eventcount_init(&r->sink.changed);
    r->run.actor = &r->sink, r->actor.run = &r->run;
    for (int i = 0; i < 2; i++) {
        r->plan[i] = (gp_ring){ .depth = DEPTH, .begins = BEGINS, .producer = -1, .nconsumers = 1 + i,
                                  .consumer = sinks };
        r->ring[i].ring = &r->plan[i], r->ring[i].consumed = r->consumed[i];
        atomic_store(&r->ring[i].room, BEGINS), atomic_store(&r->ring[i].limit, DEPTH);
    }
    r->in = (gp_ring_end){ &r->ring[0], 0 }, r->out = &r->ring[1];
    r->actor.seg = &r->seg, r->actor.in = &r->in, r->actor.nin = 1, r->actor.out = &r->out, r->actor.nout = 1;
}

/* `waits` frames wait before each of so many launches; behind it `made` wait for one sink, `other` for another. */
static int after(rig *r, int launches, int waits, int made, int other)
{
    for (int i = 0; i < launches; i++) {
        atomic_store(&r->ring[0].produced.at, 100 + (uint64_t)waits), atomic_store(&r->consumed[0][0].at, 100);
        atomic_store(&r->ring[1].produced.at, 200);
        atomic_store(&r->consumed[1][0].at, 200 - (uint64_t)made), atomic_store(&r->consumed[1][1].at, 200 - (uint64_t)other);
        gp_room_launched(&r->actor);
        r->seg.grown.since_ns = gp_now_ns();           /* launches are short, whatever holds this thread up */
    }
    ck_assert_int_eq(gp_ring_room(&r->ring[0]), gp_ring_room(&r->ring[1]));
    return gp_ring_room(&r->ring[0]);
}

static const struct { const char *what; int launches, waits, made, other, room; } cases[] = {
    { "the segment holds it up", 16, 6, 0, 0, 12 },
    { "one launch fewer", 15, 6, 0, 0, 6 },
    { "a frame is on its way to a sink", 16, 6, 1, 1, 12 },
    { "a sink is behind", 1000, 6, 2, 0, 6 },
    { "another is", 1000, 6, 0, 6, 6 },
    { "a source that reads many at once fills a part of it", 16, 4, 0, 0, 12 },
    { "the source is", 1000, 3, 0, 0, 6 },
    { "there is nothing", 1000, 0, 0, 0, 6 },
};

TEST_EACH(grows, cases)
{
    rig r;
    set_up(&r);
    int room = after(&r, cases[_i].launches, cases[_i].waits, cases[_i].made, cases[_i].other);
    ck_assert_msg(room == cases[_i].room, "%s: %d slots", cases[_i].what, room);
}

/* It doubles up to its depth, and no further. */
TEST(up_to_its_depth)
{
    rig r;
    set_up(&r);
    for (int room = BEGINS; room < DEPTH; room *= 2)
        ck_assert_int_eq(after(&r, 16, DEPTH, 0, 0), 2 * room);
    ck_assert_int_eq(after(&r, 100, DEPTH, 0, 0), DEPTH);
}

/* What held it up now and then does not add up over the whole run. */
TEST(forgets)
{
    rig r;
    set_up(&r);
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(after(&r, 8, 6, 0, 0), BEGINS);
        ck_assert_int_eq(after(&r, 8, 0, 0, 0), BEGINS);
    }
}

/* A consumer that has ended holds up nobody; launches that take long are not what it is for. */
TEST(ended_and_long)
{
    rig r;
    set_up(&r);
    atomic_store(&r.consumed[1][1].closed, true);
    ck_assert_int_eq(after(&r, 16, 6, 0, 6), 2 * BEGINS);
    set_up(&r);
    r.seg.grown.launches = 15, r.seg.grown.since_ns = gp_now_ns() - SECOND;
    ck_assert_int_eq(after(&r, 1, 6, 0, 0), BEGINS);
}

/* A retune that wants fewer slots than are used gets them, its limit holds, and they come back if it does not come. */
TEST(bounded)
{
    rig r;
    set_up(&r);
    after(&r, 32, DEPTH, 0, 0);
    for (int i = 0; i < 2; i++)
        atomic_store(&r.ring[i].limit, 10);
    ck_assert_int_eq(after(&r, 1000, DEPTH, 0, 0), 10);
    for (int i = 0; i < 2; i++)
        atomic_store(&r.ring[i].limit, DEPTH);
    ck_assert_int_eq(gp_ring_room(&r.ring[0]), 24);
}

/* A consumer that takes long for each frame has few before it; an hour is more than this thread is ever held up. */
enum { HOUR = 3600000 };
static const struct { const char *what; int behind, launches, frames, ms, made, room; } slow[] = {
    { "2 ms a frame", 0, 1, 16, 32, 18, BEGINS },
    { "as fast as it may be", 0, 1, 10 * HOUR, 9 * HOUR, 18, 24 },
    { "many launches at once", 0, 1, 16, -HOUR, 18, 24 },
    { "half of them wait", 0, 1, 16, 32, 12, 24 },
    { "one launch fewer", -1, 1, 16, 32, 18, 24 },
};

TEST_EACH(shrinks, slow)
{
    rig r;
    set_up(&r);
    ck_assert_int_eq(after(&r, 32, DEPTH, 0, 0), 24);
    after(&r, 16 + slow[_i].behind, 0, slow[_i].made, 0);
    r.seg.grown.behind_ns = gp_now_ns() - slow[_i].ms * 1000000LL;
    atomic_store(&r.actor.next, (uint64_t)slow[_i].frames);
    int room = after(&r, slow[_i].launches, 0, slow[_i].made, 0);
    ck_assert_msg(room == slow[_i].room, "%s: %d slots", slow[_i].what, room);
}

/* It grows again, and where it has not grown nothing changes. */
TEST(shrinks_and_grows)
{
    rig r;
    set_up(&r);
    ck_assert_int_eq(after(&r, 100, 0, 6, 6), BEGINS);
    ck_assert_int_eq(r.seg.grown.behind, 0);
    ck_assert_int_eq(after(&r, 16, 6, 0, 0), 2 * BEGINS);
    after(&r, 16, 0, 12, 0);
    r.seg.grown.behind_ns = gp_now_ns() - SECOND;
    ck_assert_int_eq(after(&r, 1, 0, 12, 0), BEGINS);
    ck_assert_int_eq(after(&r, 16, 6, 0, 0), 2 * BEGINS);
}

TEST_SUITE(room, NULL, NULL, 0)
