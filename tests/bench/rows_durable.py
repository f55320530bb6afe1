"""rows_durable.py - what it costs that written files survive a power cut: each `durable` of write beside a loop of
Python that makes the same promise for the same files. Both are processes, and timed from start to exit. They write to
TMPDIR, which has to be on a disk for the rows to mean anything."""
import os, shutil, sys

from tools import HERE, MIB, Row

FRAMES = 400
PIPELINE = """depth: 8
buffers: {x: {dtype: u8, shape: [%d]}}
stages:
  - {use: generate, out: x, frames: %d, fill: once}
  - {use: write, path: "%s", durable: %s}
"""


def per_frame(b, folder, command):
    """us a frame, once what was there before is on the disk."""
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    os.sync()
    took = b.wall(command)
    shutil.rmtree(folder)
    return 1e6 * took / FRAMES


def gpipe_us(b, mode, joined):
    folder = b.path("durable")
    file = b.write("durable.yaml", PIPELINE % (MIB, FRAMES, folder + "/" + (joined or "%05d.raw"), mode))
    return per_frame(b, folder, [b.gpipe, "run", "-q", file])


def by_hand_us(b, mode, joined):
    folder = b.path("by-hand")
    loop = [os.path.join(HERE, "durable_loop.py"), folder, mode, MIB, FRAMES]
    return per_frame(b, folder, [sys.executable, "-I", "-S"] + loop + [joined] * bool(joined))


def measure(b, mode, joined):
    return (b.once(("durable", mode, joined), lambda: gpipe_us(b, mode, joined)),
            b.once(("by hand", mode, joined), lambda: by_hand_us(b, mode, joined)), "by hand")


ROWS = [Row("durable-%s%s" % (mode, "-joined" if joined else ""),
            "%d frames of 1 MiB to %s, durable: %s, start to exit: Python"
            % (FRAMES, "a file" if joined else "files", mode),
            "rate", None, lambda b, mode=mode, joined=joined: measure(b, mode, joined))
        for joined in (None, "all.raw") for mode in ("none", "end", "file")]
