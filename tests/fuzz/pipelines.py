#!/usr/bin/env python3
"""pipelines.py GPIPE [SEED [PIPELINES [RUNS]]] - random pipelines, each run a few times.

Sources, joins, branches, scripts, kernels of one's own, carried state and buffers, loops, drops, partial frames,
frames that are regrouped, frames that fail, scripts that fail at their end. A first run with `on_error: drop` makes the
reference. The others have other devices, depths, workers, streams, batches and launches; some stop at
the first error, some are stopped by a signal or killed at any moment. Whatever happens:

* no hang, no crash, and each source's account adds up;
* a run that should have made everything has made the same bytes;
* of any other a numbered file is as in the reference, and a joined one begins as that does;
* nothing but a killed run leaves a temporary file, and after a killed one the next is whole.

The CPU back end alone; plain Python. `pipelines.py GPIPE SEED I..` runs pipeline I again.
"""
import os, random, re, signal, subprocess, sys, tempfile, time

FILES = {
    "copy.lua": "function process(f, x, y) y:copy(x) end",
    "drop.lua": "function process(f, x, y) if f.index % 5 == 2 then return 'drop' end y:copy(x) end",
    "fail.lua": "function process(f, x, y) if f.index % 11 == 7 then error('no') end y:copy(x) end",
    "late.lua": "function process(f, x, y) y:copy(x) end function finish() error('at the end') end",
    "part.lua": "function process(f, x, y) y:copy(x) f.valid = f.index % 4 end",
    "text.lua": "function process(f, x, y) y:print(f.index, x:sum()) end",
    "join.lua": "function process(f, x, y) if x.a.shape[1] == x.b.shape[1] then y:add(x.a, x.b)"
                " else y:copy(x.a) end end",
    "sink.lua": "function process(f, x) if f.index % 7 == 3 then return 'drop' end end",
    "twice.cu": """
extern "C" __global__ void twice(const float *in, float *out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 8 && y * 8 + x < n)
        out[y * 8 + x] = 2 * in[y * 8 + x];
}""",
    "mark.cu": """
extern "C" __global__ void mark(const float *in, size_t step, float *out, size_t next,
                                const gp_frame_info *frame)
{
    unsigned x = threadIdx.x, y = threadIdx.y, z = blockIdx.z;
    if (y < frame[z].valid)
        out[z * next + y * 8 + x] = in[z * step + y * 8 + x] + (float)frame[z].index;
}""",
    "turn.cu": """
extern "C" __global__ void turn(const float *in, float *out, int rows)
{
    extern __shared__ float row[];
    unsigned x = threadIdx.x, y = threadIdx.y;
    row[y * 8 + x] = (int)y < rows ? in[y * 8 + x] : 0;
    __syncthreads();
    if ((int)y < rows)
        out[y * 8 + x] = row[y * 8 + 7 - x];
}""",
}
BLOCK = "block: [8, 4], grid: [1, 1]"
KERNELS = {
    "twice": "use: kernel, source: twice.cu, threads: [8, \"in.size / 8\"], args: [in, out, {i32: in.size}], each_once: true",
    "mark": f"use: kernel, source: mark.cu, args: [in, out, frame], batched: true, each_once: true, {BLOCK}",
    "turn": f"use: kernel, source: turn.cu, args: [in, out, {{i32: \"in.shape[0]\"}}], each_once: true, {BLOCK}, shared: 128",
}
SCRIPTS = ["copy", "drop", "fail", "late", "part"]
OTHERS = ["scale", "sobel", "fir", "fir_splice", "carry"]
LOOPS = {
    f"loop{n}": f"use: loop, times: {n}, carry: {{in: out}}, stages: [{{use: sobel, in: in, out: mid}}, "
                "{use: scale, a: 0.25, in: mid, out: out}]" for n in (1, 2, 7, 200)
}
PAIRS = {                      # of stages that regroup: what comes out has the shape that went in
    "rows": ("use: group, frames: {}", "use: split"),
    "every": ("use: decimate, frames: {}", "use: hold, frames: {}"),
    "mean": ("use: mix, op: mean, frames: {}, tail: drop", "use: hold, frames: {}"),
    "last": ("use: window, frames: {}", "use: reduce, op: max, axes: [0]"),
}
ACCOUNT = re.compile(r"(\d+) frames? in, (\d+) out, (\d+) dropped, (\d+) failed, (\d+) cancelled")
SIGNALS = [[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT, signal.SIGINT], [signal.SIGKILL]]


def structure(r):
    """Stages as (name, what, in, out); what is a word of those above, or an end of a branch."""
    frames = r.choice([1, 7, 40, 400])
    stages = [("first", f"use: generate, in: [], pattern: ramp, frames: {frames}", None, "a")]
    names, used = ["a"], set()
    if r.random() < 0.5:
        other = r.choice(["", f", frames: {frames}", f", frames: {frames}+2"])
        stages += [("second", f"use: generate, in: [], pattern: noise{other}", None, "b"),
                   ("join", "join", "{a: a, b: b}", "j")]
        names = ["j"] + r.choice([[], ["a"]])
        used.add("a")
    for k in range(r.randint(1, 7)):
        source, out = r.choice(names), f"o{k}"
        used.add(source)
        what = r.choice(SCRIPTS + OTHERS + list(KERNELS) + list(LOOPS) + list(PAIRS))
        if what in PAIRS:
            by, (what, then) = r.randint(1, 5), PAIRS[what]
            stages.append((f"w{k}", what.format(by), source, f"w{k}"))
            what, source = then.format(by), f"w{k}"
        stages.append((f"s{k}", what, source, out))
        names.append(out)
    for k, name in enumerate(n for n in names if n not in used):
        form = r.choice(["raw", "npy", "numbered", "text", "sink"])
        if form == "text":
            stages.append((f"say{k}", "text", name, f"t{k}"))
        end = {"raw": f"use: write, path: out/{name}.raw", "npy": f"use: write, path: out/{name}.npy",
               "numbered": f"use: write, path: \"out/{name}-%05d.npy\"",
               "text": f"use: write, path: out/{name}.dat"}.get(form, "sink")
        stages.append((f"end{k}", end, f"t{k}" if form == "text" else name, None))
    return stages


def render(stages, r, on_error, reference):
    """The text, with settings that must not matter."""
    buffers, lines = [], []
    least = 5 if any(s[0][0] == "w" for s in stages) else 1        # room for what one firing takes
    auto = r.random() < 0.4                                        # many slots, of which few are in use at first
    for name, what, source, out in stages:
        workers = f", workers: {r.randint(1, 5)}"
        script = f"use: lua, script: {'copy' if what == 'late' and reference else what}.lua{workers}"
        use = {"fir": "use: fir, taps: [1, 2, 3]", "scale": "use: scale, a: 2", "sobel": "use: sobel",
               "fir_splice": "use: fir, taps: [1, 2, 3], on_hole: splice",
               "carry": f"use: lua, script: join.lua{workers}", **KERNELS, **LOOPS}.get(what, what if ":" in what else script)
        use = use.replace("+2", "") if reference else use        # of two lengths: an error
        if "%05d" in what:
            use += workers
        if out and out[0] != "w":
            shape = "dtype: u8, shape: [64]" if what == "text" else "dtype: f32, shape: [4, 8]"
            depth = f", depth: {r.randint(least, 9)}" if (out in "ab" or what == "text") and not auto else ""
            buffers.append(f"  {out}: {{{shape}{depth}}}")
        if what == "carry":            # adds what it made of the frame before
            buffers.append(f"  {out}_before: {{carry: {out}, on_hole: splice}}")
            source = f"{{a: {source}, b: {out}_before}}"
        if r.random() < 0.2:
            use += f", priority: {r.choice(['high', 'normal', 'low'])}"
        line = f"{{name: {name}, {use}" + (f", in: {source}" if source else "")
        lines.append(f"  - {line}" + (f", out: {out}}}" if out else ", out: []}" if what == "sink" else "}"))
    device = "cpu" if reference else r.choice(["cpu", "cpu", "cpu:0", "cpu:0-1", "cpu:0-2", "[cpu:4, cpu:1]"])
    head = [f"device: {device}", f"depth: {'auto' if auto else r.randint(1, 9)}", f"streams: {r.randint(1, 5)}",
            f"copies: {r.choice(['auto', 'auto', 'dma', 'mapped'])}",
            f"batch: {r.choice(['1', '2', 'auto'])}", f"launch: {r.choice(['graph', 'stream'])}",
            f"sync: {r.choice(['auto', 'spin', 'yield', 'block'])}",
            f"priority: {r.choice(['high', 'normal', 'low'])}", f"on_error: {on_error}", "stall_timeout: 30s"]
    return "\n".join(head + ["buffers:"] + buffers + ["stages:"] + lines) + "\n"


def run(gpipe, folder, text, poison, signals=(), after=0.0):
    """One run: its exit code, what it said on stderr, the files under out/."""
    with open(os.path.join(folder, "fuzz.yaml"), "w") as f:
        f.write(text)
    p = subprocess.Popen([gpipe, "run", "--progress", "none"] + ["--poison"] * poison + ["fuzz.yaml"], cwd=folder,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for s in signals:
        try:
            p.wait(after)
        except subprocess.TimeoutExpired:
            p.send_signal(s)
    try:
        said = p.communicate(timeout=120)[1]
    except subprocess.TimeoutExpired:
        p.kill()
        return "hangs", p.communicate()[1], {}
    out = os.path.join(folder, "out")
    return p.returncode, said, {n: open(os.path.join(out, n), "rb").read() for n in sorted(os.listdir(out))}


def rows(data):
    """A .npy's header without the number of rows, the bytes behind it; None: it is cut."""
    size = 10 + int.from_bytes(data[8:10], "little")
    head = data[10:size].decode()
    count = int(re.search(r"\((\d+),", head)[1])
    return re.sub(r"\(\d+,", "(", head).rstrip(), data[size:], count


def is_part(name, got, whole):
    """Is `got` the beginning of `whole`, or (a numbered file) all of it?"""
    if re.search(r"-\d{5}\.npy$", name):
        return got == whole
    if not name.endswith(".npy"):
        return whole.startswith(got)
    head, data, count = rows(got)
    return head == rows(whole)[0] and rows(whole)[1].startswith(data) and len(data) == count * 32


def wrong(code, said, files, first, whole, allowed, signaled):
    """What is wrong with a run, or None. `first`: the reference's files; `whole`: all is there."""
    temporary = [n for n in files if n.startswith(".")]
    accounts = [list(map(int, a)) for a in ACCOUNT.findall(said)]
    if code not in allowed or "anitizer" in said or "bug in gpipe" in said:
        return f"exit {code}, not one of {allowed}: {said[:800]}"
    if code != -signal.SIGKILL and temporary:
        return f"leaves {temporary}"
    if any(a[0] != sum(a[1:]) for a in accounts) or (not accounts and not signaled):
        return f"account: {said[:400]}"
    files = {n: data for n, data in files.items() if n not in temporary}
    if whole and files != first:
        return "wrote other bytes than the reference: " + ", ".join(
            n for n in {**files, **first} if files.get(n) != first.get(n))
    for name, data in files.items():
        base = re.sub(r"\.partial(\.\d+)?$", "", name) if code else name       # kept when a run fails
        if base not in first or not is_part(base, data, first[base]):
            return f"'{name}' is not as in the reference ({len(data)} bytes)"
    return None


def one_run(gpipe, folder, stages, r, first, failures, took):
    """A run with other settings: what is wrong with it, or None; its text."""
    on_error = r.choice(["stop", "drop"])
    fails = any(what == "late" or "+2" in what for _, what, _, _ in stages)
    signals = r.choice(SIGNALS) if r.random() < 0.5 else []
    text = render(stages, r, on_error, False)
    fails |= on_error == "stop" and failures > 0
    poison, after = r.randint(0, 1), r.random() * took
    code, said, files = run(gpipe, folder, text, poison, signals, after)
    allowed = [1 if fails else 0]
    if signals:
        allowed = sorted({0, 1 if fails else 0, {signal.SIGKILL: -9, signal.SIGTERM: 143}.get(signals[0], 130)})
    if signals and not files and code == -signals[0]:  # it came before gpipe listens
        code = allowed[0]
    bad = wrong(code, said, files, first, code == 0 and not signals, allowed, bool(signals))
    if not bad and code == 0 and files and files != first:
        bad = "exit 0, but not all is there"
    if not bad and code == -signal.SIGKILL:
        text = render(stages, r, "drop", True)
        code, said, files = run(gpipe, folder, text, 0)
        left = {n for n in files if n.startswith(".") or re.search(r"\.partial(\.\d+)?$", n)}     # by that one
        bad = wrong(code, said, {n: d for n, d in files.items() if n not in left}, first, True, [0], False)
        bad = bad and f"after a killed run: {bad}"
    return bad, f"# signals {[s.name for s in signals]} after {after:.3f} s, poison {poison}\n{text}"


def one_pipeline(gpipe, seed, i, runs):
    """What is wrong with a pipeline, and its text; None: nothing."""
    r = random.Random(seed * 1000003 + i)
    stages = structure(r)
    first, failures, took = None, 0, 0.0
    for k in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "out"))
            for name, body in FILES.items():
                with open(os.path.join(folder, name), "w") as f:
                    f.write(("stateless = true\n" if name.endswith("lua") else "") + body + "\n")
            if k:
                bad, text = one_run(gpipe, folder, stages, r, first, failures, took)
            else:
                text = render(stages, r, "drop", True)
                start = time.monotonic()
                code, said, first = run(gpipe, folder, text, 0)
                took = time.monotonic() - start
                failures = sum(int(a[3]) for a in ACCOUNT.findall(said))
                if code == 3 and "would make nothing: it takes " in said and not first:
                    return None                        # a group that so few frames never fill: refused
                bad = wrong(code, said, first, first, True, [0], False)
        if bad:
            return f"run {k}: {bad}\n{text}"
    return None


def main():
    gpipe = os.path.abspath(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1, 1 << 31)
    only = [int(sys.argv[3][:-2])] if len(sys.argv) > 3 and sys.argv[3].endswith("..") else None
    count = int(sys.argv[3]) if len(sys.argv) > 3 and not only else 40
    runs = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    failed, pipelines = 0, only or range(count)
    print(f"fuzz: pipelines of seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as cache:       # of compiled kernels
        os.environ["XDG_CACHE_HOME"] = cache
        for i in pipelines:
            bad = one_pipeline(gpipe, seed, i, runs)
            failed += bool(bad)
            if bad:
                print(f"fuzz: pipeline {i}: {bad}\nrepeat: python3 tests/fuzz/pipelines.py "
                      f"{sys.argv[1]} {seed} {i}.. {runs}", flush=True)
    print(f"fuzz: {len(pipelines) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
