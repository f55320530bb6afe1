/* ahead.c - a stream that does not wait (`when_full: drop-newest`), see reader.h.
 *
 * A thread reads frames into a queue, as long as the stream gives any; the stage takes them out, as it has room. A
 * frame that comes while the queue is full is dropped, whole, and keeps its number: the next one that finds room says
 * how many were dropped before it, and they become holes, as they do once the queue is empty. What the stream ends with
 * waits: its last frame, which may be partial, its error, its end. The queue only evens out how threads take turns, so
 * it is short. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "base/c_locale.h"
#include "base/clock.h"
#include "base/thread.h"
#include "reader.h"

enum { LEAST = 2, MOST = 64, QUEUE_BYTES = 4 << 20 };

struct gp_ahead {
    gp_reader *r;
    pthread_t thread;
    bool begun;
    int stop_fd, there_fd;     /* there_fd counts the frames in the queue */
    size_t bytes;              /* of a frame */
    pthread_mutex_t lock;      /* of all below */
    pthread_cond_t room;
    bool over;
    int cap, first, n;         /* frames `first` to `first` + n - 1, modulo cap + 1: one more is being read */
    gp_came *came;
    char *data;
    uint64_t dropped, lost;    /* in all; since the last frame that found room */
};

gp_ahead *gp_ahead_new(gp_reader *r)
{
    gp_ahead *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->r = r, a->bytes = gp_bytes(&r->most);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->room, NULL);
    a->cap = a->bytes < QUEUE_BYTES / MOST ? MOST : a->bytes > QUEUE_BYTES / LEAST ? LEAST : (int)(QUEUE_BYTES / a->bytes);
    a->came = calloc((size_t)a->cap + 1, sizeof *a->came);
    a->data = calloc((size_t)a->cap + 1, a->bytes);
    a->stop_fd = eventfd(0, EFD_CLOEXEC);
    a->there_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK);
    if (a->came && a->data && a->stop_fd >= 0 && a->there_fd >= 0)
        return a;
    int e = errno;
    gp_ahead_free(a);
    errno = e;
    return NULL;
}

bool gp_ahead_wait(gp_ahead *a, int fd)
{
    struct pollfd p[2] = { { a->stop_fd, POLLIN, 0 }, { fd, POLLIN, 0 } };
    while (poll(p, 2, -1) < 0 && errno == EINTR)
        ;
    return !p[0].revents;
}

/* Puts what has come into the queue. False: nobody wants it any more. */
static bool put(gp_ahead *a, int at, gp_came came)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    came.time_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
    came.came_ns = gp_now_ns();
    bool last = came.status != GP_OK || a->r->ended;
    pthread_mutex_lock(&a->lock);
    while (last && a->n == a->cap && !a->over)
        pthread_cond_wait(&a->room, &a->lock);
    bool wanted = !a->over;
    if (a->n == a->cap) {
        a->dropped += wanted, a->lost += wanted;
    } else {
        came.lost = a->lost, a->lost = 0;
        a->came[at] = came, a->n++;
        eventfd_write(a->there_fd, 1);
    }
    pthread_mutex_unlock(&a->lock);
    return wanted;
}

static void *read_ahead(void *arg)
{
    GP_C_LOCALE;
    gp_ahead *a = arg;
    gp_came came;
    int at;
    do {
        pthread_mutex_lock(&a->lock);
        at = (a->first + a->n) % (a->cap + 1);
        pthread_mutex_unlock(&a->lock);
        came = gp_stream_next(a->r, NULL, a->data + (size_t)at * a->bytes, true);
    } while (came.status != GP_STOPPED && put(a, at, came) && came.status != GP_END && !came.none);
    return NULL;
}

/* Is the next frame one that was dropped? */
static bool take_lost(gp_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    uint64_t *lost = a->n ? &a->came[a->first].lost : &a->lost, n = *lost;
    *lost -= n > 0;
    pthread_mutex_unlock(&a->lock);
    return n;
}

gp_came gp_ahead_take(gp_ahead *a, gp_call *c, void *to, bool first)
{
    eventfd_t one;
    int bad = a->begun ? 0 : gp_thread_start(&a->thread, read_ahead, a);
    if (bad)
        return (gp_came){ .status = GP_FAILED, .error = bad, .none = true };
    a->begun = true;
    if (take_lost(a))
        return (gp_came){ .status = GP_LOST };
    gp_status s = first ? gp_wait_or_pause(c, a->there_fd, -1) : GP_OK;
    if (s != GP_OK)
        return (gp_came){ .status = s };
    if (eventfd_read(a->there_fd, &one))
        return (gp_came){ .status = GP_AGAIN };
    memcpy(to, a->data + (size_t)a->first * a->bytes, a->bytes);
    pthread_mutex_lock(&a->lock);
    gp_came came = a->came[a->first];
    a->first = (a->first + 1) % (a->cap + 1), a->n--;
    pthread_cond_signal(&a->room);
    pthread_mutex_unlock(&a->lock);
    return came;
}

static void stop(gp_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    a->over = true;
    pthread_cond_signal(&a->room);
    pthread_mutex_unlock(&a->lock);
    eventfd_write(a->stop_fd, 1);
    if (a->begun)
        pthread_join(a->thread, NULL);
    a->begun = false;
}

uint64_t gp_ahead_end(gp_ahead *a, gp_call *c)
{
    stop(a);
    for (int i = 0; i < a->n; i++)     /* the run is stopped: no frame comes behind these any more */
        a->lost += a->came[(a->first + i) % (a->cap + 1)].lost;
    if (a->lost)
        gp_source_dropped(c, a->lost);
    return a->dropped;
}

void gp_ahead_free(gp_ahead *a)
{
    if (!a)
        return;
    stop(a);
    if (a->stop_fd >= 0)
        close(a->stop_fd);
    if (a->there_fd >= 0)
        close(a->there_fd);
    pthread_cond_destroy(&a->room);
    pthread_mutex_destroy(&a->lock);
    free(a->came), free(a->data), free(a);
}
