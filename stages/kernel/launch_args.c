/* launch_args.c - the option `args`: read once, at compile time, and evaluated for each launch. */
#include <stdio.h>
#include <string.h>
#include "base/num.h"
#include "device.h"
#include "launch_args.h"

/* As in C, and as the type of what a pointer points to. */
static const char *const c_type[GP_NDTYPES] = {
    [GP_U8] = "unsigned char", [GP_I8] = "signed char", [GP_U16] = "unsigned short",
    [GP_I16] = "short", [GP_U32] = "unsigned", [GP_I32] = "int",
    [GP_U64] = "unsigned long long", [GP_I64] = "long long", [GP_F16] = "gp_half",
    [GP_F32] = "float", [GP_F64] = "double", [GP_C64] = "gp_c64",
};

/* The number as an argument of type `t`. False when it does not fit; what has a fraction is rounded. */
static bool convert(gp_dtype t, gp_num n, gp_kvalue *v)
{
    if (t < GP_F16)
        gp_num_whole(&n);
    bool fits = (n.is_int || t == GP_F32 || t == GP_F64) && gp_num_fits(&n, t);
    if (fits)
        gp_num_store(v, &n, t);
    return fits;
}

static bool push_arg(gp_shape *s, gp_kargs *o, const gp_node *n, gp_karg a,
                     const char *type)
{
    if (o->n == GP_MAX_ARGS)
        return gp_shape_fail_at(s, n->at, "a kernel takes at most %d arguments", GP_MAX_ARGS);
    o->type[o->n] = type;
    o->at[o->n] = n->at;
    o->arg[o->n++] = a;
    return true;
}

static const char *pointer_type(gp_shape *s, const char *konst, gp_dtype t)
{
    char *text = gp_shape_alloc(s, 40);
    snprintf(text, 40, "%s%s *", konst, c_type[t]);
    return text;
}

static int find(const char *const *name, int n, const char *want)
{
    int i = 0;
    while (i < n && strcmp(name[i], want) != 0)
        i++;
    return i;
}

/* The buffer that option `side` (in, out) wires to the stage's i-th port there; NULL: the file does not say. */
static const char *buffer_of(gp_shape *s, const char *side, int i)
{
    const gp_node *n = gp_shape_node(s, side);
    return !n ? NULL : n->kind == GP_SCALAR ? n->text : n->item[i]->text;
}

/* "'a', 'b' and 'c'": all ports. */
static const char *list_ports(gp_shape *s)
{
    size_t room = 1;
    int n = s->nin + s->nout;
    for (int i = 0; i < n; i++)
        room += strlen(i < s->nin ? s->in_name[i] : s->out_name[i - s->nin]) + 7;
    char *text = gp_shape_alloc(s, room), *p = text;
    for (int i = 0; i < n; i++)
        p += snprintf(p, room - (size_t)(p - text), "%s'%s'", i == 0 ? "" : i < n - 1 ? ", " : " and ",
                      i < s->nin ? s->in_name[i] : s->out_name[i - s->nin]);
    return text;
}

static bool fail_no_port(gp_shape *s, const gp_node *n)
{
    gp_near near = GP_NEAR(n->text);
    gp_near_try(&near, "frame");
    for (int i = 0; i < s->nin + s->nout; i++) {
        bool in = i < s->nin;
        const char *name = in ? s->in_name[i] : s->out_name[i - s->nin];
        const char *buffer = buffer_of(s, in ? "in" : "out", in ? i : i - s->nin);
        if (buffer && !strcmp(buffer, n->text))
            return gp_shape_fail_at(s, n->at, "'%s' is not a port but the buffer of %s '%s': write %s",
                                    n->text, in ? "input" : "output", name, name);
        gp_near_try(&near, name);
    }
    return gp_shape_fail_at(s, n->at, "'%s' is not a port of this stage: its ports are %s, and a number is "
                            "written {i32: %s}%s", n->text, list_ports(s), n->text, gp_near_text(&near));
}

/* `frame`, or a port by name; `in` and `out` are also the only input and output. */
static bool read_port(gp_shape *s, gp_kargs *o, const gp_node *n, bool batched)
{
    int in = find(s->in_name, s->nin, n->text), out = find(s->out_name, s->nout, n->text);
    if (!strcmp(n->text, "frame")) {
        s->frame_info = true;
        return push_arg(s, o, n, (gp_karg){ .what = GP_FRAME_INFO }, "const gp_frame_info *");
    }
    if (in == s->nin && s->nin == 1 && !strcmp(n->text, "in"))
        in = 0;
    if (out == s->nout && s->nout == 1 && !strcmp(n->text, "out"))
        out = 0;
    if (in == s->nin && out == s->nout)
        return fail_no_port(s, n);
    if (in < s->nin && out < s->nout && gp_shape_is_state(s, in, out))
        in = s->nin;
    if (in < s->nin && out < s->nout)
        return gp_shape_fail_at(s, n->at, "'%s' is the name of an input and of an output; give "
                                "one another name, as in 'out: {result: %s}'", n->text, n->text);
    bool ok = in < s->nin
        ? push_arg(s, o, n, (gp_karg){ .what = GP_INPUT, .port = in },
                   pointer_type(s, "const ", s->in[in].dtype))
        : push_arg(s, o, n, (gp_karg){ .what = GP_OUTPUT, .port = out },
                   pointer_type(s, "", s->out[out].dtype));
    if (ok && batched)
        ok = push_arg(s, o, n, in < s->nin ? (gp_karg){ .what = GP_STRIDE_IN, .port = in }
                                           : (gp_karg){ .what = GP_STRIDE_OUT, .port = out },
                      "size_t");
    return ok;
}

static bool read_value(gp_shape *s, gp_kargs *o, const gp_node *n)
{
    gp_dtype t = n->n == 1 ? gp_dtype_parse(n->key[0]->text) : GP_NO_DTYPE;
    gp_num num;
    gp_kvalue v;
    char text[GP_NUM_TEXT];
    if (n->n != 1)
        return gp_shape_fail_at(s, n->at, "an argument is one type and its value: {f32: gain}");
    if (t == GP_NO_DTYPE)
        return gp_shape_fail_at(s, n->key[0]->at, "no type '%s'; a value is written {f32: gain}",
                                n->key[0]->text);
    if (t == GP_F16 || t == GP_C64)
        return gp_shape_fail_at(s, n->key[0]->at, "a value cannot be %s; pass f32",
                                gp_dtype_name(t));
    if (!gp_shape_eval(s, n->item[0], &num))
        return false;
    if (!convert(t, num, &v))
        return gp_shape_fail_at(s, n->item[0]->at, "'%s' is %s, which no %s can be",
                                n->item[0]->text, gp_num_text(&num, text), gp_dtype_name(t));
    return push_arg(s, o, n, (gp_karg){ .what = GP_VALUE, .dtype = t, .value = n->item[0] },
                    c_type[t]);
}

bool gp_kargs_read(gp_shape *s, const gp_node *n, bool batched, gp_kargs *o)
{
    bool ok = true;
    o->n = o->nulls = 0;
    if (n->kind != GP_LIST)
        return gp_shape_fail_at(s, n->at, "'args' must be a list, like "
                                "[in, out, {i32: \"in.shape[0]\"}]");
    for (int i = 0; i < n->n; i++) {
        const gp_node *a = n->item[i];
        if (a->kind == GP_LIST)
            ok = gp_shape_fail_at(s, a->at, "an argument is a port, 'frame', or {f32: gain}");
        else
            ok &= a->kind == GP_SCALAR ? read_port(s, o, a, batched) : read_value(s, o, a);
    }
    for (int p = 0; p < s->nout && ok; p++) {
        int i = 0;
        while (i < o->n && !(o->arg[i].what == GP_OUTPUT && o->arg[i].port == p))
            i++;
        if (i == o->n)
            ok = gp_shape_fail_at(s, n->at, "output '%s' is not among the arguments, so nothing "
                                  "would write it", s->out_name[p]);
    }
    for (int i = 0; i < o->n; i++) {
        const gp_karg *a = &o->arg[i];
        s->known.f64 |= a->what == GP_INPUT ? s->in[a->port].dtype == GP_F64
                      : a->what == GP_OUTPUT ? s->out[a->port].dtype == GP_F64
                      : a->what == GP_VALUE && a->dtype == GP_F64;
    }
    return ok;
}

bool gp_ports_eval(const gp_dcall *c, const gp_ports *p, const gp_node *n, gp_num *out)
{
    return gp_dcall_eval(c, p->in_name, p->nin, p->out_name, p->nout, n, out);
}

static bool value_of(const gp_dcall *c, const gp_ports *p, const gp_karg *a, gp_kvalue *v)
{
    gp_num n;
    char text[GP_NUM_TEXT];
    switch (a->what) {
    case GP_NO_POINTER: v->pointer = NULL; return true;
    case GP_INPUT: v->pointer = c->in[a->port].data; return true;
    case GP_OUTPUT: v->pointer = c->out[a->port].data; return true;
    case GP_STRIDE_IN: v->size = gp_stride(&c->in[a->port]); return true;
    case GP_STRIDE_OUT: v->size = gp_stride(&c->out[a->port]); return true;
    case GP_FRAME_INFO: v->pointer = c->frame; return true;
    case GP_VALUE: break;
    }
    if (!gp_ports_eval(c, p, a->value, &n))
        return false;
    return convert(a->dtype, n, v) ||
           gp_fail(c->errs, GP_E_RUN, a->value->at, "stage '%s': '%s' is %s, which no %s can "
                   "be", c->name, a->value->text, gp_num_text(&n, text), gp_dtype_name(a->dtype));
}

/* What a compiler took for granted of a value makes it another kernel. `multiple` is a power of two. */
bool gp_karg_value(const gp_dcall *c, const gp_ports *p, const gp_karg *a, gp_kvalue *v)
{
    uint64_t whole = 0;
    if (!value_of(c, p, a, v))
        return false;
    memcpy(&whole, v, a->what == GP_VALUE ? gp_dtype_size(a->dtype) : sizeof whole);
    return a->multiple <= 1 || whole % (uint64_t)a->multiple == 0
        || gp_fail(c->errs, GP_E_RUN, a->value ? a->value->at : (gp_loc){ 0 }, "stage '%s': '%s' is %llu, and the "
                   "kernel was compiled for multiples of %lld: compile it without that", c->name, a->value ? a->value->text :
                   "an address", (unsigned long long)whole, (long long)a->multiple);
}
