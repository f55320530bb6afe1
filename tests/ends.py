#!/usr/bin/env python3
"""ends.py GPIPE - how a run ends: signals, pipes whose reader goes, what a dead one left
behind. Waits for what is to happen, never for how long it takes. Prints a total; exit 1
after a failure."""
import atexit, os, pty, re, signal, socket, subprocess, sys, tempfile, time

gpipe = os.path.abspath(sys.argv[1])
tmp = tempfile.TemporaryDirectory()
os.chmod(tmp.name, 0o700)
env = dict(os.environ, XDG_RUNTIME_DIR=tmp.name, TERM="xterm")
passed, failed, children = 0, [], []
for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE):
    signal.signal(sig, signal.SIG_DFL)                 # what gpipe inherits


@atexit.register
def end_children():
    for p in children:
        if p.poll() is None:
            p.kill()
            p.wait()


def check(name, ok, what=""):
    global passed
    if ok:
        passed += 1
    else:
        failed.append(name)
        print(f"FAILED: {name}: {what!r:.2000}")


def path(name):
    return os.path.join(tmp.name, name)


def put(name, text):
    with open(path(name), "w") as f:
        f.write(text)
    return path(name)


def read(name):
    try:
        with open(path(name)) as f:
            return f.read()
    except OSError:
        return ""


def until(true, seconds=60):
    end = time.time() + seconds
    while not true() and time.time() < end:
        time.sleep(0.02)
    return true()


def spawn(*args, **more):
    """gpipe, which ends with this test whatever happens."""
    more = {"env": env, "text": True, "stderr": subprocess.PIPE, **more}
    children.append(subprocess.Popen([gpipe, *args], **more))
    return children[-1]


def end(p, name, seconds=60):
    """What it says and its exit code, -N when signal N ended it."""
    try:
        out, err = p.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        check(f"{name}: it ends", False, p.args)
        p.kill()
        out, err = p.communicate()
    return err or "", p.returncode


def frames(folder):
    try:
        return len([n for n in os.listdir(path(folder)) if not n.startswith(".")])
    except FileNotFoundError:
        return 0


# == SIGHUP =====================================================================
slow = put("slow.yaml", """stall_timeout: 0
buffers: {a: {dtype: u8, shape: [64]}}
stages:
  - {use: generate, out: a, rate: 200}
  - {use: write, path: "out/%05d.raw"}
""")


def started(*args, out="out", **more):
    subprocess.run(["rm", "-rf", path(out)])
    p = spawn("run", "--device", "cpu", *args, slow, **more)
    check("frames come", until(lambda: frames(out) > 2), args)
    return p


def accounted(text):
    """Frames in, when all of them came out."""
    m = re.search(r"gpipe: (\d+) frames in, (\d+) out, 0 dropped, 0 failed, 0 cancelled", text)
    return int(m.group(1)) if m and m.group(1) == m.group(2) else None


p = started("--report", path("hup.json"))
p.send_signal(signal.SIGHUP)
p.send_signal(signal.SIGHUP)                           # a shell sends one, then the kernel
time.sleep(0.1)
try:
    p.send_signal(signal.SIGHUP)
except ProcessLookupError:
    pass
err, rc = end(p, "SIGHUP")
check("SIGHUP: exit", rc == 129, (rc, err))
check("SIGHUP: drains", accounted(err) == frames("out") and '"outcome": "drained"' in read("hup.json"),
      (err, frames("out")))
p = started()
p.send_signal(signal.SIGHUP)
p.send_signal(signal.SIGTERM)
err, rc = end(p, "SIGHUP, SIGTERM")
check("SIGHUP, then SIGTERM", rc == 143, (rc, err))

# a terminal that is closed: nothing can be said any more, and the run still drains
subprocess.run(["rm", "-rf", path("out")])
pid, fd = pty.fork()
if pid == 0:
    os.execve(gpipe, [gpipe, "run", "--device", "cpu", "--report", path("tty.json"), slow], env)
check("a terminal: frames come", until(lambda: frames("out") > 2))
os.close(fd)
rc = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
check("a closed terminal", rc == 129 and '"outcome": "drained"' in read("tty.json"), rc)

p = started(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
was = frames("out")
p.send_signal(signal.SIGHUP)
check("nohup: it goes on", until(lambda: frames("out") > was + 50), frames("out"))
p.send_signal(signal.SIGINT)
err, rc = end(p, "nohup")
check("nohup: exit", rc == 130, (rc, err))

# == sockets of the dead ========================================================
gone = subprocess.Popen(["true"])
gone.wait()
with socket.socket(socket.AF_UNIX) as s, socket.socket(socket.AF_UNIX) as t:
    s.bind(path(f"gpipe/{gone.pid}.sock"))
    t.bind(path(f"gpipe/{os.getpid()}.sock"))          # of this process, which lives
    put("gpipe/notes.sock", "")
p = started()
check("sockets: of the dead one", not os.path.exists(path(f"gpipe/{gone.pid}.sock")))
check("sockets: others stay", os.path.exists(path(f"gpipe/{os.getpid()}.sock"))
      and os.path.exists(path("gpipe/notes.sock")), os.listdir(path("gpipe")))
q = spawn("run", "--device", "cpu", "--set", "stages.write.path=out2/%05d.raw", slow)
check("sockets: two runs", until(lambda: frames("out2") > 2)
      and os.path.exists(path(f"gpipe/{p.pid}.sock")), os.listdir(path("gpipe")))
for r in (p, q):
    r.send_signal(signal.SIGINT)
    end(r, "sockets")

# == a reader that goes =========================================================
def piped(*args, lines=1):
    """gpipe, of whose stdout one piece is read; what it says, and its exit code."""
    p = spawn(*args, stdout=subprocess.PIPE, text=False)
    p.stdout.read(1)
    p.stdout.close()
    err = p.stderr.read().decode()
    p.wait()
    return err, p.returncode


OUT = "buffers: {a: {dtype: u8, shape: [65536]}}\nstages:\n  - {use: generate, out: a}\n" \
      "  - {use: write, in: a, path: stdout, format: raw}\n"
out = put("stdout.yaml", OUT)
both = put("both.yaml", OUT + "  - {name: copy, use: write, in: a, path: copy.raw}\n")
fails = put("fails.yaml", OUT.replace("in: a, path", "in: b, path").replace(
    "  - {use: w", "  - {name: b, use: lua, script: fails.lua}\n  - {use: w"))
put("fails.lua", "function process(f, x, y) if f.index == 0 then error('a fault') end y:copy(x) end")
err, rc = piped("run", out)
check("run | head: as cat", rc == -signal.SIGPIPE, (rc, err))
check("run | head: no error, an account", "error" not in err and " frames in, " in err
      and "\n" not in err.strip(), err)
err, rc = piped("run", "-q", "--report", path("pipe.json"), out)
check("run -q | head", rc == -signal.SIGPIPE and not err, (rc, err))
check("run | head: the report", '"outcome": "error"' in read("pipe.json"), read("pipe.json"))
err, rc = piped("run", "--set", "on_error=drop", out)
check("run | head: on_error: drop", rc == -signal.SIGPIPE and "error" not in err, (rc, err))
err, rc = piped("run", both)
check("run | head: another output", rc == 1 and "'stdout' cannot be written: Broken pipe" in err
      and not os.path.exists(path("copy.raw")), (rc, err))
err, rc = piped("run", fails)
check("run | head: another error", rc == 1 and "a fault" in err, (rc, err))
p = spawn("run", out, stdout=subprocess.PIPE, text=False, restore_signals=False,
          preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
p.stdout.read(1)
p.stdout.close()
check("run | head: SIGPIPE ignored", p.wait(60) == 128 + signal.SIGPIPE, p.returncode)
many = put("many.yaml", "buffers: {a: {dtype: u8, shape: [8]}}\nstages:\n  - {use: generate, out: a}\n"
           + "".join(f"  - {{name: reader_{i}, use: discard, in: a}}\n" for i in range(3000)))
for args in (["plan", many], ["plan", "--json", many], ["plan", "--form", "spec", many]):
    err, rc = piped(*args)
    check(f"{args[:-1]} | head", rc == -signal.SIGPIPE and not err, (rc, err))
r, w = os.pipe()
os.close(r)                                            # their text fits into a pipe
for args in (["stages"], ["stages", "blur"], ["--help"], ["help", "run"], ["--version"],
             ["plan", out]):
    err, rc = end(spawn(*args, stdout=w), args)
    check(f"{args} | true", rc == -signal.SIGPIPE and not err, (rc, err))
err, rc = end(spawn("plan", "none.yaml", stdout=w), "plan")
check("an error | true", rc == 2 and "no such file" in err, (rc, err))
os.close(w)

# == the end ====================================================================
print(f"ends: {passed} passed, {len(failed)} failed")
sys.exit(bool(failed))
