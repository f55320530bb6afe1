#!/usr/bin/env python3
"""video.py GPIPE - video that ffmpeg writes is read by gpipe, and what gpipe writes by ffmpeg, as .y4m files, by pipes and as
mp4; examples/video/mp4.yaml. Prints a total; exit 1 after a failure. Without ffmpeg it says that it skips."""
import os, random, shutil, subprocess, sys, tempfile
from kit import bytes_of, check, gpipe, ran, runs, total

if not shutil.which("ffmpeg"):
    print("video: SKIPPED: there is no ffmpeg")
    sys.exit(0)

FRAMES = 3
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "video")
EVEN, ANY = ((2, 2), (64, 48), (18, 34), (6, 102)), ((1, 1), (17, 3), (64, 48), (61, 203))     # rows, columns
# As ffmpeg calls it, bytes of a sample, the frame, options of write, sizes.
FORMATS = (("yuv420p", 1, "[{h} * 3 / 2, {w}]", "", EVEN), ("yuv422p", 1, "[{h} * 2, {w}]", ", subsampling: 4:2:2", EVEN),
           ("yuv444p", 1, "[3, {h}, {w}]", "", ANY), ("gray", 1, "[{h}, {w}]", ", subsampling: mono", ANY),
           ("yuv420p10le", 2, "[{h} * 3 / 2, {w}]", ", bits: 10", EVEN),
           ("yuv422p12le", 2, "[{h} * 2, {w}]", ", bits: 12, subsampling: 4:2:2", EVEN),
           ("yuv444p16le", 2, "[3, {h}, {w}]", ", bits: 16", ANY))
rng = random.Random(5)


def ffmpeg(*args):
    return ran("ffmpeg", "-v", "error", "-y", *args)


def holds(name, data):
    return bytes_of(name) == data


def planes(n, size, bits):
    """Bytes of samples of so many bits."""
    if size == 1:
        return rng.randbytes(n)
    return b"".join(rng.randrange(1 << bits).to_bytes(2, "little") for _ in range(n // 2))


def both_ways(pix, size, shape, options, h, w):
    bits = int(pix[7:9]) if size == 2 else 8
    samples = {"yuv420p": h * w * 3 // 2, "yuv422p": 2 * h * w, "yuv444p": 3 * h * w, "gray": h * w}[pix[:7]]
    data, at = planes(FRAMES * samples * size, size, bits), f"{pix} {h} x {w}"
    raw = ("-f", "rawvideo", "-pix_fmt", pix, "-s", f"{w}x{h}", "-r", "25")
    with open("a.raw", "wb") as f:
        f.write(data)
    declared = f"buffers: {{v: {{dtype: u{8 * size}, shape: {shape.format(h=h, w=w)}}}}}\nstages:\n"
    ok = ffmpeg(*raw, "-i", "a.raw", "-strict", "-1", "-f", "yuv4mpegpipe", "a.y4m")
    ok = ok and runs("stages:\n  - {use: read, path: a.y4m}\n  - {use: write, path: b.raw}\n")
    check(f"{at} of ffmpeg", ok and holds("b.raw", data))
    ok = runs(declared + "  - {use: read, command: [cat, a.y4m], format: y4m, out: v}\n  - {use: write, path: c.raw}\n")
    check(f"{at} of ffmpeg, by a pipe", ok and holds("c.raw", data))
    ok = runs(declared + "  - {use: read, path: a.raw, out: v}\n"
               f"  - {{use: write, path: d.y4m, frame_rate: 25{options}}}\n")
    ok = ok and ffmpeg("-strict", "-1", "-i", "d.y4m", "-f", "rawvideo", "-pix_fmt", pix, "d.raw")
    check(f"{at} for ffmpeg", ok and holds("d.raw", data))


def full_range():
    """What ffmpeg says of the range of values, and what it understands."""
    frames = "stages:\n  - {use: read, path: full.y4m%s}\n  - {use: write, path: g.y4m, frame_rate: 25, range: %s}\n"
    ok = ffmpeg("-f", "lavfi", "-i", "testsrc=s=16x16:d=0.1", "-pix_fmt", "yuvj420p", "-strict", "-1", "full.y4m")
    check("the full range is refused", ok and not runs(frames % ("", "full")))
    for said, word in (("full", "pc"), ("limited", "tv")):
        ok = runs(frames % (", range: full", said))
        p = subprocess.run(["ffmpeg", "-hide_banner", "-i", "g.y4m"], capture_output=True, text=True)
        check(f"ffmpeg sees that the range is {said}", ok and f"({word}" in p.stderr)


def luma(name):
    with open(name, "rb") as f:
        data = f.read()
    size = 96 * 64 * 3 // 2
    return [data[k:k + 96 * 64] for k in range(0, len(data), size)]


def mean_apart(a, b):
    return sum(abs(x - y) for p, q in zip(a, b) for x, y in zip(p, q)) / sum(map(len, a))


def example():
    """An mp4 of the noisy video, made calm: nearer to denoise.yaml's result than what came in."""
    for name in ("mp4.yaml", "denoise.yaml", "noisy.y4m"):
        shutil.copy(os.path.join(EXAMPLES, name), ".")
    ok = ffmpeg("-i", "noisy.y4m", "-crf", "10", "noisy.mp4") and ran(gpipe, "run", "-q", "denoise.yaml")
    ok = ok and ran(gpipe, "run", "-q", "mp4.yaml")
    for name in ("noisy.y4m", "out/clean.y4m", "out/clean.mp4"):
        ok = ok and ffmpeg("-i", name, "-f", "rawvideo", "-pix_fmt", "yuv420p", os.path.basename(name) + ".raw")
    check("mp4.yaml runs", ok)
    if ok:
        noisy, calm, mp4 = luma("noisy.y4m.raw"), luma("clean.y4m.raw"), luma("clean.mp4.raw")
        check("mp4.yaml has all frames", len(mp4) == len(calm) == len(noisy) == 16)
        check("mp4.yaml makes it calm", mean_apart(mp4[4:], calm[4:]) < mean_apart(noisy[4:], calm[4:]) / 2)
    with open("noisy.mp4", "wb") as f:
        f.write(b"no video")
    p = subprocess.run([gpipe, "run", "-q", "mp4.yaml"], capture_output=True, text=True)
    check("no mp4: what ffmpeg says", p.returncode == 1 and "noisy.mp4" in p.stderr and "Invalid data" in p.stderr)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for pix, size, shape, options, sizes in FORMATS:
        for h, w in sizes:
            both_ways(pix, size, shape, options, h, w)
    full_range()
    example()
total("video")
