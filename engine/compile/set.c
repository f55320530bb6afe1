/* set.c - `--set PATH=VALUE`, and the names of stages that it needs.
 *
 * It changes the tree before resolve reads it. Nodes may be shared through
 * aliases, so the way from the root to the change is copied first: a change
 * shows at its path and nowhere else. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/table.h"
#include "base/yaml.h"
#include "compile/ir.h"
#include "compile/keys.h"

/* ---- stage names ----------------------------------------------------- */

static const char *text_of(const gp_node *stage, const char *key)
{
    const gp_node *n = gp_node_get(stage, key);
    return n && n->kind == GP_SCALAR && n->len ? n->text : NULL;
}

/* What no kind names: a file that is included, a branch. */
static const char *named_by(gp_arena *a, const gp_node *entry)
{
    const char *file = text_of(entry, "include"), *slash = file ? strrchr(file, '/') : NULL;
    file = slash ? slash + 1 : file;
    return file ? gp_strndup(a, file, strcspn(file, ".")) : gp_node_get(entry, "stages") ? "branch" : "stage";
}

void gp_stage_names(gp_arena *a, const gp_node *stages, const char **names)
{
    gp_table taken = { .arena = a }, count = { .arena = a };
    int n = stages && stages->kind == GP_LIST ? stages->n : 0;
    for (int i = 0; i < n; i++)
        if ((names[i] = text_of(stages->item[i], "name")))
            gp_table_put(&taken, names[i], i);
    for (int i = 0; i < n; i++) {
        if (names[i])
            continue;
        const char *kind = text_of(stages->item[i], "use"), *name = kind = kind ? kind : named_by(a, stages->item[i]);
        int64_t *k = &gp_table_put(&count, kind, 0)->n;
        if (++*k > 1)
            name = gp_format(a, "%s%" PRId64, kind, *k);
        while (gp_table_find(&taken, name))
            name = gp_format(a, "%s%" PRId64, kind, ++*k);
        gp_table_put(&taken, names[i] = name, i);
    }
}

void gp_number_stages(gp_arena *a, const gp_node *n, const char **word, int nwords)
{
    for (int w = 0; n && w < nwords; w++) {
        bool named = n->kind == GP_LIST && w && !strcmp(word[w - 1], "stages");
        const char **names = named ? GP_NEW(a, const char *, n->n) : NULL;
        if (named)
            gp_stage_names(a, n, names);
        for (int i = 0; named && i < n->n; i++)
            if (!strcmp(names[i], word[w])) {
                word[w] = gp_format(a, "%d", i);
                break;
            }
        char *end;
        unsigned long i = strtoul(word[w], &end, 10);
        n = n->kind == GP_MAP ? gp_node_get(n, word[w])
            : n->kind == GP_LIST && !*end && i < (unsigned long)n->n ? n->item[i] : NULL;
    }
}

/* One for each port that must be there, named like the stage, and like the port
 * too where there are several; one for a stage that may have any. */
const char *gp_default_out(gp_arena *a, const gp_kind *kind, const char *name, int i,
                           const gp_port **port)
{
    const gp_port *p = kind ? kind->out : NULL;
    int required = 0;
    *port = NULL;
    if (!kind || (p && p->name && !strcmp(p->name, "*")))
        return i ? NULL : name;
    for (; p && p->name && strcmp(p->name, "*"); p++)
        if (!p->optional && required++ == i)
            *port = p;
    return !*port ? NULL : required == 1 ? name : gp_format(a, "%s_%s", name, (*port)->name);
}

/* ---- the path -------------------------------------------------------- */

struct set {
    gp_arena *arena;
    gp_loc at;                         /* `file` is the assignment */
    gp_errs *errs;
    const char **word; int nwords;     /* of the path */
    gp_node *value;
};

static gp_node *new_node(struct set *s, gp_node_kind kind, const char *text)
{
    gp_node *n = GP_NEW(s->arena, gp_node, 1);
    n->kind = kind, n->at = s->at, n->text = text, n->len = strlen(text);
    return n;
}

/* A copy of one node (children shared), with room for one more child. */
static gp_node *copy(struct set *s, const gp_node *from)
{
    gp_node *n = GP_NEW(s->arena, gp_node, 1);
    size_t old = sizeof *n->item * (size_t)from->n;
    *n = *from;
    n->item = gp_regrow(s->arena, from->item, old, old + sizeof *n->item);
    if (from->kind == GP_MAP)
        n->key = gp_regrow(s->arena, from->key, old, old + sizeof *n->key);
    return n;
}

static gp_node *put(struct set *s, gp_node *n, int w);

static bool no_such(struct set *s, const char *what, const char *word, gp_near *near)
{
    return gp_fail(s->errs, GP_E_USAGE, s->at, "no %s '%s'%s", what, word, gp_near_text(near));
}

/* Is there a stage of that name in the list? */
static bool find_stage(struct set *s, const gp_node *stages, const char *name, gp_near *near)
{
    const char **names = GP_NEW(s->arena, const char *, stages->n);
    gp_stage_names(s->arena, stages, names);
    for (int i = 0; i < stages->n; i++) {
        if (!strcmp(names[i], name))
            return true;
        gp_near_try(near, names[i]);
    }
    return false;
}

/* What is set stands where what it replaces would. */
static void stand_inside(gp_node *n, const gp_inside *in)
{
    n->inside = in;
    for (int i = 0; i < n->n; i++)
        stand_inside(n->item[i], in);
}

/* item[i] of the copy `n` becomes what the words from w on make of it. */
static gp_node *put_item(struct set *s, gp_node *n, int i, int w)
{
    if (w == s->nwords)
        stand_inside(s->value, n->inside);
    return (n->item[i] = put(s, n->item[i], w)) ? n : NULL;
}

/* The node that takes the place of `n` (NULL: there is none yet) when the path
 * from word w on is set to the value. NULL after an error. */
static gp_node *put(struct set *s, gp_node *n, int w)
{
    if (w == s->nwords)
        return s->value;
    const char *word = s->word[w];
    bool blank = n && n->kind == GP_SCALAR && !n->len && !n->quoted;
    n = copy(s, n && !blank ? n : new_node(s, GP_MAP, ""));
    if (n->kind == GP_MAP) {
        int i = 0;
        while (i < n->n && strcmp(n->key[i]->text, word))
            i++;
        if (i == n->n) {
            n->key[n->n++] = new_node(s, GP_SCALAR, word);
            n->index = NULL;
        }
        return put_item(s, n, i, w + 1);
    }
    if (n->kind == GP_SCALAR)
        return GP_NULL(gp_fail(s->errs, GP_E_USAGE, s->at, "'%s' is a single value and has no '%s'", s->word[w - 1],
                               word));
    char *end;
    gp_near near = GP_NEAR(word);
    unsigned long i = strtoul(word, &end, 10);
    if (*end && w && !strcmp(s->word[w - 1], "stages")) {      /* those that there are have become numbers */
        find_stage(s, n, word, &near);
        no_such(s, "stage", word, &near);
        return NULL;
    }
    if (*end || end == word || i >= (unsigned long)n->n)
        return GP_NULL(gp_fail(s->errs, GP_E_USAGE, s->at, "'%s' is a list of %d, counted from 0; it has no '%s'",
                               s->word[w - 1], n->n, word));
    return put_item(s, n, (int)i, w + 1);
}

/* Has the map, if it is one, that key? */
static bool has_key(const gp_node *map, const char *key, gp_near *near)
{
    for (int i = 0; map && map->kind == GP_MAP && i < map->n; i++)
        gp_near_try(near, map->key[i]->text);
    return gp_node_get(map, key) != NULL;
}

static bool known_var(struct set *s, const gp_node *vars)
{
    gp_near near = GP_NEAR(s->word[1]);
    return has_key(vars, s->word[1], &near) || no_such(s, "variable under 'vars' is named", s->word[1], &near);
}

/* Is `word` one of the names that `out` gives (a scalar, a list, a map by port)? */
static bool names_output(const gp_node *out, const char *word, gp_near *near)
{
    if (out->kind == GP_SCALAR) {
        gp_near_try(near, out->text);
        return !strcmp(out->text, word);
    }
    for (int i = 0; i < out->n; i++)
        if (out->item[i]->kind == GP_SCALAR && names_output(out->item[i], word, near))
            return true;
    return false;
}

static bool known_buffer(struct set *s, const gp_node *buffers, const gp_node *stages,
                         const char **names, const gp_registry *registry)
{
    const char *word = s->word[1];
    gp_near near = GP_NEAR(word);
    if (has_key(buffers, word, &near))
        return true;
    for (int i = 0; names && i < stages->n; i++) {
        const gp_node *out = gp_node_get(stages->item[i], "out");
        if (out) {
            if (names_output(out, word, &near))
                return true;
            continue;
        }
        const char *use = text_of(stages->item[i], "use"), *name;
        const gp_kind *kind = use && registry ? gp_kind_find(registry, use) : NULL;
        const gp_port *port;
        for (int k = 0; (name = gp_default_out(s->arena, kind, names[i], k, &port)); k++) {
            if (!strcmp(name, word))
                return true;
            gp_near_try(&near, name);
        }
    }
    return no_such(s, "buffer", word, &near);
}

/* What `buffers:` carries is shown as a stage, too. */
static bool known_stage(struct set *s, const gp_node *buffers, const gp_node *stages)
{
    const char *word = s->word[1];
    gp_near near = GP_NEAR(word);
    if (stages && stages->kind == GP_LIST && find_stage(s, stages, word, &near))
        return true;
    if (gp_node_get(gp_node_get(buffers, word), "carry"))
        return gp_fail(s->errs, GP_E_USAGE, s->at, "'%s' is a buffer, which carries another: write "
                       "buffers.%s.KEY=VALUE", word, word);
    return no_such(s, "stage", word, &near);
}

/* ---- the assignment -------------------------------------------------- */

/* Does the path name something? */
static bool check_path(struct set *s, const gp_spec *spec, const gp_registry *registry)
{
    static const struct { const char *name; int words; const char *form; } maps[] = {
        { "vars", 2, "vars.NAME" }, { "buffers", 3, "buffers.NAME.KEY" },
        { "stages", 3, "stages.NAME.OPTION" } };
    const char *top = s->word[0];
    gp_near near = GP_NEAR(top);
    for (const gp_opt *k = gp_top_keys; k->name; k++) {
        if (k->type == GP_OPT_NODE)
            continue;
        if (!strcmp(k->name, top))
            return s->nwords == 1 || gp_fail(s->errs, GP_E_USAGE, s->at,
                                             "'%s' is a single value and has no '%s'", top,
                                             s->word[1]);
        gp_near_try(&near, k->name);
    }
    int m = 0;
    for (; m < 3 && strcmp(maps[m].name, top); m++)
        gp_near_try(&near, maps[m].name);
    if (m == 3 && gp_node_get(gp_node_get(spec->root, "vars"), top))
        return gp_fail(s->errs, GP_E_USAGE, s->at, "'%s' is a variable: write vars.%s", top, s->at.file);
    if (m == 3)
        return no_such(s, "key", top, &near);
    if (s->nwords < maps[m].words)
        return gp_fail(s->errs, GP_E_USAGE, s->at, "the path is too short; write %s=VALUE",
                       maps[m].form);
    if (m == 0)
        return known_var(s, gp_node_get(spec->root, "vars"));
    const gp_node *stages = gp_node_get(spec->root, "stages");
    const char **names = NULL;
    if (stages && stages->kind == GP_LIST) {
        names = GP_NEW(s->arena, const char *, stages->n);
        gp_stage_names(s->arena, stages, names);
    }
    return m == 1 ? known_buffer(s, gp_node_get(spec->root, "buffers"), stages, names, registry)
        : known_stage(s, gp_node_get(spec->root, "buffers"), stages);
}

/* Text that does not start a list, a map or a quote is taken literally, so that `--set vars.glob=*.png` needs no quotes
 * in quotes. What has no ':' is no map: {a,b}.png. */
static gp_node *parse_value(struct set *s, const char *value)
{
    value += strspn(value, " ");
    bool choice = *value == '{' && strchr(value, ',') && !strchr(value, ':');
    if (*value && strchr("[{\"'", *value) && !choice)
        return gp_yaml_value(s->arena, value, s->at, s->errs);
    gp_node *n = new_node(s, GP_SCALAR, value);
    n->quoted = !*value;               /* an empty text, not null */
    return n;
}

/* Words 1 to k become one. */
static void join_words(gp_arena *a, const char **word, int *n, int k)
{
    if (k < 2)
        return;
    for (int i = 2; i <= k; i++)
        word[1] = gp_format(a, "%s.%s", word[1], word[i]);
    memmove(word + 2, word + k + 1, sizeof *word * (size_t)(*n - k - 1));
    *n -= k - 1;
}

/* Names of stages and buffers that come from included files or copies have points in them; a var may be declared as a
 * map, of which the value is the default. */
static void find_names(gp_arena *a, const gp_spec *spec, const char **word, int *n)
{
    const gp_node *stages = gp_node_get(spec->root, "stages"), *var;
    if (*n == 2 && !strcmp(word[0], "vars") && (var = gp_node_get(gp_node_get(spec->root, "vars"), word[1]))
        && var->kind == GP_MAP)
        word[(*n)++] = "default";
    if (!spec->expanded || *n < 3)
        return;
    if (!strcmp(word[0], "buffers") || !strcmp(word[0], "vars"))
        join_words(a, word, n, *n - 1 - (*word[0] == 'b'));
    const char **names = GP_NEW(a, const char *, stages->n);
    gp_stage_names(a, stages, names);
    bool known = strcmp(word[0], "stages");
    for (int k = known ? 0 : *n - 2; k > 0; k--) {
        const char *name = word[1];
        for (int i = 2; i <= k; i++)
            name = gp_format(a, "%s.%s", name, word[i]);
        for (int i = 0; i < stages->n; i++)
            if (!strcmp(names[i], name)) {
                join_words(a, word, n, k);
                return;
            }
    }
    if (!known)                        /* which is then told of all of it */
        join_words(a, word, n, *n - 2);
}

const char **gp_set_words(gp_arena *a, const gp_spec *spec, const char *assignment, int *n)
{
    const char **word = NULL, *equals = strchr(assignment, '=');
    int cap = 0;
    *n = 0;
    for (const char *from = assignment, *dot; from <= equals; from = dot + 1) {
        dot = memchr(from, '.', (size_t)(equals - from));
        dot = dot ? dot : equals;
        *GP_PUSH(a, word, *n, cap) = gp_strndup(a, from, (size_t)(dot - from));
    }
    *GP_PUSH(a, word, *n, cap) = "";   /* room for "default" */
    --*n;
    find_names(a, spec, word, n);
    return word;
}

static bool is_key(const gp_opt *rows, const char *word)
{
    return gp_key_find(rows, word) != NULL;
}

bool gp_set_is_late(gp_arena *a, const gp_spec *spec, const char *assignment, const gp_registry *registry)
{
    int n = 0, i = 0;
    const gp_node *stages = gp_node_get(spec->root, "stages");
    bool any = false;
    if (!strchr(assignment, '=') || !stages || stages->kind != GP_LIST)
        return false;
    const char **word = gp_set_words(a, spec, assignment, &n), **names = GP_NEW(a, const char *, stages->n);
    gp_stage_names(a, stages, names);
    for (int k = 0; k < stages->n; k++)
        any |= gp_is_reused(stages->item[k]);
    bool var = !strcmp(word[0], "vars"), buffer = !strcmp(word[0], "buffers");
    if (!any || n < 3 || (strcmp(word[0], "stages") && !var && !buffer))
        return false;
    if (var || (buffer && n > 3))
        return !var || strcmp(word[2], "default");
    if (buffer) {
        struct set x = { .arena = a, .errs = GP_NEW(a, gp_errs, 1), .word = word, .nwords = n };
        return !known_buffer(&x, gp_node_get(spec->root, "buffers"), stages, names, registry);
    }
    while (i < stages->n && strcmp(names[i], word[1]))
        i++;
    const gp_node *st = i < stages->n ? stages->item[i] : NULL;
    if (!st || !gp_is_reused(st))      /* of a name that there is not what there is then is told */
        return !st;
    const gp_node *use = gp_node_get(st, "use");
    const gp_kind *kind = use ? gp_kind_find(registry, use->text) : NULL;
    return !is_key(gp_node_get(st, "include") ? gp_include_keys : use ? gp_stage_keys : gp_branch_keys, word[2])
        && !(kind && kind->opts && is_key(kind->opts, word[2]));
}

bool gp_spec_set(gp_arena *a, gp_spec *spec, const char *assignment,
                 const gp_registry *registry, gp_errs *errs)
{
    struct set s = { .arena = a, .at = { .file = assignment }, .errs = errs };
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment)
        return gp_fail(errs, GP_E_USAGE, s.at, "write PATH=VALUE, like streams=4");
    s.word = gp_set_words(a, spec, assignment, &s.nwords);
    for (int i = 0; i < s.nwords; i++)
        if (!*s.word[i])
            return gp_fail(errs, GP_E_USAGE, s.at, "the path has an empty part");
    if (!(s.value = parse_value(&s, equals + 1)) || !check_path(&s, spec, registry))
        return false;
    gp_number_stages(a, spec->root, s.word, s.nwords);
    gp_node *root = put(&s, spec->root, 0);
    if (root)
        spec->root = root;
    return root != NULL;
}
