/* host.c - host stages: workers take consecutive firings, up to so many in a turn, and hand them in; they are published
 * in order. A turn has a core for a while, for the kind's code and for what moves the frames, then sleeps for a while.
 * A source with a pace waits for its time first.
 *
 * Whose thread does the turns of stages with one worker is as in run/turn.c. A thread that has moved frames goes on
 * with the turns of the stages next to it, when these are cheap and nobody is at them; the others it wakes, which takes
 * time of its own. When there is none left it comes back to its own stage, or waits: it looks for a while, then sleeps.
 * What a turn is known to take is the mean of those before, as in a run. */
#include "simulate/model.h"

static void go_on(simulation *x, int a, int lane);
static void turned(simulation *x, int a);
static void meet(simulation *x, int a, int w);

/* ---- a turn ------------------------------------------------------------ */

/* The time of a turn in the kind's code, with its share of the wait for a core, and the time that it was apart. */
static int64_t busy(const simulation *x, const piece *q)
{
    double took = x->now - q->start - q->apart, all = q->work + q->sleep;
    return (int64_t)(q->apart + (all > 0 ? took * (1 - (q->beside + q->owed) / all) : took));
}

static void hand_in(simulation *x, int a, int w)
{
    actor *p = &x->actor[a];
    piece *q = &p->worker[w];
    int64_t took = busy(x, q);
    p->report->busy_ns += took;
    gp_hist_add(&p->report->time, took / q->n, (uint64_t)q->n);
    keep(x, (gp_slice){ GP_SLICE_STAGE, a, w, 0, (int64_t)q->start, (int64_t)x->now, q->first, q->n });
    q->busy = false, q->since = AWAKE;
    p->nbusy--;
    uint64_t end = p->head, at = q->first % p->window;         /* one division a turn */
    for (int i = 0; i < q->n; i++, at = at + 1 < p->window ? at + 1 : 0)
        p->handed[at] = 1;
    for (at = end % p->window; end < p->next && p->handed[at]; end++, at = at + 1 < p->window ? at + 1 : 0)
        p->handed[at] = 0;
    if (end > p->head)
        gp_model_publish(x, a, p->head, (int)(end - p->head));
    if (p->lends)
        turned(x, a);
    else
        gp_model_look_at(x, a);
}

/* It is done but for what ranks exchange. */
static void slept(simulation *x, int a, int w)
{
    (x->actor[a].came ? meet : hand_in)(x, a, w);
}

static void worked(simulation *x, int a, int w)
{
    double sleep = x->actor[a].worker[w].sleep;
    if (sleep > 0)
        gp_model_add(x, &x->agenda, x->now + sleep, slept, a, w);
    else
        slept(x, a, w);
}

static void work(simulation *x, int a, int w)
{
    gp_model_share_cores(x, x->actor[a].worker[w].work, worked, a, w);
}

static void begin(simulation *x, int a, int w)
{
    actor *p = &x->actor[a];
    piece *q = &p->worker[w];
    bool shared = p->stage->shared;    /* frames of all ranks come at that pace */
    uint64_t number = shared ? q->first * (uint64_t)x->ranks + (uint64_t)p->rank : q->first;
    double due = (double)number * p->cost->pace_ns;
    q->start = x->now;
    if (due > x->now) {
        q->apart = due - x->now;
        p->report->idle_ns += (int64_t)q->apart;
        gp_model_add(x, &x->agenda, due, work, a, w);
    } else {
        work(x, a, w);
    }
}

/* How many frames a worker could take now; 0: *why. */
static int ready(const simulation *x, const actor *p, reason *why)
{
    uint64_t able = gp_model_able(x, p, why), room = p->window - (p->next - p->head), n;
    if (p->next >= able)
        return 0;
    *why = FOR_OUTPUT;
    n = able - p->next < room ? able - p->next : room;
    return n < (uint64_t)p->most ? (int)n : p->most;
}

/* Worker w takes n frames, and the thread of actor `by` does that turn. */
static void take(simulation *x, int a, int w, int n, int by)
{
    actor *p = &x->actor[a];
    piece *q = &p->worker[w];
    double factor = 0;
    for (int i = 0; i < n; i++)
        factor += varied(p, p->next + (uint64_t)i);
    *q = (piece){ .busy = true, .first = p->next, .n = n, .since = AWAKE, .by = by, .start = x->now };
    q->beside = p->cost->turn_ns + n * p->cost->frame_ns;
    q->work = q->beside + p->cost->cpu_ns * factor, q->sleep = p->cost->wait_ns * factor;
    p->next += (uint64_t)n;
    p->nbusy++, p->taken++;
}

/* ---- stages in which ranks meet ---------------------------------------- */

/* A round begins when the last rank has come. All tell each other what they have; what then goes over the slowest link
 * (links.c) takes it for a while, one round after the other, whatever stage it is of. On one machine, by MPI, a thread
 * of each rank copies. */

static void met(simulation *x, int a, int w)
{
    piece *q = &x->actor[a].worker[w];
    q->apart += x->now - q->due;
    hand_in(x, a, w);
}

static bool all_came(const simulation *x, int index, uint64_t k)
{
    const actor *first = &x->actor[index];
    int ranks = 0;
    for (int r = 0; r < x->ranks; r++)
        ranks += k < x->actor[r * x->each + index].total;
    return ranks && first->came[k % (uint64_t)first->nworkers] == ranks;
}

/* All ranks that have a round k of this stage have come: the exchange takes its time and ends. */
static void begin_round(simulation *x, int index, uint64_t k)
{
    actor *first = &x->actor[index];
    bool on_cores = gp_round_takes_cores(x->c, first->stage);
    double ns = gp_round_ns(x->c, first->stage), told = gp_round_told_ns(x->c);
    double from = on_cores ? x->now : fmax(fmax(x->now, first->tells) + told, x->link_free) - told;
    if (!on_cores)
        first->tells = fmax(x->now, first->tells) + told, x->link_free = from + ns;
    first->came[k % (uint64_t)first->nworkers] = 0, first->round = k + 1;
    for (int a = index; a < x->nactors; a += x->each) {
        actor *p = &x->actor[a];
        int w = 0;
        if (k >= p->total)
            continue;
        while (!p->worker[w].busy || p->worker[w].first != k)
            w++;
        p->report->idle_ns += (int64_t)(from - p->worker[w].due);
        if (on_cores)
            gp_model_share_cores(x, ns, met, a, w);
        else
            gp_model_add(x, &x->agenda, from + ns, met, a, w);
    }
}

/* Workers come to their rounds in any order, and begin them in that of frames. */
static void meet(simulation *x, int a, int w)
{
    int index = x->actor[a].index;
    actor *first = &x->actor[index];
    piece *q = &x->actor[a].worker[w];
    q->due = x->now;
    first->came[q->first % (uint64_t)first->nworkers]++;
    while (all_came(x, index, first->round))
        begin_round(x, index, first->round);
}

/* ---- whose thread does a turn ------------------------------------------ */

enum { FRAME_NS = 20, ASLEEP_NS = 2300, WOKEN_ONCE_IN = 256, TURNS = 256,     /* as in run/turn.c */
       WEIGHT = 8 };           /* the mean is of about so many turns; a run measures one in a few */

static bool may_go(const simulation *x, const actor *p)
{
    reason why;
    return !p->nbusy && ready(x, p, &why);
}

/* Does its thread wait for something that is no frame, as for other ranks? Then it does no turns of others. */
static bool waits_outside(const actor *p)
{
    return p->cost->pace_ns > 0 || p->came;
}

/* For how long its thread looks: not at all, where those before it do its turns. */
static double looks_for(const simulation *x, const actor *p)
{
    bool stays = p->lent && p->turn_cost < x->awake;
    for (int i = 0; stays && i < p->nin; i++) {
        const actor *from = &x->actor[x->ring[p->in[i].ring].producer];
        stays = from->lends && from->stage->priority == p->stage->priority && !waits_outside(from);
    }
    return stays ? 0 : p->looks;
}

static bool is_asleep(const simulation *x, const actor *p)
{
    return !p->walk.busy && (p->walk.waking || gp_model_sleeps(x, p, p->walk.since, looks_for(x, p)));
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
    actor *p = &x->actor[q];
    walk *m = &x->actor[me].walk;
    reason why;
    int n = p->nbusy ? 0 : ready(x, p, &why);
    if (!n)
        return false;
    gp_model_set_idle(x, p, 0, FOR_NOTHING);
    take(x, q, 0, n, me);
    p->worker[0].owed = m->owes, p->worker[0].work += m->owes;
    m->owes = 0;
    begin(x, q, 0);
    return true;
}

/* Somebody at actor `me` wakes who waits at q, if there is something to do. */
static void wake(simulation *x, int me, int q)
{
    const actor *p = &x->actor[q];
    if (p->lends && is_asleep(x, p) && !p->walk.waking && may_go(x, p))
        x->actor[me].walk.owes += x->c->call_ns;
    gp_model_look_at(x, q);
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

/* A thread is awake, and free. */
static void go_on(simulation *x, int a, int lane)
{
    walk *m = &x->actor[a].walk;
    m->busy = true, m->waking = false;
    while (m->n) {
        int top = m->n - 1, from = m->list[top];
        bool all = m->told[top] == x->actor[from].nnear;
        if (all)
            m->n--;
        if (tell(x, a, all ? from : x->actor[from].near[m->told[top]++]))
            return;
    }
    if (!turn(x, a, a))
        m->busy = false, m->since = x->now;
}

/* A turn of stage a is done: who did it goes on. */
static void turned(simulation *x, int a)
{
    actor *p = &x->actor[a];
    const piece *q = &p->worker[0];
    walk *m = &x->actor[q->by].walk;
    double cost = (q->work - q->owed + q->sleep) / (x->c->slower > 0 ? x->c->slower : 1) - FRAME_NS * q->n;
    reason why;
    p->turn_cost += (cost - p->turn_cost) / WEIGHT;
    if (!ready(x, p, &why))
        gp_model_set_idle(x, p, 1, why);
    if (q->by == a)
        m->list[0] = a, m->told[0] = 0, m->n = 1, m->turns = waits_outside(p) ? TURNS : 0;
    else
        m->turns++;
    go_on(x, q->by, 0);
}

static void look_lender(simulation *x, int a)
{
    actor *p = &x->actor[a];
    reason why = FOR_NOTHING;
    if (p->walk.busy || p->walk.waking || p->nbusy)
        return;
    if (!ready(x, p, &why)) {
        gp_model_set_idle(x, p, 1, why);
        return;
    }
    double wakes = gp_model_to_wake(x, p, p->walk.since, looks_for(x, p));
    p->walk.waking = wakes > 0;
    if (wakes > 0)
        gp_model_share_cores(x, wakes, go_on, a, 0);
    else
        go_on(x, a, 0);
}

void gp_model_look_host(simulation *x, int a)
{
    actor *p = &x->actor[a];
    reason why = FOR_NOTHING;
    int idle = 0;
    if (p->lends) {
        look_lender(x, a);
        return;
    }
    for (int w = 0; w < p->nworkers; w++) {
        piece *q = &p->worker[w];
        if (q->busy)
            continue;
        int n = ready(x, p, &why);
        if (!n) {
            idle++, q->since = q->since < 0 ? x->now : q->since;
            continue;
        }
        double wake = gp_model_to_wake(x, p, q->since, p->looks);
        take(x, a, w, n, a);
        if (wake > 0)
            gp_model_share_cores(x, wake, begin, a, w);
        else
            begin(x, a, w);
    }
    gp_model_set_idle(x, p, idle, why);
}
