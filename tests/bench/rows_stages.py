"""rows_stages.py - loops, accumulators and frames of several shapes on the GPU, beside what they are to cost.
"""
import os, struct

from tools import HERE, MIB, Row, words


# -- 1,000 iterations --

HEAT = """stall_timeout: 0
vars: {frames: 1}
buffers: {hot: {dtype: f32, shape: [512, 512]}}
stages:
  - {use: generate, out: hot, frames: frames, fill: once}
  - use: loop
    in: {u: hot}
    out: {v: cold}
    times: 1000
    carry: {u: v}
    stages:
      - {use: kernel, source: '%s/heat_step.cu', entry: step, in: {u: u}, out: {v: v}, args: [u, v, {i32: 512}],
         block: [32, 8], grid: [16, 64]}
  - {use: discard}
""" % HERE


def heat(b, peer):
    b.has_gpu()
    us = b.once("heat", lambda: b.gpipe_us(b.write("heat.yaml", HEAT), ["device=cuda"], 50, 450))
    by_hand = b.once("heat by hand", lambda: words(b.run([b.program("heat", "no nvcc for heat.cu"), 512, 1000])[0]))
    return us, by_hand["heat " + peer][0], peer + " by hand"


# -- iterations of an expression, where each frame goes on where the one before ended, as in examples/heat --

PLATE = """stall_timeout: 0
vars: {frames: 1}
buffers: {hot: {dtype: f32, shape: [SIDE, SIDE]}, before: {carry: after}, after: {dtype: f32, shape: [SIDE, SIDE]}}
stages:
  - {use: generate, out: hot, frames: frames, fill: once}
  - {use: expr, in: {hot: hot, before: before}, out: plate, expr: "plate = frame.index == 0 ? hot : before"}
  - use: loop
    in: {u: plate}
    out: {v: after}
    times: STEPS
    carry: {u: v}
    stages:
      - use: expr
        in: {u: u}
        out: {v: v}
        edge: zero
        expr: v = u + 0.1 * (u[i0, i1 - 1] + u[i0, i1 + 1] + u[i0 - 1, i1] + u[i0 + 1, i1] - 4 * u)
  - {use: discard, in: after}
"""


def plate(b, side, steps, frames, peer="graph"):
    """`alone`: the same with one iteration in a kernel."""
    b.has_gpu()
    file = b.write("plate.yaml", PLATE.replace("SIDE", str(side)).replace("STEPS", str(steps)))

    def us(*more):
        return b.gpipe_us(file, ["device=cuda"] + list(more), frames // 10, frames)
    is_us = b.once("plate %d" % side, us)
    if peer == "alone":
        return is_us, b.once("plate %d alone" % side, lambda: us("fuse=none")), "fuse: none"
    by_hand = b.once("plate %d by hand" % side, lambda: words(b.run([b.program("heat", "no nvcc for heat.cu"), side,
                                                                     steps])[0]))
    return is_us, by_hand["heat " + peer][0], peer + " by hand"


# -- a running accumulator --

def accumulator(b):
    """`mix` of every 1,000 frames, and of all of them."""
    def per_frame(name, frames):
        file = b.write(name + ".yaml", """stall_timeout: 0
vars: {frames: 1}
buffers: {x: {dtype: f32, shape: [%d]}}
stages:
  - {use: generate, out: x, frames: frames, fill: once}
  - {use: mix, op: sum%s}
  - {use: discard}
""" % (MIB // 4, frames))
        return b.gpipe_us(file, ["device=cuda"], 2000, 42000)
    b.has_gpu()
    return per_frame("some", ", frames: 1000"), per_frame("all", ""), "of all"


# -- a stage that carries --

def carry(b):
    """A stage that reads what it made of the frame before, behind stages whose frames overlap; and one that reads
    another frame in its place, whose frames overlap, too."""
    def per_frame(name, more, other):
        file = b.write(name + ".yaml", """stall_timeout: 0
vars: {frames: 1}
buffers: {x: {dtype: f32, shape: [512, 512]}, v: {like: x}%s}
stages:
  - {use: generate, out: x, frames: frames, fill: once}
  - {use: blur, sigma: 4}
  - {use: blur, sigma: 4, out: soft}
  - {use: expr, in: {a: soft, b: %s}, out: v, expr: a + 0.5 * b}
  - {use: discard}
""" % (more, other))
        return b.gpipe_us(file, ["device=cuda"], 2000, 42000)
    b.has_gpu()
    return per_frame("carried", ", u: {carry: v}", "u"), per_frame("not-carried", "", "x"), "without"


# -- frames of several shapes --

SHAPES = [(1080, 1920), (1080, 1440), (720, 1280), (1024, 1024), (600, 1900), (1000, 1500), (1080, 810), (960, 1280),
          (768, 1024), (1066, 1600)]


def put_npy(file, rows, columns):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, columns)
    head += " " * (118 - len(head) - 1) + "\n"
    with open(file, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(bytes(range(64)) * (rows * columns // 16) + b"\x00" * (rows * columns % 16 * 4))


def shapes(b):
    """Three kernels over ten shapes, and over frames that have one shape and as many elements in the mean."""
    b.has_gpu()
    side = int((sum(r * c for r, c in SHAPES) / len(SHAPES)) ** 0.5)

    def make():
        for name, sizes in (("varied", SHAPES), ("alike", [(side, side)] * len(SHAPES))):
            os.makedirs(b.path(name))
            for i, (rows, columns) in enumerate(sizes):
                put_npy(b.path("%s/%d.npy" % (name, i)), rows, columns)

    def per_frame(name, more, shape):
        file = b.write(name + ".yaml", """stall_timeout: 0
%svars: {frames: 1}
buffers: {x: {dtype: f32, shape: %s}}
stages:
  - {use: read, path: '%s/*.npy', loop: true, frames: frames, out: x}
  - {use: scale, a: 2, b: 1, in: x}
  - {use: blur, sigma: 1.5}
  - {use: sobel}
  - {use: discard}
""" % (more, shape, b.path(name)))
        return b.gpipe_us(file, ["device=cuda"], 500, 4500)
    b.ever("shapes", make)
    return per_frame("varied", "", '["<=1080", "<=1920"]'), \
        per_frame("alike", "launch: stream\n", "[%d, %d]" % (side, side)), "launch: stream"


ROWS = [
    Row("loop", "1,000 heat steps of 512 x 512 in `loop`: one graph by hand", "time", 1.15, lambda b: heat(b, "graph")),
    Row("loop-launches", "the same: launches by hand", "time", 0.5, lambda b: heat(b, "launches")),
    Row("plate-255", "1,500 heat steps of 255 x 255 as `expr` in `loop`, frame after frame: one graph by hand", "time",
        0.5, lambda b: plate(b, 255, 1500, 1000)),
    Row("plate-512", "500 of 512 x 512", "time", 0.6, lambda b: plate(b, 512, 500, 1000)),
    Row("plate-2048", "100 of 2048 x 2048", "time", 0.7, lambda b: plate(b, 2048, 100, 500)),
    Row("plate-255-alone", "1,500 of 255 x 255: one iteration in a kernel", "time", 0.5,
        lambda b: plate(b, 255, 1500, 1000, "alone")),
    Row("mix-1000", "`mix` of every 1,000 frames of 1 MiB: of all", "rate", 0.95, accumulator),
    Row("carry", "a stage that carries its last frame of 1 MiB, behind two others: without", "rate", 0.95, carry),
    Row("shapes", "f32 images of ten shapes, three kernels: one shape", "rate", 0.9, shapes),
]
