#!/usr/bin/env python3
"""Makes the stores in zarr/ beside it, and of each array a .npy of what zarr-python reads of it: those of version 2 by
zarr-python 2, those of version 3 by zarr-python 3, so it is run by each:

    pip install "zarr<3" "numcodecs<0.16" && python3 tests/data/make_zarr.py
    pip install "zarr>=3" && python3 tests/data/make_zarr.py"""
import os
import shutil

import numpy as np
import zarr

there = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zarr")
os.makedirs(there, exist_ok=True)
rng = np.random.default_rng(39)


def values(dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype.newbyteorder("="), endpoint=True).astype(dtype)


def fill(path, array, part):
    """Writes all of it, or a corner: chunks are missing then."""
    at = tuple(slice(0, (n + 1) // 2) if part else slice(None) for n in array.shape)
    if part != "none":
        array[at] = values(array.dtype, array.shape)[at]
    a = np.ascontiguousarray(array[:])
    np.save(os.path.join(there, path.replace("/", "_") + ".npy"), a.astype(a.dtype.newbyteorder("<")))


def place(name):
    path = os.path.join(there, name)
    shutil.rmtree(path, ignore_errors=True)
    return path


if zarr.__version__.startswith("2"):
    from numcodecs import LZ4, Blosc, GZip, Zlib, Zstd

    def make(name, dtype, shape, chunks, part=None, **more):
        fill(name, zarr.open(place(name), mode="w", shape=shape, chunks=chunks, dtype=dtype, **more), part)

    make("2_blosc", "<f4", (7, 5, 6), (3, 2, 4), compressor=Blosc("lz4", shuffle=Blosc.SHUFFLE))
    make("2_bits", "<u4", (6, 64), (6, 64), compressor=Blosc("zstd", shuffle=Blosc.BITSHUFFLE))
    make("2_zlib", ">u2", (6, 5, 3), (2, 5, 2), "part", compressor=Zlib(), order="F", fill_value=7, dimension_separator="/")
    make("2_lz4", "<c8", (5, 4), (2, 4), "part", compressor=LZ4(), fill_value=np.nan)
    make("2_gzip", "|b1", (9, 3), (4, 2), compressor=GZip())
    make("2_plain", "<i8", (4, 3, 2, 2), (1, 3, 2, 2), compressor=None)
    make("2_zstd", "<f2", (5, 7), (5, 3), "part", compressor=Zstd(), fill_value=-np.inf)
    group = zarr.open_group(place("2_ome"), mode="w")
    for level, n in ("0", 8), ("1", 4):
        fill("2_ome/" + level, group.create_dataset(level, shape=(3, n, n), chunks=(1, n, n), dtype="<u2"), None)
    group.attrs["multiscales"] = [{"version": "0.4", "axes": [{"name": a} for a in "zyx"],
                                   "datasets": [{"path": "0"}, {"path": "1"}]}]
else:
    from zarr.codecs import (BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec)

    def make(name, dtype, shape, chunks, part=None, **more):
        fill(name, zarr.create_array(place(name), dtype=dtype, shape=shape, chunks=chunks, **more), part)

    make("3_zstd", "f4", (5, 6, 4), (1, 6, 4), compressors=ZstdCodec(checksum=True), dimension_names=("t", "y", "x"))
    make("3_blosc", "i2", (5, 6, 4), (2, 3, 4), compressors=BloscCodec(cname="zlib"), serializer=BytesCodec(endian="big"),
         filters=TransposeCodec(order=(2, 0, 1)))
    make("3_shards", "u1", (9, 8, 6), (1, 2, 3), "part", shards=(4, 4, 6), compressors=ZstdCodec(), fill_value=9)
    make("3_sums", "u4", (7, 3), (3, 2), compressors=(Crc32cCodec(), GzipCodec(), Crc32cCodec()))
    make("3_names", "i4", (4, 3), (3, 2), compressors=None, chunk_key_encoding={"name": "v2", "separator": "."})
    make("3_dots", "c8", (4, 3, 2), (2, 3, 2), "part", chunk_key_encoding={"name": "default", "separator": "."},
         fill_value=complex(np.nan, -2))
    make("3_none", "u8", (4, 3), (3, 2), "none", fill_value=2**64 - 1)
    make("3_half", "f2", (4, 3), (3, 2), "part", fill_value=0.1)
    array = zarr.create_array(place("3_start"), dtype="f8", shape=(6, 6), chunks=(4, 6), compressors=None,
                              serializer=ShardingCodec(chunk_shape=(2, 3), index_location="start", codecs=[
                                  TransposeCodec(order=(1, 0)), BytesCodec(endian="big"), GzipCodec()]))
    fill("3_start", array, "part")
    group = zarr.open_group(place("3_ome"), mode="w")
    for level, n in ("a", 8), ("b/c", 4):
        fill("3_ome/" + level, group.create_array(level, shape=(3, n, n), chunks=(1, n, n), dtype="u2"), None)
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": [{"name": a} for a in "zyx"],
                                                             "datasets": [{"path": "a"}, {"path": "b/c"}]}]}
