/* metadata.c - numbers that travel with frames: their names, and from which buffers each buffer has them, as well as the
 * times and names of its frames.
 *
 * Host stages say the numbers of what they make, and so do stages that regroup: their outputs are origins. What another
 * stage makes on the device has the numbers of its inputs, of each the first in port order that has it. That is found
 * here, before stages are fused, so that it does not depend on what is fused or on segments: a buffer has its numbers
 * from a list of origins, of which the first that has one counts. */
#include <string.h>
#include "compile/resolve.h"

/* ---- names ------------------------------------------------------------ */

/* What a frame has that no file keeps, or by its name. */
static bool is_of_every_frame(const char *s)
{
    return !strcmp(s, "index") || !strcmp(s, "valid") || !strcmp(s, "name");
}

static bool check_name(gp_resolving *r, const gp_node *list, int i, const char *name)
{
    const gp_node *n = list->item[i];
    if (!gp_is_name(name) || strlen(name) > GP_META_NAME)
        return AT(r, n->at, "'%.60s' cannot be a name under 'metadata': letters, digits and _, at most %d, not "
                  "beginning with a digit", name, GP_META_NAME);
    if (is_of_every_frame(name))
        return AT(r, n->at, "every frame has '%s': a script finds it in frame.%s, not under 'metadata'", name, name);
    for (int k = 0; k < i; k++)
        if (!strcmp(r->graph->metadata[k], name))
            return AT(r, n->at, "'%s' is listed twice under 'metadata'", name);
    return true;
}

void gp_metadata_read(gp_resolving *r, const gp_node *n)
{
    if (n->kind != GP_LIST) {
        AT(r, n->at, "'metadata' is a list of names, like [exposure, gain]");
        return;
    }
    if (n->n > GP_META_KEYS) {
        AT(r, n->item[GP_META_KEYS]->at, "'metadata' lists %d names, and a frame has room for %d numbers", n->n,
           GP_META_KEYS);
        return;
    }
    const char **name = GP_NEW(r->arena, const char *, n->n + 1);
    r->graph->metadata = name, r->graph->nmetadata = n->n;
    for (int i = 0; i < n->n; i++) {
        const char *text = gp_read_text(&r->read, n->item[i]);
        if (text)
            check_name(r, n, i, text);
        name[i] = text ? text : "";
    }
}

/* ---- origins ---------------------------------------------------------- */

typedef struct listing { gp_graph *g; gp_arena *a; int *seen, *list; } listing;

/* Those of all inputs of a stage, each once. */
static void list_origins(listing *w, int stage)
{
    const gp_stage *st = &w->g->stage[stage];
    const gp_buffer *only = NULL;
    int n = 0, from = 0;
    for (int p = 0; p < st->nin; p++) {
        const gp_buffer *b = gp_stage_in(w->g, st, p);
        if (!b || !b->norigins)
            continue;
        only = b, from++;
        for (int k = 0; k < b->norigins; k++)
            if (w->seen[b->origins[k]] != stage + 1)
                w->seen[b->origins[k]] = stage + 1, w->list[n++] = b->origins[k];
    }
    const int *list = from == 1 ? only->origins : memcpy(GP_NEW(w->a, int, n + 1), w->list, sizeof(int) * (size_t)n);
    for (int p = 0; p < st->nout; p++)
        if (st->out[p] >= 0)
            w->g->buffer[st->out[p]].origins = list, w->g->buffer[st->out[p]].norigins = n;
}

void gp_metadata_origins(gp_arena *a, gp_graph *g)
{
    listing w = { g, a, GP_NEW(a, int, g->nbuffers), GP_NEW(a, int, g->nbuffers) };
    int *own = GP_NEW(a, int, g->nbuffers);
    for (int b = 0; b < g->nbuffers; b++)
        g->buffer[b].origin = -1;
    for (int v = 0; v < g->nstages; v++) {
        const gp_stage *st = &g->stage[v];
        bool says = !st->device || (st->regroups && !gp_is_carry(st));
        if (!says && !gp_is_carry(st))         /* what is carried has none */
            list_origins(&w, v);
        for (int p = 0; says && p < st->nout; p++)
            if (st->out[p] >= 0) {
                gp_buffer *b = &g->buffer[st->out[p]];
                own[st->out[p]] = b->origin = st->out[p];
                b->origins = &own[st->out[p]], b->norigins = 1;
            }
    }
}
