"""copies.py - how fast this machine copies in memory, and writes one file.

    copies.py memory BYTES THREADS           prints `memory US`, for BYTES by so many threads
    copies.py file PATH BYTES FRAMES         prints `file US WAY`, for BYTES of FRAMES that lie behind each other in one file

A file is written by 1, 2, 4, 8 and 16 threads: with pwrite into a file that is empty; into one that has all its room; into such
a one past the cache (O_DIRECT), where that can be; and by a mapping. The fastest counts; lines `tried US WAY` say them all.
Exit 3 without NumPy.
"""
import ctypes, mmap, os, sys, time
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


POPULATE_WRITE = 23                            # of madvise
libc = ctypes.CDLL(None, use_errno=True)


def file(path, n, frames):
    data = [mmap.mmap(-1, n) for _ in range(16)]       # at whole pages, as O_DIRECT wants it
    for k, d in enumerate(data):
        d.write(bytes([k + 1]) * n)
    where = [ctypes.addressof(ctypes.c_char.from_buffer(d)) for d in data]

    def write(threads, way):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | (os.O_DIRECT if way == "O_DIRECT" else 0))
        start = time.perf_counter()
        if way != "pwrite":
            os.posix_fallocate(fd, 0, n * frames)
        if way == "mapped":
            room = mmap.mmap(fd, n * frames)
            at = ctypes.addressof(ctypes.c_char.from_buffer(room))

        def some(k):
            for i in range(k, frames, threads):
                if way == "mapped":
                    libc.madvise(ctypes.c_void_p(at + i * n), ctypes.c_size_t(n), POPULATE_WRITE)
                    ctypes.memmove(at + i * n, where[i % len(data)], n)
                    continue
                done = 0
                while done < n:
                    done += os.pwrite(fd, memoryview(data[i % len(data)])[done:], i * n + done)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(some, range(threads)))
        took = time.perf_counter() - start
        os.close(fd)
        os.unlink(path)
        return 1e6 * took / frames

    tried = []
    for way in "pwrite", "room before", "O_DIRECT", "mapped":
        for threads in 1, 2, 4, 8, 16:
            try:
                tried.append((write(threads, way), "%s, %d threads" % (way, threads)))
                print("tried %.2f %s" % tried[-1])
            except OSError:
                pass                           # O_DIRECT on a file system that has none
    print("file %.2f %s" % min(tried))


if what == "memory":
    memory(int(sys.argv[2]), int(sys.argv[3]))
else:
    file(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
