/* report.c - the numbers of a run that is over, see report.h. */
#include <math.h>
#include "run/measure.h"
#include "run/pipeline.h"
#include "run/segment.h"
#include "run/trace.h"
#include "report/report.h"

static int64_t cpu_of(gp_actorrt *p)
{
    double sampled = (double)atomic_load(&p->sampled_ns), busy = (double)atomic_load(&p->busy_ns);
    if (p->segment)
        return p->run->plan->unified ? (int64_t)gp_segment_computed(p) : -1;
    return sampled > 0 ? (int64_t)((double)atomic_load(&p->cpu_ns) * (busy / sampled)) : -1;
}

static void add_actor(gp_actor_report *r, const gp_run *run, gp_actorrt *p)
{
    const gp_graph *g = run->graph;
    int64_t end = atomic_load(&p->end_ns);
    *r = (gp_actor_report){
        .name = p->name, .stage = p->stage ? (int)(p->stage - g->stage) : -1,
        .segment = p->segment ? (int)(p->segment - run->plan->segment) : -1,
        .at = gp_actor_at(p), .workers = p->stage ? p->stage->workers : 0,
        .frames = atomic_load(&p->frames), .bytes = atomic_load(&p->bytes),
        .launches = p->segment ? atomic_load(&p->launches) : 0,
        .end_ns = (end && end < run->end_ns ? end : run->end_ns) - run->start_ns,
        .busy_ns = (int64_t)atomic_load(&p->busy_ns), .idle_ns = (int64_t)atomic_load(&p->idle_ns),
        .cpu_ns = cpu_of(p),
        .wait_in_ns = (int64_t)atomic_load(&p->wait_ns[GP_WAITS_FOR_INPUT]),
        .wait_out_ns = (int64_t)atomic_load(&p->wait_ns[GP_WAITS_FOR_OUTPUT]),
        .wait_stream_ns = (int64_t)atomic_load(&p->wait_ns[GP_WAITS_FOR_STREAM]),
    };
    r->streams = p->segment ? p->segment->streams : 0;
    bool alone = !p->stage || p->stage->serial || p->stage->cycle || p->regroup;
    int cpus = run->pipeline->cpus, able = p->stage ? p->stage->most_workers : 0;
    r->most_workers = alone ? 1 : able && able < cpus ? able : cpus;
    for (int t = 0; p->stage && t < p->nthreads; t++) {
        gp_hist_merge(&r->time, p->thread[t].time);
        r->turns += p->thread[t].turns;
    }
    if (p->stage)
        r->turn = gp_measured_turns(p);
    if (p->segment && p->seg->time)
        gp_hist_merge(&r->time, p->seg->time);
}

static void add_buffers(gp_report *r, gp_arena *a, const gp_run *run)
{
    int n = 0;
    for (int i = 0; i < r->nactors; i++)
        n += run->actor[i].nin;
    r->buffer = GP_NEW(a, gp_buffer_report, n);
    for (int i = 0; i < r->nactors; i++)
        for (int k = 0; k < run->actor[i].nin; k++) {
            const gp_ring_end *l = &run->actor[i].in[k];
            r->buffer[r->nbuffers++] = (gp_buffer_report){
                .name = l->ring->buffer->name, .buffer = l->ring->ring->buffer,
                .from = l->ring->ring->producer, .to = i, .depth = l->ring->ring->depth,
                .held = r->wall_ns > 0
                    ? (double)gp_measure_held(run, l, run->end_ns) / (double)r->wall_ns : 0 };
        }
}

/* A device is asked how fast it copies when it has nothing to do: all threads are back. */
static void read_limits(const gp_run *run, int device, double limit[GP_ENGINES])
{
    gp_errs ignored = { .n = 0 };
    gp_dev *dev = run->dev[device];
    bool copies = false;
    for (int e = 0; e < GP_ENGINES; e++)
        copies |= run->engine[device][e].bytes + run->engine[device][e].by_kernels > 0;
    if (copies && !atomic_load(&run->live) && dev->backend->rates)
        dev->backend->rates(dev, &limit[GP_ENGINE_COPY_IN], &limit[GP_ENGINE_COPY_OUT], &ignored);
}

/* Without stamps the times are estimates: of copies the time that their bytes take at the
 * limit, of compute the time from when launches were queued until they were seen to be done. */
static gp_engine_report engine_of(const gp_run *run, int device, gp_engine e, double limit, int64_t wall_ns)
{
    const gp_engine_time *t = &run->engine[device][e];
    gp_engine_report r = {
        .name = gp_engine_name(e), .used = t->used || t->bytes || t->by_kernels,
        .measured = !t->estimated && (t->used || t->by_kernels),
        .busy_ns = t->busy_ns, .bytes = t->bytes, .by_kernels = t->by_kernels, .limit = limit,
        .on = device, .device = run->graph->ndevices > 1 ? run->graph->device[device].name : NULL };
    if (!r.measured && limit > 0)
        r.busy_ns = (int64_t)((double)t->bytes / limit * 1e9);
    r.busy_ns = r.busy_ns > wall_ns ? wall_ns : r.busy_ns;
    return r;
}

static void add_engines(gp_report *r, gp_arena *a, gp_run *run)
{
    gp_engine_report *all = GP_NEW(a, gp_engine_report, run->ndevs * GP_ENGINES);
    r->all = all;
    for (int e = 0; e < GP_ENGINES; e++)
        r->engine[e].name = gp_engine_name((gp_engine)e);
    for (int d = 0; d < run->ndevs; d++) {
        double limit[GP_ENGINES] = { 0 };
        read_limits(run, d, limit);
        pthread_mutex_lock(&run->engine_lock);
        for (int e = 0; e < GP_ENGINES; e++) {
            gp_engine_report x = engine_of(run, d, (gp_engine)e, limit[e], r->wall_ns);
            all[r->nall++] = x;
            if (x.used && (!r->engine[e].used || x.busy_ns > r->engine[e].busy_ns))
                r->engine[e] = x;
        }
        pthread_mutex_unlock(&run->engine_lock);
    }
}

static void add_cores(gp_report *r, const gp_run *run)
{
    double worked = gp_cores_worked(run->ticks[0], run->ticks[1]);
    double own = r->wall_ns > 0 ? (double)r->cpu_ns / (double)r->wall_ns : 0;
    r->cpus = run->pipeline->cpus;
    r->delayed_ns = atomic_load(&run->delayed_ns);
    r->others = worked > own ? worked - own : 0;
    r->quota = gp_cores_quota("/proc/self/cgroup", "/sys/fs/cgroup");
}

double gp_report_overlap(const gp_report *r)
{
    double sum = 0, most = 0;
    int busy = 0;
    for (int i = 0; i < r->nactors + r->nall; i++) {
        double b = 0;
        if (i >= r->nactors)
            b = (double)r->all[i - r->nactors].busy_ns;
        else if (r->actor[i].stage >= 0)
            b = (double)(r->actor[i].busy_ns - r->actor[i].idle_ns) / r->actor[i].workers;
        sum += b, busy += b > 0;
        most = b > most ? b : most;
    }
    double part = busy > 1 && sum > most ? (sum - (double)r->wall_ns) / (sum - most) : 1;
    return part < 0 ? 0 : part > 1 ? 1 : part;
}

double gp_report_usable(const gp_report *r)
{
    double left = r->cpus - r->others;
    left = r->quota > 0 && r->quota < left ? r->quota : left;
    return left > 0 ? left : 0;
}

uint64_t gp_frames_done(const gp_account *a, int n)
{
    uint64_t most = 0;
    for (int i = 0; i < n; i++) {
        uint64_t done = a[i].out + a[i].dropped + a[i].failed;
        most = done > most ? done : most;
    }
    return most;
}

uint64_t gp_frames_moved(const gp_account *a, int n)
{
    uint64_t most = 0;
    for (int i = 0; i < n; i++) {
        uint64_t moved = a[i].block == 1 ? gp_frames_done(&a[i], 1) : a[i].in;
        most = moved > most ? moved : most;
    }
    return most;
}

int64_t gp_run_began(const gp_pipeline *p)
{
    const gp_run *run = gp_pipeline_lock_run(p);
    int64_t began = run && run->ready ? run->start_ns : 0;
    gp_pipeline_unlock_run(p);
    return began;
}

int64_t gp_clock_other(const gp_clock *c, int64_t ns)
{
    return ns - (int64_t)llround(c->ahead + c->drift * (double)(ns - c->at));
}

gp_report *gp_report_make(gp_arena *a, const gp_pipeline *p, gp_errs *errs)
{
    gp_run *run = gp_pipeline_lock_run(p);
    if (!run || !run->ready || !run->end_ns || !run->options.timed) {
        bool untimed = run && run->ready && run->end_ns;
        gp_pipeline_unlock_run(p);
        gp_fail(errs, GP_E_RUN, (gp_loc){ 0 }, "there is nothing to report: %s",
                untimed ? "no times were taken ('timed' of gp_run_options)" : "no frame was begun");
        return NULL;
    }
    gp_report *volatile report = NULL;
    GP_UNLESS_OOM(a) {
        gp_report *r = GP_NEW(a, gp_report, 1);
        r->wall_ns = run->end_ns - run->start_ns;
        r->cpu_ns = run->cpu_ns;
        add_cores(r, run);
        r->unified = run->plan->unified;
        r->one_thread = atomic_load(&run->loan_tid) > 0;
        r->nactors = run->plan->nactors;
        r->actor = GP_NEW(a, gp_actor_report, r->nactors);
        for (int i = 0; i < r->nactors; i++)
            add_actor(&r->actor[i], run, &run->actor[i]);
        add_buffers(r, a, run);
        gp_measured_wakes(run, &r->wakes, &r->wake_calls);
        gp_run_latency(run, &r->latency);
        r->late = gp_latency_late(run);
        add_engines(r, a, run);
        r->overlap = gp_report_overlap(r);
        report = r;
    } else {
        gp_no_memory(errs);
    }
    gp_pipeline_unlock_run(p);
    a->oom = NULL;
    return report;
}
