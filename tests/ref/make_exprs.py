#!/usr/bin/env python3
"""Makes exprs.txt and exprs.bin beside it, with NumPy: programs of the kind `expr`, and what they give.

    python3 tests/ref/make_exprs.py

The rules are written down here a second time, in NumPy's terms: the type of two integers of 32 and 64 bits, and of an
integer and a float, is np.promote_types'; smaller integers count as i32 among integers, and as i16 beside floats.
tests/fuzz/exprs.py has random programs from here.

c64 is np.complex64, and there is no complex128: beside it are f16, f32, integers of 8 and 16 bits, and numbers.

A neighbor is an element of what np.pad makes of the input, broadcast to the frame.

A line of exprs.txt is `in NAME TYPE [SHAPE] OFFSET`, or `NAME @ TOLERANCE @ INPUTS @ PROGRAM @ TYPE [SHAPE] OFFSET, ...` with
an output y0, y1, ... for each of the last; offsets count bytes of exprs.bin. Before INPUTS stands `edge: EDGE, ` where the
program has neighbors."""
import os

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
NAMES = {"u8": "u1", "i8": "i1", "u16": "u2", "i16": "i2", "u32": "u4", "i32": "i4", "u64": "u8", "i64": "i8", "f16": "f2",
         "f32": "f4", "f64": "f8"}
TYPES = {k: np.dtype(v) for k, v in NAMES.items()}
NAME_OF = {v: k for k, v in TYPES.items()}
c64 = np.dtype("c8")
NAME_OF[c64] = "c64"
i32, f32, f64 = TYPES["i32"], TYPES["f32"], TYPES["f64"]
VARS = {"gain": 1.5, "count": 6}


class Refused(Exception):
    """It is an error, by the rules."""


# -- types ------------------------------------------------------------------


class Data:
    """Values of a frame: `a` in the type that they are computed in; `stored`: the output's type, where not declared."""

    def __init__(self, a, stored=None, small=False):
        self.a, self.stored, self.small = np.asarray(a), stored or NAME_OF[np.asarray(a).dtype], small

    def promotes_as(self, other_is_float):
        return TYPES["i16"] if self.small and other_is_float else self.a.dtype


def load(a):
    small = a.dtype.kind in "iu" and a.dtype.itemsize < 4
    return Data(a.astype(i32 if small else f32 if a.dtype == TYPES["f16"] else a.dtype), NAME_OF[a.dtype], small)


def is_float(v):
    return isinstance(v, float) if not isinstance(v, Data) else v.a.dtype.kind == "f"


def settle(v):
    """A number that meets no frame."""
    if isinstance(v, Data):
        return v
    if isinstance(v, float):
        return Data(np.asarray(v, f32))
    fits = -2**31 <= v < 2**31
    return Data(np.asarray(v, i32 if fits else TYPES["i64"]), small=fits)


def both(x, y):
    """x and y in their common type, and whether that stays small."""
    for p, q in ((x, y), (y, x)):
        if not isinstance(p, Data) and isinstance(q, Data):
            if isinstance(p, float):
                p = Data(np.asarray(p, f64).astype(f32))
                t = np.promote_types(q.promotes_as(True), f32)
                number = x if p is not x and not isinstance(x, Data) else y
                value = np.asarray(number, f64).astype(t)
                return (value, q.a.astype(t), False) if not isinstance(x, Data) else (q.a.astype(t), value, False)
            t, small = q.a.dtype, q.small
            if t.kind in "iu" and not np.iinfo(t).min <= p <= np.iinfo(t).max:
                t, small = np.promote_types(t, TYPES["i64"]), False
            value = np.asarray(p, t if t.kind in "iu" else f64).astype(t)
            return (value, q.a.astype(t), small) if not isinstance(x, Data) else (q.a.astype(t), value, small)
    x, y = settle(x), settle(y)
    t = np.promote_types(x.promotes_as(is_float(y)), y.promotes_as(is_float(x)))
    t = i32 if t == TYPES["i16"] else t
    return x.a.astype(t), y.a.astype(t), x.small and y.small


def float_of(v):
    if not isinstance(v, Data):
        return f32
    return np.promote_types(v.promotes_as(True), f32)


def as_float(v, t):
    return v.a.astype(t) if isinstance(v, Data) else np.asarray(v, f64).astype(t)


# -- operators ----------------------------------------------------------------


def shift(a, b, left):
    bits = 8 * a.dtype.itemsize
    wide = (b >= bits) | (b < 0)
    n = np.where(wide, 0, b).astype(a.dtype)
    out = np.left_shift(a, n) if left else np.right_shift(a, n)
    over = np.zeros_like(a) if left else np.where(a < 0, -1, 0).astype(a.dtype) if a.dtype.kind == "i" else np.zeros_like(a)
    return np.where(wide, over, out).astype(a.dtype)


PLAIN = {"+": np.add, "-": np.subtract, "*": np.multiply, "%": np.fmod,
         "min": lambda a, b: np.where((a < b) | (a != a), a, b), "max": lambda a, b: np.where((a > b) | (a != a), a, b)}
BITS = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": lambda a, b: shift(a, b, True),
        ">>": lambda a, b: shift(a, b, False)}
COMPARE = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal,
           "!=": np.not_equal}
FLOAT1 = {"sqrt": np.sqrt, "rsqrt": lambda a: a.dtype.type(1) / np.sqrt(a), "exp": np.exp, "log": np.log, "log2": np.log2,
          "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan}
FLOAT2 = {"/": np.divide, "pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}
PARTS = ("re", "im", "conj", "arg")
WHOLE = {"floor": np.floor, "ceil": np.ceil, "round": np.rint}


def truth(v):
    return Data(np.asarray(v).astype(i32), "u8", True)


def is_true(v):
    return v.a != 0 if isinstance(v, Data) else np.asarray(v != 0)


def fits(n):
    if not -2**63 <= n < 2**63:
        raise Refused
    return n


def fold(op, v):
    """Of numbers alone."""
    ints = all(isinstance(x, int) for x in v)
    if op in COMPARE:
        return int(COMPARE[op](*(np.array(v, object) if ints else np.array(v, f64))))
    if op in ("&&", "||", "!"):
        t = [x != 0 for x in v]
        return int(not t[0] if op == "!" else t[0] and t[1] if op == "&&" else t[0] or t[1])
    if op == "isnan":
        return int(v[0] != v[0])
    if op == "?:":
        out = v[1] if v[0] != 0 else v[2]
        return out if ints or isinstance(v[1], int) and isinstance(v[2], int) else float(out)
    if op == "neg":
        return fits(-v[0]) if ints else -v[0]
    if op == "abs":
        return fits(abs(v[0])) if ints else abs(v[0])
    if op in WHOLE:
        return v[0] if ints else float(WHOLE[op](f64.type(v[0])))
    if op == "~":
        return ~v[0]
    if op in BITS:
        n = np.array(v, "i8")
        out = BITS[op](n[0:1], n[1:2])[0]
        if op == "<<" and 0 <= v[1] < 64:
            fits(v[0] << v[1])
        return int(out)
    if op in FLOAT1:
        return float(FLOAT1[op](f64.type(v[0])))
    if op in PARTS:
        return float(np.arctan2(0.0, v[0])) if op == "arg" else v[0] if op != "im" else type(v[0])(0)
    if ints and op in PLAIN:
        a, b = v
        if op == "%":
            return 0 if b == 0 else int(np.fmod(np.int64(a), np.int64(b)))
        return fits({"+": a + b, "-": a - b, "*": a * b, "min": min(a, b), "max": max(a, b)}[op])
    return float((PLAIN.get(op) or FLOAT2[op])(f64.type(v[0]), f64.type(v[1])))


# -- c64 ------------------------------------------------------------------------


def join(re, im):
    out = np.empty(np.broadcast_shapes(re.shape, im.shape), c64)
    out.real, out.imag = re, im
    return out


def multiply(a, b):
    """Each operation is rounded: np.multiply may contract them."""
    return join(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def exponential(a):
    r = np.exp(a.real)
    return join(np.where(a.imag == 0, r, r * np.cos(a.imag)), np.where(a.imag == 0, a.imag, r * np.sin(a.imag)))


COMPLEX = {"+": np.add, "-": np.subtract, "*": multiply, "/": np.divide, "==": np.equal, "!=": np.not_equal}
COMPLEX1 = {"neg": lambda a: join(-a.real, -a.imag), "conj": lambda a: join(a.real, -a.imag), "re": np.real, "im": np.imag,
            "abs": lambda a: np.hypot(a.real, a.imag), "arg": lambda a: np.arctan2(a.imag, a.real), "exp": exponential,
            "isnan": np.isnan}


def is_complex(v):
    return isinstance(v, Data) and v.a.dtype == c64


def as_c64(v):
    if isinstance(v, Data) and not is_complex(v) and v.promotes_as(True) not in (TYPES["i16"], f32):
        raise Refused
    return v.a if is_complex(v) else as_float(v, f32).astype(c64)


def apply_complex(op, v):
    if op == "?:" and not is_complex(v[0]):
        return Data(np.where(is_true(v[0]), as_c64(v[1]), as_c64(v[2])))
    if op not in COMPLEX and op not in COMPLEX1:
        raise Refused
    out = np.asarray((COMPLEX.get(op) or COMPLEX1[op])(*(as_c64(x) for x in v)))
    return truth(out) if out.dtype == bool else Data(out)


def part_of(op, x):
    """re, im, conj and arg of a real number."""
    if op == "arg":
        t = float_of(x)
        return Data(np.arctan2(t.type(0), as_float(x, t)))
    return Data(np.zeros_like(x.a), x.stored, x.small) if op == "im" else x


def apply(op, v):
    if op == "complex":
        if any(is_complex(x) for x in v):
            raise Refused
        return Data(join(*(as_float(x, f32) for x in v)))
    if any(is_complex(x) for x in v):
        return apply_complex(op, v)
    if op in BITS or op == "~":
        if any(is_float(x) for x in v):
            raise Refused
    if op == "clamp":
        return apply("min", [apply("max", v[:2]), v[2]])
    if not any(isinstance(x, Data) for x in v):
        return fold(op, v)
    if op in PLAIN or op in BITS:
        a, b, small = both(*v)
        if op in BITS and a.dtype.kind == "f":
            raise Refused
        out = (PLAIN.get(op) or BITS[op])(a, b)
        return Data(out, small=small and out.dtype == i32)
    if op in COMPARE:
        a, b, _ = both(*v)
        return truth(COMPARE[op](a, b))
    if op in ("&&", "||"):
        return truth(is_true(v[0]) & is_true(v[1]) if op == "&&" else is_true(v[0]) | is_true(v[1]))
    if op == "!":
        return truth(~is_true(v[0]))
    if op == "?:":
        a, b, small = both(v[1], v[2])
        return Data(np.where(is_true(v[0]), a, b), small=small)
    x = v[0]
    if op in PARTS:
        return part_of(op, x)
    if op == "isnan":
        return truth(x.a != x.a)
    if op == "neg":
        return Data(np.negative(x.a), small=x.small)
    if op == "abs":
        return Data(np.abs(x.a), small=x.small)
    if op == "~":
        return Data(~x.a, small=x.small)
    if op in WHOLE:
        return Data(WHOLE[op](x.a) if is_float(x) else x.a, small=x.small)
    t = max((float_of(y) for y in v), key=lambda d: d.itemsize)
    return Data((FLOAT1.get(op) or FLOAT2[op])(*(as_float(y, t) for y in v)))


def store(v, name=None):
    """As an output of the type `name`, or of its own."""
    if not isinstance(v, Data):
        if name:
            t = TYPES.get(name, c64)
            v = Data(np.asarray(v, f64 if isinstance(v, float) else "i8" if t.kind not in "fc" else object).astype(
                t if t.kind in "fc" and t.itemsize > 2 else f64 if isinstance(v, float) else "i8"))
        else:
            v = settle(v)
    if is_complex(v) and name not in (None, "c64"):
        raise Refused
    if name == "c64":
        return v.a.astype(c64)
    if is_complex(v):
        return v.a
    t, a = TYPES[name or v.stored], v.a
    if t.kind == "f":
        with np.errstate(over="ignore"):
            return a.astype(t)
    info = np.iinfo(t)

    def whole(x):
        if x != x:
            return 0
        if x in (np.inf, -np.inf):
            return info.max if x > 0 else info.min
        return min(max(int(np.rint(x)) if a.dtype.kind == "f" else int(x), info.min), info.max)

    return np.array([whole(x) for x in a.ravel()], t).reshape(a.shape)


# -- neighbors -----------------------------------------------------------------

PADS = {"reflect": "symmetric", "nearest": "edge", "zero": "constant"}


class Frame:
    """What inputs broadcast to: ("near", NAME, axes, offsets) is an element of its last axes."""

    def __init__(self, shape, edge):
        self.shape, self.edge = shape, edge

    def part(self, v, index):
        """An index is a number, or (axis of the frame, offset), in the order of these."""
        a = v.a[tuple(slice(None) if isinstance(n, tuple) else n for n in index)]
        axes = [n[0] for n in index if isinstance(n, tuple)]
        a = a.reshape([a.shape[axes.index(k)] if k in axes else 1 for k in range(len(self.shape))])
        offsets = dict(n for n in index if isinstance(n, tuple))
        return self.near(Data(a, v.stored, v.small), [offsets.get(k, 0) for k in range(len(self.shape))])

    def near(self, v, offsets):
        offsets = (0,) * (len(self.shape) - len(offsets)) + tuple(offsets)
        if self.edge == "wrap":
            return Data(np.roll(np.broadcast_to(v.a, self.shape), [-n for n in offsets], range(len(offsets))), v.stored, v.small)
        far = max(abs(n) for n in offsets)
        padded = np.pad(np.broadcast_to(v.a, self.shape), far, mode=PADS[self.edge or "reflect"])
        at = tuple(slice(far + by, far + by + n) for by, n in zip(offsets, self.shape))
        return Data(padded[at], v.stored, v.small)


def near_text(e):
    _, name, axes, offsets = e
    index = [f"i{axes - len(offsets) + k}" + (f" {'+' if n > 0 else '-'} {abs(n)}" if n else "") for k, n in enumerate(offsets)]
    return f"{name}[{', '.join(index)}]"


def part_text(e):
    moved = lambda n: f"i{n[0]}" + (f" {'+' if n[1] > 0 else '-'} {abs(n[1])}" if n[1] else "")
    return f"{e[1]}[{', '.join(moved(n) if isinstance(n, tuple) else str(n) for n in e[2])}]"


# -- expressions as trees -------------------------------------------------------

CALLS = ("min", "max", "clamp", "isnan", "abs", "pow", "atan2", "hypot", "complex", *PARTS, *FLOAT1, *WHOLE)
# Operators of random programs, and of those with c64.
OPS = ["+", "-", "*", "/", "%", "min", "max", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "&", "|", "^", "<<", ">>", "?:", "?:",
       "neg", "!", "~", "abs", "floor", "ceil", "round", "sqrt", "rsqrt", "isnan", "clamp", "+", "-", "*"]
OPS_OF_COMPLEX = 2 * ["+", "-", "*", "/", "conj"] + ["==", "!=", "?:", "neg", "isnan", "re", "im", "complex", "<", "max", "%"]


def text(e):
    if isinstance(e, str):
        return e
    if isinstance(e, (int, float)):
        return repr(e) if e >= 0 else f"({e!r})"
    if e[0] == "near":
        return near_text(e)
    if e[0] == "part":
        return part_text(e)
    op, v = e[0], [text(x) for x in e[1:]]
    if op in CALLS:
        return f"{op}({', '.join(v)})"
    if op == "?:":
        return f"({v[0]} ? {v[1]} : {v[2]})"
    if op in ("neg", "!", "~"):
        return f"{'-' if op == 'neg' else op}{v[0]}"
    return f"({v[0]} {op} {v[1]})"


def value(e, names):
    if isinstance(e, str):
        return names[e]
    if isinstance(e, (int, float)):
        return e if e >= 0 else fold("neg", [-e])
    if e[0] == "near":
        return names["frame"].near(names[e[1]], e[3])
    if e[0] == "part":
        return names["frame"].part(names[e[1]], e[2])
    with np.errstate(all="ignore"):
        return apply(e[0], [value(x, names) for x in e[1:]])


def random_tree(rng, leaves, depth, ops=OPS):
    pick = lambda seq: seq[rng.integers(len(seq))]
    if depth == 0 or rng.random() < 0.15:
        kind = rng.random()
        if kind < 0.7:
            return pick(leaves)
        if kind < 0.85:
            return int(pick([0, 1, 2, 3, 7, 100, 255, 256, 65535, 70000, 2**31, 2**40, -1, -5]))
        return float(pick([0.5, 0.25, 1.0, 2.5, 1e-3, 3.3, 1e30, -0.75]))
    op = pick(ops)
    n = 3 if op in ("?:", "clamp") else 1 if op in ("neg", "!", "~", "abs", "floor", "ceil", "round", "sqrt", "rsqrt",
                                                   "isnan", *PARTS) else 2
    return (op, *(random_tree(rng, leaves, depth - 1, ops) for _ in range(n)))


def random_near(rng, tree, shapes, ndim):
    """The tree with neighbors in place of some of its inputs: `shapes` by name."""
    if isinstance(tree, str) and tree in shapes and rng.random() < 0.6:
        far = 2 if rng.random() < 0.9 else 20
        return ("near", tree, ndim, tuple(int(n) for n in rng.integers(-far, far + 1, len(shapes[tree]))))
    return tuple(random_near(rng, e, shapes, ndim) for e in tree) if isinstance(tree, tuple) else tree


def special(dtype, rng, n):
    """Values where types differ, then others."""
    if dtype == "c64":
        return join(special("f32", rng, n), rng.permutation(special("f32", rng, n)))
    t = TYPES[dtype]
    if t.kind == "f":
        v = [0.0, -0.0, 1.5, -2.5, np.nan, np.inf, -np.inf, 300.25, -70000.0, 3e9]
        with np.errstate(over="ignore"):
            return np.array(v[:n] + list(rng.normal(0, 100, max(0, n - len(v)))), f64).astype(t)
    info = np.iinfo(t)
    v = [0, 1, info.max, info.min, 2, info.max - 1, min(info.max, 200), max(info.min, -3), 7, min(info.max, 40000)]
    more = [int(x) for x in rng.integers(0, 100, max(0, n - len(v)))]
    return np.array(v[:n] + more, t)


# -- the files ------------------------------------------------------------------


def main():
    rng = np.random.default_rng(20261123)
    blob, lines = bytearray(), []

    def put(a):
        at = len(blob)
        blob.extend(np.ascontiguousarray(a).tobytes())
        return f"{NAME_OF[a.dtype]} [{', '.join(str(n) for n in a.shape)}] {at}"

    inputs = {}

    def given(name, a):
        inputs[name] = a
        lines.append(f"in {name} {put(a)}")

    def case(name, ins, trees, tolerance=0.0, program=None, extra=None, edge=None, shape=None):
        names = {**VARS, **{k: load(inputs[v]) for k, v in ins.items()}, **(extra or {})}
        shape = shape or np.broadcast_shapes(*(inputs[v].shape for v in ins.values()))
        names["frame"] = Frame(shape, edge)
        out = []
        for e in trees:
            v = e(names) if callable(e) else value(e, names)
            out.append(np.broadcast_to(store(v), shape))
        text_of = program or "; ".join(f"y{i} = {text(e)}" for i, e in enumerate(trees))
        before = f"edge: {edge}, " if edge else ""
        lines.append(f"{name} @ {tolerance:g} @ {before}{', '.join(f'{k}: {v}' for k, v in ins.items())} @ {text_of} @ "
                     + ", ".join(put(a) for a in out))

    for t in TYPES:
        given(f"row_{t}", special(t, rng, 8))
        given(f"column_{t}", special(t, rng, 8)[:, None])
    names = list(TYPES)
    for s in names:
        for t in names:
            ops = ["+", "-", "*", "/", "%", "min", "max", "<", "<=", "==", "!=", "&&", "||"]
            trees = [(op, "a", "b") for op in ops] + [("?:", ("<", "a", 1), "a", "b"), ("+", ("-", "a", "b"), 0.5)]
            case(f"{s} and {t}", {"a": f"row_{s}", "b": f"column_{t}"}, trees)
            if np.promote_types(np.promote_types(TYPES[s], i32) if TYPES[s].itemsize < 4 else TYPES[s],
                                np.promote_types(TYPES[t], i32) if TYPES[t].itemsize < 4 else TYPES[t]).kind != "f":
                case(f"bits of {s} and {t}", {"a": f"row_{s}", "b": f"column_{t}"},
                     [(op, "a", "b") for op in ("&", "|", "^", "<<", ">>")] + [("~", "a"), ("~", ("+", "a", "b"))])
    for t in names:
        case(f"{t} alone", {"a": f"row_{t}"},
             ["a", ("neg", "a"), ("abs", "a"), ("!", "a"), ("sqrt", "a"), ("rsqrt", "a"), ("floor", "a"), ("ceil", "a"),
              ("round", "a"), ("isnan", "a"), ("clamp", "a", 10, 100), ("*", "a", "gain"), ("+", "a", "count"),
              ("*", "a", 0.1), ("-", "a", 1), ("/", "a", 2)])
        case(f"{t} and large numbers", {"a": f"row_{t}"},
             [("+", "a", 300), ("+", "a", 70000), ("+", "a", -1), ("*", "a", 5000000000), ("<", "a", 1e30), ("==", "a", -1),
              ("max", "a", 2**40), ("&&", "a", 1), ("?:", "a", 1, 0), ("?:", "a", 0.1, 2), ("-", 0, "a"), ("/", 1, "a")])
        moderate = f"moderate_{t}"
        a = np.array([1, 2, 3, 5, 10, 0, 17, 40], f64)
        given(moderate, (a / 7 if TYPES[t].kind == "f" else a).astype(TYPES[t]))
        case(f"functions of {t}", {"a": moderate},
             [(op, "a") for op in ("exp", "log", "log2", "log10", "sin", "cos", "tan")]
             + [(op, "a", 1.7) for op in ("pow", "atan2", "hypot")], 2e-6)
    given("image", rng.integers(0, 65536, (6, 5, 3), np.uint16, endpoint=False))
    given("dark", rng.integers(0, 3000, (6, 5, 1), np.uint16, endpoint=False))
    given("flat", rng.random((5, 1), np.float32) + np.float32(0.5))
    given("weights", np.array([0.3, 0.59, 0.11], np.float32))
    given("one", np.array([2.5], np.float64))
    given("large", rng.normal(0, 50, (101, 133)).astype(np.float32))
    given("line", rng.normal(0, 50, 133).astype(np.float32))
    given("wide", rng.normal(0, 1, (1, 1)).astype(np.float32))
    everything = {"a": "image", "b": "dark", "c": "flat", "w": "weights", "k": "one"}
    case("dark, flat, clip", everything, [("clamp", ("/", ("-", "a", "b"), "c"), 0, 65535), ("*", "a", "w"), ("+", "b", "k")])
    case("large", {"a": "large"}, [("+", ("*", "a", 1.7), 3), ("<", "a", 0)])
    case("large, by columns", {"a": "large", "b": "line", "c": "wide"}, [("-", ("*", "a", "b"), "c"), ("+", "b", "c")])
    i0, i1, i2 = np.ogrid[:6, :5, :3]
    at = {f"i{k}": Data(v.astype(i32), small=True) for k, v in enumerate((i0, i1, i2))}
    case("indices", {"a": "image", "b": "dark"}, [("+", ("*", "i0", 100), ("+", ("*", "i1", 10), "i2")),
                                                   ("*", "a", ("==", ("%", ("+", "i0", "i1"), 2), 0)),
                                                   ("+", "b", ("*", "i1", 0.5))], extra=at)
    d = ("-", "a", "b")
    case("names", {"a": "image", "b": "dark"}, [("*", d, "gain"), (">", d, 3)],
         program="d = a - b; y0 = d * gain; y1 = d > 3")
    case("a var as it is, and as a truth", {"a": "dark"}, [(">=", (">>", "count", "a"), ("&&", "count", "a")),
                                                           ("+", ("*", "gain", "a"), ("?:", "gain", "a", 0))])
    leaves = [*everything, "gain", "count"]
    n = 0
    while n < 80:
        trees = [random_tree(rng, leaves, 4) for _ in range(3)]
        try:
            case(f"random {n}", everything, trees)
            n += 1
        except Refused:
            pass
    given("field", rng.normal(0, 50, (44, 67)).astype(np.float32))
    given("hem", rng.normal(0, 50, 67).astype(np.float32))
    given("bytes", rng.integers(0, 256, (7, 9), np.uint8))
    given("tall", rng.integers(-3, 4, (41, 1), np.int64))
    given("single", rng.normal(0, 1, (1, 1, 1)).astype(np.float32))
    given("row", special("f16", rng, 37))
    given("volume", rng.integers(0, 256, (3, 7, 130), np.uint8))
    given("photo", rng.integers(0, 256, (9, 45, 3), np.uint8))
    field_at = {f"i{k}": Data(v.astype(i32), small=True) for k, v in enumerate(np.ogrid[:44, :67])}
    for edge in PADS:
        def near(name, axes, *offsets):
            return ("near", name, axes, offsets)

        def total(trees):
            return trees[0] if len(trees) == 1 else ("+", total(trees[:-1]), trees[-1])

        around = total([near("a", 2, dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)])
        case(f"near, 3 x 3, {edge}", {"a": "field"}, [("/", around, 9), ("-", near("a", 2, 0, 1), near("a", 2, 0, -1)),
                                                      ("-", near("a", 2, 1, 0), "a")], edge=edge)
        case(f"near, {edge}, indices", {"a": "field", "b": "hem", "c": "wide"}, [
            ("+", ("*", near("a", 2, -1, 2), "i0"), ("*", near("b", 2, -3), "i1")), ("-", near("c", 2, 1, -1), near("a", 2, 0, 5)),
            ("+", near("a", 2, 0, 0), "a")], extra=field_at, edge=edge)
        for t in names:
            case(f"near, {t}, {edge}", {"a": f"row_{t}"}, [near("a", 1, -1), ("max", near("a", 1, 3), near("a", 1, -5)),
                                                           ("==", near("a", 1, -1), near("a", 1, 1))], edge=edge)
        case(f"near, channels, {edge}", {"a": "image", "b": "dark", "c": "flat", "w": "weights"}, [
            ("+", near("a", 3, -1, 0, 0), near("a", 3, 0, 1, 0)), ("-", near("a", 3, 0, 0, 1), near("a", 3, 2, -1, -1)),
            ("+", near("b", 3, 1, -2, 0), near("b", 3, 0, 0, 1)), ("*", near("c", 3, 1, 0), near("w", 3, -1)),
            ("+", near("c", 3, -2, 1), near("a", 3, -2, 1, 0))], edge=edge)
        case(f"near, further than the frame, {edge}", {"a": "bytes"}, [
            near("a", 2, -8, 0), near("a", 2, 25, -40), ("+", near("a", 2, 7, 9), near("a", 2, -7, -9)), near("a", 2, 0, 300),
            near("a", 2, -14, 18), near("a", 2, 13, -19)], edge=edge)
        case(f"near, columns, {edge}", {"a": "tall"}, [("-", near("a", 2, 1, 0), near("a", 2, -1, 0)), near("a", 2, 2, 5)],
             edge=edge)
        case(f"near, a volume, {edge}", {"a": "volume"}, [
            ("min", near("a", 3, -1, 1, 0), ("min", near("a", 3, 1, -1, 2), near("a", 3, 0, 4, -1))), near("a", 3, 0, 1, 0)],
             edge=edge)
        case(f"near, a photo, {edge}", {"a": "photo", "b": "weights"}, [
            ("+", near("a", 3, 1, -1, 0), ("-", near("a", 3, -2, 0, 1), near("a", 3, 0, 3, -1))), ("*", near("a", 3, 3, 0, 0),
                                                                                                  near("b", 3, 1))], edge=edge)
        case(f"near, above, {edge}", {"a": "photo"}, [near("a", 3, -1, 0, 0)], edge=edge)
        case(f"near, one element, {edge}", {"a": "single"}, [near("a", 3, 1, 0, -2), ("*", near("a", 3, 0, 0, 0), 2),
                                                             near("a", 3, -5, 0, 0)], edge=edge)
        case(f"near, a row, {edge}", {"a": "row"}, [total([("*", near("a", 1, k), 0.25) for k in range(-6, 7)])], edge=edge)
        case(f"near, names and vars, {edge}", {"a": "field"}, [("-", near("a", 2, 6, -3), near("a", 2, -6, 0)), near("a", 2, 5, 6)],
             program="k = count + i0; l = i1 - 2; y0 = a[k, l - 1] - a[i0 - count, i1]; y1 = a[k - 1, (1 + i1) + (count - 1)]",
             edge=edge)
    given("color", rng.integers(0, 256, (11, 45, 4), np.uint8))
    given("plane", rng.normal(0, 50, (11, 45)).astype(np.float32))
    given("rows", rng.normal(0, 50, 11).astype(np.float32))
    given("columns", rng.normal(0, 50, 45).astype(np.float32))
    y, x, c = (0, 0), (1, 0), (2, 0)
    at = {f"i{k}": Data(v.astype(i32), small=True) for k, v in enumerate(np.ogrid[:11, :45])}

    def part(name, *index):
        return ("part", name, index)

    luma = ("+", ("+", ("*", part("a", y, x, 0), 0.299), ("*", part("a", y, x, 1), 0.587)), ("*", part("a", y, x, 2), 0.114))
    case("part, channels", {"a": "color"}, [luma, ("max", part("a", y, x, 3), part("a", y, x, 0))], shape=(11, 45))
    case("part, channels and a plane", {"a": "color", "b": "plane"}, [("-", luma, "b"), ("+", part("a", y, x, 2), "i1")],
         extra=at, shape=(11, 45))
    case("part, channels of all", {"a": "color"}, [("-", "a", part("a", y, x, 1)), ("+", "a", part("a", y, 7, c))])
    case("part, rows and columns", {"b": "plane", "r": "rows", "c": "columns"},
         [("-", "b", part("b", y, 3)), ("+", "b", part("b", 2, x)), ("*", part("r", y), part("c", x)), ("+", "b", part("r", y))],
         shape=(11, 45))
    case("part, an outer product", {"r": "rows", "c": "columns"}, [("*", part("r", y), part("c", x))], shape=(11, 45))
    case("part, of the first axis", {"a": "color"}, [("-", part("a", 4, y, x), part("a", 0, y, x)), ("+", part("a", 10, y, x), "i0")],
         shape=(45, 4), extra={f"i{k}": Data(v.astype(i32), small=True) for k, v in enumerate(np.ogrid[:45, :4])})
    case("part, of the middle axis", {"a": "color", "r": "rows"}, [("+", part("a", y, 44, x), part("r", y))], shape=(11, 4))
    case("part, names and vars", {"a": "color"}, [("+", part("a", y, x, 3), part("a", y, 6, 1))], shape=(11, 45),
         program="k = i1; last = 3; y0 = a[i0, k, last] + a[i0, count, 2 - 1]")
    for edge in PADS:
        case(f"part, neighbors, {edge}", {"a": "color", "r": "rows"}, [
            ("-", part("a", (0, 1), (1, -2), 0), part("a", y, x, 3)), ("+", part("r", (0, -1)), part("a", (0, 3), 5, 1))],
             shape=(11, 45), edge=edge)
    given("row_c64", special("c64", rng, 8))
    given("column_c64", special("c64", rng, 8)[:, None])
    given("samples", join(*rng.normal(0, 3, (2, 41, 67)).astype(f32)))
    given("taps", join(*rng.normal(0, 1, (2, 67)).astype(f32)))
    case("c64, as it is", {"a": "row_c64"},
         ["a", ("neg", "a"), ("conj", "a"), ("re", "a"), ("im", "a"), ("isnan", "a"), ("*", "a", "gain"), ("+", "a", "count"),
          ("*", "a", 0.1), ("-", 1, "a"), ("/", "a", 2), ("/", 2.5, "a"), ("==", "a", 0), ("!=", "a", "a"), ("?:", 1, "a", "count")])
    for t in ("u8", "i8", "u16", "i16", "f16", "f32", "c64"):
        case(f"c64 and {t}", {"a": "row_c64", "b": f"column_{t}"},
             [("+", "a", "b"), ("+", "b", "a"), ("-", "a", "b"), ("-", "b", "a"), ("*", "a", "b"), ("*", "b", "a"), ("/", "a", "b"),
              ("/", "b", "a"), ("==", "a", "b"), ("!=", "b", "a"), ("?:", (">", ("re", "b"), 1), "a", "b"),
              ("?:", ("==", "a", "b"), "b", 0.1), ("re", ("*", "a", ("conj", "b")))])
    case("functions of c64", {"a": "taps"}, [(op, "a") for op in ("abs", "arg", "exp")] + [("exp", ("complex", 0, ("abs", "a")))], 2e-6)
    for t in names:
        case(f"parts of {t}", {"a": f"row_{t}", "b": f"column_{t}"},
             [(op, "a") for op in ("re", "im", "conj")] + [(op, ("neg", "a")) for op in ("re", "im", "conj")]
             + [("complex", "a", "b"), ("complex", "a", 2), ("complex", "gain", "b")])
        case(f"angles of {t}", {"a": f"moderate_{t}"}, [("arg", "a"), ("arg", ("neg", "a")), ("arg", ("-", "a", "gain"))], 2e-6)
    case("c64 of numbers", {"a": "taps"}, [("complex", "gain", -2), ("*", ("complex", 1, 2), "a"), ("arg", 1), ("im", 2.5), ("re", "count"),
                                           ("conj", 7)])
    case("c64, mixed", {"a": "samples"}, [("*", "a", ("complex", ("cos", ("*", "i1", 0.1)), ("sin", ("*", "i1", 0.1)))), "y1"],
         2e-6, program="w = complex(cos(i1 * 0.1), sin(i1 * 0.1)); y0 = a * w; y1 = re(a) * re(a) + im(a) * im(a)",
         extra={"i1": Data(np.arange(67, dtype=i32), small=True),
                "y1": Data(np.square(inputs["samples"].real) + np.square(inputs["samples"].imag))})
    for edge in PADS:
        case(f"near, c64, {edge}", {"a": "samples", "b": "taps"}, [
            ("-", ("near", "a", 2, (-1, 2)), "a"), ("*", ("near", "a", 2, (0, -3)), ("conj", ("near", "b", 2, (1,)))),
            ("near", "b", 2, (-2,)), ("re", ("near", "a", 2, (1, 0)))], edge=edge)
        case(f"part, c64, {edge}", {"a": "samples", "b": "taps"}, [
            ("/", "a", ("part", "a", (y, 3))), ("-", ("part", "b", (x,)), ("part", "a", ((0, 1), 66)))], shape=(41, 67), edge=edge)
    several = {"a": "row_c64", "b": "column_c64", "c": "row_f32", "d": "column_i8", "e": "column_f64"}
    n = 0
    while n < 60:
        trees = [random_tree(rng, [*several, "a", "b", "gain", "count"], 4, OPS_OF_COMPLEX) for _ in range(3)]
        try:
            if all(isinstance(e, tuple) for e in trees):
                case(f"random c64 {n}", several, trees)
                n += 1
        except Refused:
            pass
    for edge in PADS:
        case(f"near, twenty, {edge}", {"a": "field"}, [total([("near", "a", 2, (y, x)) for y in range(-2, 3) for x in range(-2, 2)])],
             edge=edge)
        case(f"near, forty, {edge}", {"a": "field"}, [total([("near", "a", 2, (y, x)) for y in range(-2, 3) for x in range(-4, 4)])],
             edge=edge)
        case(f"near, and itself, {edge}", {"a": "photo"}, [("-", ("near", "a", 3, (1, 0, 0)), "a"), ("max", "a", ("near", "a", 3, (-2, 3, 0)))],
             edge=edge)
    case("near, 3 x 3, wrap", {"a": "field"}, [total([("near", "a", 2, (y, x)) for y in (-1, 0, 1) for x in (-1, 0, 1)])],
         edge="wrap")
    case("near, further than the frame, wrap", {"a": "bytes"}, [
        ("near", "a", 2, (-8, 0)), ("near", "a", 2, (25, -40)), ("+", ("near", "a", 2, (7, 9)), ("near", "a", 2, (-7, -9))),
        ("near", "a", 2, (-14, 18)), ("near", "a", 2, (13, -19))], edge="wrap")
    case("near, a volume, wrap", {"a": "volume"}, [("min", ("near", "a", 3, (-1, 1, 0)), ("near", "a", 3, (1, -1, 2)))], edge="wrap")
    case("near, and itself, wrap", {"a": "photo"}, [("-", ("near", "a", 3, (1, 0, 0)), "a"), ("max", "a", ("near", "a", 3, (-2, 3, 0)))],
         edge="wrap")
    case("near, c64, wrap", {"a": "samples", "b": "taps"}, [("-", ("near", "a", 2, (-1, 2)), "a"), ("near", "b", 2, (-2,))], edge="wrap")
    open(os.path.join(here, "exprs.txt"), "w").write("# made by make_exprs.py\n" + "\n".join(lines) + "\n")
    open(os.path.join(here, "exprs.bin"), "wb").write(blob)


if __name__ == "__main__":
    main()
