"""rows_fft.py - Fourier transforms on the GPU, of 4096 lines of 4096 numbers, beside cuFFT's call alone in a graph.
"""
from rows_expr import device_us
from tools import Row, words

PIPELINE = """stall_timeout: 0
depth: 2
vars: {frames: 1}
buffers: {x: {dtype: %s, shape: [4096, 4096]}}
stages:
  - {use: generate, out: x, frames: frames, fill: once}
  - {use: fft}
  - {use: decimate, frames: 1000000}
  - {use: discard}
"""


def transform(which, dtype):
    def measure(b):
        us = b.once("fft " + which, lambda: device_us(b, "fft-" + which, PIPELINE % dtype, 100))
        alone = b.once("fft alone", lambda: words(b.run([b.program("fft", "no nvcc for fft.cu"), 4096, 4096])[0]))
        return us, alone["fft " + which][0], "cuFFT in a graph"
    return measure


ROWS = [
    Row("fft", "4096 x 4096 of f32, device time: the bare call", "time", 1 / 0.95, transform("real", "f32")),
    Row("fft-complex", "4096 x 4096 of c64, device time: the bare call", "time", 1 / 0.95, transform("complex", "c64")),
]
