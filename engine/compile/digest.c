/* digest.c - what the stages of a file do, as numbers: the kind and the keys of a stage, as the file writes them,
 * the vars that these name, and the scripts and kernels that it reads, of large ones the beginning and the size.
 * What a script loads itself (`require`) is not looked at. The order of keys does not count. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include "compile/inside.h"
#include "compile/resolve.h"

/* Keys that a simulation takes account of by itself, or with which frames cost the same. */
static const char how_it_runs[] = "name|in|out|workers|priority|on_error|max_dropped|shard|on|device", of_sources[] = "rate|frames";

static uint64_t mixed(uint64_t h, uint64_t more)
{
    h = (h ^ more) * 0x9e3779b97f4a7c15;
    return h ^ h >> 32;
}

static uint64_t of_bytes(const char *p, size_t n)
{
    uint64_t h = n + 1;
    for (size_t i = 0; i < n; i++)
        h = mixed(h, (unsigned char)p[i] + 1u);
    return h;
}

static uint64_t of_tree(const gp_node *n)
{
    uint64_t h = mixed((uint64_t)n->kind + 1, of_bytes(n->text, n->len)), sum = 0;
    for (int i = 0; i < n->n; i++) {
        uint64_t item = of_tree(n->item[i]);
        if (n->kind == GP_MAP)
            sum += mixed(of_bytes(n->key[i]->text, n->key[i]->len), item);
        else
            h = mixed(h, item);
    }
    return mixed(h, sum);
}

/* ---- vars: chains of them may be as long as the file, so nothing here recurses along one ------------------------- */

enum { LONGEST = 256 };                /* name of a var */

typedef struct places { int *at, n, cap; } places;

typedef struct var {
    places names, named_by;             /* the vars among the words of its value; those that have it there */
    enum { NEW, MAKING, MADE } state;
    int next;                          /* of `names`, while it is being made */
    uint64_t of;                       /* once made: its value, and the vars that it names */
} var;

typedef struct vars {
    gp_arena *a;
    gp_table index;                    /* by name */
    var *var;
    int n, *todo;                      /* todo: room for all */
} vars;

/* Adds the vars among the words of the tree. */
static void find_names(vars *v, const gp_node *n, places *to)
{
    char name[LONGEST];
    for (const char *p = n->text; v->n && *p;) {
        size_t len = 0;
        while (isalnum((unsigned char)p[len]) || p[len] == '_')
            len++;
        if (len && len < sizeof name) {
            *(char *)mempcpy(name, p, len) = 0;
            const char *full = gp_inside_name(n->inside, name);
            int i = full ? gp_table_index(&v->index, full) : -1;
            if (i >= 0)
                *GP_PUSH(v->a, to->at, to->n, to->cap) = i;
        }
        p += len ? len : 1;
    }
    for (int i = 0; i < n->n; i++)
        find_names(v, n->item[i], to);
}

static vars read_vars(gp_arena *a, const gp_node *map)
{
    vars v = { .a = a, .index.arena = a, .n = map && map->kind == GP_MAP ? map->n : 0 };
    v.var = GP_NEW(a, var, v.n), v.todo = GP_NEW(a, int, v.n);
    for (int i = 0; i < v.n; i++)
        gp_table_put(&v.index, map->key[i]->text, i);
    for (int i = 0; i < v.n; i++) {
        places *names = &v.var[i].names;
        find_names(&v, map->item[i], names);
        v.var[i].of = of_tree(map->item[i]);
        for (int k = 0; k < names->n; k++) {
            places *by = &v.var[names->at[k]].named_by;
            *GP_PUSH(a, by->at, by->n, by->cap) = i;
        }
    }
    return v;
}

void gp_vars_changed(gp_arena *a, const gp_node *was, const gp_node *now, bool *changed)
{
    vars v = read_vars(a, now);
    int n = 0;
    for (int i = 0; i < v.n; i++) {
        const gp_node *old = was ? gp_node_get(was, now->key[i]->text) : NULL;
        if ((changed[i] = !old || of_tree(old) != v.var[i].of))
            v.todo[n++] = i;
    }
    while (n) {
        const places *by = &v.var[v.todo[--n]].named_by;
        for (int k = 0; k < by->n; k++)
            if (!changed[by->at[k]])
                changed[by->at[k]] = true, v.todo[n++] = by->at[k];
    }
}

/* The vars of the list. Of those that name each other, which is no value but text, one is left out in the other. */
static uint64_t of_names(const vars *v, const places *names)
{
    uint64_t sum = 0;
    for (int k = 0; k < names->n; k++)
        sum += v->var[names->at[k]].state == MADE ? v->var[names->at[k]].of : 0;
    return sum;
}

/* Makes those of the list, each after those that it names. */
static void make_vars(vars *v, const places *names)
{
    for (int i = 0; i < names->n; i++) {
        int n = 0, k = names->at[i];
        if (v->var[k].state == NEW)
            v->var[k].state = MAKING, v->todo[n++] = k;
        while (n) {
            var *x = &v->var[v->todo[n - 1]];
            k = x->next < x->names.n ? x->names.at[x->next++] : -1;
            if (k < 0)
                x->of = mixed(x->of, of_names(v, &x->names)), x->state = MADE, n--;
            else if (v->var[k].state == NEW)
                v->var[k].state = MAKING, v->todo[n++] = k;
        }
    }
}

/* ---- stages ------------------------------------------------------------ */

static uint64_t of_files(const gp_probe *probe, const gp_stage *s)
{
    uint64_t sum = 0;
    for (int i = 0; gp_deps_code(s) && i < s->nreads; i++) {
        const gp_entry *e = probe ? gp_table_find(&probe->of[0], s->reads[i]) : NULL;
        const gp_file *f = e ? &((const gp_probed *)e->ptr)->file : NULL;
        if (f && !f->error)
            sum += mixed((uint64_t)f->size, of_bytes(f->head, f->nhead));
    }
    return sum;
}

void gp_digest_stages(gp_arena *a, const gp_spec *spec, const gp_probe *probe, gp_graph *g)
{
    vars v = read_vars(a, gp_node_get(spec->root, "vars"));
    places names = { 0 };
    g->digest = GP_NEW(a, gp_digest, g->nstages + g->nprologue);
    for (int i = 0; i < g->nstages + g->nprologue; i++) {
        const gp_stage *s = i < g->nstages ? &g->stage[i] : &g->prologue[i - g->nstages];
        if (!s->node || !gp_node_get(s->node, "use"))      /* the engine has made it */
            continue;
        uint64_t sum = of_files(probe, s);
        names.n = 0;
        for (int k = 0; k < s->node->n; k++) {
            const gp_node *key = s->node->key[k], *item = s->node->item[k];
            if (gp_word_index(key->text, how_it_runs) < 0 && (s->nin || gp_word_index(key->text, of_sources) < 0)) {
                sum += mixed(of_bytes(key->text, key->len), of_tree(item));
                find_names(&v, item, &names);
            }
        }
        make_vars(&v, &names);
        gp_digest *d = &g->digest[g->ndigests++];
        d->stage = s->name;
        snprintf(d->of, sizeof d->of, "%016" PRIx64, mixed(sum, of_names(&v, &names)));
    }
}
