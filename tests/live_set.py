"""live_set.py GPIPE: settings of runs that wait for somebody outside are changed meanwhile, and no byte is lost or doubled.

Nothing here relies on time: what is waited for are files, messages and ends."""
import fcntl, io, json, os, signal, socket, struct, subprocess, threading, time
import zmq
import numpy as np
from kit import bytes_of, check, env, free_port, gpipe, path, put, spawn, total, until

os.chdir(path("."))
ROWS, N, PIPE = 4, 4096, 4096
BYTES = 4 * ROWS * N
ctx = zmq.Context()


def data(*numbers):
    return b"".join((np.arange(k * ROWS * N, (k + 1) * ROWS * N) * 2654435761).astype(np.uint32).tobytes() for k in numbers)


class Run:
    def __init__(self, stages, buffers="", **more):
        for name in ("all.raw", "all.raw.partial", "got"):
            if os.path.exists(name):
                os.remove(name)
        put("p.yaml", f"depth: 3\nbuffers: {{x: {{dtype: u32, shape: [{ROWS}, {N}]}}{buffers}}}\nstages:\n{stages}"
            "  - {use: write, path: all.raw, live: true, in: x}\n")
        self.p = spawn("run", "--progress", "json", "--device", "cpu", "p.yaml", stderr=open("err", "w"), **more)
        until(lambda: os.path.exists(f"gpipe/{self.p.pid}.sock") or self.p.poll() is not None)

    def set(self, what):
        p = spawn("set", str(self.p.pid), what, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            said = p.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            p.kill()
            said = "did not end", p.communicate()
        return p.returncode == 0 and "pause" in said[0], what, said

    def sets(self, name):
        for what in ("depth=5", "depth=2", "depth=4"):
            ok, *why = self.set(what)
            check(f"{name}: {what}", ok, why)

    def has(self, n):
        """Whether n whole frames have been written beside."""
        return until(lambda: os.path.exists("all.raw") and os.path.getsize("all.raw") >= n * BYTES)

    def end(self, by=None):
        if by:
            self.p.send_signal(by)
        try:
            self.p.wait(60)
        except subprocess.TimeoutExpired:
            self.p.kill()
        self.text = bytes_of("err").decode()
        said = [json.loads(x) for x in self.text.splitlines() if x.startswith("{")]
        self.account = next((x["account"] for x in said if "account" in x), {"sources": [{}, {}]})
        return self.p.returncode


# ---- sources that wait
class Fifo:
    """What is written comes to the source. A pipe takes a frame at once, so that nobody waits here."""
    text = "  - {use: read, path: in, format: raw, out: x}\n"

    def __init__(self):
        if os.path.exists("in"):
            os.remove("in")
        os.mkfifo("in")
        self.fd = os.open("in", os.O_RDWR)
        fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, 1 << 20)

    def put(self, piece):
        os.write(self.fd, piece)

    def end(self):
        os.close(self.fd)


class Lossy(Fifo):
    text = "  - {use: read, path: in, format: raw, when_full: drop-newest, out: x}\n"


class Program(Fifo):
    text = "  - {use: read, command: [cat, in], format: raw, out: x}\n"


class Stdin:
    text = "  - {use: read, path: stdin, out: x}\n"
    more = {"stdin": subprocess.PIPE}

    def of(self, run):
        self.to = run.p.stdin.buffer

    def put(self, piece):
        self.to.write(piece), self.to.flush()

    def end(self):
        self.to.close()


class Udp:
    def __init__(self):
        self.port, self.next, self.rest = free_port(kind=socket.SOCK_DGRAM), 0, b""
        self.text = f"  - {{use: udp, port: {self.port}, packet: {4 * N}, header: 8, sequence: u64, frames: 6, out: x}}\n"

    def put(self, piece):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for at in range(0, len(piece), 4 * N):
                s.sendto(struct.pack(">Q", self.next) + piece[at:at + 4 * N], ("127.0.0.1", self.port))
                self.next += 1

    def end(self):
        pass


class Zmq:
    def __init__(self):
        self.s = ctx.socket(zmq.PUSH)
        self.s.setsockopt(zmq.LINGER, 0)
        self.s.setsockopt(zmq.SNDTIMEO, 60000)
        self.s.bind("ipc://" + path("zmq"))
        self.text = "  - {use: receive, connect: 'ipc://zmq', out: x}\n"

    def put(self, piece):
        self.s.send_multipart([json.dumps({"dtype": "uint32", "shape": [ROWS, N]}).encode(), piece])

    def end(self):
        self.s.send_json({"end": True})


for kind in (Fifo, Lossy, Program, Stdin, Udp, Zmq):
    name, source = kind.__name__, kind()
    r = Run(source.text, **getattr(source, "more", {}))
    if hasattr(source, "of"):
        source.of(r)
    r.sets(f"{name}, nothing came")
    source.put(data(0))
    check(f"{name}: frame 0", r.has(1))
    r.sets(f"{name}, frame 0 came")
    if kind is Zmq:
        source.put(data(1))
    else:                                  # a frame of which there is a part is waited for
        source.put(data(1)[:BYTES // 2])
        told = []
        t = threading.Thread(target=lambda: told.append(r.set("depth=3")))
        t.start()
        source.put(data(1)[BYTES // 2:])
        t.join()
        check(f"{name}: within a frame", told and told[0][0], told)
    for k in range(2, 6):
        source.put(data(k))
        check(f"{name}: frame {k}", r.has(k + 1))
    source.end()
    check(f"{name}: ends", r.end() == 0, r.text)
    check(f"{name}: bytes", bytes_of("all.raw") == data(*range(6)), r.text)
    if kind is Zmq:
        source.s.close()

r = Run("  - {use: generate, pattern: ramp, rate: 0.0001, out: x}\n")
check("paced: frame 0", r.has(1))
r.sets("paced")
check("paced: Ctrl-C", r.end(signal.SIGINT) == 130 and os.path.getsize("all.raw") == BYTES, r.text)

# ---- sinks that wait for who takes what they have
def frames_of(got):
    """The numbers of the frames, each of which is whole."""
    numbers = [int(np.frombuffer(got[at:at + 4], np.uint32)[0] * pow(2654435761, -1, 2**32) % 2**32) // (ROWS * N)
               for at in range(0, len(got), BYTES)]
    return numbers if got == data(*numbers) else None


def pull():
    s = ctx.socket(zmq.PULL)
    s.setsockopt(zmq.RCVTIMEO, 60000)
    s.bind("ipc://" + path("nobody"))
    got = b""
    while True:
        parts = s.recv_multipart()
        if json.loads(parts[0]).get("end"):
            s.close()
            return got
        got += parts[1]


def open_then_read():
    with open("out", "rb") as f:
        return f.read()


def exactly(n, reader):
    got = b""
    while len(got) < n and (piece := reader.read(n - len(got))):
        got += piece
    return got


def let_program_go():
    put("go", "")
    until(lambda: os.path.exists("done"))
    return bytes_of("got")


SEND = "{name: s, use: send, connect: 'ipc://nobody', in: x%s}"
WRITE = "{name: s, use: write, path: out, format: raw, in: x%s}"
COMMAND = "{name: s, use: write, command: [sh, -c, 'until [ -e go ]; do sleep 0.02; done; cat > got; : > done'], in: x%s}"
for name, stage, take, stuck in [("send", SEND, pull, False), ("FIFO, nobody opens it", WRITE, open_then_read, False),
                                 ("FIFO, nobody reads it", WRITE, None, True), ("program", COMMAND, let_program_go, True)]:
    for when in ("", ", when_full: drop-newest", ", when_full: drop-oldest"):
        if stuck and not when:
            continue                       # a write that has begun is waited for
        name_ = name + when
        for x in ("out", "go", "done"):
            if os.path.exists(x):
                os.remove(x)
        os.mkfifo("out")
        source, box = Fifo(), []
        if take is None:                   # within the first frame
            reader = os.fdopen(os.open("out", os.O_RDONLY | os.O_NONBLOCK), "rb", 0)
            fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        r = Run(source.text + "  - " + stage % when + "\n")
        n = 12 if when else 2
        for k in range(n):
            source.put(data(k))
            check(f"{name_}: frame {k}", r.has(k + 1))
        r.sets(name_)
        for k in range(n, n + 4 if when else n):
            source.put(data(k))
            check(f"{name_}: frame {k}", r.has(k + 1))
            n = k + 1
        if when:
            r.sets(name_ + ", and more came")

        def fetch():
            if take:
                box.append(take())
            else:
                os.set_blocking(reader.fileno(), True)
                box.append(reader.read())
                reader.close()
        t = threading.Thread(target=fetch)
        t.start()
        if not when:                       # others go on once somebody takes what is there
            for k in range(n, 6):
                source.put(data(k))
                check(f"{name_}: frame {k}", r.has(k + 1))
                n = k + 1
        source.end()
        t.join(60)
        check(f"{name_}: ends", r.end() == 0, r.text)
        numbers = frames_of(box[0]) if box else None
        check(f"{name_}: beside", bytes_of("all.raw") == data(*range(n)), r.text)
        check(f"{name_}: frames", numbers and numbers[0] == 0 and all(a < b for a, b in zip(numbers, numbers[1:])), numbers)
        if when:
            a = r.account["sources"][1]
            check(f"{name_}: account", a["in"] == n == a["out"] + a["dropped"] and a["full"] == a["dropped"]
                  and numbers and a["out"] == len(numbers), (a, numbers))
            if stage == WRITE:             # when the depth was 2; the pipe to a program has room for all
                kept = [0, n - 2, n - 1] if "oldest" in when else [0, 1]
                check(f"{name_}: which", numbers == kept, numbers)
        else:
            check(f"{name_}: all", numbers == list(range(n)), numbers)

# a reader that stalls within a frame, when fewer slots are left than wait: that frame is whole, in time and counted. A pipe
# takes a part of a frame that is larger than it is, so that the writer stalls within one; and smaller ones whole, so that it
# stalls between two, of which the reader may have a part.
large = N
for N in (large, 40):
    BYTES = 4 * ROWS * N
    for more in (", when_full: drop-newest", ", when_full: drop-oldest", ", when_full: drop-newest, deadline: 300ms"):
        for depth in (1, 2, 13):
            name = f"stalls{more}, depth {depth}, {BYTES} bytes"
            os.remove("out")
            os.mkfifo("out")
            source = Fifo()
            reader = os.fdopen(os.open("out", os.O_RDONLY | os.O_NONBLOCK), "rb", 0)
            fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, PIPE)
            os.set_blocking(reader.fileno(), True)
            r = Run(source.text + "  - " + WRITE % more + "\n")
            ok, *why = r.set("depth=12")
            check(f"{name}: depth 12", ok, why)
            for k in range(10):
                source.put(data(k))
            check(f"{name}: came", r.has(10))
            # by the deadline a frame is late or not: what comes is whole
            got = exactly(3 * BYTES // 2 if "deadline" not in more else 8, reader)
            time.sleep(0.4 if "deadline" in more else 0)
            ok, *why = r.set(f"depth={depth}")
            check(f"{name}: set", ok, why)
            rest = []
            t = threading.Thread(target=lambda: rest.append(exactly(-len(got) % BYTES, reader)))
            t.start()
            t.join(60)                     # the frame that it has a part of, before any ends
            check(f"{name}: in the pause's frame", rest and frames_of(got + rest[0]), len(got))
            source.end()
            got += rest.pop()
            t = threading.Thread(target=lambda: rest.append(reader.readall()))
            t.start()
            t.join(60)
            reader.close()
            check(f"{name}: ends", r.end() == 0, r.text)
            numbers = frames_of(got + rest[0]) if rest else None
            check(f"{name}: frames", numbers and all(a < b for a, b in zip(numbers, numbers[1:])), numbers)
            a = r.account["sources"][1]
            check(f"{name}: account", numbers and a["in"] == 10 == a["out"] + a["dropped"] and a["out"] == len(numbers), (a, numbers))

# a stage stands between: what is in the way of a smaller depth may never be read, which is said, and the run goes on
N, BYTES = large, 4 * ROWS * large
os.remove("out")
os.mkfifo("out")
put("copy.lua", "function process(f, x, y) y:copy(x) end\n")
source = Fifo()
r = Run(source.text + "  - {use: lua, script: copy.lua, in: x, out: y, when_full: drop-newest}\n"
        "  - {name: s, use: write, path: out, format: raw, in: y}\n", ", y: {like: x}")
for k in range(8):
    source.put(data(k))
    check(f"between: frame {k}", r.has(k + 1))
ok, _, said = r.set("depth=1")
check("between: refused", not ok and "as nobody has taken what 's' writes for 5 s" in said[1], said)
ok, *why = r.set("depth=5")
check("between: a larger one", ok, why)
got = []
t = threading.Thread(target=lambda: got.append(open_then_read()))
t.start()
ok, *why = r.set("depth=1")
check("between: once it is read", ok, why)
source.end()
t.join(60)
check("between: ends", r.end() == 0 and got and frames_of(got[0]), r.text)

# ---- a run that ends while it is asked
for first, says in [(b'{"seconds": 1}\n', "the run of 'over' has ended"), (b"", "'over' gives no answer: its run has ended, or")]:
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("over")
        s.listen()
        p = spawn("set", "./over", "depth=3", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with s.accept()[0] as c:
            c.sendall(first)
        said = p.communicate(timeout=60)
        check("it ends meanwhile", p.returncode == 1 and says.replace("over", "./over", 1) in said[1], said)
    os.remove("over")

# ---- a pause does not wait for a finish(), nor for what only begins a frame
os.remove("out")
os.mkfifo("out")
source = Fifo()
r = Run(source.text + "  - {name: n, use: read, path: out, format: npy, out: z}\n  - {use: discard, in: z}\n", ", z: {like: x}")
head = io.BytesIO()
np.lib.format.write_array_header_1_0(head, {"descr": "<u4", "fortran_order": False, "shape": (ROWS, N)})
with open("out", "wb") as f:
    f.write(head.getvalue()), f.flush()
    source.put(data(0))
    check("a header alone: frame 0", r.has(1))
    r.sets("a header alone")
    f.write(data(7))
source.end()
check("a header alone: ends", r.end() == 0, r.text)
total("live_set")
