#!/usr/bin/env python3
"""ranks_report.py GPIPE - what several ranks show of their run: one report, one trace, one progress, metrics of each.
With each MPI that is installed; without any it says that it skips. Prints a total; exit 1 after a failure."""
import glob, json, os, re, select, signal, socket, subprocess, sys, time, urllib.request

sys.dont_write_bytecode = True         # nothing is left beside the sources
import ranks_kit
from kit import free_port
from ranks_kit import PARAMS_AND_THERE, check, finish, gpipe, has, left_alone, put, ran, ranks_here, tests, tmp
try:
    import jsonschema
except ImportError:
    jsonschema = None
    print("SKIPPED, no jsonschema: whether reports and traces are as their schemas say")

HOST = socket.gethostname()[:63]
os.environ["XDG_RUNTIME_DIR"] = tmp.name
mpis = ranks_kit.mpis()


def fits(what, schema, data):
    if jsonschema:
        with open(os.path.join(tests, schema)) as f:
            wrong = [(list(e.path)[:6], e.message[:300])
                     for e in jsonschema.Draft202012Validator(json.load(f)).iter_errors(data)][:5]
        check(f"{what}: as its schema says", not wrong, wrong)


def read(name):
    try:
        with open(name) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


# Clocks that differ: by 50 ms a rank, and faster by 1 % a rank from when the test began, so that they drift apart.
put("skew.c", """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int clock_gettime(clockid_t id, struct timespec *t)
{
    static int rank = -1;
    static long long from;
    if (rank < 0) {
        const char *ompi = getenv("OMPI_COMM_WORLD_RANK"), *pmi = getenv("PMI_RANK"), *begun = getenv("SKEW_FROM");
        from = begun ? atoll(begun) : 0;
        rank = ompi ? atoi(ompi) : pmi ? atoi(pmi) : 0;
    }
    int failed = (int)syscall(SYS_clock_gettime, id, t);
    if (!failed && id == CLOCK_MONOTONIC) {
        long long ns = t->tv_sec * 1000000000LL + t->tv_nsec;
        ns += rank * (50000000LL + (ns - from) / 100);
        t->tv_sec = ns / 1000000000, t->tv_nsec = ns % 1000000000;
    }
    return failed;
}
""")
# Rank 0 stops when its clock is to be compared with others: nothing else of gpipe asks for so many bytes of a name.
put("stop.c", """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int gethostname(char *name, size_t n)
{
    const char *ompi = getenv("OMPI_COMM_WORLD_RANK"), *pmi = getenv("PMI_RANK");
    if (n == 63 && atoi(ompi ? ompi : pmi ? pmi : "1") == 0)
        raise(SIGSTOP);
    return ((int (*)(char *, size_t))dlsym(RTLD_NEXT, "gethostname"))(name, n);
}
""")
for name in "skew", "stop":
    put(f"{name}.sh", f"""#!/bin/sh
LD_PRELOAD=./{name}.so ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" exec {gpipe} "$@"
""")
    os.chmod(f"{name}.sh", 0o755)
    p = ran(["cc", "-shared", "-fPIC", "-o", f"{name}.so", f"{name}.c", "-ldl"])
    check(f"{name}.c", p.returncode == 0, p.stderr)

put("slow.lua", """stateless = true
local mine
function init(s) mine = s.params.rank == s.params.slow end
function process(frame, x, y)
  if mine then os.execute('sleep 0.02') end
  y:copy(x)
end
""")
SLOW = """
buffers: {x: {dtype: f32, shape: [64]}}
stages:
  - {use: generate, frames: 60, out: x}
  - {use: lua, name: work, script: slow.lua, params: {rank: "${rank}", slow: WHO}}
  MORE
  - {use: discard}
"""
put("slow.yaml", SLOW.replace("WHO", "2").replace("  MORE\n", ""))
put("rounds.yaml", SLOW.replace("WHO", "1").replace("MORE", "- {use: all_reduce}\n  - {use: expr, expr: in / 2}"))
put("blocked.lua", PARAMS_AND_THERE + """function process(frame, x, y)
  if p.rank < 2 and frame.index > 56 then io.open('others-' .. p.rank, 'w'):close() end
  while p.rank == 2 and frame.index == 8 and not there('go') do os.execute('sleep 0.05') end
  y:copy(x)
end
""")
put("blocked.yaml", SLOW.replace("slow.lua", "blocked.lua").replace("WHO", "2").replace("  MORE\n", ""))
put("vanish.lua", """stateless = true
function process(frame, x, y)
  if frame.index == 3 then os.execute('rm -r vanishes') end
  y:copy(x)
end
""")
put("vanish.yaml", SLOW.replace("slow.lua", "vanish.lua").replace("WHO", "2").replace("  MORE\n", ""))
put("gather.yaml", """
buffers: {x: {dtype: u8, shape: [4096]}}
stages:
  - {use: generate, frames: 3000, out: x}
  - {use: gather_ranks}
  - {use: discard}
""")
put("last.yaml", """
buffers: {x: {dtype: u8, shape: [16]}}
stages:
  - {use: generate, frames: 200, out: x}
  - {use: lua, name: work, script: last.lua, params: {rank: "${rank}"}}
  - {use: all_gather}
  - {use: discard}
""")
put("last.lua", PARAMS_AND_THERE + """function process(frame, x, y)
  while p.rank == 1 and frame.index > 8 and not there('go') do os.execute('sleep 0.05') end
  y:copy(x)
end
""")
put("meet.yaml", """
buffers: {x: {dtype: f32, shape: [256]}}
stages:
  - {use: generate, frames: 4000, out: x}
  - {use: all_reduce, name: meet}
  - {use: discard}
""")
put("both.yaml", """
buffers: {x: {dtype: f32, shape: [256]}}
stages:
  - {use: generate, frames: 160, shard: none, out: x}
  - {use: lua, name: work, script: naps.lua, workers: 1}
  - {use: all_reduce, name: meet}
  - {use: discard}
""")
put("paced.yaml", """
buffers: {x: {dtype: f32, shape: [256]}}
stages:
  - {use: generate, frames: 600, rate: 10, out: x}
  - {use: discard}
""")
put("naps.lua", "function process(frame, x, y) os.execute('sleep 0.02') y:copy(x) end\n")
put("shares.yaml", """
buffers: {a: {dtype: u8, shape: [16]}, b: {dtype: u8, shape: [16]}}
stages:
  - {use: generate, name: few, frames: 2, out: a}
  - {use: generate, name: many, frames: 300, out: b}
  - {use: discard, in: a}
  - {use: discard, in: b}
""")
put("held.yaml", """
stall_timeout: 4s
buffers: {x: {dtype: u8, shape: [16]}}
stages:
  - {use: generate, frames: 6000, out: x}
  - {use: discard}
""")
ENDLESS = """
stall_timeout: 4s
buffers: {x: {dtype: i32, shape: [3]}}
stages: [{use: generate, rate: 300, out: x}, {use: write, path: "TO/%08d.raw"}]
"""


# ---- what holds of all ------------------------------------------------------

def slices(trace, track):
    """Of the thread of this name in each rank, [(rank, frame, begin, end)] in us."""
    events = trace.get("traceEvents", [])
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    return [(e["pid"] - 1, e["args"]["frame"] + i * e["args"].get("step", 1), e["ts"], e["ts"] + e["dur"])
            for e in events if e["ph"] == "X" and e["cat"] == "stage" and names[e["pid"], e["tid"]] == track
            for i in range(e["args"]["frames"])]


def is_whole(what, r, n, frames):
    """Is it a report of n ranks?"""
    fits(what, "report.schema.json", r)
    ranks = r.get("ranks", [])
    there = [x["rank"] for x in ranks] == list(range(n)) and all(x["report"] for x in ranks)
    check(f"{what}: a report of each", there, str(r)[:500])
    if not there:
        return False
    top = {k: v for k, v in r.items() if k not in ("rank", "whole", "ranks")}
    check(f"{what}: above is that of the rank that bounds the whole", top == ranks[r["rank"]]["report"], r["rank"])
    check(f"{what}: the counts of each are its own", all(x["sources"] == x["report"]["sources"] for x in ranks))
    whole = r["whole"]
    sums = {k: sum(x["sources"][0][k] for x in ranks) for k in ("in", "out", "dropped", "failed", "cancelled", "late", "lost", "full",
                                                            "faulty")}
    check(f"{what}: the whole is the sum", whole["sources"] == [dict(sums, name="generate")]
          and sums["out"] == frames, whole)
    check(f"{what}: the time is that of the rank that took longest, and the rate is of all",
          whole["wall_s"] == max(x["report"]["wall_s"] for x in ranks)
          and abs(whole["frames_per_s"] * whole["wall_s"] - frames) < 1e-6 * frames, whole)
    check(f"{what}: hosts", all(x["host"] == HOST for x in ranks), ranks[0]["host"])
    errors = [x["clock_error_us"] for x in ranks]
    check(f"{what}: errors of clocks are known", errors[0] == 0 and all(e > 0 for e in errors[1:]), errors)
    return True


# ---- the report and the trace of all ----------------------------------------

def test_slow(m):
    """One rank is slower than the others."""
    p = m.run(3, "run", "slow.yaml", "-v", "--report", f"{m.name}.json", "--trace", f"{m.name}-trace.json")
    what, r, t = f"{m.name}: a slow rank", read(f"{m.name}.json"), read(f"{m.name}-trace.json")
    check(what, p.returncode == 0, p.stderr)
    if is_whole(what, r, 3, 60):
        check(f"{what} is found", r["rank"] == 2 and r["verdict"]["text"].startswith("rank 2: "), r["verdict"])
        off = [(x["clock_offset_us"], x["clock_error_us"]) for x in r["ranks"]]
        check(f"{what}: clocks of one machine are the same", all(abs(o) <= e for o, e in off), off)
        said = r"^gpipe: of 3 ranks rank 2 is the slowest: \d+ frames/s, up to \d+ in others$"
        once = [len(re.findall(said, p.stderr, re.M)), p.stderr.count("  busy  no input"),
                p.stderr.count(r["verdict"]["text"]), p.stderr.count("overlap")]
        check(f"{what} is in the account, which is printed once", once == [1, 1, 1, 1], p.stderr)
    fits(f"{m.name}: the trace", "trace.schema.json", t)
    events, what = t.get("traceEvents", []), f"{m.name}: the trace"
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    check(f"{what}: a process for each rank", names == {r + 1: f"rank {r} on {HOST}" for r in range(3)}, names)
    flows = {}
    for e in events:
        if e["ph"] in "stf":
            flows.setdefault(e["id"], set()).add(e["pid"])
    check(f"{what}: arrows stay in their rank", len(flows) > 3 and all(len(v) == 1 for v in flows.values()), len(flows))
    check(f"{what}: counters of each rank", {e["pid"] for e in events if e["ph"] == "C"} == {1, 2, 3})
    frames = sorted((frame, rank) for rank, frame, _, _ in slices(t, "work"))
    check(f"{what}: frames have the numbers of all", frames == [(i, i % 3) for i in range(60)], frames)

    p = ran([gpipe, "plan", "slow.yaml", "--svg", "--with", f"{m.name}.json"])
    check(f"{m.name}: plan --with", p.returncode == 0 and "rank 2: " in p.stdout, p.stderr)
    p = ran([gpipe, "simulate", "slow.yaml", "--with", f"{m.name}.json"])
    check(f"{m.name}: simulate --with", p.returncode == 2 and f"{m.name}.json: error: this is the report of a run of "
          "several ranks" in p.stderr and not p.stdout, p.stderr)


def test_clocks(m):
    """Clocks that differ, and drift; all ranks wait for one in each round."""
    what, files = f"{m.name}: clocks that differ", (f"{m.name}-rounds.json", f"{m.name}-rounds-trace.json")
    begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    os.environ["SKEW_FROM"] = str(begun)
    p = ran(m.start(3, "run", "rounds.yaml", "--report", files[0], "--trace", files[1], command="./skew.sh"))
    took = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begun) / 1e3
    r, t = read(files[0]), read(files[1])
    check(what, p.returncode == 0, p.stderr)
    fits(what, "trace.schema.json", t)
    if not is_whole(what, r, 3, 60):
        return
    off = [(x["rank"], x["clock_offset_us"], x["clock_error_us"]) for x in r["ranks"]]
    found = [50000 * k - e <= o <= k * (50000 + took / 100) + e for k, o, e in off]
    check(f"{what}: by how much is found", all(found), off)
    check(f"{what}: the rank for which all wait is found", r["rank"] == 1
          and r["verdict"]["text"].startswith("rank 1: "), (r["rank"], r["verdict"]["text"]))

    # A round is done when all ranks have begun it: on one clock it does not end before each has its frame.
    error = 2 * max(e for _, _, e in off) + 1
    ready, done = {}, {}
    for _, frame, _, end in slices(t, "work"):
        ready.setdefault(frame // 3, []).append(end)
    for _, k, _, end in slices(t, "all_reduce"):
        done.setdefault(k, []).append(end)
    three = [k for x in (done, ready) for k in sorted(x) if len(x[k]) == 3]
    check(f"{what}: the trace has all rounds of all", three == 2 * list(range(20)), three)
    early = [k for k in done if min(done[k]) < max(ready.get(k, [0])) - error]
    check(f"{what}: no round ends before each rank has its frame", not early, early)
    last = max(e["ts"] for e in t["traceEvents"] if "ts" in e)
    check(f"{what}: the trace is no longer than the run", last < took, (last, took))
    of = {e["args"].get("of") for e in t["traceEvents"] if e["ph"] == "X"}
    check(f"{what}: rounds have numbers of their own", len(of) == 2 and None not in of, of)


def test_page(m):
    p = m.run(2, "run", "-q", "rounds.yaml", "--report", f"{m.name}.html")
    page = has(".").get(f"{m.name}.html", b"").decode()
    form = r'<script type="application/json" id="(\w+)">(.*?)</script>'
    parts = {k: json.loads(v) for k, v in re.findall(form, page, re.S)}
    events = parts.get("trace", {}).get("traceEvents", [])
    check(f"{m.name}: a page", p.returncode == 0 and "frames" not in p.stderr and page.count('id="stage') > 2
          and len(parts["report"]["ranks"]) == 2 and {e["pid"] for e in events if e["ph"] == "X"} == {1, 2}, p.stderr)


# ---- a run that goes on -----------------------------------------------------

def said():
    """The objects of --progress json."""
    with open("said") as f:
        return [json.loads(x) for x in f.read().split("\n")[:-1] if x.startswith("{")]


def top(pid):
    """What `gpipe top` shows of a rank at first: its JSON, and the line that it draws last."""
    said = []
    for args, end in ((["--json"], "{"), ([], "gpipe: ")):
        p = subprocess.Popen([gpipe, "top", *args, *str(pid).split()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        line = p.stdout.readline()
        while line and not line.startswith(end):
            line = p.stdout.readline()
        p.kill()
        p.communicate()
        said.append(line)
    return json.loads(said[0] or "{}"), said[1]


def test_live(m):
    """Rank 2 waits at its third frame, until the others are done and all has been looked at."""
    for name in [*glob.glob("others-*"), *glob.glob("go")]:
        os.remove(name)
    with open("said", "w") as f:
        p = m.begin(3, "run", "blocked.yaml", "--progress", "json", "--metrics", "0", err=f)
    end, what = time.monotonic() + 60, f"{m.name}: while it runs"
    while time.monotonic() < end and not (any(x.get("behind") == 2 and x["done"] >= 40 for x in said())
                                          and sum("metrics:" in x.get("text", "") for x in said()) == 3):
        time.sleep(0.1)
    v = ([x for x in said() if "seconds" in x] or [{}])[-1]
    check(f"{what}: the whole is shown", v.get("rank") == 0 and v["ranks"] == 3 and 40 <= v["done"] < 60 == v["frames"]
          and 40 <= v["stages"][1]["frames"] < 60, v)
    check(f"{what}: who is behind", v.get("behind") == 2 and v["behind_done"] < 20, v)
    ranks = ranks_here()
    v, line = top(ranks.get(0, 0))
    check(f"{what}: top of rank 0 shows the whole", v.get("rank") == 0 and 40 <= v["done"] < 60, v)
    check(f"{what}: that is said", line.startswith(f"gpipe: 3 ranks: {v['done']} of 60 frames, ")
          and f", rank 2 is behind with {v['behind_done']}" in line, line)
    v, line = top(ranks.get(2, 0))
    check(f"{what}: top of another shows that one", v.get("rank") == 2 and v["ranks"] == 3
          and v["done"] < 20 == v["frames"], v)
    check(f"{what}: and says which it is", re.match(r"gpipe: rank 2 of 3: \d+ of 20 frames", line), line)
    text = {}
    for x in said():
        for r, url in re.findall(r"gpipe: rank (\d): metrics: (http:\S+)", x.get("text", "")):
            with urllib.request.urlopen(url, timeout=60) as f:
                text[int(r)] = f.read().decode()
    wrong = [x for r in text for x in text[r].splitlines() if x[0] != "#"
             and not re.match(rf'gpipe_\w+{{rank="{r}"[,}}]', x)]
    check(f"{what}: metrics of each have its number", sorted(text) == [0, 1, 2] and not wrong, wrong or text)
    put("go", "")
    left = left_alone(p, ranks, 60)
    last, account = [x for x in said() if x.get("ended")], [x["account"] for x in said() if "account" in x]
    check(f"{what}: at the end all is counted", p.returncode == 0 and len(last) == len(account) == 1
          and last[0]["done"] == last[0]["frames"] == account[0]["sources"][0]["out"] == 60
          and {x["frames"] for x in last[0]["stages"]} == {60}, f"{left} {last} {account}")


def test_metrics(m):
    p = m.run(2, "run", "slow.yaml", "--metrics", "65535")
    says = "rank 1: gpipe: error: --metrics '65535': rank 1 would have port 65536"
    check(f"{m.name}: a port too many", p.returncode and p.stderr.count(says) == 1, p.stderr)
    for _ in range(5):                     # the next one may be another's
        port = free_port()
        p = m.run(2, "run", "slow.yaml", "--metrics", str(port))
        if "in use" not in p.stderr:
            break
    says = [f"gpipe: rank {r}: metrics: http://127.0.0.1:{port + r}/metrics" for r in (0, 1)]
    check(f"{m.name}: a port for each", p.returncode == 0 and all(p.stderr.count(x) == 1 for x in says), p.stderr)


# ---- what cannot be, and ranks that are lost --------------------------------

def test_errors(m):
    for args, says in ((("--report", "nowhere/r.json"), "nowhere/r.json: error: cannot be written: there is no folder"),
                       (("--trace", "nowhere/t.json"), "nowhere/t.json: error: cannot be written: there is no folder"),
                       (("--report", "r.txt"), "--report r.txt: the name must end in .json or .html")):
        p = m.run(3, "run", "slow.yaml", *args)
        check(f"{m.name}: {args[1]}: one error", p.returncode == 2 and "it did not end" not in p.stderr
              and p.stderr.count(says) == p.stderr.count("error:") == 1, p.stderr)
    os.makedirs("vanishes", exist_ok=True)
    p = m.run(3, "run", "vanish.yaml", "--report", "vanishes/r.json")
    counts = [p.stderr.count(x) for x in ("vanishes/r.json: error: ", "error:", "60 frames in, 60 out")]
    check(f"{m.name}: a folder that vanishes: one error", p.returncode and counts == [1, 1, 1], p.stderr)
    os.environ["GPIPE_MPI"] = m.so
    run = ["-n", "1", gpipe, "run", "slow.yaml"]
    p = ran([m.mpirun, *run, "--report", "r.json", ":", *run])
    says = "rank 1 was given other settings than rank 0"
    check(f"{m.name}: a report of some is asked for", p.returncode == 2 and p.stderr.count(says) == 1, p.stderr)


def test_shares(m):
    """A source that has none for one of the ranks."""
    p = m.run(3, "run", "shares.yaml", "--progress", "json")
    last = [x for x in map(json.loads, re.findall(r"^{.*}$", p.stderr, re.M)) if x.get("ended")]
    check(f"{m.name}: fewer frames than ranks", p.returncode == 0 and len(last) == 1
          and last[0]["done"] == last[0]["frames"] == 300, p.stderr)


def test_waits(m):
    """Of ranks that are as fast, one that waits for the others does not bound them."""
    p = m.run(2, "run", "gather.yaml", "-v", "--report", f"{m.name}-gather.json")
    r = read(f"{m.name}-gather.json")
    rates = [x["report"]["frames_per_s"] for x in r.get("ranks", [])]
    alike = [x["report"]["verdict"]["text"] for x, rate in zip(r.get("ranks", []), rates) if rate <= 1.04 * min(rates)]
    waits = [x for x in alike if "where ranks meet" in x]
    check(f"{m.name}: who waits for others bounds nobody", p.returncode == 0 and len(rates) == 2
          and (len(waits) == len(alike) or "where ranks meet" not in r["verdict"]["text"]), p.stderr)


def test_meets(m):
    """Where ranks meet: which of them comes last, or that the exchange takes the time."""
    wrong = r"divide|have to be faster|workers: \d"
    p = m.run(2, "run", "rounds.yaml", "-v", "--report", f"{m.name}-last.json")
    r = read(f"{m.name}-last.json")
    text = r.get("verdict", {}).get("text", "")
    check(f"{m.name}: the rank that comes last bounds the whole", p.returncode == 0 and r.get("rank") == 1
          and text.startswith("rank 1: ") and "'work'" in text and text in p.stderr, p.stderr)
    p = m.run(2, "run", "meet.yaml", "-v", "--report", f"{m.name}-meet.json")
    text = read(f"{m.name}-meet.json").get("verdict", {}).get("text", "")
    meets = re.search("where ranks meet .*(No rank comes last, so the exchange takes .*: exchange more at a time"
                      "|Others wait longer, up to \\d+ %, so this rank comes last)", text)
    check(f"{m.name}: nobody is told to divide an exchange", p.returncode == 0 and text in p.stderr
          and (meets or "meet'" not in text) and not ("meet'" in text and re.search(wrong, text)), p.stderr)


def test_busy(m):
    """What all ranks are busy with bounds them, not where they meet."""
    p = m.run(2, "run", "both.yaml", "--report", f"{m.name}-both.json")
    text = read(f"{m.name}-both.json").get("verdict", {}).get("text", "")
    check(f"{m.name}: a busy stage before the exchange", p.returncode == 0 and "'work'" in text and "exchange" not in text,
          text + p.stderr)


def test_last(m):
    """While it runs: rank 1 waits at a frame, and the other in the exchange."""
    if os.path.exists("go"):
        os.remove("go")
    with open("said", "w") as f:
        p = m.begin(2, "run", "last.yaml", "--progress", "json", err=f)
    end, what = time.monotonic() + 60, f"{m.name}: a rank that comes last"
    while time.monotonic() < end and not any(x.get("bound_rank") == 1 and x["bound_by"] == "work" for x in said()):
        time.sleep(0.1)
    ranks, last = ranks_here(), ([x for x in said() if "seconds" in x] or [{}])[-1]
    line = top(ranks.get(0, 0))[1]
    check(f"{what} is named while it runs", last.get("bound_rank") == 1 and last["bound_by"] == "work", last)
    others = glob.glob(f"/tmp/gpipe-{os.geteuid()}/*.sock")
    check(f"{what}: all ranks are one run", others or top("")[0].get("rank") == 0)
    check(f"{what}: top says so", "> 'work' of rank 1 holds back the rest" in line, line)
    q, end = subprocess.Popen([gpipe, "run", "-q", "paced.yaml"], stdin=subprocess.DEVNULL), time.monotonic() + 60
    while time.monotonic() < end and not top(q.pid)[0]:      # of a single run `gpipe top` would show it until it ends
        time.sleep(0.1)
    rows = ran([gpipe, "top"], timeout=60).stdout
    q.kill(), q.wait()
    check(f"{what}: beside another run top lists rank 0 alone", "last.yaml, rank 0 of 2\n" in rows
          and "rank 1 of 2" not in rows, rows)
    put("go", "")
    left = left_alone(p, ranks, 60)
    check(f"{what}: it ends", p.returncode == 0, left)


def hold(m, limit, meanwhile):
    """Rank 0 is held up where it writes the trace, to a pipe, while meanwhile(ranks) goes on. What all said, the exit
    code, the trace."""
    if os.path.exists("held"):
        os.remove("held")
    os.mkfifo("held")
    pipe, text = os.open("held", os.O_RDONLY | os.O_NONBLOCK), b""
    p = m.begin(3, "run", "held.yaml", "--trace", "held", "--report", f"{m.name}-held.json", "--join-timeout",
                f"{limit}s")
    while p.poll() is None and not select.select([pipe], [], [], 0.1)[0]:
        pass
    ranks = ranks_here()
    if p.poll() is None:
        meanwhile(ranks)
    os.set_blocking(pipe, True)
    while more := os.read(pipe, 1 << 20):
        text += more
    os.close(pipe)
    return left_alone(p, ranks), p.returncode, text


def test_held(m):
    """Rank 0 is busy with the trace for longer than the others would wait without a sign of it."""
    limit, heard = 1, "to start"
    while limit < 60 and re.search("to (start|compile|be set up)", heard):      # too busy a machine
        limit *= 2
        heard, code, text = hold(m, limit, lambda ranks: time.sleep(2.5 * limit))
    check(f"{m.name}: ranks wait while rank 0 writes", code == 0 and "error" not in heard, f"{code} {heard}")
    events = json.loads(code == 0 and text or "{}").get("traceEvents", [])
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    check(f"{m.name}: and all are in the trace", len(names) == 3, names)


def test_stopped(m, *meanwhile):
    """Rank 0 is stopped before the run, where all compare their clocks with its."""
    p = m.begin(3, "run", "held.yaml", "--report", "stopped.json", command="./stop.sh")
    for test in meanwhile:
        test(m)
    heard = left_alone(p, ranks_here())
    says = "rank 1: gpipe: error: waited 4 s for rank 0 to give a sign of life"
    check(f"{m.name}: a stopped rank 0 is named by another, and all end", p.returncode and "did not end" not in heard
          and heard.count(says) == heard.count("error: ") == 1, f"{p.returncode} {heard}")


def test_silent(m):
    """Rank 1 is stopped before it has told its trace."""
    heard, code, text = hold(m, 10, lambda ranks: os.kill(ranks[1], signal.SIGSTOP))
    cut = heard.count("rank 0: held: error: not written: what rank 1 told of it is not whole")
    check(f"{m.name}: a rank that does not answer is named once, and the others end", code
          and "did not end" not in heard
          and heard.count("rank 0: gpipe: error: rank 1 does not answer") == 1 and heard.count("error: ") == 1 + cut,
          f"{code} {heard}")
    events = [] if cut else json.loads(text or "{}").get("traceEvents", [])
    check(f"{m.name}: the trace has the others", cut or {e["pid"] for e in events if e["ph"] == "X"} == {1, 3}, heard)


def test_killed(m, whom):
    to, what = f"killed-{whom}", f"{m.name}: rank {whom} is killed"
    put("killed.yaml", ENDLESS.replace("TO", to))
    p = m.begin(3, "run", "killed.yaml", "--report", f"{to}.json", options=("--enable-recovery",))
    end = time.monotonic() + 60
    while not os.path.exists(f"{to}/00000301.raw") and time.monotonic() < end:     # by then each has told of some
        time.sleep(0.02)
    ranks = ranks_here()
    os.kill(ranks.get(whom, p.pid), signal.SIGKILL)
    heard = left_alone(p, ranks)
    check(f"{what}: it is named, and all end", "it did not end" not in heard
          and heard.count(f"waited 4 s for rank {whom} to give a sign of life") == 1, heard)
    r = read(f"{to}.json")
    if whom == 0:
        says = "rank 1: gpipe: error: rank 0 is lost, which writes the report and the trace of all"
        check(f"{what}: there is no report, and that is said", not r and heard.count(says) == 1, heard)
        return
    fits(what, "report.schema.json", r)
    all_of = [{k: v for k, v in x.items() if k != "report"} for x in r.get("ranks", [])]
    told = [x["sources"][0]["out"] for x in all_of]
    check(f"{what}: the report names it", [x["lost"] for x in all_of] == [False, True, False] and r["rank"] != whom
          and [x["answered"] for x in all_of] == [True, False, True]
          and r["ranks"][whom]["report"] is None and all_of[whom]["clock_offset_us"] is None, f"{all_of} {heard}")
    check(f"{what}: what it told last counts", all_of and told[whom] > 50
          and r["whole"]["sources"][0]["out"] == sum(told), f"{all_of} {r.get('whole')}")


for m in mpis:
    test_stopped(m, test_slow, test_clocks, test_page, test_metrics, test_errors, test_shares, test_waits, test_meets)
    test_busy(m), test_live(m), test_last(m)
    if m is mpis[0]:
        test_held(m)
    if m.name == "openmpi":                # with other launchers the others end, too
        test_silent(m)
        test_killed(m, 1), test_killed(m, 0)
finish(", ".join(m.name for m in mpis))
