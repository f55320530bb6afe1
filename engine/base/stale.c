/* stale.c - temporary files that processes left which were killed.
 *
 * Who writes one holds a lock on it (flock), which ends with the process, however it ends:
 * a number of a process may be another's by now, or be one on another machine. So a file
 * goes only if nobody holds it, no process here has its number, it is the user's own, and
 * its file system is not one of a network, where a lock may be seen by one machine alone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/outfile.h"

bool gp_hold_temporary(int fd)
{
    struct stat st;
    return (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
        && (fstat(fd, &st) || st.st_nlink);    /* else it was taken for one that was left */
}

/* The process that made .NAME.gpipe-PID or .NAME.gpipe-PID-N; 0: no such name. */
static pid_t maker(const char *name)
{
    const char *p = NULL;
    for (const char *q = name; *name == '.' && (q = strstr(q, ".gpipe-")); q++)
        p = q + 7;
    size_t digits = p ? strspn(p, "0123456789") : 0;
    const char *end = digits ? p + digits : "?";
    if (*end == '-' && end[1])
        end += 1 + strspn(end + 1, "0123456789");
    return *end || digits > 9 ? 0 : (pid_t)strtol(p, NULL, 10);
}

static bool is_of_a_network(int folder)
{
    static const unsigned long networks[] = {
        0x6969 /* NFS */, 0x517b /* SMB */, 0xff534d42 /* CIFS */, 0xfe534d42 /* SMB 2 */,
        0x01021997 /* 9P */, 0x00c36400 /* Ceph */, 0x5346414f, 0x6b414653 /* AFS */,
        0x73757245 /* Coda */, 0x0bd00bd0 /* Lustre */, 0x47504653 /* GPFS */,
        0x65735546 /* FUSE */, 0x19830326 /* BeeGFS */,
    };
    struct statfs fs;
    if (fstatfs(folder, &fs))
        return true;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        if (((unsigned long)fs.f_type & 0xffffffff) == networks[i])
            return true;
    return false;
}

static void remove_if_stale(int folder, const char *name, pid_t pid)
{
    struct stat st;
    if (!kill(pid, 0) || errno != ESRCH)
        return;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid()
        && !flock(fd, LOCK_EX | LOCK_NB))
        unlinkat(folder, name, 0);
    close(fd);
}

void gp_remove_stale(const char *folder)
{
    DIR *d = opendir(folder);
    pid_t pid;
    int network = -1;                  /* not known yet */
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!(pid = maker(e->d_name)))
            continue;
        if (network < 0)
            network = is_of_a_network(dirfd(d));
        if (network)
            break;
        remove_if_stale(dirfd(d), e->d_name, pid);
    }
    if (d)
        closedir(d);
}
