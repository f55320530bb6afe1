/* workers.c - how many workers stages have that leave it open, and the room that their buffers need for that.
 *
 * The machine's cores are divided among the host stages that take long, by the time that each says it needs, so that
 * all of them together have about as many workers as there are cores: each gets its share, rounded up. A stage that has
 * n workers needs room for n frames that they work on and for n that are done and wait for their turn; buffers that say
 * no depth get it, as far as memory goes; so it is for a stage that takes several frames at once. Where they do say
 * one, workers follow from it. All of it depends on the machine and the file alone; what is made depends on none of it.
 * */
#include "compile/plan.h"
#include "compile/resolve.h"

/* A frame that takes less is handed over to other threads for little gain. */
enum { HEAVY_NS = 100000 };

/* The frames of a pipeline whose buffers get more room take at most one PART of the memory of the machine, or of its
 * device. */
enum { PART = 16 };
static const size_t MOST = (size_t)4 << 30;

typedef struct sharing {
    gp_graph *g;
    double *cost;              /* per stage: of its frames in a period, 0: it takes no part */
    double all;
    int cpus;
    int most;                  /* the largest depth that memory is good for */
} sharing;

static bool leaves_open(const gp_stage *st)
{
    return st->workers_auto && !st->serial && !st->device && !st->cycle;
}

static bool is_heavy(const gp_stage *st)
{
    return !st->device && !st->serial && st->busy_ns >= HEAVY_NS;
}

/* Whoever asks for `auto` says that it takes long: as the others do, where it does not say how long. */
static void find_costs(sharing *s)
{
    const gp_graph *g = s->g;
    int n = 0;
    for (int v = 0; v < g->nstages; v++)
        if (is_heavy(&g->stage[v]))
            s->cost[v] = (double)g->stage[v].busy_ns * (double)g->stage[v].rate, s->all += s->cost[v], n++;
    double mean = n ? s->all / n : 1;
    for (int v = 0; v < g->nstages; v++)
        if (!s->cost[v] && leaves_open(&g->stage[v]) && g->stage[v].workers_said)
            s->cost[v] = mean, s->all += mean;
}

/* The deepest that all buffers could be, with the work areas of stages. */
static int most_depth(const gp_graph *g, const gp_machine *m)
{
    size_t each = 1, memory = m->memory;
    if (g->ndevices && g->device[0].info.memory < memory)
        memory = g->device[0].info.memory;
    size_t most = memory / PART < MOST ? memory / PART : MOST;
    for (int b = 0; b < g->nbuffers; b++)
        if (!gp_is_const(&g->buffer[b]))
            each = gp_size_add(each, gp_bytes(&g->buffer[b].type));
    for (int v = 0; v < g->nstages; v++)
        each = gp_size_add(each, g->stage[v].scratch);
    return most / each < GP_DEPTH_MAX ? (int)(most / each) : GP_DEPTH_MAX;
}

/* May this buffer get more room? */
static bool may_grow(const gp_graph *g, const gp_buffer *b)
{
    return !b->depth_said && !g->depth;
}

/* The most workers that can have a frame of each buffer at one end of the stage. */
static int fit(const sharing *s, const int *buffer, int n, int workers)
{
    for (int i = 0; i < n; i++) {
        const gp_buffer *b = buffer[i] < 0 ? NULL : &s->g->buffer[buffer[i]];
        if (!b || gp_is_const(b))
            continue;
        int depth = b->shallow, grown = s->most / 2;
        if (may_grow(s->g, b) && grown > depth)
            depth = grown;
        workers = workers < depth ? workers : depth;
    }
    return workers;
}

static int share(const sharing *s, const gp_stage *st, double cost)
{
    double part = s->cpus * cost / s->all;
    int n = (int)part + (part > (int)part);
    if (!st->nin && st->known.frames && n > st->known.frames)
        n = (int)st->known.frames;
    if (st->most_workers && n > st->most_workers)
        n = st->most_workers;
    n = n < s->cpus ? n : s->cpus;
    n = fit(s, st->in, st->nin, fit(s, st->out, st->nout, n));
    return n > 1 ? n : 1;
}

/* The frames that a stage's workers have at most. */
static int held(const gp_stage *st)
{
    return st->workers * (st->at_once > 1 ? st->at_once : 1);
}

/* Room for those who make it, for the one of its readers that has the most workers, and for what is done. */
static void make_room(const sharing *s, gp_buffer *b)
{
    int made = held(&s->g->stage[b->producer.stage]), read = 1;
    for (int u = 0; u < b->nuse; u++)
        if (held(&s->g->stage[b->use[u].stage]) > read)
            read = held(&s->g->stage[b->use[u].stage]);
    int need = made + read + (made > read ? made : read) - 1;
    gp_raise_depth(b, need < s->most ? need : s->most);
}

static bool takes_room(const gp_stage *st)
{
    return st->workers_auto || st->at_once > 1;
}

void gp_share_cores(gp_arena *a, gp_graph *g, const gp_machine *m)
{
    sharing s = { .g = g, .cost = GP_NEW(a, double, g->nstages), .cpus = m->cpus, .most = most_depth(g, m) };
    find_costs(&s);
    for (int v = 0; v < g->nstages; v++) {
        gp_stage *st = &g->stage[v];
        st->workers_auto = leaves_open(st) && s.cost[v] > 0;
        if (st->workers_auto)
            st->workers = share(&s, st, s.cost[v]);
    }
    for (int i = 0; i < g->nbuffers; i++) {
        gp_buffer *b = &g->buffer[i];
        bool beside = !gp_is_const(b) && takes_room(&g->stage[b->producer.stage]);
        for (int u = 0; u < b->nuse; u++)
            beside |= takes_room(&g->stage[b->use[u].stage]);
        if (beside && !gp_is_const(b) && may_grow(g, b))
            make_room(&s, b);
    }
}
