#!/usr/bin/env python3
"""stores.py GPIPE - random Zarr stores are exchanged with zarr-python, of the version that is installed (2 or 3; it writes
both formats from 3 on), bit for bit: what it writes is read, and it reads what gpipe writes. Without it this says so.
Prints a total; exit 1 after a failure."""
import os, random, sys
from kit import bytes_of, check, quick, runs, total, tmp

try:
    import numpy as np
    import zarr
except ImportError as e:
    print(f"SKIPPED: {e}: 'pip install zarr' has stores compared with it")
    total("stores")

V3 = not zarr.__version__.startswith("2")
TYPES = "u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8 c8 b1".split()
rng = random.Random(int(os.environ.get("GPIPE_SEED", "1")))
os.chdir(tmp.name)


def name(dtype):
    return {"b": "u"}.get(dtype[0], dtype[0]) + str(8 * int(dtype[1]))


def values(dtype, shape):
    r = np.random.default_rng(rng.randrange(2**32))
    n = int(np.prod(shape))
    if dtype[0] in "fc":
        return r.standard_normal(n * (2 if dtype[0] == "c" else 1)).astype("f4" if dtype[0] == "c" else dtype).view(dtype).reshape(shape)
    return r.integers(0, 2 if dtype == "b1" else 256, n * np.dtype(dtype).itemsize, dtype="u1").view(dtype).reshape(shape)


def any_of_2(path, shape, chunks, dtype, fill):
    from numcodecs import LZ4, Blosc, GZip, Zlib, Zstd
    codec = rng.choice([None, Zlib(), GZip(), Zstd(), LZ4(), Blosc(rng.choice(("lz4", "zstd", "blosclz", "zlib")), shuffle=rng.choice((0, 1, 2)))])
    order, separator = rng.choice("CF"), rng.choice("./")
    if V3:
        return zarr.create_array(path, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill, zarr_format=2, order=order,
                                 compressors=codec, chunk_key_encoding={"name": "v2", "separator": separator})
    dtype = dtype if dtype[1] == "1" else rng.choice("<>") + dtype
    return zarr.open(path, mode="w", shape=shape, chunks=chunks, dtype=dtype, fill_value=fill, compressor=codec, order=order,
                     dimension_separator=separator)


def any_of_3(path, shape, chunks, dtype, fill):
    from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec
    blosc = BloscCodec(cname=rng.choice(("lz4", "zstd", "blosclz", "zlib", "lz4hc")), shuffle=rng.choice(("shuffle", "bitshuffle", "noshuffle")))
    codecs = rng.choice([(), ZstdCodec(), ZstdCodec(checksum=True), GzipCodec(), blosc, Crc32cCodec(), (ZstdCodec(), Crc32cCodec()),
                         (Crc32cCodec(), GzipCodec())])
    axes = list(range(len(shape)))
    return zarr.create_array(
        path, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill, compressors=codecs,
        shards=tuple(n * rng.randint(1, 3) for n in chunks) if rng.random() < .4 else None,
        serializer=BytesCodec(endian=rng.choice(("little", "big"))) if dtype[1] != "1" else "auto",
        filters=rng.choice([(), TransposeCodec(order=tuple(rng.sample(axes, len(axes))))]),
        chunk_key_encoding={"name": rng.choice(("default", "v2")), "separator": rng.choice("./")})


def reads(i):
    dtype, shape = rng.choice(TYPES), tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 4)))
    chunks = tuple(rng.randint(1, n + 2) for n in shape)
    fill = rng.choice((0, 1)) if dtype == "b1" else rng.choice((0, 5, float("nan"), float("-inf")) if dtype[0] in "fc" else (0, 100))
    array = (any_of_3 if V3 and rng.random() < .8 else any_of_2)(f"{i}.zarr", shape, chunks, dtype, fill)
    part = tuple(slice(rng.randint(0, n // 2), rng.randint(n // 2, n)) if rng.random() < .4 else slice(None) for n in shape)
    array[part] = values(dtype, shape)[part]
    want = np.ascontiguousarray(array[:])
    want = want.astype(want.dtype.newbyteorder("<")).tobytes()
    rows = rng.randint(1, shape[0]) if len(shape) == 1 or rng.random() < .5 else 0
    declared = f"buffers: {{x: {{dtype: {name(dtype)}, shape: {[rows, *shape[1:]]}}}}}\n" if rows else ""
    ok = runs(f"{declared}stages:\n  - {{use: read, path: {i}.zarr, workers: {rng.randint(1, 4)}, out: x}}\n"
              "  - {use: write, path: a.raw, in: x}\n")
    check(f"{i}: {dtype} {shape} in chunks {chunks}, frames of {rows} rows", ok and bytes_of("a.raw") == want)


def writes(i):
    dtype = rng.choice(TYPES[:-1])
    shape, frames = [rng.randint(1, 6) for _ in range(rng.randint(1, 3))], rng.randint(1, 7)
    stack, chunk, level = rng.random() < .5, rng.choice((0, 1, 3, 5)), rng.choice((0, 1, 3, 9))
    a = values(dtype, [frames * shape[0], *shape[1:]])
    with open("a.raw", "wb") as f:
        f.write(a.tobytes())
    ok = runs(f"buffers: {{x: {{dtype: {name(dtype)}, shape: {shape}}}}}\nstages:\n  - {{use: read, path: a.raw, out: x}}\n"
              f"  - {{use: write, path: w{i}.zarr, stack: {str(stack).lower()}, chunk: {chunk}, compression: {level}}}\n")
    if not V3:
        check(f"{i}: writes", ok)
        return
    array = zarr.open_array(f"w{i}.zarr", mode="r")
    got = array[:]
    want = a.reshape([frames, *shape]) if stack else a
    check(f"{i}: {dtype} {shape} written, stack {stack}, chunk {chunk}, compression {level}",
          ok and got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()
          and array.chunks[0] == (chunk or (1 if stack else shape[0])))


for i in range(40 if quick else 300):
    reads(i)
    writes(i)
total("stores", f" (zarr-python {zarr.__version__})")
