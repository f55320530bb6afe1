/* gpu.c - JPEG files to pictures in the GPU's memory, by the library that there is for it, nvJPEG.
 *
 * A worker has several frames and gives them to nvJPEG as one batch. What its batches do not take, as progressive
 * files, it decodes one by one with a CPU's help; and what nvJPEG does not decode as libjpeg does (files of arithmetic
 * codes, whose colors are RGB or CMYK, that have faults, or are not JPEG), or is gray and becomes RGB, the CPU's
 * decoder does, whose picture is copied. What is to be turned is decoded aside, and then put where it belongs by a
 * kernel; there is room for a few of them in a batch. Which of them a file goes to follows from its bytes alone, never
 * from what is beside it in a batch: so the pictures do not depend on workers and depths. A batch that fails is done
 * again one by one, to find out which of its files is wrong, or because one needs less memory. A file that fails by
 * itself for lack of memory, or as the device does, ends the run, if nothing is wrong with it.
 *
 * A frame that fails is the first of its call: those before it are handed on, it and those after it come again. */
#include <stdlib.h>
#include <string.h>
#include "decode.h"
#include "device.h"
#include "device/libraries.h"

typedef enum way { BATCH, ALONE, BY_CPU } way;
enum { ASIDE = 4 };                    /* pictures that are to be turned, in a batch */

typedef struct worker {
    void *batch, *one, *parser;            /* nvJPEG's */
    way way[GP_DECODE_AT_ONCE];            /* of each frame */
    gp_jpeg_is is[GP_DECODE_AT_ONCE];      /* of one that the CPU decodes, its type alone */
    const unsigned char *file[GP_DECODE_AT_ONCE];      /* of those in the batch; */
    size_t bytes[GP_DECODE_AT_ONCE];
    gp_gpu_image to[GP_DECODE_AT_ONCE];
    int in_batch;
    unsigned char *aside;                  /* device memory for ASIDE pictures; */
    gp_frame *turned[ASIDE];               /* those that are in it */
    const gp_jpeg_is *how[ASIDE];
    int nturned;
    int status;
    unsigned char *room;                   /* of host memory, for a picture */
} worker;

struct gp_decode_gpu {
    const gp_decode_opts *o;
    gp_type most;
    int format;
    gp_dev *dev;
    void *batches, *singles;               /* nvJPEG's handles */
    worker *worker;
    int workers;
    int status;                            /* of opening */
};
typedef gp_decode_gpu decoder;

/* ---- open, close ----------------------------------------------------- */

/* The bytes from one picture aside to the next. */
static size_t slot(const decoder *d)
{
    return (gp_bytes(&d->most) + 255) & ~(size_t)255;
}

/* With the device as the current one. */
static void make_handles(void *arg)
{
    decoder *d = arg;
    int who = d->o->by == GP_DECODER_HARDWARE ? GP_GPU_HARDWARE : GP_GPU_ALL;
    d->status = gp_gpu.jpeg.create(who, NULL, NULL, 0, &d->batches);
    if (!d->status)
        d->status = gp_gpu.jpeg.create(GP_GPU_HYBRID, NULL, NULL, 0, &d->singles);
    for (int i = 0; !d->status && i < d->workers; i++) {
        worker *w = &d->worker[i];
        d->status = gp_gpu.jpeg.state_create(d->batches, &w->batch);
        d->status = d->status ? d->status : gp_gpu.jpeg.state_create(d->singles, &w->one);
        d->status = d->status ? d->status : gp_gpu.jpeg.parser_create(d->batches, &w->parser);
    }
}

static void drop_handles(void *arg)
{
    decoder *d = arg;
    for (int i = 0; i < d->workers; i++) {
        worker *w = &d->worker[i];
        if (w->parser)
            gp_gpu.jpeg.parser_destroy(w->parser);
        if (w->one)
            gp_gpu.jpeg.state_destroy(w->one);
        if (w->batch)
            gp_gpu.jpeg.state_destroy(w->batch);
    }
    if (d->singles)
        gp_gpu.jpeg.destroy(d->singles);
    if (d->batches)
        gp_gpu.jpeg.destroy(d->batches);
}

void gp_decode_gpu_close(gp_decode_gpu *d)
{
    if (!d)
        return;
    if (d->batches)
        gp_device_call(d->dev, drop_handles, d);
    for (int i = 0; d->worker && i < d->workers; i++) {
        free(d->worker[i].room);
        gp_device_free(d->dev, d->worker[i].aside, ASIDE * slot(d));
    }
    free(d->worker);
    free(d);
}

static bool why_not_open(const gp_open *g, const decoder *d)
{
    bool lacks = d->o->by == GP_DECODER_HARDWARE && !d->batches;
    return gp_gpu_fail(GP_GPU_JPEG, d->status, g->errs, GP_E_RESOURCE, d->o->at, g->name, !lacks ? "cannot be set up"
                       : d->status == GP_GPU_NO_DECODER ? "finds no JPEG decoder in this GPU"
                       : "finds no JPEG decoder in this GPU, or none that this process may use",
                       lacks ? ": set 'decoder: cuda'" : ": set 'decoder: cpu'");
}

bool gp_decode_gpu_open(const gp_open *g, gp_decode_gpu **made)
{
    const gp_decode_opts *o = g->opts;
    decoder *d = calloc(1, sizeof *d);
    bool ok = (*made = d) != NULL;
    if (ok) {
        d->o = o, d->most = g->out[0], d->dev = g->dev, d->workers = g->workers;
        d->format = d->most.ndim == 3 ? GP_GPU_RGBI : GP_GPU_Y;
        ok = (d->worker = calloc((size_t)g->workers, sizeof *d->worker)) != NULL;
    }
    for (int i = 0; ok && i < g->workers; i++)
        ok = (d->worker[i].room = malloc(gp_bytes(&d->most))) != NULL;
    if (!ok)
        return gp_fail(g->errs, GP_E_RESOURCE, g->at, "stage '%s': out of memory", g->name);
    for (int i = 0; i < g->workers && o->orientation == GP_UPRIGHT; i++)
        if (!(d->worker[i].aside = gp_device_alloc(g->dev, ASIDE * slot(d), g->errs)))
            return false;
    if (!gp_gpu_open(GP_GPU_JPEG, NULL, gp_gpu_name(GP_GPU_JPEG), o->at, g->errs))
        return false;
    return gp_device_call(g->dev, make_handles, d) && (!d->status || why_not_open(g, d));
}

/* ---- which way ------------------------------------------------------- */

/* How frame i of the call is decoded, by what its file says. */
static bool look(decoder *d, worker *w, gp_frame *f, int i, char why[GP_WHY])
{
    const gp_view *in = &f->in[0];
    const unsigned char *file = in->data;
    size_t n = gp_bytes(&in->type);
    gp_jpeg_is *is = &w->is[i];
    unsigned width = 0, height = 0, colors = 0;
    int refuses = 1;
    w->way[i] = BY_CPU;
    if (n < 3 || memcmp(file, "\xff\xd8\xff", 3)) {
        if (!gp_picfile_head(&d->o->how, f->name ? f->name : "", file, n, &is->type, why))
            return false;
    } else if (!gp_jpeg_look(file, n, &d->o->how, is, why)) {
        return false;
    } else if (is->plain && is->huffman && !is->rgb && is->stored.ndim == is->type.ndim
               && !gp_gpu.jpeg.parse(d->batches, file, n, w->parser)
               && !gp_gpu.jpeg.size(w->parser, &width, &height) && !gp_gpu.jpeg.colors(w->parser, &colors)) {
        bool same = height == is->stored.dim[0] && width == is->stored.dim[1] && colors == (is->stored.ndim == 3 ? 3 : 1);
        if (!same)
            return gp_why(why, "is a broken JPEG file: it has two headers");
        w->way[i] = !gp_gpu.jpeg.batch_refuses(d->batches, w->parser, &refuses) && !refuses ? BATCH : ALONE;
    }
    return gp_decode_take(d->o, &f->out[0], &d->most, &is->type, why);
}

/* ---- decoding -------------------------------------------------------- */

/* Where nvJPEG puts frame i: one that is to be turned aside, if there is room. */
static bool place(decoder *d, worker *w, gp_frame *f, int i, gp_gpu_image *to)
{
    const gp_jpeg_is *is = &w->is[i];
    unsigned char *at = f[i].out[0].data;
    if (is->turned && w->nturned == ASIDE)
        return false;
    if (is->turned) {
        at = w->aside + (size_t)w->nturned * slot(d);
        w->turned[w->nturned] = &f[i], w->how[w->nturned++] = is;
    }
    *to = (gp_gpu_image){ .channel = { at },
                             .pitch = { (size_t)is->stored.dim[1] * (size_t)(is->stored.ndim == 3 ? 3 : 1) } };
    return true;
}

/* Queues putting what is aside where it belongs. */
static bool queue_turns(gp_dcall *c, const decoder *d, const worker *w)
{
    for (int k = 0; k < w->nturned; k++) {
        const gp_jpeg_is *is = w->how[k];
        const unsigned char *from = w->aside + (size_t)k * slot(d);
        long long width = is->stored.dim[1], height = is->stored.dim[0];
        long long origin = is->turn.origin, right = is->turn.right, down = is->turn.down;
        int colors = is->stored.ndim == 3 ? 3 : 1;
        if (!gp_launch_map(c, "turn_u8", width * height,
                           GP_ARGS(&w->turned[k]->out[0].data, &from, &width, &height, &colors, &origin, &right,
                                   &down)))
            return false;
    }
    return true;
}

typedef struct job {
    decoder *d;
    worker *w;
    gp_frame *f;               /* NULL: the batch */
} job;

static bool call_batch(void *stream, const void *arg, gp_errs *errs)
{
    const job *j = arg;
    worker *w = j->w;
    (void)errs;                        /* the status says which frames are to be tried alone */
    w->status = gp_gpu.jpeg.batch_begin(j->d->batches, w->batch, w->in_batch, 1, j->d->format);
    if (!w->status)
        w->status = gp_gpu.jpeg.batch(j->d->batches, w->batch, w->file, w->bytes, w->to, stream);
    return true;
}

static bool call_alone(void *stream, const void *arg, gp_errs *errs)
{
    const job *j = arg;
    const gp_view *in = &j->f->in[0];
    worker *w = j->w;
    w->status = gp_gpu.jpeg.decode(j->d->singles, w->one, in->data, gp_bytes(&in->type), j->d->format, &w->to[0],
                                   stream);
    return true;
}

static bool queue_files(gp_dcall *c, void *arg)
{
    const job *j = arg;
    return gp_call_library(c, j->f ? call_alone : call_batch, j, sizeof *j) && (j->w->status || queue_turns(c, j->d, j->w));
}

static bool queue_copy(gp_dcall *c, void *arg)
{
    const job *j = arg;
    const gp_view *v = &j->f->out[0];
    return gp_copy(c, v->data, j->w->room, gp_bytes(&v->type));
}

/* Gives the frames [*from, n) that go so to nvJPEG as one batch, up to those that are to be turned and have no room;
 * *from is then the first that is left. False: the device failed. */
static bool decode_batch(gp_call *c, decoder *d, worker *w, gp_frame *f, int *from, int n)
{
    job j = { d, w, NULL };
    w->in_batch = w->nturned = 0, w->status = 0;
    for (; *from < n; ++*from) {
        if (w->way[*from] != BATCH)
            continue;
        if (!place(d, w, f, *from, &w->to[w->in_batch]))
            break;
        w->file[w->in_batch] = f[*from].in[0].data;
        w->bytes[w->in_batch++] = gp_bytes(&f[*from].in[0].type);
    }
    return !w->in_batch || gp_device_do(c, queue_files, &j);
}

static bool machine_failed(gp_call *c, const decoder *d, int status)
{
    return gp_gpu_fail(GP_GPU_JPEG, status, c->errs, GP_E_RESOURCE, d->o->at, c->name, "failed",
                       ": lower 'workers' or a depth, or set 'decoder: cpu'");
}

static void renew_batch(void *arg)
{
    const job *j = arg;
    gp_gpu.jpeg.state_destroy(j->w->batch);
    j->w->batch = NULL;
    j->w->status = gp_gpu.jpeg.state_create(j->d->batches, &j->w->batch);
}

/* The state that a batch leaves that failed is not for the next. */
static bool renew(gp_call *c, decoder *d, worker *w)
{
    job j = { d, w, NULL };
    if (!gp_device_call(d->dev, renew_batch, &j))
        return gp_fail(c->errs, GP_E_RESOURCE, d->o->at, "stage '%s': %s cannot be set up again: set 'decoder: cpu'",
                       c->name, gp_gpu_name(GP_GPU_JPEG));
    return !w->status || machine_failed(c, d, w->status);
}

/* Does the status say something of the file, and not of the machine? Then it is always the same. */
static bool is_of_file(int status)
{
    return status == GP_GPU_BAD_JPEG || status == GP_GPU_JPEG_UNKNOWN || status == GP_GPU_JPEG_NOT_DONE
        || status == GP_GPU_JPEG_CUT;
}

/* nvJPEG does not decode frame f: `why` has what is wrong with its file. If the status does not tell, the CPU does,
 * which notices all that is wrong with a file. False: nothing is, and the machine failed. */
static bool is_wrong(gp_call *c, const decoder *d, const worker *w, const gp_frame *f, int status, char why[GP_WHY])
{
    const gp_view *in = &f->in[0];
    char buf[GP_GPU_TEXT];
    if (!is_of_file(status))
        return !gp_picfile_decode(&d->o->how, f->name ? f->name : "", in->data, gp_bytes(&in->type), &f->out[0].type,
                                  w->room, why)
            || machine_failed(c, d, status);
    gp_why(why, "is a JPEG file that %s does not decode (%s)", gp_gpu_name(GP_GPU_JPEG),
           gp_gpu_status(GP_GPU_JPEG, status, buf));
    return true;
}

/* Frame i by itself; what not even a batch of it alone takes, as nvJPEG decodes what batches refuse. *ok: it is done,
 * else with why not. False: the machine failed. */
static bool decode_one(gp_call *c, decoder *d, worker *w, gp_frame *f, int i, bool *ok, char why[GP_WHY])
{
    job j = { d, w, &f[i] };
    *ok = true;
    if (w->way[i] == BY_CPU) {
        *ok = gp_decode_by_cpu(c, &f[i], w->room, why);
        return !*ok || gp_device_do(c, queue_copy, &j);
    }
    if (w->way[i] == BATCH && !decode_batch(c, d, w, f, &(int){ i }, i + 1))
        return false;
    if (w->way[i] == BATCH && !w->status)
        return true;
    int status = w->status;
    if (w->way[i] == BATCH && !renew(c, d, w))
        return false;
    if (w->way[i] == ALONE || is_of_file(status)) {
        w->nturned = 0;
        place(d, w, f, i, &w->to[0]);
        if (!gp_device_do(c, queue_files, &j))
            return false;
        status = w->status;
    }
    *ok = !status;
    return *ok || is_wrong(c, d, w, &f[i], status, why);
}

bool gp_decode_gpu_run(gp_decode_gpu *d, gp_call *c, gp_frame *f, int n)
{
    worker *w = &d->worker[c->worker];
    char why[GP_WHY];
    int done = 0, most = n < GP_DECODE_AT_ONCE ? n : GP_DECODE_AT_ONCE;
    bool ok = true;
    while (done < most && (ok = look(d, w, &f[done], done, why)))
        done++;
    int batched = 0;                       /* those before are done, if a batch takes them */
    w->status = 0;
    for (int next = 0; batched < done; batched = next) {
        if (!decode_batch(c, d, w, f, &next, done))
            return false;
        if (w->status)
            break;
    }
    if (w->status && !renew(c, d, w))
        return false;
    for (int i = 0, all = done; i < all; i++) {
        if (w->way[i] == BATCH && i < batched)
            continue;
        gp_working_on(c, f[i].index);
        if (!decode_one(c, d, w, f, i, &ok, why))
            return false;
        if (!ok)
            all = done = i;
    }
    if (!done)
        gp_decode_fail(c, f, why), done = 1;
    for (int i = done; i < n; i++)
        f[i].status = GP_AGAIN;
    return true;
}
