/* fiber.h - the interface between a kernel that was compiled for the CPU
 * (kernels/cpu.h, C++) and the code that runs it (fiber.c, C). */
#pragma once

typedef struct gp_cpu_dim { unsigned x, y, z; } gp_cpu_dim;

/* What a thread gives the others of its warp, and gets: bits in the low bytes. */
typedef unsigned long long gp_cpu_bits;
/* What the threads of a warp make of what all of `mask` have given, for thread `lane`. */
typedef gp_cpu_bits (*gp_cpu_vote)(const gp_cpu_bits given[32], unsigned mask, unsigned lane);

/* A block while it runs. `next` is the first thread that was not yet started, in
 * the order x, y, z; next.z == dim.z when all were. */
struct gp_cpu_block {
    gp_cpu_dim next;
    gp_cpu_dim index, dim, grid;   /* blockIdx, blockDim, gridDim */
    void *shared;                  /* dynamic shared memory, aligned to 64 bytes */
    /* The calling thread reached a barrier: returns when all threads of the
     * block are there or have ended. `next` is set before. */
    void (*wait)(struct gp_cpu_block *b);
    /* The calling thread, whose rank in the block is `thread`, reached a warp function: returns when all threads of
     * its warp that are in `mask` are there or have ended, what lane `from` gave, or where `vote` is not NULL what
     * that makes. `next` is set before. */
    gp_cpu_bits (*exchange)(struct gp_cpu_block *b, unsigned thread, unsigned mask, gp_cpu_bits given, unsigned from,
                            gp_cpu_vote vote);
    /* Thread (0, 0, 0) of the block, for which the others wait at a barrier, reached a barrier of
     * the grid: returns when each block is there or has ended. NULL: the grid is not cooperative. */
    void (*wait_grid)(struct gp_cpu_block *b);
};
