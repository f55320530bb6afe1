# What examples/diffusion makes, with NumPy. Writes diffusion_psnr.npy: of each of 3 frames the ratio before and after,
# in decibels; and diffusion_calm.npy: every 4th pixel of each 4th row.
#     python3 tests/ref/diffusion.py examples/data/raccoon.png
import os, sys

import numpy as np
from PIL import Image

HIGH, WIDE, TOP, LEFT, AMPLITUDE, SMOOTH, STEPS = 192, 256, 150, 480, 60, 25, 100
here = os.path.dirname(os.path.abspath(__file__))
rgb = np.asarray(Image.open(sys.argv[1]), np.float64)[TOP:TOP + HIGH, LEFT:LEFT + WIDE]
photo = rgb @ [0.299, 0.587, 0.114]


def noise(start, n):
    """`generate`'s, numbers of [-1, 1): SplitMix64 with seed 0."""
    z = (np.arange(start, start + n, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9e3779b97f4a7c15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    return ((z ^ z >> np.uint64(31)) >> np.uint64(11)) * 2.0 ** -52 - 1


def divergence(p):
    return np.diff(p[0], axis=1, prepend=0) + np.diff(p[1], axis=0, prepend=0)


def denoised(noisy):
    p = np.zeros((2, HIGH, WIDE))
    for _ in range(STEPS):
        rest = divergence(p) - noisy / SMOOTH
        slope = np.stack([np.diff(rest, axis=1, append=rest[:, -1:]), np.diff(rest, axis=0, append=rest[-1:])])
        p = (p + 0.2 * slope) / (1 + 0.2 * np.hypot(*slope))
    return noisy - SMOOTH * divergence(p)


def psnr(a):
    return 10 * np.log10(255 ** 2 / ((a - photo) ** 2).mean())


ratios, calm = [], []
for k in range(3):
    noisy = photo + AMPLITUDE * noise(k * HIGH * WIDE, HIGH * WIDE).reshape(HIGH, WIDE)
    calm.append(denoised(noisy))
    ratios.append([psnr(noisy), psnr(calm[-1])])
print(ratios)
np.save(os.path.join(here, "diffusion_psnr.npy"), ratios)
np.save(os.path.join(here, "diffusion_calm.npy"), np.array(calm)[:, ::4, ::4].astype(np.float32))
