"""chain_peers.py - eight steps of arithmetic, a maximum behind them, and a stencil, as one writes them by hand.

    chain_peers.py cupy          with CuPy: `copy US`, `fused US`, `reduced US`, `stencil US`, microseconds of device time a
                                 frame: the sum of its kernels, as CUPTI has them through PyTorch's profiler. 64 MiB of f32; the stencil: a mean of 3 x 3 of 2160 x 3840. Frames rotate through
                                 8 buffers, so that the L2 cache does not help.
    chain_peers.py numexpr N     with numexpr on N threads: `numexpr US`, the steps and the maximum, of the wall clock.

Exit 3 where there is no such library, PyTorch for CuPy included, or no GPU for it.
"""
import sys, time

STEPS, FRAMES, ELEMENTS, HEIGHT, WIDTH = 8, 8, 16 << 20, 2160, 3840

# A block of 32 x 8 threads has its tile and the border around it in shared memory.
STENCIL = r"""
extern "C" __global__ void stencil(const float *x, float *y, int height, int width)
{
    __shared__ float tile[10][34];
    int left = blockIdx.x * 32, top = blockIdx.y * 8;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 340; i += 256) {
        int row = min(max(top + i / 34 - 1, 0), height - 1), column = min(max(left + i % 34 - 1, 0), width - 1);
        tile[i / 34][i % 34] = x[(size_t)row * width + column];
    }
    __syncthreads();
    int row = top + threadIdx.y, column = left + threadIdx.x;
    if (row >= height || column >= width)
        return;
    float sum = 0;
    for (int k = 0; k < 3; k++)
        for (int l = 0; l < 3; l++)
            sum += tile[threadIdx.y + k][threadIdx.x + l];
    y[(size_t)row * width + column] = sum / 9;
}
"""


def cupy_times():
    try:
        import cupy as cp
        from torch.autograd import DeviceType
        from torch.profiler import ProfilerActivity, profile
        cp.zeros(1)
    except Exception:
        sys.exit(3)
    xs = [cp.random.random(ELEMENTS, dtype=cp.float32) for _ in range(FRAMES)]
    ys = [cp.empty_like(x) for x in xs]
    steps = "float t = x; for (int i = 0; i < %d; i++) t = t * 1.01f + 0.5f;" % STEPS
    fused = cp.ElementwiseKernel("float32 x", "float32 y", steps + " y = t", "chain")
    reduced = cp.ReductionKernel("float32 x", "float32 y", "chain_(x)", "max(a, b)", "y = a", "-INFINITY", "chain_max",
                                 preamble="__device__ float chain_(float x) { %s return t; }" % steps)
    stencil = cp.RawKernel(STENCIL, "stencil")
    images = [cp.random.random((HEIGHT, WIDTH), dtype=cp.float32) for _ in range(FRAMES)]
    made = [cp.empty_like(x) for x in images]

    def us(work, rounds=20):
        work(0)
        cp.cuda.Device().synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as p:
            for i in range(rounds * FRAMES):
                work(i % FRAMES)
            cp.cuda.Device().synchronize()
        ns = [e.duration_ns() for e in p.profiler.kineto_results.events()
              if e.device_type() == DeviceType.CUDA and "Sync" not in e.name()]
        if len(ns) < rounds * FRAMES:
            sys.exit("chain_peers: the profiler saw %d kernels of %d calls" % (len(ns), rounds * FRAMES))
        return sum(ns) / rounds / FRAMES * 1e-3

    print("copy %.3f" % us(lambda i: cp.copyto(ys[i], xs[i])))
    print("fused %.3f" % us(lambda i: fused(xs[i], ys[i])))
    print("reduced %.3f" % us(lambda i: reduced(xs[i])))
    print("stencil %.3f" % us(lambda i: stencil(((WIDTH + 31) // 32, (HEIGHT + 7) // 8), (32, 8),
                                                (images[i], made[i], HEIGHT, WIDTH))))


def numexpr_time(threads):
    try:
        import numexpr
        import numpy as np
    except ImportError:
        sys.exit(3)
    numexpr.set_num_threads(threads)
    xs = [np.arange(ELEMENTS, dtype=np.float32) for _ in range(FRAMES)]
    y = np.empty_like(xs[0])
    text, a, b = "x", np.float32(1.01), np.float32(0.5)
    for _ in range(STEPS):
        text = "(%s * a + b)" % text

    def work(x):
        numexpr.evaluate(text, {"x": x, "a": a, "b": b}, out=y)
        return y.max()

    work(xs[0])
    start = time.perf_counter()
    for x in xs:
        work(x)
    print("numexpr %.3f" % ((time.perf_counter() - start) / FRAMES * 1e6))


if sys.argv[1:] == ["cupy"]:
    cupy_times()
elif len(sys.argv) == 3 and sys.argv[1] == "numexpr":
    numexpr_time(int(sys.argv[2]))
else:
    sys.exit(__doc__)
