#!/usr/bin/env python3
"""Makes heat_start.npy, heat_points.npy and heat_end.npy, and heat_1.npy, heat_50.npy and heat_1001.npy beside it, with
NumPy:

    pip install numpy && python3 tests/ref/heat.py

The explicit heat equation (forward in time, central in space) on a plate of 64 x 64 whose edges let nothing through,
D dt / dx^2 = 0.2, for 50 steps; in each, a point (row, column, heat: a row of heat_points) is warmed. The others are after
so many steps in which none is."""
import os

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(20261122)
start = rng.random((64, 64)) * 20 + 10
steps = np.arange(50)
points = np.stack([np.round(31.5 + 31.5 * np.sin(steps / 7)), np.round(31.5 + 31.5 * np.cos(steps / 5)),
                   5 + rng.random(50) * 50], axis=1)



def step(heat):
    wide = np.pad(heat, 1, mode="edge")
    around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    return heat + 0.2 * (around - 4 * heat)


heat, cool, made = start.copy(), start.copy(), {}
for row, col, more in points:
    heat = step(heat)
    heat[int(row), int(col)] += more
for i in range(1, 1002):
    cool = step(cool)
    if i in (1, 50, 1001):
        made[i] = cool

for name, a in (("start", start), ("points", points), ("end", heat), *made.items()):
    np.save(os.path.join(here, f"heat_{name}.npy"), a)
