/* test_devices.c - which devices a pipeline uses, what a plan over several is, and what it refuses. */
#include "planned.h"

static gp_machine gpus(int n)
{
    gp_machine m;
    gp_machine_fixed(&m, n);
    return m;
}

static planned on(const char *device, const char *rest, int ngpus)
{
    gp_machine m = gpus(ngpus);
    return plan_on(format("device: %s\nstages:\n%s", device, rest), "p.yaml", &m);
}

static const char chain[] = "  - {use: src, size: 64}\n  - {use: dev, name: a}\n  - {use: dev, name: b}\n  - {use: sink}\n";

/* ---- names ------------------------------------------------------------- */

static const struct { const char *device; int gpus; const char *names, *error; int lanes; } names[] = {
    { "auto", 2, "cuda:0", NULL, 1 }, { "auto", 0, "cpu", NULL, 1 }, { "all", 0, "cpu", NULL, 1 },
    { "all", 3, "cuda:0, cuda:1, cuda:2", NULL, 3 }, { "cuda:1", 2, "cuda:1", NULL, 1 },
    { "cuda:1-2", 3, "cuda:1, cuda:2", NULL, 2 }, { "[cuda:2, cuda:0]", 3, "cuda:2, cuda:0", NULL, 2 },
    { "cpu:0", 0, "cpu:0", NULL, 1 }, { "cpu:0-3", 2, "cpu:0, cpu:1, cpu:2, cpu:3", NULL, 4 },
    { "[cpu:0-1, cpu:5]", 0, "cpu:0, cpu:1, cpu:5", NULL, 3 },
    { "[cuda:0, cuda:0]", 2, NULL, "device 'cuda:0' is named twice", 0 },
    { "[cpu:0-2, cpu:1]", 2, NULL, "device 'cpu:1' is named twice", 0 },
    { "cuda:0-2", 2, NULL, "there is no device 'cuda:0-2'; this machine has 2, numbered from 0", 0 },
    { "[cuda:0, cpu:1]", 2, NULL, "'cuda:0' and 'cpu:1' are not devices of one kind: gpipe runs on GPUs, or on the CPU", 0 },
    { "[]", 2, NULL, "'device' is an empty list: name a device", 0 },
    { "{a: 1}", 2, NULL, "'device' must be auto, all, cpu, cuda:N, cuda:0-3, or a list of these", 0 },
    { "cuda:2-1", 3, NULL, "'device' must be auto, all, cpu, cuda:N, cuda:0-3, or a list of these, not 'cuda:2-1'", 0 },
    { "cpu:0-1024", 0, NULL, "a pipeline has at most 1024 devices, numbered from 0", 0 },
    { "cuda:999999", 1, NULL, "there is no device 'cuda:999999'", 0 },
};

TEST_EACH(of_a_pipeline, names)
{
    planned p = on(names[_i].device, chain, names[_i].gpus);
    if (names[_i].error) {
        ck_assert_ptr_null(p.pipeline);
        ck_assert_msg(strstr(p.errs.e[0].msg, names[_i].error) == p.errs.e[0].msg, "%s: %s", names[_i].device, p.errs.e[0].msg);
        ck_assert_int_eq(p.errs.e[0].at.line, 1);
    } else {
        ck_assert_msg(p.pipeline != NULL, "%s: %s", names[_i].device, p.errs.n ? p.errs.e[0].msg : "");
        ck_assert_str_eq(p.graph->device_name, names[_i].names);
        ck_assert_int_eq(p.graph->lanes, names[_i].lanes);
    }
}

TEST(models_that_differ)
{
    gp_machine m = gpus(2);
    strcpy(m.device[1].name, "NVIDIA L4");
    planned p = plan_on("device: all\nstages: [{use: src, size: 64}, {use: dev}, {use: sink}]", "p.yaml", &m);
    ck_assert_ptr_null(p.pipeline);
    ck_assert_msg(strstr(p.errs.e[0].msg, "only among devices of one model") != NULL, "%s", p.errs.e[0].msg);
    p = plan_on("device: cuda:0\nstages: [{use: src, size: 64}, {use: dev, device: cuda:1}, {use: sink}]", "p.yaml", &m);
    ck_assert_ptr_nonnull(p.pipeline);
}

static const struct { const char *device, *stage; int gpus; const char *error; } places[] = {
    { "cuda:0", "cuda:1", 2, NULL }, { "auto", "cuda:1", 0, NULL }, { "all", "cuda:0", 0, NULL },
    { "auto", "cuda:1", 1, "there is no device 'cuda:1'; this machine has 1, numbered from 0" },
    { "cpu", "cuda:0", 1, "stage 'a' cannot run on 'cuda:0': the pipeline runs on the CPU; write 'device: cuda:0' at its top" },
    { "cpu", "cpu:1", 1, "stage 'a' cannot run on 'cpu:1': the pipeline runs on the CPU; write 'device: cpu:0' at its top" },
    { "cuda:0", "cpu:1", 1, "'cuda:0' and 'cpu:1' are not devices of one kind: gpipe runs on GPUs, or on the CPU" },
    { "cuda:0", "all", 1, "'device' of stage 'a' must be one device, as cuda:1, not 'all'" },
    { "cuda:0", "cuda:0-1", 2, "'device' of stage 'a' must be one device, as cuda:1, not 'cuda:0-1'" },
};

TEST_EACH(of_a_stage, places)
{
    char *rest = format("  - {use: src, size: 64}\n  - {use: dev, name: a, device: %s}\n  - {use: sink}\n", places[_i].stage);
    planned p = on(places[_i].device, rest, places[_i].gpus);
    if (places[_i].error) {
        ck_assert_ptr_null(p.pipeline);
        first_error_is(&p.errs, 4, places[_i].error);
    } else {
        ck_assert_msg(p.pipeline != NULL, "%s", p.errs.n ? p.errs.e[0].msg : "");
    }
}

static const struct { const char *stages, *error; } without_effect[] = {
    { "  - {use: src, size: 64}\n  - {use: host, device: cpu:1}\n  - {use: sink}\n",
      "'device' has no effect: stage 'host' runs on the host" },
    { "  - {use: src, size: 64}\n  - {use: group, frames: 2, device: cpu:1}\n  - {use: sink}\n",
      "'device' has no effect: stage 'group' runs where its input is made" },
};

TEST_EACH(of_a_stage_without_effect, without_effect)
{
    planned p = on("cpu:0", without_effect[_i].stages, 0);
    ck_assert_ptr_null(p.pipeline);
    ck_assert_str_eq(p.errs.e[0].msg, without_effect[_i].error);
}

/* What goes round a cycle is on one device. */
TEST_LOOP(of_a_cycle, 0, 4)
{
    static const struct { const char *a, *b; bool ok; } cases[] = {
        { ", device: cpu:1", ", device: cpu:2", false }, { ", device: cpu:1", "", false },
        { ", device: cpu:1", ", device: cpu:1", true }, { "", "", true } };
    char *stages = format("  - {use: src, name: s, size: 64}\n  - {use: dev, name: a, in: [s, before]%s}\n"
                          "  - {use: dev, name: b, in: a%s}\n  - {use: sink, in: b}\n", cases[_i].a, cases[_i].b);
    planned p = on("cpu:0\nbuffers: {b: {dtype: u8, shape: [64]}, before: {carry: b, init: 0}}", stages, 0);
    ck_assert_msg((p.pipeline != NULL) == cases[_i].ok, "%s", p.errs.n ? p.errs.e[0].msg : "no error");
    if (!cases[_i].ok)
        ck_assert_msg(strstr(p.errs.e[0].msg, "give both the same 'device'") != NULL, "%s", p.errs.e[0].msg);
}

/* ---- plans --------------------------------------------------------------- */

/* Depths are those on each device, and each launch is on one. */
TEST_LOOP(lanes, 0, 6)
{
    static const struct { const char *device, *knobs; int depth, batch, run, streams; } cases[] = {
        { "cpu:0-1", "", 12, 2, 2, 6 }, { "cpu:0-2", "depth: 8\nbatch: 4\n", 24, 4, 4, 8 },
        { "cpu:0-2", "depth: 6\nbatch: 4\n", 24, 4, 4, 8 }, { "cpu:0-3", "depth: 1\n", 4, 1, 1, 1 },
        { "cpu:0-1", "depth: 100\n", 256, 32, 32, 8 }, { "cpu:0", "depth: 6\nbatch: 4\n", 6, 4, 1, 6 },
    };
    planned p = on(format("%s\n%s", cases[_i].device, cases[_i].knobs), chain, 0);
    ck_assert_msg(p.pipeline != NULL, "%s", p.errs.n ? p.errs.e[0].msg : "");
    const gp_segment *s = &p.plan->segment[0];
    ck_assert_int_eq(p.plan->nsegments, 1);
    ck_assert_int_eq(s->depth, cases[_i].depth);
    ck_assert_int_eq(s->batch, cases[_i].batch);
    ck_assert_int_eq(s->place.run, cases[_i].run);
    ck_assert_int_eq(s->streams, cases[_i].streams);
    ck_assert_int_eq(s->place.lanes, p.graph->lanes);
    /* Each slot of a ring is some slot of one device, and no two are the same. */
    int each = s->depth / s->place.lanes;
    bool *taken = calloc((size_t)s->depth, sizeof *taken);
    for (uint64_t f = 0; f < (uint64_t)s->depth; f++) {
        int lane = gp_lane(s->place, f), slot = (int)gp_lane_slot(s->place, f, s->depth);
        ck_assert(lane < s->place.lanes && slot < each && !taken[lane * each + slot]);
        ck_assert_int_eq(lane, gp_lane(s->place, f + (uint64_t)s->depth));
        ck_assert_int_eq(lane, gp_lane(s->place, f / (uint64_t)s->batch * (uint64_t)s->batch));
        taken[lane * each + slot] = true;
    }
    free(taken);
}

/* What carries something is on the first device; frames are copied from one device to another. */
TEST_LOOP(segments, 0, 7)
{
    static const struct { const char *device, *stages; int segments, copies_in, copies_peer, copies_out; } cases[] = {
        { "cpu:0-1", "  - {use: src, size: 64}\n  - {use: dev, name: a}\n  - {use: dev, name: b, state: 8}\n"
          "  - {use: dev, name: c}\n  - {use: sink}\n", 3, 1, 2, 1 },
        { "cpu:0", "  - {use: src, size: 64}\n  - {use: dev, name: a}\n  - {use: dev, name: b, state: 8}\n"
          "  - {use: dev, name: c}\n  - {use: sink}\n", 1, 1, 0, 1 },
        { "cpu:0", "  - {use: src, size: 64}\n  - {use: dev, name: a}\n  - {use: dev, name: b, device: cpu:1}\n"
          "  - {use: sink}\n", 2, 1, 1, 1 },
        { "cpu:0", "  - {use: src, size: 64}\n  - {use: dev, name: a, device: cpu:0}\n  - {use: dev, name: b}\n"
          "  - {use: sink}\n", 1, 1, 0, 1 },
        { "cpu:0", "  - {use: src, size: 64}\n  - {use: dev, name: a}\n  - {use: dev, name: b, device: cpu:1, in: a}\n"
          "  - {use: dev, name: c, in: a}\n  - {use: dev, name: d, in: [b, c]}\n  - {use: sink}\n", 3, 1, 2, 1 },
        /* A host stage reads it, too: through a ring of its own. */
        { "cpu:0", "  - {use: src, size: 64}\n  - {use: dev, name: a}\n  - {use: dev, name: b, device: cpu:1, in: a}\n"
          "  - {use: sink, in: a}\n  - {use: sink, in: b}\n", 2, 1, 1, 2 },
        /* Each reader on another device has a copy of its own. */
        { "cpu:0", "  - {use: src, size: 64}\n  - {use: dev, name: a}\n  - {use: dev, name: b, device: cpu:1, in: a}\n"
          "  - {use: dev, name: c, device: cpu:2, in: a}\n  - {use: sink, in: b}\n  - {use: sink, in: c}\n",
          3, 1, 2, 2 },
    };
    planned p = on(cases[_i].device, cases[_i].stages, 0);
    ck_assert_msg(p.pipeline != NULL, "%s", p.errs.n ? p.errs.e[0].msg : "");
    ck_assert_int_eq(p.plan->nsegments, cases[_i].segments);
    ck_assert_int_eq(plan_tasks(&p, GP_TASK_COPY_IN), cases[_i].copies_in);
    ck_assert_int_eq(plan_tasks(&p, GP_TASK_COPY_PEER), cases[_i].copies_peer);
    ck_assert_int_eq(plan_tasks(&p, GP_TASK_COPY_OUT), cases[_i].copies_out);
}

/* GPUs that cannot reach each other's memory, in one direction or another, copy through that of the host. */
TEST_LOOP(no_peers, 0, 6)
{
    static const struct { uint64_t no_peer[3]; int peer, in; } cases[] = {
        { { 0 }, 3, 1 }, { { [1] = 1 << 0 }, 2, 2 }, { { [0] = 1 << 1 }, 3, 1 }, { { [2] = 1 << 0 }, 1, 3 },
        { { [1] = 1 << 0, [2] = 1 << 0 | 1 << 1 }, 0, 4 }, { { [1] = 1 << 1 }, 3, 1 },
    };
    gp_machine m = gpus(3);
    for (int i = 0; i < 3; i++)
        m.device[i].no_peer = cases[_i].no_peer[i];
    /* From cuda:0 to cuda:1, and to cuda:2 twice; in all cases the source is copied in. */
    planned p = plan_on("device: cuda:0\nstages:\n  - {use: src, size: 64}\n  - {use: dev, name: a}\n"
                        "  - {use: dev, name: b, device: cuda:1, in: a}\n"
                        "  - {use: dev, name: c, device: cuda:2, in: a}\n"
                        "  - {use: dev, name: d, in: a}\n  - {use: dev, name: e, device: cuda:2, in: d}\n"
                        "  - {use: sink, in: b}\n  - {use: sink, in: [c, e]}\n", "p.yaml", &m);
    ck_assert_msg(p.pipeline != NULL, "%s", p.errs.n ? p.errs.e[0].msg : "");
    ck_assert_int_eq(plan_tasks(&p, GP_TASK_COPY_PEER), cases[_i].peer);
    ck_assert_int_eq(plan_tasks(&p, GP_TASK_COPY_IN), cases[_i].in);
    ck_assert_uint_eq(p.plan->copy_peer_bytes, 256 * (size_t)cases[_i].peer);
}

/* A depth that is right on one device is right on several, also inside a segment that is on one of them. */
TEST_LOOP(depth_inside, 0, 3)
{
    static const char *const devices[] = { "cpu:0", "cpu:0-1", "cpu:0-2\nbatch: 4" };
    for (int depth = 3; depth < 8; depth++) {
        char *text = format("%s\nbuffers: {a: {depth: %d}, b: {depth: %d}, c: {depth: %d}, s: {depth: %d}, d: {depth: %d}}",
                 devices[_i], depth, depth, depth, depth, depth);
        planned p = on(text, "  - {use: src, name: s, size: 64}\n  - {use: dev, name: a}\n  - {use: dev, name: b, state: 8}\n"
                       "  - {use: dev, name: c, state: 8}\n  - {use: dev, name: d}\n  - {use: sink}\n", 0);
        ck_assert_msg(p.pipeline != NULL, "depth %d: %s", depth, p.errs.n ? p.errs.e[0].msg : "");
    }
}

/* What is regrouped on the device, and read there and on the host, has as many slots on both sides. */
TEST_LOOP(regrouped_for_both, 0, 5)
{
    static const char *const devices[] = { "cpu:0", "cuda:0", "cpu:0-1", "cpu:0\ndepth: 1", "cpu:0\ndepth: 7" };
    planned p = on(devices[_i], "  - {use: src, size: 5}\n  - {use: dev, name: a, state: 8}\n  - {use: split, name: s}\n"
                   "  - {use: dev, name: b}\n  - {use: sink}\n  - {use: sink, in: s}\n", 1);
    ck_assert_msg(p.pipeline != NULL, "%s", p.errs.n ? p.errs.e[0].msg : "");
    int on_device = plan_ring(&p, "s", true), on_host = plan_ring(&p, "s", false);
    ck_assert(on_device >= 0 && on_host >= 0);
    ck_assert_int_eq(p.plan->ring[on_device].depth, p.plan->ring[on_host].depth);
}

/* Memory is counted where it is. */
TEST(memory)
{
    gp_machine m = gpus(2);
    m.device[1].memory = 1 << 20;
    const char text[] = "device: cuda:0\nstages: [{use: src, size: 400000}, {use: dev, device: cuda:1}, {use: sink}]";
    planned p = plan_on(text, "p.yaml", &m);
    ck_assert_ptr_null(p.pipeline);
    ck_assert_int_eq((int)p.errs.e[0].code, GP_E_RESOURCE);
    ck_assert_msg(strstr(p.errs.e[0].msg, "of memory on cuda:1; there are 1.0 MiB") != NULL, "%s", p.errs.e[0].msg);
    m.device[1].memory = m.device[0].memory, m.device[0].memory = 1 << 20;
    p = plan_on(text, "p.yaml", &m);
    ck_assert_ptr_nonnull(p.pipeline);
    ck_assert_str_eq(p.graph->device_name, "cuda:1");
    ck_assert_uint_eq(p.plan->on_device[0], p.plan->device_bytes);
}

/* A device that no stage is on is not one of the plan's; nor has one a constant that no stage there reads. */
TEST_LOOP(unused, 0, 6)
{
    static const struct { const char *device, *a, *b, *names; int on[2], konst, lanes; } cases[] = {
        { "cpu:0", ", device: cpu:2", ", device: cpu:1", "cpu:2, cpu:1", { 0, 1 }, 1, 1 },
        { "cpu:0", "", ", device: cpu:1", "cpu:0, cpu:1", { 0, 1 }, 1, 1 },
        { "cpu:0-3", ", device: cpu:3", ", device: cpu:1", "cpu:1, cpu:3", { 1, 0 }, 0, 1 },
        { "cpu:0-1", ", device: cpu:1", "", "cpu:0, cpu:1", { 1, 0 }, 0, 2 },
        { "[cpu:4, cpu:0]", ", device: cpu:0", ", device: cpu:0", "cpu:0", { 0, 0 }, 0, 1 },
        { "cpu:0-2", "", ", state: 8", "cpu:0, cpu:1, cpu:2", { 0, 0 }, 0, 1 },
    };
    char *stages = format("  - {use: src, size: 64}\n  - {use: dev, name: a%s}\n"
                          "  - {use: dev, name: b, in: [a, k]%s}\n"
                          "  - {use: sink}\nbuffers: {k: {const: tests/golden/dark.npy}}\n", cases[_i].a, cases[_i].b);
    planned p = on(cases[_i].device, stages, 0);
    ck_assert_msg(p.pipeline != NULL, "%s", p.errs.n ? p.errs.e[0].msg : "");
    ck_assert_str_eq(p.graph->device_name, cases[_i].names);
    ck_assert_int_eq(p.plan->segment[plan_segment(&p, "a")].place.index, cases[_i].on[0]);
    ck_assert_int_eq(p.plan->segment[plan_segment(&p, "b")].place.index, cases[_i].on[1]);
    const gp_place k = p.plan->extra[p.plan->konst[1][plan_buffer(&p, "k")]].place;
    ck_assert_int_eq(k.index, cases[_i].konst);
    ck_assert_int_eq(k.lanes, cases[_i].lanes);
}

TEST(persistent)
{
    planned p = on("cpu:0-1\nlaunch: persistent", chain, 0);
    ck_assert_ptr_null(p.pipeline);
    ck_assert_msg(strstr(p.errs.e[0].msg, "'launch: persistent' runs on one device") != NULL, "%s", p.errs.e[0].msg);
}

TEST_SUITE(devices, NULL, NULL, 0)
