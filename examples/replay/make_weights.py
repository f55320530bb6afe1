# Makes w1.npy and w2.npy, what the network of this folder begins with: by chance. Needs NumPy.
import numpy as np

rng = np.random.default_rng(1992)
np.save("w1.npy", rng.normal(0, np.sqrt(2 / 64), (32, 64)).astype(np.float32))
np.save("w2.npy", rng.normal(0, np.sqrt(2 / 32), (10, 32)).astype(np.float32))
