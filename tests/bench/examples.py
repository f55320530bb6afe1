"""examples.py - the pipelines of examples/ on this machine, beside what an expert wrote in Python (examples_peers.py).

    GPIPE=.../gpipe python3 tests/bench/examples.py [NAME...] [--rounds 3] [--limit 30] [--settings] [-v]

Prints a Markdown table as it goes, in frames a second: the fastest of the expert's ways, gpipe with the files of
examples/ as they are (with larger inputs and other values by --set), and the ratio; then, of each, what the other ways
made, which failed, and what gpipe's report says holds it back. --settings: also with one frame in each buffer, launched
call by call and by graphs. What a few frames give is first compared with what the expert's give. Each figure is the
median of the rounds, of what many frames take more than few, with more frames where that is less than a second. Needs
NumPy and OpenCV. Files are in TMPDIR, or in /dev/shm if that is not said, which needs some 10 GB.
"""
import argparse, glob, json, os, re, shutil, sys, time
from statistics import median

sys.dont_write_bytecode = True
import cv2, numpy as np, examples_peers as peers
from tools import HERE, Bench, Failure, Skip

EXAMPLES = os.path.normpath(os.path.join(HERE, "../../examples"))
SETTINGS = [("`launch: stream`, depth 1", ["launch=stream", "depth=1"]), ("graphs, depth 1", ["depth=1"])]


class Example:
    """prepare(example, folder) makes what it reads, for each of `counts` frames; sets(example, folder, n): what of n
    frames is set."""

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
        "vars.frames=%d" % n, "stages.group.frames=400", "buffers.curve.shape=[120, 400]", "stages.picture.path=%s/out/curve-%%03d.png" % folder,
        "vars.digits=%s/digits.npy" % folder, "vars.labels=%s/labels.npy" % folder]


def lessons(e, folder):
    for name in ("digits/digits", "digits/labels", *("train/%s%d" % (a, k) for a in "wb" for k in (1, 2, 3))):
        shutil.copy("%s/%s.npy" % (EXAMPLES, name), folder)


def lessons_sets(e, folder, n):
    return of(peers.TRAIN, "size") + ["vars.learn=descent", "stages.learn.stages.step.vars.rate=%s" % peers.TRAIN["rate"]] + ["stages.%s.frames=%d" % (name, peers.TRAIN["together"])
                                              for name in ("leasts", "mosts", "losses")] + [
        "vars.steps=%d" % n, "vars.data=" + folder, "vars.weights=" + folder,
        "stages.picture.path=%s/out/curve-%%03d.png" % folder]


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
    Example("train", "a step of training with 60 digits", 600, 6600, 66600, lessons, lessons_sets),
    Example("cells", "192 x 256", 100, 700, 4900, wells, wells_sets),
    Example("digits", "60 digits a frame", 5000, 45000, 365000, numerals,
            lambda e, folder, n: ["stages.read.path=%s/digits-%d.npy" % (folder, n),
                                  "vars.out=%s/out/guesses.npy" % folder]),
    Example("video", "1920 x 1080, 4:2:0", 32, 232, 1632, film, film_sets, "denoise"),
    Example("photos", "JPEG of 600 x 800 to 1920 x 1080", 100, 400, 3100, album, album_sets),
]


def surroundings():
    """Libraries that pip installed, as PyTorch's, are found by gpipe, too."""
    pip = [folder for path in sys.path for folder in glob.glob(path + "/nvidia/*/lib")]
    os.environ["LD_LIBRARY_PATH"] = ":".join(pip + [os.environ.get("LD_LIBRARY_PATH", "")]).strip(":")


class Measured:
    """An example, and its files; what a few frames give is kept in `gpipe` of its folder."""

    def __init__(self, b, e, device="cuda"):
        self.b, self.e, self.device, self.frames = b, e, device, {}
        self.folder, self.file = b.path(e.name), e.yaml()
        os.mkdir(self.folder)
        e.prepare(e, self.folder)
        # relative paths are those of the YAML's folder; what was changed for the measurement stands in another
        if os.path.exists(self.folder + "/%s.yaml" % e.file):
            self.file = self.folder + "/%s.yaml" % e.file
        self.run(e.few, [])
        os.rename(self.folder + "/out", self.folder + "/gpipe")

    def close(self):
        shutil.rmtree(self.folder)

    def run(self, n, settings, options=()):
        sets = ["device=" + self.device, "vars.out=%s/out" % self.folder] + self.e.sets(self.e, self.folder, n)
        return self.b.gpipe_seconds(self.file, sets + settings, n, options)

    def seconds(self, *arguments):
        try:
            return self.run(*arguments)
        finally:
            shutil.rmtree(self.folder + "/out", ignore_errors=True)

    def gpipe(self, settings=()):
        """Frames a second. With how many frames that is measured is found in the first round."""
        few = self.seconds(self.e.few, list(settings))
        known = self.frames.get(tuple(settings))
        for n in [known] if known else [self.e.many, self.e.most]:
            more = self.seconds(n, list(settings)) - few
            if more > 1:
                break
        if more <= 0:
            raise Failure("%d frames took no longer than %d" % (n, self.e.few))
        self.frames[tuple(settings)] = n
        return (n - self.e.few) / more

    def verdict(self, settings=()):
        """What the report of as many frames says holds the run back."""
        report = self.b.path("report.json")
        self.seconds(self.frames[tuple(settings)], list(settings), ["--progress", "none", "--report", report])
        with open(report) as f:
            return json.load(f)["verdict"]["text"]

    def experts(self, rounds=1, limit=60):
        """({way: frames a second}, [what was said of those that failed])"""
        command = [sys.executable, os.path.join(HERE, "examples_peers.py"), self.e.name, self.folder, *self.e.counts,
                   "--device", self.device, "--rounds", rounds, "--limit", limit]
        out, err, code = self.b.run(command, timeout=2 * limit + 60, ok=range(-64, 256))
        if self.b.verbose:
            print(err, file=sys.stderr)
        if code == 3:
            raise Skip(err.strip().split("\n")[-1])
        lines = re.findall(r"^([\d.]+|-) (.+)$", out, re.M)
        wrong = [said for us, said in lines if us == "-"]
        if code:
            wrong.append("ended with %d: %s" % (code, err.strip().split("\n")[-1]))
        return {way: 1e6 / float(us) for us, way in lines if us != "-" and float(us) > 0}, wrong


def measure(b, e, args):
    """The line of the table, and what else is to be said."""
    m, ways, wrong = Measured(b, e, args.device), {}, []
    try:
        settings = SETTINGS * args.settings + [("gpipe as it is", [])]
        rates = [[] for _ in settings]
        for k in range(args.rounds):
            for (_, sets), some in zip(settings, rates):
                some.append(m.gpipe(sets))
            if k == 0:
                try:
                    ways, wrong = m.experts(args.rounds, args.limit)
                except Skip as why:
                    wrong = [str(why)]
        mine, best = median(rates[-1]), max(ways, key=ways.get) if ways else None
        print("| %s: %s | %s | %.4g (%.4g to %.4g) | %s |" % (
            e.name, e.what, "%.4g, %s" % (ways[best], best) if best else "none", mine, min(rates[-1]), max(rates[-1]),
            "%.2f" % (mine / ways[best]) if best else ""), flush=True)
        said = ["%.4g, %s" % (rate, way) for way, rate in ways.items() if way != best]
        said += ["%.4g, %s" % (median(some), name) for (name, _), some in list(zip(settings, rates))[:-1]]
        return ["%s: %s" % (e.name, text) for text in said + wrong + [m.verdict()]]
    finally:
        m.close()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("names", nargs="*", metavar="NAME", help=", ".join(e.name for e in ALL))
    p.add_argument("--gpipe", default=os.environ.get("GPIPE", os.path.join(HERE, "../../gpipe")))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--limit", type=float, default=30, help="seconds after which no further way of the expert is begun")
    p.add_argument("--settings", action="store_true", help="also one frame in each buffer")
    p.add_argument("--device", default="cuda")
    p.add_argument("-v", "--verbose", action="store_true", help="show the commands")
    args = p.parse_args()
    unknown = set(args.names) - {e.name for e in ALL}
    if unknown or args.rounds < 1 or not os.access(args.gpipe, os.X_OK):
        p.error("no example '%s'" % unknown.pop() if unknown else
                "no rounds" if args.rounds < 1 else "no command '%s'; set GPIPE" % args.gpipe)
    if os.path.isdir("/dev/shm"):
        os.environ.setdefault("TMPDIR", "/dev/shm")
    surroundings()
    b, failed, notes = Bench(args.gpipe, args.verbose), False, []
    print("| frames/s | expert | gpipe as it is | ratio |\n|---|---|---|---|", flush=True)
    try:
        for e in ALL:
            if not args.names or e.name in args.names:
                start = time.monotonic()
                try:
                    some = measure(b, e, args)
                    notes += some
                    print("\n".join(some), file=sys.stderr)          # a run that is ended has said it, too
                except Failure as wrong:
                    failed = True
                    print("| %s: FAILED: %s | | | |" % (e.name, str(wrong).split("\n")[0]), flush=True)
                    print(wrong, file=sys.stderr)
                print("%s: %.0f s" % (e.name, time.monotonic() - start), file=sys.stderr, flush=True)
    finally:
        print("\n" + "\n".join("* " + note for note in notes))
        b.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
