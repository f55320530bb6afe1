/* gaps.c - which frames of a group its rows are, see gp_meta.gaps.
 *
 * A group packs the rows of frames that are no holes. Its gaps go along as far as stages make a row of each row, so
 * that split finds the frames of the rows again. */
#include "run/host.h"

enum { LAST = 63 };                    /* the last bit: of 64 frames the last one is the only hole, or there is another bit */

uint64_t gp_gaps_with(uint64_t gaps, uint64_t j, int64_t take)
{
    if (take > LAST + 1)
        return GP_GAPS_MANY | (gaps ^ (j + 1)) * 0x9e3779b97f4a7c15u;
    return j == LAST && gaps ? gaps : gaps | (uint64_t)1 << j;
}

bool gp_gaps_are_known(uint64_t gaps)
{
    return !(gaps >> LAST) || gaps == (uint64_t)1 << LAST;
}

int64_t gp_gaps_row(uint64_t gaps, uint64_t j)
{
    uint64_t before = j <= LAST ? gaps & (((uint64_t)1 << j) - 1) : gaps;
    return j <= LAST && gaps >> j & 1 ? -1 : (int64_t)j - __builtin_popcountll(before);
}

/* The gaps of a frame with so many rows, without the holes behind the last of them. */
static uint64_t before_last(uint64_t gaps, int64_t rows)
{
    for (int j = LAST; gp_gaps_are_known(gaps) && j >= 0; j--) {
        uint64_t bit = (uint64_t)1 << j;
        if (gaps & bit && j - __builtin_popcountll(gaps & (bit - 1)) >= rows)
            gaps ^= bit;
    }
    return gaps;
}

/* ---- through a stage --------------------------------------------------- */

/* Has the type as many rows as `whole`? */
static bool has_rows_of(const gp_type *type, const gp_type *whole)
{
    return type->ndim && type->dim[0] == whole->dim[0];
}

/* Are the rows frames? Of what is carried they may be, but a script may keep anything there. */
static bool are_frames(const gp_buffer *b, bool script)
{
    return b->rows || (b->carried && !script);
}

/* Have the rows places, as those of a group have? */
static bool have_places(const gp_buffer *b)
{
    return b->rows == GP_ROWS_GROUP || b->carried;
}

/* Does the stage take row i of x with row i of its input k, which are frames both, or with that of a constant? */
static bool pairs_rows(const gp_graph *g, const gp_stage *st, const gp_buffer *x, int k, bool script)
{
    const gp_buffer *y = &g->buffer[st->in[k]];
    return gp_is_const(y) ? have_places(x) && st->beside >> k & 1
         : has_rows_of(&y->type, &x->type) && are_frames(x, script) && are_frames(y, script);
}

bool gp_gaps_pass(const gp_graph *g, const gp_stage *st, const gp_type *in, const uint64_t *gaps, const gp_type *out,
                  uint64_t *made, gp_errs *errs)
{
    bool script = gp_kind_opt(st->kind, "script", GP_OPT_PATH) != NULL;
    bool compares = !script;           /* which may not read row by row, unless it makes a row of each */
    int at = 0;
    while (at < st->nin && !gaps[at])
        at++;
    for (int o = 0; o < st->nout; o++)
        made[o] = 0;
    if (at == st->nin)
        return true;
    const gp_buffer *x = &g->buffer[st->in[at]];
    for (int o = 0; o < st->nout; o++)
        if (st->out[o] >= 0 && has_rows_of(&g->buffer[st->out[o]].type, &x->type) && has_rows_of(&out[o], &in[at]))
            made[o] = st->by_place >> at & 1 ? GP_GAPS_MANY : gaps[at], compares = true;
    for (int i = at; errs && i < st->nin; i++)
        if (gaps[i] && st->by_place >> i & 1 && have_places(&g->buffer[st->in[i]]))
            return gp_fail(errs, GP_E_RUN, st->at, "stage '%s' takes rows of '%s' by their places, which they are not "
                           "at, because holes were left out: do it before the frames are put together",
                           st->name, g->buffer[st->in[i]].name);
    uint64_t lacks = before_last(gaps[at], in[at].dim[0]);
    for (int i = 0; errs && compares && i < st->nin; i++) {
        if (st->in[i] >= 0 && before_last(gaps[i], in[i].dim[0]) != lacks && pairs_rows(g, st, x, i, script))
            return gp_fail(errs, GP_E_RUN, st->at, "stage '%s' reads '%s' and '%s' row by row, and their rows are not "
                           "of the same frames, because holes were left out of one: join them before the frames are "
                           "put together", st->name, x->name, g->buffer[st->in[i]].name);
    }
    return true;
}

bool gp_gaps_pass_host(const gp_actorrt *p, const gp_frame *fr, uint64_t made[GP_MAXPORT], gp_errs *errs)
{
    gp_type in[GP_MAXPORT], out[GP_MAXPORT];
    uint64_t gaps[GP_MAXPORT];
    for (int i = 0; i < p->stage->nin; i++) {
        const gp_ringrt *r = p->host->port[i].ring;
        in[i] = fr->in[i].type, gaps[i] = r ? gp_meta_of(r, fr->index)->gaps : 0;
    }
    for (int o = 0; o < p->stage->nout; o++)
        out[o] = fr->out[o].type;
    return gp_gaps_pass(p->run->graph, p->stage, in, gaps, out, made, errs);
}
