#!/usr/bin/env python3
"""Makes tests/data/jpeg and tests/data/pnm: small pictures, and the frame that each is read as.

JPEG files and their frames are Pillow's, PNM and PFM files are written here byte by byte and checked by Pillow. Needs
numpy, Pillow and jpegtran (libjpeg-turbo-progs, for arithmetic coding); the files are kept in git."""
import io, os, struct, subprocess, sys

import numpy as np
from PIL import Image, ImageOps

HERE = os.path.dirname(os.path.abspath(__file__))
ORIENTATION = 0x0112


def folder(name):
    path = f"{HERE}/{name}"
    os.makedirs(path, exist_ok=True)
    return path


def store(path, file, frame=None):
    with open(path, "wb") as f:
        f.write(file)
    if frame is not None:
        np.save(os.path.splitext(path)[0] + ".npy", frame)


def smooth(rng, h, w, c):
    """Something like a photo: a slope of each color and a little noise."""
    y, x = np.mgrid[0:h, 0:w].astype(float)
    planes = [60 + 40 * k + 90 * (x + k) / (w + 2) + 50 * y / (h + 1) for k in range(c)]
    a = np.stack(planes, axis=2) + rng.normal(0, 4, (h, w, c))
    return np.clip(a, 0, 255).astype("u1")[:, :, 0 if c == 1 else slice(None)]


def segment(marker, data):
    return struct.pack(">BBH", 0xff, marker, len(data) + 2) + data


def many_scans():
    """A progressive picture of one gray pixel that takes each bit of each coefficient in a scan of its own."""
    def scan(first, last, high, low):
        return segment(0xda, bytes([1, 1, 0, first, last, high << 4 | low])) + b"\x7f"

    one_code = bytes([1] + 15 * [0]) + b"\0"           # '0': a difference of 0; the end of the block
    out = b"\xff\xd8" + segment(0xdb, b"\0" + bytes(64 * [1])) + segment(0xc2, bytes([8, 0, 1, 0, 1, 1, 1, 0x11, 0]))
    out += segment(0xc4, b"\x00" + one_code) + segment(0xc4, b"\x10" + one_code) + scan(0, 0, 0, 0)
    for low in range(13, -1, -1):
        for k in range(1, 64):
            out += scan(k, k, low + 1 if low < 13 else 0, low)
    return out + b"\xff\xd9"


def jpegs(rng):
    to = folder("jpeg")

    def save(name, a, upright=False, frame=True, **how):
        out = io.BytesIO()
        mode = "CMYK" if a.ndim == 3 and a.shape[2] == 4 else None
        Image.fromarray(a, mode=mode).save(out, "JPEG", **how)
        im = Image.open(io.BytesIO(out.getvalue()))
        im = ImageOps.exif_transpose(im) if upright else im
        store(f"{to}/{name}.jpg", out.getvalue(), np.asarray(im) if frame else None)
        return out.getvalue()

    for h, w in (1, 1), (1, 7), (17, 3), (3, 17), (19, 33):
        save(f"gray_{h}x{w}", smooth(rng, h, w, 1), quality=90)
        for s in "420", "422", "444":
            save(f"rgb{s}_{h}x{w}", smooth(rng, h, w, 3), quality=85, subsampling=f"4:{s[1]}:{s[2]}")
    photo = smooth(rng, 19, 33, 3)
    plain = save("progressive", photo, progressive=True)
    save("progressive_gray", photo[:, :, 1], progressive=True)
    save("restarts", photo, restart_marker_blocks=1)
    save("optimized", photo, optimize=True, quality=20)
    save("as_rgb", photo, keep_rgb=True)
    save("profile", photo, icc_profile=bytes(i * 7 & 255 for i in range(70000)))
    inks = save("cmyk", np.concatenate([photo, 255 - photo[:, :, :1]], axis=2), frame=False)
    adobe = inks.index(b"Adobe") + 11                  # its kind of colors: 0 is CMYK, 2 YCCK
    for name, file in ("cmyk", inks), ("ycck", inks[:adobe] + b"\2" + inks[adobe + 1:]):
        store(f"{to}/{name}.jpg", file, np.asarray(Image.open(io.BytesIO(file)).convert("RGB")))
    for k in range(1, 9):
        exif = Image.Exif()
        exif[ORIENTATION] = k
        save(f"orient{k}", smooth(rng, 19, 35, 3), upright=True, exif=exif, subsampling="4:4:4", quality=95)
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x02" b"\x01\x0f\0\x02\0\0\0\x02a\0\0\0" \
           b"\x01\x12\0\x03\0\0\0\x01\0\x06\0\0" b"\0\0\0\0"
    save("orient6_big_endian_gray", smooth(rng, 5, 9, 1), upright=True, exif=exif, quality=95)
    store(f"{to}/scans.jpg", many_scans())
    arithmetic = subprocess.run(["jpegtran", "-arithmetic", "-copy", "none"], input=plain, stdout=subprocess.PIPE,
                                check=True).stdout
    store(f"{to}/arithmetic.jpg", arithmetic, np.asarray(Image.open(io.BytesIO(plain))))


def pnms(rng):
    to = folder("pnm")

    def save(name, file, frame, known=True):
        store(f"{to}/{name}", file, frame)
        if known and not np.array_equal(np.asarray(Image.open(f"{to}/{name}").convert("L" if frame.ndim == 2 else "RGB")
                                        if frame.dtype == "u1" else Image.open(f"{to}/{name}")), frame):
            sys.exit(f"{name}: Pillow reads it otherwise")

    for h, w in (1, 1), (1, 7), (17, 3), (5, 7):
        gray, rgb = rng.integers(0, 256, (h, w)).astype("u1"), rng.integers(0, 256, (h, w, 3)).astype("u1")
        deep, deep_rgb = rng.integers(0, 65536, (h, w)).astype("u2"), rng.integers(0, 65536, (h, w, 3)).astype("u2")
        f, f3 = rng.normal(0, 3, (h, w)).astype("f4"), rng.normal(0, 3, (h, w, 3)).astype("f4")
        size = b"%d %d\n" % (w, h)
        at = f"{h}x{w}"
        save(f"gray8_{at}.pgm", b"P5\n" + size + b"255\n" + gray.tobytes(), gray)
        save(f"rgb8_{at}.ppm", b"P6\n" + size + b"255\n" + rgb.tobytes(), rgb)
        save(f"gray16_{at}.pgm", b"P5\n" + size + b"65535\n" + deep.astype(">u2").tobytes(), deep)
        # Pillow has neither 16-bit nor f32 RGB, and stretches other maxvals.
        save(f"rgb16_{at}.ppm", b"P6\n" + size + b"65535\n" + deep_rgb.astype(">u2").tobytes(), deep_rgb, known=False)
        save(f"f32_{at}.pfm", b"Pf\n" + size + b"-1.0\n" + f[::-1].astype("<f4").tobytes(), f)
        save(f"rgb32_{at}.pfm", b"PF\n" + size + b"-1.0\n" + f3[::-1].astype("<f4").tobytes(), f3, known=False)
    # These are read, and written otherwise.
    save("comments.pgm", b"P5 # a comment\n#5 5\n 7\n#\n# # P6\n5 \t\r\n255 " + gray.tobytes(), gray)
    save("twelve.pgm", b"P5\n7 5\n4095\n" + (deep >> 4).astype(">u2").tobytes(), deep >> 4, known=False)
    save("seven.ppm", b"P6 7 5 100\n" + (rgb % 101).tobytes(), rgb % 101, known=False)
    few = b" # a comment\n".join(b"%d" % v for v in gray.reshape(-1))
    save("text.pgm", b"P2\n7 5\n255\n" + few + b"\n", gray)
    save("text16.pgm", b"P2 7 5 4095 " + b"\n".join(b"%d" % v for v in (deep >> 4).reshape(-1)), deep >> 4, known=False)
    save("text_rgb.ppm", b"P3\n7 5\n255\n" + b" ".join(b"%d" % v for v in rgb.reshape(-1)) + b"\n", rgb)
    for h, w in (1, 1), (1, 7), (17, 3), (5, 17):
        bits = rng.integers(0, 2, (h, w)).astype("u1")
        white = (1 - bits) * np.uint8(255)
        save(f"bits_{h}x{w}.pbm", b"P4\n%d %d\n" % (w, h) + np.packbits(bits, axis=1).tobytes(), white)
    save("text_bits.pbm", b"P1 17 5\n" + b" ".join(b"%d" % v for v in bits.reshape(-1)), white)
    save("text_rows.pbm", b"P1\n17 5\n" + b"\n".join(b"".join(b"%d" % v for v in row) for row in bits) + b"\n", white)
    pam = b"P7\nWIDTH 7\nHEIGHT 5\n# a comment\nDEPTH %d\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n"
    rgba = rng.integers(0, 256, (5, 7, 4)).astype("u1")
    save("gray.pam", pam % (1, 255, b"GRAYSCALE") + gray.tobytes(), gray, known=False)
    save("rgb16.pam", pam % (3, 65535, b"RGB") + deep_rgb.astype(">u2").tobytes(), deep_rgb, known=False)
    save("alpha.pam", pam % (4, 255, b"RGB_ALPHA") + rgba.tobytes(), rgba, known=False)
    save("gray_alpha.pam", pam % (2, 255, b"GRAYSCALE_ALPHA") + rgba[:, :, :2].tobytes(), rgba[:, :, :2], known=False)
    save("big_endian.pfm", b"Pf\n7 5\n2.5e-1\n" + f[::-1].astype(">f4").tobytes(), f)


jpegs(np.random.default_rng(2))
pnms(np.random.default_rng(3))
