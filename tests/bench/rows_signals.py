"""rows_signals.py - stages for signals on the GPU, beside CuPy's functions: device time of a frame of f32.
"""
from rows_expr import device_us
from tools import Row

FRAMES = {"short": (65280, 1), "long": (1 << 20, 1), "channels": (65280, 64)}          # rows, channels
SECTIONS = [[0.02, 0.04, 0.02, 1, -1.56, 0.64], [1, -1.9, 1, 1, -1.7, 0.8], [1, 2, 1, 1, -1.3, 0.5],
            [1, -2, 1, 1, -1.99, 0.9901]]
RATIO = 3, 4

PIPELINE = """stall_timeout: 0
depth: 2
vars: {frames: 1}
buffers: {x: {dtype: f32, shape: [%d, %d]}}
stages:
  - {use: generate, out: x, frames: frames, fill: once}
  - {use: %s, out: y}
  - {use: decimate, frames: 1000000}
  - {use: discard}
"""
STAGES = {"iir": "iir, sos: %s" % SECTIONS, "resample": "resample, up: %d, down: %d" % RATIO,
          "slide": "slide, length: 1024, hop: 256, taper: hann"}


def row(kind, name):
    def measure(b):
        peers = b.times("signals", "signals_peers.py")
        return device_us(b, kind + name, PIPELINE % (FRAMES[name] + (STAGES[kind],))), peers[kind + " " + name], "CuPy"
    return Row("%s-%s" % (kind, name), "`%s` of %d x %d f32, device time: cupyx.scipy.signal" % ((kind,) + FRAMES[name]),
               "time", 1.0, measure)


ROWS = [row(kind, name) for kind in STAGES for name in FRAMES]
