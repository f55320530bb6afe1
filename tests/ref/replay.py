# What examples/replay learns, with NumPy: writes replay.npy, the loss of each batch.
#     python3 tests/ref/replay.py examples
import os, sys

import numpy as np

KEEP, SIZE, DRAWS, NEW, RATE = 200, 32, 4, 3, 0.2
digits, labels = (np.load(os.path.join(sys.argv[1], "digits", name)) for name in ("digits.npy", "labels.npy"))
w1, w2 = (np.load(os.path.join(sys.argv[1], "replay", name)).astype(np.float64) for name in ("w1.npy", "w2.npy"))
b1, b2 = np.zeros(32), np.zeros(10)
chance, losses = 1, []
for seen in range(NEW, len(labels) + 1, NEW):
    oldest = max(seen - KEEP, 0)
    kept = {place % KEEP: place for place in range(oldest, seen)}         # where each lies in the buffer
    for _ in range(DRAWS):
        drawn = []
        for _ in range(SIZE):
            chance = chance * 16807 % 2147483647
            drawn.append(kept[chance % len(kept)])
        x, wanted = digits[drawn].reshape(SIZE, 64) / 16, np.eye(10)[labels[drawn]]
        hidden = np.maximum(x @ w1.T + b1, 0)
        scores = hidden @ w2.T + b2
        p = np.exp(scores - scores.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        losses.append(-np.log((p * wanted).sum(1)).mean())
        d2 = (p - wanted) / SIZE
        d1 = d2 @ w2 * (hidden > 0)
        w1, b1, w2, b2 = w1 - RATE * d1.T @ x, b1 - RATE * d1.sum(0), w2 - RATE * d2.T @ hidden, b2 - RATE * d2.sum(0)
print(np.array(losses).reshape(-1, 60).mean(1))
np.save(os.path.join(os.path.dirname(os.path.abspath(__file__)), "replay.npy"), losses)
