"""pictures_peers.py - filters of pictures as one calls them in CuPy (cupyx.scipy.ndimage) and PyTorch.

    pictures_peers.py make DIR    writes the frames of rows_pictures.py there, noise and a mask of spots
    pictures_peers.py time DIR    prints `NAME US`, microseconds of device time a frame: the sum of its kernels and fills, as
                                  CUPTI has them through PyTorch's profiler
    pictures_peers.py sound       prints `NAME US` of a second of sound to a picture of its spectrum: one frame and its wait
                                  after the other, by CuPy in a CUDA graph, with a copy before and one behind it, which
                                  CuPy captures none of

Exit 3 where there is no CuPy, PyTorch or GPU.
"""
import os, statistics, sys, time

try:
    import cupy as cp
    import numpy as np
    import torch
    from cupyx.scipy import ndimage
    from device_time import us
    cp.zeros(1)
except Exception:
    sys.exit(3)

SHAPE = 2160, 3840


def make(folder):
    r = np.random.default_rng(15)
    u8 = r.integers(0, 256, SHAPE, dtype=np.uint8)
    np.save(os.path.join(folder, "u8.npy"), u8)
    np.save(os.path.join(folder, "f32.npy"), r.random(SHAPE, dtype=np.float32))
    spots = ndimage.gaussian_filter(cp.asarray(u8, cp.float32), 3)
    np.save(os.path.join(folder, "mask.npy"), cp.asnumpy(spots > 130).astype(np.uint8))
    np.save(os.path.join(folder, "scores.npy"), r.random((4096, 4096), dtype=np.float32))


def measure(folder):
    u8, f32, mask, scores = (cp.load(os.path.join(folder, n + ".npy")) for n in ("u8", "f32", "mask", "scores"))
    for size in (3, 5, 7):
        print("median-u8-%d %.3f" % (size, us(lambda: ndimage.median_filter(u8, size))))
        print("median-f32-%d %.3f" % (size, us(lambda: ndimage.median_filter(f32, size))))
    for size in (3, 15):
        print("dilate-%d %.3f" % (size, us(lambda: ndimage.grey_dilation(u8, size))))
    print("label %.3f" % us(lambda: ndimage.label(mask)))
    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark = False, True
    image, rows = torch.as_tensor(f32)[None, None], torch.as_tensor(scores)
    for size in (3, 7, 15):
        weights = cp.ones((size, size), cp.float32) / size ** 2
        w = torch.as_tensor(weights)[None, None]
        print("conv2d-%d-cudnn %.3f" % (size, us(lambda: torch.nn.functional.conv2d(image, w, padding=size // 2))))
        print("conv2d-%d-cupy %.3f" % (size, us(lambda: ndimage.convolve(f32, weights))))
    for k in (8, 128):
        print("topk-%d %.3f" % (k, us(lambda: torch.topk(rows, k))))


def pinned(dtype, *shape):
    n = int(np.prod(shape))
    return np.frombuffer(cp.cuda.alloc_pinned_memory(n * np.dtype(dtype).itemsize), dtype, n).reshape(shape)


def sound():
    """48,000 samples; 147 lines of 1,024, 320 apart; decibels from -80 to 0 as colors."""
    n, length, hop = 48000, 1024, 320
    device, x = cp.empty(n, cp.float32), pinned(np.float32, n)
    x[:] = np.sin(np.arange(n) * 0.1, dtype=np.float32)
    taper, colors = cp.asarray(np.hanning(length + 1)[:-1], cp.float32), cp.arange(768, dtype=cp.uint8).reshape(256, 3)
    lines = cp.lib.stride_tricks.sliding_window_view(device, length)[::hop]
    picture = pinned(np.uint8, lines.shape[0], 513, 3)
    stream = cp.cuda.Stream(non_blocking=True)

    def work():
        spectrum = cp.fft.rfft(lines * taper)
        level = 10 * cp.log10(cp.maximum(spectrum.real ** 2 + spectrum.imag ** 2, 1e-8))
        index = cp.clip((level + 80) * (255 / 80), 0, 255).astype(cp.uint8)
        return colors[index]

    with stream:
        device.set(x, stream=stream)
        work()
        stream.synchronize()
        stream.begin_capture()
        made = work()
        graph = stream.end_capture()
        times = []
        for i in range(1200):
            start = time.perf_counter()
            device.set(x, stream=stream)
            graph.launch(stream)
            made.get(stream=stream, out=picture, blocking=False)
            stream.synchronize()
            times.append(time.perf_counter() - start)
    print("graph %.3f" % (1e6 * statistics.median(times[200:])))


{"make": make, "time": measure, "sound": lambda: sound()}[sys.argv[1]](*sys.argv[2:])
