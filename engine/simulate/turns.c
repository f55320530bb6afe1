/* turns.c - whose thread does the turns of host stages with one worker: the rules of run/turn.c, on paper.
 *
 * A thread that has moved frames goes on with the turns of the stages next to it, when these are cheap and nobody is at
 * them; the others it wakes, which takes time of its own. When there is none left it comes back to its own stage, or
 * waits: it looks for a while, then sleeps. What a turn is known to take is the mean of those before, as in a run. */
#include "simulate/model.h"

enum { FRAME_NS = 20, ASLEEP_NS = 2300, WOKEN_ONCE_IN = 256, TURNS = 256,       /* as in run/turn.c */
       WEIGHT = 8 };           /* the mean is of about so many turns; a run measures one in a few */

static bool may_go(const simulation *x, const actor *p)
{
    reason why;
    return !p->nbusy && gp_model_ready(x, p, &why);
}

/* Does its thread wait for something that is no frame, as for other ranks? Then it does no turns of others. */
static bool waits_outside(const actor *p)
{
    return p->cost->pace_ns > 0 || p->came;
}

/* Those before it do its turns, so that its thread need not look. */
static bool stays_away(const simulation *x, const actor *p)
{
    bool stays = p->lent && p->turn_cost < x->awake;
    for (int i = 0; stays && i < p->nin; i++) {
        const actor *from = &x->actor[x->ring[p->in[i].ring].producer];
        stays = from->lends && from->stage->priority == p->stage->priority && !waits_outside(from);
    }
    return stays;
}

static double looks_for(const simulation *x, const actor *p)
{
    return stays_away(x, p) ? 0 : p->looks;
}

static bool is_asleep(const simulation *x, const actor *p)
{
    return !p->walk.busy && (p->walk.waking || sleeps(x, p, p->walk.since, looks_for(x, p)));
}

static bool is_cheap(const simulation *x, actor *p)
{
    double c = p->turn_cost;
    if (!p->lent || c >= ASLEEP_NS)
        return false;
    return c < x->awake || (is_asleep(x, p) && p->offers++ % WOKEN_ONCE_IN);
}

/* The thread of actor `me` does a turn of stage q. */
static bool turn(simulation *x, int me, int q)
{
    actor *p = &x->actor[q], *home = &x->actor[me];
    reason why;
    int n = p->nbusy ? 0 : gp_model_ready(x, p, &why);
    if (!n)
        return false;
    set_idle(x, p, 0, FOR_NOTHING);
    gp_model_take(x, q, 0, n, me);
    p->worker[0].owed = home->walk.owes, p->worker[0].work += home->walk.owes;
    home->walk.owes = 0;
    gp_model_begin_host(x, q, 0);
    return true;
}

/* Somebody at actor `me` wakes who waits at q, if there is something to do. */
static void wake(simulation *x, int me, int q)
{
    const actor *p = &x->actor[q];
    if (p->lends && is_asleep(x, p) && !p->walk.waking && may_go(x, p))
        x->actor[me].walk.owes += x->call;
    look_at(x, q);
}

/* There may be frames, or room, for q. True: the thread of `me` does a turn of it now. */
static bool tell(simulation *x, int me, int q)
{
    actor *p = &x->actor[q];
    walk *m = &x->actor[me].walk;
    for (int i = 0; i < m->n; i++)
        if (m->list[i] == q)
            return false;
    if (q == me)
        return false;
    if (m->n == MOVED || !p->lends || p->stage->priority != x->actor[me].stage->priority || (p->lent && !may_go(x, p))
        || !is_cheap(x, p)) {
        wake(x, me, q);
        return false;
    }
    if (m->turns < TURNS && turn(x, me, q)) {
        m->told[m->n] = 0, m->list[m->n++] = q;
        return true;
    }
    if (may_go(x, p))
        wake(x, me, q);
    return false;
}

void gp_model_go_on(simulation *x, int a)
{
    actor *p = &x->actor[a];
    walk *m = &p->walk;
    m->busy = true, m->waking = false;
    while (m->n) {
        int top = m->n - 1, from = m->list[top];
        bool all = m->told[top] == x->actor[from].nnear;
        if (all)
            m->n--;
        if (tell(x, a, all ? from : x->actor[from].near[m->told[top]++]))
            return;
    }
    if (turn(x, a, a))
        return;
    m->busy = false, p->walk.since = x->now;
}

void gp_model_look_lender(simulation *x, int a)
{
    actor *p = &x->actor[a];
    if (p->walk.busy || p->walk.waking)
        return;
    reason why = FOR_NOTHING;
    bool there = !p->nbusy && gp_model_ready(x, p, &why);
    if (!there) {
        if (!p->nbusy)
            set_idle(x, p, 1, why);
        return;
    }
    double wakes = to_wake(x, p, p->walk.since, looks_for(x, p));
    if (!(wakes > 0)) {
        gp_model_go_on(x, a);
        return;
    }
    p->walk.waking = true;
    gp_model_share_cores(x, wakes, WOKEN, a, 0);
}

void gp_model_turned(simulation *x, int a)
{
    actor *p = &x->actor[a];
    const piece *q = &p->worker[0];
    int by = q->by;
    double cost = (q->work - q->owed + q->sleep) / (x->c->slower > 0 ? x->c->slower : 1) - FRAME_NS * q->n;
    reason why;
    p->turn_cost += (cost - p->turn_cost) / WEIGHT;
    if (!gp_model_ready(x, p, &why))
        set_idle(x, p, 1, why);
    walk *m = &x->actor[by].walk;
    if (by == a)
        m->list[0] = a, m->told[0] = 0, m->n = 1, m->turns = waits_outside(p) ? TURNS : 0;
    else
        m->turns++;
    gp_model_go_on(x, by);
}
