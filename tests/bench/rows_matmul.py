"""rows_matmul.py - `matmul` of square matrices on the GPU, beside the bare call of cuBLASLt in a graph.
"""
from rows_expr import device_us
from tools import Row, words

PIPELINE = """stall_timeout: 0
depth: 2
streams: 1
vars: {frames: 1}
buffers: {x: {dtype: %s, shape: [%d, %d]}}
stages:
  - {use: generate, out: x, frames: frames, fill: once, pattern: constant, value: 0.33}
  - {use: matmul, in: {a: x, b: x}, %s out: y}
  - {use: decimate, frames: 1000000}
  - {use: discard}
"""


def row(n, how):
    def measure(b):
        dtype, more = "f16" if how == "f16" else "f32", "precision: tf32," if how == "tf32" else ""
        us = b.once("matmul " + how, lambda: device_us(b, "matmul-" + how, PIPELINE % (dtype, n, n, more), 60))
        peer = b.once("matmul by hand " + how,
                      lambda: words(b.run([b.program("matmul", "no cublasLt.h for matmul.cu"), n, how])[0]))
        return us, peer["matmul graph"][0], "cuBLASLt in a graph"
    return Row("matmul-" + how, "%d x %d, %s, device time" % (n, n, how), "rate", 0.95, measure)


ROWS = [row(4096, "f32"), row(8192, "tf32"), row(8192, "f16")]
