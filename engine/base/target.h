/* target.h - what the path of an output leads to: a file that has a name, or one that is
 * open or that nothing may replace; and which path leads to an open one. Any thread. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

typedef struct gp_target {
    char path[PATH_MAX];       /* without symbolic links at its end */
    struct stat st;            /* what is there; st_mode 0: nothing */
    int own;                   /* the open file of this process that it is (/dev/stdout,
                                  /dev/fd/3), by its number; -1: none */
    bool is_name;              /* a name that a new file may take; else it is written as it is */
} gp_target;

/* False with errno. EBADF: it names a number at which this process was given no open file. */
bool gp_target_find(gp_target *t, const char *path);

/* Does the path lead to the open file? `flags` are fstatat()'s: AT_SYMLINK_NOFOLLOW, or 0. False
 * with errno; ESTALE: it leads to another. */
bool gp_target_is(int fd, const char *path, int flags);

/* Where an open file is now, whoever moved it. False: it has no name that is known. */
bool gp_target_path(int fd, char path[PATH_MAX]);
