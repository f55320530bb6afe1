/* account.c - what became of the frames of one source.
 *
 * Each sink that the source reaches sees the frames in order, up to its end. A
 * frame's fate is final once every sink that ends behind it has seen it: then it is
 * counted, once. What is neither final nor failed when the run is over was
 * cancelled. Ends only fall, and never below what the sink has seen, so what is
 * final stays so.
 *
 * Only holes need an entry. Sinks that go on are apart by at
 * most what all rings hold; one that ended early may lag behind, with as many
 * frames before its end: that room is reserved, so that no frame costs an allocation. */
#include <stdlib.h>
#include "run/run.h"

bool gp_account_init(gp_accountrt *l, const gp_plan *plan, int source)
{
    const gp_graph *g = plan->graph;
    size_t window = 64;
    l->source = source;
    pthread_mutex_init(&l->lock, NULL);
    l->sink = calloc((size_t)g->nstages, sizeof *l->sink);
    if (!l->sink)
        return false;
    for (int i = 0; i < g->nstages; i++)
        if (!g->stage[i].nout && gp_comes_from(&g->stage[i], source))
            l->sink[l->nsinks++] = (gp_sink){ .stage = i, .end = GP_UNKNOWN };
    for (int i = 0; i < plan->nrings; i++) {
        const gp_ring *r = &plan->ring[i];
        if (r->buffer >= 0 && gp_comes_from(&g->stage[g->buffer[r->buffer].producer.stage], source))
            window += (size_t)r->depth;
    }
    return gp_table_reserve(&l->marks, window * (size_t)(l->nsinks + 1));
}

void gp_account_fini(gp_accountrt *l)
{
    gp_table_free(&l->marks);
    free(l->sink);
    pthread_mutex_destroy(&l->lock);
}

/* ---- marks ----------------------------------------------------------- */

/* The value of an entry: a gp_hole other than GP_NO_HOLE, and whether it was counted. */
enum { HOLE = 3, COUNTED = 4 };

static void set_mark(gp_accountrt *l, uint64_t f, gp_hole hole, bool counted)
{
    gp_entry *e = gp_table_put_id(&l->marks, f, 0);
    if (!e)
        return;                        /* more than was reserved, and no memory */
    gp_hole worse = gp_worse_hole((gp_hole)(e->n & HOLE), hole);
    e->n = (e->n & COUNTED) | (counted ? COUNTED : 0) | (int)worse;
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

/* Counts those of frames [from, to) whose fate is final; of none it was before. */
static void count_final(gp_accountrt *l, uint64_t from, uint64_t to)
{
    uint64_t out = 0, dropped = 0, failed = 0;
    if (l->nsinks == 1 && !l->marks.n)
        out = to - from, from = to;
    for (uint64_t f = from; f < to; f++) {
        if (l->nsinks > 1 && !is_final(l, f))
            continue;
        gp_entry *e = gp_table_find_id(&l->marks, f);
        if (!e) {
            out++;
            continue;
        }
        dropped += e->n == GP_HOLE_DROPPED;
        failed += e->n == GP_HOLE_FAILED;
        gp_table_remove(&l->marks, e);
    }
    if (out)
        atomic_fetch_add(&l->out, out);
    if (dropped)
        atomic_fetch_add(&l->dropped, dropped);
    if (failed)
        atomic_fetch_add(&l->failed, failed);
}

static gp_sink *find_sink(const gp_accountrt *l, int stage)
{
    for (int i = 0; i < l->nsinks; i++)
        if (l->sink[i].stage == stage)
            return &l->sink[i];
    return NULL;
}

void gp_account_seen(gp_accountrt *l, int stage, uint64_t first, int n,
                    const unsigned char *hole)
{
    gp_sink *s = find_sink(l, stage);
    if (!s)
        return;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < n; i++)
        if (hole[i])
            set_mark(l, first + (uint64_t)i, (gp_hole)hole[i], false);
    s->next = first + (uint64_t)n;
    count_final(l, first, s->next);
    pthread_mutex_unlock(&l->lock);
}

void gp_account_end(gp_accountrt *l, int stage, uint64_t end)
{
    gp_sink *s = find_sink(l, stage);
    if (!s)
        return;
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

static void fail(gp_accountrt *l, uint64_t f)
{
    pthread_mutex_lock(&l->lock);
    const gp_entry *e = gp_table_find_id(&l->marks, f);
    if (!is_final(l, f) && !(e && e->n & COUNTED)) {
        atomic_fetch_add(&l->failed, 1);
        set_mark(l, f, GP_HOLE_FAILED, true);
    }
    pthread_mutex_unlock(&l->lock);
}

void gp_actor_failed(gp_actorrt *p, uint64_t f)
{
    const gp_run *run = p->run;
    for (int i = 0; i < run->naccounts; i++) {
        gp_accountrt *l = &run->account[i];
        bool feeds = false;
        const gp_stage *st;
        for (int k = 0; (st = gp_actor_stage(p, &k)); )
            feeds |= gp_comes_from(st, l->source);
        if (feeds && p->source)        /* it was not published */
            atomic_fetch_add(&l->in, 1);
        if (feeds)
            fail(l, f);
    }
}
