# What examples/learn does, with NumPy: the table that it writes, mean lengths and losses.
#     python3 tests/ref/learn.py examples                   writes learn.npy, a run of the size that tests/cli.sh runs
#     python3 tests/ref/learn.py examples carts=64 ...      prints those of others, as --set vars.carts=64 ...
import os, sys

import numpy as np

V = dict(frames=60, carts=16, updates=2, size=32, keep=640, seed=1, rate=0.001, discount=0.99, renew=25, explore=40,
         least=0.05, report=10)         # as tests/cli.sh sets them
V.update((name, float(value) if "." in value else int(value)) for name, value in (a.split("=") for a in sys.argv[2:]))
globals().update(V)
weights = [np.load(os.path.join(sys.argv[1], "learn", f"w{k}.npy")).astype(np.float64) for k in (1, 2, 3)]
means, squares = ([np.zeros_like(w) for w in weights] for _ in range(2))
which = np.arange(carts)
LIMIT = 500


def mixed(x):
    x = (x * np.uint64(747796405) + np.uint64(2891336453)) & np.uint64(0xffffffff)
    x = (((x >> ((x >> np.uint64(28)) + np.uint64(4))) ^ x) * np.uint64(277803737)) & np.uint64(0xffffffff)
    return (x >> np.uint64(22)) ^ x


def drawn(*parts):
    h = np.uint64(0)
    for part in parts:
        h = mixed(h ^ np.asarray(part, np.uint64))
    return h


def fraction(h):
    return (h >> np.uint64(8)) / 2**24


def layers(weights, x):
    h1 = np.maximum(x @ weights[0].T, 0)
    h2 = np.maximum(h1 @ weights[1].T, 0)
    return h1, h2, h2 @ weights[2].T


cart = np.zeros((carts, 5))             # the first episodes begin in the middle, and without the 1 in their first step
age = np.zeros(carts, int)
memory = np.zeros((keep, 12))
count = length = loss = t = 0
table = []
for frame in range(frames):
    epsilon = max(least, 1 - (1 - least) * frame / explore)
    if frame % renew == 0:
        target = [w.copy() for w in weights]
    worth = layers(weights, cart)[2]
    by_chance = fraction(drawn(seed, frame, which, 0)) < epsilon
    action = np.where(by_chance, drawn(seed, frame, which, 1) >> np.uint64(31), worth[:, 1] > worth[:, 0])
    x, v, a, w = cart[:, :4].T
    force = np.where(action == 1, 10, -10)
    pole = 0.1 * 0.5                                    # its mass times half its length; the cart has a mass of 1
    part = (force + pole * w**2 * np.sin(a)) / 1.1
    turning = (9.8 * np.sin(a) - np.cos(a) * part) / (0.5 * (4 / 3 - 0.1 * np.cos(a)**2 / 1.1))
    pushed = part - pole * turning * np.cos(a) / 1.1
    now = np.stack([x + 0.02 * v, v + 0.02 * pushed, a + 0.02 * w, w + 0.02 * turning, np.ones(carts)], 1)
    age += 1
    fell = (abs(now[:, 0]) > 2.4) | (abs(now[:, 2]) > np.radians(12))
    over = fell | (age == LIMIT)
    before = cart.copy()
    before[:, 4] = 1
    memory[(frame * carts + which) % keep] = np.column_stack([before, now, action, fell])
    count, length = count + over.sum(), length + age[over].sum()
    age[over] = 0
    start = np.stack([fraction(drawn(seed, frame, which, 2 + k)) * 0.1 - 0.05 for k in range(4)] + [np.ones(carts)], 1)
    cart = np.where(over[:, None], start, now)
    for u in range(updates):
        some = memory[drawn(seed, frame, np.arange(size), 6 + u) % np.uint64(min((frame + 1) * carts, keep))]
        was, became, action, fell = some[:, :5], some[:, 5:10], some[:, 10].astype(int), some[:, 11]
        h1, h2, thought = layers(weights, was)
        off = thought[np.arange(size), action] - (1 + (1 - fell) * discount * layers(target, became)[2].max(1))
        huber = np.where(abs(off) < 1, off**2 / 2, abs(off) - 0.5).mean()
        d3 = np.zeros((size, 2))
        d3[np.arange(size), action] = np.clip(off, -1, 1) / size
        d2 = d3 @ weights[2] * (h2 > 0)
        d1 = d2 @ weights[1] * (h1 > 0)
        t += 1
        for w, mean, square, g in zip(weights, means, squares, (d1.T @ was, d2.T @ h1, d3.T @ h2)):
            mean += (1 - 0.9) * (g - mean)
            square += (1 - 0.999) * (g**2 - square)
            w -= rate * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * mean / (np.sqrt(square) + 1e-8)
    loss += huber
    if frame % report == report - 1:
        table.append((length / count, loss / report))
        print("%.6f,%.7f" % table[-1], flush=True)
        count = length = loss = 0
if len(sys.argv) == 2:
    np.save(os.path.join(os.path.dirname(os.path.abspath(__file__)), "learn.npy"), np.array(table).ravel())
