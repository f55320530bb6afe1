/* spawn.h - the one place where programs are started, and the pipes to them. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* In place of a descriptor: as it is here; /dev/null. */
enum { GP_SPAWN_OURS = -1, GP_SPAWN_NOTHING = -2, GP_SPAWN_FDS = 4 };

typedef struct gp_spawn {
    const char *const *argv;           /* ends with NULL; the program is looked for in PATH */
    const char *folder;                /* NULL: where we are */
    int fd[GP_SPAWN_FDS], nfd;         /* what its descriptors 0 to nfd - 1 are, at least the standard streams; it has
                                        * no others */
    pid_t group;                       /* of processes; 0: a new one; -1: ours */
} gp_spawn;

/* Starts it with the signals of a new program: here they are handled, blocked or ignored. 0 or errno. */
int gp_spawn_start(pid_t *pid, const gp_spawn *s);

/* The descriptor above all that a child gets in its place, in place of `fd`, which is closed; -1: there is none. */
int gp_fd_lift(int fd);
/* Both ends lifted; where that fails those that are open are not -1. */
bool gp_pipe_open(int p[2]);
void gp_fd_close(int *fd);             /* unless it is -1, which it is then */
