"""Frames on loan as DLPack (1.x, and what was before versions), for the host's memory and a GPU's: NumPy speaks for
host arrays that are given in."""
import ctypes
from ._declared import ffi

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# Of a capsule that is being freed, which is no object to hold any more.
_is_valid, _pointer = (ctypes.PYFUNCTYPE(r, ctypes.c_void_p, ctypes.c_char_p)((f, _api)) for r, f in (
    (ctypes.c_int, "PyCapsule_IsValid"), (ctypes.c_void_p, "PyCapsule_GetPointer")))
_names = {"DLManagedTensor": b"dltensor", "DLManagedTensorVersioned": b"dltensor_versioned"}
_codes = {"i": 0, "u": 1, "f": 2, "c": 5}              # of NumPy's kinds
CPU, CUDA = 1, 2
_lent = {}                                             # address: what has to live until its deleter is called


def _forget(managed):
    _lent.pop(int(ffi.cast("intptr_t", managed)), None)


_delete = {kind: ffi.callback(f"void({kind} *)", _forget) for kind in _names}


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _freed(capsule):                                   # nobody took what is in it
    for name in _names.values():
        if _is_valid(capsule, name):
            _lent.pop(_pointer(capsule, name), None)


def capsule(data, owner, dtype, shape, device, readonly, max_version):
    """Of the memory at `data`, packed, which `owner` keeps."""
    versioned = max_version is not None and max_version[0] >= 1
    kind = "DLManagedTensorVersioned" if versioned else "DLManagedTensor"
    m = ffi.new(kind + " *")
    sizes, strides, step = ffi.new("int64_t[]", shape), ffi.new("int64_t[]", len(shape)), 1
    for k in reversed(range(len(shape))):
        strides[k], step = step, step * shape[k]
    t = m.tensor
    t.data, t.ndim, t.shape, t.strides = data, len(shape), sizes, strides
    t.device.type, t.device.id = device
    t.dtype.code, t.dtype.bits, t.dtype.lanes = _codes[dtype.kind], 8 * dtype.itemsize, 1
    if versioned:
        m.version.major, m.version.minor, m.flags = 1, 1, readonly
    m.deleter = _delete[kind]
    at = int(ffi.cast("intptr_t", m))
    _lent[at] = m, sizes, strides, owner
    return _api.PyCapsule_New(at, _names[kind], ctypes.cast(_freed, ctypes.c_void_p))
