"""rows_overhead.py - what it costs to look: a run that is traced, reported, watched, beside the same run without."""
import rows_device
from rows_device import BALANCED, BIG, MIDDLE, SMALL, name_of
from tools import Row, Skip

HOST = """depth: 1024
vars: {frames: 1}
buffers: {x: {dtype: f32, shape: [1024]}}
stages:
  - {use: generate, out: x, frames: frames, fill: once}
  - {use: discard}
"""
SHORT = {BIG: (300, 3300), MIDDLE: (5000, 105000), SMALL: (20000, 220000)}
MANY = (200000, 4200000)


def on_device(b, size, depth, batch, options):
    b.has_gpu()
    few, many = MANY if depth > 64 else SHORT[size]
    return b.once(("overhead", size, depth, options), lambda: b.gpipe_us(
        BALANCED, rows_device.settings(b, size, depth, batch), few, many, options))


def on_host(b, options):
    file = b.write("look.yaml", HOST)
    return b.once(("overhead", "host", options), lambda: b.gpipe_us(file, [], 1000000, 21000000, options))


def options_of(b, what):
    """The options of a run; a trace goes where the rest of the bench is."""
    if what == "metrics":
        _, err, code = b.run([b.gpipe, "run", "-q", "--metrics", "0", b.write(
            "one.yaml", "buffers: {x: {dtype: u8, shape: [1]}}\nstages:\n"
            "  - {use: generate, out: x, frames: 1}\n  - {use: discard}\n")], ok=range(256))
        if code:
            raise Skip("no libmicrohttpd")
        return ("--metrics", "0")
    trace = ("--trace", b.path("trace.json"))
    return {"trace": trace, "full": trace + ("--trace-gpu", "full"), "account": ("-v",),
            "progress": ("--progress", "json")}[what]


def device(b, size, depth, batch, what):
    with_it = on_device(b, size, depth, batch, options_of(b, what))
    return with_it, on_device(b, size, depth, batch, ()), "without"


def host(b, what):
    return on_host(b, options_of(b, what)), on_host(b, ()), "without"


def device_row(size, depth, batch, what, limit):
    name = "%s-%dK-d%d" % (what, size // 1024, depth)
    text = "%s, depth %d, batch: %s, %s: without" % (name_of(size), depth, batch, what)
    return Row(name, text, "time", limit, lambda b: device(b, size, depth, batch, what))


ROWS = [device_row(size, depth, batch, what, 1.02 if size == BIG and what == "trace" else None)
        for what in ("trace", "full", "account", "progress", "metrics")
        for size, depth, batch in ((BIG, 4, 1), (MIDDLE, 4, 1), (SMALL, 4, 1),
                                   (SMALL, 256, "auto"))]
ROWS += [Row("%s-host" % what, "host only, two stages, 4 KiB, %s: without" % what, "time", None,
             lambda b, what=what: host(b, what))
         for what in ("trace", "account", "progress", "metrics")]
