/* try.c - one stage alone, for tests of its kind: a pipeline of it and of stages that are on loan to this thread, which
 * pushes the frames given, and pulls what it makes. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "base/memfile.h"
#include "base/plural.h"
#include "base/why.h"
#include "api/forms.h"
#include "compile/plan.h"
#include "run/pipeline.h"
#include "gpipe/gpipe.h"

typedef struct port {
    const gp_frames *given;    /* of an input; NULL: it is an output */
    gp_input *in;
    gp_output *out;
    int fd;
    int64_t pushed;
    gp_frames taken;           /* of an output */
    int64_t most;              /* ... frames that are wanted; 0: all */
    bool over;
} port;

typedef struct trial {
    gp_pipeline *pipeline;
    const gp_stage *stage;
    port port[2 * GP_MAXPORT];         /* inputs, then outputs */
    int nin, nout, nports;     /* nout: of the outputs so many are wanted, the first */
    gp_errs errs;              /* of this thread: the run has others */
} trial;

/* ---- the pipeline ---------------------------------------------------- */

static void put_ports(FILE *to, const char *key, int n)
{
    if (n)
        fprintf(to, ", %s: [", key);
    for (int i = 0; i < n; i++)
        fprintf(to, "%s%s%d", i ? ", " : "", key, i);
    fputs(n ? "]" : "", to);
}

static const gp_frames *frames_of(const port *p)
{
    return p->given ? p->given : &p->taken;
}

static bool has_key(const port *p, int n, const char *key)
{
    const gp_frames *f = frames_of(p);
    while (n && strcmp(f->keys[n - 1], key))
        n--;
    return n;
}

/* Those that neither a port before it nor itself had before. */
static void put_keys(FILE *to, const port *first, const port *p)
{
    const gp_frames *f = frames_of(p);
    for (int k = 0; k < f->nkeys; k++) {
        bool had = has_key(p, k, f->keys[k]);
        for (const port *q = first; q < p && !had; q++)
            had = has_key(q, frames_of(q)->nkeys, f->keys[k]);
        if (!had)
            fprintf(to, "'%s', ", f->keys[k]);
    }
}

/* The stage is in line 1. The others have a priority of their own: then a thread that pushes or pulls does no stage's
 * work, in which it might have to stay. */
static char *text_of(const trial *t, const char *kind, const char *options, size_t *len)
{
    int nin = t->nin, nout = t->nports - nin;
    gp_memfile m;
    if (!gp_memfile_open(&m))
        return NULL;
    fprintf(m.f, "stages: [{name: stage, use: %s", kind);
    put_ports(m.f, "in", nin);
    put_ports(m.f, "out", nout);
    fprintf(m.f, "%s%s},\n", options && *options ? ", " : "", options ? options : "");
    for (int i = 0; i < nin; i++)
        fprintf(m.f, "  {name: given%d, use: input, out: in%d, priority: low},\n", i, i);
    for (int i = 0; i < nout; i++)
        fprintf(m.f, "  {name: taken%d, use: output, in: out%d, priority: low},\n", i, i);
    fputs("]\nbuffers: {", m.f);
    for (int i = 0; i < nin; i++) {
        const gp_type *type = &t->port[i].given->type;
        fprintf(m.f, "in%d: {dtype: %s, shape: [", i, gp_dtype_name(type->dtype));
        for (int k = 0; k < type->ndim; k++)
            fprintf(m.f, "%lld, ", (long long)type->dim[k]);
        fputs("]},\n  ", m.f);
    }
    fputs("}\nmetadata: [", m.f);
    for (int i = 0; i < t->nports; i++)
        put_keys(m.f, t->port, &t->port[i]);
    fputs("]\n", m.f);
    return gp_memfile_close(&m, len);
}

enum { BEHIND = 256 };         /* bytes that are nobody's, behind the slots of a stage on the host */

/* So that it is seen when a stage writes more than its frame has. 'gpipe run --check-kernels' looks at kernels. */
static void put_guards(gp_plan *p)
{
    for (int i = 0; !p->nsegments && p->npools == p->nrings && i < p->npools; i++)
        p->pool[i].guard = BEHIND, p->pool[i].stride += BEHIND;
}

/* So that it is seen what a stage leaves unwritten, in any frame where it is on the host. */
static void look_for_unwritten(gp_pipeline *p, gp_stage *st)
{
    p->tried = true;
    st->writes_all = (st->kind->run || st->kind->record) && !st->fills_device;
}

/* Is it said of each output that is wanted how many frames (`begun`: has it so many)? */
static bool has_enough(const trial *t, bool begun)
{
    bool enough = t->nout > 0;
    for (const port *p = t->port + t->nin; p < t->port + t->nin + t->nout; p++)
        enough &= p->most && (!begun || p->taken.n >= p->most);
    return enough;
}

static bool begin(trial *t, gp_errs *errs)
{
    const gp_graph *g = t->pipeline->graph;
    gp_stage *st = g->stage;
    char name[32];
    while (strcmp(st->name, "stage"))
        st++;
    t->stage = st;
    if (!t->stage->nin && t->stage->endless && !has_enough(t, false))
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "the stage makes frames without end: say how many are wanted");
    for (int i = 0; i < t->nports; i++) {
        port *p = &t->port[i];
        snprintf(name, sizeof name, p->given ? "given%d" : "taken%d", p->given ? i : i - t->nin);
        if (p->given)
            p->in = gp_pipeline_input(t->pipeline, name), p->fd = gp_input_fd(p->in);
        else
            p->out = gp_pipeline_output(t->pipeline, name), p->fd = gp_output_fd(p->out),
            p->taken.type = g->buffer[t->stage->out[i - t->nin]].type;
        if (p->fd < 0)
            return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "no eventfd: %s", gp_strerror(errno));
    }
    put_guards(t->pipeline->plan);
    look_for_unwritten(t->pipeline, st);
    return gp_pipeline_start(t->pipeline, NULL, errs);
}

/* ---- frames ---------------------------------------------------------- */

/* As many as there is room for. */
static gp_loan_status push(port *p)
{
    gp_frames f = *p->given;
    int64_t done, at = p->pushed;
    bool failed;
    if (at == f.n) {
        gp_push_close(p->in);
        return GP_LOAN_END;
    }
    f.n -= at, f.data = (char *)f.data + gp_bytes(&f.type) * (size_t)at;
    f.each = f.each ? f.each + at : NULL, f.time_ns = f.time_ns ? f.time_ns + at : NULL;
    f.meta = f.meta ? f.meta + at * f.nkeys : NULL;
    gp_loan_status status = gp_push_frames(p->in, &f, 0, &done, &failed);
    p->pushed += done;
    return status;
}

static bool is_guarded(trial *t, const port *p, const gp_loan *l)
{
    const unsigned char *data = l->view.data;
    size_t bytes = gp_bytes(&p->taken.type), end = gp_size_round(bytes) + BEHIND, i = bytes;
    if (!t->pipeline->plan->pool->guard)
        return true;
    while (i < end && data[i] == GP_GUARD)
        i++;
    return i == end || gp_fail(&t->errs, GP_E_RUN, t->stage->at, "stage 'stage' wrote behind the end of '%s' in frame "
                               "%llu: byte %zu, and a frame has %zu", t->stage->out_name[p - t->port - t->nin],
                               (unsigned long long)l->index, i, bytes);
}

/* A source whose run() does not end with its last frame would go on for ever. */
static bool may_go_on(trial *t, const port *p, const gp_loan *l)
{
    static const size_t most = (size_t)1 << 28;        /* bytes that are kept */
    int64_t frames = t->stage->known.frames;
    if (t->stage->nin)
        return true;
    if (frames && l->index >= (uint64_t)frames)
        return gp_fail(&t->errs, GP_E_RUN, t->stage->at, "stage 'stage' made more than the %lld frame%s that its "
                       "shape() says (known.frames): run() has to give the next one the status GP_END", (long long)frames,
                       gp_plural(frames));
    return p->most || (size_t)p->taken.n * (gp_bytes(&p->taken.type) + sizeof(gp_type)) <= most
        || gp_fail(&t->errs, GP_E_RUN, t->stage->at, "the stage has made %lld frames, 256 MiB, and goes on: say how "
                   "many are wanted; a source ends by the status GP_END", (long long)p->taken.n);
}

/* Room for one element more than `n`, and for none too. */
static bool grow(void *array, size_t bytes, int64_t n)
{
    void *was, *more;
    memcpy(&was, array, sizeof was);
    more = realloc(was, bytes * ((size_t)n + 1) + 1);
    if (more)
        memcpy(array, &more, sizeof more);
    return more != NULL;
}

/* Frames lie as far apart as whole ones. */
static bool keep(trial *t, port *p, const gp_loan *l)
{
    gp_frames *f = &p->taken;
    size_t bytes = gp_bytes(&f->type);
    int64_t n = f->n;
    if (!grow(&f->data, bytes, n) || !grow(&f->each, sizeof *f->each, n) || !grow(&f->number, sizeof *f->number, n)
        || !grow(&f->time_ns, sizeof *f->time_ns, n) || !grow(&f->meta, sizeof *f->meta * (size_t)f->nkeys, n))
        return gp_fail(&t->errs, GP_E_RESOURCE, t->stage->at, "out of memory");
    char *data = (char *)f->data + bytes * (size_t)n;
    f->each[n] = l->view.type, f->number[n] = l->index, f->time_ns[n] = l->time_ns;
    memset(data, 0, bytes);
    memcpy(data, l->view.data, gp_bytes(&l->view.type));
    gp_loan_numbers(l, f, n);
    f->n++;
    return true;
}

static gp_loan_status pull(trial *t, port *p)
{
    gp_loan l;
    gp_loan_status status = gp_pull_begin(p->out, &l, 0);
    if (status != GP_LOAN_OK)
        return status;
    bool wanted = p < t->port + t->nin + t->nout && (!p->most || p->taken.n < p->most);
    if (wanted && !t->errs.failed)
        (void)(is_guarded(t, p, &l) && may_go_on(t, p, &l) && keep(t, p, &l));
    gp_pull_end(p->out, &l);
    if (t->errs.failed || has_enough(t, true))
        gp_cancel(t->pipeline, 1);
    return status;
}

/* Until no port has a frame any more. */
static void move(trial *t)
{
    struct pollfd wait[2 * GP_MAXPORT];
    for (nfds_t n = 0;; n = 0) {
        for (int i = 0; i < t->nports; i++) {
            port *p = &t->port[i];
            gp_loan_status status = p->over ? GP_LOAN_END : GP_LOAN_OK;
            while (status == GP_LOAN_OK)
                status = p->given ? push(p) : pull(t, p);
            p->over = status != GP_LOAN_TIMEOUT;
            if (!p->over)
                wait[n++] = (struct pollfd){ p->fd, POLLIN, 0 };
        }
        if (!n)
            return;
        poll(wait, n, -1);
    }
}

/* In place of places in the pipeline, which is to be destroyed, those in its text stay. */
static bool run(trial *t, const gp_registry *r, const char *text, size_t len, gp_errs *errs)
{
    static const char file[] = "stage";
    gp_config config = { .registry = r };
    int before = errs->n;
    t->pipeline = gp_compile(text, len, file, &config, errs);
    bool ok = t->pipeline && begin(t, errs);
    if (ok) {
        move(t);
        gp_outcome outcome = gp_pipeline_wait(t->pipeline);
        gp_errs_add(errs, &t->errs);
        ok = (outcome == GP_DONE || outcome == GP_DRAINED) && !t->errs.failed;
    }
    gp_errs_free_places(errs, before, file, NULL, &config);
    gp_pipeline_destroy(t->pipeline);
    return ok;
}

/* ---- for the program ------------------------------------------------- */

static bool is_sound(const gp_frames *f)
{
    bool sound = f->n >= 0 && (f->data || !f->n) && f->type.ndim > 0 && f->type.ndim <= GP_MAXDIM
              && gp_dtype_size(f->type.dtype);
    for (int64_t i = 0; sound && f->each && i < f->n; i++) {
        gp_type whole = f->each[i];
        sound = whole.dim[0] >= 0 && whole.dim[0] <= f->type.dim[0];
        whole.dim[0] = f->type.dim[0];
        sound = sound && gp_type_same(&whole, &f->type);
    }
    return sound;
}

static bool is_finite(const gp_frames *f)
{
    int64_t i = 0, n = f->meta ? f->n * f->nkeys : 0;
    while (i < n && !isinf(f->meta[i]))
        i++;
    return i == n;
}

void gp_frames_free(gp_frames *f)
{
    free(f->data), free(f->each), free(f->number), free(f->time_ns), free(f->meta);
    *f = (gp_frames){ .n = 0 };
}

bool gp_try_stage(const gp_registry *r, const char *kind, const char *options, const gp_frames *in, int nin,
                  gp_frames *out, int nout, gp_errs *errs)
{
    const gp_kind *k = gp_kind_find(r, kind);
    int ports = 0;
    while (k && k->out && k->out[ports].name && strcmp(k->out[ports].name, "*"))
        ports++;
    ports = ports > nout ? ports : nout;
    if (nin < 0 || nin > GP_MAXPORT || nout < 0 || ports > GP_MAXPORT)
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "a stage has at most %d ports of a side", GP_MAXPORT);
    trial t = { .nin = nin, .nout = nout, .nports = nin + ports };
    for (int i = 0; i < nin; i++) {
        t.port[i].given = &in[i];
        if (!is_sound(&in[i]))
            return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "input %d: its frames have no type, or some are not of it "
                           "with fewer rows", i);
        if (!is_finite(&in[i]))
            return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "input %d: a number of its frames is infinite", i);
    }
    for (int i = 0; i < nout; i++) {
        t.port[nin + i].most = out[i].n;
        t.port[nin + i].taken = out[i] = (gp_frames){ .keys = out[i].keys, .nkeys = out[i].nkeys };
    }
    size_t len = 0;
    char *text = text_of(&t, kind, options, &len);
    bool ok = text ? run(&t, r, text, len, errs) : gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    for (int i = 0; i < nout; i++)
        if (ok)
            out[i] = t.port[nin + i].taken;
        else
            gp_frames_free(&t.port[nin + i].taken);
    free(text);
    return ok;
}
