"""rows_command.py - the command: check, a whole process, a pipeline that waits."""
import os, signal, subprocess, time
from statistics import median

from tools import Failure, Row

SOURCE = """buffers: {x: {dtype: f32, shape: [256]}}
stages:
  - {use: generate, out: x, frames: %d, rate: %g}
"""


# -- check --

def chain(n):
    """One source, one sink, and stages behind each other between them."""
    return SOURCE % (1, 0) + "".join("  - {use: scale, a: %d}\n" % (i % 7 + 2)
                                     for i in range(n - 2)) + "  - {use: discard}\n"


def rows_of(n):
    """Pipelines of five stages beside each other."""
    text = ["buffers:\n"] + ["  x%d: {dtype: f32, shape: [256]}\n" % i for i in range(n // 5)]
    text.append("stages:\n")
    for i in range(n // 5):
        text.append("  - {use: generate, out: x%d, frames: 1}\n" % i)
        text += ["  - {use: scale, a: 2}\n"] * 3 + ["  - {use: discard}\n"]
    return "".join(text)


def check(b, n):
    times = {}
    for form in (chain, rows_of):
        path = b.ever((form, n), lambda: b.write("%s-%d.yaml" % (form.__name__, n), form(n)))
        times[form.__name__] = 1e3 * median(b.wall([b.gpipe, "check", path]) for _ in range(5))
    return max(times.values()), None, None


# -- start to exit --

def whole(b):
    path = b.write("trivial.yaml", SOURCE % (1, 0) + "  - {use: discard}\n")
    return 1e3 * median(b.wall([b.gpipe, "run", "-q", path]) for _ in range(20)), None, None


# -- idle --

WARM, LOOK = 3, 3     # seconds

IDLE = {
    "rate": SOURCE % (0, 0.5),
    "stdin": SOURCE.replace("use: generate", "use: read, path: stdin") % (0, 0),
}


def cpu_ns(pid):
    """What all its threads have used, from the scheduler."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
            total += int(f.read().split()[0])
    return total


def start(b, source, sync):
    """A pipeline whose source waits; with a segment, on the GPU where there is one."""
    path = b.write("idle-%s.yaml" % source, "device: auto\n" + IDLE[source]
                   + "  - {use: scale, a: 2}\n  - {use: discard}\n")
    return subprocess.Popen([b.gpipe, "run", "-q", "--set", "sync=" + sync, path], stdin=subprocess.PIPE)


def idle(b, sync):
    """Percent of one core, of the busier one of two kinds of waiting."""
    waiting = [start(b, source, sync) for source in IDLE]
    try:
        time.sleep(WARM)
        used, begin = [cpu_ns(p.pid) for p in waiting], time.perf_counter()
        time.sleep(LOOK)
        took = time.perf_counter() - begin
        part = max(1e-7 * (cpu_ns(p.pid) - u) / took for p, u in zip(waiting, used))
    finally:
        for p in waiting:
            p.send_signal(signal.SIGINT)
            p.stdin.close()
        codes = [p.wait(timeout=20) for p in waiting]
    if any(code not in (0, 130) for code in codes):
        raise Failure("gpipe run, sync: %s: exit %s" % (sync, codes))
    return part, None, None


ROWS = [
    Row("check-1000", "gpipe check, 1,000 stages", "value", 20, lambda b: check(b, 1000), "ms"),
    Row("check-10000", "gpipe check, 10,000 stages", "value", 200, lambda b: check(b, 10000),
        "ms"),
    Row("process", "whole process, trivial host pipeline", "value", 15, whole, "ms"),
    Row("idle-auto", "a source that waits, sync: auto, of a core", "value", 1, lambda b: idle(b, "auto"), "%"),
    Row("idle-block", "the same, sync: block", "value", 1, lambda b: idle(b, "block"), "%"),
]
