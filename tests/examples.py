"""What the examples made, compared with what others compute: formulas, and NumPy's and SciPy's results in tests/ref.

    examples.py NAME FOLDER      exit 1 where what example NAME left in FOLDER is not right

Plain Python, so that the check needs nothing installed."""
import array, ast, json, math, os, struct, sys

REF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ref")


def load(*path):
    """(the elements of a .npy, its shape)"""
    with open(os.path.join(*path), "rb") as f:
        data = f.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    head = ast.literal_eval(data[10:start].decode())
    a = array.array({"<f4": "f", "<f8": "d", "|u1": "B", "<u2": "H", "<i2": "h", "<i4": "i"}[head["descr"]])
    a.frombytes(data[start:])
    return a, head["shape"]


def same(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got}, not {wanted}")


def within(what, got, wanted, bound):
    """Each number of `got` is as far from that of `wanted` as `bound` at most."""
    same(f"{what}: how many numbers", len(got), len(wanted))
    far = max(range(len(got)), key=lambda i: abs(got[i] - wanted[i]) if got[i] == got[i] else math.inf)
    if not abs(got[far] - wanted[far]) <= bound:
        sys.exit(f"{what}: {got[far]} at {far}, not {wanted[far]}, within {bound}")


def heartbeat(folder):
    """At least 99 % of the beats of each list are within 50 ms of one of the other."""
    with open(os.path.join(folder, "beats.jsonl")) as f:
        ours = [json.loads(line)["time"] for line in f]
    theirs, _ = load(REF, "beats.npy")
    for a, b in ((ours, theirs), (theirs, ours)):
        near = sum(min(abs(t - u) for u in b) <= 0.05 for t in a) / len(a) if a and b else 0
        if near < 0.99:
            sys.exit(f"{len(ours)} beats, SciPy's are {len(theirs)}; {near:.1%} of one are near one of the other")


def heat(folder):
    """Two waves on a plate decay as the heat equation's solution says."""
    got, shape = load(folder, "heat.npy")
    same("the shape", shape, (6, 127, 127))
    down = [[math.sin(k * math.pi * (i + 1) / 128) for i in range(127)] for k in range(5)]
    wanted = []
    for frame in range(6):
        t = 0.2 * 150 * (frame + 1) * (math.pi / 128) ** 2
        slow, fast = 0.5 * math.exp(-2 * t), 0.5 * math.exp(-25 * t)
        wanted += [slow * down[1][y] * down[1][x] + fast * down[4][y] * down[3][x]
                   for y in range(127) for x in range(127)]
    within("heat", got, wanted, 2e-4)


def spectrogram(folder):
    """Every 16th row is what SciPy makes of the same song."""
    got, shape = load(folder, "levels.npy")
    same("the shape", shape, (320, 257))
    wanted, _ = load(REF, "spectrogram.npy")
    within("decibels", [x for row in range(0, 320, 16) for x in got[257 * row:257 * (row + 1)]], wanted, 0.1)


def camera(folder):
    """Raw frames without offset, shadow and stuck pixels, and their running mean; of the frames that were kept."""
    high, wide = 96, 128
    at = range(high * wide)
    dark, flat = (load(REF, "../../examples/camera", name)[0] for name in ("dark.npy", "flat.npy"))

    def around(picture, i):
        y, x = divmod(i, wide)
        return sorted(picture[wide * min(max(y + dy, 0), high - 1) + min(max(x + dx, 0), wide - 1)]
                      for dy in (-1, 0, 1) for dx in (-1, 0, 1))[4]

    stuck = [i for i in at if dark[i] - around(dark, i) > 500]
    if not 40 < len(stuck) < 90:
        sys.exit(f"{len(stuck)} stuck pixels, not about 61")
    gain = [208 / (flat[i] - dark[i]) if flat[i] != dark[i] else 0 for i in at]
    for i in stuck:
        gain[i] = 0
    mean = None
    for kept in ("raw-000.npy", "raw-001.npy"):
        frames, shape = load(folder, kept)
        same("the shape of " + kept, shape, (8, high, wide))
        for k in range(8):
            raw = frames[k * len(at):(k + 1) * len(at)]
            even = [(raw[i] - dark[i]) * gain[i] for i in at]
            now = even[:]
            for i in stuck:
                now[i] = around(even, i)
            mean = [b + 0.25 * (n - b) for b, n in zip(mean, now)] if mean else now
    got, shape = load(folder, "00015.npy")
    same("the shape", shape, (high, 3 * wide))
    for part, (name, wanted) in enumerate((("seen", [(r - 260) * 255 / 3200 for r in raw]), ("corrected", now),
                                           ("mean", mean))):
        within(name, [got[3 * wide * y + part * wide + x] for y in range(high) for x in range(wide)],
               [min(max(w, 0), 255) for w in wanted], 0.501)


def diffusion(folder):
    """Ratios before and after, and pixels of the result, are what NumPy makes."""
    with open(os.path.join(folder, "psnr.csv")) as f:
        within("ratios", [float(x) for line in f for x in line.split(",")], load(REF, "diffusion_psnr.npy")[0], 0.001)
    got, shape = load(folder, "calm.npy")
    same("the shape", shape, (3, 192, 256))
    within("pixels", [got[256 * y + x] for y in range(0, 3 * 192, 4) for x in range(0, 256, 4)],
           load(REF, "diffusion_calm.npy")[0], 0.01)


def replay(folder):
    """The losses are those of NumPy, and fall."""
    with open(os.path.join(folder, "loss.csv")) as f:
        losses = [float(line) for line in f]
    within("losses", losses, load(REF, "replay.npy")[0], 0.001)
    if not sum(losses[-60:]) < 0.1 * sum(losses[:60]):
        sys.exit("the losses do not fall")


def lines(folder):
    with open(os.path.join(folder, "learn.csv")) as f:
        return [[float(x) for x in line.split(",")] for line in list(f)[1:]]


def learn(folder):
    """Lengths of episodes and losses of a short run are those of NumPy."""
    within("lengths and losses", [x for line in lines(folder) for x in line], load(REF, "learn.npy")[0], 1e-4)


def learned(folder):
    """In a longer run poles stand long at its end."""
    lengths = [length for length, _ in lines(folder) if length == length]      # NaN: no episode ended
    if not max(lengths[:10]) < 50 or not min(lengths[-10:]) > 150:
        sys.exit(f"it does not learn: {lengths}")


def train(folder, by="train.npy", bound=1e-4):
    """The losses that each rank wrote are those of NumPy in one process, and fall."""
    files = [name for name in os.listdir(folder) if name.startswith("loss-")]
    wanted, _ = load(REF, by)
    for name in files:
        with open(os.path.join(folder, name)) as f:
            within(name, [float(line) for line in f], wanted, bound)
    if not files or not sum(wanted[-30:]) < 0.01 * sum(wanted[:30]):
        sys.exit("there are no losses that fall")


def descent(folder):
    """As train, by plain gradient descent, whose large steps magnify how sums are rounded."""
    train(folder, "descent.npy", 1e-3)


def decode(folder):
    """The text is what NumPy makes of the same weights (Decoder of examples/decode/reference.py)."""
    with open(os.path.join(folder, "text.txt"), "rb") as f, open(os.path.join(REF, "decode.txt"), "rb") as wanted:
        same("the text", f.read(), wanted.read())


CHECKS = {f.__name__: f for f in (heartbeat, heat, spectrogram, camera, diffusion, replay, learn, learned, train, descent, decode)}

if len(sys.argv) != 3 or sys.argv[1] not in CHECKS:
    sys.exit(__doc__)
CHECKS[sys.argv[1]](sys.argv[2])
