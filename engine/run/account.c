/* account.c - what became of the frames of one source.
 *
 * Each sink that the source reaches sees the frames in order, up to its end. A
 * frame's fate is final once every sink that ends behind it has seen it: then it is
 * counted, once. What is neither final nor failed when the run is over was
 * cancelled. Ends only fall, and never below what the sink has seen, so what is
 * final stays so.
 *
 * Where stages regroup, some firings of a sink are seen for a block of frames. A hole marks those that it is made of,
 * which have its fate; but a frame that was a hole before it came into a group stays one.
 *
 * Only holes need an entry, a mark. Sinks that still run are apart by at most the frames that all rings hold; one
 * that ended early may lag as many frames behind its end. Room for both is reserved, so that no frame costs an
 * allocation.
 *
 * A sink that fires once, for all frames, waits for the end of the run, and so would every mark. When there are many,
 * the marks of frames that all other actors are done with are folded into tallies: from then on, these frames share
 * one fate. */
#include <stdlib.h>
#include <string.h>
#include "run/run.h"

/* ---- blocks ---------------------------------------------------------- */

static uint64_t common(uint64_t a, uint64_t b)         /* the least common multiple */
{
    uint64_t x = a, y = b;
    while (y) {
        uint64_t z = x % y;
        x = y, y = z;
    }
    return a / x * b;
}

/* Is it a block of all frames of the source? No multiple of it is larger. */
static bool is_all(gp_block b)
{
    return b.frames >> 32;
}

static uint64_t times(uint64_t frames, uint64_t by)
{
    return frames >> 32 ? frames : frames * by;
}

/* Block `b` of a stage, in frames that the stage makes instead of its firings. If it makes one of all, the block is
 * all frames. */
static gp_block made_block(gp_block b, const gp_regroup *r)
{
    if (r->every == INT64_MAX)
        return (gp_block){ (uint64_t)1 << 62, 1, 0 };
    uint64_t whole = common(b.firings, (uint64_t)r->every), frames = times(b.frames, whole / b.firings);
    return (gp_block){ frames, whole / (uint64_t)r->every * (uint64_t)r->make, b.late };
}

/* Are frames that the stage makes those of the source? What an input drops that does not wait (leak.c) is no loss of
 * the source: for its account the stage before that input is a sink. */
static bool reaches_beyond(const gp_accountrt *l, int stage)
{
    return stage == l->source || !gp_is_leaky(&l->run->graph->stage[stage]);
}

/* The block of a stage, from those of the stages before it, which are known already; carried inputs decide nothing.
 * Inputs have one rate, so the larger block is a multiple of the smaller ones. */
static gp_block block_of(const gp_accountrt *l, const gp_graph *g, const gp_stage *st)
{
    gp_block all = { 0, 0, 0 };
    for (int i = 0; i < st->nin && !gp_is_carry(st); i++) {
        int from = gp_stage_maker(g, st, i);
        gp_block b = from < 0 || !reaches_beyond(l, from) ? all : l->block[from];
        if (from < 0 || !b.firings)
            continue;
        b = made_block(b, &g->stage[from].regroup);
        if (st->regroup.step > st->regroup.take) {     /* it does not wait for those that it leaves out */
            uint64_t after = (uint64_t)(st->regroup.step - st->regroup.take);
            b.late += times(b.frames, after / b.firings + (after % b.firings > 0));
        }
        uint64_t whole = common(b.firings, (uint64_t)st->regroup.step);
        b.frames = times(b.frames, whole / b.firings);
        b.firings = whole / (uint64_t)st->regroup.step * (uint64_t)st->regroup.repeat;
        whole = all.firings ? common(all.firings, b.firings) : b.firings;
        all = (gp_block){ times(b.frames, whole / b.firings), whole, b.late > all.late ? b.late : all.late };
    }
    return all;
}

bool gp_account_init(gp_accountrt *l, const gp_run *run, int source)
{
    enum { MARKS = 1 << 20 };          /* room for more is made when it is needed */
    const gp_plan *plan = run->plan;
    const gp_graph *g = plan->graph;
    size_t window = 64;
    l->source = source, l->run = run;
    pthread_mutex_init(&l->lock, NULL);
    l->sink = calloc((size_t)g->nstages, sizeof *l->sink);
    l->block = calloc((size_t)g->nstages, sizeof *l->block);
    l->step = calloc((size_t)g->nstages, sizeof *l->step);
    if (!l->sink || !l->block || !l->step)
        return false;
    for (int i = 0; i < g->nstages; i++) {
        l->block[i] = i == source ? (gp_block){ 1, 1, 0 } : block_of(l, g, &g->stage[i]);
        l->spare |= l->block[i].firings && g->stage[i].regroup.repeat > 1;
    }
    for (int i = 0; i < g->nstages; i++)
        if (gp_account_ends_at(&g->stage[i]) && gp_comes_from(&g->stage[i], source)) {
            l->sink[l->nsinks++] = (gp_sink){ .stage = i, .end = GP_UNKNOWN };
            l->most = l->block[i].frames > l->most ? l->block[i].frames : l->most;
        }
    if (l->most >> 32)
        l->most = 0;
    l->tally = calloc((size_t)l->nsinks + 1, sizeof *l->tally);
    for (int i = 0; i < plan->nrings; i++) {
        const gp_ring *r = &plan->ring[i];
        const gp_block *b = r->buffer < 0 || !reaches_beyond(l, g->buffer[r->buffer].producer.stage)
                          ? NULL : &l->block[g->buffer[r->buffer].producer.stage];
        if (b && b->firings && !is_all(*b))
            window += ((size_t)r->depth / b->firings + 1) * (b->frames < MARKS ? b->frames : MARKS);
    }
    window *= (size_t)(l->nsinks + 1);
    l->room = window < MARKS ? window : MARKS;
    return l->tally && gp_table_reserve(&l->marks, l->room);
}

void gp_account_take(gp_accountrt *l, gp_accountrt *from)
{
    gp_table marks = l->marks;
    l->marks = from->marks, from->marks = marks;
    if (from->room > l->room)
        l->room = from->room;          /* what is reserved is at least as much */
    memcpy(l->sink, from->sink, sizeof *l->sink * (size_t)l->nsinks);
    memcpy(l->tally, from->tally, sizeof *l->tally * ((size_t)l->nsinks + 1));
    l->folded = from->folded, l->all = from->all, l->closed = from->closed;
    atomic_store(&l->in, atomic_load(&from->in));
    atomic_store(&l->out, atomic_load(&from->out));
    atomic_store(&l->dropped, atomic_load(&from->dropped));
    atomic_store(&l->failed, atomic_load(&from->failed));
    atomic_store(&l->late, atomic_load(&from->late));
    atomic_store(&l->missed, atomic_load(&from->missed));
    atomic_store(&l->full, atomic_load(&from->full));
    atomic_store(&l->lost, atomic_load(&from->lost));
    atomic_store(&l->faulty, atomic_load(&from->faulty));
}

void gp_account_fini(gp_accountrt *l)
{
    gp_table_free(&l->marks);
    free(l->sink), free(l->block), free(l->step), free(l->tally);
    pthread_mutex_destroy(&l->lock);
}

/* ---- marks ----------------------------------------------------------- */

/* The value of an entry: a gp_hole other than GP_NO_HOLE, and whether it was counted. */
enum { HOLE = 7, COUNTED = 8 };

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A stage of the actor that the source feeds; -1: there is none. */
static int stage_of_actor(const gp_accountrt *l, const gp_actorrt *p)
{
    const gp_stage *st;
    for (int k = 0; (st = gp_actor_stage(p, &k)); )
        if (l->block[st - p->run->graph->stage].firings)
            return (int)(st - p->run->graph->stage);
    return -1;
}

/* The frames that go with its firings; firings 0: none do. */
static gp_block block_of_actor(const gp_accountrt *l, const gp_actorrt *p)
{
    int stage = stage_of_actor(l, p);
    return stage < 0 ? (gp_block){ 0, 0, 0 } : l->block[stage];
}

/* The same of the frames that the actor makes. */
static gp_block block_of_made(const gp_accountrt *l, const gp_actorrt *p)
{
    int stage = stage_of_actor(l, p);
    gp_block b = stage < 0 || !reaches_beyond(l, stage) ? (gp_block){ 0, 0, 0 } : l->block[stage];
    return b.firings && p->regroup ? made_block(b, p->regroup) : b;
}

/* As above, for the frames of one buffer: others that its actor makes may come from other sources. */
static gp_block block_of_buffer(const gp_accountrt *l, const gp_buffer *buffer)
{
    const gp_stage *st = &l->run->graph->stage[buffer->producer.stage];
    gp_block b = reaches_beyond(l, buffer->producer.stage) ? l->block[buffer->producer.stage] : (gp_block){ 0, 0, 0 };
    return b.firings && st->regroups ? made_block(b, &st->regroup) : b;
}

/* The source's frames, in whole blocks, that an actor is done with after k firings (or after making k frames). */
static uint64_t done_with(gp_block b, uint64_t k)
{
    if (is_all(b) || !b.firings)
        return UINT64_MAX;
    uint64_t f = k / b.firings * b.frames;
    return f > b.late ? f - b.late : 0;
}

/* The first frame whose own fate some actor still has to decide; a sink that failed never decides. */
static uint64_t first_open(const gp_accountrt *l)
{
    uint64_t f = atomic_load(&l->in);
    for (int i = 0; i < l->nsinks; i++)
        if (!is_all(l->block[l->sink[i].stage]) && l->sink[i].next < l->sink[i].end)
            f = least(f, l->sink[i].next);
    for (int i = 0; i < l->run->plan->nactors; i++) {
        const gp_actorrt *p = &l->run->actor[i];
        uint64_t k = p->leak && p->stage - l->run->graph->stage != l->source ? atomic_load(&p->next)
                   : atomic_load(&p->progress);
        if (!atomic_load(&p->over))
            f = least(f, least(done_with(block_of_actor(l, p), k), done_with(block_of_made(l, p), gp_actor_made(p, k))));
    }
    return f;
}

/* The tally of frame f, by how many sinks end before it. A sink that does has seen all that it will. */
static gp_tally *tally_of(const gp_accountrt *l, uint64_t f)
{
    int n = 0;
    for (int i = 0; i < l->nsinks; i++)
        n += l->sink[i].end <= f && !is_all(l->block[l->sink[i].stage]);
    return &l->tally[n];
}

/* Does a sink wait for all frames? */
static bool waits(const gp_accountrt *l)
{
    for (int i = 0; i < l->nsinks; i++)
        if (is_all(l->block[l->sink[i].stage]) && l->sink[i].end && !l->sink[i].next)
            return true;
    return false;
}

static void add_to_tally(gp_tally *t, const gp_entry *e)
{
    bool counted = e->n & COUNTED, failed = e->n == GP_HOLE_FAILED;
    t->counted += counted;
    t->failed += failed;
    t->dropped += !counted && !failed && e->n;
    t->late += e->n == GP_HOLE_LATE, t->lost += e->n == GP_HOLE_LOST;
}

static void fold(gp_accountrt *l)
{
    uint64_t to = first_open(l);
    gp_table kept = { .n = 0 };
    if (to <= l->folded || !waits(l) || !gp_table_reserve(&kept, l->room))
        return;
    for (const gp_entry *e = NULL; (e = gp_table_next(&l->marks, e));)
        if (e->id >= to && !gp_table_put_id(&kept, e->id, e->n)) {
            gp_table_free(&kept);      /* no memory: it all stays as it is */
            return;
        }
    for (const gp_entry *e = NULL; (e = gp_table_next(&l->marks, e));)
        if (e->id < to) {
            gp_tally *t = tally_of(l, e->id);
            add_to_tally(t, e);
        }
    gp_table_free(&l->marks);
    l->marks = kept, l->folded = to;
}

/* Before marks are set. */
static void make_room(gp_accountrt *l)
{
    if (l->most || l->marks.n < l->room)
        return;
    fold(l);
    if (l->marks.n > l->room / 2)
        l->room *= 2;
}

static void set_mark(gp_accountrt *l, uint64_t f, gp_hole hole, bool counted)
{
    if (hole == GP_HOLE_ABSENT)
        return;
    gp_entry *e = gp_table_put_id(&l->marks, f, 0);
    if (!e)
        return;                        /* more than was reserved, and no memory */
    gp_hole worse = gp_worse_hole((gp_hole)(e->n & HOLE), hole);
    counted |= hole == GP_HOLE_FULL;   /* when it was dropped (leak.c) */
    e->n = (e->n & COUNTED) | (counted ? COUNTED : 0) | (int)worse;
}

/* Part i of m equal ones of the rows of a frame. */
typedef struct part { uint64_t i, m; } part;

/* From a firing, or a frame, to the frames of the source that it is made of, each of which is marked. */
typedef struct walk {
    gp_accountrt *l;
    void (*mark)(gp_accountrt *l, uint64_t f, gp_hole hole);
    gp_hole hole;
} walk;

static bool was_here(gp_accountrt *l, int stage, uint64_t k, part p)
{
    struct gp_step *s = &l->step[stage], now = { l->walks, k, p.i, p.m };
    bool was = !memcmp(s, &now, sizeof now);
    *s = now;
    return was;
}

/* The firing that frame f of a stage is made by; of one that splits frames it is a part of their rows. */
static uint64_t maker_of(const gp_regroup *r, uint64_t f, part *p)
{
    uint64_t make = (uint64_t)r->make;
    if (r->split)
        *p = (part){ f % make * p->m + p->i, make * p->m };
    return f / make;
}

static void walk_firing(const walk *w, int stage, uint64_t k, part p);

static void walk_made(const walk *w, int stage, uint64_t f, part p)
{
    const gp_regroup *r = &w->l->run->graph->stage[stage].regroup;
    uint64_t every = (uint64_t)r->every;
    for (uint64_t k = f * every; every > 1 && k < (f + 1) * every; k++)
        walk_firing(w, stage, k, (part){ 0, 1 });
    if (every <= 1)
        walk_firing(w, stage, maker_of(r, f, &p), p);
}

/* What takes frames as rows has as many of them as of its own rows; a window stands for its newest. Chains are long,
 * and no reason to go deeper. */
static void walk_firing(const walk *w, int stage, uint64_t k, part p)
{
    gp_accountrt *l = w->l;
    const gp_graph *g = l->run->graph;
    for (int next = stage; next >= 0; stage = next) {
        const gp_stage *st = &g->stage[stage];
        const gp_regroup *r = &st->regroup;
        if (l->block[stage].frames == 1 && l->block[stage].firings == 1) {
            w->mark(l, k, w->hole);
            return;
        }
        if (was_here(l, stage, k, p))
            return;
        uint64_t from = gp_firing_frame(r, k), n = (uint64_t)(r->take - r->back), to = from + n;
        if (r->stack)
            to = from + (n * (p.i + 1) + p.m - 1) / p.m, from += n * p.i / p.m, p = (part){ 0, 1 };
        next = -1;
        for (int i = 0; i < st->nin && !gp_is_carry(st); i++) {
            int by = gp_stage_maker(g, st, i);
            if (by < 0 || !l->block[by].firings || !reaches_beyond(l, by))
                continue;
            if (next < 0 && to == from + 1 && g->stage[by].regroup.every <= 1)
                next = by;
            else
                for (uint64_t f = from; f < to; f++)
                    walk_made(w, by, f, p);
        }
        if (next >= 0)
            k = maker_of(&g->stage[next].regroup, from, &p);
    }
}

static void mark_hole(gp_accountrt *l, uint64_t f, gp_hole hole)
{
    set_mark(l, f, hole, false);
}

/* Marks all frames that firing k of a stage, or with `made` the frame k that it makes, is made of. */
static void set_marks(gp_accountrt *l, gp_block b, int stage, bool made, uint64_t k, gp_hole hole)
{
    walk w = { l, mark_hole, hole };
    l->walks++;
    if (is_all(b) && hole != GP_HOLE_ABSENT)
        l->all = gp_worse_hole(l->all, hole);
    else if (hole != GP_HOLE_ABSENT)
        (made ? walk_made : walk_firing)(&w, stage, k, (part){ 0, 1 });
}

/* ---- counting -------------------------------------------------------- */

static bool is_final(const gp_accountrt *l, uint64_t f)
{
    bool reached = false;
    for (int i = 0; i < l->nsinks; i++) {
        if (l->sink[i].end > f && l->sink[i].next <= f)
            return false;
        reached |= l->sink[i].end > f;
    }
    return reached;
}

/* No sink that goes on will see it. */
static bool is_lost(const gp_accountrt *l, uint64_t f)
{
    for (int i = 0; i < l->nsinks; i++)
        if (l->sink[i].end > f)
            return false;
    return true;
}

/* Counts n frames, of which `t` are holes by themselves. */
static void count(gp_accountrt *l, uint64_t n, gp_tally t)
{
    uint64_t whole = n - t.dropped - t.failed - t.counted;
    uint64_t failed = t.failed + (l->all == GP_HOLE_FAILED ? whole + t.dropped : 0);
    uint64_t dropped = l->all == GP_HOLE_FAILED ? 0 : t.dropped + (l->all ? whole : 0);
    if (whole && !l->all)
        atomic_fetch_add(&l->out, whole);
    if (dropped)
        atomic_fetch_add(&l->dropped, dropped);
    if (failed)
        atomic_fetch_add(&l->failed, failed);
    if (l->all == GP_HOLE_FAILED)
        return;
    if (t.late)
        atomic_fetch_add(&l->late, t.late);
    if (t.lost)
        atomic_fetch_add(&l->missed, t.lost);
}

/* Counts the folded frames of which `is` holds; it holds for all or none of those with one tally. */
static void count_folded(gp_accountrt *l, bool (*is)(const gp_accountrt *l, uint64_t f))
{
    for (uint64_t f = 0, to; f < l->folded; f = to) {
        gp_tally *t = tally_of(l, f);
        to = l->folded;
        for (int i = 0; i < l->nsinks; i++)
            to = l->sink[i].end > f ? least(to, l->sink[i].end) : to;
        if (!t->done && is(l, f)) {
            count(l, to - f, *t);
            t->done = true;
        }
    }
}

/* Counts those of frames [from, to) whose fate is final; for none it was final before. */
static void count_final(gp_accountrt *l, uint64_t from, uint64_t to)
{
    gp_tally sum = { .done = false };
    uint64_t n = 0;
    if (l->closed)
        return;
    if (from < l->folded) {
        count_folded(l, is_final);
        from = l->folded;
    }
    if (l->nsinks == 1 && !l->marks.n && from < to)
        n = to - from, from = to;
    for (uint64_t f = from; f < to; f++) {
        if (l->nsinks > 1 && !is_final(l, f))
            continue;
        gp_entry *e = gp_table_find_id(&l->marks, f);
        n++;
        if (!e)
            continue;
        add_to_tally(&sum, e);
        gp_table_remove(&l->marks, e);
    }
    count(l, n, sum);
}

static gp_sink *find_sink(const gp_accountrt *l, int stage)
{
    for (int i = 0; i < l->nsinks; i++)
        if (l->sink[i].stage == stage)
            return &l->sink[i];
    return NULL;
}

/* The last block may reach beyond the source's end: only frames that there are count. */
static void seen_up_to(gp_accountrt *l, gp_sink *s, uint64_t to)
{
    uint64_t from = s->next, in = atomic_load(&l->in);
    if (to > in)
        to = in;
    if (to <= from)
        return;
    if (is_all(l->block[s->stage]))
        fold(l);
    s->next = to;
    count_final(l, from, to);
}

void gp_account_seen(gp_accountrt *l, int stage, uint64_t first, int n,
                    const unsigned char *hole)
{
    gp_sink *s = find_sink(l, stage);
    if (!s)
        return;
    pthread_mutex_lock(&l->lock);
    gp_block b = l->block[stage];
    make_room(l);
    for (int i = 0; i < n; i++)
        if (hole[i])
            set_marks(l, b, stage, false, first + (uint64_t)i, (gp_hole)hole[i]);
    uint64_t blocks = (first + (uint64_t)n) / b.firings, to = b.frames >> 32 && blocks ? b.frames : blocks * b.frames;
    seen_up_to(l, s, to > b.late ? to - b.late : 0);
    pthread_mutex_unlock(&l->lock);
}

/* How many frames the first k firings begin. */
static uint64_t begun(gp_block b, uint64_t k)
{
    return b.frames >> 32 ? k ? b.frames : 0 : (k / b.firings + (k % b.firings > 0)) * b.frames;
}

void gp_account_last(gp_accountrt *l, int stage, uint64_t end)
{
    gp_sink *s = find_sink(l, stage);
    if (!s)
        return;
    pthread_mutex_lock(&l->lock);
    seen_up_to(l, s, begun(l->block[stage], end));
    pthread_mutex_unlock(&l->lock);
}

void gp_account_end(gp_accountrt *l, int stage, uint64_t end)
{
    gp_sink *s = find_sink(l, stage);
    if (!s)
        return;
    end = begun(l->block[stage], end);
    pthread_mutex_lock(&l->lock);
    if (end < s->end) {
        uint64_t from = end > s->next ? end : s->next, seen = from;
        for (int i = 0; i < l->nsinks; i++)
            if (l->sink[i].next > seen)
                seen = l->sink[i].next;
        uint64_t to = seen < s->end ? seen : s->end;
        s->end = end;
        count_final(l, from, to);
    }
    pthread_mutex_unlock(&l->lock);
}

static void fail(gp_accountrt *l, uint64_t f, gp_hole hole)
{
    const gp_entry *e = gp_table_find_id(&l->marks, f);
    if (!l->closed && f < atomic_load(&l->in) && !is_final(l, f) && !(e && e->n & COUNTED)) {
        atomic_fetch_add(&l->failed, 1);
        set_mark(l, f, hole, true);
    }
}

void gp_actor_failed(gp_actorrt *p, uint64_t f)
{
    const gp_run *run = p->run;
    for (int i = 0; i < run->naccounts; i++) {
        gp_accountrt *l = &run->account[i];
        int stage = stage_of_actor(l, p);
        if (stage < 0)
            continue;
        if (p->source)                 /* it was not published */
            atomic_fetch_add(&l->in, 1);
        pthread_mutex_lock(&l->lock);
        uint64_t in = atomic_load(&l->in);
        gp_block b = l->block[stage];
        l->walks++;
        if (!is_all(b))
            walk_firing(&(walk){ l, fail, GP_HOLE_FAILED }, stage, f, (part){ 0, 1 });
        if (is_all(b) && !l->closed) {     /* all that have no fate yet */
            atomic_fetch_add(&l->failed, in - atomic_load(&l->out) - atomic_load(&l->dropped) - atomic_load(&l->failed));
            l->closed = true;
        }
        pthread_mutex_unlock(&l->lock);
    }
}

void gp_buffer_hole(const gp_run *run, const gp_buffer *buffer, uint64_t f, gp_hole hole)
{
    for (int i = 0; i < run->naccounts; i++) {
        gp_accountrt *l = &run->account[i];
        gp_block b = block_of_buffer(l, buffer);
        if (!b.firings)
            continue;
        pthread_mutex_lock(&l->lock);
        make_room(l);
        set_marks(l, b, buffer->producer.stage, true, f, hole);
        pthread_mutex_unlock(&l->lock);
    }
}

void gp_buffer_lost(const gp_run *run, const gp_buffer *buffer, uint64_t f)
{
    for (int i = 0; i < run->naccounts; i++) {
        gp_accountrt *l = &run->account[i];
        gp_block b = block_of_buffer(l, buffer);
        if (!b.firings)
            continue;
        pthread_mutex_lock(&l->lock);
        uint64_t k = is_all(b) ? 0 : f / b.firings * b.frames, in = l->closed ? 0 : atomic_load(&l->in);
        if (is_all(b) && l->all && in) {
            count_folded(l, is_lost);
            k = l->folded;
        }
        for (; k < in; k++) {
            const gp_entry *e = gp_table_find_id(&l->marks, k);
            gp_hole hole = gp_worse_hole(e ? (gp_hole)(e->n & HOLE) : GP_NO_HOLE, l->all);
            if (!hole || (e && e->n & COUNTED) || !is_lost(l, k))
                continue;
            atomic_fetch_add(hole == GP_HOLE_FAILED ? &l->failed : &l->dropped, 1);
            atomic_fetch_add(&l->late, hole == GP_HOLE_LATE), atomic_fetch_add(&l->missed, hole == GP_HOLE_LOST);
            set_mark(l, k, hole, true);
        }
        pthread_mutex_unlock(&l->lock);
    }
}
