#!/usr/bin/env python3
"""tune.py GPIPE - simulate and tune as a person uses them: what they print and write, and what they refuse. Nothing
here depends on how fast the machine is. Prints a total; exit 1 after a failure."""
import json, os, re, subprocess, kit
from kit import check, env, gpipe, tmp, total

os.chdir(tmp.name)
env["NO_COLOR"] = "1"


def run(*args, code=0, name=None):
    p = subprocess.run([gpipe, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, timeout=300)
    if name:
        check(name, p.returncode == code, f"exit {p.returncode}\n{p.stderr}")
    return p


def refuses(name, code, message, *args):
    p = run(*args)
    check(name, p.returncode == code and re.search(message, p.stderr), f"exit {p.returncode}\n{p.stderr}")


def put(name, text):
    kit.put(name, text)
    return name


def get(name):
    with open(name) as f:
        return f.read()


put("free.lua", "stateless = true\nfunction process(f, x, y)\n  y:copy(x)\n  for i = 1, 40 do y:add(x, i) end\nend\n")
HEAD = "# what it is\ndepth: 1     # slots\nbuffers: {g: {dtype: f32, shape: [64, 64]}}\n"
put("p.yaml",
    HEAD + "device: cpu\nstages:\n  - {use: generate, pattern: noise, frames: 3000, out: g}\n  - use: lua   # works\n"
    "    name: clean\n    script: free.lua\n  - {use: scale, a: 2}\n  - {use: discard}\n")

# == simulate ===================================================================
run("run", "-q", "p.yaml", "--report", "run.json", name="a run")
p = run("simulate", "p.yaml", "--with", "run.json", name="simulate")
check("simulate: what it prints", re.search(r"gpipe: (bound by|nothing|too short|other)", p.stdout, re.I)
      and re.search(r"^simulated: [\d.]+( k| M)? ?frames/s, [\d.]+ \wB of host memory$", p.stdout, re.M), p.stdout)
check("simulate: the same each time", run("simulate", "p.yaml", "--with", "run.json").stdout == p.stdout)
ran, is_ = json.loads(get("run.json")), json.loads(run("simulate", "p.yaml", "--with", "run.json", "--json").stdout)
check("simulate: a run measures turns", all(s["turns"] == 3000 and s["turn_us"] > 0 for s in ran["stages"])
      and set(ran["wakes"]) == {"count", "p10_us", "call_p10_us"}, (ran["stages"], ran["wakes"]))
check("simulate: what was measured", 0.8 < is_["frames_per_s"] / ran["frames_per_s"] < 1.25,
      (is_["frames_per_s"], ran["frames_per_s"]))
check("simulate: no run", is_["outcome"] == "simulated" and is_["sources"][0]["in"] == 3000)
deep = json.loads(run("simulate", "p.yaml", "--with", "run.json", "--json", "--set", "depth=8").stdout)
check("simulate: --set", deep["buffers"][0]["depth"] == 8 and deep["frames_per_s"] > 0.99 * is_["frames_per_s"])


def assumes(file, *args):
    said = run("simulate", file + ".yaml", "--with", file + ".json", *args).stdout
    return re.findall(r"^assumed: (.*) takes? as long as in the run of the report", said, re.M) or [""]


put("many.yaml", """vars: {n: 2, m: n * 2, far: m + 1}
device: cpu
buffers: {g: {dtype: f32, shape: [64, 64]}, one: {const: one.npy}}
stages:
  - {use: generate, frames: 900, out: g}
  - {use: lua, script: free.lua}
  - {use: expr, in: {x: lua, k: one}, expr: x * k}
  - {use: scale, a: 2.5}
  - use: loop
    times: 2
    out: {out: twice}
    stages: [{use: scale, a: far, out: out}]
  - {use: mix, op: mean, frames: 3}
  - {use: discard}
""")
header = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (64, 64), }".ljust(127) + b"\n"
with open("one.npy", "wb") as f:
    f.write(header + bytes(4 * 64 * 64))
run("run", "-q", "many.yaml", "--report", "many.json", name="simulate: a run of many kinds")
for setting, stages in (
        ("depth=3", ""), ("stages.lua.workers=2", ""), ("stages.generate.rate=1000", ""), ("vars.n=3", "'loop'"),
        ("vars.far=3", "'loop'"), ("stages.scale.a=3", "'scale'"), ("stages.mix.frames=2", "'mix'"),
        ("stages.generate.pattern=noise", "'generate'"), ("stages.expr.expr=x + k", "'expr'")):
    check(f"simulate: {setting}", assumes("many", "--set", setting) == [stages], assumes("many", "--set", setting))
written = get("free.lua")
put("free.lua", written.replace("40", "80"))
check("simulate: another script", assumes("many") == ["'lua'"], assumes("many"))
put("free.lua", written)
put("many.yaml", get("many.yaml").replace("op: mean, frames: 3", "frames: 3, op: mean").replace("{n:", "{no: 1, n:"))
check("simulate: in another order", assumes("many") == [""], assumes("many"))
# each of a second at most, where time is in proportion, and else for longer than `run` waits
put("wide.yaml", "vars: {" + ", ".join(f"v{i}: {f'v{i - 1} + 1' if i % 60 else 1}" for i in range(24000))
    + "}\nbuffers: {x: {dtype: f32, shape: [4]}}\nstages:\n  - {use: generate, frames: 9, out: x}\n"
    + "".join(f"  - {{use: scale, a: v{i * 16}}}\n" for i in range(1500)) + "  - {use: discard}\n")
check("check: many vars of many stages", run("check", "wide.yaml").returncode == 0)
for order in 1, -1:
    chain = "".join([f"  v{i}: q v{i - 1}\n" for i in range(1, 100000)][::order])
    put("chain.yaml", "vars:\n  v0: 1\n" + chain + "buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n"
        "  - {use: generate, frames: 3, out: x}\n  - {use: write, path: 'v99999-%d.npy'}\n")
    check(f"check: a long chain of vars {order}", run("check", "chain.yaml").returncode == 0)
put("fast.json", '{"cores": 16, "speed": 4}\n')
fast = json.loads(run("simulate", "p.yaml", "--with", "run.json", "--json", "--machine", "fast.json").stdout)
check("simulate: --machine", 3 < fast["frames_per_s"] / is_["frames_per_s"] < 33 and fast["cores"]["all"] == 16,
      (fast["frames_per_s"], is_["frames_per_s"]))
put("gpu.json", '{"memory": "64GiB", "gpu": "NVIDIA H200", "gpu_memory": "141GB", "kernels_speed": 50,'
    ' "copy_in_gb_s": 50, "copy_out_gb_s": 50}\n')
gpu = json.loads(run("simulate", "p.yaml", "--with", "run.json", "--json", "--machine", "gpu.json", "--set",
                     "device=cuda").stdout or "{}")
check("simulate: a GPU that is not here",
      [e["name"] for e in gpu.get("engines", [])] == ["copy in", "compute", "copy out"], gpu)
put("here.json", run("machine").stdout)
check("simulate: this machine", json.loads(run("simulate", "p.yaml", "--with", "run.json", "--json", "--machine",
      "here.json").stdout)["cores"]["all"] == json.loads(get("here.json"))["cores"])
run("simulate", "p.yaml", "--with", "run.json", "--report", "page.html", name="simulate: a page")
page = get("page.html")
check("simulate: its timeline", '"traceEvents"' in page and '"cat": "stage"' in page and "<svg" in page)
run("simulate", "p.yaml", "--with", "run.json", "--report", "again.json", name="simulate: a report")
check("simulate: its JSON", json.loads(get("again.json"))["frames_per_s"] == is_["frames_per_s"])
try:
    import jsonschema
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.schema.json")) as f:
        schema = jsonschema.Draft202012Validator(json.load(f))
    for what, of in ("run", ran), ("simulation", is_), ("GPU", gpu):
        wrong = [e.message for e in schema.iter_errors(of)]
        check(f"the report of a {what} is as its schema says", not wrong, wrong)
except ImportError:
    print("SKIPPED, no jsonschema: whether reports are as their schema says")



def changed(**to):
    return put("bad.json", json.dumps({**ran, **to}))


def without(group, key):
    return changed(**{group: [{**s, key: None} for s in ran[group]]})


def lacking(of, key):
    return {k: of[k] for k in of if k != key}


SIMULATE = "simulate", "p.yaml", "--with"
refuses("simulate: no report", 2, r"needs the times of a run: gpipe run p.yaml --report run.json", "simulate", "p.yaml")
for name, text in {"no JSON": "hello", "a page": page, "empty": "", "cut": get("run.json")[:400], "list": "[]"}.items():
    refuses(f"simulate: {name}", 2, "this is not a report", *SIMULATE, put("bad.json", text))
NO_CORES = "bad.json: error: the report lacks 'cores.all', how many cores its threads shared; make it anew"
put("other.yaml", get("p.yaml").replace("name: clean", "name: dirty"))
put("workers.yaml", get("p.yaml").replace("name: clean", "name: clean\n    workers: 2"))
put("copied.yaml", get("p.yaml").replace("device: cpu", "device: cpu:0\ncopies: dma"))
put("mapped.yaml", get("copied.yaml").replace("copies: dma", "copies: mapped"))
run("run", "-q", "copied.yaml", "--report", "copied.json", name="a run with copies")
copied = json.loads(get("copied.json"))
run("run", "-q", "mapped.yaml", "--report", "mapped.json", name="a run whose kernels copy")
mapped = json.loads(run("simulate", "mapped.yaml", "--with", "mapped.json", "--json", "--set", "copies=dma").stdout or "{}")
check("simulate: copies, from a run without", {e["name"]: (e["by_kernels"], e["limit_gb_s"]) for e in mapped.get("engines", [])
      if e["name"] != "compute"} == {"copy in": (0, 5), "copy out": (0, 5)}, mapped.get("engines"))
for name, message, report, file in (
        ("none there", "no-such.json: error: there is no such file", lambda: "no-such.json", "p"),
        ("another version", "a report of gpipe 9.9.9, and this is gpipe", lambda: changed(gpipe="9.9.9"), "p"),
        ("a failed run", r"did not come to its end \(outcome: error\)", lambda: changed(outcome="error"), "p"),
        ("of a simulation", "the report of a simulation", lambda: "again.json", "p"),
        ("of several ranks", "bad.json: error: this is the report of a run of several ranks",
         lambda: changed(rank=0, ranks=[{"host": "a"}, {"host": "a"}]), "p"),
        ("no frames", "a run of 3 frames is too short to know what one costs: 10 or more",
         lambda: changed(sources=[{**ran["sources"][0], "in": 3}]), "p"),
        ("no busy time", "lacks the busy time of 'generate'", lambda: without("stages", "busy_s"), "p"),
        ("no CPU time", "lacks the CPU time of 'generate'", lambda: without("stages", "cpu_s"), "p"),
        ("no kernels", "lacks the CPU time of the kernels of 'scale'",
         lambda: without("segments", "kernels_cpu_s"), "p"),
        ("no cores", NO_CORES, lambda: put("bad.json", json.dumps(lacking(ran, "cores"))), "p"),
        ("no all", NO_CORES, lambda: changed(cores=lacking(ran["cores"], "all")), "p"),
        ("no turns", "the report lacks the time of turns of 'generate'; make it anew",
         lambda: changed(stages=[lacking(s, "turn_us") for s in ran["stages"]]), "p"),
        ("no wakes", "bad.json: error: the report lacks 'wakes', how long it takes to wake a thread; make",
         lambda: put("bad.json", json.dumps(lacking(ran, "wakes"))), "p"),
        ("no bytes of copies", "the report lacks the rate of 'copy (in|out)'; make it anew", lambda: put("bad.json",
         json.dumps({**copied, "engines": [lacking(e, "bytes") for e in copied["engines"]]})), "copied"),
        ("another pipeline", "a report of another pipeline, .* it has no stage 'dirty'", lambda: "run.json", "other"),
        ("an older state", "it has other workers in stage 'clean'", lambda: "run.json", "workers")):
    refuses(f"simulate: {name}", 2, message, "simulate", file + ".yaml", "--with", report())
put("drop.lua", 'function process(f, x, y) return "drop" end')
put("copy.lua", "function process(f, x, y) y:copy(x) end")
put("holes.yaml", "buffers: {a: {dtype: f32, shape: [4]}}\nstages:\n  - {use: generate, frames: 20, out: a}\n"
    "  - {use: lua, script: drop.lua, out: b}\n  - {use: lua, script: copy.lua}\n  - {use: scale, a: 2}\n"
    "  - {use: lua, script: copy.lua}\n  - {use: write, path: never.npy}\n  - {use: write, path: all.npy, in: a}\n")
run("run", "-q", "holes.yaml", "--report", "holes.json", name="a run with stages that see holes alone")
run("simulate", "holes.yaml", "--with", "holes.json", name="simulate: stages that saw holes alone")
report = changed(cores={**ran["cores"], "all": 2, "others": 1.9})
crowded = json.loads(run(*SIMULATE, report, "--json").stdout)
check("simulate: as many cores as there were", crowded["cores"]["all"] == 2, crowded["cores"])
for name, message, machine, *args in (
        ("other segments", "kernels ran on the CPU in the report, and this machine has a GPU", '{"gpu": "x"}',
         "device=cuda"),
        ("no copy rates", "say 'copy_in_gb_s'", '{"gpu": "x", "kernels_speed": 2}', "device=cuda"),
        ("a machine's key", "m.json:1:2: error: a machine has no 'core'; did you mean 'cores'", '{"core": 3}'),
        ("a machine's number", "m.json:1:11: error: 'cores' must be a number from 1", '{"cores": 0}'),
        ("no machine", "a machine is an object", "3"),
        ("a wrong --set", "--set depht=3", "{}", "depht=3")):
    refuses(f"simulate: {name}", 2, message, *SIMULATE, "run.json", "--machine", put("m.json", machine),
            *(w for a in args for w in ("--set", a)))
refuses("simulate: a report's name", 2, r"must end in .json or .html", *SIMULATE, "run.json", "--report", "x.txt")

# == simulate: devices, ranks ====================================================
put("lanes.yaml", "depth: 8\nbatch: 1\nvars: {frames: 400}\nbuffers: {g: {dtype: f32, shape: [64, 64]}}\nstages:\n"
    "  - {use: generate, pattern: noise, frames: frames, out: g}\n  - {use: blur, sigma: 4}\n"
    "  - {use: reduce, op: max}\n  - {use: discard}\n")


def simulate(name, *args):
    p = run("simulate", *args, "--json", name=f"simulate: {name}")
    return json.loads(p.stdout or '{"frames_per_s": 0, "engines": [], "stages": [], "sources": [{"in": 0}]}')


run("run", "lanes.yaml", "--device", "cpu:0", "--report", "part.json", name="simulate: a report of a part of the CPU")
lanes = simulate("parts of the CPU", "lanes.yaml", "--with", "part.json", "--set", "device=cpu:0-2")
check("simulate: an engine of each part", [(e["device"], e["name"]) for e in lanes["engines"]] == [
      (f"cpu:{d}", name) for d in range(3) for name in ("copy in", "compute", "copy out")], lanes["engines"])
check("simulate: what is assumed of parts", "take turns on 3 parts of the CPU" in str(lanes.get("assumed")), lanes)
run("run", "lanes.yaml", "--device", "cpu:0-1", "--report", "parts.json", name="simulate: a report of two parts")
is_ = simulate("two parts", "lanes.yaml", "--with", "parts.json")
check("simulate: two parts make all frames", is_["sources"][0]["in"] == 400 and is_["frames_per_s"] > 0, is_)

# A report as of a GPU: kernels of 1 ms, and nothing else that takes long.
gpu = json.loads(get("part.json"))
gpu.update(set=["device=cuda:0"], wall_s=0.4, pipeline=dict(gpu["pipeline"], device="cuda:0"),
           cores={"all": 16, "used": 1, "others": 0, "quota": None})
gpu["engines"] = [dict(name=name, busy=busy / 0.4, busy_s=busy, bytes=size, gb_s=0, limit_gb_s=limit, measured=True)
                  for name, busy, size, limit in (("copy in", 0, 6553600, 50), ("compute", 0.4, 0, None),
                                                  ("copy out", 0, 102400, 50))]
for stage in gpu["stages"]:
    stage.update(busy_s=0.001, cpu_s=0.001, frame_p50_us=2.5, frame_p99_us=2.5, **{
        key: 0 for key in stage if re.match(r"(idle|wait|held|delayed)\w*_s$", key)})
gpu["segments"][0].update(launching_s=0.001, launches=400, frame_p50_us=1000, frame_p99_us=1000)
put("gpu.json", json.dumps(gpu))
ON = "lanes.yaml", "--with", "gpu.json"
rates = [simulate(f"{n} GPUs", *ON, "--set", f"device=cuda:0-{n - 1}", "--set", "vars.frames=4000")["frames_per_s"]
         for n in (1, 2, 8)]
check("simulate: GPUs as many times as fast", 950 < rates[0] < 1050 and 1.9 < rates[1] / rates[0] < 2.05
      and 7.5 < rates[2] / rates[0] < 8.1, rates)
ranks = simulate("ranks", *ON, "--ranks", "64", "--nodes", "8", "--set", "vars.frames=19200")
check("simulate: 64 ranks", ranks["frames_per_s"] / rates[0] > 55 and ranks["sources"][0]["in"] == 19200
      and ranks["stages"][0]["frames"] == 300, ranks)
check("simulate: what is assumed of ranks", "64 ranks on 8 machines, all alike; the threads of 8 ranks share"
      in str(ranks.get("assumed")), ranks)
for what, of in ("lanes", lanes), ("ranks", ranks):
    wrong = [e.message for e in schema.iter_errors(of)] if "schema" in globals() else []
    check(f"the report of {what} is as its schema says", not wrong, wrong)
# On a machine each, with all frames on each: as many times as fast.
alone = put("alone.yaml", get("lanes.yaml").replace("out: g}", "out: g, shard: none}"))
many = simulate("1,000 ranks", alone, *ON[1:], "--ranks", "1000", "--nodes", "1000", "--set", "vars.frames=4000")
check("simulate: 1,000 ranks", 950 < many["frames_per_s"] / rates[0] < 1050 and many["stages"][0]["frames"] == 300,
      many["frames_per_s"])
check("simulate: each rank has its machine", "ranks and processes" not in many["verdict"]["text"], many["verdict"])
p = run("simulate", *ON, "--ranks", "4", name="simulate: ranks, as text")
check("simulate: assumptions are printed, of each rank", "for each rank" in p.stdout and len(re.findall(
      r"^assumed: (?!there (?:is|are) .* other processes)", p.stdout, re.M)) == 4, p.stdout)
for name, said, *args in (
        ("one core is no '1 cores'", "the threads of 2 ranks share 1 core\n", "2", "--machine",
         put("m1.json", '{"cores": 1}')),
        ("which machine has how many", "assumed: 4 ranks on 3 machines of one sort, 2 on one of them and 1 on each of "
         "the others; the threads of 2 ranks share", "4", "--nodes", "3"),
        ("one on each", "assumed: 4 ranks on 4 machines, all alike; the threads of 1 rank share", "4", "--nodes", "4"),
        ("more on most machines", "assumed: 8 ranks on 3 machines of one sort, 3 on each of 2 and 2 on the other;", "8",
         "--nodes", "3"),
        ("how to say that there are more", "assumed: 4 ranks share 1 GPU of a machine, in turns; more are said by "
         "'devices' in the file that '--machine' names\n", "4", "--machine", put("m2.json", '{"gpu": "x"}'))):
    p = run("simulate", *ON, "--ranks", *args)
    check(f"simulate: {name}", p.returncode == 0 and said in p.stdout, p.stdout + p.stderr)
run("simulate", *ON, "--set", "device=cuda:0-1", "--report", "two.html", name="simulate: a page of two GPUs")
page = get("two.html")
check("simulate: its tracks", all(f'"name": "cuda:{d} copy in"' in page for d in (0, 1)))
for n in ("0", "-1", "x", "1001"):
    refuses(f"simulate: --ranks {n}", 2, r"--ranks .*: must be a number from 1 to 1000", "simulate", *ON, "--ranks", n)
refuses("simulate: more machines than ranks", 2, r"--nodes 3: there are 2 ranks, and each machine has at least one",
        "simulate", *ON, "--ranks", "2", "--nodes", "3")
two = {"devices": 2 * [{"name": "a", "compute_capability": 9, "memory": "80GB"}]}
refuses("simulate: fewer GPUs", 4, r"there is no device 'cuda:0-7'; this machine has 2", "simulate", *ON,
        "--device", "cuda:0-7", "--machine", put("m.json", json.dumps(two)))
refuses("simulate: other devices", 2, r"wrong.json: error: a report of a run on 'cpu:0', and with its settings this "
        r"plan is for 'cpu:0, cpu:1'", "simulate", "lanes.yaml", "--with",
        put("wrong.json", get("part.json").replace('"device=cpu:0"', '"device=cpu:0-1"')))
put("sum.yaml", get("lanes.yaml").replace("  - {use: discard}", "  - {name: sum, use: all_reduce}\n  - {use: discard}"))
run("run", "sum.yaml", "--device", "cpu", "--report", "sum.json", name="simulate: a report with a collective stage")
SUM = "simulate", "sum.yaml", "--with", "sum.json", "--ranks", "4", "--nodes", "2"
for name, message, *machine in (
        ("no rate", "'sum' goes from one machine to another, at a rate that is not known: say 'network_gb_s' in a file "
         "that '--machine' names"),
        ("all that the file lacks at once", "(?ms)say 'network_gb_s'$.*say 'process_gb_s'$", '{"cores": 2}'),
        ("no rate in the file", "m.json: error: what ranks exchange in stage 'sum' .*: say 'process_gb_s'$",
         '{"network_gb_s": 10}'),
        ("a rate of 0", "m.json:1:18: error: 'network_gb_s' must be a number from 0.001", '{"network_gb_s": 0}')):
    refuses(f"simulate: {name}", 2, message, *SUM, *(w for m in machine for w in ("--machine", put("m.json", m))))
summed = [simulate(f"a network of {us} us", *SUM[1:], "--machine", put("m.json", json.dumps(
    {"network_gb_s": 10, "network_us": us, "process_gb_s": 10})))["frames_per_s"] for us in (10, 100000)]
# Five steps, of which in a ring of four ranks on two machines one in three goes over the network.
p = run(*SUM, "--machine", put("m.json", '{"network_gb_s": 10, "network_us": 1e5, "process_gb_s": 10}'),
        name="simulate: bound by the network")
check("simulate: which link bounds", re.search(r"bound by the network \(\d+ % of the time\): a round of 'sum' takes "
      r"[\d.]+ ms, most of it for 5 steps from machine to machine \(33.33 ms a step\), and what it sends at 10 GB/s is "
      r"little", p.stdout), p.stdout)
check("simulate: as many steps in what is assumed", "over each link in 5 steps, of which 2 are what ranks tell each "
      "other first; the slowest link has 10 GB/s, and 33.33 ms a step; " in p.stdout, p.stdout)
check("simulate: a slow network", abs(summed[1] / (4 / (5 * 0.1 / 3)) - 1) < 0.1 < summed[0], summed)
# What 'gpipe run' refuses of ranks, with its message (tests/ranks.py). The report of a pipeline is one of it with other
# paths, too.
small = "buffers: {g: {dtype: u8, shape: [8, 8]}}\nstages:\n  - {use: generate, out: g, frames: 40%s}\n"
put("strips.yaml", small.replace("[8, 8]", "[\"16 / ranks\", 8]") % ", shard: none" + "  - {use: exchange, rows: 4}\n"
    "  - {use: discard}\n")
put("cat.yaml", small % "" + "  - {use: write, command: [dd, of=cat.raw, status=none], format: raw}\n")
put("writes.yaml", small % "" + "  - {use: write, path: a.npy}\n")
put("reads.yaml", "buffers: {g: {dtype: u8, shape: [4]}}\nstages:\n  - {use: read, path: 'in${rank}/*.raw', out: g, "
    "format: raw}\n  - {use: discard}\n")
put("depths.yaml", get("p.yaml").replace("depth: 1 ", "depth: 2 - rank ").replace("3000", "100"))
for folder, last in ("in0", "x"), ("in1", "y"):
    os.makedirs(folder)
    for name in [*"0123456789", last]:
        put(f"{folder}/{name}.raw", "1234")
for name in "strips", "cat", "writes", "reads", "depths":
    run("run", "-q", name + ".yaml", "--report", name + ".json", name=f"simulate: a report of {name}")
for name, file, ranks, message in (
        ("a program for all frames", "cat", "4", "cat.yaml:4:11: error: stage 'write' takes all frames in their order, "
         "and the frames of its source are shared out among 4 ranks: write 'shard: none' there, for each rank to make "
         "all of them, put a stage before it in which ranks exchange frames, as 'gather_ranks', or run it in one"),
        ("too many ranks for the rows", "strips", "8",
         "strips.yaml:4:27: error: stage 'exchange': a strip of 2 rows has no 4 to give"),
        ("other files in other ranks", "reads", "2",
         "reads.yaml:3:11: error: source 'read': rank 1 finds files of other names than rank 0"),
        ("a rank that cannot run it", "depths", "3", "^rank 2: depths.yaml:2:8: error: 'depth' must be")):
    refuses(f"simulate: {name}", 3, message, "simulate", file + ".yaml", "--with", file + ".json", "--ranks", ranks)
for name, more, path, ranks, message in (
        ("one file", ", shard: none", "a.npy", ["4"], r"ranks 0 and 1 would both write 'a.npy': put \$\{rank\} into"),
        ("one file on two machines", ", shard: none", "'a${local_rank}.npy'", ["4", "--nodes", "2"],
         r"ranks 0 and 2 would both write 'a0.npy': put \$\{rank\}"),
        ("one file a frame", ", shard: none", "'a%d.png'", ["2"], r"ranks 0 and 1 would both write 'a%d.png'"),
        ("a file with a part of each", "", "a.tif", ["3"],
         r"'a.tif' is one for all frames, and each of 3 ranks has a part of them: put %05d"),
        ("numbers that differ", "", "'a%d.png', start: rank", ["2"], r"ranks 0 and 1 begin to number 'a%d.png'"),
        ("a file a rank", ", shard: none", "'a${rank}.npy'", ["4"], None),
        ("a file for each frame", "", "'a%d.png'", ["4"], None),
        ("a file that they write together", "", "a.npy", ["4"], None)):
    put("writes.yaml", small % more + f"  - {{use: write, path: {path}}}\n")
    p = run("simulate", "writes.yaml", "--with", "writes.json", "--ranks", *ranks)
    check(f"simulate: {name}", p.returncode == (3 if message else 0) and re.search(
          f"writes.yaml:4:11: error: stage 'write': {message}" if message else "", p.stderr), p.stderr)

# == tune =======================================================================
before = get("p.yaml")
p = run("tune", "p.yaml", "--budget", "6s", name="tune")
check("tune: a table", re.search(r"^settings .*simulated/s.*measured/s", p.stdout, re.M) and re.search(r"^as given ",
        p.stdout, re.M), p.stdout)
check("tune: what it proposes", "--- p.yaml" in p.stdout or "leave the file as it is" in p.stdout, p.stdout)
check("tune: the file is as it was", get("p.yaml") == before)
check("tune: how many", re.search(r"simulated \d+ settings in", p.stderr), p.stderr)
check("tune: nothing is left", sorted(f for f in os.listdir(".") if f.startswith(".")) == [], os.listdir("."))

# a source that keeps a pace: there is nothing to gain but what other processes make of it
paced = ("# every 4 ms\ndevice: cpu\ndepth: 1  # slots\nbuffers: {g: {dtype: u8, shape: [4]}}\nstages:\n"
          "  - {use: generate, out: g, frames: 100000, rate: 250}\n  - {use: discard}\n")
put("paced.yaml", paced)
p = run("tune", "paced.yaml", "--budget", "6s", "--write", name="tune: a source with a pace")
check("tune: it changes nothing, or what it says",
      (get("paced.yaml") == paced) == ("leave the file as it is" in p.stdout)
      and all(line in get("paced.yaml") for line in re.findall(r"^\+([^+].*)$", p.stdout, re.M)),
          p.stdout + get("paced.yaml"))
run("check", "paced.yaml", name="tune: what it writes is valid")

p_yaml, small = get("p.yaml"), "buffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
put("slow.lua", "function process(f, x, y) io.popen('sleep 0.7'):close() y:copy(x) end\n")
put("slow.yaml", p_yaml.replace("frames: 3000", "frames: 4").replace("free.lua", "slow.lua"))
put("begins.lua", "io.popen('sleep 0.7'):close()\nfunction process(f, x, y) y:copy(x) end\n")
put("begins.yaml", small + "  - {use: generate, frames: 100000000, out: x}\n  - {use: lua, script: begins.lua}\n"
    "  - {use: discard}\n")   # many frames come even in a moment
put("long.lua", "local n = 0\nfunction produce(f, y)\n  n = n + 1\n  if n > 400 then return false end\n"
    "  io.popen('sleep 0.05'):close()\n  y:fill(n)\nend\n")
put("long.yaml", "buffers: {x: {dtype: f32, shape: [4]}}\nstages:\n  - {use: lua, script: long.lua, out: x}\n"
    "  - {use: scale}\n  - {use: write, path: long.npy}\n")
put("fifo.yaml", small + "  - {use: read, path: stdin, format: raw, out: x}\n  - {use: discard}\n")
put("command.yaml", small + "  - {use: generate, out: x, frames: 9}\n"
    "  - {use: write, command: [tee, out.raw], format: raw}\n")
put("wrong.yaml", "stages:\n  - {use: nothing}\n")
os.chmod("paced.yaml", 0o444)
for name, code, message, *args in (
        ("a goal", 2, "--goal 'speed': write rate or latency", "p.yaml", "--goal", "speed"),
        ("a goal that nothing reaches", 1, "no settings that were measured reach the goal; nearest: .* frames/s, "
         "latency", "p.yaml", "--budget", "6s", "--goal", "rate, latency < 1ns"),
        ("a budget", 2, "--budget 0.02s is too small to measure anything", "p.yaml", "--budget", "20ms"),
        ("a budget for less than a few frames", 1,
         r"slow.yaml: error: 1 frame in [\d.]+ s: too few to be measured; give it time with --budget", "slow.yaml",
         "--budget", "1s"),
        ("a budget for less than one measurement", 2, r"--budget 1s is too small: one measurement took [\d.]+ s, and "
         r"several are needed; give it \d+s", "begins.yaml", "--budget", "1s"),
        ("a run that is longer than the budget", 1, r"long.yaml: error: a run did not end in 1 s, in which \d+ frames? "
         "came: give it fewer of them, or more time with --budget", "long.yaml", "--budget", "2s"),
        ("little memory", 2, "--memory .*: with depth 1 the pipeline needs", "p.yaml", "--budget", "6s", "--memory",
         "1KiB"),
        ("a size", 2, "--memory much: write a size, like 4GiB", "p.yaml", "--memory", "much"),
        ("stdin", 2, "name a file in place of '-'", "-"),
        ("what is read once", 2, "fifo.yaml:3:.*what 'read' reads can be read once", "fifo.yaml"),
        ("a program", 2, "command.yaml:4:.*'write' starts a program, and each measurement would start it again",
         "command.yaml"),
        ("--write with --set", 2, "--write with --set: the file would be tuned for values that it does not have",
         "p.yaml", "--write", "--set", "depth=2"),
        ("a read-only file", 2, "paced.yaml: error: --write: the file is read-only", "paced.yaml", "--write"),
        ("a wrong pipeline", 3, "wrong.yaml:2:.*no stage kind 'nothing'", "wrong.yaml")):
    refuses(f"tune: {name}", code, message, "tune", *args)
check("tune: which did not run", not os.path.exists("out.raw"))

total("tune")
