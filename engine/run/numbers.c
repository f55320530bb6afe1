/* numbers.c - numbers that travel with frames (`metadata:`): what becomes of them, see frame.h.
 *
 * The first input that has a number counts, in port order: of a host stage, its own inputs'; of a segment, those of its
 * stages as the file has them, which gp_buffer.origins says, whatever is fused. */
#include <math.h>
#include <string.h>
#include "run/host.h"
#include "run/segment.h"

/* ---- from inputs to outputs ------------------------------------------- */

static void take(gp_numbers *to, const gp_numbers *from, int key)
{
    to->set |= 1u << key;
    to->value[key] = from->value[key], to->origin[key] = from->origin[key];
}

void gp_numbers_lay_out(const gp_actorrt *p, gp_worker_view *wv, uint64_t first, int n)
{
    int keys = p->run->graph->nmetadata;
    for (int j = 0; j < n; j++) {
        gp_numbers *to = &wv->numbers[j];
        to->set = 0;
        for (int i = 0; i < p->stage->nin; i++) {
            const gp_ringrt *r = p->host->port[i].ring;
            const gp_numbers *from = r ? gp_numbers_of(r, first + (uint64_t)j) : NULL;
            for (int k = 0; from && k < keys; k++)
                if (from->set & ~to->set & 1u << k)
                    take(to, from, k);
        }
    }
}

void gp_numbers_write(gp_ringrt *r, uint64_t f, const gp_numbers *from)
{
    gp_numbers *to = gp_numbers_of(r, f);
    if (!to)
        return;
    to->set = from ? from->set : 0;
    for (int k = 0; k < GP_META_KEYS; k++)
        if (to->set & 1u << k)
            to->value[k] = from->value[k], to->origin[k] = r->buffer->origin;
}

void gp_numbers_pass(const gp_actorrt *p, uint64_t f)
{
    int keys = p->run->graph->nmetadata;
    for (int o = 0; o < p->nout; o++) {
        const gp_buffer *b = p->out[o]->buffer;
        gp_numbers *to = gp_numbers_of(p->out[o], f);
        to->set = 0;
        for (int l = 0; l < b->norigins; l++)
            for (int i = 0; i < p->nin; i++) {
                const gp_numbers *from = gp_numbers_of(p->in[i].ring, f);
                for (int k = 0; k < keys; k++)
                    if (from->set & ~to->set & 1u << k && from->origin[k] == b->origins[l])
                        take(to, from, k);
            }
    }
}

/* ---- what stages may ask for ------------------------------------------ */

int gp_meta_keys(const gp_call *c, const char *const **keys)
{
    const gp_threadrt *t = c->ctx;
    const gp_graph *g = t->run->graph;
    *keys = g ? g->metadata : NULL;
    return g ? g->nmetadata : 0;
}

/* Where a frame that run() was given stands in what its worker sees. */
static size_t place_of(const gp_threadrt *t, const gp_frame *f)
{
    const gp_graph *g = t->run->graph;
    bool shared = t->actor->shared;
    uint64_t first = t->actor->host->view[t->worker].frame[0].index;
    return (size_t)(gp_firing_of(g, shared, f->index) - gp_firing_of(g, shared, first));
}

/* NULL: the key is not listed, or is that of the frame's time; *key: which it is. */
static gp_numbers *find(const gp_call *c, const gp_frame *f, const char *name, int *key)
{
    const gp_threadrt *t = c->ctx;
    const char *const *names;
    int n = gp_meta_keys(c, &names);
    for (*key = 0; *key < n && strcmp(names[*key], name);)
        ++*key;
    if (*key == n || !strcmp(name, "time"))
        return NULL;
    return &t->actor->host->view[t->worker].numbers[place_of(t, f)];
}

bool gp_meta_get(const gp_call *c, const gp_frame *f, const char *key, double *value)
{
    int k;
    const gp_numbers *n = find(c, f, key, &k);
    if (!n || !(n->set & 1u << k))
        return false;
    *value = n->value[k];
    return true;
}

bool gp_meta_set(const gp_call *c, const gp_frame *f, const char *key, const double *value)
{
    int k;
    gp_numbers *n = find(c, f, key, &k);
    if (!n || (value && !isfinite(*value)))
        return false;
    n->set &= ~(1u << k);
    if (value)
        n->set |= 1u << k, n->value[k] = *value;
    return true;
}

const char *gp_frame_file(const gp_call *c, const gp_frame *f)
{
    const gp_threadrt *t = c->ctx;
    return t->run->graph ? t->actor->host->view[t->worker].file[place_of(t, f)] : NULL;
}

void gp_frame_set_file(const gp_call *c, const gp_frame *f, const char *file)
{
    const gp_threadrt *t = c->ctx;
    if (t->run->graph)
        t->actor->host->view[t->worker].file[place_of(t, f)] = file;
}
