/* window.c - windows: with `window: {x: 8}` a stage finds at its input x each frame together with those before it.
 *
 * It is short for a stage of kind `window` before that input, and makes one: stage `a.window8` reads `a`, what is
 * connected to x, and makes the buffer `a.window8`, which x then reads. Inputs that have the same window share it. No
 * stage or buffer of a file has such a name. */
#include <inttypes.h>
#include <string.h>
#include "compile/resolve.h"

struct opts {
    int64_t frames;
    bool drop;                 /* those with fewer rows */
};

static bool shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_type *in = &s->in[0];
    char text[128];
    if (in->ndim == GP_MAXDIM)
        return gp_shape_fail(s, NULL, "%s already has %d axes, the most that a frame may have", gp_type_text(in, text),
                             GP_MAXDIM);
    s->regroup = (gp_regroup){ .step = 1, .repeat = 1, .take = o->frames, .back = o->frames - 1, .make = 1,
                               .stack = true, .drop_partial = o->drop };
    s->out[0] = (gp_type){ .dtype = in->dtype, .ndim = in->ndim + 1, .dim = { o->frames } };
    memcpy(s->out[0].dim + 1, in->dim, sizeof *in->dim * (size_t)in->ndim);
    return true;
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "each with those before it" }, { 0 } };

/* In no registry: the key alone makes such stages. */
static const gp_kind kind = {
    GP_KIND("window"), .help = "each frame together with those before it", .in = in, .out = out,
    .opts_size = sizeof(struct opts), .shape = shape,
};

/* ---- what the key says --------------------------------------------------------------- */

/* Reads the window of one input, called `port`: a number of frames, or a map of what a stage `window` takes. */
static bool read_window(gp_resolving *r, const gp_rstage *st, const char *port, const gp_node *said, struct opts *o)
{
    static const char *const keys[] = { "frames", "partial", NULL };
    bool is_map = said->kind == GP_MAP, ok = true;
    const gp_node *frames = is_map ? gp_node_get(said, "frames") : said, *partial = gp_node_get(said, "partial");
    for (int i = 0; is_map && i < said->n; i++) {
        gp_near near = GP_NEAR(said->key[i]->text);
        int k = 0;
        for (; keys[k] && strcmp(keys[k], said->key[i]->text); k++)
            gp_near_try(&near, keys[k]);
        if (!keys[k])
            ok = AT(r, said->key[i]->at, "a window has no key '%s'%s", said->key[i]->text, gp_near_text(&near));
    }
    if (!frames && ok)
        ok = AT(r, said->at, "the window at input '%s' of stage '%s' has no number of frames; write %s: {frames: 8}",
                port, st->s.name, port);
    r->read.stage = st->s.name;
    r->read.key = gp_format(r->arena, is_map ? "window.%s.frames" : "window.%s", port);
    ok &= frames && gp_read_int(&r->read, frames, 1, GP_DEPTH_MAX, &o->frames);
    r->read.key = gp_format(r->arena, "window.%s.partial", port);
    int word = partial ? gp_read_word(&r->read, partial, "keep|drop") : 0;
    o->drop = word > 0;
    return ok && word >= 0;
}

/* ---- the stage before an input ------------------------------------------------------- */

void gp_stage_before(gp_resolving *r, const gp_kind *of, const char *name, gp_loc at, int buffer)
{
    static const char *in_name[] = { "in" }, *out_name[] = { "out" };
    gp_rbuf *b = gp_push_buffer(r, name, at);
    b->b.hidden = true, b->b.producer = (gp_use){ r->nstages, 0 };
    gp_rstage *st = &r->stage[r->nstages++];
    *st = (gp_rstage){ .s = { .kind = of, .name = name, .at = at, .workers = 1, .in_name = in_name,
                              .out_name = out_name, .nin = 1, .nout = 1 } };
    st->s.in = GP_NEW(r->arena, int, 1), st->s.out = GP_NEW(r->arena, int, 1);
    st->s.in[0] = buffer, st->s.out[0] = (int)(b - r->buffer);
    st->s.opts = gp_alloc(r->arena, of->opts_size);
}

int gp_most_before(const gp_node *stages)
{
    int n = 0;
    for (int i = 0; i < stages->n; i++) {
        const gp_node *windows = gp_node_get(stages->item[i], "window");
        n += (windows ? windows->n : 0) + (gp_node_get(stages->item[i], "when_full") != NULL);
    }
    return n;
}

/* Port p of `st` reads a window of what it is connected to. */
static void put_before(gp_resolving *r, gp_rstage *st, int p, gp_loc at, const struct opts *o)
{
    int b = st->s.in[p];
    const char *name = gp_format(r->arena, "%s.window%" PRId64 "%s", r->buffer[b].b.name, o->frames,
                                 o->drop ? ".drop" : "");
    int i = (int)gp_table_put(&r->windows, name, r->nstages)->n;
    if (i == r->nstages) {
        gp_stage_before(r, &kind, name, at, b);        /* which reads it in place of `st` */
        *(struct opts *)r->stage[i].s.opts = *o;
    } else {
        r->buffer[b].readers--;
    }
    st->s.in[p] = r->stage[i].s.out[0];
    r->buffer[st->s.in[p]].readers++;
}

static bool has_free_inputs(const gp_kind *k)
{
    const gp_port *p = k->in;
    while (p && p->name && strcmp(p->name, "*"))
        p++;
    return p && p->name;
}

static bool check_key(gp_resolving *r, const gp_rstage *st, const gp_node *said)
{
    const char *name = st->s.name;
    if (!st->s.nin)
        return AT(r, said->at, "'window' has no effect: stage '%s' is a source", name);
    if (!has_free_inputs(st->s.kind))
        return AT(r, said->at, "stage '%s' cannot have 'window', which is for inputs that you name yourself; put "
                  "{use: window, frames: N} before it", name);
    return said->kind == GP_MAP
        || AT(r, said->at, "'window' of stage '%s' must be a map, like {%s: 8}", name, st->s.in_name[0]);
}

void gp_window_wire(gp_resolving *r, gp_rstage *st)
{
    const gp_node *said = gp_node_get(st->node, "window");
    if (!said || !st->s.kind)
        return;
    if (!check_key(r, st, said)) {
        st->broken = true;
        return;
    }
    for (int i = 0; i < said->n; i++) {
        const gp_node *port = said->key[i];
        gp_near near = GP_NEAR(port->text);
        struct opts o;
        int p = 0;
        for (; p < st->s.nin && strcmp(st->s.in_name[p], port->text); p++)
            gp_near_try(&near, st->s.in_name[p]);
        bool ok = read_window(r, st, port->text, said->item[i], &o);
        if (p == st->s.nin)
            ok = AT(r, port->at, "stage '%s' has no input '%s'%s", st->s.name, port->text, st->s.nin > 1
                    ? gp_near_text(&near) : gp_format(r->arena, "; its only one is '%s'", st->s.in_name[0]));
        else if (st->s.in[p] >= 0 && r->buffer[st->s.in[p]].konst)
            ok = AT(r, port->at, "input '%s' of stage '%s' is the constant '%s', which has no frames: leave it out of "
                    "'window'", port->text, st->s.name, r->buffer[st->s.in[p]].b.name);
        if (ok && st->s.in[p] >= 0)
            put_before(r, st, p, port->at, &o);
        else
            st->broken = true;
    }
}
