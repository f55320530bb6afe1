"""rows_host.py - three trivial stages on the host, 4 KiB frames, two cores: gpipe, oneTBB,
GStreamer. Each in the best of several settings. What lets only one stage work at a time is
there too: on frames that cost nothing to touch it saves the hand-over, and it does not overlap.
Frames that a program pushes and pulls, beside a source and a sink of gpipe's own, and beside a copy.
"""
import os, shutil

from tools import HERE, Row, Skip, best, words

CORES = 2
FEW, MANY = 50000, 1050000


def difference(seconds):
    """Microseconds per frame of `seconds(frames)`, without what starting up takes."""
    short = seconds(FEW)
    return 1e6 * (seconds(MANY) - short) / (MANY - FEW)


def gpipe(b):
    def seconds(depth, frames):
        sets = ["depth=%d" % depth, "vars.frames=%d" % frames]
        done, took = b.host(os.path.join(HERE, "host.yaml"), sets, cores=CORES)["host"]
        assert done == frames
        return took
    return b.once("host", lambda: min(difference(lambda n: seconds(depth, n)) for depth in (64, 128, 1024)))


LOANS = """device: cpu
vars: {n: 1, frames: 1}
buffers: {x: {dtype: f32, shape: [n]}}
stages:
  - {name: in, %s, out: x}
%s  - {name: out, %s}
"""
COPY = "  - {name: work, use: copy}\n"
OWN = "use: generate, frames: frames, fill: once", "use: discard"
THE_PROGRAMS = "use: input", "use: output"


def moved(b, name, ends, stages, n, few, many):
    """us a frame of n elements, in the best of several depths."""
    file = b.write("loans-%s.yaml" % name, LOANS % (ends[0], stages, ends[1]))

    def seconds(depth, frames):
        pushed = frames if ends is THE_PROGRAMS else 0
        sets = ["vars.n=%d" % n, "vars.frames=%d" % frames, "depth=%d" % depth]
        done, took = b.host(file, sets, cores=CORES, pushed=pushed)["host"]
        assert done == frames
        return took
    depths = (64, 256, 1024) if n < 1 << 20 else (4,)
    return min(1e6 * (seconds(d, many) - seconds(d, few)) / (many - few) for d in depths)


def pushed(b):
    return moved(b, "pushed", THE_PROGRAMS, COPY, 1024, 20000, 520000), \
        moved(b, "own", OWN, COPY, 1024, 20000, 520000), "generate, discard"


def pushed_large(b):
    file = b.write("loans-copied.yaml", LOANS % (OWN[0], COPY, OWN[1]))
    copied = b.host(file, ["vars.n=%d" % (1 << 22), "vars.frames=200", "depth=4"], timed=True, cores=CORES)
    return moved(b, "large", THE_PROGRAMS, "", 1 << 22, 1000, 21000), copied["stage work"][0], "memcpy"


def tbb(b):
    def run():
        out, _, _ = b.run([b.program("tbb", "no oneTBB"), MANY, CORES], CORES)
        return {name[4:]: us for name, (us,) in words(out).items()}
    return b.once("tbb", run)


def with_tbb(b):
    times = tbb(b)
    return (gpipe(b),) + best({n: us for n, us in times.items() if not n.endswith("tokens-1")})


def with_tbb_serial(b):
    times = tbb(b)
    return (gpipe(b),) + best({n: us for n, us in times.items() if n.endswith("tokens-1")})


def gstreamer(b, queues):
    """The best of several kinds of queues; "" for none."""
    launch = shutil.which("gst-launch-1.0")
    if not launch:
        raise Skip("no GStreamer")

    def seconds(queue, frames):
        line = ["fakesrc num-buffers=%d sizetype=fixed sizemax=4096 filltype=nothing" % frames,
                queue, "identity silent=true", queue, "fakesink silent=true enable-last-sample=false"]
        return b.wall([launch, "-q"] + " ! ".join(e for e in line if e).split(), CORES)
    return best({q or "no queue": difference(lambda n: seconds(q, n)) for q in queues})


def with_gstreamer(b):
    peer = gstreamer(b, ["queue", "queue silent=true"])
    return (gpipe(b),) + peer


def with_gstreamer_serial(b):
    peer = gstreamer(b, [""])
    return (gpipe(b),) + peer


ROWS = [
    Row("pushed-4K", "4 KiB pushed and pulled through a copy, 2 cores: built-in source and sink", "time", 2, pushed),
    Row("pushed-16M", "16 MiB pushed and pulled, nothing between: one memcpy of it", "time", 0.1, pushed_large),
    Row("host-tbb", "host only, 3 trivial stages, 4 KiB, 2 cores: oneTBB", "rate", 2, with_tbb),
    Row("host-tbb-serial", "the same: oneTBB, a frame at a time", "rate", 1.2, with_tbb_serial),
    Row("host-gst", "the same: GStreamer", "rate", 8, with_gstreamer),
    Row("host-gst-serial", "the same: GStreamer, one thread", "rate", None, with_gstreamer_serial),
]
