/* expr.c - arithmetic in the pipeline itself: one expression, or a few lines, for each element.
 *
 * shape() makes a program of the text, once (expr/program.h). On a GPU a kernel is compiled of it; the CPU back end has
 * a built-in one that runs any program, so that it needs no compiler. */
#include <stdlib.h>
#include <string.h>
#include "device.h"
#include "program.h"

enum { BLOCK = 256, BLOCKS = 1 << 14, TILE_X = 64 };

static bool read_text(gp_shape *s, const gp_node *n)
{
    if (n->kind != GP_SCALAR)
        return gp_shape_fail_at(s, n->at, "'expr' is a text, like \"(a - b) * gain\", or several lines behind "
                                "'expr: |'");
    if (!n->text[strspn(n->text, " \t\n;")])
        return gp_shape_fail_at(s, n->at, "'expr' is empty");
    return true;
}

static void type_outputs(gp_shape *s, const gp_ew_opts *o, const gp_type *frame)
{
    const gp_ew_program *p = o->program;
    for (int i = 0; i < s->nout; i++) {
        bool folds = p->fold.op && i == p->folded;
        gp_type t = *frame;
        t.dtype = folds ? p->folds : p->out[i];
        if (folds)
            gp_reduction_type(&p->fold, &t, &t);
        s->out[i] = t;
    }
}

/* Does a row of the frame take another row of an input that x loads, or one at all? */
static void describe_rows(gp_shape *s, const gp_ew_program *p, const gp_ew_ins *x)
{
    const gp_ew_space *o = &p->space;
    const gp_ew_input *in = &o->in[x->a];
    int along = 0;                     /* the frame's axis */
    while (along < o->ndim && o->axis[x->a][along])
        along++;
    if (along == o->ndim || (x->op == GP_EW_NEAR && x->shift[along] >= 0))
        s->by_place |= 1u << in->port;
    if (!(o->repeated[x->a] & 1))
        s->beside |= 1u << in->port;
}

bool gp_ew_describe(gp_shape *s, const gp_ew_program *p)
{
    s->batched = true, s->frame_info = p->frame, s->table = p->code_bytes;
    s->by_place = p->indices & 1 ? ~0u : 0;
    for (int i = 0; i < p->n; i++) {
        const gp_ew_ins *x = &p->ins[i];
        s->known.f64 |= x->needed && x->type == GP_EW_F64;
        if (!x->needed || (x->op != GP_EW_NEAR && x->op != GP_EW_SIZE && x->op != GP_EW_LOAD))
            continue;
        if (x->a >= GP_EW_BETWEEN)
            continue;
        const gp_ew_input *in = x->op == GP_EW_SIZE ? NULL : &p->space.in[x->a];
        if (x->op != GP_EW_LOAD || in->fixed)
            s->beyond |= 1u << (in ? in->port : p->size[x->a].port);
        if (in)
            describe_rows(s, p, x);
    }
    return true;
}

static bool shape(gp_shape *s)
{
    gp_ew_opts *o = (void *)s->opts;
    gp_type frame = { .ndim = 0 };
    const gp_expr *tree;
    if (s->partial) {
        if (!gp_ew_smaller(s, &o->program->space, &frame))
            return false;
        type_outputs(s, o, &frame);
        return true;
    }
    if (s->nin == 0)
        return gp_shape_fail(s, NULL, "an expression needs an input; name one with 'in'");
    if (s->nout == 0)
        return gp_shape_fail(s, NULL, "an expression needs an output; name one with 'out'");
    gp_ew_program *p = o->program = gp_shape_alloc(s, sizeof *o->program);
    p->edge = (gp_ew_edge)o->edge;
    if (!read_text(s, o->expr) || !(tree = gp_shape_program(s, o->expr)))
        return false;
    gp_ew_find_inputs(s, tree, &p->space);
    if (!gp_ew_broadcast(s, o->expr, tree, &p->space, &frame) || !gp_ew_check(s, o->expr, tree, &frame, p)
        || !gp_ew_encode(s, o->expr, p) || !gp_ew_write(s, o->expr, p))
        return false;
    type_outputs(s, o, &frame);
    return gp_ew_describe(s, p);
}

static bool table(const gp_table_call *t)
{
    const gp_ew_program *p = ((const gp_ew_opts *)t->opts)->program;
    memcpy(t->data, p->code, p->code_bytes);
    return true;
}

/* ---- run time ---------------------------------------------------------------- */

struct state { const gp_kernel *kernel; bool interprets; };

static bool open_expr(const gp_open *o, void **state)
{
    const gp_ew_opts *made = o->opts;
    struct state *st = *state = calloc(1, sizeof *st);
    if (!st)
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': no memory", o->name);
    st->kernel = gp_kernel_builtin(o->dev, "expr_run");
    st->interprets = st->kernel != NULL;
    if (!st->kernel)
        st->kernel = gp_kernel_compile(o->dev, &made->program->source, o->errs);
    return st->kernel != NULL;
}

static int64_t size_of(const gp_dcall *c, gp_ew_size z)
{
    const gp_type *t = &c->in[z.port].type;
    return z.axis < 0 ? gp_count(t) : t->dim[z.axis];
}

/* `frame`: result, what is computed. */
static gp_ew_call call_of(const gp_dcall *c, const gp_ew_program *p, gp_type *frame)
{
    gp_ew_call x = { .frame = c->frame };
    gp_type in[GP_MAXPORT];
    for (int i = 0; i < p->space.nin; i++) {
        int port = p->space.in[i].port;
        const gp_view *v = &c->in[port];
        in[port] = v->type;
        x.in[i] = (gp_ew_port){ (char *)v->data + gp_ew_begins(&p->space, i, &v->type) * (int64_t)gp_dtype_size(p->in[i]),
                                v->stride };
    }
    for (int i = 0; i < p->nout; i++)
        x.out[i] = (gp_ew_port){ c->out[i].data, c->out[i].stride };
    for (int i = 0; i < p->nsizes; i++)
        x.size[i] = size_of(c, p->size[i]);
    *frame = c->out[0].type;
    if (p->fold.op)
        gp_ew_frame(&p->space, in, p->consts, frame);
    gp_ew_lay_out(&p->space, in, frame, !p->indices && !p->nshifts && !p->steps, &x);
    return x;
}

/* The arguments of the kernel that cuda.c writes. */
struct args { void *v[GP_EW_ARGS]; int n; };

static void add(struct args *a, const void *v)
{
    a->v[a->n++] = (void *)v;
}

static gp_ew_axes axes_of(const gp_ew_call *x, const gp_dcall *c, const gp_ew_space *o, int64_t most)
{
    gp_ew_axes a = { .n = x->axes, .narrow = x->elements <= most };
    for (int k = 0; k < x->axes; k++)
        a.dim[k] = x->dim[k];
    for (int i = 0; i < o->nin; i++) {
        a.narrow &= gp_count(&c->in[o->in[i].port].type) <= INT32_MAX;
        for (int k = 0; k < x->axes; k++)
            a.stride[i][k] = x->stride[i][k];
    }
    return a;
}

static gp_dim3 tile_grid(const gp_ew_program *p, const gp_ew_tiles *t, int n, gp_dim3 block)
{
    int below = gp_ew_below(p);
    return (gp_dim3){ gp_blocks(t->line, block.x, INT32_MAX), gp_blocks((t->rows + below - 1) / below, block.y, BLOCKS),
                      (unsigned)n };
}

static gp_dim3 steps_grid(const gp_ew_steps *t, const gp_ew_call *x, int64_t steps, int n)
{
    int64_t nx = t->inner * x->dim[t->x], ny = t->y < 0 ? 1 : x->dim[t->y], batch = 1;
    for (int k = 0; k < t->y; k++)
        batch *= x->dim[k];
    int64_t wide = t->wide - 2 * steps * t->all_x, high = t->high - 2 * steps * t->all_y;
    return (gp_dim3){ (unsigned)((nx + wide - 1) / wide), (unsigned)((ny + high - 1) / high * batch), (unsigned)n };
}

/* `f`: with a program that reduces. */
static bool launch(gp_dcall *c, const gp_ew_program *p, const gp_kernel *kernel, const gp_ew_call *x, const gp_fold *f)
{
    struct args a = { .n = 0 };
    size_t next[GP_EW_PORTS + GP_MAXPORT], n = (size_t)x->elements;
    gp_ew_axes axes = axes_of(x, c, &p->space, p->nshifts ? GP_EW_FAR - 1 : INT32_MAX);
    gp_ew_tiles tiles = gp_ew_tiles_of(x, p->cut);
    bool lines = gp_ew_has_lines(p);
    int linear = !p->indices && !p->nshifts && x->linear + 1 == 1u << p->space.nin
              && !(lines && f->lines.outer > 1 && f->lines.rows % 4);
    for (int i = 0; i < p->space.nin; i++) {
        next[i] = gp_stride(&c->in[p->space.in[i].port]);
        add(&a, &x->in[i].data), add(&a, &next[i]);
    }
    for (int i = 0; i < p->nout; i++) {
        size_t *stride = &next[p->space.nin + i];
        bool folds = f && !lines && i == p->folded;
        *stride = folds ? f->stride : gp_stride(&c->out[i]);
        add(&a, folds ? &f->to : &c->out[i].data), add(&a, stride);
    }
    add(&a, &n), add(&a, &axes), add(&a, &linear);
    if (p->nshifts)
        add(&a, &tiles);
    if (lines)
        add(&a, &f->lines);
    else if (f)
        add(&a, &f->outer), add(&a, &f->rows), add(&a, &f->inner), add(&a, &f->lanes), add(&a, &f->steps);
    if (p->frame)
        add(&a, &c->frame);
    for (int i = 0; i < p->nsizes; i++)
        add(&a, &x->size[i]);
    for (int i = 0; i < p->n; i++)
        if (p->ins[i].op == GP_EW_NUMBER && p->ins[i].var && p->ins[i].needed)
            add(&a, &p->ins[i].value);
    for (int i = 0; i < p->nshifts; i++)
        if (p->shift[i].var)
            add(&a, &p->shift[i].to.by);
    gp_dim3 block = p->nshifts && tiles.rows > 1 ? (gp_dim3){ TILE_X, BLOCK / TILE_X, 1 } : (gp_dim3){ BLOCK, 1, 1 };
    gp_dim3 grid = { gp_blocks(linear ? (x->elements + 3) / 4 : x->elements, BLOCK, BLOCKS), 1, (unsigned)c->n };
    if (p->nshifts)
        grid = tile_grid(p, &tiles, c->n, block);
    if (f)
        grid = f->grid, block = f->block;
    int32_t steps = (int32_t)c->steps;
    const gp_ew_steps *t = p->steps;
    if (t) {
        add(&a, &steps);
        grid = steps_grid(t, x, steps, c->n), block = (gp_dim3){ (unsigned)t->wide, (unsigned)(t->high / t->rows), 1 };
    }
    return gp_launch_kernel(c, kernel, grid, block, f ? f->shared : t ? t->shared : 0, a.v, a.n);
}

static bool interpret(gp_dcall *c, const gp_ew_program *p, const gp_kernel *kernel, const gp_ew_call *x)
{
    return gp_launch_kernel(c, kernel, (gp_dim3){ 1, 1, (unsigned)c->n }, (gp_dim3){ 1, 1, 1 }, p->shared,
                            GP_ARGS(&c->table, (void *)x));
}

static bool first_fold(gp_dcall *c, const gp_fold *f, void *arg)
{
    const gp_ew_program *p = ((const gp_ew_opts *)c->opts)->program;
    const struct state *st = c->state;
    gp_ew_call *x = arg;
    size_t bytes = gp_dtype_size(gp_reduction_kept(&p->fold, p->folds));
    if (!st->interprets)
        return launch(c, p, st->kernel, x, f);
    x->fold = (gp_ew_partials){ { f->to, f->stride * bytes }, f->outer, f->rows, f->inner, f->lanes, f->steps,
                                p->fold.op == GP_MIN ? 1 : p->fold.op == GP_MAX ? 2
                                : gp_reduction_is_fsum(&p->fold, p->folds) ? 3 : 0, gp_ew_has_lines(p), f->lines };
    return interpret(c, p, st->kernel, x);
}

static bool record(gp_dcall *c)
{
    const gp_ew_program *p = ((const gp_ew_opts *)c->opts)->program;
    const struct state *st = c->state;
    gp_view frame = { .data = NULL };
    gp_ew_call x = call_of(c, p, &frame.type);
    frame.type.dtype = p->folds;
    if (p->fold.op)
        return gp_reduction_record(c, &p->fold, &frame, &c->out[p->folded], first_fold, &x);
    return st->interprets ? interpret(c, p, st->kernel, &x) : launch(c, p, st->kernel, &x, NULL);
}

static const gp_port in[] = {
    { "*", GP_ACCEPT_ANY, .help = "one input or more, which broadcast as in NumPy; `in` is the only one" }, { 0 }
};
static const gp_port out[] = {
    { "*", GP_ACCEPT_ANY, .help = "of the type that follows from the expression, where not declared" }, { 0 }
};

static const gp_opt options[] = {
    { GP_NODE(gp_ew_opts, expr), .required = true,
      .help = "an expression over inputs, their neighbors as in a[i0 - 1, i1], vars and the indices i0, i1, ...; or "
              "lines `NAME = expression`, of which those that are named like outputs are these" },
    { GP_ENUM(gp_ew_opts, edge), .def = "reflect", .choices = "reflect|nearest|zero|wrap",
      .help = "neighbors beyond the border: mirrored (cba|abc), the border's element, 0, or those at the other end" },
    { 0 }
};

const gp_kind gp_kind_expr = {
    GP_KIND("expr"), .field = "own code",
    .also = "map sqrt abs exp log clip add subtract multiply divide where",
    .help = "computes each element by an expression of your own",
    .in = in, .out = out, .opts = options, .opts_size = sizeof(gp_ew_opts),
    .any_shape = true, .by_place = true, .of_none = true,
    .shape = shape, .open = open_expr, .close = free, .record = record, .table = table,
    .fuse = gp_ew_fuse, .steps = gp_ew_find_steps,
};
