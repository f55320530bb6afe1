"""bench.py - gpipe and what else moves frames, in turns, in one table.

    bench.py [--only ROW]... [--rounds N] [--json]      exit 1 where a figure is not reached
                                                        or a program failed

gpipe is GPIPE of the environment, or ./gpipe; the programs it is measured beside are in
the folder `bench` next to it, or HAND, LONE, ALONE, SEVERAL, COLLECTIVE, TBB, HOST of the environment. A round
measures every row once: gpipe, then the peer. What is judged is the median over the
rounds of what one round's pair says; a ratio is reached at 0.98 of what is needed. A row
that fails says why in its place; after Ctrl-C there is what was measured until then.
"""
import argparse, datetime, json, os, platform, re, shutil, subprocess, sys, traceback
from statistics import median

sys.dont_write_bytecode = True         # nothing is left beside the sources
import rows_command, rows_device, rows_durable, rows_examples, rows_expr, rows_fft, rows_files, rows_host
import rows_jpeg, rows_lua, rows_matmul, rows_overhead, rows_pictures, rows_ranks, rows_rearrange, rows_several
import rows_signals, rows_stages
from tools import HERE, Bench, Failure, Skip

ROWS = rows_device.ROWS + rows_host.ROWS + rows_lua.ROWS + rows_command.ROWS + \
    rows_durable.ROWS + rows_expr.ROWS + rows_overhead.ROWS + rows_stages.ROWS + rows_jpeg.ROWS + \
    rows_rearrange.ROWS + rows_signals.ROWS + rows_files.ROWS + rows_fft.ROWS + rows_matmul.ROWS + \
    rows_pictures.ROWS + rows_several.ROWS + rows_ranks.ROWS + rows_examples.ROWS


def first_line(command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              universal_newlines=True).stdout.strip().split("\n")[0]
    except OSError:
        return ""


def where(b):
    """What the figures are of: {name: text}"""
    cpu = ""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as f:
            found = re.search(r"^model name\s*: (.*)$", f.read(), re.M)
            cpu = found.group(1) if found else ""
    gpu = first_line(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]) \
        if shutil.which("nvidia-smi") else ""
    return {
        "gpipe": first_line([b.gpipe, "--version"]).replace("gpipe ", ""),
        "date": datetime.date.today().isoformat(),
        "cpu": "%s, %d cores" % (cpu or platform.machine(), len(os.sched_getaffinity(0))),
        "gpu": gpu or "none",
    }


class Result:
    def __init__(self, row):
        self.row, self.name = row, None
        self.skipped = self.failed = None  # why
        self.pairs = []                    # of each round: gpipe, peer

    def measure(self, b):
        if self.skipped or self.failed:
            return
        try:
            gpipe, peer, self.name = self.row.measure(b)
            self.pairs.append((gpipe, peer))
        except Skip as skip:
            self.skipped = str(skip)
        except Exception as wrong:         # a program's answer may be anything
            self.failed = str(wrong).split("\n")[0] or type(wrong).__name__
            trace = [] if isinstance(wrong, Failure) else traceback.format_exc().split("\n")
            print("\n".join(["bench: %s: %s" % (self.row.name, wrong)] + trace), file=sys.stderr)

    def measured(self):
        return self.pairs and not self.skipped and not self.failed

    def values(self):
        return [self.row.compare(*pair) for pair in self.pairs]

    def verdict(self):
        if self.skipped:
            return "skipped: " + self.skipped
        if self.failed:
            return "FAILED: " + self.failed
        if not self.pairs:
            return "not measured"
        if self.row.limit is None:
            return ""
        return "reached" if self.row.reached(median(self.values())) else "NOT REACHED"

    def as_dict(self):
        row = self.row
        d = {"row": row.name, "what": row.what, "unit": row.unit, "compared": row.kind,
             "needed": row.limit, "result": self.verdict()}
        if self.measured():
            d.update(gpipe=[g for g, _ in self.pairs], peer=[p for _, p in self.pairs],
                     peer_is=self.name, values=self.values(), value=median(self.values()))
        return d


def number(x):
    return "%.3g" % x if x < 100 else "%.0f" % x


def columns(r):
    """The cells of a row."""
    row, gpipe, peer, ratio, needed = r.row, "", "", "", ""
    if row.limit is not None:
        needed = "%s %g" % (">=" if row.at_least() else "<=", row.limit)
        if row.kind in ("value", "above"):
            needed += " " + row.unit
    if r.measured():
        values = r.values()
        gpipe = ("%s %s" % (number(median([g for g, _ in r.pairs])), row.unit)).strip()
        if r.pairs[0][1] is not None:
            peer = "%s %s" % (number(median([p for _, p in r.pairs])), row.unit)
            ratio = "%s (%s to %s)" % tuple(map(number, (median(values), min(values), max(values))))
            if r.name:
                peer += ", " + r.name
    return row.name, row.what, gpipe, peer, ratio, needed, r.verdict()


def print_table(title, results):
    print(", ".join("%s: %s" % item for item in title.items()))
    lines = [("row", "what: peer", "gpipe", "peer", "ratio", "needed", "")]
    lines += [columns(r) for r in results]
    width = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(w) for cell, w in zip(line, width)).rstrip())


def measure_all(b, results, rounds):
    shown = sys.stderr.isatty()
    try:
        for n in range(rounds):
            b.round = {}
            for r in results:
                if shown:
                    print("\r\033[Kround %d of %d: %s" % (n + 1, rounds, r.row.name),
                          end="", file=sys.stderr, flush=True)
                r.measure(b)
    finally:
        if shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--gpipe", default=os.environ.get("GPIPE", os.path.join(HERE, "../../gpipe")))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", action="append", default=[], metavar="ROW",
                   help="rows whose name begins so; may be given again")
    p.add_argument("--json", action="store_true", help="all that was measured")
    p.add_argument("--list", action="store_true", help="the names of the rows")
    p.add_argument("-v", "--verbose", action="store_true", help="show the commands")
    args = p.parse_args()

    rows = [r for r in ROWS if r.name.startswith(tuple(args.only) or "")]
    if not rows or args.list:
        print("\n".join("%-16s %s" % (r.name, r.what) for r in ROWS))
        return 0 if args.list else 2
    if args.rounds < 1 or not os.access(args.gpipe, os.X_OK):
        p.error("no command '%s'; set GPIPE" % args.gpipe if args.rounds > 0 else "no rounds")
    results = [Result(r) for r in rows]
    b = Bench(args.gpipe, args.verbose)
    interrupted = False
    try:
        try:
            measure_all(b, results, args.rounds)
        except KeyboardInterrupt:
            interrupted = True
        title = where(b)
    finally:
        b.close()
    if args.json:
        print(json.dumps(dict(title, rounds=args.rounds, rows=[r.as_dict() for r in results]), indent=1))
    else:
        print_table(title, results)
    if interrupted:
        return 130
    return 1 if any(r.failed or r.verdict() == "NOT REACHED" for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
