/* threads.c - what threads of a machine share, its cores; how long they wait, and what it takes to wake one. */
#include "simulate/model.h"

void gp_model_share_cores(simulation *x, double work, what then, int a, int lane)
{
    gp_share *cores = x->actor[a].host->cores;
    touch(x, cores);
    gp_share_add(cores, work, then, a, lane);
}

/* Adds what its idle threads waited up to now. */
void gp_model_count_waits(simulation *x, actor *p)
{
    int64_t ns = (int64_t)((x->now - p->since) * p->nidle);
    gp_actor_report *r = p->report;
    if (p->why == FOR_INPUT)
        r->wait_in_ns += ns;
    else if (p->why == FOR_OUTPUT)
        r->wait_out_ns += ns;
    else if (p->why == FOR_STREAM)
        r->wait_stream_ns += ns;
    p->since = x->now;
}

void gp_model_set_idle(simulation *x, actor *p, int n, reason why)
{
    gp_model_count_waits(x, p);
    if (x->spins) {
        touch(x, p->host->cores);
        p->host->cores->always += n - p->nidle;
    }
    p->nidle = n, p->why = why;
}
