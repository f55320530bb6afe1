/* regroup.c - copying frames so that there are more or fewer of them, see regroup.h.
 *
 * What a firing makes follows from the metas of the frames that it takes. The copies are pieces of one size: runs
 * of frames whose slots follow each other in both rings, without a hole among them. */
#include <string.h>
#include "compile/firing.h"
#include "run/regroup.h"
#include "run/segment.h"

/* `count` pieces of `bytes` each. */
typedef struct piece { char *dst; size_t dst_stride; const char *src; size_t src_stride, bytes, count; } piece;

static const gp_task *task_of(const gp_actorrt *p)
{
    const gp_plan *plan = p->run->plan;
    if (p->kind == GP_ACTOR_HOST)
        return &plan->task[plan->host_task[p->stage - p->run->graph->stage]];
    const int *i = p->segment->task;
    while (plan->task[*i].op != GP_TASK_STAGE)
        i++;
    return &plan->task[*i];
}

/* ---- what is carried -------------------------------------------------- */

/* Frame k of the output, the one before of the input: whatever that was, it is whole, with zeros for the rows that a
 * partial one lacks, and of nobody's name or time. Which frames its rows are is not known where that had gaps. */
static gp_meta carried_meta(const gp_actorrt *p, uint64_t k)
{
    const gp_meta *from = k ? gp_meta_of(p->in[0].ring, k - 1) : NULL;
    return (gp_meta){ .rows = p->out[0]->buffer->type.dim[0], .age.born_ns = INT64_MAX,
                      .gaps = from && !from->hole && from->gaps ? GP_GAPS_MANY : 0 };
}

/* What firing k copies: the frame before. The first frame stands for one that is not there; for a hole that, too, or
 * with `on_hole: splice` what the hole's own frame was copied from. NULL: it is in its slot. */
static const char *carried_from(const gp_actorrt *p, uint64_t k, const gp_ringrt *in, const gp_ringrt *to)
{
    const gp_task *t = task_of(p);
    if (k && !gp_meta_of(p->in[0].ring, k - 1)->hole)
        return gp_slot(in, k - 1);
    if (!k || p->run->graph->stage[t->stage].on_hole == GP_ON_HOLE_RESET)
        return gp_konst_on(p->run, t->konst[1], p->segment ? p->segment->place.index : 0);
    return to->ring->depth > 1 ? gp_slot(to, k - 1) : NULL;
}

/* ---- by the metas ---------------------------------------------------- */

static const gp_ringrt *input(const gp_actorrt *p)
{
    return p->in[0].ring;
}

/* The rings in which its frames are, where they are copied: on the device those of its task. */
static const gp_ringrt *side(const gp_actorrt *p, bool takes)
{
    const gp_task *t = task_of(p);
    if (p->kind == GP_ACTOR_HOST)
        return takes ? input(p) : p->out[0];
    return &p->run->ring[takes ? t->in[0] : t->out[0]];
}

/* The frame behind the last that firing k takes: at the end there are fewer. */
static uint64_t taken_to(const gp_actorrt *p, uint64_t k)
{
    uint64_t to = gp_firing_to(p->regroup, k), end = gp_ring_frames(input(p));
    return to < end ? to : end;
}

/* What firing k makes; of rows that become frames, what all of them have. *says: the frame that has its time and name,
 * and so its numbers; NULL where that is not asked. */
static gp_meta made_by(const gp_actorrt *p, uint64_t k, uint64_t *says)
{
    const gp_regroup *g = p->regroup;
    if (gp_firing_carries(g))
        return carried_meta(p, k);
    uint64_t own = gp_firing_frame(g, k);
    says = says ? says : &own;
    *says = own;
    gp_meta m = *gp_meta_of(input(p), own);
    gp_hole worst = GP_NO_HOLE;
    bool first = true;
    if (g->split && input(p)->buffer->rows && input(p)->buffer->type.dim[0] > 1)       /* its rows are frames, of which each had its own */
        m.name = m.file = NULL;
    if (!g->stack)
        return m;
    m.rows = 0;
    uint64_t from = gp_firing_from(g, k), seen = 0;
    for (uint64_t f = from, to = taken_to(p, k); f < to; f++) {
        const gp_meta *in = gp_meta_of(input(p), f);
        if (in->hole) {
            worst = gp_worse_hole(worst, in->hole);
            seen = gp_gaps_with(seen, f - from, g->take);
            continue;
        }
        m.rows++;
        if (!g->back && first)         /* the first of a group says when it was, and its name */
            m.time_ns = in->time_ns, m.name = in->name, m.file = in->file, *says = f;
        if (first || in->age.born_ns < m.age.born_ns)
            m.age = in->age;
        first = false;
    }
    m.gaps = m.rows ? seen : 0;
    if (!g->back || !m.hole)           /* a window whose own frame is a hole is one */
        m.hole = m.rows ? GP_NO_HOLE : worst;
    if (g->drop_tail && worst == GP_HOLE_UNDONE)       /* where the ranks stopped first, it is a tail that is dropped */
        m.hole = GP_HOLE_UNDONE;
    if (g->drop_partial && m.rows < g->take && !m.hole)
        m.hole = GP_HOLE_DROPPED;
    if (m.hole && p->elsewhere)
        m.hole = GP_HOLE_ABSENT;
    return m;
}

void gp_regroup_partial(const gp_actorrt *p, uint64_t f, gp_errs *errs)
{
    const gp_ringrt *r = input(p);
    const gp_graph *g = p->run->graph;
    const gp_stage *by = &g->stage[r->buffer->producer.stage];
    int at = 0;
    const gp_stage *st = gp_actor_stage(p, &at);
    unsigned long long k = f;
    char cure[200] = "";
    if (by->regroup.stack)
        snprintf(cure, sizeof cure, ": set 'tail: drop' on stage '%.100s'", by->name);
    else if (!by->nin && f)
        snprintf(cure, sizeof cure, ": to leave it out, set 'frames: %llu' on stage '%.100s'", k, by->name);
    gp_fail(errs, GP_E_RUN, st->at, "stage '%s' takes whole frames, and frame %llu of '%s' has %lld of %lld rows%s",
            st->name, k, r->buffer->name, (long long)gp_meta_of(r, f)->rows, (long long)r->buffer->type.dim[0], cure);
}

/* A frame with gaps that are not known one by one. */
static bool cannot_split(const gp_actorrt *p, uint64_t f, gp_errs *errs)
{
    int at = 0;
    const gp_stage *st = gp_actor_stage(p, &at);
    return gp_fail(errs, GP_E_RUN, st->at, "stage '%s' cannot say which frames the rows of frame %llu of '%s' are: a "
                   "group left out holes, and has more than 64 frames, was carried, or its rows were moved; group 64 "
                   "frames at most, and split before that", st->name, (unsigned long long)f, input(p)->buffer->name);
}

int gp_regroup_good(const gp_actorrt *p, uint64_t k, int n, gp_errs *errs)
{
    const gp_ringrt *r = input(p);
    int64_t rows = r->buffer->type.dim[0];
    for (int i = 0; p->regroup->split && i < n; i++) {
        const gp_meta *m = gp_meta_of(r, k + (uint64_t)i);
        if (!m->hole && !gp_gaps_are_known(m->gaps))
            return i || cannot_split(p, k, errs) ? i : 0;
    }
    for (int i = 0; p->regroup->stack && i < n; i++)
        for (uint64_t f = gp_firing_from(p->regroup, k + (uint64_t)i), to = taken_to(p, k + (uint64_t)i);
             f < to; f++) {
            const gp_meta *m = gp_meta_of(r, f);
            if (m->hole || m->rows == rows)
                continue;
            if (i)
                return i;
            gp_regroup_partial(p, f, errs);
            return 0;
        }
    return n;
}

/* ---- copies ---------------------------------------------------------- */

static uint64_t before_wrap(const gp_ringrt *r, uint64_t frame)
{
    return (uint64_t)r->ring->depth - frame % (uint64_t)r->ring->depth;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The next piece of a firing; *at: 0 at first. False: there is none. */
static bool next_piece(const gp_actorrt *p, uint64_t k, bool whole, uint64_t *at, piece *out)
{
    const gp_regroup *g = p->regroup;
    const gp_ringrt *in = side(p, true), *to = side(p, false), *metas = input(p);
    uint64_t frame = gp_firing_frame(g, k), make = (uint64_t)g->make, first = k * make;
    if (gp_firing_carries(g)) {
        size_t all = gp_bytes(&to->buffer->type);
        *out = (piece){ gp_slot(to, k), all, *at ? NULL : carried_from(p, whole ? 0 : k, in, to), all, all, 1 };
        return !(*at)++ && out->src;
    }
    if (g->stack) {
        uint64_t from = gp_firing_from(g, k), end = whole ? from + (uint64_t)g->take : taken_to(p, k), f = from, row = 0;
        size_t bytes = gp_bytes(&in->buffer->type);
        for (; f < end && (f < from + *at || (!whole && gp_meta_of(metas, f)->hole)); f++)
            row += whole || !gp_meta_of(metas, f)->hole;
        uint64_t n = f, most = f + least(end - f, before_wrap(in, f));
        while (n < most && (whole || !gp_meta_of(metas, n)->hole))
            n++;
        *at = n - from, n -= f;
        *out = (piece){ (char *)gp_slot(to, k) + row * bytes, bytes, gp_slot(in, f), in->stride, bytes, n };
        return n;
    }
    const gp_meta *m = gp_meta_of(metas, frame);
    if (!whole && m->hole)
        return false;
    size_t bytes = gp_bytes(&to->buffer->type);
    uint64_t rows = !g->split || whole ? make : (uint64_t)m->rows, gaps = !g->split || whole ? 0 : m->gaps, j = *at;
    for (; gp_gaps_row(gaps, j) < 0; j++);
    uint64_t row = (uint64_t)gp_gaps_row(gaps, j), n = 0;
    for (uint64_t most = least(rows - row, before_wrap(to, first + j)); n < most && gp_gaps_row(gaps, j + n) >= 0; n++);
    *at = j + n;
    *out = (piece){ gp_slot(to, first + j), to->stride, (char *)gp_slot(in, frame) + row * bytes, bytes, bytes, n };
    return n;
}

void gp_regroup_copy(const gp_actorrt *p, uint64_t k)
{
    piece s;
    for (uint64_t at = 0; next_piece(p, k, false, &at, &s);)
        for (size_t i = 0; i < s.count; i++)
            memcpy(s.dst + i * s.dst_stride, s.src + i * s.src_stride, s.bytes);
    if (p->regroup->stack) {
        const gp_ringrt *to = side(p, false);
        int64_t rows = made_by(p, k, NULL).rows;
        size_t used = gp_bytes(&input(p)->buffer->type) * (size_t)rows;
        memset((char *)gp_slot(to, k) + used, 0, gp_bytes(&to->buffer->type) - used);
    }
}

static bool launch(gp_dcall *c, piece s)
{
    enum { BLOCK = 256, BLOCKS = 1 << 12, PIECES = 1 << 12 };
    size_t all = s.dst_stride | s.src_stride | s.bytes;    /* slots are aligned to more */
    size_t word = all % 16 == 0 ? 16 : all % 4 == 0 ? 4 : 1, n = s.bytes / word;
    size_t to = s.dst_stride / word, from = s.src_stride / word, blocks = (n + BLOCK - 1) / BLOCK;
    return gp_launch(c, word == 16 ? "regroup_16" : word == 4 ? "regroup_4" : "regroup_1",
                     (gp_dim3){ (unsigned)least(blocks, BLOCKS), (unsigned)least(s.count, PIECES), 1 },
                     (gp_dim3){ BLOCK, 1, 1 }, 0,
                     GP_ARGS(&s.dst, &to, (void *)&s.src, &from, &n, &s.count));
}

bool gp_regroup_record(gp_rec *r, const gp_actorrt *p, uint64_t k, int n, bool whole)
{
    int at = 0;
    const gp_stage *st = gp_actor_stage(p, &at);
    gp_dcall c = { .opts = st->opts, .n = 1, .name = st->name, .rec = r, .errs = r->errs };
    const gp_ringrt *to = side(p, false);
    for (int i = 0; i < n; i++) {
        uint64_t f = k + (uint64_t)i, done = 0;
        piece s;
        while (next_piece(p, f, whole, &done, &s))
            if (!launch(&c, s))
                return false;
        int64_t rows = p->regroup->stack && !whole ? made_by(p, f, NULL).rows : p->regroup->take;
        size_t used = gp_bytes(&input(p)->buffer->type) * (size_t)rows, all = gp_bytes(&to->buffer->type);
        if (p->regroup->stack && used < all && !gp_fill(&c, (char *)gp_slot(to, f) + used, 0, all - used))
            return false;
    }
    return true;
}

/* ---- metas ---------------------------------------------- */

gp_regrouped gp_regroup_write_metas(gp_actorrt *p, uint64_t k, int n, bool failed)
{
    uint64_t make = (uint64_t)p->regroup->make;
    gp_regrouped sum = { 0, 0 };
    for (int i = 0; i < n; i++) {
        uint64_t f = k + (uint64_t)i, says = 0;
        gp_meta m = made_by(p, f, &says);
        const gp_numbers *numbers = gp_firing_carries(p->regroup) ? NULL : gp_numbers_of(input(p), says);
        uint64_t rows = (uint64_t)m.rows, gaps = m.gaps;
        if (p->regroup->split)
            m.gaps = 0;
        if (failed)
            m.hole = GP_HOLE_FAILED;
        for (int o = 0; o < p->nout; o++) {
            const gp_type *t = &p->out[o]->buffer->type;
            for (uint64_t j = 0; j < make; j++) {
                if (p->regroup->split || m.hole)
                    m.rows = t->dim[0];
                gp_meta *to = gp_meta_of(p->out[o], f * make + j);
                *to = m;
                if (p->out[o]->type) {
                    gp_type is = gp_type_of(input(p), gp_firing_frame(p->regroup, f));
                    gp_set_type(p->out[o], f * make + j, m.hole ? t : &is);
                }
                if (!m.hole && p->regroup->split && (uint64_t)gp_gaps_row(gaps, j) >= rows)      /* -1 is more */
                    to->hole = GP_HOLE_ABSENT;
                to->touched = true;
                gp_numbers_write(p->out[o], f * make + j, numbers);
                sum.frames += !o && !to->hole;
                gp_type made = gp_type_of(p->out[o], f * make + j);
                sum.bytes += to->hole ? 0 : gp_bytes(&made);
            }
        }
    }
    return sum;
}

static uint64_t first_left_out(const gp_actorrt *p, uint64_t firings)
{
    const gp_regroup *g = p->regroup;
    return gp_firing_frame(g, g->every > 1 ? firings - firings % (uint64_t)g->every : firings);
}

uint64_t gp_regroup_left_out(gp_actorrt *p, uint64_t firings)
{
    uint64_t end = atomic_load(&input(p)->end), first = first_left_out(p, firings);
    if (!p->regroup->drop_tail || end == GP_UNKNOWN || gp_firings_in_all(p->regroup, end) != firings || first >= end)
        return GP_UNKNOWN;
    for (uint64_t f = first; f < end; f++)
        gp_buffer_hole(p->run, input(p)->buffer, f, GP_HOLE_DROPPED);
    return first;
}
