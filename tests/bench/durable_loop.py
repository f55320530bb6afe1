"""durable_loop.py - a loop that writes frames with the promise of `durable`, as one writes it in
Python.

    durable_loop.py FOLDER none|end|file BYTES FRAMES [JOINED]

A file a frame, NNNNN.raw, or with JOINED one file of that name for all. The frames have
memory of their own, as gpipe's have: bytes(n) is one page of zeros over and over, and stays in
the processor's cache.
"""
import os, sys

folder, mode, size, frames = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
joined = sys.argv[5] if len(sys.argv) > 5 else None
data = [bytes([i]) * size for i in range(1, 9)]    # as many as gpipe has slots


def finish(f, name):
    if mode == "file":
        os.fsync(f.fileno())
    f.close()
    os.rename(f.name, os.path.join(folder, name))


f = None
for i in range(frames):
    f = f or open(os.path.join(folder, ".part"), "wb", buffering=0)
    f.write(data[i % len(data)])
    if not joined:
        finish(f, "%05d.raw" % i)
        f = None
if joined:
    finish(f, joined)
if mode != "none":
    where = os.open(folder, os.O_RDONLY)
    os.sync() if mode == "end" else os.fsync(where)
    os.close(where)
