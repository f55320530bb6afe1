#!/usr/bin/env python3
"""torture.py GPIPE SHIM - makes every call fail that can, each once and from then on, and sends
signals, over the pipelines of pipelines.py. Prints a total; exit 1 after a finding.

  --part 0.1 --seed N   a random part of all tries; the seed is printed
  --only TRY            one try, as a finding prints it
  --pipelines NAMES     some of them         --jobs N   processes at a time"""
import argparse, collections, errno, os, queue, random, re, shutil, signal, sys, tempfile, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import checks, pipelines
from server import COUNT, EVER, OFF, ONCE, SIGNAL, Server, symbolize

BOUND = 200                            # s for one process: many thousand times what it takes
SHORT = -1                             # half of the bytes
MEM = ["ENOMEM"]
ERRORS = {                             # the realistic ones
    "malloc": MEM, "calloc": MEM, "realloc": MEM, "aligned_alloc": MEM, "posix_memalign": MEM, "mmap": MEM,
    "mprotect": MEM, "pthread_create": ["EAGAIN"], "pthread_key_create": ["EAGAIN"], "memfd_create": ["EMFILE"],
    "open": ["EMFILE", "EACCES"], "create": ["ENOSPC", "EMFILE"], "close": ["EIO"], "fopen": ["EMFILE"],
    "fopen64": ["EMFILE"], "fdopen": MEM, "opendir": ["EMFILE"], "glob": ["GLOB_NOSPACE"], "popen": ["EAGAIN"],
    "read": ["EIO", "EINTR", "SHORT"], "pread": ["EIO", "EINTR", "SHORT"],
    "write": ["ENOSPC", "EINTR", "SHORT"], "writev": ["ENOSPC", "EINTR", "SHORT"],
    "pwrite": ["ENOSPC", "EINTR", "SHORT"], "send": ["ECONNRESET", "EINTR", "SHORT"],
    "rename": ["EACCES", "ENOSPC"], "renameat": ["EACCES"], "link": ["EPERM"], "unlink": ["EACCES"],
    "unlinkat": ["EACCES"], "mkdir": ["ENOSPC", "EACCES"], "rmdir": ["EACCES"], "stat": ["EACCES"],
    "lstat": ["EACCES"], "fstat": ["EIO"], "fstatat": ["EACCES"], "access": ["EACCES"], "fchmod": ["EPERM"],
    "ftruncate": ["ENOSPC"], "fallocate": ["ENOSPC", "EOPNOTSUPP"], "lseek": ["EIO"], "fsync": ["EIO"],
    "fdatasync": ["EIO"], "syncfs": ["EIO"], "eventfd": ["EMFILE"], "pipe": ["EMFILE"], "pipe2": ["EMFILE"],
    "dup": ["EMFILE"], "poll": ["EINTR", "ENOMEM"], "socket": ["EMFILE"], "bind": ["EADDRINUSE"],
    "listen": ["EADDRINUSE"], "setsockopt": ["ENOBUFS"], "getsockname": ["ENOBUFS"], "waitpid": ["EINTR"],
    "mkostemp": ["ENOSPC"], "mkostemps": ["ENOSPC"], "mkdtemp": ["ENOSPC"], "getcwd": ["ENOENT"],
    "realpath": ["EACCES"], "posix_spawnp": ["EAGAIN"], "posix_spawn": ["EAGAIN"], "dlopen": ["ENOENT"],
    "getaddrinfo": ["EAI_AGAIN"], "sigaltstack": MEM, "setenv": MEM,
    "fflush": ["ENOSPC"], "fwrite": ["ENOSPC"], "fputs": ["ENOSPC"], "fprintf": ["ENOSPC"], "fclose": ["ENOSPC"],
    "fread": ["EIO"], "fgets": ["EIO"],
}
STREAMS = {"fflush", "fwrite", "fputs", "fprintf", "fclose", "fread", "fgets"}      # keep their error
RETRIED = {"EINTR", "SHORT"}           # no errors: only to be gone on with, and once
NUMBERS = {"SHORT": SHORT, "GLOB_NOSPACE": 1, "EAI_AGAIN": -3}
SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"]
COUNTS = 3                             # runs in which calls are listed: threads take turns differently

# What is found and is known: patterns of the finding, of the stack and of stderr; what it is.
KNOWN = [
    ("SIGABRT|SIGSEGV", "prefix_array", "", "glibc: glob() frees twice when memory ends in it"),
    ("", "", "thread-local data: ABORT", "glibc ends a process that has no memory for thread-local data"),
    ("SIGABRT", "", "ABORT by .*libmicrohttpd", "libmicrohttpd ends a process whose wake-up it cannot write"),
]


def number(name):
    return NUMBERS[name] if name in NUMBERS else getattr(errno, name, None) or getattr(signal, name)


class Try:
    """PIPELINE/CALL/STACK/NTH/ERROR/MODE"""
    def __init__(self, pipeline, call, nth, what, mode):
        self.pipeline, self.call, self.nth, self.what, self.mode = pipeline, call, nth, what, mode

    def __str__(self):
        return f"{self.pipeline.name}/{self.call.name}/{self.call.hash:x}/{self.nth}/{self.what}/" \
               + {ONCE: "once", EVER: "ever", SIGNAL: "signal"}[self.mode]


def list_tries(pipeline, calls, signals, rng):
    tries = []
    for c in calls:
        for nth in [1] if c.name in STREAMS else sorted({1, (c.count + 1) // 2}):
            for e in ERRORS.get(c.name, []):
                tries.append(Try(pipeline, c, nth, e, ONCE))
                if e not in RETRIED and nth == 1 and c.name not in STREAMS:
                    tries.append(Try(pipeline, c, nth, e, EVER))
    for _ in range(signals if calls else 0):
        c = rng.choices(calls, weights=[c.count for c in calls])[0]
        tries.append(Try(pipeline, c, rng.randint(1, c.count), rng.choice(SIGNALS), SIGNAL))
    return tries


class Torture:
    def __init__(self, args, folder):
        self.args, self.folder, self.lock = args, folder, threading.Lock()
        self.gpipe, self.shim = os.path.abspath(args.gpipe), os.path.abspath(args.shim)
        self.inputs = folder + "/in"
        self.good, self.calls, self.findings = {}, {}, {}
        self.done = self.missed = self.found = 0
        self.known = collections.Counter()
        pipelines.make(self.inputs)

    def server(self, pipeline, job):
        return Server(self.gpipe, self.shim, pipeline, self.inputs, f"{self.folder}/{pipeline.name}.{job}", BOUND)

    def count(self, pipeline):
        """A good run, and all calls that there are."""
        s = self.server(pipeline, "count")
        s.run(OFF)
        good = self.good[pipeline.name] = checks.Result(s)
        if good.code != pipeline.good or good.left or s.calls:
            sys.exit(f"torture: {pipeline.name}: exit {good.code} undisturbed, left {good.left}\n{good.stderr}")
        if os.listdir(s.cache) and not os.path.exists(self.inputs + "/cache"):
            shutil.copytree(s.cache, self.inputs + "/cache")
        s.forget()
        for _ in range(COUNTS):
            s.run(COUNT)
            again = checks.Result(s)
            wrong, missing = checks.judge_files(pipeline, good, again, False)
            if again.code != pipeline.good or wrong or missing:
                sys.exit(f"torture: {pipeline.name}: is not the same twice: exit {again.code}, {wrong}\n{again.stderr}")
        self.calls[pipeline.name] = sorted(s.stacks(), key=lambda c: (c.name, c.hash))
        for c in self.calls[pipeline.name]:
            c.count = max(1, c.count // COUNTS)
        s.close()

    def attempt(self, s, t):
        s.run(t.mode, t.call.name, t.call.hash, t.call.low, t.nth, number(t.what))
        got = checks.Result(s)
        good = self.good[t.pipeline.name]
        if t.mode != SIGNAL:
            return got, checks.judge(t.pipeline, good, got, t.call, number(t.what), t.what in RETRIED)
        fired, wrong = s.fired, checks.judge_signal(t.pipeline, good, got, number(t.what), s.fired)
        if fired and t.what == "SIGKILL":
            s.run(OFF, clean=False)
            wrong += checks.judge_next(t.pipeline, good, checks.Result(s))
            s.fired = fired
        return got, wrong

    def work(self, job, tries):
        servers = {}
        while True:
            try:
                t = tries.get_nowait()
            except queue.Empty:
                break
            if t.pipeline.name not in servers:
                for s in servers.values():
                    s.close()
                servers = {t.pipeline.name: self.server(t.pipeline, job)}
            s = servers[t.pipeline.name]
            got, wrong = self.attempt(s, t)
            with self.lock:
                self.done += 1
                self.missed += not s.fired
                for w in wrong:
                    key = (w, t.pipeline.name if t.mode == SIGNAL else t.call.hash, t.mode == SIGNAL)
                    self.findings.setdefault(key, []).append((t, got))
                    if len(self.findings[key]) == 1:
                        self.say(w, t, got)
        for s in servers.values():
            s.close()

    def all_tries(self):
        rng = random.Random(self.args.seed)
        tries = []
        for p in self.chosen():
            self.count(p)
            tries += list_tries(p, self.calls[p.name], self.args.signals, rng)
        if self.args.part < 1:
            tries = rng.sample(tries, int(len(tries) * self.args.part))
            order = [p.name for p in pipelines.ALL]
            tries.sort(key=lambda t: order.index(t.pipeline.name))
        return tries

    def chosen(self):
        if self.args.only:
            return [p for p in pipelines.ALL if p.name == self.args.only.split("/")[0]]
        return [p for p in pipelines.ALL if not self.args.pipelines or p.name in self.args.pipelines.split(",")]

    def run(self):
        tries, start = queue.Queue(), time.time()
        for t in self.all_tries():
            tries.put(t)
        planned = tries.qsize()
        workers = [threading.Thread(target=self.work, args=(i, tries), daemon=True) for i in range(self.args.jobs)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        for why, n in self.known.items():
            print(f"known: {why} ({n} places)")
        print(f"torture: {self.done} tries of {sum(map(len, self.calls.values()))} calls in {len(self.calls)} pipelines, "
              f"{self.missed} did not come to pass, {len(self.known)} known faults, {self.found} new ones "
              f"(seed {self.args.seed}, {time.time() - start:.0f} s)")
        if self.done < planned or self.missed > planned / 10:
            print("torture: too many tries were not made, or did not come to pass: this has tested little")
            return True
        return self.found > 0

    def say(self, what, t, got):
        lines = symbolize(self.gpipe, t.call.places)
        for found, where, said, why in KNOWN:
            if re.search(found, what) and any(re.search(where, l) for l in lines) and re.search(said, got.stderr):
                self.known[why] += 1
                return
        self.found += 1
        print(f"FOUND: {what}\n  make torture TRY={t}")
        for l in lines:
            print("    " + l)
        print("    --\n    " + "\n    ".join(got.stderr.splitlines()[:6]), flush=True)

    def one(self):
        p = self.chosen()[0]
        _, name, hash, nth, what, mode = self.args.only.split("/")
        self.count(p)
        calls = [c for c in self.calls[p.name] if c.hash == int(hash, 16)]
        if not calls:
            sys.exit(f"torture: {p.name} has no such call: was it another build?")
        t = Try(p, calls[0], int(nth), what, {"once": ONCE, "ever": EVER, "signal": SIGNAL}[mode])
        s = self.server(p, 0)
        got, wrong = self.attempt(s, t)
        print("\n".join(symbolize(self.gpipe, t.call.places)))
        print(f"exit {got.code}, {'came to pass' if s.fired else 'did not come to pass'}\n{got.stderr}")
        print("\n".join(f"FOUND: {w}" for w in wrong) or "nothing found")
        s.close()
        return bool(wrong)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("gpipe")
    a.add_argument("shim")
    a.add_argument("--part", type=float, default=1)
    a.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    a.add_argument("--only")
    a.add_argument("--pipelines")
    a.add_argument("--signals", type=int, default=100, help="a pipeline")
    a.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    args = a.parse_args()
    for s in SIGNALS[:3]:              # what gpipe inherits is the same under nohup
        signal.signal(getattr(signal, s), signal.SIG_DFL)
    with tempfile.TemporaryDirectory(prefix="gpipe-torture-") as folder:
        t = Torture(args, folder)
        return t.one() if args.only else t.run()


if __name__ == "__main__":
    sys.exit(main())
