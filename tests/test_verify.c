/* test_verify.c - a plan that is broken in any one way is noticed, and a plan
 * that does not fit the machine is refused with numbers and a place. */
#include "pipe.h"
#include "compile/plan.h"
#include "planned.h"

/* ---- broken plans ---------------------------------------------------- */

static const char SOUND[] =
    "pipeline: t\ndepth: 6\nbatch: 2\n"
    "buffers:\n"
    "  dark: {const: dark.npy}\n"
    "  wide: {depth: 12}\n"
    "stages:\n  - {use: src, name: a}\n  - {use: src, name: b, size: 300}\n  - {use: src, name: wide}\n"
    "  - {use: dev, name: x, in: [a, b, wide, dark], info: true, scratch: 10, state: 10,     table: 3}\n"
    "  - {use: host, name: h, in: [x, dark]}\n  - {use: dev, name: y, in: [h, x]}\n"
    "  - {use: dev, name: z, in: y}\n  - {use: sink, name: end, in: [z, h]}\n";

/* The same on several devices: a ring on each, and peer copies between them. */
static const char SEVERAL[] =
    "device: cpu:0-1\ndepth: 6\nstages:\n  - {use: src, name: a}\n  - {use: dev, name: x}\n"
    "  - {use: dev, name: y, state: 8}\n  - {use: dev, name: z, device: cpu:2}\n"
    "  - {use: sink, name: end, in: [z, y]}\n";

/* A state that is read before it is changed, and behind. */
static const char STATE[] =
    "depth: 6\nbuffers: {s: {state: true, dtype: u8, shape: [1000]}}\nstages:\n  - {use: src, name: a}\n"
    "  - {use: dev, name: get, in: [a, s]}\n  - {use: dev, name: put, in: a, out: s}\n  - {use: dev, name: last, in: [a, s]}\n"
    "  - {use: sink, name: end, in: [get, last]}\n";

/* A cycle in one segment, with a copy before it and one behind it. */
static const char CYCLE[] =
    "depth: 6\nbuffers: {a: {like: src}, was: {carry: a}}\nstages:\n  - {use: src}\n"
    "  - {use: dev, name: a, in: [src, was]}\n  - {use: sink}\n";

/* A cycle through a stage that is put in order by that, and a state that is used within; a stage beside it that is not. */
static const char ORDERS[] =
    "depth: 6\nbuffers: {r: {like: src}, was: {carry: r}, s: {state: true, dtype: u8, shape: [1000]}}\nstages:\n"
    "  - {use: src}\n  - {use: dev, name: p, in: [src, was], state: 8}\n  - {use: dev, name: q, in: p, out: s}\n"
    "  - {use: dev, name: r, in: [p, s], out: r}\n  - {use: dev, name: beside, in: r, state: 8}\n"
    "  - {use: sink, in: [r, beside]}\n";

static gp_task *task_of(planned *p, const char *stage)
{
    for (int i = 0; i < p->plan->ntasks; i++)
        if (p->plan->task[i].stage == plan_stage(p, stage))
            return &p->plan->task[i];
    return NULL;
}

static gp_task *first_copy(planned *p, gp_task_kind op)
{
    for (int i = 0; i < p->plan->ntasks; i++)
        if (p->plan->task[i].op == op)
            return &p->plan->task[i];
    return NULL;
}

static gp_ring *ring_of(planned *p, const char *buffer, bool device)
{
    return &p->plan->ring[plan_ring(p, buffer, device)];
}

static void set_depth(planned *p, const char *buffer, int depth)
{
    gp_ring *r = ring_of(p, buffer, true);
    r->depth = p->plan->pool[r->pool].depth = depth;
}

/* X(name, what is done to the plan) */
#define BROKEN(X) \
    X(ring_without_pool, ring_of(p, "a", true)->pool = -1) \
    X(ring_of_no_actor, ring_of(p, "a", true)->producer = p->plan->nactors) \
    X(consumer_out_of_range, ring_of(p, "a", false)->consumer[0] = 99) \
    X(wrong_producer, ring_of(p, "a", false)->producer = 1) \
    X(lost_consumer, ring_of(p, "a", false)->nconsumers = 0) \
    X(link_lost_consumer, ring_of(p, "x", true)->nconsumers = 0) \
    X(lost_counters, ring_of(p, "x", true)->segment = 0) \
    X(dep_later, task_of(p, "y")->dep[0] = (int)(task_of(p, "z") - p->plan->task)) \
    X(dep_elsewhere, task_of(p, "z")->dep[0] = (int)(task_of(p, "x") - p->plan->task)) \
    X(dep_lost, task_of(p, "z")->ndeps = 0) \
    X(copy_dep_lost, task_of(p, "y")->ndeps = 0) \
    X(copy_out_early, first_copy(p, GP_TASK_COPY_OUT)->ndeps = 0) \
    X(info_lost, p->plan->segment[0].info_dev = -1) \
    X(stage_twice, task_of(p, "z")->stage = plan_stage(p, "y")) \
    X(stage_on_host, task_of(p, "z")->op = GP_TASK_HOST) \
    X(no_host_task, p->plan->host_task[plan_stage(p, "h")] = -1) \
    X(task_not_listed, p->plan->segment[1].ntasks--) \
    X(task_listed_twice, p->plan->segment[1].task[1] = p->plan->segment[1].task[0]) \
    X(task_of_other_segment, task_of(p, "z")->segment = 0) \
    X(other_ring, task_of(p, "z")->in[0] = plan_ring(p, "x", true)) \
    X(ring_on_other_side, task_of(p, "h")->in[0] = plan_ring(p, "x", true)) \
    X(const_lost, task_of(p, "x")->konst[3] = -1) \
    X(const_on_other_side, task_of(p, "x")->konst[3] = task_of(p, "h")->konst[1]) \
    X(two_writers, task_of(p, "y")->out[0] = task_of(p, "z")->out[0]) \
    X(depth_of_ring, ring_of(p, "a", true)->depth = 5) \
    X(depth_of_pool, p->plan->pool[ring_of(p, "a", true)->pool].depth = 12) \
    X(inner_too_shallow, set_depth(p, "y", 3)) \
    X(no_power_of_two, set_depth(p, "y", 18)) \
    X(period_too_short, p->plan->segment[0].period = 6) \
    X(depth_zero, p->plan->segment[0].depth = 0) \
    X(batch_of_three, p->plan->segment[0].batch = 3) \
    X(batch_too_large, p->plan->segment[0].batch = 8) \
    X(too_many_streams, p->plan->segment[0].streams = 7) \
    X(overlap, ring_of(p, "b", false)->offset = 0) \
    X(overlap_by_size, ring_of(p, "a", false)->bytes += 256) \
    X(beyond_the_slot, p->plan->pool[ring_of(p, "y", true)->pool].stride -= 256) \
    X(unaligned, ring_of(p, "b", true)->offset += 8) \
    X(too_small, ring_of(p, "b", true)->bytes = 256) \
    X(layouts_differ, ring_of(p, "b", true)->offset += 256; p->plan->pool[ring_of(p, "b", true)->pool].stride += 256) \
    X(not_pinned, p->plan->pool[ring_of(p, "a", false)->pool].pinned = false) \
    X(alike_but_overlapping, ring_of(p, "b", false)->offset = ring_of(p, "b", true)->offset = 0) \
    X(alike_but_unaligned, ring_of(p, "b", false)->offset += 8; ring_of(p, "b", true)->offset += 8) \
    X(alike_but_too_small, ring_of(p, "b", false)->bytes = ring_of(p, "b", true)->bytes = 256) \
    X(segment_forgets_a_ring, p->plan->segment[1].nout--) \
    X(no_slots, ring_of(p, "h", false)->depth = 0) \
    X(waits_for_itself, ring_of(p, "z", false)->consumer[0] = 0) \
    X(consumer_that_does_not_read, ring_of(p, "a", false)->consumer[0] = p->plan->nactors - 1) \
    X(one_that_does_not_read, static int both[2]; both[0] = ring_of(p, "a", false)->consumer[0]; \
      both[1] = p->plan->nactors - 1; ring_of(p, "a", false)->consumer = both; \
      ring_of(p, "a", false)->nconsumers = 2) \
    X(consumer_twice, static int both[2]; both[0] = both[1] = ring_of(p, "a", false)->consumer[0]; \
      ring_of(p, "a", false)->consumer = both; ring_of(p, "a", false)->nconsumers = 2) \
    X(half_a_copy, first_copy(p, GP_TASK_COPY_IN)->nin--) \
    X(copy_backwards, first_copy(p, GP_TASK_COPY_IN)->op = GP_TASK_COPY_OUT) \
    X(mapped_for_two, first_copy(p, GP_TASK_COPY_OUT)->copying = GP_COPY_MAPPED) \
    X(little_scratch, p->plan->extra[task_of(p, "x")->scratch].bytes -= 256) \
    X(actors_swapped, gp_actor q = p->plan->actor[0]; p->plan->actor[0] = p->plan->actor[5]; p->plan->actor[5] = q) \
    X(actor_of_both, p->plan->actor[0].segment = 0) \
    X(actor_of_another_kind, p->plan->actor[0].kind = GP_ACTOR_SEGMENT)
#define PEER first_copy(p, GP_TASK_COPY_PEER)
#define BROKEN_COPIES(X) \
    X(peer_from_no_pool, PEER->from_pool = -1) \
    X(peer_from_another_pool, PEER->from_pool = PEER->to_pool) \
    X(peer_of_another_buffer, p->plan->ring[PEER->out[0]].buffer = plan_buffer(p, "y")) \
    X(peer_of_other_size, p->plan->ring[PEER->in[0]].bytes += 256) \
    X(peer_from_the_host, PEER->in[0] = plan_ring(p, "a", false)) \
    X(peer_in_another_segment, p->plan->ring[PEER->out[0]].segment = 0) \
    X(peer_not_waited_for, task_of(p, "y")->ndeps = 0) \
    X(peer_as_copy_in, PEER->op = GP_TASK_COPY_IN) \
    X(peer_out_of_reach, ((gp_device *)p->graph->device)[0].info.no_peer = 1 << 1)
#define BROKEN_TURNS(X) \
    X(before_the_turn_behind, first_copy(p, GP_TASK_COPY_IN)->turn = GP_TURN_BEHIND) \
    X(behind_in_the_turn_before, first_copy(p, GP_TASK_COPY_OUT)->turn = GP_TURN_BEFORE) \
    X(cycle_before, task_of(p, "a")->turn = GP_TURN_BEFORE) \
    X(cycle_behind, task_of(p, "a")->turn = GP_TURN_BEHIND) \
    X(all_at_once, for (int i = 0; i < p->plan->ntasks; i++) p->plan->task[i].turn = GP_TURN_BEFORE)

#define BROKEN_STATES(X) \
    X(a_copy_through_no_other, drop_dep(task_of(p, "get"), (int)(first_copy(p, GP_TASK_COPY_IN) - p->plan->task))) \
    X(a_use_does_not_wait, drop_dep(task_of(p, "put"), (int)(task_of(p, "get") - p->plan->task))) \
    X(a_slot_for_each_frame, p->plan->pool[ring_of(p, "s", true)->pool].one = false) \
    X(one_slot_for_all, p->plan->pool[ring_of(p, "a", true)->pool].one = true) \
    X(next_frame_early, ((gp_stage *)p->graph->stage)[plan_stage(p, "s")].last = plan_stage(p, "put")) \
    X(state_in_two_places, p->plan->ring[task_of(p, "put")->out[0]].pool = ring_of(p, "a", true)->pool) \
    X(used_behind_the_turn, task_of(p, "last")->turn = GP_TURN_BEHIND)

#define BROKEN_ORDERS(X) \
    X(nothing_keeps_a_cycle, task_of(p, "was")->follows = true) \
    X(nothing_keeps_what_is_beside, task_of(p, "beside")->follows = true) \
    X(not_behind_what_is_carried, task_of(p, "q")->ndeps = task_of(p, "r")->ndeps = 0) \
    X(orders_of_another_segment, task_of(p, "was")->segment = 1)

static void drop_dep(gp_task *t, int dep)
{
    int n = 0;
    for (int i = 0; i < t->ndeps; i++)
        if (t->dep[i] != dep)
            t->dep[n++] = t->dep[i];
    t->ndeps = n;
}

#define CHANGE(name, ...) static void name(planned *p) { __VA_ARGS__; }
BROKEN(CHANGE)
BROKEN_COPIES(CHANGE)
BROKEN_TURNS(CHANGE)
BROKEN_STATES(CHANGE)
BROKEN_ORDERS(CHANGE)

static const struct { const char *what; void (*change)(planned *p); const char *yaml; } broken[] = {
#define OF_ONE(name, ...) { #name, name, SOUND },
#define OF_SEVERAL(name, ...) { #name, name, SEVERAL },
#define OF_CYCLE(name, ...) { #name, name, CYCLE },
    BROKEN(OF_ONE)
    BROKEN_COPIES(OF_SEVERAL)
    BROKEN_TURNS(OF_CYCLE)
#define OF_STATE(name, ...) { #name, name, STATE },
    BROKEN_STATES(OF_STATE)
#define OF_ORDERS(name, ...) { #name, name, ORDERS },
    BROKEN_ORDERS(OF_ORDERS)
};

TEST_EACH(test_broken, broken)
{
    planned p = plan_yaml(broken[_i].yaml, "tests/golden/test.yaml", true);
    ck_assert_msg(p.pipeline != NULL, "%s", p.errs.e[0].msg);
    ck_assert(gp_verify(p.plan, &p.machine, &p.errs));
    broken[_i].change(&p);
    ck_assert_msg(!gp_verify(p.plan, &p.machine, &p.errs), "%s is not noticed", broken[_i].what);
    ck_assert_int_eq(p.errs.n, 1);
    ck_assert_msg(p.errs.e[0].code == GP_E_BUG, "%s: %s", broken[_i].what, p.errs.e[0].msg);
}

TEST(test_orders)
{
    static const struct { const char *stage; bool follows; } are[] = {
        { "was", false }, { "p", true }, { "s", true }, { "beside", false },
    };
    planned p = plan_yaml(ORDERS, "tests/golden/test.yaml", true);
    ck_assert_msg(p.pipeline != NULL, "%s", p.errs.e[0].msg);
    for (int i = 0; i < 4; i++)
        ck_assert_msg(task_of(&p, are[i].stage)->follows == are[i].follows, "%s", are[i].stage);
}

/* A segment that a path leaves and comes back to: 'late' put into the first. */
TEST(test_not_convex)
{
    planned p = plan_ok("pipeline: t\nstages:\n  - {use: src, name: s}\n  - {use: dev, name: early}\n"
                        "  - {use: host, name: h}\n  - {use: dev, name: late}\n  - {use: sink}\n", false);
    gp_plan *q = p.plan;
    int late = (int)(task_of(&p, "late") - q->task);
    int tasks[] = { q->segment[0].task[0], late };
    ck_assert_int_eq(q->nsegments, 2);
    q->task[late].segment = 0;
    q->segment[0].task = tasks;
    q->segment[0].ntasks = 2;
    q->nsegments = 1;
    int n = 0;                             /* the second segment's actor goes */
    for (int i = 0; i < q->nactors; i++)
        if (q->actor[i].segment != 1)
            q->actor[n++] = q->actor[i];
    q->nactors = n;
    for (int i = 0; i < q->nrings; i++)
        for (int c = -1; c < q->ring[i].nconsumers; c++) {
            int *actor = c < 0 ? &q->ring[i].producer : &q->ring[i].consumer[c];
            *actor = *actor == 3 ? 1 : *actor > 3 ? *actor - 1 : *actor;
        }
    ck_assert(!gp_verify(q, &p.machine, &p.errs));
    ck_assert_int_eq(p.errs.e[0].code, GP_E_BUG);
    ck_assert_msg(strstr(p.errs.e[0].msg, "leads back") != NULL, "%s", p.errs.e[0].msg);
}

/* A buffer on the short way round two groups, shallower than was planned: which, and how deep it has to be. */
TEST(test_too_shallow)
{
    planned p = plan_ok("pipeline: t\nstages:\n  - {use: src, name: a}\n  - {use: group, frames: 4}\n"
                        "  - {use: group, frames: 4}\n  - {use: split}\n  - {use: split, name: b}\n"
                        "  - {use: sink, in: [a, b]}\n", false);
    gp_ring *r = ring_of(&p, "a", false);
    ck_assert_int_ge(r->depth, 16);
    for (int depth = 16; depth >= 4; depth--) {
        r->depth = r->begins = p.plan->pool[r->pool].depth = depth;
        p.errs = (gp_errs){ .n = 0 };
        char *says = format("at buffer 'a', which has depth %d and needs 16", depth);
        ck_assert_msg(gp_verify(p.plan, &p.machine, &p.errs) == (depth == 16), "depth %d", depth);
        ck_assert_msg(depth == 16 || strstr(p.errs.e[0].msg, says), "%s", pipe_said(&p.errs));
    }
}

/* ---- the budget ------------------------------------------------------ */

static const char BIG[] =
    "pipeline: t\ndepth: 4\n"
    "buffers:\n"
    "  large: {depth: 8}\n"
    "stages:\n  - {use: src, name: large, size: 1073741824}\n  - {use: dev, name: small}\n  - {use: sink}\n";

static const struct {
    const char *what, *yaml;
    size_t memory, pin, device;            /* GiB */
    int code, line;
    const char *says[4];
} budgets[] = {
    { "all fits", BIG, 64, 64, 64, GP_E_OK, 0, { NULL } },
    { "device memory", BIG, 64, 64, 11, GP_E_RESOURCE, 4,
      { "12.0 GiB of memory on cuda:0", "11.0 GiB", "'large'", "8 slots of 1.0 GiB" } },
    { "pinned memory", BIG, 64, 8, 64, GP_E_RESOURCE, 4, { "12.0 GiB of pinned host memory", "8.0 GiB", "'large'" } },
    { "host memory", BIG, 10, 64, 64, GP_E_RESOURCE, 4, { "12.0 GiB of host memory", "10.0 GiB", "lower its depth" } },
    { "scratch",
      "pipeline: t\nstages:\n  - {use: src}\n  - {use: dev, scratch: 2147483648}\n  - {use: sink}\n",
      64, 64, 4, GP_E_RESOURCE, 4, { "6.0 GiB", "stage 'dev'", "work area" } },
    { "a size that does not fit size_t",
      "pipeline: t\ndepth: 65536\nstages:\n  - {use: src, size: 1099511627776}\n"
      "  - {use: dev, scratch: 1099511627776}\n  - {use: dev, name: e, scratch: 9223372036854775807}\n"
      "  - {use: sink}\n",
      64, 64, 64, GP_E_RESOURCE, 0, { "EiB" } },
};

TEST_EACH(test_budget, budgets)
{
    gp_machine m;
    gp_machine_fixed(&m, 1);
    m.memory = budgets[_i].memory << 30;
    m.pin_limit = budgets[_i].pin << 30;
    m.device[0].memory = budgets[_i].device << 30;
    planned p = plan_on(budgets[_i].yaml, "test.yaml", &m);
    if (budgets[_i].code == GP_E_OK) {
        ck_assert_msg(p.pipeline != NULL, "%s", p.errs.e[0].msg);
    } else {
        ck_assert_ptr_null(p.pipeline);
        ck_assert_int_eq(p.errs.e[0].code, budgets[_i].code);
        ck_assert_int_eq(gp_errs_exit(&p.errs), 4);
        if (budgets[_i].line)
            ck_assert_int_eq(p.errs.e[0].at.line, budgets[_i].line);
        for (int i = 0; i < 4 && budgets[_i].says[i]; i++) {
            bool said = false;
            for (int e = 0; e < p.errs.n; e++)
                said |= strstr(p.errs.e[e].msg, budgets[_i].says[i]) != NULL;
            ck_assert_msg(said, "%s: no '%s' in '%s'", budgets[_i].what, budgets[_i].says[i], p.errs.e[0].msg);
        }
    }
}

TEST(test_unified_budget)    /* on the CPU back end all memory is the host's */
{
    gp_machine m;
    gp_machine_fixed(&m, 0);
    m.memory = (size_t)11 << 30;
    m.pin_limit = 0;
    planned p = plan_on(BIG, "test.yaml", &m);
    ck_assert_ptr_null(p.pipeline);
    ck_assert_int_eq(p.errs.n, 1);
    ck_assert_msg(strstr(p.errs.e[0].msg, "12.0 GiB of host memory") != NULL, "%s", p.errs.e[0].msg);
    m.memory = ((size_t)12 << 30) + 4096;      /* slots are spread a little */
    p = plan_on(BIG, "test.yaml", &m);
    ck_assert_ptr_nonnull(p.pipeline);
}

/* A constant of 64 KiB, and a device of 32. */
TEST(test_managed)
{
    const char *dir = pipe_dir();
    gp_machine m;
    gp_machine_fixed(&m, 1);
    m.device[0].memory = 32 << 10;
    pipe_npy(dir, "c.npy", 128, 128, NULL);
    for (int managed = 0; managed < 2; managed++) {
        char *yaml = format("buffers: {c: {const: %s/c.npy%s}}\nstages:\n  - {use: src, name: s}\n"
            "  - {use: dev, name: d, in: [s, c]}\n  - {use: host, name: h, in: [d, c]}\n  - {use: sink}\n", dir,
            managed ? ", memory: managed" : "");
        planned p = plan_on(yaml, "test.yaml", &m);
        if (managed) {
            ck_assert_msg(p.pipeline != NULL, "%s", p.errs.e[0].msg);
            ck_assert_int_eq(p.plan->nextras, 1);
            ck_assert(p.plan->extra[0].managed && !p.plan->extra[0].place.device);
            ck_assert_uint_eq(p.plan->device_bytes, 12 * 1024);
            ck_assert_uint_eq(p.plan->host_bytes, 18 * 1024 + (64 << 10));
            ck_assert_uint_eq(p.plan->pinned_bytes, 12 * 1024);
            p.plan->extra[0].place.device = true;
            ck_assert(!gp_verify(p.plan, &m, &p.errs));
        } else {
            ck_assert_ptr_null(p.pipeline);
            ck_assert_int_eq(gp_errs_exit(&p.errs), 4);
            first_error_has(&p.errs, 1, "of memory on cuda:0; there are 32.0 KiB. The largest is constant 'c' (64.0 KiB): "
                      "make it smaller, or give it 'memory: managed'");
        }
    }
}

/* Slots of 64 KiB on a device of 512: those of a launch and of the one ahead are there. */
TEST_LOOP(test_managed_slots, 0, 7)
{
    const size_t ample = (size_t)64 << 30;
    const char *full = "(u8 [65536], 9 slots of 64.0 KiB): lower its depth or its shape";
    const struct { const char *memory; int depth; size_t host; const char *message; int room; const char *more; }
        cases[] = {
        { .memory = "managed", .depth = 9, .host = ample },
        { .memory = "device", .depth = 9, .host = ample, .message = "of memory on cuda:0; there are 512.0 KiB. The "
          "largest is buffer 'x' (u8 [65536], 9 slots of 64.0 KiB): lower its depth or its shape, or give it 'memory: "
          "managed'" },
        { .memory = "managed", .depth = 9, .host = 1 << 20, .message = "of host memory; there are 1.0 MiB. The largest "
          "is buffer 'x' (u8 [65536], 9 slots of 64.0 KiB): lower its depth or its shape" },
        { .memory = "device", .depth = 3, .host = ample },
        /* what launches need at once has no room, or the host has none for the rest */
        { .memory = "device", .depth = 9, .host = ample, .message = full, .room = 128 },
        { .memory = "device", .depth = 9, .host = 1 << 20, .message = full },
        /* a kernel that stays on the device is no launch for which they could be fetched */
        { .memory = "device", .depth = 9, .host = ample, .message = full, .more = "launch: persistent\n" },
    };
    gp_machine m;
    gp_machine_fixed(&m, 1);
    m.device[0].memory = (cases[_i].room ? (size_t)cases[_i].room : 512) << 10, m.memory = cases[_i].host;
    char *yaml = format("%sdepth: %d\nstreams: 1\nbatch: 1\nbuffers: {x: {memory: %s}, y: {memory: %s}}\n"
                        "stages:\n  - {use: src, name: x, size: 65536}\n  - {use: dev, name: y}\n  - {use: sink}\n",
                        cases[_i].more ? cases[_i].more : "", cases[_i].depth, cases[_i].memory, cases[_i].memory);
    planned p = plan_on(yaml, "test.yaml", &m);
    if (!cases[_i].message) {
        bool managed = *cases[_i].memory == 'm';
        ck_assert_msg(p.pipeline != NULL, "%s", p.errs.e[0].msg);
        for (int i = 0; i < p.plan->npools; i++)
            if (p.plan->pool[i].place.device && p.plan->pool[i].stride >= 65536) {
                ck_assert_int_eq(p.plan->pool[i].managed, managed);
                ck_assert_int_eq(gp_pool_at_once(p.plan, i), 2);
            }
        ck_assert_uint_eq(p.plan->host_bytes >> 16, managed ? 36 : 6);
        ck_assert_uint_eq(p.plan->device_bytes >> 16, managed ? 4 : 6);
        p.plan->pool[1].managed = !p.plan->pool[1].managed;
        ck_assert(!gp_verify(p.plan, &m, &p.errs));
    } else {
        ck_assert_ptr_null(p.pipeline);
        ck_assert_int_eq(gp_errs_exit(&p.errs), 4);
        ck_assert_int_eq(p.errs.e[0].at.line, 4 + (cases[_i].more != NULL));
        const char *said = strstr(p.errs.e[0].msg, cases[_i].message);
        ck_assert_msg(said && !said[strlen(cases[_i].message)], "%s", p.errs.e[0].msg);
    }
}

/* Who makes or reads its frames by a library, and who says so in vain. */
TEST_LOOP(test_managed_refused, 0, 2)
{
    static const struct { const char *stages, *message; } cases[] = {
        { "  - {use: src}\n  - {use: fill, name: x}\n  - {use: dev}\n",
          "buffer 'x' cannot be in managed memory: stage 'x' gives the memory of its frames to a library" },
        { "  - {use: src, name: x}\n  - {use: host}\n  - {use: dev}\n",
          "'memory' has no effect: no stage of the device makes or reads buffer 'x'" },
    };
    for (int cuda = 0; cuda < 2; cuda++) {
        char *yaml = format("buffers: {x: {memory: managed}}\nstages:\n%s  - {use: sink}\n", cases[_i].stages);
        planned p = plan_yaml(yaml, "test.yaml", cuda);
        ck_assert_ptr_null(p.pipeline);
        ck_assert_int_eq(gp_errs_exit(&p.errs), 3);
        first_error_is(&p.errs, 1, cases[_i].message);
        ck_assert_int_eq(p.errs.e[0].at.col, 23);
    }
}

TEST_SUITE(verify, NULL, NULL, 0)
