/* glance.c - how a run stands, taken from its counters. */
#include <stdlib.h>
#include <string.h>
#include "cli/live.h"

enum { MEAN_S = 2 };

bool gp_glance_room(gp_glance *v, int stages, int buffers)
{
    return gp_make_room(&v->stage, &v->stages_cap, stages, sizeof *v->stage)
        && gp_make_room(&v->buffer, &v->buffers_cap, buffers, sizeof *v->buffer);
}

void gp_glance_free(gp_glance *v)
{
    gp_counters_free(&v->now);
    free(v->stage), free(v->buffer), free(v->rank_fill);
    *v = (gp_glance){ 0 };
}

/* How full the buffers at a stage are: the emptiest of its inputs, or the fullest of its outputs. A status has its
 * names from where the others have theirs: the same pointers. `of`: how full the buffers of one rank are; NULL: those
 * of all together. */
static double fill_of(const gp_glance *v, int stage, bool inputs, const double *of)
{
    double found = inputs;
    for (int b = 0; b < v->nbuffers; b++) {
        double fill = of ? of[b] : v->buffer[b].fill;
        if ((inputs ? v->buffer[b].is.to : v->buffer[b].is.from) == v->stage[stage].is.name
            && (inputs ? fill < found : fill > found))
            found = fill;
    }
    return found;
}

/* The stage whose inputs are full while its outputs are empty. */
static int find_bound(const gp_glance *v, const double *of)
{
    int best = -1;
    double most = 0.5;
    for (int i = 0; i < v->nstages; i++) {
        double full = fill_of(v, i, true, of) - fill_of(v, i, false, of);
        if (full > most)
            most = full, best = i;
    }
    return best;
}

/* Is it a stage where ranks meet? */
static bool meets(const gp_pipeline *p, const char *name)
{
    gp_stage_info s;
    for (int i = 0; gp_pipeline_stage(p, i, &s); i++)
        if (s.kind->collective && !strcmp(s.name, name))
            return true;
    return false;
}

/* The rank that comes last where ranks meet: nothing waits there, while frames of another one do. -1: none does. */
static int find_last(const gp_glance *v, const gp_pipeline *p)
{
    const double differ = 0.5;
    double most = differ;
    int last = -1;
    for (int i = 0; i < v->nstages; i++) {
        double full = 0, least = 1;
        int who = -1;
        for (int r = 0; r < v->ranks && meets(p, v->stage[i].is.name); r++) {
            double fill = fill_of(v, i, true, v->rank_fill + r * v->nbuffers);
            full = fill > full ? fill : full;
            if (fill < least)
                least = fill, who = r;
        }
        if (full - least > most)
            most = full - least, last = who;
    }
    return last;
}

/* What one of several ranks does not reach holds back all. */
static void look_at_ranks(gp_glance *v, gp_ranks *us, const gp_pipeline *p, double part)
{
    int n = v->ranks * v->nbuffers;
    double *now = v->ranks > 1 && n ? calloc((size_t)n, sizeof *now) : NULL;
    bool known = now && gp_make_room(&v->rank_fill, &v->rank_fill_cap, n, sizeof *v->rank_fill)
        && gp_ranks_fills(us, &v->now, now);
    for (int i = 0; known && i < n; i++)
        v->rank_fill[i] += (now[i] - v->rank_fill[i]) * part;
    free(now);
    v->bound_rank = known ? find_last(v, p) : -1;
    if (v->bound_rank >= 0)
        v->bound = find_bound(v, v->rank_fill + v->bound_rank * v->nbuffers);
    v->bound_meets = v->ranks > 1 && v->bound >= 0 && meets(p, v->stage[v->bound].is.name);
}

void gp_glance_look(gp_glance *v, gp_ranks *us, const gp_pipeline *p, double seconds)
{
    gp_account some;
    if (v->nstages && gp_accounts(p, &some, 1) < 1)    /* it goes on elsewhere at this moment */
        return;
    double dt = seconds - v->looked, age = seconds - v->began;
    double part = age > MEAN_S ? dt / MEAN_S : age > 0 ? dt / age : 1;     /* of what is new */
    part = part < 1 ? part : 1;

    v->pipeline = gp_pipeline_made_of(p, 0), v->of = p;
    v->seconds = v->looked = seconds, v->syncing = gp_syncing(p);
    gp_counters_read(&v->now, p);
    gp_ranks_way way = { .frames = gp_frames_of(p) };
    gp_ranks_whole(us, &v->now, &way);
    v->rank = gp_rank(us), v->ranks = gp_ranks_n(us), v->behind = way.behind, v->behind_done = way.behind_done;
    const gp_stage_status *st = v->now.stage;
    const gp_buffer_status *b = v->now.buffer;
    bool room = gp_glance_room(v, v->now.nstages, v->now.nbuffers);
    v->source = v->now.source, v->nsources = v->now.nsources;
    v->nstages = room ? v->now.nstages : 0, v->nbuffers = room ? v->now.nbuffers : 0;
    v->bound = v->bound_rank = -1, v->bound_meets = false, v->left_s = -1;
    v->nknobs = gp_pipeline_knobs(p, v->knob, GP_KNOBS);
    v->nknobs = v->nknobs < GP_KNOBS ? v->nknobs : GP_KNOBS;
    if (!v->nstages) {                     /* not before frame 0 */
        v->began = seconds;
        return;
    }
    if (dt <= 0)
        return;
    uint64_t moved = gp_frames_moved(v->source, v->nsources);
    if (moved < v->moved)              /* it has just gone on elsewhere */
        moved = v->moved;
    v->frames_s += ((double)(moved - v->moved) / dt - v->frames_s) * part;
    v->moved = moved, v->done = gp_frames_done(v->source, v->nsources), v->frames = way.frames > 0 ? (uint64_t)way.frames : 0;
    v->in = 0;
    for (int i = 0; i < v->nsources; i++)
        v->in = v->source[i].in > v->in ? v->source[i].in : v->in;
    for (int i = 0; i < v->nstages; i++) {
        const gp_stage_status *was = &v->stage[i].is;
        double frames_s = st[i].frames > was->frames ? (double)(st[i].frames - was->frames) / dt : 0;
        double bytes_s = st[i].bytes > was->bytes ? (double)(st[i].bytes - was->bytes) / dt : 0;
        v->stage[i].frames_s += (frames_s - v->stage[i].frames_s) * part;
        v->stage[i].bytes_s += (bytes_s - v->stage[i].bytes_s) * part;
        v->stage[i].is = st[i];
    }
    for (int i = 0; i < v->nbuffers; i++) {
        double fill = (double)b[i].held / b[i].depth;
        v->buffer[i].fill += (fill - v->buffer[i].fill) * part;
        v->buffer[i].is = b[i];
    }
    v->bound = find_bound(v, NULL);
    look_at_ranks(v, us, p, part);
    if (v->frames && moved && moved <= v->frames && seconds > v->began)
        v->left_s = (double)(v->frames - moved) * (seconds - v->began) / (double)moved;
    if (v->left_s >= 0 && way.left >= 0)
        v->left_s = way.left * (seconds - v->began);
}
