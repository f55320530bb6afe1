#!/usr/bin/env python3
"""service.py GPIPE: gpipe run --service, beside a service manager that is this program: what it is told, what it asks."""
import os, re, shutil, signal, socket, subprocess, time, urllib.error, urllib.request
from kit import bytes_of, check, env, gpipe, path, put, spawn, total, until

endless = """
buffers: {raw: {dtype: u8, shape: [4]}}
stages:
  - {use: generate, rate: 100, out: raw}
  - {name: sum, use: expr, expr: in * 0 + %s}
  - {use: cast, dtype: u8}
  - {use: write, path: out.raw, live: true}
"""
os.makedirs(path("runtime"))
os.chmod(path("runtime"), 0o755)                       # as systemd makes it


class Manager:
    """Starts a service, and reads what it says to $NOTIFY_SOCKET."""
    def __init__(self, *args, text=endless % 1, at="notify.sock", before=False, **more):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.settimeout(60)
        name = "\0gpipe-test-%d" % os.getpid() if at == "@" else path(at)
        if at != "@" and os.path.exists(name):
            os.remove(name)
        self.sock.bind(name)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.setblocking(False)
            try:
                while before:
                    other.sendto(b"another=1", name)
            except BlockingIOError:
                pass
        self.file = put("p.yaml", text)
        self.said, self.log = [], path("log")
        self.env = dict(env, NOTIFY_SOCKET=name.replace("\0", "@"), RUNTIME_DIRECTORY=path("runtime"), **more)
        self.env.pop("JOURNAL_STREAM", None)
        with open(self.log, "w") as log:
            if more.get("JOURNAL_STREAM"):
                self.env["JOURNAL_STREAM"] = "%d:%d" % (os.fstat(log.fileno()).st_dev, os.fstat(log.fileno()).st_ino)
            self.p = spawn("run", "--service", "--device", "cpu", *args, self.file, env=self.env, stderr=log, cwd=path(""))

    def hear(self, what):
        """The next message with a line that begins so; None: it ended without one. Others go to `said`."""
        end = time.time() + 60
        while time.time() < end:
            try:
                self.sock.settimeout(0.1 if self.p.poll() is not None else 60)
                m = self.sock.recv(4096).decode()
            except TimeoutError:
                return None
            self.said += m.split("\n")
            if any(x.startswith(what) for x in m.split("\n")):
                return m

    def lines(self):
        with open(self.log) as f:
            return f.read().splitlines()

    def logs(self, what):
        return until(lambda: any(what in x for x in self.lines()))

    def end(self, by=signal.SIGTERM):
        self.p.send_signal(by)
        return self.p.wait(60)


# ---- ready, alive, stopping
for at in "notify.sock", "@":
    m = Manager(at=at)
    check(f"{at}: ready", m.hear("READY=1") == "READY=1", m.said)
    alive = m.hear("WATCHDOG=1")
    check(f"{at}: alive", re.fullmatch(r"WATCHDOG=1\nSTATUS=\d+ frames?( in, none done yet)?, \d+ frames/s(, '[^']+' holds "
                                       r"back the rest)?", alive or ""), alive)
    check(f"{at}: SIGTERM ends it with 0", m.end() == 0, m.lines())
    check(f"{at}: stopping", m.hear("STOPPING=1") == "STOPPING=1", m.said)
    check(f"{at}: ready once", m.said.count("READY=1") == 1, m.said)
m = Manager()
m.hear("READY=1")
socks = [x for x in os.listdir(path("runtime")) if x == f"{m.p.pid}.sock"]
check("the socket is in its folder", len(socks) == 1, os.listdir(path("runtime")))
told = subprocess.run([gpipe, "set", path(f"runtime/{m.p.pid}.sock"), "depth=5"], env=env, capture_output=True, text=True,
                      timeout=60)
check("... and is found by its path", told.returncode == 0 and "depth" in told.stdout, told)
check("SIGINT is as ever", m.end(signal.SIGINT) == 130, m.lines())
check("... and removes the socket", os.listdir(path("runtime")) == [], os.listdir(path("runtime")))
m = Manager(text=endless.replace("rate: 100", "frames: 3") % 1)
check("a short run is ready, then over", m.p.wait(60) == 0 and m.hear("STOPPING=1"), m.said)
check("... in this order", [x for x in m.said if x in ("READY=1", "STOPPING=1")] == ["READY=1", "STOPPING=1"], m.said)
check("... with all frames", len(bytes_of(path("out.raw"))) == 12, "")

# ---- a stage that hangs
put("hang.lua", "function process(f, x, y)\n  y:copy(x)\n  if f.index == 3 then io.open('hangs', 'w'):close() while true do end end\n"
    "end\n")
m = Manager("--stop-timeout", "1500ms", text=endless[:endless.index("  - {name: sum")] + "  - {use: lua, script: hang.lua}\n"
            "  - {use: write, path: whole.npy}\n")
m.hear("READY=1")
check("a stage hangs", until(lambda: os.path.exists(path("hangs"))), m.lines())
check("... and the run ends by itself", m.end() == 143, m.lines())
said = "\n".join(m.lines())
check("... and names the stage", "stage 'lua' has been busy with frame 3 for " in said and "since it was to end, and is stopped at once" in said, said)
check("... halfway, so that it has ended by then", "the run has gone on for 1 s since" in said, said)
check("... with what there is", re.search(r"[1-9]\d* cancelled", said) and os.path.exists(path("whole.npy.partial"))
      and not os.path.exists(path("whole.npy")), (said, os.listdir(path(""))))

# ---- reload
os.remove(path("out.raw"))
m = Manager()
m.hear("READY=1")
until(lambda: os.path.exists(path("out.raw")) and 1 in bytes_of(path("out.raw")))
put("p.yaml", endless % 2)
m.p.send_signal(signal.SIGHUP)
loads = m.hear("RELOADING=1")
now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
since = int(loads.rpartition("=")[2])
check("reload: told", re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", loads) and now - 60e6 < since <= now, (loads, now))
check("reload: ready again", m.hear("READY=1") == "READY=1", m.said)
check("reload: done", m.logs("retuned: "), m.lines())
until(lambda: 2 in bytes_of(path("out.raw")))
put("p.yaml", endless % "x")
m.p.send_signal(signal.SIGHUP)
check("reload: of a mistake", m.hear("RELOADING=1") and m.hear("READY=1"), m.said)
check("reload: it goes on as it was", m.logs("the run goes on as it was"), m.lines())
check("reload: nothing saved", not m.p.send_signal(signal.SIGHUP) and m.hear("RELOADING=1") and m.hear("READY=1"), m.said)
check("reload: it ended well", m.end() == 0, m.lines())
values = set(bytes_of(path("out.raw")))
check("reload: both versions ran", values == {1, 2}, values)

# ---- a manager that is slow: its queue is full
m = Manager(before=True)
check("a full queue: the run begins", until(lambda: os.path.exists(path(f"runtime/{m.p.pid}.sock"))), m.lines())
check("a full queue: ready", m.hear("READY=1") == "READY=1", m.said)
m.end()

# ---- the log
LOG = [({}, r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z %s ", ("error", "warning", "info")),
       ({"JOURNAL_STREAM": "1"}, "<%s>", ("3", "4", "6"))]
for more, form, level in LOG:
    error, warning, info = (form % x for x in level)
    before = time.time()
    m = Manager(**more)
    m.hear("READY=1")
    put("p.yaml", endless % "x")
    m.p.send_signal(signal.SIGHUP)
    m.logs("goes on as it was")
    m.end()
    lines = m.lines()
    name = f"log, {level[0]}: "
    check(name + "each line has a level", lines and all(re.match("(%s|%s|%s)." % (error, warning, info), x) for x in lines),
          lines)
    at = next(i for i, x in enumerate(lines) if " error: " in x.partition("Z error")[2] or (more and " error: " in x))
    check(name + "an error, with its lines", all(re.match(error, x) for x in lines[at:at + 3]) and "^" in lines[at + 2], lines)
    check(name + "words", all(re.match(info, x) for x in lines if "stopping" in x or "frames in" in x), lines)
    check(name + "stopping is said", any("gpipe: stopping" in x for x in lines), lines)
    if not more:
        t = lines[-1].split()[0]
        at = subprocess.run(["date", "-u", "-d", t, "+%s"], capture_output=True, text=True).stdout
        check(name + "the time", before - 1 <= int(at) <= time.time(), (t, at))

# ---- health
m = Manager("--metrics", "0")
m.hear("READY=1")
m.logs("metrics: ")
url = next(x for x in m.lines() if "metrics: " in x).rpartition("http")[2].rpartition("/")[0]


def get(name):
    try:
        with urllib.request.urlopen("http" + url + name, timeout=60) as r:
            return r.status, r.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


check("health: running", get("/health") == (200, "running\n"), get("/health"))
check("health: metrics beside it", get("/metrics")[0] == 200 and get("/other")[0] == 404, "")
m.end()

# ---- what is refused, before anything runs
BAD = [("a short watchdog", {"WATCHDOG_USEC": "500000"}, [], "WatchdogSec= must be 2s at least"),
       ("no path", {"NOTIFY_SOCKET": "notify.sock"}, [], "NOTIFY_SOCKET 'notify.sock' is no path"),
       ("a report", {}, ["--report", path("r.json")], "--service: a run with --report")]
for name, more, args, what in BAD:
    r = subprocess.run([gpipe, "run", "--service", *args, put("p.yaml", endless % 1)], env=dict(env, **more), cwd=path(""),
                       capture_output=True, text=True, timeout=60)
    check(name, r.returncode == 2 and what in r.stderr, r)
m = Manager(WATCHDOG_USEC="500000", WATCHDOG_PID="1")
check("another's watchdog", m.hear("READY=1") and m.end() == 0, m.lines())
os.remove(path("notify.sock"))
r = spawn("run", "--service", "--device", "cpu", put("p.yaml", endless.replace("rate: 100", "frames: 3") % 1),
          env=dict(env, NOTIFY_SOCKET=path("notify.sock")), cwd=path(""), stderr=subprocess.PIPE)
check("a manager that is gone", r.wait(60) == 0, r.stderr.read())

# ---- the unit of the topic
unit = re.search(r"```ini\n(.*?)```", open("engine/cli/topics/service.md").read(), re.S)[1]
put("gpipe-camera.service", unit.replace("/usr/bin/gpipe", gpipe).replace("User=camera\n", ""))
if shutil.which("systemd-analyze"):
    r = subprocess.run(["systemd-analyze", "verify", path("gpipe-camera.service")], capture_output=True, text=True)
    check("the unit", r.returncode == 0 and not r.stderr, r)
else:
    print("SKIPPED, no systemd-analyze: the unit of the topic")
total("service")
