/* stall.c - the report of a run in which nothing moves, neither frames nor bytes, and
 * nothing computes. The error is at the actor that holds up the others; its lines say, from
 * that actor outward, who waits for which frame or slot, and since when; then what was done last.
 *
 * Threads store what they do (gp_thread_doing), but not since when. The watchdog looks at each
 * tick whether that is still the same. So times are exact to a tick, and frames pay nothing. */
#include <string.h>
#include "base/plural.h"
#include "run/run.h"

enum { LINES = 16, RECENT = 5 };

/* ---- since when ------------------------------------------------------ */

/* How many frames an actor has done. */
static uint64_t done(const gp_actorrt *p)
{
    return p->nout ? atomic_load(&p->out[0]->produced.at)
        : p->nin   ? atomic_load(&p->in[0].ring->consumed[p->in[0].consumer].at)
                   : atomic_load(&p->next);
}

void gp_stall_note(gp_run *run, int64_t now)
{
    for (int i = 0; i < run->nthreads; i++) {
        gp_threadrt *t = &run->thread[i];
        int doing = atomic_load_explicit(&t->doing, memory_order_relaxed);
        uint64_t frame = atomic_load_explicit(&t->frame, memory_order_relaxed);
        if (!t->seen.since || t->seen.doing != doing || t->seen.frame != frame)
            t->seen.doing = doing, t->seen.frame = frame, t->seen.since = now;
    }
    for (int i = 0; i < run->plan->nactors; i++) {
        gp_actorrt *p = &run->actor[i];
        uint64_t n = done(p);
        if (!p->seen.since || p->seen.done != n)
            p->seen.done = n, p->seen.since = now;
    }
}

/* ---- states ---------------------------------------------------------- */

typedef enum gp_actor_state { BUSY, IDLE, WAITING, ENDED } gp_actor_state;

static bool is_busy(const gp_threadrt *t)
{
    return t->seen.doing == GP_DOING_WORK || t->seen.doing == GP_DOING_FINISH;
}

static gp_actor_state state_of(const gp_actorrt *p)
{
    gp_actor_state s = ENDED;
    for (int i = 0; i < p->nthreads; i++) {
        const gp_threadrt *t = &p->thread[i];
        if (is_busy(t))
            return BUSY;
        if (t->seen.doing == GP_DOING_IDLE)
            s = IDLE;
        else if (t->seen.doing != GP_DOING_GONE && s != IDLE)
            s = WAITING;
    }
    return s;
}

/* The busy thread with the lowest frame: the others cannot hand in before it. */
static const gp_threadrt *holder(const gp_actorrt *p)
{
    const gp_threadrt *h = NULL;
    for (int i = 0; i < p->nthreads; i++)
        if (is_busy(&p->thread[i]) && (!h || p->thread[i].seen.frame < h->seen.frame))
            h = &p->thread[i];
    return h;
}

/* Since when it has been in its state. */
static int64_t since(const gp_actorrt *p, gp_actor_state s)
{
    int64_t first = INT64_MAX, last = 0;
    for (int i = 0; i < p->nthreads; i++) {
        const gp_threadrt *t = &p->thread[i];
        if (t->seen.since > last)
            last = t->seen.since;
        if (t->seen.doing != GP_DOING_GONE && t->seen.since < first)
            first = t->seen.since;
    }
    return s == ENDED ? last : first;
}

/* ---- who waits for whom ---------------------------------------------- */

static bool waits_for_frame(const gp_actorrt *p, const gp_ringrt *r)
{
    return gp_actor_firings(p, atomic_load(&r->produced.at)) <= atomic_load(&p->next)
        && atomic_load(&r->end) == GP_UNKNOWN;
}

/* For consumer c of its ring r to free a slot. */
static bool waits_for_slot(const gp_actorrt *p, const gp_ringrt *r, int c)
{
    return !atomic_load(&r->consumed[c].closed)
        && atomic_load(&p->next) >= gp_actor_room(p, r, atomic_load(&r->consumed[c].at));
}

/* ---- lines ----------------------------------------------------------- */

typedef struct gp_report {
    gp_run *run;
    gp_errs *errs;
    int64_t now;
    gp_code code;              /* of a line */
    int lines;                 /* those beyond LINES are only counted */
} gp_report;

#define LINE(r, p, ...)             \
    ((void)((r)->lines++ < LINES && \
            gp_fail((r)->errs, (r)->code, gp_actor_at(p), __VA_ARGS__)))
#define WHO(p) (p)->kind == GP_ACTOR_HOST ? "stage" : "segment", (p)->name

typedef struct gp_ns_text { char text[24]; } gp_ns_text;

static gp_ns_text span(int64_t ns)
{
    gp_ns_text s;
    double t = (double)ns / 1e9;
    snprintf(s.text, sizeof s.text, t < 9.5 ? "%.2g s" : "%.0f s", t);
    return s;
}

#define SPAN(ns) span(ns).text
#define ULL(x) ((unsigned long long)(x))

gp_plugin_text gp_plugin_of(const gp_stage *s)
{
    gp_plugin_text t = { "" };
    if (s && s->plugin)
        snprintf(t.text, sizeof t.text, " (plug-in %.60s %.30s)", s->plugin->name, s->plugin->version);
    return t;
}

#define PLUGIN(p) gp_plugin_of((p)->kind == GP_ACTOR_HOST ? (p)->stage : NULL).text

/* `doing`: say what it is at. */
static void busy_line(gp_report *r, const gp_threadrt *t, bool doing)
{
    const gp_actorrt *p = t->actor;
    uint64_t f = t->seen.frame, next = atomic_load(&p->next);
    char who[60] = "", at[GP_DOING_TEXT] = "";
    gp_ns_text s = span(r->now - t->seen.since);

    if (p->kind == GP_ACTOR_SEGMENT && t->worker) {
        if (next > f + 1)
            snprintf(who, sizeof who, ", after it those up to %llu", ULL(gp_actor_number(p, next - 1)));
        LINE(r, p, "segment '%s' has had frame %llu on the device for %s%s", p->name, ULL(gp_actor_number(p, f)),
             s.text, who);
        return;
    }
    if (p->on_loan && t->seen.doing == GP_DOING_WORK) {
        LINE(r, p, "the program has had frame %llu of stage '%s' for %s", ULL(gp_actor_number(p, f)), p->name, s.text);
        return;
    }
    if (p->kind == GP_ACTOR_HOST && p->stage->workers > 1)
        snprintf(who, sizeof who, " (worker %d of %d)", t->worker + 1, p->stage->workers);
    if (doing)
        gp_thread_is(atomic_load(&t->tid), at);
    if (t->seen.doing == GP_DOING_FINISH)
        LINE(r, p, "stage '%s'%s%s has been in its finish for %s%s", p->name, PLUGIN(p), who, s.text, at);
    else
        LINE(r, p, "%s '%s'%s%s has been %s frame %llu for %s%s", WHO(p), PLUGIN(p), who,
             p->kind == GP_ACTOR_HOST ? "busy with" : "queueing", ULL(gp_actor_number(p, f)), s.text, at);
}

/* Consumer c >= 0: p waits for it to free a slot of ring `ring`; else for a frame. */
static void waiting_line(gp_report *r, const gp_actorrt *p, const gp_ringrt *ring, int c)
{
    const gp_actorrt *actor = r->run->actor;
    uint64_t next = atomic_load(&p->next), room = (uint64_t)gp_ring_room(ring);
    next = c >= 0 ? gp_actor_made(p, next + 1) - 1 : p->regroup ? gp_firing_to(p->regroup, next) - 1 : next;
    gp_ns_text s = span(r->now - since(p, WAITING));
    if (c < 0)
        LINE(r, p, "%s '%s' has waited %s for frame %llu of '%s', which %s '%s' makes", WHO(p),
             s.text, ULL(gp_actor_number(p, next)), ring->buffer->name, WHO(&actor[ring->ring->producer]));
    else
        LINE(r, p, "%s '%s' has waited %s to put frame %llu into '%s': its slot (%llu of %llu) has "
             "frame %llu, which %s '%s' needs", WHO(p), s.text, ULL(gp_actor_number(p, next)), ring->buffer->name,
             ULL(next % room + 1), ULL(room), ULL(gp_actor_number(p, next - room)),
             WHO(&actor[ring->ring->consumer[c]]));
}

/* Notes that p waits, if it does and has not been noted, and puts it on the list. */
static void visit(gp_report *r, gp_actorrt *p, const gp_ringrt *ring, int c, int *end)
{
    if (r->run->visited[p->index] || state_of(p) != WAITING
        || !(c < 0 ? waits_for_frame(p, ring) : waits_for_slot(p, ring, c)))
        return;
    waiting_line(r, p, ring, c);
    r->run->visited[p->index] = true;
    r->run->todo[(*end)++] = p->index;
}

/* A busy actor, and all that waits for it, the nearest first. */
static void chain(gp_report *r, const gp_actorrt *from)
{
    gp_run *run = r->run;
    int at = 0, end = 0;
    const gp_threadrt *first = holder(from);
    busy_line(r, first, r->lines > 0);     /* that of the first is in the headline */
    for (int i = 0; i < from->nthreads; i++)
        if (is_busy(&from->thread[i]) && &from->thread[i] != first)
            busy_line(r, &from->thread[i], true);
    run->visited[from->index] = true;
    run->todo[end++] = from->index;
    while (at < end) {
        const gp_actorrt *p = &run->actor[run->todo[at++]];
        for (int o = 0; o < p->nout; o++)
            for (int c = 0; c < p->out[o]->ring->nconsumers; c++)
                visit(r, &run->actor[p->out[o]->ring->consumer[c]], p->out[o], -1, &end);
        for (int i = 0; i < p->nin; i++)
            visit(r, &run->actor[p->in[i].ring->ring->producer], p->in[i].ring, p->in[i].consumer,
                  &end);
    }
}

/* An actor that waits for no busy one. */
static void lone_line(gp_report *r, gp_actorrt *p)
{
    gp_actor_state s = state_of(p);
    int end = 0;
    gp_ns_text t = span(r->now - since(p, s));
    if (s == ENDED)
        LINE(r, p, "%s '%s' ended %s ago, after %llu frame%s", WHO(p), t.text, ULL(done(p)),
             gp_plural((int64_t)done(p)));
    if (s == IDLE && p->on_loan)
        LINE(r, p, "the program has %s stage '%s' for %s%s", p->source ? "pushed no frame into" : "pulled no frame of",
             p->name, t.text,
             p->source ? ", nor said that no more frames come, by gp_push_close() (in Python close())"
                       : ": who pushes more frames than there is room for pulls between them, or another thread does");
    else if (s == IDLE)
        LINE(r, p, "stage '%s' has waited %s for %s outside", p->name, t.text,
             p->source ? "input from" : "a reader");
    for (int i = 0; i < p->nin; i++)
        visit(r, p, p->in[i].ring, -1, &end);
    for (int o = 0; o < p->nout; o++)
        for (int c = 0; c < p->out[o]->ring->nconsumers; c++)
            visit(r, p, p->out[o], c, &end);
}

/* "done last: frame 6 of 'read' 2.1 s ago, ..." */
static void recent_line(gp_report *r)
{
    const gp_actorrt *shown[RECENT];
    char text[500] = "";
    int n = 0;
    for (size_t used = 0; n < RECENT && used + 80 < sizeof text; n++) {
        const gp_actorrt *last = NULL;
        for (int i = 0; i < r->run->plan->nactors; i++) {
            const gp_actorrt *p = &r->run->actor[i];
            bool is_shown = !p->seen.done;
            for (int k = 0; k < n; k++)
                is_shown |= shown[k] == p;
            if (!is_shown && (!last || p->seen.since > last->seen.since))
                last = p;
        }
        if (!last)
            break;
        shown[n] = last;
        used += (size_t)snprintf(text + used, sizeof text - used, "%sframe %llu of '%.40s' %s ago",
                                 n ? ", " : "", ULL(gp_actor_number(last, last->seen.done - 1)), last->name,
                                 SPAN(r->now - last->seen.since));
    }
    if (n)
        gp_fail(r->errs, GP_E_NOTE, (gp_loc){ 0 }, "done last: %s", text);
}

/* ---- the report ------------------------------------------------------ */

/* The actor that has been busy for longest; of those, the first in the plan. */
static const gp_actorrt *culprit(const gp_run *run)
{
    const gp_threadrt *worst = NULL;
    for (int i = 0; i < run->plan->nactors; i++) {
        const gp_threadrt *h = holder(&run->actor[i]);
        if (h && (!worst || h->seen.since < worst->seen.since))
            worst = h;
    }
    return worst ? worst->actor : NULL;
}

static void headline(gp_report *r, const gp_actorrt *p, int64_t ns)
{
    char what[40] = "in its finish", doing[GP_DOING_TEXT];
    const gp_threadrt *h = p ? holder(p) : NULL;
    gp_loc file = { .file = r->run->graph->file };
    if (!h) {
        gp_fail(r->errs, GP_E_STALL, file, "nothing moved for %s: no stage is at work", SPAN(ns));
        return;
    }
    if (h->seen.doing == GP_DOING_WORK)
        snprintf(what, sizeof what, "with frame %llu", ULL(gp_actor_number(p, h->seen.frame)));
    if (p->on_loan && h->seen.doing == GP_DOING_WORK) {
        gp_fail(r->errs, GP_E_STALL, gp_actor_at(p), "nothing moved for %s: the program has had frame %llu of stage '%s' "
                "all the while, and that stage lends %d at a time (workers)", SPAN(ns),
                ULL(gp_actor_number(p, h->seen.frame)), p->name, p->nthreads);
        return;
    }
    gp_thread_is(p->kind == GP_ACTOR_HOST ? atomic_load(&h->tid) : 0, doing);
    gp_fail(r->errs, GP_E_STALL, gp_actor_at(p), "nothing moved for %s: %s '%s'%s is busy %s%s",
            SPAN(ns), WHO(p), PLUGIN(p), what, doing);
}

void gp_stall_report(gp_run *run, int64_t ns, gp_errs *errs)
{
    gp_report r = { run, errs, gp_now_ns(), GP_E_NOTE, 0 };
    const gp_actorrt *first = culprit(run);

    headline(&r, first, ns);
    pthread_mutex_lock(&run->lock);        /* of visited, todo */
    memset(run->visited, 0, sizeof *run->visited * (size_t)run->plan->nactors);
    if (first)
        chain(&r, first);
    for (int i = 0; i < run->plan->nactors; i++)
        if (!run->visited[i] && state_of(&run->actor[i]) == BUSY)
            chain(&r, &run->actor[i]);
    for (int i = 0; i < run->plan->nactors; i++)
        if (!run->visited[i])
            lone_line(&r, &run->actor[i]);
    pthread_mutex_unlock(&run->lock);
    if (r.lines > LINES)
        gp_fail(errs, GP_E_NOTE, (gp_loc){ 0 }, "and %d more", r.lines - LINES);
    recent_line(&r);
    bool on_gpu = first && first->kind == GP_ACTOR_SEGMENT && !run->dev[0]->backend->computed;
    gp_fail(errs, GP_E_NOTE, (gp_loc){ 0 }, "%sif it is only slow, raise 'stall_timeout'",
            on_gpu ? "a kernel that never ends and one that takes long look the same from here: " : "");
}

bool gp_stall_holds_up(gp_run *run, int64_t ns, gp_errs *errs)
{
    gp_report r = { run, errs, gp_now_ns(), GP_E_WARN, 0 };
    const gp_actorrt *p = culprit(run);
    bool does = p && r.now - holder(p)->seen.since >= ns;
    if (does)
        busy_line(&r, holder(p), true);
    return does;
}

bool gp_stall_slow(gp_run *run, int64_t ns, gp_errs *errs)
{
    gp_report r = { run, errs, gp_now_ns(), GP_E_WARN, 0 };
    for (int i = 0; i < run->nthreads; i++) {
        gp_threadrt *t = &run->thread[i];
        int64_t at = r.now - t->seen.since;
        if (!is_busy(t) || t->actor->on_loan || at < ns || at < 2 * t->seen.told_ns)
            continue;
        busy_line(&r, t, true);
        t->seen.told_ns = at;
    }
    return r.lines;
}

/* `begin`: of its text. */
static bool early(gp_run *run, gp_code code, const char *begin, gp_errs *errs)
{
    const gp_stage *st = atomic_load(&run->opening);
    const gp_actorrt *p = atomic_load(&run->warming);
    char doing[GP_DOING_TEXT];
    if (p)
        gp_fail(errs, code, gp_actor_at(p), "%ssegment '%s' is loading its kernels", begin, p->name);
    else if (st && st->prologue)
        gp_fail(errs, code, st->at, "%sstage '%s', which runs once, before frame 0, is not done", begin, st->name);
    else if (st)
        gp_fail(errs, code, st->at, "%sstage '%s'%s is still %s%s", begin, st->name, gp_plugin_of(st).text,
                atomic_load(&run->breaks_off) ? "in its finish" : "being opened",
                gp_thread_is(atomic_load(&run->set_up_tid), doing));
    return p || st;
}

bool gp_stall_report_early(gp_run *run, int64_t ns, gp_errs *errs)
{
    char begin[60];
    snprintf(begin, sizeof begin, "nothing moved for %s: ", SPAN(ns));
    return early(run, GP_E_STALL, begin, errs)
        && (gp_fail(errs, GP_E_NOTE, (gp_loc){ 0 }, "if it is only slow, raise 'stall_timeout'"), true);
}

bool gp_stall_holds_up_early(gp_run *run, int64_t ns, gp_errs *errs)
{
    return early(run, GP_E_WARN, "", errs);
}
