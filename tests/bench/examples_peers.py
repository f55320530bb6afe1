"""examples_peers.py - what the pipelines of examples/ do, as one writes it with CuPy or PyTorch: a loop over frames
that reads a file, calls the library and writes a file.

    examples_peers.py NAME FOLDER FEW MANY

Prints `LIBRARY US`, microseconds per frame: what MANY frames of the files in FOLDER (which examples.py makes) take more
than FEW. Exit 3 where a library or a GPU is missing.
"""
import glob, os, shutil, sys, time

import numpy as np

# what is measured, as examples.py has gpipe do it
HEAT = dict(side=255, steps=1500, rate=0.2, together=8)
SOUND = dict(rate=16000, length=512, hop=100, together=40)
CAMERA = dict(height=1080, width=1920, white=208, weight=0.25, roll=8)
DIFFUSION = dict(height=768, width=1024, amplitude=60, smooth=25, steps=100)
REPLAY = dict(new=3, keep=200, size=32, draws=4, rate=0.2)
VIDEO = dict(height=1080, width=1920, level=30, keep=0.85)


def palette():
    """256 colors, for what `colormap` does."""
    from cupy import arange, stack, uint8
    k = arange(256)
    return stack([k, k * k // 255, 255 - k], 1).astype(uint8)


def heat(folder, out, n):
    import cupy as cp
    from PIL import Image
    side, steps, rate, together = HEAT["side"], HEAT["steps"], HEAT["rate"], HEAT["together"]
    at = cp.pi * cp.arange(1, side + 1, dtype=cp.float32) / (side + 1)
    slow, fast = cp.outer(cp.sin(at), cp.sin(at)), cp.outer(cp.sin(4 * at), cp.sin(3 * at))
    wide = cp.zeros((side + 2, side + 2), cp.float32)
    now, made = wide[1:-1, 1:-1], []
    now[:] = 0.5 * (slow + fast)
    for k in range(n):
        for _ in range(steps):
            now += rate * (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] - 4 * now)
        t = rate * steps * (k + 1) * np.pi ** 2 / (side + 1) ** 2
        assert float(abs(now - 0.5 * (np.exp(-2 * t) * slow + np.exp(-25 * t) * fast)).max()) < 2e-4
        made.append(cp.asnumpy(now))
        if k % together == together - 1:
            level = cp.clip((cp.asarray(np.concatenate(made[-together:], axis=1)) + 0.3) / 1.2 * 256, 0, 255).astype(cp.uint8)
            Image.fromarray(cp.asnumpy(palette()[level])).save("%s/heat-%03d.png" % (out, k // together), compress_level=0)
    np.save(out + "/heat.npy", np.stack(made))


def spectrogram(folder, out, n):
    import cupy as cp
    from PIL import Image
    length, hop, together, rate = SOUND["length"], SOUND["hop"], SOUND["together"], SOUND["rate"]
    sound = np.load("%s/sound-%d.npy" % (folder, n), mmap_mode="r")
    taper = cp.asarray(np.hanning(length + 1)[:-1], cp.float32)
    before, levels = np.zeros(length - hop, np.int16), []
    for k in range(n):
        part = np.concatenate([before, sound[k * 40 * hop:(k + 1) * 40 * hop]])
        before = part[-(length - hop):]
        wave = cp.asarray(part).astype(cp.float32) / 32768
        windows = cp.lib.stride_tricks.sliding_window_view(wave, length)[::hop] * taper
        power = cp.abs(cp.fft.rfft(windows)) ** 2 / (rate * length * 0.375)
        power[:, 1:-1] *= 2
        levels.append(10 * cp.log10(cp.maximum(power, 1e-12)))
        if k % together == together - 1:
            picture = cp.concatenate(levels[-together:]).T[::-1]
            level = cp.clip((picture + 95) / 65 * 256, 0, 255).astype(cp.uint8)
            Image.fromarray(cp.asnumpy(palette()[level])).save("%s/%03d.png" % (out, k // together), compress_level=3)
    np.save(out + "/levels.npy", np.concatenate([cp.asnumpy(x) for x in levels]))


def camera(folder, out, n):
    import cupy as cp
    from cupyx.scipy.ndimage import median_filter
    high, wide = CAMERA["height"], CAMERA["width"]
    dark, flat = (cp.load("%s/%s.npy" % (folder, name)) for name in ("dark", "flat"))
    stuck = dark - median_filter(dark, 3, mode="reflect") > 500
    gain = cp.where(stuck, 0, CAMERA["white"] / (flat - dark)).astype(cp.float32)
    mean, kept = None, []
    with open(folder + "/raw", "rb") as f:
        for k in range(n):
            raw = np.frombuffer(f.read(2 * high * wide), np.uint16).reshape(high, wide)
            seen = cp.asarray(raw)
            even = (seen - dark) * gain
            now = cp.where(stuck, median_filter(even, 3, mode="reflect"), even)
            mean = now if mean is None else mean + CAMERA["weight"] * (now - mean)
            row = cp.concatenate([(seen - cp.float32(260)) * cp.float32(255 / 3200), now, mean], axis=1)
            np.save("%s/%05d.npy" % (out, k), cp.asnumpy(cp.clip(cp.rint(row), 0, 255).astype(cp.uint8)))
            kept.append(raw)
            if len(kept) == CAMERA["roll"]:
                np.save("%s/raw-%03d.npy" % (out, k // len(kept)), np.stack(kept))
                kept = []


def diffusion(folder, out, n):
    import cupy as cp
    import cv2
    smooth = DIFFUSION["smooth"]
    shape = DIFFUSION["height"], DIFFUSION["width"]
    noise = cp.random.uniform(-DIFFUSION["amplitude"], DIFFUSION["amplitude"], shape).astype(cp.float32)
    weights = cp.asarray([0.114, 0.587, 0.299], cp.float32)               # OpenCV has blue first

    def divergence(x, y):
        made = x + y
        made[:, 1:] -= x[:, :-1]
        made[1:] -= y[:-1]
        return made

    def psnr(a, b):
        return 10 * np.log10(255 ** 2 / float(((a - b) ** 2).mean()))

    with open(out + "/psnr.csv", "w") as table:
        calm = np.empty((n,) + shape, np.float32)
        for k in range(n):
            photo = (cp.asarray(cv2.imread(folder + "/photo.png")) * weights).sum(axis=2, dtype=cp.float32)
            noisy = photo + noise
            x, y, right, below = (cp.zeros_like(noisy) for _ in range(4))
            for _ in range(DIFFUSION["steps"]):
                rest = divergence(x, y) - noisy / smooth
                right[:, :-1] = rest[:, 1:] - rest[:, :-1]
                below[:-1] = rest[1:] - rest[:-1]
                much = 1 + 0.2 * cp.sqrt(right * right + below * below)
                x, y = (x + 0.2 * right) / much, (y + 0.2 * below) / much
            u = noisy - smooth * divergence(x, y)
            print("%.6f,%.6f" % (psnr(noisy, photo), psnr(u, photo)), file=table)
            row = cp.clip(cp.rint(cp.concatenate([photo, noisy, u], axis=1)), 0, 255).astype(cp.uint8)
            cv2.imwrite("%s/%05d.png" % (out, k), cp.asnumpy(row), [cv2.IMWRITE_PNG_COMPRESSION, 3])
            calm[k] = cp.asnumpy(u)
        np.save(out + "/calm.npy", calm)


def replay(folder, out, n):
    import torch
    from torch import nn
    digits, labels = np.load(folder + "/digits.npy", mmap_mode="r"), np.load(folder + "/labels.npy", mmap_mode="r")
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    with torch.no_grad():
        for layer, name in ((net[0], "w1"), (net[2], "w2")):
            layer.weight.copy_(torch.from_numpy(np.load("%s/%s.npy" % (folder, name))))
            layer.bias.zero_()
    net.cuda()
    learn, wrong = torch.optim.SGD(net.parameters(), lr=REPLAY["rate"]), nn.CrossEntropyLoss()
    keep, new, size = REPLAY["keep"], REPLAY["new"], REPLAY["size"]
    pixels, answers = np.zeros((keep, 64), np.uint8), np.zeros(keep, np.int64)
    rng, seen, losses = np.random.default_rng(1), 0, []
    for k in range(n):
        for i in range(k * new, (k + 1) * new):
            pixels[seen % keep], answers[seen % keep] = digits[i].reshape(64), labels[i]
            seen += 1
        for _ in range(REPLAY["draws"]):
            drawn = rng.integers(min(seen, keep), size=size)
            x = torch.from_numpy(pixels[drawn]).cuda().float() / 16
            loss = wrong(net(x), torch.from_numpy(answers[drawn]).cuda())
            learn.zero_grad()
            loss.backward()
            learn.step()
            losses.append(loss.item())
    np.savetxt(out + "/loss.csv", losses)


def cells(folder, out, n):
    import cupy as cp
    import cv2
    from cupyx.scipy import ndimage
    from scipy.ndimage import find_objects
    with open(out + "/cells.csv", "w") as table:
        print("picture,cell,area,x0,y0,x1,y1,x,y", file=table)
        for path in sorted(glob.glob("%s/cells-%d/*.png" % (folder, n))):
            picture = cp.asarray(cv2.imread(path, cv2.IMREAD_UNCHANGED))
            mask = ndimage.gaussian_filter(picture.astype(cp.float32), 1.5, truncate=3.34) > 60
            labels, count = ndimage.label(mask, cp.ones((3, 3)))
            if count:
                area = cp.asnumpy(cp.bincount(labels.ravel())[1:])
                center = ndimage.center_of_mass(mask.astype(cp.float32), labels, cp.arange(1, count + 1))
                center = cp.asnumpy(cp.asarray(center))
                for i, (y, x) in enumerate(find_objects(cp.asnumpy(labels))):
                    box = x.start, y.start, x.stop, y.stop
                    print("%s,%d,%d,%d,%d,%d,%d,%.2f,%.2f" % (os.path.basename(path)[:-4], i + 1, area[i], *box,
                                                              *center[i][::-1]), file=table)
            found = palette()[cp.minimum(labels * 256 // 40, 255)]
            both = cp.concatenate([cp.repeat(picture[:, :, None], 3, axis=2), found], axis=1)
            cv2.imwrite(out + "/" + os.path.basename(path), cp.asnumpy(both), [cv2.IMWRITE_PNG_COMPRESSION, 3])


def digits(folder, out, n):
    import torch
    images = np.load("%s/digits-%d.npy" % (folder, n), mmap_mode="r")
    w1, b1, w2, b2 = (torch.from_numpy(np.load("%s/digits-%s.npy" % (folder, name))).cuda()
                      for name in ("w1", "b1", "w2", "b2"))
    guesses = []
    with torch.no_grad():
        for i in range(0, len(images), 60):
            x = torch.from_numpy(np.array(images[i:i + 60])).cuda().reshape(-1, 64).float() / 16
            hidden = torch.relu(torch.nn.functional.linear(x, w1, b1))
            guesses.append(torch.nn.functional.linear(hidden, w2, b2).argmax(1).cpu().numpy())
    np.save(out + "/guesses.npy", np.concatenate(guesses))


def video(folder, out, n):
    import cupy as cp
    high, wide, before = VIDEO["height"], VIDEO["width"], None
    with open("%s/video-%d.y4m" % (folder, n), "rb") as f, open(out + "/clean.y4m", "wb") as to:
        to.write(f.readline())
        before = cp.full((high * 3 // 2, wide), 128, cp.float32)
        while f.readline():
            planes = np.frombuffer(f.read(high * wide * 3 // 2), np.uint8).reshape(before.shape)
            now = cp.asarray(planes).astype(cp.float32)
            old = cp.where(cp.abs(now - before) < VIDEO["level"], before, now)
            before = now + (old - now) * VIDEO["keep"]
            to.write(b"FRAME\n")
            to.write(cp.asnumpy(cp.clip(cp.rint(before), 0, 255).astype(cp.uint8)).tobytes())


def photos(folder, out, n):
    import cv2
    import torch
    from torch.nn import functional
    k = torch.arange(-3, 4, device="cuda", dtype=torch.float32)
    line = torch.exp(-k * k / 2)
    line /= line.sum()
    across = torch.tensor([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], device="cuda", dtype=torch.float32)
    slopes = torch.stack([across, across.T])[:, None]
    weights = torch.tensor([0.114, 0.587, 0.299], device="cuda")
    for path in sorted(glob.glob("%s/photos-%d/*.jpg" % (folder, n))):
        photo = torch.from_numpy(cv2.imread(path)).cuda().permute(2, 0, 1)[None].float()
        scale = 120 / max(photo.shape[2:])
        size = [max(1, round(s * scale)) for s in photo.shape[2:]]
        small = functional.interpolate(photo, size, mode="bilinear", antialias=True, align_corners=False)[0]
        small = small.round().clamp(0, 255).permute(1, 2, 0).contiguous()
        name = out + "/" + os.path.basename(path)[:-4]
        cv2.imwrite(name + ".jpg", small.to(torch.uint8).cpu().numpy(), [cv2.IMWRITE_JPEG_QUALITY, 90])
        gray = functional.pad((small * weights).sum(2)[None, None], (3, 3, 3, 3), mode="reflect")
        soft = functional.conv2d(functional.conv2d(gray, line[None, None, None]), line[None, None, :, None])
        edges = functional.conv2d(functional.pad(soft, (1, 1, 1, 1), mode="replicate"), slopes)[0]
        edges = torch.hypot(edges[0], edges[1]).round().clamp(0, 255).to(torch.uint8)
        cv2.imwrite(name + "-edges.png", edges.cpu().numpy(), [cv2.IMWRITE_PNG_COMPRESSION, 3])


PEERS = {"heat": (heat, "CuPy"), "spectrogram": (spectrogram, "CuPy"), "camera": (camera, "CuPy"),
         "diffusion": (diffusion, "CuPy"), "replay": (replay, "PyTorch"), "cells": (cells, "CuPy"),
         "digits": (digits, "PyTorch"), "video": (video, "CuPy"), "photos": (photos, "PyTorch")}


def main():
    name, folder, few, many = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    work, library = PEERS[name]
    try:
        if library == "CuPy":
            import cupy
            cupy.zeros(1)
        else:
            import torch
            torch.zeros(1, device="cuda")
    except Exception as lacking:             # whatever a library says where there is no GPU
        print(lacking, file=sys.stderr)
        sys.exit(3)

    def seconds(n):
        out = folder + "/peer"
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        start = time.perf_counter()
        work(folder, out, n)                 # its last file needs the last frame: nothing is left to wait for
        took = time.perf_counter() - start
        shutil.rmtree(out)
        return took

    seconds(few)                             # libraries load, kernels are compiled
    print("%s %.3f" % (library, 1e6 * (seconds(many) - seconds(few)) / (many - few)))


if __name__ == "__main__":
    if len(sys.argv) != 5 or sys.argv[1] not in PEERS:
        sys.exit(__doc__)
    main()
