#!/usr/bin/env python3
"""exprs.py GPIPE [--rounds N] [--seed N] [--device D] - random expressions of random types and shapes, against NumPy, by the
rules in tests/ref/make_exprs.py; half of them with neighbors. Needs numpy. A stage that differs is left in the folder that is named."""
import argparse, os, subprocess, sys, tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../ref"))
import make_exprs as ref  # noqa: E402

for inexact in ("abs", "arg", "exp"):    # of c64
    del ref.COMPLEX1[inexact]
EACH = 40                               # expressions in a pipeline
SHAPES = [(6, 5, 3), (5, 3), (5, 1), (1,), (6, 1, 1), (3,)]


def same(a, b):
    if a.dtype.kind == "c":
        return a.dtype == b.dtype and same(a.real, b.real) and same(a.imag, b.imag)
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f") and (
        a.dtype.kind != "f" or np.array_equal(np.signbit(a) | np.isnan(a), np.signbit(b) | np.isnan(b)))


def one_round(rng, gpipe, device, folder):
    names = [*ref.TYPES, "c64"]
    inputs = {}
    for i, port in enumerate("abcde"):
        shape = SHAPES[0] if not i else SHAPES[rng.integers(len(SHAPES))]
        t = names[rng.integers(len(names))]
        inputs[port] = rng.permutation(ref.special(t, rng, int(np.prod(shape)))).reshape(shape)
        np.save(f"{folder}/{port}.npy", inputs[port] if i else inputs[port][None])
    gain, count = float(rng.choice([0.5, 1.5, -3.25])), int(rng.integers(-5, 300))
    values = {**{k: ref.load(v) for k, v in inputs.items()}, "gain": gain, "count": count}
    lines = [f"vars: {{gain: {gain}, count: {count}}}", "buffers:"]
    stages, want = ["stages:", "  - {use: read, path: a.npy, out: a}"], []
    for port in "bcde":
        lines.append(f"  {port}: {{const: {port}.npy}}")
    while len(want) < EACH:
        ops = ref.OPS_OF_COMPLEX if rng.random() < 0.3 else ref.OPS
        tree = ref.random_tree(rng, [*inputs, "gain", "count"], int(rng.integers(1, 6)), ops)
        edge = rng.choice(list(ref.PADS))
        values["frame"] = ref.Frame(SHAPES[0], edge)
        if rng.random() < 0.5:
            tree = ref.random_near(rng, tree, {k: v.shape for k, v in inputs.items()}, len(SHAPES[0]))
        dtype = names[rng.integers(len(names))] if rng.random() < 0.5 else None
        try:
            v = np.broadcast_to(ref.store(ref.value(tree, values), dtype), SHAPES[0])
        except ref.Refused:
            continue
        n = len(want)
        if dtype:
            lines.append(f"  y{n}: {{dtype: {dtype}}}")
        stages.append(f"  - {{use: expr, in: [a, b, c, d, e], out: y{n}, edge: {edge}, expr: \"{ref.text(tree)}\"}}")
        stages.append(f"  - {{use: write, in: y{n}, path: y{n}.npy}}")
        want.append((tree, v))
    open(f"{folder}/p.yaml", "w").write("\n".join(lines + stages) + "\n")
    subprocess.run([gpipe, "run", "--device", device, f"{folder}/p.yaml"], check=True, capture_output=True)
    wrong = 0
    for n, (tree, v) in enumerate(want):
        got = np.load(f"{folder}/y{n}.npy").reshape(-1, *SHAPES[0][1:])
        if not same(got, v):
            at = np.argwhere(~((got == v) | ((got != got) & (v != v))))[:1] if got.shape == v.shape else ""
            print(f"{folder}/y{n}.npy: {ref.text(tree)}: {got.dtype} {got.shape}, not {v.dtype} {v.shape}; first at {at}")
            wrong += 1
    return wrong


def main():
    args = argparse.ArgumentParser()
    args.add_argument("gpipe")
    args.add_argument("--rounds", type=int, default=10)
    args.add_argument("--seed", type=int, default=0)
    args.add_argument("--device", default="cpu")
    args = args.parse_args()
    wrong = 0
    for i in range(args.rounds):
        folder = tempfile.mkdtemp(prefix="exprs-")
        bad = one_round(np.random.default_rng([args.seed, i]), os.path.abspath(args.gpipe), args.device, folder)
        wrong += bad
        if not bad:
            subprocess.run(["rm", "-r", folder], check=True)
    print(f"exprs: {args.rounds * EACH - wrong} passed, {wrong} failed")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
