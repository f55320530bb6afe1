#!/usr/bin/env python3
"""fuzz.py GPIPE [SEED [PIPELINES [RUNS]]] - random pipelines, each run a few times.

Sources, joins, branches, drops, failing and partial frames, carried state, any
depth and number of workers. Whatever happens: no hang, no crash, each source's
account adds up, and a run that succeeds always writes the same bytes. Only the
CPU back end; plain Python.
"""
import os
import random
import re
import subprocess
import sys
import tempfile

SCRIPTS = {
    "copy": "function process(f, x, y) y:copy(x) end",
    "drop": "function process(f, x, y) if f.index % 5 == 2 then return 'drop' end y:copy(x) end",
    "fail": "function process(f, x, y) if f.index % 11 == 7 then error('no') end y:copy(x) end",
    "part": "function process(f, x, y) y:copy(x) f.valid = f.index % 4 end",
    "join": "function process(f, x, y) if x.a.shape[1] == x.b.shape[1] then y:add(x.a, x.b)"
            " else y:copy(x.a) end end",
    "sink": "function process(f, x) if f.index % 7 == 3 then return 'drop' end end",
}
ACCOUNT = re.compile(r"(\d+) frames? in, (\d+) out, (\d+) dropped, (\d+) failed, (\d+) cancelled")


def pipeline(r):
    frames = r.choice([1, 7, 40])
    buffers = [f"  a: {{dtype: f32, shape: [4, 8], depth: {r.randint(1, 9)}}}"]
    stages = [f"  - {{name: first, use: generate, pattern: ramp, frames: {frames}, out: a}}"]
    names, used = ["a"], set()
    if r.random() < 0.5:
        other = r.choice(["", f", frames: {frames}", f", frames: {frames + 2}"])
        buffers += [f"  b: {{dtype: f32, shape: [4, 8], depth: {r.randint(1, 9)}}}",
                    "  j: {dtype: f32, shape: [4, 8]}"]
        stages += [f"  - {{name: second, use: generate, in: [], pattern: noise{other}, out: b}}",
                   "  - {name: join, use: lua, script: join.lua, in: {a: a, b: b}, out: j,"
                   f" workers: {r.randint(1, 4)}}}"]
        names = ["j"] + r.choice([[], ["a"]])
        used.add("a")
    for k in range(r.randint(1, 7)):
        source, out = r.choice(names), f"o{k}"
        used.add(source)
        use = r.choice(["copy", "drop", "fail", "part", "fir", "scale", "sobel"])
        what = {"fir": f"use: fir, taps: [1, 2, 3], on_hole: {r.choice(['reset', 'splice'])}",
                "scale": "use: scale, a: 2", "sobel": "use: sobel"}.get(
                    use, f"use: lua, script: {use}.lua, workers: {r.randint(1, 6)}")
        stages.append(f"  - {{name: s{k}, {what}, in: {source}, out: {out}}}")
        names.append(out)
    for k, name in enumerate(n for n in names if n not in used):
        end = (f"use: write, format: raw, path: out/{name}.raw" if r.random() < 0.7
               else "use: lua, script: sink.lua, out: []")
        stages.append(f"  - {{name: end{k}, {end}, in: {name}}}")
    head = [f"depth: {r.randint(1, 9)}", f"streams: {r.randint(1, 5)}",
            f"batch: {r.choice(['1', '2', 'auto'])}", f"launch: {r.choice(['graph', 'stream'])}",
            f"on_error: {r.choice(['stop', 'drop'])}", "stall_timeout: 20s"]
    return "\n".join(head + ["buffers:"] + buffers + ["stages:"] + stages) + "\n"


def run(gpipe, folder, poison):
    """One run: what went wrong (or None), whether it succeeded, what it wrote."""
    try:
        p = subprocess.run([gpipe, "run", "--device", "cpu", "--progress", "none"]
                           + ["--poison"] * poison + ["fuzz.yaml"], cwd=folder,
                           capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "hangs", False, None
    accounts = [list(map(int, a)) for a in ACCOUNT.findall(p.stderr)]
    if p.returncode not in (0, 1) or "anitizer" in p.stderr or "bug in gpipe" in p.stderr:
        return f"exit {p.returncode}: {p.stderr[:400]}", False, None
    if not accounts or any(a[0] != sum(a[1:]) for a in accounts):
        return f"account: {p.stderr[:400]}", False, None
    out = os.path.join(folder, "out")
    files = {n: open(os.path.join(out, n), "rb").read() for n in sorted(os.listdir(out))}
    return None, p.returncode == 0, files


def main():
    gpipe = os.path.abspath(sys.argv[1])
    seed, pipelines, runs = [int(a) for a in sys.argv[2:5]] + [1, 40, 3][len(sys.argv) - 2:]
    passed = failed = 0
    for i in range(pipelines):
        text, first, wrong = pipeline(random.Random(seed * 1000003 + i)), None, None
        for k in range(runs):
            with tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "out"))
                for name, script in SCRIPTS.items():
                    with open(os.path.join(folder, name + ".lua"), "w") as f:
                        f.write("stateless = true\n" + script + "\n")
                with open(os.path.join(folder, "fuzz.yaml"), "w") as f:
                    f.write(text)
                wrong, done, files = run(gpipe, folder, k % 2)
            if done and first is not None and files != first:
                wrong = "another run wrote other bytes"
            first = files if done and first is None else first
            if wrong:
                break
        passed, failed = passed + (not wrong), failed + bool(wrong)
        if wrong:
            print(f"fuzz: seed {seed}, pipeline {i}: {wrong}\n{text}")
    print(f"fuzz: {passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
