"""reuse.py GPIPE: files that are included, branches and copies, beside the same stages written by hand; what is said of
mistakes in them; settings of theirs, also while they run; editors and shells."""
import glob, json, os, re, signal, subprocess
from kit import bytes_of, check, env, gpipe, path, put, spawn, total, until

os.chdir(path("."))


def run(*args, **more):
    p = spawn(*args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    p.out, p.err = p.communicate(more.get("input"), timeout=600)
    return p


def graph(name, *args, **more):
    p = run("plan", "-q", "--form", "graph", "--device", "cpu", *args, name, **more)
    return re.sub(r"^pipeline .*|at line.*", "", p.out, flags=re.M) if not p.returncode else p.err


# ---- as if they were written by hand ---------------------------------------

put("parts/scaled.yaml", """
inputs: [x]
outputs: [y]
vars: {gain: {type: number, default: 3}, file: {type: path, default: own.npy}}
buffers: {w: {const: "${file}"}}
stages:
  - {use: scale, a: gain}
  - {use: expr, in: [scale, w], expr: scale + w * gain, out: y}
""")
put("parts/both.yaml", """
inputs: {left: {dtype: f32}, right: {dtype: f32, shape: [4]}}
outputs: [sum, product]
stages:
  - {use: expr, in: [left, right], out: s, expr: left + right}
  - {include: scaled.yaml, out: sum}
  - {use: expr, in: left, out: twice, expr: twice = left * 2}
  - {use: expr, in: twice, out: more, expr: more = twice + 1}
  - {use: expr, in: [more, right], out: product, expr: more * right}
""")
put("parts/one.yaml", "vars: {n: {type: integer, default: 2}}\nbuffers: {x: {dtype: f32, shape: [4]}}\n"
    "stages: [{use: generate, frames: n, out: x}, {use: write, path: x.npy}]\n")
try:
    import numpy as np
    for name in "parts/own.npy", "given.npy":
        np.save(path(name), np.arange(4, dtype=np.float32) + len(name))
except ImportError:
    print("SKIPPED, no numpy: reuse")
    total("reuse")
head = "vars: {n: 3}\nbuffers: {r: {dtype: f32, shape: [4]}, out: {dtype: f32}}\nstages:\n  - {use: generate, frames: 5, out: r}\n"
put("short.yaml", head + """
  - {name: a, include: parts/scaled.yaml, vars: {gain: 0.5 * n, file: given.npy}}
  - {name: k, use: scale, a: i + 2, repeat: {over: {i: n - 1}}}
  - {name: c, include: parts/scaled.yaml, in: r, vars: {gain: g}, repeat: {over: [{g: 5}, {g: 1.5}]}}
  - {name: p, include: parts/both.yaml, in: {right: a, left: r}, out: {sum: out}}
  - name: b
    in: "k.${i}"
    repeat: {over: {i: 2, side: [l, r]}}
    stages:
      - {use: scale, a: i + 1}
      - {name: last, use: split, size: 2, axis: 0}
  - {use: concat, in: [k.*, c.*, out, p.product, r]}
  - {use: write, path: all.npy}
""".replace("      - {name: last, use: split, size: 2, axis: 0}\n", "      - {name: last, use: scale, a: -1}\n")
    .replace("c.*, out", "c.*, b.*.*, out"))
long = head.replace("out: {dtype: f32}", "w1: {const: given.npy}, w2: {const: parts/own.npy}, out: {dtype: f32}")
long += "  - {use: scale, a: 1.5, out: a1}\n  - {use: expr, in: {scale: a1, w: w1}, expr: scale + w * 1.5, out: a}\n"
long += "  - {use: scale, in: a, a: 2, out: k0}\n  - {use: scale, in: k0, a: 3, out: k1}\n"
for i, g in enumerate((5, 1.5)):
    long += f"  - {{use: scale, in: r, a: {g}, out: c{i}a}}\n"
    long += f"  - {{use: expr, in: {{scale: c{i}a, w: w2}}, expr: scale + w * {g}, out: c{i}}}\n"
long += "  - {use: expr, in: {left: r, right: a}, expr: left + right, out: s}\n  - {use: scale, a: 3, out: t}\n"
long += "  - {use: expr, in: {scale: t, w: w2}, expr: scale + w * 3, out: out}\n"
long += "  - {use: expr, in: r, expr: r * 2, out: twice}\n  - {use: expr, in: twice, expr: twice + 1, out: more}\n"
long += "  - {use: expr, in: {more: more, right: a}, expr: more * right, out: product}\n"
for i in range(2):
    for side in "lr":
        long += f"  - {{use: scale, in: k{i}, a: {i + 1}, out: b{i}{side}a}}\n  - {{use: scale, a: -1, out: b{i}{side}}}\n"
long += "  - {use: concat, in: [k0, k1, c0, c1, b0l, b0r, b1l, b1r, out, product, r]}\n  - {use: write, path: hand.npy}\n"
put("hand.yaml", long)
for name in "short", "hand":
    p = run("run", "-q", name + ".yaml")
    check(f"{name}.yaml", p.returncode == 0 and not p.err, p.err)
check("the same bytes as by hand", bytes_of("all.npy") == bytes_of("hand.npy"), "")
shapes = [len(re.findall(r" f32 \[4\]", graph(x, "--set", "fuse=none"))) for x in ("short.yaml", "hand.yaml")]
check("as many buffers", shapes[0] == shapes[1] > 15, shapes)
text = bytes_of("short.yaml").decode()
check("by stdin", graph("-", stdin=open("short.yaml")) .replace("stdin", "") == graph("short.yaml"), graph("-", stdin=open("short.yaml")))
os.mkdir("elsewhere")
p = run("check", "../short.yaml", cwd=path("elsewhere"))
check("from another folder", p.returncode == 0 and not p.err, p.err)
for args in ["parts/one.yaml"], ["parts/one.yaml", "--set", "vars.n=3"]:
    check("a file without inputs, by itself", run("run", "-q", *args).returncode == 0, args)
check("--set of a default", np.load("parts/x.npy").shape == (12,), np.load("parts/x.npy").shape)

star = """buffers: {r: {dtype: f32, shape: [4]}}
stages:
  - {use: generate, frames: 5, out: r}
  - {name: ya, use: scale, in: r, a: 2}
  - {name: yb, use: scale, in: r, a: 3}
  - {name: yc, use: concat, in: INPUTS}
  - {name: k, use: scale, in: yc, a: i, repeat: {over: {i: 1}}}
  - {use: write, path: star.npy}
"""
for own in "name: yc, use: concat", "name: c, use: concat, out: yc":
    put("star.yaml", star.replace("INPUTS", '"y*"').replace("name: yc, use: concat", own))
    put("star-long.yaml", star.replace("INPUTS", "[ya, yb]").replace("name: yc, use: concat", own))
    both = [graph(name).replace(name, "") for name in ("star.yaml", "star-long.yaml")]
    check(f"a pattern does not name what the stage itself makes: {own}", both[0] == both[1] and "ya, yb -> yc" in both[0], both)

# ---- what is said, of which place --------------------------------------------

put("parts/typo.yaml", "inputs: [x]\nvars: {gain: 2}\nstages:\n  - {use: scale, a: gian}\n  - {use: discard}\n")
put("parts/around.yaml", "inputs: [x]\nstages:\n  - {name: t, include: typo.yaml}\n")
put("wrong.yaml", head.replace(", out: {dtype: f32}", "") + "  - {name: w, include: parts/around.yaml, repeat: {over: {i: 3}}, in: r}\n")
said = ("parts/typo.yaml:4:19: error: 'gian' is neither a number nor a variable that is a number; did you mean 'gain'?\n"
        "      parts/around.yaml:3:12: included here as 'w.0.t'\n      wrong.yaml:5:12: included here as 'w.0'\n")
p = run("check", "wrong.yaml")
check("both places, once", p.returncode == 3 and re.sub(":4:[0-9]+:", ":4:19:", p.err) == said, p.err)
p = run("run", "--log", "json", "wrong.yaml")
check("... in JSON", '"included here' not in p.err and p.err.count("included here as 'w.0.t'") <= 1, p.err)

for args, status, message in (
        (["vars.n=0"], 3, "'over' must be 1 to 10000, not -1"),
        (["stages.c.vars.gain=loud"], 2, "'loud' is neither a number nor a variable that is a number"),
        (["stages.c.vars.gian=1"], 2, "'parts/scaled.yaml' has no variable 'gian'; did you mean 'gain'?"),
        (["stages.c.7.scale.a=1"], 2, "no stage 'c.7.scale'; did you mean 'c.0.scale'?"),
        (["stages.c.scale.a=1"], 2, "no stage 'c.scale'"),
        (["stages.a.scael.a=1"], 2, "no stage 'a.scael'; did you mean 'a.scale'?"),
        (["buffers.a.scael.depth=1"], 2, "no buffer 'a.scael'; did you mean 'a.scale'?"),
        (["vars.c.0.gian=1"], 2, "no variable under 'vars' is named 'c.0.gian'; did you mean 'c.0.gain'?")):
    p = run("check", "short.yaml", *[x for a in args for x in ("--set", a)])
    check(f"--set {args[0]}", p.returncode == status and message in p.err, (p.returncode, p.err))

# ---- settings -----------------------------------------------------------------

for setting, where in (("stages.c.vars.gain=7", ("c.0.scale", "c.1.scale")), ("vars.c.1.gain=7", ("c.1.scale",)),
                       ("stages.c.0.scale.a=7", ("c.0.scale",)), ("stages.k.a=7", ("k.0", "k.1")),
                       ("stages.k.1.a=7", ("k.1",)), ("stages.p.scaled.scale.a=7", ("p.scaled.scale",)),
                       ("stages.b.stages.scale.a=7", ("b.0.l.scale", "b.0.r.scale", "b.1.l.scale", "b.1.r.scale"))):
    p = run("run", "-q", "short.yaml", "--set", setting, "--report", "r.json")
    was, now = np.load("hand.npy"), np.load("all.npy")
    check(f"--set {setting}", p.returncode == 0 and (was != now).any(), p.err)
    # by hand: only the copies that are named differ
    rows = {"k.0": 0, "k.1": 1, "c.0.scale": 2, "c.1.scale": 3, "b.0.l.scale": 4, "b.0.r.scale": 5, "b.1.l.scale": 6,
            "b.1.r.scale": 7, "p.scaled.scale": 8}
    differ = {r for r in range(11) if (was.reshape(-1, 11, 4)[:, r] != now.reshape(-1, 11, 4)[:, r]).any()}
    own = {rows[x] for x in where}
    behind = {4, 5, 6, 7, 1} if "k.0" in where else {6, 7} if "k.1" in where else set()
    check(f"... of {where}", own <= differ <= own | behind, (differ, own))
p = run("check", "short.yaml", "--set", "buffers.c.0.scale.shape=[5]")
check("--set of a buffer", "'c.0.scale'" in p.err and "f32 [4]" in p.err, p.err)

put("live.yaml", "buffers: {r: {dtype: f32, shape: [4]}}\nstages:\n  - {use: generate, rate: 100, out: r}\n"
    "  - {name: c, include: parts/live.yaml, in: r, repeat: {over: {i: 2}}}\n")
live = "inputs: [x]\nbuffers: {y: {depth: %d}}\nstages:\n  - {use: scale, a: 2, out: y}\n  - {use: discard}\n"
put("parts/live.yaml", live % 4)
log = open("log", "w")
p = spawn("run", "--watch", "--device", "cpu", "live.yaml", stderr=log)
until(lambda: os.path.exists(f"gpipe/{p.pid}.sock") or p.poll() is not None)


def told(what):
    return until(lambda: what in bytes_of("log").decode() or p.poll() is not None) and what in bytes_of("log").decode()


until(lambda: run("set", str(p.pid), "stages.c.1.scale.a=9").returncode == 0)
check("gpipe set", told("stages.c.1.scale.a 2 -> 9"), bytes_of("log"))
put("parts/live.yaml", live % 8)
check("--watch: an included file is saved", told("buffers.c.0.y.depth 4 -> 8, buffers.c.1.y.depth 4 -> 8"), bytes_of("log"))
put("parts/live.yaml", (live % 8).replace("a: 2", "a: two"))
check("--watch: with a mistake", told("live.yaml:4:12: included here as 'c.0'") and told("the run goes on as it was"),
      bytes_of("log"))
p.send_signal(signal.SIGINT)
check("... and goes on", p.wait(60) == 130, p.returncode)

# ---- editors and shells ----------------------------------------------------------

p = run("lsp", "--help")
server = spawn("lsp", text=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def send(method, params, ask=False):
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **({"id": 1} if ask else {})}).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    server.stdin.flush()


def receive():
    n = int(server.stdout.readline().split()[1])
    server.stdout.readline()
    return json.loads(server.stdout.read(n))


send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, True)
receive()
uri = "file://" + path("unsaved.yaml")
text = bytes_of("wrong.yaml").decode()
send("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "yaml", "version": 1, "text": text}})
d = receive()["params"]["diagnostics"]
check("lsp: a mistake in a file is where that is included", len(d) == 1 and d[0]["range"]["start"] == {"line": 4, "character": 11}
      and "typo.yaml:4:" in d[0]["message"] and "included here as 'w.0'" in d[0]["message"], d)
send("textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [
    {"text": text.replace("around", "scaled") + "  - {use: concat, in: w.*}\n  - {use: discard}\n"}]})
d = receive()["params"]["diagnostics"]
check("lsp: mended", d == [], d)
send("textDocument/definition", {"textDocument": {"uri": uri}, "position": {"line": 4, "character": 70}}, True)
d = receive()["result"]
check("lsp: where a buffer is made", {x["range"]["start"]["line"] for x in d} == {1, 3}, d)
server.stdin.close()
p = run("completion", "bash")
out = subprocess.run(["bash", "-c", f"PATH={os.path.dirname(gpipe)}:$PATH; source <(gpipe completion bash)\n"
                      "COMP_LINE='gpipe check short.yaml --set stages.c.1.'; COMP_POINT=${#COMP_LINE}\n"
                      "_gpipe gpipe; printf '%s\\n' \"${COMPREPLY[@]}\""], capture_output=True, text=True, env=env).stdout
check("completion of stages that are included", "stages.c.1.scale." in out, out)

total("reuse")
