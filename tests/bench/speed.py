"""speed.py - the speed figures, beside hand-written CUDA (hand.cu) in the same run.

    speed.py --gpipe GPIPE --hand HAND     on a GPU; exit 1 unless all are reached
    speed.py --gpipe GPIPE --cpu           the script itself, where there is no GPU

gpipe's time per frame is the difference of two runs with different numbers of
frames, so that starting up does not count. hand and gpipe take turns, --rounds
times; every figure is the median of the rounds. hand's time at a size and depth
is the better one of its two ways, where the figure does not name one.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KIB, MIB = 1024, 1024 * 1024
BIG, MIDDLE, SMALL = 16 * MIB, 256 * KIB, 4 * KIB

# name: bytes, settings, frames of the short and of the long run
CONFIGS = {
    "16M d1": (BIG, ["depth=1", "batch=1"], 200, 2200),
    "16M d3": (BIG, ["depth=3", "batch=1"], 300, 5300),
    "256K d3": (MIDDLE, ["depth=3", "batch=1"], 5000, 105000),
    "256K d6": (MIDDLE, ["depth=6", "batch=1"], 5000, 105000),
    "4K d3": (SMALL, ["depth=3", "batch=1"], 20000, 320000),
    "4K d4": (SMALL, ["depth=4", "batch=1"], 20000, 320000),
    "4K d6": (SMALL, ["depth=6", "batch=1"], 20000, 320000),
    "4K auto": (SMALL, ["depth=256", "batch=auto"], 200000, 6200000),
}


def seconds(args, config, frames, iters):
    """What the summary of one run says it took."""
    size, sets, _, _ = CONFIGS[config]
    if args.cpu:
        size = min(size, 64 * KIB)
    command = [args.gpipe, "run", "--progress", "none",
               "--device", "cpu" if args.cpu else "cuda"]
    for s in sets + ["vars.n=%d" % (size // 4), "vars.iters=%d" % iters,
                     "vars.frames=%d" % frames, "vars.blocks=1056"] + args.set:
        command += ["--set", s]
    r = subprocess.run(command + [os.path.join(HERE, "balanced.yaml")], timeout=300,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       universal_newlines=True)
    done = re.findall(r"(\d+) frames in, (\d+) out, .* in ([\d.]+) s \(", r.stderr)
    if r.returncode or not done or int(done[-1][1]) != frames:
        sys.exit("%s\nexit %d:\n%s" % (" ".join(command), r.returncode, r.stderr))
    return float(done[-1][2])


def gpipe_us(args, config, iters):
    _, _, few, many = CONFIGS[config]
    if args.cpu:
        few, many = 20, 220
    short = seconds(args, config, few, iters)
    return 1e6 * (seconds(args, config, many, iters) - short) / (many - few)


def run_hand(args):
    """{(kind, bytes, depth): us}, {bytes: iters}"""
    r = subprocess.run([args.hand], timeout=300, stdout=subprocess.PIPE, universal_newlines=True)
    if r.returncode:
        sys.exit("%s: exit %d" % (args.hand, r.returncode))
    us = {(k, int(b), int(d)): float(t)
          for k, b, d, t in re.findall(r"^hand (\w+) (\d+) (\d+) ([\d.]+)$", r.stdout, re.M)}
    iters = {int(b): int(n) for b, n in re.findall(r"^iters (\d+) (\d+)$", r.stdout, re.M)}
    return us, iters


def spread(values, digits=2):
    return "%.*f (%.*f to %.*f)" % (digits, statistics.median(values), digits, min(values),
                                    digits, max(values))


def print_times(title, times):
    print(title)
    for name in times:
        print("  %-22s %s" % (name, spread(times[name])))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--gpipe", default="./gpipe")
    p.add_argument("--hand", default="build/bench/hand")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--set", action="append", default=[], help="more settings, as sync=spin")
    p.add_argument("--only", default="", help="configurations whose name begins so")
    p.add_argument("--cpu", action="store_true", help="small runs on the CPU, without hand")
    args = p.parse_args()

    names = [c for c in CONFIGS if c.startswith(args.only)]
    gpipe, hand, iters = {c: [] for c in names}, {}, {}
    for _ in range(args.rounds):
        if not args.cpu:
            us, found = run_hand(args)
            iters = iters or found           # the same work in every round of gpipe
            for key, t in us.items():
                hand.setdefault(key, []).append(t)
        for c in names:
            gpipe[c].append(gpipe_us(args, c, iters.get(CONFIGS[c][0], 1)))

    print_times("gpipe, us per frame", gpipe)
    if args.cpu:
        print("on the CPU: nothing to compare with")
        return 0
    print_times("hand, us per frame", {"%s %dK d%d" % (k, b // KIB, d): t
                                       for (k, b, d), t in sorted(hand.items())})
    print("kernel steps: %s" % ", ".join("%dK: %d" % (b // KIB, n) for b, n in iters.items()))

    def g(config):
        return statistics.median(gpipe[config])

    def h(size, depths, kinds=("streams", "graph")):
        return min(statistics.median(hand[k, size, d]) for k in kinds for d in depths)

    rows = [
        ("16 MiB, depth 3: rate, hand = 1", ["16M d3"],
         lambda: h(BIG, [3]) / g("16M d3"), ">=", 0.95),
        ("16 MiB, depth 3: rate, depth 1 = 1", ["16M d1", "16M d3"],
         lambda: g("16M d1") / g("16M d3"), ">=", 2.5),
        ("256 KiB, depth 3: time, hand graphs = 1", ["256K d3"],
         lambda: g("256K d3") / h(MIDDLE, [3], ["graph"]), None, 0),
        ("256 KiB, depth 6: time, hand graphs = 1", ["256K d6"],
         lambda: g("256K d6") / h(MIDDLE, [6], ["graph"]), None, 0),
        ("4 KiB, batch 1, depth 3: time, hand graphs = 1", ["4K d3"],
         lambda: g("4K d3") / h(SMALL, [3], ["graph"]), "<=", 1.3),
        ("4 KiB, batch 1, depth 4: time, hand graphs = 1", ["4K d4"],
         lambda: g("4K d4") / h(SMALL, [4], ["graph"]), "<=", 1.3),
        ("4 KiB, batch 1, depth 6: time, hand graphs = 1", ["4K d6"],
         lambda: g("4K d6") / h(SMALL, [6], ["graph"]), "<=", 1.3),
        ("4 KiB, batch auto, depth 256: rate, best hand graphs = 1", ["4K auto"],
         lambda: h(SMALL, [1, 3, 4, 6], ["graph"]) / g("4K auto"), ">=", 5),
    ]
    missed = 0
    print("%-58s %8s  %-8s" % ("figure", "value", "needed"))
    for title, needs, value, sense, limit in rows:
        if any(c not in names for c in needs):
            continue
        v = value()
        ok = sense is None or (v >= limit if sense == ">=" else v <= limit)
        missed += not ok
        print("%-58s %8.3f  %-8s %s" % (title, v, "%s %g" % (sense, limit) if sense else "",
                                        "" if sense is None else "reached" if ok
                                        else "NOT REACHED"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
