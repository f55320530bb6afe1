/* v4l2.c - a plug-in with a source, v4l2: frames of a camera, by V4L2's streaming with buffers that are mapped.
 *
 * A frame has the bytes that the camera sends, in rows without gaps. It has the time at which the camera's driver got
 * it, by the wall clock as that was when the camera was opened, and, where the pipeline lists it under `metadata`, the
 * driver's `sequence` number. Frames for which the driver had no buffer are missing there: they count as dropped, as do
 * those that are damaged or cut off. */
#include <errno.h>
#include <fcntl.h>
#include <gpipe/stage.h>
#include <linux/videodev2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct camera { const char *camera; int format; int64_t width, height, buffers, frames; };      /* the options */

static const struct { const char *name; uint32_t fourcc; int bytes; } formats[] = {
    { "YUYV", V4L2_PIX_FMT_YUYV, 2 }, { "GREY", V4L2_PIX_FMT_GREY, 1 }, { "RGB24", V4L2_PIX_FMT_RGB24, 3 } };

enum { MOST = 32 };
struct state {
    int fd, nbuffers;
    struct { void *at; size_t size; } buffer[MOST];
    size_t line, row, bytes;           /* from row to row in a buffer, in a frame; of a frame in a buffer */
    int64_t wall_ns;                   /* from the clock of time stamps to that of frames */
    uint32_t next;                     /* sequence number that is expected, */
    bool begun;                        /* ... once there was one */
};

static bool shape(gp_shape *s)
{
    const struct camera *o = s->opts;
    int64_t each = formats[o->format].bytes;
    s->out[0] = (gp_type){ GP_U8, each > 1 ? 3 : 2, { o->height, o->width, each > 1 ? each : 0 } };
    s->endless = !o->frames;
    s->writes_all = true;
    return o->format || o->width % 2 == 0
        || gp_shape_fail(s, "width", "YUYV has pairs of pixels: 'width' must be even, not %lld", (long long)o->width);
}

/* ---- the device ------------------------------------------------------ */

static int call(int fd, unsigned long request, void *arg)
{
    int r;
    while ((r = ioctl(fd, request, arg)) < 0 && errno == EINTR)
        ;
    return r;
}

static int64_t ns_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

#define VIDEO  .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP
#define REFUSE(what) \
    gp_fail(o->errs, GP_E_RUN, o->at, "stage '%s': '%s' %s: %s", o->name, c->camera, what, strerror(errno))

static bool set_format(const gp_open *o, struct state *st)
{
    const struct camera *c = o->opts;
    struct v4l2_capability has = { .driver = "" };
    struct v4l2_format f = { .type = V4L2_BUF_TYPE_VIDEO_CAPTURE };
    struct v4l2_pix_format *is = &f.fmt.pix;
    *is = (struct v4l2_pix_format){ .width = (uint32_t)c->width, .height = (uint32_t)c->height,
                                    .pixelformat = formats[c->format].fourcc, .field = V4L2_FIELD_NONE };
    if (call(st->fd, VIDIOC_QUERYCAP, &has) < 0)
        return REFUSE("is no V4L2 device");
    uint32_t can = has.capabilities & V4L2_CAP_DEVICE_CAPS ? has.device_caps : has.capabilities;
    if (!(can & V4L2_CAP_VIDEO_CAPTURE) || !(can & V4L2_CAP_STREAMING))
        return gp_fail(o->errs, GP_E_RUN, o->at, "stage '%s': '%s' (%s) does not capture video, or not by streaming",
                       o->name, c->camera, (const char *)has.card);
    if (call(st->fd, VIDIOC_S_FMT, &f) < 0)
        return REFUSE("refuses the format");
    st->row = (size_t)c->width * (size_t)formats[c->format].bytes;
    st->line = is->bytesperline > st->row ? is->bytesperline : st->row;
    st->bytes = st->line * (size_t)(c->height - 1) + st->row;
    if (is->pixelformat == formats[c->format].fourcc && is->width == c->width && is->height == c->height)
        return true;
    return gp_fail(o->errs, GP_E_RUN, o->at, "stage '%s': '%s' has no %s of %lld x %lld, but %.4s of %u x %u: set "
                   "'format', 'width' and 'height' to what it has", o->name, c->camera, formats[c->format].name,
                   (long long)c->width, (long long)c->height, (const char *)&is->pixelformat, is->width, is->height);
}

static bool map_buffers(const gp_open *o, struct state *st)
{
    const struct camera *c = o->opts;
    struct v4l2_requestbuffers ask = { .count = (uint32_t)c->buffers, VIDEO };
    if (call(st->fd, VIDIOC_REQBUFS, &ask) < 0)
        return REFUSE("has no buffers to map");
    for (uint32_t i = 0; i < ask.count && i < MOST; i++) {
        struct v4l2_buffer b = { .index = i, VIDEO };
        void *at = call(st->fd, VIDIOC_QUERYBUF, &b) < 0 ? MAP_FAILED
                 : mmap(NULL, b.length, PROT_READ | PROT_WRITE, MAP_SHARED, st->fd, b.m.offset);
        if (at == MAP_FAILED)
            return REFUSE("has a buffer that cannot be mapped");
        st->buffer[st->nbuffers].at = at, st->buffer[st->nbuffers++].size = b.length;
        if (b.length < st->bytes)
            return errno = EOVERFLOW, REFUSE("has buffers that are smaller than a frame");
        if (call(st->fd, VIDIOC_QBUF, &b) < 0)
            return REFUSE("does not take a buffer");
    }
    return true;
}

static bool open_camera(const gp_open *o, void **state)
{
    const struct camera *c = o->opts;
    struct state *st = *state = calloc(1, sizeof *st);
    int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    if (!st)
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name);
    st->wall_ns = ns_of(CLOCK_REALTIME) - ns_of(CLOCK_MONOTONIC);
    st->fd = open(c->camera, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (st->fd < 0)
        return REFUSE("cannot be opened");
    return set_format(o, st) && map_buffers(o, st)
        && (call(st->fd, VIDIOC_STREAMON, &type) >= 0 || REFUSE("does not begin to stream"));
}

static void close_camera(void *state)
{
    struct state *st = state;
    for (int i = 0; st && i < st->nbuffers; i++)
        munmap(st->buffer[i].at, st->buffer[i].size);
    if (st && st->fd >= 0)
        close(st->fd);                 /* which ends the stream */
    free(st);
}

/* ---- frames ---------------------------------------------------------- */

/* A driver that does not say which clock its time is of gives none. */
static void set_time(gp_call *c, gp_frame *f, const struct v4l2_buffer *b)
{
    int64_t t = b->timestamp.tv_sec * INT64_C(1000000000) + b->timestamp.tv_usec * 1000;
    if ((b->flags & V4L2_BUF_FLAG_TIMESTAMP_MASK) != V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
        return;
    f->time_ns = t + ((const struct state *)c->state)->wall_ns;
    gp_source_came(c, f, t);
}

static bool run(gp_call *c, gp_frame *f, int n)
{
    const struct camera *o = c->opts;
    struct state *st = c->state;
    struct v4l2_buffer b = { VIDEO };
    (void)n;
    if (o->frames && f->index >= (uint64_t)o->frames)
        return f->status = GP_END, true;
    int got;
    do {
        f->status = gp_wait_or_pause(c, st->fd, -1);
        if (f->status != GP_OK)
            return true;
    } while ((got = call(st->fd, VIDIOC_DQBUF, &b)) < 0 && errno == EAGAIN);
    if (got < 0)
        return gp_fail(c->errs, GP_E_RUN, c->at, "stage '%s': '%s' gives no more frames: %s", c->name, o->camera,
                       strerror(errno));
    if (st->begun && b.sequence != st->next)
        gp_source_dropped(c, b.sequence - st->next);
    st->begun = true, st->next = b.sequence + 1;
    double sequence = b.sequence;
    gp_meta_set(c, f, "sequence", &sequence);
    set_time(c, f, &b);
    const char *from = st->buffer[b.index].at;
    char *to = f->out[0].data;
    for (int64_t y = 0; y < o->height; y++)
        memcpy(to + (size_t)y * st->row, from + (size_t)y * st->line, st->row);
    if (b.flags & V4L2_BUF_FLAG_ERROR || b.bytesused < st->bytes)
        f->status = GP_DROP;
    return call(st->fd, VIDIOC_QBUF, &b) >= 0
        || gp_fail(c->errs, GP_E_RUN, c->at, "stage '%s': '%s' does not take a buffer back: %s", c->name, o->camera,
                   strerror(errno));
}

static const gp_port out[] = {
    { .name = "out", .help = "u8, [height, width], with a last axis of 2 (YUYV) or 3 (RGB24)" }, { 0 } };
static const gp_opt opts[] = {
    { GP_PATH(struct camera, camera), .def = "/dev/video0", .help = "the device" },
    { GP_ENUM(struct camera, format), .choices = "YUYV|GREY|RGB24", .def = "YUYV",
      .help = "of pixels, as 'v4l2-ctl --list-formats' has them" },
    { GP_INT(struct camera, width), .def = "640", .min = 1, .max = 65536, .unit = "px", .help = "of a frame" },
    { GP_INT(struct camera, height), .def = "480", .min = 1, .max = 65536, .unit = "px", .help = "of a frame" },
    { GP_INT(struct camera, buffers), .def = "4", .min = 2, .max = MOST, .help = "that the driver fills in turn" },
    { GP_INT(struct camera, frames), .def = "0", .min = 0, .max = 1e15, .help = "how many; 0: without end" },
    { 0 } };
static const gp_kind camera = {
    GP_KIND("v4l2"), .help = "frames of a camera, by V4L2", .field = "files", .also = "camera webcam v4l2src",
    .out = out, .opts = opts, .opts_size = sizeof(struct camera),
    .shape = shape, .open = open_camera, .close = close_camera, .run = run };

GP_PLUGIN("v4l2", "1.0", &camera);
