#!/usr/bin/env python3
"""view.py GPIPE: gpipe view, beside a run that this program feeds through a FIFO, frame by frame: what is seen is a frame
that was fed. Prints a total; exit 1 after a failure."""
import itertools, json, os, signal, struct, subprocess, threading, time
from kit import bytes_of, check, env, gpipe, path, put, spawn, total, until

ROWS, COLUMNS = 3, 4
text = """
fuse: none
buffers: {raw: {dtype: u8, shape: [3, 4]}}
stages:
  - {use: read, path: fifo, format: raw, out: raw}
  - {name: real, use: cast, dtype: f32}
  - {name: twice, use: scale, a: 2}
  - {use: write, path: /dev/null, format: raw}
"""


class Run:
    """A run. `feed` gives it one frame, all of whose elements are `value`."""
    def __init__(self, text=text, *args):
        if os.path.exists(path("fifo")):
            os.remove(path("fifo"))
        os.mkfifo(path("fifo"))
        self.file = put("p.yaml", text)
        self.p = spawn("run", "-q", "--device", "cpu", *args, self.file, stderr=subprocess.PIPE, cwd=path(""))
        self.fifo = open(path("fifo"), "wb", buffering=0)
        self.pid = str(self.p.pid)
        check("a run to look at", until(lambda: os.path.exists(path(f"gpipe/{self.pid}.sock"))))

    def feed(self, value):
        self.fifo.write(bytes([value]) * (ROWS * COLUMNS))

    def viewers(self):
        """How many threads it has for those who look at it."""
        n = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            try:
                n += bytes_of(f"/proc/{self.pid}/task/{task}/comm") == b"view\n"
            except OSError:
                pass                   # it has just ended
        return n

    def end(self):
        self.fifo.close()
        self.p.communicate(timeout=60)
        return self.p.returncode

    def feed_while(self, what):
        """Frame after frame until it returns: who looks may have come after some. What it returns; None: it does not."""
        out, done = [], threading.Event()
        t = threading.Thread(target=lambda: (out.append(what()), done.set()), daemon=True)
        t.start()
        end = time.time() + 60
        for v in itertools.cycle(range(1, 200)):
            self.feed(v)
            if done.wait(0.02) or time.time() > end:
                break
        return out[0] if out else None

    def feed_until(self, viewer):
        """... until it has ended."""
        return self.feed_while(lambda: viewer.communicate(timeout=60)) or (b"", b"")


def look(*args, **more):
    return spawn("view", *args, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": False, "cwd": path(""), **more})


def npy(data):
    """Type, shape, and bytes."""
    n = struct.unpack("<H", data[8:10])[0]
    head = eval(data[10:10 + n])
    return head["descr"], head["shape"], data[10 + n:]


# ---- one frame: in front of the device, in it, behind it
r = Run()
for buffer, descr, factor in ("raw", "|u1", 1), ("real", "<f4", 1), ("twice", "<f4", 2):
    out, err = r.feed_until(look(r.pid, buffer))
    is_npy = out[:6] == b"\x93NUMPY"
    check(f"{buffer}: a .npy", is_npy, err)
    if is_npy:
        got, shape, data = npy(out)
        size = 1 if got == "|u1" else 4
        values = set(struct.unpack("<12" + ("B" if size == 1 else "f"), data))
        check(f"{buffer}: is a frame that was fed", got == descr and shape == (3, 4) and len(values) == 1
              and values.pop() / factor in range(1, 200), (got, shape, data))

# without a process it is the one that runs; by -o, in a format of `write`, under any name
out, err = r.feed_until(look("raw", "-o", "a %d $x.png"))
png = bytes_of(path("a %d $x.png")) if os.path.exists(path("a %d $x.png")) else b""
check("a picture", png[:8] == b"\x89PNG\r\n\x1a\n" and png[16:24] == struct.pack(">II", 4, 3), (out, err))
out, err = r.feed_until(look("raw", "--format", "png"))
check("a picture on standard output", out[:8] == b"\x89PNG\r\n\x1a\n", err)
out, err = r.feed_until(look("twice", "-o", "a.png"))
check("what a format cannot hold is an error", b"png" in err.lower() and not os.path.exists(path("a.png")), err)

# ---- numbers, until the run ends
w = look(r.pid, "twice", "--watch", "--json", "--rate", "1000")
lines = [r.feed_while(w.stdout.readline) for _ in range(3)]
for line in lines:
    o = json.loads(line or b"{}")
    value = o.get("max", 0)
    check("numbers of a frame", o.get("min") == value == o.get("mean") and value / 2 in range(1, 200) and o["std"] == 0
          and o["nan"] == 0 and o["elements"] == 12 and o["shape"] == [3, 4] and o["dtype"] == "f32", line)
check("frames follow each other", [json.loads(x)["frame"] for x in lines] == sorted({json.loads(x)["frame"] for x in lines}), lines)
one = look(r.pid, "raw", "-q")
check("two look at it", until(lambda: r.viewers() == 2), r.viewers())
check("the run ends well", r.end() == 0)
w.communicate(timeout=60)
check("numbers end with the run", w.returncode == 0, w.returncode)
out, err = one.communicate(timeout=60)
check("a frame that does not come is an error", one.returncode == 1 and not out
      and b"the run ended before another frame of 'raw' came" in err, (one.returncode, err))

# ---- NaN
r = Run(text.replace("use: scale, a: 2", "use: expr, expr: 1 / (in - in)"))
w = look(r.pid, "twice", "--watch")
said = r.feed_while(w.stdout.readline) or b""
check("infinite elements are told", said.rstrip().endswith(b"min nan  max nan  mean nan  std nan  nan 0  inf 12"), said)

# ---- retuned meanwhile: who looks sees the run that goes on
done = spawn("set", r.pid, "buffers.raw.depth=7", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
said_of_it = r.feed_until(done)
check("it is retuned", done.returncode == 0, said_of_it)
said = r.feed_while(lambda: (w.stdout.readline(), w.stdout.readline())) or (b"", b"")     # the first may have been on its way
check("it is looked at in a run that goes on under another plan", b"inf 12" in said[1], said)

# ---- a viewer that goes leaves nothing behind
fds = f"/proc/{r.pid}/fd"
w.kill()
w.communicate(timeout=60)
check("who has gone is let go", until(lambda: not r.viewers()), r.viewers())
before = len(os.listdir(fds))
for i in range(12):                    # more than may look at the same time
    w = look(r.pid, "raw")
    until(lambda: len(os.listdir(fds)) > before or w.poll() is not None)
    w.kill()
    w.communicate(timeout=60)
check("no descriptor is left", until(lambda: (r.feed(1), len(os.listdir(fds)))[1] <= before), (before, os.listdir(fds)))

# ---- errors
for args, code, what in (
        ((r.pid, "nothing"), 2, "no buffer 'nothing'; there are: raw, real, twice"),
        ((r.pid,), 2, "no buffer is named; there are: raw, real, twice"),
        (("raw", "--rate", "3"), 2, "--rate is of --watch"),
        (("raw", "--watch", "-o", "x.npy"), 2, "--watch shows numbers, and writes no file"),
        (("raw", "-o", "x.zzz"), 3, "does not end in the extension of a format")):
    p = look(*args)
    out, err = r.feed_until(p) if code == 3 else p.communicate(timeout=60)
    check(f"error: {what}", p.returncode == code and what.encode() in err and not out, (p.returncode, out, err))
other = spawn("run", "-q", "--device", "cpu", put("other.yaml", """
buffers: {raw: {dtype: u8, shape: [4]}}
stages:
  - {use: generate, rate: 10, out: raw}
  - {use: write, path: /dev/null, format: raw}
"""))
until(lambda: os.path.exists(path(f"gpipe/{other.pid}.sock")))
p = look("raw")
out, err = p.communicate(timeout=60)
check("of several runs one is to be named", p.returncode == 2 and not out and b"2 pipelines run; 'gpipe view PID' shows" in err
      and b"say which: gpipe view PID raw" in err, err)
other.send_signal(signal.SIGTERM)
other.wait(60)
r.end()
p = look("raw")
out, err = p.communicate(timeout=60)
check("no run", p.returncode == 2 and b"no pipeline of yours runs here" in err, err)

total("view")
