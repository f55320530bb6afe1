/* v4l2_fake.c - a camera for tests/plugins.py, without a driver: preloaded, it answers open, ioctl, mmap and close for
 * /dev/fake/HOW, where HOW has the words that how() looks for. It has a frame at once for each buffer that is queued.
 *
 * So it shows which calls a program makes, and what it makes of the answers. It does not show that a driver answers so,
 * how frames come in time, nor what becomes of memory that a device writes into. */
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 32, FRAME_US = 40000, STEP = 1 << 24 };

static struct {
    int fd;                            /* an eventfd, which counts the frames that wait; 0: it is not open */
    char how[64];
    struct v4l2_pix_format is;
    unsigned char *at[MOST];
    unsigned waits[MOST], nwaits, queued[MOST], nqueued, sequence, taken;
    bool on;
} cam;

static bool how(const char *word)
{
    return strstr(cam.how, word);
}

static int fail(int why)
{
    errno = why;
    return -1;
}

static void count(unsigned n)
{
    (void)!write(cam.fd, &(unsigned long long){ n }, 8);
}

static int set_format(struct v4l2_format *f)
{
    struct v4l2_pix_format *p = &f->fmt.pix;
    unsigned each = p->pixelformat == V4L2_PIX_FMT_YUYV ? 2 : p->pixelformat == V4L2_PIX_FMT_GREY ? 1 : 3;
    if (how("refuses"))
        return fail(EINVAL);
    if (how("small"))
        p->width = 320, p->height = 240;
    if (how("jpeg"))
        p->pixelformat = V4L2_PIX_FMT_MJPEG;
    p->bytesperline = p->width * each + (how("gaps") ? 48 : 0);
    p->sizeimage = p->bytesperline * p->height;
    cam.is = *p;
    return 0;
}

/* Fills what is queued, in that order: byte x of row y of frame n is n + 3y + x, gaps are 238. */
static void expose(void)
{
    for (unsigned i = 0; cam.on && i < cam.nqueued; i++) {
        unsigned n = cam.sequence + i, row = cam.is.bytesperline - (how("gaps") ? 48 : 0);
        unsigned char *to = cam.at[cam.queued[i]];
        for (unsigned y = 0; y < cam.is.height; y++) {
            memset(to + y * cam.is.bytesperline + row, 238, cam.is.bytesperline - row);
            for (unsigned x = 0; x < row; x++)
                to[y * cam.is.bytesperline + x] = (unsigned char)(n + 3 * y + x);
        }
        cam.waits[cam.nwaits++] = cam.queued[i];
    }
    if (cam.on && cam.nqueued && !(how("dark") && cam.sequence)) {
        count(cam.nqueued + how("early"));
        cam.sequence += cam.nqueued, cam.nqueued = 0;
    }
}

/* The frame with number `taken`; with "lost" three are missing behind number 1. */
static int take(struct v4l2_buffer *b)
{
    unsigned n = cam.taken;
    unsigned long long one;
    if (how("unplugged") && n == 4)
        return fail(ENODEV);
    if (syscall(SYS_read, cam.fd, &one, sizeof one) < 0 || !cam.nwaits)
        return fail(EAGAIN);
    b->index = cam.waits[0];
    memmove(cam.waits, cam.waits + 1, sizeof *cam.waits * --cam.nwaits);
    b->sequence = n + (how("lost") && n > 1 ? 3 : 0);
    b->bytesused = how("cut") && n == 1 ? cam.is.sizeimage / 2 : cam.is.sizeimage;
    b->flags = (how("damaged") && n == 1 ? V4L2_BUF_FLAG_ERROR : 0)
             | (how("timeless") ? 0 : V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC);
    b->timestamp = (struct timeval){ .tv_sec = 1000 + n * FRAME_US / 1000000, .tv_usec = n * FRAME_US % 1000000 };
    cam.taken++;
    return 0;
}

static int answer(unsigned long request, void *arg)
{
    struct v4l2_capability *has = arg;
    struct v4l2_requestbuffers *ask = arg;
    struct v4l2_buffer *b = arg;
    switch (request) {
    case VIDIOC_QUERYCAP:
        memset(has, 0, sizeof *has);
        strcpy((char *)has->card, "a fake");
        has->capabilities = V4L2_CAP_DEVICE_CAPS;
        has->device_caps = how("output") ? V4L2_CAP_VIDEO_OUTPUT : V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
        return 0;
    case VIDIOC_S_FMT:
        return set_format(arg);
    case VIDIOC_REQBUFS:
        if (how("busy"))
            return fail(EBUSY);
        ask->count = ask->count < 3 ? 3 : ask->count;          /* as drivers that need so many */
        return 0;
    case VIDIOC_QUERYBUF:
        b->length = how("tiny") ? 100 : cam.is.sizeimage;
        b->m.offset = b->index * STEP;
        return 0;
    case VIDIOC_QBUF:
        cam.queued[cam.nqueued++] = b->index;
        expose();
        return 0;
    case VIDIOC_STREAMON:
        cam.on = true;
        expose();
        return 0;
    case VIDIOC_DQBUF:
        return cam.on ? take(b) : fail(EINVAL);
    }
    return fail(ENOTTY);
}

/* ---- what is called instead of the C library's ------------------------ */

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0;
    va_end(more);
    if (strncmp(path, "/dev/fake/", 10))
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    memset(&cam, 0, sizeof cam);
    strncpy(cam.how, path + 10, sizeof cam.how - 1);
    return cam.fd = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list more;
    va_start(more, request);
    void *arg = va_arg(more, void *);
    va_end(more);
    return cam.fd && fd == cam.fd ? answer(request, arg) : (int)syscall(SYS_ioctl, fd, request, arg);
}

void *mmap(void *at, size_t size, int access, int flags, int fd, off_t offset)
{
    bool of_camera = cam.fd && fd == cam.fd;
    if (!of_camera)
        return (void *)syscall(SYS_mmap, at, size, access, flags, fd, offset);
    return cam.at[offset / STEP] = (void *)syscall(SYS_mmap, at, size, access, flags | MAP_ANONYMOUS, -1, 0);
}

int close(int fd)
{
    if (fd == cam.fd)
        cam.fd = 0;
    return (int)syscall(SYS_close, fd);
}
