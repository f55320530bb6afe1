/* names.c - see names.h. */
#include <stdlib.h>
#include <string.h>
#include "draw/names.h"
#include "compile/ir.h"

static void add_buffer(gp_arena *a, gp_names *to, const char *name, gp_loc at)
{
    *GP_PUSH(a, to->buffer, to->nbuffers, to->caps[1]) = (gp_name){ .name = name, .at = at };
}

static void add_keys(gp_arena *a, const gp_node *map, gp_name **v, int *n, int *cap)
{
    for (int i = 0; map && map->kind == GP_MAP && i < map->n; i++)
        *GP_PUSH(a, *v, *n, *cap) = (gp_name){ .name = map->key[i]->text, .at = map->key[i]->at };
}

/* What a stage makes, as it says or by default. */
static void add_outputs(gp_arena *a, gp_names *to, const gp_node *stage, const gp_name *s)
{
    const gp_node *out = gp_node_get(stage, "out");
    const gp_port *port;
    const char *name;
    if (out && out->kind == GP_SCALAR)
        add_buffer(a, to, out->text, out->at);
    for (int k = 0; out && k < out->n; k++)
        if (out->item[k]->kind == GP_SCALAR)
            add_buffer(a, to, out->item[k]->text, out->item[k]->at);
    for (int k = 0; !out && s->kind && (name = gp_default_out(a, s->kind, s->name, k, &port)); k++)
        add_buffer(a, to, name, s->at);
}

static void add_body(gp_arena *a, gp_names *to, const gp_node *of, bool top, const gp_registry *registry)
{
    const gp_node *stages = gp_node_get(of, "stages");
    int n = stages && stages->kind == GP_LIST ? stages->n : 0;
    const char **names = GP_NEW(a, const char *, n);
    gp_stage_names(a, stages, names);
    add_keys(a, gp_node_get(of, "buffers"), &to->buffer, &to->nbuffers, &to->caps[1]);
    for (int i = 0; i < n; i++) {
        const gp_node *stage = stages->item[i], *use = gp_node_get(stage, "use"), *name = gp_node_get(stage, "name");
        gp_name s = { .name = names[i], .kind = use ? gp_kind_find(registry, use->text) : NULL,
                      .at = (name ? name : use ? use : stage)->at };
        if (top)
            *GP_PUSH(a, to->stage, to->nstages, to->caps[0]) = s;
        add_outputs(a, to, stage, &s);
        if (gp_node_get(stage, "stages"))
            add_body(a, to, stage, false, registry);
    }
}

static int by_name(const void *a, const void *b)
{
    const gp_name *x = *(gp_name *const *)a, *y = *(gp_name *const *)b;
    int d = strcmp(x->name, y->name);
    return d ? d : (x > y) - (x < y);
}

static void mark_again(gp_arena *a, const gp_names *names)
{
    gp_name **sorted = GP_NEW(a, gp_name *, names->nbuffers);
    for (int i = 0; i < names->nbuffers; i++)
        sorted[i] = &names->buffer[i];
    if (names->nbuffers)
        qsort(sorted, (size_t)names->nbuffers, sizeof *sorted, by_name);
    for (int i = 1; i < names->nbuffers; i++)
        sorted[i]->again = !strcmp(sorted[i]->name, sorted[i - 1]->name);
}

bool gp_names_read(gp_arena *a, gp_names *out, const char *text, size_t len, const char *file,
                   const gp_registry *registry)
{
    gp_errs ignored = { 0 };
    gp_spec *spec = gp_parse(a, text, len, file, &ignored);
    gp_probe probe = { .arena = a, .look = gp_probe_look };
    *out = (gp_names){ 0 };
    if (!spec)
        return false;
    add_keys(a, gp_node_get(spec->root, "vars"), &out->var, &out->nvars, &out->caps[2]);
    gp_expand(a, spec, NULL, 0, registry, &(gp_env){ .get = NULL }, &probe, &ignored);
    add_body(a, out, spec->root, true, registry);
    for (int i = 0; i < out->nstages; i++)
        out->stage[i].at = gp_spec_place(spec, out->stage[i].at);
    for (int i = 0; i < out->nbuffers; i++)
        out->buffer[i].at = gp_spec_place(spec, out->buffer[i].at);
    mark_again(a, out);
    return true;
}
