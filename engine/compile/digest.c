/* digest.c - what the stages of a file do, as numbers: the kind and the keys of a stage, but for those that only say how
 * it runs, the vars that these name, and the scripts and kernels that it reads. Where two compilations have the same
 * number, the stage does the same. The order of keys does not count. */
#include <ctype.h>
#include <string.h>
#include "compile/ir.h"

/* Keys with which frames cost the same. */
static const char *const how_it_runs[] = { "name", "in", "out", "workers", "priority", "on_error", "max_dropped", "shard",
                                           "on", "device", "rate", "frames", NULL };

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

static bool is_how(const char *key)
{
    for (const char *const *k = how_it_runs; *k; k++)
        if (!strcmp(*k, key))
            return true;
    return false;
}

/* The vars that any of the counted keys names, or a var that one names. */
static uint64_t of_vars(gp_arena *a, const gp_node *vars, const gp_node *stage)
{
    bool *named = GP_NEW(a, bool, vars->n);
    uint64_t sum = 0;
    for (int i = 0; i < vars->n; i++)
        for (int k = 0; k < stage->n && !named[i]; k++)
            named[i] = !is_how(stage->key[k]->text) && gp_node_names(stage->item[k], vars->key[i]->text);
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < vars->n; i++)
            for (int k = 0; named[i] && k < vars->n; k++)
                if (!named[k] && gp_node_names(vars->item[i], vars->key[k]->text))
                    more = named[k] = true;
    }
    for (int i = 0; i < vars->n; i++)
        if (named[i])
            sum += mixed(of_bytes(vars->key[i]->text, vars->key[i]->len), of_tree(vars->item[i]));
    return sum;
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

void gp_digest_stages(gp_arena *a, const gp_spec *spec, const gp_probe *probe, gp_graph *g)
{
    const gp_node *vars = gp_node_get(spec->root, "vars");
    g->digest = GP_NEW(a, gp_digest, g->nstages + g->nprologue);
    for (int i = 0; i < g->nstages + g->nprologue; i++) {
        const gp_stage *s = i < g->nstages ? &g->stage[i] : &g->prologue[i - g->nstages];
        if (!s->node || !gp_node_get(s->node, "use"))      /* the engine has made it */
            continue;
        uint64_t sum = of_files(probe, s);
        for (int k = 0; k < s->node->n; k++)
            if (!is_how(s->node->key[k]->text))
                sum += mixed(of_bytes(s->node->key[k]->text, s->node->key[k]->len), of_tree(s->node->item[k]));
        if (vars && vars->kind == GP_MAP)
            sum += of_vars(a, vars, s->node);
        g->digest[g->ndigests++] = (gp_digest){ s->name, s->at, mixed(1, sum) };
    }
}
