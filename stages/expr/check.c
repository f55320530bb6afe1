/* check.c - the tree of a program becomes a list of operations, each of one type (types.c, operators.c): names, lines
 * `NAME = expression`, and the walk over the tree. */
#include <string.h>
#include "base/num.h"
#include "checker.h"

/* ---- names ----------------------------------------------------------------- */

/* The buffer of the only input or output, which is then called by its name too, as its file or branch has that; NULL: it has
 * none of its own. */
static const char *only_buffer(gp_shape *s, const char *side)
{
    const gp_node *n = gp_shape_node(s, side);
    if (n && n->kind == GP_LIST && n->n == 1)
        n = n->item[0];
    return n && n->kind == GP_SCALAR ? n->local ? n->local : n->text : NULL;
}

static int find_port(const char *const *name, int n, const char *want, const char *only)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(name[i], want))
            return i;
    return n == 1 && only && !strcmp(only, want) ? 0 : -1;
}

int gp_ew_port_of(gp_shape *s, const char *name)
{
    return find_port(s->in_name, s->nin, name, only_buffer(s, "in"));
}

static int find_output(gp_shape *s, const char *name)
{
    return find_port(s->out_name, s->nout, name, only_buffer(s, "out"));
}

int gp_ew_axis_of(const char *name)
{
    return name[0] == 'i' && name[1] >= '0' && name[1] <= '9' && !name[2] ? name[1] - '0' : -1;
}

static const char *near_name(gp_ew_checker *c, const char *word, gp_near *near, bool vars)
{
    gp_num n;
    const char *only = only_buffer(c->s, "in");
    *near = (gp_near)GP_NEAR(word);
    if (vars)
        gp_shape_var(c->s, word, &n, near);
    for (gp_entry *e = NULL; vars && (e = gp_table_next(&c->names, e));)
        gp_near_try(near, e->name);
    for (int i = 0; i < c->s->nin; i++)
        gp_near_try(near, c->s->nin == 1 && only ? only : c->s->in_name[i]);
    return gp_near_text(near);
}

/* Is it assigned further down? */
static bool is_later(const gp_ew_checker *c, const gp_expr_node *e)
{
    for (const gp_expr_node *n = e; n < c->tree->node + c->tree->n; n++)
        if (n->op == GP_EXPR_ASSIGN && !strcmp(n->name, e->name))
            return true;
    return false;
}

static bool unknown(gp_ew_checker *c, const gp_expr_node *e)
{
    gp_near near;
    gp_num n;
    const char *hint = near_name(c, e->name, &near, true);
    gp_node name = *c->text;
    if (is_later(c, e))
        return FAIL(c, e, "'%s' has no value yet: it is assigned here or further down", e->name);
    if (near.distance && *hint)
        return FAIL(c, e, "no input, variable or assigned name '%s'%s", e->name, hint);
    if (near.distance) {
        char names[200] = "";
        for (int i = 0; i < c->s->nin && strlen(names) < sizeof names / 2; i++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s'%.60s'", i ? ", " : "", c->s->in_name[i]);
        return FAIL(c, e, "no input, variable or assigned name '%s'; the stage reads %s ('in:' lists what it reads)", e->name,
                    *names ? names : "nothing");
    }
    name.quoted = false, name.text = e->name, name.len = strlen(e->name), name.expr = NULL, name.line = 0;
    name.at = gp_node_part(c->text, e->from, e->len);
    return gp_shape_eval(c->s, &name, &n);     /* a var, which is no number: says why */
}

/* Input i of the program. */
static gp_ew_term load(gp_ew_checker *c, int i)
{
    gp_dtype t = c->s->in[c->p->space.in[i].port].dtype;
    if (c->loaded[i] < 0)
        c->loaded[i] = gp_ew_emit(c, (gp_ew_ins){ .op = GP_EW_LOAD, .type = gp_ew_type_of(t), .from = t, .a = i });
    return (gp_ew_term){ .at = c->loaded[i], .dtype = t, .small = gp_ew_is_small(t) };
}

/* The term of a number that counts up to `most`: small, where f32 holds each. */
static gp_ew_term count_up_to(int64_t most, gp_ew_type *type)
{
    bool small = most <= 1 << 24;
    *type = small ? GP_EW_I32 : GP_EW_I64;
    return (gp_ew_term){ .dtype = gp_ew_dtype[*type], .small = small };
}

static bool axis_index(gp_ew_checker *c, const gp_expr_node *e, int axis, gp_ew_term *out)
{
    gp_ew_type type;
    if (axis >= c->frame->ndim)
        return FAIL(c, e, "'%s': frames here have %d ax%cs, and their indices are i0 to i%d", e->name, c->frame->ndim,
                    c->frame->ndim == 1 ? 'i' : 'e', c->frame->ndim - 1);
    *out = count_up_to(c->frame->dim[axis], &type);
    if (c->index[axis] < 0)
        c->index[axis] = gp_ew_emit(c, (gp_ew_ins){ .op = GP_EW_INDEX, .type = type, .a = axis });
    out->index = (gp_ew_index){ .is = true, .to.axis = axis };
    out->at = c->index[axis];
    return true;
}

static bool name(gp_ew_checker *c, const gp_expr_node *e, gp_ew_term *out)
{
    int i = gp_table_index(&c->names, e->name), port = gp_ew_port_of(c->s, e->name), axis = gp_ew_axis_of(e->name);
    *out = (gp_ew_term){ .known = true, .var = e->name };
    if (i >= 0)
        *out = c->named[i];
    else if (port >= 0)
        *out = load(c, gp_ew_add_input(&c->p->space, &(gp_ew_input){ .port = port, .known = true }));
    else if (gp_shape_var(c->s, e->name, &out->n, NULL))
        return true;
    else if (axis >= 0)
        return axis_index(c, e, axis, out);
    else
        return unknown(c, e);
    return true;
}

/* NAME[...] of what is no input. */
static bool no_input(gp_ew_checker *c, const gp_expr_node *e)
{
    gp_near near;
    gp_num n;
    bool made = gp_table_index(&c->names, e->name) >= 0 || find_output(c->s, e->name) >= 0;
    if (made || is_later(c, e))
        return FAIL(c, e, "'%s' is computed here, and only inputs have neighbors: compute it in a stage of its own "
                    "before this one, and name that one's output in 'in'", e->name);
    if (gp_shape_var(c->s, e->name, &n, NULL))
        return FAIL(c, e, "'%s' is a variable, and only inputs have neighbors", e->name);
    return FAIL(c, e, "no input '%s'%s", e->name, near_name(c, e->name, &near, false));
}

static int load_near(gp_ew_checker *c, const gp_ew_ins *ins)
{
    gp_ew_program *p = c->p;
    size_t bytes = sizeof *ins->shift * (size_t)p->space.ndim;
    for (int i = 0; i < p->n; i++)
        if (p->ins[i].op == GP_EW_NEAR && p->ins[i].a == ins->a && !memcmp(p->ins[i].shift, ins->shift, bytes))
            return i;
    return gp_ew_emit(c, *ins);
}

/* NAME[...], whose indices begin at v; the result takes the place of the first. */
static bool neighbor(gp_ew_checker *c, const gp_expr_node *e, gp_ew_term *v)
{
    gp_ew_place at[GP_MAXDIM];
    int port = gp_ew_port_of(c->s, e->name);
    if (port < 0)
        return no_input(c, e);
    for (int k = 0; k < e->axis && k < GP_MAXDIM; k++)
        at[k] = (gp_ew_place){ v[k].known, v[k].n, v[k].index, v[k].where };
    gp_dtype t = c->s->in[port].dtype;
    gp_ew_ins ins = { .op = GP_EW_NEAR, .type = gp_ew_type_of(t), .from = t };
    if (!gp_ew_neighbor(c->s, c->text, e, port, at, c->p, &ins))
        return false;
    *v = ins.shift ? (gp_ew_term){ .at = load_near(c, &ins), .dtype = t, .small = gp_ew_is_small(t) } : load(c, ins.a);
    return true;
}

/* PORT.shape[k], PORT.size: of the frame that is there, so that a smaller one has its own. */
static bool size(gp_ew_checker *c, const gp_expr_node *e, gp_ew_term *out)
{
    gp_ew_program *p = c->p;
    int port = gp_ew_port_of(c->s, e->name), i = 0;
    gp_ew_type type;
    gp_near near;
    if (port < 0)
        return FAIL(c, e, "no input '%s'%s", e->name, near_name(c, e->name, &near, false));
    const gp_type *t = &c->s->in[port];
    if (e->axis >= t->ndim)
        return FAIL(c, e, "'%s' has no axis %d; axes count from 0", e->name, e->axis);
    while (i < p->nsizes && (p->size[i].port != port || p->size[i].axis != e->axis))
        i++;
    if (i == GP_EW_PORTS)
        return FAIL(c, e, "more than %d different sizes", GP_EW_PORTS);
    p->size[i] = (gp_ew_size){ port, e->axis };
    p->nsizes = i < p->nsizes ? p->nsizes : i + 1;
    *out = count_up_to(e->axis < 0 ? gp_count(t) : t->dim[e->axis], &type);
    out->at = gp_ew_emit(c, (gp_ew_ins){ .op = GP_EW_SIZE, .type = type, .a = i });
    return true;
}

static gp_ew_term frame_info(gp_ew_checker *c, bool time)
{
    gp_ew_type type = time ? GP_EW_F64 : GP_EW_I64;
    if (c->frame_at[time] < 0)
        c->frame_at[time] = gp_ew_emit(c, (gp_ew_ins){ .op = GP_EW_FRAME, .type = type, .a = time });
    return gp_ew_result(c->frame_at[time], type, false);
}

/* ---- statements --------------------------------------------------------------- */

static bool assign(gp_ew_checker *c, const gp_expr_node *e, const gp_ew_term *v)
{
    gp_num n;
    int in = gp_ew_port_of(c->s, e->name), out = find_output(c->s, e->name);
    if (in >= 0 && (out < 0 || !gp_shape_is_state(c->s, in, out)))       /* what is assigned to a state has its name from there on */
        return FAIL(c, e, "'%s' is an input; give what is assigned another name%s", e->name,
                    out < 0 ? "" : ", as in out: {result: BUFFER}");
    if (gp_shape_var(c->s, e->name, &n, NULL))
        return FAIL(c, e, "'%s' is a variable of the pipeline; give what is assigned another name", e->name);
    if (gp_ew_axis_of(e->name) >= 0 && find_output(c->s, e->name) < 0)
        return FAIL(c, e, "'%s' is the index along an axis; give what is assigned another name", e->name);
    if (gp_table_index(&c->names, e->name) >= 0)
        return FAIL(c, e, "'%s' is assigned twice", e->name);
    gp_entry *x = gp_table_put(&c->names, e->name, c->nnamed);
    if (!x)
        return FAIL(c, e, "out of memory");
    c->named[c->nnamed++] = *v;
    return true;
}

/* A known number is rounded once. */
static gp_ew_type stored_from(const gp_ew_term *v, gp_dtype to)
{
    gp_ew_type t = gp_ew_type_of(to);
    if (!v->known || !to)
        return gp_ew_common_of(v).type;
    return t >= GP_EW_F32 || (v->n.is_int && gp_num_fits(&v->n, gp_ew_dtype[t])) ? t
         : v->n.is_int ? gp_ew_common_of(v).type : GP_EW_F64;
}

static bool store(gp_ew_checker *c, int port, const gp_ew_term *v)
{
    gp_ew_type t = stored_from(v, c->s->out[port].dtype);
    gp_dtype *dtype = &c->s->out[port].dtype;
    if (gp_ew_is_complex(v) && *dtype && *dtype != GP_C64)
        return gp_shape_fail_at(c->s, c->text->at, "output '%s' is declared as %s, and c64 is what is computed: store "
                                "re(z), im(z) or abs(z)", c->s->out_name[port], gp_dtype_name(*dtype));
    if (!*dtype)
        *dtype = v->known ? gp_ew_dtype[t] : v->dtype;
    c->p->out[port] = *dtype;
    gp_ew_emit(c, (gp_ew_ins){ .op = GP_EW_STORE, .type = t, .from = *dtype, .d = port, .a = gp_ew_as(c, v, t) });
    return true;
}

static bool store_named(gp_ew_checker *c, int port)
{
    gp_shape *s = c->s;
    gp_near near = GP_NEAR(s->out_name[port]);
    const char *only = s->nout == 1 ? only_buffer(s, "out") : NULL;
    int i = gp_table_index(&c->names, s->out_name[port]);
    i = i < 0 && only ? gp_table_index(&c->names, only) : i;
    if (i >= 0)
        return store(c, port, &c->named[i]);
    for (gp_entry *e = NULL; (e = gp_table_next(&c->names, e));)
        if (find_output(s, e->name) < 0)
            gp_near_try(&near, e->name);
    return gp_shape_fail_at(s, c->text->at, "nothing is assigned to output '%s'%s", only ? only : s->out_name[port],
                            gp_near_text(&near));
}

static bool finish(gp_ew_checker *c, const gp_ew_term *last)
{
    bool ok = true;
    if (!last) {
        for (int i = 0; i < c->s->nout; i++)
            ok &= store_named(c, i);
        return ok;
    }
    if (c->s->nout > 1)
        return gp_shape_fail_at(c->s, c->text->at, "one expression for %d outputs: give each a line, as in '%s = ...'",
                                c->s->nout, c->s->out_name[0]);
    return store(c, 0, last);
}

/* ---- the walk --------------------------------------------------------------- */

static gp_ew_term *step(gp_ew_checker *c, const gp_expr_node *e, gp_ew_term *top)
{
    int n = gp_ew_takes(e);
    switch (e->op) {
    case GP_EXPR_NUMBER:
        *top = (gp_ew_term){ .known = true, .n = e->value };
        return top + 1;
    case GP_EXPR_VAR:
        return name(c, e, top) ? top + 1 : NULL;
    case GP_EXPR_PORT:
        return size(c, e, top) ? top + 1 : NULL;
    case GP_EXPR_FRAME:
        c->p->frame = true;
        *top = frame_info(c, e->axis == 1);
        return top + 1;
    case GP_EXPR_INDEX:
        top[-1].where = e;
        return top;
    case GP_EXPR_AT:
        return neighbor(c, e, top - n) ? top - n + 1 : NULL;
    case GP_EXPR_ASSIGN:
        return assign(c, e, top - 1) ? top - 1 : NULL;
    default:
        return gp_ew_apply(c, e, top - n) ? top - n + 1 : NULL;
    }
}

void gp_ew_mark(gp_ew_program *p)
{
    for (int i = p->n - 1; i >= 0; i--) {
        gp_ew_ins *x = &p->ins[i];
        int n = gp_ew_operands(x->op);
        x->needed |= x->op == GP_EW_STORE || x->op == GP_EW_FOLD;
        p->indices |= x->needed && x->op == GP_EW_INDEX ? 1u << x->a : 0;
        for (int k = 0; x->needed && x->shift && k < p->space.ndim; k++)
            if (x->shift[k] >= 0)
                p->shift[x->shift[k]].needed = true;
        const int operand[] = { x->a, x->b, x->c };
        for (int k = 0; x->needed && k < n; k++)
            p->ins[operand[k]].needed = true;
    }
}

static bool walk(gp_ew_checker *c, gp_ew_term *stack)
{
    const gp_expr *t = c->tree;
    gp_ew_term *top = stack;
    for (int i = 0; i < t->n; i++)
        if (!(top = step(c, &t->node[i], top)))
            return false;
    return finish(c, t->node[t->n - 1].op == GP_EXPR_ASSIGN ? NULL : top - 1);
}

bool gp_ew_check(gp_shape *s, const gp_node *text, const gp_expr *tree, const gp_type *frame, gp_ew_program *p)
{
    size_t n = (size_t)tree->n + 1;
    gp_ew_checker c = { .s = s, .text = text, .tree = tree, .frame = frame, .p = p,
                        .named = gp_shape_alloc(s, n * sizeof *c.named), .frame_at = { -1, -1 } };
    gp_ew_term *stack = gp_shape_alloc(s, (n + 2) * sizeof *stack);
    for (int i = 0; i < GP_EW_PORTS; i++)
        c.loaded[i] = -1;
    for (int i = 0; i < GP_MAXDIM; i++)
        c.index[i] = -1;
    p->nout = s->nout;
    gp_ew_measure(p, frame);
    bool ok = walk(&c, stack);
    for (int i = 0; i < p->space.nin; i++)
        p->in[i] = s->in[p->space.in[i].port].dtype;
    if (ok && p->space.refused)        /* what find_inputs() refuses the walk has to refuse: nothing is made of it */
        ok = gp_shape_fail_at(s, text->at, "has an index that is neither one of the frame's nor known before the run");
    if (ok)
        gp_ew_mark(p);
    gp_table_free(&c.names);
    return ok;
}
