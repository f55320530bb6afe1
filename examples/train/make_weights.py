# Makes w1.npy, w2.npy and w3.npy, what the network of this folder begins with: by chance, and the biases, the last
# column, are 0. Needs NumPy. Of other sizes, elsewhere:  make_weights.py FOLDER 64 512 512 10
import os
import sys

import numpy as np

folder, *sizes = sys.argv[1:] or [os.path.dirname(os.path.abspath(__file__)), 64, 64, 32, 10]
rng = np.random.default_rng(1992)
for k, (wide, high) in enumerate(zip(map(int, sizes), map(int, sizes[1:])), 1):
    w = np.zeros((high, wide + 1), np.float32)
    w[:, :-1] = rng.normal(0, np.sqrt(2 / wide), (high, wide))
    np.save(os.path.join(folder, f"w{k}.npy"), w)
