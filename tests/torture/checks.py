"""checks.py - what must hold after a process to which something was done.

`judge` gives a list of what does not hold: short texts, equal for equal faults."""
import json, os, re, signal

MEMORY = {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "mmap", "pthread_create", "memfd_create"}
# After a failure of these, what they were to take away stays.
REMOVES = {"unlink", "unlinkat", "rmdir"}
# The account may be in what they lose: it is said with them.
SAYS = {"write", "fwrite", "fputs", "fprintf", "fflush"}
# What a run that was killed leaves and the next one takes away.
CLEANED = {"a socket", "a temporary file", "in the cache"}
ACCOUNT = re.compile(r"gpipe: (?:\S+: )?(\d+) frames? in, (\d+) out, (\d+) dropped, (\d+) failed, "
                     r"(\d+) cancelled in")


def tree(folder):
    """Path -> bytes of each file below; b"" of what is no file."""
    found = {}
    for at, folders, files in os.walk(folder):
        for name in files:
            path = os.path.join(at, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as f:
                    found[os.path.relpath(path, folder)] = f.read()
            else:
                found[os.path.relpath(path, folder)] = b""
    return found


class Result:
    """What a process left."""
    def __init__(self, server):
        self.files = tree(server.out)
        with open(server.folder + "/stdout", "rb") as f:
            self.files["stdout"] = f.read()
        with open(server.folder + "/stderr", errors="replace") as f:
            self.stderr = f.read()
        self.status = server.status
        self.code = None if server.status is None else os.waitstatus_to_exitcode(server.status)
        self.left = []
        if server.left:
            self.left.append("a process")
        for what, folder in (("in TMPDIR", server.folder + "/tmp"), ("a socket", server.folder + "/runtime/gpipe")):
            for name in tree(folder):
                self.left.append(what)
            for at, folders, files in os.walk(folder):
                self.left += [what] * len([f for f in folders if f != "gpipe"])
        self.left += ["in the cache" for f in tree(server.cache) if ".gpipe-" in f]
        socket = f"/tmp/gpipe-{os.geteuid()}/{server.pid}.sock"
        if os.path.exists(socket) and os.stat(socket).st_mtime >= server.start - 1:
            self.left.append("a socket in /tmp")
        self.accounts = [tuple(map(int, a)) for a in ACCOUNT.findall(self.stderr)]
        for line in self.stderr.splitlines():          # of --progress json
            if line.startswith('{"account"') and line.endswith("}"):
                self.accounts += [tuple(s[k] for k in ("in", "out", "dropped", "failed", "cancelled"))
                                  for s in json.loads(line)["account"]["sources"]]


def cut(data, size):
    return [data[i:i + size] for i in range(0, len(data), size)]


def body(data):
    """Of a .npy: its elements; the shape must say how many there are."""
    n = 10 + int.from_bytes(data[8:10], "little")
    rows = int(re.search(rb"'shape': \((\d+)", data[:n])[1])
    if data[:6] != b"\x93NUMPY" or rows * 4 != len(data) - n:
        raise ValueError
    return data[n:]


def count_missing(pipeline, name, got, good):
    """How many of the good file's frames are not in this one; None: it has a wrong byte."""
    if got == good:
        return 0
    size = pipeline.frames.get(name)
    if not size:
        return None
    try:
        if name.endswith(".npy"):
            got, good = body(got), body(good)
    except (ValueError, TypeError, IndexError):
        return None
    got, good = cut(got, size), cut(good, size)
    if not pipeline.drops:                     # a prefix; on a stream the last one may be cut
        k = len(got)
        cut_short = name == "stdout" and k and k <= len(good) and good[k - 1].startswith(got[-1])
        return len(good) - k if got[:k - cut_short] == good[:k - cut_short] and k <= len(good) else None
    at = iter(good)
    return len(good) - len(got) if all(any(f == g for g in at) for f in got) else None


def is_whole(name, data):
    try:
        if name.endswith(".json"):
            json.loads(data)
        return not name.endswith(".html") or data.rstrip().endswith(b"</html>")
    except ValueError:
        return False


def judge_files(pipeline, good, got, killed):
    """(texts, how many frames are missing)."""
    wrong, missing, lost = [], 0, []
    for name, data in got.files.items():
        whole = re.sub(r"\.partial(\.\d+)?$", "", name)
        whole = whole if whole != name else None
        if whole in good.files:                # kept by a run that failed
            if count_missing(pipeline, whole, data, good.files[whole]) is None:
                wrong.append("wrong bytes in what was kept of a file")
        elif name not in good.files:
            if not killed:
                wrong.append("leftover: a temporary file" if ".gpipe-" in name else "leftover: an unknown file")
        elif name.endswith((".json", ".html")):
            if not is_whole(name, data):
                wrong.append("a broken report under its final name")
        else:
            n = count_missing(pipeline, name, data, good.files[name])
            if n is None:
                wrong.append("wrong bytes under a final name")
            else:
                missing = max(missing, n)
    for name in good.files.keys() - got.files.keys():
        lost.append(name)
    each = len([f for f in lost if f.startswith("each/")])
    if len(lost) > each:
        missing = max(missing, 1 << 20)        # a file of many frames, or a report, is not there
    return wrong, max(missing, each)


def judge_account(good, got, missing):
    wrong = []
    for taken, out, dropped, failed, cancelled in got.accounts:
        if taken != out + dropped + failed + cancelled:
            wrong.append("the account does not add up")
    if not got.accounts and (got.files.keys() & good.files.keys()) - {"stdout"}:
        wrong.append("output, but no account")
    return wrong


def allowed(pipeline, name, error, retried):
    """The exit codes that fit the cause."""
    if retried:
        return {pipeline.good}
    return {pipeline.good, 4} if name in MEMORY or error == 12 else {pipeline.good, 1, 2, 3, 4}


def judge(pipeline, good, got, call, error, retried):
    """A call failed."""
    if got.code is None:
        return ["hang"]
    wrong = []
    if got.code < 0:
        return [f"killed by {signal.Signals(-got.code).name}"]
    if got.code not in allowed(pipeline, call.name, error, retried):
        wrong.append(f"exit {got.code}, not {' or '.join(map(str, sorted(allowed(pipeline, call.name, error, retried))))}")
    if got.code and not re.search('error"?:|ABORT', got.stderr):
        wrong.append("fails without a message")
    if "this is a bug" in got.stderr or "accounted for" in got.stderr:
        wrong.append("says that it is a bug")
    files, missing = judge_files(pipeline, good, got, False)
    if call.name not in REMOVES:
        wrong += [f"leftover: {what}" for what in got.left]
    else:
        files = [f for f in files if not f.startswith("leftover: a temporary")]
    wrong += files + judge_account(good, got, missing)
    if got.code == 0 and not got.accounts and call.name not in SAYS:
        wrong.append("exit 0 without an account")
    more_failed = sum(a[3] for a in got.accounts) - sum(a[3] for a in good.accounts)
    if got.code == 0 and missing > (more_failed if pipeline.drops else 0):
        wrong.append("exit 0 without the whole output")
    return sorted(set(wrong))


def judge_signal(pipeline, good, got, number, fired):
    if got.code is None:
        return ["hang"]
    killed = number == signal.SIGKILL
    fits = {signal.SIGINT: {130, pipeline.good}, signal.SIGTERM: {143, pipeline.good}, signal.SIGHUP: {129, pipeline.good},
            signal.SIGKILL: {-signal.SIGKILL}}[number]
    # before it catches them, or after, these end it as they end any process
    fits = fits | {-number} if fired else {pipeline.good}
    wrong = [] if got.code in fits else [f"exit {got.code}"]
    files, missing = judge_files(pipeline, good, got, killed)
    wrong += files
    if not killed:
        wrong += [f"leftover: {what}" for what in got.left]
    if got.code >= 0:
        wrong += judge_account(good, got, missing)
        if got.code == 0 and missing and not pipeline.drops:
            wrong.append("exit 0 without the whole output")
    return sorted(set(wrong))


def judge_next(pipeline, good, got):
    """A run after one that was killed, in the same folders."""
    wrong, missing = judge_files(pipeline, good, got, "a temporary file" not in CLEANED)
    if got.code != pipeline.good or missing and pipeline.good == 0:
        wrong.append(f"the run after a killed one: exit {got.code}")
    return sorted(set(wrong + [f"the run after a killed one leaves {what}" for what in got.left if what in CLEANED]))
