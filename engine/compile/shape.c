/* shape.c - calling shape() of a kind, and what it may call back.
 *
 * At compile time a call belongs to a gp_resolving. At run time (partial
 * frames) there is none: nothing is allocated or looked at then, and several
 * threads may call at once. */
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "base/path.h"
#include "base/yaml.h"
#include "compile/expr.h"
#include "compile/inside.h"
#include "compile/resolve.h"

static gp_shape_ctx *ctx_of(const gp_shape *s)
{
    return s->ctx;
}

const gp_node *gp_shape_node(gp_shape *s, const char *opt)
{
    return ctx_of(s)->rs ? gp_node_get(ctx_of(s)->rs->node, opt) : NULL;
}

gp_loc gp_shape_loc(gp_shape *s, const char *opt)
{
    const gp_node *n = opt ? gp_shape_node(s, opt) : NULL;
    return n ? n->at : ctx_of(s)->stage->at;
}

static bool report(gp_shape *s, gp_code code, gp_loc at, const char *fmt, va_list ap)
{
    char text[16384];              /* more than any path; gp_fail leaves out the middle */
    vsnprintf(text, sizeof text, fmt, ap);
    gp_fail(ctx_of(s)->errs, code, at, "stage '%s': %s", ctx_of(s)->stage->name, text);
    return code == GP_E_WARN;
}

/* What its kind does wrong, in a function of its own. */
static bool fault(const gp_shape_ctx *c, const char *function, const char *what)
{
    const gp_stage *st = c->stage;
    const gp_plugin_info *of = st->plugin;
    return gp_fail(c->errs, c->r ? GP_E_SPEC : GP_E_RUN, st->at, "stage '%s': %s() of kind '%s'%s%s%s %s", st->name,
                   function, st->kind->name, of ? ", of plug-in '" : "", of ? of->name : "", of ? "'," : "", what);
}

bool gp_shape_fail(gp_shape *s, const char *opt, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(s, s->partial ? GP_E_RUN : GP_E_SPEC, gp_shape_loc(s, opt), fmt, ap);
    va_end(ap);
    return false;
}

bool gp_shape_fail_at(gp_shape *s, gp_loc at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(s, s->partial ? GP_E_RUN : GP_E_SPEC, at, fmt, ap);
    va_end(ap);
    return false;
}

bool gp_shape_without(gp_shape *s, const char *opt, const char *what)
{
    return !gp_shape_node(s, opt)
        || gp_shape_fail(s, opt, "'%s' has no effect on %s", opt, what);
}

bool gp_shape_missing(gp_shape *s, const char *opt, const char *fmt, ...)
{
    const gp_shape_ctx *c = ctx_of(s);
    bool lenient = c->r && c->r->probe->lenient && s->nout == c->stage->nout;
    for (int i = 0; i < s->nout; i++)
        lenient &= s->out[i].dtype && s->out[i].ndim;
    va_list ap;
    va_start(ap, fmt);
    bool go_on = report(s, lenient ? GP_E_WARN : GP_E_SPEC, gp_shape_loc(s, opt), fmt, ap);
    va_end(ap);
    return go_on;
}

void gp_shape_warn(gp_shape *s, const char *opt, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(s, GP_E_WARN, gp_shape_loc(s, opt), fmt, ap);
    va_end(ap);
}

bool gp_shape_drops(const gp_shape *s)
{
    return ((const gp_shape_ctx *)s->ctx)->stage->on_error == GP_ON_ERROR_DROP;
}

int gp_shape_meta_keys(const gp_shape *s, const char *const **keys)
{
    const gp_shape_ctx *c = s->ctx;
    const gp_graph *g = c->r ? c->r->graph : c->g;
    *keys = g->metadata;
    return g->nmetadata;
}

static const gp_probed *look(gp_shape *s, const char *path, bool glob)
{
    const gp_shape_ctx *c = ctx_of(s);
    if (c->r && path)
        return gp_probe_get(c->r->probe, path, glob);
    fault(c, "shape", path ? "looks at a file in a partial call" : "looks at a file without a name");
    return NULL;
}

const gp_file *gp_probe_file(gp_shape *s, const char *path)
{
    const gp_probed *p = look(s, path, false);
    return p ? &p->file : NULL;
}

const gp_files *gp_probe_glob(gp_shape *s, const char *pattern)
{
    const gp_probed *p = look(s, pattern, true);
    if (p && p->cut)
        gp_fail(ctx_of(s)->errs, GP_E_WARN, ctx_of(s)->stage->at, "stage '%s': 'check' and 'plan' "
                "look at %d names for all patterns, and for '%.200s' there are more; 'run' looks at all",
                ctx_of(s)->stage->name, p->most, pattern);
    if (p && p->file.error)
        gp_fail(ctx_of(s)->errs, GP_E_SPEC, ctx_of(s)->stage->at, "stage '%s': what matches '%.200s' cannot be listed: %s",
                ctx_of(s)->stage->name, pattern, gp_strerror(p->file.error));
    return p && !p->file.error ? &p->files : NULL;
}

int64_t gp_probe_bytes(gp_shape *s, const gp_file *f, int64_t at, void *to, size_t n)
{
    const gp_probe *p = ctx_of(s)->r ? ctx_of(s)->r->probe : NULL;
    return p && p->read ? p->read(f->path, at, to, n) : 0;
}

const gp_node *gp_probe_node(gp_shape *s, const gp_file *f)
{
    const gp_shape_ctx *c = ctx_of(s);
    int before = c->errs->failed;
    const gp_node *n = c->r ? gp_yaml_parse(c->r->arena, f->head, f->nhead, f->path, c->errs) : NULL;
    if (!n && c->errs->failed == before)
        gp_shape_fail_at(s, (gp_loc){ .file = f->path, .line = 1 }, "there is nothing in '%s'", f->path);
    return n;
}

int64_t gp_probe_size(gp_shape *s, const char *path)
{
    const gp_probe *p = ctx_of(s)->r ? ctx_of(s)->r->probe : NULL;
    if (p && p->size)
        return p->size(path);
    const gp_file *f = gp_probe_file(s, path);
    return !f || f->error || f->kind != GP_FILE_REGULAR ? -1 : f->size;
}

bool gp_shape_writes(gp_shape *s, const char *opt, const char *path)
{
    const gp_shape_ctx *c = ctx_of(s);
    if (!c->r)
        return true;
    const char *plain = gp_path_plain(gp_alloc(c->r->arena, strlen(path) + 1), path);
    int mine = (int)(c->rs - c->r->stage);
    gp_stage *st = &c->r->stage[mine].s;
    st->writes = gp_strdup(c->r->arena, path), st->writes_opt = gp_strdup(c->r->arena, opt);
    if (gp_path_is_device(plain))
        return true;
    int writer = (int)gp_table_put(&c->r->written, plain, mine)->n;
    return writer == mine
        || gp_shape_fail(s, opt, "'%s' is written by stage '%s' too: give each a path of its own",
                         path, c->r->stage[writer].s.name);
}

void gp_shape_reads(gp_shape *s, const char *const *path, int n)
{
    const gp_shape_ctx *c = ctx_of(s);
    if (c->r) {
        gp_stage *st = &c->r->stage[c->rs - c->r->stage].s;
        st->reads = path, st->nreads = n;
    }
}

bool gp_shape_eval(gp_shape *s, const gp_node *n, gp_num *out)
{
    const gp_shape_ctx *c = ctx_of(s);
    gp_lookup l = { .vars = c->vars, .nin = s->nin, .nout = s->nout, .in_name = s->in_name,
                    .out_name = s->out_name, .in = s->in, .out = s->out };
    return gp_eval_with(&l, n, out, c->errs);
}

bool gp_shape_var(gp_shape *s, const char *name, gp_num *out, gp_near *near)
{
    const gp_vars *vars = ctx_of(s)->vars;
    const gp_node *node = ctx_of(s)->rs ? ctx_of(s)->rs->node : ctx_of(s)->stage->node;
    if (near && node)
        gp_inside_near(node->inside, near);
    for (int k = 0; near && k < vars->n; k++)
        gp_near_try(near, vars->v[k].name);
    const gp_var *v = gp_var_find(vars, node ? node->inside : NULL, name);
    if (v && v->number)
        *out = v->num;
    return v && v->number;
}

const struct gp_expr *gp_shape_program(gp_shape *s, const gp_node *n)
{
    const gp_shape_ctx *c = ctx_of(s);
    if (c->r)
        return gp_expr_parse_program(c->r->arena, n, c->errs);
    fault(c, "shape", "parses a program in a partial call");
    return NULL;
}

const char *gp_shape_text(gp_shape *s, const gp_node *n)
{
    const gp_shape_ctx *c = ctx_of(s);
    const char *text = NULL;
    if (!c->r) {
        fault(c, "shape", "reads a text in a partial call");
        return NULL;
    }
    return gp_interpolate(c->r->arena, n, c->vars->map, c->r->read.env, &text, c->errs) ? text
                                                                                       : NULL;
}

const char *gp_shape_path(gp_shape *s, const gp_node *n)
{
    const char *text = gp_shape_text(s, n);
    const gp_shape_ctx *c = ctx_of(s);
    return text ? gp_path_from(c->r->arena, gp_inside_dir(n, c->vars->map, c->r->read.dir), text) : NULL;
}

int gp_shape_gpu(const gp_shape *s, bool *here)
{
    const gp_resolving *r = ((const gp_shape_ctx *)s->ctx)->r;
    *here = r && r->machine && r->machine->here;
    return r && r->machine && r->graph->ndevices ? r->graph->device[0].info.cc : 0;
}

/* What regroups frames does so where they are, if it comes to be asked after who makes them. */
static bool reads_on_host(const gp_rstage *st)
{
    bool follows = st->s.regroups && !st->s.kind->record && !st->s.closes;
    return !st->s.device && !follows;
}

const char *gp_host_reader(const gp_resolving *r, const gp_stage *of)
{
    for (int i = 0; i < r->nstages; i++) {
        const gp_rstage *st = &r->stage[i];
        for (int p = 0; p < st->s.nin; p++)
            for (int o = 0; o < of->nout; o++)
                if (st->s.in[p] >= 0 && st->s.in[p] == of->out[o] && reads_on_host(st))
                    return st->s.name;
    }
    return NULL;
}

const char *gp_shape_host_reader(const gp_shape *s)
{
    const gp_shape_ctx *c = s->ctx;
    return c->r ? gp_host_reader(c->r, c->stage) : NULL;
}

bool gp_shape_in_device(const gp_shape *s, int port)
{
    const gp_shape_ctx *c = s->ctx;
    int b = c->r && c->r->graph && !c->r->body && c->r->graph->ndevices == 1 ? c->stage->in[port] : -1;
    int by = b < 0 ? -1 : c->r->buffer[b].b.producer.stage;
    return by >= 0 && !c->r->buffer[b].konst && gp_stage_makes_on_device(&c->r->stage[by].s)
        && c->r->graph->launch != GP_LAUNCH_PERSISTENT;
}

bool gp_shape_is_state(const gp_shape *s, int in, int out)
{
    const gp_shape_ctx *c = s->ctx;
    int a = c->rs && in >= 0 ? c->rs->s.in[in] : -1, b = c->rs ? c->rs->s.out[out] : -1;
    const char *state = b >= 0 ? c->r->buffer[b].b.state : NULL;
    return state && (in < 0 || (a >= 0 && c->r->buffer[a].b.state == state));
}

void *gp_shape_alloc(gp_shape *s, size_t bytes)
{
    return ctx_of(s)->r ? gp_alloc(ctx_of(s)->r->arena, bytes) : NULL;
}

/* ---- the calls ------------------------------------------------------- */

static bool call(gp_shape *s, gp_shape_ctx *c, bool (*function)(gp_shape *), const char *name)
{
    int failed = c->errs->failed;
    bool ok = function(s);
    if (!ok && c->errs->failed == failed)
        fault(c, name, "refuses it and gave no reason: gp_shape_fail() gives one");
    return ok && c->errs->failed == failed;
}

void gp_shape_begin(gp_shape *s, gp_shape_ctx *c)
{
    const gp_stage *st = c->stage;
    s->opts = st->opts, s->user = st->kind->user;
    s->workers = st->workers;
    s->ctx = c;
    s->resume = (c->r ? c->r->graph : c->g)->resume;
    s->rank = (c->r ? c->r->graph : c->g)->rank, s->ranks = (c->r ? c->r->graph : c->g)->ranks;
    s->nin = st->nin, s->nout = st->nout;
    s->in_name = st->in_name, s->out_name = st->out_name;
}

static bool call_shape(gp_shape *s, gp_shape_ctx *c)
{
    gp_shape_begin(s, c);
    return call(s, c, c->stage->kind->shape, "shape");
}

static gp_shape_ctx compiling(gp_resolving *r, const gp_rstage *st)
{
    return (gp_shape_ctx){ .r = r, .rs = st, .stage = &st->s, .vars = &r->vars, .errs = r->errs };
}

bool gp_shape_call(gp_resolving *r, const gp_rstage *st, gp_shape *s)
{
    gp_shape_ctx c = compiling(r, st);
    return call_shape(s, &c);
}

/* Before the inputs of a stage are known: what its options say. */
static gp_shape of_options(gp_shape_ctx *c)
{
    return (gp_shape){ .opts = c->stage->opts, .user = c->stage->kind->user, .workers = c->stage->workers, .ctx = c,
                       .resume = c->r->graph->resume };
}

bool gp_shape_check(gp_resolving *r, const gp_rstage *st)
{
    gp_shape_ctx c = compiling(r, st);
    gp_shape s = of_options(&c);
    return !st->s.kind->check || call(&s, &c, st->s.kind->check, "check");
}

bool gp_shape_on_device(gp_resolving *r, const gp_rstage *st)
{
    gp_shape_ctx c = compiling(r, st);
    gp_shape s = of_options(&c);
    return st->s.kind->on_device(&s);
}

bool gp_shape_is_const(const gp_shape *s, int port)
{
    const gp_shape_ctx *c = s->ctx;
    int b = c->stage->in[port];
    return c->g && (b < 0 || gp_is_const(&c->g->buffer[b]) || c->g->buffer[b].given);
}

/* The size of an axis of buffer `b` that is an expression of the shapes `in`, of the inputs of its maker. */
static bool size_of(const gp_stage *st, const gp_type *in, const gp_vars *vars, const gp_buffer *b, int axis, int64_t *size,
                    gp_code code, gp_errs *errs)
{
    gp_lookup l = { .vars = vars, .nin = st->nin, .in_name = st->in_name, .in = in };
    const gp_node *n = b->dim[axis];
    gp_num v;
    if (!gp_eval_with(&l, n, &v, errs))
        return false;
    double x = v.is_int ? (double)v.i : v.f;
    if (x != floor(x) || !(x >= 1 && x <= (double)GP_BYTES_MAX))
        return gp_fail(errs, code, n->at, "axis %d of buffer '%s' would have %g elements%s", axis, b->name, x,
                       x == floor(x) || x < 1 ? "" : ": write floor(...) or ceil(...)");
    *size = (int64_t)x;
    return true;
}

bool gp_buffer_type_declared(gp_resolving *r, const gp_rstage *st, const gp_type *in, gp_rbuf *b)
{
    bool differ = false;
    for (int p = 0; p < st->s.nin; p++)
        differ |= st->s.in[p] >= 0 && r->buffer[st->s.in[p]].b.varies;
    for (int k = 0; k < b->b.said.ndim; k++) {
        if (!b->b.dim[k])
            continue;
        if (!size_of(&st->s, in, &r->vars, &b->b, k, &b->b.said.dim[k], GP_E_SPEC, r->errs))
            return false;
        if (b->b.varies >> k & 1)
            b->b.dim[k] = NULL;        /* it is a bound, and no frame's */
        else if (differ)
            b->b.varies |= 1u << k;
    }
    return true;
}

/* An output whose declared rows are those of the first input has as many rows as that input in a partial frame too;
 * the same holds for axes that are declared to vary. Where the input's rows are declared to vary, the output's rows
 * vary only if they are declared so, too, because equal sizes may be chance. */
bool gp_partial_shape(const gp_graph *g, const gp_stage *st, const gp_type *in, gp_type *out,
                      gp_errs *errs)
{
    static const gp_vars none;
    gp_shape_ctx c = { .g = g, .stage = st, .vars = g->scope.arg ? g->scope.arg : &none,
                              .errs = errs };
    gp_shape s = { .in = in, .out = out, .partial = true };
    const gp_buffer *lead = NULL;      /* the first input */
    int first = 0;
    while (first < st->nin && (st->in[first] < 0 || gp_is_const(&g->buffer[st->in[first]])
                               || (g->buffer[st->in[first]].carried && !st->carried)))
        first++;
    if (first < st->nin)
        lead = &g->buffer[st->in[first]];
    for (int i = 0; i < st->nout; i++) {
        unsigned varies = (lead && lead->varies & 1 ? 0 : 1) | (st->out[i] < 0 ? 0 : g->buffer[st->out[i]].varies);
        out[i] = st->out[i] < 0 ? (gp_type){0} : g->buffer[st->out[i]].said;
        for (int k = 0; lead && k < out[i].ndim && k < lead->type.ndim; k++)
            if (varies >> k & 1 && out[i].dim[k] == lead->type.dim[k])
                out[i].dim[k] = in[first].dim[k];
        for (int k = 0; st->out[i] >= 0 && k < out[i].ndim; k++)
            if (g->buffer[st->out[i]].dim[k]
                && !size_of(st, in, c.vars, &g->buffer[st->out[i]], k, &out[i].dim[k], GP_E_RUN,
                            errs))
                return false;
    }
    if (!call_shape(&s, &c))
        return false;
    for (int i = 0; i < st->nout; i++) {
        if (st->out[i] < 0)
            continue;
        const gp_buffer *y = &g->buffer[st->out[i]];
        const gp_type *full = &y->type;
        out[i].dtype = out[i].dtype ? out[i].dtype : full->dtype;
        bool fits = out[i].dtype == full->dtype && out[i].ndim == full->ndim, beyond = false;
        for (int k = 0; fits && k < full->ndim; k++) {
            bool bound = y->varies >> k & 1;
            beyond |= bound && out[i].dim[k] > full->dim[k];
            fits = bound ? out[i].dim[k] >= 0 : k == 0 ? out[i].dim[k] >= 0 && out[i].dim[k] <= full->dim[k]
                 : out[i].dim[k] == full->dim[k];
        }
        char a[128], b[GP_BOUNDS_TEXT], raise[128] = "";
        if (fits && beyond && y->said.ndim)
            snprintf(raise, sizeof raise, ", or raise the bounds of '%.60s' under 'buffers'", y->name);
        if (!fits || beyond)
            return gp_fail(errs, GP_E_RUN, st->at, "stage '%s' makes %s of a smaller frame, and '%s' is %s, of which "
                           "frames may be shorter in axis 0%s: leave such frames out before%s%s", st->name,
                           gp_type_text(&out[i], a), y->name, gp_bounds_text(full, y->varies, b),
                           y->varies ? " and where it has bounds" : "", fits ? "" : ", as 'tail: drop' of 'group' does", raise);
    }
    return true;
}

bool gp_shape_of_none(const gp_graph *g, const gp_stage *st, gp_type *in, gp_type *out, gp_errs *errs)
{
    for (int k = 0; k < st->nin; k++)
        in[k].dim[0] += st->in[k] >= 0 && !in[k].dim[0];
    bool ok = gp_partial_shape(g, st, in, out, errs);
    for (int k = 0; ok && k < st->nout; k++)
        out[k].dim[0] = st->none[k] ? out[k].dim[0] : 0;
    return ok;
}

/* ---- expressions in record() ----------------------------------------- */

struct dcall_scope {
    const gp_dcall *c;
    const gp_inside *inside;           /* of the expression */
    const char *const *in_name, *const *out_name;
    int nin, nout;
};

static bool dcall_var(const gp_scope *s, const char *name, gp_num *out)
{
    const struct dcall_scope *d = s->arg;
    const gp_scope *vars = d->c->scope;
    const char *full = gp_inside_name(d->inside, name);
    return vars && vars->var && vars->var(vars, full ? full : name, out);
}

static bool dcall_port(const gp_scope *s, const char *port, int k, gp_num *out)
{
    const struct dcall_scope *d = s->arg;
    for (int i = 0; i < d->nin; i++)
        if (!strcmp(d->in_name[i], port))
            return gp_type_part(&d->c->in[i].type, k, out);
    for (int i = 0; i < d->nout; i++)
        if (!strcmp(d->out_name[i], port))
            return gp_type_part(&d->c->out[i].type, k, out);
    return false;
}

bool gp_dcall_eval(const gp_dcall *c, const char *const *in_name, int nin,
                   const char *const *out_name, int nout, const gp_node *n, gp_num *out)
{
    struct dcall_scope d = { c, n->inside, in_name, out_name, nin, nout };
    gp_scope scope = { dcall_var, dcall_port, NULL, &d };
    return gp_eval(n, &scope, out, c->errs);
}
