"""rows_pictures.py - filters of pictures on the GPU, beside CuPy's and PyTorch's functions: device time of a frame. And
whole pipelines: 4K to 1080p, sound to pictures of its spectrum.
"""
import os

from rows_expr import device_us
from tools import Row

PIPELINE = """stall_timeout: 0
depth: 2
vars: {frames: 1}
buffers: {x: {dtype: %s, shape: [%s]}}
stages:
  - {use: read, path: '%s', loop: true, frames: frames, out: x}
  - {use: %s, out: y}
  - {use: decimate, frames: 1000000}
  - {use: discard}
"""

FRAMES = {"u8": ("u8", "2160, 3840"), "mask": ("u8", "2160, 3840"), "f32": ("f32", "2160, 3840"),
          "scores": ("f32", "4096, 4096")}

# A row, its frame, its stage; peers that its time is compared with, the best of them; how many times that it may take.
MEAN = "conv2d, weights: [%s]"
CASES = [("median-%s-%d" % (t, n), t, "median, size: %d" % n, 1.0, "CuPy") for t in ("u8", "f32") for n in (3, 5, 7)]
CASES += [("dilate-%d" % n, "u8", "morphology, op: dilate, size: %d" % n, 1.0, "CuPy") for n in (3, 15)]
CASES += [("label", "mask", "label", 1.0, "CuPy")]
CASES += [("conv2d-%d" % n, "f32", MEAN % ", ".join([str([1 / n ** 2] * n)] * n), 1 / 0.95, "cuDNN or CuPy") for n in (3, 7, 15)]
CASES += [("topk-%d" % k, "scores", "topk, k: %d" % k, 1 / 0.95, "PyTorch") for k in (8, 128)]


def folder(b):
    def make():
        os.makedirs(b.path("pictures"))
        b.script("pictures_peers.py", "make", b.path("pictures"))
        return b.path("pictures")
    return b.ever("pictures", make)


def row(name, frame, stage, limit, who):
    def measure(b):
        b.has_gpu()
        files = folder(b)
        peers = b.times("pictures times", "pictures_peers.py", "time", files)
        us = device_us(b, name, PIPELINE % (FRAMES[frame] + (os.path.join(files, frame + ".npy"), stage)), 60)
        return us, min(v for k, v in peers.items() if k == name or k.startswith(name + "-c")), who
    return Row(name, "`%s` of %s, device time" % (stage.split(", weights")[0], frame), "time", limit, measure)


SMALLER = """stall_timeout: 0
depth: 6
vars: {frames: 1}
buffers: {x: {dtype: u8, shape: [2160, 3840, 3]}}
stages:
  - {use: generate, out: x, frames: frames, fill: once, pattern: noise}
  - {use: resize, scale: 0.5%s}
  - {use: discard}
"""


def smaller(b, more):
    return b.copies_alone(b.write("smaller.yaml", SMALLER % more), ["device=cuda"], "resize")


SOUND = """stall_timeout: 0
vars: {frames: 1, rate: 0}
buffers: {x: {dtype: f32, shape: [48000]}}
stages:
  - {use: generate, out: x, frames: frames, rate: rate, fill: once, pattern: sine}
  - {use: slide, length: 1024, hop: 320, taper: hann}
  - {use: fft}
  - {use: power}
  - {use: db}
  - {use: colormap, range: [-80, 0]}
  - {use: %s}
"""


def sound_peer(b):
    b.has_gpu()
    return b.times("sound", "pictures_peers.py", "sound")["graph"]


def sound_alone(b):
    peer = sound_peer(b)
    lag = b.host(b.write("sound-lag.yaml", SOUND % "lag"),
                 ["device=cuda", "depth=2", "sync=spin", "vars.rate=200", "vars.frames=800"])["lag"][0]
    return lag, peer, "CuPy in a graph"


def sound_stream(b):
    peer = sound_peer(b)
    return b.gpipe_us(b.write("sound.yaml", SOUND % "discard"), ["device=cuda"], 2000, 42000), peer, "CuPy in a graph"


ROWS = [row(*case) for case in CASES] + [
    Row("4k-1080p", "u8 RGB of 2160 x 3840 to half the size, with copies: these alone", "rate", 0.95,
        lambda b: smaller(b, "")),
    Row("4k-1080p-area", "the same, `method: area`", "rate", 0.95, lambda b: smaller(b, ", method: area")),
    Row("sound-lone", "a second of sound to a picture of its spectrum, frames alone, p50: CuPy with a CUDA graph", "time", 1.0,
        sound_alone),
    Row("sound", "the same in a stream", "rate", 3, sound_stream),
]
