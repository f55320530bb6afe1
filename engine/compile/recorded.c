/* recorded.c - the section `recorded` of a file that `gpipe run --record` wrote: with it the text means what it meant
 * in that run. Its settings come before those of the caller, what it says of the environment and the date takes the
 * place of both, files that were included are in it, and relative paths start at its folder. What was asked for is
 * noted, so that it can be recorded. */
#include <string.h>
#include "compile/resolve.h"

static const char *get(const void *arg, const char *name)
{
    gp_recorded *r = (gp_recorded *)arg;
    for (int i = 0; i < r->nasked; i++)
        if (!strcmp(r->asked[i].name, name))
            return r->asked[i].value;
    const gp_node *known = gp_node_get(gp_node_get(r->map, "environment"), name);
    const char *value = known ? (gp_is_null(known) ? NULL : known->text)
                      : r->of->get ? r->of->get(r->of->arg, name) : NULL;
    gp_asked *is = GP_PUSH(r->arena, r->asked, r->nasked, r->cap);
    *is = (gp_asked){ gp_strdup(r->arena, name), value ? gp_strdup(r->arena, value) : NULL };
    return is->value;
}

/* ---- what it may hold ------------------------------------------------------ */

typedef enum form { TEXT, NUMBER, TEXTS, NAMES, FILES } form;
static const char *const is_a[] = { "a text", "a whole number", "a list of texts", "a map of texts", "a list of maps" };

/* `due`: it has to be there. */
static const struct { const char *in; form is; bool due; const char *keys; } keys[] = {
    { "recorded", TEXT, false, "gpipe|commit|scripts|libc|cpu|gpu|driver|cuda|began|outcome|text|folder|date" },
    { "recorded", NUMBER, false, "frames|ranks" },
    { "recorded", TEXTS, false, "set|libraries|lost" },
    { "recorded", NAMES, false, "environment" },
    { "recorded", FILES, false, "included|files" },
    { "included", TEXT, true, "path" },
    { "included", TEXT, true, "text" },
    { "files", TEXT, true, "path" },
    { "files", TEXT, false, "of|lacks|sha256" },
    { "files", NUMBER, false, "size" },
};
enum { KEYS = sizeof keys / sizeof *keys };

static bool has_keys(const gp_node *map, const char *name, gp_errs *errs);

/* The node that is none of these, the value itself or an item of it; NULL: it is one. Only a variable may be null. */
static const gp_node *misfit(const gp_node *map, const char *key, form is)
{
    const gp_node *n = gp_node_get(map, key);
    double x = is == NUMBER ? gp_node_number(map, key) : 0;
    if (n->kind != (is == NAMES ? GP_MAP : is == TEXTS || is == FILES ? GP_LIST : GP_SCALAR) || x < 0 || x != (double)(int64_t)x
        || (is == TEXT && gp_is_null(n)))
        return n;
    for (int i = 0; i < n->n; i++)
        if (n->item[i]->kind != (is == FILES ? GP_MAP : GP_SCALAR) || (is == TEXTS && gp_is_null(n->item[i])))
            return n->item[i];
    return NULL;
}

static bool is_known(const gp_node *map, const char *name, int i, gp_errs *errs)
{
    const char *key = map->key[i]->text;
    const gp_node *n = map->item[i], *bad;
    int k = 0;
    while (k < KEYS && (strcmp(keys[k].in, name) || gp_word_index(key, keys[k].keys) < 0))
        k++;
    if (k == KEYS)
        return gp_fail(errs, GP_E_SPEC, map->key[i]->at, "'%s' has no key '%.100s'; 'gpipe run --record' writes it", name, key);
    if ((bad = misfit(map, key, keys[k].is)))
        return gp_fail(errs, GP_E_SPEC, bad->at, "'%s' of '%s' is %s; 'gpipe run --record' writes it", key, name,
                       is_a[keys[k].is]);
    bool ok = true;
    for (int j = 0; keys[k].is == FILES && j < n->n; j++)
        ok = has_keys(n->item[j], key, errs) && ok;
    return ok;
}

static bool has_keys(const gp_node *map, const char *name, gp_errs *errs)
{
    if (map->kind != GP_MAP)
        return gp_fail(errs, GP_E_SPEC, map->at, "'%s' is a map, which 'gpipe run --record' writes", name);
    bool ok = true;
    for (int i = 0; i < map->n; i++)
        ok = is_known(map, name, i, errs) && ok;
    for (int k = 0; k < KEYS; k++)
        if (keys[k].due && !strcmp(keys[k].in, name) && !gp_node_get(map, keys[k].keys))
            ok = gp_fail(errs, GP_E_SPEC, map->at, "a file of '%s' has no '%s'", name, keys[k].keys);
    return ok;
}

/* ---- reading it ------------------------------------------------------------ */

/* "2026-01-31T23:59:59.123456789 +0100 CET". */
static bool read_date(gp_recorded *r, const gp_node *n, gp_errs *errs)
{
    int hours, used = 0;
    const char *rest = strptime(n->text, "%Y-%m-%dT%H:%M:%S", &r->date);
    if (!rest || sscanf(rest, ".%9d %5d %n", &r->env.nanoseconds, &hours, &used) != 2 || !used
        || r->env.nanoseconds < 0)
        return gp_fail(errs, GP_E_SPEC, n->at, "this is no date as 'gpipe run --record' writes it");
    r->date.tm_gmtoff = (hours / 100 * 60 + hours % 100) * 60L;
    r->date.tm_zone = rest + used;
    r->env.date = &r->date;
    return true;
}

/* What a compilation would find, were the file there as it was. */
static void give_file(gp_recorded *r, const gp_spec *spec, gp_probe *probe, const gp_node *n)
{
    const gp_node *path = gp_node_get(n, "path"), *text = gp_node_get(n, "text");
    gp_probed *x = GP_NEW(r->arena, gp_probed, 1);
    x->path = gp_path_from(r->arena, spec->dir, path->text);
    x->file = (gp_file){ .path = x->path, .kind = GP_FILE_REGULAR, .size = (int64_t)text->len, .head = text->text,
                         .nhead = text->len };
    probe->of[0].arena = r->arena;
    gp_table_put(&probe->of[0], x->path, 0)->ptr = x;
}

gp_recorded *gp_recorded_begin(gp_arena *a, gp_spec *spec, const gp_config *config, gp_probe *probe, gp_errs *errs)
{
    gp_recorded *r = GP_NEW(a, gp_recorded, 1);
    const gp_node *map = gp_node_get(spec->root, "recorded"), *n;
    *r = (gp_recorded){ .arena = a, .map = map, .of = &config->env, .env = config->env };
    r->env.get = get, r->env.arg = r;
    if (map && !has_keys(map, "recorded", errs))
        return NULL;
    const gp_node *set = gp_node_list(map, "set"), *files = gp_node_list(map, "included");
    r->set = GP_NEW(a, const char *, (set ? set->n : 0) + config->nset);
    for (int i = 0; set && i < set->n; i++)
        if (!strchr((r->set[r->nset++] = set->item[i]->text), '='))
            return GP_NULL(gp_fail(errs, GP_E_SPEC, set->item[i]->at, "this is no setting, as in depth=6"));
    for (int i = 0; i < config->nset; i++)
        r->set[r->nset++] = config->set[i];
    if (*gp_node_text(map, "folder"))
        spec->dir = gp_path_from(a, spec->dir, gp_node_text(map, "folder"));
    if ((n = gp_node_get(map, "date")) && !read_date(r, n, errs))
        return NULL;
    else if (config->env.date && !n)
        r->date = *config->env.date, r->env.date = &r->date;
    for (int i = 0; files && i < files->n; i++)
        give_file(r, spec, probe, files->item[i]);
    return r;
}

/* ---- writing it ----------------------------------------------------------- */

/* The text with another value of `recorded`, which it has; that may be in braces, or in a block of lines. */
static char *with_value(gp_arena *a, const char *text, size_t len, const char *value, size_t *out_len)
{
    const gp_marked *root = gp_yaml_marked(a, text, len, "", GP_NEW(a, gp_errs, 1));
    const gp_marked *is = root ? (const gp_marked *)gp_node_get(&root->node, "recorded") : NULL;
    if (!is || is->alias)
        return NULL;
    size_t to = is->to;
    while (!is->flow && to > is->from && strchr(" \n", text[to - 1]))     /* a block of lines ends where the next key begins */
        to--;
    char *out = gp_format(a, "%.*s%s%.*s", (int)is->from, text, value, (int)(len - to), text + to);
    *out_len = strlen(out);
    return out;
}

/* Do two texts say the same, but for `recorded`, which the second has? */
static bool is_same(gp_arena *a, const char *x, size_t nx, const char *y, size_t ny)
{
    gp_spec *p = gp_parse(a, x, nx, "", GP_NEW(a, gp_errs, 1)), *q = gp_parse(a, y, ny, "", GP_NEW(a, gp_errs, 1));
    int n = 0, kept = 0;
    for (int i = 0; p && q && i < p->root->n; i++, n++)
        if (!strcmp(p->root->key[i]->text, "recorded"))
            n--;
        else if (!gp_node_get(q->root, p->root->key[i]->text)
                 || !gp_node_is_same(p->root->item[i], gp_node_get(q->root, p->root->key[i]->text)))
            return false;
    for (int i = 0; q && i < q->root->n; i++)
        kept += strcmp(q->root->key[i]->text, "recorded") != 0;
    return p && q && n == kept && kept < q->root->n;
}

/* A place for it is behind all else, where the text goes on so; else where gp_yaml_edit puts a key. */
static char *with_place(gp_arena *a, const char *text, size_t len, const gp_node *root, size_t *out_len)
{
    if (gp_node_get(root, "recorded"))
        return with_value(a, text, len, "{}", out_len);
    const char *end = len && text[len - 1] == '\n' ? "" : "\n";
    char *out = gp_format(a, "%.*s%s# What 'gpipe run --record' wrote: 'gpipe help record'.\nrecorded: {}\n", (int)len,
                          text, end);
    *out_len = strlen(out);
    return is_same(a, text, len, out, *out_len) ? out
         : gp_yaml_edit(a, text, len, "", (const char *const[]){ "recorded" }, 1, "{}", out_len, GP_NEW(a, gp_errs, 1));
}

char *gp_recorded_text(gp_arena *a, const char *text, size_t len, const char *value, size_t *out_len)
{
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))          /* a byte order mark */
        text += 3, len -= 3;
    const gp_spec *spec = gp_parse(a, text, len, "", GP_NEW(a, gp_errs, 1));
    size_t n = 0;
    char *out = spec ? with_place(a, text, len, spec->root, &n) : NULL;
    out = out && value ? with_value(a, out, n, value, &n) : out;
    *out_len = n;
    return out && is_same(a, text, len, out, n) ? out : NULL;
}
