/* fiber.h - the interface between a kernel that was compiled for the CPU
 * (kernels/cpu.h, C++) and the code that runs it (fiber.c, C). */
#pragma once

typedef struct gp_cpu_dim { unsigned x, y, z; } gp_cpu_dim;

/* A block while it runs. `next` is the first thread that was not yet started, in
 * the order x, y, z; next.z == dim.z when all were. */
struct gp_cpu_block {
    gp_cpu_dim next;
    gp_cpu_dim index, dim, grid;   /* blockIdx, blockDim, gridDim */
    void *shared;                  /* dynamic shared memory, aligned to 64 bytes */
    /* The calling thread reached a barrier: returns when all threads of the
     * block are there or have ended. `next` is set before. */
    void (*wait)(struct gp_cpu_block *b);
    /* Thread (0, 0, 0) of the block, for which the others wait at a barrier, reached a barrier of
     * the grid: returns when each block is there or has ended. NULL: the grid is not cooperative. */
    void (*wait_grid)(struct gp_cpu_block *b);
};
