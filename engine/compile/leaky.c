/* leaky.c - inputs that do not wait: with `when_full: drop-oldest` a stage never holds up what it reads from.
 *
 * The key is short for a stage before that input, and makes one: stage `view.queue` reads what is connected to `view`,
 * and `view` reads what that makes. It copies frames, as slots of a ring go round for all of their readers alike, and
 * takes each at once, whether there is room for it or not (run/leak.c). No stage or buffer of a file has such a name. */
#include "compile/resolve.h"

static bool shape(gp_shape *s)
{
    s->out[0] = s->in[0];
    return true;
}

/* The engine has its turns. */
static bool run(gp_call *c, gp_frame *f, int n)
{
    return false;
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
static const gp_port out[] = { { "out", GP_ACCEPT_ANY, .help = "those for which there was room" }, { 0 } };

/* In no registry: the key alone makes such stages. */
static const gp_kind kind = {
    GP_KIND("queue"), .help = "frames for a stage that may be slow", .in = in, .out = out,
    .opts_size = sizeof(gp_when_full), .any_shape = true, .shape = shape, .run = run,
};

bool gp_is_leaky(const gp_stage *st)
{
    return st->kind == &kind;
}

gp_when_full gp_leaky_when(const gp_stage *st)
{
    return *(const gp_when_full *)st->opts;
}

/* ---- the stage before an input ------------------------------------------------------- */

/* The only input that has frames; -1: there are several. */
static int only_input(const gp_resolving *r, const gp_rstage *st)
{
    int only = -1, n = 0;
    for (int p = 0; p < st->s.nin; p++)
        if (st->s.in[p] >= 0 && !r->buffer[st->s.in[p]].konst)
            only = p, n++;
    return n == 1 ? only : -1;
}

void gp_leaky_wire(gp_resolving *r, gp_rstage *st)
{
    const gp_node *said = gp_node_get(st->node, "when_full");
    const gp_kind *k = st->s.kind;
    if (!said || !k || st->broken || gp_option_find(k, "when_full"))
        return;
    r->read.stage = st->s.name, r->read.key = "when_full";
    int word = gp_read_word(&r->read, said, "wait|drop-newest|drop-oldest"), p = only_input(r, st);
    bool ok = word >= 0;
    if (!st->s.nin)
        ok = AT(r, said->at, "'when_full' has no effect: stage '%s' is a source, and makes a frame when there is room",
                st->s.name);
    else if (r->body)
        ok = AT(r, said->at, "'when_full' has no effect: stage '%s' is a part of a loop", st->s.name);
    else if (!k->run || k->collective || k->emit)
        ok = AT(r, said->at, "stage '%s' cannot have 'when_full', which is for stages that run on the host; give it to "
                "the first one behind it that does", st->s.name);
    else if (p < 0)
        ok = AT(r, said->at, "stage '%s' cannot have 'when_full', as it has several inputs, which would lose different "
                "frames", st->s.name);
    if (!ok)
        st->broken = true;
    if (!ok || word == GP_WHEN_FULL_WAIT)
        return;
    int queue = r->nstages, b = st->s.in[p];
    gp_stage_before(r, &kind, gp_format(r->arena, "%s.queue", st->s.name), said->at, b);
    *(gp_when_full *)r->stage[queue].s.opts = (gp_when_full)word;
    st->s.in[p] = r->stage[queue].s.out[0];
    r->buffer[st->s.in[p]].readers++;
}

/* ---- once the sources of each stage are known ---------------------------------------- */

/* Which leaky input the frames of a stage have come through; -1: none. Such a stage is a source for those behind it. */
static int leak_of(const gp_graph *g, const gp_stage *st, bool *other)
{
    int leak = -1;
    *other = false;
    for (int i = 0; (i = gp_next_source(st, i, g->nstages)) >= 0; i++) {
        bool leaks = gp_is_leaky(&g->stage[i]);
        *other |= !leaks || leak >= 0;
        leak = leaks ? i : leak;
    }
    return leak;
}

bool gp_leaky_check(const gp_graph *g, gp_errs *errs)
{
    bool ok = true, other;
    for (int i = 0; i < g->nstages; i++) {
        const gp_stage *st = &g->stage[i];
        int leak = leak_of(g, st, &other);
        if (gp_is_leaky(st) && (g->ranks > 1 || g->resume))
            ok = gp_fail(errs, GP_E_SPEC, st->at, "'when_full' cannot be in %s: which frames are dropped is not the same "
                         "each time", g->ranks > 1 ? "a run of several ranks" : "a run that may go on ('resume')");
        if (leak >= 0 && other)
            ok = gp_fail(errs, GP_E_SPEC, st->at, "stage '%s' cannot read what comes through '%s', which does not wait, "
                         "beside other frames: those would wait for it", st->name, g->stage[leak].name);
    }
    return ok;
}
