/* shim.h - what gpipe needs of MPI, as a table: the command opens the shim (shim.c), a library of its own that `mpicc`
 * builds, only where a launcher of MPI started it, so that gpipe itself is never linked with MPI. */
#pragma once

#include <stdbool.h>

/* All but the last two: any thread, one call at a time. A text is the shim's, or NULL where all went well. */
typedef struct gp_mpi {
    int size;                  /* of this table, in bytes */
    /* Joins the processes that the launcher started. */
    const char *(*start)(int *rank, int *ranks, int *local_rank);
    /* Beside channel 0, which is there, n more, with the next numbers; all ranks ask for as many, and wait for each
     * other. */
    const char *(*open_channels)(int n);
    /* Begins to send `n` bytes of each rank to all: those of rank r come to all + r * n. `mine` and `all` are the
     * shim's until that is done. Each channel does so once at a time, and what is sent on one never meets what is sent
     * on another. */
    const char *(*gather)(int channel, const void *mine, int n, void *all);
    /* Is it? It never waits. */
    const char *(*gathered)(int channel, bool *done);
    /* Says a number, not 0, to another rank, and waits for nobody. The highest that each has said since this was last
     * asked is then at of[rank], where that was less. */
    const char *(*call)(int to, long number);
    const char *(*heard)(long *of);
    /* Begins to send `n` bytes of rank `from` to rank `to`; both call it. One at a time. Is it done? */
    const char *(*pass)(int from, int to, void *data, int n);
    const char *(*passed)(bool *done);
    const char *(*leave)(void);                /* the last call; waits for all ranks */
    const char *(*library)(void);              /* its name and version, one line */
    int (*local_ranks)(void);                  /* how many ranks are on this machine, once it has started */
} gp_mpi;

#define GP_MPI_TABLE gp_mpi_table
