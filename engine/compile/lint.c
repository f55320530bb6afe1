/* lint.c - plans that are correct but will be slow, fail at their second frame, or do the same again and again: the
 * usual mistakes, reported as warnings with a place and an edit to try.
 *
 * One table: a name, a test, what to do. Only what is certain without a run is
 * reported; what depends on time is for `gpipe bench`. A pure pass like the others, but
 * only `gpipe check` runs it. Invariant: it changes nothing and fails nothing. */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include "base/plural.h"
#include "compile/firing.h"
#include "compile/inside.h"
#include "compile/loop.h"
#include "compile/plan.h"
#include "compile/resolve.h"

typedef struct linting {
    const gp_plan *p;
    const gp_graph *g;
    const gp_node *root;
    const gp_machine *m;
    const char *text; size_t len;
    gp_errs *errs;
    gp_arena arena;
    const gp_inside *insides;
    const struct lint *lint;   /* the one at work, and where its warnings start */
    int first;
    const char *near; int near_line;       /* where the file's line that was looked at last begins: most are looked at in order */
} linting;

typedef struct lint {
    const char *name;
    void (*test)(linting *);           /* of the whole plan; or */
    void (*test_stage)(linting *, const gp_stage *);       /* ... of each stage */
    const char *edit;
} lint;

/* ---- reports --------------------------------------------------------- */

/* Does the line of the place contain "# nolint:" and, after that, this lint's name? */
static bool silenced(linting *l, gp_loc at)
{
    static const char mark[] = "# nolint:";
    int n;
    const gp_inside *in = l->insides;
    while (in && in->file != at.file)
        in = in->next;
    const bool inside = in && in->text;
    if (!inside && (!l->near || at.line < l->near_line))
        l->near = l->text, l->near_line = 1;
    const char *s = inside ? gp_text_line(in->text, in->len, at.line, &n)
        : gp_text_line(l->near, l->len - (size_t)(l->near - l->text), at.line - l->near_line + 1, &n);    /* --set: there is none */
    if (!inside && s)
        l->near = s, l->near_line = at.line;
    const char *p = s ? memmem(s, (size_t)n, mark, sizeof mark - 1) : NULL;
    const char *end = p ? s + n : NULL;
    size_t word = 0, len = strlen(l->lint->name);
    for (p = p ? p + sizeof mark - 1 : end; p < end; p += word ? word : 1) {
        for (word = 0; p + word < end && isalnum((unsigned char)p[word]); )
            word++;
        if (word == len && !memcmp(p, l->lint->name, len))
            return true;
    }
    return false;
}

/* Adds a warning, unless this lint has already given one for the same place. */
static void warn(linting *l, gp_loc at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void warn(linting *l, gp_loc at, const char *fmt, ...)
{
    char what[1000];               /* more than an error's text */
    va_list ap;
    for (int i = l->first; i < l->errs->n; i++) {
        gp_loc was = l->errs->e[i].at;
        if (was.file == at.file && was.line == at.line && was.col == at.col)
            return;
    }
    if (silenced(l, at))
        return;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    gp_fail(l->errs, GP_E_WARN, at, "%s; %s (lint: %s)", what, l->lint->edit, l->lint->name);
}

/* ---- the lints ------------------------------------------------------- */

/* Stages of one cycle take turns at any depth. */
static void lint_depth(linting *l)
{
    for (int i = 0; i < l->p->nrings; i++) {
        const gp_ring *r = &l->p->ring[i];
        int c = 0;
        if (r->segment >= 0 || r->depth > 1)
            continue;
        const gp_stage *from = gp_actor_first(l->p, r->producer);
        while (c < r->nconsumers && from->cycle && gp_actor_first(l->p, r->consumer[c])->cycle == from->cycle)
            c++;
        if (c == r->nconsumers)
            continue;
        const gp_buffer *b = &l->g->buffer[r->buffer];
        gp_loc at = b->depth_said ? b->depth_at : gp_node_at(l->root, "depth", b->at);
        warn(l, at, "buffer '%s' has depth 1, so stages '%s' and '%s' take turns", b->name, from->name,
             gp_actor_first(l->p, r->consumer[c])->name);
    }
}

/* A frame of such a cycle crosses PCIe twice before the next one can begin. Collectives run on the host alone. */
static void lint_cycle(linting *l)
{
    for (int v = 0; v < l->g->nstages && l->g->ndevices; v++) {
        const gp_stage *carry = &l->g->stage[v], *host = NULL;
        bool device = false;
        if (!carry->closes)
            continue;
        for (int i = 0; i < l->g->nstages; i++) {
            const gp_stage *st = &l->g->stage[i];
            if (st->cycle != carry->cycle || gp_is_carry(st))
                continue;
            device |= st->device;
            host = host || st->device || st->kind->collective ? host : st;
        }
        if (host && device)
            warn(l, carry->at, "buffer '%s' closes a cycle on which stage '%s' is on the host and others are on the "
                 "device, so each frame is copied out, waited for and copied in before the next one begins",
                 carry->name, host->name);
    }
}

static void lint_streams(linting *l)
{
    const gp_node *n = gp_node_get(l->root, "streams");
    int most = 0;
    for (int k = 0; k < l->p->nsegments; k++)
        if (l->p->segment[k].depth > most)
            most = l->p->segment[k].depth;
    if (most && l->g->streams > most)
        warn(l, n->at, "%d streams, but depth %d: no more than %d launch%s can be in flight",
             l->g->streams, most, most, most == 1 ? "" : "es");
}

/* What the machine decides is no reason to give another stage more. */
static int given(const gp_stage *st)
{
    return st->workers_auto ? 1 : st->workers;
}

static const gp_stage *fewer(const gp_stage *a, const gp_stage *b)
{
    return a && given(a) <= given(b) ? a : b;
}

/* Only between stages that were all given more; `workers: 1` says that it is meant. */
static void lint_workers(linting *l, const gp_stage *st)
{
    const gp_stage *before = NULL, *behind = NULL;     /* those with the fewest workers */
    if (st->device || st->serial || gp_node_get(st->node, "workers"))
        return;
    for (int p = 0; p < st->nin; p++) {
        int v = gp_stage_maker(l->g, st, p);
        if (v >= 0)                                    /* no constant */
            before = fewer(before, &l->g->stage[v]);
    }
    for (int p = 0; p < st->nout; p++)
        for (int u = 0; st->out[p] >= 0 && u < l->g->buffer[st->out[p]].nuse; u++)
            behind = fewer(behind, &l->g->stage[l->g->buffer[st->out[p]].use[u].stage]);
    if (before && given(before) > 1 && behind && given(behind) > 1)
        warn(l, st->at, "stage '%s' has one worker, '%s' before it %d and '%s' after it %d",
             st->name, before->name, before->workers, behind->name, behind->workers);
}

/* The plan may have been made for another machine than this one. */
static void lint_memory(linting *l)
{
    gp_errs found = { 0 };
    gp_verify(l->p, l->m, &found);
    for (int i = 0; i < found.n; i++)
        warn(l, found.e[i].at, "%s", found.e[i].msg);
}

/* A device of the graph, on the machine that the plan is looked at for. */
static const gp_device_info *device_of(const linting *l, int i)
{
    const gp_device *d = &l->g->device[i];
    return !d->pretend && d->index < l->m->ndevices ? &l->m->device[d->index] : &d->info;
}

/* Few blocks though each thread writes many elements, and no more than half of the
 * device busy with all frames that can be in flight. */
static void lint_grid(linting *l)
{
    enum { MANY = 64 };
    for (int i = 0; i < l->p->ntasks && l->g->ndevices; i++) {
        const gp_task *t = &l->p->task[i];
        const gp_stage *st = t->op == GP_TASK_STAGE ? &l->g->stage[t->stage] : NULL;
        if (!st || !st->known.blocks)
            continue;
        const gp_device_info *d = device_of(l, l->p->segment[t->segment].place.index);
        int64_t blocks = st->known.blocks, depth = l->p->segment[t->segment].depth, elements = 0;
        for (int p = 0; p < st->nout; p++) {
            const gp_buffer *b = st->out[p] < 0 ? NULL : &l->g->buffer[st->out[p]];
            int64_t n = !b || b->state ? 0 : gp_count(&b->type);       /* of a state it may change a few elements */
            elements = n > elements ? n : elements;
        }
        if (blocks > d->sms || 2 * blocks * depth > d->sms
            || elements / MANY < blocks * st->known.threads)
            continue;
        warn(l, gp_node_at(st->node, gp_node_get(st->node, "grid") ? "grid" : "threads", st->at),
             "stage '%s' makes %" PRId64 " elements with %"
             PRId64 " block%s of %" PRId64 " threads; with %" PRId64 " frame%s in flight that is %"
             PRId64 " of the %d multiprocessors of %s", st->name, elements, blocks, gp_plural(blocks),
             st->known.threads, depth, gp_plural(depth), blocks * depth, d->sms, d->name);
    }
}

/* A launch takes longer than copying 64 KiB; a persistent kernel is not launched per frame. */
static void lint_batch(linting *l)
{
    const gp_node *n = gp_node_get(l->root, "batch");
    if (l->g->batch != 1 || l->g->launch == GP_LAUNCH_PERSISTENT)
        return;
    for (int k = 0; k < l->p->nsegments; k++) {
        const gp_segment *s = &l->p->segment[k];
        size_t bytes = gp_segment_copied_all(l->p, s);
        int batch = gp_segment_batch(l->p, s, 0);
        char size[24];
        if (bytes && bytes <= 64 << 10 && batch > 1)
            warn(l, n->at, "each frame is a launch of its own, to copy %s; up to %d frames that "
                 "are ready could share one", gp_size_text(bytes, size), batch);
    }
}

static bool takes_several(const linting *l)
{
    for (int k = 0; k < l->p->nsegments; k++)
        if (l->p->segment[k].batch > 1)
            return true;
    return false;
}

static void lint_batch_wait(linting *l)
{
    if (l->g->batch_wait_ns && !takes_several(l))
        warn(l, gp_node_get(l->root, "batch_wait")->at, "no launch takes more than one frame, so none waits for more");
}

static void lint_latency(linting *l)
{
    if (l->g->latency_ns && !takes_several(l))
        warn(l, gp_node_get(l->root, "latency")->at,
             "no launch takes more than one frame, so there is nothing to choose");
}

static void lint_f64(linting *l, const gp_stage *st)
{
    enum { FEW = 8 };
    const gp_device_info *d = l->g->ndevices ? device_of(l, st->placed < 0 ? 0 : st->placed) : NULL;
    if (d && st->device && st->known.f64 && d->f64 >= FEW)
        warn(l, st->at, "stage '%s' computes in f64, for which %s is %d times slower than for f32", st->name, d->name,
             d->f64);
}

/* A stage that needs one frame for the next is on one of several devices, to which the others' frames are copied. */
static void lint_lanes(linting *l)
{
    for (int k = 0; k < l->p->nsegments && l->g->lanes > 1; k++) {
        const gp_segment *s = &l->p->segment[k];
        for (int i = 0; i < s->ntasks && s->place.lanes == 1; i++) {
            const gp_task *t = &l->p->task[s->task[i]];
            const gp_stage *st = t->stage >= 0 ? &l->g->stage[t->stage] : NULL;
            if (st && st->placed < 0 && !gp_is_carry(st))
                warn(l, st->at, "stage '%s' %s, so it runs on %s only, and what other devices make for it is copied "
                     "there",
                     st->name, st->regroups ? "puts frames together" : "takes frames one after the other",
                     l->g->device[s->place.index].name);
        }
    }
}

/* What a stage of the file became a part of, if it is one kernel with others; NULL: it did not. */
static const gp_stage *fused_into(const gp_graph *g, const char *name)
{
    for (int i = 0; i < g->nstages; i++)
        for (int k = 0; k < g->stage[i].nparts; k++)
            if (!strcmp(g->stage[i].part[k], name))
                return &g->stage[i];
    return NULL;
}

/* A kernel has one priority. */
static void lint_fused_priority(linting *l)
{
    gp_arena a = { 0 };
    const gp_node *list = gp_node_get(l->root, "stages");
    const char **name = GP_NEW(&a, const char *, list->n + 1);
    gp_stage_names(&a, list, name);
    for (int i = 0; i < list->n; i++) {
        const gp_node *n = gp_node_get(list->item[i], "priority");
        const gp_stage *st = n ? fused_into(l->g, name[i]) : NULL;
        if (st && strcmp(n->text, gp_priority_name(st->priority)))
            warn(l, n->at, "stage '%s' is a part of '%s', one kernel, whose priority is %s", name[i], st->name,
                 gp_priority_name(st->priority));
    }
    gp_arena_free(&a);
}

/* What a device would need if no slots were in managed memory. */
static size_t all_slots(const gp_plan *p, int device)
{
    size_t bytes = p->on_device[device];
    for (int i = 0; i < p->npools; i++) {
        const gp_pool *q = &p->pool[i];
        int more = q->managed ? q->depth / q->place.lanes - gp_pool_at_once(p, i) : 0;
        if (q->place.index <= device && device < q->place.index + q->place.lanes)
            bytes = gp_size_add(bytes, gp_size_mul(q->stride, (size_t)more));
    }
    return bytes;
}

/* Slots that are not on the device come before the launch that needs them. What they take was measured: 16 MiB in, a
 * kernel, and out, prefetched, against copies from pinned memory. */
static void lint_managed_slots(linting *l)
{
    for (int i = 0; i < l->p->nrings && l->g->ndevices && !l->g->device[0].pretend; i++) {
        const gp_ring *r = &l->p->ring[i];
        const gp_pool *q = &l->p->pool[r->pool];
        if (!q->managed || (i && l->p->ring[i - 1].buffer == r->buffer && l->p->pool[l->p->ring[i - 1].pool].managed))
            continue;
        const gp_buffer *b = &l->g->buffer[r->buffer];
        int d = r->place.index;
        char size[24];
        if (all_slots(l->p, d) <= device_of(l, d)->memory)
            warn(l, b->managed_at, "the %d slot%s of buffer '%s' (%s each) have room on %s, and need not be in managed "
                 "memory", q->depth, gp_plural(q->depth), b->name, gp_size_text(r->bytes, size), l->g->device[d].name);
        else
            warn(l, b->managed_at, "the %d slot%s of buffer '%s' (%s each) have no room on %s: those that went to the "
                 "host come back before a launch, which takes about 2.6 times as long as a copy from pinned memory",
                 q->depth, gp_plural(q->depth), b->name, gp_size_text(r->bytes, size), l->g->device[d].name);
    }
}

/* A page that a kernel reads and that is not on the device is fetched meanwhile. */
static void lint_managed(linting *l)
{
    for (int i = 0; i < l->p->nextras && l->g->ndevices && !l->g->device[0].pretend; i++) {
        const gp_extra *x = &l->p->extra[i];
        const gp_buffer *b = x->managed ? &l->g->buffer[x->buffer] : NULL;
        char size[24];
        if (!b)
            continue;
        bool fits = gp_size_add(l->p->on_device[0], x->bytes) <= device_of(l, 0)->memory;
        gp_loc at = gp_node_at(gp_node_get(gp_node_get(l->root, "buffers"), b->name), "memory", b->at);
        if (fits)
            warn(l, at, "constant '%s' (%s) has room on %s, and need not be in the memory of the host", b->name,
                 gp_size_text(x->bytes, size), l->g->device[0].name);
        else
            warn(l, at, "constant '%s' (%s) has no room on %s, where kernels wait for each page of it that is not "
                 "there: to read all of it so takes several times as long as to copy it", b->name,
                 gp_size_text(x->bytes, size), l->g->device[0].name);
    }
}

static const gp_node *said_priority(const linting *l, const gp_stage *st)
{
    const gp_node *n = st->priority_said ? gp_node_get(st->node, "priority") : NULL;
    return n ? n : gp_node_get(l->root, "priority");
}

/* Resident kernels share the device from beginning to end; and what is alone on a device comes before nothing. */
static void lint_priority(linting *l)
{
    const gp_stage *first = NULL;
    bool differ = false;
    for (int v = 0; v < l->g->nstages; v++) {
        const gp_stage *st = &l->g->stage[v];
        const gp_node *n = st->device && st->priority != GP_PRIORITY_NORMAL ? said_priority(l, st) : NULL;
        if (n && l->g->launch == GP_LAUNCH_PERSISTENT)
            warn(l, n->at, "kernels of stage '%s' stay on the GPU, which has no priorities for that", st->name);
        if (!st->device || gp_is_carry(st))
            continue;
        differ |= first && first->priority != st->priority;
        first = first ? first : st;
    }
    if (!first || differ || !first->priority_said || first->priority == GP_PRIORITY_NORMAL
        || l->g->launch == GP_LAUNCH_PERSISTENT || !l->g->ndevices)
        return;
    warn(l, said_priority(l, first)->at, "all stages on %s have this priority, so none of them comes before another",
         l->g->device_name);
}

/* Of the sources that a join reads, those for which `of` is least and most; it is 0 where it is not known. False: they
 * are alike, or there are none. */
static bool sources_differ(const linting *l, const gp_stage *st, long double (*of)(const gp_stage *),
                           const gp_stage **least, const gp_stage **most)
{
    *least = *most = NULL;
    int at = (int)(st - l->g->stage);
    for (int v = 0; st->nin > 1 && (v = gp_next_source(st, v, at)) >= 0; v++) {
        const gp_stage *from = &l->g->stage[v];
        if (of(from) <= 0)
            continue;
        *least = *least && of(*least) <= of(from) ? *least : from;
        *most = *most && of(*most) >= of(from) ? *most : from;
    }
    return *least && of(*least) < of(*most);
}

static long double rate_of(const gp_stage *st) { return st->known.hertz; }

/* A join takes equally many frames from each of its sources. */
static void lint_rate(linting *l, const gp_stage *st)
{
    const gp_stage *slow, *fast;
    if (sources_differ(l, st, rate_of, &slow, &fast))
        warn(l, gp_node_at(fast->node, "rate", fast->at), "source '%s' makes %g frames a second, but stage '%s' joins "
             "them with those of '%s', which makes %g", fast->name, fast->known.hertz, st->name, slow->name,
             slow->known.hertz);
}

static long double number_of(const gp_stage *st) { return (long double)st->known.number; }

/* A join takes the first frame of one source with the first of the other. */
static void lint_numbers(linting *l, const gp_stage *st)
{
    const gp_stage *low, *high;
    if (sources_differ(l, st, number_of, &low, &high))
        warn(l, gp_node_at(high->node, "path", high->at), "the files of '%s' begin with number %lld, and those of '%s' "
             "with %lld, but stage '%s' joins the first of both", high->name, (long long)high->known.number - 1,
             low->name, (long long)low->known.number - 1, st->name);
}

/* A stage that makes something of another shape, or nothing, of a frame with fewer rows, as the last one of a source.
 * What reads several sources, or regroups, is not looked into. */
static void lint_tail(linting *l)
{
    const gp_graph *g = l->g;
    gp_type *type = GP_NEW(&l->arena, gp_type, g->nbuffers);           /* of the last frame, */
    const gp_stage **source = GP_NEW(&l->arena, const gp_stage *, g->nbuffers);        /* if it is known whose */
    for (int i = 0; i < g->nstages; i++) {
        const gp_stage *st = &g->stage[i], *from = st->tail_rows && st->out[0] >= 0 ? st : NULL;
        gp_type in[GP_MAXPORT] = { { 0 } }, out[GP_MAXPORT];
        gp_errs errs = { .n = 0 };
        bool one = true, none = false;
        if (from)
            out[0] = g->buffer[st->out[0]].type, out[0].dim[0] = st->tail_rows;
        for (int p = 0; p < st->nin && one; p++) {
            int k = st->in[p];
            bool frames = k >= 0 && !gp_is_const(&g->buffer[k]);
            one = !frames || (source[k] && (!from || from == source[k]));
            from = frames ? source[k] : from;
            in[p] = frames ? type[k] : k >= 0 ? g->buffer[k].type : in[p];
            none |= frames && one && !in[p].dim[0] && gp_stage_makes_on_device(st) && !gp_stage_loop(st);
        }
        if (!one || !from || !st->nout || (st->nin && (st->regroups || st->cycle || st->on_error == GP_ON_ERROR_DROP)))
            continue;
        if (st->nin && !(none ? gp_shape_of_none(g, st, in, out, &errs) : gp_partial_shape(g, st, in, out, &errs))) {
            warn(l, st->at, "the last frame that stage '%s' reads has %" PRId64 " of %" PRId64 " rows, at which the run "
                 "would fail: %s", from->name, from->tail_rows, g->buffer[from->out[0]].type.dim[0],
                 errs.n ? errs.e[0].msg : "");
            continue;
        }
        for (int p = 0; p < (st->nin ? st->nout : 1); p++)
            if (st->out[p] >= 0)
                type[st->out[p]] = out[p], source[st->out[p]] = from;
    }
}

/* A join ends where an input does, and that another goes on is an error of the run. */
static void lint_lengths(linting *l)
{
    const gp_graph *g = l->g;
    int64_t *made = GP_NEW(&l->arena, int64_t, g->nstages);            /* frames; -1: it is not known */
    for (int v = 0; v < g->nstages; v++) {
        const gp_stage *st = &g->stage[v];
        int64_t least = st->nin || st->endless || !st->known.frames ? -1 : st->known.frames, most = -1;
        int few = -1, many = -1;
        bool all = !gp_is_carry(st);
        for (int i = 0; i < st->nin && all; i++) {
            const gp_buffer *b = gp_stage_in(g, st, i);
            if (!b || b->producer.stage < 0)
                continue;
            int64_t n = made[b->producer.stage];
            all = n >= 0 && !b->follows && !b->carried;
            n = all ? (int64_t)gp_firings_in_all(&st->regroup, (uint64_t)n) : -1;
            if (few < 0 || n < least)
                least = n, few = st->in[i];
            if (many < 0 || n > most)
                most = n, many = st->in[i];
        }
        made[v] = !all || least < 0 ? -1 : (int64_t)gp_frames_in_all(&st->regroup, (uint64_t)least);
        if (all && least < most)
            warn(l, st->at, "stage '%s' joins '%s', which has %lld frame%s, with '%s', which has %lld: the run ends "
                            "with an error "
                 "there", st->name, g->buffer[few].name, (long long)least, gp_plural(least), g->buffer[many].name,
                 (long long)most);
    }
}

/* How many frames reach it, if all its sources say how many they make; else -1. */
static int64_t frames_of(const linting *l, const gp_stage *st)
{
    int64_t least = -1;
    for (int v = 0; v < l->g->nstages; v++) {
        const gp_stage *from = &l->g->stage[v];
        if (from->nin || !gp_comes_from(st, v))
            continue;
        if (from->known.frames <= 0)
            return -1;
        int64_t n = (int64_t)((double)from->known.frames * (double)st->rate / (double)from->rate);
        least = least < 0 || n < least ? n : least;
    }
    return least;
}

/* The second frame would be an error, once the first is written. */
static void lint_names(linting *l, const gp_stage *st)
{
    int64_t n = st->file_each && st->writes && !strchr(st->writes, '%') ? frames_of(l, st) : 0;
    if (n > 1)
        warn(l, gp_node_at(st->node, st->writes_opt, st->at), "stage '%s' writes a file of each frame, of which "
             "there may be %" PRId64 ", and all have one name", st->name, n);
}

/* All iterations read the same, and make the same. */
static void lint_carry(linting *l, const gp_stage *st)
{
    const gp_loop *loop = gp_stage_loop(st);
    bool carries = !loop || loop->times < 2;
    for (int k = 0; !carries && k < loop->graph->nbuffers; k++)
        carries = loop->buffer[k].carries >= 0;
    for (int k = 0; !carries && k < loop->graph->nstages; k++)
        carries = loop->graph->stage[k].state;
    if (!carries)
        warn(l, gp_node_at(st->node, "times", st->at), "loop '%s' carries nothing from one iteration to the next, "
             "so that all %" PRId64 " make the same", st->name, loop->times);
}

/* Is it the name of a var, also of one that is there by itself? */
static bool is_var(const linting *l, const char *name)
{
    const gp_node *vars = gp_node_get(l->root, "vars");
    bool is = vars && vars->kind == GP_MAP && gp_node_get(vars, name);
    const char *own;
    for (int i = 0; !is && i < GP_OWN_VARS; i++)
        is = (gp_own_var(NULL, i, &own), !strcmp(own, name));
    return is;
}

/* A scalar in a map, or in a list or map that is a value there. Quotes say that it is meant as text. */
static void lint_text(linting *l, const gp_stage *st, const char *key, const gp_node *n)
{
    if (n->kind == GP_SCALAR && !n->quoted && is_var(l, n->text))
        warn(l, n->at, "stage '%s': in '%s' this is the text '%s', not the value of the var: that is \"${%s}\"",
             st->name, key, n->text, n->text);
    for (int i = 0; n->kind != GP_SCALAR && i < n->n; i++)
        lint_text(l, st, key, n->item[i]);
}

/* Options that are maps of texts: elsewhere a name alone is its value. */
static void lint_texts(linting *l, const gp_stage *st)
{
    for (const gp_opt *o = st->opts ? st->kind->opts : NULL; o && o->name; o++) {
        const void *field = (const char *)st->opts + o->off;
        if (o->type != GP_OPT_NODE || !o->choices || strcmp(o->choices, "text") != 0)
            continue;
        const gp_node *n = *(const gp_node *const *)field;
        if (n)
            lint_text(l, st, o->name, n);
    }
}

/* ---- the table ------------------------------------------------------- */

static const lint lints[] = {
    { "depth", lint_depth, NULL, "depth: 3 lets them work at once" },
    { "cycle", lint_cycle, NULL, "do on the device what the host does there, or all of it on the host" },
    { "streams", lint_streams, NULL, "give as many as the depth, or streams: auto" },
    { "workers", NULL, lint_workers, "try as many, or write workers: 1 if one is enough" },
    { "memory", lint_memory, NULL, "'gpipe run' would refuse it on this machine" },
    { "grid", lint_grid, NULL, "use more blocks, with less to do for each thread" },
    { "batch", lint_batch, NULL, "leave 'batch' out: no frame waits for others" },
    { "batch_wait", lint_batch_wait, NULL, "raise the depth or the batch, or leave 'batch_wait' out" },
    { "latency", lint_latency, NULL, "raise the depth or the batch, or leave 'latency' out" },
    { "f64", NULL, lint_f64, "use f32 where it is precise enough" },
    { "lanes", lint_lanes, NULL, "run it on the host, if its kind can, or all on one device if it bounds the run" },
    { "managed", lint_managed, NULL, "leave 'memory' out where it has room, and read as little of it as can be where not" },
    { "managed", lint_managed_slots, NULL, "leave 'memory' out where they have room, and lower the depth where not" },
    { "priority", lint_fused_priority, NULL, "give the others the same, or set fuse: none" },
    { "priority", lint_priority, NULL, "leave it out" },
    { "text", NULL, lint_texts, "put it in quotes if it is meant as it stands" },
    { "names", NULL, lint_names, "put %05d, the frame's number, or %n, its source's name, into it" },
    { "carry", NULL, lint_carry, "give the loop carry: {INPUT: BUFFER}" },
    { "rate", NULL, lint_rate, "so they wait for each other: give both one rate" },
    { "tail", lint_tail, NULL, "give frames a number of rows that divides those of the file, or leave the last out: 'frames' of "
      "its source, or on_error: drop" },
    { "lengths", lint_lengths, NULL, "give both as many: by 'frames', or files" },
    { "numbers", NULL, lint_numbers, "if equal numbers belong together, move away those that the other lacks" },
};

bool gp_lint_of_machine(const gp_plan *p)
{
    const size_t any = 1 << 30;        /* bytes that every machine with a device has */
    bool found = p->host_bytes > any || p->pinned_bytes > any || p->device_bytes > any;
    for (int i = 0; i < p->graph->nstages && !found; i++)
        found = p->graph->stage[i].known.blocks || p->graph->stage[i].known.f64;
    for (int i = 0; i < p->nextras && !found; i++)
        found = p->extra[i].managed;
    for (int i = 0; i < p->npools && !found; i++)
        found = p->pool[i].managed;
    return p->nsegments && p->graph->ndevices && found;
}

void gp_lint(const gp_plan *p, const gp_spec *spec, const gp_machine *m, const char *text,
             size_t len, gp_errs *errs)
{
    linting l = { .p = p, .g = p->graph, .root = spec->root, .insides = spec->insides, .m = m, .text = text, .len = len,
                  .errs = errs };
    GP_IF_OOM(&l.arena) {                 /* it fails nothing */
        gp_arena_free(&l.arena);
        return;
    }
    for (size_t i = 0; i < sizeof lints / sizeof *lints; i++) {
        l.lint = &lints[i], l.first = errs->n;
        if (lints[i].test)
            lints[i].test(&l);
        for (int k = 0; lints[i].test_stage && k < p->graph->nstages; k++)
            lints[i].test_stage(&l, &p->graph->stage[k]);
    }
    gp_arena_free(&l.arena);
}
