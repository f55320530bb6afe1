"""record.py GPIPE: runs that are recorded and repeated: with the same bytes, from anywhere; what is refused, and what is
warned of, where something is not as it was."""
import os, re, shutil, signal, subprocess, sys
from kit import bytes_of, check, path, put, spawn, total, until

os.chdir(path("."))


def run(*args, stdin=None, **more):
    p = spawn("run", *args, stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    p.out, p.err = p.communicate(timeout=600)
    return p


def is_ok(name, p):
    check(name, p.returncode == 0 and "error" not in p.err and "edited" not in p.err, p.err)
    return p


def refuses(name, record, *says, out="out.raw"):
    """With exit code 6, before anything is written."""
    if os.path.exists(out):
        os.remove(out)
    p = run(record)
    check(name, p.returncode == 6 and all(s in p.err for s in says) and not os.path.exists(out), p.err)


def edit(name, was, now):
    text = bytes_of(name).decode()
    check(f"{name} has {was!r}", was in text, text)
    put(name, text.replace(was, now))


# ---- settings, the environment, the date, files that are included, from another folder ----

RAW = "buffers: {read: {dtype: u8, shape: [16]}}\n"
put("sub/in.raw", bytes(range(160)))
put("sub/parts/add.yaml", """inputs: [x]
outputs: [y]
vars: {by: {type: integer, default: 1}}
stages:
  - {use: expr, in: x, out: y, expr: "in + by"}      # "quotes" \\ ${date:%F}
""")
put("sub/p.yaml", """# of its own
vars: {by: 1, who: "${env:GPIPE_WHO:-nobody}"}
buffers: {read: {dtype: u8, shape: [16]}}
stages:
  - {use: read, path: in.raw}
  - {include: parts/add.yaml, vars: {by: by}}
  - {use: write, path: "out/${who}-${env:GPIPE_NOT:-none}-${date:%Y%m%dT%H%M%S.%N%z%Z}.raw"}
""")
os.mkdir("records")
env = dict(os.environ, GPIPE_WHO="me", TZ="Asia/Kolkata")
env.pop("GPIPE_NOT", None)
is_ok("a run is recorded", run("sub/p.yaml", "--set", "vars.by=7", "--record", "records/r.yaml", env=env))
record = bytes_of("records/r.yaml").decode()
check("the text stands in front", record.startswith(bytes_of("sub/p.yaml").decode()), record)
made = os.listdir("sub/out")
want = bytes_of("sub/out/" + made[0])
check("what it made", want == b"".join((b + 7).to_bytes(4, "little") for b in range(160)) and "me-none-" in made[0] and "IST" in made[0], made)
shutil.rmtree("sub/parts")
for name, where, cwd in (("beside it", "records/r.yaml", "."), ("in its folder", "r.yaml", "records"),
                         ("from the root", path("records/r.yaml"), "/")):
    shutil.rmtree("sub/out")
    is_ok(f"repeated {name}", run(where, cwd=cwd, env=dict(os.environ, GPIPE_WHO="you", GPIPE_NOT="x", TZ="UTC")))
    check(f"the same bytes under the same name, {name}", os.listdir("sub/out") == made
          and bytes_of("sub/out/" + made[0]) == want, os.listdir("sub/out"))
os.mkdir("moved")
shutil.move("sub", "moved/sub"), shutil.move("records", "moved/records")
is_ok("moved together", run("moved/records/r.yaml"))
is_ok("a record of a record", run("moved/records/r.yaml", "--record", "moved/again.yaml"))
plain = [re.sub('"(began|folder)": .*', "", bytes_of(f).decode()) for f in ("moved/records/r.yaml", "moved/again.yaml")]
check("... is the same", plain[0] == plain[1], plain)
is_ok("... and repeats", run("moved/again.yaml"))
edit("moved/again.yaml", "# of its own", "# of mine")
p = run("moved/again.yaml")
check("an edit is told", p.returncode == 0 and "was edited since" in p.err, p.err)

# A section that somebody wrote in lines, above other keys, is replaced.
put("above.yaml", "recorded:\n  set:\n    - vars.x=1\nvars: {x: 0}\nbuffers: {generate: {dtype: u8, shape: [16]}}\n"
    "stages: [{use: generate, frames: 1}, {use: discard}]\n")
is_ok("a section of lines", run("above.yaml", "--record", "above-r.yaml"))
is_ok("... repeated", run("above-r.yaml"))

# ---- what differs -------------------------------------------------------------------------

put("in.raw", bytes(range(160)))
put("p.yaml", RAW + "stages: [{use: read, path: in.raw}, {use: write, path: out.raw}]\n")
for form, text in (("JSON", '{"buffers": {"read": {"dtype": "u8", "shape": [16]}}, "stages": [{"use": "read", "path": "in.raw"}, '
                    '{"use": "write", "path": "out.raw"}]}'),
                   ("no end of line", bytes_of("p.yaml").decode().strip()), ("a mark", "\ufeff" + bytes_of("p.yaml").decode()),
                   ("CRLF", bytes_of("p.yaml").decode().replace("\n", "\r\n")),
                   ("an end", "---\n" + bytes_of("p.yaml").decode() + "...\n")):
    put("form.yaml", text)
    is_ok(form, run("form.yaml", "--record", "form-r.yaml"))
    os.remove("out.raw")
    is_ok(f"{form}, repeated", run("form-r.yaml"))
    check(f"{form}: the same", bytes_of("out.raw") == bytes_of("in.raw"))
is_ok("p.yaml", run("p.yaml", "--record", "r.yaml"))
put("in.raw", bytes(range(159)) + b"x")
refuses("other bytes", "r.yaml", "r.yaml:", "'in.raw' is not what the recorded run read: its SHA-256 was ")
put("in.raw", bytes(range(161)))
refuses("another size", "r.yaml", "it had 160 bytes, and has 161")
put("in.raw", bytes(range(160)))
is_ok("as it was", run("r.yaml"))
edit("r.yaml", '"libc": "', '"libc": "0.')
p = run("r.yaml")
check("another library is a warning", p.returncode == 0 and "warning: the recorded run had libc '0." in p.err, p.err)

put("many/a 1.raw", bytes(16)), put("many/b 'q' \"{}\": ü #.raw", bytes(16))
put("g.yaml", RAW + "stages: [{use: read, path: 'many/*.raw'}, {use: write, path: out.raw}]\n")
is_ok("odd names", run("g.yaml", "--record", "g-r.yaml"))
is_ok("odd names, repeated", run("g-r.yaml"))
put("many/c.raw", bytes(16))
refuses("a file more", "g-r.yaml", "stage 'read' reads 'many/c.raw', too, which the recorded run did not")
os.remove("many/c.raw"), os.remove("many/a 1.raw")
refuses("a file less", "g-r.yaml", "'many/a 1.raw', which the recorded run read, is not there any more")
put(b"many/\xff.raw".decode(errors="surrogateescape"), bytes(16))
p = run("g.yaml", "--record", "g-r2.yaml")
check("no UTF-8", p.returncode == 2 and "is not UTF-8" in p.err and not os.path.exists("g-r2.yaml"), p.err)

p = run("p.yaml", "--set", b"stages.write.path=\xff.raw", "--record", "g-r2.yaml")
check("no UTF-8 in a setting", p.returncode == 2 and "is not UTF-8" in p.err and not os.path.exists("g-r2.yaml"), p.err)

put("d.lua", "function process(f, x, y) y:copy(x) end\n")
put("l.yaml", RAW + "stages: [{use: read, path: %s}, {use: lua, script: d.lua}, {use: write, path: out.raw}]\n" % path("in.raw"))
is_ok("a script, an absolute path", run("l.yaml", "--record", "moved/l-r.yaml"))
is_ok("... repeated", run("moved/l-r.yaml"))
put("d.lua", "function process(f, x, y) y:copy(x)  end\n")
refuses("another script", "moved/l-r.yaml", "'d.lua' is not what the recorded run read: it had ")

put("s.yaml", """buffers: {read: {dtype: u8, shape: [16]}, sum: {state: true, dtype: f32, shape: [16], init: sum.npy, missing: 0, save: sum.npy}}
stages:
  - {use: read, path: in.raw}
  - {use: cast, dtype: f32}
  - {use: expr, in: {x: cast, s: sum}, out: [sum], expr: s + x}
  - {use: discard, in: read}
""")
is_ok("a state", run("s.yaml", "--record", "s1.yaml"))
first = bytes_of("sum.npy")
refuses("a state that was not there", "s1.yaml", "'sum.npy' is there now, and was not when the run was recorded")
is_ok("from a state", run("s.yaml", "--record", "s2.yaml"))
refuses("a state that the run saved", "s2.yaml", "'sum.npy' is not what the recorded run read")
second = bytes_of("sum.npy")
put("sum.npy", first)
is_ok("from the state of then", run("s2.yaml"))
check("... to the same", bytes_of("sum.npy") == second)

# A comment of a file that is included is in the record, where it asks for no date.
put("parts/dated.yaml", "inputs: [x]\noutputs: [expr]\nstages: [{use: expr, expr: in + 1}]     # ${date:%F}\n")
put("res.yaml", "resume: done.txt\n" + RAW + "stages: [{use: read, path: in.raw}, {include: parts/dated.yaml}, "
    "{use: write, path: 'o/%d.raw'}]\n")
is_ok("resume", run("res.yaml", "--record", "res-r.yaml"))
is_ok("resume, repeated", run("res-r.yaml"))

# ---- what cannot be repeated -------------------------------------------------------------

put("c.yaml", RAW + "stages: [{use: read, command: [cat, in.raw], format: raw}, {use: write, path: out.raw}]\n")
is_ok("a command", run("c.yaml", "--record", "c-r.yaml"))
p = run("c-r.yaml")
check("... is told", p.returncode == 0 and "warning: what stage 'read' takes in is in no file: this run may be another" in p.err,
      p.err)
put("i.yaml", RAW + "stages: [{use: read, path: stdin, format: raw}, {use: write, path: out.raw}]\n")
def piped(*args):
    cat = subprocess.Popen(["cat", "in.raw"], stdout=subprocess.PIPE)
    p = run(*args, stdin=cat.stdout)
    cat.stdout.close()
    cat.wait()
    return p
is_ok("a pipe", piped("i.yaml", "--record", "i-r.yaml"))
p = piped("i-r.yaml")
check("... is told", p.returncode == 0 and "is a stream: this run cannot be the same" in p.err, p.err)
with open("in.raw") as f:              # from its middle
    os.lseek(f.fileno(), 16, os.SEEK_SET)
    is_ok("a file at standard input", run("i.yaml", "--record", "i-r.yaml", stdin=f))
with open("in.raw") as f:
    p = run("i-r.yaml", stdin=f)
check("... is told", p.returncode == 0 and "is a stream: this run cannot be the same" in p.err, p.err)
GENERATE = "buffers: {generate: {dtype: f64, shape: [16]}}\nstages: [{use: generate, frames: 3}, "
for what, text in (("an expression", GENERATE + "{use: expr, expr: in + frame.time}, {use: write, path: t.raw}]\n"),
                   ("a name", GENERATE + "{use: write, path: 't-%t.raw', rotate_time: 1h}]\n"),
                   ("a file that keeps it", "metadata: [time]\n" + GENERATE + "{use: write, path: t.npz}]\n")):
    put("t.yaml", text)
    is_ok(f"the time in {what}", run("t.yaml", "--record", "t-r.yaml"))
    p = run("t-r.yaml")
    check("... is told", p.returncode == 0 and "takes the times of frames, which are those of the clock" in p.err, p.err)
edit("r.yaml", '"ranks": 1', '"ranks": 2')
p = run("r.yaml")
check("other ranks are told", p.returncode == 0 and "had 2 ranks, this one has 1: its bytes may differ" in p.err, p.err)

put("e.yaml", "buffers: {generate: {dtype: u8, shape: [16]}}\nstages: [{use: generate, rate: 100Hz}, "
    "{use: write, path: live.raw, live: true}]\n")
p = spawn("run", "e.yaml", "--record", "e-r.yaml", stderr=subprocess.PIPE)
until(lambda: os.path.exists("live.raw") and os.path.getsize("live.raw") > 0)
p.send_signal(signal.SIGINT)
p.communicate(timeout=600)
text = bytes_of("e-r.yaml").decode()
frames = int(re.search('"frames": (\\d+)', text).group(1))
check("broken off", '"outcome": "drained"' in text and frames * 16 == os.path.getsize("live.raw"), text)
p = run("e-r.yaml", "--set", "stages.generate.frames=2")
check("... is told", f"(drained, {frames} frames): this one goes on" in p.err, p.err)

# An input that changes while the run goes on: by the writer of a FIFO, which is read, too.
os.mkfifo("fifo")
put("h.yaml", "buffers: {a: {dtype: u8, shape: [16]}, b: {dtype: u8, shape: [16]}}\nstages:\n  - {use: read, path: in.raw, out: a}\n"
    "  - {use: read, path: fifo, format: raw, out: b}\n  - {use: concat, in: [a, b]}\n  - {use: write, path: out.raw}\n")
p = spawn("run", "h.yaml", "--record", "h-r.yaml", stderr=subprocess.PIPE)
with open("fifo", "wb") as f:
    os.utime("in.raw", (1, 1))
    f.write(bytes(160))
p.communicate(timeout=600)
check("an input that changed", '"path": "in.raw", "of": "stage \'read\'", "size": 160, "lacks": "changed while' in
      bytes_of("h-r.yaml").decode(), bytes_of("h-r.yaml"))

# So does a chunk in a folder, with the same size and under the same name.
put("z.yaml", RAW + "stages: [{use: read, path: in.raw}, {use: write, path: z.zarr, compression: 0}]\n")
is_ok("a folder is made", run("z.yaml"))
put("h.yaml", bytes_of("h.yaml").decode().replace("path: in.raw", "path: z.zarr"))
p = spawn("run", "h.yaml", "--record", "h-r.yaml", stderr=subprocess.PIPE)
with open("fifo", "wb") as f:
    chunks = [os.path.join(at, n) for at, _, names in os.walk("z.zarr") for n in names if "json" not in n and not n.startswith(".")]
    os.utime(chunks[0], (1, 1))
    f.write(bytes(160))
p.communicate(timeout=600)
check("a folder in which a file changed", '"path": "z.zarr", "of": "stage \'read\'", "lacks": "changed while' in
      bytes_of("h-r.yaml").decode(), bytes_of("h-r.yaml"))

# ---- where it cannot be written ------------------------------------------------------------

put("parts/x.yaml", "inputs: [x]\noutputs: [scale]\nstages: [{use: expr, expr: in * 2, out: scale}]\n")
put("w.yaml", RAW + "stages: [{use: read, path: in.raw}, {include: parts/x.yaml}, {use: write, path: out.raw}]\n")
for where, code in (("w.yaml", 2), ("in.raw", 2), ("parts/x.yaml", 2), ("out.raw", 1), ("nowhere/r.yaml", 2), ("-", 2), ("/dev/full", 1)):
    before = bytes_of(where) if os.path.isfile(where) else None
    p = run("w.yaml", "--record", where)
    check(f"--record {where}", p.returncode == code and "error: " in p.err
          and before == (bytes_of(where) if os.path.isfile(where) else None), p.err)
put("in.raw", bytes(range(160)))
is_ok("once more", run("p.yaml", "--record", "r.yaml"))
p = run("r.yaml", "--record", "r.yaml")
check("a record over what is repeated", p.returncode == 2 and "is read by gpipe as the pipeline" in p.err, p.err)
check("nothing is left", not [f for f in os.listdir(".") if f.startswith(".")], os.listdir("."))
total("record")
