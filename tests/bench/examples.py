"""examples.py - the pipelines of examples/ on this machine: frame by frame, overlapped, tuned, beside CuPy or PyTorch.

    GPIPE=.../gpipe python3 tests/bench/examples.py [NAME...] [--rounds 3] [--budget 30s] [--device cuda] [-v]

Prints a Markdown table for each, in frames a second: the files of examples/, with larger inputs and other values by
--set. "launch: stream, depth 1" has one frame in each buffer, launched call by call; "graphs, depth 1" likewise, a graph
each; "as it is" is what gpipe chooses; "tuned" what `gpipe tune` finds; the last row is examples_peers.py. Each is the
median of the rounds, in turns, of what many frames take more than few, with more frames where that is less than a second.
Then what the report of each says holds it back. Needs NumPy and OpenCV; peers that cannot run here say so.
Files are in TMPDIR, or in /dev/shm if that is not said, which needs some 10 GB.
"""
import argparse, glob, json, os, re, shutil, sys, time
from statistics import median

sys.dont_write_bytecode = True
import cv2, numpy as np, examples_peers as peers
from tools import HERE, Bench, Failure

EXAMPLES = os.path.normpath(os.path.join(HERE, "../../examples"))
SETTINGS = [("`launch: stream`, depth 1", ["launch=stream", "depth=1"]), ("graphs, depth 1", ["depth=1"]),
            ("as it is", [])]


class Example:
    """prepare(example, folder) makes what it reads, for each of `counts` frames; sets(example, folder, n): what of n frames is
    set. The peer does few and many frames, gpipe up to `most`."""

    def __init__(self, name, what, few, many, most, prepare, sets, file=None):
        self.name, self.what, self.few, self.many, self.most = name, what, few, many, most
        self.counts = few, many, most
        self.prepare, self.sets = prepare, sets
        self.file = file or name

    def yaml(self):
        return "%s/%s/%s.yaml" % (EXAMPLES, self.name, self.file)


def of(table, *names):
    return ["vars.%s=%s" % (name, table[name]) for name in names]


def nothing(e, folder):
    pass


def heat_sets(e, folder, n):
    return ["vars.frames=%d" % n, "stages.group.frames=%d" % peers.HEAT["together"], "stages.picture.compression=0",
            "stages.picture.path=%s/out/heat-%%03d.png" % folder] + of(peers.HEAT, "side", "steps", "rate")


def sound(e, folder):
    rng = np.random.default_rng(1)
    for n in e.counts:
        np.save("%s/sound-%d.npy" % (folder, n), (3000 * rng.standard_normal(4000 * n)).astype(np.int16))
    # a .npy has no rate that could be compared
    with open(e.yaml()) as f, open(folder + "/spectrogram.yaml", "w") as to:
        to.write(f.read().replace(", sample_rate: rate", ""))


def sound_sets(e, folder, n):
    return ["vars.sound=%s/sound-%d.npy" % (folder, n), "vars.frames=%d" % peers.SOUND["together"]]


def sensor(e, folder):
    rng = np.random.default_rng(2)
    shape = peers.CAMERA["height"], peers.CAMERA["width"]
    own = rng.uniform(-1, 1, shape)
    dark = np.where(own > 0.99, 4095, 260 + 40 * own).astype(np.float32)
    np.save(folder + "/dark.npy", dark)
    np.save(folder + "/flat.npy", np.minimum(dark + 2500 * rng.uniform(0.6, 1.1, shape), 4095).astype(np.float32))
    with open(folder + "/raw", "wb") as f:
        for _ in range(e.most):
            f.write(np.minimum(dark + rng.integers(0, 3000, shape), 4095).astype(np.uint16).tobytes())


def sensor_sets(e, folder, n):
    size = 2 * peers.CAMERA["height"] * peers.CAMERA["width"]
    return of(peers.CAMERA, "height", "width", "white", "weight", "roll") + [
        "vars.kind=npy", "buffers.dark.const=%s/dark.npy" % folder, "buffers.flat.const=%s/flat.npy" % folder,
        "stages.read.command=[head, -c, '%d', '%s/raw']" % (size * n, folder)]


def raccoon(e, folder):
    shutil.copy(EXAMPLES + "/data/raccoon.png", folder + "/photo.png")


def raccoon_sets(e, folder, n):
    return of(peers.DIFFUSION, "height", "width", "amplitude", "smooth", "steps") + [
        "vars.frames=%d" % n, "vars.top=0", "vars.left=0", "stages.generate.fill=once"]


def arrivals(e, folder):
    for name in ("digits", "labels"):
        some = np.load("%s/digits/%s.npy" % (EXAMPLES, name))
        times = -(-e.most * peers.REPLAY["new"] // len(some))
        np.save("%s/%s.npy" % (folder, name), np.tile(some, (times,) + (1,) * (some.ndim - 1)))
    for name in ("w1", "w2"):
        shutil.copy("%s/replay/%s.npy" % (EXAMPLES, name), folder)


def arrivals_sets(e, folder, n):
    return of(peers.REPLAY, "new", "keep", "size", "draws", "rate") + [
        "vars.frames=%d" % n, "stages.group.frames=400", "stages.picture.path=%s/out/curve-%%03d.png" % folder,
        "vars.digits=%s/digits.npy" % folder, "vars.labels=%s/labels.npy" % folder]


def copies(e, folder, sources):
    """A folder of files for each count, links to some."""
    for n in e.counts:
        os.makedirs("%s/%s-%d" % (folder, e.name, n))
        for i in range(n):
            source = sources[i % len(sources)]
            os.symlink(source, "%s/%s-%d/%05d%s" % (folder, e.name, n, i, os.path.splitext(source)[1]))


def wells(e, folder):
    copies(e, folder, sorted(glob.glob(EXAMPLES + "/cells/cells/*.png")))


def wells_sets(e, folder, n):
    return ["vars.cells=%s/cells-%d" % (folder, n)]


def numerals(e, folder):
    some = np.load(EXAMPLES + "/digits/digits.npy")
    for n in e.counts:
        np.save("%s/digits-%d.npy" % (folder, n), np.resize(some, (60 * n, 8, 8)))
    for name in ("w1", "b1", "w2", "b2"):
        shutil.copy("%s/digits/%s.npy" % (EXAMPLES, name), "%s/digits-%s.npy" % (folder, name))


def film(e, folder):
    high, wide = peers.VIDEO["height"], peers.VIDEO["width"]
    rng = np.random.default_rng(3)
    some = [rng.integers(16, 236, high * wide * 3 // 2, np.uint8).tobytes() for _ in range(8)]
    for n in e.counts:
        with open("%s/video-%d.y4m" % (folder, n), "wb") as f:
            f.write(b"YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420jpeg\n" % (wide, high))
            for i in range(n):
                f.write(b"FRAME\n" + some[i % len(some)])


def film_sets(e, folder, n):
    return of(peers.VIDEO, "height", "width", "level", "keep") + ["vars.video=%s/video-%d.y4m" % (folder, n)]


def album(e, folder):
    photo, files = cv2.imread(EXAMPLES + "/data/raccoon.png"), []
    for i, size in enumerate([(1024, 768), (1920, 1080), (1440, 1080), (600, 800), (1280, 720)]):
        files.append("%s/photo-%d.jpg" % (folder, i))
        cv2.imwrite(files[-1], cv2.resize(photo, size), [cv2.IMWRITE_JPEG_QUALITY, 90])
    copies(e, folder, files)


def album_sets(e, folder, n):
    return ["vars.photos=%s/photos-%d" % (folder, n)]


ALL = [
    Example("heat", "255 x 255, 1500 steps a frame", 8, 56, 808, nothing, heat_sets),
    Example("spectrogram", "4000 samples a frame", 400, 4400, 44400, sound, sound_sets),
    Example("camera", "1080 x 1920 of u16, written as .npy", 16, 112, 512, sensor, sensor_sets),
    Example("diffusion", "768 x 1024, 100 steps a frame", 8, 56, 408, raccoon, raccoon_sets),
    Example("replay", "3 digits a frame, four steps of training each", 100, 1100, 16100, arrivals, arrivals_sets),
    Example("cells", "192 x 256", 100, 700, 4900, wells, wells_sets),
    Example("digits", "60 digits a frame", 5000, 45000, 365000, numerals,
            lambda e, folder, n: ["stages.read.path=%s/digits-%d.npy" % (folder, n),
                                  "vars.out=%s/out/guesses.npy" % folder]),
    Example("video", "1920 x 1080, 4:2:0", 32, 232, 1632, film, film_sets, "denoise"),
    Example("photos", "JPEG of 600 x 800 to 1920 x 1080", 100, 400, 3100, album, album_sets),
]


class Measured:
    def __init__(self, b, e, args):
        self.b, self.e, self.args = b, e, args
        self.folder = b.path(e.name)
        os.mkdir(self.folder)
        e.prepare(e, self.folder)
        self.file, self.frames = e.yaml(), {}
        # relative paths are those of the YAML's folder; what was changed for the measurement stands in another
        if os.path.exists(self.folder + "/%s.yaml" % e.file):
            self.file = self.folder + "/%s.yaml" % e.file

    def sets(self, n):
        return ["device=" + self.args.device, "vars.out=%s/out" % self.folder] + self.e.sets(self.e, self.folder, n)

    def seconds(self, n, settings, options=()):
        try:
            return self.b.gpipe_seconds(self.file, self.sets(n) + settings, n, options)
        finally:
            shutil.rmtree(self.folder + "/out", ignore_errors=True)

    def gpipe(self, settings):
        """Frames a second. With how many frames that is measured is found in the first round."""
        few = self.seconds(self.e.few, settings)
        known = self.frames.get(tuple(settings))
        for n in [known] if known else [self.e.many, self.e.most]:
            more = self.seconds(n, settings) - few
            if more > 1:
                break
        if more <= 0:
            raise Failure("%d frames took no longer than %d" % (n, self.e.few))
        self.frames[tuple(settings)] = n
        return (n - self.e.few) / more

    def verdict(self, settings):
        """What the report of as many frames says holds the run back."""
        report = self.b.path("report.json")
        self.seconds(self.frames[tuple(settings)], settings, ["--progress", "none", "--report", report])
        with open(report) as f:
            return json.load(f)["verdict"]["text"]

    def tuned(self):
        """The settings that `gpipe tune` finds; [] where those of the file are best."""
        command = [self.b.gpipe, "tune", "--memory", "16GiB", "--budget", self.args.budget]
        for s in self.sets(self.e.many):
            command += ["--set", s]
        out, _, _ = self.b.run(command + [self.file], timeout=900)
        best = re.search(r"^(\S.*?)   .*\bbest$", out, re.M)
        if not best and not re.search(r"^as given ", out, re.M):
            raise Failure("no table of 'gpipe tune'\n" + out)
        return best.group(1).split() if best else []

    def peer(self):
        out, err, code = self.b.run([sys.executable, os.path.join(HERE, "examples_peers.py"), self.e.name, self.folder,
                                     self.e.few, self.e.many], timeout=900, ok=(0, 3))
        if code:
            return None, err.strip().split("\n")[-1]
        library, us = out.split()
        return 1e6 / float(us), library


def measure(b, e, args):
    start = time.monotonic()

    def now(what):
        print("%s: %s at %.0f s" % (e.name, what, time.monotonic() - start), file=sys.stderr)

    m = Measured(b, e, args)
    settings = list(SETTINGS)
    now("inputs")
    try:
        best, untuned = m.tuned(), None
        if best:
            settings.append(("tuned: `%s`" % " ".join(best), best))
        else:
            settings[-1] = ("as it is; `gpipe tune` found nothing better", [])
    except Failure as wrong:
        untuned = next((line for line in str(wrong).split("\n")[1:] if "error: " in line), str(wrong).split("\n")[0])
    now("tuned")
    rates, library, why = [[] for _ in settings] + [[]], "CuPy, PyTorch", None
    for _ in range(args.rounds):
        for i, (_, sets) in enumerate(settings):
            rates[i].append(m.gpipe(sets))
            now("%s: %.4g" % (settings[i][0], rates[i][-1]))
        if why is None:
            rate, said = m.peer()
            if rate is None:
                why = said
            else:
                library = said
                rates[-1].append(rate)
                now("%s: %.4g" % (library, rate))
    verdicts = [m.verdict(sets) for _, sets in settings]
    print("### %s: %s\n\n| | frames/s |\n|---|---|" % (e.name, e.what))
    for (name, _), r in zip(settings, rates):
        print("| %s | %.4g |" % (name, median(r)))
    if why is None:
        print("| %s | %.4g |" % (library, median(rates[-1])))
    if untuned:
        print("\nNot tuned: %s." % untuned)
    if why is not None:
        print("\nNo peer: %s." % why)
    print("\nWhat the reports say:\n\n%s" % "".join("* %s: %s.\n" % (name, text) for (name, _), text in zip(settings, verdicts)),
          end="")
    print("\nLeast and most of %d rounds: %s.\n" % (args.rounds, "; ".join(
        "%.4g to %.4g" % (min(r), max(r)) for r in rates if r)), flush=True)
    shutil.rmtree(m.folder)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("names", nargs="*", metavar="NAME", help=", ".join(e.name for e in ALL))
    p.add_argument("--gpipe", default=os.environ.get("GPIPE", os.path.join(HERE, "../../gpipe")))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--budget", default="30s", help="of gpipe tune, for each example")
    p.add_argument("--device", default="cuda")
    p.add_argument("-v", "--verbose", action="store_true", help="show the commands")
    args = p.parse_args()
    unknown = set(args.names) - {e.name for e in ALL}
    if unknown or args.rounds < 1 or not os.access(args.gpipe, os.X_OK):
        p.error("no example '%s'" % unknown.pop() if unknown else
                "no rounds" if args.rounds < 1 else "no command '%s'; set GPIPE" % args.gpipe)
    if os.path.isdir("/dev/shm"):
        os.environ.setdefault("TMPDIR", "/dev/shm")
    # libraries that pip installed, as PyTorch's, are found by gpipe, too
    pip = [folder for path in sys.path for folder in glob.glob(path + "/nvidia/*/lib")]
    os.environ["LD_LIBRARY_PATH"] = ":".join(pip + [os.environ.get("LD_LIBRARY_PATH", "")]).strip(":")
    b, failed = Bench(args.gpipe, args.verbose), False
    try:
        for e in ALL:
            if not args.names or e.name in args.names:
                try:
                    measure(b, e, args)
                except Failure as wrong:
                    failed = True
                    print("### %s: FAILED: %s\n" % (e.name, wrong), flush=True)
    finally:
        b.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
