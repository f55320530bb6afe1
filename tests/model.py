#!/usr/bin/env python3
"""model.py GPIPE [SEED [PIPELINES]] - random pipelines beside a model in NumPy.

Numbered files with gaps, raw files, frames that scripts drop or fail, joins, carried buffers, also several that are
of each other, loops, and stages that regroup, in any order: which frames there are, their numbers, their values, and the account of each source. The model
(class Stream) knows frames as a list, with None for a hole, and nothing of rings, slots, threads or launches, whose
settings are random. All values are whole numbers that f64 holds, so that sums have no order.

`model.py GPIPE SEED I..` tries pipeline I again. Without a GPU; plain NumPy.
"""
import os, random, re, subprocess, sys, tempfile
from fractions import Fraction

import numpy as np

ACCOUNT = re.compile(r"(\d+) frames? in, (\d+) out, (\d+) dropped, (\d+) failed, (\d+) cancelled")


WHAT = ["affine", "drop", "fail", "join", "join", "join", "carry", "state", "state", "network", "network", "loop", "group", "split",
        "split", "window", "decimate", "hold", "mix", "reduce", "reduce", "roll"]

ALL = 1000003                          # as many frames as there are: a rate that no other stream has


class Stream:
    """The frames of a buffer. A frame is (rows, array, sources): rows are places along axis 0 that are there, sources
    the (source, number) that it was made from."""

    def __init__(self, shape, rate, frames, held=False, placed=True, absent=frozenset()):
        self.shape, self.rate, self.frames, self.held = shape, rate, frames, held
        self.absent = absent           # holes that are rows which a frame did not have: nobody lost them
        self.placed = placed           # False: rows of a window, which are those that are there, wherever they were

    def whole(self):
        return all(f is None or len(f[0]) == self.shape[0] for f in self.frames)

    def length(self):
        """Without the holes at its end."""
        n = len(self.frames)
        while n and self.frames[n - 1] is None:
            n -= 1
        return n

    def map(self, f, shape=None):
        frames = [None if x is None else f(k, x) for k, x in enumerate(self.frames)]
        return Stream(shape or self.shape, self.rate, frames, self.held, self.placed, self.absent)


class World:
    """What happened to the frames of sources."""

    def __init__(self):
        self.frames, self.failed, self.dropped, self.beside = {}, set(), set(), set()
        self.vague = False             # a row is of one of several frames, nobody knows which

    def lose(self, frame, how):
        how.update(frame[2])


def affine(s, a, b):
    return s.map(lambda k, f: (f[0], f[1] * a + b, f[2]))


def lose(w, s, every, at, how):
    def one(k, f):
        if k % every != at:
            return f
        w.lose(f, how)
        return None
    return s.map(one)


def join(w, a, b):
    n = len(a.frames) if b.held else len(b.frames) if a.held else max(len(a.frames), len(b.frames))
    out = []
    for k in range(n):
        x = a.frames[k] if k < len(a.frames) else None
        y = b.frames[k] if k < len(b.frames) else None
        if x is None or y is None:
            w.beside.update(*(f[2] for f, s, o in ((x, a, b), (y, b, a)) if f and not (s.held and k in o.absent)))
            out.append(None)
        elif x[0] != y[0]:
            w.lose((x[0], None, x[2] | y[2]), w.failed)
            out.append(None)
        else:
            out.append((x[0], x[1] + y[1], x[2] | y[2]))
    absent = {k for s, o in ((a, b), (b, a)) for k in s.absent if k in o.absent or o.held}
    return Stream(a.shape, a.rate, out, placed=a.placed and b.placed, absent=absent)


def carry(s, splice):
    before, out = 0, []
    for f in s.frames:
        if f is None:
            before = before if splice else 0
            out.append(None)
        else:
            before = f[1] + 2 * before if splice else f[1] + before
            out.append((f[0], before, f[2]))
    return Stream(s.shape, s.rate, out, placed=s.placed, absent=s.absent)


def parts(s, n):
    frames = s.frames
    return [frames[k:k + n] for k in range(0, len(frames), n)]


class Rows(list):
    """The places of rows; `lacks`: others were left out; `moved`: and nobody knows any more which."""
    lacks = moved = False


def together(frames):
    there = Rows(k for k, f in enumerate(frames) if f is not None)
    there.lacks = len(there) < len(frames)
    if not there:
        return None
    return there, np.stack([frames[k][1] for k in there]), frozenset().union(*(frames[k][2] for k in there))


def blocks(w, s, n, tail):
    p = parts(s, n)
    if p and len(p[-1]) < n and tail == "drop":
        w.dropped.update(*(f[2] for f in p.pop() if f))
    return p


def group(w, s, n, tail):
    return Stream((n,) + s.shape, s.rate / n, [together(g) for g in blocks(w, s, n, tail)], absent=whole_blocks(s, n))


def whole_blocks(s, n):
    """Of n frames each, all of them absent."""
    return {k for k, p in enumerate(parts(s, n)) if all(k * n + i in s.absent for i in range(len(p)))}


def split(w, s):
    out, shape, absent = [], s.shape[1:] or (1,), set()
    for k, f in enumerate(s.frames):
        rows = [None] * s.shape[0]
        absent |= {len(out) + i for i in range(len(rows)) if (i not in f[0] if f else k in s.absent)}
        if getattr(f and f[0], "moved", False):
            w.lose(f, w.failed)
        elif f is not None:
            one = len({source for source, _ in f[2]}) == len(f[2])
            w.vague |= not one
            for i, at in enumerate(f[0]):
                rows[at] = (list(range(shape[0])), f[1][i].reshape(shape), f[2] if one else frozenset())
        out += rows
    return Stream(shape, s.rate * s.shape[0], out, absent=absent)


def window(w, s, n, partial):
    out = []
    for k, f in enumerate(s.frames):
        g = together(s.frames[max(0, k - n + 1):k + 1])
        if f is None or (partial == "drop" and len(g[0]) < n):
            w.dropped.update(f[2] if f else ())
            out.append(None)
        else:
            out.append(g[:2] + (f[2],))        # it stands for its newest frame
    return Stream((n,) + s.shape, s.rate, out, placed=False, absent=s.absent)


def decimate(s, n):
    return Stream(s.shape, s.rate / n, s.frames[::n], placed=s.placed, absent={k // n for k in s.absent if k % n == 0})


def hold(s, n):
    return Stream(s.shape, s.rate * n, [f for f in s.frames for _ in range(n)], True, s.placed,
                  {k * n + i for k in s.absent for i in range(n)})


def mix(w, s, n, op, tail):
    def one(g):
        g = together(g)
        return g and (list(range(s.shape[0])), g[1][-1] if op == "last" else getattr(g[1], op)(0), g[2])
    rate, n = s.rate / (n or ALL), n or max(1, len(s.frames))
    return Stream(s.shape, rate, [one(g) for g in blocks(w, s, n, tail)], absent=whole_blocks(s, n))


def reduce(s, op):
    shape = s.shape[1:] or (1,)

    def one(k, f):
        return list(range(shape[0])), (f[1].sum(0) if op == "sum" else f[1].max(0)).reshape(shape), f[2]
    return s.map(one, shape)


def roll(w, s, by):
    """Moves rows by their places, of which none may have been left out."""
    def one(k, f):
        if s.placed and (f[0] != list(range(len(f[0]))) or getattr(f[0], "lacks", False)):
            w.lose(f, w.failed)
            return None
        rows = Rows(f[0])
        rows.lacks = rows.moved = getattr(f[0], "lacks", False)
        return rows, np.roll(f[1], by, 0), f[2]
    return s.map(one)


class Maker:
    """Makes a pipeline: its text, its files, and what must come of it."""

    def __init__(self, r, folder):
        self.r, self.folder, self.w, self.n = r, folder, World(), 0
        self.buffers, self.lines, self.streams, self.used, self.expected = [], [], {}, set(), {}
        self.counted = False           # of a source it is known how many frames it has: what makes nothing is refused
        self.ends = {}                 # streams that nothing but `write` reads: their values are no whole numbers

    def put(self, line, ins, stream, workers=False):
        self.n += 1
        out = f"b{self.n}"
        more = f", workers: {self.r.randint(1, 4)}" if workers else ""
        self.lines.append(f"{{name: s{self.n}, {line}{more}" + (f", in: {ins}" if ins else "") + f", out: {out}}}")
        self.streams[out] = stream
        self.used.update(re.findall(r"b\d+\b(?!_)", ins or ""))
        return out

    def source(self, shape, frames):
        r, name = self.r, f"in{self.n}"
        data = [np.array([r.randint(0, 99) for _ in range(int(np.prod(shape)))], dtype="<f8").reshape(shape)
                for _ in range(frames)]
        gone, kind = set(), r.random()
        self.counted |= kind >= 0.2
        if kind < 0.2:                         # nobody knows how many there will be
            first = data[0].flat[0]
            data = [first + k * 3 + np.arange(data[0].size, dtype="<f8").reshape(shape) for k in range(frames)]
            with open(os.path.join(self.folder, name + ".lua"), "w") as f:
                f.write(f"function produce(f, y)\n  if f.index == {frames} then return false end\n"
                        f"  for i = 1, #y do y[i] = {first} + f.index * 3 + i - 1 end\nend\n")
            line = f"use: lua, script: {name}.lua, in: []"
        elif kind < 0.6:
            first = r.randint(0, 12)
            gone = {k for k in range(1, frames - 1) if r.random() < r.choice([0.05, 0.4])}
            for k in range(frames):
                if k not in gone:
                    np.save(os.path.join(self.folder, f"{name}-{first + k}.npy"), data[k])
            line = f"use: read, path: \"{name}-%d.npy\", in: []"
        else:
            if r.random() < 0.3:               # the last frame has fewer rows
                data[-1] = data[-1][:r.randint(1, shape[0])]
            np.concatenate(data).tofile(os.path.join(self.folder, name + ".raw"))
            line = f"use: read, path: {name}.raw, in: []"
        number = len(self.w.frames)
        self.w.frames[number] = (frames, gone)
        self.buffers.append(f"b{self.n + 1}: {{dtype: f64, shape: {list(shape)}}}")
        return self.put(line, None, Stream(shape, Fraction(1), [
            None if k in gone else (list(range(len(x))), x, frozenset([(number, k)])) for k, x in enumerate(data)]))

    def script(self, text):
        name = f"s{self.n + 1}.lua"
        with open(os.path.join(self.folder, name), "w") as f:
            f.write("stateless = true\nfunction process(f, x, y)\n" + text + "\n  y:copy(x)\nend\n")
        return f"use: lua, script: {name}"

    def network(self, name, s):
        """A few stages that read carried buffers; what each of these carries is chosen when all stages are there."""
        r, w, nodes = self.r, self.w, {}
        carried = {f"c{self.n}_{i}": {} for i in range(r.randint(1, 3))}
        sources, unread = [f and f[2] for f in s.frames], list(carried)
        kinds = ["+", "-", "lua add", "lua sub", "half", "copy", "cap", "lose", "again"]
        kinds += ["slide"] if len(s.shape) < 6 and len(s.frames) > 4 else []
        lines = {"half": "use: expr, expr: in * 0.5 + 1", "copy": "use: expr, expr: in"}

        def add(op, *ins):
            """A node is {of: inputs, op, by, alone: no source leads to it but by way of carried buffers}."""
            by, ins = r.randint(2, 4), ins if op in lines or op in ("lose", "again", "slide") else ins[:2]
            at = f"{{a: {ins[0]}, b: {ins[-1]}}}" if len(ins) > 1 else ins[0]
            alone = not any(i == name or (i in nodes and not nodes[i]["alone"]) for i in ins)
            if op in ("again", "slide"):
                first = "decimate, " if op == "again" else "window, partial: drop, "
                self.put(f"use: {first}frames: {by}", ins[0], None)
                del self.streams[f"b{self.n}"]
                at = f"b{self.n}"
                line = f"use: hold, frames: {by}" if op == "again" else "use: reduce, op: max, axes: [0]"
            elif op in "+-":
                line = f"use: expr, expr: a {op} b"
            else:
                line = lines.get(op) or self.script(
                    {"cap": "  if x.b:max() >= 300 then return 'drop' end\n  y:copy(x.a) do return end",
                     "lose": f"  if f.index % {by} == 1 then return 'drop' end"}.get(
                        op, f"  y:{op[4:]}(x.a, x.b) do return end"))
            out = self.put(line, at, None, "lua" in line)
            del self.streams[out]
            nodes[out] = dict(op=op, by=by, of=ins, alone=alone, made={})
            unread[:] = [u for u in unread if u not in ins] + [out] * alone
            return out

        def made(b, k):
            """Frame k of a buffer, None: a hole."""
            if b == name:
                return s.frames[k] and s.frames[k][1]
            node = nodes.get(b) or carried[b]
            if k not in node["made"]:
                node["made"][k] = before(node, b, k) if b in carried else compute(node, k)
            return node["made"][k]

        def before(c, b, k):
            was = made(c["of"], k - 1) if k else None
            return was if was is not None else made(b, k - 1) if k and c["splice"] else np.full(s.shape, c["init"])

        def compute(node, k):
            op, by, lost = node["op"], node["by"], not node["alone"] and sources[k] or ()
            v = [made(i, k // by * by if op == "again" else k) for i in node["of"]]
            if any(x is None for x in v):
                w.beside.update(lost)
                return None
            if op == "slide":
                v = [made(node["of"][0], j) if j >= 0 else None for j in range(k - by + 1, k + 1)]
            if (op == "slide" and any(x is None for x in v)) or (op == "lose" and k % by == 1) \
                    or (op == "cap" and v[1].max() >= 300):
                w.dropped.update(lost)
                return None
            return (v[0] + v[1] if op in ("+", "lua add") else v[0] - v[1] if op in ("-", "lua sub")
                    else v[0] * 0.5 + 1 if op == "half" else np.max(v, 0) if op == "slide" else v[0])

        for _ in range(r.randint(1, 5)):
            op = r.choice(kinds)
            if op == "again":                      # as many frames as before, and behind it a join, which has no more
                u = r.choice(list(carried))
                add("+", name, add(op, u))
            else:
                first = r.choice(unread + [name] + list(nodes))
                ins = [first, r.choice([name] + list(nodes) + list(carried))]
                r.shuffle(ins)
                add(op, *(ins[:1] if op in lines or op in ("lose", "slide") else ins))
        while unread:
            add(r.choice("+-"), *r.sample([name, unread[0]], 2))
        typed = r.random() < 0.5
        for i, (c, is_) in enumerate(carried.items()):
            of = r.choice([name] + [b for b in nodes if not nodes[b]["alone"]] * 3 + list(carried)[:i])
            is_.update(of=of, splice=r.random() < 0.4, init=r.choice([0, 3, 0.5]), made={})
            init = f"start{self.n}_{i}.npy" if r.random() < 0.3 else is_["init"]
            if is_["init"] != init:
                np.save(os.path.join(self.folder, init), np.full(s.shape, float(is_["init"])))
            dtype = f"dtype: f64, shape: {list(s.shape)}"
            self.buffers.append(f"{c}: {{carry: {of}, init: {init}, on_hole: {'splice' if is_['splice'] else 'reset'}"
                                + (f", {dtype}}}" if typed else "}"))
        if not typed:
            self.buffers += [f"{b}: {{dtype: f64, shape: {list(s.shape)}}}" for b in nodes]
        for b, node in nodes.items():
            frames = [made(b, k) for k in range(len(s.frames))]
            if not node["alone"]:
                self.ends[b] = Stream(s.shape, s.rate, [f if f is None else (None, f, None) for f in frames])

    def state(self, name, s):
        """Stages that change one place, in the order of the file, and some that read it between."""
        r, w = self.r, self.w
        splice, init, out = r.random() < 0.5, r.choice([0, 0, 3]), f"b{self.n + 1}"
        at, uses = f"{out}_state", []
        for _ in range(r.randint(1, 4)):
            uses.append(r.choice(["add", "add", "half", "read"]))
        uses.insert(r.randint(0, len(uses)), "read")
        if "add" not in uses:
            uses.append("add")
        save = r.choice(["", f", save: out/{at}.npy", f", save: out/{at}.npy, save_every: {r.randint(1, 9)}"])
        self.buffers.append(f"{at}: {{state: true, dtype: f64, shape: {list(s.shape)}, init: {init}, "
                            f"on_hole: {'splice' if splice else 'reset'}{save}}}")
        value, made = np.full(s.shape, float(init)), [[] for u in uses if u == "read"]
        for f in s.frames:
            if f is None and not splice:
                value = np.full(s.shape, float(init))
            reads = iter(made)
            for use in uses:
                if use == "read":
                    next(reads).append(None if f is None else (f[0], f[1] - value, f[2]))
                elif f is not None:
                    value = value + f[1] if use == "add" else np.floor(value / 2)
        if save:
            self.expected[f"{at}.npy"] = value
        reads = iter(made)
        for i, use in enumerate(uses):
            if use == "read":
                self.put("use: expr, expr: x - s", f"{{x: {name}, s: {at}}}",
                         Stream(s.shape, s.rate, next(reads), placed=s.placed, absent=s.absent))
            else:
                text = "x + s" if use == "add" else "floor(s / 2) + 0 * x"
                self.lines.append(f"{{use: expr, expr: {text}, in: {{x: {name}, s: {at}}}, out: {at}}}")

    def step(self):
        r, w = self.r, self.w
        name = r.choice(sorted(self.streams)[-4:] + sorted(self.streams))
        s = self.streams[name]
        n, what = r.randint(1, 5), r.choice(WHAT)
        if len(s.frames) > 120 or np.prod(s.shape) > 200 or not s.length() or np.prod(s.shape) * len(s.frames) > 2000:
            what = r.choice(["reduce", "decimate", "mix"])
        if s.held and what != "join":
            return
        if what in ("group", "window", "mix", "carry", "state", "network") and not s.whole():
            what = "split"
        tail = r.choice(["keep", "keep", "drop"])
        if what == "affine":
            self.put("use: expr, expr: in * 2 + 1", name, affine(s, 2, 1))
        elif what in ("drop", "fail"):
            every, at = r.randint(2, 7), r.randint(0, 6)
            text = "return 'drop'" if what == "drop" else "error('no')"
            self.put(self.script(f"  if f.index % {every} == {at} then {text} end"), name,
                     lose(w, s, every, at, w.dropped if what == "drop" else w.failed), True)
        elif what == "join":
            others = [o for o, t in self.streams.items() if t.shape == s.shape and t.rate == s.rate and o != name
                      and not (t.held and s.held)
                      and (t.held or s.length() <= len(t.frames)) and (s.held or t.length() <= len(s.frames))]
            if others:
                other = r.choice(sorted(others))
                t = self.streams[other]
                self.put("use: expr, expr: a + b", f"{{a: {name}, b: {other}}}", join(w, s, t))
        elif what == "carry":
            splice = r.random() < 0.5
            out = f"b{self.n + 1}"
            self.buffers += [f"{out}: {{dtype: f64, shape: {list(s.shape)}}}",
                             f"{out}_before: {{carry: {out}, on_hole: {'splice' if splice else 'reset'}}}"]
            self.put(f"use: expr, expr: x + {'2 * ' if splice else ''}before", f"{{x: {name}, before: {out}_before}}",
                     carry(s, splice))
        elif what == "state" and s.placed:
            self.state(name, s)
        elif what == "network":
            self.network(name, s)
        elif what == "loop":
            t = s
            for _ in range(n):
                t = affine(t, 2, 1)
            body = "[{use: expr, expr: in * 2 + 1, in: x, out: y}]"
            self.put(f"use: loop, times: {n}, carry: {{x: y}}, stages: {body}", f"{{x: {name}}}", t)
            self.lines[-1] = self.lines[-1].replace(f"out: b{self.n}}}", f"out: {{y: b{self.n}}}}}")
        elif what == "group" and len(s.shape) < 6:
            if self.counted and len(s.frames) < n:
                tail = "keep"
            self.put(f"use: group, frames: {n}, tail: {tail}", name, group(w, s, n, tail))
        elif what == "split":
            self.put("use: split", name, split(w, s))
        elif what == "window" and len(s.shape) < 6:
            partial = r.choice(["keep", "drop"]) if len(s.frames) >= n or not self.counted else "keep"
            self.put(f"use: window, frames: {n}, partial: {partial}", name, window(w, s, n, partial))
        elif what == "roll":
            self.put(f"use: roll, shift: {n}, axis: [0]", name, roll(w, s, n))
        elif what == "decimate":
            self.put(f"use: decimate, frames: {n}", name, decimate(s, n))
        elif what == "hold":
            self.put(f"use: hold, frames: {n}", name, hold(s, n))
        elif what == "mix":
            op, n = r.choice(["sum", "max", "min", "last"]), r.randint(0, 6)
            if not n or (self.counted and len(s.frames) < n):
                tail = "keep"
            self.put(f"use: mix, op: {op}, frames: {n}, tail: {tail}", name, mix(w, s, n, op, tail))
        elif what == "reduce":
            op = r.choice(["sum", "max"])
            self.put(f"use: reduce, op: {op}, axes: [0]", name, reduce(s, op))

    def make(self):
        r = self.r
        shape, frames = r.choice([(4,), (2, 3), (1, 2), (3,)]), r.choice([1, 2, 5, 12, 30, 60])
        self.source(shape, frames)
        if r.random() < 0.5:
            self.source(shape, frames)
        for _ in range(r.randint(1, 9)):
            self.step()
        for name, s in {**self.streams, **self.ends}.items():
            if name not in self.used or r.random() < 0.1:
                self.lines.append(f"{{name: w_{name}, use: write, in: {name}, path: \"out/{name}-%04d.npy\", "
                                  f"workers: {r.randint(1, 3)}}}")
                for k, f in enumerate(s.frames):
                    if f is not None:
                        self.expected[f"{name}-{k:04d}.npy"] = f[1]
        device = r.choice(os.environ.get("GPIPE_DEVICES", "cpu cpu cpu:0-1 cpu:0-2").split())
        head = [f"device: {device}", f"streams: {r.randint(1, 5)}", f"copies: {r.choice(['auto', 'auto', 'dma', 'mapped'])}",
                f"batch: {r.choice(['1', '3', 'auto'])}", f"launch: {r.choice(['graph', 'stream'])}", "on_error: drop",
                "stall_timeout: 10s", r.choice(["latency: 2ms", "batch_wait: 400us", "sync: block"])] + ([f"depth: {r.randint(5, 9)}"] if r.random() < 0.5 else [])
        return "\n".join(head + ["buffers:"] + ["  " + b for b in self.buffers]
                         + ["stages:"] + ["  - " + line for line in self.lines]) + "\n"


def wrong(m, code, said, folder):
    if code:
        return f"exit {code}: {said}"
    out = os.path.join(folder, "out")
    got = {n: np.load(os.path.join(out, n)) for n in os.listdir(out)} if os.path.isdir(out) else {}
    if set(got) != set(m.expected):
        return f"has {sorted(set(got) - set(m.expected))}, lacks {sorted(set(m.expected) - set(got))}"
    for name, want in m.expected.items():
        if got[name].shape != want.shape or not (got[name] == want).all():
            return f"{name}: {got[name].shape} {got[name].ravel()[:8]}, not {want.shape} {want.ravel()[:8]}"
    return None


def account(m, said):
    """What the accounts of the sources, in their order, say wrong. Frames beside one that is lost are lost as that was."""
    lines = [tuple(map(int, a)) for a in ACCOUNT.findall(said)]
    ok = len(lines) == len(m.w.frames)
    for (number, (frames, gone)), a in zip(m.w.frames.items(), lines):
        failed = {k for s, k in m.w.failed if s == number}
        lost = failed | gone | {k for s, k in m.w.dropped | m.w.beside if s == number}
        ok &= a[0] == frames == sum(a[1:]) and not a[4] and a[3] >= len(failed)
        ok &= a[2] + a[3] == len(lost) or (m.w.vague and a[2] + a[3] > len(lost))
    return None if ok else f"account {lines}: {said}"


def one(gpipe, seed, i):
    r = random.Random(seed * 1000003 + i)
    with tempfile.TemporaryDirectory() as folder:
        m = Maker(r, folder)
        text = m.make()
        with open(os.path.join(folder, "model.yaml"), "w") as f:
            f.write(text)
        try:
            p = subprocess.run([gpipe, "run", "--progress", "none", "model.yaml"], cwd=folder, text=True, timeout=120,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except subprocess.TimeoutExpired:
            return "hangs", text
        bad = wrong(m, p.returncode, p.stderr, folder) or account(m, p.stderr)
        return bad, text


def main():
    gpipe = os.path.abspath(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(os.environ.get("GPIPE_SEED", "1"))
    if len(sys.argv) > 3 and sys.argv[3].endswith(".."):
        which = [int(sys.argv[3][:-2])]
    else:
        which = range(int(sys.argv[3]) if len(sys.argv) > 3 else 100)
    failed = 0
    for i in which:
        bad, text = one(gpipe, seed, i)
        if bad:
            failed += 1
            print(f"FAILED: model.py GPIPE {seed} {i}..: {bad}\n{text}", file=sys.stderr)
    print(f"random pipelines: seed {seed}")
    print(f"model: {len(which) - failed} passed, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
