#!/usr/bin/env python3
"""simulate.py - how well 'gpipe simulate' and 'gpipe tune' do on this machine: to be run by hand, it takes minutes.

    tests/simulate.py GPIPE [--tune]

For several pipelines a report is made with the given settings, and about 20 other settings are simulated from it and
measured, each from a report of just before (so that what other processes take counts in both). Printed: the error of
each rate; how many are within 10 %; whether the five that were fastest also simulate as the fastest.
ONLY=host,edges in the environment takes these alone.
With --tune: the rate of what 'gpipe tune' proposes to that of the best of a sweep, and the runs that each took."""
import json, os, statistics, subprocess, sys, tempfile

gpipe = os.path.abspath(sys.argv[1])
here = os.path.dirname(os.path.abspath(__file__))
pipelines = os.path.join(here, "..", "pipelines")
tmp = tempfile.TemporaryDirectory()
ROUNDS = 3

SLEEPS = "stateless = true\nlocal t = os.clock\nfunction process(f, x, y)\n  y:copy(x)\n  local e = t() + %s\n" \
         "  while t() < e do end\nend\n"
FILES = {
    "host.yaml": "buffers: {g: {dtype: f32, shape: [1024]}}\nstages:\n  - {use: generate, frames: 900, out: g}\n"
                 "  - {name: a, use: lua, script: a.lua}\n  - {name: b, use: lua, script: b.lua}\n  - {use: discard}\n",
    "a.lua": SLEEPS % "0.0005", "b.lua": SLEEPS % "0.001",
    "kernels.yaml": "buffers: {g: {dtype: f32, shape: [256, 256]}}\nstages:\n  - {use: generate, frames: 700, out: g}\n"
                    "  - {use: blur, sigma: 2}\n  - {use: sobel}\n  - {name: b, use: lua, script: c.lua}\n"
                    "  - {use: discard}\n",
    "c.lua": SLEEPS % "0.0003",
    "small.yaml": "depth: 8\nbuffers: {g: {dtype: f32, shape: [4096]}}\nstages:\n"
                  "  - {use: generate, frames: 60000, out: g}\n"
                  "  - {use: scale, a: 2}\n  - {use: discard}\n",
}
for name, text in FILES.items():
    with open(os.path.join(tmp.name, name), "w") as f:
        f.write(text)
OUT = ["vars.out=" + tmp.name + "/out"]
CASES = [
    (os.path.join(tmp.name, "host.yaml"), [], ["stages.a.workers", "stages.b.workers"]),
    (os.path.join(tmp.name, "kernels.yaml"), [], ["streams", "stages.b.workers"]),
    (os.path.join(tmp.name, "small.yaml"), [], ["streams", "batch"]),
    (os.path.join(pipelines, "edges.yaml"), OUT + ["vars.frames=30"], ["streams", "stages.write.workers"]),
    (os.path.join(pipelines, "average.yaml"), OUT + ["vars.frames=40"], ["streams", "stages.write.workers"]),
]
DEPTHS, VALUES = [1, 2, 4, 8], [1, 2]


def sets(list_):
    return [w for s in list_ for w in ("--set", s)]


def measure(file, settings):
    out = os.path.join(tmp.name, "r.json")
    subprocess.run([gpipe, "run", "-q", file, "--report", out, *sets(settings)], check=True)
    with open(out) as f:
        return json.load(f)


def simulate(file, settings, report):
    text = subprocess.run([gpipe, "simulate", file, "--with", report, "--json", *sets(settings)], check=True,
                          stdout=subprocess.PIPE).stdout
    return json.loads(text)


def all_settings(keys):
    for d in DEPTHS:
        for v in VALUES:
            for w in VALUES:
                yield [f"depth={d}", f"{keys[0]}={v}", f"{keys[1]}={w}"]
    yield from (["depth=16"], ["depth=3"], [f"{keys[0]}=4"], [f"{keys[1]}=4"])


def compare(file, given, keys):
    """Each setting is predicted from a run with the given ones that was just before it, ROUNDS times."""
    report, rows = os.path.join(tmp.name, "r.json"), []
    measure(file, given)               # caches, compilers
    for s in all_settings(keys):
        base, predicted, is_ = [], [], []
        for _ in range(ROUNDS):
            base.append(measure(file, given)["frames_per_s"])
            predicted.append(simulate(file, s, report)["frames_per_s"])
            is_.append(measure(file, given + s)["frames_per_s"])
        rows.append({"set": " ".join(s), "simulated": statistics.median(predicted), "measured": statistics.median(is_),
                     "error": statistics.median(p / m for p, m in zip(predicted, is_)) - 1,
                     "gain": statistics.median(p / b for p, b in zip(predicted, base)),
                     "ratio": statistics.median(m / b for m, b in zip(is_, base))})
        r = rows[-1]
        print(f"  {r['set']:52} simulated {r['simulated']:9.1f}  measured {r['measured']:9.1f}  "
              f"{100 * r['error']:+5.0f} %   to the given one {r['gain']:5.2f} {r['ratio']:5.2f}", flush=True)
    errors = [abs(r["error"]) for r in rows]
    print(f"{os.path.basename(file)}: {sum(e <= 0.1 for e in errors)} of {len(rows)} within 10 %, "
          f"{sum(e <= 0.2 for e in errors)} within 20 %, median {100 * statistics.median(errors):.1f} %")
    best = [sorted(rows, key=lambda r: -r[k])[:5] for k in ("gain", "ratio")]
    found = best[0][0]["ratio"] / best[1][0]["ratio"]
    print(f"{os.path.basename(file)}: of the five fastest, {sum(r in best[0] for r in best[1])} are among the five "
          f"that simulate as fastest; the first of these has {found:.2f} of the best rate", flush=True)
    return rows


def tune(file, given, keys, rows):
    """Rates of what is proposed and of the best of the sweep, measured in turns."""
    text = subprocess.run([gpipe, "tune", file, "--budget", "40s", *sets(given)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    chosen = [l for l in text.stdout.splitlines() if l.endswith("best")]
    proposed = [w for w in chosen[0].split() if "=" in w] if chosen else []
    runs = 1 + text.stderr.count("gpipe: turn")
    best = max(rows, key=lambda r: r["ratio"])["set"].split()
    pairs = [(measure(file, given + proposed)["frames_per_s"], measure(file, given + best)["frames_per_s"])
             for _ in range(2 * ROUNDS)]
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"{os.path.basename(file)}: tune proposes {' '.join(proposed) or 'the given settings'}: {ratio:.2f} of the "
          f"best of the sweep ({' '.join(best)}), with {runs} measurements, where the sweep took "
          f"{len(rows) * ROUNDS}", flush=True)


every, only = [], os.environ.get("ONLY", "").split(",")
for file, given, keys in CASES:
    if only != [""] and os.path.basename(file).split(".")[0] not in only:
        continue
    print(os.path.basename(file), flush=True)
    rows = compare(file, given, keys)
    every += rows
    if "--tune" in sys.argv:
        tune(file, given, keys, rows)
errors = [abs(r["error"]) for r in every]
print(f"all: {sum(e <= 0.1 for e in errors)} of {len(errors)} within 10 %, "
      f"median {100 * statistics.median(errors):.1f} %")
