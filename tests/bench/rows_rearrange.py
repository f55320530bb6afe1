"""rows_rearrange.py - stages that only move elements, beside a copy of as many bytes, up to 256 MiB read and 256 MiB
written; and other sizes of pictures, beside the better of NPP and PyTorch.
"""
from rows_expr import device_us, peers
from tools import Row

PIPELINE = """stall_timeout: 0
depth: 2
vars: {frames: 1}
buffers: {x: {dtype: %s, shape: %s}}
stages:
  - {use: generate, out: x, frames: frames, fill: once}
  - {use: %s, out: y}
  - {use: decimate, frames: 1000000}
  - {use: discard}
"""
PLANE, PICTURE, RGB = ("f32", "[8192, 8192]"), ("u8", "[16384, 16384]"), ("u8", "[8192, 10923, 3]")

CASES = [
    ("transpose", PLANE, "transpose, in: x", "f32, transposed"),
    ("transpose-u8", PICTURE, "transpose, in: x", "u8, transposed"),
    ("planes", RGB, "transpose, in: x, axes: [2, 0, 1]", "u8 (H, W, 3) to (3, H, W)"),
    ("rotate", RGB, "rotate90, in: x", "u8 (H, W, 3), a quarter turn"),
    ("flip-rows", RGB, "slice, in: x, index: \"::-1\"", "u8 (H, W, 3), upside down"),
    ("flip-columns", RGB, "slice, in: x, index: \":, ::-1\"", "u8 (H, W, 3), left to right"),
    ("flip-channels", RGB, "slice, in: x, index: \"..., ::-1\"", "u8, RGB to BGR"),
    ("crop", PICTURE, "slice, in: x, index: \"1:-2, 3:-6\"", "u8, rows that begin anywhere"),
    ("pad", RGB, "pad, in: x, before: [8, 8], after: [8, 8], edge: mirror", "u8 (H, W, 3), 8 pixels more around"),
    ("concat", ("f32", "[4096, 8192]"), "concat, axis: 1, in: {a: x, b: x}", "two of f32, side by side"),
]
SIZES = [
    ("half-area", RGB, "resize, in: x, scale: 0.5, method: area", "u8 (H, W, 3) to half the size, area"),
    ("half", RGB, "resize, in: x, scale: 0.5", "u8 (H, W, 3) to half the size, bilinear, antialiased"),
    ("half-plain", RGB, "resize, in: x, scale: 0.5, antialias: false", "the same, not antialiased"),
    ("double", ("u8", "[4096, 5461, 3]"), "resize, in: x, scale: 2", "u8 (H, W, 3) to twice the size, bilinear"),
    ("double-cubic", ("u8", "[4096, 5461, 3]"), "resize, in: x, scale: 2, method: cubic", "the same, cubic"),
    ("half-f32", PLANE, "resize, in: x, scale: 0.5", "f32 (H, W) to half the size, bilinear, antialiased"),
]


def row(name, type_of, stage, what):
    def measure(b):
        us = b.once(name, lambda: device_us(b, name, PIPELINE % (type_of + (stage,)), 60))
        return us, 4 * peers(b, "cupy")["copy"], "copies of as many bytes, CuPy"
    return Row("move-" + name, what + ", device time", "rate", 0.8, measure)


def size(name, type_of, stage, what):
    def measure(b):
        us = b.once(name, lambda: device_us(b, name, PIPELINE % (type_of + (stage,)), 60))
        took = b.times("resize", "resize_peers.py")
        return (us,) + min((v, "NPP" if k.endswith("npp") else "PyTorch") for k, v in took.items()
                           if k.rpartition("-")[0] == name)
    return Row("resize-" + name, what + ", device time", "time", 1.0, measure)


ROWS = [row(*case) for case in CASES] + [size(*case) for case in SIZES]
