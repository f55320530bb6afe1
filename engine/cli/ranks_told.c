/* ranks_told.c - what the ranks have told of themselves, added up: see ranks_told.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "cli/live.h"
#include "cli/ranks_same.h"
#include "cli/ranks_told.h"

enum { FEW = 10 };                     /* frames that a rank may be behind */

typedef gp_rank_says says;
typedef struct staged { uint64_t frames, bytes; } staged;
typedef struct held { int held, depth; } held;

static struct {
    size_t few, each;                  /* bytes of a `says`, without what stages and buffers count, and with it */
    says *mine;
    pthread_mutex_t lock;
    char *last;                        /* of each, in `each` bytes: under the lock, or by the thread that writes it */
} told = { .lock = PTHREAD_MUTEX_INITIALIZER };

static staged *stages_of(const says *s)
{
    return (staged *)&s->source[s->nsources];
}

static held *buffers_of(const says *s)
{
    return (held *)(stages_of(s) + s->stages);
}

static says *of_rank(int r)
{
    return (says *)(told.last + (size_t)r * told.each);
}

const gp_rank_says *gp_told_by(int r)
{
    return of_rank(r);
}

gp_rank_says *gp_told_open(const gp_pipeline *p)
{
    gp_stage_info st;
    says counts = { .frames = gp_frames_of(p) };
    for (int i = 0; gp_pipeline_stage(p, i, &st); i++)
        counts.nsources += !st.nin, counts.stages++, counts.buffers += st.nin;
    told.few = sizeof counts + (size_t)counts.nsources * sizeof *counts.source;
    told.each = told.few + (size_t)counts.stages * sizeof(staged) + (size_t)counts.buffers * sizeof(held);
    told.mine = gp_ranks_room(1, told.each), told.last = gp_ranks_room((size_t)gp_ranks(), told.each);
    *told.mine = counts;
    return told.mine;
}

void gp_told_count(const gp_counters *c)
{
    says *s = told.mine;
    for (int i = 0; i < s->nsources && i < c->nsources; i++) {
        const gp_account *a = &c->source[i];
        s->source[i] = (gp_rank_counted){ a->in, a->out, a->dropped, a->failed, a->cancelled, a->faulty };
    }
    s->nstages = c->nstages <= s->stages ? c->nstages : 0, s->nbuffers = c->nbuffers <= s->buffers ? c->nbuffers : 0;
    s->names = 0;
    for (int i = 0; i < s->nstages; i++) {
        stages_of(s)[i] = (staged){ c->stage[i].frames, c->stage[i].bytes };
        s->names = gp_ranks_hash(s->names, c->stage[i].name, strlen(c->stage[i].name) + 1);
    }
    for (int i = 0; i < s->nbuffers; i++) {
        buffers_of(s)[i] = (held){ c->buffer[i].held, c->buffer[i].depth };
        s->names = gp_ranks_hash(s->names, c->buffer[i].name, strlen(c->buffer[i].name) + 1);
    }
}

static void keep(int first, int n, const char *of, size_t bytes)
{
    pthread_mutex_lock(&told.lock);
    for (int i = 0; i < n; i++)
        memcpy(of_rank(first + i), of + (size_t)i * bytes, bytes);
    pthread_mutex_unlock(&told.lock);
}

bool gp_told_round(bool counted, gp_errs *errs)
{
    size_t n = counted ? told.each : told.few;
    char *of = gp_ranks_gather(told.mine, (int)n, errs);
    if (of)
        keep(0, gp_ranks(), of, n);
    free(of);
    return of;
}

void gp_told_pass(int from, int to)
{
    char *of = gp_ranks_room(1, told.each);
    memcpy(of, told.mine, told.each);
    if (!gp_ranks_pass(from, to, of, (int)told.each) && to == gp_rank())
        keep(from, 1, of, told.each);
    free(of);
}

/* Until looked() nothing changes. So many ranks have told something, to this one or (`first`) to rank 0 alone. */
static int look(bool first)
{
    pthread_mutex_lock(&told.lock);
    return told.last && !(first && gp_rank()) ? gp_ranks() : 0;
}

static void looked(void)
{
    pthread_mutex_unlock(&told.lock);
}

int gp_told_end(int first, double *seconds)
{
    int ranks = look(false), status = first < 0 ? 0 : of_rank(first)->status;
    for (int r = 0; r < ranks; r++) {
        status = status ? status : of_rank(r)->status;         /* that of a signal */
        *seconds = of_rank(r)->seconds > *seconds ? of_rank(r)->seconds : *seconds;
    }
    looked();
    return status;
}

static void add_sources(gp_account *a, int n, const says *s)
{
    for (int i = 0; i < n && i < s->nsources; i++) {
        const gp_rank_counted *c = &s->source[i];
        a[i].in += c->in, a[i].out += c->out, a[i].dropped += c->dropped, a[i].failed += c->failed;
        a[i].cancelled += c->cancelled, a[i].faulty += c->faulty;
    }
}

void gp_ranks_sum(gp_account *a, int n)
{
    for (int r = 0, ranks = look(false); r < ranks; r++)
        if (r != gp_rank())
            add_sources(a, n, of_rank(r));
    looked();
}

void gp_ranks_told(int r, gp_account *a, int n)
{
    int ranks = look(false);
    for (int i = 0; ranks && i < n; i++)
        a[i].in = a[i].out = a[i].dropped = a[i].failed = a[i].cancelled = a[i].faulty = 0;
    if (ranks)
        add_sources(a, n, of_rank(r));
    looked();
}

/* Do all of so many ranks count the same stages and buffers? */
static bool are_alike(int ranks, const gp_counters *c)
{
    bool alike = ranks > 0;
    for (int r = 0; alike && r < ranks; r++)
        alike = of_rank(r)->nstages == c->nstages && of_rank(r)->nbuffers == c->nbuffers
            && of_rank(r)->names == of_rank(0)->names;
    return alike;
}

bool gp_ranks_fills(const gp_counters *c, double *fill)
{
    int ranks = look(true);
    bool alike = are_alike(ranks, c);
    for (int r = 0; alike && r < ranks; r++)
        for (int b = 0; b < c->nbuffers; b++) {
            const held *of = buffers_of(of_rank(r)) + b;
            fill[r * c->nbuffers + b] = of->depth > 0 ? (double)of->held / of->depth : 0;
        }
    looked();
    return alike;
}

static uint64_t done_by(const says *s)
{
    uint64_t most = 0;
    for (int i = 0; i < s->nsources; i++) {
        uint64_t done = s->source[i].out + s->source[i].dropped + s->source[i].failed;
        most = done > most ? done : most;
    }
    return most;
}

static void add_counted(gp_counters *c, const says *s)
{
    for (int i = 0; i < c->nstages; i++)
        c->stage[i].frames += stages_of(s)[i].frames, c->stage[i].bytes += stages_of(s)[i].bytes;
    for (int i = 0; i < c->nbuffers; i++)
        c->buffer[i].held += buffers_of(s)[i].held, c->buffer[i].depth += buffers_of(s)[i].depth;
}

void gp_ranks_whole(gp_counters *c, gp_ranks_way *w)
{
    int ranks = look(true);
    bool alike = are_alike(ranks, c);
    uint64_t most = 0;
    w->behind = -1, w->behind_done = 0, w->left = -1;
    for (int r = 0; r < ranks; r++) {
        const says *s = of_rank(r);
        uint64_t done = done_by(s);
        double left = done ? ((double)s->frames - (double)done) / (double)done : -1;
        most = done > most ? done : most;
        if (s->state < IS_OVER && (w->behind < 0 || done < w->behind_done))
            w->behind = r, w->behind_done = done;
        if (s->state < IS_OVER && s->frames > 0 && left > w->left)
            w->left = left;
        if (!r)
            continue;
        w->frames = w->frames < 0 || s->frames < 0 ? -1 : w->frames + s->frames;
        add_sources(c->source, c->nsources, s);
        if (alike)
            add_counted(c, s);
    }
    looked();
    if (most - w->behind_done < FEW || (double)w->behind_done >= 0.9 * (double)most)
        w->behind = -1;
}
