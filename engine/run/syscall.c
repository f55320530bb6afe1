/* syscall.c - what a thread of this process is at, as the kernel sees it: the system
 * call that it waits in, and for which file (proc(5), /proc/PID/task/TID/syscall).
 * Nothing is stored while frames flow. Where the kernel does not tell, nothing is
 * said. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "run/run.h"

typedef enum gp_way { NO_FILE, READS, WRITES } gp_way;

static const struct { long call; const char *text; gp_way way; } calls[] = {
    { SYS_read, "reading from", READS },         { SYS_readv, "reading from", READS },
    { SYS_pread64, "reading from", READS },      { SYS_preadv, "reading from", READS },
    { SYS_write, "writing to", WRITES },         { SYS_writev, "writing to", WRITES },
    { SYS_pwrite64, "writing to", WRITES },      { SYS_pwritev, "writing to", WRITES },
    { SYS_fsync, "syncing", WRITES },            { SYS_syncfs, "syncing the disk of", WRITES },
    { SYS_openat, "opening a file", NO_FILE },   { SYS_wait4, "waiting for a process", NO_FILE },
    { SYS_nanosleep, "sleeping", NO_FILE },      { SYS_clock_nanosleep, "sleeping", NO_FILE },
    { SYS_futex, "waiting for another thread", NO_FILE },
    { SYS_ppoll, "waiting for data", NO_FILE },
#ifdef SYS_poll
    { SYS_poll, "waiting for data", NO_FILE },
#endif
};

/* The name of an open file, and what it waits for if it is a pipe. */
static void name_file(int fd, gp_way way, char *out, size_t size)
{
    static const char *const standard[] = { "standard input", "standard output",
                                            "standard error" };
    char link[40], path[120] = "";
    struct stat st;
    struct pollfd p = { fd, way == WRITES ? POLLOUT : POLLIN, 0 };

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) < 0 || *path != '/')
        snprintf(path, sizeof path, "file descriptor %d", fd);
    snprintf(out, size, "%s", fd >= 0 && fd < 3 ? standard[fd] : path);
    size_t n = strlen(out);
    if (fstat(fd, &st) || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
        return;
    const char *what = S_ISFIFO(st.st_mode) ? "pipe" : "socket";
    if (poll(&p, 1, 0))
        snprintf(out + n, size - n, ", a %s", what);
    else if (way == WRITES)
        snprintf(out + n, size - n, ", a full %s: its reader does not read", what);
    else
        snprintf(out + n, size - n, ", an empty %s: nothing is written to it", what);
}

const char *gp_thread_is(int tid, char out[GP_DOING_TEXT])
{
    char path[60], text[40] = "", file[GP_DOING_TEXT - 20];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    int fd = tid ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    *out = 0;
    if (fd < 0)
        return out;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return out;
    if (!strncmp(text, "running", 7))
        return strcpy(out, ", computing");
    char *end;
    long call = strtol(text, &end, 10);
    if (end == text || call < 0)
        return out;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].call != call)
            continue;
        *file = 0;
        if (calls[i].way)
            name_file((int)strtoul(end, NULL, 16), calls[i].way, file, sizeof file);
        snprintf(out, GP_DOING_TEXT, ", %s%s%s", calls[i].text, *file ? " " : "", file);
        return out;
    }
    snprintf(out, GP_DOING_TEXT, ", in system call %ld", call);
    return out;
}
