"""signals_peers.py - filters of signals as one calls them in CuPy (cupyx.scipy.signal).

    signals_peers.py    prints `NAME US`, microseconds of device time a frame: the sum of its kernels, as CUPTI has them
                        through PyTorch's profiler. Frames are those of rows_signals.py, and state is handed on.

Exit 3 where there is no CuPy, PyTorch or GPU.
"""
import sys

try:
    import cupy as cp
    import numpy as np
    from cupyx.scipy import signal
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile
    cp.zeros(1)
except Exception:
    sys.exit(3)

from rows_signals import FRAMES, RATIO, SECTIONS

ROUNDS = 50


def us(work):
    work()
    cp.cuda.Device().synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        for _ in range(ROUNDS):
            work()
        cp.cuda.Device().synchronize()
    ns = [e.duration_ns() for e in p.profiler.kineto_results.events()
          if e.device_type() == DeviceType.CUDA and "Sync" not in e.name()]
    if len(ns) < ROUNDS:
        sys.exit("signals_peers: the profiler saw %d kernels of %d calls" % (len(ns), ROUNDS))
    return sum(ns) / ROUNDS * 1e-3


for name, (rows, channels) in FRAMES.items():
    x = cp.random.random((rows, channels), dtype=cp.float32)
    sos = cp.array(SECTIONS, cp.float32)
    state = [cp.zeros((len(SECTIONS), 2, channels), cp.float32)]

    def filtered():
        y, state[0] = signal.sosfilt(sos, x, axis=0, zi=state[0])
        return y

    print("iir %s %.3f" % (name, us(filtered)))
    print("resample %s %.3f" % (name, us(lambda: signal.resample_poly(x, *RATIO, axis=0))))
    view = cp.lib.stride_tricks.sliding_window_view(x, 1024, 0)[::256]
    taper = cp.array(np.hanning(1025)[:-1], cp.float32)
    print("slide %s %.3f" % (name, us(lambda: view * taper)))
