#!/usr/bin/env python3
"""verdict.py - pipelines that are bound by one thing each: does gpipe run --report name it, and does the edit it names
make the run faster? GPIPE is the binary. Prints a total; exit 1 after a failure. What needs a GPU is skipped, and says
so, where there is none.

Others may use the machine meanwhile. Then a verdict may be that they do, and has to say how much. An edit that gains
too little beside others is skipped, and says so."""
import json, os, re, statistics, subprocess, sys, threading, time
from kit import check, env, gpipe, path, put, total
try:
    import jsonschema
except ImportError:
    jsonschema = None
    print("SKIPPED, no jsonschema: whether reports and traces are as their schemas say")

here = os.path.dirname(os.path.abspath(__file__))
env["NO_COLOR"] = "1"


def schema_of(name):
    if not jsonschema:
        return None
    with open(os.path.join(here, name)) as f:
        return jsonschema.Draft202012Validator(json.load(f))


schema, trace_schema = schema_of("report.schema.json"), schema_of("trace.schema.json")
misfits, only = [], sys.argv[1:]
CORES = len(os.sched_getaffinity(0))
ROUNDS, TRIES = 3, 5               # of each pair; of all, if others kept the machine busy
patience = 60                          # seconds to wait for others, in all


def idle():
    with open("/proc/stat") as f:
        t = [int(x) for x in f.readline().split()[1:9]]
    return t[3] + t[4], sum(t)


def quiet():
    """Waits until others leave most of this machine alone, while there is patience."""
    global patience
    while patience > 0:
        a, start = idle(), time.time()
        time.sleep(0.3)
        b = idle()
        if b[0] - a[0] > 0.7 * (b[1] - a[1]):
            break
        patience -= time.time() - start


def others(report):
    """Are there other processes that the verdict has to mention?"""
    return report["cores"]["others"] >= 0.1 * report["cores"]["all"]


def run(file, *args, feed=None):
    """Runs a pipeline; its report. `feed`: a function that is given its stdin."""
    out = path("report.json")
    if os.path.exists(out):
        os.remove(out)
    p = subprocess.Popen([gpipe, "run", "-q", "--report", out, *args, file], env=env,
                         stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=not feed)
    if feed:
        threading.Thread(target=feed, args=(p.stdin,), daemon=True).start()
    err = p.stderr.read()
    if p.wait(timeout=120):
        raise RuntimeError(f"{file} {args}: exit {p.returncode}: {err}")
    with open(out) as f:
        report = json.load(f)
    if schema:
        misfits.extend((os.path.basename(file), e.message) for e in schema.iter_errors(report))
    return report


def gain(file, args, edited, other=None):
    """How many times faster it is with the edit, medians of runs that take turns; and did others use the machine?"""
    base, better = [], []
    for _ in range(ROUNDS):
        base.append(run(file, *args))
        better.append(run(other or file, *args, *edited))
    ratio = statistics.median(r["wall_s"] for r in base) / statistics.median(r["wall_s"] for r in better)
    return ratio, any(others(r) for r in base + better)


def is_shared(report):
    """The verdict: others use the cores, and so much of them."""
    v = report["verdict"]
    said = re.search(r"other processes used ([0-9.]+) of ([0-9]+) core", v["text"])
    return (v["bound"] == "cores" and others(report) and said
            and abs(float(said[1]) - report["cores"]["others"]) < 0.051)


def case(name, yaml, bound, of=None, says="", edit=None, faster=None, other=None, args=(), feed=None):
    """The verdict on `yaml` is `bound`, of the stage, segment or buffer `of`. Its edit is of `edit` (a path; None:
    there is none); with it, or as the file `other`, the run is `faster` times as fast at least. Where others use the
    cores it may be bound by them: even who naps wants a core after each nap."""
    if only and name not in only:
        return
    file = put(name.replace(" ", "_") + ".yaml", yaml)
    ratio, shared, beside = None, False, False
    for attempt in range(TRIES):
        quiet()
        report = run(file, *args, feed=feed)
        v = report["verdict"]
        path_of = v["edit"] and v["edit"]["path"]
        right = (v["bound"] == bound and (of is None or of in (v["name"], v["buffer"]))
                 and says in v["text"] and path_of == edit)
        shared = not right and is_shared(report)
        if right and faster:
            set_ = ["--set", f"{v['edit']['path']}={v['edit']['value']}"] if edit else []
            ratio, beside = gain(file, args, set_, other)
        if right and (not faster or ratio >= faster):
            break
    print(f"{name}: {v['text']}" + (f"; {ratio:.2f} times as fast" if ratio else "")
          + (f" (attempt {attempt + 1})" if attempt else ""), flush=True)
    check(f"{name}: the verdict", right or shared, v)
    if not faster:
        return
    if shared or (ratio and ratio < faster and beside):
        print(f"SKIPPED, other processes used the machine: {name}: is it {faster} times as fast?"
              + (f" ({ratio:.2f})" if ratio else ""), flush=True)
    elif right:
        check(f"{name}: faster", ratio >= faster, f"{ratio} < {faster}")


def ends(name, yaml, *args, most=6):
    """Who follows the edits one after the other gets to an end, and to no value twice."""
    if only and name not in only:
        return
    file, edits = put(name.replace(" ", "_") + ".yaml", yaml), []
    while len(edits) <= most:
        v = run(file, *args, *(x for e in edits for x in ("--set", e)))["verdict"]
        if not v["edit"]:
            break
        edits.append(f"{v['edit']['path']}={v['edit']['value']}")
    print(f"{name}: {', '.join(edits) or 'no edit'}; {v['text']}", flush=True)
    check(f"{name}: an end", not v["edit"], (edits, v))
    check(f"{name}: nothing twice", len(set(edits)) == len(edits), edits)


# == what the stages do ==========================================================
# nap() waits without using a core; burn() uses one
put("nap.lua", """stateless = true
local s
function init(stage) s = "sleep " .. stage.params.s end
function process(f, x, y) io.popen(s):close() if y then y:copy(x) end end""")
put("burn.lua", """stateless = true
function process(f, x, y)
    local a = 0
    for i = 1, 1000000 do a = a + i % 7 end
    y:copy(x)
end""")
put("join.lua", "function process(f, x) end")
put("cycle.lua", "function process(f, x, y) io.popen('sleep 0.01'):close() y:copy(x.u) end")
SMALL = "buffers: {g: {dtype: f32, shape: [64]}}\n"
G = "  - {use: generate, out: g, frames: %d}\n"
NAP = "  - {name: %s, use: lua, script: nap.lua, params: {s: %g}}\n"
END = "  - {use: discard}\n"

# == the formats =================================================================
def trace(name, yaml, *args):
    out = path("trace.json")
    run(put(name + ".yaml", yaml), "--trace", out, *args)
    with open(out) as f:
        t = json.load(f)
    if trace_schema:
        wrong = [(list(e.path)[:2], e.message[:300]) for e in trace_schema.iter_errors(t)][:5]
        check(f"{name}: as the schema says", not wrong, wrong)
    kinds = {e["ph"] for e in t["traceEvents"]}
    check(f"{name}: all kinds of events", kinds >= set("MXstfC"), kinds)


trace("trace", SMALL + "stages:\n" + G % 20 + "  - {use: scale, a: 2}\n" + NAP % ("clean", 0.002)
      + END, "--device", "cpu")

# == one core and less ===========================================================
case("too short", SMALL + "stages:\n" + G % 5 + END, "unknown", says="too short")
case("a stage that waits", SMALL + "stages:\n" + G % 40 + NAP % ("clean", 0.01) + END,
     "stage", "clean", edit="stages.clean.workers", faster=1.4)
case("a stage that computes", SMALL + "stages:\n" + G % 60 + "  - {name: clean, use: lua, script: burn.lua}\n" + END,
     "stage", "clean", edit="stages.clean.workers", faster=1.2)
case("rate", SMALL + "stages:\n  - {use: generate, out: g, frames: 100, rate: 200}\n" + END,
     "rate", "generate", edit="stages.generate.rate", faster=5)


def drip(pipe):
    for _ in range(40):
        time.sleep(0.01)
        pipe.write(bytes(256))
        pipe.flush()
    pipe.close()


case("a slow pipe", SMALL + "stages:\n  - {use: read, path: stdin, format: raw, out: g}\n" + END,
     "rate", "read", "waits for its input", feed=drip)

# == files =======================================================================
PICTURE = "buffers: {p: {dtype: u8, shape: [512, 512, 3]}}\nstages:\n"
make = put("make.yaml", PICTURE + "  - {use: generate, pattern: sine, value: 128, amplitude: 99, "
           "period: 1000, out: p, frames: 1}\n  - {use: write, in: p, path: 'p%05d.png'}\n"
           "  - {use: write, in: p, path: 'p%05d.npy'}\n")
subprocess.run([gpipe, "run", "-q", make], env=env, check=True)
# To decode one takes longer than a core is given to a thread.
big = put("big.yaml", PICTURE.replace("512, 512", "2048, 2048") + "  - {use: generate, pattern: sine, value: 128, "
          "amplitude: 99, period: 1000, out: p, frames: 1}\n  - {use: write, in: p, path: 'b%05d.png'}\n"
          "  - {use: write, in: p, path: 'b%05d.npy'}\n")
subprocess.run([gpipe, "run", "-q", big], env=env, check=True)
READ = "stages:\n  - {use: read, path: b00000.%s, loop: true, frames: 60}\n" + END
case("a reader of pictures", READ.replace("60}", "60, workers: 1}") % "png", "stage", "read",
     edit="stages.read.workers", faster=1.2)
WRITE = (PICTURE + "  - {use: read, path: p00000.npy, loop: true, frames: 60, out: p}\n"
         "  - {use: write, path: 'out/%%05d.png', compression: 9, workers: %d}\n")
case("a writer of pictures", WRITE % 1, "stage", "write", edit="stages.write.workers", faster=1.2)
few = CORES <= 4                       # more than a reader can feed, and than streams there are
if not few:
    print("SKIPPED, more than 4 cores: readers, writers and kernels on all cores")
MANY = "depth: %d\n" % (4 * CORES) + READ.replace("60}", "60, workers: %d}" % (2 * CORES))
few and case("readers on all cores", MANY % "png", "cores", "read", "store its frames as .npy", faster=2,
             other=put("npy.yaml", READ.replace("b00000.%s", "'b0000?.npy'")))
few and case("writers on all cores", "depth: %d\n" % (4 * CORES) + WRITE % (2 * CORES), "cores", "write",
     edit="stages.write.compression", faster=1.2)

# == depth =======================================================================
case("depth", "depth: 1\n" + SMALL + "stages:\n" + G % 40 + NAP % ("a", 0.01) + NAP % ("b", 0.01)
     + END, "depth", edit="depth", faster=1.3)
case("depth of one buffer", "buffers: {g: {dtype: f32, shape: [64]}, a: {depth: 1}}\nstages:\n"
     + G % 40 + NAP % ("a", 0.01) + NAP % ("b", 0.01) + END, "depth", "a", edit="buffers.a.depth", faster=1.3)
case("workers without room", SMALL + "stages:\n" + G % 60
     + (NAP % ("clean", 0.02)).replace("params", "workers: 8, params", 1) + END, "depth", edit="depth", faster=1.3)
case("fan-in", "buffers: {g: {dtype: f32, shape: [64], depth: 2}}\nstages:\n" + G % 40
     + NAP % ("a", 0.01) + NAP % ("b", 0.01) + NAP % ("c", 0.01)
     + "  - {name: join, use: lua, script: join.lua, in: [g, c], out: []}\n", "depth", "g",
     says="while 'join' waits for 'c'", edit="buffers.g.depth", faster=1.3)

# == a cycle =====================================================================
case("a cycle of two stages", "buffers: {g: {dtype: f32, shape: [64]}, v: {like: g}, u: {carry: v}}\nstages:\n"
     + G % 60 + "  - {name: a, use: lua, script: cycle.lua, in: {g: g, u: u}}\n"
     + NAP % ("v", 0.01) + END, "cycle", "a", says="the carried buffer 'u'")

# == kernels on the CPU ==========================================================
LARGE = "buffers: {g: {dtype: f32, shape: [%d, %d]}}\nstages:\n" \
        "  - {use: generate, out: g, frames: %d, fill: once}\n"
BLUR = "  - {use: blur, sigma: 3}\n"
cpu = ("--device", "cpu")
case("streams", "streams: 1\n" + LARGE % (256, 256, 300) + BLUR + END, "streams", "blur",
     edit="streams", faster=1.2, args=cpu)
few and case("kernels on all cores", "streams: %d\ndepth: %d\n" % (2 * CORES, 8 * CORES)
     + LARGE % (512, 512, 60 * CORES) + BLUR + END, "cores", "blur", "kernels run on the CPU", args=cpu)

KERNELS = LARGE % (512, 512, 60) + "  - {use: blur, sigma: 4}\n" + END
ends("edits of kernels", KERNELS, *cpu)
ends("edits of kernels, one frame", "depth: 1\n" + KERNELS, *cpu)
ends("edits of a stage that waits", SMALL + "stages:\n" + G % 60 + NAP % ("clean", 0.01) + END)
ends("edits of turns", "depth: 1\n" + SMALL + "stages:\n" + G % 60 + NAP % ("a", 0.01) + NAP % ("b", 0.01) + END)

# == a GPU =======================================================================
gpu = ("--device", "cuda")
has_gpu = subprocess.run([gpipe, "run", "-q", *gpu, put("probe.yaml", LARGE % (16, 16, 4) + BLUR
                          + END)], env=env, capture_output=True).returncode == 0


def on_gpu(name, *rest, **more):
    if not has_gpu:
        print(f"SKIPPED, no GPU: {name}")
        return
    case(name, *rest, args=gpu, **more)


on_gpu("copy in", LARGE % (2048, 2048, 1000) + "  - {use: reduce, op: mean}\n" + END, "copy in", "reduce")
on_gpu("copy out", "buffers: {g: {dtype: u8, shape: [2048, 2048]}}\nstages:\n"
       "  - {use: generate, out: g, frames: 1000, fill: once}\n  - {use: cast, dtype: f64}\n" + END, "copy out", "cast")
on_gpu("compute", LARGE % (1024, 1024, 1000) + BLUR * 8 + END, "compute")
on_gpu("kernels in one stream", "streams: 1\n" + LARGE % (64, 64, 3000) + BLUR * 8 + END, "streams",
       "blur..blur8", edit="streams", faster=1.2)
on_gpu("streams of a GPU", "streams: 1\ndepth: 6\n" + LARGE % (2048, 2048, 600)
       + "  - {use: scale, a: 2}\n" + END, "streams", "scale", edit="streams", faster=1.3)
on_gpu("depth of a GPU", "depth: 1\n" + LARGE % (2048, 2048, 600) + "  - {use: scale, a: 2}\n"
       + END, "depth", edit="depth", faster=1.3)
on_gpu("launches", "launch: stream\nbatch: 1\ndepth: 8\n" + LARGE % (8, 8, 30000)
       + "  - {use: scale, a: 2}\n" * 8 + END, "launch", edit="launch", faster=1.2)
on_gpu("a stage, with a GPU", LARGE % (256, 256, 60)
       + "  - {name: clean, use: lua, script: burn.lua}\n" + BLUR + END, "stage", "clean",
       "GPU idle", edit="stages.clean.workers", faster=1.2)

check("all reports: as the schema says", not misfits, misfits)
total("verdict")
