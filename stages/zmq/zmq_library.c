/* zmq_library.c - see zmq_library.h. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/dl.h"
#include "base/thread.h"
#include "zmq_library.h"

gp_zmq_library gp_zmq;

static bool load(const gp_open *g, gp_loc at)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *const names[] = { "libzmq.so.5", "libzmq.so", NULL };
    gp_zmq_library *l = &gp_zmq;
    const gp_dl_symbol symbol[] = {
        { "zmq_ctx_new", &l->ctx_new }, { "zmq_ctx_term", &l->ctx_term }, { "zmq_socket", &l->socket },
        { "zmq_close", &l->close }, { "zmq_setsockopt", &l->setsockopt }, { "zmq_getsockopt", &l->getsockopt },
        { "zmq_bind", &l->bind }, { "zmq_connect", &l->connect }, { "zmq_send", &l->send },
        { "zmq_recv", &l->recv },
        { "zmq_msg_init", &l->msg_init }, { "zmq_msg_recv", &l->msg_recv }, { "zmq_msg_close", &l->msg_close },
        { "zmq_msg_more", &l->msg_more }, { "zmq_msg_data", &l->msg_data }, { "zmq_msg_size", &l->msg_size },
        { "zmq_socket_monitor", &l->monitor }, { "zmq_strerror", &l->strerror },
        { 0 },
    };
    char what[128];
    snprintf(what, sizeof what, "stage '%.100s'", g->name);
    pthread_mutex_lock(&lock);
    bool ok = l->strerror || gp_dl_open(names, symbol, what, "install libzmq5 (Debian, Ubuntu)", at, g->errs);
    pthread_mutex_unlock(&lock);
    return ok;
}

/* ---- addresses ---------------------------------------------------------- */

static const char *path_of(const char *address)
{
    return strncmp(address, "ipc://", 6) ? NULL : address + 6;
}

/* Is there a port behind the last ':'? The library takes part of a larger number. */
static bool has_port(const char *address)
{
    const char *p = strrchr(address, ':') + 1;
    size_t n = strlen(p);
    return n && n < 6 && strspn(p, "0123456789") == n && atoi(p) > 0 && atoi(p) < 65536 && p > address + 6;
}

static bool address(gp_shape *s, const char *opt, const char **address)
{
    const char *path = path_of(*address);
    if (strncmp(*address, "tcp://", 6) && !path)
        return gp_shape_fail(s, opt, "'%s' is neither tcp://HOST:PORT nor ipc://PATH", *address);
    if (!path && !has_port(*address))
        return gp_shape_fail(s, opt, "'%s' does not end with a port, 1 to 65535", *address);
    if (path && !*path)
        return gp_shape_fail(s, opt, "'%s' has no path", *address);
    if (!path || *path == '/' || *path == '@')     /* @: a name that is no file's */
        return true;
    const gp_node *n = gp_shape_node(s, opt);
    const char *from = n ? gp_shape_path(s, n) : NULL, *at = from ? strstr(from, "ipc://") : NULL;
    if (!at)
        return true;
    size_t folder = (size_t)(at - from);
    char *to = gp_shape_alloc(s, strlen(from) + 1);
    if (to) {
        memcpy(to, "ipc://", 6), memcpy(to + 6, from, folder), strcpy(to + 6 + folder, at + 6);
        *address = to;
    }
    return to;
}

bool gp_zmq_shape(gp_shape *s, gp_zmq_where *w)
{
    if (w->bind && w->connect)
        return gp_shape_fail(s, "connect", "'bind' and 'connect' exclude each other");
    w->at = gp_shape_loc(s, w->bind ? "bind" : "connect");
    return w->bind ? address(s, "bind", &w->bind) : address(s, "connect", &w->connect);
}

/* libzmq removes what has the path, and takes over a socket at which another listens. */
static bool may_bind(const char *path, const char **why)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    struct stat st;
    if (!path || *path == '@' || lstat(path, &st))
        return true;
    *why = "there is a file of that name, which is no socket";
    if (!S_ISSOCK(st.st_mode))
        return false;
    *why = "another listens there";
    int fd = strlen(path) < sizeof a.sun_path ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    if (fd < 0)
        return true;                   /* the library says why */
    strcpy(a.sun_path, path);
    bool taken = !connect(fd, (struct sockaddr *)&a, sizeof a) || errno == EAGAIN;
    close(fd);
    return !taken;
}

/* ---- a socket ----------------------------------------------------------- */

static bool set(const gp_zmq_socket *z, int option, int value)
{
    return !gp_zmq.setsockopt(z->socket, option, &value, sizeof value);
}

static int get(const gp_zmq_socket *z, int option)
{
    int value = -1;
    size_t n = sizeof value;
    while (gp_zmq.getsockopt(z->socket, option, &value, &n))
        if (errno != EINTR)
            return -1;
    return value;
}

int gp_zmq_events(const gp_zmq_socket *z)
{
    return get(z, GP_ZMQ_EVENTS);
}

static int queue_of(const gp_zmq_where *w, const gp_type *t)
{
    size_t bytes = gp_bytes(t), n = ((size_t)64 << 20) / (bytes ? bytes : 1);
    return w->queue ? (int)w->queue : n < 1 ? 1 : n > 1000 ? 1000 : (int)n;
}

/* Larger messages end the connection. Frames of another type are to come as far as the error that names it. */
static int64_t largest(const gp_type *t)
{
    const int64_t least = (int64_t)1 << 30, bytes = (int64_t)gp_bytes(t);
    return bytes > least ? bytes : least;
}

static bool set_up(gp_zmq_socket *z, const gp_zmq_where *w, int type, const gp_type *t, const char *topic)
{
    const int64_t most = largest(t);
    z->ctx = gp_zmq.ctx_new();
    z->socket = z->ctx ? gp_zmq.socket(z->ctx, type) : NULL;
    return z->socket && set(z, GP_ZMQ_LINGER, 0) && set(z, GP_ZMQ_IPV6, 1)
        && set(z, GP_ZMQ_TCP_KEEPALIVE, 1) && set(z, GP_ZMQ_TCP_KEEPALIVE_IDLE, 60)
        && set(z, GP_ZMQ_SNDHWM, queue_of(w, t)) && set(z, GP_ZMQ_RCVHWM, queue_of(w, t))
        && !gp_zmq.setsockopt(z->socket, GP_ZMQ_MAXMSGSIZE, &most, sizeof most)
        && (type != GP_ZMQ_SUB || !gp_zmq.setsockopt(z->socket, GP_ZMQ_SUBSCRIBE, topic, strlen(topic)))
        && !(w->bind ? gp_zmq.bind(z->socket, w->bind) : gp_zmq.connect(z->socket, w->connect))
        && (z->fd = get(z, GP_ZMQ_FD)) >= 0;
}

bool gp_zmq_open(gp_zmq_socket *z, const gp_open *g, const gp_zmq_where *w, int type, const gp_type *t, const char *topic)
{
    const char *why = NULL;
    if (!load(g, w->at))
        return false;
    if ((w->bind && !may_bind(path_of(w->bind), &why)) || !set_up(z, w, type, t, topic ? topic : ""))
        return gp_fail(g->errs, GP_E_RESOURCE, w->at, "stage '%s' cannot %s '%s': %s", g->name, w->bind ? "bind" : "connect to",
                       w->bind ? w->bind : w->connect, why ? why : gp_zmq.strerror(errno));
    const char *file = w->bind ? path_of(w->bind) : NULL;
    z->file = file && *file != '@' ? file : NULL;
    return true;
}

int gp_zmq_put(const gp_zmq_socket *z, const gp_zmq_part *part, int n)
{
    for (int i = 0; i < n;) {
        int flags = GP_ZMQ_DONTWAIT | (i + 1 < n ? GP_ZMQ_SNDMORE : 0);
        if (gp_zmq.send(z->socket, part[i].data, part[i].n, flags) >= 0)
            i++;
        else if (errno != EINTR)       /* EAGAIN behind the first part: who was to have it has gone, and it begins anew */
            return errno == EAGAIN ? 0 : -1;
    }
    return 1;
}

int gp_zmq_gone(gp_zmq_socket *z)
{
    static const char address[] = "inproc://gone";
    char part[64];                     /* two of an event, of which each is one that was asked for */
    if (!z->monitor && (gp_zmq.monitor(z->socket, address, GP_ZMQ_EVENT_DISCONNECTED)
                        || !(z->monitor = gp_zmq.socket(z->ctx, GP_ZMQ_PAIR)) || gp_zmq.connect(z->monitor, address)))
        return -1;
    while (gp_zmq.recv(z->monitor, part, sizeof part, GP_ZMQ_DONTWAIT) >= 0)
        z->gone++;
    return errno == EAGAIN || errno == EINTR ? z->gone / 2 : -1;
}

/* ---- its end ------------------------------------------------------------ */

/* The library leaves the file there. It is removed as long as it is this one's. */
static void close_socket(gp_zmq_socket *z)
{
    if (z->file)
        unlink(z->file);
    if (z->monitor) {
        gp_zmq.monitor(z->socket, NULL, 0);
        gp_zmq.close(z->monitor);
    }
    gp_zmq.close(z->socket);
    *z = (gp_zmq_socket){ .ctx = z->ctx, .fd = -1 };
}

/* The library can wait until all is taken, and cannot be woken. So a thread of its own does, which is left behind. */
typedef struct end { void *ctx; int fd; atomic_int users; } end;

static void leave(end *e)
{
    if (atomic_fetch_sub(&e->users, 1) > 1)
        return;
    close(e->fd);
    free(e);
}

static void terminate(void *ctx)
{
    while (gp_zmq.ctx_term(ctx) && errno == EINTR) {}
}

static void *wait_for_end(void *arg)
{
    end *e = arg;
    const uint64_t one = 1;
    terminate(e->ctx);
    ssize_t n = write(e->fd, &one, sizeof one);
    (void)n;
    leave(e);
    return NULL;
}

bool gp_zmq_drain(gp_zmq_socket *z, gp_call *c)
{
    enum { LAST_MS = 1000 };
    pthread_t id;
    end *e = malloc(sizeof *e);
    int fd = eventfd(0, EFD_CLOEXEC);
    if (e)
        *e = (end){ z->ctx, fd, 2 };
    if (!e || fd < 0 || !set(z, GP_ZMQ_LINGER, -1) || gp_thread_start(&id, wait_for_end, e)) {
        if (fd >= 0)
            close(fd);
        free(e);
        set(z, GP_ZMQ_LINGER, 0);
        return false;
    }
    pthread_detach(id);
    close_socket(z);
    z->ctx = NULL;
    bool taken = (c && gp_wait_fd(c, fd)) || poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, LAST_MS) > 0;
    leave(e);
    return taken;
}

void gp_zmq_close(gp_zmq_socket *z)
{
    if (z->socket)
        close_socket(z);
    if (z->ctx)
        terminate(z->ctx);
    z->ctx = NULL;
}
