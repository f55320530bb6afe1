/* rounds.c - what ranks agree on before each round of a collective stage, see rounds.h. */
#include <stdlib.h>
#include "rounds.h"

enum { THERE, ENDED, STOPPED };        /* STOPPED: it was asked to end before its frames did */

/* A rank tells this to all others. `many`: rounds from that one on. hole: it has none in this one. */
struct gp_rank_state { uint64_t round, bytes; int state, many; bool hole; gp_type alike; };
typedef struct gp_rank_state said;

/* All of that means this. LACKS: some have no frame in the lowest round, so that it is a hole; STOPS: and will have none. */
typedef struct heard { enum { ALL_ENDED, GO, LACKS, STOPS, DIFFER } what; uint64_t round, bytes; int many, first, other, ended; } heard;

gp_rounds *gp_rounds_open(const gp_open *o, size_t bytes, bool some)
{
    gp_rounds *r = calloc(1, sizeof *r);
    if (r) {
        *r = (gp_rounds){ .rank = o->rank, .ranks = o->ranks, .bytes = bytes, .some = some };
        r->there = calloc((size_t)o->ranks, sizeof *r->there);
        r->said = calloc(1, sizeof *r->said);
        r->mine = calloc(bytes + 1, 1);
    }
    if (r && r->there && r->said && r->mine)
        return r;
    gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name);
    gp_rounds_close(r);
    return NULL;
}

void gp_rounds_close(void *rounds)
{
    gp_rounds *r = rounds;
    if (r)
        free(r->there), free(r->said), free(r->mine);
    free(r);
}

static heard hear(const gp_rounds *r, const said *of)
{
    heard h = { .what = ALL_ENDED, .first = -1, .ended = -1 };
    bool stopped = false;
    for (int i = 0; i < r->ranks; i++) {
        r->there[i] = of[i].state == THERE;
        stopped |= of[i].state == STOPPED;
        if (r->there[i] && (!h.many || of[i].many < h.many))
            h.many = of[i].many;
        if (!r->there[i])
            h.ended = h.ended < 0 ? i : h.ended;
        else if (h.first < 0 || of[i].round < of[h.first].round)
            h.first = i;
    }
    if (h.first < 0)
        return h;
    h.round = of[h.first].round;
    for (int i = r->ranks - 1; i >= 0; i--)    /* the first that has it, and not only waits for it */
        if (r->there[i] && of[i].round == h.round && of[i].alike.dtype)
            h.first = i;
    h.bytes = of[h.first].bytes;
    h.what = stopped ? STOPS : !of[h.first].alike.dtype ? LACKS : GO;      /* some wait for a frame that nobody has */
    for (int i = 0; i < r->ranks; i++) {
        if (!stopped && r->there[i] && (of[i].round != h.round || of[i].hole))
            h.what = LACKS;
        if (h.what == GO && r->there[i] && of[i].alike.dtype
            && (of[i].bytes != h.bytes || !gp_type_same(&of[i].alike, &of[h.first].alike)))
            h.what = DIFFER, h.other = i;
    }
    return h;
}

static const said *tell(gp_call *c, const gp_rounds *r)
{
    return gp_gather(c, r->said, sizeof *r->said);
}

static gp_status differ(gp_call *c, const said *of, const heard *h)
{
    char a[128], b[128];
    gp_fail(c->errs, GP_E_RUN, c->at, "stage '%s': in round %llu rank %d has %s, and rank %d %s: a collective needs the same of "
            "all ranks", c->name, (unsigned long long)h->round, h->first, gp_type_text(&of[h->first].alike, a), h->other,
            gp_type_text(&of[h->other].alike, b));
    return GP_FAILED;
}

gp_status gp_round(gp_call *c, gp_rounds *r, const gp_frame *f, int n, const gp_type *alike)
{
    int many = 1;
    bool there = f->in[0].data != NULL;
    while (many < n && f[many].index == f->index + (uint64_t)many && (f[many].in[0].data != NULL) == there
           && (!there || gp_type_same(&f[many].in[0].type, &f->in[0].type)))
        many++;
    *r->said = (said){ .round = f->index, .bytes = gp_bytes(alike), .state = THERE, .many = many };
    if (there)
        r->said->alike = *alike;
    for (const said *of; (of = tell(c, r));) {
        heard h = hear(r, of);
        if (h.round != f->index)       /* of one that is a hole here */
            continue;
        if (h.what == LACKS || h.what == STOPS)
            return h.what == LACKS ? GP_DROP : GP_NO_ROUND;
        if (h.what == DIFFER)
            return differ(c, of, &h);
        if (h.ended >= 0 && !r->some) {
            gp_fail(c->errs, GP_E_RUN, c->at, "stage '%s': in round %llu rank %d has no frame, as its frames have "
                                              "ended: all ranks "
                    "need as many", c->name, (unsigned long long)h.round, h.ended);
            return GP_FAILED;
        }
        if (h.bytes > r->bytes && !there) {
            gp_fail(c->errs, GP_E_RUN, c->at, "stage '%s': rank %d has frames that are larger than here", c->name, h.first);
            return GP_FAILED;
        }
        r->ended = h.ended, r->many = h.many, r->alike = of[h.first].alike;
        return GP_OK;
    }
    return GP_STOPPED;
}

bool gp_round_skip(gp_call *c, gp_rounds *r, uint64_t index)
{
    int before = c->errs->failed;
    *r->said = (said){ .round = index, .state = THERE, .many = 1, .hole = true };
    for (const said *of; (of = tell(c, r)) && hear(r, of).round != index;)
        ;
    return c->errs->failed == before;
}

bool gp_rounds_finish(gp_call *c, gp_rounds *r)
{
    *r->said = (said){ .state = gp_stopping(c) ? STOPPED : ENDED };
    int before = c->errs->failed;
    bool warned = false;
    for (const said *of; (of = tell(c, r));) {
        heard h = hear(r, of);
        if (h.what == ALL_ENDED)
            break;
        if (h.what != GO || !r->some)  /* the others fail, and send nothing */
            continue;
        if (h.ended == r->rank && !warned)
            gp_fail(c->errs, GP_E_WARN, c->at, "stage '%s': in round %llu rank %d has no frame, as its frames have "
                                               "ended, and does "
                    "not get what is made of those of others: let the number of frames be divisible by that of ranks", c->name,
                    (unsigned long long)h.round, r->rank);
        warned = true;
        if (h.bytes > r->bytes)
            return gp_fail(c->errs, GP_E_RUN, c->at, "stage '%s': rank %d has frames that are larger than here: a collective "
                           "needs the same of all ranks", c->name, h.first);
        bool ok = true;
        for (int i = 0; ok && i < h.many; i++)
            ok = gp_gather(c, r->mine, h.bytes) != NULL;
        if (!ok)
            break;
    }
    return c->errs->failed == before;
}

bool gp_rounds_has(gp_shape *s, const char *opt, int64_t rank)
{
    return s->ranks == 1 || rank < s->ranks
        || gp_shape_fail(s, opt, "'%s' is rank %lld, and there are %d ranks, from 0", opt, (long long)rank, s->ranks);
}
