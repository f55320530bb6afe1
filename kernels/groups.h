/* groups.h - <cooperative_groups.h> on a CPU: a block, and the grid of a kernel with
 * `cooperative: true`, and tiles of a warp. Names and ranks are those of the CUDA programming guide. Groups of those
 * threads that happen to run together do not compile. */
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
    static unsigned thread_rank() { return gp_rank(); }
};

/* N threads of a warp side by side. */
template <unsigned N> struct thread_block_tile {
    static_assert(N && N <= 32 && !(N & (N - 1)), "a tile has 1, 2, 4, 8, 16 or 32 threads");
    static unsigned thread_rank() { return gp_rank() % N; }
    static constexpr unsigned num_threads() { return N; }
    static constexpr unsigned size() { return N; }
    static unsigned meta_group_rank() { return gp_rank() / N; }
    static unsigned meta_group_size() { return (thread_block::size() + N - 1) / N; }
    static void sync() { __syncwarp(mask()); }
    template <class T> static T shfl(T v, int rank) { return __shfl_sync(mask(), v, rank, N); }
    template <class T> static T shfl_up(T v, unsigned by) { return __shfl_up_sync(mask(), v, by, N); }
    template <class T> static T shfl_down(T v, unsigned by) { return __shfl_down_sync(mask(), v, by, N); }
    template <class T> static T shfl_xor(T v, unsigned ranks) { return __shfl_xor_sync(mask(), v, (int)ranks, N); }
    static int any(int p) { return __any_sync(mask(), p); }
    static int all(int p) { return __all_sync(mask(), p); }
    static unsigned ballot(int p) { return __ballot_sync(mask(), p) >> first(); }
    template <class T> static unsigned match_any(T v) { return __match_any_sync(mask(), v) >> first(); }
    template <class T> static unsigned match_all(T v, int &p) { return __match_all_sync(mask(), v, &p) >> first(); }

private:
    static unsigned first() { return gp_rank() % 32 / N * N; }
    static unsigned mask() { return ~0u >> (32 - N) << first(); }
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

template <unsigned N, class G> static inline thread_block_tile<N> tiled_partition(const G &) { return {}; }

/* Deleted, as in cpu.h. */
int coalesced_threads() = delete;
template <class G> int tiled_partition(const G &, unsigned) = delete;

}

#endif
