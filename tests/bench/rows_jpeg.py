"""rows_jpeg.py - JPEG files that become pictures on the GPU, beside torchvision, which calls nvJPEG too.

64 pictures of 1024 x 768, of quality 90, in files that are cached. gpipe reads the files anew for each frame; torchvision has
them in memory.
"""
import json, math, random, re

from tools import Failure, Row, Skip

FILES, WIDE, HIGH = 64, 1024, 768
FRAMES = 4096, 36864

MAKE = """stages:
  - {use: read, path: '%s'}
  - {use: write, path: '%s', quality: 90, durable: none}
"""
DECODE = """stall_timeout: 0
vars: {frames: 1}
buffers: {coded: {depth: 96}, photo: {shape: ["<=768", "<=1024", 3], depth: 96}}
stages:
  - {use: read, path: '%s', format: bytes, loop: true, frames: frames, workers: 4, out: coded}
  - {use: decode, in: coded, out: photo}
  - {use: gray}
  - {use: reduce, op: mean}
  - {use: %s}
"""


def picture(seed):
    """A .ppm with slopes, waves and grain, so that its file is about as long as a photo's."""
    r = random.Random(seed)
    a, b, c = r.uniform(0.01, 0.03), r.uniform(0.01, 0.03), r.uniform(0, 6)
    across = [45 * math.sin(a * x + c) for x in range(WIDE)]
    rows = []
    for y in range(HIGH):
        wave, grain = 128 + 45 * math.sin(b * y), r.getrandbits(8 * WIDE).to_bytes(WIDE, "little")
        row = bytearray(3 * WIDE)
        for x in range(WIDE):
            level = int(wave + across[x]) + (grain[x] & 63) - 32
            row[3 * x], row[3 * x + 1], row[3 * x + 2] = level, 255 - level, (level + x // 16) & 255
        rows.append(bytes(row))
    return b"P6\n%d %d\n255\n" % (WIDE, HIGH) + b"".join(rows)


def make(b):
    """The pattern of the files' names."""
    def once():
        for k in range(8):
            with open(b.path("in-%d.ppm" % k), "wb") as f:
                f.write(picture(k))
        b.run([b.gpipe, "run", "-q", b.write("make.yaml", MAKE % (b.path("in-*.ppm"), b.path("%n.jpg")))])
        for k in range(FILES):
            with open(b.path("in-%d.jpg" % (k % 8)), "rb") as f, open(b.path("photo-%02d.jpg" % k), "wb") as to:
                to.write(f.read())
        return b.path("photo-*.jpg")
    return b.ever("jpeg files", once)


def pipeline(b):
    """The file, once nvJPEG was found."""
    b.has_gpu()
    file = b.write("decode.yaml", DECODE % (make(b), "discard"))

    def look():
        out, _, _ = b.run([b.gpipe, "plan", "--device", "cuda", file])
        if "nvJPEG" not in out:
            raise Skip("no nvJPEG")
    b.ever("nvjpeg", look)
    return file


def rate(b):
    file = pipeline(b)

    def peer():
        files = [b.path("photo-%02d.jpg" % k) for k in range(FILES)]
        out = b.script("jpeg_torch.py", 64, FRAMES[1] // 4, *files)
        return float(re.search(r"^torchvision ([\d.]+)$", out, re.M).group(1))
    us = b.gpipe_us(file, ["device=cuda"], *FRAMES)
    return us, b.once("torchvision", peer), "torchvision, batches of 64"


def latency(b):
    """How long a frame is in the pipeline while it runs as fast as it can."""
    file, report = pipeline(b), b.path("report.json")
    b.run([b.gpipe, "run", "-q", "--report", report, "--set", "device=cuda", "--set", "vars.frames=%d" % FRAMES[0], file])
    with open(report) as f:
        late = json.load(f)["latency_us"]
    if not late:
        raise Failure("the report has no latency")
    return late["p50"], None, None


ROWS = [
    Row("jpeg", "JPEG (quality 90) to pictures on the GPU, gray, mean: torchvision", "rate", 1, rate),
    Row("jpeg-latency", "the same at full speed: a frame's latency, p50", "value", 20000, latency),
]
