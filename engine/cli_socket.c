/* cli_socket.c - the Unix socket of a run, for gpipe top: one JSON object a second.
 *
 * It lies in a folder that only its owner can enter. A client that does not read
 * misses objects; one whose last object was cut short is let go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "cli_live.h"

enum { CLIENTS = 16 };

struct gp_socket {
    int fd;
    struct sockaddr_un at;
    int client[CLIENTS], nclients;
};

/* ---- the place ------------------------------------------------------- */

/* The i-th folder to look at; "" is one that there is not. */
static const char *folder(int i, char buf[80])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    *buf = 0;
    if (i)
        snprintf(buf, 80, "/tmp/gpipe-%ld", (long)geteuid());
    else if (runtime && *runtime == '/' && strlen(runtime) < 70)
        snprintf(buf, 80, "%s/gpipe", runtime);
    return buf;
}

/* A folder of ours that nobody else can enter. */
static bool is_private(const char *path)
{
    struct stat st;
    return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid()
        && !(st.st_mode & 077);
}

static bool address(struct sockaddr_un *at, const char *dir, long pid)
{
    *at = (struct sockaddr_un){ .sun_family = AF_UNIX };
    int n = snprintf(at->sun_path, sizeof at->sun_path, "%s/%ld.sock", dir, pid);
    return n < (int)sizeof at->sun_path;
}

/* What lies there already is of a process that had our number: gone. */
static bool bind_in(gp_socket *s, const char *dir)
{
    if (!*dir || (mkdir(dir, 0700) && errno != EEXIST) || !is_private(dir)
        || !address(&s->at, dir, (long)getpid()))
        return false;
    unlink(s->at.sun_path);
    return !bind(s->fd, (struct sockaddr *)&s->at, sizeof s->at)
        && !chmod(s->at.sun_path, 0600) && !listen(s->fd, CLIENTS);
}

/* ---- the run's end --------------------------------------------------- */

gp_socket *gp_socket_open(void)
{
    gp_socket *s = calloc(1, sizeof *s);
    char dir[80];
    for (int i = 0; s && i < 2; i++) {
        s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (s->fd >= 0 && bind_in(s, folder(i, dir))) {
            gp_signals_remove(s->at.sun_path);
            return s;
        }
        if (s->fd >= 0)
            close(s->fd);
    }
    free(s);
    return NULL;
}

void gp_socket_close(gp_socket *s)
{
    if (!s)
        return;
    gp_signals_remove(NULL);
    unlink(s->at.sun_path);
    for (int i = 0; i < s->nclients; i++)
        close(s->client[i]);
    close(s->fd);
    free(s);
}

int gp_socket_fd(const gp_socket *s)
{
    return s->fd;
}

int gp_socket_clients(const gp_socket *s)
{
    return s ? s->nclients : 0;
}

/* False: the client has gone, or would get the next object in the middle of this. */
static bool send_one(int fd, const char *text, size_t len)
{
    ssize_t n = send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n == (ssize_t)len || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

void gp_socket_accept(gp_socket *s, const char *text, size_t len)
{
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (s->nclients < CLIENTS && send_one(fd, text, len))
        s->client[s->nclients++] = fd;
    else
        close(fd);
}

void gp_socket_send(gp_socket *s, const char *text, size_t len)
{
    for (int i = 0; i < s->nclients;) {
        if (send_one(s->client[i], text, len)) {
            i++;
            continue;
        }
        close(s->client[i]);
        s->client[i] = s->client[--s->nclients];
    }
}

/* ---- the other end --------------------------------------------------- */

static int connect_to(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof *at)) {
        int error = errno;
        close(fd);
        fd = -1, errno = error;
    }
    return fd;
}

int gp_socket_connect(const char *name, gp_errs *errs)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    char dir[80], *end;
    long pid = strtol(name, &end, 10);
    int fd = -1;
    if (*name && !*end) {
        for (int i = 0; i < 2 && fd < 0; i++)
            if (*folder(i, dir) && address(&at, dir, pid))
                fd = connect_to(&at);
        if (fd < 0)
            gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "no pipeline of yours runs as process '%s'; "
                    "give the process of a 'gpipe run', or its socket", name);
        return fd;
    }
    if (strlen(name) >= sizeof at.sun_path) {
        gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "'%s' is too long for a socket's path; go to its "
                "folder and give its name", name);
        return -1;
    }
    strcpy(at.sun_path, name);
    if ((fd = connect_to(&at)) < 0)
        gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "cannot connect to '%s': %s; give the socket or "
                "the process of a 'gpipe run'", name, strerror(errno));
    return fd;
}
