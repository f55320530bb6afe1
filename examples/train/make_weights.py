# Makes w1.npy, b1.npy, ... b3.npy, what the network of this folder begins with: weights by chance, and biases of 0.
# Needs NumPy. Of other sizes, elsewhere:  make_weights.py FOLDER 64 512 512 10
import os
import sys

import numpy as np

folder, *sizes = sys.argv[1:] or [os.path.dirname(os.path.abspath(__file__)), 64, 64, 32, 10]
os.makedirs(folder, exist_ok=True)
rng = np.random.default_rng(1992)
for k, (wide, high) in enumerate(zip(map(int, sizes), map(int, sizes[1:])), 1):
    np.save(os.path.join(folder, f"w{k}.npy"), rng.normal(0, np.sqrt(2 / wide), (high, wide)).astype(np.float32))
    np.save(os.path.join(folder, f"b{k}.npy"), np.zeros(high, np.float32))
