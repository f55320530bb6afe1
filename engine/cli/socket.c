/* socket.c - the Unix socket of a run, for gpipe top: one JSON object a second.
 *
 * It lies in a folder that only its owner can enter. A client that does not read
 * misses objects, but never a part of one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/why.h"
#include "cli/live.h"
#include "cli/retune.h"

enum { CLIENTS = 16, LAST_MS = 300, FOLDERS = 3 };

typedef struct client {
    int fd;
    char *rest;                /* of the last object: what did not fit yet; or NULL */
    size_t at, len;            /* where in it to go on; how long it is */
    char *said; size_t nsaid;  /* what it has sent of a line; or NULL */
} client;

struct gp_socket {
    int fd;
    struct sockaddr_un at;
    client client[CLIENTS];
    int nclients;
};

/* ---- the place ------------------------------------------------------- */

/* The i-th folder to look at; "" is one that there is not. The first is a service's own. */
static const char *folder(int i, char buf[80])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *of_service = getenv("RUNTIME_DIRECTORY");
    size_t n = of_service ? strcspn(of_service, ":") : 0;
    *buf = 0;
    if (!i && n && n < 79 && *of_service == '/')
        snprintf(buf, 80, "%.*s", (int)n, of_service);
    else if (i == FOLDERS - 1)
        snprintf(buf, 80, "/tmp/gpipe-%ld", (long)geteuid());
    else if (!i)
        return buf;
    else if (!runtime || !*runtime)
        snprintf(buf, 80, "/run/user/%ld/gpipe", (long)geteuid());
    else if (*runtime == '/' && strlen(runtime) < 70)
        snprintf(buf, 80, "%s/gpipe", runtime);
    return buf;
}

/* A folder of ours that nobody else can enter; a service's others may see, as its manager made it, but not change. */
static bool is_private(int i, const char *path)
{
    struct stat st;
    return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (i ? 077 : 022));
}

static bool address(struct sockaddr_un *at, const char *dir, long pid)
{
    *at = (struct sockaddr_un){ .sun_family = AF_UNIX };
    int n = snprintf(at->sun_path, sizeof at->sun_path, "%s/%ld.sock", dir, pid);
    return n < (int)sizeof at->sun_path;
}

/* Is the socket's process gone, and does nobody listen? The second is asked as process numbers of a container mean
 * nothing here. */
static bool is_dead(const struct sockaddr_un *at, long pid)
{
    int fd = kill((pid_t)pid, 0) && errno == ESRCH
        ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    if (fd < 0)
        return false;
    bool dead = connect(fd, (const struct sockaddr *)at, sizeof *at) && errno == ECONNREFUSED;
    close(fd);
    return dead;
}

/* Whose socket a file of that name is; 0: it is none. */
static long pid_of(const char *name)
{
    char *end;
    long pid = strtol(name, &end, 10);
    return pid > 0 && end > name && !strcmp(end, ".sock") ? pid : 0;
}

/* Removes what processes left that were killed. */
static void sweep(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    struct sockaddr_un at;
    while (d && (e = readdir(d))) {
        long pid = pid_of(e->d_name);
        if (pid && address(&at, dir, pid) && is_dead(&at, pid))
            unlink(at.sun_path);
    }
    if (d)
        closedir(d);
}

/* What lies there already is of a process that had our number: gone. The file is
 * born with the mode of the socket, and no signal leaves it behind. */
static bool bind_in(gp_socket *s, int i, const char *dir)
{
    if (!*dir || (mkdir(dir, 0700) && errno != EEXIST) || !is_private(i, dir)
        || !address(&s->at, dir, (long)getpid()))
        return false;
    sweep(dir);
    gp_signals_remove(GP_REMOVED_SOCKET, s->at.sun_path);
    unlink(s->at.sun_path);
    if (!fchmod(s->fd, 0600) && !bind(s->fd, (struct sockaddr *)&s->at, sizeof s->at)
        && !listen(s->fd, CLIENTS))
        return true;
    unlink(s->at.sun_path);
    gp_signals_remove(GP_REMOVED_SOCKET, NULL);
    return false;
}

/* ---- the run's end --------------------------------------------------- */

gp_socket *gp_socket_open(void)
{
    gp_socket *s = calloc(1, sizeof *s);
    char dir[80];
    for (int i = 0; s && i < FOLDERS; i++) {
        s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (s->fd >= 0 && bind_in(s, i, folder(i, dir)))
            return s;
        if (!i && *dir)
            fprintf(stderr, "gpipe: warning: '%s' ($RUNTIME_DIRECTORY) is no folder that only this user can change: the "
                    "socket of the run is elsewhere\n", dir);
        if (s->fd >= 0)
            close(s->fd);
    }
    free(s);
    return NULL;
}

int gp_socket_fd(const gp_socket *s)
{
    return s->fd;
}

int gp_socket_clients(const gp_socket *s)
{
    return s ? s->nclients : 0;
}

static void let_go(client *c)
{
    close(c->fd);
    free(c->rest), free(c->said);
    *c = (client){ .fd = -1 };
}

/* How much of a text it took; < 0: the client has gone. */
static ssize_t push(int fd, const char *text, size_t len)
{
    ssize_t n = send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : n;
}

/* False: the client has gone. */
static bool push_rest(client *c)
{
    ssize_t n = c->rest ? push(c->fd, c->rest + c->at, c->len - c->at) : 0;
    if (n > 0 && (c->at += (size_t)n) == c->len) {
        free(c->rest);
        c->rest = NULL;
    }
    return n >= 0;
}

/* Nothing, if the last object is not yet out. False: the client has gone. */
static bool send_one(client *c, const char *text, size_t len)
{
    ssize_t n = push_rest(c) ? 0 : -1;
    if (n < 0 || c->rest || (n = push(c->fd, text, len)) <= 0 || n == (ssize_t)len)
        return n >= 0;
    c->at = 0, c->len = len - (size_t)n;
    if ((c->rest = malloc(c->len)))
        memcpy(c->rest, text + n, c->len);
    return c->rest;
}

bool gp_socket_accept(gp_socket *s, const char *text, size_t len)
{
    client c = { .fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) };
    if (c.fd < 0)
        return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    char why[80];
    snprintf(why, sizeof why, "%d others are connected to this run, and there is no room for more", CLIENTS);
    if (s->nclients == CLIENTS)
        gp_refuse(c.fd, why);
    else if (send_one(&c, text, len))
        s->client[s->nclients++] = c;
    else
        let_go(&c);
    return true;
}

/* Without those that have gone. */
static void keep(gp_socket *s, int i, bool there)
{
    if (there)
        return;
    let_go(&s->client[i]);
    s->client[i] = s->client[--s->nclients];
}

void gp_socket_send(gp_socket *s, const char *text, size_t len)
{
    for (int i = s->nclients; i--;)
        keep(s, i, send_one(&s->client[i], text, len));
}

/* Reads what a client sends. 1: a line is whole. -1: the client has gone. */
static int hear(client *c)
{
    enum { LONGEST = 1 << 16 };
    char some[4096];
    ssize_t n = recv(c->fd, some, sizeof some, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (!n)                            /* it has no more to say; that it has left is seen when it is sent something */
        return 0;
    if (c->nsaid + (size_t)n >= LONGEST || !gp_grow(&c->said, c->nsaid + (size_t)n + 1, 1))
        return -1;
    memcpy(c->said + c->nsaid, some, (size_t)n);
    c->nsaid += (size_t)n, c->said[c->nsaid] = 0;
    return memchr(c->said, '\n', c->nsaid) != NULL;
}

/* Is the other end of our user, or root? */
static bool is_ours(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) && (peer.uid == geteuid() || !peer.uid);
}

int gp_socket_take(gp_socket *s, char **line)
{
    for (int i = s ? s->nclients : 0; i--;) {
        client *c = &s->client[i];
        int heard = c->rest ? 0 : hear(c);
        if (heard == 1 && is_ours(c->fd)) {
            int fd = c->fd;
            *line = c->said;
            *(char *)memchr(*line, '\n', c->nsaid) = 0;
            s->client[i] = s->client[--s->nclients];
            return fd;
        }
        keep(s, i, !heard);
    }
    return -1;
}

bool gp_socket_flush(gp_socket *s)
{
    bool all = true;
    for (int i = s ? s->nclients : 0; i--;) {
        keep(s, i, push_rest(&s->client[i]));
        all &= i >= s->nclients || !s->client[i].rest;
    }
    return all;
}

void gp_socket_drain(gp_socket *s)
{
    for (int ms = 0; ms < LAST_MS && !gp_socket_flush(s); ms++)
        poll(NULL, 0, 1);
}

void gp_socket_close(gp_socket *s)
{
    if (!s)
        return;
    gp_socket_drain(s);
    unlink(s->at.sun_path);
    gp_signals_remove(GP_REMOVED_SOCKET, NULL);
    while (s->nclients)
        let_go(&s->client[--s->nclients]);
    close(s->fd);
    free(s);
}

/* ---- the other end --------------------------------------------------- */

/* Who takes nobody any more, as it was stopped, is not waited for: EAGAIN. */
static int connect_to(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (connect(fd, (const struct sockaddr *)at, sizeof *at) || fcntl(fd, F_SETFL, 0))) {
        int error = errno;
        close(fd);
        fd = -1, errno = error;
    }
    return fd;
}

int gp_socket_pids(long *pid, int max)
{
    char dir[80];
    int n = 0;
    for (int i = 0; i < FOLDERS; i++) {
        DIR *d = is_private(i, folder(i, dir)) ? opendir(dir) : NULL;
        for (const struct dirent *e; d && (e = readdir(d));) {
            long is = pid_of(e->d_name);
            if (is && n < max)
                pid[n] = is;
            n += is != 0;
        }
        if (d)
            closedir(d);
    }
    return n;
}

bool gp_socket_silent(const char *name, gp_errs *errs)
{
    return gp_usage(errs, "'%s' does not answer; is it stopped?", name);
}

int gp_socket_connect(const char *name, gp_errs *errs)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    char dir[80], *end;
    long pid = strtol(name, &end, 10);
    int fd = -1;
    bool busy = false;
    if (*name && !*end) {
        for (int i = 0; i < FOLDERS && fd < 0; i++)
            if (is_private(i, folder(i, dir)) && address(&at, dir, pid) && (fd = connect_to(&at)) < 0)
                busy |= errno == EAGAIN;
        if (busy)
            gp_socket_silent(name, errs);
        else if (fd < 0)
            gp_usage(errs, "no pipeline of yours runs as process '%s'; give the process of a 'gpipe run', or its "
                     "socket: a program that runs a pipeline itself has none", name);
        errno = busy ? EAGAIN : 0;
        return fd;
    }
    if (strlen(name) >= sizeof at.sun_path) {
        gp_usage(errs, "'%s' is too long for a socket's path; go to its folder and give its name", name);
        return -1;
    }
    strcpy(at.sun_path, name);
    if ((fd = connect_to(&at)) < 0)
        gp_usage(errs, "cannot connect to '%s': %s; give the socket or the process of a 'gpipe run'", name,
                 gp_strerror(errno));
    return fd;
}

FILE *gp_socket_reach(const char *name, gp_errs *errs)
{
    struct pollfd p = { gp_socket_connect(name, errs), POLLIN, 0 };
    if (p.fd < 0)
        return NULL;
    FILE *f = poll(&p, 1, GP_SOCKET_WAIT_MS) ? fdopen(p.fd, "r") : NULL;
    if (f)
        return f;
    p.revents ? gp_no_memory(errs) : gp_socket_silent(name, errs);
    close(p.fd);
    return NULL;
}
