"""server.py - gpipe with the shim in it, waiting to be forked; and the call stacks it lists."""
import mmap, os, select, shutil, signal, struct, subprocess, time

FRAMES, CALLS, MODULES = 40, 8192, 48          # as in shim.c
HEAD, MODULE = struct.Struct("<6I"), 160
STACK = struct.Struct("<QIii20s")
STACK_BYTES = 40 + 16 * FRAMES
PLACE = struct.Struct("<iiQ")
REQUEST = struct.Struct("<4iQ24s")
OFF, COUNT, ONCE, EVER, SIGNAL = range(5)


class Call:
    """A call that can fail, by its stack."""
    def __init__(self, name, hash, count, low, places):
        self.name, self.hash, self.count, self.low, self.places = name, hash, count, low, places


class Server:
    """Runs one pipeline again and again in one folder."""
    def __init__(self, gpipe, shim, pipeline, inputs, folder, bound):
        self.pipeline, self.folder, self.bound = pipeline, folder, bound
        self.out, self.cache = folder + "/out", folder + "/cache"
        self.inputs = inputs
        os.makedirs(folder)
        with open(folder + "/shared", "wb") as f:
            f.truncate(24 + MODULES * MODULE + CALLS * STACK_BYTES)
        with open(folder + "/shared", "r+b") as f:
            self.shared = mmap.mmap(f.fileno(), 0)
        a, self.ask = os.pipe()
        self.answer, b = os.pipe()
        env = {"PATH": os.environ["PATH"], "HOME": folder, "TERM": "dumb", "LD_PRELOAD": shim,
               "OUT": self.out, "TMPDIR": folder + "/tmp", "XDG_CACHE_HOME": self.cache,
               "XDG_RUNTIME_DIR": folder + "/runtime", "CXX": inputs + "/c++",
               "MALLOC_PERTURB_": "165",       # what is freed, or not written, is not 0
               "TORTURE_SHARED": folder + "/shared", "TORTURE_REQUESTS": str(a),
               "TORTURE_ANSWERS": str(b), "TORTURE_IN": f"{inputs}/{pipeline.name}.in",
               "TORTURE_OUT": folder + "/stdout", "TORTURE_ERR": folder + "/stderr"}
        options = [o.replace("$OUT", self.out) for o in pipeline.options]
        self.process = subprocess.Popen(
            [gpipe, "run", "--device", "cpu", "--set", "stall_timeout=100s", *options, f"{inputs}/{pipeline.name}.yaml"], env=env,
            pass_fds=(a, b), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=folder)
        os.close(a)
        os.close(b)

    def close(self):
        os.close(self.ask)
        self.process.wait(60)
        os.close(self.answer)
        shutil.rmtree(self.folder)

    def clean(self):
        for name in ("out", "tmp", "runtime", "cache"):
            shutil.rmtree(f"{self.folder}/{name}", ignore_errors=True)
            os.mkdir(f"{self.folder}/{name}", 0o700)
        if self.pipeline.cached and os.path.isdir(self.inputs + "/cache"):
            shutil.copytree(self.inputs + "/cache", self.cache, dirs_exist_ok=True)

    def hear(self, bound):
        if not select.select([self.answer], [], [], bound)[0]:
            return None
        return struct.unpack("<i", os.read(self.answer, 4))[0]

    def run(self, mode, name="", hash=0, low=0, nth=0, error=0, clean=True):
        """One process. Sets pid, status (of waitpid; None: it hung), left (processes)."""
        if clean:
            self.clean()
        self.shared[:16] = bytes(16)       # fired, calls, seen, lock
        self.start = time.time()
        os.write(self.ask, REQUEST.pack(mode, error, nth, low, hash, name.encode()))
        self.pid = self.hear(self.bound)
        self.status = self.hear(self.bound)
        if self.status is None:
            os.killpg(self.pid, signal.SIGKILL)        # not waited for yet: the number is its own
            self.hear(self.bound)
        self.left = not self.group_ends()
        self.fired, self.calls = HEAD.unpack(self.shared[:24])[:2]

    def members(self):
        """What the process has started and is there: of its group, and with our folder in its
        environment, since the number may be another group's by now."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return []
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                group = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[2])
                if group == self.pid and f"{self.folder}/".encode() in open(f"/proc/{pid}/environ", "rb").read():
                    found.append(int(pid))
            except (OSError, IndexError):
                pass
        return found

    def group_ends(self):
        """Waits for what the process has started; kills it in the end."""
        end = time.monotonic() + self.bound / 4
        while self.members():
            if time.monotonic() > end:
                for pid in self.members():
                    os.kill(pid, signal.SIGKILL)
                return False
            time.sleep(0.002)
        return True

    def forget(self):
        """Empties the list of stacks."""
        self.shared[:] = bytes(len(self.shared))

    def stacks(self):
        s = self.shared
        module = [s[24 + i * MODULE:24 + (i + 1) * MODULE].split(b"\0")[0].decode() for i in range(MODULES)]
        for i in range(CALLS):
            at = 24 + MODULES * MODULE + i * STACK_BYTES
            hash, count, low, n, name = STACK.unpack_from(s, at)
            if not hash:
                continue
            places = [PLACE.unpack_from(s, at + 40 + 16 * k) for k in range(n)]
            yield Call(name.split(b"\0")[0].decode(), hash, count, low,
                       [(module[m] if m >= 0 else "?", offset) for m, _, offset in places])


def symbolize(gpipe, places):
    """Lines 'function at file:line', innermost first."""
    lines = []
    for module, offset in places:
        if module.endswith("/shim.so"):        # where main() was called
            break
        path = module or gpipe
        if not os.path.exists(path):
            lines.append(f"?? in {path}")
            continue
        said = subprocess.run(["addr2line", "-Cfipe", path, hex(offset)], capture_output=True, text=True).stdout
        lines += [(f"in {os.path.basename(path)}: " if module else "") + l.replace(os.getcwd() + "/", "")
                  for l in said.splitlines()]
    return lines
