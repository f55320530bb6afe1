/* status.c - the numbers of a run, for whoever asks while it runs and after.
 *
 * Only counters are read, each by itself: nobody that moves frames waits for this. */
#include "run/paused.h"
#include "run/pipeline.h"

/* As gp_pipeline_lock_run; NULL, too, when no frame was begun. */
static gp_run *lock(const gp_pipeline *p)
{
    gp_run *run = gp_pipeline_lock_run(p);
    return run && run->ready ? run : NULL;
}

int gp_accounts(const gp_pipeline *p, gp_account *out, int max)
{
    const gp_run *run = gp_pipeline_lock_run(p);
    const struct gp_paused *x = p->paused;
    int n = x ? x->naccounts : run ? run->naccounts : 0;
    for (int i = 0; i < n && i < max; i++) {
        const gp_accountrt *l = x ? &x->account[i] : &run->account[i];
        gp_account a = { .source = p->graph->stage[l->source].name, .block = l->most };
        uint64_t lost = atomic_load(&l->lost);
        a.out = atomic_load(&l->out), a.dropped = atomic_load(&l->dropped) + lost;
        a.failed = atomic_load(&l->failed), a.faulty = atomic_load(&l->faulty);
        a.late = atomic_load(&l->late), a.lost = atomic_load(&l->missed) + lost, a.full = atomic_load(&l->full);
        a.in = atomic_load(&l->in) + lost; /* last: it is the largest */
        a.cancelled = a.in - a.out - a.dropped - a.failed;
        out[i] = a;
    }
    gp_pipeline_unlock_run(p);
    return n;
}

static uint64_t busy_of(gp_actorrt *q)
{
    uint64_t idle = atomic_load(&q->idle_ns), busy = atomic_load(&q->busy_ns);
    return q->kind == GP_ACTOR_HOST && busy > idle ? busy - idle : 0;
}

int gp_stages_status(const gp_pipeline *p, gp_stage_status *out, int max)
{
    const gp_run *run = lock(p);
    int n = run ? run->plan->nactors : 0;
    for (int i = 0; i < n && i < max; i++) {
        gp_actorrt *q = &run->actor[i];
        out[i] = (gp_stage_status){ q->name, atomic_load(&q->frames), atomic_load(&q->bytes),
                                    busy_of(q),
                                    q->kind == GP_ACTOR_HOST ? q->stage->workers : 0 };
    }
    gp_pipeline_unlock_run(p);
    return n;
}

int gp_buffers_status(const gp_pipeline *p, gp_buffer_status *out, int max)
{
    const gp_run *run = lock(p);
    int n = 0;
    for (int i = 0; run && i < run->plan->nactors; i++) {
        const gp_actorrt *to = &run->actor[i];
        for (int k = 0; k < to->nin; k++) {
            if (n++ >= max)
                continue;
            gp_ringrt *r = to->in[k].ring;
            gp_cursor *c = &r->consumed[to->in[k].consumer];
            uint64_t done = atomic_load(&c->at);       /* first: it follows the other */
            uint64_t made = atomic_load(&r->produced.at), held = made > done ? made - done : 0;
            int depth = gp_ring_room(r);
            out[n - 1] = (gp_buffer_status){
                r->buffer->name, run->actor[r->ring->producer].name, to->name, depth,
                atomic_load(&c->closed) ? 0 : held < (uint64_t)depth ? (int)held : depth };
        }
    }
    gp_pipeline_unlock_run(p);
    return n;
}

void gp_latency(const gp_pipeline *p, gp_hist *out)
{
    const gp_run *run = lock(p);
    *out = (gp_hist){ .n = 0 };
    if (run)
        gp_run_latency(run, out);
    gp_pipeline_unlock_run(p);
}

bool gp_syncing(const gp_pipeline *p)
{
    const gp_run *run = lock(p);
    bool syncing = run && atomic_load(&run->syncing);
    gp_pipeline_unlock_run(p);
    return syncing;
}
