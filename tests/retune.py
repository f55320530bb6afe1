#!/usr/bin/env python3
"""retune.py - what it costs to retune a run, and what `latency` keeps: to be run by hand, a minute or two each.

    tests/retune.py GPIPE pause [--device cuda] [--times 20]
    tests/retune.py GPIPE latency [--device cuda] [--most 5ms] [--seconds 2]

pause: runs `edges` and `balanced` (16 MiB frames), and sets another depth, batch or number of workers, again and again.
Printed: the pauses that the run tells of, and how late the latest frame came: the longest time between two frames at
the sink, from when the setting was asked for until it was answered, less the time between two as a rule; beside it the
same of as long a time in which nothing was set.

latency: bursts of frames of 4 KiB come through a pipe, at several loads. Printed for each load: the rate and the p99 of
each fixed batch, with and without a wait, and of `latency`; then its rate to that of the best fixed one that keeps
it."""
import argparse, json, os, re, socket, statistics, subprocess, sys, threading, time
from kit import env, gpipe, put, tmp

here = os.path.dirname(os.path.abspath(__file__))
options = argparse.ArgumentParser()
options.add_argument("gpipe")
options.add_argument("what", choices=["pause", "latency"])
options.add_argument("--device", default="cpu")
options.add_argument("--times", type=int, default=20)
options.add_argument("--most", default="5ms")
options.add_argument("--seconds", type=float, default=2)
args = options.parse_args()

# == pauses =====================================================================
# What comes of each frame is a number on standard output, by which its time is known.
put("tell.lua", "stateless = true\nfunction process(f, x, y) y[1] = f.index end\n")
PAUSES = {
    "edges": ("depth: 4\nbuffers: {t: {dtype: f32, shape: [1]}}\nstages:\n"
              f"  - {{use: read, path: {here}/../examples/data/raccoon.png, loop: true, frames: 0, out: photo}}\n"
              "  - {use: gray}\n  - {use: blur, sigma: 1.4}\n  - {use: sobel}\n  - {use: cast, dtype: u8}\n"
              "  - {name: tell, use: lua, script: tell.lua, out: t}\n  - {use: write, path: stdout, format: raw}\n",
              ["depth=6", "depth=3 streams=2", "batch=2", "depth=8 batch=auto", "stages.tell.workers=2 copies=dma", "sync=block copies=mapped",
               "depth=4 sync=auto", "stages.tell.workers=1 streams=auto"]),
    "balanced": (f"depth: 3\nbuffers: {{x: {{dtype: f32, shape: [4194304]}}, t: {{dtype: f32, shape: [1]}}}}\nstages:\n"
                 "  - {use: generate, out: x, frames: 0, rate: RATE, fill: once, pattern: ramp}\n"
                 f"  - {{name: work, use: kernel, source: {here}/bench/axpy.cu, entry: axpy, batched: true,\n"
                 "     args: [in, out, {i32: 4194304}, {i32: ITERS}], block: [256], grid: [1056]}\n"
                 "  - {name: tell, use: lua, script: tell.lua, out: t}\n  - {use: write, path: stdout, format: raw}\n",
                 ["depth=6", "depth=4 streams=2", "streams=auto depth=3", "sync=spin", "depth=5 sync=auto",
                  "launch=stream", "launch=graph depth=3"]),
}


def arrivals(stream, times):
    while len(stream.read(4)) == 4:
        times.append(time.monotonic())


def latest(times, begin, end):
    """How much longer the longest time between two frames was than that between two as a rule, in ms."""
    gaps = [b - a for a, b in zip(times, times[1:]) if b > begin and a < end]
    return 1e3 * (max(gaps) - statistics.median(gaps)) if gaps else 0


def connected(pid):
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(f"{tmp.name}/gpipe/{pid}.sock") == 0


def pause(name):
    text, edits = PAUSES[name]
    gpu = args.device != "cpu"
    text = text.replace("RATE", "200" if gpu else "12").replace("ITERS", "100" if gpu else "1")
    file, times, told, late, without = put(name + ".yaml", text), [], [], [], []
    run = subprocess.Popen([gpipe, "run", "--progress", "none", "--device", args.device, file], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=env, text=False, bufsize=0)
    reader = threading.Thread(target=arrivals, args=(run.stdout, times))
    reader.start()
    while run.poll() is None and (not times or not connected(run.pid)):
        time.sleep(0.02)
    for i in range(args.times):
        time.sleep(1.1)                # about as long as an answer takes, which has the rate of a second
        begin = time.monotonic()
        p = subprocess.run([gpipe, "set", str(run.pid), *edits[i % len(edits)].split()], env=env, capture_output=True,
                           text=True)
        end = time.monotonic()
        said = re.search(r"pause ([\d.]+) ms", p.stdout)
        if not said:
            print(f"  {edits[i % len(edits)]}: {p.stdout.strip()}{p.stderr.strip()}")
            continue
        told.append(float(said[1]))
        late.append(latest(times, begin, end))
        without.append(latest(times, begin - 1, begin))
    run.send_signal(2)
    said = run.stderr.read().decode()
    run.wait()
    reader.join()
    ended = re.search(r"(\d+) frames? in, (\d+) out, 0 dropped, 0 failed, 0 cancelled", said)
    if not told or not ended or ended[1] != ended[2]:
        sys.exit(f"{name}: {said}")
    print(f"{name} on {args.device}: {len(told)} times retuned, pause median {statistics.median(told):.1f} ms, longest "
          f"{max(told):.1f} ms")
    print(f"  the latest frame of a time: {statistics.median(late):.1f} ms in the median, {max(late):.1f} ms at most; "
          f"where nothing was set {statistics.median(without):.1f} and {max(without):.1f} ms; {ended[1]} frames",
          flush=True)


# == latency ====================================================================
SMALL = """depth: 192
buffers: {a: {dtype: f32, shape: [1024]}}
stages:
  - {use: read, path: stdin, format: raw, out: a}
  - {use: scale, a: 2}
  - {use: discard}
"""


def feed(to, burst, apart, seconds):
    """Frames by bursts, `apart` seconds from the begin of one to that of the next, or one behind the other."""
    block, start, n = b"\1" * (4096 * burst), time.monotonic(), 0
    try:
        while time.monotonic() < start + seconds:
            left = memoryview(block)
            while left:
                left = left[os.write(to, left):]
            n += 1
            wait = start + n * apart - time.monotonic()
            if wait > 0:
                time.sleep(wait)
    except BrokenPipeError:
        pass
    os.close(to)


def measure(file, settings, burst, apart):
    out = os.path.join(tmp.name, "r.json")
    read_end, write_end = os.pipe()
    run = subprocess.Popen([gpipe, "run", "-q", "--device", args.device, file, "--report", out,
                            *(w for s in settings for w in ("--set", s))], stdin=read_end, env=env)
    os.close(read_end)
    feed(write_end, burst, apart, args.seconds)
    if run.wait():
        sys.exit("the run failed")
    with open(out) as f:
        r = json.load(f)
    launches = sum(s["launches"] for s in r["segments"])
    return r["frames_per_s"], 1e-3 * r["latency_us"]["p99"], r["sources"][0]["in"] / max(launches, 1)


def latency():
    file = put("small.yaml", SMALL)
    most = float(re.fullmatch(r"([\d.]+)ms", args.most)[1])
    fixed = [[f"batch={b}", *wait] for b in (1, 4, 16, 64) for wait in ([], ["batch_wait=1ms"]) if b > 1 or not wait]
    for burst, apart in ((16, 0.004), (64, 0.002), (256, 0.004), (64, 0)):
        print(f"bursts of {burst} frames, " + (f"one each {1e3 * apart:g} ms" if apart else "without a break"))
        kept = 0
        for settings in [*fixed, ["batch=64", f"latency={args.most}"]]:
            rate, p99, frames = measure(file, settings, burst, apart)
            chosen = settings[-1].startswith("latency")
            if p99 < most and not chosen:
                kept = max(kept, rate)
            print(f"  {' '.join(settings):26} {rate:9.0f} frames/s  p99 {p99:7.3f} ms  {frames:5.1f} frames a launch",
                  flush=True)
        beside = f"{rate / kept:.2f} of the best fixed batch that keeps it" if kept else "no fixed batch keeps it"
        print(f"  {'kept' if p99 < most else 'not kept'}; {beside}", flush=True)


if args.what == "latency":
    latency()
else:
    for case in PAUSES:
        pause(case)
