"""rows_rearrange.py - stages that only move elements, and other sizes of pictures, on the GPU: up to 256 MiB read and 256
MiB written, beside a copy of as many bytes.
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
# How many bytes are read and written, of those of a copy of 256 MiB.
SIZES = [
    ("half-area", RGB, "resize, in: x, scale: 0.5, method: area", "u8 (H, W, 3) to half the size, area", 5 / 8),
    ("half", RGB, "resize, in: x, scale: 0.5", "u8 (H, W, 3) to half the size, bilinear, antialiased", 5 / 8),
    ("double", ("u8", "[4096, 5461, 3]"), "resize, in: x, scale: 2", "u8 (H, W, 3) to twice the size, bilinear", 5 / 8),
    ("double-cubic", ("u8", "[4096, 5461, 3]"), "resize, in: x, scale: 2, method: cubic", "the same, cubic", 5 / 8),
    ("half-f32", PLANE, "resize, in: x, scale: 0.5", "f32 (H, W) to half the size, bilinear, antialiased", 5 / 8),
]


def row(name, type_of, stage, what, part=1):
    def measure(b):
        us = b.once(name, lambda: device_us(b, name, PIPELINE % (type_of + (stage,)), 60))
        return us, part * 4 * peers(b, "cupy")["copy"], "copies of as many bytes, CuPy"
    return Row(("resize-" if part < 1 else "move-") + name, what + ", device time", "rate", 0.8, measure)


ROWS = [row(*case) for case in CASES + SIZES]
