/* verdict.c - what bounds a run, and the one edit to try first.
 *
 * Rules over the numbers of a report, each of which would be wrong if an earlier one
 * held:
 *
 *   short     too few frames to tell
 *   turns     one thread of the program pushes a frame and waits until it comes out
 *   rate      a source waits for its pace, or for what feeds it, more than for room
 *             behind it: all the others keep up
 *   cores     all cores are busy, also by other processes, or a kernel is at work on the
 *             CPU for each: more threads gain nothing, whoever needs them
 *   waitless  a host stage or launcher that goes on to the end and hardly ever waits for
 *             anybody: all others wait for it, however busy they look meanwhile
 *   busiest   the host stage, launcher, set of streams or measured engine that is hardly
 *             ever without work
 *   kernels   the GPU was not measured, and a launcher waits with nothing else to blame
 *   streams   none of these is; a launcher waits for a stream
 *   cycle     none of these is; on a cycle a stage waits for what is carried, and has all else
 *   depth     none of these is; on one side of a buffer an actor waits for room, on the
 *             other one for frames, and the buffer is not yet so deep that more would be no help
 *
 * Every edit can help, so that applying one after the other comes to an end. Pure. The edits are
 * in verdict_edit.c, the rule of the cores in verdict_cores.c, that of turns in verdict_thread.c; what `--set` would refuse is never
 * an edit. */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include "base/plural.h"
#include "api/forms.h"
#include "report/verdict.h"

enum { FEW = 10, SHORT_NS = 100000000, SHORT_SIMULATED_NS = 5000000 };       /* a run begins and ends, for some ms */

static const double PACED = 0.1;       /* a source that waits so much of the run is paced */
static const double BUSY = 0.85;       /* hardly ever without work */
static const double SELDOM = 0.05;     /* who waits so little always has a frame and room */
static const double MOSTLY = 0.5;      /* who works less is held up by what was not measured */
static const double LATE = 0.9;        /* who ended before has no part in the rest of the run */
static const double TURNS = 0.1;       /* both sides of a buffer wait so much: they take turns */
static const double SLOW = 0.5;        /* of what copies reach alone: they are small */
enum { ENOUGH_TIMES = 3 };             /* so many slots for each frame that can be worked on */

/* ---- words ------------------------------------------------------------ */

void gp_verdict_say(gp_judging *j, const char *fmt, ...)
{
    char *text = j->r->verdict.text;
    size_t n = strlen(text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + n, sizeof j->r->verdict.text - n, fmt, args);
    va_end(args);
}

/* ---- the rules -------------------------------------------------------- */

void gp_verdict_found(gp_judging *j, gp_bound bound, int actor)
{
    j->r->verdict.bound = bound, j->r->verdict.actor = actor;
}

static bool too_short(gp_judging *j)
{
    for (int i = 0; i < j->r->nactors; i++)
        if (j->r->actor[i].frames > j->frames)
            j->frames = j->r->actor[i].frames;
    if (j->frames >= FEW && j->r->wall_ns >= (j->r->simulated ? SHORT_SIMULATED_NS : SHORT_NS))
        return false;
    uint64_t frames = 0;               /* of the source that made most */
    for (int i = 0; i < j->r->nactors; i++) {
        const gp_actor_report *p = &j->r->actor[i];
        if (p->stage >= 0 && !j->g->stage[p->stage].nin && p->frames > frames)
            frames = p->frames;
    }
    double ms = 1e-6 * (double)j->r->wall_ns;
    say(j, "too short to tell what bounds it: %" PRIu64 " frame%s in %.3g %s", frames, gp_plural((int64_t)frames),
        ms < 1000 ? ms : ms / 1000, ms < 1000 ? "ms" : "s");
    return true;
}

/* Does it exchange something with other ranks? A sink does in whose file all write. */
static bool meets_ranks(const gp_judging *j, const gp_stage *s)
{
    return j->g->ranks > 1 && (s->kind->collective || (s->joins && s->shared));
}

/* What is busiest, in words; nothing, if none is. */
static void busiest_text(const gp_judging *j, gp_candidate c, char *buf, size_t bytes)
{
    bool engine = c.bound >= GP_BOUND_COPY_IN && c.bound <= GP_BOUND_COPY_PEER;
    *buf = '\0';
    if (c.actor >= 0)
        snprintf(buf, bytes, "%s%s'%.60s', %d %%", engine ? gp_bound_name(c.bound) : "",
                 engine ? " of " : c.bound == GP_BOUND_LAUNCH ? "the launcher of "
                 : c.bound == GP_BOUND_STREAMS ? "the streams of " : "stage ",
                 j->r->actor[c.actor].name, percent(c.part));
}

/* From one rank alone it cannot be told whether another comes late or the exchange itself takes that time: rank 0 does,
 * which hears of all. */
static void blame_meeting(gp_judging *j, int actor)
{
    const gp_actor_report *p = &j->r->actor[actor];
    gp_verdict *v = &j->r->verdict;
    v->waits = true, v->meets = gp_part_of_run(j, p->idle_ns);
    gp_exchange_less(j, &j->g->stage[p->stage], v->less, sizeof v->less);
    busiest_text(j, gp_busiest(j, actor), v->busiest, sizeof v->busiest);
    say(j, "bound by stage '%.60s', where ranks meet (%d %% of the time it waits for others%s", p->name, percent(v->meets),
        j->r->simulated ? "" : " and exchanges with them");
    gp_say_machine(j, ")");
    if (j->r->simulated)               /* all are as fast there, and an exchange counts as busy */
        say(j, ": ranks are late in turns, so let what each does before it take as long for all frames");
}

static bool is_paced(gp_judging *j)
{
    int best = -1;
    for (int i = 0; i < j->r->nactors; i++) {
        const gp_actor_report *p = &j->r->actor[i];
        int64_t waits = gp_shares_thread(j, i) ? j->asks_ns : p->wait_out_ns;
        if (gp_part_of_run(j, gp_idle(j, i)) >= PACED && gp_idle(j, i) > waits
            && (best < 0 || gp_idle(j, i) > gp_idle(j, best)))
            best = i;
    }
    if (best < 0)
        return false;
    const gp_actor_report *p = &j->r->actor[best];
    const gp_stage *s = &j->g->stage[p->stage];
    double hertz = s->known.hertz;
    bool meets = hertz <= 0 && meets_ranks(j, s);
    if (meets && gp_busiest(j, best).part >= gp_part_of_run(j, p->idle_ns))
        return false;                  /* which the others may wait for, too */
    gp_verdict_found(j, GP_BOUND_RATE, best);
    if (meets) {
        blame_meeting(j, best);
        return true;
    }
    if (gp_shares_thread(j, best)) {
        gp_blame_thread(j, best);
        return true;
    }
    say(j, "bound by %s '%.60s', which ", s->nin ? "stage" : "source", p->name);
    if (hertz > 0)
        say(j, "keeps a rate of %.6g Hz", hertz);
    else
        say(j, "waits for %s", s->nin ? "who takes what it writes" : "its input");
    say(j, " (idle %d %%", percent(gp_part_of_run(j, p->idle_ns)));
    gp_say_machine(j, ")");
    if (hertz > 0)
        gp_try_unpaced(j, p);
    else
        say(j, ": %s to be faster", s->nin ? "that has" : "what feeds it has");
    return true;
}

/* A stage has more workers than there can be frames in it. */
static void blame_depth(gp_judging *j, gp_candidate c)
{
    const gp_actor_report *p = &j->r->actor[c.actor];
    int depth = gp_least_depth(j, c.actor);
    gp_verdict_found(j, GP_BOUND_DEPTH, c.actor);
    say(j, "bound by the depth around stage '%.60s' (%d). Only %d of its %d workers can have a "
        "frame, and %s %d %% busy", p->name, depth, depth, p->workers,
        depth == 1 ? "is" : "are", percent(c.part));
    gp_say_machine(j, "");
    gp_try_deeper(j, c.actor, -1, 2);
}

/* A stage of an actor that is on a cycle by way of a carried buffer, or NULL. */
static const gp_stage *on_cycle(const gp_judging *j, int actor)
{
    const gp_actor_report *p = &j->r->actor[actor];
    const gp_segment *s = p->segment >= 0 ? &j->plan->segment[p->segment] : NULL;
    for (int i = 0; i < (s ? s->ntasks : 1); i++) {
        int stage = s ? j->plan->task[s->task[i]].stage : p->stage;
        if (stage >= 0 && j->g->stage[stage].cycle)
            return &j->g->stage[stage];
    }
    return NULL;
}

static const char *carried_on(const gp_judging *j, int cycle)
{
    int i = 0;
    while (!j->g->stage[i].closes || j->g->stage[i].cycle != cycle)
        i++;
    return j->g->stage[i].name;
}

static void blame_cycle(gp_judging *j, int actor, const char *carried, double part)
{
    gp_verdict_found(j, GP_BOUND_CYCLE, actor);
    say(j, "bound by the cycle of the carried buffer '%.60s', whose stages take one frame after the other ('%.60s' waits "
        "for the frame before %d %% of the time", carried, j->r->actor[actor].name, percent(part));
    gp_say_machine(j, "): make them faster, or take out of it what does not need the frame before");
}

/* For those whose busy share alone does not show that they are the bound. */
static const char *waitless(const gp_judging *j, gp_candidate c)
{
    return c.part < BUSY && gp_waiting(j, c.actor) <= SELDOM ? ", hardly ever waiting" : "";
}

static void blame_stage(gp_judging *j, gp_candidate c)
{
    const gp_actor_report *p = &j->r->actor[c.actor];
    if (p->workers > gp_workers_able(j, c.actor)) {
        blame_depth(j, c);
        return;
    }
    bool collective = j->g->stage[p->stage].kind->collective;
    say(j, "bound by %sstage '%.60s' (%s", collective ? "the collective " : "", p->name, collective ? "" : "host, ");
    if (p->workers > 1)
        say(j, "%d workers, ", p->workers);
    say(j, "%d %% busy%s", percent(c.part), waitless(j, c));
    gp_say_machine(j, ")");
    if (j->g->stage[p->stage].kind->on_loan)           /* more workers help if it has more threads, too */
        say(j, ": what the program does while it has a frame of it has to be faster");
    else if (p->most_workers > p->workers)
        gp_try_workers(j, c);
    else
        gp_try_less(j, p);
}

static void blame_launcher(gp_judging *j, gp_candidate c)
{
    const gp_actor_report *p = &j->r->actor[c.actor];
    double us = p->launches ? 1e-3 * (double)p->busy_ns / (double)p->launches : 0;
    double each = p->launches ? (double)p->frames / (double)p->launches : 0;
    say(j, "bound by launching '%.60s' (%d %% busy%s", p->name, percent(c.part), waitless(j, c));
    gp_say_machine(j, "). A launch");
    if (j->plan->segment[p->segment].regroups < 0)
        say(j, " of %.3g frame%s", each, each == 1 ? "" : "s");
    say(j, " takes %.3g us", us);
    if (j->g->launch == GP_LAUNCH_STREAM)
        gp_try_word(j, NULL, NULL, "launch", "graph");
    else if (!gp_try_batch(j, p))
        say(j, ": put more into a frame");
}

static void blame_threads(gp_judging *j, gp_candidate c)
{
    const gp_actor_report *p = &j->r->actor[c.actor];
    const gp_segment *s = &j->plan->segment[p->segment];
    say(j, "bound by the %d stream%s of '%.60s' (threads on the CPU, %d %% busy", s->streams,
        gp_plural(s->streams), p->name, percent(c.part));
    gp_say_others(j);
    say(j, "). %.1f of %d core%s are idle", gp_cores_free(j), j->r->cpus, gp_plural(j->r->cpus));
    int want = s->streams + (int)(gp_cores_free(j) + 0.5);
    if (s->streams < s->depth / s->place.lanes) {
        gp_try_streams(j, s, want);
    } else {
        gp_verdict_found(j, GP_BOUND_DEPTH, c.actor);
        say(j, ", and depth %d lets no more frames be in flight", s->depth);
        gp_try_deeper(j, c.actor, -1, gp_times_for(s->depth, want));
    }
}

/* The copy to or from device `on` that moves most bytes of a buffer, and that buffer, which is said; NULL: there is
 * none. */
static const gp_task *say_largest(gp_judging *j, gp_task_kind way, int on, const gp_buffer **buffer)
{
    const gp_task *best = NULL;
    double most = 0;
    char type[128];
    for (int i = 0; i < j->plan->ntasks; i++) {
        const gp_task *t = &j->plan->task[i];
        gp_place place = t->segment >= 0 ? j->plan->segment[t->segment].place : (gp_place){ .index = -1 };
        for (int k = 0; t->op == way && on >= place.index && on < place.index + place.lanes && k < t->nin; k++) {
            int b = j->plan->ring[t->in[k]].buffer;
            double bytes = b < 0 ? 0 : (double)gp_bytes(&j->g->buffer[b].type) * (double)j->g->buffer[b].rate;
            if (bytes > most)
                most = bytes, best = t, *buffer = &j->g->buffer[b];
        }
    }
    if (best)
        say(j, ". Most of it is buffer '%.60s', %s", (*buffer)->name, gp_type_text(&(*buffer)->type, type));
    return best;
}

/* "bound by the kernels of 'clean' on cuda:1", which of several devices it is on: all that the segment is on. */
static void say_bound(gp_judging *j, const char *what, const gp_actor_report *p, const char *does)
{
    char place[24];
    say(j, "bound by the %s '%.60s'%s", what, p->name, does);
    if (j->g->ndevices > 1)
        say(j, " on %s", gp_place_text(j->plan, j->plan->segment[p->segment].place, place));
}

static void say_reduce(gp_judging *j, const gp_buffer *b)
{
    say(j, gp_dtype_size(b->type.dtype) > 1 ? ": cast it to a smaller type, or reduce it, before it is copied"
                                            : ": reduce it before it is copied");
}

/* Less than half of what copies reach alone: they are too small. */
static bool is_slow(const gp_judging *j, const gp_engine_report *e)
{
    return e->limit > 0 && 1e9 * (double)e->bytes / (double)j->r->wall_ns < SLOW * e->limit;
}

static void blame_copies(gp_judging *j, gp_candidate c)
{
    const gp_engine_report *e = &j->r->engine[c.bound - GP_BOUND_COPY_IN];
    const gp_actor_report *p = &j->r->actor[c.actor];
    bool in = c.bound == GP_BOUND_COPY_IN;
    say_bound(j, in ? "copy in of" : "copy out of", p, "");
    say(j, " (%s%d %% busy, %.3g", e->measured ? "" : "~", percent(c.part), (double)e->bytes / (double)j->r->wall_ns);
    if (e->limit > 0)
        say(j, " of %.3g", e->limit / 1e9);
    say(j, " GB/s)");
    if (is_slow(j, e) && gp_try_batch(j, p))
        return;
    const gp_buffer *buffer;
    if (!say_largest(j, in ? GP_TASK_COPY_IN : GP_TASK_COPY_OUT, e->on, &buffer))
        return;
    if (!in)
        say_reduce(j, buffer);
    else
        say(j, gp_dtype_size(buffer->type.dtype) > 1 ? ": send it in a smaller type, and cast it on the device"
                                                     : ": send less of it");
}

/* The first stage of the copy's segment that reads what it brings. */
static const gp_stage *reader_of(const gp_judging *j, const gp_task *copy)
{
    const gp_segment *s = &j->plan->segment[copy->segment];
    for (int i = 0; i < s->ntasks; i++) {
        const gp_task *t = &j->plan->task[s->task[i]];
        for (int k = 0; t->op == GP_TASK_STAGE && k < t->nin; k++)
            if (t->in[k] == copy->out[0])
                return &j->g->stage[t->stage];
    }
    return NULL;
}

/* Where what is read is made on one device, its reader can go there, too; where it is made on all, a reader that is on
 * one because the file says so. */
static void try_beside(gp_judging *j, const gp_task *copy, const gp_buffer *b)
{
    const gp_stage *st = reader_of(j, copy);
    gp_verdict *v = &j->r->verdict;
    gp_place from = j->plan->ring[copy->in[0]].place;
    bool one = from.lanes == 1, held = gp_stage_in_order(st) || st->regroups || st->cycle;
    if (!one && (held || st->placed < 0)) {
        say_reduce(j, b);
        return;
    }
    say(j, ": place '%.60s' beside '%.60s'", st->name, b->name);
    if (!one) {
        say(j, ", on all devices: take 'device' out of it");
        return;
    }
    const char *name = j->g->device[from.index].name;
    say(j, ", with device: %s", name);
    if (!st->nparts && !st->cycle
        && snprintf(v->path, sizeof v->path, "stages.%s.device", st->name) < (int)sizeof v->path)
        snprintf(v->value, sizeof v->value, "%s", name);
    else
        v->path[0] = '\0';
}

static void blame_peers(gp_judging *j, gp_candidate c)
{
    const gp_engine_report *e = &j->r->engine[GP_ENGINE_COPY_PEER];
    const gp_actor_report *p = &j->r->actor[c.actor];
    const gp_buffer *buffer;
    say_bound(j, "peer copies of", p, "");
    say(j, " (%s%d %% busy, %.3g GB/s)", e->measured ? "" : "~", percent(c.part),
        (double)e->bytes / (double)j->r->wall_ns);
    const gp_task *copy = say_largest(j, GP_TASK_COPY_PEER, e->on, &buffer);
    if (copy)
        try_beside(j, copy, buffer);
}

/* The direction in which kernels move most of what the link to the host can, as a part of that: they read and write the
 * host's memory, in place of a copy engine. NULL: none. */
static const gp_engine_report *busiest_link(const gp_judging *j, int on, double *part)
{
    const gp_engine_report *best = NULL;
    *part = 0;
    for (int i = 0; i < j->r->nall; i++) {
        const gp_engine_report *x = &j->r->all[i];
        double rate = 1e9 * (double)(x->bytes + x->by_kernels) / (double)j->r->wall_ns;
        if (x->on == on && x->by_kernels && x->limit > 0 && rate / x->limit > *part)
            best = x, *part = rate / x->limit;
    }
    return best;
}

static bool has_one_stream(const gp_segment *s)
{
    return s->streams == 1 && s->depth > s->place.lanes;
}

/* What holds kernels of several streams is the link to the host, where they move more than half of what it can. */
static bool blame_link(gp_judging *j, gp_candidate c)
{
    const gp_engine_report *e = &j->r->engine[GP_ENGINE_COMPUTE];
    double part;
    const gp_engine_report *link = busiest_link(j, e->on, &part);
    const gp_actor_report *p = &j->r->actor[c.actor];
    const gp_buffer *buffer;
    if (!link || part < SLOW || has_one_stream(&j->plan->segment[p->segment]))
        return false;
    bool in = !strcmp(link->name, gp_bound_name(GP_BOUND_COPY_IN));
    say_bound(j, "link to the host, over which the kernels of", p, in ? " read its memory" : " write its memory");
    say(j, " (");
    if (e->measured)
        say(j, "compute %d %% busy, ", percent(c.part));
    say(j, "%.3g of %.3g GB/s)", part * link->limit / 1e9, link->limit / 1e9);
    if (say_largest(j, in ? GP_TASK_COPY_IN : GP_TASK_COPY_OUT, e->on, &buffer))
        say(j, ": use a smaller type, or less of it");
    return true;
}

static void blame_kernels(gp_judging *j, gp_candidate c)
{
    if (blame_link(j, c))
        return;
    const gp_engine_report *e = &j->r->engine[GP_ENGINE_COMPUTE];
    const gp_actor_report *p = &j->r->actor[c.actor];
    const gp_segment *s = &j->plan->segment[p->segment];
    say_bound(j, "kernels of", p, "");
    if (e->measured)
        say(j, " (compute %d %% busy)", percent(c.part));
    else
        say(j, ", as far as can be told when the GPU is not measured: nothing else is busy");
    double part;
    if (busiest_link(j, e->on, &part) && part * 100 >= 1)
        say(j, ", which move %d %% of what the link to the host can", percent(part));
    if (has_one_stream(s))
        gp_try_streams(j, s, 2);
    else
        say(j, ": a trace shows how long each of them takes");
}

/* A launcher that queues more than the device does is busy, too: it waits inside of a launch. */
static gp_candidate behind_launches(const gp_judging *j, gp_candidate c)
{
    for (int e = 0; c.bound == GP_BOUND_LAUNCH && e < GP_ENGINES && !j->plan->unified; e++) {
        const gp_engine_report *x = &j->r->engine[e];
        double part = gp_part_of_run(j, x->busy_ns);
        if (x->used && x->measured && part >= BUSY && gp_main_segment(j, (gp_engine)e, x->on) == c.actor)
            return (gp_candidate){ (gp_bound)(GP_BOUND_COPY_IN + e), c.actor, part };
    }
    return c;
}

static void blame(gp_judging *j, gp_candidate c)
{
    c = behind_launches(j, c);
    const gp_stage *st = c.bound == GP_BOUND_STREAMS ? on_cycle(j, c.actor) : NULL;
    if (st && st->circles) {           /* its streams wait for each other */
        blame_cycle(j, c.actor, carried_on(j, st->cycle), c.part);
        return;
    }
    gp_verdict_found(j, c.bound, c.actor);
    switch (c.bound) {
    case GP_BOUND_STAGE:    blame_stage(j, c); break;
    case GP_BOUND_LAUNCH:   blame_launcher(j, c); break;
    case GP_BOUND_STREAMS:  blame_threads(j, c); break;
    case GP_BOUND_COPY_IN:
    case GP_BOUND_COPY_OUT: blame_copies(j, c); break;
    case GP_BOUND_COPY_PEER: blame_peers(j, c); break;
    default:                blame_kernels(j, c); break;
    }
}

static bool never_waits(gp_judging *j)
{
    gp_candidate best = { GP_BOUND_UNKNOWN, -1, 0 };
    for (int i = 0; i < j->r->nactors; i++)
        if (gp_waiting(j, i) <= SELDOM && gp_part_of_run(j, j->r->actor[i].end_ns) >= LATE)
            gp_consider(&best, gp_working(j, i));
    if (best.part < MOSTLY)
        return false;
    blame(j, best);
    return true;
}

/* A short run is not busy all the time: it begins and ends. */
static bool is_busiest(gp_judging *j)
{
    gp_candidate c = gp_busiest(j, -1);
    double n = (double)j->frames;
    if (c.part < BUSY * n / (n + j->r->nactors))
        return false;
    blame(j, c);
    return true;
}

/* A buffer behind an actor is more full than empty: its reader holds it up. */
static bool is_held_up(const gp_judging *j, int actor)
{
    for (int i = 0; i < j->r->nbuffers; i++)
        if (j->r->buffer[i].from == actor && gp_fullness(j, &j->r->buffer[i]) > 0.5)
            return true;
    return false;
}

/* Enough frames are in flight to overlap all that a frame does, and still the launcher
 * waits, and not for those behind it: what is not measured is busy. */
static bool must_be_kernels(gp_judging *j)
{
    enum { OVERLAPPED = 3 };
    const gp_engine_report *e = &j->r->engine[GP_ENGINE_COMPUTE];
    int i = gp_main_segment(j, GP_ENGINE_COMPUTE, e->on);
    if (i < 0 || j->plan->unified || !e->used || e->measured)
        return false;
    const gp_actor_report *p = &j->r->actor[i];
    if (j->plan->segment[p->segment].streams < OVERLAPPED
        || gp_part_of_run(j, p->wait_out_ns + p->wait_stream_ns) < 2 * GP_HELD_UP || is_held_up(j, i))
        return false;
    blame(j, (gp_candidate){ GP_BOUND_COMPUTE, i, 0 });
    return true;
}

/* On the CPU streams are threads, and more of them than cores gain nothing. */
static bool may_have_streams(const gp_judging *j, const gp_segment *s)
{
    return s->streams < s->depth / s->place.lanes && !(j->plan->unified && s->streams >= j->r->cpus);
}

static bool are_streams_few(gp_judging *j)
{
    int best = -1;
    for (int i = 0; i < j->r->nactors; i++) {
        const gp_actor_report *p = &j->r->actor[i];
        if (p->segment >= 0 && gp_part_of_run(j, p->wait_stream_ns) >= GP_HELD_UP
            && may_have_streams(j, &j->plan->segment[p->segment])
            && (best < 0 || p->wait_stream_ns > j->r->actor[best].wait_stream_ns))
            best = i;
    }
    if (best < 0)
        return false;
    const gp_actor_report *p = &j->r->actor[best];
    const gp_segment *s = &j->plan->segment[p->segment];
    const gp_stage *st = on_cycle(j, best);
    double most = gp_busiest(j, -1).part;
    if (st && st->circles) {
        blame_cycle(j, best, carried_on(j, st->cycle), gp_part_of_run(j, p->wait_stream_ns));
        return true;
    }
    gp_verdict_found(j, GP_BOUND_STREAMS, best);
    say(j, "bound by the %d stream%s of '%.60s' (%d %% of the time none is free", s->streams,
        gp_plural(s->streams), p->name, percent(gp_part_of_run(j, p->wait_stream_ns)));
    gp_say_machine(j, ")");
    gp_try_streams(j, s, most > 0 ? (int)(s->streams / most + 0.999) : 0);
    return true;
}

/* The part of one worker's time. */
static double waits(const gp_judging *j, const gp_actor_report *p, int64_t ns)
{
    return gp_part_of_run(j, ns) / (p->workers > 0 ? p->workers : 1);
}

/* How much a buffer makes those on its two sides take turns. A host stage that waits for
 * room waits for the fullest of its buffers; a segment may wait until one of its own
 * frames is done, while the buffer behind it is empty. */
static double turns(const gp_judging *j, const gp_buffer_report *b)
{
    const gp_actor_report *from = &j->r->actor[b->from], *to = &j->r->actor[b->to];
    double out = waits(j, from, from->wait_out_ns), in = waits(j, to, to->wait_in_ns);
    double least = out < in ? out : in;
    return least < TURNS ? 0 : from->segment >= 0 ? least : least * gp_fullness(j, b);
}

/* Frames that an actor can work on at a time. */
static int at_work(const gp_judging *j, int actor)
{
    const gp_actor_report *p = &j->r->actor[actor];
    return p->segment >= 0 ? j->plan->segment[p->segment].streams : p->workers > 0 ? p->workers : 1;
}

/* Another buffer for which the reader of `full` waits; NULL: there is none. */
static const gp_buffer_report *starving(const gp_judging *j, const gp_buffer_report *full)
{
    for (int i = 0; i < j->r->nbuffers; i++) {
        const gp_buffer_report *b = &j->r->buffer[i];
        if (b != full && b->to == full->to && gp_fullness(j, b) < gp_fullness(j, full) / 2)
            return b;
    }
    return NULL;
}

/* Room for all frames that both sides can work on, and more to even out how they do it: where
 * they take turns for all that, what they share is not this buffer. One that is full while
 * its reader waits for another way has to hold what can be on that way, in its own frames. */
static bool is_deep(const gp_judging *j, const gp_buffer_report *b)
{
    double made = at_work(j, b->from) * (double)gp_made_at_once(j, b), rate = (double)j->g->buffer[b->buffer].rate;
    double taken = at_work(j, b->to) * (double)gp_taken_at_once(j, b), others = 0;
    double enough = ENOUGH_TIMES * (made + taken) + gp_kept(j, b);
    for (int i = 0; i < j->r->nbuffers && starving(j, b); i++)
        if (j->r->buffer[i].buffer != b->buffer)
            others += j->r->buffer[i].depth * rate / (double)j->g->buffer[j->r->buffer[i].buffer].rate;
    return b->depth > (others > enough ? others : enough);
}

/* On the host, or across: who reads what is carried waits, and has a frame of all else. */
static bool is_cycle(gp_judging *j)
{
    int best = -1;
    double most = TURNS;
    for (int i = 0; i < j->r->nbuffers; i++) {
        const gp_buffer_report *b = &j->r->buffer[i];
        double in = waits(j, &j->r->actor[b->to], j->r->actor[b->to].wait_in_ns);
        if (!j->g->buffer[b->buffer].carried || !on_cycle(j, b->to) || in < most)
            continue;
        for (int k = 0; k < j->r->nbuffers; k++)
            if (j->r->buffer[k].to == b->to && k != i && gp_fullness(j, &j->r->buffer[k]) > 0.5)
                most = in, best = i;
    }
    if (best >= 0)
        blame_cycle(j, j->r->buffer[best].to, j->r->buffer[best].name, most);
    return best >= 0;
}

static bool is_shallow(gp_judging *j)
{
    int best = -1;
    double most = 0;
    for (int i = 0; i < j->r->nbuffers; i++)
        if (turns(j, &j->r->buffer[i]) > most && !is_deep(j, &j->r->buffer[i]))
            most = turns(j, &j->r->buffer[i]), best = i;
    if (best < 0)
        return false;
    const gp_buffer_report *b = &j->r->buffer[best], *other = starving(j, b);
    const gp_actor_report *from = &j->r->actor[b->from], *to = &j->r->actor[b->to];
    gp_verdict_found(j, GP_BOUND_DEPTH, b->to);
    j->r->verdict.buffer = best;
    say(j, "bound by the depth of buffer '%.60s' (%d", b->name, b->depth);
    gp_say_machine(j, "");
    if (other) {
        say(j, "). It is full while '%.60s' waits for '%.60s'", to->name, other->name);
        gp_try_depth(j, best);
        return true;
    }
    say(j, "). '%.60s' waits for room %d %% of the time, '%.60s' for frames %d %%", from->name,
        percent(waits(j, from, from->wait_out_ns)), to->name,
        percent(waits(j, to, to->wait_in_ns)));
    gp_try_deeper(j, from->segment >= 0 ? b->from : to->segment >= 0 ? b->to : -1, best, 2);
    return true;
}

static void give_up(gp_judging *j)
{
    char text[96];
    busiest_text(j, gp_busiest(j, -1), text, sizeof text);
    say(j, "nothing stands out as what bounds it%s%s", *text ? ": the busiest is " : "", text);
}

static void find_bound(gp_judging *j)
{
    gp_report *r = j->r;
    gp_follow_thread(j);
    if (gp_takes_turns(j) || is_paced(j)) /* others do not hold it back */
        return;
    gp_say_crowd(j);
    char *first = r->verdict.text + strlen(r->verdict.text);
    if (!gp_are_cores_busy(j) && !never_waits(j) && !is_busiest(j) && !must_be_kernels(j) && !are_streams_few(j)
        && !is_cycle(j) && !is_shallow(j))
        give_up(j);
    if (first > r->verdict.text)
        *first = (char)toupper((unsigned char)*first);
}

void gp_verdict_find(gp_report *r, const gp_pipeline *p)
{
    gp_judging j = { .r = r, .g = gp_pipeline_graph(p), .plan = gp_pipeline_plan(p) };
    char late[GP_LATE_TEXT];
    r->verdict = (gp_verdict){ .actor = -1, .buffer = -1 };
    if (!too_short(&j))
        find_bound(&j);
    if (gp_late_text(&r->late, j.g->latency_ns, gp_plan_depth(j.plan), late))
        say(&j, ". %s", late);
}
