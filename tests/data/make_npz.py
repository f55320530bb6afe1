#!/usr/bin/env python3
"""Makes tests/data/npz: archives that NumPy writes, stored and compressed, and their members as .npy. Needs numpy; the
files are kept in git."""
import os, zipfile

import numpy as np

TO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "npz")


def main():
    os.makedirs(TO, exist_ok=True)
    rng = np.random.default_rng(3)
    u = rng.integers(0, 256, (7, 3, 5), "u1")
    line = np.arange(1000, dtype="f4") / 8
    c = (rng.normal(size=(11, 2)) + 1j * rng.normal(size=(11, 2))).astype("c8")
    long = (np.arange(90000, dtype="i4") // 7 * 3).reshape(-1, 2)      # longer than what is unpacked at once
    for name, array in ("u", u), ("line", line), ("c", c):
        np.save(f"{TO}/{name}.npy", array)
    np.savez(f"{TO}/stored.npz", u=u, line=line, c=c)
    np.savez_compressed(f"{TO}/packed.npz", u=u, line=line, c=c)
    np.savez_compressed(f"{TO}/long.npz", long=long)
    with zipfile.ZipFile(f"{TO}/strange.npz", "w", zipfile.ZIP_BZIP2) as z:
        z.write(f"{TO}/line.npy", "line.npy")
    with zipfile.ZipFile(f"{TO}/none.npz", "w"):
        pass
    with zipfile.ZipFile(f"{TO}/twice.npz", "w") as z:     # it warns of the second u.npy
        for name, array in ("u.npy", "u"), ("v", "u"), ("v.npy", "line"), ("u.npy", "line"):
            z.write(f"{TO}/{array}.npy", name, compress_type=zipfile.ZIP_DEFLATED)


main()
