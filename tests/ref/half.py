#!/usr/bin/env python3
"""Makes half_functions.npy beside it, with NumPy: what functions of cuda_fp16.h give.

Rows 0, 1 and 2 are arguments a, b and c; each other row is one function of them, in the order of
the kernel in tests/test_half.c. Each is rounded once, to nearest even where it says nothing else."""
import os
from fractions import Fraction

import numpy as np

f16, f64 = np.float16, np.float64
rng = np.random.default_rng(16)
special = np.array([0, -0.0, 1, -1, 0.5, 2, 65504, -65504, 6e-8, -6e-8, 6.1e-5, np.inf, -np.inf, np.nan,
                    0.333, 1.5, 2.5, -2.5, 0.99951, 1.00098], f16)
triples = [(x, y, z) for x in special for y in special for z in special[1::6]]
a, b, c = (np.array(v, f16) for v in zip(*triples))


def some(n):
    return rng.integers(0, 0x7c00, n).astype(np.uint16).view(f16) * rng.choice([-1, 1], n).astype(f16)


# What is left below half of the last place decides: a * b is near it, or so near that even a float
# has no place for the difference: (1 + 2^-k)(1 - 2^-k) = 1 - 2^-2k of it.
n = 800
z = some(n)
half_ulp = np.abs(np.spacing(z).astype(f64)) / 2
x = f16(2.0) ** rng.integers(-7, 8, n).astype(f16)
with np.errstate(all="ignore"):
    y = (half_ulp / x.astype(f64)).astype(f16)
    y = (y.view(np.uint16) + rng.integers(-1, 2, n)).astype(np.uint16).view(f16)
close = f64(2.0) ** -rng.integers(6, 11, n) * (np.arange(n) % 2)
x = (x.astype(f64) * (1 + close)).astype(f16)
y = np.where(close, half_ulp / x.astype(f64) * (1 + close) * (1 - close), y.astype(f64)).astype(f16)
a = np.concatenate([a, some(400), x])
b = np.concatenate([b, some(400), y * rng.choice([-1, 1], n).astype(f16)])
c = np.concatenate([c, some(400), z])
A, B, C = a.astype(f64), b.astype(f64), c.astype(f64)


def nearest(v):
    """A fraction as float16."""
    if not v:
        return f16(0)
    e = -24
    while abs(v) >= Fraction(2) ** (e + 11):
        e += 1
    r = round(v / Fraction(2) ** e) * Fraction(2) ** e         # of a Fraction: to even
    return np.copysign(f16(np.inf if abs(r) >= 65520 else float(r)), f16(v > 0) - f16(v < 0))


def fma(a, b, c):
    out = (a * b + c).astype(f16)
    for i in range(len(a)):
        if np.isfinite([a[i], b[i], c[i]]).all():
            exact = Fraction(a[i]) * Fraction(b[i]) + Fraction(c[i])
            if exact:
                out[i] = nearest(exact)
    return out


def directed(v, way):
    h = v.astype(f16)
    w = h.astype(f64)
    to = {"rz": f16(0), "rd": f16(-np.inf), "ru": f16(np.inf)}[way]
    wrong = {"rz": np.abs(w) > np.abs(v), "rd": w > v, "ru": w < v}[way]
    return np.where(wrong, np.nextafter(h, to), h)


def whole(v):
    """By way of int: a NaN is 0, and what is too large the largest."""
    return np.where(np.isnan(v), 0, v + 0.0)


with np.errstate(all="ignore"):
    nan = np.isnan(A) | np.isnan(B)
    bigger = np.where(np.isnan(A), B, np.where(np.isnan(B), A, np.where(A == B, np.where(np.signbit(A), B, A), np.maximum(A, B))))
    smaller = np.where(np.isnan(A), B, np.where(np.isnan(B), A, np.where(A == B, np.where(np.signbit(A), A, B), np.minimum(A, B))))
    product = (A * B).astype(np.float32).astype(f64)
    rows = [
        A + B, A - B, A * B, A / B, -A, np.abs(A), fma(A, B, C), fma(-A, B, C), bigger, smaller,
        A < B, A <= B, A > B, A >= B, A == B, (A != B) & ~nan, (A != B) | nan, (A < B) | nan, np.isnan(A),
        np.sqrt(A), 1 / np.sqrt(A), 1 / A, np.exp(A), np.exp2(A), 10.0 ** A, np.log(A), np.log2(A),
        np.log10(A), np.sin(A), np.cos(A), np.tanh(A), np.floor(A), np.ceil(A), np.rint(A), np.trunc(A),
        np.clip(np.where(np.isnan((A + B).astype(f16)), 0, (A + B).astype(f16)), 0, 1) + 0.0,
        whole(np.rint(A)), whole(np.trunc(A)), whole(np.floor(A)), whole(np.ceil(A)),
        product.astype(f16), directed(product, "rz"), directed(product, "rd"), directed(product, "ru"),
        np.arange(len(A)) * 37.0 - 90000, directed(np.arange(len(A)) * 37.0 - 90000, "rz"),
    ]
    out = np.stack([a, b, c] + [np.asarray(r).astype(f16) for r in rows])
np.save(os.path.join(os.path.dirname(os.path.abspath(__file__)), "half_functions.npy"), out)
