"""copies.py - how fast this machine copies in memory, and writes one file.

    copies.py memory BYTES THREADS           prints `memory US`, for BYTES by so many threads
    copies.py file PATH BYTES FRAMES         prints `file US WAY`, for BYTES of FRAMES that lie behind each other in one file

A file is written by 1, 2, 4, 8 and 16 threads, with pwrite into a file that is empty, or that has all its room; the fastest
counts. Exit 3 without NumPy.
"""
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

try:
    import numpy as np
except ImportError:
    sys.exit(3)

what = sys.argv[1]


def memory(n, threads):
    slots = 32                                 # more than caches hold
    source, to = np.ones((slots, n), np.uint8), np.zeros((slots, n), np.uint8)
    part = -(-n // threads)

    def copy(k):
        for slot in range(slots):
            to[slot, k * part:(k + 1) * part] = source[slot, k * part:(k + 1) * part]

    def all_of_it():
        list(pool.map(copy, range(threads)))

    with ThreadPoolExecutor(threads) as pool:
        all_of_it()
        times = []
        for _ in range(7):
            start = time.perf_counter()
            all_of_it()
            times.append(time.perf_counter() - start)
    print("memory %.3f" % (1e6 * sorted(times)[3] / slots))


def file(path, n, frames):
    data = [bytes([k + 1]) * n for k in range(8)]

    def write(threads, room):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        start = time.perf_counter()
        if room:
            os.posix_fallocate(fd, 0, n * frames)

        def some(k):
            for i in range(k, frames, threads):
                at, view = i * n, memoryview(data[i % len(data)])
                while view:
                    done = os.pwrite(fd, view, at)
                    at, view = at + done, view[done:]

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(some, range(threads)))
        took = time.perf_counter() - start
        os.close(fd)
        os.unlink(path)
        return 1e6 * took / frames

    us, way = min((write(threads, room), "%d threads%s" % (threads, ", room before" if room else ""))
                  for threads in (1, 2, 4, 8, 16) for room in (False, True))
    print("file %.2f %s" % (us, way))


if what == "memory":
    memory(int(sys.argv[2]), int(sys.argv[3]))
else:
    file(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
