/* lua.c - a stage that is a Lua script: a source, a filter or a sink.
 *
 *   stateless = true                      -- several workers may run it
 *   function init(stage)                  -- once per worker; stage.params, ...
 *   function process(frame, x, y)         -- per frame; x, y: views (lua/view.h)
 *   function produce(frame, y)            -- of a source; returns false to end
 *   function finish(stage, why)           -- once per worker, in the end; why: nil, or what went wrong
 *
 * Here is what is known before a run: the script's text, its options, its outputs. Its workers
 * are made in lua/open.c and called in lua/call.c. */
#include <string.h>
#include "base/why.h"
#include "base/yaml.h"
#include "worker.h"

/* Is there a line "stateless = true"? */
static bool says_stateless(const char *text)
{
    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += strspn(p, " \t\r\n");
        if (strncmp(p, "stateless", 9))
            continue;
        p += 9, p += strspn(p, " \t");
        if (*p != '=')
            continue;
        p++, p += strspn(p, " \t");
        if (!strncmp(p, "true", 4) && !strspn(p + 4, "abcdefghijklmnopqrstuvwxyz_0123456789."))
            return true;
    }
    return false;
}

/* Text that is one ${x}, and nothing else: it stands for x's value, quotes are
 * only there for YAML. */
static bool one_variable(const gp_node *n)
{
    return n->len > 3 && !strncmp(n->text, "${", 2) && strchr(n->text, '}') == n->text + n->len - 1;
}

/* A copy of `n`, a value of `key`, with ${} replaced. NULL after an error. */
static gp_node *expand(gp_shape *s, const gp_node *n, const char *key)
{
    gp_node *copy = gp_shape_alloc(s, sizeof *copy);
    *copy = *n;
    if (n->kind == GP_SCALAR) {
        copy->text = gp_shape_text(s, n);
        if (!copy->text)
            return NULL;
        copy->len = strlen(copy->text);
        copy->quoted = n->quoted && !one_variable(n);
        if (!gp_lua_has_scalar(copy))
            gp_shape_fail_at(s, n->at, "'%s' is %s, which is neither an integer of Lua nor exact as a float: %s it is a "
                             "text", key, copy->text, one_variable(n) ? "with more in the quotes, like \"n${n}\","
                                                                      : "in quotes");
        return gp_lua_has_scalar(copy) ? copy : NULL;
    }
    copy->item = gp_shape_alloc(s, sizeof *copy->item * (size_t)n->n);
    for (int i = 0; i < n->n; i++)
        if (!(copy->item[i] = expand(s, n->item[i], n->kind == GP_MAP ? n->key[i]->text : key)))
            return NULL;
    return copy;
}

static bool read_params(gp_shape *s, struct gp_lua_opts *o)
{
    if (!o->params)
        return true;
    if (o->params->kind != GP_MAP)
        return gp_shape_fail_at(s, o->params->at, "'params' must be a map, like {floor: 8}");
    o->values = expand(s, o->params, "params");
    return o->values != NULL;
}

/* The stage's key `zero`, which the engine checks. */
static bool says_zero(gp_shape *s)
{
    const gp_node *n = gp_shape_node(s, "zero");
    const char *text = n && n->kind == GP_SCALAR ? gp_shape_text(s, n) : NULL;
    return text && gp_bool_parse(text) == 1;
}

static bool read_script(gp_shape *s, struct gp_lua_opts *o)
{
    const gp_file *f = gp_probe_file(s, o->script);
    if (!f)
        return false;
    gp_shape_reads(s, &o->script, 1);
    if (f->error)
        return gp_shape_fail(s, "script", "cannot read '%s': %s", o->script, gp_strerror(f->error));
    if (f->kind == GP_FILE_DIR)
        return gp_shape_fail(s, "script", "'%s' is a folder: name a Lua file", o->script);
    if (f->kind != GP_FILE_REGULAR)
        return gp_shape_fail(s, "script", "'%s' is not a regular file", o->script);
    o->text = f->head, o->len = f->nhead;
    o->stateless = says_stateless(f->head);
    if (f->size > GP_PROBE_HEAD)
        return gp_shape_fail(s, "script", "'%s' is larger than 1 MiB: keep data in a file of "
                             "its own", o->script);
    gp_lua w = { 0 };
    bool ok = gp_lua_syntax(&w, o->script, f->head, f->nhead);
    if (!ok && w.full)
        gp_shape_fail(s, "script", "'%s' " GP_WHY_MEMORY, o->script);
    else if (!ok && w.line)
        gp_shape_fail(s, "script", "%s:%d: %s", o->script, w.line, w.error);
    else if (!ok)
        gp_shape_fail(s, "script", "'%s': %s", o->script, w.error);
    gp_lua_close(&w);
    return ok;
}

/* Outputs are like the first input, unless declared. */
static bool shape_outputs(gp_shape *s, struct gp_lua_opts *o)
{
    gp_type *out = gp_shape_alloc(s, sizeof *out * (size_t)(s->nout + 1));
    for (int i = 0; i < s->nout; i++) {
        gp_type *t = &s->out[i];
        if (!s->nin && (!t->dtype || !t->ndim))
            return gp_shape_fail(s, NULL, "a Lua source cannot tell what '%s' is: declare its "
                                 "dtype and shape under 'buffers'", s->out_name[i]);
        if (!t->dtype)
            t->dtype = s->in[0].dtype;
        if (!t->ndim) {
            gp_dtype dtype = t->dtype;
            *t = s->in[0];
            t->dtype = dtype;
        }
        out[i] = *t;
    }
    o->out = out;
    return true;
}

static bool check(gp_shape *s)
{
    struct gp_lua_opts *o = (struct gp_lua_opts *)s->opts;       /* its last fields are made here */
    bool script = read_script(s, o);
    return read_params(s, o) && script;
}

static bool shape(gp_shape *s)
{
    struct gp_lua_opts *o = (struct gp_lua_opts *)s->opts;       /* likewise */
    if (s->partial) {
        for (int i = 0; i < s->nout; i++)      /* a declared one is as it should be */
            if (!s->out[i].ndim) {
                s->out[i] = s->in[0];
                s->out[i].dtype = o->out[i].dtype;
            }
        return true;
    }
    if (!s->nin && !s->nout)
        return gp_shape_fail(s, NULL, "this stage has neither inputs nor outputs");
    if (!shape_outputs(s, o))
        return false;
    s->serial = !o->stateless, s->writes_all = true;
    o->zero = says_zero(s);
    if (s->workers > 1 && !o->stateless)
        return gp_shape_fail(s, "workers", "%d workers would each see only some frames: say "
                             "'stateless = true' in '%s' if it keeps nothing from frame to frame, "
                             "or leave 'workers' out", s->workers, o->script);
    return true;
}

static void advise(gp_advice *a)
{
    const struct gp_lua_opts *o = a->opts;
    const char *slash = strrchr(o->script, '/');
    if (!a->nin)
        strcpy(a->text, "a source has one worker; move what need not be in it to a stage after it");
    else if (a->serial)
        snprintf(a->text, sizeof a->text, "if it keeps nothing from frame to frame, say stateless "
                 "= true in '%.60s', and then workers: 2; else divide it into two stages, or use a "
                 "kernel", slash ? slash + 1 : o->script);
    else
        strcpy(a->text, "a kernel, or LuaJIT, would do it in less time");
}

/* ---- the kind -------------------------------------------------------- */

static const gp_port in[] = {
    { "*", GP_ACCEPT_ANY, true, "any frames; none: the script is a source" }, { 0 }
};
static const gp_port out[] = {
    { "*", GP_ACCEPT_ANY, true, "like the first input unless declared; none: a sink" }, { 0 }
};

static const gp_opt options[] = {
    { GP_PATH(struct gp_lua_opts, script), .required = true,
      .help = "Lua file with process(frame, x, y), or produce(frame, y) for a source" },
    { GP_NODE(struct gp_lua_opts, params), .choices = "text",
      .help = "map of values that the script finds in stage.params" },
    { 0 }
};

const gp_kind gp_kind_lua = {
    GP_KIND("lua"), .field = "own code",
    .also = "script",
    .help = "a Lua script as source, filter or sink",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(struct gp_lua_opts),
    .any_shape = true, .shape = shape, .open = gp_lua_stage_open, .close = gp_lua_stage_close,
    .run = gp_lua_stage_run, .finish = gp_lua_stage_finish,
    .break_off = gp_lua_stage_break_off,
    .advise = advise, .check = check,
};
