/* counters.c - see counters.h. What there is to count is known once a run is set up, so that memory is taken once. */
#include <stdlib.h>
#include <string.h>
#include "report/counters.h"

bool gp_make_room(void *array, int *cap, int n, size_t bytes)
{
    void **v = array;
    if (n <= *cap)
        return true;
    char *more = realloc(*v, (size_t)n * bytes);
    if (!more)
        return false;
    memset(more + (size_t)*cap * bytes, 0, (size_t)(n - *cap) * bytes);
    *v = more, *cap = n;
    return true;
}

/* Asks how many there are, then for all of them. */
#define READ(count, array, cap, ask)                                        \
    do {                                                                    \
        c->count = ask(p, c->array, c->cap);                                \
        if (c->count > c->cap)                                              \
            c->count = gp_make_room(&c->array, &c->cap, c->count, sizeof *c->array) \
                ? ask(p, c->array, c->cap) : 0;                             \
    } while (0)

void gp_counters_read(gp_counters *c, const gp_pipeline *p)
{
    READ(nsources, source, sources_cap, gp_accounts);
    READ(nstages, stage, stages_cap, gp_stages_status);
    READ(nbuffers, buffer, buffers_cap, gp_buffers_status);
}

void gp_counters_free(gp_counters *c)
{
    free(c->source), free(c->stage), free(c->buffer);
    *c = (gp_counters){ 0 };
}

int64_t gp_frames_of(const gp_pipeline *p)
{
    int64_t n = 0;
    gp_stage_info s;
    for (int i = 0; gp_pipeline_stage(p, i, &s); i++) {
        if (s.nin)
            continue;
        if (s.frames_of_all <= 0)
            return -1;
        n = s.frames > n ? s.frames : n;
    }
    return n;
}

void gp_shown_begin(gp_shown *s, const gp_pipeline *p)
{
    s->now = p;
    atomic_init(&s->next, p);
}

const gp_pipeline *gp_shown_look(gp_shown *s)
{
    const gp_pipeline *next = atomic_load(&s->next);
    gp_stage_status first;
    if (next != s->now && gp_stages_status(next, &first, 1) > 0)
        s->now = next;
    return s->now;
}
