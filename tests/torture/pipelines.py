"""pipelines.py - what torture.py attacks: pipelines that together use every way in and out.

Each is a command with its files. `good` is its exit code when nothing is made to fail. `frames`
says, for a file that holds several frames, the bytes of a frame."""
import os, struct, zlib


def npy(shape, data, dtype="<f4"):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def floats(n, f=lambda i: i % 97):
    return struct.pack(f"<{n}f", *(f(i) for i in range(n)))


def png(w, h, seed):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((x * 7 + y * 13 + seed * 31 + c) % 256 for x in range(w) for c in range(3))
                    for y in range(h))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def jpeg(name):
    with open(f"{os.path.dirname(os.path.abspath(__file__))}/../data/jpeg/{name}.jpg", "rb") as f:
        return f.read()


class Pipeline:
    def __init__(self, name, text, options="", good=0, frames={}, stdin=None, cached=False):
        self.name, self.text, self.options, self.good = name, text, options.split(), good
        self.frames, self.stdin, self.cached = frames, stdin, cached
        self.drops = "on_error: drop" in text


KERNEL = """depth: 3
buffers: {a: {dtype: f32, shape: [64]}}
stages:
  - {use: generate, out: a, frames: 7}
  - {use: kernel, source: kernel.cu, args: [in, out, {i32: 64}], threads: 64, block: 64}
  - {use: write, path: "${env:OUT}/joined.raw"}
"""

ALL = [
    Pipeline("npy", """depth: 3
buffers: {a: {dtype: f32, shape: [64]}}
stages:
  - {use: read, path: a.npy, out: a}
  - {use: scale, a: 2}
  - {use: lua, script: copy.lua, workers: 3}
  - {use: write, path: "${env:OUT}/joined.npy", workers: 4}
  - {name: each, use: write, in: a, path: "${env:OUT}/each/%05d.raw", workers: 2}
""", "--report $OUT/report.json --trace $OUT/trace.json", frames={"joined.npy": 256}),

    Pipeline("stream", """depth: 4
buffers: {a: {dtype: u8, shape: [100]}}
stages:
  - {use: read, path: stdin, out: a}
  - {use: cast, dtype: f32}
  - {use: write, path: stdout, format: raw}
""", "-v", frames={"stdout": 400}, stdin=bytes(i % 251 for i in range(1250))),

    Pipeline("png", """depth: 3
stages:
  - {use: read, path: "p*.png"}
  - {use: gray}
  - {use: cast, dtype: u8}
  - {use: write, path: "${env:OUT}/%n-gray.png", workers: 2}
"""),

    Pipeline("jpeg", """depth: 3
buffers: {photo: {dtype: u8, shape: ["<=40", "<=40", 3]}}
stages:
  - {use: read, path: "j*.jpg", out: photo}
  - {use: write, path: "${env:OUT}/%n-again.jpg", workers: 2}
  - {name: upright, use: write, in: photo, path: "${env:OUT}/%n.ppm"}
"""),
    Pipeline("rotate", """depth: 3
buffers: {a: {dtype: f32, shape: [64]}}
stages:
  - {use: read, path: ramp.npy, out: a}
  - {use: scale, a: 2}
  - {use: write, path: "${env:OUT}/part%02d.npy", rotate_frames: 3}
""", frames={f"part{k:02}.npy": 256 for k in range(9)}),

    Pipeline("kernel", KERNEL, frames={"joined.raw": 256}, cached=True),
    Pipeline("compile", KERNEL, frames={"joined.raw": 256}),

    Pipeline("segments", """depth: 4
buffers:
  a: {dtype: f32, shape: [64]}
  taps: {const: taps.npy}
stages:
  - {use: read, path: a.npy, out: a}
  - {use: fir, in: {in: a, taps: taps}, out: smooth}
  - {use: lua, script: copy.lua, out: middle, workers: 2}
  - {name: again, use: fir, in: {in: middle, taps: taps}}
  - {use: write, path: "${env:OUT}/joined.npy", in: again}
""", "--report $OUT/report.html", frames={"joined.npy": 256}),

    Pipeline("drop", """depth: 3
on_error: drop
stages:
  - {use: read, path: "p*.png"}
  - {use: gray}
  - {use: lua, script: fails.lua, workers: 2}
  - {use: write, path: "${env:OUT}/each/%05d.npy"}
  - {name: all, use: write, in: lua, path: "${env:OUT}/joined.raw", workers: 2}
""", frames={"joined.raw": 8 * 6 * 4}),

    Pipeline("stop", """depth: 3
buffers: {a: {dtype: f32, shape: [64]}}
stages:
  - {use: generate, out: a, frames: 9}
  - {use: lua, script: fails.lua}
  - {use: write, path: "${env:OUT}/each/%05d.npy"}
""", good=1),

    Pipeline("regroup", """depth: 3
buffers: {a: {dtype: f32, shape: [64]}}
stages:
  - {use: read, path: ramp.npy, out: a}
  - {use: group, frames: 2, tail: drop}
  - {use: scale, a: 2}
  - {use: split}
  - {use: mix, op: sum, frames: 2, tail: drop}
  - {use: write, path: "${env:OUT}/joined.npy"}
  - {use: hold, in: a, frames: 2}
  - {use: window, frames: 3}
  - {use: decimate, frames: 4}
  - {name: each, use: write, path: "${env:OUT}/each/%05d.raw"}
""", frames={"joined.npy": 256}),

    Pipeline("feedback", """depth: 3
buffers:
  a: {dtype: f32, shape: [64]}
  sum: {like: a}
  before: {carry: sum, init: 1}
  soft: {like: a}
  old: {carry: soft}
  last: {like: a}
  both: {like: a}
  p: {dtype: u8, shape: ["<=7", "<=9", 3]}
stages:
  - {use: read, path: ramp.npy, out: a}
  - {name: sum, use: lua, script: sum.lua, in: {x: a, u: before}, out: sum}
  - {use: loop, in: {u: sum}, out: {v: soft}, times: 4, carry: {u: v}, stages: [{use: scale, a: 0.5, in: u, out: v}]}
  - {name: both, use: lua, script: sum.lua, in: {x: soft, u: old}, out: both}
  - {use: write, path: "${env:OUT}/joined.npy"}
  - {use: lua, script: last.lua, in: both, window: {in: 3}, out: last}
  - {name: lasts, use: write, path: "${env:OUT}/last.raw"}
  - {name: photos, use: read, path: "p*.png", out: p}
  - {use: gray}
  - {name: each, use: write, path: "${env:OUT}/%n.npy"}
""", frames={"joined.npy": 256, "last.raw": 256}),

    Pipeline("compare", """depth: 3
buffers: {a: {dtype: f32, shape: [64]}}
stages:
  - {use: generate, out: a, frames: 9}
  - {name: there, use: scale, a: 8}
  - {name: back, use: scale, a: 0.125}
  - {use: compare, in: [back, a]}
  - {name: file, use: compare, in: back, file: ramp.npy}
""", "--progress json --metrics 127.0.0.1:0"),
]

COPY = "stateless = true\nfunction process(f, x, y) y:copy(x) end\n"
SUM = "function process(f, x, y) y:add(x.x, x.u) end\n"
LAST = "function process(f, x, y) y:copy(x:slice(x.shape[1])) end\n"
FAILS = """stateless = true
function process(f, x, y)
  if f.index == 2 then return "drop" end
  if f.index == 4 then error("as planned") end
  y:copy(x)
end
"""
CU = """extern "C" __global__ void kernel(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 2 * in[i] + 1;
}
"""
# Compiles once, and from then on gives what came out.
COMPILER = """#!/bin/sh
saved=${0%/*}/kernel.so
if [ ! -f "$saved" ]; then
    c++ "$@" || exit
    while [ $# -gt 1 ]; do [ "$1" = -o ] && cp "$2" "$saved.new" && mv "$saved.new" "$saved"; shift; done
    exit
fi
cat >/dev/null
while [ $# -gt 1 ]; do [ "$1" = -o ] && exec cp "$saved" "$2"; shift; done
exit 1
"""


def make(folder):
    """Writes the pipelines and all they read into `folder`."""
    def put(name, data):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
    os.makedirs(folder)
    put("a.npy", npy((660,), floats(660)))
    put("taps.npy", npy((5,), floats(5, lambda i: 0.25 * i)))
    put("ramp.npy", npy((9 * 64,), floats(9 * 64, lambda i: i)))
    for i in range(6):
        put(f"p{i}.png", png(8, 6, i))
    for i, name in enumerate(["orient6", "progressive", "rgb420_19x33"]):
        put(f"j{i}.jpg", jpeg(name))
    put("copy.lua", COPY)
    put("fails.lua", FAILS)
    put("sum.lua", SUM)
    put("last.lua", LAST)
    put("kernel.cu", CU)
    put("c++", COMPILER)
    os.chmod(os.path.join(folder, "c++"), 0o755)
    for p in ALL:
        put(p.name + ".yaml", p.text)
        put(p.name + ".in", p.stdin or b"")
