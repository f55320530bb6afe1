#!/usr/bin/env python3
"""plugins.py GPIPE: the plug-ins of examples/plugins, beside the same in Python: rings with ring.py and NumPy."""
import glob, os, re, signal, subprocess, sys
from kit import check, env, gpipe, path, put, spawn, total, until
try:
    import numpy as np
except ImportError as e:
    print(f"plugins: SKIPPED, no {e.name}: what plug-ins make")
    sys.exit()

tree = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
plugins = os.path.join(tree, "examples", "plugins")
sys.path.insert(0, os.path.join(plugins, "shm_ring"))
from ring import Reader, Writer, TYPES

os.makedirs(path("so"))
env["GPIPE_PLUGINS"] = path("so")
ran_files = set()                      # of examples/plugins


def make(what, *more):
    p = subprocess.run(["make", "-C", plugins, what, "O=" + path("so"), f"GPIPE_CFLAGS=-I{tree}/engine/include",
                        "CFLAGS=-O1 -g -Werror -Wpedantic", *more], capture_output=True, text=True,
                       env={k: v for k, v in env.items() if k != "MAKEFLAGS"})
    check("make " + what, p.returncode == 0, p.stderr)


def run(text, *more, verb="run", **env_more):
    """gpipe with a pipeline, whose text or file this is: (exit code, what it says)."""
    name = text if text.endswith(".yaml") else put("p.yaml", text)
    ran_files.add(os.path.relpath(name, plugins))
    p = subprocess.run([gpipe, verb, *([] if verb == "check" else ["--device", "cpu"]), name, *more], timeout=120,
                       capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**env, **env_more})
    return p.returncode, p.stderr


def runs(name, *args, **more):
    code, said = run(*args, **more)
    check(name, code == 0 and "warning" not in said, said)
    return said


def refused(name, text, says, code=None, **more):
    got, said = run(text, **more)
    check(name, (got == code if code else got) and says in said, (got, said))


def same(name, got, want):
    check(name, got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes(), (got, want))


def examples(folder):
    return sorted(os.path.relpath(f, plugins) for f in glob.glob(os.path.join(plugins, folder, "*.yaml")))


random = np.random.default_rng(5)


def noise(dtype, *shape):
    """Of any bits, but no NaN, whose bits may change on the way."""
    a = np.frombuffer(random.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape).copy()
    a[np.isnan(a)] = 0
    return a


# ---- shm_ring ----------------------------------------------------------------

rings = []


def ring(name):
    rings.append(f"gpipe-test-{os.getpid()}-{name}")
    return rings[-1]


def next_of(name):
    try:
        return int(Reader(name).header["next"])
    except (OSError, ValueError):
        return 0


ENDLESS = "buffers: {{x: {{dtype: u32, shape: [512, 512]}}}}\nstages:\n  - {{use: generate, frames: {}, out: x}}\n" \
          "  - {{use: shm_write, ring: {}, slots: {}}}\n"
READ = "metadata: [sequence]\nbuffers: {{x: {{dtype: {}, shape: {}}}}}\nstages:\n" \
       "  - {{use: shm_read, ring: {}, frames: {}, out: x}}\n  - {{use: write, path: {}}}\n"


def whole(frame):
    """Of a ramp: is all of it of one frame?"""
    flat = frame.reshape(-1)
    return flat[0] % flat.size == 0 and (flat - flat[0] == np.arange(flat.size, dtype=flat.dtype)).all()


def run_aside(text, name):
    return spawn("run", "--device", "cpu", put(name + ".yaml", text), stderr=subprocess.PIPE)


def test_ring():
    make("shm_ring")
    for dtype in TYPES:                # Python -> gpipe -> Python, a partial frame too
        a, b, frames = ring("a" + dtype), ring("b" + dtype), [noise(TYPES[dtype], r, 3, 5) for r in (4, 4, 1, 4)]
        w, times = Writer(a, dtype, (4, 3, 5)), []
        for f in frames:
            w.write(f)
            times.append(int(w.slot(len(times))[0]["time_ns"]))
        w.end()
        runs("ring: " + dtype, f"stages: [{{use: shm_read, ring: {a}}}, {{use: shm_write, ring: {b}, slots: 4}}]")
        r = Reader(b)
        for k, got in enumerate(r):
            same(f"ring: {dtype}, frame {k}", got, frames[k])
            check(f"ring: {dtype}, time {k}", r.time_ns == times[k], r.time_ns)
        check(f"ring: {dtype}, frames", r.n == 4 and not r.lost, r.n)

    n = ring("old")                    # a reader begins with the oldest frame that there is
    w = Writer(n, "i32", (2,))
    for k in range(20):
        w.write(np.full(2, k, "i4"))
    w.end()
    runs("ring: old", READ.format("i32", [2], n, 0, path("old.npy")))
    same("ring: the oldest", np.load(path("old.npy"))[::2], np.arange(12, 20, dtype="i4"))

    n = ring("slow")                   # it stands still while frames come, and is told what it lost
    w = Writer(n, "i32", (2,))
    for k in range(3):
        w.write(np.full(2, k, "i4"))
    p = run_aside(READ.format("i32", [2], n, 0, path("slow/%05d.npy")), "slow")
    check("ring: slow: begins", until(lambda: os.path.exists(path("slow/00002.npy"))))
    p.send_signal(signal.SIGSTOP)
    until(lambda: open(f"/proc/{p.pid}/stat").read().rpartition(")")[2].split()[0] == "T")
    for k in range(3, 23):
        w.write(np.full(2, k, "i4"))
    w.end()
    p.send_signal(signal.SIGCONT)
    said = p.communicate(timeout=60)[1]
    check("ring: slow: lost", not p.returncode and "16 frames of /dev" in said and "7 out, 16 dropped" in said, said)
    got = [int(np.load(f)[0]) for f in sorted(glob.glob(path("slow/*.npy")))]
    check("ring: slow: got", got == [0, 1, 2, *range(19, 23)], got)

    n = ring("torn")                   # a writer dies with half a frame; the reader waits, and another one goes on
    child = os.fork()
    if not child:
        w = Writer(n, "u32", (512, 512))
        for k in range(2):
            w.write(np.arange(k << 18, k + 1 << 18, dtype="u4").reshape(512, 512))
        head, data = w.slot(2)
        head["seq"], data[:256] = 5, 7
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    p = run_aside(READ.format("u32", [512, 512], n, 0, path("torn/%05d.npy")), "torn")
    check("ring: torn: begins", until(lambda: os.path.exists(path("torn/00001.npy"))))
    runs("ring: torn: goes on", ENDLESS.format(3, n, 8))
    said = p.communicate(timeout=60)[1]
    got = [np.load(f) for f in sorted(glob.glob(path("torn/*.npy")))]
    got = [whole(f) and f.flat[0] >> 18 for f in got]
    check("ring: torn: whole", p.returncode == 0 and got == [0, 1, 0, 1, 2], said)

    n = ring("killed")                 # gpipe writes as fast as it can, and is killed
    p = run_aside(ENDLESS.format(0, n, 8), "killed")
    check("ring: killed: begins", until(lambda: next_of(n) > 9))
    r, torn, before, q = Reader(n), 0, 0, None
    for k, f in enumerate(r):
        torn += not whole(f)
        if k == 5:
            p.kill(), p.wait()
            before = next_of(n)
            q = run_aside(ENDLESS.format(50, n, 8), "again")
    check("ring: killed: whole", not torn and r.n == before + 50 and q.wait() == 0, (torn, r.n, before))

    n = ring("read")                   # readers come, are killed, and come again
    p = run_aside(ENDLESS.format(0, n, 4), "read")
    for k in range(2):
        q = run_aside(READ.format("u32", [512, 512], n, 0, path(f"read{k}/%05d.npy")), "reader")
        check("ring: reader: begins", until(lambda: os.path.exists(path(f"read{k}/00003.npy"))))
        q.kill(), q.wait()
        at = next_of(n)
        check("ring: reader: does not stop the writer", until(lambda: next_of(n) > at + 9))
    code, said = run(READ.format("u32", [512, 512], n, 6, path("last/%05d.npy")))
    got = [np.load(f) for f in sorted(glob.glob(path("last/*.npy")))]
    check("ring: reader: again", code == 0 and len(got) == 6 and all(map(whole, got)), said)
    refused("ring: two writers", ENDLESS.format(1, n, 4), "another stage or process writes /dev/shm/" + n, 1)
    p.send_signal(signal.SIGINT)
    check("ring: stopped", p.wait(60) == 130 and Reader(n).header["ended"] == 1, p.returncode)
    refused("ring: other slots", ENDLESS.format(1, n, 5), "is there, and no ring of 5 such frames", 1)
    refused("ring: other frames", READ.format("u8", [4], n, 1, path("x.npy")), "is no ring, or one of other frames", 1)

    n = ring("made")                   # one that was being made, and one that is removed while a reader waits
    with open("/dev/shm/" + n, "wb") as f:
        f.write(bytes(300))
    p = run_aside(READ.format("u32", [512, 512], n, 4, path("made/%05d.npy")), "made")
    runs("ring: begun", ENDLESS.format(2, n, 4))
    check("ring: begun: ends", p.wait(60) == 0 and len(os.listdir(path("made"))) == 2, p.returncode)
    n = ring("gone")
    w = Writer(n, "i32", (1,))
    w.write(np.zeros(1, "i4"))
    p = run_aside(READ.format("i32", [1], n, 2, path("gone/%05d.npy")), "gone")
    check("ring: gone: begins", until(lambda: os.path.exists(path("gone/00000.npy"))))
    os.unlink("/dev/shm/" + n)
    w = Writer(n, "i32", (1,))
    w.write(np.ones(1, "i4"))
    check("ring: gone: goes on", p.wait(60) == 0 and np.load(path("gone/00001.npy"))[0] == 1, p.returncode)

    n = ring("none")
    alone = f"stages: [{{use: shm_read, ring: {n}}}, {{use: discard}}]"
    refused("ring: none", alone, f"there is no ring /dev/shm/{n}: start what writes it first, or declare", 3)
    refused("ring: a folder", "stages: [{use: shm_read, ring: a/b}, {use: discard}]", "'a/b' is not the name of", 3)
    with open("/dev/shm/" + n, "wb") as f:
        f.write(b"something else" * 99)
    refused("ring: no ring", ENDLESS.format(1, n, 4), "is there, and no ring of 4 such frames", 1)
    refused("ring: no ring, read", READ.format("i32", [1], n, 2, path("x.npy")), "is no ring, or one of other", 1)
    refused("ring: no ring, alone", alone, "there is no ring", 3)

    n = ring("example")
    p = spawn("run", "--device", "cpu", plugins + "/shm_ring/receive.yaml", "--set", "vars.frames=6", "--set",
              "vars.ring=" + n, "--set", "vars.out=" + path("example"), stderr=subprocess.PIPE)
    ran_files.add("shm_ring/receive.yaml")
    runs("ring: send.yaml", plugins + "/shm_ring/send.yaml", "--set", "vars.ring=" + n, "--set", "vars.frames=8",
         "--set", "vars.rate=0")
    check("ring: receive.yaml", p.wait(60) == 0 and len(os.listdir(path("example"))) == 6, p.stderr.read())


# ------------------------------------------------------------------------------

try:
    for test in [test_ring]:
        test()
finally:
    for n in rings:
        if os.path.exists("/dev/shm/" + n):
            os.unlink("/dev/shm/" + n)
for f in examples("*"):
    code, said = run(os.path.join(plugins, f), verb="check")
    check("check " + f, code == 0, said)
    check("run " + f, f in ran_files, "no test runs it")
total("plugins")
