/* hints.c - guesses what the user meant, for errors: a key that lacks its ':', an option of another name, a file where
 * numbers are expected. */
#include <ctype.h>
#include <string.h>
#include "base/json.h"
#include "base/plain.h"
#include "compile/resolve.h"

const char *gp_lacks_colon(gp_arena *a, const gp_node *key, const gp_node *item, const char *name)
{
    size_t n = strlen(name);
    const char *rest = key->text + n;
    if (key->kind != GP_SCALAR || key->quoted || strncmp(key->text, name, n) || !*rest || !strchr(" :=", *rest)
        || (item && !gp_is_null(item)))
        return NULL;
    rest += strspn(rest, " :=");
    unsigned c;
    for (size_t bytes; (bytes = gp_utf8(rest, strlen(rest), &c)) && gp_odd_name(c, false);)
        rest += bytes;
    return gp_format(a, "%s: %s", name, *rest ? rest : "...");
}

/* Numbers behind key i of a stage in braces, which should stand in brackets: {axes: 0, 1}. NULL: they are none. */
static const char *lacks_brackets(gp_arena *a, const gp_kind *kind, const gp_node *stage, int i)
{
    const char *list = NULL;
    int k = i;
    while (k > 0 && gp_is_null(stage->item[k]) && strspn(stage->key[k]->text, "0123456789.-") == stage->key[k]->len)
        k--;
    const gp_opt *o = k < i ? gp_option_find(kind, stage->key[k]->text) : NULL;
    if (!o || (o->type != GP_OPT_INTS && o->type != GP_OPT_FLOATS) || stage->item[k]->kind != GP_SCALAR)
        return NULL;
    list = gp_format(a, "%s: [%s", o->name, stage->item[k]->text);
    while (++k <= i)
        list = gp_format(a, "%s, %s", list, stage->key[k]->text);
    return gp_format(a, "%s]", list);
}

const char *gp_option_hint(gp_arena *a, const gp_kind *kind, const gp_node *stage, int i)
{
    const gp_node *key = stage->key[i];
    const char *due = "", *colon = NULL;
    gp_near near = GP_NEAR(key->text);
    for (int rest = 0; rest < 2; rest++)           /* those that are due first: the first of the nearest is taken */
        for (const gp_opt *o = kind->opts; o && o->name; o++)
            if (gp_option_is_due(o, stage) != rest) {
                gp_near_try(&near, o->name);
                due = rest ? due : gp_format(a, "%s%s'%s'", due, *due ? ", " : "", o->name);
                colon = colon ? colon : gp_lacks_colon(a, key, stage->item[i], o->name);
            }
    for (const gp_opt *k = gp_stage_keys; k->name; k++) {
        gp_near_try(&near, k->name);
        colon = colon ? colon : gp_lacks_colon(a, key, stage->item[i], k->name);
    }
    const char *list = lacks_brackets(a, kind, stage, i);
    if (list)
        return gp_format(a, "; a list stands in brackets: %s", list);
    bool far = !*gp_near_text(&near) || 2 * (size_t)near.distance >= strlen(key->text);
    if (colon)
        return gp_format(a, "; write '%s'", colon);
    for (int k = 0; k < 2; k++)
        if (!strncmp(key->text, k ? "output" : "input", k ? 6 : 5))
            return k ? "; did you mean 'out'?" : "; did you mean 'in'?";
    if (far && *due)
        return gp_format(a, "; it needs %s", due);
    if (far)
        return gp_format(a, "; 'gpipe stages %s' lists them", kind->name);
    return gp_strndup(a, near.text, strlen(near.text));
}

bool gp_option_is_file(gp_reader *r, const gp_kind *kind, const gp_opt *o, const gp_node *n)
{
    bool list = o->type == GP_OPT_FLOATS || o->type == GP_OPT_INTS;
    const char *dot = n->kind == GP_SCALAR ? strrchr(n->text, '.') : NULL, *port = "";
    if ((!list && o->type != GP_OPT_FLOAT && o->type != GP_OPT_NUM && o->type != GP_OPT_INT) || !dot || dot == n->text
        || !isalpha((unsigned char)dot[1]) || isdigit((unsigned char)dot[-1]) || !strcmp(dot, ".size"))
        return false;
    for (const char *c = dot + 1; *c; c++)
        if (!isalnum((unsigned char)*c))
            return false;
    for (const gp_port *in = kind->in; in && in->name; in++)
        if (!strcmp(in->name, o->name))
            port = gp_format(r->arena, ": make it a constant, buffers: {w: {const: %s}}, and connect the input '%s' "
                             "to that, in: {..., %s: w}", n->text, o->name, o->name);
    gp_fail(r->errs, GP_E_SPEC, n->at, "option '%s' of stage '%s' takes %s, not a file like '%s'%s", o->name, r->stage,
            list ? "numbers, like [1, 2]" : "a number", n->text, port);
    return true;
}
