/* service.c - `gpipe run --service`: what a service manager is told of a run. The protocol is that of sd_notify(3):
 * datagrams to $NOTIFY_SOCKET, a variable a line. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/why.h"
#include "cli/cli.h"

static struct { int fd, reload_fd; struct sockaddr_un at; socklen_t len; } manager = { .fd = -1, .reload_fd = -1 };

bool gp_service_begin(gp_errs *errs)
{
    const char *path = getenv("NOTIFY_SOCKET"), *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    size_t n = path ? strlen(path) : 0;
    const double least = 2e6;
    if (!gp_says_json() && !gp_say_log())
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "out of memory");
    if (usec && (!pid || strtol(pid, NULL, 10) == (long)getpid()) && (double)strtoll(usec, NULL, 10) < least)
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "--service: WATCHDOG_USEC is '%s': gpipe says once a second that it "
                       "is alive, so WatchdogSec= must be 2s at least", usec);
    if ((manager.reload_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "--service: no eventfd: %s", gp_strerror(errno));
    gp_signals_reload(manager.reload_fd);
    if (!n)
        return true;
    if ((*path != '/' && *path != '@') || n >= sizeof manager.at.sun_path)
        return gp_fail(errs, GP_E_USAGE, (gp_loc){ 0 }, "--service: NOTIFY_SOCKET '%s' is no path of a socket", path);
    manager.at.sun_family = AF_UNIX;
    memcpy(manager.at.sun_path, path, n);
    if (*path == '@')                  /* one without a file */
        manager.at.sun_path[0] = 0;
    manager.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    manager.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return manager.fd >= 0 || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "--service: no socket: %s", gp_strerror(errno));
}

int gp_service_reload_fd(void)
{
    return manager.reload_fd;
}

/* A manager that does not read misses it. */
void gp_service_tell(const char *format, ...)
{
    char text[512];
    va_list v;
    if (manager.fd < 0)
        return;
    va_start(v, format);
    int n = vsnprintf(text, sizeof text, format, v);
    va_end(v);
    sendto(manager.fd, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT,
           (const struct sockaddr *)&manager.at, manager.len);
}

void gp_service_reloads(void)
{
    gp_service_tell("RELOADING=1\nMONOTONIC_USEC=%" PRId64, gp_now_ns() / 1000);
}
