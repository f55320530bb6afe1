"""rows_expr.py - arithmetic in the pipeline: stages that become one kernel, beside one that is written by hand.

On a GPU what counts is the device's own time for a frame, as a trace says it: copies from and to the host would hide it.
Frames of 64 MiB go through eight slots, so that the L2 cache does not help.
"""
import json, statistics

from tools import Failure, Row

CHAIN = """stall_timeout: 0
depth: 8
vars: {frames: 1}
buffers: {x: {dtype: f32, shape: [4096, 4096]}}
stages:
  - {use: generate, out: x, frames: frames, fill: once}
""" + "  - {use: scale, a: 1.01, b: 0.5}\n" * 8
MAXIMUM = CHAIN + """  - {use: reduce, op: max}
  - {use: discard}
"""
# What comes out stays on the device, but for the first frame.
OUTPUT = CHAIN + """  - {use: decimate, frames: 1000000}
  - {use: discard}
"""
STENCIL = """stall_timeout: 0
depth: 8
vars: {frames: 1}
buffers: {x: {dtype: f32, shape: [2160, 3840]}}
stages:
  - {use: generate, out: x, frames: frames, fill: once}
  - use: expr
    in: {a: x}
    edge: nearest
    expr: "(a[i0 - 1, i1 - 1] + a[i0 - 1, i1] + a[i0 - 1, i1 + 1] + a[i0, i1 - 1] + a + a[i0, i1 + 1] + a[i0 + 1, i1 - 1]
      + a[i0 + 1, i1] + a[i0 + 1, i1 + 1]) / 9"
    out: y
  - {use: discard}
"""


def peers(b, which, *more):
    """{"fused": us, ...}"""
    return b.times(which, "chain_peers.py", which, *more)


def device_us(b, name, text, frames=200):
    """Microseconds from the start of a frame's first kernel to the end of its last one, as CUPTI has them: the median."""
    b.has_gpu()
    file, trace = b.write(name + ".yaml", text), b.path(name + ".json")
    b.gpipe_seconds(file, ["device=cuda", "vars.frames=%d" % frames], frames,
                    ["--progress", "none", "--trace", trace, "--trace-gpu", "full"])
    with open(trace) as f:
        events = json.load(f)["traceEvents"]
    spans = {}
    for e in events:
        if e.get("cat") == "compute" and "decimate" not in e["name"]:
            first, last = spans.get(e["args"]["frame"], (e["ts"], 0))
            spans[e["args"]["frame"]] = min(first, e["ts"]), max(last, e["ts"] + e["dur"])
    if len(spans) < frames // 2:
        raise Failure("the trace has kernels of %d frames only" % len(spans))
    return statistics.median(last - first for first, last in spans.values())


def maximum(b):
    return b.once("chain max", lambda: device_us(b, "maximum", MAXIMUM))


def beside_cupy(measure, what):
    return lambda b: (measure(b), peers(b, "cupy")[what], "CuPy")


def on_cpu(b):
    """Two streams, as numexpr has two threads."""
    file = b.write("maximum.yaml", MAXIMUM)
    us = b.gpipe_us(file, ["device=cpu", "depth=2", "streams=2"], 10, 50)
    return us, peers(b, "numexpr", "2")["numexpr"], "numexpr, 2 threads"


def output(b):
    return b.once("chain", lambda: device_us(b, "output", OUTPUT))


ROWS = [
    Row("chain-max", "8 steps and a maximum of 64 MiB, device time: reading it as fast as a copy does", "time", 1.15,
        lambda b: (maximum(b), peers(b, "cupy")["copy"] / 2, "half a copy")),
    Row("chain-max-cupy", "the same: a ReductionKernel of CuPy", "time", 0.8, beside_cupy(maximum, "reduced")),
    Row("chain", "8 steps of 64 MiB, device time: a copy", "time", 1.1, beside_cupy(output, "copy")),
    Row("chain-cupy", "the same: an ElementwiseKernel of CuPy", "time", 1.0, beside_cupy(output, "fused")),
    Row("stencil", "a mean of 3 x 3 of 2160 x 3840, device time: by hand with shared memory", "time", 1.1,
        beside_cupy(lambda b: device_us(b, "stencil", STENCIL), "stencil")),
    Row("chain-cpu", "8 steps and a maximum of 64 MiB on 2 cores: numexpr", "time", 1.0, on_cpu),
]
