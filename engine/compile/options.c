/* options.c - one value of the YAML becomes one value in C, as its type asks.
 *
 * Numbers and times are expressions over vars; all else is text in which ${}
 * is replaced. YAML's own guesses (off, 010, null) play no part. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/dtypes.h"
#include "base/num.h"
#include "base/yaml.h"
#include "compile/expr.h"
#include "compile/inside.h"
#include "compile/resolve.h"

/* ---- the scope of expressions ---------------------------------------- */

const gp_var *gp_var_find(const gp_vars *vars, const gp_inside *in, const char *name)
{
    const char *own, *full = vars->map ? gp_inside_name(in, name) : name;
    for (int k = 0; !full && k < GP_OWN_VARS; k++)
        if (gp_own_var(NULL, k, &own), !strcmp(own, name))
            full = name;
    int i = full ? gp_table_index(&vars->index, full) : -1;
    return i < 0 ? NULL : &vars->v[i];
}

static bool lookup_var(const gp_scope *s, const char *name, gp_num *out)
{
    gp_lookup *l = (gp_lookup *)s->arg;
    const gp_var *v = gp_var_find(l->vars, l->inside, name);
    if (v && v->number)
        *out = v->num;
    else if (v)
        l->bad = v;
    return v && v->number;
}

bool gp_type_part(const gp_type *t, int k, gp_num *out)
{
    if (!t->ndim || k >= t->ndim)
        return false;
    int64_t i = k < 0 ? gp_count(t) : t->dim[k];
    *out = (gp_num){ true, i, (double)i };
    return true;
}

static bool lookup_port(const gp_scope *s, const char *port, int k, gp_num *out)
{
    const gp_lookup *l = s->arg;
    for (int i = 0; i < l->nin; i++)
        if (!strcmp(l->in_name[i], port))
            return gp_type_part(&l->in[i], k, out);
    for (int i = 0; i < l->nout; i++)
        if (!strcmp(l->out_name[i], port))
            return gp_type_part(&l->out[i], k, out);
    return false;
}

static void lookup_each(const gp_scope *s, gp_near *near)
{
    const gp_lookup *l = s->arg;
    gp_inside_near(l->inside, near);
    for (int i = 0; i < l->vars->n; i++)
        if (l->vars->v[i].number)
            gp_near_try(near, l->vars->v[i].name);
    for (int i = 0; i < l->nin; i++)
        gp_near_try(near, l->in_name[i]);
    for (int i = 0; i < l->nout; i++)
        gp_near_try(near, l->out_name[i]);
}

static gp_scope lookup_scope(gp_lookup *l)
{
    return (gp_scope){ lookup_var, l->nin + l->nout ? lookup_port : NULL, lookup_each, l };
}

/* After an evaluation that failed: if a var was the reason, replaces the errors from
 * `n` on by one that says so. */
static bool explain(const gp_lookup *l, const gp_node *node, gp_errs *errs, int n, int failed)
{
    const gp_var *v = l->bad && l->bad->of ? l->bad->of : l->bad;
    if (!v || n == GP_ERRS_MAX)
        return false;
    errs->n = n, errs->failed = failed;
    if (v->unset)
        return gp_fail(errs, GP_E_SPEC, node->at,
                       "'%s' has no value; give one with --set vars.%s=...", v->name, v->name);
    if (v->deep)
        return gp_fail(errs, GP_E_SPEC, node->at, "'%s' depends on a chain of more than %d "
                       "variables; put some of them into one expression", v->name, GP_VARS_DEEPEST);
    return gp_fail(errs, GP_E_SPEC, node->at, "'%s' is '%.80s', which is not a number%s%s", v->name,
                   v->node->text, v->why ? ": " : "", v->why ? v->why : "");
}

bool gp_eval_with(gp_lookup *l, const gp_node *node, gp_num *out, gp_errs *errs)
{
    l->inside = node->inside;
    gp_scope scope = lookup_scope(l);
    int n = errs->n, failed = errs->failed;
    return gp_eval(node, &scope, out, errs) || explain(l, node, errs, n, failed);
}

/* ---- readers --------------------------------------------------------- */

/* "option 'gain' of stage 'luma'", or "'depth'". */
static const char *what(const gp_reader *r)
{
    return r->stage ? gp_format(r->arena, "option '%s' of stage '%s'", r->key, r->stage)
        : gp_format(r->arena, "'%s'", r->key);
}

#define WRONG(r, n, fmt, ...)                                                \
    gp_fail((r)->errs, GP_E_SPEC, (n)->at, "%s " fmt, what(r), __VA_ARGS__)

static const char *kind_word(const gp_node *n)
{
    return n->kind == GP_LIST ? "list" : n->kind == GP_MAP ? "map" : "single value";
}

bool gp_read_num(gp_reader *r, const gp_node *n, gp_num *out)
{
    gp_lookup l = { .vars = r->vars };
    if (n->kind != GP_SCALAR)
        return WRONG(r, n, "must be a number, not a %s", kind_word(n));
    gp_expr_keep(r->arena, n);
    return gp_eval_with(&l, n, out, r->errs);
}

/* A number is quoted as it stands in the file; of any other expression there is its value, too. */
static bool whole(gp_reader *r, const gp_node *n, gp_num *v)
{
    char value[40] = "", *end;
    if (gp_num_whole(v))
        return true;
    if (strtod(n->text, &end), *end)
        snprintf(value, sizeof value, ", which is %g", v->f);
    return WRONG(r, n, "must be a whole number%s, not '%.80s'%s",
                 v->f == floor(v->f) ? ", from 2^53 on written without point or exponent" : "", n->text, value);
}

bool gp_read_int(gp_reader *r, const gp_node *n, int64_t min, int64_t max, int64_t *out)
{
    gp_num v;
    char text[GP_NUM_TEXT];
    if (!gp_read_num(r, n, &v) || !whole(r, n, &v))
        return false;
    if (v.i < min || v.i > max)
        return WRONG(r, n, "must be %" PRId64 " to %" PRId64 ", not %s", min, max, gp_num_text(&v, text));
    *out = (int64_t)v.i;
    return true;
}

bool gp_read_time(gp_reader *r, const gp_node *n, int64_t *ns)
{
    gp_lookup l = { .vars = r->vars, .inside = n->inside };
    gp_scope scope = lookup_scope(&l);
    int before = r->errs->n, failed = r->errs->failed;
    if (n->kind != GP_SCALAR)
        return WRONG(r, n, "must be a time, like 30s, not a %s", kind_word(n));
    gp_expr_keep(r->arena, n);
    return gp_eval_time(n, &scope, ns, r->errs) || explain(&l, n, r->errs, before, failed);
}

/* The text of a variable, where a name stands in place of a text; else one that is none of any choices. */
static const char *text_of_variable(gp_reader *r, const gp_node *n)
{
    gp_errs errs = { .n = 0 };
    const char *text = "";
    const gp_var *v = gp_var_find(r->vars, n->inside, n->text);
    return v && v->node && v->node->kind == GP_SCALAR
        && gp_interpolate(r->arena, v->node, r->vars->map, r->env, &text, &errs) ? text : "";
}

/* Would that have done? */
static const char *variable_hint(gp_reader *r, const char *name, bool would_do)
{
    return would_do ? gp_format(r->arena, "; the variable is written ${%s}", name) : "";
}

int gp_word_index(const char *s, const char *choices)
{
    size_t len;
    for (int i = 0; choices; i++, choices = choices[len] ? choices + len + 1 : NULL) {
        len = strcspn(choices, "|");
        if (strlen(s) == len && !strncmp(choices, s, len))
            return i;
    }
    return -1;
}

const char *gp_read_text(gp_reader *r, const gp_node *n)
{
    const char *text;
    if (n->kind != GP_SCALAR)
        return GP_NULL(WRONG(r, n, "must be text, not a %s", kind_word(n)));
    return gp_interpolate(r->arena, n, r->vars->map, r->env, &text, r->errs) ? text : NULL;
}

const char *gp_path_from(gp_arena *a, const char *dir, const char *text)
{
    if (!*text || *text == '/' || !strcmp(text, "stdin") || !strcmp(text, "stdout")
        || !*dir || !strcmp(dir, "."))
        return text;
    return gp_format(a, "%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", text);
}

const char *gp_read_path(gp_reader *r, const gp_node *n)
{
    const char *text = gp_read_text(r, n);
    if (text && !strcmp(text, "-"))
        return GP_NULL(WRONG(r, n, "is '-': write %s%s'./-' for a file of that name", r->standard ? r->standard : "",
                             r->standard ? ", or " : ""));
    if (text && !n->quoted && (!strcmp(n->text, "~") || !strcmp(n->text, "null") || !strcmp(n->text, "Null")
                               || !strcmp(n->text, "NULL"))) {
        WRONG(r, n, "is %s, which is nothing in YAML: leave it out, or put quotes around the name of a file", text);
        return NULL;
    }
    if (text && strchr(text, '\n'))
        return GP_NULL(WRONG(r, n, "%s", "has a line break in it: write it in one line, or behind '>-', which leaves "
                             "none at its end"));
    return text ? gp_path_from(r->arena, gp_inside_dir(n, r->vars->map, r->dir), text) : NULL;
}

int gp_read_word(gp_reader *r, const gp_node *n, const char *choices)
{
    const char *s = gp_read_text(r, n), *list = "", *c;
    size_t len;
    int is = s ? gp_word_index(s, choices) : -1;
    if (!s || is >= 0)
        return is;
    gp_near near = GP_NEAR(s);
    for (c = choices; c; c = c[len] ? c + len + 1 : NULL) {
        len = strcspn(c, "|");
        const char *word = gp_strndup(r->arena, c, len);
        gp_near_try(&near, word);
        list = gp_format(r->arena, "%s%s%s", list, *list ? ", " : "", word);
    }
    const char *hint = variable_hint(r, s, gp_word_index(text_of_variable(r, n), choices) >= 0);
    WRONG(r, n, "must be one of %s, not '%.80s'%s", list, s, *hint ? hint : gp_near_text(&near));
    return -1;
}

bool gp_read_bool(gp_reader *r, const gp_node *n, bool *out)
{
    const char *s = gp_read_text(r, n);
    int is = s ? gp_bool_parse(s) : -1;
    if (s && is < 0)
        return WRONG(r, n, "must be true or false, not '%.80s'%s", s,
                     variable_hint(r, s, gp_bool_parse(text_of_variable(r, n)) >= 0));
    *out = is == 1;
    return s != NULL;
}

gp_dtype gp_read_dtype(gp_reader *r, const gp_node *n)
{
    const char *s = gp_read_text(r, n);
    if (!s)
        return GP_NO_DTYPE;
    gp_dtype t = gp_dtype_parse(s);
    if (t)
        return t;
    char near[GP_DTYPE_HINT];
    const char *hint = variable_hint(r, s, gp_dtype_parse(text_of_variable(r, n)));
    WRONG(r, n, "must be a type: u8 i8 u16 i16 u32 i32 u64 i64 f16 f32 f64 c64, not '%.80s'%s", s,
          *hint ? hint : gp_dtype_hint(s, near));
    return GP_NO_DTYPE;
}

/* ---- options --------------------------------------------------------- */

size_t gp_opt_size(gp_opt_type t)
{
    static const size_t size[] = {
        [GP_OPT_INT] = sizeof(int64_t), [GP_OPT_TIME] = sizeof(int64_t), [GP_OPT_FLOAT] = sizeof(double),
        [GP_OPT_NUM] = sizeof(gp_num), [GP_OPT_BOOL] = sizeof(bool), [GP_OPT_ENUM] = sizeof(int),
        [GP_OPT_DTYPE] = sizeof(gp_dtype), [GP_OPT_INTS] = sizeof(gp_ints), [GP_OPT_FLOATS] = sizeof(gp_floats),
        [GP_OPT_TEXTS] = sizeof(gp_texts), [GP_OPT_TEXT] = sizeof(void *), [GP_OPT_PATH] = sizeof(void *),
        [GP_OPT_NODE] = sizeof(void *),
    };
    return (size_t)t < sizeof size / sizeof *size ? size[t] : 0;
}

/* Reads one number of an option; checks its range and, if `is_whole`, that it is an
 * integer. */
static bool number(gp_reader *r, const gp_opt *o, const gp_node *n, bool is_whole, gp_num *v)
{
    if (!gp_read_num(r, n, v) || (is_whole && !whole(r, n, v)))
        return false;
    char text[GP_NUM_TEXT];
    if ((o->type == GP_OPT_FLOAT || o->type == GP_OPT_FLOATS) && !gp_num_fits(v, GP_F64))
        return WRONG(r, n, "is an f64, which does not hold %s", gp_num_text(v, text));
    if (o->min != o->max && !(is_whole ? v->i >= (gp_int128)o->min && v->i <= (gp_int128)o->max
                                       : v->f >= o->min && v->f <= o->max))
        return WRONG(r, n, "must be %.10g to %.10g%s%s, not %s", o->min, o->max,
                     o->unit ? " " : "", o->unit ? o->unit : "", gp_num_text(v, text));
    return !is_whole || (v->i >= INT64_MIN && v->i <= INT64_MAX)
        || WRONG(r, n, "must be %" PRId64 " to %" PRId64 ", not %s", INT64_MIN, INT64_MAX, gp_num_text(v, text));
}

static bool numbers(gp_reader *r, const gp_opt *o, const gp_node *n, void *field)
{
    bool ok = true, ints = o->type == GP_OPT_INTS;
    if (n->kind == GP_LIST && !n->n)
        return WRONG(r, n, "is an empty list: give it numbers%s", o->required ? "" : ", or leave it out");
    int count = n->kind == GP_LIST ? n->n : 1;
    int64_t *i = ints ? GP_NEW(r->arena, int64_t, count) : NULL;
    double *f = ints ? NULL : GP_NEW(r->arena, double, count);
    for (int k = 0; k < count; k++) {
        gp_num v;
        if (!number(r, o, n->kind == GP_LIST ? n->item[k] : n, ints, &v))
            ok = false;
        else if (ints)
            i[k] = (int64_t)v.i;
        else
            f[k] = v.f;
    }
    if (ints)
        *(gp_ints *)field = (gp_ints){ count, i };
    else
        *(gp_floats *)field = (gp_floats){ count, f };
    return ok;
}

static bool text_option(gp_reader *r, const gp_opt *o, const gp_node *n, const char **field)
{
    *field = o->type == GP_OPT_PATH ? gp_read_path(r, n) : gp_read_text(r, n);
    if (*field && !**field && o->required)
        return WRONG(r, n, "%s", "is empty");
    return *field != NULL;
}

/* A single value as the list that may be meant: its words. */
static const char *as_list(gp_arena *a, const char *s)
{
    const char *list = "";
    for (size_t len; s += strspn(s, " "), *s; s += len) {
        len = strcspn(s, " ");
        list = gp_format(a, "%s%s%.*s", list, *list ? ", " : "", (int)len, s);
    }
    return list;
}

static bool texts(gp_reader *r, const gp_node *n, gp_texts *field)
{
    if (n->kind == GP_SCALAR)
        return WRONG(r, n, "must be a list, not a single value: [%.200s]", as_list(r->arena, n->text));
    if (n->kind != GP_LIST)
        return WRONG(r, n, "must be a list, not a %s", kind_word(n));
    const char **v = GP_NEW(r->arena, const char *, n->n + 1);
    bool ok = true;
    for (int k = 0; k < n->n; k++)
        ok &= (v[k] = gp_read_text(r, n->item[k])) != NULL;
    *field = (gp_texts){ n->n, v };
    return ok;
}

/* What a kind may evaluate in shape() and at each launch is parsed now. */
static void keep_all(gp_arena *a, const gp_node *n)
{
    if (n->kind == GP_SCALAR)
        gp_expr_keep(a, n);
    else
        for (int i = 0; i < n->n; i++)
            keep_all(a, n->item[i]);
}

bool gp_opt_read(gp_reader *r, const gp_opt *o, const gp_node *n, void *field)
{
    gp_num v;
    r->key = o->name;
    switch (o->type) {
    case GP_OPT_INT:
        if (!number(r, o, n, true, &v))
            return false;
        *(int64_t *)field = (int64_t)v.i;
        return true;
    case GP_OPT_FLOAT:
        if (!number(r, o, n, false, &v))
            return false;
        *(double *)field = v.f;
        return true;
    case GP_OPT_NUM:
        return number(r, o, n, false, field);
    case GP_OPT_BOOL:
        return gp_read_bool(r, n, field);
    case GP_OPT_TEXT:
    case GP_OPT_PATH:
        return text_option(r, o, n, field);
    case GP_OPT_ENUM:
        return (*(int *)field = gp_read_word(r, n, o->choices)) >= 0;
    case GP_OPT_DTYPE:
        return (*(gp_dtype *)field = gp_read_dtype(r, n)) != GP_NO_DTYPE;
    case GP_OPT_TIME:
        if (!gp_read_time(r, n, field))
            return false;
        v.f = (double)*(int64_t *)field;
        if (o->min != o->max && (v.f < o->min || v.f > o->max))
            return WRONG(r, n, "must be %g to %g s, not %g s", o->min / 1e9, o->max / 1e9,
                         v.f / 1e9);
        return true;
    case GP_OPT_INTS:
    case GP_OPT_FLOATS:
        return numbers(r, o, n, field);
    case GP_OPT_TEXTS:
        return texts(r, n, field);
    case GP_OPT_NODE:
        keep_all(r->arena, n);
        *(const gp_node **)field = n;
        return true;
    }
    return false;
}

/* The node that `def` would be: a scalar, or a list of them in [ ]. */
static gp_node *scalar(gp_arena *a, const char *s, size_t len)
{
    gp_node *n = GP_NEW(a, gp_node, 1);
    n->text = gp_strndup(a, s, len), n->len = len;
    return n;
}

bool gp_opt_default(gp_reader *r, const gp_opt *o, void *field)
{
    if (*o->def != '[')
        return gp_opt_read(r, o, scalar(r->arena, o->def, strlen(o->def)), field);
    gp_node list = { .kind = GP_LIST, .text = "" };
    int cap = 0;
    for (const char *s = o->def + 1; *s && *s != ']';) {
        size_t len = strcspn(s, ",]");
        *GP_PUSH(r->arena, list.item, list.n, cap) = scalar(r->arena, s, len);
        s += len + (s[len] == ',');
    }
    return gp_opt_read(r, o, &list, field);
}

bool gp_option_is_due(const gp_opt *o, const gp_node *stage)
{
    return o->required && !gp_node_get(stage, o->name)
        && (o->type == GP_OPT_ENUM || !o->choices || !gp_node_get(stage, o->choices));
}

bool gp_options_read(gp_reader *r, const gp_kind *kind, const gp_node *map, gp_loc at,
                     bool misspelt, void *opts)
{
    bool ok = true;
    r->standard = !kind->in || !kind->in->name ? "stdin" : kind->joins ? "stdout" : NULL;
    for (const gp_opt *o = kind->opts; o && o->name; o++) {
        const gp_node *n = gp_node_get(map, o->name);
        void *field = (char *)opts + o->off;
        if (n)
            ok &= !gp_option_is_file(r, kind, o, n) && gp_opt_read(r, o, n, field);
        else if (gp_option_is_due(o, map) && misspelt)
            ok = false;
        else if (gp_option_is_due(o, map))
            ok = gp_fail(r->errs, GP_E_SPEC, at, "stage '%s' needs the option '%s'%s: %s", r->stage, o->name,
                         o->type != GP_OPT_ENUM && o->choices ? gp_format(r->arena, ", or '%s'", o->choices) : "",
                         o->help);
        else if (o->def)
            ok &= gp_opt_default(r, o, field);
    }
    r->standard = NULL;
    return ok;
}

const gp_opt *gp_option_find(const gp_kind *kind, const char *name)
{
    const gp_opt *o = kind->opts;
    while (o && o->name && strcmp(o->name, name))
        o++;
    return o && o->name ? o : NULL;
}

/* ---- would it be taken? ---------------------------------------------- */

static bool takes(gp_arena *a, const gp_kind *kind, const char *option, const char *value)
{
    const gp_opt *o = gp_option_find(kind, option);
    if (!o)
        return false;
    gp_reader r = { .arena = a, .errs = GP_NEW(a, gp_errs, 1), .dir = "", .vars = GP_NEW(a, gp_vars, 1) };
    gp_opt one = *o;
    one.def = value;
    return gp_opt_default(&r, &one, gp_alloc(a, gp_opt_size(o->type)));
}

bool gp_option_takes(const gp_kind *kind, const char *option, const char *value)
{
    gp_arena a = { 0 };
    volatile bool ok = false;
    GP_UNLESS_OOM(&a) {
        ok = takes(&a, kind, option, value);
    }
    gp_arena_free(&a);
    return ok;
}
