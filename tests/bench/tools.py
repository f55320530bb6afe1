"""tools.py - what the rows of the table measure with: programs that are run, and what they say.

A measurement that cannot be made here raises Skip, which says why. A program that fails, and a
run whose account is wrong, raises Failure: its row has no figures, only what was wrong.
"""
import json, os, re, shutil, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
KIB, MIB = 1024, 1024 * 1024


class Skip(Exception):
    pass


class Failure(Exception):
    """Its text: in a line what was wrong; then what the program said."""


class Row:
    """One line of the table. measure(bench) returns (gpipe, peer, the peer's name), both numbers
    in `unit`; peer is None where the limit is an absolute one. What is compared with the limit is

        rate    how many times the peer's rate: peer / gpipe, at least; of times per frame
        time    how many times the peer's time: gpipe / peer, at most
        above   how much more than the peer: gpipe - peer, at most
        value   gpipe, at most

    limit None: only shown."""

    def __init__(self, name, what, kind, limit, measure, unit="us"):
        self.name, self.what, self.kind, self.limit = name, what, kind, limit
        self.measure, self.unit = measure, unit

    def compare(self, gpipe, peer):
        return {"rate": lambda: peer / gpipe, "time": lambda: gpipe / peer,
                "above": lambda: gpipe - peer, "value": lambda: gpipe}[self.kind]()

    def at_least(self):
        return self.kind == "rate"

    def reached(self, value):
        near = 0.98
        return value >= near * self.limit if self.at_least() else value <= self.limit / near


class Bench:
    def __init__(self, gpipe, verbose=False):
        self.gpipe = os.path.abspath(gpipe)
        self.verbose = verbose
        self.dir = tempfile.mkdtemp(prefix="gpipe-bench-")
        self.round = {}            # what was measured in this round
        self.whole = {}            # what is true for all rounds

    def close(self):
        shutil.rmtree(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    # -- measuring once --

    def once(self, key, measure):
        """In a round: several rows may be about one measurement."""
        if key not in self.round:
            self.round[key] = measure()
        return self.round[key]

    def ever(self, key, find):
        """In all rounds. A Skip or Failure is remembered too."""
        if key not in self.whole:
            try:
                self.whole[key] = find()
            except (Skip, Failure) as why:
                self.whole[key] = why
        if isinstance(self.whole[key], (Skip, Failure)):
            raise self.whole[key]
        return self.whole[key]

    # -- programs --

    def program(self, name, why):
        """A program of tests/bench: named by the environment (HAND for hand), else beside gpipe."""
        path = os.environ.get(name.upper()) or os.path.join(
            os.path.dirname(os.path.realpath(self.gpipe)), "bench", name)
        if not os.access(path, os.X_OK):
            raise Skip(why)
        return path

    def run(self, command, cores=None, timeout=300, ok=(0,)):
        """(stdout, stderr, exit code) of a program that has to succeed. cores: it may only use so many."""
        command = [str(c) for c in command]
        if self.verbose:
            print("+", " ".join(command), file=sys.stderr)
        limit = None
        if cores:
            some = set(sorted(os.sched_getaffinity(0))[:cores])
            limit = lambda: os.sched_setaffinity(0, some)
        name = os.path.basename(command[0])
        try:
            r = subprocess.run(command, timeout=timeout, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               universal_newlines=True, preexec_fn=limit)
        except subprocess.TimeoutExpired:
            raise Failure("'%s' took more than %d s\n%s" % (name, timeout, " ".join(command)))
        if r.returncode not in ok:
            said = (r.stderr.strip() or r.stdout.strip()).split("\n")[-1]
            raise Failure("'%s' ended with %d: %s\n%s\n%s%s"
                          % (name, r.returncode, said, " ".join(command), r.stdout, r.stderr))
        return r.stdout, r.stderr, r.returncode

    def script(self, name, *args):
        """What a program in Python of tests/bench prints. Raises Skip where it lacks a module or a GPU."""
        out, _, code = self.run([sys.executable, os.path.join(HERE, name), *args], timeout=1200, ok=(0, 3))
        if code:
            raise Skip("%s: a Python module or the GPU that it needs is not there" % name)
        return out

    def times(self, key, name, *args):
        """{"NAME": us} that such a one prints, once in a round; a Skip holds for all rounds."""
        measure = lambda: {k: v[0] for k, v in words(self.script(name, *args)).items()}
        self.ever(key, lambda: self.once(key, measure))
        return self.once(key, measure)

    def wall(self, command, cores=None):
        """Seconds from start to exit."""
        start = time.perf_counter()
        self.run(command, cores)
        return time.perf_counter() - start

    # -- gpipe --

    def gpipe_seconds(self, file, sets, frames, options=(), ranks=1):
        """What the summary says a run took; all frames have to come out."""
        start = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
        command = start + [self.gpipe, "run"] + (list(options) or ["--progress", "none"])
        for s in sets:
            command += ["--set", s]
        _, err, _ = self.run(command + [file])
        if "json" in options:
            account = json.loads(err.strip().split("\n")[-1])["account"]
            done, seconds = account["sources"][-1]["out"], account["seconds"]
        else:
            said = re.findall(r"\d+ frames? in, (\d+) out, .* in ([\d.]+) s \(", err)
            done, seconds = (int(said[-1][0]), float(said[-1][1])) if said else (0, 0.0)
        if done != frames:
            raise Failure("not %d frames came out\n%s\n%s" % (frames, " ".join(command), err))
        return seconds

    def gpipe_us(self, file, sets, few, many, options=(), ranks=1):
        """Microseconds per frame: the difference of two runs, so that starting up does not count."""
        return self.timed_us(file, sets, "vars.frames", few, many, options, ranks)

    def timed_us(self, file, sets, frames, few, many, options=(), ranks=1):
        """The same, where `frames` is what is set to the number of them."""
        times = [self.gpipe_seconds(file, sets + ["%s=%d" % (frames, n)], n, options, ranks) for n in (few, many)]
        return 1e6 * (times[1] - times[0]) / (many - few)

    def copies_alone(self, file, sets, stage):
        """Microseconds per frame, and of its copies, while its only stage on the device costs nothing."""
        self.has_gpu()
        out, _, _ = self.run([self.gpipe, "bench", "--json", "--cached", stage]
                             + [word for s in sets for word in ("--set", s)] + [file])
        whole, copies = (1e6 / row["frames_per_s"] for row in json.loads(out)["rows"])
        return whole, copies, "copies alone"

    def host(self, file, sets=(), timed=False, cores=None, pushed=0):
        """A run by the program host, which pushes so many frames: {"host": [frames, seconds], "stage NAME": [us], ...}"""
        program = self.program("host", "host is not built")
        how = ["-p", str(pushed)] if pushed else ["-t"] * timed
        out, _, _ = self.run([program] + how + [file] + list(sets), cores)
        return words(out)

    def has_gpu(self):
        """Raises Skip where there is none that gpipe can use."""
        def look():
            file = self.write("gpu.yaml", "buffers: {x: {dtype: f32, shape: [64]}}\n"
                              "stages:\n  - {use: generate, out: x, frames: 1}\n"
                              "  - {use: scale}\n  - {use: discard}\n")
            _, _, code = self.run([self.gpipe, "run", "-q", "--device", "cuda", file], ok=range(256))
            if code:
                raise Skip("no GPU")
            return True
        self.ever("gpu", look)


def words(text):
    """Lines "name... number..." -> {"name...": [number...]}"""
    found = {}
    for line in text.splitlines():
        m = re.match(r"(\D\S*(?: [a-zA-Z]\S*)*)((?: -?[\d.]+)+)$", line)
        if m:
            found[m.group(1)] = [float(w) for w in m.group(2).split()]
    return found


def best(times):
    """(the least, its name) of {name: time}"""
    name = min(times, key=times.get)
    return times[name], name

