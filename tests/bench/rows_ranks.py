"""rows_ranks.py - two ranks, which mpirun starts: beside two processes that know nothing of each other, beside two lanes of
one process, and `all_reduce` between two GPUs beside NCCL by hand.
"""
import os, subprocess, time

from rows_several import FEW, LARGE, LONG, two
from rows_device import BALANCED, BIG, iters, settings
from tools import HERE, Failure, Row, Skip, words

# As two processes have all cores, so have two ranks; a container's user may be root.
os.environ.update(OMPI_MCA_hwloc_base_binding_policy="none", OMPI_MCA_rmaps_base_oversubscribe="1",
                  OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

HOST = """depth: 8
vars: {frames: 1}
buffers: {x: {dtype: f32, shape: [16384]}}
stages:
  - {use: generate, out: x, frames: frames, pattern: ramp}
  - {use: expr, expr: "exp(-in * in) + sqrt(abs(in))"}
  - {use: discard}
"""

# A round is a frame of each rank. What is passed on is large, what is made of it small.
REDUCED = """device: auto
depth: 4
batch: 1
stall_timeout: 0
vars: {n: 16777216, few: 262144, iters: 1, frames: 1000}
buffers:
  x: {dtype: f32, shape: [few]}
  large: {dtype: f32, shape: [n]}
  sums: {like: x}
stages:
  - {use: generate, out: x, frames: frames, fill: once, pattern: ramp}
  - {name: spread, use: kernel, source: SOURCE, entry: spread, out: large, args: [in, out, {i32: n}, {i32: few}, {i32: 1}],
     block: [256], grid: [1056]}
  - {use: all_reduce, out: reduced, by: nccl}
  - {name: gather, use: kernel, source: SOURCE, entry: gather, out: sums, args: [in, out, {i32: n}, {i32: few}, {i32: 1}],
     block: [256], grid: ["ceil(few / 256)"]}
  - {use: discard, in: sums}
"""
MORE_BUFFERS = "  busy: {like: large}\n  left: {like: x}\nstages:\n"
BESIDE = """
  - {name: other, use: kernel, source: SOURCE, entry: spread, in: x, out: busy, block: [256], grid: [64],
     args: [in, out, {i32: n}, {i32: few}, {i32: iters}]}
  - {name: sums_of_other, use: kernel, source: SOURCE, entry: gather, in: busy, out: left, block: [256],
     args: [in, out, {i32: n}, {i32: few}, {i32: 1}], grid: ["ceil(few / 256)"]}
  - {use: discard, in: left, name: last}
"""


def ranks(b):
    """Raises Skip where gpipe cannot have two."""
    def look():
        file = b.write("ranks.yaml", "buffers: {x: {dtype: u8, shape: [1]}}\nstages:\n"
                       "  - {use: generate, out: x, frames: 2}\n  - {use: discard}\n")
        try:
            b.gpipe_seconds(file, [], 2, ranks=2)
        except (Failure, OSError) as why:
            raise Skip("no ranks: " + str(why).split("\n")[0])
    b.ever("ranks", look)


def apart(b, file, sets, few, many):
    """Microseconds per frame of two processes that share them out."""
    def seconds(frames):
        command = [b.gpipe, "run", "-q", file, "--set", "vars.frames=%d" % (frames // 2)]
        for s in sets:
            command += ["--set", s]
        start = time.perf_counter()
        both = [subprocess.Popen(command, stdin=subprocess.DEVNULL) for _ in range(2)]
        if [p.wait(300) for p in both] != [0, 0]:
            raise Failure("'gpipe' failed\n" + " ".join(command))
        return time.perf_counter() - start
    short = seconds(few)
    return 1e6 * (seconds(many) - short) / (many - few)


def host(b):
    ranks(b)
    file, few, many = b.write("ranks_host.yaml", HOST), 2000, 42000
    return b.gpipe_us(file, ["device=cpu"], few, many, ranks=2), apart(b, file, ["device=cpu"], few, many), "apart"


def kernels(b):
    two(b), ranks(b)
    sets = settings(b, BIG, 3, 1) + ["vars.iters=%d" % (LONG * iters(b, BIG))]
    return b.gpipe_us(BALANCED, sets + ["device=auto"], 100, 2100, ranks=2), \
        b.gpipe_us(BALANCED, sets + ["device=cuda:0-1"], 100, 2100), "lanes"


def nccl(b, *arguments):
    out, _, _ = b.run([b.program("collective", "no NCCL for collective.cu")] + [str(a) for a in arguments])
    return words(out)


def pipeline(b, text):
    return b.write("reduced.yaml", text.replace("SOURCE", os.path.join(HERE, "two_gpus.cu")))


def round_us(b, text, steps):
    return 2 * b.gpipe_us(pipeline(b, text), ["vars.n=%d" % (LARGE // 4), "vars.few=%d" % FEW, "vars.iters=%d" % steps],
                          400, 60400, ranks=2)


def reduced(b):
    two(b), ranks(b)
    return round_us(b, REDUCED, 1), nccl(b, "reduce", LARGE)["reduce"][0], "NCCL by hand"


def whole(b):
    """The same pipeline by hand: what makes the frames and what reads them takes memory bandwidth, too."""
    two(b), ranks(b)
    return round_us(b, REDUCED, 1), nccl(b, "whole", LARGE, FEW, 0)["whole"][0], "by hand"


def steps_of_other(b):
    return b.ever("steps of other", lambda: int(nccl(b, "iters", LARGE, FEW)["iters"][0]))


def overlapped_text(key):
    text = REDUCED.replace("stages:\n", MORE_BUFFERS).replace("by: nccl", "by: nccl" + key)
    return text + BESIDE.lstrip("\n")


def overlapped_whole(b):
    two(b), ranks(b)
    steps = steps_of_other(b)
    return round_us(b, overlapped_text(""), steps), nccl(b, "whole", LARGE, FEW, steps)["whole"][0], "by hand"


def overlapped(b, key=""):
    """Beside a kernel that takes about as long, on half of the GPU; `key`: of the stage `all_reduce`."""
    two(b), ranks(b)
    steps = steps_of_other(b)
    alone = {k.split(" ")[-1]: v[0] for k, v in nccl(b, "parts", LARGE, FEW, steps).items()}
    slowest = max(alone, key=alone.get)
    return round_us(b, overlapped_text(key), steps), alone[slowest], slowest + " alone"


ROWS = [
    Row("2-ranks-host", "two ranks, host only, 64 KiB frames: two processes", "time", 1.03, host),
    Row("2-ranks-kernels", "16 MiB, kernels of %d copies, two ranks: two lanes" % LONG, "rate", 0.97, kernels),
    Row("2-ranks-reduce", "64 MiB from kernels, all_reduce: NCCL", "time", 1.05, reduced),
    Row("2-ranks-reduce-whole", "the same: the same by hand, four rounds under way", "time", 1.05, whole),
    Row("2-ranks-overlap", "the same beside a kernel of its length: the longer", "time", 1.1, overlapped),
    Row("2-ranks-overlap-whole", "the same: the same by hand, four rounds under way", "time", 1.1, overlapped_whole),
    Row("2-ranks-overlap-high", "that with priority: high for all_reduce: the longer", "time", None,
        lambda b: overlapped(b, ", priority: high")),
]
