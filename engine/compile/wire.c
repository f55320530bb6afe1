/* wire.c - who makes and who reads each buffer.
 *
 * First every buffer gets its name (`buffers:`, then what stages make), then
 * `like` and inputs are looked up, so that the order in the file is free. */
#include <stdlib.h>
#include "compile/registry.h"
#include "compile/wire.h"

/* ---- stages: the keys that all have ---------------------------------- */

bool gp_is_stage_key(const char *s)
{
    return gp_key_find(gp_stage_keys, s) != NULL;
}

/* Without a kind the other keys cannot be looked at: one of them may be a wrong `use`. */
static void lacks_kind(gp_resolving *r, const gp_rstage *st)
{
    for (int i = 0; i < st->node->n; i++) {
        const gp_node *key = st->node->key[i], *item = st->node->item[i];
        if ((!i || !gp_is_stage_key(key->text)) && gp_kind_find(r->registry, key->text)) {
            bool bare = gp_is_null(item) || (item->kind == GP_MAP && !item->n);
            AT(r, key->at, "a stage names its kind with 'use': write {use: %s%s}", key->text,
               bare && st->node->n == 1 ? "" : ", ...");
            return;
        }
        const char *colon = gp_lacks_colon(r->arena, key, item, "use");
        if (colon || (!gp_is_stage_key(key->text) && item->kind == GP_SCALAR && gp_kind_find(r->registry, item->text))) {
            AT(r, key->at, "a stage names its kind with 'use': write '%s'", colon ? colon
               : gp_format(r->arena, "use: %s", item->text));
            return;
        }
        gp_near near = GP_NEAR(key->text);
        gp_near_try(&near, "use");
        if (*gp_near_text(&near)) {
            AT(r, st->node->key[i]->at, "a stage has no key '%s'%s", near.word, near.text);
            return;
        }
    }
    AT(r, st->s.at, "stage '%s' does not say its kind; add use: KIND", st->s.name);
}

static void note_plugin(gp_resolving *r, const gp_plugin_info *of)
{
    const gp_resolving *top = r;
    while (top->body)
        top = top->body->outside;
    gp_used_plugin **end = &top->graph->plugins;
    while (*end && (*end)->info != of)
        end = &(*end)->next;
    if (!of || *end)
        return;
    *end = GP_NEW(r->arena, gp_used_plugin, 1);
    (*end)->info = of;
}

static void find_kind(gp_resolving *r, gp_rstage *st)
{
    const gp_node *use = gp_node_get(st->node, "use");
    if (!use) {
        lacks_kind(r, st);
        return;
    }
    r->read.stage = NULL, r->read.key = "use";
    const char *name = gp_read_text(&r->read, use);
    if (name && (st->s.kind = gp_kind_find(r->registry, name)))
        note_plugin(r, st->s.plugin = gp_kind_plugin(r->registry, st->s.kind));
    if (!name || st->s.kind)
        return;
    gp_registry_lacks(r->registry, name, GP_E_SPEC, use->at, r->errs);
}

static void check_keys(gp_resolving *r, gp_rstage *st)
{
    for (int i = 0; i < st->node->n; i++) {
        const char *key = st->node->key[i]->text;
        if (!gp_is_stage_key(key) && !gp_option_find(st->s.kind, key))
            st->misspelt = !AT(r, st->node->key[i]->at, "stage '%s' has no option '%s'%s", st->s.name, key,
                               gp_option_hint(r->arena, st->s.kind, st->node, i));
    }
}

static void read_head(gp_resolving *r, gp_rstage *st, const gp_node *n, const char *name,
                      gp_table *names, int i)
{
    const gp_node *label = gp_node_get(n, "name"), *use = gp_node_get(n, "use");
    st->node = n;
    st->s.name = name;
    st->s.at = label ? label->at : use ? use->at : n->at;
    st->s.workers = 1;
    if (n->kind != GP_MAP) {
        const char *colon = gp_lacks_colon(r->arena, n, NULL, "use");
        AT(r, n->at, "a stage must be a map; write {%.60s}", colon ? colon
           : gp_format(r->arena, "use: %s", n->kind == GP_SCALAR && n->len ? n->text : "KIND"));
        return;
    }
    const gp_node *repeat = gp_node_get(n, "repeat");
    if (repeat)
        AT(r, repeat->at, "'repeat' has no effect in a loop: write the stage as often as it is needed");
    if (label && label->kind != GP_SCALAR)
        AT(r, label->at, "'name' must be text");
    else if (label)
        gp_check_label(r, "stage", name, label->at);
    int first = (int)gp_table_put(names, name, i)->n;
    if (first != i)
        AT(r, st->s.at, "two stages are named '%s'; the first is in line %d", name,
           r->stage[first].s.at.line);
    find_kind(r, st);
    if (st->s.kind)
        check_keys(r, st);
}

/* ---- what nobody needs ----------------------------------------------- */

static bool ends_free(const gp_kind *k)
{
    bool star;
    gp_count_ports(k->out, &star);
    return star;
}

static void check_used(gp_resolving *r, const gp_rbuf *b)
{
    gp_near near = GP_NEAR(b->b.name);
    int i = b->b.producer.stage;
    if (b->readers || b->b.state)
        return;
    if (b->carry) {
        AT(r, b->b.at, "no stage reads the carried buffer '%s'; remove it, or read it with in: %s", b->b.name, b->b.name);
    } else if (b->b.given || (b->konst && r->body)) {
        AT(r, b->b.at, "no stage of the loop reads '%s', which comes into it", b->b.name);
    } else if (b->konst) {
        AT(r, b->b.at, "no stage reads the constant '%s'", b->b.name);
    } else if (i < 0) {
        AT(r, b->b.at, "buffer '%s' is declared, but no stage makes or reads it%s", b->b.name,
           gp_near_buffer(r, &near));
    } else {
        const gp_rstage *st = &r->stage[i], *next = i + 1 < r->nstages ? st + 1 : NULL;
        const char *name = b->b.name, *of = st->s.name;
        if (ends_free(st->s.kind) && st->s.kind->run && st->s.nout == 1)       /* a sink runs on the host */
            AT(r, st->s.at, "no stage reads '%s', which stage '%s' makes; write out: [] if it is "
               "a sink", name, of);
        else if (next && !next->s.nin)
            AT(r, st->s.at, "no stage reads '%s', which stage '%s' makes, and '%s' after it is a "
               "source; read it with in: %s", name, of, next->s.name, name);
        else
            AT(r, st->s.at, "no stage reads '%s', which stage '%s' makes; read it with in: %s, or "
               "add a stage that writes it", name, of, name);
    }
}

/* ---- the whole ------------------------------------------------------- */

static bool makes_carry(const gp_rbuf *b)
{
    return gp_is_state(b) || (b->node && gp_node_get(b->node, "carry"));
}

/* The stage that makes a carried buffer, or a state: as if it stood at the end of the file. */
static void add_carry(gp_resolving *r, const gp_rbuf *b, gp_table *names)
{
    int i = r->nstages++, first = (int)gp_table_put(names, b->b.name, i)->n;
    if (first != i)
        AT(r, r->stage[first].s.at, "the name '%s' is taken: the %s '%s' is made by a stage of that name",
           b->b.name, gp_is_state(b) ? "state" : "carried buffer", b->b.name);
    r->stage[i] = (gp_rstage){ .node = b->node, .s = { .name = b->b.name, .at = b->b.at, .workers = 1,
                                                       .kind = &gp_kind_carry } };
}

void gp_wire(gp_resolving *r, const gp_node *buffers, const gp_node *stages)
{
    int failed = r->errs->failed;
    gp_table names = { .arena = r->arena };
    r->buffer_index.arena = r->written.arena = r->windows.arena = r->arena;
    if (r->body)
        gp_loop_give(r);
    gp_read_buffers(r, buffers);
    const char **name = GP_NEW(r->arena, const char *, stages->n);
    int given = r->nbuffers, carries = 0;
    for (int i = 0; i < given; i++)
        carries += makes_carry(&r->buffer[i]);
    r->nstages = r->ngiven = stages->n;
    r->stage = GP_NEW(r->arena, gp_rstage, stages->n + carries + gp_most_before(stages));
    gp_stage_names(r->arena, stages, name);
    for (int i = 0; i < r->ngiven; i++)
        read_head(r, &r->stage[i], stages->item[i], name[i], &names, i);
    for (int i = 0; i < given && carries; i++)
        if (makes_carry(&r->buffer[i]))
            add_carry(r, &r->buffer[i], &names);
    for (int i = 0; i < r->nstages; i++)
        gp_wire_out(r, &r->stage[i]);
    gp_follow_likes(r);
    for (int i = 0, n = r->nstages; i < n; i++)        /* windows are added behind, as they should be */
        gp_wire_in(r, &r->stage[i]);
    gp_state_wire(r, failed);
    if (r->body)
        gp_loop_ends(r, failed);
    int used = r->errs->failed == failed ? r->nbuffers : 0;
    for (int i = 0; i < used; i++)
        check_used(r, &r->buffer[i]);
}
