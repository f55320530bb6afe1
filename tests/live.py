#!/usr/bin/env python3
"""live.py GPIPE - what a run shows while it goes: live lines on a terminal, JSON, gpipe top,
metrics. Prints a total; exit 1 after a failure."""
import fcntl, glob, json, os, pty, re, resource, select, shutil, signal, socket, struct, subprocess, tempfile, termios
import time, urllib.error, urllib.request
from kit import check, env, gpipe, path, put, spawn, total, until

env.pop("NO_COLOR", None)
# what gpipe inherits is the same under nohup, or behind a shell's &
signal.signal(signal.SIGINT, signal.default_int_handler)
for sig in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(sig, signal.SIG_DFL)


def sock(pid):
    return path(f"gpipe/{pid}.sock")


# 'clean' takes 10 ms a frame and sleeps meanwhile; frame 40 says something
put("clean.lua", """local function nap() io.popen("sleep 0.01"):close() end
function process(f, x, y) nap() if f.index == 40 then print("a word") end y:copy(x) end""")
put("quiet.lua", open(path("clean.lua")).read().replace('print("a word")', ""))
slow = put("slow.yaml", """depth: 4
buffers: {a: {dtype: f32, shape: [1024]}}
stages:
  - {use: generate, out: a, frames: 150}
  - {name: twice, use: scale, a: 2}
  - {name: clean, use: lua, script: clean.lua}
  - {use: discard}
""")
endless = put("endless.yaml", open(slow).read().replace("frames: 150", "frames: 0, rate: 200"))
fifo = put("fifo.yaml", """depth: 4
buffers: {a: {dtype: u8, shape: [64]}}
stages:
  - {use: read, path: fifo, format: raw, out: a}
  - {name: odd, use: lua, script: odd.lua}
  - {use: discard}
""")
unseen = put("unseen.yaml", """buffers: {a: {dtype: u8, shape: [8]}}
stages:
  - {use: generate, out: a, frames: 0, rate: 200}
  - {use: mix, op: sum}
  - {use: discard}
""")
calm = put("calm.yaml", """buffers: {a: {dtype: u8, shape: [8]}}
stages:
  - {use: generate, out: a, frames: 0, rate: 20}
  - {use: discard}
""")
words = put("words.yaml", """buffers: {a: {dtype: u8, shape: [64]}}
stages:
  - {use: generate, out: a, frames: 14, rate: 10}
  - {name: words, use: lua, script: words.lua}
  - {use: write, path: stdout, format: raw}
""")
put("words.lua", 'function process(f, x, y) y:print("frame " .. f.index) end')
# a source with very many readers: what is said of it does not fit into a socket at once
READERS = 600
many = put("many.yaml", "buffers: {a: {dtype: u8, shape: [8]}}\nstages:\n"
           "  - {use: generate, out: a, frames: 0, rate: 10}\n"
           + "".join(f"  - {{name: a_reader_with_a_long_name_{i}, use: discard, in: a}}\n"
                     for i in range(READERS)))
put("odd.lua", 'function process(f, x, y) if f.index % 2 == 1 then return "drop" end y:copy(x) end')


run = ["run", "--device", "cpu"]


def connected(pid, where=sock):
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(where(pid)) == 0


def start(*args, where=sock, **more):
    p = spawn(*run, *args, stderr=subprocess.PIPE, **more)
    check("top: a socket", until(lambda: connected(p.pid, where)), args)
    return p


def stop(p, sig=signal.SIGINT):
    p.send_signal(sig)
    try:
        return p.communicate(timeout=60)[1], p.returncode
    except subprocess.TimeoutExpired:
        check(f"it ends at {sig.name}", False, p.args)
        p.kill()
        return p.communicate()[1], p.returncode


# == a terminal =================================================================
class Screen:
    """As much of a terminal as gpipe uses; what it does not know is an error."""

    def __init__(self, rows, cols):
        self.rows, self.cols, self.r, self.c = rows, cols, 0, 0
        self.line = [""] * rows
        self.colors = self.wrapped = 0
        self.unknown, self.tail = [], ""

    def down(self):
        self.r += 1
        if self.r == self.rows:
            self.line, self.r = self.line[1:] + [""], self.rows - 1

    def feed(self, text):
        text, self.tail = self.tail + text, ""
        for m in re.finditer(r"\x1b\[(\d*(?:;\d+)*)([A-Za-z])|\x1b[^A-Za-z]*$|(.)", text, re.S):
            number, verb, c = m.groups()
            if verb == "K":
                self.line[self.r] = self.line[self.r][:self.c]
            elif verb == "J":
                self.line[self.r] = self.line[self.r][:self.c]
                self.line[self.r + 1:] = [""] * (self.rows - self.r - 1)
            elif verb == "A":
                if int(number or 1) > self.r:
                    self.unknown.append("up beyond the top")
                self.r = max(0, self.r - int(number or 1))
            elif verb == "m":
                self.colors += 1
            elif verb:
                self.unknown.append(m.group())
            elif c is None:
                self.tail = m.group()
            elif c == "\r":
                self.c = 0
            elif c == "\n":
                self.down()
            else:
                if self.c >= self.cols:
                    self.wrapped += 1
                    self.c = 0
                    self.down()
                old = self.line[self.r].ljust(self.c)
                self.line[self.r] = old[:self.c] + c + old[self.c + 1:]
                self.c += 1

    def resize(self, rows, cols):
        """As a terminal that does not wrap lines anew: it cuts them, and drops rows above."""
        while len(self.line) > rows:
            if self.r < rows and not self.line[-1]:
                self.line.pop()
            else:
                self.line.pop(0)
                self.r -= 1
        self.r = max(self.r, 0)
        self.line = [s[:cols] for s in self.line] + [""] * (rows - len(self.line))
        self.rows, self.cols = rows, cols

    def shown(self):
        return [s.rstrip() for s in self.line if s.strip()]


def on_terminal(args, rows=24, cols=100, steps=(), seconds=120, program=gpipe, **more):
    """Runs gpipe on a terminal; steps: function(pid, fd, screen), one after the other, each of which is called again
    while it returns False. Every screen that stood still for a moment, the last screen, and the exit code."""
    pid, fd = pty.fork()
    if pid == 0:
        try:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
            os.execve(program, [program, *args], dict(env, **more))
        finally:
            os._exit(127)
    screen, start, steps, seen = Screen(rows, cols), time.time(), list(steps), []
    while time.time() < start + seconds:
        if steps and steps[0](pid, fd, screen) is not False:
            steps.pop(0)
        if not select.select([fd], [], [], 0.03)[0]:
            seen.append(screen.shown())
            continue
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        screen.feed(data.decode())
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(fd)
    return seen, screen, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def on_terminal_until(seen_well, *args, **more):
    """The same, again a few times where this process had no processor while the run could be seen."""
    for _ in range(5):
        shown = on_terminal(*args, **more)
        if seen_well(shown[0]):
            break
    return shown


def when(shown, do):
    """A step that waits until some line on the screen is as `shown` says."""
    def step(pid, fd, screen):
        return do(pid, fd, screen) if any(shown(l) for l in screen.shown()) else False
    return step


def kill(sig):
    return lambda pid, fd, screen: os.kill(pid, sig)


def settled(pid, fd, screen, since={}):
    """Half a second with what is shown, so that it is seen to stand still."""
    return time.time() > since.setdefault(pid, time.time()) + 0.5 or False


def resize(rows, cols):
    def do(pid, fd, screen):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        screen.resize(rows, cols)
    return do


def is_clean(name, screen, lines):
    """Each thing once, nothing left of old lines, no line wrapped."""
    check(f"{name}: what it writes", not screen.unknown and not screen.wrapped, (screen.unknown, screen.wrapped))
    dirty = [s for s in lines if sum(l.lstrip("> ").startswith("generate ") for l in s) > 1
             or sum(l.startswith("gpipe: ") and " frames/s" in l for l in s) > 1]
    check(f"{name}: nothing twice", not dirty, dirty[:1])


WIDE = 400                             # so that the account at the end, with the longest verdict, is not wrapped
has_left = lambda seen: [s for s in seen if any("left" in l for l in s)]
seen, screen, rc = on_terminal_until(lambda seen: len(has_left(seen)) > 4, [*run, slow], cols=WIDE, NO_COLOR="")
full = has_left(seen)
check("lines: exit", rc == 0, rc)
check("lines: drawn", len(full) > 4, seen[-1:])
is_clean("lines", screen, seen[:-1])
last = full[-1] if full else []
for want in (r"^  generate +[\d.]+( k)? frames/s +[\d.]+ [kMG]?B/s$", r"^  twice .*B/s  a \[[# ]{4}\] \d+ %$",
             r"^> clean .*B/s  twice \[[# ]{4}\] \d+ %$", r"^  discard .*B/s  clean \[[# ]{4}\] \d+ %$",
             r"^gpipe: \d+ of 150 frames, [\d.]+ frames/s, [\d.]+ s, [\d.]+ s left, > 'clean' holds"):
    check(f"lines: {want}", any(re.search(want, l) for l in last), last)
check("lines: a script's print stays whole", "a word" in last, last)
check("lines: gone at the end", not any("left" in l or "[" in l for l in screen.shown())
      and any("150 frames in, 150 out" in l for l in screen.shown()), screen.shown())
check("lines: color, as NO_COLOR is empty", screen.colors > 0)

sizes = [when(lambda l: "left" in l or "fram" in l, resize(24, 40)),
         when(lambda l: "frames" in l, resize(4, 60)),
         when(lambda l: "stages more" in l, resize(24, 100)),
         when(lambda l: "discard" in l, resize(2, 10))]
few_rows = lambda seen: any(any("stages more" in l for l in s) for s in seen)
seen, screen, rc = on_terminal_until(few_rows, [*run, slow], steps=sizes)
check("resize: exit", rc == 0, rc)
check("resize: few rows, in color", few_rows(seen) and screen.colors > 0)
dirty = [s for s in seen if sum("frames, " in l for l in s) > 1]
check("resize: nothing twice", not dirty, dirty[:1])

for rows, cols in ((1, 1), (2, 3), (3, 12), (5, 30)):
    def shown(pid, fd, s, since=time.time()):
        return time.time() > since + 1.2 and (bool(s.shown()) or cols == 1)
    seen, screen, rc = on_terminal([*run, "--set", "stages.clean.script=quiet.lua", endless], rows, cols,
                                   steps=[shown, settled, kill(signal.SIGKILL)])
    is_clean(f"{rows} x {cols}", screen, seen)
    check(f"{rows} x {cols}: drawn", any(seen) == (cols > 1) and all(len(l) < cols for s in seen for l in s), seen)
for name in os.listdir(path("gpipe")):                 # of those that were killed
    os.remove(path("gpipe/" + name))
for term in ("dumb", ""):
    seen, screen, rc = on_terminal([*run, slow], cols=200, TERM=term)
    check(f"TERM={term}", rc == 0 and not screen.colors and not screen.unknown
          and any(re.match(r"gpipe: \d+ frames, \d+ frames/s, \d+ s", l) for l in screen.shown())
          and not any("[" in l for l in screen.shown()), screen.shown())
seen, screen, rc = on_terminal([*run, words])
check("data on the same terminal", rc == 0 and "frame 13" in screen.shown()
      and not any("[" in l or " left" in l for s in seen for l in s), screen.shown())
seen, screen, rc = on_terminal(["-c", f"set -m; {gpipe} run --device cpu {slow} & wait; echo over"], program="/bin/sh")
check("in the background", screen.shown()[-1:] == ["over"] and any("150 out" in l for l in
      screen.shown()) and not any(" left" in l for s in seen for l in s), screen.shown())
clean_holds = lambda seen: any(any(l.startswith("> clean") for l in s) for s in seen)
seen, screen, rc = on_terminal_until(clean_holds, [*run, slow], NO_COLOR="1")
check("NO_COLOR", screen.colors == 0 and clean_holds(seen))
seen, screen, rc = on_terminal([*run, "--set", "stages.clean.script=quiet.lua", endless], cols=WIDE,
                               steps=[when(lambda l: l.startswith("> clean"),
                                           lambda pid, fd, s: os.write(fd, b"\x03"))])
check("Ctrl-C: exit", rc == 130, rc)
check("Ctrl-C: its words stay", any(l.startswith("gpipe: stopping: frames in flight will finish") for l in screen.shown())
      and " frames in, " in screen.shown()[-1], screen.shown())
is_clean("Ctrl-C", screen, seen[:-1])
check("endless: no time left", not any("left" in l for s in seen for l in s))

# == no terminal, JSON ==========================================================
silent, p, left = (spawn(*run, *args, slow, stderr=subprocess.PIPE)
                   for args in ([], ["-v", "--progress", "json"], ["--progress", "json"]))
left.stderr.readline()
left.stderr.close()
said = [l for l in silent.communicate(timeout=60)[1].splitlines() if not l.startswith("gpipe: device:")]
check("no terminal: silent", said[0] == "a word" and len(said) == 2, said)
objects = [o for o in map(json.loads, p.communicate(timeout=60)[1].splitlines()) if "seconds" in o]
check("JSON: its reader goes", left.wait(timeout=60) == 0, left.returncode)


def valid(o):
    number = (int, float)
    def has(x, **types):
        return all(isinstance(x.get(k), t) and x[k] is not None for k, t in types.items())
    return (has(o, seconds=number, ended=bool, done=int, frames_per_s=number, sources=list,
                stages=list, buffers=list) and "bound_by" in o
            and all(has(s, name=str, out=int, dropped=int, failed=int, **{"in": int},
                        **{"cancelled" if o["ended"] else "in_flight": int})
                    for s in o["sources"])
            and all(has(s, name=str, frames=int, bytes=int, frames_per_s=number, bytes_per_s=number)
                    for s in o["stages"])
            and all(has(b, name=str, to=str, depth=int, held=int, fill=number, **{"from": str})
                    and 0 <= b["held"] <= b["depth"] and 0 <= b["fill"] <= 1
                    for b in o["buffers"]))


check("JSON: objects", len(objects) >= 2 and all(map(valid, objects)), objects)
moments = [o["seconds"] for o in objects]              # on a busy machine some come late
check("JSON: at most one a second", moments == sorted(moments) and len(moments) - 2 <= moments[-1], moments)
check("JSON: the end", objects[-1]["ended"] and objects[-1]["sources"][0]["out"] == 150
      and objects[-1]["frames"] == 150 and not any(o["ended"] for o in objects[:-1]), objects[-1])
check("JSON: the bound", any(o["bound_by"] == "clean" for o in objects[:-1]), objects)
put("sink.lua", "function process() local t = os.clock() repeat until os.clock() - t > 0.02 end")
put("sink.yaml", """buffers: {a: {dtype: f32, shape: [16]}}
stages: [{use: generate, out: a, frames: 100}, {use: scale, a: 2}, {name: sink, use: lua, script: sink.lua, out: []}]
""")
p = subprocess.run([gpipe, "run", "--device", "cpu", "--progress", "json", path("sink.yaml")], env=env, capture_output=True,
                   text=True)
now = [o for o in map(json.loads, [l for l in p.stderr.splitlines() if l.startswith("{")]) if "seconds" in o][:-1]
check("JSON: the bound, beside many slots of which few are in use", any(o["bound_by"] == "sink" for o in now), now)
data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../examples/data")
for what, more, frames in (("ecg.npy", "out: x", 154), ("ecg.npy", "out: x, frames: 2", 2),
                           ("raccoon.png", "loop: true, frames: 3", 3), ("raccoon.png", "rate: 0", 1)):
    read = put("read.yaml", ("buffers: {x: {dtype: f32, shape: [705]}}\n" if "x" in more else "")
               + f"stages:\n  - {{use: read, path: {data}/{what}, {more}}}\n  - {{use: discard}}\n")
    p = subprocess.run([gpipe, "run", "--progress", "json", read], env=env, capture_output=True, text=True)
    check(f"JSON: how many frames, {more}", f'"done": {frames}, "frames": {frames},' in p.stderr, p.stderr)

# == top ========================================================================
p = start(endless)
mode = os.stat(sock(p.pid)).st_mode & 0o777, os.stat(path("gpipe")).st_mode & 0o777
check("top: for its owner alone", mode == (0o600, 0o700), mode)
idle = [socket.socket(socket.AF_UNIX) for _ in range(3)]       # these never read
for s in idle:
    s.connect(sock(p.pid))
seen, screen, rc = on_terminal(["top", str(p.pid)], steps=[
    when(lambda l: l.startswith("> clean "), settled), kill(signal.SIGINT)])
check("top: lines", any(any(l.startswith("> clean ") for l in s) for s in seen), seen[-1:])
check("top: exit", rc == 130, rc)
is_clean("top", screen, seen)
t = spawn("top", "--json", sock(p.pid), stdout=open(path("objects"), "w"))     # which takes all, however late it is read
until(lambda: "\n" in open(path("objects")).read())
first = json.loads(open(path("objects")).readline())
check("top: JSON", valid(first) and not first["ended"] and first["done"] > 0, first)
gone = spawn("top", "--json", sock(p.pid), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
gone.stdout.readline()
gone.stdout.close()
said = gone.communicate(timeout=60)[1]
check("top: nobody reads it", gone.returncode == -signal.SIGPIPE and not said, (gone.returncode, said))
t2 = spawn("top", sock(p.pid), stdout=open(path("plain"), "w"))
until(lambda: "> clean" in open(path("plain")).read())
err, rc = stop(p)
check("top: the run", rc == 130 and " 0 cancelled" in err, err)
check("top: the socket goes", not os.path.exists(sock(p.pid)))
t.wait(timeout=60)
check("top: the last object", json.loads(open(path("objects")).read().splitlines()[-1])["ended"] and t.returncode == 0)
t2.wait(timeout=60)
rest = open(path("plain")).read()
check("top: not a terminal", "\x1b" not in rest and "> clean" in rest and t2.returncode == 0, rest)
p = subprocess.run([gpipe, "top", str(p.pid)], env=env, capture_output=True, text=True)
check("top: gone", p.returncode == 2 and "no pipeline of yours" in p.stderr, p.stderr)
p = subprocess.run([gpipe, "top", slow], env=env, capture_output=True, text=True)
check("top: no socket", p.returncode == 2 and "cannot connect" in p.stderr, p.stderr)
went_in = re.compile(r"gpipe: [\d.]+ frames in, none done yet, [1-9][\d.]* frames/s, [\d.]+ s")
seen, screen, rc = on_terminal([*run, unseen], steps=[when(went_in.match, settled), kill(signal.SIGINT)])
check("none done yet", rc == 130 and any(went_in.match(l) for s in seen for l in s), (rc, seen[-1:]))
p = start(unseen)
seen, screen, rc = on_terminal(["top", str(p.pid)], steps=[when(went_in.match, settled), kill(signal.SIGINT)])
check("top: none done yet", rc == 130 and any(went_in.match(l) for s in seen for l in s), (rc, seen[-1:]))
stop(p)
for sig in (signal.SIGHUP, signal.SIGTERM):
    p = start(endless)
    stop(p, sig)
    check(f"top: removed at {sig.name}", not os.path.exists(sock(p.pid)), p.returncode)
os.mkdir(path("parts"))
parts = put("parts.yaml", open(endless).read().replace("{use: discard}", "{use: write, path: parts/a.npy}"))
p = start(parts, "--report", path("parts/r.json"), "--trace", path("parts/t.json"),
          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
until(lambda: len(os.listdir(path("parts"))) == 3)     # the run opens its own later than its socket
until(lambda: any(".a.npy" in n and os.path.getsize(path("parts/" + n)) > 128 for n in os.listdir(path("parts"))))
had = os.listdir(path("parts"))
stop(p, signal.SIGQUIT)
check("SIGQUIT: only the frames of the joined file stay", len(had) == 3
      and os.listdir(path("parts")) == ["a.npy.partial"]
      and p.returncode == -signal.SIGQUIT, (p.returncode, had, os.listdir(path("parts"))))
for n in os.listdir(path("parts")):
    os.remove(path("parts/" + n))
# a script that waits for a process, which the signal does not reach: the second one ends all
put("waits.lua", """function process(f, x, y) y:copy(x)
  if f.index == 3 then io.popen("exec 2>/dev/null; sleep 1000 & echo $! >child; wait"):read() end
end""")
# with three slots the frames before are handed on before the script is given the one that waits
waits = put("waits.yaml", """buffers: {a: {dtype: f32, shape: [4], depth: 3}}
stages:
  - {use: generate, out: a, frames: 100}
  - {use: lua, script: waits.lua}
  - {use: write, path: parts/b.npy}
""")
for sig in (signal.SIGINT, signal.SIGTERM):
    if os.path.exists(path("child")):
        os.remove(path("child"))
    p = start(waits, "--report", path("parts/r.json"), cwd=path("."))
    until(lambda: os.path.exists(path("child")) and open(path("child")).read().endswith("\n"))
    child = int(open(path("child")).read())
    check(f"{sig.name}: the frames before are written",
          until(lambda: any(os.path.getsize(path("parts/" + n)) == 128 + 12 * 4 for n in os.listdir(path("parts")))))
    p.send_signal(sig)
    while "again: stop at once" not in p.stderr.readline() and p.poll() is None:
        pass
    time.sleep(0.1)                                    # so that it is another
    check(f"{sig.name}: the first waits for what is in flight", p.poll() is None, p.returncode)
    err, rc = stop(p, sig)
    check(f"{sig.name} twice, a script waits", rc == 128 + sig and " cancelled" in err, (rc, err))
    kept = open(path("parts/b.npy.partial"), "rb").read() if os.path.exists(path("parts/b.npy.partial")) else b""
    check(f"{sig.name} twice: the frames before stay", b"'shape': (12,)" in kept and len(kept) == 128 + 12 * 4
          and "what was written is kept as" in err and not [n for n in os.listdir(path("parts")) if n.startswith(".")],
          (err, kept, os.listdir(path("parts"))))
    for n in os.listdir(path("parts")):
        os.remove(path("parts/" + n))
    check(f"{sig.name} twice: what the script waits for ends",
          until(lambda: not os.path.exists(f"/proc/{child}") or " Z " in open(f"/proc/{child}/stat").read()))
signal.signal(signal.SIGHUP, signal.SIG_IGN)           # as nohup does
p = start(endless)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
p.send_signal(signal.SIGHUP)
time.sleep(0.3)
check("nohup: the run stays", p.poll() is None and connected(p.pid), p.returncode)
check("nohup: SIGINT ends it", stop(p)[1] == 130, p.returncode)
# a folder that others could change is none; then it is the other one
tmp_sock = lambda pid: f"/tmp/gpipe-{os.geteuid()}/{pid}.sock"
here = {k: v for k, v in env.items() if k != "XDG_RUNTIME_DIR"}
os.rename(path("gpipe"), path("elsewhere"))
os.symlink("elsewhere", path("gpipe"))
p = start(endless, where=tmp_sock)
check("top: not through a link", os.listdir(path("elsewhere")) == [])
seen, screen, rc = on_terminal(["top", str(p.pid)], steps=[when(bool, settled), kill(signal.SIGTERM)])
check("top: the other folder", rc == 143 and any(seen), (rc, seen[-1:]))
stop(p)
os.remove(path("gpipe"))
os.rename(path("elsewhere"), path("gpipe"))
if os.geteuid() == 0:
    os.chown(path("gpipe"), 65534, -1)
    p = start(endless, where=tmp_sock)
    check("top: not in another's folder", os.listdir(path("gpipe")) == [])
    stop(p)
    os.chown(path("gpipe"), 0, -1)
p = start(endless, env=here, where=lambda pid: tmp_sock(pid) if os.path.exists(tmp_sock(pid))
          else f"/run/user/{os.geteuid()}/gpipe/{pid}.sock")
check("top: no XDG_RUNTIME_DIR", stop(p)[1] == 130)


def leave_socket():
    """Of a process that had this number, and was killed."""
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(sock(os.getpid()))


one, two = start(endless, preexec_fn=leave_socket), start(endless)
check("top: a number used again", connected(one.pid))
check("top: two runs", connected(two.pid) and stop(one)[1] == 130 and connected(two.pid) and stop(two)[1] == 130)
with socket.socket(socket.AF_UNIX) as s:
    s.bind(sock(999999999))
p = subprocess.run([gpipe, "top", "999999999"], env=env, capture_output=True, text=True)
check("top: nobody there", p.returncode == 2 and "no pipeline of yours" in p.stderr, p.stderr)
os.remove(sock(999999999))


# without a process: the one that runs, or a list. Runs of others in the folder that is shared are listed, too
def top_of_all(*args):
    return subprocess.run([gpipe, "top", *args], env=env, capture_output=True, text=True, timeout=60)


def top_alone(*args, before=lambda: None):
    """gpipe top while no run of others begins, runs or ends; None, which is said, where that does not happen."""
    shared = f"/tmp/gpipe-{os.geteuid()}"
    changed = lambda: os.path.exists(shared) and os.stat(shared).st_mtime_ns

    def runs(path):                    # one that was killed leaves its socket
        with socket.socket(socket.AF_UNIX) as s:
            return not s.connect_ex(path)

    for _ in range(100):
        since = changed()
        if not any(map(runs, glob.glob(f"{shared}/*.sock"))):
            ran, p = before(), top_of_all(*args)
            if ran:
                ran.communicate(timeout=60)
            if changed() == since:
                return p
        time.sleep(0.2)
    print("live: SKIPPED: 'top' of one run: there were always others", flush=True)


p = top_alone()
check("top: of none", not p or (p.returncode == 2 and "no pipeline of yours runs here" in p.stderr), p)
p = top_alone("--json", before=lambda: start(slow))
check("top: of one", not p or (p.returncode == 0 and not p.stderr
      and all(o["pipeline"] == slow and "pid" not in o for o in map(json.loads, p.stdout.splitlines()))
      and json.loads(p.stdout.splitlines()[-1])["ended"]), p)
one, two = start(endless), start(calm)
with socket.socket(socket.AF_UNIX) as s:               # whose process is gone
    s.bind(sock(999999998))
p, j = top_of_all(), top_of_all("--json")
os.remove(sock(999999998))
rows = {int(x.split()[0]): x for x in p.stdout.splitlines()[1:]}
check("top: of two", p.returncode == 0 and not p.stderr and {one.pid, two.pid} <= set(rows) and 999999998 not in rows
      and f"{len(rows)} pipelines run; 'gpipe top PID' shows one of them:" == p.stdout.splitlines()[0]
      and all(re.search(r"^ +\d+  [0-9.]+ s +\S+( k)? frames/s +" + re.escape(file) + "$", rows[x.pid])
              for x, file in ((one, endless), (two, calm))), p)
objects = {o["pid"]: o for o in map(json.loads, j.stdout.splitlines())}
check("top: of two, as JSON", j.returncode == 0 and valid(objects[one.pid]) and objects[one.pid]["pipeline"] == endless
      and objects[two.pid]["pipeline"] == calm, j)
one.send_signal(signal.SIGSTOP)
until(lambda: all(open(f"{task}/stat").read().rsplit(")", 1)[1].split()[0] == "T" for task in glob.glob(f"/proc/{one.pid}/task/*")))
all_asks = [spawn(*asks, stdout=subprocess.PIPE, stderr=subprocess.PIPE)       # each waits for a few seconds
            for asks in (["top"], ["top", str(one.pid)], ["set", str(one.pid), "depth=3"])]
(out, _), *told = [a.communicate(timeout=60) for a in all_asks]
one.send_signal(signal.SIGCONT)
check("top: of one that is stopped", re.search(rf"^ +{one.pid}  does not answer$", out, re.M), out)
for a, (_, err) in zip(all_asks[1:], told):
    check(f"{a.args[1]}: a run that is stopped", a.returncode == 2 and f"'{one.pid}' does not answer; is it stopped?" in err, err)
stop(one), stop(two)


# 16 connections, and no more
p = start(endless)
held = [socket.socket(socket.AF_UNIX) for _ in range(16)]
for c in held:
    c.settimeout(60)
    c.connect(sock(p.pid))
    c.recv(1)
for asks in (["top", str(p.pid)], ["set", str(p.pid), "depth=5"]):
    a = subprocess.run([gpipe, *asks], env=env, capture_output=True, text=True, timeout=60)
    check(f"{asks[0]}: 16 others", a.returncode == 2 and "16 others are connected to this run" in a.stderr, a)
for c in held:
    c.close()
stop(p)


# a run that was changed is not measured as a whole, and says so
p = start(endless, "-v")
done = subprocess.run([gpipe, "set", str(p.pid), "depth=5"], env=env, capture_output=True, text=True, timeout=60)
err, rc = stop(p)
check("set: why there is no account", done.returncode == 0 and rc == 130 and "busy" not in err
      and err.count("gpipe: there is no account of where the time went: the run was changed") == 1, err)


# what it reads may be anybody's
def served(reply, *args, after=None):
    """gpipe top at a socket that says `reply`, for ever if it is to be ended by `after`."""
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path("any"))
        s.listen()
        t = spawn("top", *args, path("any"), stdout=subprocess.PIPE if not after
                  else subprocess.DEVNULL, stderr=subprocess.PIPE)
        s.settimeout(60)
        c = s.accept()[0]
        c.settimeout(60)
        signaled = False
        try:
            end = time.time() + (60 if after else 0)
            c.sendall(reply)
            while after and t.poll() is None and time.time() < end:
                c.sendall(reply)
                if not signaled and time.time() > end - 59.5:
                    t.send_signal(after)
                    signaled = True
            if after:
                t.kill()                               # nothing once it has ended
        except OSError:
            pass
        c.close()
        os.remove(path("any"))
        try:
            out, err = t.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            t.kill()
            out, err = t.communicate()
        return out, err, t.returncode


plain = {"seconds": 1, "ended": False, "done": 1, "frames_per_s": 1, "bound_by": None, "sources": [],
         "stages": [{"name": "a", "frames": 1, "bytes": 1, "frames_per_s": 1, "bytes_per_s": 1}],
         "buffers": [{"name": "b", "from": "a", "to": "a", "depth": 4, "held": 1, "fill": 0.5}]}
for name, change in (("a name", {"stages": [dict(plain["stages"][0], name="\x1b[2Ja")]}),
                     ("a wide name", {"stages": [dict(plain["stages"][0], name="日本")]}),
                     ("a buffer", {"buffers": [dict(plain["buffers"][0], name="\x1b]0;x\x07")]}),
                     ("a fill", {"buffers": [dict(plain["buffers"][0], fill=1e30)]}),
                     ("a depth", {"buffers": [dict(plain["buffers"][0], depth=-2147483648)]}),
                     ("a rate", {"stages": [dict(plain["stages"][0], bytes_per_s=float("nan"))]}),
                     ("a time", {"seconds": 1e300}), ("a count", {"frames_per_s": -1})):
    out, err, rc = served((json.dumps(dict(plain, **change)) + "\n").encode())
    check(f"top: {name}", rc == 2 and "is not the socket of" in err and "\x1b" not in out + err, (rc, out, err))
for name, reply in (("no JSON", b"HTTP/1.1 400 Bad Request\r\n"), ("a list", b"[1]\n"),
                    ("deep", b"[" * 50000 + b"\n"), ("bytes", b"\xff\x00\x1b[2J\n")):
    out, err, rc = served(reply)
    check(f"top: {name}", rc == 2 and "is not the socket of" in err and "\x1b" not in out + err, (rc, out, err))
out, err, rc = served((json.dumps(plain) + "\n").encode(), "--json")
check("top: cut off", rc == 1 and "gone without a word" in err, (rc, err))
big = dict(plain, stages=2000 * plain["stages"])
out, err, rc = served((json.dumps(big) + "\n").encode(), after=signal.SIGINT)
check("top: a signal while it draws", rc == 130, (rc, err))

# very many stages
p = start(many)
late = socket.socket(socket.AF_UNIX)
late.connect(sock(p.pid))
objects = open(path("objects"), "w+")
t = spawn("top", "--json", sock(p.pid), stdout=objects)
with_stages = lambda: [o for o in map(json.loads, filter(lambda l: l.endswith("\n"), open(path("objects"))))
                       if o["stages"]]                 # the first may be too early
until(with_stages)
first = with_stages()[0]
check("many: all stages", valid(first) and len(first["stages"]) == READERS + 1
      and len(first["buffers"]) == READERS, (len(first["stages"]), len(first["buffers"])))
seen, screen, rc = on_terminal(["top", str(p.pid)], rows=10, cols=60, steps=[
    when(lambda l: "stages more" in l, settled), kill(signal.SIGINT)])
is_clean("many", screen, seen)
check("many: shown", any(any(f"and {READERS + 1 - 7} stages more" in l for l in s) for s in seen), seen[-1:])
time.sleep(2)
late.settimeout(60)
reader = late.makefile()
check("many: who reads late gets whole objects", all(valid(json.loads(reader.readline())) for _ in range(3)))
err, rc = stop(p)
check("many: ends", rc == 130, err)
check("many: top gets the last", t.wait(timeout=60) == 0
      and json.loads(list(open(path("objects")))[-1])["ended"], t.returncode)
late.close()
objects.close()

# no descriptor for another client: it waits, and the run does not spin
p = start(calm)
t = spawn("top", "--json", str(p.pid), stdout=subprocess.PIPE)
while not json.loads(t.stdout.readline())["done"]:     # all is open then
    pass
t.kill()
t.wait()
was = resource.prlimit(p.pid, resource.RLIMIT_NOFILE)
resource.prlimit(p.pid, resource.RLIMIT_NOFILE, (3, was[1]))
more = socket.socket(socket.AF_UNIX)
more.connect(sock(p.pid))


def ticks(pid):
    return sum(map(int, open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[11:13]))


before, since = ticks(p.pid), time.time()
time.sleep(1)
spent = (ticks(p.pid) - before) / os.sysconf("SC_CLK_TCK") / (time.time() - since)
check("no descriptors: no spinning", spent < 0.5, spent)
resource.prlimit(p.pid, resource.RLIMIT_NOFILE, was)
more.settimeout(60)
check("no descriptors: later", more.makefile().readline().startswith("{"))
more.close()
stop(p)
os.chmod(path("gpipe"), 0o755)
p = spawn(*run, endless, stderr=subprocess.PIPE)
time.sleep(0.7)
check("top: no socket where others may look", not os.path.exists(sock(p.pid)))
stop(p)
os.chmod(path("gpipe"), 0o700)


# == metrics ====================================================================
def scrape(at):
    with urllib.request.urlopen(at, timeout=60) as r:
        check("metrics: type", r.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        return r.read().decode()


def read(text):
    """Samples by name and labels. Says what breaks the rules of the text format."""
    wrong, types, helps, samples, order = [], {}, set(), {}, []
    if not text.endswith("\n"):
        wrong.append("no end of line")
    for l in text.splitlines():
        m = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", l)
        if m and m[1] == "HELP":
            wrong += [f"HELP twice: {l}"] * (m[2] in helps)
            helps.add(m[2])
            continue
        if m:
            wrong += [f"TYPE twice or late: {l}"] * (m[2] in types or m[2] in order)
            wrong += [f"TYPE: {l}"] * (m[3] not in ("counter", "gauge", "histogram"))
            types[m[2]] = m[3]
            continue
        m = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\]|\\[\\n"])*",?)*)'
                         r'\})? (-?[0-9.e+-]+|\+Inf|NaN)', l)
        if not m:
            wrong.append(f"a line: {l}")
            continue
        name = m[1]
        family = re.sub("_(bucket|sum|count)$", "", name)
        family = family if types.get(family) == "histogram" else name
        wrong += [f"no TYPE or HELP: {l}"] * (family not in types or family not in helps)
        wrong += [f"a family in pieces: {l}"] * (family in order[:-1])
        wrong += [f"a counter's name: {l}"] * (types.get(family) == "counter" and not name.endswith("_total"))
        if family not in order:
            order.append(family)
        labels = tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', m[2] or ""))
        wrong += [f"twice: {l}"] * ((name, labels) in samples)
        samples[name, labels] = float(m[3])
    for h in (n for n, t in types.items() if t == "histogram"):
        rows = [(float(k[1][-1][1]), v) for k, v in samples.items() if k[0] == h + "_bucket"]
        ok = rows == sorted(rows) and [v for _, v in rows] == sorted(v for _, v in rows)
        ok = ok and rows[-1][0] == float("inf") and rows[-1][1] == samples[h + "_count", ()]
        wrong += [f"buckets of {h}: {rows}"] * (not ok)
    return wrong, samples


def get(samples, name, **labels):
    return samples.get((name, tuple(labels.items())))


os.mkfifo(path("fifo"))
p = spawn(*run, "--metrics", "0", fifo, stderr=subprocess.PIPE)
at = re.search(r"http://127\.0\.0\.1:\d+/metrics", p.stderr.readline())[0]
with open(path("fifo"), "wb") as f:
    f.write(bytes(64 * 99))
    f.flush()
    for _ in range(1000):
        wrong, s = read(scrape(at))
        if (get(s, "gpipe_frames_out_total", source="read") or 0) \
                + (get(s, "gpipe_frames_dropped_total", source="read") or 0) == 99:
            break
        time.sleep(0.05)
    check("metrics: by the rules", not wrong, wrong)
    counts = [get(s, f"gpipe_frames_{k}_total", source="read") for k in ("in", "out", "dropped", "failed")]
    check("metrics: counts", counts == [99, 50, 49, 0], counts)
    check("metrics: a stage", get(s, "gpipe_stage_frames_total", stage="odd") == 50
          and get(s, "gpipe_stage_bytes_total", stage="odd") == 50 * 64
          and 0 < get(s, "gpipe_stage_busy_seconds_total", stage="odd") < 30, s)
    labels = dict(buffer="odd", **{"from": "odd"}, to="discard")
    check("metrics: a buffer", get(s, "gpipe_buffer_frames", **labels) == 0
          and get(s, "gpipe_buffer_slots", **labels) == 4, s)
    check("metrics: latency", get(s, "gpipe_latency_seconds_count") == 50
          and 0 < get(s, "gpipe_latency_seconds_sum"), s)
    check("metrics: build", any(k[0] == "gpipe_build_info" and v == 1 for k, v in s.items()))
    before = s
    time.sleep(0.2)
    s = read(scrape(at))[1]
    fell = [k for k, v in s.items() if re.search("_total$|_bucket$|_count$", k[0]) and v < before[k]]
    check("metrics: counters never fall", not fell, fell)
    try:
        urllib.request.urlopen(at.replace("/metrics", "/other"), timeout=60)
        check("metrics: another path", False)
    except urllib.error.HTTPError as e:
        check("metrics: another path", e.code == 404)
    taken = subprocess.run([gpipe, *run, "--metrics", at.split(":")[2].split("/")[0], slow],
                           env=env, capture_output=True, text=True)
    check("metrics: a port in use", taken.returncode == 4 and "choose another port" in taken.stderr, taken.stderr)
    port = int(at.split(":")[2].split("/")[0])
    greedy = socket.create_connection(("127.0.0.1", port))         # asks, and never reads
    greedy.setblocking(False)
    try:
        for _ in range(2000):
            greedy.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    except OSError:
        pass
    check("metrics: beside one that never reads", not read(scrape(at))[0])
    half = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
    for s in half:
        s.send(b"GET /metrics HTTP/1.1\r\n")          # and no more for now
    check("metrics: beside 30 that have not asked yet", not read(scrape(at))[0])
    for s in half:                                     # each is still there, or was told to go
        s.close()
    for method, want in (("HEAD", 200), ("POST", 405)):
        try:
            request = urllib.request.Request(at, method=method, data=b"x" if want == 405 else None)
            code = urllib.request.urlopen(request, timeout=60).status
        except urllib.error.HTTPError as e:
            code = e.code
        check(f"metrics: {method}", code == want, code)
    held = socket.create_connection(("127.0.0.1", int(at.split(":")[2].split("/")[0])))
    held.send(b"GET /metrics HTTP/1.1\r\n")        # and never the rest
err = p.communicate(timeout=60)[1]
held.close()
greedy.close()
check("metrics: the account", p.returncode == 0 and "99 frames in, 50 out, 49 dropped" in err, err)
for bad in ("x", "99999", ":80", "127.0.0.1:"):
    p = subprocess.run([gpipe, *run, "--metrics", bad, slow], env=env, capture_output=True, text=True)
    check(f"metrics: '{bad}'", p.returncode == 2 and "is not a port" in p.stderr, p.stderr)
p = spawn(*run, "--metrics", "localhost:0", endless, stderr=subprocess.PIPE)
at = re.search(r"http://\S+", p.stderr.readline())[0]
check("metrics: localhost", not read(scrape(at))[0])
stop(p)
check("nothing stays", os.listdir(path("gpipe")) == [], os.listdir(path("gpipe")))

# == edits: --watch, gpipe set ==================================
tune_text = """depth: 4
vars: {gain: 2}
buffers: {a: {dtype: f32, shape: [16]}, b: {like: a}}
stages:
  - {use: generate, out: a, frames: 0, rate: 400}
  - {use: scale, a: gain, b: 0, out: b}
  - {name: pass, use: lua, script: pass.lua, workers: 1}
  - {use: write, path: tuned.raw, durable: none}
"""
pass_text = "stateless = true\nfunction process(f, x, y) y:copy(x) end\n"


def ramp(gains):
    """Is tuned.raw the ramp times one of the gains after the other?"""
    data = open(path("tuned.raw"), "rb").read()
    values, at = struct.unpack(f"{len(data) // 4}f", data), 0
    for i, v in enumerate(values):
        while at < len(gains) and v != i * gains[at]:
            at += 1
        if at == len(gains):
            return f"element {i} is {v}"
    return True


class Run:
    """A gpipe run whose stderr is read line by line."""
    def __init__(self, *args, text=tune_text):
        put("pass.lua", pass_text)
        put("tune.yaml", text)
        if os.path.exists(path("tuned.raw")):
            os.remove(path("tuned.raw"))
        self.said = tempfile.NamedTemporaryFile("w+")
        self.p = spawn(*run, *args, path("tune.yaml"), stderr=self.said)
        check("edits: a socket", until(lambda: connected(self.p.pid)), args)

    def err(self):
        return open(self.said.name).read()

    def says(self, what, times=1, seconds=60):
        return until(lambda: len(re.findall(what, self.err())) >= times or self.p.poll() is not None, seconds) \
            and len(re.findall(what, self.err())) >= times

    def set(self, *settings):
        return subprocess.run([gpipe, "set", str(self.p.pid), *settings], env=env, capture_output=True, text=True, timeout=60)

    def end(self, name, gains):
        self.p.send_signal(signal.SIGINT)
        self.p.wait(60)
        err = self.err()
        n = re.search(r"(\d+) frames? in, (\d+) out, 0 dropped, 0 failed, 0 cancelled", err)
        check(f"{name}: the account", n and n[1] == n[2] and self.p.returncode == 130, err)
        if n and n[1] == "0":              # it was over before it began
            return err
        check(f"{name}: all frames", n and os.path.getsize(path("tuned.raw")) == 64 * int(n[1]), err)
        check(f"{name}: the bytes", ramp(gains) is True, ramp(gains))
        return err


r = Run("--watch")
put("tune.yaml", tune_text.replace("depth: 4", "depth: 7"))                     # in place
check("watch: a knob", r.says(r"retuned: depth 4 -> 7; pause [\d.]+ ms .*frames/s before, .* after"), r.err())
put("new.yaml", tune_text.replace("gain: 2", "gain: 4"))                        # by rename
os.rename(path("new.yaml"), path("tune.yaml"))
check("watch: a var, by rename", r.says(r"retuned: depth 7 -> 4, vars.gain 2 -> 4;"), r.err())
put("pass.lua", "stateless = true\nfunction process(f, x, y) for i = 1, 16 do y[i] = x[i] * 2 end end\n")
check("watch: a script", r.says(r"retuned: .*pass.lua;"), r.err())
put("tune.yaml", tune_text.replace("gain: 2", "gain: [")[:120])
check("watch: half of it", r.says(r"tune.yaml:\d+:\d+: error: .*(\n.*){0,4}the run goes on as it was"), r.err())
os.remove(path("tune.yaml"))
check("watch: deleted", r.says(r"tune.yaml: error: there is no such file"), r.err())
os.mkdir(path("tune.yaml"))
check("watch: a folder", r.says(r"tune.yaml: error: this is a folder"), r.err())
os.rmdir(path("tune.yaml"))
for what, to, says in (("shape: [16]", "shape: [32]", r"tune.yaml:3:11: error: buffer 'a' is f32 \[16\] in the run and f32 \[32\] here"),
                       ("rate: 400", "rate: 300", r"tune.yaml:5:\d+: error: 'rate' cannot change while the run goes on: stage 'generate' is a source"),
                       ("script: pass.lua,", "in: a, script: pass.lua,", r"tune.yaml:6:\d+: error: ")):
    check(f"watch: {to}", what in tune_text, tune_text)
    put("tune.yaml", tune_text.replace(what, to))
    check(f"watch: {to}, which is refused", r.says(says), r.err())
put("tune.yaml", tune_text.replace("gain: 2", "gain: 4"))
check("watch: repaired", r.says(r"gpipe: nothing changes\n"), r.err())
put("tune.yaml", tune_text.replace("a: gain, b: 0, out: b", "in: a, a: gain, b: 0, out: b"))
put("pass.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) en\n")
check("watch: a script that is wrong", r.says(r"pass.lua:\d+"), r.err())
put("pass.lua", pass_text)
for i in range(20):                                # ten times a second, half of them half written
    put("tune.yaml", tune_text.replace("depth: 4", f"depth: {3 + i % 5}")[:None if i % 2 else 70])
    time.sleep(0.1)
put("tune.yaml", tune_text.replace("depth: 4", "depth: 11"))
check("watch: ten times a second", r.says(r"retuned: .*-> 11"), r.err())
r.end("watch", [2, 4, 8, 2, 4, 2])
more, other = ("  - {name: %s, use: discard, in: b}\n" % name for name in ("more", "other"))
r = Run("--watch", text=tune_text + more)
for i, (text, at) in enumerate(((tune_text + more + other, "10:12"), (tune_text, "5:3"), (tune_text + more + other, "10:12"))):
    put("tune.yaml", text)
    check(f"watch: a stage that comes or goes, {i}", r.says("the run goes on as it was", i + 1)
          and f"tune.yaml:{at}: error: " in r.err(), r.err())
r.end("watch: stages that come or go", [2])

# Shallower rings are asked for while the launcher may wait for a launch to fill: no frame is lost, in one of many runs.
put("hitch.lua", """stateless = true
function process(f, x, y)
  local t = os.clock()
  while f.index % 12 == 0 and os.clock() - t < 0.004 do end
  y:copy(x)
end
""")
file = put("hitch.yaml", f"""
depth: 16
batch_wait: 20ms
buffers: {{src: {{dtype: f32, shape: [16, 8]}}, slow: {{like: src}}}}
stages:
  - {{use: generate, pattern: noise, rate: 2500, frames: 2000, out: src}}
  - {{use: scale, in: src, a: 0.5, out: half}}
  - {{use: lua, script: hitch.lua, in: half, out: slow}}
  - {{use: decimate, in: slow, frames: 2, out: two}}
  - {{use: hold, frames: 2, in: two, out: held}}
  - {{use: expr, in: {{a: slow, b: held}}, out: d, expr: a - b}}
  - {{use: write, in: d, path: hitch.raw}}
""")
right, sets, wrong = 0, 0, None
for _ in range(4):                     # three side by side
    several = [spawn(*run, "--set", f"stages.write.path=hitch{i}.raw", file, stderr=subprocess.PIPE) for i in range(3)]
    until(lambda: all(connected(p.pid) or p.poll() is not None for p in several))
    asked = [spawn("set", str(p.pid), "depth=2", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for p in several]
    sets += sum(not a.wait(60) for a in asked)
    time.sleep(0.05)
    for p in several:
        if p.poll() is None:
            p.send_signal(signal.SIGINT)
        err = p.communicate(timeout=60)[1]
        n = re.search(r"(\d+) frames? in, (\d+) out, 0 dropped, 0 failed, \d+ cancelled", err)
        if n and (p.returncode == 130 or (p.returncode, n[1]) == (0, "2000")):
            right += 1
        else:
            wrong = p.returncode, err
check("set in the wait for a launch: the run goes on", right == 12 and sets, (right, sets, wrong))

r = Run(text=tune_text.replace(", b: {like: a}", ""))      # 'b' and 'pass' are not among its buffers
done = r.set("buffers.pass.depth=9")
check("set: a buffer that the file does not name", done.stdout.startswith("retuned: buffers.pass.depth = 9; pause"), done)
put("tune.yaml", tune_text)
r.end("set: a buffer", [2])

r = Run(text=tune_text.replace("  - {name: pass", "  - {name: again, use: scale, a: 1, b: 0}\n  - {name: pass"))
no = r.set("fuse=none")
check("set: what is fused stays so", no.returncode == 3 and "stage 'scale' would be another kernel" in no.stderr, no)
r.end("set: what is fused", [2])

for how in ["--watch"], []:
    r = Run(*how)
    put("tune.yaml", tune_text.replace("gain: 2", "gain: 9").replace("use: scale", "use: scalee"))
    if how:
        check("set: the file is wrong", r.says("no stage kind 'scalee'"), r.err())
    done = r.set("depth=5", "stages.scale.b=0")
    check(f"set: the file was edited meanwhile {how}", done.stdout.startswith("retuned: depth 4 -> 5"), done)
    if how:
        put("tune.yaml", tune_text.replace("use: scale", "use: scalee").replace("depth: 4", "depth: 6"))
        check("watch: its own mistake, not what was set", r.says("no stage kind 'scalee'", 2) and "--set" not in r.err(),
              r.err())
    r.end(f"set: the file was edited meanwhile {how}", [2])

r = Run()
done = r.set("depth=6", "stages.pass.workers=3")
check("set", done.returncode == 0 and re.match(r"retuned: depth 4 -> 6, stages.pass.workers 1 -> 3; pause", done.stdout), done)
check("set: the run says it", r.says(r"retuned: depth 4 -> 6"), r.err())
same = r.set("depth=6")
check("set: the same", same.returncode == 0 and same.stdout == "nothing changes\n", same)
for setting, code in (("dept=3", 2), ("stages.none.workers=2", 2), ("depth=no", 2), ("depth", 2), ("depth=70000", 2),
                      ("stages.write.path=x.raw", 2)):
    no, plain = r.set(setting), subprocess.run([gpipe, *run, "-q", "--set", setting, path("tune.yaml")], env=env, text=True,
                                               capture_output=True) if "path" not in setting and "=" in setting else None
    check(f"set: {setting}", no.returncode == code and "error" in no.stderr, no)
    if plain:
        check(f"set: {setting}, as --set has it", plain.returncode == code and plain.stderr.splitlines()[0] in no.stderr,
              (plain.stderr, no.stderr))
done = r.set("vars.gain=3", "sync=block")
check("set: a var", "vars.gain 2 -> 3, sync = block" in done.stdout, done)
done = r.set("priority=low", "stages.pass.priority=normal")
check("set: priorities", "priority = low" in done.stdout and "stages.pass.priority = normal" in done.stdout, done)
done = r.set("latency=5ms", "depth=9", "batch=4")
check("set: a latency", "latency = 5ms" in done.stdout, done)
no = r.set("batch_wait=1ms")
check("set: a wait beside it", no.returncode == 2 and "'latency' chooses how long a launch waits" in no.stderr, no)
mode = os.stat(sock(r.p.pid)).st_mode & 0o777, os.stat(path("gpipe")).st_mode & 0o777
check("set: for the owner alone", mode == (0o600, 0o700), mode)
many_sets = [subprocess.Popen([gpipe, "set", str(r.p.pid), f"depth={d}"], env=env, stdout=subprocess.PIPE, text=True)
             for d in (3, 9, 5)]
check("set: by several at once", all(s.communicate(timeout=60)[0] and not s.returncode for s in many_sets))
for i in range(20):                                # of a source of 400 frames/s, thousands of which are made by now
    said = r.set(f"depth={10 + i % 2}").stdout
    rates = re.search(r"; ([\d.]+) frames/s before, ([\d.]+) after", said)
    if rates and all(0 < float(x) < 900 for x in rates.groups()):
        break                                      # a source that was held up makes good for that at another rate
check("set: rates are those of the source", rates and all(0 < float(x) < 900 for x in rates.groups()), said)
with socket.socket(socket.AF_UNIX) as s:           # what is no setting
    s.connect(sock(r.p.pid))
    s.sendall(b"{[nonsense\n")
    s.settimeout(60)
    got = b""
    while b'"exit"' not in got:
        more = s.recv(65536)
        if not more:
            break
        got += more
check("set: nonsense", b"this is not a list of settings" in got or b"errors" in got, got[-300:])
if os.geteuid() == 0:                              # by another user: by the socket in an open folder, by number
    program = path("gpipe-of-all")
    shutil.copy(gpipe, program)
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "set"]
    os.chmod(path("."), 0o755), os.chmod(path("gpipe"), 0o755)
    no = subprocess.run([*other, sock(r.p.pid), "depth=9"], env=env, capture_output=True, text=True)
    check("set: by another user", no.returncode == 2 and "Permission denied" in no.stderr, no)
    os.chmod(path("."), 0o700), os.chmod(path("gpipe"), 0o700)
    no = subprocess.run([*other, str(r.p.pid), "depth=9"], env=env, capture_output=True, text=True)
    check("set: by another user, by its number", no.returncode != 0 and "retuned" not in no.stdout, no)
    os.remove(program)
pid = r.p.pid
r.end("set", [2, 3])
for i in range(3):                                 # several, while the run is still being set up
    put("late.lua", 'io.popen("sleep 0.2"):close()\n' + pass_text)
    r = Run(text=tune_text.replace("pass.lua", "late.lua"))
    many_sets = [subprocess.Popen([gpipe, "set", str(r.p.pid), f"depth={d}"], env=env, stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.PIPE) for d in (3, 9, 5)]
    said = [(*s.communicate(timeout=60), s.returncode) for s in many_sets]
    check(f"set: before the first frame, {i}", all(code == 0 and re.match("retuned: depth", out) for out, _, code in said), said)
    r.end("set: before the first frame", [2])
gone = subprocess.run([gpipe, "set", str(pid), "depth=6"], env=env, capture_output=True, text=True)
check("set: one that has ended", gone.returncode == 2 and "no pipeline of yours runs as process" in gone.stderr, gone)
other = subprocess.run([gpipe, "set", str(os.getpid()), "depth=6"], env=env, capture_output=True, text=True)
check("set: of another program", other.returncode == 2 and "no pipeline of yours" in other.stderr, other)
few = subprocess.run([gpipe, "set", str(pid)], env=env, capture_output=True, text=True)
check("set: nothing", few.returncode == 2 and "no setting given" in few.stderr, few)

r = Run(text=tune_text.replace("shape: [16]", "shape: [16, 1048576]").replace("rate: 400", "rate: 5")
        .replace("  - {use: write, path: tuned.raw, durable: none}", "  - {use: discard}"))
no = r.set("depth=60000")
check("set: more than there is memory", no.returncode == 4 and re.search(
      r"tune.yaml:3:\d+: error: the pipeline needs .* of host memory; there are", no.stderr), no)
check("set: the old plan goes on", r.set("depth=4").stdout == "nothing changes\n" and r.p.poll() is None)
r.p.send_signal(signal.SIGINT)
check("set: to its end", r.p.wait(60) == 130 and " 0 dropped, 0 failed, 0 cancelled" in r.err(), r.err())

times_cu = "extern \"C\" __global__ void times(const float *x, const float *by, float *y, int n)\n{\n" \
           "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n)\n        y[i] = x[i] * by[0] * %d;\n}\n"


def put_by(value):
    np_header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
    np_header += b" " * (63 - (10 + len(np_header)) % 64) + b"\n"
    with open(path("new.npy"), "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(np_header)) + np_header + struct.pack("<f", value))
    os.rename(path("new.npy"), path("by.npy"))


put("times.cu", times_cu % 2)
put_by(1)
r = Run("--watch", text=tune_text.replace("b: {like: a}}", "b: {like: a}, by: {const: by.npy}}").replace(
    "  - {use: scale, a: gain, b: 0, out: b}\n",
    "  - {name: times, use: kernel, source: times.cu, in: {x: a, by: by}, out: {y: b}, grid: 1, block: 16,\n"
    "     args: [x, by, y, {i32: 16}]}\n"))
put("times.cu", times_cu % 4)
check("watch: a kernel", r.says(r"retuned: .*times.cu;"), r.err())
put_by(2)
check("watch: a constant", r.says(r"retuned: .*by.npy;"), r.err())
r.end("watch: kernels and constants", [2, 4, 8])

for i in range(6):                                 # Ctrl-C about when it pauses
    r = Run()
    s = subprocess.Popen([gpipe, "set", str(r.p.pid), f"depth={5 + i}"], env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    time.sleep(0.004 * i)
    r.end(f"Ctrl-C in the pause {i}", [2])
    s.communicate(timeout=60)

piped = subprocess.run([gpipe, *run, "--watch", "-"], env=env, input=tune_text, capture_output=True, text=True)
check("watch: of standard input", piped.returncode == 2 and "--watch: the pipeline came from standard input" in piped.stderr, piped)

# system() would have the process leave out SIGINT while the script waits for what it started.
put("waits.lua", f"function process(f, x, y)\n  y:copy(x)\n  os.execute('echo >> {path('waited')}; sleep 0.3')\nend\n")
put("waits.yaml", "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n  - {use: generate, frames: 100000, out: x}\n"
    "  - {use: lua, script: waits.lua}\n  - {use: discard}\n")
p = spawn("run", "--device", "cpu", path("waits.yaml"), stderr=subprocess.PIPE)
until(lambda: os.path.exists(path("waited")))
said, code = stop(p)
check("Ctrl-C while a script waits for what it started", code == 130 and "stopping" in said, (code, said))

r = Run("--watch")
check("set: in a run with --watch", r.set("depth=8").returncode == 0 and r.says("retuned: depth 4 -> 8"), r.err())
put("tune.yaml", tune_text.replace("depth: 4", "depth: 5"))
check("watch: what was set holds, and that is said", r.says("gpipe: nothing changes; what 'gpipe set' has set stays"),
      r.err())
r.end("watch: what was set holds", [2])
for settings in (["depth=2"], ["depth=2", "streams=3"]):
    told = subprocess.run([gpipe, "set", *settings], env=env, capture_output=True, text=True)
    check(f"set: no process before {settings}", told.returncode == 2 and "no process given; write gpipe set PID" in told.stderr,
          told.stderr)
r = Run()
with socket.socket(socket.AF_UNIX) as s:
    s.connect(sock(r.p.pid))
    s.sendall(b"\0[]\n")
    answer = s.makefile("rb").read()
check("a line with a zero byte is refused", b"this is not a list of settings" in answer and r.p.poll() is None, answer[-300:])
r.end("a line with a zero byte", [2])
measured = subprocess.run([gpipe, *run, "--watch", "--report", path("r.json"), path("tune.yaml")], env=env, capture_output=True,
                          text=True)
check("watch: and --report", measured.returncode == 2 and "measured as a whole" in measured.stderr, measured)

r = Run()
told = []
seen, screen, code = on_terminal(["top", str(r.p.pid)], steps=[
    when(lambda l: "settings:" in l and "depth 4" in l, lambda pid, fd, screen: told.append(r.set("depth=5")) and None),
    when(lambda l: "settings:" in l and "depth 5" in l, kill(signal.SIGINT))], seconds=60)
check("top: the settings", code == 130 and told[0].returncode == 0 and r.says("retuned: depth 4 -> 5"), (seen[-3:], r.err()))
r.end("top: the settings", [2])
check("nothing stays behind edits", os.listdir(path("gpipe")) == [], os.listdir(path("gpipe")))

total("live")
