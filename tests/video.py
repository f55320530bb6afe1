#!/usr/bin/env python3
"""video.py GPIPE - video that ffmpeg writes is read by gpipe, and what gpipe writes by ffmpeg, as .y4m files, by pipes and as
mp4; files of other containers and codecs; examples/video/mp4.yaml. Prints a total; exit 1 after a failure. Without ffmpeg it says that it skips."""
import glob, json, os, random, shutil, signal, struct, subprocess, sys, tempfile
from kit import bytes_of, check, gpipe, quick, ran, runs, total

if not shutil.which("ffmpeg"):
    print("video: SKIPPED: there is no ffmpeg")
    sys.exit(0)

FRAMES = 3
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "video")
EVEN, ANY = ((2, 2), (64, 48), (18, 34), (6, 102)), ((1, 1), (17, 3), (64, 48), (61, 203))     # rows, columns
# As ffmpeg calls it, bytes of a sample, the frame, options of write, sizes.
FORMATS = (("yuv420p", 1, "[{h} * 3 / 2, {w}]", "", EVEN), ("yuv422p", 1, "[{h} * 2, {w}]", ", subsampling: 4:2:2", EVEN),
           ("yuv444p", 1, "[3, {h}, {w}]", "", ANY), ("gray", 1, "[{h}, {w}]", ", subsampling: mono", ANY),
           ("yuv420p10le", 2, "[{h} * 3 / 2, {w}]", ", bits: 10", EVEN),
           ("yuv422p12le", 2, "[{h} * 2, {w}]", ", bits: 12, subsampling: 4:2:2", EVEN),
           ("yuv444p16le", 2, "[3, {h}, {w}]", ", bits: 16", ANY))
rng = random.Random(5)


def ffmpeg(*args):
    return ran("ffmpeg", "-v", "error", "-y", *args)


def holds(name, data):
    return bytes_of(name) == data


def planes(n, size, bits):
    """Bytes of samples of so many bits."""
    if size == 1:
        return rng.randbytes(n)
    return b"".join(rng.randrange(1 << bits).to_bytes(2, "little") for _ in range(n // 2))


def both_ways(pix, size, shape, options, h, w):
    bits = int(pix[7:9]) if size == 2 else 8
    samples = {"yuv420p": h * w * 3 // 2, "yuv422p": 2 * h * w, "yuv444p": 3 * h * w, "gray": h * w}[pix[:7]]
    data, at = planes(FRAMES * samples * size, size, bits), f"{pix} {h} x {w}"
    raw = ("-f", "rawvideo", "-pix_fmt", pix, "-s", f"{w}x{h}", "-r", "25")
    with open("a.raw", "wb") as f:
        f.write(data)
    declared = f"buffers: {{v: {{dtype: u{8 * size}, shape: {shape.format(h=h, w=w)}}}}}\nstages:\n"
    ok = ffmpeg(*raw, "-i", "a.raw", "-strict", "-1", "-f", "yuv4mpegpipe", "a.y4m")
    ok = ok and runs("stages:\n  - {use: read, path: a.y4m}\n  - {use: write, path: b.raw}\n")
    check(f"{at} of ffmpeg", ok and holds("b.raw", data))
    ok = runs(declared + "  - {use: read, command: [cat, a.y4m], format: y4m, out: v}\n  - {use: write, path: c.raw}\n")
    check(f"{at} of ffmpeg, by a pipe", ok and holds("c.raw", data))
    ok = runs(declared + "  - {use: read, path: a.raw, out: v}\n"
               f"  - {{use: write, path: d.y4m, frame_rate: 25{options}}}\n")
    ok = ok and ffmpeg("-strict", "-1", "-i", "d.y4m", "-f", "rawvideo", "-pix_fmt", pix, "d.raw")
    check(f"{at} for ffmpeg", ok and holds("d.raw", data))


def full_range():
    """What ffmpeg says of the range of values, and what it understands."""
    frames = "stages:\n  - {use: read, path: full.y4m%s}\n  - {use: write, path: g.y4m, frame_rate: 25, range: %s}\n"
    ok = ffmpeg("-f", "lavfi", "-i", "testsrc=s=16x16:d=0.1", "-pix_fmt", "yuvj420p", "-strict", "-1", "full.y4m")
    check("the full range is refused", ok and not runs(frames % ("", "full")))
    for said, word in (("full", "pc"), ("limited", "tv")):
        ok = runs(frames % (", range: full", said))
        p = subprocess.run(["ffmpeg", "-hide_banner", "-i", "g.y4m"], capture_output=True, text=True)
        check(f"ffmpeg sees that the range is {said}", ok and f"({word}" in p.stderr)


def luma(name):
    with open(name, "rb") as f:
        data = f.read()
    size = 96 * 64 * 3 // 2
    return [data[k:k + 96 * 64] for k in range(0, len(data), size)]


def mean_apart(a, b):
    return sum(abs(x - y) for p, q in zip(a, b) for x, y in zip(p, q)) / sum(map(len, a))


def example():
    """An mp4 of the noisy video, made calm: nearer to denoise.yaml's result than what came in."""
    for name in ("mp4.yaml", "denoise.yaml", "noisy.y4m"):
        shutil.copy(os.path.join(EXAMPLES, name), ".")
    ok = ffmpeg("-i", "noisy.y4m", "-crf", "10", "noisy.mp4") and ran(gpipe, "run", "-q", "denoise.yaml")
    ok = ok and ran(gpipe, "run", "-q", "mp4.yaml")
    for name in ("noisy.y4m", "out/clean.y4m", "out/clean.mp4"):
        ok = ok and ffmpeg("-i", name, "-f", "rawvideo", "-pix_fmt", "yuv420p", os.path.basename(name) + ".raw")
    check("mp4.yaml runs", ok)
    if ok:
        noisy, calm, mp4 = luma("noisy.y4m.raw"), luma("clean.y4m.raw"), luma("clean.mp4.raw")
        check("mp4.yaml has all frames", len(mp4) == len(calm) == len(noisy) == 16)
        check("mp4.yaml makes it calm", mean_apart(mp4[4:], calm[4:]) < mean_apart(noisy[4:], calm[4:]) / 2)
    with open("noisy.mp4", "wb") as f:
        f.write(b"no video")
    p = subprocess.run([gpipe, "run", "-q", "mp4.yaml"], capture_output=True, text=True)
    check("no mp4", p.returncode and "noisy.mp4' is no video that libavformat reads" in p.stderr and "Invalid data" in p.stderr)


# ---- files of other containers and codecs -------------------------------

ENCODERS = subprocess.run(["ffmpeg", "-hide_banner", "-encoders"], capture_output=True, text=True).stdout.split()
NO_LIBRARY = "built without libavformat"
# The name, what is encoded of 96 x 64 or as `-s` says, how. Those with B-frames have frames in another order than packets.
CLIPS = (("h264.mp4", "libx264", "yuv420p", "-bf 3 -g 12"), ("h264.mkv", "libx264", "yuv422p", "-bf 2"),
         ("h264.ts", "libx264", "yuv444p", "-g 5"), ("h264.h264", "libx264", "yuv420p", "-bf 2"),
         ("h264.mov", "libx264", "yuvj420p", ""), ("deep.mp4", "libx264", "yuv420p10le", "-bf 2"),
         ("gray.mkv", "ffv1", "gray", ""), ("hevc.mp4", "libx265", "yuv420p", "-x265-params log-level=none:bframes=2"),
         ("hevc.hevc", "libx265", "yuv422p10le", "-x265-params log-level=none"),
         ("vp9.webm", "libvpx-vp9", "yuv420p", "-auto-alt-ref 1 -lag-in-frames 12"), ("vp8.ivf", "libvpx", "yuv420p", ""),
         ("av1.mp4", "libsvtav1", "yuv420p", ""), ("mpeg2.mpg", "mpeg2video", "yuv420p", "-bf 2"),
         ("mjpeg.avi", "mjpeg", "yuvj422p", ""), ("ffv1.mkv", "ffv1", "yuv444p16le", ""), ("gray12.mkv", "ffv1", "gray12le", ""))
N = 20


def gpipe_says(*args):
    p = subprocess.run([gpipe, *args], capture_output=True, text=True)
    return p.returncode, p.stdout + p.stderr


def clip(name, encoder, pix, more="", size="96x64", source="testsrc2", n=N):
    """False: there is no such encoder, which is said."""
    if encoder not in ENCODERS:
        print(f"video: SKIPPED: {name}: this ffmpeg has no encoder {encoder}")
        return False
    return ffmpeg("-f", "lavfi", "-i", f"{source}=s={size}:r=25", "-frames:v", str(n), "-pix_fmt", pix, "-c:v", encoder,
                  *more.split(), name)


def raw(name, pix, *more):
    ok = ffmpeg(*more, "-i", name, "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt", pix, "of_ffmpeg.raw")
    return bytes_of("of_ffmpeg.raw") if ok else None


def frames_of(name, options="", more=""):
    """What gpipe makes of it: an exit status, what it says, bytes."""
    with open("read.yaml", "w") as f:
        f.write(f"{more}stages:\n  - {{use: read, path: '{name}', out: x{options}}}\n  - {{use: write, path: of_gpipe.raw, in: x}}\n")
    for old in glob.glob("of_gpipe.raw*"):
        os.remove(old)
    status, text = gpipe_says("run", "--report", "read.json", "read.yaml")
    data = bytes_of("of_gpipe.raw") if os.path.exists("of_gpipe.raw") else b""
    return status, text, data


def account(key):
    with open("read.json") as f:
        return json.load(f)["sources"][0][key]


def planes_of_files():
    for name, encoder, pix, more in CLIPS:
        if not clip(name, encoder, pix, more):
            continue
        full = ", range: full" if "j" in pix else ""
        status, text, data = frames_of(name, ", colors: planes" + full)
        check(f"{name}: planes", status == 0 and data and data == raw(name, pix), text)
        if quick and not name.startswith("gray") and not name.endswith("mov"):
            continue
        size, shape = ("u16" if "1" in pix[-4:] else "u8"), "[64, 96]" if pix.startswith("gray") else "[64, 96, 3]"
        with open("one.yaml", "w") as f:
            f.write(f"stages:\n  - {{use: read, path: {name}, out: x}}\n  - {{use: discard, in: x}}\n")
        status, text = gpipe_says("plan", "one.yaml")
        check(f"{name}: the shape of frames", f"{size} {shape}" in text, text)
        status, text, _ = frames_of(name, ", start: 1000")
        check(f"{name}: how many frames", status and f"'start' is 1000, and there are {N} frames" in text, text)


WEIGHTS = {"smpte170m": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020nc": (0.2627, 0.0593)}


def rgb_of(y, u, v, matrix, full, bits):
    """Of 4:4:4: ITU-R BT.601-7 2.5, BT.709-6 3, BT.2020-2 tables 4 and 5; before it is rounded."""
    kr, kb = WEIGHTS[matrix]
    unit, top = 1 << (bits - 8), (1 << bits) - 1
    y, u, v = (y / top, (u - 128 * unit) / top, (v - 128 * unit) / top) if full else (
        (y - 16 * unit) / (219 * unit), (u - 128 * unit) / (224 * unit), (v - 128 * unit) / (224 * unit))
    r, b = y + 2 * (1 - kr) * v, y + 2 * (1 - kb) * u
    return [min(max(c * top, 0), top) for c in (r, (y - kr * r - kb * b) / (1 - kr - kb), b)]


def colors():
    """Lossless, so that what is stored is known; of 4:4:4 a pixel has its own values."""
    h, w = 24, 34
    for i, matrix in enumerate(WEIGHTS):
        for tag in ("tv", "pc"):
            for pix, bits in (("yuv444p", 8), ("yuv444p10le", 10)):
                if quick and (tag == "pc") != (i == 1) or quick and (bits > 8) != (i == 2):
                    continue
                size = 1 if bits == 8 else 2
                data = planes(3 * h * w * size, size, bits)
                with open("c.raw", "wb") as f:
                    f.write(data)
                ok = ffmpeg("-f", "rawvideo", "-pix_fmt", pix, "-s", f"{w}x{h}", "-i", "c.raw", "-vf",
                            f"setparams=colorspace={matrix}:range={tag}", "-c:v", "ffv1", "c.mkv")
                status, text, got = frames_of("c.mkv")
                form = "<%d%s" % (3 * h * w, "B" if size == 1 else "H")
                ok = ok and status == 0 and len(got) == len(data)
                if ok:
                    stored, got = struct.unpack(form, data), struct.unpack(form, got)
                    for k in range(h * w):
                        want = rgb_of(stored[k], stored[h * w + k], stored[2 * h * w + k], matrix, tag == "pc", bits)
                        ok = ok and all(abs(x - y) < 0.501 for x, y in zip(want, got[3 * k:3 * k + 3]))
                check(f"colors of {matrix}, {tag}, {bits} bits", ok, text)
    # What makes chroma of 4:2:0 finer is tested in `color`, whose bits these are; u16 with an odd size, too.
    for pix, kind, bits, matrix in (("yuv420p", "yuv420", 8, "bt709"), ("yuv422p10le", "yuv422", 10, "bt601")):
        ok = clip("k.mkv", "ffv1", pix, "-vf setparams=colorspace=" + {"bt601": "smpte170m"}.get(matrix, matrix), "770x64")
        deep = f", bits: {bits}" if bits > 8 else ""
        ok = ok and runs("stages:\n  - {use: read, path: k.mkv, colors: planes, out: p}\n"
                         f"  - {{use: color, from: {kind}, to: rgb, matrix: {matrix}, in: p, out: q{deep}}}\n"
                         "  - {use: read, path: k.mkv, out: x}\n  - {use: compare, in: {in: x, with: q}}\n"
                         "  - {use: read, path: k.mkv, colors: gray, out: y}\n"
                         f"  - {{use: color, from: {kind}, to: gray, matrix: {matrix}, in: p, out: z{deep}}}\n"
                         "  - {use: compare, in: {in: y, with: z}}\n")
        check(f"{pix} as 'color' makes it", ok)
    # Without a tag a large picture is BT.709, a small one BT.601.
    for size, matrix in (("1280x64", "bt709"), ("96x64", "bt601"), ("64x578", "bt709"), ("64x576", "bt601")):
        ok = clip("u.mkv", "ffv1", "yuv444p", "", size, n=1) and runs(
            "stages:\n  - {use: read, path: u.mkv, colors: planes, out: p}\n"
            f"  - {{use: color, from: yuv444, to: rgb, matrix: {matrix}, in: p, out: q}}\n"
            "  - {use: read, path: u.mkv, out: x}\n  - {use: compare, in: {in: x, with: q}}\n")
        check(f"{size} is {matrix}", ok)


def stored_as_rgb():
    """Red, green and blue stay as they are stored, however."""
    for name, encoder, pix, want in (("r.mkv", "ffv1", "bgr0", "rgb24"), ("r.avi", "rawvideo", "bgr24", "rgb24"),
                                     ("r.mp4", "libx264rgb", "rgb24", "rgb24"), ("r.gif", "gif", "bgr8", "rgb24"),
                                     ("g.mkv", "ffv1", "gbrp12le", None), ("y.avi", "rawvideo", "yuyv422", None)):
        if clip(name, encoder, pix, n=3):
            status, text, data = frames_of(name, ", colors: planes" if pix[0] == "y" else "")
            if pix[0] == "y":
                expected = raw(name, "yuv422p")
            elif want:
                expected = raw(name, want)
            else:                      # green, blue, red planes of u16
                planar, n = raw(name, pix), 96 * 64
                expected = b"".join(planar[f + 2 * (p * n + i):][:2] for f in range(0, len(planar), 6 * n)
                                    for i in range(n) for p in (2, 0, 1))
            check(f"{name} of {pix}", status == 0 and data == expected, text)


def turned():
    """As ffmpeg turns it, which it does by itself; or not."""
    for angle in (0, 90, 180, 270)[quick::2 if quick else 1]:
        ok = clip("flat.mp4", "libx264", "yuv420p", n=2) and ffmpeg(
            "-i", "flat.mp4", "-c", "copy", "-metadata:s:v", f"rotate={angle}", "turned.mp4")
        upright, stored = raw("turned.mp4", "yuv420p"), raw("turned.mp4", "yuv420p", "-noautorotate")
        status, text, data = frames_of("turned.mp4", ", colors: planes")
        check(f"turned by {angle}: planes", ok and status == 0 and data == upright, text)
        status, text, data = frames_of("turned.mp4", ", colors: planes, orientation: keep")
        check(f"turned by {angle}: kept", ok and status == 0 and data == stored, text)
        _, text, rgb = frames_of("turned.mp4")
        _, _, flat = frames_of("flat.mp4")
        h, w = 64, 96

        def at(y, x):
            return {0: (y, x), 90: (x, w - 1 - y), 180: (h - 1 - y, w - 1 - x), 270: (h - 1 - x, y)}[angle]
        rows, cols = (h, w) if angle % 180 == 0 else (w, h)
        places = [at(y, x) for y in range(rows) for x in range(cols)] if ok else []
        want = b"".join(flat[3 * (w * y + x):][:3] for y, x in places)
        check(f"turned by {angle}: colors", ok and rgb[:3 * h * w] == want, text)
    ok = ffmpeg("-i", "flat.mp4", "-c", "copy", "-metadata:s:v", "rotate=45", "turned.mp4")
    status, text, data = frames_of("turned.mp4")
    check("turned by 45", ok and status and "no multiple of 90 degrees: 'orientation: keep'" in text, text)
    check("turned by 45: kept", frames_of("turned.mp4", ", orientation: keep")[0] == 0)


def odd_sizes():
    for size in ("61x203", "17x3", "33x32", "64x31")[::3 if quick else 1]:
        w, h = map(int, size.split("x"))
        ok = clip("odd.mkv", "ffv1", "yuv420p", "", size, "testsrc", n=2)
        status, text, data = frames_of("odd.mkv")
        check(f"{size} as colors", ok and status == 0 and len(data) == 2 * 3 * h * w, text)
        _, _, luma = frames_of("odd.mkv", ", colors: gray")
        check(f"{size} as luma", ok and len(luma) == 2 * h * w, text)
        status, text, data = frames_of("odd.mkv", ", colors: planes")
        check(f"{size} has no planes", status and "the planes of such a frame make no array" in text, text)


def times():
    """Frame rates that vary: times are ffprobe's, numbers go on."""
    ok = clip("vfr.mkv", "ffv1", "yuv420p", "-vf select='not(eq(mod(n,5),2))',setpts='PTS*(1+mod(N,3)/7)' -vsync vfr -enc_time_base -1")
    want = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "frame=best_effort_timestamp_time",
                           "-of", "csv=p=0", "vfr.mkv"], capture_output=True, text=True).stdout.replace(",", "").split()
    with open("t.lua", "w") as f:
        f.write("function process(f, x, y)\n  y[1] = f.meta.pts; y[2] = f.index\nend\n")
    ok = ok and runs("metadata: [pts]\nbuffers: {y: {dtype: f64, shape: [2]}}\nstages:\n  - {use: read, path: vfr.mkv, out: x}\n"
                     "  - {use: lua, script: t.lua, in: x, out: y}\n  - {use: write, path: t.raw, in: y}\n")
    got = struct.unpack("<%dd" % (2 * len(want)), bytes_of("t.raw")) if ok and len(bytes_of("t.raw")) == 16 * len(want) else ()
    check("times of frames", len(want) > 10 and len(set(want)) == len(want) and len(got) == 2 * len(want)
          and all(abs(float(a) - b) < 1e-5 for a, b in zip(want, got[::2])) and list(got[1::2]) == list(range(len(want))), (want, got))


def which():
    """Parts of a video, several of them, streams, workers."""
    ok = clip("a1.mp4", "libx264", "yuv420p", "-bf 2") and clip("a2.mp4", "libx264", "yuv420p", "-bf 2", source="mandelbrot")
    _, _, one = frames_of("a1.mp4")
    _, _, two = frames_of("a2.mp4")
    size = 96 * 64 * 3
    check("two videos differ", ok and len(one) == len(two) == N * size and one != two)
    for options, want in ((", start: 7, frames: 5", one[7 * size:12 * size]), (", workers: 4", one), (", frames: 3", one[:3 * size]),
                          (", loop: true, frames: 45", (one * 3)[:45 * size])):
        status, text, data = frames_of("a1.mp4", options)
        check(f"a video with{options}", status == 0 and data == want, text)
    for workers in (1, 3):
        status, text, data = frames_of("a?.mp4", f", workers: {workers}")
        check(f"two videos, {workers} workers", status == 0 and data == one + two, text)
    ok = ffmpeg("-i", "a1.mp4", "-i", "a2.mp4", "-map", "0", "-map", "1", "-c", "copy", "both.mkv")
    for stream, want in ((0, one), (1, two)):
        status, text, data = frames_of("both.mkv", f", stream: {stream}")
        check(f"stream {stream}", ok and status == 0 and data == want, text)
    status, text, _ = frames_of("both.mkv", ", stream: 2")
    check("there is no stream 2", status and "has no stream 2, only 2" in text, text)
    ok = ffmpeg("-f", "lavfi", "-i", "sine=d=0.1", "-f", "lavfi", "-i", "testsrc2=s=32x32:d=0.1", "-map", "0", "-map", "1",
                "-c:v", "ffv1", "sound.mkv")
    status, text, data = frames_of("sound.mkv")
    check("a sound before the pictures", ok and status == 0 and data, text)
    status, text, _ = frames_of("sound.mkv", ", stream: 0")
    check("a sound has no pictures", status and "has no pictures in its stream 0" in text, text)
    ok = ok and ffmpeg("-i", "sound.mkv", "-map", "0:0", "-c", "copy", "only.mkv")
    status, text, _ = frames_of("only.mkv")
    check("nothing but sound", ok and status and "has no stream of pictures" in text, text)
    for name, encoder in (("a1.mp4", "libx264"), ("big.mkv", "ffv1")):
        clip(name, encoder, "yuv420p", "", "64x32", n=3)
    status, text, _ = frames_of("a?.mp4")
    check("sizes that differ", status and "a2.mp4' holds rows of u8 [64, 96, 3], which cannot be cut into frames of u8 [32, 64, 3]"
          in text, text)


def damaged():
    """Whatever the bytes, gpipe ends by itself; what is whole comes."""
    size = 96 * 64 * 3
    ok = clip("whole.mp4", "libx264", "yuv420p", "-g 5 -movflags +faststart -bf 0", n=30) and clip(
        "whole.mkv", "libx264", "yuv420p", "-g 5 -bf 0", n=30) and clip("whole.ts", "mpeg2video", "yuv420p", "-g 5", n=30)
    _, _, whole = frames_of("whole.mp4")
    data = bytes_of("whole.mp4")
    with open("cut.mp4", "wb") as f:
        f.write(data[:len(data) * 2 // 3])
    status, text, got = frames_of("cut.mp4")
    n = len(got) // size
    check("a cut MP4 gives what is whole", ok and status == 0 and 5 < n < 30 and got == whole[:len(got)], (n, text))
    check("a cut MP4 says so", f"is cut off: its header says 30 frames, {n} are there" in text and account("faulty") == n, text)
    status, text, _ = frames_of("cut.mp4", ", strict: true")
    check("a cut MP4 is refused", status and "is cut off: its header says 30 frames" in text, text)
    with open("end.mp4", "wb") as f:
        f.write(b"\0\0\0\x18ftypisom" + data[-2000:])
    status, text, _ = frames_of("end.mp4")
    check("what is no MP4", status and "is no video that libavformat reads, or is cut off or damaged" in text, text)
    for name in ("whole.mp4", "whole.mkv", "whole.ts"):
        data, faulty = bytes_of(name), 0
        for seed in range(3 if quick else 12):
            r = random.Random(seed)
            bad = bytearray(data)
            for _ in range(1 + seed):
                bad[r.randrange(200 if seed % 3 else 3000, len(bad))] ^= 1 << r.randrange(8)
            with open("bad" + name[-4:], "wb") as f:
                f.write(bad[:len(bad) if seed % 4 else r.randrange(len(bad))])
            status, text, got = frames_of("bad" + name[-4:])
            check(f"{name} with errors, {seed}", status in (0, 1) and len(got) % size == 0, (status, text))
            faulty += account("faulty") if status == 0 else 1
        check(f"{name} with errors: they are counted", faulty > 0)


def starts():
    """A late start is exact to the frame, also behind packets that give no picture."""
    for name, encoder, pix, more in (("s.mp4", "libx264", "yuv420p", "-bf 3 -g 10"),
                                     ("open.mkv", "libx264", "yuv420p", "-bf 3 -g 9 -x264-params open-gop=1"),
                                     ("open.mp4", "libx265", "yuv420p", "-x265-params log-level=none:keyint=8:bframes=3"),
                                     ("s.webm", "libvpx-vp9", "yuv420p", "-g 7 -auto-alt-ref 1 -lag-in-frames 12"),
                                     ("s8.webm", "libvpx", "yuv420p", "-g 7 -auto-alt-ref 1 -lag-in-frames 12"),
                                     ("av1.mkv", "libsvtav1", "yuv420p", "-g 8"), ("s.mkv", "ffv1", "yuv420p", "-g 5"),
                                     ("s.ts", "libx264", "yuv420p", "-bf 2 -g 8"), ("s.mov", "mjpeg", "yuvj420p", "")):
        if not clip(name, encoder, pix, more, n=40):
            continue
        size, whole = 96 * 64 * 3, frames_of(name)[2]
        check(f"{name}: all", len(whole) == 40 * size)
        for start in (1, 7, 8, 9, 16, 20, 31, 38, 39) if quick else range(1, 40):
            status, text, data = frames_of(name, f", start: {start}, workers: {1 + start % 2}")
            check(f"{name} from {start}", status == 0 and data == whole[start * size:] and not told(text), (text, len(data) // size))
        for every, start in ((2, 0), (5, 3), (10, 0), (17, 1)):
            status, text, data = frames_of(name, f", every: {every}, start: {start}, workers: {1 + every % 2}")
            want = b"".join(whole[k * size:(k + 1) * size] for k in range(start, 40, every))
            check(f"{name}, each {every} from {start}", status == 0 and data == want and not told(text), (text, len(data) // size))
        for workers in (1, 2):
            status, text, _ = frames_of(name, f", start: 40, workers: {workers}")
            check(f"{name} from 40", status == 3 and "'start' is 40, and there are 40 frames" in text
                  and "in frame" not in text, (status, text))
    ok = clip("cut_front.mp4", "libx264", "yuv420p", "-g 12 -bf 2") and ffmpeg("-ss", "0.2", "-i", "cut_front.mp4", "-c", "copy", "edited.mp4")
    whole = frames_of("edited.mp4")[2]
    for start in (1, 9, 12):
        check(f"with an edit list, from {start}", ok and frames_of("edited.mp4", f", start: {start}")[2] == whole[start * size:])
    for name, encoder, pix, more in (("n.mov", "mjpeg", "yuvj420p", ""), ("n.webm", "libvpx-vp9", "yuv420p", "-g 7"),
                                     ("n.mp4", "libx264", "yuv420p", "-g 5 -bf 0"), ("n.mkv", "ffv1", "yuv420p", "-g 1")):
        if not clip(name, encoder, pix, more, n=40):
            continue
        at = subprocess.run(["ffprobe", "-v", "error", "-show_entries", "packet=pos,size", "-of", "csv=p=0", name],
                            capture_output=True, text=True).stdout.split()
        bad = bytearray(bytes_of(name))
        n, first = (int(x) for x in at[19].split(",")[:2])
        bad[first + 8:first + n] = bytes(n - 8)        # behind what a container may have in front of it
        with open(name, "wb") as f:
            f.write(bad)
        whole = frames_of(name)[2]
        check(f"{name}: a packet without a picture", name == "n.mkv" or len(whole) // size < 40, len(whole) // size)
        for options, want in ((", start: 31", whole[31 * size:]), (", start: 4, every: 32", whole[4 * size:5 * size] + whole[36 * size:37 * size])):
            status, text, data = frames_of(name, options)
            check(f"{name} without a picture{options}", status == 0 and data == want, (text, len(data) // size))


def interrupted():
    """A run ends at once where it passes over frames, and does not read the file to its end first."""
    if not clip("long.avi", "mjpeg", "yuvj420p", "-q:v 2", "640x480", n=60):
        return
    ok = ffmpeg("-stream_loop", "11", "-i", "long.avi", "-c", "copy", "long.mov")
    size = os.path.getsize("long.mov")
    with open("long.yaml", "w") as f:
        f.write("stages:\n  - {use: read, path: long.mov, start: 719, out: x}\n  - {use: discard, in: x}\n")
    for _ in range(20):                # until one is met on its way
        p = subprocess.Popen([gpipe, "run", "-q", "long.yaml"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def has_read():
            with open(f"/proc/{p.pid}/io") as f:
                return int(f.readline().split()[1])
        while has_read() < size // 8 and not os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            pass
        p.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        then = has_read()
        p.send_signal(signal.SIGINT)
        p.send_signal(signal.SIGCONT)
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
        at_end, _ = has_read(), p.wait()
        if then < size // 2:
            break
    check("an interrupted run reads no further", ok and then < size // 2 and at_end < then + size // 4, (then, at_end, size))


def told(text):
    """What a run says of its files, in any order: workers say it when they come to it."""
    return sorted(line for line in text.splitlines() if ": warning: " in line or ": error: " in line)


def same_each_time():
    """The bytes of what is damaged, and which frames are called faulty."""
    for name, encoder, pix, more in (("d.mkv", "libx264", "yuv420p", "-bf 3 -g 15"), ("d.ts", "mpeg2video", "yuv420p", "-bf 2"),
                                     ("ffv1.mkv", "ffv1", "yuv420p", "-level 3 -slicecrc 1 -g 4"),
                                     ("d.avi", "mjpeg", "yuvj420p", ""), ("mpeg4.avi", "mpeg4", "yuv420p", "-bf 2 -g 12"), ("hevc.mp4", "libx265", "yuv420p", "-x265-params log-level=none")):
        if not clip(name, encoder, pix, more, "320x240", n=40):
            continue
        data, whole, silent = bytes_of(name), frames_of(name)[2], 0
        for seed in range(4 if quick else 12):
            r, bad = random.Random(seed), bytearray(data)
            for _ in range(1 + seed):
                bad[r.randrange(3000, len(bad) - 1000)] ^= 1 << r.randrange(8)
            with open("bad" + name[-4:], "wb") as f:
                f.write(bad[:len(bad) if seed % 4 else r.randrange(len(bad) // 2, len(bad))])
            runs = [frames_of("bad" + name[-4:], f", workers: {1 + k}") for k in range(3)]
            check(f"{name} with errors, {seed}: the same each time",
                  all((s, told(t), d) == (runs[0][0], told(runs[0][1]), runs[0][2]) for s, t, d in runs),
                  [(s, told(t), len(d)) for s, t, d in runs])
            silent += runs[0][0] == 0 and not told(runs[0][1]) and runs[0][2] != whole
        check(f"{name}: checksums say what is damaged", not silent or encoder != "ffv1", silent)


def cut_off():
    """Between packets, or within one of the container."""
    for name, encoder, pix in (("c.mkv", "ffv1", "yuv420p"), ("c.webm", "libvpx", "yuv420p"), ("c.gif", "gif", "bgr8"),
                               ("c.avi", "mjpeg", "yuvj420p"), ("c.ts", "mpeg2video", "yuv420p")):
        if not clip(name, encoder, pix):
            continue
        at = subprocess.run(["ffprobe", "-v", "error", "-show_entries", "packet=pos", "-of", "csv=p=0", name],
                            capture_output=True, text=True).stdout.replace(",", "").split()
        with open("cut" + name[1:], "wb") as f:
            f.write(bytes_of(name)[:int(at[N // 2]) + 50 * name.endswith("ts")])
        status, text, data = frames_of("cut" + name[1:])
        n = len(data) // (96 * 64 * 3)
        says = "does not end as a GIF does" if name.endswith("gif") else "within a packet" if name.endswith("ts") else "is cut off: its header says"
        check(f"{name} that is cut off", status == 0 and 0 < n < N and says in text and account("faulty") == n, (n, text))
        status, text, _ = frames_of("cut" + name[1:], ", strict: true")
        check(f"{name} that is cut off: strict", status and says in text, text)
        status, text, data = frames_of(name, ", strict: true")
        check(f"{name} that is whole", status == 0 and not told(text) and len(data) == N * 96 * 64 * 3, text)


def others_messages():
    """A program that has the library itself has set whether it prints something."""
    clip("whole.ts", "mpeg2video", "yuv420p", "-g 5", n=30)
    with open("say.ts", "wb") as f:
        data = bytearray(bytes_of("whole.ts"))
        data[3000:3400] = bytes(400)
        f.write(data)
    with open("say.yaml", "w") as f:
        f.write("stages:\n  - {use: read, path: say.ts, out: x}\n  - {use: discard, in: x}\n")
    library = [os.path.basename(line.split()[-1]) for line in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True,
               env=dict(os.environ, PATH=os.environ["PATH"] + ":/sbin")).stdout.splitlines() if "libavutil.so." in line]
    for preload in ("", *library[:1]):
        p = subprocess.run([gpipe, "run", "say.yaml"], capture_output=True, text=True,
                           env=dict(os.environ, LD_PRELOAD=preload, ASAN_OPTIONS="verify_asan_link_order=0"))
        check(f"messages with '{preload}'", ("[mpeg2video @" in p.stderr) == bool(preload) and "say.ts' " in p.stderr, p.stderr)


def refused():
    with open("f.mp4", "wb") as f:
        f.write(b"no video at all")
    with open("w.yaml", "w") as f:
        f.write("stages:\n  - {use: read, path: h264.mp4, out: x}\n  - {use: write, path: w.mp4, in: x}\n")
    for options, says in (("", "is no video that libavformat reads"), (", format: video", "is no video"), (", shrink: 2", "video file"),
                          (", shuffle: 3", "shuffle")):
        status, text, _ = frames_of("f.mp4" if not options else "h264.mp4" if options != ", format: video" else "f.mp4", options)
        check(f"refused: {options}", status and says in text, text)
    for name, others in (("others.mp4", "ffconcat version 1.0\nfile h264.mp4\n"),
                         ("net.mp4", "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
                          "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n")):
        with open(name, "w", newline="") as f:
            f.write(others)
        status, text, _ = frames_of(name)
        check(f"no other files, and no network: {name}", status and "is no video that libavformat reads" in text, text)
    status, text, _ = frames_of("h264.mov", ", colors: planes")
    check("the full range is not taken for the limited", status and "set 'range: full'" in text, text)
    status, text, _ = frames_of("h264.mp4", ", colors: planes, range: full")
    check("a range that the file does not say", status == 0 or "and 'range' of this stage says the other" in text, text)
    status, text, _ = frames_of("h264.mp4", ", max_pixels: 1000")
    check("max_pixels", status and "'max_pixels' is 1000" in text, text)
    status, text, _ = frames_of("h264.h264", ", max_pixels: 1000")
    check("max_pixels is known before a picture is decoded", status and "'max_pixels'" in text and "1000" in text, text)
    with open("s.yaml", "w") as f:
        f.write("stages:\n  - {use: read, path: h264.mp4, shuffle: 3, out: x}\n  - {use: discard, in: x}\n")
    status, text = gpipe_says("check", "s.yaml")
    check("a video cannot be shuffled", status and "'shuffle' has no effect on a video" in text, text)
    status, text = gpipe_says("run", "w.yaml")
    check("mp4 is not written", status and "let a program do it" in text, text)


def files():
    with open("any.yaml", "w") as f:
        f.write("stages:\n  - {use: read, path: none.mp4, out: x}\n  - {use: discard, in: x}\n")
    open("none.mp4", "w").close()
    if NO_LIBRARY in gpipe_says("check", "any.yaml")[1]:
        print("video: SKIPPED: files, as gpipe was " + NO_LIBRARY)
        return False
    for test in (planes_of_files, colors, stored_as_rgb, turned, odd_sizes, times, which, starts, interrupted, damaged, same_each_time, cut_off,
                 others_messages, refused):
        test()
    return True


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for pix, size, shape, options, sizes in FORMATS:
        for h, w in sizes:
            both_ways(pix, size, shape, options, h, w)
    full_range()
    if files():
        example()
total("video")
