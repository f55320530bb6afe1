/* rates.c - how often each stage fires, and how many slots buffers between stages of different rates need.
 *
 * A stage fires as often as the frames of its inputs let it. Rates of stages that one source reaches, or sources
 * that are joined somewhere, are fixed multiples of each other; the rates of all others are independent. The first
 * stage of each such component has rate 1 until all are known, then all are made whole numbers. */
#include <string.h>
#include "compile/firing.h"
#include "compile/resolve.h"

enum { RATE_MAX = 1 << 20 };

typedef struct ratio { int64_t num, den; } ratio;

typedef struct rating {
    gp_graph *g;
    gp_errs *errs;
    int *up;                   /* of each stage: nearer to the one that stands for its component, or itself */
    ratio *of;                 /* of each stage: its rate, by that of up[] */
} rating;

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t c = a % b;
        a = b, b = c;
    }
    return a;
}

/* 0/0 where it does not fit. */
static ratio times(ratio a, ratio b)
{
    int64_t x = gcd(a.num, b.den), y = gcd(b.num, a.den);
    ratio r;
    if (!x || !y || __builtin_mul_overflow(a.num / x, b.num / y, &r.num)
        || __builtin_mul_overflow(a.den / y, b.den / x, &r.den))
        return (ratio){ 0, 0 };
    return r;
}

static ratio inverse(ratio a)
{
    return (ratio){ a.den, a.num };
}

/* The stage that stands for the component of stage v; *r: v's rate by that one's. */
static int find(rating *w, int v, ratio *r)
{
    int top = v;
    ratio all = { 1, 1 };
    for (; w->up[top] != top; top = w->up[top])
        all = times(all, w->of[top]);
    *r = all;
    while (w->up[v] != top && v != top) {      /* so that no way is long for the next */
        int next = w->up[v];
        ratio rest = times(all, inverse(w->of[v]));
        w->up[v] = top, w->of[v] = all;
        v = next, all = rest;
    }
    return top;
}

static bool too_far(rating *w, const gp_stage *st)
{
    return AT(w, st->at, "stage '%s' makes more than %d frames for each frame of its sources, or one for more than "
              "that; regroup by smaller numbers on the way to it", st->name, RATE_MAX);
}

/* What port p of `st` reads, by a name of the file: a window has the rate of what it is one of. */
static const char *read_at(const rating *w, const gp_stage *st, int p)
{
    const gp_buffer *b = &w->g->buffer[st->in[p]];
    return b->hidden ? read_at(w, &w->g->stage[b->producer.stage], 0) : b->name;
}

static bool differ(rating *w, const gp_stage *st, int first, int port, ratio much)
{
    if (first < 0)                     /* what it reads is of that component already, by what is carried */
        return AT(w, st->at, "stage '%s' is on a cycle through a carried buffer, around which the number of frames "
                  "changes; it must come back the same: take the stages that regroup out of the cycle", st->name);
    const char *a = read_at(w, st, first), *b = read_at(w, st, port);
    const char *fast = much.num < much.den ? a : b, *slow = much.num < much.den ? b : a;
    int64_t many = much.num < much.den ? much.den : much.num, few = much.num < much.den ? much.num : much.den;
    if (few == 1)
        return AT(w, gp_node_at(st->node, "in", st->at), "stage '%s' reads '%s' and '%s', which have different rates: for "
                  "a frame of '%s' there are %lld of '%s'; put {use: group, frames: %lld} after '%s', or {use: hold, "
                  "frames: %lld} after '%s'", st->name, a, b, slow, (long long)many, fast, (long long)many, fast,
                  (long long)many, slow);
    return AT(w, gp_node_at(st->node, "in", st->at), "stage '%s' reads '%s' and '%s', which have different rates: for "
              "%lld frames of '%s' there are %lld of '%s'; bring them together with group, split, decimate or hold",
              st->name, a, b, (long long)few, slow, (long long)many, fast);
}

/* The frames that a stage makes when it fires, on average. */
static ratio by_firing(const gp_stage *st)
{
    return (ratio){ st->regroup.make, st->regroup.every == INT64_MAX ? 1 : st->regroup.every };
}

/* Joins stage v to the component of what it reads at each port. */
static bool rate_stage(rating *w, int v)
{
    const gp_stage *st = &w->g->stage[v];
    int first = -1;
    for (int i = 0; i < st->nin; i++) {
        int from = gp_stage_maker(w->g, st, i);
        if (from < 0 || w->g->stage[from].regroup.every == INT64_MAX)  /* one frame a run: of any rate */
            continue;
        ratio mine, its;
        int a = find(w, v, &mine), b = find(w, from, &its);
        /* What v's rate is by that of b, if this port decides. */
        ratio wanted = times(its, times(by_firing(&w->g->stage[from]),
                                        (ratio){ st->regroup.repeat, st->regroup.step }));
        ratio much = times(wanted, inverse(mine));
        if (!much.num)
            return too_far(w, st);
        if (a != b)
            w->up[a] = b, w->of[a] = much;
        else if (much.num != much.den)
            return differ(w, st, first, i, much);
        if (first < 0)
            first = i;
        find(w, v, &mine);
        if (mine.num > RATE_MAX || mine.den > RATE_MAX)
            return too_far(w, st);
    }
    return true;
}

/* The one frame that a stage makes of all is of any rate, but device stages that read it may be one segment, which has
 * one rate: joins them where nothing else decided. */
static void rate_together(rating *w, gp_arena *a)
{
    int *first = GP_NEW(a, int, w->g->nstages);
    for (int v = 0; v < w->g->nstages; v++)
        for (int i = 0; i < w->g->stage[v].nin; i++) {
            const gp_stage *st = &w->g->stage[v];
            int from = gp_stage_maker(w->g, st, i);
            if (from < 0 || w->g->stage[from].regroup.every < INT64_MAX || st->regroups || !st->device)
                continue;
            if (!first[from]) {
                first[from] = v + 1;
                continue;
            }
            ratio own, other;
            int top = find(w, v, &own), to = find(w, first[from] - 1, &other);
            ratio much = times(other, inverse(own));
            if (top != to && much.num)
                w->up[top] = to, w->of[top] = much;
        }
}

/* Makes the rates of each component whole numbers, the smallest there are. */
static bool make_whole(rating *w, gp_arena *a)
{
    enum { DENOMINATORS, NUMERATORS, DIVIDE };
    gp_graph *g = w->g;
    int64_t *den = GP_NEW(a, int64_t, g->nstages), *num = GP_NEW(a, int64_t, g->nstages), whole[2];
    for (int v = 0; v < g->nstages; v++)
        den[v] = 1;
    for (int pass = DENOMINATORS; pass <= DIVIDE; pass++)
        for (int v = 0; v < g->nstages; v++) {
            gp_stage *st = &g->stage[v];
            ratio rate[2];                 /* of firings; of the frames that they make */
            int top = find(w, v, &rate[0]);
            rate[1] = times(rate[0], by_firing(st));
            for (int i = 0; i < 2; i++) {
                if (!rate[i].num)
                    return too_far(w, st);
                if (pass == DENOMINATORS && (__builtin_mul_overflow(den[top] / gcd(den[top], rate[i].den), rate[i].den,
                                                                    &den[top]) || den[top] > INT64_MAX / RATE_MAX))
                    return too_far(w, st);
                whole[i] = times(rate[i], (ratio){ den[top], 1 }).num;
                if (pass == NUMERATORS)
                    num[top] = gcd(whole[i], num[top]);
                if (pass == DIVIDE && (!num[top] || (whole[i] /= num[top]) < 1 || whole[i] > RATE_MAX))
                    return too_far(w, st);
            }
            st->rate = whole[0];
            for (int o = 0; o < st->nout; o++)
                if (st->out[o] >= 0)
                    g->buffer[st->out[o]].rate = whole[1];
        }
    return true;
}

bool gp_on_device(const gp_graph *g, const gp_buffer *b)
{
    bool device = g->stage[b->producer.stage].device;
    for (int u = 0; u < b->nuse; u++)
        device |= g->stage[b->use[u].stage].device;
    return device;
}

int64_t gp_default_slots(const gp_graph *g, const gp_buffer *b, int small)
{
    int64_t most = 0;
    bool is_small = gp_bytes(&b->type) < (gp_on_device(g, b) ? GP_DEPTH_BYTES : GP_DEPTH_HOST_BYTES) && !g->latency_ns;
    for (int u = -1; u < b->nuse; u++) {
        const gp_regroup *r = &g->stage[u < 0 ? b->producer.stage : b->use[u].stage].regroup;
        bool more = is_small && (u < 0 ? r->make : r->step < r->take ? r->step : r->take) == 1;
        int64_t slots = gp_firing_slots(r, u >= 0, g->depth ? g->depth : more ? small : GP_DEPTH_LARGE);
        most = slots > most ? slots : most;
    }
    return most;
}

int64_t gp_least_slots(const gp_graph *g, const gp_buffer *b, const gp_stage **by)
{
    const gp_regroup *made = &g->stage[b->producer.stage].regroup;
    int64_t least = gp_firing_slots(made, false, 1);
    *by = &g->stage[b->producer.stage];
    for (int u = 0; u < b->nuse; u++) {
        const gp_stage *st = &g->stage[b->use[u].stage];
        const gp_regroup *r = &st->regroup;
        int64_t each = r->step < r->take ? r->step : r->take;
        int64_t needs = made->make + gp_firing_slots(r, true, 1) - gcd(made->make, each);
        if (needs > least)
            least = needs, *by = st;
    }
    return least;
}

/* ---- what comes at the end ------------------------------------------- */

/* Sets of sources, by stage: those whose frames come as they are made; those that have to end first. */
typedef struct arrivals { unsigned *now, *late; size_t words; } arrivals;

static bool both(const unsigned *x, const unsigned *y, size_t words)
{
    unsigned all = 0;
    for (size_t i = 0; i < words; i++)
        all |= x[i] & y[i];
    return all;
}

/* Input `port` of stage v and one before it do not come together: one of them has to wait for the end. */
static bool comes_late(rating *w, const arrivals *x, int v, int port)
{
    const gp_stage *st = &w->g->stage[v];
    int at[2] = { 0, port };
    size_t from = x->words * (size_t)w->g->buffer[st->in[port]].producer.stage;
    bool is_late = false, found = false;
    for (int i = 0; i < port && !found; i++) {
        int by = gp_stage_maker(w->g, st, i);
        if (by < 0)
            continue;
        at[0] = i;
        size_t other = x->words * (size_t)by;
        is_late = both(x->late + from, x->now + other, x->words);
        found = is_late || both(x->now + from, x->late + other, x->words);
    }
    return AT(w, gp_node_at(st->node, "in", st->at), "stage '%s' reads '%s' beside '%s', but '%s' comes only when its source has ended: "
              "set the option 'frames' of the stage that makes one frame of all", st->name, read_at(w, st, at[is_late]),
              read_at(w, st, at[!is_late]), read_at(w, st, at[is_late]));
}

/* The arrivals of stage v, from the sets of those that make its inputs; on a cycle they may not be all there yet. With
 * `check`, false after an error. */
static bool arrive(rating *w, arrivals *x, int v, bool check)
{
    const gp_graph *g = w->g;
    const gp_stage *st = &g->stage[v];
    unsigned *now = x->now + x->words * (size_t)v, *late = x->late + x->words * (size_t)v;
    int top = find(w, v, &(ratio){ 0 });
    bool some = false, ok = true;
    for (size_t k = 0; check && k < x->words; k++)
        now[k] = late[k] = 0;
    if (!st->nin)                      /* sources that are joined anywhere go on together */
        now[top / 32] |= 1u << top % 32;
    for (int i = 0; i < st->nin; i++) {
        int from = gp_stage_maker(g, st, i);
        if (from < 0)
            continue;
        const unsigned *n = x->now + x->words * (size_t)from, *l = x->late + x->words * (size_t)from;
        if (check && some && (both(n, late, x->words) || both(l, now, x->words)))
            ok = comes_late(w, x, v, i);
        for (size_t k = 0; k < x->words; k++)
            now[k] |= n[k], late[k] |= l[k];
        some = true;
    }
    for (size_t k = 0; st->regroup.every == INT64_MAX && k < x->words; k++)
        late[k] |= now[k], now[k] = 0;
    return ok;
}

/* No stage waits at one input for the end of what has to be taken at another for it to end. Stages are in order, but
 * for what closes a cycle: then all sets are made until none grows. */
static bool check_arrivals(rating *w, gp_arena *a)
{
    const gp_graph *g = w->g;
    arrivals x = { .words = ((size_t)g->nstages + 31) / 32 };
    size_t bytes = sizeof(unsigned) * x.words * (size_t)g->nstages;
    bool some = false, circles = false, ok = true;
    for (int v = 0; v < g->nstages; v++)
        some |= g->stage[v].regroup.every == INT64_MAX, circles |= g->stage[v].closes;
    if (!some)
        return true;
    x.now = gp_alloc(a, bytes), x.late = gp_alloc(a, bytes);
    for (unsigned *before = circles ? gp_alloc(a, 2 * bytes) : NULL; circles;) {
        memcpy(before, x.now, bytes), memcpy((char *)before + bytes, x.late, bytes);
        for (int v = 0; v < g->nstages; v++)
            arrive(w, &x, v, false);
        circles = memcmp(before, x.now, bytes) || memcmp((char *)before + bytes, x.late, bytes);
    }
    for (int v = 0; v < g->nstages; v++)
        ok &= arrive(w, &x, v, true);
    return ok;
}

/* ---- what never comes ------------------------------------------------- */

/* The number of firings that the inputs of a stage let it have, by the frames that each stage makes, and the port that
 * has the fewest; -1: not known. */
static int64_t firings_of(const gp_graph *g, const gp_stage *st, const int64_t *made, int *port)
{
    int64_t least = -1;
    for (int i = 0; i < st->nin; i++) {
        int from = st->in[i] < 0 || gp_is_carry(st) ? -1 : g->buffer[st->in[i]].producer.stage;
        int64_t n = from < 0 || made[from] < 0 ? -1 : (int64_t)gp_firings_in_all(&st->regroup, (uint64_t)made[from]);
        if (n >= 0 && (least < 0 || n < least))
            least = n, *port = i;
    }
    return least;
}

/* How many frames a source makes at most; -1: it is not known. */
static int64_t most_of(const gp_stage *st)
{
    const gp_opt *o = gp_option_find(st->kind, "frames");
    int64_t asked = o && o->type == GP_OPT_INT ? *(const int64_t *)((const char *)st->opts + o->off) : 0;
    return st->known.frames && !st->endless ? st->known.frames : asked ? asked : -1;
}

/* A stage that drops the frames of its tail makes some, where it is known how many its source has. */
static bool check_fills(rating *w, gp_arena *a)
{
    const gp_graph *g = w->g;
    int64_t *made = GP_NEW(a, int64_t, g->nstages);
    for (int v = 0; v < g->nstages; v++) {
        const gp_stage *st = &g->stage[v];
        const gp_regroup *r = &st->regroup;
        int port = 0;
        int64_t n = st->nin ? firings_of(g, st, made, &port) : most_of(st);
        made[v] = n < 0 ? -1 : (int64_t)gp_frames_in_all(r, (uint64_t)n);
        int64_t takes = r->every > 1 ? r->every : r->take;
        bool none = (r->drop_tail && !made[v]) || (r->drop_partial && n < takes);
        int64_t there = n < 0 || !st->nin ? -1 : made[g->buffer[st->in[port]].producer.stage];
        if (!none || there <= 0)
            continue;
        return AT(w, gp_node_at(st->node, "frames", st->at), "stage '%s' would make nothing: it takes %lld frames of '%s' for one that "
                  "is whole, and there are only %lld; lower 'frames', or leave out '%s: drop'", st->name,
                  (long long)takes, read_at(w, st, port), (long long)there, r->drop_partial ? "partial" : "tail");
    }
    return true;
}

bool gp_rates(gp_arena *a, gp_graph *g, gp_errs *errs)
{
    rating *w = &(rating){ .g = g, .errs = errs, .up = GP_NEW(a, int, g->nstages),
                           .of = GP_NEW(a, ratio, g->nstages) };
    bool ok = true;
    for (int v = 0; v < g->nstages; v++)
        w->up[v] = v, w->of[v] = (ratio){ 1, 1 };
    for (int v = 0; v < g->nstages; v++)
        ok &= rate_stage(w, v);
    ok = ok && check_arrivals(w, a);
    if (ok)
        rate_together(w, a);
    return ok && check_fills(w, a) && make_whole(w, a);
}
