"""examples_peers.py - what the pipelines of examples/ do, as an expert writes it in Python: CUDA graphs, pinned slots
with several frames in flight, torch.compile, kernels of one's own, batches, threads that read, encode and write.

    examples_peers.py NAME FOLDER FEW MANY MOST [--device cuda|cpu] [--rounds N] [--limit SECONDS] [WAY...]

For each way of NAME, as it is measured: `US WAY`, microseconds per frame: what MANY frames of the files in FOLDER
(which examples.py makes) take more than FEW, MOST where that is below a second; the median of the rounds. Before, what
FEW frames make is compared with what gpipe made of them, in FOLDER/gpipe. A way that fails, or makes something else,
says `- WAY: why`. Exit 3 where a library or a GPU is missing. On the CPU the same is computed without graphs, only to
compare.
"""
import argparse, faulthandler, fcntl, functools, glob, multiprocessing, os, re, shutil, subprocess, sys, threading, time
import traceback
from collections import deque
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from statistics import median
from types import SimpleNamespace

sys.dont_write_bytecode = True
import numpy as np
try:
    import cv2
    from PIL import Image
except ImportError:
    cv2 = None

# what is measured, as examples.py has gpipe do it
HEAT = dict(side=255, steps=1500, rate=0.2, together=8)
SOUND = dict(rate=16000, length=512, hop=100, together=40)
CAMERA = dict(height=1080, width=1920, white=208, weight=0.25, roll=8)
DIFFUSION = dict(height=768, width=1024, amplitude=60, smooth=25, steps=100)
REPLAY = dict(new=3, keep=200, size=32, draws=4, rate=0.2)
TRAIN = dict(size=60, rate=0.5, together=300)
VIDEO = dict(height=1080, width=1920, level=30, keep=0.85)
# how much a number in a file may be off, and which share of them by more: what was rounded the other way, and what JPEG
# makes of that
NEAR = {"heat": (1e-4, 0), "spectrogram": (0.1, 1e-3), "camera": (1, 1e-4), "diffusion": (0.01, 1e-3),
        "replay": (1e-3, 0), "train": (1e-3, 0), "cells": (0.01, 1e-4), "digits": (0, 1e-5), "video": (1, 1e-5),
        "photos": (4, 0.05)}


DEVICE, CORES = "cuda", len(os.sched_getaffinity(0))


# -- what all have in common --

def settle():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def host(*shape, dtype="float32"):
    return torch.zeros(*shape, dtype=getattr(torch, dtype), pin_memory=DEVICE == "cuda")


def compiled(how, f):
    return torch.compile(f, dynamic=False) if "compile" in how else f


class Flight:
    """`depth` slots, each of which has arrays by make() and a graph of work(slot). Frames are filled and taken by
    `workers` threads, if any. ordered: frames go on from each other, so all have one stream; filled_here: what fills
    them is not for threads, as a pipe that is read."""

    def __init__(self, depth, make, work, workers=0, ordered=True, filled_here=False):
        self.slots, self.work = [make() for _ in range(depth)], work
        self.workers, self.ordered, self.here = workers, ordered, filled_here
        if DEVICE == "cpu":
            return
        stream = torch.cuda.Stream()
        for k, slot in enumerate(self.slots):
            slot.stream = stream if ordered else torch.cuda.Stream()
            slot.done, slot.graph = torch.cuda.Event(blocking=workers > 0), torch.cuda.CUDAGraph()
            slot.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(slot.stream):
                for _ in range(1 if k else 3):                        # libraries load, kernels are compiled
                    work(slot)
            torch.cuda.synchronize()
            with torch.cuda.graph(slot.graph, stream=slot.stream, capture_error_mode="thread_local"):
                work(slot)
            torch.cuda.synchronize()

    def launch(self, slot):
        if DEVICE == "cpu":
            self.work(slot)
            return
        with torch.cuda.stream(slot.stream):
            slot.graph.replay()
            slot.done.record(slot.stream)

    def turn(self, i, n, fill, take):
        """Takes the frame that has the slot of frame i, and fills it anew."""
        slot = self.slots[i % len(self.slots)]
        if i >= len(self.slots):
            if DEVICE == "cuda":
                slot.done.synchronize()
            take(i - len(self.slots), slot)
        if i < n and not self.here:
            fill(i, slot)
            if not self.ordered:
                self.launch(slot)

    def start(self, i, fill):
        slot = self.slots[i % len(self.slots)]
        if self.here:
            fill(i, slot)
        if self.ordered or self.here:
            self.launch(slot)

    def run(self, n, fill, take):
        depth = len(self.slots)
        if not self.workers:
            for i in range(n + depth):
                if i < n or i - depth in range(n):
                    self.turn(i, n, fill, take)
                if i < n:
                    self.start(i, fill)
            return
        with ThreadPoolExecutor(self.workers) as pool:
            turns = deque(pool.submit(self.turn, i, n, fill, take) for i in range(min(depth, n)))
            for i in range(n):
                turns.popleft().result()
                self.start(i, fill)
                turns.append(pool.submit(self.turn, i + depth, n, fill, take))
            for turn in turns:
                turn.result()


def npy(path, *shape, dtype="f4"):
    """A new file, mapped: threads write its parts at the same time, which they could not by write()."""
    return np.lib.format.open_memmap(path, "w+", dtype, shape)


def write_png(how, path, a):
    if how[0] == "cv2":
        cv2.imwrite(path, a, how[1:])
    else:
        Image.fromarray(a if a.ndim == 2 else cv2.cvtColor(a, cv2.COLOR_BGR2RGB)).save(path, compress_level=how[1])


def png_writer(folder, pattern):
    """The fastest of the ways here to write a PNG that is at most a tenth larger than gpipe's of the same picture."""
    path = sorted(glob.glob("%s/gpipe/%s" % (folder, pattern)))[0]
    picture, to, times = cv2.imread(path, cv2.IMREAD_UNCHANGED), folder + "/try.png", {}
    ways = [("cv2", cv2.IMWRITE_PNG_COMPRESSION, k) for k in range(8)] + [("Pillow", k) for k in range(8)]
    for how in [("cv2",)] + ways:
        first = seconds(write_png, how, to, picture)
        small = os.path.getsize(to) <= 1.1 * os.path.getsize(path)
        if small and first < 3 * min(times.values(), default=1) or how == ways[-1] and not times:
            times[how] = min(seconds(write_png, how, to, picture) for _ in range(3))
    os.remove(to)
    print("png:", min(times, key=times.get), file=sys.stderr)
    return functools.partial(write_png, min(times, key=times.get))


def palette(name):
    """256 colors, blue first"""
    return cv2.applyColorMap(np.arange(256, dtype=np.uint8), getattr(cv2, "COLORMAP_" + name)).reshape(256, 3)


def seconds(f, *arguments):
    start = time.perf_counter()
    f(*arguments)
    return time.perf_counter() - start


# -- the examples: each returns what computes n frames, and writes them to a folder --

STEPS = r"""
extern "C" __global__ void one(const float *u, float *v, int n, float rate)      // both have a rim of 0
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, wide = n + 2;
    if (x >= n || y >= n)
        return;
    u += (y + 1) * wide + x + 1;
    v[(y + 1) * wide + x + 1] = *u + rate * (u[-wide] + u[wide] + u[-1] + u[1] - 4 * *u);
}

// A block has 32 x 32 points in shared memory: after each step those nearer to its edge by one are wrong.
extern "C" __global__ void some(const float *u, float *v, int n, float rate, int steps)
{
    __shared__ float all[2][34][34];
    int i = threadIdx.x + 1, j = threadIdx.y + 1, inner = 32 - 2 * steps, wide = n + 2;
    int x = blockIdx.x * inner + threadIdx.x - steps, y = blockIdx.y * inner + threadIdx.y - steps;
    bool inside = x >= 0 && y >= 0 && x < n && y < n;
    for (int k = threadIdx.y * 32 + threadIdx.x; k < 2 * 34 * 34; k += 1024)
        all[0][0][k] = 0;
    __syncthreads();
    float now = inside ? u[(y + 1) * wide + x + 1] : 0;
    all[0][j][i] = now;
    for (int s = 0; s < steps; s++) {
        float (*a)[34] = all[s & 1];
        __syncthreads();
        if (inside)
            now += rate * (a[j - 1][i] + a[j + 1][i] + a[j][i - 1] + a[j][i + 1] - 4 * now);
        all[~s & 1][j][i] = now;
    }
    int low = steps, high = 32 - steps;
    if (inside && i > low && i <= high && j > low && j <= high)
        v[(y + 1) * wide + x + 1] = now;
}
"""


def heat(folder, how):
    side, steps, rate, together = HEAT["side"], HEAT["steps"], HEAT["rate"], HEAT["together"]
    at = np.pi * np.arange(1, side + 1, dtype=np.float32) / (side + 1)
    slow, fast = np.outer(np.sin(at), np.sin(at)), np.outer(np.sin(4 * at), np.sin(3 * at))
    wide, other = (torch.zeros(side + 2, side + 2, device=DEVICE) for _ in range(2))
    now, write, colors = wide[1:-1, 1:-1], png_writer(folder, "heat-*.png"), palette("MAGMA")

    def step(a):
        c = a[1:-1, 1:-1]
        c = c + rate * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * c)
        return torch.nn.functional.pad(c, (1, 1, 1, 1))

    step = compiled(how, step)

    def by_torch():
        a = wide
        for _ in range(steps):
            a = step(a)
        wide.copy_(a)

    if "CuPy" in how:
        import cupy as cp
        kernels, u, v, most = cp.RawModule(code=STEPS), cp.asarray(wide), cp.asarray(other), int(how.split()[-4])
        one, some = kernels.get_function("one"), kernels.get_function("some")

    def by_hand():
        left, a, b = steps, u, v
        with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            while left:
                k = min(most, left)
                if most == 1:
                    one((-(-side // 32), -(-side // 8)), (32, 8), (a, b, np.int32(side), np.float32(rate)))
                else:
                    blocks = -(-side // (32 - 2 * k))
                    some((blocks, blocks), (32, 32), (a, b, np.int32(side), np.float32(rate), np.int32(k)))
                left, a, b = left - k, b, a
        if a is v:
            wide.copy_(other)

    def work(slot):
        (by_hand if "CuPy" in how else by_torch)()
        slot.h.copy_(now, non_blocking=True)

    flight = Flight(8, lambda: SimpleNamespace(h=host(side, side)), work, 6)

    def run(out, n):
        now.copy_(torch.from_numpy(0.5 * (slow + fast)))
        settle()
        file, lock, rows = npy(out + "/heat.npy", n, side, side), threading.Lock(), {}

        def take(i, slot):
            h, k, t = slot.h.numpy(), i // together, rate * steps * (i + 1) * np.pi ** 2 / (side + 1) ** 2
            off = np.abs(h - np.float32(0.5 * np.exp(-2 * t)) * slow - np.float32(0.5 * np.exp(-25 * t)) * fast).max()
            assert off < 2e-4, "frame %d is %g off" % (i, off)
            file[i] = h
            level = np.clip((h + 0.3) * np.float32(256 / 1.2), 0, 255).astype(np.uint8)
            with lock:
                row = rows.setdefault(k, {})
                row[i % together] = level
                last = len(row) == together
            if last:
                write("%s/heat-%03d.png" % (out, k), colors[np.hstack([row[j] for j in range(together)])])

        flight.run(n, lambda i, slot: None, take)
    return run


def spectrogram(folder, how):
    length, hop, together, rate = SOUND["length"], SOUND["hop"], SOUND["together"], SOUND["rate"]
    rows, before, bins = 40 * together, length - hop, length // 2 + 1
    taper = torch.from_numpy(np.hanning(length + 1)[:-1].astype(np.float32)).to(DEVICE)
    density = np.full(bins, 2 / (rate * length * 0.375), np.float32)
    density[[0, -1]] /= 2
    density = torch.from_numpy(density).to(DEVICE)
    colors, write = torch.from_numpy(palette("MAGMA")).to(DEVICE), png_writer(folder, "spectrogram-*.png")

    def windows(x):
        return x.float().div(32768).unfold(0, length, hop) * taper

    def levels(f):
        db = 10 * torch.log10(torch.clamp((f[..., 0] * f[..., 0] + f[..., 1] * f[..., 1]) * density, min=1e-12))
        k = torch.clamp((db + 95) * (256 / 65), 0, 255).to(torch.uint8).T.flip(0)
        return db, colors[k.int()]

    windows, levels = compiled(how, windows), compiled(how, levels)

    def work(slot):
        slot.x.copy_(slot.hx, non_blocking=True)
        db, picture = levels(torch.view_as_real(torch.fft.rfft(windows(slot.x))))
        slot.db.copy_(db, non_blocking=True)
        slot.picture.copy_(picture, non_blocking=True)

    flight = Flight(2 * CORES, lambda: SimpleNamespace(
        hx=host(rows * hop + before, dtype="int16"), x=host(rows * hop + before, dtype="int16").to(DEVICE),
        db=host(rows, bins), picture=host(bins, rows, 3, dtype="uint8")), work, CORES, ordered=False)

    def run(out, n):
        sound = np.load("%s/sound-%d.npy" % (folder, n), mmap_mode="r")
        file = npy(out + "/levels.npy", 40 * n, bins)

        def fill(i, slot):
            part, to = sound[max(i * rows * hop - before, 0):(i + 1) * rows * hop], slot.hx.numpy()
            to[:len(to) - len(part)] = 0
            to[len(to) - len(part):] = part

        def take(i, slot):
            file[i * rows:(i + 1) * rows] = slot.db.numpy()
            write("%s/spectrogram-%03d.png" % (out, i), slot.picture.numpy())

        flight.run(n // together, fill, take)
    return run


def camera(folder, how):
    high, wide, roll = CAMERA["height"], CAMERA["width"], CAMERA["roll"]
    dark, flat = (np.load("%s/%s.npy" % (folder, name)) for name in ("dark", "flat"))
    stuck = dark - cv2.medianBlur(dark, 3) > 500
    with np.errstate(divide="ignore"):
        gain = np.where(stuck, 0, CAMERA["white"] / (flat - dark)).astype(np.float32)
    # of a frame only the stuck pixels need a median
    y, x = np.nonzero(stuck)
    around = np.stack([np.clip(y + j, 0, high - 1) * wide + np.clip(x + i, 0, wide - 1)
                       for j in (-1, 0, 1) for i in (-1, 0, 1)], 1)
    dark, gain, around, at = (torch.from_numpy(a).to(DEVICE) for a in (dark, gain, around, y * wide + x))
    mean, weight = torch.zeros(high, wide, device=DEVICE), torch.ones((), device=DEVICE)

    def even(raw):
        return (raw.float() - dark) * gain                            # 12 bits: as i16 it is the same

    def row(raw, now):
        mean.add_(weight * (now - mean))
        three = torch.cat([(raw.float() - 260) * (255 / 3200), now, mean], 1)
        return torch.clamp(torch.round(three), 0, 255).to(torch.uint8)

    even, row = compiled(how, even), compiled(how, row)

    def work(slot):
        slot.raw.copy_(slot.hraw, non_blocking=True)
        now = even(slot.raw)
        now.view(-1)[at] = now.view(-1)[around].sort(1).values[:, 4]
        slot.row.copy_(row(slot.raw, now), non_blocking=True)
        weight.fill_(CAMERA["weight"])

    flight = Flight(12, lambda: SimpleNamespace(
        hraw=host(high, wide, dtype="int16"), raw=host(high, wide, dtype="int16").to(DEVICE),
        row=host(high, 3 * wide, dtype="uint8")), work, 8, filled_here=True)

    def run(out, n):
        mean.zero_()
        weight.fill_(1)
        settle()
        files = [npy("%s/raw-%03d.npy" % (out, k // roll), min(roll, n - k), high, wide, dtype="u2")
                 for k in range(0, n, roll)]
        size = 2 * high * wide
        head = ["head", "-c", str(size * n), folder + "/raw"]
        with subprocess.Popen(head, stdout=subprocess.PIPE, bufsize=0) as program:
            fcntl.fcntl(program.stdout, fcntl.F_SETPIPE_SZ, 1 << 20)

            def fill(i, slot):
                to, done = memoryview(slot.hraw.numpy()).cast("B"), 0
                while done < size:
                    some = program.stdout.readinto(to[done:])
                    assert some, "the camera has ended at frame %d" % i
                    done += some

            def take(i, slot):
                np.save("%s/%05d.npy" % (out, i), slot.row.numpy())
                files[i // roll][i % roll] = slot.hraw.numpy().view(np.uint16)

            flight.run(n, fill, take)
    return run


def diffusion(folder, how):
    smooth, steps, shape = DIFFUSION["smooth"], DIFFUSION["steps"], (DIFFUSION["height"], DIFFUSION["width"])
    pad, write, peak = torch.nn.functional.pad, png_writer(folder, "0*.png"), float(20 * np.log10(255))
    # as `generate` has it: SplitMix64
    z = (np.arange(shape[0] * shape[1], dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9e3779b97f4a7c15)
    for by, times in ((30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb)):
        z = (z ^ z >> np.uint64(by)) * np.uint64(times)
    z = ((z ^ z >> np.uint64(31)) >> np.uint64(11)) * 2.0 ** -52 - 1
    noise = torch.from_numpy((DIFFUSION["amplitude"] * z).astype(np.float32).reshape(shape)).to(DEVICE)

    def divergence(x, y):
        return x - pad(x[:, :-1], (1, 0)) + y - pad(y[:-1], (0, 0, 1, 0))

    def begin(photo):
        gray = photo[..., 2].float() * 0.299 + photo[..., 1].float() * 0.587 + photo[..., 0].float() * 0.114
        return gray, gray + noise

    def step(noisy, x, y):
        rest = divergence(x, y) - noisy / smooth
        right = pad(rest[:, 1:] - rest[:, :-1], (0, 1))
        below = pad(rest[1:] - rest[:-1], (0, 0, 0, 1))
        much = 1 + 0.2 * torch.sqrt(right * right + below * below)
        return (x + 0.2 * right) / much, (y + 0.2 * below) / much

    def end(photo, noisy, x, y):
        calm = noisy - smooth * divergence(x, y)
        wrong = torch.stack([((noisy - photo) ** 2).mean(), ((calm - photo) ** 2).mean()])
        return calm, peak - 10 * torch.log10(wrong), \
            torch.clamp(torch.round(torch.cat([photo, noisy, calm], 1)), 0, 255).to(torch.uint8)

    begin, step, end = (compiled(how, f) for f in (begin, step, end))

    def work(slot):
        slot.x.copy_(slot.hx, non_blocking=True)
        photo, noisy = begin(slot.x)
        x, y = torch.zeros_like(noisy), torch.zeros_like(noisy)
        for _ in range(steps):
            x, y = step(noisy, x, y)
        for to, made in zip((slot.calm, slot.psnr, slot.row), end(photo, noisy, x, y)):
            to.copy_(made, non_blocking=True)

    # all frames on one stream: a step of one fills the device
    flight = Flight(CORES + 4, lambda: SimpleNamespace(
        hx=host(*shape, 3, dtype="uint8"), x=host(*shape, 3, dtype="uint8").to(DEVICE), calm=host(*shape), psnr=host(2),
        row=host(shape[0], 3 * shape[1], dtype="uint8")), work, CORES)

    def run(out, n):
        file, ratios = npy(out + "/calm.npy", n, *shape), np.empty((n, 2))

        def fill(i, slot):
            slot.hx.numpy()[:] = cv2.imread(folder + "/photo.png")

        def take(i, slot):
            ratios[i] = slot.psnr.numpy()
            file[i] = slot.calm.numpy()
            write("%s/%05d.png" % (out, i), slot.row.numpy())

        flight.run(n, fill, take)
        np.savetxt(out + "/psnr.csv", ratios, "%.6f", ",")
    return run


def learning(weights, rate, how):
    """A step of training of layers with relu between them; the last column of each is its bias, for a 1 behind its
    input."""
    ten = torch.arange(10, device=DEVICE)

    def forth(x, w):
        return torch.nn.functional.pad(torch.relu(x @ w.T), (0, 1), value=1)

    def head(x, w, answers):
        scores = torch.log_softmax(x @ w.T, 1)
        wanted = (answers[:, None] == ten).float()
        return -(scores * wanted).sum(1).mean(), (torch.exp(scores) - wanted) / len(x)

    def back(d, w, x):
        return torch.where(x[:, :-1] > 0, d @ w[:, :-1], 0)

    forth, head, back = (compiled(how, f) for f in (forth, head, back))

    def step(x, answers):
        xs = [x]
        for w in weights[:-1]:
            xs.append(forth(xs[-1], w))
        loss, d = head(xs[-1], weights[-1], answers)
        for w, x in list(zip(weights, xs))[::-1]:
            before = back(d, w, x) if x is not xs[0] else None
            w.addmm_(d.T, x, alpha=-rate)
            d = before
        return loss
    return step


def pixels_of(digits):
    return torch.nn.functional.pad(digits.reshape(-1, 64).float() / 16, (0, 1), value=1)


try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None
if triton:
    @triton.jit
    def learn_in_one(pixels, labels, drawn, w1, w2, losses, n, rate, SIZE: tl.constexpr):
        # all steps of a launch in one block, which keeps the weights in registers
        i, hid, pix, out = tl.arange(0, SIZE), tl.arange(0, 32), tl.arange(0, 64), tl.arange(0, 16)
        real = out < 10
        a1, a2 = w1 + hid[:, None] * 65 + pix[None, :], w2 + out[:, None] * 33 + hid[None, :]
        v1, c1 = tl.load(a1), tl.load(w1 + hid * 65 + 64)
        v2, c2 = tl.load(a2, mask=real[:, None], other=0.0), tl.load(w2 + out * 33 + 32, mask=real, other=-1e30)
        for s in range(n):
            at = tl.load(drawn + s * SIZE + i)
            x = tl.load(pixels + at[:, None] * 64 + pix[None, :]).to(tl.float32) / 16
            wanted = (tl.load(labels + at)[:, None] == out[None, :]).to(tl.float32)
            hidden = tl.maximum(tl.dot(x, tl.trans(v1), input_precision="ieee") + c1[None, :], 0)
            z = tl.dot(hidden, tl.trans(v2), input_precision="ieee") + c2[None, :]
            z -= tl.max(z, 1)[:, None]
            e = tl.exp(z)
            sums = tl.sum(e, 1)
            tl.store(losses + s, tl.sum(tl.log(sums) - tl.sum(tl.where(wanted > 0, z, 0.0), 1), 0) / SIZE)
            d2 = (e / sums[:, None] - wanted) / SIZE
            d1 = tl.where(hidden > 0, tl.dot(d2, v2, input_precision="ieee"), 0.0)
            v1 -= rate * tl.dot(tl.trans(d1), x, input_precision="ieee")
            v2 -= rate * tl.dot(tl.trans(d2), hidden, input_precision="ieee")
            c1 -= rate * tl.sum(d1, 0)
            c2 -= rate * tl.sum(d2, 0)
        tl.store(a1, v1)
        tl.store(w1 + hid * 65 + 64, c1)
        tl.store(a2, v2, mask=real[:, None])
        tl.store(w2 + out * 33 + 32, c2, mask=real)

    @triton.jit
    def learn_three(x, answers, w1, w2, w3, losses, n, parts, rate, SIZE: tl.constexpr):
        # the same for layers of 64, 32 and 10; rows behind SIZE weigh nothing
        i, mid, pix, out = tl.arange(0, 64), tl.arange(0, 32), tl.arange(0, 64), tl.arange(0, 16)
        real, row = out < 10, i < SIZE
        a1, a2 = w1 + pix[:, None] * 65 + pix[None, :], w2 + mid[:, None] * 65 + pix[None, :]
        a3 = w3 + out[:, None] * 33 + mid[None, :]
        v1, c1, v2, c2 = tl.load(a1), tl.load(w1 + pix * 65 + 64), tl.load(a2), tl.load(w2 + mid * 65 + 64)
        v3, c3 = tl.load(a3, mask=real[:, None], other=0.0), tl.load(w3 + out * 33 + 32, mask=real, other=-1e30)
        for s in range(n):
            at = s % parts * SIZE + i
            x1 = tl.load(x + at[:, None] * 65 + pix[None, :], mask=row[:, None], other=0.0)
            wanted = (tl.load(answers + at, mask=row, other=0)[:, None] == out[None, :]).to(tl.float32)
            x2 = tl.maximum(tl.dot(x1, tl.trans(v1), input_precision="ieee") + c1[None, :], 0)
            x3 = tl.maximum(tl.dot(x2, tl.trans(v2), input_precision="ieee") + c2[None, :], 0)
            z = tl.dot(x3, tl.trans(v3), input_precision="ieee") + c3[None, :]
            z -= tl.max(z, 1)[:, None]
            e = tl.exp(z)
            sums = tl.sum(e, 1)
            lost = tl.log(sums) - tl.sum(tl.where(wanted > 0, z, 0.0), 1)
            tl.store(losses + s, tl.sum(tl.where(row, lost, 0.0), 0) / SIZE)
            d3 = tl.where(row[:, None], e / sums[:, None] - wanted, 0.0) / SIZE
            d2 = tl.where(x3 > 0, tl.dot(d3, v3, input_precision="ieee"), 0.0)
            d1 = tl.where(x2 > 0, tl.dot(d2, v2, input_precision="ieee"), 0.0)
            v3 -= rate * tl.dot(tl.trans(d3), x3, input_precision="ieee")
            v2 -= rate * tl.dot(tl.trans(d2), x2, input_precision="ieee")
            v1 -= rate * tl.dot(tl.trans(d1), x1, input_precision="ieee")
            c3 -= rate * tl.sum(d3, 0)
            c2 -= rate * tl.sum(d2, 0)
            c1 -= rate * tl.sum(d1, 0)
        tl.store(a1, v1)
        tl.store(w1 + pix * 65 + 64, c1)
        tl.store(a2, v2)
        tl.store(w2 + mid * 65 + 64, c2)
        tl.store(a3, v3, mask=real[:, None])
        tl.store(w3 + out * 33 + 32, c3, mask=real)


def replay(folder, how):
    new, keep, size, draws, rate = (REPLAY[k] for k in ("new", "keep", "size", "draws", "rate"))
    digits, labels = np.load(folder + "/digits.npy").reshape(-1, 64), np.load(folder + "/labels.npy")
    first = [np.pad(np.load("%s/%s.npy" % (folder, w)), ((0, 0), (0, 1))) for w in ("w1", "w2")]
    weights = [torch.zeros(w.shape, device=DEVICE) for w in first]
    together = int(how.split()[-2])                                   # frames of a launch
    steps, window = together * draws, keep + together * new
    times = np.array([pow(16807, k + 1, 2147483647) for k in range(steps * size)], np.uint64)
    write = png_writer(folder, "curve-*.png")
    step = learning(weights, rate, how)

    def work(slot):
        for to, what in ((slot.digits, slot.hdigits), (slot.labels, slot.hlabels), (slot.drawn, slot.hdrawn)):
            to.copy_(what, non_blocking=True)
        if "Triton" in how:
            learn_in_one[(1,)](slot.digits, slot.labels, slot.drawn, *weights, slot.losses, steps, rate, size,
                               num_warps=int(how.split()[1]))
        else:
            x, answers = pixels_of(slot.digits)[slot.drawn], slot.labels[slot.drawn]
            torch.stack([step(x[k], answers[k]) for k in range(steps)], out=slot.losses)
        slot.hlosses.copy_(slot.losses, non_blocking=True)

    def make():
        s = SimpleNamespace(hdigits=host(window, 64, dtype="uint8"), hlabels=host(window, dtype="int64"),
                            hdrawn=host(steps, size, dtype="int64"), hlosses=host(steps))
        s.digits, s.labels, s.drawn, s.losses = (a.to(DEVICE) for a in (s.hdigits, s.hlabels, s.hdrawn, s.hlosses))
        return s

    flight = Flight(8, make, work, 2)

    def run(out, n):
        for w, begin in zip(weights, first):
            w.copy_(torch.from_numpy(begin))
        settle()
        losses = np.empty(-(-n // together) * steps, np.float32)

        def fill(i, slot):
            f = np.repeat(np.arange(i * together, (i + 1) * together), draws * size)
            seen = np.minimum(f + 1, n) * new
            begin = np.uint64(pow(16807, i * len(times), 2147483647))
            chance = (times * begin % np.uint64(2147483647)).astype(np.int64)
            place = chance % np.minimum(seen, keep)                   # the newest digit that was put there
            low = max(i * together * new - keep, 0)
            part = slice(low, (min((i + 1) * together, n)) * new)
            slot.hdrawn.numpy().reshape(-1)[:] = seen - 1 - (seen - 1 - place) % keep - low
            slot.hdigits.numpy()[:part.stop - low] = digits[part]
            slot.hlabels.numpy()[:part.stop - low] = labels[part]

        def take(i, slot):
            losses[i * steps:(i + 1) * steps] = slot.hlosses.numpy()

        flight.run(-(-n // together), fill, take)
        losses = losses[:n * draws]
        np.savetxt(out + "/loss.csv", losses, "%.7g")
        up = np.arange(120)[::-1, None]
        for k in range(0, len(losses), 400):
            picture = np.where(losses[None, k:k + 400] * 40 > up, 60, 255) - np.where(up % 40 == 39, 40, 0)
            write("%s/curve-%03d.png" % (out, k // 400), picture.astype(np.uint8))
    return run


def train(folder, how):
    size, together = TRAIN["size"], TRAIN["together"]
    x = pixels_of(torch.from_numpy(np.load(folder + "/digits.npy")).to(DEVICE))          # all batches are on the device
    answers = torch.from_numpy(np.load(folder + "/labels.npy")).to(DEVICE)
    first = [np.pad(np.load("%s/%s.npy" % (folder, w)), ((0, 0), (0, 1))) for w in ("w1", "w2", "w3")]
    weights = [torch.zeros(w.shape, device=DEVICE) for w in first]
    step, write = learning(weights, TRAIN["rate"], how), png_writer(folder, "curve-*.png")

    def work(slot):
        if "Triton" in how:
            learn_three[(1,)](x, answers, *weights, slot.losses, together, len(x) // size, TRAIN["rate"], size,
                              num_warps=int(how.split()[1]))
        else:
            parts = [slice(k * size % len(x), k * size % len(x) + size) for k in range(together)]
            torch.stack([step(x[part], answers[part]) for part in parts], out=slot.losses)
        slot.hlosses.copy_(slot.losses, non_blocking=True)

    flight = Flight(2, lambda: SimpleNamespace(hlosses=host(together), losses=host(together).to(DEVICE)), work, 2)

    def run(out, n):
        for w, begin in zip(weights, first):
            w.copy_(torch.from_numpy(begin))
        settle()
        losses, up = np.empty(n), np.arange(120)[::-1, None]

        def take(i, slot):
            part = losses[i * together:(i + 1) * together]
            part[:] = slot.hlosses.numpy()
            picture = np.where(up < 90 + 30 * np.log10(part), 40, 255) - np.where(up % 30 == 29, 30, 0)
            write("%s/curve-%03d.png" % (out, i), picture.astype(np.uint8))

        flight.run(n // together, lambda i, slot: None, take)
        np.savetxt(out + "/loss-0.csv", losses, "%.7g")
    return run


def cell_rows(write, out, paths):
    """Of some pictures; also in a process of its own."""
    cv2.setNumThreads(1)
    colors, rows = palette("TURBO")[np.minimum(np.arange(4096) * 256 // 40, 255)], []
    for path in paths:
        name, picture = os.path.basename(path)[:-4], cv2.imread(path, cv2.IMREAD_UNCHANGED)
        soft = cv2.GaussianBlur(picture.astype(np.float32), (11, 11), 1.5, borderType=cv2.BORDER_REFLECT)
        found = cv2.connectedComponentsWithStatsWithAlgorithm((soft > 60).view(np.uint8), 8, cv2.CV_16U, cv2.CCL_WU)
        write("%s/%s.png" % (out, name), np.hstack([cv2.cvtColor(picture, cv2.COLOR_GRAY2BGR), colors[found[1]]]))
        rows += ["%s,%d,%d,%d,%d,%d,%d,%.2f,%.2f\n" % (name, i + 1, area, x, y, x + w, y + h, *center)
                 for i, ((x, y, w, h, area), center) in enumerate(zip(found[2][1:].tolist(), found[3][1:].tolist()))]
    return rows


def cells(folder, how):
    write = png_writer(folder, "*.png")
    pool = ThreadPoolExecutor(CORES) if "threads" in how else \
        ProcessPoolExecutor(CORES, mp_context=multiprocessing.get_context("spawn"))
    list(pool.map(functools.partial(cell_rows, write, folder), [[]] * 4 * CORES))        # all workers start

    def run(out, n):
        paths = sorted(glob.glob("%s/cells-%d/*.png" % (folder, n)))
        parts = [paths[k:k + 10] for k in range(0, len(paths), 10)]
        with open(out + "/cells.csv", "w") as table:
            table.write("picture,cell,area,x0,y0,x1,y1,x,y\n")
            for rows in pool.map(functools.partial(cell_rows, write, out), parts):
                table.writelines(rows)
    return run


def digits(folder, how):
    w1, b1, w2, b2 = (torch.from_numpy(np.load("%s/digits-%s.npy" % (folder, a))).to(DEVICE)
                      for a in ("w1", "b1", "w2", "b2"))
    together = int(how.split()[-1])

    def net(x):
        return torch.addmm(b2, torch.addmm(b1, x.float() / 16, w1.T).relu(), w2.T).argmax(1)

    net = compiled(how, net)

    def work(slot):
        slot.x.copy_(slot.hx, non_blocking=True)
        slot.y.copy_(net(slot.x), non_blocking=True)

    flight = Flight(8, lambda: SimpleNamespace(
        hx=host(together * 60, 64, dtype="uint8"), x=host(together * 60, 64, dtype="uint8").to(DEVICE),
        y=host(together * 60, dtype="int64")), work, 4 if together > 256 else 0, ordered=False)

    def run(out, n):
        images = np.load("%s/digits-%d.npy" % (folder, n), mmap_mode="r").reshape(-1, 64)
        file, size = npy(out + "/guesses.npy", 60 * n, dtype="i8"), 60 * together

        def fill(i, slot):
            some = images[i * size:(i + 1) * size]
            slot.hx.numpy()[:len(some)] = some

        def take(i, slot):
            file[i * size:(i + 1) * size] = slot.y.numpy()[:len(images) - i * size]

        flight.run(-(-n // together), fill, take)
    return run


def video(folder, how):
    high, wide = VIDEO["height"], VIDEO["width"]
    shape = high * 3 // 2, wide
    before = torch.zeros(shape, device=DEVICE)

    def calm(now):
        now = now.float()
        old = torch.where((now - before).abs() < VIDEO["level"], before, now)
        before.copy_(now + (old - now) * VIDEO["keep"])
        return torch.clamp(torch.round(before), 0, 255).to(torch.uint8)

    calm = compiled(how, calm)

    def work(slot):
        slot.x.copy_(slot.hx, non_blocking=True)
        slot.y.copy_(calm(slot.x), non_blocking=True)

    flight = Flight(12, lambda: SimpleNamespace(
        hx=host(*shape, dtype="uint8"), x=host(*shape, dtype="uint8").to(DEVICE), y=host(*shape, dtype="uint8")),
        work, 8)

    def run(out, n):
        before.fill_(128)
        settle()
        film = np.memmap("%s/video-%d.y4m" % (folder, n), np.uint8, "r")
        head = film[:200].tobytes().index(b"\n") + 1
        clean = np.memmap(out + "/clean.y4m", np.uint8, "w+", shape=film.shape)
        clean[:head] = film[:head]
        frames, made = film[head:].reshape(n, -1), clean[head:].reshape(n, -1)

        def fill(i, slot):
            slot.hx.numpy().reshape(-1)[:] = frames[i, 6:]

        def take(i, slot):
            made[i, :6], made[i, 6:] = frames[i, :6], slot.y.numpy().reshape(-1)         # "FRAME\n", and its pixels

        flight.run(n, fill, take)
    return run


def photos(folder, how):
    own = threading.local()
    pool, gray_of = ThreadPoolExecutor(CORES), np.array([0.114, 0.587, 0.299], np.float32)
    write = png_writer(folder, "*-edges.png")

    def fit(high, wide):
        scale = min(1, 120 / max(high, wide))
        return max(1, round(high * scale)), max(1, round(wide * scale))

    def finish(name, small, out):
        cv2.imwrite("%s/%s.jpg" % (out, name), small, [cv2.IMWRITE_JPEG_QUALITY, 90])
        soft = cv2.GaussianBlur(small.astype(np.float32) @ gray_of, (7, 7), 1, borderType=cv2.BORDER_REFLECT)
        edges = cv2.magnitude(*(cv2.Sobel(soft, cv2.CV_32F, i, 1 - i, borderType=cv2.BORDER_REPLICATE) for i in (0, 1)))
        write("%s/%s-edges.png" % (out, name), np.clip(np.rint(edges), 0, 255).astype(np.uint8))

    def on_host(path, out):
        photo = cv2.imread(path)
        high, wide = fit(*photo.shape[:2])
        four = cv2.cvtColor(photo, cv2.COLOR_BGR2BGRA)                # as Pillow has them, so that it copies nothing
        small = Image.frombuffer("RGBX", photo.shape[1::-1], four, "raw", "RGBX", 0, 1)
        small = np.asarray(small.resize((wide, high), Image.BILINEAR))
        finish(os.path.basename(path)[:-4], np.ascontiguousarray(small[..., :3]), out)

    def on_device(paths, out):
        if not hasattr(own, "stream"):
            own.stream = torch.cuda.Stream()
        with torch.cuda.stream(own.stream):
            files = [torch.from_numpy(np.fromfile(path, np.uint8)) for path in paths]
            made = []
            for photo in decode_jpeg(files, mode=ImageReadMode.RGB, device=DEVICE):
                small = torch.nn.functional.interpolate(photo[None].float(), fit(*photo.shape[1:]), mode="bilinear",
                                                        antialias=True, align_corners=False)[0].flip(0).permute(1, 2, 0)
                made.append(small.round_().clamp_(0, 255).to(torch.uint8).contiguous())
            both = torch.cat([a.view(-1) for a in made]).cpu().numpy()
        for path, a in zip(paths, made):
            finish(os.path.basename(path)[:-4], both[:a.numel()].reshape(a.shape), out)
            both = both[a.numel():]

    if "nvJPEG" in how:
        from torchvision.io import ImageReadMode, decode_jpeg

    def run(out, n):
        paths = sorted(glob.glob("%s/photos-%d/*.jpg" % (folder, n)))
        if "nvJPEG" in how:
            some = int(how.split()[-1])
            list(pool.map(on_device, [paths[k:k + some] for k in range(0, n, some)], [out] * n))
        else:
            list(pool.map(on_host, paths, [out] * n))
    return run


WAYS = {
    "heat": (heat, ["graph of CuPy's kernels, 8 steps a kernel", "graph of CuPy's kernels, 4 steps a kernel",
                    "graph of CuPy's kernels, 1 step a kernel", "graph, torch.compile"]),
    "spectrogram": (spectrogram, ["graphs, torch.compile, pictures in one go"]),
    "camera": (camera, ["graphs, torch.compile, threads"]),
    "diffusion": (diffusion, ["graphs, torch.compile, threads"]),
    "replay": (replay, ["Triton, 16 warps, a kernel for 16 frames", "Triton, 8 warps, a kernel for 16 frames",
                        "Triton, 8 warps, a kernel for 1 frames", "graphs, torch.compile for 16 frames",
                        "graphs for 1 frames"]),
    "train": (train, ["Triton, 16 warps, a kernel for 300 steps", "graphs, torch.compile",
                      "Triton, 8 warps, a kernel for 300 steps", "graphs"]),
    "cells": (cells, ["cv2, threads", "cv2, processes"]),
    "digits": (digits, ["graphs, torch.compile, batches of 1024", "graphs, torch.compile, batches of 64",
                        "graphs, batches of 64"]),
    "video": (video, ["graphs, torch.compile, threads"]),
    "photos": (photos, ["cv2 and Pillow, threads", "nvJPEG by torchvision, threads, batches of 16"]),
}


# -- measuring --

def numbers(path):
    if path.endswith(".npy"):
        return np.load(path)
    if path.endswith((".png", ".jpg")):
        return cv2.imread(path, cv2.IMREAD_UNCHANGED)
    if path.endswith(".y4m"):
        return np.fromfile(path, np.uint8)
    with open(path) as f:
        return np.array(re.findall(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", f.read()), np.float64)


def differs(name, gpipe, out):
    """What is not equal in what the two made."""
    off, share = NEAR[name]
    names = sorted(os.listdir(gpipe))
    if not names or names != sorted(os.listdir(out)):
        return "it makes %s, gpipe %s" % (sorted(os.listdir(out))[:9], names[:9])
    for file in names:
        a, b = numbers(gpipe + "/" + file), numbers(out + "/" + file)
        if a.shape != b.shape:
            return "%s is %s, gpipe's %s" % (file, b.shape, a.shape)
        some = file.endswith((".png", ".jpg"))
        wrong = ~(np.abs(a.astype(np.float64) - b) <= (max(1, off) if some else off))
        if wrong.mean() > (max(1e-3, share) if some else share):
            at = tuple(np.argwhere(wrong)[0])
            return "%s%s is %g, gpipe's %g; %d of %d differ" % (
                file, list(map(int, at)), b[at], a[at], wrong.sum(), wrong.size)


def measure(args, make, how):
    """Microseconds per frame"""
    run, out = make(args.folder, how), args.folder + "/peer"

    def took(n):
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        return seconds(run, out, n)          # its last file needs the last frame: nothing is left to wait for

    took(args.few)
    wrong = differs(args.name, args.folder + "/gpipe", out)
    if wrong:
        raise ValueError(wrong)
    n, us = args.many, []
    if args.rounds and took(n) < 1:
        n = args.most
    for _ in range(args.rounds):
        few, more = took(args.few), took(n)
        us.append(1e6 * (more - few) / (n - args.few))
    shutil.rmtree(out)
    return median(us) if us else 0


def main():
    global torch, DEVICE
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("name", choices=WAYS)
    p.add_argument("folder")
    for count in ("few", "many", "most"):
        p.add_argument(count, type=int)
    p.add_argument("ways", nargs="*", metavar="WAY")
    p.add_argument("--device", default="cuda")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--limit", type=float, default=60)
    args = p.parse_args()
    DEVICE = args.device
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")       # processes that compile would outlive this one
    try:
        import torch
        torch.zeros(1, device=DEVICE)
        cv2.setNumThreads(1)                 # the threads are ours
    except Exception as lacking:             # whatever a library says where there is no GPU
        print(lacking, file=sys.stderr)
        sys.exit(3)
    start, (make, ways) = time.monotonic(), WAYS[args.name]
    faulthandler.dump_traceback_later(2 * args.limit, exit=True)
    for how in args.ways or ways:
        try:
            if time.monotonic() - start > args.limit:
                raise TimeoutError("no time was left")
            print("%.3f %s" % (measure(args, make, how), how), flush=True)
        except Exception as wrong:
            lines = str(wrong).strip().split("\n")
            print("- %s: %s: %s" % (how, type(wrong).__name__, lines[0]), flush=True)
            traceback.print_exc()
    for child in multiprocessing.active_children():
        child.terminate()
    sys.stdout.flush()
    os._exit(0)                              # no thread of a way that failed is waited for


if __name__ == "__main__":
    main()
