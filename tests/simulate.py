#!/usr/bin/env python3
"""simulate.py - how well 'gpipe simulate' and 'gpipe tune' do on this machine: to be run by hand, it takes minutes.

    tests/simulate.py GPIPE [--device cuda] [--settings 50] [--rounds 3] [--seconds 0.4] [--tune] [--keep FOLDER]
                            [PIPELINE ...]
    tests/simulate.py GPIPE --again FOLDER [PIPELINE ...]

For fourteen pipelines a report is made with the given settings, and so many others are simulated from it and measured,
each from a report of just before (so that what other processes take counts in both); the middle of the rounds counts. A
run has as many frames as take about so many seconds. Printed: the error of each rate; how many are within 10 %; whether
the five that were fastest also simulate as the fastest. With --tune: the rate of what 'gpipe tune' proposes to that of
the best of the sweep, and the runs that each took. --keep leaves pipelines and reports in a folder, from which --again
simulates, on any machine, without a run: what another gpipe would have predicted. No simulation can be nearer than one
measurement is to the next: how near that is of the given settings is printed last."""
import argparse, itertools, json, os, random, subprocess, sys, tempfile
from statistics import median

options = argparse.ArgumentParser()
for name, is_ in (("gpipe", {}), ("pipelines", {"nargs": "*"}), ("--device", {"default": "cpu"}), ("--keep", {}),
                  ("--settings", {"type": int, "default": 50}), ("--rounds", {"type": int, "default": 3}),
                  ("--seconds", {"type": float, "default": 0.4}), ("--tune", {"action": "store_true"}), ("--again", {})):
    options.add_argument(name, **is_)
args = options.parse_intermixed_args()
gpipe = os.path.abspath(args.gpipe)
here = os.path.dirname(os.path.abspath(__file__))
tmp = tempfile.TemporaryDirectory()
work = os.path.abspath(args.again or args.keep or tmp.name)
os.makedirs(work, exist_ok=True)

# A count, not a clock: that of Lua is of all threads, and so runs faster where more of them work.
WORKS = "stateless = true\nfunction process(f, x, y)\n  y:copy(x)\n  local s = 0\n" \
        "  for i = 1, %d do s = s + i end\nend\n"
FILES = {"half.lua": WORKS % 100000, "one.lua": WORKS % 200000, "third.lua": WORKS % 60000,
         "copy.lua": "stateless = true\nfunction process(f, x, y) y:copy(x) end\n"}


def chain(shape, *stages, source="{use: generate, frames: frames, out: g}", more=""):
    return f"vars: {{frames: 100}}\nbuffers: {{g: {{dtype: f32, shape: {shape}}}{more}}}\nstages:\n  - {source}\n" \
        + "".join(f"  - {s}\n" for s in stages) + "  - {use: discard}\n"


def lua(name, script):
    return f"{{name: {name}, use: lua, script: {script}.lua}}"


BLUR, SOBEL, SCALE = "{use: blur, sigma: 2}", "{use: sobel}", "{use: scale, a: 2}"
DEVICE = {"streams": ["1", "2", "4", "8"], "batch": ["1", "2", "8"]}
W = ["1", "2", "4"]
# A text, or a file beside this one; what is varied beside the depth.
CASES = {
    "host": (chain("[1024]", lua("a", "half"), lua("b", "one")), {"stages.a.workers": W, "stages.b.workers": W}),
    "three": (chain("[1024]", lua("a", "third"), lua("b", "third"), lua("c", "half")),
              {"stages.a.workers": W, "stages.c.workers": W}),
    "cheap": (chain("[16]", lua("a", "copy"), lua("b", "copy"), lua("c", "copy")), {"stages.b.workers": ["1", "2"],
              "stages.generate.workers": ["1", "2"]}),
    "bare": (chain("[16]"), {"sync": ["auto", "block"]}),
    "kernels": (chain("[256, 256]", BLUR, SOBEL, lua("b", "third")),
                {"streams": ["1", "2", "4"], "stages.b.workers": W}),
    "device": (chain("[512, 512]", BLUR, SOBEL, BLUR), DEVICE),
    "small": (chain("[1024]", SCALE), DEVICE),
    "tiny": (chain("[16]", SCALE, "{use: cast, dtype: f64}"), DEVICE),
    "copies": (chain("[1048576]", SCALE), DEVICE),
    "between": (chain("[256, 256]", SCALE, lua("b", "half"), BLUR), {"streams": ["1", "2"], "stages.b.workers": W}),
    "sums": (chain("[256, 1024]", BLUR, "{use: reduce, op: sum, axes: [1]}"), DEVICE),
    "edges": ("edges", {"streams": ["1", "2", "4"], "stages.write.workers": W}),
    "average": ("average", {"streams": ["1", "2"], "stages.write.workers": W}),
    "contrast": ("contrast", {"streams": ["1", "2", "4"], "batch": ["1", "2"]}),
}
DEPTHS = ["1", "2", "3", "4", "6", "8", "16", "32", "64", "256"]
for name, text in [] if args.again else FILES.items():
    with open(os.path.join(work, name), "w") as f:
        f.write(text)


def sets(list_):
    return [w for s in list_ for w in ("--set", s)]


def measure(file, settings, report="r.json"):
    out = os.path.join(work, report)
    if not args.again:
        subprocess.run([gpipe, "run", "-q", file, "--report", out, *sets(settings)], check=True, stdout=subprocess.DEVNULL)
    with open(out) as f:
        return json.load(f)


def simulate(file, settings, report):
    return json.loads(subprocess.run([gpipe, "simulate", file, "--with", report, "--json", *sets(settings)], check=True,
                                     stdout=subprocess.PIPE).stdout)


def all_settings(name, knobs):
    """So many of all, other ones for each pipeline, the same each time."""
    every = [[f"depth={d}", *(f"{k}={v}" for k, v in zip(knobs, values))]
             for d in DEPTHS for values in itertools.product(*knobs.values())]
    return random.Random(name).sample(every, min(args.settings, len(every)))


def given_of(name, what):
    if "\n" in what:
        file, given = os.path.join(work, name + ".yaml"), []
        if not args.again:
            with open(file, "w") as f:
                f.write(what)
    else:
        file, given = os.path.join(here, "..", "pipelines", what + ".yaml"), ["vars.out=" + work + "/out"]
    given.append("device=" + args.device)
    kept = os.path.join(work, name + ".given.json")
    if args.again:
        with open(kept) as f:
            args.settings, args.rounds, given = json.load(f)
        return file, given
    frames = 40
    for _ in range(3):                 # caches, compilers; then what takes so long
        rate = measure(file, given + [f"vars.frames={frames}"])["frames_per_s"]
        frames = max(40, min(int(rate * args.seconds), 1000000))
    given.append(f"vars.frames={frames}")
    with open(kept, "w") as f:
        json.dump([args.settings, args.rounds, given], f)
    return file, given


def ratio(of, to):
    return median(a / b for a, b in zip(of, to))


def within(errors):
    return f"{sum(e <= 0.1 for e in errors)} of {len(errors)} within 10 %, median {100 * median(errors):.1f} %"


def compare(name, file, given, knobs):
    """Each setting is predicted from a run with the given ones that was just before it, in rounds."""
    rows, given_rates = [], []
    for s in all_settings(name, knobs):
        base, predicted, is_ = [], [], []
        for i in range(args.rounds):
            before, after = (f"{name}.{i}.{w}.{' '.join(s).replace('/', '_')}.json" for w in ("given", "is"))
            base.append(measure(file, given, before)["frames_per_s"])
            predicted.append(simulate(file, s, os.path.join(work, before))["frames_per_s"])
            is_.append(measure(file, given + s, after)["frames_per_s"])
        given_rates.append(median(base))
        r = {"set": " ".join(s), "error": ratio(predicted, is_) - 1, "gain": ratio(predicted, base),
             "ratio": ratio(is_, base)}
        rows.append(r)
        print(f"  {r['set']:52} simulated {median(predicted):9.1f}  measured {median(is_):9.1f}  "
              f"{100 * r['error']:+5.0f} %   to the given one {r['gain']:5.2f} {r['ratio']:5.2f}", flush=True)
    print(f"{name}: {within([abs(r['error']) for r in rows])}")
    again.extend(abs(b / a - 1) for a, b in zip(given_rates, given_rates[1:]))
    best = [sorted(rows, key=lambda r: -r[k])[:5] for k in ("gain", "ratio")]
    found = best[0][0]["ratio"] / best[1][0]["ratio"]
    print(f"{name}: of the five fastest, {sum(r in best[0] for r in best[1])} are among the five "
          f"that simulate as fastest; the first of these has {found:.2f} of the best rate", flush=True)
    return rows


def tune(name, file, given, rows):
    """Rates of what is proposed and of the best of the sweep, measured in turns."""
    text = subprocess.run([gpipe, "tune", file, "--budget", "40s", *sets(given)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    chosen = [l for l in text.stdout.splitlines() if l.endswith("best")]
    proposed = [w for w in chosen[0].split() if "=" in w] if chosen else []
    runs = 1 + text.stderr.count("gpipe: turn")
    best = max(rows, key=lambda r: r["ratio"])["set"].split()
    pairs = [(measure(file, given + proposed)["frames_per_s"], measure(file, given + best)["frames_per_s"])
             for _ in range(2 * args.rounds + 1)]
    print(f"{name}: tune proposes {' '.join(proposed) or 'the given settings'}: {ratio(*zip(*pairs)):.2f} of the "
          f"best of the sweep ({' '.join(best)}), with {runs} measurements, where the sweep took "
          f"{len(rows) * args.rounds}", flush=True)


for unknown in set(args.pipelines) - set(CASES):
    sys.exit(f"there is no '{unknown}'; there are {', '.join(CASES)}")
every, again = [], []                  # again: how far the given settings are from themselves, measured once more
for name, (what, knobs) in CASES.items():
    if args.pipelines and name not in args.pipelines:
        continue
    print(name, flush=True)
    file, given = given_of(name, what)
    rows = compare(name, file, given, knobs)
    every += rows
    if args.tune:
        tune(name, file, given, rows)
print(f"all: {within([abs(r['error']) for r in every])}; of the given settings, measured again: {within(again or [0])}")
