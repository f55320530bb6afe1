/* ranks_told.c - what the ranks have told of themselves, added up: see ranks_told.h. */
#include <pthread.h>
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
    char *of;                          /* of each rank, as it comes */
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
    size_t ranks = (size_t)gp_ranks();
    for (int i = 0; gp_pipeline_stage(p, i, &st); i++)
        counts.nsources += !st.nin, counts.stages++, counts.buffers += st.nin;
    told.few = sizeof counts + (size_t)counts.nsources * sizeof *counts.source;
    told.each = told.few + (size_t)counts.stages * sizeof(staged) + (size_t)counts.buffers * sizeof(held);
    told.mine = gp_ranks_room(1, told.each), told.of = gp_ranks_room(ranks, told.each);
    told.last = gp_ranks_room(ranks, told.each);
    *told.mine = counts;
    return told.mine;
}

void gp_told_count(const gp_counters *c)
{
    says *s = told.mine;
    for (int i = 0; i < s->nsources && i < c->nsources; i++) {
        const gp_account *a = &c->source[i];
        s->source[i] = (gp_rank_counted){ a->in, a->out, a->dropped, a->failed, a->cancelled };
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

static void keep(int first, int n, size_t bytes)
{
    pthread_mutex_lock(&told.lock);
    for (int i = 0; i < n; i++)
        memcpy(of_rank(first + i), told.of + (size_t)i * bytes, bytes);
    pthread_mutex_unlock(&told.lock);
}

bool gp_told_round(bool counted, gp_errs *errs)
{
    size_t n = counted ? told.each : told.few;
    bool ok = gp_ranks_gather(told.mine, (int)n, told.of, errs);
    if (ok)
        keep(0, gp_ranks(), n);
    return ok;
}

void gp_told_pass(int from, int to, int64_t ns)
{
    bool sends = from == gp_rank();
    if (!gp_ranks_pass(from, to, sends ? (char *)told.mine : told.of, (int)told.each, ns) && !sends)
        keep(from, 1, told.each);
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

static void add_sources(gp_account *a, int n, const says *s)
{
    for (int i = 0; i < n && i < s->nsources; i++) {
        const gp_rank_counted *c = &s->source[i];
        a[i].in += c->in, a[i].out += c->out, a[i].dropped += c->dropped, a[i].failed += c->failed;
        a[i].cancelled += c->cancelled;
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
        a[i].in = a[i].out = a[i].dropped = a[i].failed = a[i].cancelled = 0;
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

void gp_ranks_whole(gp_counters *c)
{
    int ranks = look(true);
    bool alike = are_alike(ranks, c);
    for (int r = 1; r < ranks; r++) {
        const says *s = of_rank(r);
        add_sources(c->source, c->nsources, s);
        for (int i = 0; alike && i < c->nstages; i++)
            c->stage[i].frames += stages_of(s)[i].frames, c->stage[i].bytes += stages_of(s)[i].bytes;
        for (int i = 0; alike && i < c->nbuffers; i++)
            c->buffer[i].held += buffers_of(s)[i].held, c->buffer[i].depth += buffers_of(s)[i].depth;
    }
    looked();
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

int64_t gp_ranks_frames(int64_t mine)
{
    for (int r = 1, ranks = look(true); mine >= 0 && r < ranks; r++)
        mine = of_rank(r)->frames < 0 ? -1 : mine + of_rank(r)->frames;
    looked();
    return mine;
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

double gp_ranks_left(double seconds)
{
    double most = -1;
    for (int r = 0, ranks = look(true); r < ranks; r++) {
        const says *s = of_rank(r);
        double done = (double)done_by(s), left = (double)s->frames - done;
        if (s->state != IS_OVER && s->frames > 0 && done > 0 && left * seconds / done > most)
            most = left * seconds / done;
    }
    looked();
    return most;
}

int gp_ranks_behind(uint64_t *done)
{
    uint64_t most = 0;
    int last = -1;
    for (int r = 0, ranks = look(true); r < ranks; r++) {
        uint64_t n = done_by(of_rank(r));
        most = n > most ? n : most;
        if (of_rank(r)->state != IS_OVER && (last < 0 || n < *done))
            last = r, *done = n;
    }
    looked();
    return last >= 0 && most - *done >= FEW && (double)*done < 0.9 * (double)most ? last : -1;
}
