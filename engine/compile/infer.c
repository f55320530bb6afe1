/* infer.c - the type of every buffer: constants.c gives those of constants, shape() of the stage that makes a buffer
 * all others, in topological order.
 *
 * A stage is asked only when all its inputs are known. When it cannot be asked,
 * a complete declaration stands for the answer, so that what follows is still
 * checked; else what follows is left out. */
#include <string.h>
#include "compile/resolve.h"

/* ---- inputs ---------------------------------------------------------- */

static const gp_port *port_of(const gp_port *ports, int p)
{
    for (int i = 0; i <= p; i++)
        if (i == p || !strcmp(ports[i].name, "*"))
            return &ports[i];
    return NULL;
}

static bool check_type(gp_resolving *r, const gp_rstage *st, int p, const gp_rbuf *b)
{
    unsigned accept = port_of(st->s.kind->in, p)->accept;
    const gp_type *t = &b->b.type;
    if (accept & GP_ACCEPT(t->dtype))
        return true;
    char list[120] = "";
    const char *cast = "";
    const char *only = "TYPE";
    for (int d = 1, n = 0; d < GP_NDTYPES; d++) {
        size_t len = strlen(list);
        if (!(accept & GP_ACCEPT(d)))
            continue;
        only = n++ ? "TYPE" : gp_dtype_name((gp_dtype)d);
        snprintf(list + len, sizeof list - len, "%s%s", n < 2 ? "" : accept >> d == 1 ? " or " : ", ",
                 gp_dtype_name((gp_dtype)d));
    }
    if (strcmp(only, "TYPE") == 0 && accept & GP_ACCEPT(GP_F32))
        only = "f32";
    if (t->dtype == GP_C64)
        cast = "";
    else if (b->konst && b->b.path)
        cast = gp_format(r->arena, ": declare it so, %s: {const: %s, dtype: %s}", b->b.name,
                         gp_node_get(b->node, "const")->text, only);
    else if (b->b.numbers)
        cast = gp_format(r->arena, ": give it dtype: %s", only);
    else
        cast = gp_format(r->arena, "; put {use: cast, dtype: %s} before it", only);
    return AT(r, gp_node_at(st->node, "in", st->s.at), "stage '%s' takes %s at '%s', but %s'%s' is %s%s",
              st->s.name, (accept & GP_ACCEPT_ANY) == GP_ACCEPT_REAL ? "any type but c64" : list,
              st->s.in_name[p], b->konst ? "the constant " : "", b->b.name, gp_dtype_name(t->dtype), cast);
}

/* Are frames of an input, of which the pipeline does not say what they are, rows of what a source reads? That, and the
 * type of all of it, which has an axis more; else NULL. */
static const gp_stage *source_of_rows(const gp_resolving *r, const gp_rbuf *b, gp_type *file)
{
    const gp_stage *from = b->b.producer.stage < 0 ? NULL : &r->stage[b->b.producer.stage].s;
    if (!from || from->nin || b->b.said.ndim || !from->known.frames || b->b.type.ndim == GP_MAXDIM)
        return NULL;
    *file = b->b.type;
    memmove(file->dim + 1, file->dim, sizeof file->dim[0] * (size_t)file->ndim);
    file->ndim++;
    file->dim[0] = from->known.frames;
    return from;
}

/* Below an error of shape() that ends with "not" and the type of an input with one axis. */
static void explain_rows(gp_resolving *r, const gp_rstage *st)
{
    const char *msg = r->errs->n ? r->errs->e[r->errs->n - 1].msg : "", *not = strstr(msg, ", not ");
    char frame[128], all[128];
    gp_type file;
    for (int p = 0; p < st->s.nin; p++) {
        const gp_rbuf *b = st->s.in[p] < 0 ? NULL : &r->buffer[st->s.in[p]];
        const gp_stage *from = b && b->b.type.ndim == 1 ? source_of_rows(r, b, &file) : NULL;
        if (from && not && !strcmp(not + 6, gp_type_text(&b->b.type, frame)))
            gp_fail(r->errs, GP_E_NOTE, st->s.at, "a frame of '%s' is one of the %lld rows that stage '%s' reads; if "
                    "the file is one frame, declare buffers: {%s: {dtype: %s, shape: %s}}", b->b.name,
                    (long long)file.dim[0], from->name, b->b.name, gp_dtype_name(file.dtype),
                    strchr(gp_type_text(&file, all), '['));
    }
}

/* Frames that are rows of a file, beside a constant of the shape of the whole file: likely the file is one frame. Who
 * wants each row beside all of them declares the buffer. */
static void warn_of_rows(gp_resolving *r, const gp_rstage *st, const gp_rbuf *b)
{
    gp_type file = { 0 };
    const gp_stage *from = source_of_rows(r, b, &file);
    for (int p = 0; from && p < st->s.nin; p++) {
        const gp_rbuf *c = st->s.in[p] < 0 ? NULL : &r->buffer[st->s.in[p]];
        gp_type whole = c ? c->b.type : file;
        char frame[128], all[128];
        const char *one = strchr(gp_type_text(&b->b.type, frame), '['), *type = gp_dtype_name(file.dtype);
        whole.dtype = file.dtype;
        if (!c || !c->konst || !gp_type_same(&whole, &file))
            continue;
        gp_fail(r->errs, GP_E_WARN, gp_node_at(st->node, "in", st->s.at), "stage '%s': a frame of '%s' is %s, one of the %lld rows that "
                "stage '%s' reads, and the constant '%s' is as large as all of them. If the file is one frame, declare "
                "%s: {dtype: %s, shape: %s}; if not, declare %s: {dtype: %s, shape: %s}", st->s.name, b->b.name,
                frame, (long long)from->known.frames, from->name, c->b.name, b->b.name, type,
                strchr(gp_type_text(&file, all), '['), b->b.name, type, one);
    }
}

/* What the inputs say of end and type. False after errors. */
static bool check_inputs(gp_resolving *r, gp_rstage *st)
{
    bool ok = true;
    int frames = 0;
    st->s.endless = st->s.follows = true;
    st->s.carried = st->s.nin > 0;
    for (int p = 0; p < st->s.nin; p++) {
        const gp_rbuf *b = st->s.in[p] < 0 ? NULL : &r->buffer[st->s.in[p]];
        if (!b)
            continue;
        ok &= check_type(r, st, p, b);
        if (b->konst)
            continue;
        warn_of_rows(r, st, b);
        st->s.endless &= b->b.endless, st->s.follows &= b->b.follows, st->s.carried &= b->b.carried;
        frames++;
    }
    st->s.follows &= frames < 2 || st->s.endless;      /* of several that are held each counts */
    st->s.prologue = st->s.nin > 0 && !frames;
    st->s.carried &= frames > 0;
    if (st->s.prologue && (!st->s.device || st->s.kind->collective || st->s.regroups || st->s.kind->emit || r->body))
        ok = AT(r, st->s.at, "stage '%s' reads nothing but constants, so it has no frames; it "
                "needs an input that has%s", st->s.name, st->s.device || r->body ? ""
                : ": only stages of the device run without, once");
    return ok;
}

/* ---- what shape() said ----------------------------------------------- */

static bool check_output(gp_resolving *r, const gp_rstage *st, const gp_rbuf *b, const gp_type *t)
{
    const gp_type *said = &b->b.said;
    const char *name = b->b.name;
    char text[128];
    int64_t bytes;
    gp_type declared = *said;
    if (t->dtype < 0 || t->dtype >= GP_NDTYPES || t->ndim > GP_MAXDIM)
        return gp_fail(r->errs, GP_E_SPEC, st->s.at, "shape() of kind '%s' gives '%s' an "
                       "invalid type: dtype %d, %d axes", st->s.kind->name, name, (int)t->dtype,
                       t->ndim);
    if (!t->dtype || t->ndim < 1)
        return AT(r, b->b.at, "the %s of buffer '%s' cannot be inferred%s; declare it under 'buffers': %s: {dtype: f32, "
                  "shape: [480, 640]}", t->dtype ? "shape" : "dtype", name, !st->s.plugin ? ""
                  : gp_format(r->arena, ", as shape() of kind '%s' did not set it", st->s.kind->name), name);
    bytes = (int64_t)gp_dtype_size(t->dtype);
    for (int k = 0; k < t->ndim; k++)
        if (t->dim[k] < 1 || __builtin_mul_overflow(bytes, t->dim[k], &bytes)
            || bytes > GP_BYTES_MAX)
            return AT(r, st->s.at, t->dim[k] < 1 ? "stage '%s' makes empty frames: '%s' is %s"
                      : "stage '%s' makes frames of more than 1 TiB: '%s' is %s", st->s.name, name,
                      gp_type_text(t, text));
    declared.dtype = said->dtype ? said->dtype : t->dtype;
    if (b->b.state && !gp_is_complete(said))
        return false;                  /* that was said */
    if (b->b.state && !gp_type_same(said, t))
        return AT(r, st->s.at, "stage '%s' makes %s of the state '%s', which is %s", st->s.name,
                  gp_type_text(t, (char[128]){0}), b->b.state, gp_type_text(said, text));
    if (b->said_by && !gp_type_same(&declared, t))
        return AT(r, b->b.at, "buffer '%s', which carries '%s', is %s, but stage '%s' makes %s", b->said_by, name,
                  gp_type_text(&declared, (char[128]){0}), st->s.name, gp_type_text(t, text));
    if (said->dtype && said->dtype != t->dtype)
        return AT(r, gp_node_at(b->node, "dtype", b->b.at), "buffer '%s' is declared as %s, but stage "
                  "'%s' makes %s", name, gp_dtype_name(said->dtype), st->s.name,
                  gp_type_text(t, text));
    declared.dtype = t->dtype;
    if (said->ndim && !gp_type_same(&declared, t))
        return AT(r, gp_node_at(b->node, "shape", b->b.at), "buffer '%s' is declared as %s, but stage "
                  "'%s' makes %s", name, gp_bounds_text(&declared, b->b.varies, (char[GP_BOUNDS_TEXT]){0}), st->s.name,
                  gp_type_text(t, text));
    return true;
}

/* Keys that turn out to be wrong, now that the stage is known. */
static bool check_stage(gp_resolving *r, const gp_rstage *st, const gp_shape *s)
{
    const gp_node *on_hole = gp_node_get(st->node, "on_hole");
    const char *name = st->s.name;
    bool ok = true, source = !st->s.nin;
    if (st->s.workers > 1 && st->s.serial && st->s.workers_said)
        ok = AT(r, gp_node_at(st->node, "workers", st->s.at), "stage '%s' cannot have %d workers: %s",
                name, st->s.workers, source ? "it is a source, which makes one frame after the other"
                : s->default_workers > 1 && st->s.fills_device ? "it takes frames in order, with workers of its own: "
                                                                 "leave 'workers' out"
                                                               : "it takes frames in order");
    if (on_hole && (!s->state || st->s.kind->emit))
        ok = AT(r, on_hole->at, s->state ? "'on_hole' has no effect: stage '%s' leaves holes out"
                : !st->s.device && s->serial ? "'on_hole' has no effect on a stage on the host: what '%s' may keep from frame "
                                               "to frame is its own, and it sees a hole as a gap in the frames' numbers"
                : "'on_hole' has no effect: stage '%s' carries nothing from frame to frame", name);
    if (s->table && !st->s.kind->table)
        ok = AT(r, st->s.at, "kind '%s' asks for a table of %zu bytes and has no table()",
                st->s.kind->name, s->table);
    if (s->scratch_zero > s->scratch)
        ok = AT(r, st->s.at, "kind '%s' wants %zu bytes of its scratch memory zero, and asks for %zu",
                st->s.kind->name, s->scratch_zero, s->scratch);
    if (st->s.fills_device && s->serial && !st->s.reads_device)
        ok = AT(r, st->s.at, "stage '%s' takes frames in order, and fills the memory of the device: shape() of kind '%s' "
                "may say one of both", name, st->s.kind->name);
    if (st->s.kind->collective && !s->serial && !st->s.device)
        ok = AT(r, st->s.at, "kind '%s' is collective, and its shape() does not say that frames take turns", st->s.kind->name);
    bool own = source && !st->s.kind->on_loan;         /* its own frames */
    if (st->s.fills_device && (own || gp_host_reader(r, &st->s)))
        ok = AT(r, st->s.at, own ? "stage '%s' is a source, and a source writes host memory"
                : "stage '%s' writes the memory of the device, and stage '%s' reads that on the host: put a stage of the device "
                "between", name, gp_host_reader(r, &st->s));
    if (st->s.device && source)
        ok = AT(r, st->s.at, "stage '%s' is a source, and a source runs on the host", name);
    return ok;
}

/* Nothing that it needs is of a frame. */
static bool check_prologue(gp_resolving *r, const gp_rstage *st)
{
    const char *why = st->s.state ? "carries something from frame to frame"
                    : st->s.frame_info ? "asks for the number or the time of a frame" : NULL;
    return !why || AT(r, st->s.at, "stage '%s' reads nothing but constants, and so would run once, before frame 0, "
                                   "but it %s",
                      st->s.name, why);
}

/* What shape() says of a kind that regroups frames; of all others that they do not. */
static bool read_regroup(gp_resolving *r, gp_rstage *st, const gp_shape *s)
{
    enum { MOST = 1 << 20 };
    gp_regroup g = s->regroup;
    const gp_kind *k = st->s.kind;
    if (k->emit && (g.every < 1 || !s->state || s->table || s->scratch || s->frame_info))
        return AT(r, st->s.at, "shape() of kind '%s', which has emit(), says no 'every' or no state, or that it has a "
                  "table, scratch or frame infos", k->name);
    bool sound = g.step <= MOST && g.repeat <= MOST && g.take <= MOST && g.make <= MOST
        && (g.step == 1 || g.repeat == 1) && g.step > 0 && g.repeat > 0 && g.back >= 0 && g.take > g.back
              && g.make > 0 && (g.take == 1 || g.stack) && (g.make == 1 || g.split) && !(g.stack && g.split);
    if (!k->emit && st->s.regroups && !g.step && !g.repeat && !g.take && !g.make)
        return AT(r, st->s.at, "kind '%s'%s%s%s has no run(), nor record() for the device; of one that regroups frames shape() "
                  "says how (gp_regroup)", k->name, st->s.plugin ? ", of plug-in '" : "", st->s.plugin ? st->s.plugin->file : "",
                  st->s.plugin ? "'," : "");
    if (k->emit || !st->s.regroups)
        g = (gp_regroup){ .step = 1, .repeat = 1, .take = 1, .make = 1, .every = k->emit ? g.every : 1,
                          .drop_tail = k->emit && g.drop_tail };
    else if (!sound)
        return AT(r, st->s.at, "shape() of kind '%s' says frames that no stage can regroup so (gp_regroup)",
                  st->s.kind->name);
    g.every = g.every ? g.every : 1;
    st->s.regroup = g;
    return true;
}

/* Can the stage take frames that differ in shape? */
static bool check_varying(gp_resolving *r, const gp_rstage *st)
{
    const char *name = NULL;
    for (int p = 0; p < st->s.nin && !name; p++)
        if (st->s.in[p] >= 0 && r->buffer[st->s.in[p]].b.varies)
            name = r->buffer[st->s.in[p]].b.name;
    if (st->s.kind->any_shape)
        return true;
    return AT(r, gp_node_at(st->node, "in", st->s.at), "stage '%s' takes frames of one shape, and those of '%s' may differ; where they do "
              "not, declare its shape under 'buffers' without '<='", st->s.name, name);
}

/* Frames that are handed on as they are differ wherever they did. */
static bool check_handed_on(gp_resolving *r, const gp_rstage *st, const gp_rbuf *b, unsigned varies, const gp_type *in)
{
    const gp_rbuf *from = &r->buffer[st->s.in[0]];
    char a[GP_BOUNDS_TEXT], c[GP_BOUNDS_TEXT];
    for (int k = 0; k < b->b.said.ndim && k < in->ndim; k++)
        if (varies >> k & 1 && !(b->b.varies >> k & 1) && in->dim[k] > 1)
            return AT(r, b->b.at, "buffer '%s' is declared as %s, and stage '%s' hands on the frames of '%s', which are "
                      "%s: leave out the shape of '%s'", b->b.name, gp_bounds_text(&b->b.said, b->b.varies, a), st->s.name,
                      from->b.name, gp_bounds_text(in, varies, c), b->b.name);
    return true;
}

void gp_take_shape(gp_stage *st, const gp_shape *s)
{
    st->variables = st->kind->variables && s->variables;
    st->calls_library = st->kind->calls_library && s->calls_library;
    st->uncaptured = st->calls_library && s->uncaptured;
    st->batched = s->batched, st->keeps_slots = s->keeps_slots, st->serial = s->serial, st->known = s->known;
    st->frame_info = s->frame_info, st->once = s->once, st->any_length = s->any_length;
    st->writes_from = s->writes_from, st->file_each = s->file_each, st->cooperative = s->cooperative;
    st->each_once = s->each_once;
    st->writes_all = (s->writes_all || (st->plugin && (st->kind->run || st->kind->record))) && !s->fills_device;
    st->expr = st->kind->elementwise ? s->expr : NULL, st->beyond = s->beyond;
    st->reduction = st->kind->reduces ? s->reduction : (gp_reduction){ 0 };
    st->scratch = s->scratch, st->scratch_zero = s->scratch_zero, st->state = s->state, st->table = s->table;
    st->busy_ns = s->busy_ns, st->most_workers = s->most_workers;
    st->block = s->block, st->grid = s->grid;
    st->fills_device = st->kind->fills_device && s->fills_device, st->does = s->does;
    st->reads_device = st->fills_device && st->kind->reads_device && s->reads_device;
    st->at_once = st->fills_device ? s->at_once : 0;
    st->joins = st->kind->joins && s->joins;
    st->to_rank = st->kind->one_rank ? s->to_rank : 0, st->from_rank = st->kind->one_rank ? s->from_rank : 0;
    memcpy(st->none, s->none, st->kind->of_none ? sizeof st->none : 0);
    st->tail_rows = st->kind->tail_rows ? s->tail_rows : 0;
    st->by_place = st->kind->by_place ? s->by_place : 0, st->beside = st->kind->by_place ? s->beside : 0;
    st->round_bytes = s->round_bytes, st->round_steps = s->round_steps;
}

/* The axes of an output in which its frames may be shorter, since those of an input may. */
static unsigned may_differ(const gp_shape *s, int output)
{
    return output || !s->fixed ? ~0u : ~s->fixed & ((1u << s->out[0].ndim) - 1);
}

static gp_row_kind rows_of(const gp_resolving *r, const gp_rstage *st, const gp_type *out)
{
    gp_row_kind rows = !st->s.regroup.stack ? GP_ROWS_ANY : st->s.regroup.back ? GP_ROWS_WINDOW : GP_ROWS_GROUP;
    for (int p = 0; p < st->s.nin && !st->s.regroup.split; p++) {
        const gp_buffer *b = st->s.in[p] < 0 ? NULL : &r->buffer[st->s.in[p]].b;
        if (b && b->rows > rows && b->type.dim[0] == out->dim[0] && !(st->s.by_place >> p & 1)
            && !(st->s.reduction.axes & 1))
            rows = b->rows;
    }
    return rows;
}

static bool ask(gp_resolving *r, gp_rstage *st, const gp_type *in, gp_type *out)
{
    unsigned varies[GP_MAXPORT], declared[GP_MAXPORT];
    gp_shape s = { .in = in, .out = out, .in_varies = varies, .out_varies = declared };
    bool ok = true, any = false;
    for (int p = 0; p < st->s.nin; p++)
        any |= (varies[p] = st->s.in[p] < 0 ? 0 : r->buffer[st->s.in[p]].b.varies) != 0;
    for (int p = 0; p < st->s.nout; p++) {
        const gp_buffer *b = st->s.out[p] < 0 ? NULL : &r->buffer[st->s.out[p]].b;
        declared[p] = b ? b->varies : 0;
        for (int k = 0; b && k < GP_MAXDIM; k++)
            declared[p] &= b->dim[k] ? ~(1u << k) : ~0u;
    }
    if (st->s.regroups && !st->s.kind->record && !r->buffer[st->s.in[0]].konst) {
        const gp_stage *by = &r->stage[r->buffer[st->s.in[0]].b.producer.stage].s;
        gp_devices_follow(r, &st->s, by);
        gp_priority_follow(&st->s, by);
    }
    if (!check_inputs(r, st) || (any && !check_varying(r, st)))
        return false;
    if (!gp_shape_call(r, st, &s)) {
        explain_rows(r, st);
        return false;
    }
    if (!st->s.nin)
        st->s.endless = st->s.follows = s.endless;
    if (!read_regroup(r, st, &s))
        return false;
    if (st->s.kind->collective && st->s.device)        /* see gp_devices_alone() */
        s.serial = s.fills_device = s.reads_device = false, s.batched = true;
    st->s.follows |= st->s.regroup.repeat > 1;
    gp_take_shape(&st->s, &s);
    st->s.each_shape = any && st->s.kind->each_shape;
    if (st->s.fills_device && !st->s.workers_said)
        st->s.workers = s.default_workers ? s.default_workers : 1, st->s.workers_auto = false;
    st->s.in_order = s.serial && st->s.fills_device && st->s.workers > 1;
    st->s.by_number = st->s.kind->by_number && s.by_number;
    st->s.serial |= !st->s.nin && !st->s.by_number && !st->s.kind->on_loan;
    if (!check_stage(r, st, &s) || (st->s.prologue && !check_prologue(r, st)))
        return false;
    for (int p = 0; p < st->s.nout; p++) {
        gp_rbuf *b = st->s.out[p] < 0 ? NULL : &r->buffer[st->s.out[p]];
        if (!b)
            continue;
        b->konst |= st->s.prologue;
        if (b->konst && b->b.depth_said)
            ok = AT(r, b->b.depth_at, "'depth' has no effect: buffer '%s' is made of constants, and is one", b->b.name);
        b->b.endless = st->s.endless, b->b.follows = st->s.follows, b->b.carried = st->s.carried;
        b->b.rows = rows_of(r, st, &out[p]);
        if (!b->b.said.ndim)
            b->b.varies = any ? may_differ(&s, p) : p ? 0 : s.varies;
        bool handed_on = any && !st->s.kind->run && !st->s.kind->record;
        if (!b->broken && check_output(r, st, b, &out[p])
            && (!handed_on || check_handed_on(r, st, b, varies[0], &in[0])))
            b->b.type = out[p], b->known = true;
        else
            ok = false, b->broken = true;
    }
    return ok;
}

/* What a stage that regroups copies fits in what it makes. */
static bool check_regroup(gp_resolving *r, const gp_rstage *st, const gp_type *in, const gp_type *out)
{
    const gp_regroup *g = &st->s.regroup;
    size_t from = gp_bytes(in) * (g->stack ? (size_t)g->take : 1), to = gp_bytes(out) * (size_t)g->make;
    const gp_buffer *b = &r->buffer[st->s.in[0]].b;
    const gp_rstage *by = b->producer.stage < 0 ? NULL : &r->stage[b->producer.stage];
    if ((g->stack || st->s.kind->emit) && by && by->s.regroup.back && !by->s.regroup.drop_partial && !gp_is_carry(&by->s))
        return AT(r, st->s.at, "stage '%s' takes whole frames, and the first %lld of '%s' have fewer rows: set "
                  "'partial: drop' on stage '%s'", st->s.name, (long long)by->s.regroup.back, b->name, by->s.name);
    return st->s.kind->record || from == to
        || AT(r, st->s.at, "shape() of kind '%s' makes other bytes than it takes (gp_regroup)", st->s.kind->name);
}

static void infer_stage(gp_resolving *r, gp_rstage *st)
{
    gp_type in[GP_MAXPORT] = {0}, out[GP_MAXPORT] = {0};
    bool ready = !st->broken && !st->outs_broken;
    for (int p = 0; p < st->s.nin; p++) {
        const gp_rbuf *b = st->s.in[p] < 0 ? NULL : &r->buffer[st->s.in[p]];
        ready &= !b || b->known;
        if (b)
            in[p] = b->b.type;
    }
    for (int p = 0; p < st->s.nout; p++) {
        gp_rbuf *b = st->s.out[p] < 0 ? NULL : &r->buffer[st->s.out[p]];
        if (!b)
            continue;
        if (b->like >= 0) {
            b->broken |= !r->buffer[b->like].known;
            gp_buffer_type_like(b, &r->buffer[b->like].b.type, r->buffer[b->like].b.varies);
        }
        b->broken |= ready && !gp_buffer_type_declared(r, st, in, b);
        ready &= !b->broken;
        out[p] = b->b.said;
    }
    if (ready && ask(r, st, in, out) && (!st->s.regroups || check_regroup(r, st, in, out)))
        return;
    for (int p = 0; p < st->s.nout; p++) {
        gp_rbuf *b = st->s.out[p] < 0 ? NULL : &r->buffer[st->s.out[p]];
        if (b && !b->known && !b->broken && gp_is_complete(&b->b.said))
            b->b.type = b->b.said, b->known = true;
    }
}

void gp_infer(gp_resolving *r)
{
    gp_look_into_constants(r);
    for (int i = 0; i < r->nstages; i++)
        (gp_is_carry(&r->stage[r->order[i]].s) ? gp_carry_infer : infer_stage)(r, &r->stage[r->order[i]]);
    gp_carry_check(r);
}
