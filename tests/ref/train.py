# What examples/train learns, in one process, with NumPy: writes train.npy, the loss of each step.
#     python3 tests/ref/train.py examples
import os, sys

import numpy as np

STEPS, SIZE, RATE = 300, 60, 0.5
digits, labels = (np.load(os.path.join(sys.argv[1], "digits", name)) for name in ("digits.npy", "labels.npy"))
w = [np.load(os.path.join(sys.argv[1], "train", f"w{k}.npy")).astype(np.float64) for k in (1, 2, 3)]


def ones(x):
    return np.hstack([x, np.ones((len(x), 1))])


losses = []
for step in range(STEPS):
    batch = np.arange(step * SIZE, (step + 1) * SIZE) % len(labels)
    x = [ones(digits[batch].reshape(SIZE, 64) / 16)]
    x += [ones(np.maximum(x[0] @ w[0].T, 0))]
    x += [ones(np.maximum(x[1] @ w[1].T, 0))]
    scores = x[2] @ w[2].T
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    losses.append(-np.log(p[np.arange(SIZE), labels[batch]]).mean())
    d3 = (p - np.eye(10)[labels[batch]]) / SIZE
    d2 = (d3 @ w[2])[:, :-1] * (x[2][:, :-1] > 0)
    d1 = (d2 @ w[1])[:, :-1] * (x[1][:, :-1] > 0)
    w = [a - RATE * d.T @ of for a, d, of in zip(w, (d1, d2, d3), x)]
print(np.array(losses).reshape(-1, 30).mean(1))
np.save(os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.npy"), losses)
