/* viewers.c - the run's end of gpipe view: gives frames to who asks for them on the socket, on a thread for each.
 *
 * A line {"view": "BUFFER"} is answered with {"view": {"frame": 12, "dtype": "f32", ...}} and the bytes of the next frame
 * of it, or with an answer as retune_answer.c has them, after which nothing comes. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/memfile.h"
#include "base/thread.h"
#include "base/yaml.h"
#include "cli/live.h"
#include "cli/retune.h"

enum { VIEWERS = 8, LOOK_MS = 50 };

typedef struct viewer {
    gp_viewers *of;
    pthread_t thread;
    bool started;
    atomic_bool left;          /* the thread is about to return */
    int fd;                    /* -1, with the lock: it is closed */
    char *line;
} viewer;

struct gp_viewers {
    _Atomic(const gp_pipeline *) now;
    atomic_bool over;
    pthread_mutex_t lock;
    viewer viewer[VIEWERS];
};

gp_tap_status gp_follow_take(gp_follow *f, const gp_pipeline *now, const char *buffer, int64_t timeout_ns, gp_tapped *out,
                             gp_errs *errs)
{
    if (f->of != now) {
        gp_tap_end(f->tap);
        f->tap = gp_tap_begin(now, buffer, errs);
        f->of = f->tap ? now : NULL;
    }
    return f->tap ? gp_tap_take(f->tap, -1, timeout_ns, out, errs) : GP_TAP_FAILED;
}

bool gp_viewers_is_for(const char *line)
{
    return !strncmp(line, "{\"view\":", 8);
}

/* The buffer that a line asks for, for free(); NULL: it is no such line, or there is no memory. */
static char *buffer_of(const char *line)
{
    GP_ARENA(a);
    GP_IF_OOM(&a)
        return NULL;
    gp_errs *errs = GP_NEW(&a, gp_errs, 1);
    const gp_node *root = gp_viewers_is_for(line) ? gp_yaml_value(&a, line, (gp_loc){ .file = "socket" }, errs) : NULL;
    return root ? strdup(gp_node_text(root, "view")) : NULL;
}

static bool put(int fd, const void *data, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(fd, (const char *)data + at, n - at, MSG_NOSIGNAL);
        if (sent < 0)
            return false;
        at += (size_t)sent;
    }
    return true;
}

static bool put_frame(int fd, const gp_tapped *f)
{
    gp_memfile m;
    size_t n;
    if (!gp_memfile_open(&m))
        return false;
    fputs("{\"view\": ", m.f);
    gp_view_put(m.f, f, NULL);
    fputs("}\n", m.f);
    char *head = gp_memfile_close(&m, &n);
    bool ok = head && put(fd, head, n) && put(fd, f->data, f->bytes);
    free(head);
    return ok;
}

static void put_errors(int fd, const gp_errs *errs)
{
    gp_args none = { 0 };
    char *line = gp_answer_of_errors(&none, errs);
    if (line)
        put(fd, line, strlen(line));
    free(line);
}

static void say_over(int fd)
{
    put(fd, "{\"over\": true}\n", 15);
}

/* The next line, for free(); NULL: none comes, or the run is over. */
static char *next_line(const viewer *v)
{
    char line[4096];
    for (size_t n = 0; n + 1 < sizeof line; n++) {
        struct pollfd p = { v->fd, POLLIN, 0 };
        while (!poll(&p, 1, LOOK_MS))
            if (atomic_load(&v->of->over)) {
                say_over(v->fd);
                return NULL;
            }
        if (recv(v->fd, line + n, 1, 0) != 1)
            return NULL;
        if (line[n] == '\n') {
            line[n] = 0;
            return strdup(line);
        }
    }
    return NULL;
}

/* False: who looks has gone, or is told why no frame comes. */
static bool give_one(viewer *v, gp_follow *follow, const char *buffer)
{
    for (;;) {
        gp_errs errs = { .n = 0 };
        gp_tapped f;
        struct pollfd p = { v->fd, POLLRDHUP, 0 };
        gp_tap_status is = gp_follow_take(follow, atomic_load(&v->of->now), buffer, LOOK_MS * 1000000LL, &f, &errs);
        if (is == GP_TAP_OK)
            return put_frame(v->fd, &f);
        if (is == GP_TAP_FAILED) {
            put_errors(v->fd, &errs);
            return false;
        }
        if (atomic_load(&v->of->over)) {
            say_over(v->fd);
            return false;
        }
        if (poll(&p, 1, is == GP_TAP_OVER ? LOOK_MS : 0) > 0)
            return false;
    }
}

/* What was sent and is not read would take from the other end what it has not read. */
static void leave(viewer *v)
{
    char some[256];
    shutdown(v->fd, SHUT_RD);
    while (recv(v->fd, some, sizeof some, MSG_DONTWAIT) > 0)
        ;
    pthread_mutex_lock(&v->of->lock);
    close(v->fd);
    v->fd = -1;
    pthread_mutex_unlock(&v->of->lock);
}

static void *viewer_main(void *arg)
{
    viewer *v = arg;
    gp_follow follow = { 0 };
    char *buffer = buffer_of(v->line), *line;
    while (buffer && give_one(v, &follow, buffer) && (line = next_line(v))) {
        char *next = buffer_of(line);
        free(line);
        if (!next || strcmp(next, buffer)) {
            gp_tap_end(follow.tap);
            follow = (gp_follow){ 0 };
        }
        free(buffer);
        buffer = next;
    }
    free(buffer);
    gp_tap_end(follow.tap);
    leave(v);
    atomic_store(&v->left, true);
    return NULL;
}

/* Its thread has returned, or is about to. */
static void end(viewer *v)
{
    if (!v->started)
        return;
    pthread_join(v->thread, NULL);
    free(v->line);
    v->started = false;
}

void gp_viewers_take(gp_viewers *of, int fd, char *line)
{
    viewer *v = NULL;
    for (int i = 0; of && i < VIEWERS; i++) {
        if (of->viewer[i].started && atomic_load(&of->viewer[i].left))
            end(&of->viewer[i]);
        v = of->viewer[i].started ? v : &of->viewer[i];
    }
    if (v && !fcntl(fd, F_SETFL, 0)) {
        v->of = of, v->fd = fd, v->line = line;
        atomic_store(&v->left, false);
        v->started = !gp_thread_start(&v->thread, viewer_main, v);
    }
    if (v && v->started) {
        pthread_setname_np(v->thread, "view");
        return;
    }
    gp_refuse(fd, v || !of ? "out of memory" : "8 others look at frames of this run, and there is no room for more");
    free(line);
}

gp_viewers *gp_viewers_new(const gp_pipeline *p)
{
    gp_viewers *v = calloc(1, sizeof *v);
    if (v)
        pthread_mutex_init(&v->lock, NULL);
    gp_viewers_next(v, p);
    return v;
}

void gp_viewers_next(gp_viewers *v, const gp_pipeline *p)
{
    if (v)
        atomic_store(&v->now, p);
}

/* Who waits is told that the run is over; who does not read, or ask, is cut off. */
void gp_viewers_free(gp_viewers *v)
{
    if (!v)
        return;
    atomic_store(&v->over, true);
    int64_t until = gp_now_ns() + 1000000000;
    for (int i = 0; i < VIEWERS; i++) {
        while (v->viewer[i].started && !atomic_load(&v->viewer[i].left) && gp_now_ns() < until)
            poll(NULL, 0, 1);
        pthread_mutex_lock(&v->lock);
        if (v->viewer[i].started && v->viewer[i].fd >= 0)
            shutdown(v->viewer[i].fd, SHUT_RDWR);
        pthread_mutex_unlock(&v->lock);
        end(&v->viewer[i]);
    }
    pthread_mutex_destroy(&v->lock);
    free(v);
}
