/* digest.c - what the stages of a file do, as numbers: the kind and the keys of a stage, as the file writes them, the vars
 * that these name, and the scripts and kernels that it reads, of large ones the beginning and the size. What a script
 * loads itself (`require`) is not looked at. The order of keys does not count. */
#include <ctype.h>
#include <string.h>
#include "compile/ir.h"

/* Keys that a simulation takes account of by itself, or with which frames cost the same. */
static const char *const how_it_runs[] = { "name", "in", "out", "workers", "priority", "on_error", "max_dropped", "shard",
                                           "on", "device", NULL };
static const char *const of_sources[] = { "rate", "frames", NULL };

bool gp_node_names(const gp_node *n, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = n->text; (p = strstr(p, word)); p++) {
        bool before = p > n->text && (isalnum((unsigned char)p[-1]) || p[-1] == '_');
        if (!before && !isalnum((unsigned char)p[len]) && p[len] != '_')
            return true;
    }
    for (int i = 0; i < n->n; i++)
        if (gp_node_names(n->item[i], word))
            return true;
    return false;
}

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

/* Of each var that was asked for; its vars are mixed in. */
typedef struct vars {
    const gp_node *map;                /* NULL: none */
    gp_table index;                    /* by name */
    uint64_t *of;
    char *state;                       /* NEW, or it is being made, or made */
    int deep;                          /* how many are being made */
} vars;

enum { NEW, MAKING, MADE, DEEPEST = 100, LONGEST = 256 };      /* vars that name vars; a name */

static uint64_t of_tree(vars *v, const gp_node *n);

static uint64_t of_var(vars *v, int i)
{
    if (v->state[i] == NEW && v->deep < DEEPEST) {
        v->state[i] = MAKING, v->deep++;       /* one that names itself is an error, which others find */
        v->of[i] = mixed(of_bytes(v->map->key[i]->text, v->map->key[i]->len), of_tree(v, v->map->item[i]));
        v->state[i] = MADE, v->deep--;
    }
    return v->state[i] == MADE ? v->of[i] : 0;
}

/* The vars among the words of a text. */
static uint64_t of_words(vars *v, const char *p)
{
    uint64_t sum = 0;
    char name[LONGEST];
    while (v->map && *p) {
        size_t n = 0;
        while (isalnum((unsigned char)p[n]) || p[n] == '_')
            n++;
        if (n && n < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)n, p);
            int i = gp_table_index(&v->index, name);
            sum += i >= 0 ? of_var(v, i) : 0;
        }
        p += n ? n : 1;
    }
    return sum;
}

static uint64_t of_tree(vars *v, const gp_node *n)
{
    uint64_t h = mixed((uint64_t)n->kind + 1, of_bytes(n->text, n->len)), sum = of_words(v, n->text);
    for (int i = 0; i < n->n; i++) {
        uint64_t item = of_tree(v, n->item[i]);
        if (n->kind == GP_MAP)
            sum += mixed(of_bytes(n->key[i]->text, n->key[i]->len), item);
        else
            h = mixed(h, item);
    }
    return mixed(h, sum);
}

static bool is_among(const char *key, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(*list, key))
            return true;
    return false;
}

static uint64_t of_files(const gp_probe *probe, const gp_stage *s)
{
    uint64_t sum = 0;
    for (int i = 0; gp_reads_code(s) && i < s->nreads; i++) {
        const gp_entry *e = probe ? gp_table_find(&probe->of[0], s->reads[i]) : NULL;
        const gp_file *f = e ? &((const gp_probed *)e->ptr)->file : NULL;
        if (f && !f->error)
            sum += mixed((uint64_t)f->size, of_bytes(f->head, f->nhead));
    }
    return sum;
}

static vars vars_of(gp_arena *a, const gp_node *map)
{
    vars v = { .map = map && map->kind == GP_MAP ? map : NULL, .index.arena = a };
    v.of = GP_NEW(a, uint64_t, v.map ? map->n : 0), v.state = GP_NEW(a, char, v.map ? map->n : 0);
    for (int i = 0; v.map && i < map->n; i++)
        gp_table_put(&v.index, map->key[i]->text, i);
    return v;
}

void gp_vars_changed(gp_arena *a, const gp_node *was, const gp_node *now, bool *changed)
{
    vars x = vars_of(a, was), y = vars_of(a, now);
    for (int i = 0; i < now->n; i++) {
        int k = gp_table_index(&x.index, now->key[i]->text);
        changed[i] = k < 0 || of_var(&x, k) != of_var(&y, i);
    }
}

void gp_digest_stages(gp_arena *a, const gp_spec *spec, const gp_probe *probe, gp_graph *g)
{
    vars v = vars_of(a, gp_node_get(spec->root, "vars"));
    g->digest = GP_NEW(a, gp_digest, g->nstages + g->nprologue);
    for (int i = 0; i < g->nstages + g->nprologue; i++) {
        const gp_stage *s = i < g->nstages ? &g->stage[i] : &g->prologue[i - g->nstages];
        if (!s->node || !gp_node_get(s->node, "use"))      /* the engine has made it */
            continue;
        uint64_t sum = of_files(probe, s);
        for (int k = 0; k < s->node->n; k++) {
            const gp_node *key = s->node->key[k];
            if (!is_among(key->text, how_it_runs) && (s->nin || !is_among(key->text, of_sources)))
                sum += mixed(of_bytes(key->text, key->len), of_tree(&v, s->node->item[k]));
        }
        g->digest[g->ndigests++] = (gp_digest){ s->name, s->at, mixed(1, sum) };
    }
}
