/* groups.h - <cooperative_groups.h> on a CPU: a block, and the grid of a kernel with
 * `cooperative: true`. Names and ranks are those of the CUDA programming guide. What works in
 * groups of a warp does not compile. */
#ifndef GP_GROUPS_H
#define GP_GROUPS_H

namespace cooperative_groups {

struct thread_block {
    static void sync() { __syncthreads(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 dim_threads() { return blockDim; }
    static dim3 group_dim() { return blockDim; }
    static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned size() { return num_threads(); }
    static unsigned thread_rank()
    {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
};

/* The mark is looked for in what the compiler says (engine/device/source_errors.c). */
#if GP_COOPERATIVE
static inline void gp_may_wait() {}
#else
void gp_may_wait() __attribute((__error__("gpipe-check cooperative")));
#endif

struct grid_group {
    static bool is_valid() { return gp_block->wait_grid; }
    /* The block's threads meet, one of them waits for the other blocks, all go on. */
    static void sync()
    {
        gp_may_wait();
        __syncthreads();
        if (thread_block::thread_rank() == 0)
            gp_block->wait_grid(gp_block);
        __syncthreads();
    }
    static dim3 block_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 group_dim() { return gridDim; }
    static unsigned long long num_blocks()
    {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    static unsigned long long block_rank()
    {
        return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    }
    static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
    static unsigned long long size() { return num_threads(); }
    static unsigned long long thread_rank()
    {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
};

static inline thread_block this_thread_block() { return {}; }
static inline grid_group this_grid() { return {}; }
template <class G> static inline void sync(const G &g) { g.sync(); }

/* Deleted, as in cpu.h. */
int coalesced_threads() = delete;
template <unsigned N, class G> int tiled_partition(const G &) = delete;
template <class G> int tiled_partition(const G &, unsigned) = delete;

}

#endif
