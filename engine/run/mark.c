/* mark.c - memory of the device on loan: what the program has queued there, in a stream of its own.
 *
 * A loan ends with a mark, an event in that stream. Each slot of the buffer has one for each stage on loan beside it. What
 * a segment launches on the slot waits for the mark on the device, so that no thread does; of a frame for which it
 * launches nothing its thread waits. Where a stage beside it is in no segment, the thread of the program waits when it
 * ends the loan. So a mark is passed before the slot is lent again. */
#include "run/segment.h"

static bool has_marks(const gp_actorrt *p)
{
    return p->on_loan && p->stage->fills_device && !p->run->plan->unified && p->run->dev[0]->backend->mark;
}

static gp_ringrt *ring_of(const gp_actorrt *p)
{
    return p->source ? p->out[0] : p->in[0].ring;
}

bool gp_marks_init(gp_run *run, gp_errs *errs)
{
    int n = 0;
    for (int i = 0; i < run->plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        if (!has_marks(p))
            continue;
        p->mark0 = n + 1, n += ring_of(p)->ring->depth;
        for (int k = 0; k < p->nnear; k++) {
            p->near[k]->marked |= p->near[k]->seg != NULL;
            p->waits_for_marks |= !p->near[k]->seg;
        }
    }
    return !n || run->dev[0]->backend->marks(run->dev[0], n, errs);
}

int gp_mark_device(const gp_actorrt *p)
{
    return p->mark0 ? p->run->graph->device[0].index : -1;
}

static int mark_of(const gp_actorrt *p, uint64_t frame)
{
    return p->mark0 - 1 + (int)(frame % (uint64_t)ring_of(p)->ring->depth);
}

bool gp_mark(gp_actorrt *p, uint64_t frame, void *stream, bool wait, gp_errs *errs)
{
    gp_dev *dev = p->run->dev[0];
    return !p->mark0 || (dev->backend->mark(dev, mark_of(p, frame), stream, errs)
                         && (!(wait || p->waits_for_marks) || dev->backend->pass(dev, mark_of(p, frame), errs)));
}

static bool await(const gp_actorrt *p, int stream, const gp_actorrt *other, uint64_t from, uint64_t to, gp_errs *errs)
{
    int number = 0;
    gp_dev *dev = stream < 0 ? p->run->dev[0] : gp_stream_lane(p, stream, &number)->dev;
    const gp_backend *be = dev->backend;
    bool ok = true;
    for (uint64_t f = from; f < to && ok && other->mark0; f++)
        ok = stream < 0 ? be->pass(dev, mark_of(other, f), errs) : be->await(dev, number, mark_of(other, f), errs);
    return ok;
}

bool gp_marks_await(const gp_actorrt *p, uint64_t f, int n, int stream, gp_errs *errs)
{
    gp_actorrt *actor = p->run->actor;
    uint64_t from = p->regroup ? gp_firing_from(p->regroup, f) : f, end = f + (uint64_t)n;
    uint64_t to = p->regroup && n ? gp_firing_to(p->regroup, end - 1) : end;
    bool ok = true;
    for (int i = 0; i < p->nin && ok; i++)
        ok = await(p, stream, &actor[p->in[i].ring->ring->producer], from, to, errs);
    for (int o = 0; o < p->nout; o++)
        for (int c = 0; c < p->out[o]->ring->nconsumers && ok; c++)
            ok = await(p, stream, &actor[p->out[o]->ring->consumer[c]], gp_actor_made(p, f), gp_actor_made(p, end) + !n, errs);
    return ok;
}

void gp_marks_pass(const gp_actorrt *p)
{
    gp_errs none = { .n = 0 };         /* a device that has stopped says so elsewhere */
    gp_dev *dev = p->run->dev[0];
    for (int i = 0; p->mark0 && i < ring_of(p)->ring->depth; i++)
        dev->backend->pass(dev, p->mark0 - 1 + i, &none);
}
