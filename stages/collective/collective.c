/* collective.c - see collective.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collective.h"
#include "communicator.h"
#include "device/libraries.h"

/* By NCCL ranks agree on a round while that before is under way. */
enum { WORKERS = 2 };

/* `dev`: frames lie in its memory; x, y: then, for what goes through the host, room for one of each. */
typedef struct stage {
    const gp_collective *k;
    gp_rounds *rounds;
    gp_dev *dev;
    gp_comm *comm;
    void *x, *y;
    bool finished;
} stage;

/* ---- where it runs --------------------------------------------------- */

/* Why its frames are to be on the host, or NULL; then *text is what the plan says. */
static const char *why_host(gp_shape *s, char text[GP_GPU_TEXT])
{
    bool here;
    int cc = gp_shape_gpu(s, &here);
    gp_errs errs = { .n = 0 };
    const char *reader = gp_shape_host_reader(s);
    enum { WHY = 700 };
    char *why = gp_shape_alloc(s, WHY);
    if (!why || !gp_shape_in_device(s, 0))
        return "no stage makes its frames in the memory of one GPU";
    if (reader)
        snprintf(why, WHY, "stage '%s' reads them on the host", reader);
    else if (s->ranks > 1 && (here || !cc) && !gp_gpu_open(GP_GPU_RANKS, text, "it", (gp_loc){ 0 }, &errs))
        snprintf(why, WHY, "%s", errs.e[0].msg);
    else if (s->ranks > 1 && !cc && !gp_gpu_pretends())
        return "there is no GPU";
    else
        return NULL;
    return why;
}

bool gp_collective_shape(gp_shape *s, const char *unfit, const gp_traffic *traffic)
{
    int by = ((const gp_collective_opts *)s->opts)->by;
    char text[GP_GPU_TEXT], *does;
    if (s->partial)
        return true;
    snprintf(text, sizeof text, "%s", gp_gpu_name(GP_GPU_RANKS));
    const char *why = by == GP_BY_MPI ? "as 'by' says" : unfit ? unfit : why_host(s, text);
    if (why && by == GP_BY_GPU)
        return gp_shape_fail(s, "by", "%s cannot do this: %s", gp_gpu_name(GP_GPU_RANKS), why);
    s->fills_device = s->reads_device = !why;
    s->default_workers = s->ranks > 1 ? WORKERS : 1, s->at_once = GP_COLLECTIVE_RUN / s->default_workers;
    s->round_steps = why ? s->ranks - 1 : traffic->steps;
    s->round_bytes = why ? (double)traffic->mine * s->round_steps : traffic->bytes;
    if (s->ranks == 1 || !(does = gp_shape_alloc(s, 64)))
        return true;
    snprintf(does, 64, "%s", why ? "MPI, on the host" : text);
    s->does = does;
    return true;
}

void gp_collective_all(const void *opts, const gp_rounds *r, const gp_view *x, const char *all, size_t n, gp_view *y)
{
    memcpy(y->data, all, n * (size_t)r->ranks);
}

/* A round costs something however little it sends: more than so few bytes cost. */
void gp_collective_advise(gp_advice *a)
{
    int by = ((const gp_collective_opts *)a->opts)->by;
    enum { FEW_BYTES = 64 * 1024 };
    const char *hint = by == GP_BY_MPI ? ", or leave out 'by: mpi', if they are on a GPU" : "";
    if (gp_bytes(&a->in[0]) < FEW_BYTES)
        snprintf(a->text, sizeof a->text, "exchange more at a time, in larger frames, or several arrays put together "
                 "by 'concat'%s", hint);
    else
        snprintf(a->text, sizeof a->text, "let less be exchanged: crop or reduce frames, or cast them to a smaller "
                 "type, before it%s", hint);
}

/* ---- open, close ----------------------------------------------------- */

bool gp_collective_open(const gp_open *o, void **state)
{
    const gp_collective *k = o->user;
    int by = ((const gp_collective_opts *)o->opts)->by;
    stage *s = calloc(1, sizeof *s);
    char why[160] = "";
    int here = 0;
    if (!(*state = s))
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name);
    s->k = k;
    s->rounds = gp_rounds_open(o, k->most ? k->most(o->opts, &o->in[0]) : gp_bytes(&o->in[0]), k->some);
    s->dev = o->dev;
    if (!s->rounds || by == GP_BY_MPI || o->ranks == 1)
        return s->rounds != NULL;
    const bool mine = s->dev != NULL, *all = gp_open_gather(o, &mine, sizeof mine);
    for (int r = 0; all && r < o->ranks; r++)      /* machines may differ */
        here += all[r];
    if (!all || !s->dev)
        return all != NULL;
    s->x = malloc(gp_bytes(&o->in[0]) + 1), s->y = malloc(gp_bytes(&o->out[0]) + 1);
    if (!s->x || !s->y)
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name);
    int before = o->errs->failed;
    if (here < o->ranks)
        return true;
    s->comm = gp_comm_open(o, why);
    if (s->comm || !*why)
        return s->comm != NULL && o->errs->failed == before;
    if (by == GP_BY_GPU)
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': %s", o->name, why);
    if (!o->rank)
        gp_fail(o->errs, GP_E_WARN, o->at, "stage '%s' sends through the memory of the host, by MPI: %s", o->name, why);
    return true;
}

void gp_collective_close(void *state)
{
    stage *s = state;
    if (!s)
        return;
    gp_comm_close(s->comm, s->finished);
    gp_rounds_close(s->rounds);
    free(s->x), free(s->y);
    free(s);
}

/* ---- run ------------------------------------------------------------- */

typedef struct doing { const gp_collective *k; const void *opts; const gp_rounds *r; const gp_frame *f; int n; } doing;

static bool before(gp_dcall *d, const void *arg)
{
    const doing *w = arg;
    bool ok = true;
    for (int i = 0; ok && i < w->n; i++) {
        const gp_view *x = &w->f[i].in[0], *y = &w->f[i].out[0];
        ok = w->k->before ? w->k->before(d, w->opts, w->r, x, y)
           : w->r->ranks > 1 || gp_copy(d, y->data, x->data, gp_bytes(&x->type));
    }
    return ok;
}

static bool alone(gp_dcall *d, void *arg)
{
    return before(d, arg);
}

static int queue(void *comm, void *stream, const void *arg)
{
    const doing *w = arg;
    int status = 0;
    for (int i = 0; !status && i < w->n; i++) {
        if ((status = gp_gpu.ranks.group_start()))
            break;
        status = w->k->queue(w->opts, w->r, &w->f[i].in[0], &w->f[i].out[0], comm, stream);
        int ended = gp_gpu.ranks.group_end();
        status = status ? status : ended;
    }
    return status;
}

typedef struct copy { void *to; const void *from; size_t bytes; } copy;

static bool copy_it(gp_dcall *d, void *arg)
{
    const copy *w = arg;
    return gp_copy(d, w->to, w->from, w->bytes);
}

/* The round of a frame whose views are of the host's memory. */
static gp_status through_mpi(gp_call *c, const gp_collective *k, gp_rounds *r, const gp_view *x, gp_view *y)
{
    size_t n = gp_bytes(&r->alike);
    const void *mine = !x->data ? r->mine : k->mine ? k->mine(c->opts, r, x, &n) : x->data;
    const char *all = gp_gather(c, mine, n);
    if (!all)
        return GP_STOPPED;
    if (k->elsewhere && k->elsewhere(c->opts, r))
        return GP_ABSENT;
    k->make(c->opts, r, x, all, n, y);
    return GP_OK;
}

static gp_status through_host(gp_call *c, const gp_collective *k, stage *s, const gp_view *x, gp_view *y)
{
    copy in = { s->x, x->data, gp_bytes(&x->type) }, out = { y->data, s->y, 0 };
    gp_view here = *x, made = *y;
    here.data = x->data ? s->x : NULL, made.data = s->y;
    if (x->data && !gp_device_do(c, copy_it, &in))
        return GP_FAILED;
    gp_status status = through_mpi(c, k, s->rounds, &here, &made);
    y->type = made.type, out.bytes = gp_bytes(&y->type);
    return status != GP_OK ? status : gp_device_do(c, copy_it, &out) ? GP_OK : GP_FAILED;
}

/* By NCCL, whose turn is passed on before it is done: `r` is of another round then. */
static gp_status through_gpu(gp_call *c, gp_frame *f, const doing *what)
{
    const gp_collective *k = what->k;
    const stage *s = c->state;
    gp_comm_work work = { what->n, before, queue, what };
    gp_type makes = k->makes ? k->makes(&what->r->alike) : what->r->alike;
    bool elsewhere = k->elsewhere && k->elsewhere(c->opts, what->r);
    if (!gp_comm_do(c, s->comm, &work))
        return GP_STOPPED;
    for (int i = 0; i < what->n; i++)
        if (k->makes || !f[i].in[0].data)
            f[i].out[0].type = makes;
    return elsewhere ? GP_ABSENT : GP_OK;
}

/* The first rounds of n frames. Returns of how many; 0: none, with an error that is no frame's alone, as the ranks
 * had agreed to do it. */
static int do_some(gp_call *c, gp_frame *f, int n)
{
    stage *s = c->state;
    const gp_collective *k = s->k;
    gp_rounds *r = s->rounds;
    gp_type alike = f->in[0].type;
    if (k->rows)
        alike.dim[0] = k->rows(c->opts);
    int was = c->errs->failed;
    f->status = gp_round(c, r, f, n, &alike);
    if (f->status != GP_OK)
        return f->status != GP_STOPPED || c->errs->failed == was;
    doing what = { k, c->opts, r, f, r->many };
    bool one = s->dev && r->ranks == 1, by_gpu = s->comm && r->ended < 0;
    gp_status all = by_gpu ? through_gpu(c, f, &what)
                  : one && !gp_device_do(c, alone, &what) ? GP_FAILED : GP_OK;
    for (int i = 0; i < what.n; i++)
        f[i].status = one || by_gpu ? all
                    : s->dev ? through_host(c, k, s, &f[i].in[0], &f[i].out[0])
                             : through_mpi(c, k, r, &f[i].in[0], &f[i].out[0]);
    return c->errs->failed == was ? what.n : 0;
}

bool gp_collective_run(gp_call *c, gp_frame *f, int n)
{
    int done = do_some(c, f, n);
    if (done && done < n)              /* these are handed on first: what is behind may wait for them on another rank */
        f[done].status = GP_AGAIN;
    return done > 0;
}

bool gp_collective_record(gp_dcall *d)
{
    static const gp_rounds alone = { .ranks = 1 };
    const gp_collective *k = d->user;
    gp_view x = *d->in, y = *d->out;
    if (!k->before)
        return gp_copy_frames(d, &y, &x);
    for (int i = 0; i < d->n; i++, x.data = (char *)x.data + x.stride, y.data = (char *)y.data + y.stride)
        if (!k->before(d, d->opts, &alone, &x, &y))
            return false;
    return true;
}

bool gp_collective_skipped(gp_call *c, uint64_t index)
{
    const stage *s = c->state;
    return gp_round_skip(c, s->rounds, index);
}

bool gp_collective_finish(gp_call *c)
{
    stage *s = c->state;
    bool ok = gp_rounds_finish(c, s->rounds);
    s->finished = ok && !gp_cancelled(c);
    return ok;
}
