# Makes w1.npy, w2.npy and w3.npy, what the network of this folder begins with: by chance, the larger the fewer numbers
# a neuron reads. Needs NumPy. Of other sizes or other chance, elsewhere:  make_weights.py FOLDER NEURONS SEED
import os
import sys

import numpy as np

folder, neurons, seed = sys.argv[1:] or [os.path.dirname(os.path.abspath(__file__)), 64, 1]
chance = np.random.default_rng(int(seed))
for k, (made, read) in enumerate(((int(neurons), 5), (int(neurons), int(neurons)), (2, int(neurons))), 1):
    w = chance.uniform(-1, 1, (made, read)) / np.sqrt(read)
    np.save(os.path.join(folder, f"w{k}.npy"), w.astype(np.float32))
