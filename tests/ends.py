#!/usr/bin/env python3
"""ends.py GPIPE - how a run ends: signals, pipes whose reader goes, what a dead one left behind. Waits for what is to
happen, never for how long it takes. Prints a total; exit 1 after a failure."""
import json, os, pty, re, resource, signal, socket, struct, subprocess, time, kit
from kit import check, env, gpipe, path, put, tmp, total, until

for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE):
    signal.signal(sig, signal.SIG_DFL)                 # what gpipe inherits


def read(name):
    try:
        with open(path(name)) as f:
            return f.read()
    except OSError:
        return ""


def spawn(*args, **more):
    return kit.spawn(*args, **{"stderr": subprocess.PIPE, **more})


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
    m = re.search(r"gpipe: (\d+) frames? in, (\d+) out, 0 dropped, 0 failed, 0 cancelled", text)
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
for sig in (signal.SIGSTOP, signal.SIGHUP, signal.SIGTERM, signal.SIGCONT):    # else it may be over before the second comes
    p.send_signal(sig)
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

# == what a process inherits ====================================================
blocked = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
for sig in blocked:
    p = started(preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, blocked))
    p.send_signal(sig)
    err, rc = end(p, f"blocked at the start: {sig}")
    check(f"blocked at the start: {sig}", rc == 128 + sig, (rc, err))

READ = "buffers: {x: {dtype: u8, shape: [1]}}\nstages:\n  - {use: read, out: x, %s}\n  - {use: discard}\n"
ignores = put("ignores.yaml", READ % "command: [sh, -c, 'kill -HUP $$$$; printf xx']")
put("small.lua", "stateless = true\nfunction process(f, x, y) y:copy(x) end")
small = put("small.yaml", "buffers: {x: {dtype: f32, shape: [100]}}\nstages:\n"
            "  - {use: generate, frames: 500, out: x}\n"
            "  - {use: lua, script: small.lua, workers: 3}\n  - {use: scale, a: 2}\n  - {use: discard}\n")
glob = put("glob.yaml", READ % "path: '*.raw'")
for file, before, code, text in (
        (ignores, lambda: None, 1, "was ended by signal 1 "),
        (ignores, lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN), 0, " 2 frames in, 2 out"),       # nohup
        (glob, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)), 4,
         "cannot be listed: Too many open files ('ulimit -n' is 4)"),
        (small, lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 16, 1 << 22)), 0, " 500 frames in, 500 out"),
        (small, lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 16, 1 << 16)), 4,
         "the stack may have 64 KiB ('ulimit -s'): gpipe needs 512"),
        (slow, lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 44, 1 << 44)), 4, "'ulimit -v' is ")):
    err, rc = end(spawn("run", file, preexec_fn=before), text)
    check(f"inherited: {text}", rc == code and text in err, (rc, err))

# == stopped while a stage is opened ==============================================
put("opens.lua", 'function init() io.open("%s", "w"):close() while true do end end\n'
    'function process(f, x, y) y:copy(x) end' % path("opens"))
opens = put("opens.yaml", "buffers: {x: {dtype: u8, shape: [64]}, y: {like: x}}\nstages:\n"
            "  - {use: generate, frames: 20, out: x}\n"
            "  - {use: lua, script: opens.lua, out: y}\n  - {use: write, path: opens.npy}\n")
p = spawn("run", "--device", "cpu", "--report", path("opens.json"), "--trace", path("opens.trace.json"), opens)
check("opening: it begins", until(lambda: os.path.exists(path("opens")) or p.poll() is not None))
for sig in (signal.SIGINT, signal.SIGTERM):            # at once: two of one kind would be one
    p.send_signal(sig)
err, rc = end(p, "opening")
check("opening: an account", rc in (130, 143) and accounted(err) == 0 and "cancelled\n" not in err
      and "a thread did not come back" in err, (rc, err))

# == no more open files, under way ==============================================
# No frame is at fault.
put("begun.lua",
    'function process(f, x, y) local h = io.open("%s", "w") if h then h:close() end y:copy(x) end' % path("begun"))
for i in range(3):
    put(f"n{i}.raw", "abcd")
for name, source, sink in (("read", "read, path: 'n%d.raw', loop: true, rate: 200", "discard"),
                           ("read pieces", "read, path: 'n*.raw', loop: true, rate: 200", "discard"),
                           ("write", "generate, frames: 0, rate: 200", "write, path: 'many/%05d.raw'")):
    if os.path.exists(path("begun")):
        os.remove(path("begun"))
    few = put("few.yaml", "on_error: drop\nbuffers: {x: {dtype: u8, shape: [2]}, y: {like: x}}\nstages:\n"
              f"  - {{use: {source}, out: x}}\n  - {{use: lua, script: begun.lua, out: y}}\n  - {{use: {sink}}}\n")
    p = spawn("run", "--device", "cpu", few)
    check(f"open files: {name}: it begins", until(lambda: os.path.exists(path("begun")) or p.poll() is not None))
    resource.prlimit(p.pid, resource.RLIMIT_NOFILE, (3, 3))
    err, rc = end(p, f"open files: {name}")
    check(f"open files: {name}", rc == 4 and "Too many open files ('ulimit -n' is 3)" in err, (rc, err[-1500:]))

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
    return p.communicate(timeout=60)[1].decode(), p.returncode


OUT = "buffers: {a: {dtype: u8, shape: [65536]}}\nstages:\n  - {use: generate, out: a}\n" \
      "  - {use: write, in: a, path: stdout, format: raw}\n"
out = put("stdout.yaml", OUT)
both = put("both.yaml", OUT + "  - {name: copy, use: write, in: a, path: copy.raw}\n")
fails = put("fails.yaml", OUT.replace("in: a, path", "in: b, path").replace(
    "  - {use: w", "  - {name: b, use: lua, script: fails.lua}\n  - {use: w"))
put("fails.lua", "function process(f, x, y) if f.index == 0 then error('a fault') end y:copy(x) end")
err, rc = piped("run", out)
check("run | head: as cat", rc == -signal.SIGPIPE, (rc, err))
check("run | head: no error, an account", "error" not in err and " in, " in err and "\n" not in err.strip(), err)
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
for args in (["plan", many], ["plan", "--json", many], ["plan", "--form", "graph", many]):
    err, rc = piped(*args)
    check(f"{args[:-1]} | head", rc == -signal.SIGPIPE and not err, (rc, err))
r, w = os.pipe()
os.close(r)                                            # their text fits into a pipe
for args in (["stages"], ["stages", "blur"], ["--help"], ["help", "run"], ["--version"], ["plan", out]):
    err, rc = end(spawn(*args, stdout=w), args)
    check(f"{args} | true", rc == -signal.SIGPIPE and not err, (rc, err))
err, rc = end(spawn("plan", "none.yaml", stdout=w), "plan")
check("an error | true", rc == 2 and "no such file" in err, (rc, err))
os.close(w)

# == JSON lines =================================================================
def objects(p, name):
    """What it says on stderr, each line of which has to be JSON; and its exit code."""
    err, rc = end(p, name)
    lines = []
    for l in err.splitlines():
        try:
            lines.append(json.loads(l))
        except ValueError:
            check(f"{name}: a line that is no JSON", False, l)
    check(f"{name}: objects", lines and all(isinstance(o, dict) for o in lines) and err.endswith("\n"), err)
    return lines, rc


def last(lines, name, outcome, rc):
    a = lines[-1].get("account") if lines else None
    check(f"{name}: the account is last", a and a["outcome"] == outcome and a["exit"] == rc
          and a["seconds"] > 0 and all(s["in"] == s["out"] + s["dropped"] + s["failed"] + s["cancelled"]
                                       for s in a["sources"]) and a["sources"][0]["name"] == "generate", lines[-1:])
    check(f"{name}: the end", any(o.get("ended") for o in lines), lines)
    return a


put("says.lua", "function process(f, x, y) if f.index < 2 then print('a \"word\"', f.index) "
    "io.stderr:write('half ') io.stderr:write('a line\\n') end y:copy(x) end "
    "function finish() io.stderr:write('no end of line') end")
said = put("said.yaml", "depth: 4\nbuffers: {a: {dtype: f32, shape: [64]}}\nstages:\n"
           "  - {use: generate, out: a, frames: 500}\n  - {name: says, use: lua, script: says.lua}\n"
           "  - {use: scale, a: 1}\n  - {use: discard}\n")
more = ["run", "--progress", "json"]
lines, rc = objects(spawn(*more, "-v", "--metrics", "0", said), "JSON, done")
a = last(lines, "JSON, done", "done", 0)
check("JSON, done: exit", rc == 0, rc)
check("JSON, done: frames", a and a["sources"][0]["out"] == 500, a)
check("JSON, done: the verdict", a and isinstance(a["verdict"], str) and a["verdict"], a)
texts = [o["text"] for o in lines if "text" in o]
check("JSON, done: a script's words", {'a "word"\t0', 'a "word"\t1', "half a line",
                                       "no end of line"} <= set(texts), texts)
check("JSON, done: the device", any(t.startswith("gpipe: device: ") for t in texts), texts)
lines, rc = objects(spawn(*more, fails), "JSON, failed")
last(lines, "JSON, failed", "error", 1)
e = [o for o in lines if "error" in o]
check("JSON, failed: the error", rc == 1 and len(e) == 1 and "a fault" in e[0]["error"]
      and e[0]["exit"] == 1 and e[0]["file"].endswith("fails.lua") and e[0]["line"] == 1, (rc, e))
p = started("--progress", "json")
p.send_signal(signal.SIGINT)
lines, rc = objects(p, "JSON, cancelled")
last(lines, "JSON, cancelled", "drained", 130)
check("JSON, cancelled: exit", rc == 130 and any("stopping" in o.get("text", "") for o in lines), (rc, lines))
put("hangs.lua", "function process(f, x, y) io.open('" + path("nobody") + "') end")
os.mkfifo(path("nobody"))
stall = put("stall.yaml", "stall_timeout: 1s\n" + read("said.yaml").replace("says.lua", "hangs.lua"))
lines, rc = objects(spawn(*more, stall), "JSON, stalled")
last(lines, "JSON, stalled", "stuck", 5)
e = [o for o in lines if "error" in o]
check("JSON, stalled: notes", rc == 5 and len(e) == 1 and e[0]["exit"] == 5 and len(e[0]["notes"]) > 2
      and any("stall_timeout" in n for n in e[0]["notes"]), (rc, e))
wrong = put("wrong.yaml", "streams: 8\n" + read("said.yaml").replace("a: 1", "aa: 1"))
lines, rc = objects(spawn(*more, wrong), "JSON, invalid")
check("JSON, invalid", rc == 3 and [o["exit"] for o in lines if "error" in o] == [3, 3][:len(lines)]
      and lines[0]["line"] == 7 and lines[0]["column"] > 0, (rc, lines))
lines, rc = objects(spawn(*more, path("none.yaml")), "JSON, no file")
check("JSON, no file", rc == 2 and lines[0]["error"] == "there is no such file", (rc, lines))
lines, rc = objects(spawn(*more, "--polson", said), "JSON, usage")
check("JSON, usage", rc == 2 and "--poison" in lines[0]["error"], (rc, lines))
err, rc = end(spawn(*more, "-q", said), "JSON, -q")
check("JSON, -q", rc == 0 and all("text" in json.loads(l) for l in err.splitlines()), err)

# == what hangs, and lets nobody else end =======================================
put("hangs.cu", '''#include <stdio.h>
#include <unistd.h>
extern "C" __global__ void hangs(const unsigned char *in, unsigned char *out)
{
    flockfile(stderr);
    fclose(fopen("%s", "w"));
    for (;;)
        pause();
}
''' % path("it-hangs"))
p = spawn("run", "--device", "cpu", put("locks.yaml", '''buffers: {a: {dtype: u8, shape: [64]}, b: {like: a}}
stages:
  - {use: generate, out: a}
  - {use: kernel, source: hangs.cu, entry: hangs, args: [in, out], grid: 1, block: 1, in: a, out: b}
  - {use: write, path: locked.npy}
'''))
check("a kernel holds a lock", until(lambda: os.path.exists(path("it-hangs"))))
p.send_signal(signal.SIGTERM)
check("... the first signal is heard", any("stopping: " in line for line in iter(p.stderr.readline, "")))
p.send_signal(signal.SIGINT)                           # another, as two that are the same at one moment count once
err, rc = end(p, "a kernel holds a lock")
check("... and the second ends the process", rc == 130, (rc, err))
check("... with no files that are not whole", not [n for n in os.listdir(path("")) if "locked.npy" in n and not n.endswith(".partial")],
      os.listdir(path("")))

# == a state that two runs save =================================================
keeps = put("keeps.yaml", '''buffers: {a: {dtype: f32, shape: [4]}, b: {like: a}, s: {state: true, like: a, save: kept/s.npy}}
stages:
  - {use: generate, out: a, rate: 200}
  - {use: expr, in: [a, s], out: s, expr: s + 1}
  - {use: expr, in: [a, s], out: b, expr: a + s}
  - {use: write, path: "keeps/%05d.raw"}
''')
p = spawn("run", "--device", "cpu", keeps)
check("a run has a state", until(lambda: frames("keeps") > 2))
err, rc = end(spawn("run", "--device", "cpu", "--set", "stages.write.path=others/%05d.raw", keeps), "two save a state")
check("a second that would save it, too, is refused", rc == 1 and f"another run is writing it (process {p.pid})" in err
      and "keeps.yaml:1:" in err and not frames("others"), (rc, err))
p.send_signal(signal.SIGINT)
err, rc = end(p, "the first that saves a state")
check("... and the first saves it", rc == 130 and os.listdir(path("kept")) == ["s.npy"], (rc, err, os.listdir(path("kept"))))
p = spawn("run", "--device", "cpu", "--set", "stages.write.path=others/%05d.raw", keeps)
check("... and then another may", until(lambda: frames("others") > 2))
p.send_signal(signal.SIGTERM)
err, rc = end(p, "another that saves a state")
check("... which saves it", rc == 143 and os.listdir(path("kept")) == ["s.npy"], (rc, err, os.listdir(path("kept"))))

# == ... and save while they go on ================================================
often = put("often.yaml", '''buffers: {a: {dtype: f32, shape: [3000]}, b: {like: a}, s: {state: true, like: a, save: often/s.npy, save_every: 5}}
stages:
  - {use: generate, out: a, rate: 500}
  - {use: expr, in: [a, s], out: s, expr: s + 1}
  - {use: expr, in: [a, s], out: b, expr: a + s}
  - {use: discard}
''')


def saved():
    """After how many frames the state is; 0: it is not there; -1: it is not whole."""
    if not os.path.exists(path("often/s.npy")):
        return 0
    with open(path("often/s.npy"), "rb") as f:
        text = f.read()
    frames, data = int(re.search(rb"# after (\d+) frames", text)[1]), text[-12000:]
    return frames if struct.unpack("<3000f", data) == (frames,) * 3000 else -1


p = spawn("run", "--device", "cpu", often)
check("a state is saved while the run goes on", until(lambda: not 0 <= saved() < 10) and saved() > 0)
p.kill()
p.communicate()
killed = saved()
check("... and is there when the run was killed", killed >= 10 and killed % 5 == 0, killed)
p = spawn("run", "--device", "cpu", "--set", "buffers.s.init=often/s.npy", often, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
err, rc = end(p, "a state on a full disk")
check("a state that cannot be saved is an error", rc == 1 and "often.yaml:1:" in err and "'save' of the state 's'" in err
      and "File too large" in err, (rc, err))
check("... and what was there stays", saved() == killed and os.listdir(path("often")) == ["s.npy"], os.listdir(path("often")))

# == a full disk ================================================================
file = put("file.yaml", "buffers: {a: {dtype: u8, shape: [64, 64]}}\nstages:\n"
           "  - {use: generate, out: a, frames: 50}\n  - {use: write, path: made/a.npy}\n")
pictures = put("pictures.yaml", read("file.yaml").replace("a.npy", "%05d.png"))
toout = put("toout.yaml", read("file.yaml").replace("made/a.npy", "stdout, format: raw"))


def tight(*args, most=8192, **more):
    """gpipe, none of whose files may be longer: as on a full disk."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    p = spawn(*args, preexec_fn=limit, stdout=subprocess.PIPE, text=False, **more)
    out, err = p.communicate(timeout=60)
    return out, err.decode(), p.returncode


def left(folder):
    return os.listdir(path(folder)) if os.path.isdir(path(folder)) else []


if os.path.exists("/dev/full"):
    full = open("/dev/full", "w")
    for args in (["run", toout], ["plan", out], ["plan", "--svg", out], ["plan", "--json", out],
                 ["check", out], ["stages"], ["--help"], ["help"], ["help", "run"], ["--version"],
                 ["bench", "--window", "20ms", "--max-time", "4s", toout]):
        err, rc = end(spawn(*args, stdout=full), args)
        check(f"full: {args[:-1]}", rc == 1 and re.search("cannot (be written|write to stdout)", err), (rc, err))
    err, rc = end(spawn("run", "--trace", "/dev/full", "--report", path("full.json"), file), "full")
    check("full: the trace alone", rc == 1 and "/dev/full: error: cannot be written: No space" in err
          and accounted(err) == 50 and '"outcome": "done"' in read("full.json")
          and left("made") == ["a.npy"], (rc, err))
    err, rc = end(spawn("run", file, stderr=full), "full: stderr")
    check("full: stderr", rc == 0, rc)
    full.close()
    os.remove(path("made/a.npy"))
for name, yaml in (("joined", file), ("pictures", pictures)):
    done, err, rc = tight("run", yaml, most=100)
    check(f"full: {name}", rc == 1 and "cannot be written: File too large" in err and not left("made"),
          (rc, err, left("made")))
done, err, rc = tight("run", "--report", path("r.html"), "--trace", path("t.json"), toout)
check("full: report and trace", rc == 1 and accounted(err) == 50 and len(done) == 50 * 4096
      and all(f"{path(n)}: error: cannot be written: File too large" in err and not read(n)
              for n in ("r.html", "t.json")), (rc, err, len(done)))
put("old.html", "old")
done, err, rc = tight("run", "--report", path("old.html"), "--trace", path("t.json"), "--trace-last", "1ms", toout)
check("full: the old report stays", rc == 1 and read("old.html") == "old"
      and not [n for n in os.listdir(tmp.name) if ".gpipe-" in n], (rc, err, os.listdir(tmp.name)))
for option in ("--report", "--trace"):
    err, rc = end(spawn("run", option, "/proc/no/x.json", file), option)
    check(f"{option}: no folder, before frame 0", rc == 2 and "/proc/no/x.json: error: cannot be written"
          in err and "frames in" not in err and not left("made"), (rc, err))

# == the last few ===============================================================
# After an error there is no frame of the last few, which would look like one of as many as there should be.
put("breaks.lua", "stateless = true\nfunction process(frame, x, y)\n  if frame.index == 40 then error('broken') end\n"
    "  y:copy(x)\nend\n")
for regroups, broken, whole in (("use: mix, op: mean, frames: 25", 1, 3), ("use: mix, op: sum, frames: 200", 0, 1),
                                ("use: group, frames: 25", 1, 3), ("use: window, frames: 3", 40, 56)):
    for script, ends, count in ("- {use: lua, script: breaks.lua}", 1, broken), ("", 0, whole):
        file = put("tail.yaml", f"""
buffers: {{x: {{dtype: f32, shape: [16]}}}}
stages:
  - {{use: generate, out: x, frames: 56}}
  {script}
  - {{{regroups}}}
  - {{use: write, path: "{path('tail')}/%03d.npy"}}
""")
        err, rc = end(spawn("run", file), "tail")
        there = left("tail")
        check(f"{regroups}: {count} frames{' before an error' if ends else ''}", rc == ends and len(there) == count,
              (rc, there, err))
        for n in there:
            os.remove(path("tail/" + n))

# == the end ====================================================================
total("ends")
