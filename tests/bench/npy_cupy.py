"""npy_cupy.py - frames of .npy files less a dark one, to .npy files, as one writes it with CuPy: pinned slots, a stream for each,
copies that do not block.

    npy_cupy.py GLOB DARK.npy OUT-FOLDER FRAMES numbered|joined

Files are read over and over. Prints `cupy US` for each frame. Exit 3 without CuPy, or a GPU for it.
"""
import glob, io, os, sys, time

try:
    import cupy as cp
    import numpy as np
    cp.cuda.runtime.getDeviceCount()
except Exception:
    sys.exit(3)

files, dark, out = sorted(glob.glob(sys.argv[1])), cp.asarray(np.load(sys.argv[2])), sys.argv[3]
frames, joined = int(sys.argv[4]), sys.argv[5] == "joined"
shape, HEAD = dark.shape, 128                  # bytes that np.save writes before such arrays
less = cp.ElementwiseKernel("uint16 x, float32 d", "float32 y", "y = x - d", "less_dark")


def pinned(dtype):
    n = int(np.prod(shape))
    return np.frombuffer(cp.cuda.alloc_pinned_memory(n * np.dtype(dtype).itemsize), dtype, n).reshape(shape)


def header(rows):
    f = io.BytesIO()
    np.lib.format.write_array_header_1_0(f, {"descr": "<f4", "fortran_order": False, "shape": (rows,) + shape[1:]})
    return f.getvalue()


class Slot:
    def __init__(self):
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.host_in, self.host_out = pinned(np.uint16), pinned(np.float32)
        self.dev_in, self.dev_out = cp.empty(shape, np.uint16), cp.empty(shape, np.float32)
        self.frame = None

    def begin(self, frame):
        with open(files[frame % len(files)], "rb", buffering=0) as f:
            f.seek(HEAD)
            f.readinto(memoryview(self.host_in).cast("B"))
        copy, stream = cp.cuda.runtime.memcpyAsync, self.stream
        copy(self.dev_in.data.ptr, self.host_in.ctypes.data, self.host_in.nbytes, cp.cuda.runtime.memcpyHostToDevice,
             stream.ptr)
        with stream:
            less(self.dev_in, dark, self.dev_out)
        copy(self.host_out.ctypes.data, self.dev_out.data.ptr, self.host_out.nbytes, cp.cuda.runtime.memcpyDeviceToHost,
             stream.ptr)
        self.frame = frame

    def end(self):
        if self.frame is None:
            return
        self.stream.synchronize()
        data = memoryview(self.host_out).cast("B")
        if joined:
            one.write(data)
        else:
            with open(os.path.join(out, "%05d.npy" % self.frame), "wb", buffering=0) as f:
                f.write(header(shape[0]))
                f.write(data)
        self.frame = None


slots = [Slot() for _ in range(3)]
slots[0].begin(0)                              # compiles the kernel
slots[0].stream.synchronize()
slots[0].frame = None
start = time.perf_counter()
one = open(os.path.join(out, "all.npy"), "wb", buffering=0) if joined else None
if joined:
    one.write(header(frames * shape[0]))
for i in range(frames + len(slots)):
    slots[i % len(slots)].end()
    if i < frames:
        slots[i % len(slots)].begin(i)
if joined:
    one.close()
print("cupy %.2f" % (1e6 * (time.perf_counter() - start) / frames))
