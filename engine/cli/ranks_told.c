/* ranks_told.c - what the ranks have told of themselves, added up: see ranks_told.h. */
#include <stdlib.h>
#include <string.h>
#include "cli/ranks_told.h"

enum { FEW = 10 };                     /* frames that a rank may be behind */

typedef struct staged { uint64_t frames, bytes; } staged;
typedef struct held { int held, depth; } held;

size_t gp_rank_says_bytes(int sources, int stages, int buffers)
{
    return sizeof(gp_rank_says) + (size_t)sources * sizeof(gp_rank_counted) + (size_t)stages * sizeof(staged)
        + (size_t)buffers * sizeof(held);
}

static staged *stages_of(const gp_rank_says *s)
{
    return (staged *)((char *)s + gp_rank_says_bytes(s->nsources, 0, 0));
}

static held *buffers_of(const gp_rank_says *s)
{
    return (held *)((char *)s + gp_rank_says_bytes(s->nsources, s->stages, 0));
}

static uint64_t add_name(uint64_t sum, const char *name)
{
    for (; *name; name++)
        sum = (sum ^ (unsigned char)*name) * 0x100000001b3;        /* as FNV-1a does */
    return sum * 31 + 1;
}

void gp_rank_count(gp_rank_says *s, const gp_counters *c)
{
    for (int i = 0; i < s->nsources && i < c->nsources; i++) {
        const gp_account *a = &c->source[i];
        s->source[i] = (gp_rank_counted){ a->in, a->out, a->dropped, a->failed, a->cancelled };
    }
    s->nstages = c->nstages <= s->stages ? c->nstages : 0, s->nbuffers = c->nbuffers <= s->buffers ? c->nbuffers : 0;
    s->names = 0;
    for (int i = 0; i < s->nstages; i++) {
        stages_of(s)[i] = (staged){ c->stage[i].frames, c->stage[i].bytes };
        s->names = add_name(s->names, c->stage[i].name);
    }
    for (int i = 0; i < s->nbuffers; i++) {
        buffers_of(s)[i] = (held){ c->buffer[i].held, c->buffer[i].depth };
        s->names = add_name(s->names, c->buffer[i].name);
    }
}

static const gp_rank_says *of_rank(const char *all, size_t each, int r)
{
    return (const gp_rank_says *)(all + (size_t)r * each);
}

static void add_sources(gp_account *a, int n, const gp_rank_says *s)
{
    for (int i = 0; i < n && i < s->nsources; i++) {
        const gp_rank_counted *c = &s->source[i];
        a[i].in += c->in, a[i].out += c->out, a[i].dropped += c->dropped, a[i].failed += c->failed;
        a[i].cancelled += c->cancelled;
    }
}

void gp_ranks_sum(gp_account *a, int n)
{
    size_t each;
    char *all = gp_ranks_last(&each);
    for (int r = 0; all && r < gp_ranks(); r++)
        if (r != gp_rank())
            add_sources(a, n, of_rank(all, each, r));
    free(all);
}

void gp_ranks_told(int r, gp_account *a, int n)
{
    size_t each;
    char *all = gp_ranks_last(&each);
    for (int i = 0; all && i < n; i++)
        a[i].in = a[i].out = a[i].dropped = a[i].failed = a[i].cancelled = 0;
    if (all)
        add_sources(a, n, of_rank(all, each, r));
    free(all);
}

/* Do all ranks count the same stages and buffers? */
static bool are_alike(const char *all, size_t each, const gp_counters *c)
{
    const gp_rank_says *mine = of_rank(all, each, gp_rank());
    bool alike = mine->nstages == c->nstages && mine->nbuffers == c->nbuffers;
    for (int r = 0; alike && r < gp_ranks(); r++) {
        const gp_rank_says *s = of_rank(all, each, r);
        alike = s->nstages == mine->nstages && s->nbuffers == mine->nbuffers && s->names == mine->names;
    }
    return alike;
}

void gp_ranks_whole(gp_counters *c)
{
    size_t each;
    char *all = gp_rank() ? NULL : gp_ranks_last(&each);
    if (!all)
        return;
    bool alike = are_alike(all, each, c);
    for (int r = 1; r < gp_ranks(); r++) {
        const gp_rank_says *s = of_rank(all, each, r);
        add_sources(c->source, c->nsources, s);
        for (int i = 0; alike && i < c->nstages; i++)
            c->stage[i].frames += stages_of(s)[i].frames, c->stage[i].bytes += stages_of(s)[i].bytes;
        for (int i = 0; alike && i < c->nbuffers; i++)
            c->buffer[i].held += buffers_of(s)[i].held, c->buffer[i].depth += buffers_of(s)[i].depth;
    }
    free(all);
}

bool gp_ranks_fills(const gp_counters *c, double *fill)
{
    size_t each;
    char *all = gp_rank() ? NULL : gp_ranks_last(&each);
    bool alike = all && are_alike(all, each, c);
    for (int r = 0; alike && r < gp_ranks(); r++)
        for (int b = 0; b < c->nbuffers; b++) {
            const held *of = buffers_of(of_rank(all, each, r)) + b;
            fill[r * c->nbuffers + b] = of->depth > 0 ? (double)of->held / of->depth : 0;
        }
    free(all);
    return alike;
}

int64_t gp_ranks_frames(int64_t mine)
{
    size_t each;
    char *all = gp_rank() || mine < 0 ? NULL : gp_ranks_last(&each);
    for (int r = 1; all && mine >= 0 && r < gp_ranks(); r++) {
        int64_t more = of_rank(all, each, r)->frames;
        mine = more < 0 ? -1 : mine + more;
    }
    free(all);
    return mine;
}

static uint64_t done_by(const gp_rank_says *s)
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
    size_t each;
    char *all = gp_rank() ? NULL : gp_ranks_last(&each);
    double most = -1;
    for (int r = 0; all && r < gp_ranks(); r++) {
        const gp_rank_says *s = of_rank(all, each, r);
        double done = (double)done_by(s), left = (double)s->frames - done;
        if (s->state != IS_OVER && s->frames > 0 && done > 0 && left * seconds / done > most)
            most = left * seconds / done;
    }
    free(all);
    return most;
}

int gp_ranks_behind(uint64_t *done)
{
    size_t each;
    char *all = gp_rank() ? NULL : gp_ranks_last(&each);
    uint64_t most = 0;
    int last = -1;
    for (int r = 0; all && r < gp_ranks(); r++) {
        const gp_rank_says *s = of_rank(all, each, r);
        uint64_t n = done_by(s);
        most = n > most ? n : most;
        if (s->state != IS_OVER && (last < 0 || n < *done))
            last = r, *done = n;
    }
    free(all);
    return last >= 0 && most - *done >= FEW && (double)*done < 0.9 * (double)most ? last : -1;
}
