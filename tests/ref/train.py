# What examples/train learns, in one process, with NumPy in f64: the loss of each step by Adam (train.npy), and by plain
# gradient descent (descent.npy).
#     python3 tests/ref/train.py examples
import os, sys

import numpy as np

STEPS, SIZE, RATE, DESCENT = 300, 60, 0.005, 0.5
digits, labels = (np.load(os.path.join(sys.argv[1], "digits", name)) for name in ("digits.npy", "labels.npy"))


def gradients(w, b, x, label):
    """The loss of a batch, and how it changes with each weight and each bias."""
    x = [x]
    for k in (0, 1):
        x += [np.maximum(x[k] @ w[k].T + b[k], 0)]
    scores = x[2] @ w[2].T + b[2]
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = -np.log(p[np.arange(SIZE), label]).mean()
    d = [(p - np.eye(10)[label]) / SIZE]
    for k in (2, 1):
        d = [(d[0] @ w[k]) * (x[k] > 0)] + d
    return loss, [a.T @ of for a, of in zip(d, x)] + [a.sum(0) for a in d]


def descent(step, all_of, g):
    return [a - DESCENT * of for a, of in zip(all_of, g)]


class Adam:
    """Kingma and Ba, Adam: A Method for Stochastic Optimization (2014), algorithm 1, with the constants given there."""

    def __init__(self):
        self.m = self.v = 6 * [0]

    def __call__(self, step, all_of, g):
        self.m = [0.9 * m + 0.1 * of for m, of in zip(self.m, g)]
        self.v = [0.999 * v + 0.001 * of ** 2 for v, of in zip(self.v, g)]
        m, v = ([a / (1 - beta ** (step + 1)) for a in moment] for moment, beta in ((self.m, 0.9), (self.v, 0.999)))
        return [a - RATE * x / (np.sqrt(y) + 1e-8) for a, x, y in zip(all_of, m, v)]


for name, learn in (("train", Adam()), ("descent", descent)):
    all_of = [np.load(os.path.join(sys.argv[1], "train", f"{n}{k}.npy")).astype(np.float64) for n in "wb" for k in (1, 2, 3)]
    losses = []
    for step in range(STEPS):
        batch = np.arange(step * SIZE, (step + 1) * SIZE) % len(labels)
        loss, g = gradients(all_of[:3], all_of[3:], digits[batch].reshape(SIZE, 64) / 16, labels[batch])
        losses.append(loss)
        all_of = learn(step, all_of, g)
    print(name, np.array(losses).reshape(-1, 30).mean(1))
    np.save(os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".npy"), losses)
