#!/usr/bin/env python3
"""plugins.py GPIPE: the plug-ins of examples/plugins, beside the same in Python: rings with ring.py and NumPy,
HDF5 with h5py, a camera that v4l2_fake.c plays, a filter."""
import glob, os, resource, shutil, signal, subprocess, sys, threading, time
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
env.update(GPIPE_PLUGINS=path("so"), XDG_DATA_HOME=path("data"))
ran_files = set()                      # of examples/plugins


def make(what, *more):
    p = subprocess.run(["make", "-C", plugins, what, "O=" + path("so"), f"GPIPE_CFLAGS=-I{tree}/engine/include",
                        "CFLAGS=-O1 -g -Werror -Wpedantic", *more], capture_output=True, text=True,
                       env={k: v for k, v in env.items() if k != "MAKEFLAGS"})
    check("make " + what, p.returncode == 0, p.stderr)


def run(text, *more, verb="run", device="cpu", limit=resource.RLIM_INFINITY, **env_more):
    """gpipe with a pipeline, whose text or file this is: (exit code, what it says)."""
    name = text if text.endswith(".yaml") else put("p.yaml", text)
    ran_files.add(os.path.relpath(name, plugins))
    p = subprocess.run([gpipe, verb, "--device", device, name, *more], timeout=120, capture_output=True, text=True,
                       stdin=subprocess.DEVNULL, env={**env, **env_more},
                       restore_signals=False,          # SIGXFSZ is ignored: the limit is as a full disk
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)))
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


ENDLESS = "buffers: {{x: {{dtype: u32, shape: [256, 256]}}}}\nstages:\n  - {{use: generate, frames: {}, out: x}}\n" \
          "  - {{use: shm_write, ring: {}, slots: {}}}\n"
READ = "metadata: [sequence]\nbuffers: {{x: {{dtype: {}, shape: {}}}}}\nstages:\n" \
       "  - {{use: shm_read, ring: {}, frames: {}, out: x}}\n  - {{use: write, path: {}}}\n"


def whole(frame):
    """Of a ramp: is all of it of one frame?"""
    flat = frame.reshape(-1)
    return flat[0] % flat.size == 0 and (flat - flat[0] == np.arange(flat.size, dtype=flat.dtype)).all()


def run_aside(text, name, **env_more):
    return spawn("run", "--device", "cpu", put(name + ".yaml", text), stderr=subprocess.PIPE, env={**env, **env_more})


def must_end_well(p, name):
    """Of a writer: who reads its ring waits for it, however it ended."""
    said = p.communicate(timeout=600)[1]
    if p.returncode:
        print(f"FAILED: {name}: {p.returncode}, {said}", flush=True)
        os._exit(1)


def can_be_set(p, name):
    """A run whose source waits."""
    q = spawn("set", str(p.pid), "depth=5", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = q.communicate(timeout=60)[0]
    check(name + ": settings change while it waits", q.returncode == 0 and "pause" in said, said)


def stop(p):
    p.send_signal(signal.SIGSTOP)
    until(lambda: open(f"/proc/{p.pid}/stat").read().rpartition(")")[2].split()[0] == "T")


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
    can_be_set(p, "ring: slow")
    stop(p)
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
        w = Writer(n, "u32", (256, 256))
        for k in range(2):
            w.write(np.arange(k << 16, k + 1 << 16, dtype="u4").reshape(256, 256))
        head, data = w.slot(2)
        head["seq"], data[:128] = 5, 7
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    p = run_aside(READ.format("u32", [256, 256], n, 0, path("torn/%05d.npy")), "torn")
    check("ring: torn: begins", until(lambda: os.path.exists(path("torn/00001.npy"))))
    runs("ring: torn: goes on", ENDLESS.format(3, n, 8))
    said = p.communicate(timeout=60)[1]
    got = [np.load(f) for f in sorted(glob.glob(path("torn/*.npy")))]
    got = [whole(f) and f.flat[0] >> 16 for f in got]
    check("ring: torn: whole", p.returncode == 0 and got == [0, 1, 0, 1, 2], said)

    n = ring("stopped")                # wherever a writer stands still, it is seen which slots are whole
    np.save(path("five.npy"), np.repeat(np.arange(5, dtype="u4"), 1 << 18))
    p = run_aside(f"buffers: {{read: {{shape: [{1 << 18}]}}}}\nstages:\n  - {{use: read, path: {path('five.npy')}, "
                  f"loop: true, frames: 0}}\n  - {{use: shm_write, ring: {n}, slots: 4}}\n", "stopped")
    check("ring: stopped: begins", until(lambda: next_of(n) > 9))
    r, wrong = Reader(n), []
    for _ in range(80):
        stop(p)
        for k in range(4):
            head, data = r.slot(k)
            seq = int(head["seq"])
            if not seq & 1 and not (data == (seq // 2 - 1) % 5).all():
                wrong.append(seq)
        at = next_of(n)
        p.send_signal(signal.SIGCONT)
        until(lambda: next_of(n) > at)
    check("ring: stopped: whole slots", not wrong, wrong)
    p.kill()

    n = ring("under")                  # frames change under a reader that stands still, also while it copies
    w = Writer(n, "u32", (1 << 21,), 2)
    p = run_aside(f"stages:\n  - {{use: shm_read, ring: {n}, out: x}}\n" + "".join(
        f"  - {{name: {op}, use: reduce, op: {op}, in: x}}\n  - {{use: write, in: {op}, path: {path(op)}.npy}}\n"
        for op in ("min", "max")), "under")
    for k in range(40):
        w.write(np.full(1 << 21, 3 * k, "u4"))
        time.sleep(random.random() * 0.006)
        stop(p)
        w.write(np.full(1 << 21, 3 * k + 1, "u4"))
        w.write(np.full(1 << 21, 3 * k + 2, "u4"))
        p.send_signal(signal.SIGCONT)
    w.end()
    said = p.communicate(timeout=60)[1]
    least, most = np.load(path("min.npy")), np.load(path("max.npy"))
    check("ring: under: whole", p.returncode == 0 and (least == most).all() and (np.diff(most) > 0).all(), (said, most))

    n = ring("killed")                 # gpipe writes as fast as it can, and is killed
    p = run_aside(ENDLESS.format(0, n, 32), "killed")
    check("ring: killed: begins", until(lambda: next_of(n) > 9))
    r, torn, before, q = Reader(n), 0, 0, None
    for k, f in enumerate(r):
        torn += not whole(f)
        if k == 5:
            p.kill(), p.wait()
            before = next_of(n)
            q = run_aside(ENDLESS.format(50, n, 32), "again")
            threading.Thread(target=must_end_well, args=(q, "ring: killed: again"), daemon=True).start()
    check("ring: killed: whole", not torn and r.n == before + 50 and q.wait(60) == 0, (torn, r.n, before))

    n = ring("read")                   # readers come, are killed, and come again
    p = run_aside(ENDLESS.format(0, n, 16), "read")
    for k in range(2):
        q = run_aside(READ.format("u32", [256, 256], n, 0, path(f"read{k}/%05d.npy")), "reader")
        check("ring: reader: begins", until(lambda: os.path.exists(path(f"read{k}/00003.npy"))))
        q.kill(), q.wait()
        at = next_of(n)
        check("ring: reader: does not stop the writer", until(lambda: next_of(n) > at + 9))
    code, said = run(READ.format("u32", [256, 256], n, 6, path("last/%05d.npy")))
    got = [np.load(f) for f in sorted(glob.glob(path("last/*.npy")))]
    check("ring: reader: again", code == 0 and len(got) == 6 and all(map(whole, got)), said)
    refused("ring: two writers", ENDLESS.format(1, n, 16), "another stage or process writes /dev/shm/" + n, 1)
    p.send_signal(signal.SIGINT)
    check("ring: stopped", p.wait(60) == 130 and Reader(n).header["ended"] == 1, p.returncode)
    refused("ring: other slots", ENDLESS.format(1, n, 5), "is there, and no ring of 5 such frames", 1)
    refused("ring: other frames", READ.format("u8", [4], n, 1, path("x.npy")), "is no ring, or one of other frames", 1)

    n = ring("made")                   # one that was being made, and one that is removed while a reader waits
    with open("/dev/shm/" + n, "wb") as f:
        f.write(bytes(256 + 4 * (256 + (1 << 18))))
    p = run_aside(READ.format("u32", [256, 256], n, 4, path("made/%05d.npy")), "made")
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
    with open("/dev/shm/" + n, "wb") as f:
        f.write(bytes(300))            # somebody's
    refused("ring: zeros", ENDLESS.format(1, n, 4), "is there, and no ring of 4 such frames", 1)
    check("ring: zeros: stay", os.path.getsize("/dev/shm/" + n) == 300, "")

    n = ring("example")
    p = spawn("run", "--device", "cpu", plugins + "/shm_ring/receive.yaml", "--set", "vars.frames=6", "--set",
              "vars.ring=" + n, "--set", "vars.out=" + path("example"), stderr=subprocess.PIPE)
    ran_files.add("shm_ring/receive.yaml")
    runs("ring: send.yaml", plugins + "/shm_ring/send.yaml", "--set", "vars.ring=" + n, "--set", "vars.frames=8",
         "--set", "vars.rate=0")
    check("ring: receive.yaml", p.wait(60) == 0 and len(os.listdir(path("example"))) == 6, p.stderr.read())


# ---- hdf5 --------------------------------------------------------------------

READ_SET = "stages:\n  - {{use: hdf5_read, path: {}, dataset: {}}}\n  - {{use: write, path: {}}}\n"
COPY_SET = "stages:\n  - {{use: hdf5_read, path: {}, dataset: {}{}}}\n" \
           "  - {{use: hdf5_write, path: {}, dataset: {}{}}}\n"
WRITE_SET = "stages:\n  - {{use: read, path: {}}}\n  - {{use: hdf5_write, path: {}, dataset: {}}}\n"


def test_hdf5():
    if subprocess.run(["pkg-config", "--exists", "hdf5"]).returncode:
        ran_files.update(examples("hdf5"))
        return print("plugins: SKIPPED, no libhdf5-dev: whether HDF5 files are read and written")
    make("hdf5")
    try:
        import h5py
    except ImportError:
        ran_files.update(examples("hdf5"))
        return print("plugins: SKIPPED, no h5py: whether HDF5 files are read and written")
    a, b = path("a.h5"), path("b.h5")
    made = {t: noise(t, 5, 3, 4) for t in [*TYPES.values(), ">i2", ">u8", ">f2", ">f4", ">f8", ">c8"]}
    made.update(line=noise("f4", 7), small=noise("u1", 6, 2), none=noise("f4", 0, 3), deep=noise("i4", 2, *[1] * 7, 3))
    with h5py.File(a, "w") as f:
        for name, x in made.items():
            f["in/" + name] = x
        f.create_dataset("packed", data=made["f4"], chunks=(2, 3, 2), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("grows", data=made["i4"], maxshape=(None, 3, 4))
        f.create_dataset("fixed", data=made["i4"], chunks=(1, 3, 4))
        f.create_dataset("text", data=[b"some", b"text"])
        f.create_dataset("truths", data=np.ones((2, 2), bool))
        f.create_dataset("one", data=1.0)
        f.create_dataset("nothing", data=np.ones((2, 0)))
        f.create_dataset("wide", data=np.ones([1] * 10))
        f.create_dataset("pairs", data=np.zeros(3, [("a", "f4"), ("b", "f4")]))
    for name, x in made.items():       # h5py -> gpipe -> h5py
        runs(f"hdf5: {name}", COPY_SET.format(a, "in/" + name, "", b, f"'out/{name}'", ""))
        with h5py.File(b) as f:
            d = f["out/" + name]
            same(f"hdf5: {name}", d[:], x.astype(x.dtype.newbyteorder("=")).reshape(len(x), *(x.shape[1:] or (1,))))
            check(f"hdf5: {name} grows", d.maxshape[0] is None and d.compression is None, d.maxshape)
    runs("hdf5: packed", READ_SET.format(a, "packed", path("packed.npy")))
    same("hdf5: packed", np.load(path("packed.npy")), made["f4"].reshape(15, 4))
    runs("hdf5: several workers", COPY_SET.format(a, "packed", ", workers: 3, frames: 2", b, "few", ", deflate: 9"))
    with h5py.File(b) as f:
        same("hdf5: two frames", f["few"][:], made["f4"][:2])
        check("hdf5: deflate", f["few"].compression == "gzip" and f["few"].compression_opts == 9, f["few"].compression)
    np.save(path("in.npy"), made["i4"].reshape(15, 4))
    framed = "buffers: {{read: {{shape: [3, 4]}}}}\n" + WRITE_SET
    for k in range(2):                 # to what h5py made, and to what gpipe made
        runs("hdf5: appends", framed.format(path("in.npy"), a, "grows"))
        runs("hdf5: appends, made", framed.format(path("in.npy"), b, "grows"))
    for name, times in (a, 3), (b, 2):
        with h5py.File(name) as f:
            same("hdf5: appended", f["grows"][:], np.concatenate([made["i4"]] * times))
    check("hdf5: others stay", "packed" in h5py.File(a) and "out/line" in h5py.File(b), "")

    with open(a, "rb") as f:
        data = bytearray(f.read())
    with h5py.File(a) as f:
        at = f["packed"].id.get_chunk_info(4).byte_offset      # of frames 2 and 3
    put("text.h5", "no such file\n" * 99)
    for name, what in ("cut.h5", data[:len(data) // 2]), ("torn.h5", data[:at] + b"1234" + data[at + 4:]):
        with open(path(name), "wb") as f:
            f.write(what)
    npy = path("x.npy")
    for name, file, dataset, says, code in [
            ("no file", path("none.h5"), "in", f"'{path('none.h5')}' cannot be read: No such file or directory", 3),
            ("a folder", path("."), "in", f"'{path('.')}' is no regular file", 3),
            ("no dataset", a, "in/f5", f"dataset 'in/f5' of '{a}': object 'f5' doesn't exist", 3),
            ("no group", a, "on/f4", f"dataset 'on/f4' of '{a}'", 3), ("a group", a, "in", f"dataset 'in' of '{a}'", 3),
            ("no HDF5", path("text.h5"), "in", f"dataset 'in' of '{path('text.h5')}': file signature not found", 3),
            ("cut off", path("cut.h5"), "packed", f"dataset 'packed' of '{path('cut.h5')}': truncated file", 3),
            ("torn", path("torn.h5"), "packed", "': frame 4: data error detected by Fletcher32", 1),
            ("text", a, "text", "it has strings of ", 3),
            ("truths", a, "truths", "it has names of an enumeration of 1 bytes", 3),
            ("pairs", a, "pairs", "it has compounds of 8 bytes", 3), ("one", a, "one", "it has 0 axes, and needs 1", 3),
            ("wide", a, "wide", "it has 10 axes", 3), ("nothing", a, "nothing", "its axis 1 has no elements", 3)]:
        refused("hdf5: " + name, READ_SET.format(file, dataset, npy), says, code)
    before = h5py.File(b)["few"][:]
    for name, file, dataset, says in [
            ("other frames", b, "few", "it has frames f32 [3, 4], not i32 [3, 4]"),
            ("fixed", a, "fixed", "its axis 0 cannot grow without end"), ("a group", a, "in", f"'in' of '{a}'"),
            ("text", path("text.h5"), "x", "file signature not found"), ("no folder", path("no/x.h5"), "x", ""),
            ("a partial frame", b, "whole", "frame 3 has 3 rows, and a dataset takes whole frames alone")]:
        size = "[4, 4]" if dataset == "whole" else "[3, 4]"
        refused("hdf5: write: " + name, framed.replace("[3, 4]", size).format(path("in.npy"), file, dataset), says, 1)
    with h5py.File(b) as f:
        same("hdf5: refused frames", f["few"][:], before)
        same("hdf5: frames before", f["whole"][:], made["i4"].reshape(15, 4)[:12].reshape(3, 4, 4))
    refused("hdf5: both", COPY_SET.format(a, "packed", "", a, "x", ""), "reads: give it a folder or a name", 3)
    full = "buffers: {{x: {{dtype: f32, shape: [9999]}}}}\nstages:\n  - {{use: generate, frames: 400, out: x}}\n" \
           "  - {{use: hdf5_write, path: {}, dataset: x}}\n"
    refused("hdf5: a full disk", full.format(path("full.h5")), "dataset 'x' of '" + path("full.h5"), 1, limit=1 << 20)

    runs("hdf5: pack.yaml", plugins + "/hdf5/pack.yaml", "--set", "vars.out=" + path("."))
    runs("hdf5: unpack.yaml", plugins + "/hdf5/unpack.yaml", "--set", "vars.out=" + path("video"), "--set",
         "stages.hdf5_read.path=" + path("video.h5"))
    check("hdf5: unpack.yaml", len(os.listdir(path("video"))) == 16, os.listdir(path("video")))


# ---- v4l2 --------------------------------------------------------------------

CAMERA = "metadata: [sequence, time]\nstages:\n  - {{use: v4l2, camera: /dev/fake/{}, format: {}, width: {}, " \
         "height: 8, frames: {}}}\n  - {{use: write, path: {}/%05d.npz}}\n"


def test_camera():
    make("v4l2")
    fake = path("v4l2_fake.so")
    p = subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
                        "-o", fake, os.path.join(tree, "tests", "v4l2_fake.c")], capture_output=True, text=True)
    check("camera: the fake", p.returncode == 0, p.stderr)
    shape_of = {"YUYV": (8, 12, 2), "GREY": (8, 12), "RGB24": (8, 12, 3)}
    for how, form, said, sequence in [
            ("plain", "YUYV", "9 out, 0 dropped", range(9)), ("plain", "GREY", "9 out, 0 dropped", range(9)),
            ("plain", "RGB24", "9 out, 0 dropped", range(9)), ("gaps", "YUYV", "9 out, 0 dropped", range(9)),
            ("gaps", "GREY", "9 out, 0 dropped", range(9)), ("early", "GREY", "9 out, 0 dropped", range(9)),
            ("timeless", "GREY", "9 out, 0 dropped", range(9)),
            ("damaged", "GREY", "8 out, 1 dropped", [0, *range(2, 9)]),
            ("cut", "GREY", "8 out, 1 dropped", [0, *range(2, 9)]),
            ("lost", "GREY", "9 out, 3 dropped", [0, 1, *range(5, 12)])]:
        to = path(f"camera-{how}-{form}")
        got_said = runs(f"camera: {how}, {form}", CAMERA.format(how, form, 12, 9, to), LD_PRELOAD=fake)
        check(f"camera: {how}: count", said in got_said, got_said)
        got = [np.load(f) for f in sorted(glob.glob(to + "/*.npz"))]
        check(f"camera: {how}: sequence", [int(f["sequence"]) for f in got] == list(sequence), [list(f) for f in got])
        for f in got:
            n = int(f["sequence"]) - (3 if how == "lost" and f["sequence"] > 1 else 0)
            data = next(f[x] for x in f if x not in ("sequence", "time"))
            h, w = 8, int(np.prod(shape_of[form][1:]))
            want = (n + 3 * np.arange(h)[:, None] + np.arange(w)).astype("u1").reshape(shape_of[form])
            same(f"camera: {how}, {form}, frame {n}", data, want)
            later = float(f["time"] - got[0]["time"])
            check(f"camera: {how}, {form}, time {n}", how == "timeless" or abs(later - 0.04 * n) < 1e-6, later)
    for how, form, width, says, code in [
            ("output", "YUYV", 12, "'/dev/fake/output' (a fake) does not capture video, or not by streaming", 1),
            ("small", "YUYV", 12, "'/dev/fake/small' has no YUYV of 12 x 8, but YUYV of 320 x 240: set 'format'", 1),
            ("jpeg", "GREY", 12, "'/dev/fake/jpeg' has no GREY of 12 x 8, but MJPG of 12 x 8", 1),
            ("refuses", "GREY", 12, "'/dev/fake/refuses' refuses the format: Invalid argument", 1),
            ("busy", "GREY", 12, "'/dev/fake/busy' has no buffers to map: Device or resource busy", 1),
            ("tiny", "GREY", 16, "'/dev/fake/tiny' has buffers that are smaller than a frame", 1),
            ("unplugged", "GREY", 12, "'/dev/fake/unplugged' gives no more frames: No such device", 1),
            ("../null", "GREY", 12, "'/dev/null' is no V4L2 device: Inappropriate ioctl", 1),
            ("../video-none", "GREY", 12, "'/dev/video-none' cannot be opened: No such file", 1),
            ("odd", "YUYV", 13, "YUYV has pairs of pixels: 'width' must be even, not 13", 3)]:
        text = CAMERA.format(how, form, width, 9, path("refused")).replace("/dev/fake/../", "/dev/")
        refused("camera: " + how, text, says, code, LD_PRELOAD=fake)
    check("camera: unplugged: frames before", len(os.listdir(path("refused"))) == 4, "")
    p = run_aside(CAMERA.format("dark", "GREY", 12, 0, path("dark")), "dark", LD_PRELOAD=fake)
    check("camera: dark: begins", until(lambda: os.path.exists(path("dark/00003.npz"))))
    can_be_set(p, "camera: dark")
    p.send_signal(signal.SIGINT)       # while it waits
    check("camera: dark: ends", p.wait(60) == 130 and len(os.listdir(path("dark"))) == 4, p.returncode)
    runs("camera: v4l2.yaml", plugins + "/v4l2/v4l2.yaml", "--set", "vars.camera=/dev/fake/plain", "--set",
         "vars.frames=5", "--set", "vars.out=" + path("camera"), LD_PRELOAD=fake)
    y4m = np.frombuffer(open(path("camera/camera.y4m"), "rb").read(), "u1")
    check("camera: v4l2.yaml: a video", y4m.tobytes().count(b"FRAME") == 5 and y4m.size > 5 * 640 * 480, y4m.size)


# ---- bilateral ---------------------------------------------------------------

FILTER = "buffers: {{read: {{shape: [37, 53]}}}}\nstages:\n  - {{use: read, path: {}}}\n" \
         "  - {{use: bilateral, radius: 4, sigma: 3, range: 20}}\n  - {{use: write, path: {}}}\n"


def filtered(image, radius, sigma, differs):
    high, wide = image.shape
    around, total_of, weights = np.pad(image.astype("f8"), radius, constant_values=np.nan), 0, 0
    for dy in range(2 * radius + 1):
        for dx in range(2 * radius + 1):
            v = around[dy:dy + high, dx:dx + wide]
            far = (dy - radius) ** 2 + (dx - radius) ** 2
            w = np.exp(-far / (2 * sigma ** 2) - (v - image) ** 2 / (2 * differs ** 2))
            total_of, weights = total_of + np.nan_to_num(w * v), weights + np.nan_to_num(w)
    return total_of / weights


def test_filter():
    if not shutil.which("nvcc"):
        print("plugins: SKIPPED, no nvcc: whether it compiles bilateral.cu")
    make("bilateral", "NVCCFLAGS=-O1 -arch=all-major -Xcompiler -Wall,-Wextra,-Werror,-Wno-missing-field-initializers")
    make("bilateral", "NVCC=", "O=" + path("host"))
    source = path("photos.npy")
    photos = random.normal(100, 30, (5 * 37 + 11, 53)).astype("f4")
    np.save(source, photos)
    want = np.concatenate([filtered(photos[k:k + 37], 4, 3, 20) for k in range(0, len(photos), 37)])
    on_gpu = run("stages: [{use: generate, frames: 1, out: x}, {use: scale}, {use: discard}]\n"
                 "buffers: {x: {dtype: f32, shape: [4]}}", device="cuda")[0] == 0
    if not on_gpu:
        print("plugins: SKIPPED, no GPU: whether bilateral.cu computes the same there")
    where = [("cpu", "so"), ("cpu", "host")] + [("cuda", "so")] * on_gpu
    for k, (device, folder, more) in enumerate((*w, m) for w in where for m in ("", "batch: 4\n", "launch: stream\n")):
        name, made = f"filter: {device}, {folder}, {more!r}", path(f"smooth{k}.npy")
        runs(name, more + FILTER.format(source, made), device=device, GPIPE_PLUGINS=path(folder))
        got = np.load(made)
        check(name + ": like NumPy", got.shape == want.shape and np.abs(got - want).max() < 1e-3, got.shape)
    for name, text, says, more in [
            ("no nvcc", FILTER, "built without nvcc", dict(verb="plan", device="cuda", GPIPE_PLUGINS=path("host"))),
            ("no image", "buffers: {{x: {{dtype: f32, shape: [3, 5, 9]}}}}\nstages: [{{use: generate, out: x}}, "
             "{{use: bilateral, range: 1}}, {{use: discard}}]", "it takes images (H, W), not frames of 3 axes", {}),
            ("no range", FILTER.replace(", range: 20", ""), "range", {}),
            ("no radius", FILTER.replace("radius: 4", "radius: 0"), "'radius' of stage 'bilateral' must be 1", {})]:
        refused("filter: " + name, text.format(source, path("x.npy")), says, 3, **more)
    runs("filter: bilateral.yaml", plugins + "/bilateral/bilateral.yaml", "--set", "vars.out=" + path("filter"))
    check("filter: bilateral.yaml", os.listdir(path("filter")) == ["smooth.png"], "")


# ------------------------------------------------------------------------------

try:
    for test in [test_ring, test_hdf5, test_camera, test_filter]:
        test()
finally:
    for n in rings:
        if os.path.exists("/dev/shm/" + n):
            os.unlink("/dev/shm/" + n)
for f in examples("*"):
    check("examples/plugins/" + f, f in ran_files, "no test runs it")
total("plugins")
