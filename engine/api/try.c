/* try.c - one stage alone, for tests of its kind: a pipeline of a source that makes the frames given, the stage, and a
 * sink for each of its outputs that keeps them. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/memfile.h"
#include "api/forms.h"
#include "compile/plan.h"
#include "run/pipeline.h"
#include "gpipe/gpipe.h"

typedef struct trial {
    const gp_frames *in;
    gp_frames out[GP_MAXPORT];
    int64_t most[GP_MAXPORT];          /* frames that are kept; 0: all */
    _Atomic int64_t came[GP_MAXPORT];  /* as out[].n, for others' threads */
    int nout;
    gp_pipeline *pipeline;
    gp_outcome outcome;
} trial;

struct port { int64_t number; };

static const gp_opt number[] = { { GP_INT(struct port, number), .required = true, .help = "of the port" }, { 0 } };

/* ---- given: the source ----------------------------------------------- */

static bool give_shape(gp_shape *s)
{
    const trial *t = s->user;
    const gp_frames *f = &t->in[((const struct port *)s->opts)->number];
    s->out[0] = f->type;
    s->known.frames = f->n;
    return true;
}

static bool give(gp_call *c, gp_frame *frame, int n)
{
    const trial *t = c->user;
    const gp_frames *f = &t->in[((const struct port *)c->opts)->number];
    size_t bytes = gp_bytes(&f->type);
    for (int i = 0; i < n; i++)
        if (frame[i].index >= (uint64_t)f->n) {
            frame[i].status = GP_END;
        } else {
            frame[i].out[0].type.dim[0] = f->each ? f->each[frame[i].index].dim[0] : f->type.dim[0];
            memcpy(frame[i].out[0].data, (const char *)f->data + bytes * frame[i].index,
                   gp_bytes(&frame[i].out[0].type));
        }
    return true;
}

/* ---- taken: a sink --------------------------------------------------- */

static bool take_shape(gp_shape *s)
{
    trial *t = s->user;
    s->serial = s->any_length = true;
    if (!s->partial)
        t->out[((const struct port *)s->opts)->number].type = s->in[0];
    return true;
}

enum { BEHIND = 256 };         /* bytes that are nobody's, behind the slots of a stage on the host */
static const size_t MOST = (size_t)1 << 28;    /* bytes that are kept of an output of which all frames are wanted */

/* So that it is seen when a stage writes more than its frame has. Kernels are looked at by 'gpipe run --check-kernels'. */
static void put_guards(gp_plan *p)
{
    for (int i = 0; !p->nsegments && p->npools == p->nrings && i < p->npools; i++)
        p->pool[i].guard = BEHIND, p->pool[i].stride += BEHIND;
}

static bool is_guarded(const trial *t, int k, const gp_frame *f, gp_errs *errs)
{
    const gp_graph *g = t->pipeline->graph;
    const gp_stage *st = g->stage;
    const unsigned char *data = f->in[0].data;
    size_t bytes = gp_bytes(&t->out[k].type), end = gp_size_round(bytes) + BEHIND, i = bytes;
    while (i < end && data[i] == GP_GUARD)
        i++;
    while (strcmp(st->name, "stage"))
        st++;
    return i == end || !t->pipeline->plan->pool->guard
        || gp_fail(errs, GP_E_RUN, st->at, "stage '%s' wrote behind the end of '%s' in frame %llu: byte %zu, and a frame has "
                   "%zu", st->name, st->out_name[k], (unsigned long long)f->index, i, bytes);
}

/* Frames lie as far apart as whole ones. */
static bool keep(gp_frames *f, const gp_view *v)
{
    size_t bytes = gp_bytes(&f->type), n = (size_t)f->n;
    char *data = realloc(f->data, bytes * (n + 1) + 1);
    f->data = data ? data : f->data;
    gp_type *each = data ? realloc(f->each, sizeof *each * (n + 1)) : NULL;
    if (!each)
        return false;
    f->each = each;
    f->each[n] = v->type;
    memset(data + bytes * n, 0, bytes);
    memcpy(data + bytes * n, v->data, gp_bytes(&v->type));
    f->n++;
    return true;
}

/* Does every output that is wanted have as many frames as were asked for? */
static bool has_enough(const trial *t)
{
    bool enough = true;
    for (int k = 0; k < t->nout; k++)
        enough &= t->most[k] && atomic_load(&t->came[k]) >= t->most[k];
    return enough;
}

static bool take(gp_call *c, gp_frame *frame, int n)
{
    trial *t = c->user;
    int64_t k = ((const struct port *)c->opts)->number;
    for (int i = 0; i < n; i++) {
        if (t->most[k] && t->out[k].n >= t->most[k])
            continue;
        if (!is_guarded(t, (int)k, &frame[i], c->errs))
            return false;
        if (!t->most[k] && (size_t)t->out[k].n * gp_bytes(&t->out[k].type) > MOST)
            return gp_fail(c->errs, GP_E_RUN, c->at, "the stage has made %lld frames, 256 MiB, and goes on: say how "
                           "many are wanted; a source ends by the status GP_END", (long long)t->out[k].n);
        if (!keep(&t->out[k], &frame[i].in[0]))
            return gp_fail(c->errs, GP_E_RESOURCE, c->at, "out of memory");
        atomic_store(&t->came[k], t->out[k].n);
        if (has_enough(t))
            gp_cancel(t->pipeline, 1);
    }
    return true;
}

/* ---- both ------------------------------------------------------------ */

static bool add_kinds(gp_registry *to, const gp_registry *from, trial *t, gp_errs *errs)
{
    static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames" }, { 0 } };
    static const gp_port out[] = { { "out", .help = "frames" }, { 0 } };
    gp_kind given = { GP_KIND("try_given"), .help = "frames of a test", .out = out, .opts = number,
                      .opts_size = sizeof(struct port), .shape = give_shape, .run = give, .user = t };
    gp_kind taken = { GP_KIND("try_taken"), .help = "keeps frames for a test", .in = in, .opts = number,
                      .opts_size = sizeof(struct port), .shape = take_shape, .run = take, .user = t,
                      .any_shape = true };
    const gp_kind *k;
    for (int i = 0; (k = gp_kind_at(from, i)); i++)
        if (!gp_register(to, k, errs))
            return false;
    return gp_register(to, &given, errs) && gp_register(to, &taken, errs);
}

static void put_ports(FILE *to, const char *key, const char *letter, int n)
{
    if (n)
        fprintf(to, ", %s: [", key);
    for (int i = 0; i < n; i++)
        fprintf(to, "%s%s%d", i ? ", " : "", letter, i);
    fputs(n ? "]" : "", to);
}

/* The stage is in line 1, where its options begin in column 1 + the length of what is before them. */
static char *text_of(const char *kind, const char *options, int nin, int nout, size_t *len)
{
    gp_memfile m;
    if (!gp_memfile_open(&m))
        return NULL;
    fprintf(m.f, "stages: [{name: stage, use: %s", kind);
    put_ports(m.f, "in", "in", nin);
    put_ports(m.f, "out", "out", nout);
    fprintf(m.f, "%s%s},\n", options && *options ? ", " : "", options ? options : "");
    for (int i = 0; i < nin; i++)
        fprintf(m.f, "  {name: given%d, use: try_given, number: %d, out: in%d},\n", i, i, i);
    for (int i = 0; i < nout; i++)
        fprintf(m.f, "  {name: taken%d, use: try_taken, number: %d, in: out%d},\n", i, i, i);
    fputs("]\n", m.f);
    return gp_memfile_close(&m, len);
}

static bool may_end(const trial *t, gp_errs *errs)
{
    gp_stage_info s;
    bool endless = false, ends = t->nout > 0;
    for (int i = 0; gp_pipeline_stage(t->pipeline, i, &s); i++)
        endless |= !s.nin && s.endless;
    for (int k = 0; k < t->nout; k++)
        ends &= t->most[k] > 0;
    return !endless || ends || gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "the stage makes frames without end: say how many "
                                       "are wanted");
}

/* In place of places in the pipeline, which is to be destroyed, those in its text stay. */
static bool run(trial *t, const gp_registry *r, const char *text, size_t len, gp_errs *errs)
{
    static const char file[] = "stage";
    gp_config config = { .registry = r };
    int before = errs->n;
    t->pipeline = gp_compile(text, len, file, &config, errs);
    bool ok = t->pipeline && may_end(t, errs);
    if (ok)
        put_guards(t->pipeline->plan),
        t->outcome = gp_pipeline_run(t->pipeline, NULL, errs);
    gp_errs_free_places(errs, before, file, &config);
    return ok && (t->outcome == GP_DONE || t->outcome == GP_DRAINED);
}

static bool is_sound(const gp_frames *f)
{
    bool sound = f->n >= 0 && (f->data || !f->n) && f->type.ndim > 0 && f->type.ndim <= GP_MAXDIM;
    for (int64_t i = 0; sound && f->each && i < f->n; i++) {
        gp_type whole = f->each[i];
        sound = whole.dim[0] >= 0 && whole.dim[0] <= f->type.dim[0];
        whole.dim[0] = f->type.dim[0];
        sound = sound && gp_type_same(&whole, &f->type);
    }
    return sound;
}

void gp_frames_free(gp_frames *f)
{
    free(f->data);
    free(f->each);
    *f = (gp_frames){ .n = 0 };
}

bool gp_try_stage(const gp_registry *r, const char *kind, const char *options, const gp_frames *in, int nin,
                  gp_frames *out, int nout, gp_errs *errs)
{
    const gp_kind *k = gp_kind_find(r, kind);
    const gp_port *port = k && k->out ? k->out : &(gp_port){ 0 };
    int ports = 0;
    while (port[ports].name && strcmp(port[ports].name, "*"))
        ports++;
    ports = ports > nout ? ports : nout;
    if (nin < 0 || nin > GP_MAXPORT || nout < 0 || ports > GP_MAXPORT)
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "a stage has at most %d ports of a side", GP_MAXPORT);
    for (int i = 0; i < nin; i++)
        if (!is_sound(&in[i]))
            return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "input %d: its frames have no type, or some are not of it with "
                           "fewer rows", i);
    size_t len = 0;
    trial *t = calloc(1, sizeof *t);   /* not on the stack: a stage that does not come back uses it still */
    gp_registry *all = gp_registry_create();
    char *text = text_of(kind, options, nin, ports, &len);
    for (int i = 0; t && i < nout; i++)
        t->most[i] = out[i].n;
    for (int i = 0; i < nout; i++)
        out[i] = (gp_frames){ .n = 0 };
    if (t)
        t->in = in, t->nout = nout;
    bool ok = (t && all && text) || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    ok = ok && add_kinds(all, r, t, errs) && run(t, all, text, len, errs);
    if (t && t->outcome == GP_STUCK)
        return false;
    for (int i = 0; t && i < ports; i++)
        if (ok && i < nout)
            out[i] = t->out[i];
        else
            gp_frames_free(&t->out[i]);
    gp_pipeline_destroy(t ? t->pipeline : NULL);
    gp_registry_destroy(all);
    free(text);
    free(t);
    return ok;
}
