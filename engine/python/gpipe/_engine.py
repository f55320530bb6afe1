"""The library: its errors as exceptions, its kinds, a pipeline compiled."""
import ctypes, importlib.metadata, json, os, sys, time, warnings
from dataclasses import dataclass
from typing import List, Optional, Tuple
from ._declared import ffi

_here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
lib = ffi.dlopen(os.path.join(_here, "libgpipe.so"))
_libc = ffi.dlopen(None)
version = importlib.metadata.version("gpipe")


class GpipeWarning(UserWarning):
    """What gpipe warns of: the run goes on."""


@dataclass(frozen=True)
class Message:
    """An error or a warning. str() is what the command prints, with the line of the file and a caret below."""
    kind: str                                          # "error" or "warning"
    code: str                                          # "spec", "run", "resource", "stall", ...: see 'gpipe help exit'
    text: str
    file: Optional[str]
    line: Optional[int]
    column: Optional[int]
    notes: Tuple[str, ...]
    shown: str

    def __str__(self):
        return self.shown


class Error(Exception):
    """The pipeline is not valid, or its run failed. `messages` are all that is wrong; `code`, `text`, `file`, `line`,
    `column` are those of the first error."""
    messages: List[Message]
    code: Optional[str]
    text: Optional[str]
    file: Optional[str]
    line: Optional[int]
    column: Optional[int]

    def __init__(self, messages):
        self.messages = list(messages)
        first = next((m for m in self.messages if m.kind == "error"), None)
        for name in "code", "text", "file", "line", "column":
            setattr(self, name, getattr(first, name, None))
        super().__init__("\n".join(map(str, self.messages)))

    def __reduce__(self):
        return type(self), (self.messages,)


class Stopped(Error):
    """The run is over, or stopping: nobody takes what is pushed."""

    def __init__(self, messages=()):
        super().__init__(messages)
        self.args = (str(self) or "the run is over, or stopping: nobody takes what is pushed",)


for public in GpipeWarning, Message, Error, Stopped:               # as programs name them, and tracebacks do
    public.__module__ = "gpipe"


def text(c):
    return None if c == ffi.NULL else os.fsdecode(ffi.string(c))


def printed(write):
    """What a function of the library writes to a stream."""
    at, n = ffi.new("char **"), ffi.new("size_t *")
    stream = _libc.open_memstream(at, n)
    if stream == ffi.NULL:
        raise MemoryError
    try:
        write(stream)
    finally:
        _libc.fclose(stream)
        out = ffi.buffer(at[0], n[0])[:]
        _libc.free(at[0])
    return out.decode(errors="replace")


_codes = ["ok", "warning", "note", "run", "usage", "spec", "resource", "stall", "mismatch", "bug", "closed"]


class Errors:
    """A gp_errs of one call, or of a run."""

    def __init__(self, file=None, source=b"", settings=(), c=None):
        self.c, self.file, self.source, self.settings = c or ffi.new("gp_errs *"), file, source, settings

    def messages(self):
        out, errs = [], self.c
        for e in errs.e[0:errs.n]:
            shown = printed(lambda f: lib.gp_err_print(f, ffi.addressof(e), self.file or ffi.NULL, self.source,
                                                       len(self.source), False)).rstrip("\n")
            code, words = _codes[e.code], text(e.msg)
            if code == "note" and out:
                last = out.pop()
                out.append(Message(last.kind, last.code, last.text, last.file, last.line, last.column,
                                   (*last.notes, words), last.shown + "\n" + shown))
            else:
                place = text(e.at.file)
                if place in self.settings and len(place) > 100:    # as of an array
                    shown = shown.replace(place, place := place[:100] + "...", 1)
                out.append(Message("warning" if code == "warning" else "error", code, words, place,
                                   e.at.line or None, (e.at.line and e.at.col) or None, (), shown))
        return out

    def raise_if(self, failed):
        if failed:
            raise Error(self.messages())


def warn(messages):
    """At the line that called this package."""
    frame, level = sys._getframe(1), 2
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == "gpipe":
        frame, level = frame.f_back, level + 1
    for m in messages:
        if m.kind == "warning":
            warnings.warn(str(m), GpipeWarning, stacklevel=level)


@ffi.callback("gp_getenv")
def _getenv(_, name):
    value = os.environ.get(text(name))
    if value is None:
        return ffi.NULL
    return _values.setdefault(value, ffi.new("char[]", os.fsencode(value)))


_values, _registry = {}, None                                      # what _getenv gave stays


def registry():
    global _registry
    if _registry is None:
        made, errs = lib.gp_registry_create(), Errors()           # threads of a run may outlive the interpreter
        errs.raise_if(made == ffi.NULL or not lib.gp_register_builtin(made, errs.c))
        lib.gp_plugins_find(made, _getenv, ffi.NULL, errs.c)
        warn(errs.messages())
        _registry = made
    return _registry


def kinds(name=None, form=lib.GP_KINDS_TEXT):
    """What `gpipe stages` prints, of one kind or of all."""
    errs, name = Errors(), ffi.NULL if name is None else name.encode()
    out = printed(lambda f: lib.gp_kinds_print(registry(), name, form, f, errs.c))
    errs.raise_if(errs.c.failed)
    return out


def setting(path, value):
    """A setting as `--set` has it. Texts of `vars` are texts; others are as they would stand in the file."""
    if hasattr(value, "tolist"):                       # NumPy's numbers and arrays
        value = value.tolist()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str) and path.startswith("vars."):
        value = value.replace("$", "$$")               # which begins no ${...}
    if not isinstance(value, str) or path.startswith("vars."):
        value = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return f"{path}={value}"


class Compiled:
    """A gp_pipeline, and what has to be there as long as it is."""

    def __init__(self, source, file, settings):
        self.file = ffi.new("char[]", os.fsencode(file))
        self.source, self.settings = source, list(settings)
        self.set = [ffi.new("char[]", s.encode()) for s in settings]
        sets = ffi.new("char *[]", self.set + [ffi.NULL])
        now = time.time_ns()
        date = time.localtime(now // 10**9)
        tm = ffi.new("struct tm *", {
            "tm_sec": date.tm_sec, "tm_min": date.tm_min, "tm_hour": date.tm_hour, "tm_mday": date.tm_mday,
            "tm_mon": date.tm_mon - 1, "tm_year": date.tm_year - 1900, "tm_wday": (date.tm_wday + 1) % 7,
            "tm_yday": date.tm_yday - 1, "tm_isdst": date.tm_isdst, "tm_gmtoff": date.tm_gmtoff or 0})
        zone = ffi.new("char[]", (date.tm_zone or "").encode())
        tm.tm_zone = zone
        config = ffi.new("gp_config *", {
            "registry": registry(), "env": {"get": _getenv, "date": tm, "nanoseconds": now % 10**9},
            "set": ffi.cast("const char *const *", sets), "nset": len(settings)})
        errs = self.errs()
        made = lib.gp_compile(source, len(source), self.file, config, errs.c)
        errs.raise_if(made == ffi.NULL)
        kept = self.kept = []                          # is there until the pipeline is destroyed
        self.c = ffi.gc(made, lambda c: (lib.gp_pipeline_destroy(c), kept.clear()))
        self.warnings, self.keys = errs.messages(), self._keys()

    def keep(self, *what):
        self.kept.extend(what)

    def leave(self, *what):
        """A thread uses it still, with `what`: it is never destroyed, nor when the interpreter ends."""
        ffi.gc(self.c, None)
        self.keep(*what)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def errs(self, c=None):
        return Errors(self.file, self.source, self.settings, c)

    def _keys(self):
        keys = ffi.new("const char *const **")
        n = lib.gp_pipeline_meta_keys(self.c, keys)
        return tuple(k for k in (text(keys[0][i]) for i in range(n)) if k != "time")

    def _stages(self):
        s, i = ffi.new("gp_stage_info *"), 0
        while lib.gp_pipeline_stage(self.c, i, s):
            yield s
            i += 1

    def on_loan(self):
        """The stages that the program feeds (True) or reads."""
        return [(text(s.name), s.nin == 0) for s in self._stages() if s.kind.on_loan]

    def workers(self, name):
        return next(s.workers for s in self._stages() if text(s.name) == name)

    def is_up(self):
        """Its run has begun, or goes on: before, it cannot be changed."""
        return (lib.gp_stages_status(self.c, ffi.new("gp_stage_status *"), 1) > 0
                and not lib.gp_pipeline_is_paused(self.c))

    def stall_seconds(self):
        return 1e-9 * json.loads(self.plan(lib.GP_PLAN_JSON))["stall_timeout_ns"] or float("inf")

    def depths(self):
        return [ring["depth"] for ring in json.loads(self.plan(lib.GP_PLAN_JSON))["rings"]]

    def has_frames(self):
        """Do any wait in buffers, or are worked on?"""
        n = lib.gp_buffers_status(self.c, ffi.NULL, 0)
        b = ffi.new("gp_buffer_status[]", max(n, 1))
        return any(x.held for x in b[0:lib.gp_buffers_status(self.c, b, n)])

    def lint(self):
        errs = self.errs()
        lib.gp_pipeline_lint(self.c, ffi.NULL, errs.c)
        return errs.messages()

    def plan(self, form, report=None):
        errs, ok = self.errs(), []
        report = ffi.NULL if report is None else report.encode()
        out = printed(lambda f: ok.append(lib.gp_pipeline_print_plan(self.c, form, report, f, errs.c)))
        errs.raise_if(not ok[0])
        return out

    def report(self, outcome, form):
        errs, ok = self.errs(), []
        sets = ffi.new("char *[]", self.set + [ffi.NULL])
        out = printed(lambda f: ok.append(lib.gp_pipeline_print_report(
            self.c, form, outcome, ffi.cast("const char *const *", sets), len(self.set), f, errs.c)))
        errs.raise_if(not ok[0])
        return out

    def accounts(self):
        n = lib.gp_accounts(self.c, ffi.NULL, 0)
        a = ffi.new("gp_account[]", max(n, 1))
        names = "in", "out", "dropped", "failed", "cancelled", "late", "lost", "full"
        return {text(x.source): {k: getattr(x, k) for k in names} for x in a[0:lib.gp_accounts(self.c, a, n)]}
