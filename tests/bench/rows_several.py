"""rows_several.py - two GPUs: frames that take turns on both, beside one GPU and beside both by hand; and a stage on
each, with large frames passed on, beside the slowest of what that is made of, each alone.
"""
import os, shutil, subprocess

import rows_device, rows_files
from rows_device import BALANCED, BIG, SMALL, iters, settings
from tools import HERE, MIB, Row, Skip, words

LARGE, FEW = 64 * MIB, 262144          # bytes that are passed on; elements that are read and made
LANES = "device=cuda:0-1"
LONG = 8                               # times as many steps as a copy takes


def two(b):
    """Raises Skip where there are fewer GPUs."""
    def look():
        b.has_gpu()
        n = several(b, "count")
        if n["gpus"][0] < 2:
            raise Skip("one GPU")
        return n["peers"][0] > 0
    return b.ever("two GPUs", look)


def several(b, *arguments):
    out, _, _ = b.run([b.program("several", "no nvcc for several.cu")] + list(arguments))
    return words(out)


# -- lanes --

def by_hand(b):
    two(b)
    return b.once("lanes by hand", lambda: several(b, "lanes", BIG, 3, iters(b, BIG)))


def big(b):
    return rows_device.gpipe(b, BIG, 3, 1, [LANES]), by_hand(b)["lanes two"][0], "graphs on both"


def big_to_one(b):
    two(b)
    return rows_device.gpipe(b, BIG, 3, 1, [LANES]), rows_device.gpipe(b, BIG, 3), "gpipe, one GPU"


def small(b):
    two(b)
    return rows_device.gpipe(b, SMALL, 256, "auto", [LANES]), rows_device.gpipe(b, SMALL, 256, "auto"), "gpipe, one GPU"


def kernels(b):
    """Kernels that take so long that copies do not count."""
    two(b)
    sets = settings(b, BIG, 3, 1) + ["vars.iters=%d" % (LONG * iters(b, BIG))]
    us = [b.gpipe_us(BALANCED, sets + more, 50, 1050) for more in ([LANES], [])]
    return us[0], us[1], "gpipe, one GPU"


def album(b):
    """JPEG photos to pictures of their edges: decoding and encoding on the host's cores, which both GPUs share."""
    two(b)
    out = b.path("edges-2")
    file = b.write("edges-2.yaml", rows_files.EDGES % (rows_files.photos(b, "jpg"), "jpg", out, "jpg", ""))
    n = rows_files.PHOTOS
    us = [rows_files.difference_us(b, file, out, n // 5, n, sets) for sets in (["device=cuda:0-1"], ["device=cuda:0"])]
    shutil.rmtree(out)
    return us[0], us[1], "gpipe, one GPU"


# -- a stage on each --

def expected(b, steps):
    """A file of what comes out in one frame."""
    def make():
        path = b.path("sums-%d.raw" % steps)
        with open(path, "wb") as f:
            subprocess.run([b.program("several", "no nvcc for several.cu"), "expect", str(LARGE), str(FEW), str(steps)],
                           stdout=f, check=True)
        return path
    return b.ever(("sums", steps), make)


def verify(b, file, sets, steps):
    """What comes out is what both kernels make of the ramp."""
    frames = 9
    with open(expected(b, steps), "rb") as f:
        one = f.read()
    want = b.path("sums.raw")
    with open(want, "wb") as f:
        f.write(frames * one)
    with open(file) as f:
        text = f.read().replace("{use: discard}", "{use: compare, file: '%s'}" % want)
    b.gpipe_seconds(b.write("verify_two.yaml", text), sets + ["vars.frames=%d" % frames], frames)
    os.remove(want)


def passed_on(b, parts):
    """With kernels that take `parts` hundredths of a peer copy; 0: as short as they can be."""
    if not two(b):
        raise Skip("GPUs 0 and 1 are no peers")
    steps = b.ever(("steps", parts), lambda: int(several(b, "iters", LARGE, FEW, parts)["iters"][0])) if parts else 1
    with open(os.path.join(HERE, "two_gpus.yaml")) as f:
        text = f.read().replace("two_gpus.cu", os.path.join(HERE, "two_gpus.cu"))
    file = b.write("two_gpus.yaml", text)
    sets = ["vars.n=%d" % (LARGE // 4), "vars.few=%d" % FEW, "vars.iters=%d" % steps]
    b.ever(("verify two", steps), lambda: verify(b, file, sets, steps))
    us = b.gpipe_us(file, sets, 300, 5300)
    alone = {k.split(" ")[-1]: v[0] for k, v in several(b, "parts", LARGE, FEW, steps).items()}
    slowest = max(alone, key=alone.get)
    return us, alone[slowest], slowest + " alone"


ROWS = [
    Row("2-gpus-16M", "16 MiB, balanced, depth 3, on two GPUs: by hand", "rate", 0.95, big),
    Row("2-gpus-16M-one", "the same: one GPU", "rate", None, big_to_one),
    Row("2-gpus-kernels", "16 MiB, kernels of %d copies, on two GPUs: one" % LONG, "rate", 1.95, kernels),
    Row("2-gpus-4K", "4 KiB, batch: auto, depth 256, on two GPUs: one", "rate", 1.6, small),
    Row("2-gpus-photos", "photos to edges, .jpg to .jpg, on two GPUs: one", "rate", None, album),
    Row("2-gpus-stages", "64 MiB from one GPU to the other, long kernels: the slowest part", "rate", 0.95,
        lambda b: passed_on(b, 150)),
    Row("2-gpus-copy", "the same, short kernels", "rate", 0.95, lambda b: passed_on(b, 0)),
]
