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
#include <sys/time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/why.h"
#include "cli/cli.h"

static struct { int fd, reload_fd; struct sockaddr_un at; socklen_t len; } manager = { .fd = -1, .reload_fd = -1 };

bool gp_service_begin(gp_errs *errs)
{
    char path[sizeof manager.at.sun_path + 1];
    snprintf(path, sizeof path, "%s", getenv("NOTIFY_SOCKET") ? getenv("NOTIFY_SOCKET") : "");
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    size_t n = strlen(path);
    const long long least = 2000000;
    char none[] = "", *end = none;
    long long us = usec && (!pid || strtol(pid, NULL, 10) == (long)getpid()) ? strtoll(usec, &end, 10) : least;
    if (!gp_says_json() && !gp_say_log())
        return gp_no_memory(errs);
    if (us < least || *end)
        return gp_usage(errs, "--service: WATCHDOG_USEC is '%s': gpipe says once a second that it is alive, so "
                        "WatchdogSec= must be 2s at least", usec);
    if ((manager.reload_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "--service: no eventfd: %s", gp_strerror(errno));
    gp_signals_reload(manager.reload_fd);
    unsetenv("NOTIFY_SOCKET"), unsetenv("WATCHDOG_USEC"), unsetenv("WATCHDOG_PID");       /* of no child; no thread runs */
    if (!n)
        return true;
    if ((*path != '/' && *path != '@') || n >= sizeof manager.at.sun_path)
        return gp_usage(errs, "--service: NOTIFY_SOCKET '%s' is no path of a socket", path);
    manager.at.sun_family = AF_UNIX;
    memcpy(manager.at.sun_path, path, n);
    if (*path == '@')                  /* one without a file */
        manager.at.sun_path[0] = 0;
    manager.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    manager.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    setsockopt(manager.fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ .tv_sec = 1 }, sizeof(struct timeval));
    return manager.fd >= 0 || gp_fail(errs, GP_E_RESOURCE, (gp_loc){ 0 }, "--service: no socket: %s", gp_strerror(errno));
}

int gp_service_reload_fd(void)
{
    return manager.reload_fd;
}

bool gp_service_tell(bool waits, const char *format, ...)
{
    char text[512];
    va_list v;
    va_start(v, format);
    int n = vsnprintf(text, sizeof text, format, v);
    va_end(v);
    return manager.fd < 0 || sendto(manager.fd, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1,
                                    MSG_NOSIGNAL | (waits ? 0 : MSG_DONTWAIT), (const struct sockaddr *)&manager.at,
                                    manager.len) >= 0 || (errno != EAGAIN && errno != EINTR);
}

bool gp_service_reloads(void)
{
    return gp_service_tell(true, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, gp_now_ns() / 1000);
}
