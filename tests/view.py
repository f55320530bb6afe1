#!/usr/bin/env python3
"""view.py GPIPE: gpipe view, beside a run that this program feeds through a FIFO, frame by frame: what is seen is a frame
that was fed. Prints a total; exit 1 after a failure."""
import itertools, json, os, re, shutil, signal, socket, struct, subprocess, sys, threading, time, urllib.error, urllib.request

sys.dont_write_bytecode = True
import browser
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
        self.p = spawn("run", "--progress", "none", "--device", "cpu", *args, self.file, stderr=subprocess.PIPE, cwd=path(""))
        self.said, self.fed = "", 0
        while "--view" in args and "/view\n" not in self.said:
            line = self.p.stderr.readline()
            self.said += line
            if not line:
                sys.exit(f"FAILED: the run ended: {self.said}")
        self.fifo = open(path("fifo"), "wb", buffering=0)
        self.pid = str(self.p.pid)
        check("a run to look at", until(lambda: os.path.exists(path(f"gpipe/{self.pid}.sock"))))

    def feed(self, value):
        self.fifo.write(bytes([value]) * (ROWS * COLUMNS))
        self.fed += 1

    def settle(self):
        """Until all frames that were fed are done with: who looks after that sees none of them."""
        def done():
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(60)
                s.connect(path(f"gpipe/{self.pid}.sock"))
                return json.loads(s.makefile().readline())["done"]
        check("all frames are done with", until(lambda: done() == self.fed), self.fed)

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

    def feed_while(self, what, values=range(1, 200)):
        """Frame after frame until it returns: who looks may have come after some. What it returns; None: it does not."""
        out, done = [], threading.Event()
        t = threading.Thread(target=lambda: (out.append(what()), done.set()), daemon=True)
        t.start()
        end = time.time() + 60
        for v in itertools.cycle(values):
            self.feed(v)
            if done.wait(0.02) or time.time() > end:
                break
        return out[0] if out else None

    def feed_until(self, viewer, *values):
        """... until it has ended."""
        return self.feed_while(lambda: viewer.communicate(timeout=60), *values) or (b"", b"")


def several(err):
    """Without a process it is the one that runs; other tests of this user may run pipelines, too."""
    return b"pipelines run; 'gpipe view PID' shows" in err


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

r.settle()
p = look(r.pid, "twice")
line = p.stderr.readline()
check("who waits is told so", line == b"gpipe: waiting for the next frame of 'twice'\n", line)
out, err = r.feed_until(p, [50])
check("and then gets just the frame that comes", npy(out)[2] == struct.pack("<12f", *[100] * 12), (out, err))

# by -o, in a format of `write`, under any name
out, err = r.feed_until(look(r.pid, "raw", "-o", "a %d $x.png"))
png = bytes_of(path("a %d $x.png")) if os.path.exists(path("a %d $x.png")) else b""
check("a picture", png[:8] == b"\x89PNG\r\n\x1a\n" and png[16:24] == struct.pack(">II", 4, 3), (out, err))
out, err = r.feed_until(look("raw", "--format", "png"))
check("a picture on standard output", out[:8] == b"\x89PNG\r\n\x1a\n" or several(err), err)
out, err = r.feed_until(look(r.pid, "twice", "-o", "a.png"))
check("a picture of f32", bytes_of(path("a.png"))[:4] == b"\x89PNG"
      and b"gpipe: the picture shows f32 as levels: 0 is " in err, err)

# ---- numbers, until the run ends
w = look(r.pid, "twice", "--watch", "--json", "--rate", "1000")
lines = [r.feed_while(w.stdout.readline) for _ in range(3)]
for line in lines:
    o = json.loads(line or b"{}")
    value = o.get("max", 0)
    check("numbers of a frame", o.get("min") == value == o.get("mean") and value / 2 in range(1, 200) and o["std"] == 0
          and o["nan"] == 0 and o["elements"] == 12 and o["shape"] == [3, 4] and o["dtype"] == "f32", line)
check("frames follow each other", [json.loads(x)["frame"] for x in lines] == sorted({json.loads(x)["frame"] for x in lines}), lines)
r.settle()
one = look(r.pid, "raw", "-q")
check("two look at it", until(lambda: r.viewers() == 2), r.viewers())
check("the run ends well", r.end() == 0)
w.communicate(timeout=60)
check("numbers end with the run", w.returncode == 0, w.returncode)
out, err = one.communicate(timeout=60)
check("a frame that does not come is an error", one.returncode == 1 and not out
      and b"the run ended before another frame of 'raw' came" in err, (one.returncode, err))

# runs that end while somebody looks as often as he can: that is no error
codes = []
for _ in range(8):
    r = Run()
    w = look(r.pid, "raw", "--watch", "--rate", "1000")
    r.feed_while(w.stdout.readline)
    for v in range(40):
        r.feed(v)
    r.end()
    err = w.communicate(timeout=60)[1]
    codes.append((w.returncode, err))
check("the end is told", codes == [(0, b"")] * 8, codes)

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
        ((r.pid, "raw", "-o", "x.zzz"), 3, "does not end in the extension of a format")):
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
check("of several runs one is to be named", p.returncode == 2 and not out and several(err)
      and b"say which: gpipe view PID raw" in err, err)
out, err = r.feed_until(look("twice"))
check("of several runs it is the one that has the buffer", several(err) or npy(out)[0] == "<f4", err)
other.send_signal(signal.SIGTERM)
other.wait(60)
r.end()
p = look("raw")
out, err = p.communicate(timeout=60)
check("no run", p.returncode == 2 and not out and (b"no pipeline of yours runs here" in err or several(err) or b"no buffer" in err), err)

# ---- probe, and who makes the first NaN
values = [4.0] * (20 * 24)
values[7 * 24 + 2 * 6 + 3] = -4.0
put("in.raw", struct.pack("<480f", *values))
put("copy.lua", "function process(f, x, y) y:copy(x) end")
chain = put("chain.yaml", """
buffers: {a: {dtype: f32, shape: [4, 6]}}
stages:
  - {use: read, path: in.raw, format: raw, out: a}
  - {name: root, use: expr, expr: sqrt(in)}
  - {name: half, use: scale, a: 0.5}
  - {name: copy, use: lua, script: copy.lua}
  - {use: write, path: out.npy}
""")


def done(*args):
    p = subprocess.run([gpipe, *args], env=env, cwd=path(""), capture_output=True, timeout=60)
    return p.returncode, p.stdout, p.stderr.decode()


for device in "cpu", "cpu:0-1":
    for buffer, want in ("a", 4), ("root", 2), ("half", 1), ("copy", 1):
        code, out, err = done("probe", chain, buffer, "--frame", "6", "--device", device)
        check(f"probe: {buffer} on {device}", code == 0 and out[:6] == b"\x93NUMPY"
              and npy(out)[2] == struct.pack("<24f", *[want] * 24) and "nan 0" in err and err.startswith("frame 6  f32 [4, 6]  min"),
              (code, out, err))
    code, out, err = done("probe", chain, "half", "--frame", "7", "--device", device)
    check(f"probe: the NaN on {device}", code == 0 and "nan 1" in err and npy(out)[2][60:64] != struct.pack("<f", 1), (code, err))
    for fuse, what in ("none", "stage 'root' made a NaN at [2, 3] of frame 7 of 'root'"), \
                      ("auto", "stage 'root+half' made a NaN at [2, 3] of frame 7 of 'half'; with --set fuse=none"):
        code, out, err = done("run", "-q", "--check-finite", chain, "--device", device, "--set", f"fuse={fuse}", "--set",
                              "stages.write.path=/dev/null", "--set", "stages.write.format=raw")
        check(f"--check-finite: on {device}, {fuse}", code == 1 and err.startswith(chain + ":5:12: error: " + what)
              and err.count("error") == 1, (code, err))
put("pulled.yaml", "buffers: {a: {dtype: f32, shape: [4, 6]}}\nstages:\n  - {use: generate, frames: 9, out: a}\n"
    "  - {use: expr, expr: in * 0 + 3, in: a, out: b}\n  - {use: output, in: b}\n  - {name: more, use: output, in: a}\n")
code, out, err = done("probe", path("pulled.yaml"), "b", "--frame", "6")
check("probe: what a program would pull", code == 0 and npy(out)[2] == struct.pack("<24f", *[3] * 24), (code, err))
check("probe: no output is written", not os.path.exists(path("out.npy")) and not os.path.exists(path("out.npy.partial")))
code, out, err = done("run", "-q", "--check-finite", chain, "--set", "stages.root.expr=1 / (in - 4)", "--set", "fuse=none")
check("--check-finite: an infinite element", code == 1 and "made an infinite element at [0, 0] of frame 0 of 'root'" in err, err)
code, out, err = done("run", "-q", "--check-finite", chain, "--set", "stages.root.expr=in")
check("--check-finite: nothing to tell", code == 0 and not err and os.path.exists(path("out.npy")), (code, err))

# a frame that is not finite is written by nobody, and counts as one that failed; those before it are written
put("bad.lua", "function process(f, x, y) y:copy(x) if f.index == 7 then y:fill(1 / 0) end end")
for said, stage, sets, written in (
        ("'root' made a NaN at [2, 3]", "root", ("fuse=none", "batch=1", "depth=8"), range(7)),
        ("'root' made a NaN at [2, 3]", "root", ("fuse=none", "batch=8", "depth=8"), range(7)),
        ("'root+half' made a NaN at [2, 3]", "half", ("batch=4", "stages.write.workers=2"), range(7)),
        ("'root' made a NaN at [2, 3]", "root", ("fuse=none", "device=cpu:0-1"), range(7)),
        ("'root+half' made a NaN at [2, 3]", "half", ("launch=persistent",), range(7)),
        ("'copy' made an infinite element at [0, 0]", "copy", ("stages.copy.script=bad.lua", "stages.root.expr=in"), range(7)),
        ("'copy' made an infinite element at [0, 0]", "copy", ("stages.copy.script=bad.lua", "stages.root.expr=in",
                                                              "stages.copy.on_error=drop"), [*range(7), 8, 9])):
    shutil.rmtree(path("each"), ignore_errors=True)
    os.mkdir(path("each"))
    code, out, err = done("run", "--progress", "none", "--device", "cpu", "--check-finite", chain,
                          *(x for s in ("stages.read.frames=10", "stages.write.path=each/%d.npy", *sets) for x in ("--set", s)))
    drops = len(written) > 7
    check(f"--check-finite: {sets}", code == (not drops) and f"stage {said} of frame 7 of '{stage}'" in err
          and f"{len(written)} out, 0 dropped, 1 failed" in err and sorted(os.listdir(path("each"))) == [f"{i}.npy" for i in written],
          (code, err, os.listdir(path("each"))))
for sets in ("stages.write.path=none/%d.npy", "stages.write.workers=3"), ("stages.write.path=none/%d.npy",), \
            ("stages.write.path=none.raw", "stages.write.workers=2"):
    for _ in range(3):
        code, out, err = done("probe", chain, "copy", "--frame", "9", *(x for s in sets for x in ("--set", s)))
        check(f"probe: a sink that does nothing has workers: {sets}", code == 0 and err.startswith("frame 9")
              and not os.path.exists(path("none")) and not os.path.exists(path("none.raw")), (code, err))
for args, code, what in (
        (("copy", "--frame", "20"), 1, "there is no frame 20 of 'copy': the pipeline ended before"),
        (("half", "--set", "fuse=auto", "-o", "h.npy"), 0, "frame 0"),
        (("root", "--set", "fuse=auto"), 2, "'root' is nowhere in memory"),
        (("rot",), 2, "no buffer 'rot'; there are: a, root, half, copy; did you mean 'root'?"),
        (("copy", "--frame", "x"), 2, "--frame x: must be the number of a frame"),
        (("copy", "--set", "stages.read.path=none.raw"), 2, "none.raw")):
    got, out, err = done("probe", chain, *args)
    check(f"probe: {args}", got == code and what in err and not out, (got, out, err))
code, out, err = done("probe", chain, "a", "--frame", "7", "-o", "l.pgm")
check("probe: levels of a picture", bytes_of(path("l.pgm")) == b"P5\n6 4\n255\n" + bytes(15 * [255] + [0] + 8 * [255])
      and "gpipe: the picture shows f32 as levels: 0 is -4, 255 is 4" in err, (code, err, bytes_of(path("l.pgm"))))
code, out, err = done("probe", chain, "a", "--set", "buffers.a.dtype=f16", "--set", "stages.root.expr=in", "-o", "l.csv")
check("what a format cannot hold is an error", code == 3 and "'l.csv' cannot hold f16 [4, 6]: text holds no f16 and no c64; a .npy "
      "holds any frame" in err and "stage 'view'" not in err and not os.path.exists(path("l.csv")), (code, err))
put("slow.lua", "function process(f, x, y)\n y:copy(x)\n if f.index == 0 then os.execute('sleep 0.2') end\nend")
for more in "when_full: drop-oldest", "when_full: drop-newest", "deadline: 1ns":
    late = put("late.yaml", """
buffers: {a: {dtype: f32, shape: [4, 6]}, slow: {like: a}}
stages:
  - {use: read, path: in.raw, format: raw, out: a}
  - {name: slow, use: lua, script: slow.lua, %s}
  - {use: discard}
""" % more)
    code, out, err = done("probe", late, "slow", "--frame", "10")
    check(f"probe: no frame comes too late, {more}", code == 0 and npy(out)[2] == struct.pack("<24f", *[4] * 24), (code, err))
got, out, err = done("probe", "-q", chain, "copy", "--frame", "2", "-o", "/dev/full", "--format", "raw")
check("probe: no room for the file", got == 1 and err.startswith("gpipe: error: '/dev/full' cannot be written"), (got, err))
check("probe: a file", bytes_of(path("h.npy"))[:6] == b"\x93NUMPY")

# ---- the page
p = spawn("run", "-q", "--view", put("p.yaml", text), stderr=subprocess.PIPE)
check("--view is of the server", p.wait(60) == 2 and "write --metrics PORT --view" in p.stderr.read())

PAGE = """
fuse: none
buffers: {raw: {dtype: u8, shape: [3, 4]}}
stages:
  - {use: read, path: fifo, format: raw, out: raw}
  - {name: real, use: cast, dtype: f32}
  - {name: bad, use: expr, expr: "select(in > 100, log(0 - in), in * 2)"}
  - {use: write, path: /dev/null, format: raw}
"""
r = Run(PAGE, "--metrics", "0", "--view")
url = re.search("http://127.0.0.1:\\d+/view", r.said).group()


def get(path, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, headers=headers), timeout=60) as a:
            return a.status, a.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def newest():
    return json.loads(get("/frame?buffer=raw")[1].partition(b"\n")[0])["view"]["frame"]


check("a page", get("")[0] == 200 and b"gpipe view" in get("")[1])
check("which buffers there are", json.loads(get("/buffers")[1]) == ["raw", "real", "bad"], get("/buffers"))
check("no frame yet", get("/frame?buffer=raw")[0] == 204)
r.feed(7)                              # the first question is waiting for it
check("the frame that was fed", until(lambda: get("/frame?buffer=raw")[0] == 200))
status, body = get("/frame?buffer=raw")
head, _, data = body.partition(b"\n")
head = json.loads(head)
check("its numbers", head["view"]["frame"] == 0 and head["view"]["mean"] == 7 and head["view"]["dtype"] == "u8"
      and (head["rows"], head["columns"], head["channels"], head["step"]) == (3, 4, 1, [1, 1]), head)
for buffer in "raw", "real", "bad":
    until(lambda: (r.feed(7), get(f"/frame?buffer={buffer}")[0] == 200)[1])
    line = get(f"/frame?buffer={buffer}")[1].partition(b"\n")[0] + b"\n"
    check(f"a Float32Array can begin behind the line: {buffer}", line[:1] == b"{" and len(line) % 4 == 0, line)
check("its elements", data == struct.pack("<12f", *[7] * 12), data)
check("no new frame", until(lambda: get(f"/frame?buffer=raw&after={newest()}")[0] == 204))
check("no such buffer", get("/frame?buffer=rax") [0] == 404 and b"no buffer 'rax'" in get("/frame?buffer=rax")[1])
check("no such page", get("/nothing")[0] == 404)
for host in "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "127.evil.example", "[::1].evil.example":
    check(f"a page of another name is not answered: {host}", get("", Host=host)[0] == 403)
for host in "localhost", "LocalHost:80", "127.0.0.1:80", "127.0.0.1", "127.1.2.3", "[::1]:80", "[::1]":
    check(f"a page of this machine's name is: {host}", get("", Host=host)[0] == 200)

if not browser.find():
    print("view: SKIPPED: no Chromium starts here: the page was not tested")
else:
    b = browser.Browser()
    value = 7

    def shows(what, seconds=60):
        """Until the page shows that; each question may have to wait for a frame, so that it is fed meanwhile."""
        end = time.time() + seconds
        while not b.js(what) and time.time() < end:
            r.feed(value)
            time.sleep(0.02)
        return b.js(what)

    def choose(name, to, event="input"):
        b.js(f"by_id({name!r}).value = {to!r}; by_id({name!r}).dispatchEvent(new Event({event!r})); 0")

    try:
        b.open(url + "#raw")
        numbers = "Object.fromEntries([...document.querySelectorAll('#numbers div')].map(d => [d.firstChild.textContent, d.lastChild.textContent]))"
        b.js("by_id('rate').value = 30")
        check("page: buffers to choose from", until(lambda: b.js("by_id('buffer').length") == 3))
        check("page: the frame", shows(f"{numbers}.mean === '7'"), b.js(numbers))
        check("page: its type", b.js(numbers).get("type") == "u8 3 × 4", b.js(numbers))
        choose("low", "0"), choose("high", "14"), choose("map", "gray")
        pixel = "[...pen.getImageData(1, 1, 1, 1).data]"
        check("page: its picture", b.js("canvas.width") == 4 and b.js("canvas.height") == 3 and b.js(pixel) == [128] * 3 + [255],
              b.js(pixel))
        choose("map", "viridis")
        check("page: its colors", b.js(pixel) == [33, 145, 140, 255], b.js(pixel))     # Matplotlib's viridis at 0.5
        value = 9
        check("page: another frame", shows(f"{numbers}.mean === '9'"), b.js(numbers))
        choose("as", "histogram")
        check("page: a histogram", b.js("counts(64)[41]") == 12 and b.js("canvas.width") == 900, b.js("counts(64)"))
        choose("as", "line")
        check("page: a line", b.js("canvas.width") == 900 and b.js("pen.getImageData(450, 139, 1, 1).data[3]") > 0)
        choose("as", "picture")
        value = 200
        choose("buffer", "bad", "change")
        check("page: another buffer, with NaNs", shows(f"{numbers}.NaN === '12'"), b.js(numbers))
        check("page: a NaN has a color of its own", b.js(pixel) == [255, 0, 255, 255], b.js(pixel))
        b.js("by_id('pause').click()")
        before = b.js("asked")
        for _ in range(5):
            r.feed(3)
            b.settle()
        check("page: it pauses", b.js("asked") == before)
        b.js("by_id('pause').click()")
        value = 3
        check("page: it goes on", shows(f"{numbers}.mean === '6'"), b.js(numbers))
        said = [x for x in b.said if "willReadFrequently" not in x]     # of this test, which reads pixels
        check("page: nothing on the console", not said, said)
        check("page: it asks nobody else", all(x.startswith(url) for x in b.asked), b.asked)
        r.end()
        check("page: the end is told", until(lambda: "it is over" in b.js("by_id('said').textContent")), b.js("by_id('said').textContent"))
    finally:
        b.close()
if r.p.poll() is None:
    r.end()

total("view")
