/* host_kept.c - does a host stage leave its inputs as they are?
 *
 * A slot is read by several stages, so that one who writes into it changes what others have. Of each input a sum is
 * kept for every few elements before run() is called, and compared after it. Of a stage of a plug-in that is done for
 * the first frame of each worker, as in host_unwritten.c, and for one that may have more elements than any before; in a
 * run with `poison`, and for gp_try_stage, for each frame of each stage. */
#include <string.h>
#include "compile/plan.h"
#include "run/host.h"
#include "run/pattern.h"
#include "run/pipeline.h"

enum { STEP = 256, EXACT = 1 << 20 };      /* bytes that have a sum; of a frame of which each element has one */

struct gp_host_kept {
    uint64_t *sum;             /* of each `step` bytes; NULL: of an input that is not looked at */
    size_t step;
    int64_t seen;              /* elements: the most that a frame had that was looked at */
    bool is_kept;              /* the sums are those of the frame at hand */
};

static bool each_frame(const gp_run *run)
{
    return run->pipeline->tried || run->options.poison;
}

void gp_host_kept_init(gp_actorrt *p, gp_worker_view *wv)
{
    const gp_stage *st = p->stage;
    if (!st->nin || !st->kind->run || p->on_loan || st->reads_device || !(st->plugin || each_frame(p->run)))
        return;
    wv->kept = GP_NEW_LINES(&p->run->arena, gp_host_kept, st->nin);
    for (int i = 0; i < st->nin; i++) {
        const gp_portrt *port = &p->host->port[i];
        gp_host_kept *k = &wv->kept[i];
        bool exact = each_frame(p->run) && port->bytes <= EXACT;
        k->step = port->type && exact ? gp_dtype_size(port->type->dtype) : STEP;
        k->sum = port->type ? GP_NEW_LINES(&p->run->arena, uint64_t, port->bytes / k->step + 1) : NULL;
    }
}

static bool is_due(const gp_actorrt *p, const gp_host_kept *k, const gp_view *v)
{
    return k->sum && v->data && gp_count(&v->type) > (each_frame(p->run) ? 0 : k->seen);
}

bool gp_host_kept_asks(const gp_actorrt *p, const gp_worker_view *wv, const gp_frame *fr)
{
    for (int i = 0; i < p->stage->nin; i++)
        if (is_due(p, &wv->kept[i], &fr->in[i]))
            return true;
    return false;
}

/* Mixed as in host_unwritten's patterns: two that differ in one word differ in their sums. */
static uint64_t sum_of(const char *data, size_t bytes)
{
    uint64_t h = 0, word;
    for (size_t n; bytes; data += n, bytes -= n) {
        n = bytes < sizeof word ? bytes : sizeof word;
        word = 0;
        memcpy(&word, data, n);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return h;
}

/* Puts the sums of a frame where `put` says so, or finds the first that is another; -1: none. */
static int64_t sums(gp_host_kept *k, const gp_view *v, bool put)
{
    size_t bytes = gp_bytes(&v->type);
    const char *data = v->data;
    for (size_t at = 0, i = 0; at < bytes; at += k->step, i++) {
        uint64_t sum = sum_of(data + at, bytes - at < k->step ? bytes - at : k->step);
        if (put)
            k->sum[i] = sum;
        else if (sum != k->sum[i])
            return (int64_t)i;
    }
    return -1;
}

void gp_host_kept_keep(const gp_actorrt *p, gp_worker_view *wv)
{
    for (int i = 0; i < p->stage->nin; i++) {
        gp_host_kept *k = &wv->kept[i];
        k->is_kept = is_due(p, k, &wv->frame->in[i]);
        if (k->is_kept)
            sums(k, &wv->frame->in[i], true);
    }
}

/* Who reads that buffer, too, and whose code is not known either, may have done it. */
static const gp_stage *other_reader(const gp_actorrt *p, const gp_buffer *b)
{
    for (int u = 0; u < b->nuse; u++) {
        const gp_stage *st = &p->run->graph->stage[b->use[u].stage];
        if (st != p->stage && st->plugin && st->kind->run)
            return st;
    }
    return NULL;
}

static bool tell(const gp_actorrt *p, int input, const gp_host_kept *k, const gp_frame *fr, int64_t at, gp_errs *errs)
{
    const gp_stage *st = p->stage, *by = other_reader(p, &p->run->graph->buffer[st->in[input]]);
    const gp_type *type = &fr->in[input].type;
    uint64_t each = k->step / gp_dtype_size(type->dtype), first = (uint64_t)at * each, end = first + each;
    uint64_t all = (uint64_t)gp_count(type);
    char from[GP_INDEX_TEXT], to[GP_INDEX_TEXT], or[220] = "";
    gp_index_text(type, first, from);
    gp_index_text(type, (end < all ? end : all) - 1, to);
    if (by)
        snprintf(or, sizeof or, " (or stage '%.40s'%s did, which reads it, too)", by->name, gp_plugin_of(by).text);
    return gp_fail(errs, GP_E_RUN, st->at, "stage '%s'%s wrote into its input '%s': %s[%s]%s%s%s of frame %llu (counted from "
                   "0) changed while run() had it%s. It may write its outputs alone, as others read that frame", st->name,
                   gp_plugin_of(st).text, st->in_name[input], each > 1 ? "an element of " : "element ", from,
                   each > 1 ? " to [" : "", each > 1 ? to : "", each > 1 ? "]" : "",
                   (unsigned long long)gp_actor_number(p, fr->index), or);
}

bool gp_host_kept_look(const gp_actorrt *p, gp_worker_view *wv, gp_errs *errs)
{
    bool due = each_frame(p->run);
    for (int i = 0; i < p->stage->nin; i++) {
        gp_host_kept *k = &wv->kept[i];
        const gp_view *v = &wv->frame->in[i];
        int64_t at = k->is_kept ? sums(k, v, false) : -1, n = gp_count(&v->type);
        if (at >= 0)
            return tell(p, i, k, wv->frame, at, errs);
        k->seen = k->is_kept && n > k->seen ? n : k->seen;
        k->is_kept = false;
        due |= k->sum && k->seen < gp_count(p->host->port[i].type);
    }
    if (!due)
        wv->kept = NULL;
    return true;
}
