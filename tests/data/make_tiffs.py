#!/usr/bin/env python3
"""Makes tests/data/tiff: files that tifffile writes, and what it reads of them as .npy. Needs numpy, tifffile and
imagecodecs; the files are kept in git."""
import os

import numpy as np, tifffile

TO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tiff")
rng = np.random.default_rng(7)


def numbers(dtype, *shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    return (np.cumsum(rng.integers(0, 9, shape), axis=-1) * (1 << 8 * dtype.itemsize - 8) // 7).astype(dtype)


def make(name, array, planes=False, **how):
    """`planes`: the samples are axis 1, and the last in what is read."""
    how.setdefault("photometric", "minisblack")
    path = f"{TO}/{name}.tif"
    tifffile.imwrite(path, array, **{"metadata": None, **how})
    with tifffile.TiffFile(path) as t:
        pages = [p.asarray() for p in t.pages]
    if how.get("imagej"):
        pages = list(array)
    np.save(f"{TO}/{name}.npy", np.stack([np.moveaxis(p, 0, -1) if planes else p for p in pages]))


def main():
    os.makedirs(TO, exist_ok=True)
    make("plain", numbers("u2", 5, 13, 17))
    make("big_endian", numbers("f8", 2, 5, 7), byteorder=">")
    make("bigtiff", numbers("i4", 3, 5, 7), byteorder=">", bigtiff=True)
    make("lzw", numbers("u1", 2, 33, 21, 3), photometric="rgb", compression="lzw", predictor=True)
    make("deflate", numbers("u2", 4, 40, 21), compression="zlib", predictor=True, rowsperstrip=7)
    make("floats", numbers("f4", 2, 20, 11), compression="zlib", predictor=True)
    make("packbits", numbers("i1", 2, 9, 31), compression="packbits")
    make("zstd", numbers("i2", 2, 19, 31), compression="zstd", byteorder=">")
    make("lzma", numbers("u4", 1, 9, 31), compression="lzma")
    make("tiles", numbers("u2", 2, 37, 41), tile=(16, 32), byteorder=">")
    make("packed_tiles", numbers("u1", 2, 50, 35, 4), photometric="rgb", extrasamples=["unassalpha"], tile=(32, 16),
         compression="zlib")
    make("planes", numbers("u2", 2, 3, 11, 13), planes=True, planarconfig="separate", photometric="rgb", rowsperstrip=4)
    make("tiled_planes", numbers("u1", 2, 5, 35, 33), planes=True, planarconfig="separate", tile=(16, 16),
         compression="lzw")
    y, x = np.mgrid[0:40, 0:48]
    smooth = np.stack([128 + x, 100 + y, 90 + (x + y) // 2], -1).astype("u1")
    make("jpeg", smooth[None], photometric="ycbcr", compression="jpeg", compressionargs={"level": 95}, subsampling=(2, 2))
    make("imagej", numbers("u2", 4, 6, 9), imagej=True, metadata={})
    make("ome", numbers("u1", 2, 3, 2, 16, 18), ome=True, metadata={"axes": "TCZYX"})


main()
