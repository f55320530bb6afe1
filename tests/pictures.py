#!/usr/bin/env python3
"""pictures.py GPIPE - pictures that Pillow writes are read by gpipe, and those that gpipe writes by
Pillow (PFM: by struct): formats, odd sizes, 16 bits, orientations, quality, subsampling; TIFF with
tifffile, too, where it is installed. Prints a total; exit 1 after a failure. Without Pillow
(python3-pil) it says that it skips, and without tifffile (python3-tifffile) what."""
import array, io, json, os, random, struct, subprocess, sys, tempfile
from kit import bytes_of, check, gpipe, quick, runs, total

try:
    from PIL import Image, ImageOps
    from PIL.PngImagePlugin import PngInfo
except ImportError:
    print("pictures: SKIPPED: there is no Pillow: install python3-pil")
    sys.exit(0)

try:
    import numpy as np
    import tifffile
except ImportError:
    tifffile = None
    print("pictures: SKIPPED: TIFF beside tifffile: install python3-tifffile")

SIZES = ((1, 1), (1, 7), (17, 3), (3, 17), (64, 48), (61, 203))[::2 if quick else 1]       # rows, columns
ORIENTATION = 0x0112
MODE = {1: "L", 3: "RGB"}
rng = random.Random(5)


def smooth(h, w, c):
    """Something like a photo: slopes and a little noise."""
    return bytes(min(255, 40 + 50 * k + 70 * x // w + 40 * y // h + rng.randrange(6))
                 for y in range(h) for x in range(w) for k in range(c))


def shape(h, w, c):
    return f"[{h}, {w}]" if c == 1 else f"[{h}, {w}, {c}]"


def read(name, dtype, h, w, c, options=""):
    """What gpipe reads of a file that must have this type; None after an error."""
    ok = runs(f"buffers: {{p: {{dtype: {dtype}, shape: {shape(h, w, c)}}}}}\nstages:\n"
             f"  - {{use: read, path: {name}{options}, out: p}}\n  - {{use: write, path: p.raw}}\n")
    return bytes_of("p.raw") if ok else None


def write(name, data, dtype, h, w, c, options=""):
    with open("q.raw", "wb") as f:
        f.write(data)
    return runs(f"buffers: {{p: {{dtype: {dtype}, shape: {shape(h, w, c)}}}}}\nstages:\n"
               f"  - {{use: read, path: q.raw, out: p}}\n  - {{use: write, path: {name}{options}}}\n")


def apart(a, b):
    """The mean and the largest difference of two rows of bytes; none is like None."""
    if a is None or b is None or len(a) != len(b):
        return 255, 255
    d = [abs(x - y) for x, y in zip(a, b)]
    return sum(d) / len(d), max(d)


def from_pillow(h, w, c):
    im = Image.frombytes(MODE[c], (w, h), smooth(h, w, c))
    at = f"{h} x {w} x {c}"
    for suffix in "png", "ppm" if c == 3 else "pgm":
        im.save(f"a.{suffix}")
        check(f"{at} {suffix} of Pillow", read(f"a.{suffix}", "u8", h, w, c) == im.tobytes())
        check(f"{at} {suffix}, RGB of any", read(f"a.{suffix}", "u8", h, w, 3, ", colors: rgb") == im.convert("RGB").tobytes())
        check(f"{at} {suffix}, luma of any", read(f"a.{suffix}", "u8", h, w, 1, ", colors: gray") == im.convert("L").tobytes())
    for how in {"quality": 90}, {"quality": 30, "subsampling": 2}, {"progressive": True, "subsampling": 0}:
        im.save("a.jpg", **how)
        jpg, luma = Image.open("a.jpg"), Image.open("a.jpg")
        luma.draft("L", luma.size)
        check(f"{at} jpg, RGB of any, {how}",
              apart(read("a.jpg", "u8", h, w, 3, ", colors: rgb"), jpg.convert("RGB").tobytes())[1] <= 2)
        check(f"{at} jpg, its luma, {how}",
              luma.mode == "L" and apart(read("a.jpg", "u8", h, w, 1, ", colors: gray"), luma.tobytes())[1] <= 2)
        # The last bit may be another library's.
        check(f"{at} jpg of Pillow, {how}", apart(read("a.jpg", "u8", h, w, c), Image.open("a.jpg").tobytes())[1] <= 2)
    for k in 2, 4, 8:
        im.save("a.jpg", quality=90)
        small = Image.open("a.jpg")
        if min(h, w) >= k and small.draft(None, (w // k, h // k)) and small.size == (-(-w // k), -(-h // k)):
            got = read("a.jpg", "u8", small.height, small.width, c, f", shrink: {k}")
            check(f"{at} a {k}th of Pillow", apart(got, small.tobytes())[1] <= 2)
    for k in range(1, 9):
        exif = Image.Exif()
        exif[ORIENTATION] = k
        im.save("a.jpg", exif=exif, subsampling=0, quality=95)
        stored = Image.open("a.jpg")
        shown = ImageOps.exif_transpose(stored)
        half = -(-shown.height // 2), -(-shown.width // 2)
        check(f"{at} upright and half, {k}", read("a.jpg", "u8", *half, c, ", shrink: 2") is not None)
        check(f"{at} upright, {k}", apart(read("a.jpg", "u8", shown.height, shown.width, c), shown.tobytes())[1] <= 2)
        kept = read("a.jpg", "u8", h, w, c, ", orientation: keep")
        check(f"{at} as stored, {k}", apart(kept, stored.tobytes())[1] <= 2)
        for colors, other, mode in ("rgb", 3, "RGB"), ("gray", 1, "L"):
            got = read("a.jpg", "u8", shown.height, shown.width, other, f", colors: {colors}")
            check(f"{at} upright, {colors}, {k}", apart(got, shown.convert(mode).tobytes())[1] <= 3)


def to_pillow(h, w, c):
    data, at = smooth(h, w, c), f"{h} x {w} x {c}"
    for suffix in "png", "ppm" if c == 3 else "pgm":
        ok = write(f"b.{suffix}", data, "u8", h, w, c)
        im = ok and Image.open(f"b.{suffix}")
        check(f"{at} {suffix} for Pillow", ok and im.mode == MODE[c] and im.size == (w, h) and im.tobytes() == data)
    for options, mean, samples in ((", quality: 100, subsampling: 4:4:4", 1, (1, 1)), ("", 3, (2, 2)),
                                   (", quality: 75, subsampling: 4:2:2", 4, (2, 1))):
        ok = write("b.jpg", data, "u8", h, w, c, options)
        im = ok and Image.open("b.jpg")
        check(f"{at} jpg for Pillow{options}", ok and im.mode == MODE[c] and im.size == (w, h)
              and apart(im.tobytes(), data)[0] <= mean)
        check(f"{at} its samples{options}", ok and im.layer[0][1:3] == (samples if c == 3 else (1, 1)))


def png_kinds(h, w):
    """PNG alone: alpha, palettes, less bits, and what each compression makes."""
    at = f"{h} x {w}"
    for c, mode in (2, "LA"), (4, "RGBA"):
        data = smooth(h, w, c)
        Image.frombytes(mode, (w, h), data).save("e.png")
        check(f"{at} {mode} of Pillow", read("e.png", "u8", h, w, c) == data)
        for colors, other, flat in ("rgb", 3, "RGB"), ("gray", 1, "L"):
            want = Image.frombytes(mode, (w, h), data).convert(flat).tobytes()
            check(f"{at} {mode}, {colors}", read("e.png", "u8", h, w, other, f", colors: {colors}") == want)
        im = write("f.png", data, "u8", h, w, c) and Image.open("f.png")
        check(f"{at} {mode} for Pillow", im and im.mode == mode and im.size == (w, h) and im.tobytes() == data)
    data = smooth(h, w, 3)
    rgb = Image.frombytes("RGB", (w, h), data)
    for colors in 2, 4, 16, 200:
        im = rgb.quantize(colors)
        im.save("e.png")
        check(f"{at} {colors} colors of Pillow", read("e.png", "u8", h, w, 3) == im.convert("RGB").tobytes())
        im.save("e.png", transparency=0)
        want = Image.open("e.png").convert("RGBA").tobytes()
        check(f"{at} {colors} colors, one transparent", read("e.png", "u8", h, w, 4) == want)
    bits = rgb.convert("1")
    bits.save("e.png")
    check(f"{at} 1 bit of Pillow", read("e.png", "u8", h, w, 1) == bits.convert("L").tobytes())
    for n in range(10):
        im = write("f.png", data, "u8", h, w, 3, f", compression: {n}") and Image.open("f.png")
        check(f"{at} compression {n} for Pillow", im and im.mode == "RGB" and im.tobytes() == data)


def wide(h, w):
    """16 bits: PGM and PNG; f32: PFM, by its bytes."""
    deep = array.array("H", (rng.randrange(65536) for _ in range(h * w)))
    swapped = array.array("H", deep)
    swapped.byteswap()
    at = f"{h} x {w}"
    for suffix in "pgm", "png":
        ok = write(f"c.{suffix}", deep.tobytes(), "u16", h, w, 1)
        values = array.array("i", Image.open(f"c.{suffix}").convert("I").tobytes() if ok else b"")
        check(f"{at} 16 bits in {suffix} for Pillow", list(values) == list(deep))
    with open("d.pgm", "wb") as f:
        f.write(f"P5\n# 16 bits\n{w} {h}\n65535\n".encode() + swapped.tobytes())
    check(f"{at} 16 bits of PGM", read("d.pgm", "u16", h, w, 1) == deep.tobytes())
    for suffix in "pgm", "png":
        three = array.array("H", (v for v in deep for _ in range(3)))
        check(f"{at} 16 bits of {suffix}, RGB of any", read(f"c.{suffix}", "u16", h, w, 3, ", colors: rgb") == three.tobytes())
    deep = [rng.choice((0, 65535, rng.randrange(65536))) for _ in range(h * w * 3)]
    got = write("c.ppm", array.array("H", deep).tobytes(), "u16", h, w, 3) and read("c.ppm", "u16", h, w, 1, ", colors: gray")
    check(f"{at} 16 bits, luma", got and all(abs(v - (0.299 * r + 0.587 * g + 0.114 * b)) <= 1.5 for v, r, g, b in zip(
        array.array("H", got), deep[::3], deep[1::3], deep[2::3])))
    floats = array.array("f", (rng.gauss(0, 3) for _ in range(h * w * 3)))
    lines = [floats[3 * w * y:3 * w * (y + 1)] for y in range(h)]
    ok = write("c.pfm", floats.tobytes(), "f32", h, w, 3)
    check(f"{at} PFM", ok and bytes_of("c.pfm") == f"PF\n{w} {h}\n-1.0\n".encode() + b"".join(
        x.tobytes() for x in reversed(lines)))
    for x in lines:
        x.byteswap()
    with open("d.pfm", "wb") as f:
        f.write(f"PF {w} {h} 1.0 ".encode() + b"".join(x.tobytes() for x in reversed(lines)))
    check(f"{at} big-endian PFM", read("d.pfm", "f32", h, w, 3) == floats.tobytes())
    got = read("d.pfm", "f32", h, w, 1, ", colors: gray")
    check(f"{at} PFM, luma", got and all(abs(v - (0.299 * r + 0.587 * g + 0.114 * b)) < 1e-5 for v, r, g, b in zip(
        array.array("f", got), floats[::3], floats[1::3], floats[2::3])))


def pages_of(name):
    """The pages of a file as gpipe reads them, by four workers; None after an error."""
    ok = runs(f"stages:\n  - {{use: read, path: {name}, workers: 4}}\n  - {{use: write, path: t.raw}}\n")
    return bytes_of("t.raw") if ok else None


def write_pages(name, pages, dtype, h, w, c, options=""):
    return write(name, b"".join(pages), dtype, h, w, c, options)


def exif_behind(name):
    """A PNG whose texts are behind its picture, and its chunk eXIf behind them."""
    data = bytes_of(name)
    at, chunks = 8, []
    while at < len(data):
        n = 12 + struct.unpack_from(">I", data, at)[0]
        chunks.append(data[at:at + n])
        at += n
    return data[:8] + b"".join(sorted(chunks, key=lambda c: [b"tEXt", b"eXIf", b"IEND"].index(c[4:8])
                                      if c[4:8] in (b"tEXt", b"eXIf", b"IEND") else -1))


def png_turned(h, w):
    """Which side is up, by the chunk eXIf: as Pillow turns it."""
    for mode, c in ("L", 1), ("RGB", 3), ("RGBA", 4), ("1", 1):
        for k in range(1, 9):
            im = Image.frombytes("L" if mode == "1" else mode, (w, h), smooth(h, w, c)).convert(mode)
            exif = Image.Exif()
            exif[ORIENTATION] = k
            im.save("e.png", exif=exif)
            stored = im.convert("L") if mode == "1" else im
            shown = ImageOps.exif_transpose(Image.open("e.png")).convert(stored.mode)
            check(f"{h} x {w} {mode} PNG upright, {k}", read("e.png", "u8", shown.height, shown.width, c) == shown.tobytes())
            check(f"{h} x {w} {mode} PNG as stored, {k}", read("e.png", "u8", h, w, c, ", orientation: keep") == stored.tobytes())
            for text in 0, 5000, 2 << 20:          # where eXIf is behind the picture, and far from the first bytes
                info = PngInfo()
                info.add_text("a", bytes(rng.randrange(32, 127) for _ in range(text and 100)).decode() * (text // 100))
                im.save("f.png", exif=exif, pnginfo=info)
                late = exif_behind("f.png")
                with open("f.png", "wb") as f:
                    f.write(late)
                check(f"{h} x {w} {mode} PNG upright, {k}, eXIf behind it and {text} bytes",
                      read("f.png", "u8", shown.height, shown.width, c) == shown.tobytes()
                      and read("'[f].png'", "u8", shown.height, shown.width, c) == shown.tobytes())


def tiff(h, w):
    """Several pages, each way, with what Pillow has of libtiff's compressions."""
    at = f"{h} x {w}"
    for mode, dtype, c, size in ("L", "u8", 1, 1), ("RGB", "u8", 3, 1), ("RGBA", "u8", 4, 1), ("LA", "u8", 2, 1), \
                                ("I;16", "u16", 1, 2), ("I", "i32", 1, 4), ("F", "f32", 1, 4):
        pages = [smooth(h, w, c * size) for _ in range(3)]
        images = [Image.frombytes(mode, (w, h), p) for p in pages]
        for compression in None, "tiff_lzw", "tiff_adobe_deflate", "packbits":
            if mode == "I;16" and compression:
                continue               # which this Pillow may not write
            images[0].save("g.tif", save_all=True, append_images=images[1:], compression=compression)
            check(f"{at} {mode} {compression} of Pillow", pages_of("g.tif") == b"".join(pages))
        for options in "", ", compression: 1", ", compression: 9":
            ok = write_pages("h.tif", pages, dtype, h, w, c, options)
            im = ok and Image.open("h.tif")
            check(f"{at} {mode} for Pillow{options}", ok and im.n_frames == 3 and im.size == (w, h))
            for k in range(3 if ok else 0):
                im.seek(k)
                check(f"{at} {mode} page {k} for Pillow{options}", im.mode == mode and im.tobytes() == pages[k])
    for k in range(1, 9):
        im = Image.frombytes("RGB", (w, h), smooth(h, w, 3))
        im.save("g.tif", tiffinfo={ORIENTATION: k}, compression="tiff_lzw" if k % 2 else None)
        stored = im.tobytes()
        im.getexif()[ORIENTATION] = k
        shown = ImageOps.exif_transpose(im)
        check(f"{at} upright TIFF, {k}", read("g.tif", "u8", shown.height, shown.width, 3) == shown.tobytes())
        check(f"{at} TIFF as stored, {k}", read("g.tif", "u8", h, w, 3, ", orientation: keep") == stored)


def tiff_of(samples, bits, photometric, order="<", counts=None, tags=()):
    """A TIFF of samples (H, W, C) of so many bits, in one plain strip, which is said to have `counts` bytes."""
    h, w, c = samples.shape
    rows = [np.unpackbits(row.reshape(-1, 1).astype(">u2").view("u1"), axis=1)[:, 16 - bits:] for row in samples]
    data = b"".join(np.packbits(r).tobytes() for r in rows) if bits != 16 else samples.astype(order + "u2").tobytes()
    entries = [(256, 4, [w]), (257, 4, [h]), (258, 3, [bits] * c), (259, 3, [1]), (262, 3, [photometric]), (273, 4, [8]),
               (277, 3, [c]), (278, 4, [h]), (279, 4, [len(data) if counts is None else counts])] + list(tags)
    at = 8 + len(data) + len(data) % 2
    extra, ifd = b"", struct.pack(order + "H", len(entries))
    beyond = at + 2 + 12 * len(entries) + 4
    for tag, kind, values in sorted(entries):
        packed = struct.pack(order + ("H" if kind == 3 else "I") * len(values), *values)
        ifd += struct.pack(order + "HHI", tag, kind, len(values))
        ifd += packed.ljust(4, b"\0") if len(packed) <= 4 else struct.pack(order + "I", beyond + len(extra))
        extra += packed if len(packed) > 4 else b""
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, at)
    return head + data.ljust(at - 8, b"\0") + ifd + bytes(4) + extra


def tiff_kinds(h, w):
    """Few bits, palettes, CMYK: as Pillow reads them. What is not a whole byte and more than 8 bits stays as it is."""
    numbers, at = np.random.default_rng(h * w), f"{h} x {w}"

    def one(what, file, want, options=""):
        with open("k.tif", "wb") as f:
            f.write(file)
        c = want.shape[2] if want.ndim == 3 else 1
        check(f"{at} TIFF, {what}", read("k.tif", "u16" if want.dtype.itemsize == 2 else "u8", h, w, c, options) == want.tobytes())

    def pillow(file, mode):
        return np.asarray(Image.open(io.BytesIO(file)).convert(mode))

    for bits in 1, 2, 4:
        a = numbers.integers(0, 1 << bits, (h, w, 1))
        for order in "<>":
            for photometric in 0, 1:
                file = tiff_of(a, bits, photometric, order)
                want = (a[:, :, 0] * 255 // ((1 << bits) - 1)).astype("u1")
                one(f"{bits} bits, {photometric} {order}", file, want if photometric else 255 - want)
                if bits != 2:                          # of which this Pillow has not all
                    check(f"{at} {bits} bits, {photometric} {order}, by Pillow", (pillow(file, "L") == (
                        want if photometric else 255 - want)).all())
    for bits in 10, 12, 14:
        for c in 1, 3:
            a = numbers.integers(0, 1 << bits, (h, w, c)).astype("u2")
            one(f"{bits} bits of {c}", tiff_of(a, bits, 1 if c == 1 else 2), a if c == 3 else a[:, :, 0])
    for bits in 1, 2, 4, 8:
        a, colors = numbers.integers(0, 1 << bits, (h, w, 1)), numbers.integers(0, 65536, (3, 1 << bits))
        file = tiff_of(a, bits, 3, tags=[(320, 3, colors.reshape(-1).tolist())])
        one(f"palette of {bits} bits", file, (colors[:, a[:, :, 0]] >> 8).transpose(1, 2, 0).astype("u1"))
        if bits > 2:
            one(f"palette of {bits} bits, by Pillow", file, pillow(file, "RGB"))
        for k in range(2, 9) if bits == 4 else ():
            turned = tiff_of(a, bits, 3, tags=[(274, 3, [k]), (320, 3, colors.reshape(-1).tolist())])
            im = Image.fromarray(pillow(file, "RGB"))
            im.getexif()[ORIENTATION] = k
            shown = ImageOps.exif_transpose(im)
            with open("k.tif", "wb") as f:
                f.write(turned)
            check(f"{at} palette, upright {k}", read("k.tif", "u8", shown.height, shown.width, 3) == shown.tobytes())
    inks = numbers.integers(0, 256, (h, w, 4)).astype("u1")
    file = tiff_of(inks, 8, 5)
    one("CMYK", file, pillow(file, "RGB"))
    for mode in "1", "P", "CMYK":
        im = Image.fromarray(inks if mode == "CMYK" else inks[:, :, 0], "CMYK" if mode == "CMYK" else "L").convert(mode)
        for compression in None, "tiff_lzw", "tiff_adobe_deflate", "packbits", *(["group4"] if mode == "1" else []):
            im.save("k.tif", compression=compression)
            shape = im.convert("L" if mode == "1" else "RGB")
            check(f"{at} TIFF of Pillow, {mode} {compression}",
                  read("k.tif", "u8", h, w, 1 if mode == "1" else 3) == shape.tobytes())
    for counts in 0, 1:                                # one plain strip is known
        one(f"a count of {counts}", tiff_of(inks[:, :, :3], 8, 2, counts=counts), inks[:, :, :3])
        deep = numbers.integers(0, 65536, (h, w, 1)).astype("u2")
        one(f"a count of {counts}, big-endian", tiff_of(deep, 16, 1, ">", counts), deep[:, :, 0])


def beside_tifffile(h, w):
    """All types, both forms and byte orders, tiles, planes; and what gpipe writes."""
    numbers = np.random.default_rng(h * 1000 + w)
    rgb, gray = {"photometric": "rgb"}, {"photometric": "minisblack"}
    ways = (2, (), gray), (3, (), {**gray, "tile": (16, 32)}), (2, (3,), rgb), (1, (), {**gray, "rowsperstrip": 3}), \
           (2, (3,), {**rgb, "planarconfig": "separate"}), (1, (5,), {**gray, "planarconfig": "separate", "tile": (16, 16)})
    for name, dtype in ("u8", "u1"), ("i8", "i1"), ("u16", "u2"), ("i16", "i2"), ("u32", "u4"), ("i32", "i4"), \
                       ("u64", "u8"), ("f16", "f2"), ("f32", "f4"), ("f64", "f8"):
        for i, (n, last, how) in enumerate(ways):
            size = np.dtype(dtype).itemsize
            a = np.frombuffer(numbers.bytes(n * h * w * (last or (1,))[0] * size), dtype).reshape((n, h, w) + last)
            planes = "planarconfig" in how
            for big in False, True:
                kind = {"byteorder": "<>"[(i + big) % 2], "bigtiff": big, "compression": "zlib" if i % 2 else None}
                tifffile.imwrite("g.tif", np.moveaxis(a, -1, 1) if planes else a, metadata=None, **kind, **how)
                check(f"{h} x {w} {name} {how} {kind} of tifffile", pages_of("g.tif") == a.tobytes())
            for options in "", ", compression: 6":
                ok = not planes and write_pages("h.tif", [a.tobytes()], name, h, w, (last or (1,))[0], options)
                with tifffile.TiffFile("h.tif" if ok else "g.tif") as t:
                    found = b"".join(p.asarray().astype(dtype).tobytes() for p in t.pages)
                check(f"{h} x {w} {name} for tifffile{options}", planes or (ok and found == a.tobytes()))


def axes():
    """Channels, slices and times, as OME and ImageJ have them: frames take whole axes, or parts of one. n.tif has none."""
    a = np.arange(4 * 3 * 2 * 5 * 7, dtype="u2").reshape(4, 3, 2, 5, 7)         # times, slices, channels
    tifffile.imwrite("x.ome.tif", a, metadata={"axes": "TZCYX"})
    tifffile.imwrite("z.ome.tif", a, metadata={"axes": "TCZYX"})
    tifffile.imwrite("i.tif", a, imagej=True, metadata={"axes": "TZCYX"})
    tifffile.imwrite("r.ome.tif", np.zeros((4, 3, 5, 7, 3), "u2"), photometric="rgb", metadata={"axes": "TZYXS"})
    tifffile.imwrite("n.tif", a.reshape(24, 5, 7), metadata=None, photometric="minisblack")
    text = "buffers: {x: {shape: [%d, %s]}}\nstages:\n  - {use: read, path: %s, out: x}\n  - {use: write, path: a.raw}\n"
    order = {"x.ome.tif": (2, 3, 4), "z.ome.tif": (2, 3, 4), "i.tif": (2, 3, 4), "r.ome.tif": (1, 3, 4), "n.tif": (24, 1, 1)}
    for name, sizes in order.items():
        pages = sizes[0] * sizes[1] * sizes[2]
        for n in range(1, pages + 1):
            left, fits = n, True
            for size in sizes:
                if name != "n.tif" and left > 1 and size % left and left % size:
                    fits = False
                left = left // size if left % size == 0 else 1
            with open("p.yaml", "w") as f:
                f.write(text % (n, "5, 7, 3" if name[0] == "r" else "5, 7", name))
            p = subprocess.run([gpipe, "run", "-q", "p.yaml"], capture_output=True, text=True)
            check(f"{n} pages of {name}", p.returncode == 0 if fits else p.returncode == 3
                  and f"{n} pages are no frame of one of these" in p.stderr and "4 times" in p.stderr)
            check(f"{n} pages of {name}: bytes", not fits or name[0] == "r" or bytes_of("a.raw") == a.tobytes())


def metadata():
    """Numbers that travel with frames: Pillow's and tifffile's are read, and written again; what is none is refused."""
    rgb, numbers = smooth(9, 5, 3), {"exposure": 0.1, "gain": -0.0, "shots": 1e22, "iso": 400, "tiny": 5e-324}
    listed = f"metadata: [{', '.join(numbers)}, other]\n"
    info = PngInfo()
    for key, value in numbers.items():
        info.add_text(key, f" {value!r}\n" if key == "gain" else repr(value))
    info.add_text("Software", "exposure 7")
    Image.frombytes("RGB", (5, 9), rgb).save("m.png", pnginfo=info)
    copy = listed + "stages:\n  - {use: read, path: %s}\n  - {use: write, path: %s}\n"
    text = Image.open("n.png").text if runs(copy % ("m.png", "n.png")) else {}
    check("tEXt of Pillow, and for Pillow", {k: repr(float(v)) for k, v in text.items()}
          == {k: repr(float(v)) for k, v in numbers.items()})
    check("the fewest digits", text.get("exposure") == "0.1" and text.get("iso") == "400" and text.get("gain") == "-0")
    check("the picture beside them", Image.open("n.png").tobytes() == rgb)
    text = Image.open("n.png").text if runs((copy % ("m.png", "n.png")).replace(listed, "")) else None
    check("nothing that is not listed", text == {})
    for wrong, why in [(w, "which is not a number") for w in ("fast", "", "0x10", "inf", "nan", "1 2")] + [
            ("1" * 64, "says its 'exposure' in 64 characters, and a number has at most 63"),
            ("1\0002", "has a NUL in its 'exposure', which is not a number")]:
        info = PngInfo()
        info.add_text("exposure", wrong)
        Image.frombytes("RGB", (5, 9), rgb).save("m.png", pnginfo=info)
        with open("p.yaml", "w") as f:
            f.write(copy % ("m.png", "n.png"))
        p = subprocess.run([gpipe, "run", "-q", "p.yaml"], capture_output=True, text=True)
        check(f"exposure {wrong!r}", p.returncode == 1 and why in p.stderr and "p.yaml:3:" in p.stderr)
    info = PngInfo()
    info.add_text("exposure", "0.25")
    Image.frombytes("RGB", (5, 9), rgb).save("m.png", pnginfo=info)
    for time, ok in ("1763935191.123456789", True), ("1763935191", True), ("1e9", False), ("-1", False), ("1.1234567890", False):
        info = PngInfo()
        info.add_text("time", time)
        Image.frombytes("RGB", (5, 9), rgb).save("t.png", pnginfo=info)
        with open("p.yaml", "w") as f:
            f.write((copy % ("t.png", "n.png")).replace(listed, "metadata: [time]\n"))
        p = subprocess.run([gpipe, "run", "-q", "p.yaml"], capture_output=True, text=True)
        said = Image.open("n.png").text["time"] if p.returncode == 0 else None
        check(f"time {time}", said == (time + ".000000000")[:20] if ok else "not a number of seconds since 1970" in p.stderr)
    with open("p.yaml", "w") as f:
        f.write(copy % ("m.png", "n.png"))
    damaged = bytes_of("m.png").replace(b"0.25", b"0.75")
    with open("m.png", "wb") as f:
        f.write(damaged)
    p = subprocess.run([gpipe, "run", "-q", "p.yaml"], capture_output=True, text=True)
    check("a number that is damaged", p.returncode == 1 and "the checksum of the chunk tEXt" in p.stderr)
    if not tifffile:
        return
    pages = np.frombuffer(smooth(3 * 9, 5, 1), "u1").reshape(3, 9, 5)
    with tifffile.TiffWriter("m.tif") as t:        # tifffile adds the shape, and a list that is passed over
        for i, page in enumerate(pages):
            t.write(page, metadata={"list": [1, {"exposure": 9}], "exposure": 0.1 * i, "name": 'a "b" {', "gain": i})
    with tifffile.TiffWriter("o.tif") as t:
        t.write(pages[0], metadata=None, description="{not JSON")
    for options in "", ", compression: 6":
        ok = runs(copy % ("m.tif", "n.tif" + options))
        with tifffile.TiffFile("n.tif" if ok else "o.tif") as t:
            said = [json.loads(p.description) for p in t.pages] if ok else []
            same = t.asarray().tobytes() == pages.tobytes()
        check(f"JSON of tifffile, and for tifffile{options}",
              said == [{"exposure": 0.1 * i, "gain": i} for i in range(3)] and same)
        check("by Pillow", ok and json.loads(Image.open("n.tif").tag_v2[270]) == said[0])
    check("a description that is no JSON", runs(copy % ("o.tif", "n.tif")))
    for save in np.savez, np.savez_compressed:
        save("m.npz", frames=pages, exposure=0.1, gain=np.int64(2 ** 53), iso=np.ones((1, 1), "f2"))
        ok = runs(copy % ("m.npz", "n.tif"))
        with tifffile.TiffFile("n.tif" if ok else "o.tif") as t:
            said = [json.loads(p.description) for p in t.pages] if ok else []
        check(f"members of {save.__name__}", said == 3 * [{"exposure": 0.1, "gain": 2 ** 53, "iso": 1}])
        save("m.npz", frames=pages, exposure=np.array([0.5, np.nan, 7]), gain=np.arange(3, dtype="u8"), iso=2)
        ok = runs(copy % ("m.npz", "n.tif"))
        with tifffile.TiffFile("n.tif" if ok else "o.tif") as t:
            said = [json.loads(p.description) for p in t.pages] if ok else []
        check(f"a number a frame, by {save.__name__}", said == [{"exposure": 0.5, "gain": 0, "iso": 2}, {"gain": 1, "iso": 2},
                                                               {"exposure": 7, "gain": 2, "iso": 2}])
        ok = runs(copy % ("m.npz", "w.npz, stack: true"))
        w = np.load("w.npz") if ok else {}
        check("written for NumPy", ok and sorted(w.files) == ["arr_0", "exposure", "gain", "iso"]
              and (w["arr_0"] == pages).all() and w["arr_0"].dtype == pages.dtype and w["gain"].tolist() == [0, 1, 2]
              and str(w["exposure"].tolist()) == "[0.5, nan, 7.0]")
        ok = runs(copy % ("m.npz", "w%d.npz"))
        w = [np.load(f"w{i}.npz") for i in range(3)] if ok else []
        check("a file a frame, for NumPy", ok and all((x["arr_0"] == p).all() for x, p in zip(w, pages))
              and w[0]["exposure"].shape == () and w[0]["exposure"] == 0.5 and "exposure" not in w[1] and w[2]["gain"] == 2)
        save("m.npz", frames=pages, gain=np.uint64(2 ** 63))
        ok = runs(copy % ("m.npz", "n.tif"))
        check("2^63 of a u64", ok and json.loads(Image.open("n.tif").tag_v2[270]) == {"gain": 2 ** 63})
        for wrong, why in (np.arange(2), "has i64 [2] as 'gain'"), (np.int64(2 ** 53 + 1), "is not exact in an f64"), \
                          (np.uint64(2 ** 64 - 1), "is not exact in an f64"), (np.complex128(1), "or its .real"), \
                          (np.float64("nan"), "is not a finite number"), (np.complex64(1), "is complex: save its .real"), \
                          (np.array("x"), "(member 'gain') holds strings"):
            save("m.npz", frames=pages, gain=wrong)
            with open("p.yaml", "w") as f:
                f.write(copy % ("m.npz", "n.tif"))
            p = subprocess.run([gpipe, "run", "-q", "p.yaml"], capture_output=True, text=True)
            check(f"gain {wrong!r}", p.returncode == 1 and why in p.stderr)


def arrays():
    """.npy and .npz as NumPy writes them, column-major and big-endian, whole and cut along axis 0, alone and several."""
    text = "buffers: {x: {%s}}\nstages:\n  - {use: read, path: '%s', out: x, workers: 3}\n  - {use: write, path: a.raw}\n"
    numbers = np.random.default_rng(5)
    for shape in (5, 7), (1, 9), (9, 1), (4, 3, 5), (2, 3, 4, 5), (3, 200, 700), (20000, 3), (3, 70000), (6,):
        for code in ("<f4", ">i2", ">c8", "|u1")[::3 if quick else 1]:
            a = numbers.integers(0, 256, shape).astype(code)
            want = a.astype(a.dtype.newbyteorder("<")).tobytes()
            a = np.asfortranarray(a)
            for name, save in ("a.npy", np.save), ("a.npz", np.savez), ("a.npz", np.savez_compressed):
                save(name, a)
                at = f"{name} of {shape} {code} by {save.__name__}"
                for k in 1, 2, shape[0]:
                    frame = ", ".join(map(str, (k,) + shape[1:]))
                    check(f"{at}, {k} rows", runs(text % (f"shape: [{frame}]", name)) and bytes_of("a.raw") == want)
                if len(shape) > 1:
                    check(at, runs(text % ("", name)) and bytes_of("a.raw") == want)
                    flat = ", ".join(map(str, shape[1:]))
                    check(f"{at}, an index", runs(text % (f"shape: [{flat}]", name)) and bytes_of("a.raw") == want)
        for i in range(3):
            np.save(f"b{i}.npy", np.asfortranarray(a + i))
        check(f"three of {shape}", runs(text % ("", "b*.npy")) and bytes_of("a.raw") == b"".join(
            (a + i).tobytes() for i in range(3)))
    for save in np.savez, np.savez_compressed:         # what is in it stands behind its first MiB
        a = numbers.integers(0, 256, (700, 50, 60), "u1")
        save("big.npz", a)
        check(f"a large .npz by {save.__name__}", runs(text % ("", "big.npz")) and bytes_of("a.raw") == a.tobytes())


def sizes():
    """One number, and a histogram, of each of pictures that differ in size, which have one shape; all types in a folder."""
    os.mkdir("sizes")
    numbers, pictures = np.random.default_rng(6), []
    for i in range(5):
        a = numbers.integers(0, 256, numbers.integers(1, 40, 2), "u1")
        pictures.append(a)
        Image.fromarray(a).save(f"sizes/{i}.png")
    for op, of in ("mean", np.mean), ("max", np.max), ("sum", np.sum), ("argmin", np.argmin):
        for axes in "", ", axes: [1, 0]", ", axes: [0, -1]" if op != "argmin" else "":
            if axes and op == "argmin":
                continue
            check(f"{op}{axes} of sizes", runs("stages:\n  - {use: read, path: 'sizes/*.png'}\n  - {use: reduce, op: %s%s}\n"
                                               "  - {use: cast, dtype: f64, out: m}\n"
                                               "  - {use: write, path: m.npy, stack: true}\n" % (op, axes))
                  and np.allclose(np.load("m.npy")[:, 0], [of(a.astype("f8")) for a in pictures], rtol=1e-6))
    check("joined with what has one shape", runs(
        "buffers: {g: {dtype: f32, shape: [3]}}\nstages:\n  - {use: read, path: 'sizes/*.png'}\n"
        "  - {use: reduce, op: mean, out: m}\n  - {use: generate, pattern: constant, value: 2, frames: 5, out: g}\n"
        "  - {use: expr, expr: a * b, in: {a: m, b: g}, out: x}\n  - {use: write, path: x.npy, in: x, stack: true}\n")
        and np.allclose(np.load("x.npy"), [[2 * a.mean()] * 3 for a in pictures], rtol=1e-6))
    check("histograms of sizes", runs("stages:\n  - {use: read, path: 'sizes/*.png'}\n  - {use: histogram, bins: 16}\n"
                                      "  - {use: write, path: h.npy, stack: true}\n")
          and (np.load("h.npy") == [np.histogram(a, 16, (0, 256))[0] for a in pictures]).all())
    os.mkdir("types")
    Image.fromarray(np.full((3, 4), 7, "u1")).save("types/a.png")
    for i in range(3):
        Image.fromarray(np.full((3, 4 + i), 700 + i, "u2")).save(f"types/b{i}.png")
    for declared, out in ("", 0), ("shape: ['<=5', '<=9']", 0), ("dtype: u16", 3), ("dtype: u8", 1), \
                         ("dtype: u16, shape: ['<=5', '<=9']", 3), ("dtype: u8, shape: ['<=5', '<=9']", 1):
        with open("p.yaml", "w") as f:
            f.write("buffers: {x: {%s}}\nstages:\n  - {use: read, path: 'types/*', out: x, on_error: drop}\n"
                    "  - {use: discard}\n" % declared)
        p = subprocess.run([gpipe, "run", "--device", "cpu", "p.yaml"], capture_output=True, text=True)
        check(f"types in a folder: {declared}", p.returncode == 0 and f", {out} out" in p.stderr if out
              else p.returncode == 3 and "'dtype: u16'" in p.stderr)


def many(n=20000):
    """A list of many files takes no more than 200 MiB for a million; a sanitizer needs more."""
    def most_kib(pattern):
        with open("p.yaml", "w") as f:
            f.write(f"buffers: {{x: {{dtype: u8, shape: [1]}}}}\nstages:\n  - {{use: read, path: '{pattern}', frames: 1, out: x}}\n"
                    "  - {use: discard}\n")
        p = subprocess.Popen([gpipe, "run", "-q", "--device", "cpu", "p.yaml"])
        _, status, used = os.wait4(p.pid, 0)
        check(f"a list of {pattern}", status == 0)
        return used.ru_maxrss
    os.mkdir("many")
    for i in range(n):
        os.close(os.open(f"many/{i:07}.raw", os.O_CREAT | os.O_WRONLY))
    with open("many/0000000.raw", "w") as f:
        f.write("a")
    each = 1024 * (most_kib("many/*.raw") - most_kib("many/0000000.raw")) / n
    check(f"{each:.0f} bytes of memory for each file of a list", each < 200 or "address" in gpipe or "thread" in gpipe)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for h, w in SIZES:
        for c in 1, 3:
            from_pillow(h, w, c)
            to_pillow(h, w, c)
        wide(h, w)
        png_kinds(h, w)
        png_turned(h, w)
        tiff(h, w)
        tiff_kinds(h, w)
        if tifffile and (h, w) in SIZES[::2]:
            beside_tifffile(h, w)
    metadata()
    arrays()
    sizes()
    if tifffile:
        axes()
    many()
total("pictures")
