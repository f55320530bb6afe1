"""signals_peers.py - filters of signals as one calls them in CuPy (cupyx.scipy.signal).

    signals_peers.py    prints `NAME US`, microseconds of device time a frame: the sum of its kernels, as CUPTI has them
                        through PyTorch's profiler. Frames are those of rows_signals.py; `iir` begins with nothing each time, as CuPy's zi
                        is refused for these shapes.

Exit 3 where there is no CuPy, PyTorch or GPU.
"""
import sys

try:
    import cupy as cp
    import numpy as np
    from cupyx.scipy import signal
    from device_time import us
    cp.zeros(1)
except Exception:
    sys.exit(3)

from rows_signals import FRAMES, RATIO, SECTIONS

for name, (rows, channels) in FRAMES.items():
    x = cp.random.random((rows, channels), dtype=cp.float32)
    sos = cp.array(SECTIONS, cp.float32)
    print("iir %s %.3f" % (name, us(lambda: signal.sosfilt(sos, x, axis=0))))
    print("resample %s %.3f" % (name, us(lambda: signal.resample_poly(x, *RATIO, axis=0))))
    view = cp.lib.stride_tricks.sliding_window_view(x, 1024, 0)[::256]
    taper = cp.array(np.hanning(1025)[:-1], cp.float32)
    print("slide %s %.3f" % (name, us(lambda: view * taper)))
