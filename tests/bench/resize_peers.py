"""resize_peers.py - pictures in another size as one has them made by NPP and by PyTorch.

    resize_peers.py      prints `NAME-LIBRARY US`, microseconds of device time a frame: the sum of its kernels, as CUPTI
                         has them through PyTorch's profiler. The frames are those of rows_rearrange.py.

NPP has no antialiased triangle: its bilinear takes 2 x 2 pixels. PyTorch computes in f32: pixels of u8 are cast before,
and rounded, clamped and cast behind it; the channels lie last, as in the frames. Exit 3 where a library or a GPU is
missing.
"""
import ctypes
import ctypes.util
import sys

try:
    import torch
    from device_time import us
    torch.zeros(1, device="cuda")
    npp = next(ctypes.CDLL(n) for n in ("libnppig.so.13", "/usr/local/cuda/lib64/libnppig.so.13", "libnppig.so.12"))
except Exception:
    sys.exit(3)

LINEAR, CUBIC, SUPER = 2, 4, 8


class Size(ctypes.Structure):
    _fields_ = [("width", ctypes.c_int), ("height", ctypes.c_int)]


class Rect(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_int), ("width", ctypes.c_int), ("height", ctypes.c_int)]


class Context(ctypes.Structure):
    _fields_ = [("stream", ctypes.c_void_p), ("device", ctypes.c_int), ("sms", ctypes.c_int), ("threads", ctypes.c_int),
                ("block", ctypes.c_int), ("shared", ctypes.c_size_t), ("major", ctypes.c_int), ("minor", ctypes.c_int),
                ("flags", ctypes.c_uint), ("reserved", ctypes.c_int)]


def by_npp(x, y, method):
    p = torch.cuda.get_device_properties(0)
    context = Context(torch.cuda.current_stream().cuda_stream, 0, p.multi_processor_count, 2048, 1024, 49152, p.major,
                      p.minor, 0, 0)

    def side(t):
        h, w = t.shape[:2]
        step = ctypes.c_int(t.stride(0) * t.element_size())
        return ctypes.c_void_p(t.data_ptr()), step, Size(w, h), Rect(0, 0, w, h)
    call = npp.nppiResize_8u_C3R_Ctx if x.dtype == torch.uint8 else npp.nppiResize_32f_C1R_Ctx

    def work():
        status = call(*side(x), *side(y), ctypes.c_int(method), context)
        if status:
            sys.exit("resize_peers: NPP status %d" % status)
    return work


def by_torch(x, size, mode, antialias):
    image = x.movedim(-1, 0)[None] if x.dim() == 3 else x[None, None]

    def work():
        made = torch.nn.functional.interpolate(image.float(), size, mode=mode, antialias=antialias)
        return made.round_().clamp_(0, 255).to(x.dtype) if x.dtype == torch.uint8 else made
    return work


big = torch.randint(0, 256, (8192, 10923, 3), dtype=torch.uint8, device="cuda")
small = torch.randint(0, 256, (4096, 5461, 3), dtype=torch.uint8, device="cuda")
plane = torch.rand((8192, 8192), device="cuda")
CASES = [("half-area", big, (4096, 5462), SUPER, "area", False), ("half", big, (4096, 5462), None, "bilinear", True),
         ("half-plain", big, (4096, 5462), LINEAR, "bilinear", False),
         ("double", small, (8192, 10922), LINEAR, "bilinear", False),
         ("double-cubic", small, (8192, 10922), CUBIC, "bicubic", False),
         ("half-f32", plane, (4096, 4096), None, "bilinear", True)]
for name, x, size, method, mode, antialias in CASES:
    y = torch.empty(size + x.shape[2:], dtype=x.dtype, device="cuda")
    if method is not None:
        print("%s-npp %.3f" % (name, us(by_npp(x, y, method))))
    print("%s-torch %.3f" % (name, us(by_torch(x, size, mode, antialias))))
