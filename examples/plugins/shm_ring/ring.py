"""ring.py - the other side of shm_ring.c, in Python with NumPy: a ring of frames in /dev/shm/NAME.

    for frame in Reader("camera"): ...                         frames as arrays, until the writer ends
    w = Writer("results", "f32", (480, 640)); w.write(array); w.end()

It has no fences, and so is for machines whose loads and stores stay in order, as x86_64."""
import fcntl, mmap, os, time
import numpy as np

TYPES = dict(u8="u1", i8="i1", u16="u2", i16="i2", u32="u4", i32="i4", u64="u8", i64="i8", f16="f2", f32="f4",
             f64="f8", c64="c8")
MAGIC, SLOTS_AT = int.from_bytes(b"gpring1\0", "little"), 256
HEADER = np.dtype([("magic", "u8"), ("dtype", "S8"), ("ndim", "i8"), ("dim", "i8", 8), ("slots", "u8"),
                   ("stride", "u8"), ("next", "u8"), ("ended", "u8")])
SLOT = np.dtype([("seq", "u8"), ("time_ns", "i8"), ("rows", "i8"), ("pad", "V40")])


class Ring:
    def __init__(self, fd, access):
        self.fd, self.memory = fd, mmap.mmap(fd, 0, access=access)
        self.header = np.frombuffer(self.memory, HEADER, 1).reshape(())       # not [0], which may be a copy
        h = self.header
        self.shape, self.type = tuple(h["dim"][:h["ndim"]]), np.dtype(TYPES[h["dtype"].item().decode()])
        self.slots, self.stride = int(h["slots"]), int(h["stride"])

    def slot(self, n):
        """The head of frame n's slot, and its elements."""
        at = SLOTS_AT + n % self.slots * self.stride
        data = np.frombuffer(self.memory, self.type, int(np.prod(self.shape)), at + SLOT.itemsize)
        return np.frombuffer(self.memory, SLOT, 1, at).reshape(()), data.reshape(self.shape)


class Reader(Ring):
    """Frames from the oldest on that is whole; `lost` counts those that were overwritten before they were read."""

    def __init__(self, name):
        super().__init__(os.open("/dev/shm/" + name, os.O_RDONLY), mmap.ACCESS_READ)
        self.n, self.lost = max(int(self.header["next"]) - self.slots, 0), 0
        self.n += self.n > 0 and int(self.slot(self.n)[0]["seq"]) != 2 * self.n + 2

    def __iter__(self):
        while True:
            ended, there = int(self.header["ended"]), int(self.header["next"])
            if self.n >= there:
                if ended:
                    return
                time.sleep(0.001)
                continue
            head, data = self.slot(self.n)
            before = int(head["seq"])
            frame, self.time_ns = data[:int(head["rows"])].copy(), int(head["time_ns"])
            if before == int(head["seq"]) == 2 * self.n + 2:
                self.n += 1
                yield frame
            else:
                then = max(there - self.slots // 2, self.n + 1)
                self.lost, self.n = self.lost + then - self.n, then


class Writer(Ring):
    """Goes on in a ring of such frames that is there, or makes one."""

    def __init__(self, name, dtype, shape, slots=8):
        fd = os.open("/dev/shm/" + name, os.O_RDWR | os.O_CREAT)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        stride = (SLOT.itemsize + int(np.prod(shape)) * np.dtype(TYPES[dtype]).itemsize + 255) // 256 * 256
        size = SLOTS_AT + slots * stride
        if not int.from_bytes(os.pread(fd, 8, 0), "little") and os.fstat(fd).st_size in (0, size):
            head = np.zeros(1, HEADER)
            head["dtype"], head["ndim"], head["slots"], head["stride"] = dtype.encode(), len(shape), slots, stride
            head["dim"][0, :len(shape)] = shape
            os.posix_fallocate(fd, 0, size)
            os.pwrite(fd, head.tobytes()[8:], 8)
            os.pwrite(fd, MAGIC.to_bytes(8, "little"), 0)
        super().__init__(fd, mmap.ACCESS_WRITE)
        if (self.shape, self.type, self.slots) != (tuple(shape), np.dtype(TYPES[dtype]), slots):
            raise ValueError(f"/dev/shm/{name} is no ring of such frames")
        self.header["ended"] = 0

    def write(self, array):
        n = int(self.header["next"])
        head, data = self.slot(n)
        head["seq"] = 2 * n + 1
        head["time_ns"], head["rows"] = time.time_ns(), len(array)
        data[:len(array)] = array
        head["seq"] = 2 * n + 2
        self.header["next"] = n + 1

    def end(self):
        self.header["ended"] = 1
