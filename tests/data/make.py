#!/usr/bin/env python3
"""Makes tests/data/png: one small picture for each kind of PNG, and the frame it is read as. Written without a PNG
library, so that it is a check on the one that gpipe uses. Needs numpy; the files are kept in git."""
import os, struct, zlib

import numpy as np

H, W = 5, 7
GRAY, RGB, PALETTE, GRAY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGBA: 4}
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def scanlines(a, bits):
    """Rows of samples (H, W, C), packed, each behind its filter byte 0."""
    out = b""
    for row in a:
        flat = row.reshape(-1)
        if bits == 16:
            packed = flat.astype(">u2").tobytes()
        else:
            b = np.unpackbits(flat.astype("u1")[:, None], axis=1)[:, 8 - bits:]
            packed = np.packbits(b.reshape(-1)).tobytes()
        out += b"\0" + packed
    return out


def png(samples, bits, color, interlaced=False, palette=None, trns=None):
    passes = [samples[y::dy, x::dx] for y, x, dy, dx in ADAM7] if interlaced else [samples]
    data = b"".join(scanlines(p, bits) for p in passes if p.size)
    out = b"\x89PNG\r\n\x1a\n"
    out += chunk(b"IHDR", struct.pack(">IIBBBBB", W, H, bits, color, 0, 0, int(interlaced)))
    out += chunk(b"tEXt", b"Comment\0a chunk that says nothing")
    if palette is not None:
        out += chunk(b"PLTE", palette.astype("u1").tobytes())
    if trns is not None:
        out += chunk(b"tRNS", trns)
    half = len(z := zlib.compress(data)) // 2
    return out + chunk(b"IDAT", z[:half]) + chunk(b"IDAT", z[half:]) + chunk(b"IEND", b"")


def main():
    rng = np.random.default_rng(1)
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "png")
    os.makedirs(folder, exist_ok=True)

    def save(name, file, frame):
        with open(f"{folder}/{name}.png", "wb") as f:
            f.write(file)
        np.save(f"{folder}/{name}.npy", frame)

    for color, name in (GRAY, "gray"), (RGB, "rgb"), (GRAY_ALPHA, "graya"), (RGBA, "rgba"):
        for bits in (1, 2, 4, 8, 16) if color == GRAY else (8, 16):
            s = rng.integers(0, 1 << bits, (H, W, CHANNELS[color]))
            frame = s.astype("u2" if bits == 16 else "u1")
            if bits < 8:
                frame = frame * np.uint8(255 // ((1 << bits) - 1))
            if color == GRAY:
                frame = frame[:, :, 0]
            save(f"{name}{bits}", png(s, bits, color), frame)
            save(f"{name}{bits}_adam7", png(s, bits, color, interlaced=True), frame)
            if color in (GRAY, RGB) and bits >= 8:
                key = s[2, 3]
                alpha = np.where((s == key).all(axis=2), 0, (1 << bits) - 1)
                trns = struct.pack(f">{len(key)}H", *key)
                save(f"{name}{bits}_trns", png(s, bits, color, trns=trns),
                     np.concatenate([s, alpha[:, :, None]], axis=2).astype(frame.dtype))
    for bits in 1, 2, 4, 8:
        s = rng.integers(0, min(1 << bits, 20), (H, W, 1))
        palette = rng.integers(0, 256, (min(1 << bits, 20), 3))
        save(f"palette{bits}", png(s, bits, PALETTE, palette=palette), palette[s[:, :, 0]].astype("u1"))
        alpha = rng.integers(0, 256, len(palette))
        alpha[-1] = 255                       # tRNS may be shorter than the palette
        trns = bytes(alpha[:-1].tolist())
        save(f"palette{bits}_trns", png(s, bits, PALETTE, palette=palette, trns=trns),
             np.concatenate([palette, alpha[:, None]], axis=1)[s[:, :, 0]].astype("u1"))


main()
