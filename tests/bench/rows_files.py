"""rows_files.py - photos, .npy files and video: real files at the speed of the machine, with all defaults.

Files are in TMPDIR, which should be memory (TMPDIR=/dev/shm). PHOTOS of the environment says how many photos there are, 2000
if it says nothing; they need 2 GB. On a machine without a GPU the rows beside CuPy are left out, and the others use none.
"""
import os, re, shutil, subprocess, time

from tools import HERE, Failure, Row

PHOTO = os.path.join(HERE, "..", "..", "examples", "data", "raccoon.png")
PHOTOS = int(os.environ.get("PHOTOS", 2000))
EDGES = """stall_timeout: 0
vars: {frames: 0}
stages:
  - {use: read, path: '%s/*.%s', frames: frames}
  - {use: gray}
  - {use: blur, sigma: 1.4}
  - {use: sobel}
  - {use: cast, dtype: u8}
  - {use: write, path: '%s/%%n.%s'%s}
"""


def empty(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def difference_us(b, file, out, few, many, sets=()):
    """As gpipe_us, with files that are new in both runs."""
    times = []
    for n in few, many:
        empty(out)
        times.append(b.gpipe_seconds(file, ["vars.frames=%d" % n] + list(sets), n))
    return 1e6 * (times[1] - times[0]) / (many - few)


# -- photos --

def photos(b, ext):
    def once():
        folder = b.path("photos-" + ext)
        b.script("photos_pool.py", "make", PHOTO, folder, PHOTOS, ext)
        return folder
    return b.ever(("photos", ext), once)


def pool(b, ext):
    """(photos a second, its name, bytes, ms to decode and encode)"""
    def once():
        out = b.path("pool-" + ext)
        said = b.script("photos_pool.py", "run", photos(b, ext), out, ext, PHOTOS)
        shutil.rmtree(out)
        rate, name, size, ms = re.match(r"pool ([\d.]+) (.*)\nbytes (\d+)\ncodec ([\d.]+)\n", said).groups()
        return float(rate), name, int(size), float(ms)
    return b.once(("pool", ext), once)


def edges(b, ext):
    """(us a photo, bytes)"""
    def once():
        out = b.path("edges-" + ext)
        file = b.write("edges-%s.yaml" % ext, EDGES % (photos(b, ext), ext, out, ext,
                                                       ", compression: 3" if ext == "png" else ""))
        us = difference_us(b, file, out, PHOTOS // 5, PHOTOS)
        size = sum(os.path.getsize(os.path.join(out, name)) for name in os.listdir(out))
        shutil.rmtree(out)
        return us, size
    return b.once(("edges", ext), once)


def beside_pool(b, ext):
    us, (rate, name, _, _) = edges(b, ext)[0], pool(b, ext)
    return us, 1e6 / rate, name


def beside_codec(b, ext):
    cores, ms = len(os.sched_getaffinity(0)), pool(b, ext)[3]
    return edges(b, ext)[0], 1e3 * ms / cores, "cv2's %.1f ms on %d cores" % (ms, cores)


def size(b, ext):
    return edges(b, ext)[1], pool(b, ext)[2], "the pool's files"


# -- .npy --

FILES, SIDE = 64, 2048
FRAME = 2 * SIDE * SIDE                        # bytes, of u16
FEW, MANY = 64, 448
MAKE = """buffers: {x: {dtype: u16, shape: [%d, %d]}}
stages:
  - {use: generate, pattern: noise, amplitude: 1000, value: 2000, frames: %%d, out: x}
%%s  - {use: write, path: '%%s'}
""" % (SIDE, SIDE)
LESS_DARK = """stall_timeout: 0
vars: {frames: 0}
buffers: {frame: {shape: [%d, %d]}, dark: {const: '%%s'}}
stages:
  - {use: read, path: '%%s', loop: true, frames: frames, out: frame}
  - {use: expr, in: {x: frame, d: dark}, expr: x - d}
  - {use: write, path: '%%s'}
""" % (SIDE, SIDE)
INTO = """stall_timeout: 0
device: cuda
vars: {frames: 0}
buffers: {frame: {shape: [%d, %d]}}
stages:
  - {use: read, path: '%%s', loop: true, frames: frames, out: frame}
  - {use: reduce, op: max}
  - {use: discard}
""" % (SIDE, SIDE)


def arrays(b):
    """The pattern of their names, and the dark one."""
    def once():
        folder = empty(b.path("arrays"))
        b.run([b.gpipe, "run", "-q", b.write("arrays.yaml", MAKE % (FILES, "", folder + "/%05d.npy"))])
        dark = b.path("dark.npy")
        b.run([b.gpipe, "run", "-q", b.write("dark.yaml", MAKE % (1, "  - {use: cast, dtype: f32}\n", dark))])
        return folder + "/*.npy", dark
    return b.ever("arrays", once)


def less_dark(b, to):
    b.has_gpu()
    (files, dark), out = arrays(b), b.path("less-dark")
    us = difference_us(b, b.write("less-dark.yaml", LESS_DARK % (dark, files, os.path.join(out, to))), out, FEW, MANY)
    shutil.rmtree(out)
    return us


def beside_cupy(b, kind, to):
    us, (files, dark), out = less_dark(b, to), arrays(b), empty(b.path("by-cupy"))
    said = b.script("npy_cupy.py", files, dark, out, MANY, kind)
    shutil.rmtree(out)
    return us, float(said.split()[1]), "CuPy, three pinned slots"


def beside_file(b):
    us = b.once("joined", lambda: less_dark(b, "all.npy"))
    said = b.script("copies.py", "file", b.path("one.raw"), 2 * FRAME, MANY)
    alone, way = re.search(r"^file ([\d.]+) (.*)$", said, re.M).groups()
    return us, float(alone), "a file of that size alone, " + way


def joined_beside_cupy(b):
    us, (files, dark), out = b.once("joined", lambda: less_dark(b, "all.npy")), arrays(b), empty(b.path("by-cupy"))
    said = b.script("npy_cupy.py", files, dark, out, MANY, "joined")
    shutil.rmtree(out)
    return us, float(said.split()[1]), "CuPy, three pinned slots"


def into_pinned(b):
    b.has_gpu()
    file = b.write("into.yaml", INTO % arrays(b)[0])
    us = b.gpipe_us(file, [], 1000, 5000)
    return us, float(b.script("copies.py", "memory", FRAME, 8).split()[1]), "memcpy by 8 threads"


# -- video --

VIDEO_FRAMES, WIDE, HIGH = 600, 1920, 1080
VIDEO = """buffers: {v: {dtype: u8, shape: [%d * 3 / 2, %d]}}
stages:
  - {use: generate, pattern: noise, amplitude: 100, value: 120, fill: once, frames: %d, out: v}
  - {use: write, path: '%%s', frame_rate: 25}
""" % (HIGH, WIDE, VIDEO_FRAMES)
LOOK = """buffers: {v: {dtype: u8, shape: [%d * 3 / 2, %d]}}
stages:
  - {use: read, path: stdin, format: y4m, out: v}
  - {use: discard}
""" % (HIGH, WIDE)


def piped_us(b, video, command):
    """us a frame, from the start of both processes to the end of the second."""
    start = time.perf_counter()
    first = subprocess.Popen(["cat", video], stdout=subprocess.PIPE)
    with open(os.devnull, "w") as null:
        code = subprocess.call(command, stdin=first.stdout, stdout=null)
    first.stdout.close()
    if first.wait() or code:
        raise Failure("cat | %s ended with %d" % (" ".join(command), code))
    return 1e6 * (time.perf_counter() - start) / VIDEO_FRAMES


def y4m(b):
    def once():
        video = b.path("video.y4m")
        b.run([b.gpipe, "run", "-q", b.write("video.yaml", VIDEO % video)])
        return video
    video = b.ever("video", once)
    look = b.write("look.yaml", LOOK)
    return piped_us(b, video, [b.gpipe, "run", "-q", look]), piped_us(b, video, ["cat"]), "cat >/dev/null"


ROWS = [row for ext, needed in (("png", 1.5), ("jpg", 1.3)) for row in (
    Row("photos-" + ext, "photos to edges, .%s to .%s: a pool in Python" % (ext, ext), "rate", needed,
        lambda b, ext=ext: beside_pool(b, ext)),
    Row("photos-%s-codec" % ext, "the same: decoding and encoding alone, on all cores", "rate", 0.8,
        lambda b, ext=ext: beside_codec(b, ext)),
    Row("photos-%s-bytes" % ext, "the same: sizes of all files", "time", 1.05, lambda b, ext=ext: size(b, ext), "bytes"),
)] + [
    Row("npy-numbered", "8 MiB u16 frames to f32, .npy to .npy files: CuPy", "rate", 3,
        lambda b: beside_cupy(b, "numbered", "%05d.npy")),
    Row("npy-joined-cupy", "the same to one file: CuPy", "rate", None, joined_beside_cupy),
    Row("npy-joined", "the same to one file: writing alone", "rate", 0.85, beside_file),
    Row("npy-read", "8 MiB frames of .npy files into pinned memory: copying in memory", "rate", 0.7, into_pinned),
    Row("y4m-pipe", "1080p Y4M through a pipe: cat", "rate", 0.9, y4m),
]
