"""gpipe: declarative GPU pipelines.

    import gpipe, numpy

    for frame in gpipe.run("edges.yaml", vars={"sigma": 2}, frames=photos):
        print(frame.number, frame.array.mean())

`run` pushes arrays into a pipeline and gives what it makes of them. `Pipeline` is for more than that: several inputs
and outputs, threads, frames without a copy, changes while it runs. `stages` has the kinds of stages that a pipeline may
use, with their options: print(gpipe.stages()), print(gpipe.stages()["blur"]). In a shell 'gpipe help python' has the
rest, and 'gpipe help' says what else there is, as 'gpipe help yaml' on the keys of a pipeline."""
import gc, html, json, math, operator, os, select, threading, time, weakref
from typing import Any, Dict, Iterable, Iterator, List, Mapping, MutableMapping, NamedTuple, Optional, Tuple
import numpy as np
from . import _dlpack
from ._declared import ffi
from ._engine import Compiled, Error, GpipeWarning, Message, Stopped, lib, setting, version as __version__
from ._engine import kinds as _kinds, text as _text, warn as _warn

__all__ = ["Batch", "Error", "Frame", "GpipeWarning", "Input", "Kind", "Loan", "Message", "Output", "Pipeline", "Plan",
           "Report", "Stopped", "run", "stages"]

_OK, _TIMEOUT, _END, _PAUSED = (getattr(lib, "GP_LOAN_" + x) for x in ("OK", "TIMEOUT", "END", "PAUSED"))
_SLICE_NS = 100_000_000                                # no wait is longer, so that Ctrl-C is seen
_DTYPES = [None, *map(np.dtype, "u1 i1 u2 i2 u4 i4 u8 i8 f2 f4 f8 c8".split())]
_NAMES = "", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "c64"


def _shape(t):
    return tuple(t.dim[0:t.ndim])


def _whole(time_ns):
    try:
        return ffi.new("int64_t *", operator.index(time_ns))[0]
    except TypeError:
        raise TypeError(f"time_ns is a whole number of ns, not {type(time_ns).__name__}") from None


def _is_exact(n):
    try:
        return int(float(n)) == n
    except OverflowError:
        return False


def _stalled(words):
    return Error([Message("error", "stall", words, None, None, None, (), "gpipe: error: " + words)])


def _items(what, given, such):
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} is a mapping, as {such}, not {type(given).__name__}")
    return given.items()


class _Named(dict):
    """Ports by the names of their stages."""

    def __missing__(self, name):
        raise KeyError(f"no such stage {name!r}: there " + (f"is {', '.join(map(repr, self))}" if self else "is none"))


class Frame:
    """A frame that was pulled: `array` is a copy, which is the caller's."""
    __slots__ = "number", "time_ns", "name", "meta", "array"
    number: int                                        # counted by its source, from 0
    time_ns: int                                       # when it came, as time.time_ns() counts
    name: Optional[str]                                # as of a file; else None
    meta: Dict[str, float]                             # what the pipeline lists under `metadata`
    array: np.ndarray

    def __init__(self, number, time_ns, name, meta, array):
        self.number, self.time_ns, self.name, self.meta, self.array = number, time_ns, name, meta, array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype) if copy else np.asarray(self.array, dtype)

    def __repr__(self):
        name, meta = self.name and f" {self.name!r}", self.meta and f", meta {self.meta}"
        return (f"<gpipe.Frame {self.number}{name or ''}: {self.array.dtype} {list(self.array.shape)}, "
                f"time_ns {self.time_ns}{meta or ''}>")


class Batch(NamedTuple):
    """Frames of one shape: `array` has them along its first axis; `numbers` are theirs."""
    array: np.ndarray
    numbers: np.ndarray


class Plan:
    """What a pipeline becomes: text for print(), a drawing in a notebook where Graphviz is there."""

    def __init__(self, compiled):
        self._compiled = compiled
        self.text: str = compiled.plan(lib.GP_PLAN_TEXT)

    def __str__(self):
        return self.text

    __repr__ = __str__

    def json(self) -> str:
        return self._compiled.plan(lib.GP_PLAN_JSON)

    def svg(self) -> str:
        """The drawing. An Error where there is no Graphviz."""
        return self._compiled.plan(lib.GP_PLAN_SVG)

    def _repr_svg_(self):
        try:
            return self.svg()
        except Error:
            return None


class Report(Dict[str, Any]):
    """Where the time of a run went: a dict, as 'gpipe run --report' writes it. str() is the table of its stages and the
    verdict; a notebook shows these above the plan, which is colored by how busy all was, where Graphviz is there."""

    def __init__(self, compiled, outcome):
        self._compiled, self._json = compiled, compiled.report(outcome, lib.GP_REPORT_JSON)
        self.text: str = compiled.report(outcome, lib.GP_REPORT_TEXT)
        super().__init__(json.loads(self._json))

    def __str__(self):
        return self.text

    def svg(self) -> str:
        """The plan, colored. An Error where there is no Graphviz."""
        return self._compiled.plan(lib.GP_PLAN_SVG, self._json)

    def _repr_html_(self):
        drawing = ""
        try:
            drawing = self.svg()
        except Error:
            pass
        return f"<pre>{html.escape(self.text)}</pre>{drawing[max(drawing.find('<svg'), 0):]}"

    def __reduce__(self):                              # what is elsewhere is its numbers
        return dict, (dict(self),)


class Kind:
    """A kind of stages, as `use` of a pipeline names it. str() is its page, as 'gpipe stages NAME' prints it."""
    name: str
    help: str
    field: str                                         # as "signals"
    on: List[str]                                      # where it can run: "device" (a GPU, or the CPU as one), "host"
    inputs: Dict[str, Dict[str, Any]]                  # by their names; "*": any number. Each: help, types, optional
    outputs: Dict[str, Dict[str, Any]]
    options: Dict[str, Dict[str, Any]]                 # help, type, default, required, choices, unit, min, max
    plugin: Optional[Dict[str, str]]                   # that it is of: name, version, file

    def __init__(self, said):
        self.name, self.help, self.field, self.on = (said[k] for k in ("name", "help", "field", "on"))
        self.inputs, self.outputs, self.options = (
            {x["name"]: {k: v for k, v in x.items() if k != "name" and v is not None} for x in said[part]}
            for part in ("in", "out", "options"))
        self.plugin = said.get("plugin")

    def __str__(self):
        return _kinds(self.name)

    def __repr__(self):
        return f"<gpipe.Kind {self.name}: {self.help}>"


class _Kinds(dict):
    def __str__(self):
        return _kinds()

    def __missing__(self, name):
        try:
            _kinds(name)
        except Error as e:
            raise KeyError("; ".join((e.text, *e.messages[0].notes))) from None


def stages() -> Mapping[str, Kind]:
    """All kinds of stages that a pipeline may use, by their names, with those of plug-ins. print(gpipe.stages()) lists
    them by field, print(gpipe.stages()["blur"]) is the page of one: its ports, and its options with their types and
    defaults."""
    return _Kinds((k["name"], Kind(k)) for k in json.loads(_kinds(form=lib.GP_KINDS_JSON)))


class Loan:
    """A slot of the pipeline's memory: nothing is copied. It ends with its `with` block, or by end(), or with its run;
    what is left of it then raises.

    `array` is a NumPy array of it, read-only at an output. With `memory: device` of the stage the slot is in the
    memory of the GPU, and torch.from_dlpack(loan) or cupy.from_dlpack(loan) are what uses it. A loan cannot end while
    such an array is there: 'del' it, or copy it, then call end()."""

    def __init__(self, port, c):
        self._port, self._c, self._kept, self._stream, self._how = port, c, None, None, ""
        self.number, self.time_ns, self.name = c.index, c.time_ns, _text(c.name)

    def _lent(self):
        if self._c is None:
            raise ValueError(f"frame {self.number} of '{self._port.name}' has ended{self._how}")
        return self._c

    def _written(self):
        if not self._port._writes:
            raise TypeError(f"frames of '{self._port.name}' are read-only")
        return self._lent()

    @property
    def dtype(self) -> np.dtype:
        return _DTYPES[self._lent().view.type.dtype]

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of an input it may be set, before an array is made: fewer rows, or sizes within the bounds that the file
        declares."""
        return _shape(self._lent().view.type)

    @shape.setter
    def shape(self, shape):
        c, shape = self._written(), tuple(map(int, shape))
        self._port._fits(shape)
        if self._in_use():
            raise BufferError("an array has the shape from before: set it first")
        for k, n in enumerate(shape):
            c.view.type.dim[k] = n

    def _memory(self):
        """What arrays keep, and by which it is known that there are some."""
        c = self._lent()
        kept = self._kept and self._kept()
        if kept is None:
            n = self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
            kept = ffi.buffer(ffi.cast("char *", c.view.data), n) if c.device < 0 else _Kept()
            self._kept = weakref.ref(kept)
        return kept

    def _in_use(self):
        if self._kept and self._kept() is not None:
            gc.collect()                               # it may wait for that alone
        return self._kept and self._kept()

    @property
    def array(self) -> np.ndarray:
        if self._lent().device >= 0:
            raise TypeError(f"frames of '{self._port.name}' are in the memory of a GPU: use torch.from_dlpack(loan), "
                            "or cupy.from_dlpack(loan)")
        memory = self._memory()
        return np.ndarray(self.shape, self.dtype, memory if self._port._writes else memoryview(memory).toreadonly())

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype) if copy else np.asarray(self.array, dtype)

    def __dlpack_device__(self):
        device = self._lent().device
        return (_dlpack.CPU, 0) if device < 0 else (_dlpack.CUDA, device)

    def __dlpack__(self, *, stream: Optional[int] = None, max_version=None, dl_device=None, copy=None):
        """What DLPack's consumers call. The stream that they name is that whose work, queued before the loan ends,
        gpipe waits for."""
        c = self._lent()
        if (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()) or copy:
            raise BufferError("a loan stays where it is: copy the array that is made of it")
        if c.device >= 0 and stream != -1:
            # 1 and None: the legacy default stream; 2: each thread's own; others are addresses
            stream = 0 if stream in (None, 0, 1) else stream
            if self._stream not in (None, stream):
                raise BufferError("another stream uses this frame: a loan has one stream")
            self._stream, c.stream = stream, ffi.cast("void *", stream)
        return _dlpack.capsule(c.view.data, self._memory(), self.dtype, self.shape, self.__dlpack_device__(),
                               not self._port._writes, max_version)

    @property
    def meta(self) -> MutableMapping[str, float]:
        """What the pipeline lists under `metadata`; of an input it can be written."""
        return _Meta(self)

    @meta.setter
    def meta(self, numbers: Mapping[str, Optional[float]]):
        c, numbers = self._written(), self._port._numbers(numbers)
        self._port._set_meta(c, {**dict.fromkeys(self._port._pipeline._plan.keys), **numbers})

    def end(self) -> None:
        """Hands the frame on, or gives it back. BufferError: an array still uses it."""
        self._end(False)

    def drop(self) -> None:
        """Of an input: the frame is not to be. It keeps its number, and counts as dropped."""
        self._end(True)

    def _end(self, drop):
        c = self._lent()
        if self._in_use():
            raise BufferError(f"an array still uses frame {self.number} of '{self._port.name}', which has not ended: "
                              "'del' the array, or copy it, then call end()")
        if self._port._writes and not drop:
            c.time_ns, c.name = _whole(self.time_ns), self._port._pipeline._name(self.name)
        self._c = None
        self._port._pipeline._open.discard(self)
        self._port._give_back(c, drop)

    def _end_with_run(self):
        """What arrays still use is written no more, as the run was cancelled (gp_pull_end): they keep its memory."""
        kept, self._how = self._in_use(), " with its run"
        if kept:
            weakref.finalize(kept, id, self._port._pipeline._plan).atexit = False
            self._port._give_back(self._c, self._port._writes)
            self._c = None
        elif self._c is not None:
            self._end(self._port._writes)

    def __enter__(self) -> "Loan":
        self._lent()
        return self

    def __exit__(self, kind, error, where):
        if self._c is None:
            return
        if kind is None:
            self._end(False)
        elif not self._in_use():                       # else what went wrong holds it, until the run is over
            self._end(self._port._writes)

    def __repr__(self):
        return f"<gpipe.Loan {self.number} of '{self._port.name}'" + (", ended>" if self._c is None else
                                                                     f": {self.dtype} {list(self.shape)}>")


class _Kept:
    __slots__ = "__weakref__",


class _Meta(MutableMapping):
    """The numbers of a frame on loan, where they are."""

    def __init__(self, loan):
        self._loan = loan

    def _all(self):
        return self._loan._port._meta_of(self._loan._lent())

    def __getitem__(self, key):
        return self._all()[key]

    def __setitem__(self, key, value):
        port, c = self._loan._port, self._loan._written()
        port._set_meta(c, port._numbers({key: value}))

    def __delitem__(self, key):
        self[key]
        self[key] = None

    def __iter__(self):
        return iter(self._all())

    def __len__(self):
        return len(self._all())

    def __repr__(self):
        return repr(self._all())


class _Port:
    _writes = _ended = False
    _thread: Optional[threading.Thread] = None         # that asked for a frame last

    def __init__(self, pipeline, name):
        self._pipeline, self.name = pipeline, name
        t, varies = ffi.new("gp_type *"), ffi.new("unsigned *")
        self._find(pipeline._plan)
        (lib.gp_input_type if self._writes else lib.gp_output_type)(self._c, t, varies)
        self._type, self._varies = t, varies[0]
        self.dtype: np.dtype = _DTYPES[t.dtype]
        self.shape: Tuple[int, ...] = _shape(t)        # at most

    def _find(self, compiled):
        find = lib.gp_pipeline_input if self._writes else lib.gp_pipeline_output
        self._c = find(compiled.c, self.name.encode())

    def _wait(self, call, timeout):
        """call(port, ns) until it is done: True. False: time is up. None: there will be no more."""
        p, self._thread = self._pipeline, threading.current_thread()
        p._is_on(self.name)
        end, since = None if timeout is None else time.monotonic() + timeout, None
        while True:
            at = p._at
            left = None if end is None else int(1e9 * (end - time.monotonic()))
            status = call(self._c, lib.GP_LOAN_SLICE if left is None else max(0, min(left, _SLICE_NS)))
            if status == _OK:
                return True
            p._warn_held_up()
            since = status == _PAUSED and (since or time.monotonic())
            if since:
                p._is_held_up(since)
            if status != _TIMEOUT and not p._moves(at, status == _PAUSED):
                self._ended = True
                return None
            if left is not None and left <= _SLICE_NS:
                return False

    def _begin(self, c, timeout):
        """As _wait. What is held in *c is given back whatever is raised, as by Ctrl-C: see _drop()."""
        begin = lib.gp_push_begin if self._writes else lib.gp_pull_begin
        return self._wait(lambda port, ns: begin(port, c, ns), timeout)

    def _drop(self, c):
        if c.held:
            self._give_back(c, True)

    def _late(self, timeout):
        p = self._pipeline
        out = sorted(loan.number for loan in list(p._open) if loan._port is self)
        full = bool(out) and len(out) >= p._plan.workers(self.name)
        return TimeoutError(f"'{self.name}' has " + ("no room" if self._writes else "no frame") + f" after {timeout} s"
                            + full * (f": the program itself has frame {', '.join(map(str, out))} of it, and the stage "
                                      f"lends {len(out)} at a time (workers: {len(out)})"))

    def _lend(self, timeout):
        c = ffi.new("gp_loan *")
        try:
            ok = self._begin(c, timeout)
            if ok:
                loan = Loan(self, c)
                self._pipeline._open.add(loan)
                return loan
        except BaseException:
            self._drop(c)
            raise
        if ok is None:
            return self._over()
        raise self._late(timeout)

    def _host(self, c):
        if c.device >= 0:
            raise TypeError(f"frames of '{self.name}' are in the memory of a GPU: use begin()")

    def _meta_of(self, c):
        value, out = ffi.new("double *"), {}
        for key in self._pipeline._plan.keys:
            if lib.gp_loan_get(c, key.encode(), value):
                out[key] = value[0]
        return out

    def _numbers(self, meta):
        """As _set_meta takes them. None as a value: the frame has no such number."""
        out, keys = {}, self._pipeline._plan.keys
        for key, value in _items("meta", meta, {"gain": 2}):
            if key not in keys:
                raise ValueError(f"the pipeline does not list {key!r} under 'metadata'"
                                 + (f": it has {', '.join(map(repr, keys))}" if keys else ""))
            if value is not None and (isinstance(value, (str, bytes)) or not hasattr(value, "__float__")):
                raise TypeError(f"'{key}' of meta is a number, or None, not {type(value).__name__}")
            if isinstance(value, (int, np.integer)) and not _is_exact(int(value)):
                raise ValueError(f"'{key}' of meta is a whole number that f64 does not hold exactly")
            out[key] = None if value is None else float(value)
            if value is not None and not math.isfinite(out[key]):
                raise ValueError(f"'{key}' of meta is {value}, which is not finite")
        return out

    def _set_meta(self, c, numbers):
        for key, value in numbers.items():
            lib.gp_loan_set(c, key.encode(), ffi.NULL if value is None else ffi.new("double *", value))

    def _give_back(self, c, drop):
        if not self._writes:
            lib.gp_pull_end(self._c, c)
        elif not (lib.gp_push_drop if drop else lib.gp_push_end)(self._c, c) and not drop:
            raise ValueError(f"'{self.name}': the frame cannot be what its shape says, and failed")

    def __repr__(self):
        return f"<gpipe.{type(self).__name__} '{self.name}': {self.dtype} {list(self.shape)}>"


class Input(_Port):
    """A stage `input`. What pushes waits for room, at most `timeout` seconds (TimeoutError), and raises Stopped where
    nobody takes frames any more. Any thread may push."""
    _writes = True
    _closed = False

    def begin(self, timeout: Optional[float] = None) -> Loan:
        """Lends the next slot, to be written without a copy. Frames have the order in which their loans began."""
        return self._lend(timeout)

    def _over(self):
        if self._closed:
            raise ValueError(f"'{self.name}' is closed: nothing can be pushed after that")
        raise Stopped()

    def _fits(self, shape):
        if len(shape) != len(self.shape) or any(n > m or (k and (n < m and not self._varies & 1 << k or not n))
                                                for k, (n, m) in enumerate(zip(shape, self.shape))):
            bounds = ["<=" * bool(self._varies & 1 << k) + str(m) for k, m in enumerate(self.shape)]
            raise ValueError(f"'{self.name}' takes frames of shape [{', '.join(bounds)}], not {list(shape)}"
                             + ("; several frames are pushed by push_batch()" if shape[1:] == self.shape else ""))

    def _array(self, a):
        """Anything that NumPy takes as it is, or DLPack has for the host, in this port's type."""
        given = a
        if not isinstance(a, np.ndarray):
            if hasattr(a, "__dlpack_device__") and a.__dlpack_device__()[0] == _dlpack.CUDA:
                raise TypeError(f"'{self.name}' takes arrays in the host's memory, and this one is on GPU "
                                f"{a.__dlpack_device__()[1]}: push a.cpu() (PyTorch), a.get() (CuPy) or numpy.asarray(a), "
                                "or copy it into a slot of a stage with 'memory: device', which begin() lends")
            known = hasattr(a, "__array__") or hasattr(a, "__array_interface__")
            a = np.from_dlpack(a) if not known and hasattr(a, "__dlpack__") else np.asarray(a)
        if np.ma.is_masked(given):
            raise TypeError(f"'{self.name}' takes no masked values: push a.filled(VALUE)")
        if a.dtype == bool and self.dtype == np.uint8:
            a = a.view(np.uint8)
        if not np.can_cast(a.dtype, self.dtype, "equiv"):
            how = f"a.astype('{self.dtype}')" if hasattr(given, "astype") else f"numpy.asarray(a, '{self.dtype}')"
            raise TypeError(f"'{self.name}' takes {_NAMES[self._type.dtype]} ({self.dtype}), not {a.dtype}"
                            + f": push {how}" * (a.dtype.kind in "biufc"))
        return a

    def _put(self, c, a):
        room = ffi.cast("char *", c.view.data)
        for k, n in enumerate(a.shape):
            c.view.type.dim[k] = n
        if a.dtype == self.dtype and a.flags.c_contiguous and a.nbytes < 1 << 18:
            ffi.memmove(room, a, a.nbytes)
        else:                                          # without the GIL
            np.copyto(np.ndarray(a.shape, self.dtype, ffi.buffer(room, a.nbytes)), a, "equiv")

    def _push(self, a, timeout, name=None, time_ns=0, meta=None):
        """As _wait. None as `a` is a hole. What is wrong is found before the frame has a number."""
        c, time_ns = ffi.new("gp_loan *"), _whole(time_ns)
        name, meta = self._pipeline._name(name), self._numbers(meta or {})
        try:
            ok = self._begin(c, timeout)
            if ok:
                self._host(c)
                if a is not None:
                    self._put(c, a)
                self._set_meta(c, meta)
                c.name, c.time_ns = name, time_ns
                self._give_back(c, a is None)
            return ok
        except BaseException:
            self._drop(c)
            raise

    def _checked(self, a):
        if a is not None:
            a = self._array(a)
            self._fits(a.shape)
        return a

    def push(self, array: Any, *, name: Optional[str] = None, time_ns: int = 0,
             meta: Optional[Mapping[str, Optional[float]]] = None, timeout: Optional[float] = None) -> None:
        """Pushes a copy: of a NumPy array, of what has the buffer protocol, or DLPack in the host's memory (PyTorch,
        JAX). It need not be contiguous, nor of this machine's byte order; another type or shape is an error. None is a
        hole: a frame that was lost, whose number stays. time_ns: when it came; 0: now. A frame that is refused has no
        number."""
        ok = self._push(self._checked(array), timeout, name, time_ns, meta)
        if ok is None:
            self._over()
        if not ok:
            raise self._late(timeout)

    def push_batch(self, arrays: Any, *, timeout: Optional[float] = None) -> None:
        """Pushes arrays[0], arrays[1], ...: for small frames, with one call for all. `timeout` is for each; the error
        says how many were pushed."""
        a = np.asarray(self._array(arrays), self.dtype, "C")
        if a.ndim == 0:
            raise ValueError("a batch has frames along its first axis")
        self._fits(a.shape[1:])
        f, done, failed = ffi.new("gp_frames *"), ffi.new("int64_t *"), ffi.new("bool *")
        f.type.dtype, f.type.ndim, size, at = self._type.dtype, a.ndim - 1, a.nbytes // max(len(a), 1), 0
        for k, n in enumerate(a.shape[1:]):
            f.type.dim[k] = n
        data = ffi.from_buffer(a)
        while at < len(a):
            def call(port, ns):
                nonlocal at
                f.n, f.data = len(a) - at, data + at * size
                status = lib.gp_push_frames(port, f, ns, done, failed)
                at += done[0]
                return status
            ok = self._wait(call, timeout)
            if failed[0]:
                raise ValueError(f"'{self.name}': frame {at - 1} of the batch cannot be what its shape says, and "
                                 "failed")
            if ok is None:
                self._over()
            if not ok:
                raise TimeoutError(f"'{self.name}' has no room after {timeout} s: {at} of {len(a)} frames were pushed")

    def close(self) -> None:
        """There are no more frames: what was pushed comes out, then the outputs end."""
        self._closed = True
        self._close()

    def _close(self):
        with self._pipeline._lock:                     # else the run may go on under another plan meanwhile
            lib.gp_push_close(self._c)


class Output(_Port):
    """A stage `output`: iterate over it, or pull(). What pulls waits for a frame, at most `timeout` seconds
    (TimeoutError); None: there are no more."""
    _rest: Optional[Tuple[np.ndarray, np.ndarray, np.ndarray]] = None

    def begin(self, timeout: Optional[float] = None) -> Optional[Loan]:
        """Lends the next frame, to be read without a copy."""
        if self._rest:
            raise RuntimeError(f"frames of a batch of '{self.name}' are left: pull_batch() has them")
        return self._lend(timeout)

    def _over(self):
        return None

    def _pull(self, timeout):
        if self._rest:
            raise RuntimeError(f"frames of a batch of '{self.name}' are left: pull_batch() has them")
        c = ffi.new("gp_loan *")
        try:
            ok = self._begin(c, timeout)
            if not ok:
                return ok
            self._host(c)
            a = np.empty(_shape(c.view.type), self.dtype)
            data = ffi.cast("char *", c.view.data)
            if a.nbytes < 1 << 18:
                ffi.memmove(a, data, a.nbytes)
            else:                                      # without the GIL
                np.copyto(a, np.ndarray(a.shape, self.dtype, ffi.buffer(data, a.nbytes)))
            meta = self._meta_of(c) if self._pipeline._plan.keys else {}
            return Frame(c.index, c.time_ns, _text(c.name), meta, a)
        finally:
            self._drop(c)

    def pull(self, timeout: Optional[float] = None) -> Optional[Frame]:
        """The next frame, as a copy; holes are left out. None: there are no more. A run that failed raises at the end
        of its 'with' block."""
        frame = self._pull(timeout)
        if frame is False:
            raise self._late(timeout)
        return frame

    def __iter__(self) -> Iterator[Frame]:
        self._pipeline._is_on(self.name)
        run = self._pipeline._thread
        return iter(lambda: self._pull_of(run), None)

    def _pull_of(self, run):
        """As pull(). Of a run that is over there are no more: its block may end before a thread asks again."""
        try:
            return self.pull() if self._pipeline._thread is run else None
        except RuntimeError:
            if self._pipeline._thread is run:
                raise
            return None

    def pull_batch(self, n: int, *, timeout: Optional[float] = None) -> Optional[Batch]:
        """The next n frames, by one call, without their names, times and metadata: fewer at the end, after `timeout`
        seconds for one of them, and where their shape changes. None: there are no more. For one thread at a time."""
        if n < 1:
            raise ValueError(f"a batch has one frame at least, not {n}")
        if self._rest is None:
            self._rest = self._pull_batch(n, timeout)
        if self._rest is None:
            return None
        data, number, each = self._rest
        same = (each == each[0]).all(1)
        k = min(n, len(same) if same.all() else int(same.argmin()))
        self._rest = (data[k:], number[k:], each[k:]) if k < len(number) else None
        t = ffi.cast("gp_type *", ffi.from_buffer(each))
        shape = _shape(t)
        used = int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize
        a = data[:k] if used == data.shape[1] else np.ascontiguousarray(data[:k, :used])
        return Batch(a.view(self.dtype).reshape((k, *shape)), number[:k])

    def _pull_batch(self, n, timeout):
        size = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        data, number, at = np.empty((n, size), np.uint8), np.empty(n, np.uint64), 0
        each = np.empty((n, ffi.sizeof("gp_type")), np.uint8)
        f, done = ffi.new("gp_frames *"), ffi.new("int64_t *")
        f.type = self._type[0]
        base = [ffi.from_buffer(x) for x in (data, each, number)]

        def call(port, ns):
            nonlocal at
            f.n, f.data = n - at, base[0] + at * size
            f.each = ffi.cast("gp_type *", base[1]) + at
            f.number = ffi.cast("uint64_t *", base[2]) + at
            status = lib.gp_pull_frames(port, f, ns, done)
            at += done[0]
            return status

        ok = self._wait(call, timeout)
        if not at and ok is False:
            raise self._late(timeout)
        return (data[:at], number[:at], each[:at]) if at else None


class Pipeline:
    """A pipeline, compiled: an Error says all that is wrong with it. It runs inside of 'with', once or several times:

        with gpipe.Pipeline("camera.yaml", vars={"sigma": 2}) as p:
            p.inputs["camera"].push(picture)
            p.inputs["camera"].close()
            for frame in p.outputs["edges"]:
                print(frame.array.mean())

    vars, settings: as {"sigma": 2} and {"depth": 8, "stages.blur.workers": 2}, in place of what the file says. text:
    of the pipeline, in place of a file; paths in it are relative to the current folder. measure: times are taken, for
    report(). check_finite: a frame with a NaN or an infinite element fails in the stage that made it, and the Error names
    the stage, the frame and the element; each frame is looked at, which takes time.

    A block that is left early, by 'break', an exception or Ctrl-C, stops the sources; what they have made goes through
    the pipeline, and what then comes out of outputs is thrown away, unless another thread pulls it."""

    def __init__(self, file: Any = None, *, text: Optional[str] = None, vars: Optional[Mapping[str, Any]] = None,
                 settings: Optional[Mapping[str, Any]] = None, measure: bool = False, check_finite: bool = False):
        if (file is None) == (text is None):
            raise TypeError("name a file, or give the text of a pipeline: text=...")
        self._file = "pipeline" if file is None else file
        if isinstance(file, str) and "\n" in file:
            raise TypeError("a file is named, and this is a text: give it as text=...")
        if file is not None:
            with open(file, "rb") as f:
                source = f.read()
        else:
            source = text.encode()
        vars, settings = _items("vars", vars or {}, {"sigma": 2}), _items("settings", settings or {}, {"depth": 8})
        self._plan = Compiled(source, self._file, [setting("vars." + k, v) for k, v in vars]
                              + [setting(k, v) for k, v in settings])
        _warn(self._plan.warnings)                     # compiled, it has no errors
        ref = weakref.ref(self)
        self._held_up = ffi.callback("void(void *, bool, gp_errs *)", lambda _, ends, who: ref()._note_held_up(who))
        self._options = ffi.new("gp_run_options *", {"timed": measure, "stamped": measure, "check_finite": check_finite,
                                                        "held_up": self._held_up})
        self._names, self._open, self._lock = {}, set(), threading.Condition()
        self._thread = self._next = self._outcome = None
        self._retuned = threading.Event()              # Ctrl-C in join() has CPython 3.11 take a thread for ended
        self._retuned.set()
        self._at, self._firm, self._stopping, self._setting = 0, True, 0, threading.Lock()
        self.inputs: Dict[str, Input] = _Named()
        self.outputs: Dict[str, Output] = _Named()
        for name, source in self._plan.on_loan():
            (self.inputs if source else self.outputs)[name] = (Input if source else Output)(self, name)

    def __repr__(self):
        names = (", ".join(map(repr, ports)) or "none" for ports in (self.inputs, self.outputs))
        return "<gpipe.Pipeline %s: inputs %s, outputs %s>" % (os.fspath(self._file), *names)

    # -- what it is --

    def check(self) -> List[Message]:
        """Warnings, also of what is valid and will be slow, as 'gpipe check' has them."""
        return self._plan.warnings + self._plan.lint()

    def plan(self) -> Plan:
        """What will be done: stages, copies, launches, memory."""
        return Plan(self._plan)

    def account(self) -> Dict[str, Dict[str, int]]:
        """Of each source: frames that went in, came out, were dropped (of these, late, lost, or for lack of room: see
        when_full), failed, or cancelled. While it runs, those that are under way count as cancelled."""
        return self._plan.accounts()

    def report(self) -> Report:
        """After a run with measure=True: where the time went, and the verdict."""
        if self._thread or self._outcome is None:
            raise RuntimeError("a report is of a run that is over")
        if not self._options.timed:
            raise RuntimeError("the run took no times for a report: gpipe.Pipeline(..., measure=True) has it take them")
        return Report(self._plan, self._outcome)

    # -- a run --

    def __enter__(self) -> "Pipeline":
        if self._thread and self._thread.is_alive():
            raise RuntimeError("this pipeline runs already")
        self._stopping, self._firm = 0, True
        if self._outcome is not None:                  # what it reads may have changed, and nobody has cancelled it
            self._adopt(Compiled(self._plan.source, self._file, self._plan.settings))
        self._at, self._outcome, self._over, self._told, self._held, self._next = 0, None, False, [], [], None
        self._errs, self._names, self._drained = self._plan.errs(), {}, ffi.new("gp_loan *")
        for port in self._ports():
            port._closed = port._ended = False
            port._rest = port._thread = None
        self._thread = threading.Thread(target=self._main, name="gpipe", daemon=True)
        self._thread.start()
        return self

    def _main(self):
        outcome = lib.GP_ERROR
        try:
            outcome = self._goes_on()
        finally:
            with self._lock:
                self._outcome, self._over = outcome, True
                self._lock.notify_all()

    def _goes_on(self):
        outcome = lib.gp_pipeline_run(self._plan.c, self._options, self._errs.c)
        while outcome == lib.GP_PAUSED:
            was, next = self._plan, self._next
            next.keep(was)
            self._adopt(next, firm=False)
            errs = next.errs()
            outcome = lib.gp_pipeline_go_on(next.c, was.c, self._options, errs.c)
            if outcome == lib.GP_ERROR and lib.gp_pipeline_is_paused(was.c):
                self._told += [f"a change did not happen, and the run went on as it was: {m}" for m in errs.messages()]
                self._adopt(was)
                outcome = lib.gp_pipeline_go_on(was.c, was.c, self._options, self._errs.c)
            else:
                self._told += [m for m in self._errs.messages() if m.kind == "warning"]
                self._errs = errs
        if outcome == lib.GP_STUCK:
            self._plan.leave(self._names)
        return outcome

    def _ports(self):
        return [*self.inputs.values(), *self.outputs.values()]

    def _adopt(self, compiled, firm=True):
        """From now on this is what runs, or (not `firm`) may turn out not to."""
        with self._lock:
            self._plan, self._next, self._firm = compiled, None, firm
            for port in self._ports():
                port._find(compiled)
            if self._stopping:
                lib.gp_cancel(compiled.c, self._stopping)
            self._at += 1
            self._lock.notify_all()

    def _moves(self, at, paused):
        """An endpoint has no frames, since the run is `paused` or at its end: is it to be asked again? `at`: how often
        the run had gone on when it was asked."""
        with self._lock:
            last = not paused and (self._firm or lib.gp_pipeline_paused_ns(self._plan.c, ffi.NULL) > 0)
            if at == self._at and not last and not self._over:
                self._lock.wait(0.1)
            return at != self._at or not (last or self._over)

    def _is_held_up(self, since):
        """A change waits for loans. No thread of the run is at work, so that nothing else says so."""
        loans = list(self._open) if self._next else []
        if loans and time.monotonic() - since > self._plan.stall_seconds():
            raise _stalled("the change by set() waits for loans to end, and this call waits for the change: the "
                           f"program has {', '.join(map(repr, loans))}")

    def _is_on(self, name):
        if not self._thread:
            raise RuntimeError(f"'{name}': the pipeline does not run; it does inside of 'with pipeline:'")

    def _name(self, name):
        """The engine has it until the run is over."""
        if name is None:
            return ffi.NULL
        if not isinstance(name, str):
            raise TypeError(f"name is a text, not {type(name).__name__}")
        if "\0" in name:
            raise ValueError("a name cannot hold the character '\\0'")
        return self._names.setdefault(name, ffi.new("char[]", os.fsencode(name)))

    def cancel(self) -> None:
        """Sources stop, what they have made goes through; then the outputs end. Any thread."""
        self._cancel(1)

    def _cancel(self, level):
        with self._lock:
            self._stopping = max(level, self._stopping)
            if self._thread and not self._over:
                lib.gp_cancel(self._plan.c, self._stopping)

    def set(self, settings: Mapping[str, Any]) -> None:
        """Changes settings, as set({"depth": 8, "vars.sigma": 3, "stages.blur.workers": 2}), before a run or while it
        goes on. An Error: it cannot be changed, and nothing is. What is pushed after it has returned is made with the
        new settings, as is what still waits in buffers then. A change does not happen before all loans have ended,
        whoever has them, and what waits in buffers that become shallower has been pulled: a thread that holds a frame
        ends its loan before it pushes or pulls the next one."""
        with self._setting:
            self._settled()
            self._set([setting(k, v) for k, v in _items("settings", settings, {"depth": 8})])

    def _set(self, more):
        was = self._plan
        next = Compiled(was.source, self._file, was.settings + more)
        _warn(next.warnings)
        if not self._thread:
            self._adopt(next)
            return
        if not lib.gp_pipeline_changes(next.c, was.c, ffi.new("char[]", 8), 8):
            return
        for port in self._ports():
            (lib.gp_pipeline_input if port._writes else lib.gp_pipeline_output)(next.c, port.name.encode())
        errs, ready, done, went = next.errs(), threading.Event(), threading.Event(), []
        pause = ffi.callback("gp_pause *", lambda _: (ready.set(), True)[1])
        options = ffi.new("gp_run_options *", self._options[0])
        options.pause = pause

        def retune():
            next.keep(was, pause, options)
            went.append(lib.gp_pipeline_retune(next.c, was.c, options, errs.c))
            with self._lock:
                if not went[0] and self._next is next:
                    self._next = None
                self._lock.notify_all()
            ready.set()
            done.set()

        self._next, self._retuned = next, done
        threading.Thread(target=retune, name="gpipe set", daemon=True).start()
        ready.wait()
        shallower = any(a < b for a, b in zip(next.depths(), was.depths()))
        while not went:
            done.wait(0.01)
            if shallower and was.has_frames():         # this thread may have to pull them first
                break
        if went and not went[0]:
            errs.raise_if(errs.c.failed)
            raise Stopped()

    def _settled(self):
        """The run is up, and the change before has happened, or will not; or it is over."""
        end = time.monotonic() + 10
        with self._lock:
            while self._thread and not self._over and (self._next or not self._plan.is_up()):
                if self._next and time.monotonic() > end:
                    raise TimeoutError("the change before has not happened yet: it waits for loans to end, or for "
                                       "outputs to be pulled")
                self._lock.wait(0.001)
        self._retuned.wait()

    def __exit__(self, kind, error, where):
        level, interrupted = int(kind is not None), None
        while True:
            try:
                kept = self._finish(level)
                break
            except KeyboardInterrupt as e:
                interrupted, level = e, level + 1
                if level > 2:
                    raise
        self._thread = None
        if interrupted:
            raise interrupted
        messages = self._errs.messages()
        if self._outcome == lib.GP_STUCK:
            messages += _stalled("a thread of the run did not come back, and is abandoned").messages
        if self._outcome in (lib.GP_ERROR, lib.GP_STUCK) and (kind is None or issubclass(kind, Exception)):
            raise Error(messages) from error
        if kept and kind is None:
            raise BufferError(f"arrays still use frames of the run, which was broken off: {', '.join(kept)}: 'del' "
                              "them, or copy them, and end the loans")
        _warn(self._told + [m for m in messages if m.kind == "warning"])

    def _note_held_up(self, who):
        self._held += self._plan.errs(who).messages()

    def _warn_held_up(self):
        if not self._held:
            return
        held, self._held = self._held, []
        try:
            _warn(held)
        except GpipeWarning:                           # the program has warnings raised: once the run is over
            self._told += held

    def _finish(self, level):
        c, loans = self._drained, list(self._open)
        for port in self.inputs.values():
            port._close()
        kept = [repr(loan) for loan in loans if loan._in_use()]
        if kept:
            level = 2                                  # so that nobody writes what is in them
        elif self._left_over(0):
            level = max(level, 1)
        if level:
            self._cancel(level)
        for loan in loans:
            loan._end_with_run()
        self._open.clear()
        while not self._over:
            self._warn_held_up()
            moved = False
            for port in self._left_over(level):
                moved |= c.held != ffi.NULL            # Ctrl-C came before it was given back
                lib.gp_pull_end(port._c, c)
                while lib.gp_pull_begin(port._c, c, 0) == _OK:
                    lib.gp_pull_end(port._c, c)
                    moved = True
            with self._lock:                           # no join(): see _retuned
                if not moved and not self._over:
                    self._lock.wait(0.001 if self.outputs else 0.1)
        self._warn_held_up()
        return kept

    def _left_over(self, level):
        """Outputs that have not ended, and that no other thread pulls."""
        return [p for p in self.outputs.values() if not p._ended and (
            level == 2 or p._thread in (None, threading.current_thread()) or not p._thread.is_alive())]


def run(file: Any = None, *, text: Optional[str] = None, vars: Optional[Mapping[str, Any]] = None,
        settings: Optional[Mapping[str, Any]] = None, frames: Optional[Iterable[Any]] = None,
        check_finite: bool = False) -> Iterator[Frame]:
    """Runs a pipeline, and gives the frames of its one output. `frames` are for its one input, as Input.push() takes
    them: the next one is asked for when there is room, on this thread, while the pipeline works. It runs as results are
    asked for; one without an output has run when this returns. Its other arguments are those of Pipeline."""
    p = Pipeline(file, text=text, vars=vars, settings=settings, check_finite=check_finite)
    if len(p.inputs) > 1 or len(p.outputs) > 1:
        raise ValueError("gpipe.run() is for one input and one output; this pipeline has "
                         f"{', '.join(map(repr, p._ports()))}: use gpipe.Pipeline")
    if bool(p.inputs) != (frames is not None):
        raise ValueError("the pipeline has an input: give its frames" if p.inputs else
                         "the pipeline has no stage 'input', which could take frames")
    for input in p.inputs.values():
        if len(getattr(frames, "shape", ())) == len(input.shape):
            raise ValueError(f"frames are several arrays, and this is one, of shape {list(frames.shape)}: did you mean "
                             "frames=[a]?")
    if p.outputs:
        return _run(p, frames)
    with p:
        for input in p.inputs.values():
            for a in frames:
                input.push(a)
    return iter(())


def _run(p, frames):
    (output,) = p.outputs.values()
    with p:
        for input in p.inputs.values():
            wait = select.poll()
            wait.register(lib.gp_input_fd(input._c), select.POLLIN)
            wait.register(lib.gp_output_fd(output._c), select.POLLIN)
            for a in frames:
                a = input._checked(a)
                while True:
                    while (frame := output._pull(0)):
                        yield frame
                    pushed = input._push(a, 0)
                    if pushed is None:
                        input._over()
                    if pushed:
                        break
                    wait.poll()
            input.close()
        yield from output
