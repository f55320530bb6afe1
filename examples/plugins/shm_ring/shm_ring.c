/* shm_ring.c - a plug-in with a sink, shm_write, and a source, shm_read: frames between processes by a ring of slots in
 * shared memory, the file /dev/shm/NAME. ring.py has both sides in Python.
 *
 * One writer overwrites the oldest frame and waits for nobody; any number of readers copy what they find. Frame n is in
 * slot n mod `slots`. A slot's `seq` is 2n + 1 while frame n is being written and 2n + 2 once it is whole: a reader
 * that finds another number, before it copies or after, was too slow, and goes on in the middle of the ring.
 *
 * A writer has a lock (flock) on the file, which goes when it dies: the next one goes on where it was, and readers wait
 * for that. A reader leaves no trace. The file stays until somebody removes it. */
#include <errno.h>
#include <fcntl.h>
#include <gpipe/stage.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x0031676e69727067)     /* "gpring1" */

/* All integers are of the machine. The slots begin at 256, `stride` bytes apart. */
typedef struct ring {
    _Atomic uint64_t magic;            /* 0 while the ring is being made */
    char dtype[8];                     /* "f32", with 0 behind */
    int64_t ndim, dim[GP_MAXDIM];
    uint64_t slots, stride;
    _Atomic uint64_t next;             /* frames that were written */
    _Atomic uint64_t ended;            /* the writer has come to its end */
} ring;

typedef struct slot {
    _Atomic uint64_t seq;
    int64_t time_ns, rows;             /* CLOCK_REALTIME; axis 0 of this frame */
    char pad[40], data[];
} slot;

enum { SLOTS_AT = 256, MOST_SLOTS = 65536 };
_Static_assert(sizeof(ring) <= SLOTS_AT && sizeof(slot) == 64, "ring.py has these sizes");

struct opts { const char *ring; int64_t slots, frames; };      /* of both; of the sink; of the source */
enum { LOOKS_NS = 1000000 };           /* so often a reader looks for a frame */

struct state {
    int fd;
    ring *r;
    size_t size;
    uint64_t frame, lost;              /* of a reader: the next, and how many it was too slow for */
};

static slot *slot_of(const ring *r, uint64_t frame)
{
    return (slot *)((char *)r + SLOTS_AT + frame % r->slots * r->stride);
}

/* The type of its frames; false: a file of `size` bytes that begins so is no ring. */
static bool type_of(const ring *r, size_t size, gp_type *t)
{
    if (size < SLOTS_AT || r->magic != MAGIC || r->dtype[7] || r->ndim < 1 || r->ndim > GP_MAXDIM)
        return false;
    *t = (gp_type){ .dtype = gp_dtype_parse(r->dtype), .ndim = (int)r->ndim };
    memcpy(t->dim, r->dim, sizeof t->dim);
    return t->dtype && r->slots && r->slots <= MOST_SLOTS && r->stride % 256 == 0
        && r->stride <= (size - SLOTS_AT) / r->slots && sizeof(slot) + gp_bytes(t) <= r->stride;
}

static bool map(struct state *st, size_t size, int access)
{
    void *at = mmap(NULL, size, access, MAP_SHARED, st->fd, 0);
    st->size = size, st->r = at == MAP_FAILED ? NULL : at;
    return st->r;
}

static void leave(struct state *st)
{
    if (st->r)
        munmap(st->r, st->size);
    if (st->fd >= 0)
        close(st->fd);
    st->r = NULL, st->fd = -1;
}

static bool is_named(gp_shape *s)
{
    const char *name = ((const struct opts *)s->opts)->ring;
    return (*name && *name != '.' && !strchr(name, '/') && strlen(name) < 200)
        || gp_shape_fail(s, "ring", "'%s' is not the name of a file in /dev/shm", name);
}

static bool open_stage(const gp_open *o, void **state)
{
    struct state *st = *state = calloc(1, sizeof *st);
    if (st)
        st->fd = -1;
    return st || gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name);
}

static void close_stage(void *state)
{
    if (state)
        leave(state);
    free(state);
}

/* ---- shm_write ------------------------------------------------------- */

static bool write_shape(gp_shape *s)
{
    s->serial = s->any_length = true;
    return s->partial || is_named(s);
}

/* Opens the ring whose lock it has. It makes one where there is none, or where another writer died when it made one of
 * this size. The memory is had at once: else a writer would fault where there is no more. */
static bool map_or_make(struct state *st, int64_t slots, const gp_type *t)
{
    size_t stride = (sizeof(slot) + gp_bytes(t) + 255) / 256 * 256, size = SLOTS_AT + (size_t)slots * stride;
    uint64_t magic = 0;
    struct stat is;
    if (fstat(st->fd, &is) || pread(st->fd, &magic, sizeof magic, 0) < 0)
        return false;
    if (magic || (is.st_size && (size_t)is.st_size != size))
        return map(st, (size_t)is.st_size, PROT_READ | PROT_WRITE);
    if ((errno = posix_fallocate(st->fd, 0, (off_t)size)) || !map(st, size, PROT_READ | PROT_WRITE))
        return false;
    *st->r = (ring){ .ndim = t->ndim, .slots = (uint64_t)slots, .stride = stride };
    strcpy(st->r->dtype, gp_dtype_name(t->dtype));
    memcpy(st->r->dim, t->dim, sizeof t->dim);
    atomic_store_explicit(&st->r->magic, MAGIC, memory_order_release);
    return true;
}

/* False: somebody else has it. What a process that was killed had locked is free once the last of its memory is given
 * back, which may be some time after it was waited for. */
static bool lock(int fd)
{
    enum { TRIES = 100 };
    bool busy = true;
    for (int i = 0; i < TRIES && busy; i++) {
        if (i)
            nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
        busy = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    }
    return !busy;
}

static bool write_open(const gp_open *o, void **state)
{
    const struct opts *w = o->opts;
    gp_type t;
    if (!open_stage(o, state))
        return false;
    struct state *st = *state;
    st->fd = shm_open(w->ring, O_RDWR | O_CREAT, 0666);
    if (st->fd >= 0 && !lock(st->fd))
        return gp_fail(o->errs, GP_E_RUN, o->at, "stage '%s': another stage or process writes /dev/shm/%s", o->name,
                       w->ring);
    if (st->fd < 0 || !map_or_make(st, w->slots, &o->in[0]))
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': /dev/shm/%s cannot be made or opened: %s", o->name,
                       w->ring, strerror(errno));
    if (!type_of(st->r, st->size, &t) || !gp_type_same(&t, &o->in[0]) || st->r->slots != (uint64_t)w->slots)
        return gp_fail(o->errs, GP_E_RUN, o->at, "stage '%s': /dev/shm/%s is there, and no ring of %lld such frames: "
                       "remove it, or take another name", o->name, w->ring, (long long)w->slots);
    atomic_store(&st->r->ended, 0);
    return true;
}

static bool write_run(gp_call *c, gp_frame *f, int n)
{
    ring *r = ((struct state *)c->state)->r;
    uint64_t frame = atomic_load(&r->next);
    slot *s = slot_of(r, frame);
    (void)n;
    atomic_store_explicit(&s->seq, 2 * frame + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    s->time_ns = f->time_ns, s->rows = f->in[0].type.dim[0];
    memcpy(s->data, f->in[0].data, gp_bytes(&f->in[0].type));
    atomic_store_explicit(&s->seq, 2 * frame + 2, memory_order_release);
    atomic_store_explicit(&r->next, frame + 1, memory_order_release);
    return true;
}

static bool write_finish(gp_call *c)
{
    atomic_store(&((struct state *)c->state)->r->ended, 1);
    return true;
}

/* ---- shm_read -------------------------------------------------------- */

/* The type is what the pipeline declares, or else that of the ring. */
static bool read_shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    ring r = { .slots = 0 };
    char *path = gp_shape_alloc(s, strlen(o->ring) + sizeof "/dev/shm/");
    s->endless = !o->frames, s->writes_all = true;
    if (!is_named(s))
        return false;
    if (s->out[0].dtype && s->out[0].ndim)
        return true;
    const gp_file *f = gp_probe_file(s, strcat(strcpy(path, "/dev/shm/"), o->ring));
    if (f && !f->error)
        memcpy(&r, f->head, f->nhead < sizeof r ? f->nhead : sizeof r);
    return (f && !f->error && type_of(&r, (size_t)f->size, &s->out[0]))
        || gp_shape_fail(s, "ring", "there is no ring %s: start what writes it first, or declare dtype and shape "
                         "of '%s' under 'buffers:'", path, s->out_name[0]);
}

/* From the oldest frame on that is whole. 1; 0: there is no ring yet; -1: it is none of such frames. */
static int join(struct state *st, const char *name, const gp_type *want)
{
    uint64_t magic = 0;
    struct stat is;
    gp_type t;
    st->fd = shm_open(name, O_RDONLY, 0);
    if (st->fd < 0 || fstat(st->fd, &is) || pread(st->fd, &magic, sizeof magic, 0) < (ssize_t)sizeof magic || !magic)
        return leave(st), 0;
    if (!map(st, (size_t)is.st_size, PROT_READ) || !type_of(st->r, st->size, &t) || !gp_type_same(&t, want))
        return -1;
    uint64_t next = atomic_load_explicit(&st->r->next, memory_order_acquire);
    st->frame = next > st->r->slots ? next - st->r->slots : 0;
    st->frame += st->frame < next && atomic_load(&slot_of(st->r, st->frame)->seq) != 2 * st->frame + 2;
    return 1;
}

/* Frame st->frame, copied. False: it is not there any more, also where it was overwritten meanwhile. */
static bool copy(struct state *st, gp_frame *f)
{
    const slot *s = slot_of(st->r, st->frame);
    gp_view *v = &f->out[0];
    if (atomic_load_explicit(&s->seq, memory_order_acquire) != 2 * st->frame + 2)
        return false;
    int64_t rows = s->rows;
    if (rows < 0 || rows > v->rows)
        return false;
    f->time_ns = s->time_ns, v->type.dim[0] = rows;
    memcpy(v->data, s->data, gp_bytes(&v->type));
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&s->seq, memory_order_relaxed) == 2 * st->frame + 2;
}

/* It goes on half a ring behind the writer, so that it is not too slow at once again. */
static void pass_lost(gp_call *c, struct state *st, uint64_t next)
{
    uint64_t was = st->frame++, half = st->r->slots / 2;
    st->frame = next > half + st->frame ? next - half : st->frame;
    st->lost += st->frame - was;
    gp_source_dropped(c, st->frame - was);
}

static bool end(gp_call *c, gp_frame *f, gp_status how)
{
    const struct state *st = c->state;
    if (st->lost)
        gp_fail(c->errs, GP_E_WARN, c->at, "stage '%s': %" PRIu64 " frames of /dev/shm/%s were overwritten before they "
                "were read", c->name, st->lost, ((const struct opts *)c->opts)->ring);
    f->status = how;
    return true;
}

static bool read_run(gp_call *c, gp_frame *f, int n)
{
    const struct opts *o = c->opts;
    struct state *st = c->state;
    struct timespec now;
    struct stat is;
    (void)n;
    while (!o->frames || f->index < (uint64_t)o->frames) {
        int there = st->r ? 1 : join(st, o->ring, &f->out[0].type);
        if (there < 0)
            return gp_fail(c->errs, GP_E_RUN, c->at, "stage '%s': /dev/shm/%s is no ring, or one of other frames",
                           c->name, o->ring);
        bool ended = there && atomic_load(&st->r->ended);      /* before it is seen how many frames there are */
        uint64_t next = there ? atomic_load_explicit(&st->r->next, memory_order_acquire) : 0;
        double number = (double)st->frame;
        if (st->frame < next && copy(st, f))
            return gp_meta_set(c, f, "sequence", &number), st->frame++, true;
        if (st->frame < next) {
            pass_lost(c, st, next);
            continue;
        }
        if (ended)
            break;
        if (there && !fstat(st->fd, &is) && !is.st_nlink)
            leave(st);                 /* somebody removed it: the next one is another */
        clock_gettime(CLOCK_MONOTONIC, &now);
        f->status = gp_wait_or_pause(c, -1, now.tv_sec * INT64_C(1000000000) + now.tv_nsec + LOOKS_NS);
        if (f->status != GP_OK)        /* the run ends, or settings change */
            return f->status == GP_AGAIN || end(c, f, f->status);
    }
    return end(c, f, GP_END);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames of any type" }, { 0 } };
static const gp_port out[] = { { .name = "out", .help = "frames as the ring has them" }, { 0 } };
#define RING { GP_TEXT(struct opts, ring), .required = true, .help = "its name, of a file in /dev/shm" }
static const gp_opt write_opts[] = {
    RING,
    { GP_INT(struct opts, slots), .def = "8", .min = 2, .max = MOST_SLOTS, .help = "frames that the ring holds" },
    { 0 } };
static const gp_opt read_opts[] = {
    RING,
    { GP_INT(struct opts, frames), .def = "0", .min = 0, .max = 1e15, .help = "how many; 0: until the writer ends" },
    { 0 } };
#define BOTH .field = "files", .opts_size = sizeof(struct opts), .close = close_stage
static const gp_kind writer = {
    GP_KIND("shm_write"), .help = "frames to other processes, by shared memory", .also = "shmsink", .in = in,
    .opts = write_opts, .shape = write_shape, .open = write_open, .run = write_run, .finish = write_finish, BOTH };
static const gp_kind reader = {
    GP_KIND("shm_read"), .help = "frames of another process, by shared memory", .also = "shmsrc", .out = out,
    .opts = read_opts, .shape = read_shape, .open = open_stage, .run = read_run, BOTH };

GP_PLUGIN("shm_ring", "1.0", &writer, &reader);
