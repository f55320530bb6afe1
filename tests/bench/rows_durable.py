"""rows_durable.py - what it costs that written files survive a power cut: each `durable` of write
beside a loop of Python that makes the same promise for the same files. They lie in TMPDIR, which
has to be on a disk for the rows to mean anything."""
import os
import shutil
import time

from tools import MIB, Row

FRAMES = 400
PIPELINE = """depth: 8
buffers: {x: {dtype: u8, shape: [%d]}}
stages:
  - {use: generate, out: x, frames: %d, fill: once}
  - {use: write, path: "%s", durable: %s}
"""


def gpipe_us(b, mode, joined):
    folder = b.path("durable")
    file = b.write("durable.yaml", PIPELINE % (
        MIB, FRAMES, folder + ("/all.raw" if joined else "/%05d.raw"), mode))
    return per_frame(folder, lambda: b.run([b.gpipe, "run", "-q", file]))


def per_frame(folder, run):
    """us a frame, once what was there before is on the disk."""
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    os.sync()
    start = time.perf_counter()
    run()
    took = time.perf_counter() - start
    shutil.rmtree(folder)
    return 1e6 * took / FRAMES


def by_hand_us(b, mode, joined):
    folder, data = b.path("by-hand"), bytes(MIB)

    def finish(f, name):
        if mode == "file":
            os.fsync(f.fileno())
        f.close()
        os.rename(f.name, os.path.join(folder, name))

    def run():
        f = None
        for i in range(FRAMES):
            f = f or open(os.path.join(folder, ".part"), "wb", buffering=0)
            f.write(data)
            if not joined:
                finish(f, "%05d.raw" % i)
                f = None
        if joined:
            finish(f, "all.raw")
        if mode != "none":
            where = os.open(folder, os.O_RDONLY)
            os.sync() if mode == "end" else os.fsync(where)
            os.close(where)
    return per_frame(folder, run)


def measure(b, mode, joined):
    return (b.once(("durable", mode, joined), lambda: gpipe_us(b, mode, joined)),
            b.once(("by hand", mode, joined), lambda: by_hand_us(b, mode, joined)), "by hand")


ROWS = [Row("durable-%s%s" % (mode, "-joined" if joined else ""),
            "1 MiB frames to %s, durable: %s: Python" % ("a file" if joined else "files", mode),
            "rate", None, lambda b, mode=mode, joined=joined: measure(b, mode, joined))
        for joined in (False, True) for mode in ("none", "end", "file")]
