"""page_data.py - reports and traces of runs that never were, for tests/page.py.

A chain of stages, frame by frame: a frame begins in a stage when the stage before is done with
it, a worker is free and a slot to put it in is; so what waits for whom is as in a real run."""
import collections

Stage = collections.namedtuple("Stage", "name use workers us cat engine", defaults=("stage", None))


def jitter(i, s):
    """Some number between 0.8 and 1.2, always the same one."""
    return 0.8 + 0.4 * ((i * 2654435761 + s * 40503 + (i * s) * 97) % 1009) / 1008


def chain(lua="clean", workers=1):
    return [Stage("read", "read", 1, 300), Stage(lua, "lua", workers, 1150),
            Stage("copy in", None, 1, 62, "copy in", "photo"),
            Stage("gray", None, 1, 110, "compute", "gray"),
            Stage("blur", None, 1, 240, "compute", "soft"),
            Stage("copy out", None, 1, 31, "copy out", "edges"),
            Stage("write", "write", 2, 1700)]


def simulate(stages, frames, depth=4):
    """Slices and counters in us: (pid, track, ts, dur, name, cat, frame), (name, ts, held)."""
    slices, held = [], []
    free = [[0.0] * s.workers for s in stages]
    begun = [[] for _ in stages]
    done = [[] for _ in stages]
    for i in range(frames):
        for k, s in enumerate(stages):
            w = i % s.workers
            ready = done[k - 1][i] if k else 0
            slot = begun[k + 1][i - depth] if k + 1 < len(stages) and i >= depth else 0
            began = max(ready, slot, free[k][w])
            ended = began + s.us * jitter(i, k)
            pid = 1 if s.cat == "stage" else 2
            track = s.name if s.workers == 1 else f"{s.name} {w}"
            if s.cat == "compute":
                track = "compute"
            if began > free[k][w] + 1 and pid == 1:
                slices.append((1, track, free[k][w], began - free[k][w],
                               "wait for input" if ready >= slot else "wait for output", "wait", i))
            if s.cat == "copy in":
                slices.append((1, "launch gray..blur", began - 9, 7.5, "launch", "launch", i))
            slices.append((pid, track, began, ended - began, s.name, s.cat, i))
            free[k][w] = ended
            begun[k].append(began)
            done[k].append(max(ended, done[k][-1] if done[k] else 0))
    for k, s in enumerate(stages[:-1]):
        if s.cat != "stage" and s.cat != "copy out":
            continue
        steps = sorted([(t, 1) for t in done[k]] + [(t, -1) for t in done[k + 1]])
        n = 0
        for t, by in steps:
            n += by
            held.append(("buffer " + (s.name if s.cat == "stage" else "edges"), t, max(0, min(n, depth))))
    return slices, held


def trace(stages, frames, depth=4):
    slices, held = simulate(stages, frames, depth)
    events = [{"ph": "M", "pid": p, "name": "process_name", "args": {"name": n}}
              for p, n in ((1, "host"), (2, "device"))]
    tids = {}
    for pid, track, *_ in slices:
        if (pid, track) not in tids:
            tid = tids[pid, track] = len(tids) + 1
            events += [dict(ph="M", pid=pid, tid=tid, name="thread_name", args={"name": track}),
                       dict(ph="M", pid=pid, tid=tid, name="thread_sort_index", args={"sort_index": tid})]
    for pid, track, ts, dur, name, cat, frame in slices:
        tid = tids[pid, track]
        events.append(dict(ph="X", pid=pid, tid=tid, ts=round(1e6 + ts, 3), dur=round(dur, 3),
                           name=name, cat=cat, args={"frame": frame, "frames": 1}))
    for name, ts, n in held:
        events.append(dict(ph="C", pid=1, name=name, ts=round(1e6 + ts, 3), args={"held": n}))
    for i in range(min(frames, 3)):
        events.append(dict(ph="s", pid=1, tid=1, ts=1e6, id=i, name="frame", cat="frame"))
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {}}


def report(events, stages, depth=4):
    """What a run with such a trace would report."""
    by = collections.defaultdict(float)
    xs = [e for e in events["traceEvents"] if e["ph"] == "X"]
    start = min(e["ts"] for e in xs)
    wall = (max(e["ts"] + e["dur"] for e in xs) - start) / 1e6
    for e in xs:
        by[e["name"], e["cat"]] += e["dur"] / 1e6
    waits = collections.defaultdict(float)
    names = {e["tid"]: e["args"]["name"] for e in events["traceEvents"] if e["name"] == "thread_name"}
    for e in xs:
        if e["cat"] == "wait":
            waits[names[e["tid"]], e["name"]] += e["dur"] / 1e6
    frames = 1 + max(e["args"]["frame"] for e in xs)
    host = []
    for s in (s for s in stages if s.cat == "stage"):
        tracks = [s.name] if s.workers == 1 else [f"{s.name} {w}" for w in range(s.workers)]
        busy = by[s.name, "stage"]
        idle = busy * 0.18 if s.use == "read" else 0
        host.append({"name": s.name, "use": s.use, "workers": s.workers,
                     "most_workers": 1 if s.use == "read" else 16, "frames": frames,
                     "bytes": frames * 2359296, "busy": (busy - idle) / (wall * s.workers),
                     "busy_s": busy, "idle_s": idle, "cpu_s": busy - idle,
                     "wait_in_s": sum(waits[t, "wait for input"] for t in tracks),
                     "wait_out_s": sum(waits[t, "wait for output"] for t in tracks),
                     "frame_p50_us": s.us, "frame_p99_us": s.us * 1.19})
    sizes = {"copy in": 2359296, "compute": 0, "copy out": 786432}
    engines = []
    for name, size in sizes.items():
        busy = sum(v for (_, cat), v in by.items() if cat == name)
        engines.append({"name": name, "busy": busy / wall, "busy_s": busy, "bytes": frames * size,
                        "gb_s": frames * size / 1e9 / wall, "limit_gb_s": 52.1 if size else None,
                        "measured": name != "copy out"})
    worst = max(host, key=lambda s: s["busy"])
    return {
        "gpipe": "0.1.0", "commit": "442ca58", "date": "2026-11-21T09:00:00Z", "outcome": "done",
        "wall_s": wall, "frames_per_s": frames / wall,
        "pipeline": {"name": "edges", "file": "pipelines/edges.yaml",
                     "device": "cuda:0", "streams": 3, "depth": depth, "batch": 1,
                     "launch": "graph", "sync": "auto", "on_error": "stop"},
        "environment": {"cpu": "AMD EPYC 9654 96-Core Processor", "cores": 16,
                        "gpu": "NVIDIA H200", "driver": "580.1", "toolkit": "13.0"},
        "set": [], "sources": [{"name": "read", "in": frames, "out": frames - 1, "dropped": 1, "failed": 0,
                     "cancelled": 0}],
        "stages": host,
        "segments": [{"name": "gray..blur", "stages": ["gray", "blur"], "streams": 3,
                      "depth": depth, "batch": 1, "frames": frames, "bytes": frames * 786432,
                      "launches": frames,
                      "launching_s": by["launch", "launch"], "kernels_cpu_s": None, "wait_in_s": wall * 0.93,
                      "wait_out_s": wall * 0.02, "wait_stream_s": wall * 0.01,
                      "frame_p50_us": 441.3, "frame_p99_us": 522.9}],
        "engines": engines,
        "buffers": [{"name": n, "from": f, "to": t, "depth": depth, "held": h, "dtype": d,
                     "shape": s} for n, f, t, h, d, s in (
                        ("read", "read", stages[1].name, 3.87, "u8", [768, 1024, 3]),
                        (stages[1].name, stages[1].name, "gray..blur", 0.31, "u8", [768, 1024, 3]),
                        ("edges", "gray..blur", "write", 1.42, "u8", [768, 1024]))],
        "latency_us": {"p50": 8123.4, "p90": 8801, "p95": 9123, "p99": 10240.7, "max": 12800},
        "overlap": 0.934,
        "verdict": {"bound": "stage", "name": worst["name"],
                    "text": f"bound by stage '{worst['name']}' (host, "
                            f"{round(100 * worst['busy'])} % busy, GPU idle 66 %): try workers: 4",
                    "edit": {"path": f"stages.{worst['name']}.workers", "value": "4"}}}
