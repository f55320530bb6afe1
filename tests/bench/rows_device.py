"""rows_device.py - the pipeline on the GPU, beside hand-written CUDA, PyTorch, and the machine.

The work is that of balanced.yaml everywhere: copy in, kernel, copy out. With large frames the
kernel takes as long as a copy.
"""
import array, os, re, subprocess

from tools import HERE, KIB, MIB, Failure, Row, Skip, best, words

BIG, MIDDLE, SMALL = 16 * MIB, 256 * KIB, 4 * KIB
BALANCED = os.path.join(HERE, "balanced.yaml")

# bytes -> frames of the short and of the long run
FRAMES = {BIG: (300, 5300), MIDDLE: (5000, 155000), SMALL: (20000, 320000)}
MANY = (200000, 8200000)           # small frames in batches


def name_of(size):
    return "%d MiB" % (size // MIB) if size >= MIB else "%d KiB" % (size // KIB)


def hand(b, *arguments, program="hand"):
    """What a hand-written program says: {"graph": [us], ...}"""
    b.has_gpu()
    out, _, _ = b.run([b.program(program, "no nvcc for %s.cu" % program)] + list(arguments))
    return {k.split(" ", 1)[-1]: v for k, v in words(out).items()}


def iters(b, size):
    return 1 if size < MIB else b.ever(("iters", size), lambda: int(hand(b, "iters", size)["iters"][0]))


def settings(b, size, depth, batch):
    return ["device=cuda", "depth=%d" % depth, "batch=%s" % batch, "vars.n=%d" % (size // 4),
            "vars.iters=%d" % iters(b, size)]


def expected(b, size):
    """The bytes of a frame that comes out."""
    def make():
        with open(b.path("expected.raw"), "wb") as f:
            program = b.program("hand", "no nvcc for hand.cu")
            subprocess.run([program, "expect", str(size), str(iters(b, size))], stdout=f, check=True)
        with open(b.path("expected.raw"), "rb") as f:
            return f.read()
    return b.ever(("expected", size), make)


def verify(b, size, depth, batch, more):
    """What comes out of gpipe is what the kernel makes of the ramp."""
    frames = 2 * depth + 1
    want = b.path("frames.raw")
    with open(want, "wb") as f:
        for _ in range(frames):
            f.write(expected(b, size))
    with open(BALANCED) as f:
        text = f.read().replace("{use: discard}", "{use: compare, file: '%s'}" % want)
    file = b.write("verify.yaml", text.replace("axpy.cu", os.path.join(HERE, "axpy.cu")))
    b.gpipe_seconds(file, settings(b, size, depth, batch) + more + ["vars.frames=%d" % frames], frames)
    os.remove(want)


def gpipe(b, size, depth, batch=1, more=()):
    """Microseconds per frame."""
    b.has_gpu()
    more = list(more)
    few, many = MANY if depth > 64 else FRAMES[size]
    if depth == 1:
        many = few + (many - few) // 3
    key = (size, depth, batch, tuple(more))
    b.ever(("verify",) + key, lambda: verify(b, size, depth, batch, more))
    return b.once(key, lambda: b.gpipe_us(BALANCED, settings(b, size, depth, batch) + more, few, many))


def rates(b, size, depth):
    """{"streams": us, "graph": us} by hand, a frame at a time."""
    return b.once(("rate", size, depth), lambda: {k: v[0] for k, v in hand(
        b, "rate", size, depth, iters(b, size)).items()})


def best_graph(b, size, depths):
    return best({"graph, depth %d" % d: rates(b, size, d)["graph"] for d in depths})


# -- 16 MiB --

def big(b, depth):
    return (gpipe(b, BIG, depth),) + best(rates(b, BIG, depth))


def serial(b):
    return gpipe(b, BIG, 3), gpipe(b, BIG, 1), "gpipe, depth 1"


def bound(b):
    return b.copies_alone(BALANCED, settings(b, BIG, 4, 1), "work")


# -- files --

def files(b):
    """Against the slowest of what it is made of, each alone."""
    b.has_gpu()
    few, many = 16, 112
    source, out = b.path("in.raw"), b.path("out.raw")
    sets = ["device=cuda", "vars.n=%d" % (BIG // 4), "vars.iters=%d" % iters(b, BIG),
            "vars.input='%s'" % source, "vars.output='%s'" % out]

    def make():
        ramp = array.array("f", range(BIG // 4)).tobytes()
        with open(source, "wb") as f:
            for _ in range(many):
                f.write(ramp)

    def quiet():
        """No file to be replaced, nothing left to be written back."""
        if os.path.exists(out):
            os.remove(out)
        os.sync()

    def seconds(frames):
        quiet()
        took = b.gpipe_seconds(os.path.join(HERE, "files.yaml"), sets + ["vars.frames=%d" % frames], frames)
        if os.path.getsize(out) != frames * BIG:
            raise Failure("files.yaml wrote %d bytes" % os.path.getsize(out))
        return took

    def check():
        seconds(few)
        with open(out, "rb") as f:
            if any(f.read(BIG) != expected(b, BIG) for _ in range(few)):
                raise Failure("files.yaml wrote wrong values")

    b.ever("in.raw", make)
    b.ever("files", check)
    short = seconds(few)
    us = 1e6 * (seconds(many) - short) / (many - few)
    quiet()
    alone = hand(b, BIG, iters(b, BIG), many, source, b.path("alone.raw"), program="alone")
    slowest = max(alone, key=lambda n: alone[n][0])
    return us, alone[slowest][0], slowest + " alone"


# -- 256 KiB and 4 KiB --

def one_by_one(b, size, depth):
    return gpipe(b, size, depth), rates(b, size, depth)["graph"], "graph"


def middle_auto(b):
    return (gpipe(b, MIDDLE, 16, "auto"),) + best_graph(b, MIDDLE, (3, 4, 6))


def small_auto(b):
    return gpipe(b, SMALL, 256, "auto")


def batched(b):
    us = b.once("batched", lambda: {k: v[0] for k, v in hand(b, "batch", SMALL, 256, 1).items()})
    return (small_auto(b),) + best(us)


def torch(b, kind):
    def run():
        out = b.script("torch_loop.py", SMALL)
        return {k: v for k, v in re.findall(r"^torch (\w+ \d+) ([\d.]+)$", out, re.M)}
    b.has_gpu()
    b.ever("torch", lambda: b.once("torch", run))      # a Skip holds for all rounds
    times = b.once("torch", run)
    return (small_auto(b),) + best({"PyTorch %s, depth %s" % tuple(k.split()): float(v)
                                    for k, v in times.items() if k.startswith(kind)})


# -- a lone frame --

def lone(b, launch):
    """How late one frame is that comes a thousand times a second."""
    b.has_gpu()
    rate, frames = 1000, 2500
    with open(BALANCED) as f:
        text = f.read().replace("use: discard", "use: lag")
    file = b.write("lone.yaml", text.replace("axpy.cu", os.path.join(HERE, "axpy.cu")))
    sets = settings(b, SMALL, 4, "auto") + ["vars.rate=%d" % rate, "vars.frames=%d" % frames,
                                            "sync=spin", "launch=" + launch]
    late = b.host(file, sets)["lag"][0]
    peer = b.once("lone", lambda: {k: v[0] for k, v in hand(b, SMALL, rate, frames, 1, program="lone").items()})
    return (late,) + best(peer)


def persistent(b):
    """Raises Skip while gpipe does not know it."""
    def look():
        _, err, code = b.run([b.gpipe, "check", "--set", "launch=persistent", BALANCED], ok=range(256))
        if code:
            raise Skip("launch: persistent is not there")
    b.has_gpu()
    b.ever("persistent", look)


def lone_persistent(b):
    persistent(b)
    return lone(b, "persistent")


def rate_persistent(b):
    persistent(b)
    us = gpipe(b, SMALL, 256, "auto", ["launch=persistent"])
    return (us,) + best_graph(b, SMALL, (3, 4, 6))


# -- a lone frame beside others' work --

KERNEL = ("use: kernel, source: '%s', entry: axpy, batched: true, block: [256]" % os.path.join(HERE, "axpy.cu"))
URGENT = """  - {name: event, use: generate, out: x, frames: frames, rate: 500, fill: once, pattern: ramp,
     priority: high}
  - {name: urgent, %s, args: [in, out, {i32: 1024}, {i32: 1}], grid: [4], priority: high}
  - {use: lag, priority: high}
""" % KERNEL
# More blocks than a large GPU has room for at once.
BULK = """  - {name: load, use: generate, in: [], out: y, frames: bulk, fill: once, pattern: ramp, priority: low}
  - {name: bulk, %s, args: [in, out, {i32: n}, {i32: 20000}], grid: ["ceil(n / 256)"], priority: low}
  - {name: thrown, use: discard, priority: low}
""" % KERNEL


def beside(b, low, high):
    """p99 of an urgent frame while another chain keeps the GPU busy; what it may be: 1.5 times what it is alone,
    and a kernel of the other's."""
    b.has_gpu()
    head = """stall_timeout: 0
vars: {n: 1048576, frames: 1500, bulk: 1}
buffers: {x: {dtype: f32, shape: [1024]}, y: {dtype: f32, shape: [n]}}
stages:
"""
    alone, bulk, both = (b.write(name + ".yaml", text) for name, text in (
        ("alone", head.replace(", y: {dtype: f32, shape: [n]}", "") + URGENT),
        ("bulk", head.replace("x: {dtype: f32, shape: [1024]}, ", "") + BULK.replace("in: [], ", "")),
        ("both", head + URGENT + BULK)))
    kernel = b.once("bulk", lambda: b.timed_us(bulk, ["device=cuda"], "vars.bulk", 200, 1200))
    us = b.once("urgent", lambda: b.host(alone, ["device=cuda"])["lag"][1])
    frames = int(1500 / 500 * 1e6 / kernel * 1.2)      # of the other, so that it ends later
    sets = ["device=cuda", "vars.bulk=%d" % frames]
    sets += ["stages.%s.priority=%s" % (s, high) for s in ("event", "urgent", "lag")]
    sets += ["stages.%s.priority=%s" % (s, low) for s in ("load", "bulk", "thrown")]
    return b.host(both, sets)["lag"][1], 1.5 * us + kernel, "1.5 x alone + a kernel"


# -- 20 kernels --

def twenty(b):
    """The same segment, replayed as graphs, and queued call by call."""
    b.has_gpu()
    kernel = ("  - {use: kernel, source: '%s', entry: axpy, batched: true, block: [256], "
              "args: [in, out, {i32: n}, {i32: 1}], grid: ['ceil(n / 256)']}\n" % os.path.join(HERE, "axpy.cu"))
    file = b.write("twenty.yaml", """depth: 4
streams: 4
batch: 1
stall_timeout: 0
vars: {n: 16384, frames: 1}
buffers: {x: {dtype: f32, shape: [n]}}
stages:
  - {use: generate, out: x, frames: frames, fill: once, pattern: ramp}
""" + 20 * kernel + "  - {use: discard}\n")
    us = {launch: b.gpipe_us(file, ["device=cuda", "launch=" + launch], 2000, many)
          for launch, many in (("graph", 102000), ("stream", 32000))}
    return us["graph"], us["stream"], "launch: stream"


ROWS = [
    Row("16M-d%d" % d, "16 MiB, balanced, depth %d: best by hand" % d, "rate", 1,
        lambda b, d=d: big(b, d)) for d in (3, 4, 6)
] + [
    Row("16M-serial", "the same, depth 3: its own depth 1", "rate", 2.7, serial),
    Row("16M-bound", "the same, depth 4: copies alone", "rate", 0.97, bound),
    Row("16M-files", "the same, cached file in and out: the slowest alone", "rate", 0.95, files),
] + [
    Row("256K-d%d" % d, "256 KiB, batch: 1, depth %d: graphs by hand" % d, "rate", 1,
        lambda b, d=d: one_by_one(b, MIDDLE, d)) for d in (3, 4, 6)
] + [
    Row("256K-auto", "256 KiB, batch: auto, depth 16: best of those", "rate", 1.2, middle_auto),
] + [
    Row("4K-d%d" % d, "4 KiB, batch: 1, depth %d: graphs by hand" % d, "rate", 1,
        lambda b, d=d: one_by_one(b, SMALL, d)) for d in (3, 4, 6)
] + [
    Row("4K-batched", "4 KiB, batch: auto, depth 256: batches by hand", "time", 1.5, batched),
    Row("4K-graph", "the same: graphs by hand, a frame at a time", "rate", 12,
        lambda b: (small_auto(b),) + best_graph(b, SMALL, (3, 4, 6))),
    Row("4K-torch", "the same: PyTorch, CUDA graph", "rate", 50, lambda b: torch(b, "graph")),
    Row("4K-eager", "the same: PyTorch, eager", "rate", None, lambda b: torch(b, "eager")),
    Row("4K-persistent", "4 KiB, launch: persistent: graphs by hand", "rate", None, rate_persistent),
    Row("lone", "a lone 4 KiB frame, 1 kHz, p50: launch and wait by hand", "time", 1.25, lambda b: lone(b, "graph")),
    Row("lone-stream", "the same, launch: stream", "time", None, lambda b: lone(b, "stream")),
    Row("lone-persistent", "the same, launch: persistent", "time", 0.7, lone_persistent),
    Row("urgent", "a 4 KiB frame, 500 Hz, p99, priority: high, beside a GPU kept busy: what is allowed", "time", 1,
        lambda b: beside(b, "low", "high")),
    Row("urgent-normal", "the same without priorities", "time", None, lambda b: beside(b, "normal", "normal")),
    Row("20-kernels", "20 kernels, 64 KiB, streams: 4, graph: launch: stream", "rate", 3, twenty),
]
