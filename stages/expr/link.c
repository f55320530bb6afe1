/* link.c - one program of those of several stages, each of which reads what earlier ones make: what a stage stores and
 * another loads stays a value, rounded as if it had been in memory; so is what a reduction loads. */
#include <stdio.h>
#include <string.h>
#include "compile/fuse.h"
#include "program.h"

enum { MOST_OPERATIONS = 1 << 14 };

/* The value that is stored; as it is loaded, or -1; in the body of a loop: its number between parts, or -1. */
typedef struct output { int at; gp_ew_type type; int loaded, between; } output;

typedef struct linker {
    gp_fuse *f;
    gp_ew_program *p;
    output out[GP_FUSE_MOST][GP_MAXPORT];
    const gp_ew_program *of;   /* the one whose operations are taken over, */
    int part;                  /* its number, */
    int *to;                   /* ... of each its number in p */
} linker;

/* ---- the program of a part ------------------------------------------------------ */

/* Compiles the text that a kind gives for its stages. */
static gp_ew_program *compile(gp_shape *s, const char *expr)
{
    gp_node *text = gp_shape_alloc(s, sizeof *text);
    gp_ew_program *p = gp_shape_alloc(s, sizeof *p);
    gp_type frame;
    *text = (gp_node){ .kind = GP_SCALAR, .at = gp_shape_loc(s, NULL), .text = expr, .len = strlen(expr) };
    const gp_expr *tree = gp_shape_program(s, text);
    if (!tree)
        return NULL;
    gp_ew_find_inputs(s, tree, &p->space);
    bool ok = gp_ew_broadcast(s, text, tree, &p->space, &frame) && gp_ew_check(s, text, tree, &frame, p);
    return ok && !p->nshifts ? p : NULL;       /* `edge` is an option of `expr` alone */
}

static const gp_ew_program *program_of(gp_fuse_part *part)
{
    if (!*part->kept)
        *part->kept = part->expr ? compile(part->shape, part->expr) : ((const gp_ew_opts *)part->shape->opts)->program;
    return *part->kept;
}

/* ---- operations ------------------------------------------------------------------- */

static int add(linker *l, gp_ew_ins ins)
{
    l->p->ins[l->p->n] = ins;
    return l->p->n++;
}

static bool is_number(const gp_ew_ins *a, const gp_ew_ins *b)
{
    return a->op == GP_EW_NUMBER && a->type == b->type && !a->var && !b->var && a->value.u64 == b->value.u64;
}

static bool is_same(const linker *l, const gp_ew_ins *a, const gp_ew_ins *b)
{
    if (a->op != b->op || a->op == GP_EW_STORE || a->op == GP_EW_FOLD)
        return false;
    if (a->op == GP_EW_NUMBER)
        return is_number(a, b);
    if (a->op == GP_EW_NEAR)
        return a->a == b->a && !memcmp(a->shift, b->shift, sizeof *a->shift * (size_t)l->p->space.ndim);
    return (a->op == GP_EW_LOAD || a->op == GP_EW_INDEX || a->op == GP_EW_FRAME || a->op == GP_EW_SIZE) && a->a == b->a;
}

/* An instruction without operands is there once. */
static int add_once(linker *l, gp_ew_ins ins)
{
    for (int i = 0; i < l->p->n; i++)
        if (is_same(l, &l->p->ins[i], &ins))
            return i;
    return add(l, ins);
}

/* The value that is loaded where `o` was stored as a `dtype`. */
static int loaded(linker *l, output *o, gp_dtype dtype)
{
    gp_ew_type type = gp_ew_type_of(dtype);
    if (o->loaded < 0)
        o->loaded = o->type == type && gp_ew_dtype[type] == dtype ? o->at
                  : add(l, (gp_ew_ins){ .op = GP_EW_THROUGH, .type = type, .from = dtype, .a = o->at, .b = (int)o->type });
    return o->loaded;
}

static int shift_of(linker *l, const gp_ew_index *x)
{
    gp_ew_program *p = l->p;
    for (int i = 0; i < p->nshifts; i++)
        if (!x->var && !p->shift[i].var && !memcmp(&p->shift[i].to, &x->to, sizeof x->to))
            return i;
    p->shift[p->nshifts] = *x;
    return p->nshifts++;
}

static const int *shifts_of(linker *l, const gp_ew_ins *x)
{
    int *shift = gp_shape_alloc(l->f->shape, sizeof *shift * GP_MAXDIM);
    for (int k = 0; k < l->p->space.ndim; k++)
        shift[k] = x->shift[k] < 0 ? -1 : shift_of(l, &l->of->shift[x->shift[k]]);
    return shift;
}

static bool add_size(linker *l, gp_ew_ins x, int *at)
{
    gp_ew_program *p = l->p;
    gp_ew_size size = l->of->size[x.a];
    if (l->f->part[l->part].from[size.port].part >= 0) {
        snprintf(l->f->why, sizeof l->f->why, "the shape of what is between them is read");
        return false;
    }
    size.port = l->f->part[l->part].from[size.port].port;
    for (x.a = 0; x.a < p->nsizes; x.a++)
        if (p->size[x.a].port == size.port && p->size[x.a].axis == size.axis)
            break;
    if (x.a == GP_EW_PORTS)
        return false;
    p->size[x.a] = size;
    p->nsizes += x.a == p->nsizes;
    *at = add_once(l, x);
    return true;
}

/* Does a later part read output d of this one? */
static bool is_read_later(const linker *l, int d)
{
    for (int i = l->part + 1; i < l->f->n; i++)
        for (int k = 0; k < l->f->part[i].shape->nin; k++)
            if (l->f->part[i].from[k].part == l->part && l->f->part[i].from[k].port == d)
                return true;
    return false;
}

static bool take_over(linker *l, int i)
{
    gp_ew_ins x = l->of->ins[i];
    const gp_fuse_part *part = &l->f->part[l->part];
    if (x.op == GP_EW_STORE) {
        output *o = &l->out[l->part][x.d];
        bool between = l->f->steps && is_read_later(l, x.d);
        *o = (output){ l->to[x.a], x.type, -1, between ? l->p->nbetween++ : -1 };
        x.a = o->at, x.d = part->to[x.d], x.phase = l->part;
        if (x.d >= 0)
            add(l, x);
        x.d = GP_EW_BETWEEN + o->between;
        if (between)
            add(l, x);
        return true;
    }
    if (x.op == GP_EW_LOAD || x.op == GP_EW_NEAR) {
        gp_ew_input in = l->of->space.in[x.a];
        int from = part->from[in.port].part, port = part->from[in.port].port;
        in.port = port;
        x.a = from < 0 ? gp_ew_add_input(&l->p->space, &in)
            : l->f->steps ? GP_EW_BETWEEN + l->out[from][port].between : -1;
        if (from >= 0 && l->f->steps && (in.placed || l->of->space.repeated[l->of->ins[i].a])) {
            snprintf(l->f->why, sizeof l->f->why, "a part of what is between them is read");
            return false;
        }
        if (x.op == GP_EW_NEAR)
            x.shift = shifts_of(l, &x);
        l->to[i] = from < 0 || l->f->steps ? add_once(l, x) : loaded(l, &l->out[from][port], (gp_dtype)x.from);
        return true;
    }
    if (x.op == GP_EW_SIZE)
        return add_size(l, x, &l->to[i]);
    int n = gp_ew_operands(x.op);
    if (n > 0)
        x.a = l->to[x.a];
    if (n > 1)
        x.b = l->to[x.b];
    if (n > 2)
        x.c = l->to[x.c];
    l->to[i] = n ? add(l, x) : add_once(l, x);
    return true;
}

/* A reduction's only input is of an earlier part. */
static bool take_fold(linker *l, const gp_fuse_part *part)
{
    gp_ew_program *p = l->p;
    int from = part->from[0].part;
    if (from < 0) {
        snprintf(l->f->why, sizeof l->f->why, "what is reduced is computed before");
        return false;
    }
    if (p->nshifts) {
        snprintf(l->f->why, sizeof l->f->why, "a reduction takes in nothing that reads neighbors");
        return false;
    }
    const output *o = &l->out[from][part->from[0].port];
    p->fold = part->reduction, p->folds = part->shape->in[0].dtype, p->folded = part->to[0];
    p->out[p->folded] = gp_reduction_kept(&p->fold, p->folds);
    add(l, (gp_ew_ins){ .op = GP_EW_FOLD, .type = o->type, .from = (int)p->folds, .a = o->at });
    return true;
}

static bool take_over_all(linker *l)
{
    const gp_fuse_part *part = &l->f->part[l->part];
    if (part->reduction.op)
        return take_fold(l, part);
    l->of = program_of(&l->f->part[l->part]);
    l->to = gp_shape_alloc(l->f->shape, sizeof *l->to * ((size_t)l->of->n + 1));
    l->p->frame |= l->of->frame;
    for (int i = 0; i < l->of->n; i++)
        if (l->of->ins[i].needed && !take_over(l, i))
            return false;
    return true;
}

/* ---- the whole -------------------------------------------------------------------- */

/* As many elements of a constant count as frames have, along axes in which none varies: that has to be the same for
 * each part and for all together. */
static bool vary_alike(const gp_fuse *f, const gp_ew_program *p)
{
    unsigned axes = (1u << p->space.ndim) - 1;
    for (int i = 0; i < f->n && f->consts; i++)
        if (!f->part[i].reduction.op && (program_of(&f->part[i])->space.varies ^ p->space.varies) & axes)
            return false;
    return true;
}

/* Those of a part that are inputs of the new stage. */
static bool find_inputs(gp_fuse_part *part, gp_ew_space *to)
{
    const gp_ew_space *o = part->reduction.op ? NULL : &program_of(part)->space;
    to->ndim = o ? o->ndim : to->ndim;
    for (int i = 0; o && i < o->nin; i++) {
        gp_ew_input in = o->in[i];
        bool outside = part->from[in.port].part < 0;
        in.port = part->from[in.port].port;
        if (outside && gp_ew_add_input(to, &in) < 0)
            return false;
    }
    return true;
}

/* A program with room for what those of all parts have. */
static gp_ew_program *begin(gp_fuse *f)
{
    gp_shape *s = f->shape;
    gp_ew_program *p = gp_shape_alloc(s, sizeof *p);
    for (int i = 0; i < f->n; i++) {
        const gp_ew_program *of = f->part[i].reduction.op ? NULL : program_of(&f->part[i]);
        if (f->part[i].reduction.op) {
            p->cap++;
            continue;
        }
        if (!of) {
            snprintf(f->why, sizeof f->why, "'%s' of its kind makes no sense with these types", f->part[i].expr);
            return NULL;
        }
        p->cap += of->n + 2 * of->nout, p->capshifts += of->nshifts;
    }
    if (p->cap > MOST_OPERATIONS) {
        snprintf(f->why, sizeof f->why, "the program of one kernel would be too large");
        return NULL;
    }
    p->ins = gp_shape_alloc(s, sizeof *p->ins * ((size_t)p->cap + 1));
    p->shift = gp_shape_alloc(s, sizeof *p->shift * ((size_t)p->capshifts + 1));
    p->nout = s->nout, p->consts = f->consts;
    for (int i = 0; i < f->n; i++)
        if (!find_inputs(&f->part[i], &p->space)) {
            snprintf(f->why, sizeof f->why, "one kernel would have too many inputs");
            return NULL;
        }
    for (int i = 0; i < p->space.nin; i++)
        p->in[i] = s->in[p->space.in[i].port].dtype;
    for (int i = 0; i < s->nout; i++)
        p->out[i] = s->out[i].dtype;
    return p;
}

/* Is that what the first part computes, or reduces? All parts do the same. */
static bool is_frame(const gp_fuse_part *part, const gp_type *frame)
{
    const gp_type *t = part->reduction.op ? &part->shape->in[0] : &part->shape->out[0];
    return t->ndim == frame->ndim && !memcmp(t->dim, frame->dim, sizeof t->dim[0] * (size_t)t->ndim);
}

bool gp_ew_fuse(gp_fuse *f)
{
    gp_shape *s = f->shape;
    gp_ew_opts *o = gp_shape_alloc(s, sizeof *o);
    gp_node *text = gp_shape_alloc(s, sizeof *text);
    linker *l = gp_shape_alloc(s, sizeof *l);
    gp_type frame;
    *text = (gp_node){ .kind = GP_SCALAR, .at = gp_shape_loc(s, NULL), .text = "" };
    *l = (linker){ .f = f, .p = begin(f) };
    if (!l->p)
        return false;
    snprintf(f->why, sizeof f->why, "the program of one kernel would be too large");
    bool same = gp_ew_broadcast(s, text, NULL, &l->p->space, &frame);
    for (int i = 0; i < (f->steps ? f->n : 1) && same; i++)
        same = is_frame(&f->part[i], &frame);
    if (!same) {
        snprintf(f->why, sizeof f->why, "their frames have other shapes");
        return false;
    }
    if (!vary_alike(f, l->p)) {
        snprintf(f->why, sizeof f->why, "their frames vary along other axes, beside a constant");
        return false;
    }
    gp_ew_measure(l->p, &frame);
    for (; l->part < f->n; l->part++)
        if (!take_over_all(l))
            return false;
    gp_ew_mark(l->p);
    o->program = l->p, o->expr = text;
    f->opts = o;
    frame.dtype = l->p->folds;
    if (l->p->fold.op) {
        s->scratch = gp_reduction_scratch(&l->p->fold, &frame);
        s->scratch_zero = gp_reduction_zero(&l->p->fold, &frame);
        s->none[l->p->folded] = (unsigned char)gp_reduction_none(&l->p->fold, l->p->folds);
    }
    return (f->steps || (gp_ew_encode(s, text, l->p) && gp_ew_write(s, text, l->p))) && gp_ew_describe(s, l->p);
}
