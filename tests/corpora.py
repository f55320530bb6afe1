#!/usr/bin/env python3
"""corpora.py GPIPE [FILE]... - files that others made: the tests of Pillow, SciPy and ONNX, from the package registry.

What gpipe reads has the values that Pillow, NumPy or SciPy read, and models make what ONNX says; what it does not read
is refused with exit code 3 or 1 and a message that names the file. Never: other values, a crash, an internal error, a
minute. Of the models every fourth is tried, another one for each GPIPE_SEED; with GPIPE_THIN=1 all. Files after GPIPE,
as this prints them, are tried alone.

corpora.py --fetch    gets the packages, into the folder GPIPE_CORPORA. Without them nothing is tried, which is said.
"""
import json, os, subprocess, sys, tarfile, tempfile, warnings, zipfile

import numpy as np
from PIL import Image, ImageFile, ImageOps, ImageSequence

WHEEL = ["--only-binary", ":all:", "--python-version", "3.11"]
PACKAGES = [("pillow==11.3.0", ["--no-binary", ":all:"]), ("scipy==1.11.4", WHEEL), ("onnx==1.16.2", WHEEL)]
PICTURES = (".png", ".apng", ".tif", ".tiff", ".jpg", ".jpeg", ".ppm", ".pgm", ".pbm", ".pnm", ".pfm")
# Formats that gpipe does not know: never taken for samples.
OTHERS = (".bmp", ".tga", ".dds", ".webp", ".jp2", ".sgi", ".psd", ".ico", ".fits", ".mat", ".sav", ".qoi")
# Not comparable: Pillow divides colors by an alpha that they were multiplied by, and makes 8 bits of 16; models of
# random numbers; models of which ONNX Runtime 1.23 makes something else, by itself too (its own tests leave them out).
KNOWN = ["pil136.tiff", "_16bit_RGBa.tiff", "i_trns.png", "/test_bernoulli", "/test_averagepool_3d_dilations_large",
         "/test_maxunpool_export_with_output_shape", "/test_qlinearmatmul_2D_int8_float",
         "/test_qlinearmatmul_3D_int8_float",
         "/test_resize_downsample_scales_cubic_align", "/test_resize_downsample_scales_linear_align"]
TYPES = {1: "<f4", 2: "u1", 3: "i1", 4: "<u2", 5: "<i2", 6: "<i4", 7: "<i8", 9: "?", 10: "<f2", 11: "<f8", 12: "<u4",
         13: "<u8"}
Image.MAX_IMAGE_PIXELS = None


def fetch(folder):
    """The packages, unpacked; False: they are not to be had."""
    for name, how in PACKAGES:
        if not any(f.startswith(name.split("=")[0]) for f in os.listdir(folder)):
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check",
                       "--timeout", "20", "--dest", folder] + how + [name]
            if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
                return False
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.endswith(".tar.gz") and not os.path.isdir(path[:-7]):
            with tarfile.open(path) as t:
                t.extractall(folder, [m for m in t if "/Tests/images/" in m.name and m.isfile()])
        elif name.endswith(".whl") and not os.path.isdir(path[:-4]):
            with zipfile.ZipFile(path) as z:
                z.extractall(path[:-4], [m for m in z.namelist() if "/tests/data/" in m or "/data/node/" in m])
    return True


def of_picture(path):
    """What Pillow reads, as gpipe would have it: (values, how far apart they may be); None: Pillow cannot read it."""
    with Image.open(path) as image:
        if getattr(image, "n_frames", 1) > 1 and image.format != "TIFF":
            image.seek(0)
        near = 2 if image.format == "JPEG" or image.info.get("compression") in ("jpeg", "tiff_jpeg") else 0
        image.load()
        if image.mode == "P":
            image = image.convert("RGBA" if "transparency" in image.info else "RGB")
        elif "transparency" in image.info and image.format == "PNG":
            image = image.convert("RGBA" if image.mode == "RGB" else "LA")     # a color that stands for nothing there
        if image.mode == "CMYK":
            near, image = 255, image.convert("RGB")
        if "exif" in image.info or image.format == "JPEG":     # not by XMP; a TIFF is turned already
            image = ImageOps.exif_transpose(image)
        mode = "L" if image.mode == "1" else image.mode
        if image.format == "TIFF" and image.n_frames > 1:      # page behind page
            return np.concatenate([np.asarray(page.convert(mode)) for page in ImageSequence.Iterator(image)]), near
        return np.asarray(image.convert(mode)), near


def of_array(path):
    if path.endswith(".wav"):
        from scipy.io import wavfile
        return wavfile.read(path)[1], 0
    a = np.load(path, allow_pickle=False)
    if path.endswith(".npz"):
        a = a[a.files[0]]
    return a, 0


def expected(path):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (of_picture if path.lower().endswith(PICTURES) else of_array)(path)
    except Exception:          # of whatever kind: then there is nothing to compare with
        return None


def same(got, want, near):
    """Are these the values? Sides of length 1 and alpha that is all there may differ in how they are said."""
    got, want = np.squeeze(got), np.squeeze(want)
    if got.ndim < want.ndim:               # frames of an array one behind the other
        want = want.reshape((-1,) + want.shape[2:])
    if got.shape != want.shape:
        return False
    if got.dtype == np.uint16 and want.dtype == np.uint8:      # Pillow has only the upper half of colors of 16 bits
        got = got >> 8
    if got.dtype == np.int16 and want.dtype == np.uint8:       # sound of 8 bits, around 128
        got = (got >> 8) + 128
    if near is None:                       # a model's
        largest = max(1, np.abs(want.astype(float)).max())
        return bool(np.allclose(got, want, rtol=1e-3, atol=1e-5 * largest, equal_nan=True))
    if np.iscomplexobj(want) or want.dtype.kind == "f" or got.dtype.kind == "f":
        return bool(np.allclose(got, want, rtol=1e-6, equal_nan=True))
    return bool((np.abs(got.astype(np.int64) - want.astype(np.int64)) <= near).all())


def fields(message):
    """Of a message of protocol buffers: (number, value) of each field."""
    at = 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            byte = message[at]
            n, shift, at = n | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return n
    while at < len(message):
        key = number()
        if key & 7 == 0:
            value = number()
        else:
            size = {1: 8, 2: -1, 5: 4}[key & 7]
            size = number() if size < 0 else size
            value, at = message[at:at + size], at + size
        yield key >> 3, value


def tensor(path):
    """A TensorProto, by ONNX's onnx.proto; None: of texts, complex numbers or types that NumPy has not."""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as f:
        parts = list(fields(f.read()))
    kind = [v for k, v in parts if k == 2]
    if not kind or kind[0] not in TYPES:
        return None
    dims = [d for k, v in parts if k == 1 for d in ([v] if isinstance(v, int) else [x for _, x in fields(packed(v))])]
    raw = [v for k, v in parts if k == 9]
    return np.frombuffer(raw[0], TYPES[kind[0]]).reshape(dims) if raw else None


def packed(v):
    """Numbers side by side, each as if it were a field of its own."""
    out, begin = b"", 0
    for i, byte in enumerate(v):
        if byte < 128:
            out, begin = out + b"\x08" + v[begin:i + 1], i + 1
    return out


def model_of(path, folder):
    """A pipeline that runs a model on its first data set, and what it should make; None: not for arrays."""
    with open(path, "rb") as f:
        graph = [v for k, v in fields(f.read()) if k == 7][0]
    names = {k: [bytes(dict(fields(v))[1]).decode() for n, v in fields(graph) if n == k] for k in (11, 12)}
    data = os.path.join(os.path.dirname(path), "test_data_set_0")
    sets = [[tensor(os.path.join(data, f"{what}_{i}.pb")) for i in range(len(names[k]))]
            for k, what in ((11, "input"), (12, "output"))]
    if not names[11] or any(a is None or a.ndim == 0 or a.ndim > 7 or not a.size for group in sets for a in group):
        return None
    lines = []
    for i, a in enumerate(sets[0]):
        np.save(os.path.join(folder, f"in{i}.npy"), (a.astype("u1") if a.dtype == bool else a)[None])
        lines.append(f'  - {{use: read, path: in{i}.npy, in: [], out: i{i}}}')
    quoted = [[json.dumps(n) for n in names[k]] for k in (11, 12)]
    ins = ", ".join(f"{n}: i{i}" for i, n in enumerate(quoted[0]))
    outs = ", ".join(f"{n}: o{i}" for i, n in enumerate(quoted[1]))
    lines.append(f'  - {{use: onnx, provider: cpu, model: "{path}", in: {{{ins}}}, out: {{{outs}}}}}')
    lines += [f"  - {{use: write, in: o{i}, path: out{i}.npy, stack: true}}" for i in range(len(sets[1]))]
    return "stages:\n" + "\n".join(lines) + "\n", [(a, None) for a in sets[1]]


def picture_of(path):
    want, declared = expected(path), ""
    if want and path.endswith(".wav"):     # all of it is one frame
        declared = "buffers: {read: {shape: %s}}\n" % list(want[0].shape)
    name = path.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    text = f'{declared}stages:\n  - {{use: read, path: "{name}"}}\n  - {{use: write, path: out0.npy}}\n'
    return text, want and [want]


def try_file(gpipe, path):
    """A word for what came of it; "WRONG: " and why, where that must not be."""
    with tempfile.TemporaryDirectory() as folder:
        made = model_of(path, folder) if path.endswith(".onnx") else picture_of(path)
        if not made:
            return "not for arrays"
        text, want = made
        with open(os.path.join(folder, "p.yaml"), "w") as f:
            f.write(text)
        try:
            p = subprocess.run([gpipe, "run", "--progress", "none", "p.yaml"], cwd=folder, text=True, timeout=60,
                               errors="replace", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except subprocess.TimeoutExpired:
            return "WRONG: takes more than a minute"
        said = p.stderr.strip().split("\n")[0][:300]
        if p.returncode not in (0, 1, 3) or "report it" in p.stderr or "anitizer" in p.stderr:
            return f"WRONG: exit {p.returncode}: {said}"
        if p.returncode and os.path.basename(path)[:20] not in p.stderr and not path.endswith(".onnx"):
            return f"WRONG: does not name the file: {said}"
        if p.returncode:
            return f"refused{', with something to compare with' if want else ''}: {said}"
        if path.lower().endswith(OTHERS):
            return "WRONG: read as something that it is not"
        if not want:
            return "read, with nothing to compare with"
        for i, (values, near) in enumerate(want):
            got = np.load(os.path.join(folder, f"out{i}.npy"))
            if same(got, values, near):
                continue
            if any(k in path for k in KNOWN):
                return "not comparable"
            if "warning" in p.stderr:
                return f"other values, with a warning: {said}"
            return "WRONG: " + ", not ".join(f"{a.dtype} {a.shape} {a.ravel()[:6]}" for a in (got, values))
        return "the same" + (f", with a warning: {said}" if "warning" in p.stderr else "")


def main():
    folder = os.path.abspath(os.environ.get("GPIPE_CORPORA", "build/corpora"))
    if sys.argv[1] == "--fetch":
        os.makedirs(folder, exist_ok=True)
        if not fetch(folder):
            print("the files of Pillow, SciPy and ONNX are not to be had: gpipe is not tried with them")
        return 0
    gpipe, only = os.path.abspath(sys.argv[1]), sys.argv[2:]
    files = sorted(os.path.join(d, f) for d, _, names in os.walk(folder) for f in names
                   if f.lower().endswith(PICTURES + OTHERS + (".wav", ".npy", ".npz", ".onnx")))
    if not files:
        print("corpora: NOT TRIED: 'make deps-tests' gets the files of Pillow, SciPy and ONNX")
        return 0
    models, seed, thin = 0, int(os.environ.get("GPIPE_SEED", "1")), int(os.environ.get("GPIPE_THIN", "4"))
    counts, failed = {}, 0
    for path in files:
        name, model = os.path.relpath(path, folder), path.endswith(".onnx")
        models += model
        if name not in only if only else model and (models + seed) % thin:
            continue
        got = try_file(gpipe, path)
        word = ("model: " if model else "") + got.split(":")[0]
        counts[word] = counts.get(word, 0) + 1
        failed += got.startswith("WRONG")
        if only or got.startswith("WRONG"):
            print(f"{'FAILED: ' if got.startswith('WRONG') else ''}{name}: {got}")
    for what, n in sorted(counts.items()):
        print(f"{n:6} {what}")
    print(f"corpora: {sum(counts.values()) - failed} passed, {failed} failed")
    return failed > 0 or not counts


if __name__ == "__main__":
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    sys.exit(main())
