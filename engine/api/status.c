/* status.c - the numbers of a run, for whoever asks while it runs and after.
 *
 * Only counters are read, each by itself: nobody that moves frames waits for this. */
#include "run/run.h"

static gp_run *run_of(const gp_pipeline *p)
{
    gp_run *run = atomic_load(&((gp_pipeline *)p)->run);
    return run && run->ready ? run : NULL;
}

int gp_accounts(const gp_pipeline *p, gp_account *out, int max)
{
    const gp_run *run = atomic_load(&((gp_pipeline *)p)->run);
    int n = run ? run->naccounts : 0;
    for (int i = 0; i < n && i < max; i++) {
        gp_accountrt *l = &run->account[i];
        gp_account a = { .source = run->graph->stage[l->source].name };
        a.out = atomic_load(&l->out), a.dropped = atomic_load(&l->dropped);
        a.failed = atomic_load(&l->failed);
        a.in = atomic_load(&l->in);        /* last: it is the largest */
        a.cancelled = a.in - a.out - a.dropped - a.failed;
        out[i] = a;
    }
    return n;
}

static uint64_t busy_of(gp_actorrt *q)
{
    uint64_t idle = atomic_load(&q->idle_ns), busy = atomic_load(&q->busy_ns);
    return q->kind == GP_ACTOR_HOST && busy > idle ? busy - idle : 0;
}

int gp_stages_status(const gp_pipeline *p, gp_stage_status *out, int max)
{
    const gp_run *run = run_of(p);
    int n = run ? run->plan->nactors : 0;
    for (int i = 0; i < n && i < max; i++) {
        gp_actorrt *q = &run->actor[i];
        out[i] = (gp_stage_status){ q->name, atomic_load(&q->frames), atomic_load(&q->bytes),
                                    busy_of(q),
                                    q->kind == GP_ACTOR_HOST ? q->stage->workers : 0,
                                    gp_segment_computed(q) };
    }
    return n;
}

int gp_buffers_status(const gp_pipeline *p, gp_buffer_status *out, int max)
{
    const gp_run *run = run_of(p);
    int n = 0;
    for (int i = 0; run && i < run->plan->nactors; i++) {
        const gp_actorrt *to = &run->actor[i];
        for (int k = 0; k < to->nin; k++) {
            if (n++ >= max)
                continue;
            gp_ringrt *r = to->in[k].ring;
            gp_cursor *c = &r->consumed[to->in[k].consumer];
            uint64_t done = atomic_load(&c->at);       /* first: it follows the other */
            uint64_t held = atomic_load(&r->produced.at) - done;
            int depth = r->ring->depth;
            out[n - 1] = (gp_buffer_status){
                r->buffer->name, run->actor[r->ring->producer].name, to->name, depth,
                atomic_load(&c->closed) ? 0 : held < (uint64_t)depth ? (int)held : depth };
        }
    }
    return n;
}

void gp_latency(const gp_pipeline *p, gp_hist *out)
{
    const gp_run *run = run_of(p);
    *out = (gp_hist){ .n = 0 };
    for (int i = 0; run && i < run->plan->nactors; i++)
        if (run->actor[i].kind == GP_ACTOR_HOST)
            gp_host_latency(&run->actor[i], out);
}

bool gp_syncing(const gp_pipeline *p)
{
    const gp_run *run = run_of(p);
    return run && atomic_load(&run->syncing);
}
