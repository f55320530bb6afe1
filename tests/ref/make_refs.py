#!/usr/bin/env python3
"""Makes the arrays and cases.txt beside it, with NumPy, SciPy, Pillow and scikit-image:

    pip install numpy scipy pillow scikit-image && python3 tests/ref/make_refs.py

A line of cases.txt: kind | options | inputs | expected | tolerance. The tolerance
is of the largest expected magnitude; 0 asks for the same bits."""
import os

import numpy as np, scipy.fft
from PIL import Image, ImageOps
from scipy import ndimage, signal, special as special_functions
from skimage import transform

here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(20240229)
cases, count = [], {}


def save(name, a):
    np.save(os.path.join(here, name + ".npy"), np.ascontiguousarray(a))
    return a


def case(kind, options, inputs, expected, tolerance=0.0):
    i = count[kind] = count.get(kind, -1) + 1
    name = f"{kind}_{i:02}"
    save(name, expected)
    cases.append(f"{kind} | {options} | {inputs} | {name} | {tolerance:g}")


def integers(dtype, shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


f32, f64, c64 = np.float32, np.float64, np.complex64
photo = save("photo_u8", integers(np.uint8, (7, 9, 3)))
deep = save("photo_u16", integers(np.uint16, (5, 11, 4)))
light = save("photo_f32", rng.random((6, 5, 3), f32))
plane = save("plane_f32", rng.normal(100, 50, (13, 17)).astype(f32))
thin = save("thin_f32", rng.normal(0, 1, (5, 1)).astype(f32))
odd = save("odd_f16", np.array([0, -0.0, 1, -2.5, 65504, -65504, 6e-8, 6.1e-5, np.inf, -np.inf, np.nan,
                                0.333, 1024.5], np.float16))
special = np.array([0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 254.5, 255.5, 1e10, -1e10, np.nan, np.inf, -np.inf,
                    127.5, 32767.5, 2147483648.0, 1e-45], f64)
save("special_f32", special.astype(f32))
save("special_f64", special)
cube = save("cube_f32", rng.normal(1, 3, (4, 7, 5, 3)).astype(f32))
nan_plane = plane.copy()
nan_plane[3, 4] = np.nan
save("nan_f32", nan_plane)
wide = {d: save("wide_" + d, integers(np.dtype(d), (9, 35))) for d in ("u1", "i2", "u4", "i8", "u8")}
halves = save("halves_f16", rng.normal(0, 3, (6, 33)).astype(np.float16))
doubles = save("doubles_f64", rng.normal(0, 3, (5, 40)))
sig = save("signal_f32", rng.normal(0, 1, 203).astype(f32))
three = save("signal3_f32", rng.normal(0, 1, (50, 3)).astype(f32))
iq = save("iq_c64", (rng.normal(0, 1, (40, 2)) + 1j * rng.normal(0, 1, (40, 2))).astype(c64))
pairs = save("pairs_i16", integers(np.int16, (11, 2)))
taps = save("taps_f64", rng.normal(0, 1, 9))

# -- cast ---------------------------------------------------------------------


def to_int(a, dtype):
    info = np.iinfo(dtype)
    return np.array([0 if v != v else info.max if v >= info.max else info.min if v <= info.min else int(np.rint(v))
                     for v in a.astype(f64)], dtype)


for d in ("u8", "i8", "u16", "i16", "i32", "u32"):
    dtype = np.dtype({"u": "uint", "i": "int"}[d[0]] + d[1:])
    case("cast", f"dtype: {d}", "special_f32", to_int(special.astype(f32), dtype))
    case("cast", f"dtype: {d}", "special_f64", to_int(special, dtype))
with np.errstate(over="ignore"):
    case("cast", "dtype: f16", "special_f64", special.astype(np.float16))
    case("cast", "dtype: f16", "plane_f32", plane.astype(np.float16))
case("cast", "dtype: f32", "photo_u8", photo.astype(f32))
case("cast", "dtype: f32", "wide_u8", wide["u8"].astype(f32))
case("cast", "dtype: f64", "odd_f16", odd.astype(f64))
case("cast", "dtype: c64", "pairs_i16", (pairs[:, 0] + 1j * pairs[:, 1]).astype(c64))
case("cast", "dtype: c64", "iq_c64", iq)

# -- scale, threshold, gray ----------------------------------------------------

a, b = f32(0.1), f32(-7.3)
case("scale", "a: 0.1, b: -7.3", "plane_f32", plane * a + b)
case("scale", "{}", "plane_f32", plane)
case("scale", "a: 0.1, b: -7.3", "doubles_f64", doubles * 0.1 + -7.3)
with np.errstate(over="ignore", invalid="ignore"):
    case("scale", "a: 0.1, b: -7.3", "odd_f16", (odd.astype(f32) * a + b).astype(np.float16))
re, im = iq.real * a + b, iq.imag * a
case("scale", "a: 0.1, b: -7.3", "iq_c64", np.stack([re, im], -1).astype(f32).view(c64)[..., 0])

case("threshold", "level: 100", "plane_f32", np.where(plane > 100, f32(1), f32(0)))
case("threshold", "level: 127.5, above: 255", "photo_u8", np.where(photo > 127.5, 255, 0).astype(np.uint8))
case("threshold", "level: -0.5, below: -7, above: 9", "wide_i2", np.where(wide["i2"] > -0.5, 9, -7).astype(np.int16))
case("threshold", "level: 4611686018427387904, above: 2", "wide_i8", np.where(wide["i8"] > 4611686018427387904, 2, 0))
case("threshold", "level: 0.3, below: -1", "special_f64", np.where(special > 0.3, 1.0, -1.0))
case("threshold", "level: 0.3, below: 0.1", "odd_f16",
     np.where(odd.astype(f32) > np.float16(0.3).astype(f32), np.float16(1), np.float16(0.1)))
levels = {"0.1": 0.1, "-0.1": -0.1, "16777217.5": 16777217.5, "1e-50": 1e-50, "-1e-50": -1e-50, "3.4e38": 3.4e38}
near = [np.nextafter(f32(v), f32(to)) for v in levels.values() for to in (-np.inf, v, np.inf)]
near = save("near_f32", np.array(near, f32))
for text, v in levels.items():                 # which f32 does not hold: that is the nearest, as NumPy has it
    case("threshold", f"level: {text}", "near_f32", np.where(near > f32(v), f32(1), f32(0)))


def gray(x, w=(0.299, 0.587, 0.114)):
    w = np.array(w, f32)
    x = x.astype(f32)
    return w[0] * x[..., 0] + w[1] * x[..., 1] + w[2] * x[..., 2]


case("gray", "{}", "photo_u8", gray(photo))
case("gray", "{}", "photo_u16", gray(deep))
case("gray", "weights: [0.2126, 0.7152, 0.0722]", "photo_f32", gray(light, (0.2126, 0.7152, 0.0722)))

# -- blur, sobel ----------------------------------------------------------------

modes = {"reflect": "reflect", "nearest": "nearest", "zero": "constant"}
for edge, mode in modes.items():
    for sigma, radius in ((1.5, 5), (0.4, 2), (7, 21)):
        case("blur", f"sigma: {sigma}, edge: {edge}", "plane_f32",
             ndimage.gaussian_filter(plane.astype(f64), sigma, radius=radius, mode=mode).astype(f32), 1e-6)
case("blur", "sigma: 2, radius: 3", "photo_f32",
     ndimage.gaussian_filter(light.astype(f64), (2, 2, 0), radius=(3, 3, 0)).astype(f32), 1e-6)
case("blur", "sigma: 2, radius: 0", "plane_f32", plane)
case("blur", "sigma: 3", "thin_f32", ndimage.gaussian_filter(thin.astype(f64), 3, radius=9).astype(f32), 1e-6)

for name, x in (("plane_f32", plane), ("thin_f32", thin)):
    gx = ndimage.sobel(x.astype(f64), axis=-1)
    gy = ndimage.sobel(x.astype(f64), axis=0)
    case("sobel", "output: x", name, gx.astype(f32), 1e-6)
    case("sobel", "output: y", name, gy.astype(f32), 1e-6)
    case("sobel", "{}", name, np.hypot(gx, gy).astype(f32), 1e-6)

# -- fir ------------------------------------------------------------------------


def text(t):
    return "[" + ", ".join(repr(float(v)) for v in t) + "]"


def fir(x, t):
    t = t.astype(f32).astype(f64)
    wider = np.complex128 if np.iscomplexobj(x) else f64
    return signal.lfilter(t, [1.0], x.astype(wider), axis=0).astype(x.dtype)


low = signal.firwin(31, 0.2)
case("fir", f"taps: {text(low)}", "signal_f32", fir(sig, low), 1e-6)
case("fir", f"taps: {text(low)}", "signal3_f32", fir(three, low), 1e-6)
case("fir", f"taps: {text(low[:5])}", "iq_c64", fir(iq, low[:5]), 1e-6)
case("fir", "taps: 0.5", "signal_f32", sig * f32(0.5))
case("fir", "{}", "signal3_f32, taps_f64", fir(three, taps), 1e-6)
case("fir", f"taps: {text(np.ones(60))}", "signal3_f32", fir(three, np.ones(60)), 1e-6)

# -- reduce ---------------------------------------------------------------------

functions = {"sum": np.sum, "mean": np.mean, "min": np.min, "max": np.max}
for op, f in functions.items():
    for axes in (None, (0,), (-1,), (1, 2), (0, 2), (0, 1, 3), (1, 3)):
        option = f"op: {op}" + (f", axes: {list(axes)}" if axes else "")
        r = f(cube.astype(f64), axis=axes).astype(f32)
        case("reduce", option, "cube_f32", np.atleast_1d(r), 1e-7 if op in ("sum", "mean") else 0)
    case("reduce", f"op: {op}, axes: 1, keep: true", "cube_f32",
         f(cube.astype(f64), axis=1, keepdims=True).astype(f32), 1e-7 if op in ("sum", "mean") else 0)
    for d, x in wide.items():
        for axis in (None, 1, 0):
            if op == "mean" and d in ("i8", "u8"):
                continue                       # such sums wrap
            if op == "sum":
                r = x.astype(np.uint64 if d == "u8" else np.int64).sum(axis=axis)
            else:
                r = f(x, axis=axis)
            r = np.atleast_1d(np.asarray(r))
            case("reduce", f"op: {op}" + (f", axes: {axis}" if axis is not None else ""), "wide_" + d,
                 r.astype(f32) if op == "mean" else r, 1e-6 if op == "mean" else 0)
    case("reduce", f"op: {op}", "nan_f32", np.atleast_1d(f(nan_plane)))
    case("reduce", f"op: {op}, axes: [1]", "halves_f16",
         f(halves.astype(f64), axis=1).astype(np.float16), 1e-3 if op in ("sum", "mean") else 0)
    case("reduce", f"op: {op}, axes: [0]", "doubles_f64", f(doubles, axis=0), 1e-15 if op in ("sum", "mean") else 0)

# lines of several chunks (kernels/lines.h); of a length that four divides, and not
long = np.random.default_rng(7)
lines = {"u1": save("long_u1", long.integers(0, 256, (3, 20011), np.uint8)),
         "f4": save("long_f32", long.normal(0, 3, (4, 5000)).astype(f32))}
for d, x in lines.items():
    for op, f in functions.items():
        for axis in (None, 1):
            r = np.atleast_1d(f(x.astype(np.int64 if d == "u1" and op != "mean" else f64), axis=axis))
            r = r.astype(f32 if op == "mean" or d == "f4" else np.int64 if op == "sum" else x.dtype)
            case("reduce", f"op: {op}" + (f", axes: {axis}" if axis else ""), "long_u1" if d == "u1" else "long_f32", r,
                 1e-7 if d == "f4" and op in ("sum", "mean") or op == "mean" else 0)

# -- mix: rows are frames; mixes.txt: op | frames | input | expected | tolerance ----

mixes = []
for name, x in [("wide_" + d, x) for d, x in wide.items()] + [("plane_f32", plane), ("nan_f32", nan_plane),
                                                            ("halves_f16", halves), ("doubles_f64", doubles)]:
    for op, f in {**functions, "last": lambda a, axis: a[-1]}.items():
        for n in (4, len(x)) if name == "plane_f32" else (4,):
            sums = op in ("sum", "mean")
            if op == "mean" and name in ("wide_i8", "wide_u8"):
                continue                       # such sums wrap
            kept = x if not sums or op == "mean" and x.dtype.kind in "iu" else x.astype(
                f64 if x.dtype.kind == "f" else np.uint64 if x.dtype == np.uint64 else np.int64)
            r = np.stack([f(kept[i:i + n], axis=0) for i in range(0, len(x), n)])
            if x.dtype.kind == "f":
                r = r.astype(x.dtype)
            elif op == "mean":
                r = r.astype(f32)
            mixes.append(f"{op} | {n} | {name} | mix_{len(mixes):02} | {(1e-3 if x.dtype == np.float16 else 1e-6) if sums else 0:g}")
            save(f"mix_{len(mixes) - 1:02}", r)
with open(os.path.join(here, "mixes.txt"), "w") as out:
    out.write("# Made by make_refs.py: op | frames | input | expected | tolerance\n" + "\n".join(mixes) + "\n")

# -- color: in f64, by inverted matrices; planes below each other ----------------

def luma_chroma(matrix):
    kr, kb = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}[matrix]
    y = np.array([kr, 1 - kr - kb, kb])
    return np.stack([y, (np.array([0, 0, 1]) - y) / (2 - 2 * kb), (np.array([1, 0, 0]) - y) / (2 - 2 * kr)])


def weights_between(n):
    """Each of 2 n pixels, of n values that lie between pairs of them."""
    m = np.zeros((2 * n, n))
    for i in range(2 * n):
        m[i, i // 2] += 0.75
        m[i, min(max(i // 2 + (1 if i % 2 else -1), 0), n - 1)] += 0.25
    return m


def up(plane, fy, fx, smooth):
    for axis, f, s in ((0, fy, smooth[0]), (1, fx, smooth[1])):
        if f == 2 and s:
            plane = np.moveaxis(np.tensordot(weights_between(plane.shape[axis]), plane, (1, axis)), 0, axis)
        elif f == 2:
            plane = plane.repeat(2, axis)
    return plane


steps = {"yuv420": (2, 2), "yuv422": (1, 2), "yuv444": (1, 1)}


def color(x, source, to, matrix="bt601", limited=True, smooth=True, bits=(8, 8)):
    x = x.astype(f64)
    units = [(2.0 ** (b - 8), 2.0 ** b - 1) for b in bits]
    (u, top), (v, most) = units
    y0, ys, c0, cs = (16 * u, 219 * u, 128 * u, 224 * u) if limited else (0, top, 128 * u, top)
    fine = steps.get(to, (1, 1))
    if source in steps:
        fy, fx = steps[source]
        h = x.size * fy * fx // (fy * fx + 2) // x.shape[-1]
        w = x.shape[-1]
        flat = x.ravel()
        planes = [flat[:h * w].reshape(h, w)] + [
            up(p.reshape(h // fy, w // fx), fy, fx, (smooth and fine[0] < 2, smooth and fine[1] < 2))
            for p in np.split(flat[h * w:], 2)]
        p = np.stack([(planes[0] - y0) / ys] + [(c - c0) / cs for c in planes[1:]], -1)
    elif source == "gray":
        p = np.stack([x / top, 0 * x, 0 * x], -1)
    else:
        p = (x if source == "rgb" else x[..., ::-1]) / top
    inside, outside = source in ("rgb", "bgr"), to in ("rgb", "bgr")
    if inside and not outside:
        p = p @ luma_chroma(matrix).T
    if outside and not inside:
        p = p @ np.linalg.inv(luma_chroma(matrix)).T
    if outside:
        r = (p if to == "rgb" else p[..., ::-1]) * most
    elif to == "gray":
        r = p[..., 0] * most
    else:
        y0, ys, c0, cs = (16 * v, 219 * v, 128 * v, 224 * v) if limited else (0, most, 128 * v, most)
        h, w = p.shape[:2]
        fy, fx = fine
        chroma = [p[..., k].reshape(h // fy, fy, w // fx, fx).mean((1, 3)) * cs + c0 for k in (1, 2)]
        r = np.concatenate([a.ravel() for a in [p[..., 0] * ys + y0] + chroma])
        r = r.reshape((3, h, w) if to == "yuv444" else (-1, w))
    # halves stay halves where only numbers of one family are averaged; f32 may miss them elsewhere
    exact = inside == outside or np.abs(r % 1 - 0.5).min() > 1e-4
    return np.clip(np.rint(r.round(6)), 0, most).astype(np.uint8 if bits[1] == 8 else np.uint16), exact


sizes = {"yuv420": (9, 8), "yuv422": (12, 6), "yuv444": (3, 5, 7), "rgb": (6, 8, 3), "bgr": (4, 6, 3), "gray": (6, 8)}
inputs = {}


def color_case(options, source, to, *how, bits=8):
    """With random numbers, but others where a result lies between two whole numbers."""
    name = f"{source}_u{bits}"
    x = inputs.get(name)
    while x is None or not color(x, source, to, *how, bits=(bits, bits))[1]:
        name = f"{source}_u{bits}_{count.get('color', -1) + 1}" if name in inputs else name
        x = integers(np.uint8, sizes[source]) if bits == 8 else integers(np.uint16, sizes[source]) >> (16 - bits)
    inputs[name] = save(name, x)
    case("color", f"from: {source}, to: {to}{options}", name, color(x, source, to, *how, bits=(bits, bits))[0])


for i, source in enumerate(sizes):
    for j, to in enumerate(sizes):
        if source == "yuv444" and to in ("yuv420", "yuv422"):
            continue                           # of an odd width
        matrix, limited, smooth = ("bt601", "bt709", "bt2020")[(i + j) % 3], j % 2 == 0, (i + j // 2) % 2 == 0
        color_case(f", matrix: {matrix}, range: {'limited' if limited else 'full'}, "
                   f"chroma: {'bilinear' if smooth else 'nearest'}", source, to, matrix, limited, smooth)
color_case("", "yuv420", "rgb")
color_case(", bits: 10", "yuv420", "rgb", bits=10)
color_case(", bits: 10", "yuv420", "yuv422", bits=10)
color_case(", bits: 10, matrix: bt2020, range: full", "rgb", "yuv420", "bt2020", False, bits=10)

# -- resize: in f64, by matrices that Pillow agrees with ---------------------------

filters = {"bilinear": Image.BILINEAR, "cubic": Image.BICUBIC, "area": Image.BOX, "nearest": Image.NEAREST}


def pillow(x, size, method, box=None):
    return np.array(Image.fromarray(x.astype(f32)).resize(size[::-1], filters[method], box)).astype(f64)


def covered(n, m):
    """What each of m pixels covers of n: differences of the integral of a step function."""
    at = np.linspace(0, n, m + 1)
    whole = np.concatenate([np.zeros((n, 1)), np.cumsum(np.eye(n), 1)], 1)
    return np.diff([[np.interp(a, np.arange(n + 1), w) for w in whole] for a in at], axis=0) * m / n


def resizing(n, m, method, smooth=True, part=None):
    """Each of m pixels, of n, or of the middle `part` of them."""
    begin, n_over_m = (0, n / m) if part is None else ((n - part) / 2, part / m)
    if n_over_m == 1 and begin % 1 == 0:
        return np.eye(n)[int(begin):int(begin) + m]
    if part is not None and method == "area":
        at, k = begin + np.arange(m + 1)[:, None] * n_over_m, np.arange(n)
        return np.maximum(np.minimum(at[1:], k + 1) - np.maximum(at[:-1], k), 0) / n_over_m
    if part is not None and method == "nearest":
        return np.eye(n)[np.floor(begin + (np.arange(m) + 0.5) * n_over_m).astype(int)]
    if method == "area":
        w = covered(n, m)
        assert n % m or np.abs(w - pillow(np.eye(n), (m, n), method)).max() < 1e-6
        return w
    if method == "nearest":                    # of two that are as near the later one, which Pillow rounds
        at, rest = np.divmod((2 * np.arange(m) + 1) * n, 2 * m)
        w = np.eye(n)[at]
        assert np.array_equal(w[rest > 0], pillow(np.eye(n), (m, n), method)[rest > 0])
        return w
    center = (np.arange(m)[:, None] + 0.5) * n / m if part is None else begin + (np.arange(m)[:, None] + 0.5) * n_over_m
    t = np.abs((np.arange(n) - (center - 0.5)) / (max(n_over_m, 1) if smooth else 1))
    if method == "bilinear":
        w = np.maximum(0, 1 - t)
    else:                                      # Keys, as a spline through four points (Catmull and Rom)
        w = np.select([t < 1, t < 2], [(2 - 5 * t ** 2 + 3 * t ** 3) / 2, (4 - 8 * t + 5 * t ** 2 - t ** 3) / 2])
    w = w / w.sum(1, keepdims=True)
    box = (0, begin, n, begin + m * n_over_m)
    assert not smooth or np.abs(w - pillow(np.eye(n), (m, n), method, box)).max() < 1e-6
    return w


def resized(x, size, method, smooth=True, part=(None, None)):
    down, across = (resizing(n, m, method, smooth, k) for n, m, k in zip(x.shape, size, part))
    return np.einsum("yh,hw...,xw->yx...", down, x.astype(f64), across)


def resize_case(name, x, options, size, method="bilinear", smooth=True, part=(None, None)):
    """False: a result lies between two whole numbers, so that f32 may miss the nearest."""
    r = resized(x, size, method, smooth, part)
    if x.dtype.kind in "iu":
        info = np.iinfo(x.dtype)
        if method != "nearest" and np.abs(np.abs(r) % 1 - 0.5).min() < (1e-3 if x.dtype.itemsize < 4 else 1e-7):
            return False
        r = np.clip(np.rint(r), info.min, info.max)
    options += (f", method: {method}" if method != "bilinear" else "") + ("" if smooth else ", antialias: false")
    case("resize", options, name, r.astype(x.dtype),
         0 if x.dtype.kind in "iu" or method == "nearest" else 1e-3 if x.dtype == np.float16 else 1e-6)
    return True


def resize_new(name, dtype, shape, *how):
    """With random numbers, but others where that is so."""
    x = None
    while x is None or not resize_case(name, x, *how):
        x = integers(dtype, shape) if np.dtype(dtype).kind in "iu" else rng.normal(0, 9, shape).astype(dtype)
    save(name, x)


for i, method in enumerate(filters):
    resize_new(f"resize_u8_{i}", np.uint8, (7, 9, 3), "height: 3, width: 5", (3, 5), method)
    resize_new(f"resize_u16_{i}", np.uint16, (5, 11, 4), "scale: 0.5", (3, 6), method)
    resize_new(f"resize_i16_{i}", np.int16, (6, 5), "height: 11, width: 16", (11, 16), method)
    resize_new(f"resize_i8_{i}", np.int8, (8, 4, 2), "height: 2, width: 7", (2, 7), method)
    resize_new(f"resize_u32_{i}", np.uint32, (5, 6), "height: 2, width: 9", (2, 9), method)
    resize_new(f"resize_i32_{i}", np.int32, (4, 7, 3), "width: 3", (2, 3), method)
    for options, size in (("height: 4, width: 5", (4, 5)), ("height: 29, width: 40", (29, 40)), ("height: 1, width: 1", (1, 1)),
                          ("scale: 1", (13, 17)), ("height: 7, width: 8, fit: inside", (6, 8)), ("height: 26, width: 26, fit: inside, enlarge: true", (20, 26)),
                          ("height: 20, width: 30, fit: inside", (13, 17)), ("height: 13, width: 6", (13, 6)), ("height: 39, width: 17", (39, 17))):
        resize_case("plane_f32", plane, options, size, method)
    resize_case("halves_f16", halves, "height: 4, width: 10", (4, 10), method)
    resize_case("doubles_f64", doubles, "height: 7, width: 13", (7, 13), method)
    resize_case("thin_f32", thin, "height: 3, width: 4", (3, 4), method)
    resize_new(f"resize_many_{i}", f32, (5, 4, 7), "height: 3, width: 6", (3, 6), method)
    resize_new(f"resize_wide_{i}", np.uint8, (2, 3100, 3), "height: 1, width: 2", (1, 2), method)
    resize_new(f"resize_line_{i}", np.uint8, (1, 3000), "width: 20", (1, 20), method)
    resize_new(f"resize_one_{i}", np.uint8, (1, 1, 3), "height: 3, width: 2", (3, 2), method)
for method in ("bilinear", "cubic"):
    for size in ((5, 6), (20, 9)):
        resize_case("plane_f32", plane, f"height: {size[0]}, width: {size[1]}", size, method, False)
case("resize", "height: 4, width: 6", "nan_f32", pillow(nan_plane, (4, 6), "bilinear").astype(f32), 1e-6)
case("resize", "height: 7, width: 5, method: nearest", "nan_f32", pillow(nan_plane, (7, 5), "nearest").astype(f32))

fitting = np.random.default_rng(20261130)
snap = save("fit_u8", fitting.integers(0, 256, (21, 34, 3), np.uint8))
for size in ((10, 10), (9, 30), (40, 11), (21, 21), (20, 34), (50, 81)):
    h, w = size
    options = f"height: {h}, width: {w}, fit: "
    picture = Image.fromarray(plane)                           # of (13, 17)
    for method in ("bilinear", "cubic"):
        more = f", method: {method}" * (method != "bilinear")
        case("resize", options + "cover" + more, "plane_f32", np.array(ImageOps.fit(picture, (w, h), filters[method])), 2e-6)
        case("resize", options + "contain, value: -7.5" + more, "plane_f32",
             np.array(ImageOps.pad(picture, (w, h), filters[method], -7.5)), 1e-6)
        case("resize", options + "inside, enlarge: true" + more, "plane_f32",
             np.array(ImageOps.contain(picture, (w, h), filters[method])), 1e-6)
    part = (13, 13 * w / h) if 13 * w <= 17 * h else (17 * h / w, 17)
    for method in filters:
        for smooth in (True, False)[:1 + (method in ("bilinear", "cubic"))]:
            resize_case("plane_f32", plane, options + "cover", size, method, smooth, part)
# In whole numbers the nearest pixels alone, as Pillow rounds and clips u8 between rows and columns.
case("resize", "height: 22, width: 22, fit: contain, value: 114, method: nearest", "fit_u8",
     np.array(ImageOps.pad(Image.fromarray(snap), (22, 22), Image.NEAREST, (114, 114, 114))))
for dtype in (f32, np.float16):
    x = save(f"fit_{np.dtype(dtype).name}", fitting.integers(0, 999, (12, 5)).astype(dtype))
    whole = np.full((7, 8), 5, dtype)
    whole[:, 2:5] = resized(x, (7, 3), "area")
    case("resize", "height: 7, width: 8, fit: contain, value: 5, method: area", f"fit_{np.dtype(dtype).name}", whole,
         1e-6 if dtype == f32 else 1e-3)

# -- rearranged: copied as runs, words and tiles, of all sizes of elements (stages/format/strided.c) ----

own = np.random.default_rng(20261124)


def any_bits(name, dtype, shape):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    x = own.integers(0, 256, size, np.uint8).view(dtype).reshape(shape)
    if np.dtype(dtype).kind in "fc":           # of NaNs the payload may be lost in a file's way through NumPy
        x = own.normal(0, 100, shape).astype(dtype)
    return save(name, x)


pictures = {name: any_bits(name, dtype, shape) for name, dtype, shape in (
    ("re_u8", np.uint8, (67, 71)), ("re_rgb", np.uint8, (37, 41, 3)), ("re_rgba", np.uint8, (33, 36, 4)),
    ("re_u16", np.uint16, (35, 70)), ("re_f16", np.float16, (34, 33, 3)), ("re_f32", f32, (40, 37)),
    ("re_i64", np.int64, (19, 34)), ("re_c64", c64, (33, 18)), ("re_f64", f64, (17, 33, 3)),
    ("re_c64_2", c64, (20, 18, 2)), ("re_bands", np.uint8, (18, 21, 5)), ("re_line", np.int16, (301,)),
    ("re_deep", np.int8, (2, 3, 2, 4, 1, 3, 2, 5)), ("re_wide", np.uint8, (3, 250)), ("re_one", np.uint32, (1,)))}

for name, x in pictures.items():
    case("transpose", "{}", name, x.T)
    for index, key in (("::-1", np.s_[::-1]), ("..., ::-1", np.s_[..., ::-1]),
                       ("1:, ..., :-1:2", np.s_[1:, ..., :-1:2])):
        if x.ndim > 1 or index == "::-1":
            case("slice", f'index: "{index}"', name, x[key])
    if x.ndim > 1:
        for k in (-3, 1, 2):
            case("rotate90", f"times: {k}", name, np.rot90(x, k))
        h, w = x.shape[:2]
        case("crop", f"size: [{h // 2 + 1}, {w - 1}]", name, x[(h - h // 2 - 1) // 2:][:h // 2 + 1, :w - 1])
        case("crop", f"size: [{h // 2}], at: {h - h // 2}", name, x[h - h // 2:])
    case("concat", "axis: -1", f"{name}, {name}", np.concatenate([x, x], -1))
case("concat", "axis: 0", "re_rgb, re_rgb", np.concatenate([pictures["re_rgb"]] * 2))
case("concat", "{}", "re_c64, re_c64", np.concatenate([pictures["re_c64"]] * 2))
case("reshape", "shape: -1", "re_c64", pictures["re_c64"].ravel())

rgb, deeper = pictures["re_rgb"], pictures["re_deep"]
case("transpose", "axes: [2, 0, 1]", "re_rgb", rgb.transpose(2, 0, 1))
case("transpose", "axes: [-2, 0, 2]", "re_rgb", rgb.transpose(1, 0, 2))
case("transpose", "axes: [0, 2, 1]", "re_rgb", rgb.transpose(0, 2, 1))
case("transpose", "axes: [0, 1, 2]", "re_rgb", rgb)
case("transpose", "axes: [1, 2, 0]", "re_bands", pictures["re_bands"].transpose(1, 2, 0))
case("transpose", "axes: [1, 0, 2]", "re_bands", pictures["re_bands"].transpose(1, 0, 2))
case("transpose", "axes: [2, 0, 1]", "re_f64", pictures["re_f64"].transpose(2, 0, 1))
case("transpose", "axes: [3, 1, 5, 0, 4, 2, 7, 6]", "re_deep", deeper.transpose(3, 1, 5, 0, 4, 2, 7, 6))
for index in ("-20:-3, 5:30", "30:5:-2, ::3", "::-1, ::-1", "::-1, ::-1, ::-1", "..., 1", ":, 7", "3, 4, 2", "-1, ..., ::2", ":100, -100:",
              " 2 : 30 :7 , : ", "10:", "...", "3, ...", "::1000", "5::-1", ":5:-1", "-5:, :-5"):
    r = np.atleast_1d(eval("rgb[" + index.strip() + "]"))
    case("slice", f'index: "{index}"', "re_rgb", r)
case("slice", 'index: "1, :, ::-1, ::-2, 0, 1:, ..., ::2"', "re_deep", deeper[1, :, ::-1, ::-2, 0, 1:, ..., ::2])
case("slice", 'index: ":-1:2"', "re_line", pictures["re_line"][:-1:2])
case("slice", "index: 0", "re_rgba", pictures["re_rgba"][0])
case("slice", "index: -3", "re_line", np.atleast_1d(pictures["re_line"][-3]))
for shape in ((41, -1), (3, 41, 37), (1, 37, 1, 41, 3, 1)):
    case("reshape", f"shape: {list(shape)}", "re_rgb", rgb.reshape(shape))
case("concat", "axis: 1", "plane_f32, nan_f32", np.concatenate([plane, nan_plane], 1))
other = any_bits("re_rgb_2", np.uint8, (37, 2, 3))
case("concat", "axis: 1", "re_rgb, re_rgb_2", np.concatenate([rgb, other], 1))
case("concat", "axis: -2", "re_rgb_2, re_rgb", np.concatenate([other, rgb], 1))

for name, x in pictures.items():
    case("roll", "shift: 7", name, np.roll(x, 7))
    case("roll", "shift: -2, axis: 0", name, np.roll(x, -2, 0))
    if x.ndim > 1:
        case("roll", "shift: 3, axis: -1", name, np.roll(x, 3, -1))
        case("roll", "shift: [5, -30], axis: [1, 0]", name, np.roll(x, (5, -30), (1, 0)))
for shift, axis in ((0, None), (-1000000, None), ([1], [1]), (37, 0), (-1, [0, 1, 2]), ([1, 1, 1], [2, 0, 1]), ([0, 50], [0, 1])):
    option = "" if axis is None else f", axis: {axis}"
    case("roll", f"shift: {shift}{option}", "re_rgb", np.roll(rgb, shift, axis))
case("roll", "shift: 1, axis: [0, 1, 2, 3, 4, 5, 6, 7]", "re_deep", np.roll(deeper, 1, range(8)))

edges = {"constant": "constant", "nearest": "edge", "reflect": "symmetric", "mirror": "reflect", "wrap": "wrap"}
for edge, mode in edges.items():
    for name in ("re_rgb", "re_f32", "re_c64", "re_f16", "re_line", "re_one", "re_i64", "re_deep"):
        x = pictures[name]
        widths = {1: ((5, 700),), 2: ((2, 5), (40, 0)), 3: ((0, 2), (7, 1), (0, 0)), 8: ((1, 0), (0, 2)) + ((0, 0),) * 5 + ((3, 2),)}[x.ndim]
        before, after = ([w[k] for w in widths] for k in (0, 1))
        case("pad", f"before: {before}, after: {after}, edge: {edge}", name, np.pad(x, widths, mode))
case("pad", "before: 2, after: 1, value: 7", "re_rgb", np.pad(rgb, ((2, 1),) * 3, constant_values=7))
case("pad", "after: [0, 4], value: -7", "re_i64", np.pad(pictures["re_i64"], ((0, 0), (0, 4)), constant_values=-7))
case("pad", "before: 3, value: -0.1", "re_f16", np.pad(pictures["re_f16"], ((3, 0),) * 3, constant_values=np.float16(-0.1)))
case("pad", "before: [1], value: 2.5", "re_c64", np.pad(pictures["re_c64"], ((1, 0), (1, 0)), constant_values=2.5))
case("pad", "before: [0, 3, 1], edge: mirror", "re_rgb", np.pad(rgb, ((0, 0), (3, 0), (1, 0)), "reflect"))

# -- more of reduce: deviations in f64, places, truths ---------------------------------

sparse = save("sparse_u8", (own.random((7, 4, 33)) < 0.02).astype(np.uint8))
hollow = own.normal(0, 1, (6, 200)).astype(f32) * (own.random((6, 200)) < 0.01)
hollow[2] = 0
hollow[4, 7] = np.nan
hollow = save("hollow_f32", hollow.astype(f32))
shifted = save("shifted_f64", own.normal(0, 1e-3, (3, 4000)) + np.array([[1e6], [0], [-3]]))
ties = save("ties_i16", own.integers(-3, 4, (90, 70), np.int16))
numbers = {"cube_f32": cube, "nan_f32": nan_plane, "halves_f16": halves, "doubles_f64": doubles, "sparse_u8": sparse,
           "hollow_f32": hollow, "shifted_f64": shifted, "ties_i16": ties, "long_f32": lines["f4"], "long_u1": lines["u1"],
           **{"wide_" + d: x for d, x in wide.items()}}
for name, x in numbers.items():
    every = (None, -1) if x.size > 10000 else (None, 0, -1) + (((0, 2), (1, 2)) if x.ndim > 2 else ())
    for axis in every:
        option = "" if axis is None else f", axes: {list(axis) if isinstance(axis, tuple) else axis}"
        keep = ", keep: true" if axis == 0 else ""
        keeps = dict(axis=axis, keepdims=bool(keep))
        r = np.std(x.astype(np.longdouble), **keeps).astype(x.dtype if x.dtype.kind == "f" else f32)
        exactly = {np.dtype(np.float16): 1e-3, np.dtype(f64): 1e-14}.get(x.dtype, 3e-7)
        case("reduce", f"op: std{option}{keep}", name, np.atleast_1d(r), exactly)
        for op, f in (("any", np.any), ("all", np.all)):
            case("reduce", f"op: {op}{option}{keep}", name, np.atleast_1d(f(x, **keeps)).astype(np.uint8))
        if not isinstance(axis, tuple):
            for op, f in (("argmin", np.argmin), ("argmax", np.argmax)):
                case("reduce", f"op: {op}{option}{keep}", name, np.atleast_1d(f(x, **keeps)).astype(np.int64))

# -- quantiles: those of NumPy, in f64 ---------------------------------------------------


def quantiles(name, x, q, axis=None, keep=False):
    """`q`: None for the median; a list becomes the last axis."""
    options = "op: median" if q is None else f"op: quantile, q: {q}"
    options += "" if axis is None else f", axes: {list(axis) if isinstance(axis, tuple) else axis}"
    r = np.quantile(x.astype(f64), 0.5 if q is None else q, axis=axis, keepdims=keep)
    r = np.moveaxis(r, 0, -1) if isinstance(q, list) and len(q) > 1 else r
    to = x.dtype if x.dtype.kind == "f" else f32
    case("reduce", options + ", keep: true" * keep, name, np.atleast_1d(r).astype(to),
         {np.dtype(np.float16): 1e-3, np.dtype(f64): 1e-14}.get(np.dtype(to), 1e-7))


ranked = np.random.default_rng(20261201)
for dtype in (np.uint8, np.int16, np.uint32, np.int64, np.uint64, np.float16, f32, f64):
    kind = np.dtype(dtype)
    x = ranked.normal(0, 1000, (2, 4099)).astype(dtype) if kind.kind == "f" else ranked.integers(
        np.iinfo(dtype).min, np.iinfo(dtype).max, (2, 4099), dtype, endpoint=True)
    numbers[f"ranked_{kind.name}"] = save(f"ranked_{kind.name}", x)
for name, x in numbers.items():
    for axis in (None, 0, -1) + (((0, 2), (1, 2)) if x.ndim > 2 else ()):
        quantiles(name, x, None, axis, axis == 0)
        quantiles(name, x, [0, 0.05, 0.5, 0.95, 1], axis, axis == -1)
quantiles("cube_f32", cube, 0.25, (0, 1, 3))
quantiles("long_f32", lines["f4"], [i / 100 for i in range(101)])
infinite = save("infinite_f32", np.array([[np.inf, np.inf, 1, -np.inf], [-np.inf, 2, np.inf, 3]], f32))
case("reduce", "op: median, axes: 1", "infinite_f32", np.array([np.inf, 2.5], f32))
case("reduce", "op: quantile, q: [0, 1], axes: 1", "infinite_f32", np.array([[-np.inf, np.inf]] * 2, f32))
single = save("single_u8", np.array([7], np.uint8))
quantiles("single_u8", single, [0, 0.3, 1])

# -- cumsum, softmax ----------------------------------------------------------------------

far = save("far_f32", own.normal(0, 1, (2, 9000)).astype(f32))
short_ones = {name: x for name, x in numbers.items() if x.size < 2000}
for name, x in {**short_ones, "far_f32": far, "signal_f32": sig}.items():
    for axis in (0, -1) if x.ndim < 3 else (0, 1, -1):
        if x.dtype.kind == "f":
            kept = np.longdouble
        else:
            kept = np.uint64 if x.dtype == np.uint64 else np.int64
        r = np.cumsum(x.astype(kept), axis).astype(x.dtype if x.dtype.kind == "f" else kept)
        case("cumsum", f"axis: {axis}", name, r, 0 if x.dtype.kind != "f" else 1e-3 if x.dtype == np.float16 else
             1e-7 if x.dtype == f32 else 1e-14)
        if x.dtype.kind == "f":
            r = special_functions.softmax(x.astype(np.longdouble), axis).astype(x.dtype)
            case("softmax", f"axis: {axis}", name, r, 1e-3 if x.dtype == np.float16 else 1e-6 if x.dtype == f32 else 1e-14)
steep = np.array([[-np.inf, 0, 3, -90, 88], [1e30, -1e30, 5, 0, 1e30], [-103.9, -80, -60.5, -20, 0]], f32)
save("steep_f32", steep)
case("softmax", "{}", "steep_f32", special_functions.softmax(steep.astype(np.longdouble), -1).astype(f32), 1e-7)

# -- median, morphology, histogram, colormap, normalize --------------------------------------

short = save("short_i16", own.integers(-40, 40, (7, 8), np.int16))
for name, x in (("re_rgb", rgb), ("re_u16", pictures["re_u16"]), ("plane_f32", plane), ("short_i16", short)):
    for n in (3, 5, 7):
        for edge in ("reflect", "nearest"):
            window = (n, n) + (1,) * (x.ndim - 2)
            case("median", f"size: {n}, edge: {edge}", name, ndimage.median_filter(x, window, mode=edge))
holed = np.pad(nan_plane, 1, "symmetric")
case("median", "{}", "nan_f32", np.median(np.lib.stride_tricks.sliding_window_view(holed, (3, 3)), (2, 3)))
small = {f"small{k}_u8": np.random.default_rng(8).integers(0, 256, shape, np.uint8)
         for k, shape in enumerate(((1, 1), (2, 3), (1, 4, 3), (4, 9)))}
for name, x in small.items():
    save(name, x)
    for n, edge in ((3, "reflect"), (7, "reflect"), (7, "nearest")):
        window = (n, n) + (1,) * (x.ndim - 2)
        case("median", f"size: {n}, edge: {edge}", name, ndimage.median_filter(x, window, mode=edge))

for name, x in (("re_rgb", rgb), ("plane_f32", plane), ("nan_f32", nan_plane), ("short_i16", short), ("wide_i8", wide["i8"]),
                ("wide_u4", wide["u4"]), ("re_f16", pictures["re_f16"])):
    for size in ((3, 3), (1, 7), (5, 1), (7, 5)):
        def each(x, f, ends=size):
            reach = [(n // 2,) * 2 for n in ends] + [(0, 0)] * (x.ndim - 2)
            if x.dtype.kind == "f":
                end = np.inf if f is np.min else -np.inf
            else:
                end = np.iinfo(x.dtype).max if f is np.min else np.iinfo(x.dtype).min
            at = np.lib.stride_tricks.sliding_window_view(np.pad(x, reach, constant_values=end), ends, (0, 1))
            r = f(at, (-2, -1))
            if x.dtype.itemsize < 8 and x.dtype != np.float16 and not np.isnan(x).any():
                g = ndimage.grey_erosion if f is np.min else ndimage.grey_dilation
                assert np.array_equal(r, g(x, ends + (1,) * (x.ndim - 2), mode="reflect"))
            return r
        for op, steps_of in (("erode", (np.min,)), ("dilate", (np.max,)), ("open", (np.min, np.max)), ("close", (np.max, np.min))):
            r = x
            for f in steps_of:
                r = each(r, f)
            case("morphology", f"op: {op}, size: {size[0] if size == (3, 3) else list(size)}", name, r)
for name, x in small.items():
    for op, f in (("erode", ndimage.grey_erosion), ("close", ndimage.grey_closing)):
        case("morphology", f"op: {op}, size: [7, 11]", name, f(x, (7, 11) + (1,) * (x.ndim - 2), mode="reflect"))

for name, options, x, how in (
        ("re_rgb", "{}", rgb, dict(bins=256, range=(0, 256))), ("re_rgb", "bins: 7", rgb, dict(bins=7, range=(0, 256))),
        ("re_u16", "bins: 1000", pictures["re_u16"], dict(bins=1000, range=(0, 65536))),
        ("short_i16", "bins: 9, range: [-20, 25]", short, dict(bins=9, range=(-20, 25))),
        ("plane_f32", "bins: 10, range: [0, 200]", plane, dict(bins=10, range=(0, 200))),
        ("nan_f32", "bins: 1, range: [-1e3, 1e3]", nan_plane[~np.isnan(nan_plane)], dict(bins=1, range=(-1e3, 1e3))),
        ("halves_f16", "bins: 30, range: [-3, 3]", halves.astype(f64), dict(bins=30, range=(-3, 3))),
        ("doubles_f64", "bins: 777, range: [-9.1, 7.3]", doubles, dict(bins=777, range=(-9.1, 7.3))),
        ("wide_u4", "bins: 13, range: [0, 4294967295]", wide["u4"], dict(bins=13, range=(0, 4294967295))),
        ("tenths_f64", "bins: 10, range: [0, 1]", save("tenths_f64", np.arange(-2, 13) / 10), dict(bins=10, range=(0, 1)))):
    case("histogram", options, name, np.histogram(x, **how)[0].astype(np.int64))

tables = dict(zip(("viridis", "magma", "turbo"), np.load(os.path.join(here, "colormaps.npy"))))    # make_colormaps.py
tables["gray"] = np.arange(256, dtype=np.uint8).repeat(3).reshape(256, 3)
for name, t in tables.items():
    case("colormap", f"map: {name}", "re_u8", t[pictures["re_u8"]])
for name, x in (("nan_f32", nan_plane), ("short_i16", short), ("halves_f16", halves)):
    level = np.clip(np.floor((np.nan_to_num(x.astype(f64)) + 2) / 40 * 256), 0, 255).astype(int)
    r = tables["viridis"][level]
    r[np.isnan(x.astype(f64))] = 0
    case("colormap", "range: [-2, 38]", name, r)

flat = save("flat_u8", np.full((5, 6), 77, np.uint8))
for name, x in {**short_ones, "flat_u8": flat, "far_f32": far}.items():
    exact = x.astype(np.longdouble)
    low, high = exact.min(), exact.max()
    made = x.dtype if x.dtype.kind == "f" else f32
    tolerance = 1e-3 if x.dtype == np.float16 else 1e-12 if x.dtype == f64 else 1e-6
    for options, a, b in (("{}", 0, 1), ("range: [200, -50.5]", 200, -50.5)):
        r = (exact - low) * ((b - a) / (high - low)) + a if high != low else exact * 0 + a
        case("normalize", options, name, r.astype(made), tolerance)
    r = (exact - exact.mean()) / exact.std() if high != low else exact * 0
    case("normalize", "to: deviation", name, r.astype(made), tolerance)
for name, x in {**dict(list(short_ones.items())[::4]), "flat_u8": flat, "far_f32": far, "cube_f32": cube}.items():
    exact = x.astype(np.longdouble)
    made = x.dtype if x.dtype.kind == "f" else f32
    tolerance = 1e-3 if x.dtype == np.float16 else 1e-12 if x.dtype == f64 else 1e-6
    for axes in ((-1,), (0,), (1, 0))[:2 * x.ndim - 1 if x.ndim < 3 else 3]:
        low, high = exact.min(axes, keepdims=True), exact.max(axes, keepdims=True)
        apart = np.where(high == low, 1, high - low)
        case("normalize", f"axes: {list(axes)}, range: [-1, 3]", name, np.where(high == low, -1, (exact - low) * (4 / apart) - 1).astype(made),
             tolerance)
        spread = np.sqrt(exact.var(axes, keepdims=True) + 1e-5)
        case("normalize", f"to: deviation, axes: {list(axes)}, epsilon: 1e-5", name,
             ((exact - exact.mean(axes, keepdims=True)) / spread).astype(made), tolerance)

# -- signals: frames are blocks of one recording; a window of slide ends with each hop -----------------------


def slide(x, length, hop, taper=None, dtype=None):
    before = np.zeros((max(length - hop, 0),) + x.shape[1:], x.dtype)
    w = np.lib.stride_tricks.sliding_window_view(np.concatenate([before, x]), length, 0)[::hop]
    w = np.moveaxis(w, -1, 1)
    if taper is None:
        return w
    k = signal.get_window(taper, length).reshape((-1,) + (1,) * (x.ndim - 1))
    wide = f64 if x.dtype == f64 else f32
    return (w * k.astype(wide)).astype(x.dtype)


signals = {"signal3_f32": three, "iq_c64": iq, "wide_i8": wide["i8"], "photo_u8": photo, "signal_f32": sig}
for name, length, hop in (("signal3_f32", 10, 5), ("signal3_f32", 70, 10), ("iq_c64", 16, 8), ("iq_c64", 5, 40),
                          ("wide_i8", 4, 3), ("photo_u8", 2, 1), ("signal_f32", 300, 29)):
    case("slide", f"length: {length}, hop: {hop}", name, slide(signals[name], length, hop))
for taper in ("hann", "hamming", "blackman", "nuttall", "blackmanharris", "flattop"):
    case("slide", f"length: 16, hop: 10, taper: {taper}", "signal3_f32", slide(three, 16, 10, taper), 1e-6)
for name, x, length, tolerance in (("iq_c64", iq, 9, 1e-6), ("doubles_f64", doubles, 6, 1e-14),
                                   ("halves_f16", halves, 4, 1e-3), ("signal3_f32", three, 1, 0)):
    case("slide", f"length: {length}, hop: 1, taper: hann", name, slide(x, length, 1, "hann"), tolerance)


def sections(sos):
    return "[" + ", ".join(text(row) for row in sos) + "]"


def iir(x, sos):
    wide = x.astype(np.complex128 if np.iscomplexobj(x) else f64)
    return signal.sosfilt(sos, wide, axis=0).astype(x.dtype)


rest = np.random.default_rng(15)
long_sig = save("recording_f32", rest.normal(0, 1, 9001).astype(f32))
filters = {"low": signal.butter(4, 0.1, output="sos"), "band": signal.butter(2, [0.02, 0.3], "band", output="sos"),
           "slow": signal.butter(3, 0.002, output="sos"), "notch": signal.tf2sos(*signal.iirnotch(0.2, 30)),
           "late": np.array([[0, 0, 1, 1, 0, 0]]), "sum": np.array([[1.0, 0, 0, 1, -1, 0]]),
           "steep": signal.cheby1(9, 1, 0.3, output="sos")}
for name, x, tolerance in (("signal_f32", sig, 1e-6), ("signal3_f32", three, 1e-6), ("iq_c64", iq, 1e-6),
                           ("doubles_f64", doubles, 1e-12), ("recording_f32", long_sig, 1e-6)):
    for f in (filters["slow"], filters["band"]) if x is long_sig else filters.values():
        case("iir", f"sos: {sections(f)}", name, iir(x, f), tolerance)
stored = save("sections_f64", signal.ellip(31, 0.1, 60, 0.4, output="sos"))
save("sections_f32", filters["low"].astype(f32))
np.save(os.path.join(here, "sections_column_f64.npy"), np.asfortranarray(filters["band"]))
for option, f in (("sections_f64", stored), ("sections_f32", filters["low"].astype(f32).astype(f64)),
                  ("sections_column_f64", filters["band"])):
    case("iir", f"sos: tests/ref/{option}.npy", "signal3_f32", iir(three, f), 1e-6)
gap = long_sig.copy()
gap[5000] = np.nan
for name, f in (("late", filters["late"]), ("low", filters["low"])):
    case("iir", f"sos: {sections(f)}", "gap_f32", iir(save("gap_f32", gap), f), 1e-6)


def resample(x, up, down, taps=None):
    """SciPy's, later by what it leaves out at the beginning; there is silence before and after."""
    wide = x.astype(np.complex128 if np.iscomplexobj(x) else f64)
    n = -(-len(x) * up // down)
    if taps is not None:
        wide = np.concatenate([wide, np.zeros((1,) + x.shape[1:])])
        return signal.upfirdn(taps.astype(f32).astype(f64), wide, up, down, axis=0)[:n].astype(x.dtype)
    both = np.gcd(up, down)
    most, least = max(up, down) // both, down // both
    late = (10 * most + least - 10 * most % least) // least
    silence = np.zeros((late * down,) + x.shape[1:])
    r = signal.resample_poly(np.concatenate([silence, wide, silence]), up, down, axis=0)
    return r[late * up - late:][:n].astype(x.dtype)


coarse = signal.firwin(31, 0.2)
for up, down, name, x in ((2, 1, "signal_f32", sig), (1, 5, "signal3_f32", three), (3, 5, "iq_c64", iq),
                          (147, 160, "blocks_f32", save("blocks_f32", long_sig[:1600])), (6, 4, "signal3_f32", three),
                          (7, 1, "signal3_f32", three), (1, 50, "signal3_f32", three)):
    case("resample", f"up: {up}, down: {down}", name, resample(x, up, down), 2e-6)
case("resample", f"up: 4, down: 2, taps: {text(coarse)}", "signal3_f32", resample(three, 4, 2, coarse), 1e-6)
case("resample", f"down: 10, taps: {text(coarse)}", "iq_c64", resample(iq, 1, 10, coarse), 1e-6)
case("resample", "up: 9, down: 5, taps: [2.5]", "signal3_f32", resample(three, 9, 5, np.array([2.5])), 1e-6)
case("resample", "up: 3, down: 2", "signal3_f32, taps_f64", resample(three, 3, 2, taps), 1e-6)
case("resample", "{}", "signal3_f32", signal.resample_poly(three, 1, 1, axis=0))
case("resample", "up: 6, down: 6", "iq_c64", signal.resample_poly(iq, 6, 6, axis=0))

for name, x in (("signal3_f32", three), ("special_f32", special.astype(f32)), ("special_f64", special)):
    with np.errstate(over="ignore", under="ignore"):
        case("power", "{}", name, x * x)
case("power", "{}", "iq_c64", iq.real * iq.real + iq.imag * iq.imag)
for name, x, tolerance in (("special_f32", special.astype(f32), 1e-6), ("special_f64", special, 1e-14),
                           ("photo_f32", light, 1e-6)):
    for options, reference, least in (("{}", 1, -200), ("reference: 2e-5, floor: -12.5", 2e-5, -12.5)):
        with np.errstate(divide="ignore", invalid="ignore"):
            case("db", options, name, np.maximum(10 * np.log10(x.astype(f64) / reference), least).astype(x.dtype),
                 tolerance)
# -- fft, ifft ----------------------------------------------------------------------------
waves = np.random.default_rng(15)


def ones(shape, dtype):
    x = waves.normal(0, 1, shape) + (1j * waves.normal(0, 1, shape) if dtype == c64 else 0)
    return x.astype(dtype)


def transforms(name, x, axes=None, norm="backward"):
    """Of real x there and back, of complex x both ways; scipy.fft in f64."""
    save(name, x)
    said = "" if axes is None else f"axes: {list(axes) if len(axes) > 1 else axes[0]}"
    options = ", ".join(filter(None, (said, "" if norm == "backward" else f"norm: {norm}")))
    over = (-1,) if axes is None else axes
    if x.dtype == c64:
        case("fft", options or "{}", name, scipy.fft.fftn(x.astype(np.complex128), axes=over, norm=norm).astype(c64), 2e-6)
        case("ifft", options or "{}", name, scipy.fft.ifftn(x.astype(np.complex128), axes=over, norm=norm).astype(c64), 2e-6)
        return
    r = scipy.fft.rfftn(x.astype(f64), axes=over, norm=norm).astype(c64)
    case("fft", options or "{}", name, r, 2e-6)
    n = x.shape[over[-1]]
    options = ", ".join(filter(None, (options, "real: true", f"length: {n}" if n % 2 else "")))
    back = scipy.fft.irfftn(r.astype(np.complex128), [x.shape[a] for a in over], axes=over, norm=norm)
    case("ifft", options, f"fft_{count['fft']:02}", back.astype(f32), 2e-6)


for n in (1, 2, 3, 4, 6, 7, 8, 11, 13, 17, 34, 60, 97, 100, 128, 729, 1001, 1009, 1024):
    transforms(f"waves{n}_f32", ones((3, n), f32), (1,))
for n in (1, 2, 5, 12, 16, 19, 77, 256, 1013):
    transforms(f"waves{n}_c64", ones((2, n), c64), (1,))
transforms("waves2310_f32", ones(2310, f32))
transforms("waves2048_c64", ones(2048, c64))
for name, x in (("waves_block_f32", ones((3, 6, 10, 7), f32)), ("waves_block_c64", ones((3, 6, 10, 7), c64))):
    for over in ((0,), (1,), (2,), (1, 2), (2, 1), (2, 3), (0, 2), (1, 2, 3), (3, 0, 1), (0, 1)):
        transforms(name, x, over)
    for norm in ("ortho", "forward"):
        transforms(name, x, (1,), norm)
        transforms(name, x, (2, 3), norm)


def correlate(a, b, lags):
    """By channels; beyond the frames there is nothing."""
    pad = ((lags, lags),) + ((0, 0),) * (a.ndim - 1)
    wide = np.complex128 if np.iscomplexobj(a) else f64
    x, y = np.pad(a.astype(wide), pad), b.astype(wide)
    r = [signal.correlate(p, q, "valid") for p, q in zip(x.reshape(len(x), -1).T, y.reshape(len(y), -1).T)]
    return np.stack(r, -1).reshape((2 * lags + 1,) + a.shape[1:]).astype(a.dtype)


turned = {"turned3_f32": three[::-1], "turned_c64": iq[::-1], "turned_recording_f32": long_sig[::-1]}
for lags, name, x, other in ((0, "signal3_f32", three, "turned3_f32"), (7, "signal3_f32", three, "turned3_f32"),
                             (60, "signal3_f32", three, "turned3_f32"), (20, "iq_c64", iq, "turned_c64"),
                             (33, "recording_f32", long_sig, "turned_recording_f32")):
    case("correlate", f"lags: {lags}", f"{name}, {other}", correlate(x, save(other, turned[other]), lags), 1e-6)
case("correlate", "lags: 4", "doubles_f64, doubles_f64", correlate(doubles, doubles, 4), 1e-13)

# -- matmul, linear: in f64, rounded once --------------------------------------------------

factors = np.random.default_rng(77)
slack = {"f2": 2e-3, "f4": 1e-6, "f8": 1e-14}


def factor(name, shape, dtype="f4"):
    return save(f"mm_{name}_{dtype}", factors.normal(0, 1, shape).astype(dtype))


def turned(x, yes):
    return np.swapaxes(x, -1, -2) if yes and x.ndim > 1 else x


def matmul(options, a, b, dtype="f4"):
    x, y = (np.load(os.path.join(here, f"mm_{n}_{dtype}.npy")) for n in (a, b))
    r = turned(x.astype(f64), "transpose_a" in options) @ turned(y.astype(f64), "transpose_b" in options)
    longest = max(1, x.shape[-1] / 200)            # such sums lose more
    case("matmul", options, f"mm_{a}_{dtype}, mm_{b}_{dtype}", np.atleast_1d(r).astype(dtype),
         3e-3 if "tf32" in options else longest * slack[dtype])


for dtype in slack:
    factor("m", (37, 70), dtype), factor("n", (70, 53), dtype)
    factor("mt", (70, 37), dtype), factor("nt", (53, 70), dtype)
    for options, a, b in (("{}", "m", "n"), ("transpose_a: true", "mt", "n"), ("transpose_b: true", "m", "nt"),
                          ("transpose_a: true, transpose_b: true", "mt", "nt")):
        matmul(options, a, b, dtype)
factor("deep", (6, 1500)), factor("high", (1500, 9)), factor("row", 1500), factor("one", (1, 1)), factor("thin", (1, 6))
for a, b in (("deep", "high"), ("row", "high"), ("deep", "row"), ("one", "one"), ("one", "thin")):
    matmul("{}", a, b)
matmul("precision: tf32", "deep", "high")
matmul("precision: f32", "row", "high")
for name, shape in (("b3", (3, 4, 5)), ("r3", (3, 5, 7)), ("r2", (5, 7)), ("b4", (2, 1, 4, 5)), ("r4", (3, 5, 6)),
                    ("b5", (2, 3, 1, 4, 5)), ("r5", (2, 1, 6, 5, 3)), ("o3", (1, 4, 5)), ("v", 5), ("t3", (3, 5, 4)),
                    ("s3", (3, 7, 5))):
    factor(name, shape)
for options, a, b in (("{}", "b3", "r3"), ("{}", "b3", "r2"), ("{}", "b4", "r4"), ("{}", "b5", "r5"),
                      ("{}", "o3", "r3"), ("{}", "b3", "v"), ("{}", "v", "r3"), ("transpose_a: true", "t3", "r3"),
                      ("transpose_a: true", "t3", "r2"), ("transpose_b: true", "b3", "s3"), ("{}", "b4", "r2")):
    matmul(options, a, b)
holes = factor("holes", (5, 6))
holes[1, 2], holes[3, 0] = np.nan, np.inf
save("mm_holes_f4", holes)
factor("beside", (6, 4))
matmul("{}", "holes", "beside")
for dtype in slack:
    for name, seed in ("left", 1), ("right", 2):
        save(f"mm_{name}_{dtype}", np.random.default_rng(seed).normal(0, 1, 90).astype(dtype))
    matmul("{}", "left", "right", dtype)

activations = {"none": lambda x: x, "relu": lambda x: np.where(x < 0, 0, x), "sigmoid": special_functions.expit,
               "tanh": np.tanh, "gelu": lambda x: x * special_functions.ndtr(x)}
for dtype in slack:
    x = factor("x", (19, 48), dtype)
    w, bias = factor("w", (33, 48), dtype), factor("bias", 33, dtype)
    for activation, f in activations.items():
        options = "{}" if activation == "none" else f"activation: {activation}"
        for added in (True, False):
            r = f(x.astype(f64) @ w.astype(f64).T + (bias.astype(f64) if added else 0)).astype(dtype)
            inputs = f"mm_x_{dtype}, mm_w_{dtype}" + (f", mm_bias_{dtype}" if added else "")
            case("linear", options, inputs, r, 4 * slack[dtype])       # some are smaller than the sums
w, bias = factor("w5", (6, 5)), factor("bias5", 6)
for name in ("v", "b3", "b5"):
    r = np.load(os.path.join(here, f"mm_{name}_f4.npy")).astype(f64) @ w.astype(f64).T + bias
    case("linear", "{}", f"mm_{name}_f4, mm_w5_f4, mm_bias5_f4", r.astype(f32), 1e-6)
    case("linear", "precision: tf32, activation: tanh", f"mm_{name}_f4, mm_w5_f4, mm_bias5_f4", np.tanh(r).astype(f32),
         3e-3)
w = factor("w6", (4, 6))
for activation, f in activations.items():
    with np.errstate(invalid="ignore"):
        x = holes.astype(f64) @ w.astype(f64).T
        r = np.where((activation == "gelu") & np.isneginf(x), 0, f(x)).astype(f32)
        case("linear", "{}" if activation == "none" else f"activation: {activation}", "mm_holes_f4, mm_w6_f4", r, 1e-6)

# -- conv2d: by scipy.ndimage; warp: by scikit-image, and maps by scipy.ndimage -----------------------

made = np.random.default_rng(20261125)
scene = save("scene_f32", made.normal(20, 50, (45, 70)).astype(f32))
around = {"zero": "constant", "nearest": "nearest", "reflect": "reflect", "mirror": "mirror", "wrap": "wrap"}
kernels = {name: save("conv2d_" + name, made.normal(0, 1, shape).astype(dtype)) for name, shape, dtype in
           (("w3x3", (3, 3), f32), ("w4x2", (4, 2), f64), ("w1x5", (1, 5), f32), ("w6x1", (6, 1), f64),
            ("w31x31", (31, 31), f32), ("w2x40", (2, 40), f64))}


def conv2d(x, w, flip, edge):
    w = w.astype(f32).astype(f64).reshape(w.shape + (1,) * (x.ndim - 2))
    r = (ndimage.convolve if flip else ndimage.correlate)(x.astype(f64), w, mode=around[edge])
    return r.astype(f32)


for name, x in (("plane_f32", plane), ("scene_f32", scene), ("photo_f32", light), ("thin_f32", thin)):
    for i, (weights, w) in enumerate(kernels.items()):
        for k, edge in enumerate(around):
            if x is plane or (i + k) % 3 == 0:
                flip = (i + k) % 2 == 0
                case("conv2d", f"edge: {edge}, flip: {str(flip).lower()}", f"{name}, conv2d_{weights}",
                     conv2d(x, w, flip, edge), 2e-6)
for w in (np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]]), np.array([[2]]), np.array([[0.5, -1], [0.25, 3]])):
    for flip in (False, True):
        k = w[::-1, ::-1] if flip else w
        before = [(n - flip) // 2 for n in w.shape]
        window = np.lib.stride_tricks.sliding_window_view(
            np.pad(nan_plane.astype(f64), [(b, n - 1 - b) for b, n in zip(before, w.shape)], "symmetric"), w.shape)
        r = (window * k).sum((-2, -1))             # SciPy leaves out what has no weight, even if it is not a number
        told = np.isnan(r)
        assert np.allclose(r[~told], conv2d(nan_plane, w, flip, "reflect")[~told], 1e-6)
        case("conv2d", f"weights: {w.tolist()}, flip: {str(flip).lower()}", "nan_f32", r.astype(f32), 1e-6)

theirs = {"constant": "constant", "nearest": "edge", "reflect": "symmetric", "mirror": "reflect", "wrap": "wrap"}
orders = {"nearest": 0, "bilinear": 1, "cubic": 3}


def warped(x, matrix, method, edge, value, size):
    m = np.array(matrix + [0, 0, 1][len(matrix) - 6:], f64).reshape(3, 3)
    return transform.warp(x.astype(f64), m, order=orders[method], mode=theirs[edge], cval=value, output_shape=size,
                          clip=False, preserve_range=True)


def warp_case(name, x, matrix, method="bilinear", edge="constant", value=0, size=None):
    """False: a sum is too near to halves for f32."""
    r = warped(x, matrix, method, edge, value, size or x.shape[:2])
    if x.dtype != f32:
        if method != "nearest" and (np.abs(r % 1 - 0.5) < (0.02 if x.dtype == np.uint16 else 1e-4)).any():
            return False
        info = np.iinfo(x.dtype)
        r = np.clip(np.rint(r), info.min, info.max)
    said = [f"{'perspective' if len(matrix) == 9 else 'affine'}: {matrix}", f"method: {method}", f"edge: {edge}"]
    if value:
        said.append(f"value: {value}")
    if size:
        said.append(f"height: {size[0]}, width: {size[1]}")
    save(name, x)
    case("warp", ", ".join(said), name, r.astype(x.dtype), 2e-6 if x.dtype == f32 else 0)
    return True


turn = [0.955, -0.296, 3.0137, 0.296, 0.955, -2.7071]
far_off = [-2.31, 1.17, 31.4137, 0.7, 1.9, -21.3719]
seen = [1.1, 0.2, -1.3, -0.1, 0.9, 2.2, 0.011, -0.007, 1.05]
shapes = {"u8": (7, 9, 3), "u16": (4, 5)}
for method in orders:
    for edge in theirs:
        warp_case("plane_f32", plane, turn, method, edge, 7 if edge == "constant" else 0)
        warp_case("plane_f32", plane, far_off, method, edge, 0, (11, 8))
        for dtype, shape in shapes.items():
            name = f"warp_{method}_{edge}_{dtype}"
            while not warp_case(name, made.integers(0, np.iinfo(dtype.replace("u", "uint")).max, shape,
                                                    dtype.replace("u", "uint"), endpoint=True),
                                turn, method, edge, 9 if edge == "constant" else 0):
                pass
    warp_case("plane_f32", plane, seen, method, "reflect", 0, (20, 31))
    warp_case("photo_f32", light, seen, method, "nearest", 0, (9, 7))
    warp_case("thin_f32", thin, turn, method, "mirror")
    case("warp", f"affine: [1, 0, 0, 0, 1, 0], method: {method}", "nan_f32", nan_plane)
    case("warp", f"affine: [1, 0, 2, 0, 1, -1], method: {method}, value: -3", "nan_f32",
         np.pad(nan_plane, ((1, 0), (0, 2)), constant_values=-3)[:-1, 2:])
line = [1, 0, 0, 0, 1, 0, 1, 0, -3]                    # column 3 is divided by 0
x = np.arange(17) / np.where(np.arange(17) == 3, 1, np.arange(17) - 3)
y = np.arange(13)[:, None] / np.where(np.arange(17) == 3, 1, np.arange(17) - 3)
r = ndimage.map_coordinates(plane.astype(f64), np.stack(np.broadcast_arrays(y, x)), order=1, mode="nearest")
r[:, 3] = 5
case("warp", f"perspective: {line}, edge: nearest, value: 5", "plane_f32", r.astype(f32), 1e-6)

maps = np.stack([made.uniform(-40, 50, (10, 14)), made.uniform(-30, 40, (10, 14))], -1).astype(f32)
save("warp_map_f32", maps)
holed_map = maps.copy()
holed_map[2, 3, 0], holed_map[5, 5, 1], holed_map[7, 1] = np.nan, np.inf, 3e9
save("warp_holes_f32", holed_map)
for edge in theirs:
    mode = {"constant": "grid-constant", "wrap": "grid-wrap"}.get(edge, edge)
    for method in ("nearest", "bilinear"):
        for map_name, m in (("warp_map_f32", maps), ("warp_holes_f32", holed_map)):
            there = (np.abs(m) < 2**30).all(-1)
            for name, x in (("plane_f32", plane), ("re_rgb", rgb)):
                if x is rgb and method == "bilinear":
                    continue
                places = np.where(there[..., None], m, 0).astype(f64)[..., ::-1]
                planes = x.reshape(x.shape[:2] + (-1,))
                r = np.stack([ndimage.map_coordinates(planes[..., c].astype(f64), np.moveaxis(places, -1, 0),
                                                      order=orders[method], mode=mode, cval=40)
                              for c in range(planes.shape[-1])], -1)
                r[~there] = 40
                case("warp", f"method: {method}, edge: {edge}, value: 40", f"{name}, {map_name}",
                     r.reshape(r.shape[:2] + x.shape[2:]).astype(x.dtype), 2e-6 if x.dtype == f32 else 0)
# -- label, objects: SciPy numbers components in the order of their first pixels, which is looked at ----------

blobs = np.random.default_rng(4711)
spiral = np.zeros((31, 41), np.uint8)
top, left, bottom, right = 0, 0, 30, 40
while top < bottom and left < right:
    spiral[top, max(left - 2, 0):right + 1] = spiral[top:bottom + 1, right] = 1
    spiral[bottom, left:right + 1] = spiral[top + 2:bottom + 1, left] = 1
    top, left, bottom, right = top + 2, left + 2, bottom - 2, right - 2
comb = np.zeros((40, 67), np.uint8)
comb[:, ::2] = comb[-1] = 1
board = (np.indices((35, 64)).sum(0) % 2).astype(np.uint8)
torn = blobs.normal(0, 1, (20, 70)).astype(f32)
torn[torn < 0] = 0
torn[3, 5:9], torn[7] = np.nan, -0.0
masks = {"spiral": spiral, "comb": comb, "comb_up": comb[::-1], "board": board, "torn": torn,
         "solid": np.full((33, 33), 7, np.uint8), "empty": np.zeros((5, 9), np.int16), "dot": np.ones((1, 1), np.uint8),
         "line": blobs.integers(0, 2, (1, 1100), np.uint8), "column": blobs.integers(0, 2, (1100, 1), np.uint32),
         "half": blobs.integers(-1, 2, (9, 40)).astype(np.float16), "wide": blobs.integers(0, 2, (9, 40)) * -(1 << 40)}
for part in (0.2, 0.41, 0.5, 0.59, 0.7, 0.9):
    masks[f"random{100 * part:.0f}"] = (blobs.random((48, 73)) < part).astype(np.uint8)
masks["large"] = (blobs.random((150, 260)) < 0.55).astype(np.int8)


def objects(labels):
    n = labels.max()
    boxes = ndimage.find_objects(labels)
    area = ndimage.sum_labels(np.ones(labels.shape), labels, np.arange(1, n + 1))
    center = ndimage.center_of_mass(np.ones(labels.shape), labels, np.arange(1, n + 1))
    rows = [(area[k], *((b[1].start, b[0].start, b[1].stop, b[0].stop) if b else (0, 0, 0, 0)), *center[k][::-1])
            for k, b in enumerate(boxes)]
    return np.array(rows, f64).reshape(-1, 7)


for name, mask in masks.items():
    name = f"mask_{name}_{mask.dtype.kind}{mask.dtype.itemsize}"
    save(name, mask)
    for connectivity in (4, 8):
        labels, n = ndimage.label(mask != 0, np.ones((3, 3)) if connectivity == 8 else None)
        assert np.array_equal(np.unique(labels[labels > 0], return_index=True)[1].argsort(), np.arange(n)), name
        case("label", f"connectivity: {connectivity}", name, labels.astype(np.int32))
stack = np.stack([ndimage.label(m)[0] for name, m in masks.items() if m.shape == (48, 73)]).astype(np.int32)
save("labels_i32", np.insert(stack, 2, 0, axis=0))             # a frame without objects
save("objects_f64", np.concatenate([objects(labels) for labels in stack]))
gaps = np.array([[0, 9, 9, 0], [4, 9, 0, 4], [200, 4, 4, 4]], np.uint8)
with np.errstate(invalid="ignore"):
    save("gaps_u8", gaps), save("objects_gaps_f64", objects(gaps))

# -- gather, topk, channelize ----------------------------------------------------------------

places = {"places_i32": np.array([3, 0, -1, 7, 2, 2, -9, 5], np.int32),
          "places_i64": np.array([[1, -1, 4], [5, 0, 2**40], [-(2**33), 3, -6]], np.int64)}
for name, index in places.items():
    save(name, index)
for name, x, axis, index in (("photo_u8", photo, -1, [2, 1, 0]), ("photo_u8", photo, 0, [-1, 3, 3, 0]), ("cube_f32", cube, 2, [4]),
                             ("iq_c64", iq, 0, [39, -40, 7]), ("halves_f16", halves, 1, list(range(32, -1, -1))),
                             ("odd_f16", odd, 0, [10, 1, -1]), ("wide_i8", wide["i8"], 1, [0, 0, -35]),
                             ("cube_f32", cube, 1, [6, 0, -2])):
    said = f"index: {index if len(index) > 1 else index[0]}"
    case("gather", f"{said}, axis: {axis}" if axis in (0, -1) else f"axis: {axis}, {said}", name, np.take(x, index, axis))
for name, x, axis in (("photo_u8", photo, 0), ("photo_u16", deep, 1), ("photo_f32", light, 1), ("doubles_f64", doubles, 0),
                      ("wide_i2", wide["i2"], 0), ("cube_f32", cube, 2), ("iq_c64", iq, 1), ("thin_f32", thin, -1)):
    for n, index in places.items():
        case("gather", f"mode: clip, axis: {axis}", f"{name}, {n}", np.take(x, index, axis, mode="clip"))
        # numpy.take(mode="wrap") counts to 2**40
        case("gather", f"mode: wrap, axis: {axis}", f"{name}, {n}", np.take(x, np.mod(index, x.shape[axis]), axis))
        there = np.expand_dims((index >= 0) & (index < x.shape[axis]), tuple(range(index.ndim, index.ndim + x.ndim - 1)))
        r = np.where(np.moveaxis(there, range(index.ndim), range(axis % x.ndim, axis % x.ndim + index.ndim)),
                     np.take(x, index, axis, mode="clip"), x.dtype.type(0))
        case("gather", f"mode: zero, axis: {axis}", f"{name}, {n}", r)


def topk(name, x, k, axis=-1, largest=True):
    """By stable sorts; equal numbers stay in order when what is sorted upwards is turned round twice."""
    n = x.shape[axis]
    order = n - 1 - np.flip(np.argsort(np.flip(x, axis), axis, "stable"), axis) if largest else np.argsort(x, axis, "stable")
    r = np.take_along_axis(x, np.take(order, range(k), axis), axis)
    said = f"k: {k}" if axis == -1 and x.ndim > 1 else f"axis: {axis}, k: {k}"
    case("topk", said + ("" if largest else ", largest: false"), name, r)


for largest in (True, False):
    for name, x in (("odd_f16", odd), ("special_f32", special.astype(f32)), ("special_f64", special)):
        topk(name, x, 4, 0, largest), topk(name, x, len(x), 0, largest)
    for name, x in [("wide_" + d, x) for d, x in wide.items()] + [("photo_u16", deep), ("halves_f16", halves), ("nan_f32", nan_plane),
                                                                ("doubles_f64", doubles), ("resize_i8_0", np.load(os.path.join(here, "resize_i8_0.npy"))),
                                                                ("resize_i32_0", np.load(os.path.join(here, "resize_i32_0.npy")))]:
        topk(name, x, min(3, x.shape[-1]), -1, largest), topk(name, x, 2, 0, largest)
    topk("ties_i16", ties, 33, -1, largest), topk("ties_i16", ties, 90, 0, largest), topk("ties_i16", ties, 1, -1, largest)
    topk("long_u1", lines["u1"], 100, -1, largest), topk("long_f32", lines["f4"], 1024, -1, largest)
for name in ("ranked_uint8", "ranked_float16", "ranked_int64", "ranked_float32", "ranked_uint64"):     # the whole line, sorted
    r = np.sort(numbers[name], -1)
    case("topk", "largest: false", name, r)
    case("topk", "k: 0", name, r[:, ::-1])
    case("topk", "k: 1500, largest: false", name, r[:, :1500])


def channelize(options, name, x, n, taps, prototype=None):
    """Each channel by itself: mixed down, filtered, and one of n samples left."""
    h = signal.firwin(n * taps, 1 / n, window="hamming") if prototype is None else np.load(os.path.join(here, prototype + ".npy"))
    wide = np.concatenate([np.zeros(((taps - 1) * n,) + x.shape[1:]), x.astype(np.complex128)]).reshape(-1, x[0].size)
    mixed = [wide * np.exp(-2j * np.pi * k * np.arange(len(wide)) / n)[:, None] for k in range(n if x.dtype == c64 else n // 2 + 1)]
    r = np.stack([np.stack([signal.correlate(v, h.astype(f64), "valid")[::n] for v in m.T], -1) for m in mixed], -1)
    inputs = name if prototype is None else f"{name}, {prototype}"
    case("channelize", options, inputs, r.reshape(r.shape[:1] + x.shape[1:] + r.shape[2:]).astype(c64), 2e-6)


for n, taps, name, x in ((7, 4, "signal_f32", sig), (29, 1, "signal_f32", sig), (10, 3, "signal3_f32", three),
                         (25, 2, "signal3_f32", three), (8, 3, "iq_c64", iq), (5, 20, "iq_c64", iq), (2, 1, "iq_c64", iq)):
    channelize(f"channels: {n}, taps: {taps}", name, x, n, taps)
channelize("channels: 20", "iq_c64", iq, 20, 8)
save("prototype_f32", signal.firwin(30, 0.1, window=("kaiser", 6)).astype(f32))
save("prototype_f64", signal.firwin(40, 0.15, window="blackman"))
channelize("channels: 10", "signal3_f32", three, 10, 3, "prototype_f32")
channelize("channels: 8", "iq_c64", iq, 8, 5, "prototype_f64")

# -- filters of other types: summed by SciPy in f64, rounded to the nearest, as OpenCV does --------------

pixels = np.random.default_rng(20261202)


def of_type(name, dtype, shape, filters):
    """Numbers of which no filter makes one that lies so near the middle of two that f32 may miss the nearest."""
    kind, made, x = np.dtype(dtype), None, None
    while made is None or (kind.kind in "iu" and any(np.abs(np.abs(r) % 1 - 0.5).min() < 2e-3 for r in made)):
        x = pixels.normal(0, 9, shape).astype(dtype) if kind.kind == "f" else pixels.integers(
            np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
        made = [f(x.astype(f64)) for _, _, f in filters]
    save(name, x)
    for (kind_name, options, _), r in zip(filters, made):
        r = np.clip(np.rint(r), np.iinfo(dtype).min, np.iinfo(dtype).max) if kind.kind in "iu" else r
        case(kind_name, options, name, r.astype(dtype), 0 if kind.kind in "iu" else 1e-3 if kind == np.float16 else 1e-6)


for dtype in (np.uint8, np.int8, np.uint16, np.int16, np.float16):
    name = np.dtype(dtype).name
    sharper = np.array([[0, -1, 0], [-1, 5.2718, -1], [0, -1, 0]])
    of_type(f"pixels_{name}", dtype, (7, 11), [
        ("blur", "sigma: 0.8", lambda x: ndimage.gaussian_filter(x, 0.8, radius=3)),
        ("blur", "sigma: 1.5, edge: zero", lambda x: ndimage.gaussian_filter(x, 1.5, radius=5, mode="constant")),
        ("conv2d", f"weights: {sharper.tolist()}, edge: nearest", lambda x: ndimage.correlate(x, sharper, mode="nearest"))])
    of_type(f"colors_{name}", dtype, (6, 4, 3), [
        ("blur", "sigma: 2, edge: nearest", lambda x: ndimage.gaussian_filter(x, (2, 2, 0), radius=(6, 6, 0), mode="nearest"))])
    x = np.load(os.path.join(here, f"pixels_{name}.npy")).astype(f64)
    gx, gy = ndimage.sobel(x, axis=-1), ndimage.sobel(x, axis=0)
    to, near = (np.float16, 1e-3) if dtype == np.float16 else (f32, 1e-6)
    for output, r in (("x", gx), ("y", gy), ("magnitude", np.hypot(gx, gy))):
        case("sobel", f"output: {output}", f"pixels_{name}", r.astype(to), near)

for dtype in ("f2", "f4"):                 # few rows: of few elements, and of many
    for rows, n, k in ((1, 33, 48), (3, 7, 8), (5, 5, 1040), (8, 3, 4096), (9, 7, 48)):
        x, w = factor(f"few{rows}", (rows, k), dtype), factor(f"wide{rows}", (n, k), dtype)
        bias, more = factor(f"few{rows}_bias", n, dtype), factor(f"few{rows}_add", (rows, n), dtype)
        r = np.maximum(x.astype(f64) @ w.astype(f64).T + bias.astype(f64), 0) + more.astype(f64)
        case("linear", "activation: relu", ", ".join(f"mm_{name}_{dtype}" for name in (
            f"few{rows}", f"wide{rows}", f"few{rows}_bias", f"few{rows}_add")), r.astype(dtype),
            4 * slack[dtype] * max(1, k / 1000))
        even = x.astype(f64) - x.astype(f64).mean(-1, keepdims=True)
        even /= np.sqrt((even ** 2).mean(-1, keepdims=True) + 1e-5)
        case("linear", "layer_norm: 1e-5, activation: gelu", f"mm_few{rows}_{dtype}, mm_wide{rows}_{dtype}",
             activations["gelu"](even @ w.astype(f64).T).astype(dtype), 8 * slack[dtype] * max(1, k / 1000))

with open(os.path.join(here, "cases.txt"), "w") as out:
    out.write("# Made by make_refs.py: kind | options | inputs | expected | tolerance\n")
    out.write("\n".join(cases) + "\n")
