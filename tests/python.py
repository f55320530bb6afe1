#!/usr/bin/env python3
"""python.py GPIPE FOLDER: the package for Python, installed from the wheel in FOLDER ('make wheel'), without a network;
NumPy says what comes out. --speed prints what a frame costs, beside C."""
import glob, os, re, signal, subprocess, sys, textwrap, time
from kit import check, gpipe, path, put, tmp, total, until

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
if "--inside" not in sys.argv:
    (wheel,) = glob.glob(os.path.join(sys.argv[2], "*.whl"))
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", path("venv")], check=True)
    subprocess.run([path("venv/bin/pip"), "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check",
                    wheel], check=True)
    sys.exit(subprocess.run([path("venv/bin/python"), "-X", "faulthandler", __file__, gpipe, *sys.argv[2:], "--inside"],
                            cwd=tmp.name).returncode)

import array, ast, contextlib, gc, inspect, io, json, pickle, shutil, threading, typing, warnings
import numpy as np
import gpipe as gp

os.chdir(tmp.name)
COMMAND = os.path.join(os.path.dirname(sys.executable), "gpipe")


def pipe(stages="", dtype="f32", shape="[4, 6]", top=""):
    return (f"{top}\nbuffers: {{picture: {{dtype: {dtype}, shape: {shape}}}}}\nstages:\n"
            "  - {name: camera, use: input, out: picture}\n"
            + "".join(f"  - {{{s}}}\n" for s in stages.split("; ") if s) + "  - {name: result, use: output}\n")


def through(arrays, text, **more):
    return [f.array for f in gp.run(text=text, frames=arrays, **more)]


def raised(kind, words, do):
    """Whether it raises that; what it did."""
    try:
        do()
    except kind as e:
        return all(w in str(e) for w in ([words] if isinstance(words, str) else words)), repr(e)
    except Exception as e:
        return False, repr(e)
    return False, "nothing was raised"


def refuses(name, kind, words, do):
    check(name, *raised(kind, words, do))


def address(loan):
    return int(gp.ffi.cast("uintptr_t", loan._c.view.data))


def heed_interrupt():
    """Whoever started this may have ignored it, as a shell does of what it runs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def script(text, **more):
    """A program of its own, which ends by itself."""
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(text)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupt, **more)


# == what a frame costs (--speed) ===============================================
def speed():
    """us a frame, the best of five: pushed by one thread and pulled by another, or by turns."""
    text = pipe("use: lua, script: copy.lua", "u8", "[4096]", top="depth: 64")
    put("copy.lua", "function process(frame, x, y) y:copy(x) end\n")

    def timed(n, push, pull, text=text):
        best = 1e9
        for _ in range(5):
            with gp.Pipeline(text=text) as p:
                camera, result = p.inputs["camera"], p.outputs["result"]
                thread = threading.Thread(target=lambda: (push(camera), camera.close()))
                push(camera) if pull is None else None
                start = time.perf_counter()
                thread.start() if pull else None
                pull(result) if pull else by_turns(camera, result, n)
                best = min(best, time.perf_counter() - start)
                thread.join() if pull else camera.close()
        return 1e6 * best / n

    def by_turns(camera, result, n):
        for _ in range(n):
            camera.push(small[0])
            result.pull()

    small = np.zeros((20000, 4096), "u1")

    def batches(k):
        return (lambda camera: [camera.push_batch(small[i:i + k]) for i in range(0, len(small), k)],
                lambda result: [None for _ in iter(lambda: result.pull_batch(k), None)])

    def one_by_one(result):
        for _ in result:
            pass

    n = len(small)
    print("4 KiB through one stage on the host, us a frame:")
    for name, direct in ("through Lua", text), ("with nothing between", pipe("", "u8", "[4096]", top="depth: 64")):
        print(f"  {name}: one call for all (C) {timed(n, *batches(n), direct):.2f}, batches of 64 "
              f"{timed(n, *batches(64), direct):.2f}, one by one "
              f"{timed(n, lambda camera: [camera.push(a) for a in small], one_by_one, direct):.2f}, by turns on one "
              f"thread {timed(1000, lambda camera: None, None, direct):.2f}")
    large = np.zeros((4, 1 << 22), "f4")

    def lends(camera):
        for _ in range(5000):
            with camera.begin():
                pass

    def borrows(result):
        while (loan := result.begin()) is not None:
            with loan:
                loan.array[0]

    print("16 MiB, us a frame:")
    text = pipe("", "f32", f"[{1 << 22}]", top="depth: 4")
    print(f"  lent both ways {timed(5000, lends, borrows, text):.1f}, copied both ways "
          f"{timed(100, lambda camera: [camera.push(large[i % 4]) for i in range(100)], one_by_one, text):.1f}")


if "--speed" in sys.argv:
    speed()
    sys.exit(0)

# == the wheel ==================================================================
check("the command", subprocess.run([COMMAND, "--version"], capture_output=True, text=True).stdout.startswith(
    f"gpipe {gp.__version__} "))
p = script("""
    import gpipe
    print([l.split("/")[-1].strip() for l in open("/proc/self/maps") if "libcuda" in l or "nvidia" in l])
    """, env={"PATH": "/nowhere", "PYTHONPATH": os.environ.get("PYTHONPATH", "")})
check("import needs no compiler, and opens no driver", p.communicate() == ("[]\n", ""), p)

old = [os.path.join(os.path.dirname(sys.executable), "pip"), "install", "--no-index", "--no-deps", "--only-binary=:all:",
       "--disable-pip-version-check", "--target", path("old"), "--platform"]
(wheel,) = glob.glob(os.path.join(ROOT, sys.argv[2], "*.whl"))
tag = wheel.rpartition("-")[2][:-len(".whl")]
for platform, says in (tag, "Successfully installed"), (re.sub(r"_2_\d+_", "_2_5_", tag), "is not a supported wheel on this platform"):
    p = subprocess.run([*old, platform, wheel], capture_output=True, text=True)
    check(f"the wheel where there is {platform}", says in p.stdout + p.stderr, p)

# == arrays in ==================================================================
A = np.arange(24, dtype="f4").reshape(4, 6)


class OnlyDlpack:
    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **more):
        return self.a.__dlpack__(**more)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


read_only = A.copy()
read_only.flags.writeable = False
for name, a in {"an array": A, "big-endian": A.astype(">f4"), "Fortran's order": np.asfortranarray(A),
                "steps": np.repeat(A, 2, 1)[:, ::2], "backwards": A[::-1][::-1], "read-only": read_only,
                "float16's sums": (A.astype("f2") + 0).astype("f4"), "a memoryview": memoryview(A),
                "array.array": memoryview(array.array("f", A.ravel())).cast("B").cast("f", (4, 6)),
                "DLPack alone": OnlyDlpack(A)}.items():
    check(f"pushed: {name}", np.array_equal(through([a], pipe("use: scale, a: 2")), [2 * A]))
for name, a, kind, words in [
        ("f64", A.astype("f8"), TypeError, ["'camera' takes f32 (float32), not float64", "a.astype('float32')"]),
        ("bool", A > 3, TypeError, "not bool"), ("integers", A.astype(int), TypeError, "not int64"),
        ("masked values", np.ma.masked_greater(A, 3), TypeError, "a.filled(VALUE)"),
        ("objects", A.astype(object), TypeError, "not object"), ("text", "photo", TypeError, "not <U5"),
        ("a list", A.tolist(), TypeError, "not float64: push numpy.asarray(a, 'float32')"),
        ("another object", object(), TypeError, "not object"),
        ("more rows", np.zeros((5, 6), "f4"), ValueError, "shape [4, 6], not [5, 6]"),
        ("no columns", np.zeros((4, 0), "f4"), ValueError, "shape [4, 6], not [4, 0]"),
        ("fewer columns", np.zeros((4, 5), "f4"), ValueError, "shape [4, 6], not [4, 5]"),
        ("fewer axes", np.zeros(24, "f4"), ValueError, "shape [4, 6], not [24]"),
        ("a batch", np.zeros((9, 4, 6), "f4"), ValueError, ["not [9, 4, 6]", "push_batch()"])]:
    refuses(f"refused: {name}", kind, words, lambda: through([A, a], pipe()))
try:
    import torch
    t = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    check("tensors of PyTorch", np.array_equal(through([t, t.T.contiguous().T], pipe("use: scale, a: 2")), [2 * A] * 2))
    check("PyTorch takes a frame", torch.equal(torch.from_numpy(through([t], pipe())[0]), t))
except ImportError:
    print("SKIPPED, no PyTorch: its tensors, pushed and made of loans")
    torch = None
try:
    import cupy
except ImportError:
    cupy = None
for name, dtype in zip("u8 i8 u16 i16 u32 i32 u64 i64 f16 f32 f64 c64".split(),
                       "u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8 c8".split()):
    a = np.array([0, 1, 7, 100], dtype)
    b = through([a, a.astype(np.dtype(dtype).newbyteorder(">"))], pipe("", name, "[4]"))
    check(f"elements {name}", np.array_equal(b, [a, a]) and b[0].dtype == dtype, b)
b = through([A > 3, (A > 3)[::-1]], pipe("", "u8"))
check("bool is u8", np.array_equal(b, [A > 3, (A > 3)[::-1]]) and b[0].dtype == "u1", b)
refuses("one array as frames", ValueError, ["this is one, of shape [4, 6]", "frames=[a]"], lambda: through(A, pipe()))
b = through([A, A[:3], A[:1], A], pipe("use: scale, a: 2"))
check("fewer rows", [x.shape for x in b] == [(4, 6), (3, 6), (1, 6), (4, 6)] and np.array_equal(b[1], 2 * A[:3]), b)
check("no rows", [x.shape for x in through([A[:0], A], pipe("use: scale, a: 2"))] == [(0, 6), (4, 6)])
check("frames of another pipeline", np.array_equal(through(gp.run(text=pipe("use: scale, a: 2"), frames=[A, A]), pipe(
    "use: scale, a: 3")), [6 * A, 6 * A]))
check("frames as arrays", np.stack(list(gp.run(text=pipe(), frames=[A, A]))).shape == (2, 4, 6))
b = through([A[:, :4], A], pipe("use: scale, a: 2", shape='["<=4", "<=6"]'))
check("within bounds", np.array_equal(b[0], 2 * A[:, :4]) and np.array_equal(b[1], 2 * A), b)
big = np.random.default_rng(1).random((1024, 1024), dtype="f4")
check("large frames", all(np.array_equal(a, 2 * big) for a in through([big, big.T.copy().T], pipe(
    "use: scale, a: 2", shape="[1024, 1024]"))))

# == what travels with a frame ==================================================
with gp.Pipeline(text=pipe("use: scale, a: 1", top="metadata: [exposure, gain]")) as p:
    camera, result = p.inputs["camera"], p.outputs["result"]
    before = time.time_ns()
    camera.push(A, name="a.png", time_ns=12345, meta={"exposure": 0.5})
    camera.push(None)
    camera.push(A, meta={"gain": 3, "exposure": 1})
    for name, kind, words, a, more in [
            ("a number that is not listed", ValueError, ["does not list 'iso'", "'exposure', 'gain'"], A,
             {"meta": {"iso": 100}}),
            ("a number that is none", ValueError, "not finite", A, {"meta": {"gain": float("nan")}}),
            *((f"{n} as number", ValueError, "does not hold exactly", A, {"meta": {"gain": n}})
              for n in (2**53 + 1, -10**400, np.uint64(2**64 - 1))),
            ("a name with a NUL", ValueError, "'\\0'", A, {"name": "a\0b"}),
            ("a text as number", TypeError, "'gain' of meta is a number, or None, not str", A, {"meta": {"gain": "a"}}),
            ("a list of numbers", TypeError, "meta is a mapping, as {'gain': 2}, not list", A, {"meta": [1, 2]}),
            ("a name that is no text", TypeError, "name is a text, not int", A, {"name": 7}),
            ("half a nanosecond", TypeError, "time_ns is a whole number of ns, not float", A, {"time_ns": 1.5}),
            ("a time that is too large", OverflowError, "", A, {"time_ns": 1 << 64}),
            ("another type", TypeError, "a.astype", A.astype(int), {})]:
        refuses(f"{name} is refused, and has no number", kind, words, lambda: camera.push(a, **more))
    camera.push(A, meta={"gain": None, "exposure": np.float32(2)})
    with camera.begin() as slot:
        slot.array[:] = A
        slot.meta["exposure"] = 1
        slot.meta["gain"] = 2
        slot.meta = {"gain": 3}
        refuses("... in a loan", ValueError, "does not list 'iso'", lambda: slot.meta.update(iso=1))
        slot.meta["exposure"] = 5
        del slot.meta["gain"]
        check("numbers of a loan", slot.meta == {"exposure": 5} and repr(slot.meta) == "{'exposure': 5.0}", slot.meta)
    refuses("numbers of a loan that has ended", ValueError, "has ended", lambda: slot.meta.get("gain"))
    camera.close()
    refuses("pushed after the end", ValueError, "'camera' is closed", lambda: camera.push(A))
    f = [result.pull() for _ in range(3)]
    with result.begin() as frame:
        check("numbers of a loan are read", dict(frame.meta) == {"exposure": 5}, frame.meta)
        refuses("... and only read", TypeError, "read-only", lambda: frame.meta.update(gain=1))
    check("after the last one", result.pull() is None and result.pull(timeout=0) is None and result.begin() is None)
check("numbers, holes", [x.number for x in f] == [0, 2, 3], f)
check("metadata", [x.meta for x in f] == [{"exposure": 0.5}, {"exposure": 1, "gain": 3}, {"exposure": 2}], f)
check("names, times", f[0].name == "a.png" and f[0].time_ns == 12345 and f[1].name is None
      and before <= f[1].time_ns <= time.time_ns(), f)
check("the account", p.account() == {"camera": {"in": 5, "out": 4, "dropped": 1, "failed": 0, "cancelled": 0, "late": 0,
                                              "lost": 0, "full": 0}}, p.account())

# == loans ======================================================================
with gp.Pipeline(text=pipe("use: scale, a: 2")) as p:
    camera, result = p.inputs["camera"], p.outputs["result"]
    with camera.begin() as loan:
        loan.array[:] = A
    check("a loan is written", np.array_equal(result.pull().array, 2 * A))
    refuses("used after its end", ValueError, "frame 0 of 'camera' has ended", lambda: loan.array)
    refuses("ended twice", ValueError, "has ended", loan.end)
    refuses("its shape after its end", ValueError, "has ended", lambda: loan.shape)
    loan = camera.begin()
    a = loan.array
    refuses("an array still uses it", BufferError, ["frame 1 of 'camera', which has not ended", "'del' the array",
                                                    "then call end()"], loan.end)
    a[:] = 1
    del a
    loan.end()
    with result.begin() as loan:
        refuses("an output is read-only", ValueError, "read-only", lambda: loan.array.fill(1))
        check("a loan is read", np.array_equal(loan.array, np.full((4, 6), 2)) and loan.number == 1)
        refuses("... and its shape", TypeError, "'result' are read-only", lambda: setattr(loan, "shape", (1, 6)))
        b = np.from_dlpack(loan) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else loan.array[1:, 2:]
        refuses("a part of it is used", BufferError, "frame 1 of 'result'", loan.end)
        del b
    with camera.begin() as loan:
        refuses("a shape that does not fit", ValueError, "not [5, 6]", lambda: setattr(loan, "shape", (5, 6)))
        loan.shape = 3, 6
        a = loan.array
        refuses("a shape when there is an array", BufferError, "set it first", lambda: setattr(loan, "shape", (1, 6)))
        del a
        loan.shape = 2, 6
        loan.array[:] = A[:2]
    check("a shorter loan", np.array_equal(result.pull().array, 2 * A[:2]))
    with camera.begin() as loan:
        loan.drop()
    try:
        with camera.begin() as loan:
            kept = loan.array
            raise KeyError
    except KeyError:
        pass
    check("what went wrong keeps its frame", loan.array is not None)
    del kept
    loan.drop()
    try:
        with camera.begin() as loan:
            raise KeyError
    except KeyError:
        pass
    refuses("... or drops it", ValueError, "has ended", lambda: loan.array)
    with camera.begin() as loan:
        loan.array[:], loan.name = 3, "c"
    f = result.pull()
    check("frames that are dropped are holes", f.number == 6 and f.name == "c" and f.array[0, 0] == 6, f)
    check("... as text", repr(f) == f"<gpipe.Frame 6 'c': float32 [4, 6], time_ns {f.time_ns}>"
          and repr(gp.Frame(1, 2, None, {"gain": 3.0}, A))
          == "<gpipe.Frame 1: float32 [4, 6], time_ns 2, meta {'gain': 3.0}>", f)
    loan = camera.begin()
    refuses("time is up", TimeoutError, "'camera' has no room after 0.01 s", lambda: camera.begin(timeout=0.01))
    refuses("... since the program has it", TimeoutError, ["the program itself has frame 7 of it", "(workers: 1)"],
            lambda: camera.begin(timeout=0))
    refuses("time is up at an output", TimeoutError, "'result' has no frame after 0 s", lambda: result.pull(timeout=0))
check("a loan that nobody ended", p.account()["camera"]["dropped"] == 4, p.account())
refuses("... is over", ValueError, "has ended", lambda: loan.array)
refuses("... a loop", RuntimeError, "'result': the pipeline does not run", lambda: next(iter(result)))
refuses("outside of 'with'", RuntimeError, "'camera': the pipeline does not run", lambda: camera.push(A))


def keeps(port, workers=1, change=False):
    """Leaves a block while an array of a frame is kept, and frames wait behind it."""
    global kept, loan
    with p:
        for i in range(workers + 3):
            p.inputs["camera"].push(B[i])
        loan = p.outputs[port].begin() if port == "result" else p.inputs[port].begin()
        kept = loan.array
        if change:
            p.set({"stages.scale.a": 3})


def keeps_by_with():
    global kept, loan
    with p, p.outputs["result"].begin() if p.inputs["camera"].push(A) is None else None as loan:
        kept = loan.array


B = np.arange(1000 * 24, dtype="f4").reshape(1000, 4, 6)
for n, (port, *more) in enumerate([("result",), ("result", 3), ("camera",), ("result", 1, True), ("result", 3, True)]):
    p = gp.Pipeline(text=pipe("use: scale, a: 2", top="depth: 8").replace(
        "use: output", f"use: output, workers: {(*more, 1)[0]}"))
    refuses(f"an array outlives the run {n}", BufferError, ["broken off", f"of '{port}'", "copy them"],
            lambda: keeps(port, *more))
    account = p.account()["camera"]
    check(f"... which has ended {n}", not p._thread and sum(account.values()) == 2 * account["in"], account)
    refuses(f"... as the loan has {n}", ValueError, "has ended with its run", loan.end)
    was = kept.copy()
    with p:
        for i in range(20):
            p.inputs["camera"].push(B[i])
            result = p.outputs["result"].pull()
    check(f"... and the next is as ever {n}", result.number == 19, result)
    check(f"... and the array as it was {n}", np.array_equal(kept, was)
          and (port == "camera" or np.array_equal(kept, 2 * B[0])), kept)
    del p
    gc.collect()
    check(f"... without its pipeline, too {n}", np.array_equal(kept, was), kept)
p = gp.Pipeline(text=pipe("use: scale, a: 2"))
refuses("a block in a block", BufferError, "then call end()", keeps_by_with)
check("... ends both", not p._thread and np.array_equal(kept, 2 * A), p._thread)
with p, p.inputs["camera"].begin() as loan:            # what the text says to do
    kept = loan.array
    refuses("end() when there is an array", BufferError, "then call end()", loan.end)
    del kept
    loan.end()
if torch:
    with gp.Pipeline(text=pipe("use: scale, a: 2")) as p:
        with p.inputs["camera"].begin() as loan:
            torch.from_dlpack(loan).copy_(t)
        with p.outputs["result"].begin() as loan:
            check("PyTorch reads and writes loans", torch.equal(torch.from_dlpack(loan), 2 * t))
            t2 = torch.from_dlpack(loan)
            refuses("a tensor still uses it", BufferError, "frame 0", loan.end)
            del t2

# What is said of a slot in a GPU's memory, where there is none: its memory is the host's, and nobody looks at it.
with gp.Pipeline(text=pipe()) as p:
    slot = p.inputs["camera"].begin()
    slot._c.device = 1
    capsules = [slot.__dlpack__(stream=s, max_version=v) for s, v in ((7, None), (7, (1, 0)), (-1, (2, 0)), (7, (0, 8)))]
    check("a GPU's number", slot.__dlpack_device__() == (2, 1))
    check("the stream that is waited for", int(gp.ffi.cast("intptr_t", slot._c.stream)) == 7)
    check("versions", ["versioned" in repr(c) for c in capsules] == [False, True, True, False], capsules)
    refuses("two streams", BufferError, "one stream", lambda: slot.__dlpack__(stream=1))
    refuses("to another device", BufferError, "stays where it is", lambda: slot.__dlpack__(stream=7, dl_device=(1, 0)))
    refuses("as an array of the host", TypeError, "torch.from_dlpack", lambda: slot.array)
    slot._c.device, slot._c.stream = -1, gp.ffi.NULL
    refuses("a capsule still uses it", BufferError, "frame 0", slot.end)
    del capsules
    slot.end()
    check("nothing is kept", not gp._dlpack._lent, gp._dlpack._lent)

class OnGpu(OnlyDlpack):
    def __dlpack_device__(self):
        return 2, 1


refuses("an array on a GPU", TypeError, ["'camera' takes arrays in the host's memory", "is on GPU 1: push a.cpu()"],
        lambda: through([A, OnGpu(A)], pipe()))
refuses("... in a batch", TypeError, "is on GPU 1", lambda: through([OnGpu(A)], pipe()))


class Torch:
    """What tests of a GPU's memory do with PyTorch."""
    name = "PyTorch"
    from_dlpack = staticmethod(lambda slot: torch.from_dlpack(slot))

    def __init__(self):
        self.gpus = torch.cuda.device_count() if torch and torch.cuda.is_available() else 0
        self.streams = []                              # a loan has one until its end

    def on(self, gpu, aside):
        self.streams.append(torch.cuda.Stream(gpu) if aside else torch.cuda.default_stream(gpu))
        return torch.cuda.stream(self.streams[-1])

    def wait(self, gpu):
        torch.cuda.synchronize(gpu)

    def hold(self):
        torch.cuda._sleep(10_000_000)

    def ones(self, gpu):
        return torch.ones(512, 1024, device=f"cuda:{gpu}")

    def place(self, a):
        return a.data_ptr(), a.device.index

    def copy(self, to, a):
        to.copy_(a)


class Cupy:
    name = "CuPy"
    from_dlpack = staticmethod(lambda slot: cupy.from_dlpack(slot))

    def __init__(self):
        try:
            self.gpus = cupy.cuda.runtime.getDeviceCount() if cupy else 0
        except cupy.cuda.runtime.CUDARuntimeError:
            self.gpus = 0
        self.streams = []

    @contextlib.contextmanager
    def on(self, gpu, aside):
        with cupy.cuda.Device(gpu):
            self.streams.append(cupy.cuda.Stream() if aside else cupy.cuda.Stream.null)
            with self.streams[-1]:
                yield

    def wait(self, gpu):
        cupy.cuda.Device(gpu).synchronize()

    def hold(self):
        for _ in range(20):
            self.busy = cupy.ones(1 << 26, "f4")

    def ones(self, gpu):
        with cupy.cuda.Device(gpu):
            return cupy.ones((512, 1024), "f4")

    def place(self, a):
        return a.data.ptr, a.device.id

    def copy(self, to, a):
        to[...] = a


def on_gpu(use, gpu, other):
    """Frames that a program makes and takes on a GPU, from arrays of it or of another one."""
    name = f"{use.name}, GPU {gpu}" + f", arrays of GPU {other}" * (other != gpu)
    text = pipe("use: scale, a: 2", shape="[512, 1024]", top=f"device: cuda:{gpu}").replace(
        "use: input", "use: input, memory: device").replace("use: output", "use: output, memory: device")
    given, got = use.ones(other), []
    use.wait(other)
    with gp.Pipeline(text=text) as p:
        camera, result = p.inputs["camera"], p.outputs["result"]
        refuses(f"{name}: pushed to memory of the device", TypeError, "use begin()",
                lambda: camera.push(np.zeros((512, 1024), "f4")))
        for i in range(20):
            with use.on(gpu, i % 2):
                slot = camera.begin()
                t = use.from_dlpack(slot)
                use.hold()                             # so that the loan ends long before this is done
                use.copy(t, given)
                t *= i
                del t
                slot.end()
                refuses(f"{name}: a slot that has ended", ValueError, "has ended", lambda: use.from_dlpack(slot))
                with result.begin() as frame:
                    refuses(f"{name}: as an array of the host", TypeError, "torch.from_dlpack", lambda: frame.array)
                    refuses(f"{name}: to the host", BufferError, "stays where it is",
                            lambda: frame.__dlpack__(dl_device=(1, 0)))
                    t = use.from_dlpack(frame)
                    check(f"{name}: it is gpipe's memory", use.place(t) == (address(frame), gpu), use.place(t))
                    got.append(t.sum())
                    refuses(f"{name}: it is still in use", BufferError, "frame", frame.end)
                    del t
        slot = camera.begin()
        with use.on(gpu, 1):
            t = use.from_dlpack(slot)
        with use.on(gpu, 1):
            refuses(f"{name}: two streams", BufferError, "one stream", lambda: use.from_dlpack(slot))
        del t
        slot.drop()
    use.wait(gpu)
    check(f"{name}: frames", [float(x) for x in got] == [2 * i * 512 * 1024 for i in range(20)], got)
    refuses(f"{name}: pushed to the host's", TypeError, [f"is on GPU {other}", "a.cpu()", "a.get()"],
            lambda: through([given], pipe(shape="[512, 1024]")))


gpipe_has_gpu = "cuda:" in gp.Pipeline(text=pipe("use: scale")).plan().text
for use in Torch(), Cupy():
    if not use.gpus or not gpipe_has_gpu:
        print(f"SKIPPED, no GPU with {use.name}: its arrays of frames in the GPU's memory")
        continue
    on_gpu(use, 0, 0)
    if use.gpus > 1:
        on_gpu(use, 0, 1)
        on_gpu(use, 1, 0)
        on_gpu(use, 1, 1)
    else:
        print(f"SKIPPED, one GPU: arrays of {use.name} on another GPU")

# == batches ====================================================================
for n in 1, 7, 64, 1000:
    got = []

    def pull():
        while (batch := result.pull_batch(n)) is not None:
            got.append(batch)

    with gp.Pipeline(text=pipe("use: scale, a: 2")) as p:
        camera, result = p.inputs["camera"], p.outputs["result"]
        thread = threading.Thread(target=pull)
        thread.start()
        camera.push_batch(B[:600])
        camera.push_batch(B[600:999].astype(">f4"))
        camera.push(None)
        camera.push_batch(B[999:, :2])
        camera.push(A)
        camera.close()
        thread.join()
    check(f"batches of {n}", np.array_equal(np.concatenate([b.array for b in got if b.array.shape[1] == 4]),
                                            2 * np.concatenate([B[:999], A[None]]))
          and [b.array.tolist() for b in got if b.array.shape[1] == 2] == [(2 * B[999:, :2]).tolist()], got[-3:])
    check(f"numbers of batches of {n}", np.concatenate([b.numbers for b in got]).tolist() == [*range(999), 1000, 1001])
    check(f"no batch is longer than {n}", max(len(b.array) for b in got) == min(n, 999), [len(b.array) for b in got])
with gp.Pipeline(text=pipe()) as p:
    camera, result = p.inputs["camera"], p.outputs["result"]
    refuses("a batch of another shape", ValueError, "not [6]", lambda: camera.push_batch(A))
    refuses("a batch of numbers", ValueError, "not []", lambda: camera.push_batch(np.zeros(3, "f4")))
    refuses("a batch that is none", ValueError, "along its first axis", lambda: camera.push_batch(np.float32(1)))
    camera.push(A)                                     # it waits until the run is up
    refuses("a batch without room", TimeoutError, "of 1000 frames were pushed",
            lambda: camera.push_batch(B, timeout=0.01))
    got = result.pull_batch(10**4, timeout=1)
    check("what came in time", np.array_equal(got.array[1:], B[:len(got.array) - 1]) and len(got.array) > 4, got)
    camera.push(A[:2])
    camera.push(A)
    result.pull_batch(9, timeout=60)
    refuses("a batch of no frames", ValueError, "one frame at least", lambda: result.pull_batch(0))
    refuses("a frame in the middle of a batch", RuntimeError, "are left", result.pull)
    check("the rest of a batch", len(result.pull_batch(9).array) == 1)
    refuses("none came in time", TimeoutError, "no frame", lambda: result.pull_batch(9, timeout=0))

# == run() ======================================================================
np.save(path("a.npy"), A)
put("f.yaml", "vars: {n: 1}\nstages:\n  - {use: read, path: a.npy}\n  - {use: scale, a: n}\n  - {use: output}\n")
check("a file", np.array_equal([f.array for f in gp.run(path("f.yaml"), vars={"n": np.int64(3)})], 3 * A))
check("without an output", list(gp.run(text=pipe("use: scale, a: 2").replace(
    "name: result, use: output", "use: write, path: 'w%02d.npy'"), frames=[A, 2 * A])) == []
    and np.array_equal(np.load("w01.npy"), 4 * A))
check("the command and the file", subprocess.run([COMMAND, "check", "f.yaml"], capture_output=True).stdout == b"f.yaml: ok\n")
try:
    from PIL import Image                              # which brings a libjpeg of its own
    Image.fromarray(np.add.outer(np.arange(64), 2 * np.arange(64)).astype("u1")).save("a.jpg")
    (f,) = gp.run(text="stages: [{use: read, path: a.jpg}, {use: output}]")
    check("JPEG beside Pillow", np.array_equal(f.array.reshape(64, 64), np.asarray(Image.open("a.jpg"))) and f.name, f)
except ImportError:
    print("SKIPPED, no Pillow: JPEG beside it")
refuses("frames without an input", ValueError, "no stage 'input'", lambda: gp.run(path("f.yaml"), frames=[A]))
refuses("an input without frames", ValueError, "give its frames", lambda: gp.run(text=pipe()))
refuses("neither file nor text", TypeError, "name a file", lambda: gp.run())
refuses("no such file", FileNotFoundError, "none.yaml", lambda: gp.run("none.yaml"))
refuses("a text in place of a file", TypeError, "text=", lambda: gp.Pipeline(pipe()))
p = gp.Pipeline(text=pipe())
refuses("no such input", KeyError, "no such stage 'cam': there is 'camera'", lambda: p.inputs["cam"])
refuses("no such output", KeyError, "there is 'result'", lambda: p.outputs["camera"])
check("one frame of many", np.array_equal(list(gp.run(text=pipe("use: group, frames: 50"), frames=B[:100]))[1].array,
                                          B[50:100]))


def broken():
    yield A
    raise LookupError("the camera is gone")


refuses("the frames raise", LookupError, "the camera is gone", lambda: through(broken(), pipe()))
made = []
for f in gp.run(text=pipe(), frames=(made.append(i) or B[i] for i in range(1000))):
    break
check("a loop that is left", len(made) < 100, len(made))
check("texts of variables", through([A], pipe("use: scale, a: n", top="vars: {n: 1}"), vars={"n": 2.5})[0][0, 1] == 2.5)
check("NumPy's numbers", np.array_equal(through([A], pipe("use: scale, a: n", top="vars: {n: 1}"), vars={"n": np.float32(2)}),
                              [2 * A]))
check("settings", "depth 9" in str(gp.Pipeline(text=pipe("use: scale"), settings={"depth": 9}).plan()))

# == kinds ======================================================================
said = lambda *a: subprocess.run([COMMAND, "stages", *a], capture_output=True, text=True).stdout
kinds = gp.stages()
check("kinds: their names", len(kinds) > 60 and list(kinds) == [k["name"] for k in json.loads(said("--json"))])
check("kinds: the list", str(kinds).startswith("arrays\n") and str(kinds).rpartition("\nplug-ins")[0]
      == said().rpartition("\nplug-ins")[0], str(kinds))
for k in "blur", "generate", "read":
    check(f"kinds: the page of {k}", str(kinds[k]) == said(k) and f"{k} - {kinds[k].help}\n" in said(k), kinds[k])
k = kinds["scale"]
check("kinds: options", k.options["a"]["type"] == "number" and k.options["a"]["default"] == "1" and k.on == ["device"]
      and kinds["blur"].options["sigma"]["required"] and "f32" in k.inputs["in"]["types"] and "out" in k.outputs, k.options)
check("kinds: in short", repr(kinds["blur"]).startswith("<gpipe.Kind blur: "), repr(kinds["blur"]))
refuses("no such kind", KeyError, "no stage kind 'blurr'; did you mean 'blur'?", lambda: kinds["blurr"])
check("is there such a kind", "blurr" not in kinds and kinds.get("blurr") is None)
refuses("an array as a variable", gp.Error, ["vars.taps=[0.0, 1.0, ", "...: error: 'taps' is a list, which an option itself"],
        lambda: gp.Pipeline(text=pipe(top="vars: {taps: 1}"), vars={"taps": np.arange(100.0)}))
if os.uname().machine == "x86_64":
    p = script("""
        import gpipe
        print(gpipe.stages()["kept_ramp"].plugin["name"], "[plug-in kept 1.0]" in str(gpipe.stages()))
        text = "stages: [{use: kept_ramp, frames: 2, start: 3, size: 1}, {use: output}]"
        print([f.array[0] for f in gpipe.run(text=text)])
        """, env=dict(os.environ, GPIPE_PLUGINS=os.path.join(ROOT, "tests/data/plugin/kept.so")))
    out, err = p.communicate()
    check("kinds of a plug-in", out.startswith("kept True\n[") and "3.0" in out and "4.0" in out and not err, (out, err))

# == several inputs and outputs ==================================================
several = """
buffers: {l: {dtype: f32, shape: [4, 6]}, r: {dtype: f32, shape: [4, 6]}}
stages:
  - {name: left, use: input, workers: 3, out: l}
  - {name: right, use: input, out: r}
  - {name: both, use: expr, in: {l: l, r: r}, expr: l - r}
  - {name: one, use: output, in: both}
  - {name: two, use: output, in: both}
"""
with gp.Pipeline(text=several) as p:
    left, right, one, two = (*p.inputs.values(), *p.outputs.values())
    loans = [left.begin() for i in range(3)]
    for i, loan in enumerate(loans):
        loan.array[:] = 10 * i
        right.push(A)
    for loan in loans[::-1]:
        loan.end()
    check("loans that end in another order", all(np.array_equal(one.pull().array, 10 * i - A) for i in range(3)))
    check("the other output", np.array_equal(two.pull().array, -A))
check("outputs that nobody pulls to their end", {k: v["out"] for k, v in p.account().items()} == {"left": 3, "right": 3},
      p.account())
refuses("several for run()", ValueError, ["'left'", "'two'", "use gpipe.Pipeline"], lambda: gp.run(text=several, frames=[A]))

# == errors =====================================================================
try:
    gp.Pipeline(text=pipe("use: scael; use: blur, sigma: -1"))
except gp.Error as e:
    check("errors with their places", (e.code, e.file, e.line, e.column) == ("spec", "pipeline", 5, 11)
          and len(e.messages) == 2 and "did you mean 'scale'?" in e.text and "          ^~~~~" in str(e), e)
refuses("an error in a file", gp.Error, [path("bad.yaml") + ":1:16: error", "^"], lambda: gp.Pipeline(
    put("bad.yaml", "stages: [{use: nothing}]")))
for text in "a$$b", "${n}", "$", "a: b", "", "\n'\"\\\\":
    put("text.lua", "function init(stage) assert(stage.params.text == %s) end\n"
                    "function process(f, x, y) y:copy(x) end\n" % json.dumps(text))
    check(f"a variable is the text {text!r}", len(through([A], pipe(
        "use: lua, script: text.lua, params: {text: '${text}'}", top="vars: {text: null}"),
        vars={"text": text})) == 1)
refuses("variables that are no mapping", TypeError, "vars is a mapping, as {'sigma': 2}, not list",
        lambda: gp.Pipeline(text=pipe(), vars=["n=1"]))
refuses("settings that are none", TypeError, "settings is a mapping, as {'depth': 8}, not str",
        lambda: gp.Pipeline(text=pipe()).set("depth=9"))
refuses("a variable that there is not", gp.Error, "vars.m=1", lambda: gp.Pipeline(text=pipe(), vars={"m": 1}))
check("names in tracebacks", all(x.__module__ == "gpipe" for x in (gp.Error, gp.Stopped, gp.GpipeWarning)))
warns = """
buffers: {dark: {const: a.npy}}
stages: [{use: read, path: a.npy, out: x}, {use: expr, in: {x: x, dark: dark}, expr: x - dark}, {use: output}]
"""
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    p = gp.Pipeline(text=pipe("use: scale", top="metadata: []\nstall_timeout: 300ms"))
    check("check", isinstance(p.check(), list))
    gp.Pipeline(text=warns), list(gp.run(text=warns))
    here = sys._getframe().f_lineno - 1
    check("warnings are of the line that calls", [(x.filename, x.lineno, x.category) for x in w]
          == [(__file__, here, gp.GpipeWarning)] * len(w) and len(w) > 1 and "as large as all" in str(w[0].message),
          list(map(str, w)))


def deadlock():
    with p:
        p.inputs["camera"].push(A)
        while p.outputs["result"].pull():              # this thread pushes no more
            pass


refuses("a pull that nothing can come of is named", gp.Error, [
    "pushed no frame into stage 'camera' for", "nor said that no more frames come", "close()"], deadlock)


def second_loan():
    with p:
        p.inputs["camera"].begin()
        p.inputs["camera"].begin()


refuses("a second loan of the only slot", gp.Error, [
    "the program has had frame 0 of stage 'camera' all the while", "lends 1 at a time (workers)"], second_loan)


def pushes_before_a_loan_ends():
    with gp.Pipeline(text=pipe("use: scale", top="stall_timeout: 3s")) as p:       # which is for what it does here, too
        p.inputs["camera"].push(A)
        loan = p.outputs["result"].begin()
        p.set({"stages.scale.a": 7})
        p.inputs["camera"].push(A)
        loan.end()


refuses("a push after a change, with a frame on loan", gp.Error, [
    "waits for loans to end", "<gpipe.Loan 0 of 'result'"], pushes_before_a_loan_ends)


def kept_too_long():
    with p:
        p.inputs["camera"].push(A)
        loan = p.outputs["result"].begin()
        while p.inputs["camera"].push(A) is None:      # until there is no room
            pass


refuses("a loan that is kept too long", gp.Error, "result", kept_too_long)
try:
    deadlock()
except gp.Error as e:
    check("its code", e.code == "stall", e)
fails = pipe("use: lua, script: f.lua")
put("f.lua", "function process(frame, x, y)\n  if frame.number == 3 then error('no') end\n  y:copy(x)\nend\n")


def pushes(use=lambda x: None):
    with gp.Pipeline(text=fails) as p:
        while True:
            p.inputs["camera"].push(A)
            use(p.outputs["result"].pull())


refuses("a run that fails", gp.Error, ["f.lua:2", "no"], pushes)
refuses("... whatever follows from it", gp.Error, "f.lua:2", lambda: pushes(lambda x: x.array))
refuses("... while frames are made", gp.Error, "f.lua:2", lambda: through(B, fails))
with gp.Pipeline(text=pipe()) as p:
    p.cancel()                                         # which is heard a little later
    refuses("pushed after the run", gp.Stopped, "nobody takes", lambda: [p.inputs["camera"].push(A) for _ in range(99)])
    check("... whose outputs end", len(list(p.outputs["result"])) < 99)
    refuses("a second 'with'", RuntimeError, "runs already", p.__enter__)
with p:
    p.inputs["camera"].push(A)
    check("another run", np.array_equal(p.outputs["result"].pull().array, A))

# == changes, numbers ===========================================================
with gp.Pipeline(text=pipe("name: x, use: scale, a: n", top="vars: {n: 1}"), measure=True) as p:
    camera, result = p.inputs["camera"], p.outputs["result"]
    for n in 2, 3, 4:
        camera.push(A)
        check(f"before change {n}", result.pull().array[0, 1] == n - 1)
        p.set({"vars.n": n})
    camera.push(A)
    loan = result.begin()
    p.set({"stages.x.a": 7})                           # a loan is out: it comes back all the same
    loan.end()
    camera.push(A)
    check("after a change", result.pull().array[0, 1] == 7)
    refuses("a change that cannot be", gp.Error, "error", lambda: p.set({"stages.x.use": "blur"}))
    refuses("a setting that there is not", gp.Error, "stages.y", lambda: p.set({"stages.y.a": 7}))
    p.set({"stages.x.a": 7})                           # as it is
    camera.push_batch(B[:3])
    check("a batch after changes", np.array_equal(result.pull_batch(3).array, 7 * B[:3]))
check("the account of all", p.account()["camera"]["out"] == 8, p.account())
for trial in range(10):                                # a run that is not up yet, or just goes on, can be changed
    with gp.Pipeline(text=pipe("use: scale, a: n", top="vars: {n: 1}")) as q:
        got = []
        for n in 2, 3, 4, 5:
            q.set({"vars.n": n})
            q.inputs["camera"].push(A)
            got.append(q.outputs["result"].pull().array[0, 1])
    check(f"what is pushed after a change is made so {trial}", got == [2, 3, 4, 5], got)
with gp.Pipeline(text=pipe("use: scale, a: n", top="vars: {n: 1}\ndepth: 8")) as q:
    got = []
    thread = threading.Thread(target=lambda: got.extend(f.array[0, 1] for f in q.outputs["result"]))
    thread.start()
    for n in range(2, 20):
        q.set({"vars.n": n, "depth": 8 - n % 3})
        q.inputs["camera"].push(A)
    q.inputs["camera"].close()
    thread.join()
check("... while another thread pulls", len(got) == 18 and got == sorted(got) and all(a >= b for a, b in zip(got, range(
    1, 20))), got)
with gp.Pipeline(text=pipe("use: scale, a: n", top="vars: {n: 1}\ndepth: 8")) as q:
    for _ in range(8):
        q.inputs["camera"].push(A)
    q.set({"vars.n": 2, "depth": 1})                   # there is no room for what waits: this thread pulls it
    got = [q.outputs["result"].pull().array[0, 1] for _ in range(8)]
    q.set({"vars.n": 3})
    q.inputs["camera"].push(A)
    check("a change that waits for pulls", got[0] == 1 and got == sorted(got)
          and q.outputs["result"].pull().array[0, 1] == 3, got)
p.set({"stages.x.a": 2})
with p:
    camera.push(A)
    check("a change between runs", result.pull().array[0, 1] == 2)
    refuses("a report while it runs", RuntimeError, "over", p.report)
    camera.close()
    result.pull()
r = p.report()
check("the report", r["outcome"] == "done" and r["set"][-1] == "stages.x.a=2" and "verdict" in r, r)
check("... as text", "no input" in str(r) and r["verdict"]["text"] in str(r) and pickle.loads(pickle.dumps(r)) == r, str(r))
plan = p.plan()
check("the plan", "segment 0" in str(plan) and json.loads(plan.json()))
if shutil.which("dot"):
    check("drawings", plan._repr_svg_().lstrip().startswith(("<?xml", "<svg")) and "too short" in r.svg()
          and "too short" not in plan.svg(), r.svg())
    check("a report in a notebook", r._repr_html_().startswith("<pre>") and r._repr_html_().count("<svg") == 1, r._repr_html_())
else:
    print("SKIPPED, no Graphviz: drawings of plans")
search, os.environ["PATH"] = os.environ["PATH"], "/nowhere"
check("without Graphviz", plan._repr_svg_() is None and r._repr_html_().endswith("</pre>"), r._repr_html_())
os.environ["PATH"] = search

# == types ======================================================================
untyped = [f"{c.__name__}.{n}" for c in (getattr(gp, n) for n in gp.__all__) if isinstance(c, type)
           for n, f in vars(c).items() if n[0] != "_" and not isinstance(f, type(None))
           for f in [getattr(f, "fget", f)] if callable(f) and typing.get_type_hints(f).keys()
           < {*inspect.signature(f).parameters, "return"} - {"self"}]
check("types of all functions", not untyped, untyped)
for c, names in ((gp.Error, "messages code text file line column"), (gp.Message, "kind code text file line column notes shown"),
                 (gp.Frame, "number time_ns name meta array"), (gp.Kind, "name help field on inputs outputs options plugin")):
    check(f"types of what a {c.__name__} has", set(typing.get_type_hints(c)) >= set(names.split()), typing.get_type_hints(c))
check("types are to be read", os.path.exists(os.path.join(os.path.dirname(gp.__file__), "py.typed")))

# == threads ====================================================================
with gp.Pipeline(text=pipe("use: scale, a: 2")) as p:
    camera, result = p.inputs["camera"], p.outputs["result"]
    got = []
    thread = threading.Thread(target=lambda: got.extend(result))
    thread.start()
    counted = sum(1 for _ in range(10**5))             # the other waits without the GIL
    for a in B:
        camera.push(a)
    camera.close()
    thread.join()
check("two threads", np.array_equal([f.array for f in got], 2 * B))
with gp.Pipeline(text=pipe("use: scale, a: 2")) as p:
    camera, got = p.inputs["camera"], []
    thread = threading.Thread(target=lambda: got.extend(p.outputs["result"]))
    thread.start()
    for a in B:
        camera.push(a)
    while p.outputs["result"]._thread is None:         # it has begun to pull
        time.sleep(0.001)
thread.join()
check("a thread that pulls when the block is left", len(got) == 1000 and np.array_equal([f.array for f in got], 2 * B))

# == Ctrl-C =====================================================================
CTRL_C = """
    import gpipe, numpy, sys
    text = '''
    buffers: {picture: {dtype: f32, shape: [4]}}
    stages:
      - {name: camera, use: input, out: picture}
      - {name: one, use: scale}
      - {name: result, use: output, in: one}
      - {use: write, in: one, path: 'c%03d.npy'}
    '''
    p = gpipe.Pipeline(text=text)
    try:
        with p:
            for i in range(5):
                p.inputs["camera"].push(numpy.full(4, i, "f4"))
            print("up", flush=True)
            HOW
    except KeyboardInterrupt:
        print("interrupted", p.account()["camera"])
    """
for name, how in {"in a pull": "for f in p.outputs['result']: pass",
                  "in a push": "for i in range(10**9): p.inputs['camera'].push(numpy.zeros(4, 'f4'))",
                  "in a batch": "p.outputs['result'].pull_batch(100)",
                  "in the program": "import time; time.sleep(100)"}.items():
    for old in glob.glob("c*.npy"):
        os.remove(old)
    p = script(CTRL_C.replace("HOW", how))
    up = p.stdout.readline()
    time.sleep(0.3)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    n = len(glob.glob("c*.npy"))
    check(f"Ctrl-C {name}", out == f"interrupted {{'in': {n}, 'out': {n}, 'dropped': 0, 'failed': 0, 'cancelled': 0, 'late': 0, 'lost': 0, 'full': 0}}\n"
          and n >= 5 and not err, (up, out, err, n))

# A change goes on without the program that asked for it, and fails; the next one waits for its end, and is made.
put("waits.lua", """
stateless = true
local a
function init(stage)
  a = stage.params.a
  if a == 2 then
    io.open('blocked', 'w'):close()
    while not io.open('go') do end
    error('no')
  end
end
function process(f, x, y) y[1] = a end
""")
p = script("""
    import gpipe, numpy
    text = '''
    buffers: {picture: {dtype: f32, shape: [1]}}
    stages:
      - {name: camera, use: input, out: picture}
      - {use: lua, script: waits.lua, params: {a: 1}}
      - {name: result, use: output}
    '''
    with gpipe.Pipeline(text=text) as p:
        for a in 1, 2, 3:
            try:
                p.set({"stages.lua.params.a": a})
            except KeyboardInterrupt:
                print("interrupted")
                open("go", "w").close()
            p.inputs["camera"].push(numpy.zeros(1, "f4"))
            print(p.outputs["result"].pull().array[0])
    """)
until(lambda: os.path.exists("blocked") or p.poll() is not None)
p.send_signal(signal.SIGINT)
out, err = p.communicate(timeout=60)
check("Ctrl-C in a change", out == "1.0\ninterrupted\n1.0\n3.0\n" and not err, (out, err))

for old in glob.glob("c*.npy"):
    os.remove(old)
p = script("""
    import gpipe
    try:
        gpipe.run(text="buffers: {a: {dtype: f32, shape: [4]}}\\nstages: [{use: generate, rate: 300, out: a}, "
                       "{use: write, path: 'c%06d.npy'}]")
    except KeyboardInterrupt:
        print("interrupted")
    """)
while len(glob.glob("c*.npy")) < 5 and p.poll() is None:
    time.sleep(0.01)
p.send_signal(signal.SIGINT)
check("Ctrl-C in a run of files", p.communicate(timeout=60) == ("interrupted\n", "") and not glob.glob("*.partial*")
      and all(np.load(f).shape == (4,) for f in glob.glob("c*.npy")), p)

# A program that is killed while it holds a slot each way: files with their names are whole, and the next run is as ever.
for old in glob.glob("c*.npy"):
    os.remove(old)
for ends in "os.kill(os.getpid(), signal.SIGKILL)", "frame.end()":
    p = script("""
        import gpipe, numpy, os, signal
        text = '''
        buffers: {picture: {dtype: f32, shape: [1024]}}
        stages:
          - {name: camera, use: input, out: picture}
          - {use: write, in: picture, path: 'c%03d.npy'}
          - {use: write, in: picture, path: 'all.npy'}
          - {name: result, use: output, in: picture}
        '''
        with gpipe.Pipeline(text=text) as p:
            for i in range(10):
                p.inputs["camera"].push(numpy.full(1024, i, "f4"))
                frame = p.outputs["result"].begin()
                if i < 9:
                    frame.end()
            with p.inputs["camera"].begin() as slot:
                slot.array[:] = 10
                ENDS
        print(p.account())
        """.replace("ENDS", ends))
    out, err = p.communicate(timeout=60)
    made = sorted(glob.glob("c*.npy"))
    check(f"files after {ends}", all((np.load(f) == int(f[1:4])).all() for f in made) and os.path.exists("all.npy")
          == (p.returncode == 0) and p.returncode == (0 if "end" in ends else -signal.SIGKILL), (made, out, err))
check("... and the run after it", len(made) == 11 and np.load("all.npy").size == 11 * 1024 and "'out': 11" in out, (made, out, err))

# a stage that does not come to the end of its frame is named; what has the loop of a script end is the second Ctrl-C
put("forever.lua", "function process(f, x, y) io.open('forever', 'w'):close() while true do y[1] = x[1] end end")
p = script("""
    import gpipe, numpy, os, time
    text = '''
    buffers: {picture: {dtype: f32, shape: [4]}}
    stages: [{name: camera, use: input, out: picture}, {use: lua, script: forever.lua}, {name: result, use: output}]
    '''
    p = gpipe.Pipeline(text=text)
    print(p)
    with p:
        p.inputs["camera"].push(numpy.zeros(4, "f4"))
        while not os.path.exists("forever"):
            time.sleep(0.01)
        raise LookupError                              # which ends the block early, as Ctrl-C does
    """)
said = ""
while "has been busy with frame 0 for" not in said and (line := p.stderr.readline()):
    said += line
p.send_signal(signal.SIGINT)
out, err = p.communicate(timeout=60)
check("a stage that goes on is named", "GpipeWarning: pipeline:3:" in said and "stage 'lua' has been" in said, said)
check("... and ended", p.returncode and out == "<gpipe.Pipeline pipeline: inputs 'camera', outputs 'result'>\n", (out, err))

# who leaves by a second Ctrl-C waits for the run: a plug-in's loop may outlive it, and then the interpreter
put("hang.c", r"""
#include <gpipe/stage.h>
static bool shape(gp_shape *s) { s->out[0] = s->in[0]; return true; }
static bool run(gp_call *c, gp_frame *f, int n)
{
    for (volatile int goes = 1; goes;) ;
    return c && f && n;
}
static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "any" }, { 0 } }, out[] = { { .name = "out" }, { 0 } };
static const gp_kind kind = { GP_KIND("hang"), .help = "does not end", .in = in, .out = out, .shape = shape, .run = run };
GP_PLUGIN("hangs", "1", &kind);
""")
subprocess.run(["cc", "-shared", "-fPIC", f"-I{ROOT}/engine/include", "-o", "hang.so", "hang.c"], check=True)
p = script("""
    import gpipe, numpy
    text = '''
    stall_timeout: 1s
    buffers: {picture: {dtype: f32, shape: [4]}}
    stages: [{name: camera, use: input, out: picture}, {use: hang}, {name: result, use: output}]
    '''
    p = gpipe.Pipeline(text=text, measure=True)
    try:
        with p:
            p.inputs["camera"].push(numpy.zeros(4, "f4"))
            p.outputs["result"].pull()
    except KeyboardInterrupt:
        print(p.report()["outcome"])                   # of a run that is over
    """, env=dict(os.environ, GPIPE_PLUGINS="hang.so"))
said = ""
for n in 1, 2:                                         # in the pull, then at the end of the block
    while said.count("has been busy with frame 0 for") < n and (line := p.stderr.readline()):
        said += line
    p.send_signal(signal.SIGINT)
out, err = p.communicate(timeout=60)
check("a loop of a plug-in, and Ctrl-C", "stage 'hang' (plug-in hangs 1) has" in said and out == "stuck\n"
      and p.returncode == 0, (p.returncode, said, out, err))

# a thread that asks for the next frame when its run is over, and when another is on
asks, had, ended = threading.Semaphore(0), threading.Semaphore(0), []
q = gp.Pipeline(text=pipe())


def show():
    try:
        for frame in q.outputs["result"]:
            had.release()
            asks.acquire(timeout=60)
        ended.append("ended")
    except BaseException as e:
        ended.append(repr(e))


viewers = [threading.Thread(target=show, daemon=True) for _ in range(2)]
for viewer in viewers:
    with q:
        viewer.start()
        q.inputs["camera"].push(np.zeros((4, 6), "f4"))
        check("a thread that shows frames has one", had.acquire(timeout=60))
asks.release()
while not ended and any(v.is_alive() for v in viewers):
    time.sleep(0.001)
with q:
    q.inputs["camera"].push(np.zeros((4, 6), "f4"))
    asks.release()
    for viewer in viewers:
        viewer.join(60)
    check("a loop ends with its run", ended == ["ended", "ended"], ended)
    check("... and takes no frame of another", q.outputs["result"].pull(timeout=60).number == 0)
ones, zero = np.ones((4, 6), "f4"), np.ones((4, 6), "f4")
zero[2, 3] = 0
logs = pipe("name: logs, use: expr, expr: log(in)")
check("what is infinite is no error", np.isinf(through([ones, zero], logs)[1][2, 3]), "")
refuses("... but where it is looked for", gp.Error, "stage 'logs' made an infinite element at [2, 3] of frame 1 of 'logs'",
        lambda: through([ones, zero], logs, check_finite=True))
refuses("a report without times", RuntimeError, "measure=True", q.report)

# == what the documentation shows ===============================================
with open(os.path.join(ROOT, "engine/cli/topics/python.md")) as f:
    blocks = [b.split("```")[0] for b in f.read().split("```python\n")[1:]]
have = {}
for i, block in enumerate(blocks):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(block, have)
        check(f"block {i} of python.md", True)
    except BaseException as e:
        check(f"block {i} of python.md", False, repr(e) + block)
check("blocks of python.md", len(blocks) > 4, len(blocks))

# the notebook, cell by cell: what its last lines show
shown, have = {}, {}
with open(os.path.join(ROOT, "examples/notebook/plan.ipynb")) as f:
    cells = [c for c in json.load(f)["cells"] if c["cell_type"] == "code"]
try:
    for c in cells:
        body = ast.parse("".join(c["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(ast.Module(body, []), c["id"], "exec"), have)
            value = last and eval(compile(ast.Expression(last.value), c["id"], "eval"), have)
        shown[c["id"]] = out.getvalue() if value is None else value
except Exception as e:
    check(f"the notebook's cell {c['id']}", False, repr(e))
check("the notebook: plan, report", "segment 0" in str(shown.get("text")) and "no input" in shown["verdict"]._repr_html_()
      and shown["verdict"]["verdict"]["text"] in shown["verdict"].text, shown)
check("the notebook: figures, errors", shown["frames"] == (300, 256, 256) and shown["check"] == []
      and "no input" in shown["again"] and "  ^" in shown["wrong"], shown)
check("the notebook is stored without outputs", not any(c["outputs"] or c["execution_count"] for c in cells))
total("python")
