/* host_unwritten.c - does a host stage write all of its outputs?
 *
 * As unwritten.c has it of device stages. A host stage may have state, so that it runs once. Each worker fills
 * the outputs of its first frame with a pattern before, and looks for it after, in the elements that were made; the
 * first frame of all that is no hole is the first of some worker. As long as pattern.c is not sure, it does so with its
 * next frames, over other patterns. It looks at a frame that may have more elements than any it has looked at: partial
 * frames may come before the first whole one, and a frame that is dropped or has no elements tells nothing. */
#include "run/host.h"
#include "run/pattern.h"

struct gp_host_unwritten {
    gp_pattern pattern;
    int64_t seen;              /* elements: the most that a frame could have that was looked at */
    int64_t most;              /* that this one can have, with the pattern in it; 0: it has no pattern */
    size_t bytes;              /* ... and the bytes of these: none behind them are its own */
};

void gp_host_unwritten_init(gp_actorrt *p, gp_worker_view *wv)
{
    const gp_stage *st = p->stage;
    if (!gp_pattern_applies(p->run, st) || !st->nout)
        return;
    wv->unwritten = GP_NEW_LINES(&p->run->arena, gp_host_unwritten, st->nout);
    for (int o = 0; o < st->nout; o++) {
        gp_pattern *pt = &wv->unwritten[o].pattern;
        *pt = gp_pattern_of(st, o, &p->run->graph->buffer[st->out[o]].type, false);
        pt->frames = true;
        pt->same = GP_NEW_LINES(&p->run->arena, unsigned char, pt->n / 8 + 1);
    }
}

static bool is_due(const gp_actorrt *p, const gp_host_unwritten *u, const gp_view *v)
{
    return p->run->pipeline->tried || u->pattern.turn || gp_count(&v->type) > u->seen;
}

bool gp_host_unwritten_asks(const gp_actorrt *p, const gp_worker_view *wv, const gp_frame *fr)
{
    for (int o = 0; o < p->stage->nout; o++)
        if (is_due(p, &wv->unwritten[o], &fr->out[o]))
            return true;
    return false;
}

void gp_host_unwritten_fill(const gp_actorrt *p, gp_worker_view *wv)
{
    for (int o = 0; o < p->stage->nout; o++) {
        gp_host_unwritten *u = &wv->unwritten[o];
        const gp_view *v = &wv->frame->out[o];
        u->most = is_due(p, u, v) ? gp_count(&v->type) : 0, u->bytes = gp_bytes(&v->type);
        if (u->most > u->seen || !u->pattern.turn)
            gp_pattern_begin(&u->pattern);
        if (u->most)
            gp_pattern_put(&u->pattern, v->data);
    }
}

/* A frame that has fewer rows than others lies in a slot that has room for all: there it does no harm, but elsewhere, and
 * it is a mistake. Rows that run() adds are the frame's. */
static bool is_behind_kept(const gp_actorrt *p, const gp_host_unwritten *u, const gp_view *v, uint64_t f, gp_errs *errs)
{
    const gp_stage *st = p->stage;
    size_t made = gp_bytes(&v->type), bytes = made > u->bytes ? made : u->bytes;
    int64_t at = gp_pattern_behind(&u->pattern, v->data, bytes);
    return at < 0 || gp_fail(errs, GP_E_RUN, st->at, "stage '%s' wrote behind the end of '%s' in frame %llu: byte %lld, and that "
                             "frame has %zu", st->name, st->out_name[u->pattern.out],
                             (unsigned long long)gp_actor_number(p, f), (long long)at, bytes);
}

bool gp_host_unwritten_look(const gp_actorrt *p, gp_worker_view *wv, gp_errs *errs)
{
    const gp_frame *fr = wv->frame;
    bool due = p->run->pipeline->tried;
    for (int o = 0; o < p->stage->nout; o++) {
        gp_host_unwritten *u = &wv->unwritten[o];
        const gp_view *v = &fr->out[o];
        if (p->run->pipeline->tried && u->most && !is_behind_kept(p, u, v, fr->index, errs))
            return false;
        if (u->most && v->type.dim[0]) {
            int r = gp_pattern_look(&u->pattern, v->data, &v->type);
            if (r < 0) {
                gp_pattern_fail(&u->pattern, gp_actor_number(p, fr->index), " (counted from 0)",
                                "Write them all, make fewer rows", errs);
                return false;
            }
            u->seen = u->most > u->seen ? u->most : u->seen;
            if (r)
                u->pattern.turn = 0;
        }
        due |= u->pattern.turn || u->seen < gp_count(u->pattern.type);
    }
    if (!due)
        wv->unwritten = NULL;
    return true;
}
