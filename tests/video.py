#!/usr/bin/env python3
"""video.py GPIPE - video that ffmpeg writes is read by gpipe, and what gpipe writes by ffmpeg, as .y4m files, by pipes and
encoded; files of other containers and codecs; examples/video/mp4.yaml. Prints a total; exit 1 after a failure. Without ffmpeg it says that it skips."""
import glob, json, math, os, random, resource, shutil, signal, struct, subprocess, sys, tempfile, time
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


# ---- files that are written ----------------------------------------------

def write(name, options="frame_rate: 25", source="src.mkv", how="", top="", limit=None):
    """What gpipe makes of a video, under another name: an exit status, what it says."""
    with open("write.yaml", "w") as f:
        f.write(f"{top}stages:\n  - {{use: read, path: '{source}', out: x{how}}}\n  - {{use: write, path: '{name}', in: x, {options}}}\n")
    p = subprocess.run([gpipe, "run", "-q", "write.yaml"], capture_output=True, text=True,
                       preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
    return p.returncode, p.stdout + p.stderr


def probe(name, what="stream=codec_name,width,height,pix_fmt,color_range,color_space,avg_frame_rate,sample_aspect_ratio"):
    p = subprocess.run(["ffprobe", "-v", "error", "-show_entries", what, "-of", "default=nw=1", name], capture_output=True, text=True)
    return p.stdout.split()


def pts_of(name):
    return [float(line.split("=")[1]) for line in probe(name, "frame=best_effort_timestamp_time")]


def luma_of(rgb):
    return [(77 * rgb[k] + 150 * rgb[k + 1] + 29 * rgb[k + 2]) >> 8 for k in range(0, len(rgb), 3)]


def psnr(a, b):
    error = sum((x - y) ** 2 for x, y in zip(a, b)) / max(1, len(a))
    return 10 * math.log10(255 ** 2 / error) if error else math.inf


# The name, options, what ffmpeg calls the codec and its pixels, the least PSNR, the encoder.
WRITTEN = (("w.mp4", "", "h264", "yuv420p", 33, "libx264"), ("w.m4v", "crf: 12", "h264", "yuv420p", 36, "libx264"),
           ("w.mov", "subsampling: 4:4:4, preset: ultrafast", "h264", "yuv444p", 36, "libx264"),
           ("w.mkv", "bitrate: 2000000, subsampling: 4:2:2", "h264", "yuv422p", 33, "libx264"),
           ("x.mp4", "live: true", "h264", "yuv420p", 33, "libx264"), ("x.mkv", "live: true", "h264", "yuv420p", 33, "libx264"),
           ("w.webm", "crf: 20", "vp9", "yuv420p", 30, "libvpx-vp9"), ("y.mp4", "codec: hevc", "hevc", "yuv420p", 30, "libx265"),
           ("z.mp4", "codec: mjpeg", "mjpeg", "yuvj420p", 36, "mjpeg"), ("v.mp4", "codec: vp9, live: true", "vp9", "yuv420p", 30, "libvpx-vp9"),
           ("a.mkv", "codec: av1, preset: 10", "av1", "yuv420p", 30, "libsvtav1"),
           ("r.mp4", "codec: libx264rgb, crf: 0", "h264", "gbrp", math.inf, "libx264rgb"), ("p.mov", "codec: png", "png", "rgb24", math.inf, "png"))


def encoded():
    """What is read back, by gpipe and by ffmpeg, is near to what was written, all of it."""
    if not clip("src.mkv", "ffv1", "bgr0", n=N):
        return
    source = raw("src.mkv", "rgb24")
    gray = luma_of(source)
    for name, options, codec, pixels, least, encoder in WRITTEN:
        if encoder not in ENCODERS:
            print(f"video: SKIPPED: {name}: this ffmpeg has no encoder {encoder}")
            continue
        if quick and name in ("w.m4v", "x.mkv", "v.mp4", "p.mov"):
            continue
        status, text = write(name, ("frame_rate: 25, " + options).rstrip(", "))
        told = probe(name) if status == 0 else []
        check(f"{name}, {options}", status == 0 and {f"codec_name={codec}", f"pix_fmt={pixels}", "width=96", "height=64",
                                                     "avg_frame_rate=25/1", "sample_aspect_ratio=1:1"} <= set(told), (text, told))
        if pixels.startswith("yuv"):
            tags = {"color_range=pc"} if codec == "mjpeg" else {"color_range=tv", "color_space=smpte170m"}
            check(f"{name}: tags", tags <= set(told), told)
        by_ffmpeg, (_, text, by_gpipe) = raw(name, "rgb24") or b"", frames_of(name)
        for who, data in (("ffmpeg", by_ffmpeg), ("gpipe", by_gpipe)):         # chroma is made finer in several ways
            near = psnr(luma_of(data), gray)
            check(f"{name}: by {who}", len(data) == len(source) and near >= least
                  and all(abs(sum(data[k::3]) - sum(source[k::3])) < len(gray) * 2 for k in range(3)), (len(data), near, text))
        check(f"{name}: times", [round(t, 3) for t in pts_of(name)] == [k / 25 for k in range(N)], pts_of(name))
    # With more bits, and chosen colors.
    for options, tags in (("frame_rate: 30000/1001, matrix: bt2020, range: full, pixel_aspect: 16:11, codec: ffv1, subsampling: 4:4:4",
                           {"color_space=bt2020nc", "color_range=pc", "avg_frame_rate=30000/1001", "pix_fmt=yuv444p",
                            "sample_aspect_ratio=16:11"}),
                          ("frame_rate: 12.5, subsampling: mono, codec: ffv1", {"pix_fmt=gray", "avg_frame_rate=25/2"})):
        status, text = write("t.mkv", options)
        check(f"tags of {options}", status == 0 and tags <= set(probe("t.mkv")), (text, probe("t.mkv")))
        if "mono" not in options:
            got = frames_of("t.mkv")[2]
            check("colors of it", len(got) == len(source) and max(abs(x - y) for x, y in zip(got, source)) <= 1)
    for size, space in (("1280x64", "bt709"), ("96x64", "smpte170m"), ("64x578", "bt709"), ("64x576", "smpte170m")):
        ok = clip("s.mkv", "ffv1", "bgr0", "", size, n=1)
        status, text = write("t.mkv", "frame_rate: 25, codec: ffv1, subsampling: 4:4:4", "s.mkv")
        check(f"{size} is {space}", ok and status == 0 and f"color_space={space}" in probe("t.mkv"), text)


def exact():
    """FFV1 and PNG keep what they get, however it is stored."""
    for pix, size, how, options in (("bgr0", "96x64", "", ""), ("gray", "61x33", "", ""), ("bgr0", "61x33", "", ""), ("gbrp10le", "96x64", "", ", bits: 10"),
                                    ("gbrp16le", "34x17", "", ""), ("gray12le", "96x64", "", ", bits: 12"), ("gray16le", "33x9", "", ""),
                                    ("yuv420p", "96x64", ", colors: planes", ", colors: planes"),
                                    ("yuv422p10le", "96x64", ", colors: planes", ", colors: planes, subsampling: 4:2:2, bits: 10"),
                                    ("yuv444p", "61x33", ", colors: planes", ", colors: planes"),
                                    ("gray", "61x33", ", colors: planes", ", colors: planes, subsampling: mono")):
        ok = clip("e.mkv", "ffv1", pix, "", size, "testsrc")
        status, text = write("f.mkv", "frame_rate: 25, codec: ffv1" + options, "e.mkv", how)
        want, got = frames_of("e.mkv", how)[2], frames_of("f.mkv", how)[2]
        check(f"FFV1 of {pix}, {size}", ok and status == 0 and want and got == want and f"pix_fmt={pix}" in probe("f.mkv"),
              (text, len(got), len(want), probe("f.mkv")))
        if how:
            check(f"FFV1 of {pix}, by ffmpeg", raw("f.mkv", pix) == raw("e.mkv", pix))
    ok = clip("e.mkv", "ffv1", "gray")
    status, text = write("g.mp4", "frame_rate: 25", "e.mkv", ", colors: gray")
    want, got = frames_of("e.mkv")[2], frames_of("g.mp4", ", colors: gray")[2]
    check("gray in an mp4", ok and status == 0 and "pix_fmt=yuv420p" in probe("g.mp4") and len(got) == len(want) and psnr(got, want) > 30, text)


def times_written():
    """Frames have the times that they had, also where these vary; what cannot be is an error of its frame."""
    pts = "metadata: [pts]\n"
    clip("vfr.mkv", "ffv1", "yuv420p", "-vf select='not(eq(mod(n,5),2))',setpts='PTS*(1+mod(N,3)/7)+2/TB' -vsync vfr -enc_time_base -1")
    want = pts_of("vfr.mkv")
    for name in ("t.mp4", "t.mkv", "t.webm"):
        status, text = write(name, "if_exists: replace", "vfr.mkv", top=pts)
        got = pts_of(name) if status == 0 else []
        check(f"{name}: times that vary", len(got) == len(want) > 10 and all(abs(a - b - want[0]) < 0.0011 for a, b in zip(want, got)), (text, want, got))
    status, text = write("t.mp4", "frame_rate: 10", "vfr.mkv", top=pts)
    check("a rate in place of times", status == 0 and pts_of("t.mp4") == [k / 10 for k in range(len(want))], text)
    status, text = write("t.mp4", "live: false", "src.mkv", ", loop: true, frames: 50", top=pts)
    check("times that go back", status == 1 and f"frame {N}: 't.mp4' cannot be written: the frame's 'pts' is not later" in text, text)
    with open("g.yaml", "w") as f:
        f.write("metadata: [pts]\nbuffers: {x: {dtype: u8, shape: [16, 16, 3]}}\nstages:\n  - {use: generate, frames: 3, out: x}\n"
                "  - {use: write, path: t.mp4, in: x}\n")
    status, text = gpipe_says("run", "g.yaml")
    check("no times", status == 1 and "frame 0: 't.mp4' cannot be written: the frame's metadata have no 'pts'" in text, text)
    with open("g.yaml", "w") as f:
        f.write("metadata: [time]\nbuffers: {x: {dtype: u8, shape: [16, 16, 3]}}\nstages:\n  - {use: generate, frames: 12, rate: 200, out: x}\n"
                "  - {use: write, path: t.mp4, in: x}\n")
    status, text = gpipe_says("run", "g.yaml")
    got = pts_of("t.mp4")
    check("times of a clock", status == 0 and len(got) == 12 and got == sorted(set(got)) and got[0] == 0 and got[-1] > 0.05, (text, got))
    status, text = write("part-%02d.mp4", "frame_rate: 25, rotate_frames: 8")
    parts = sorted(glob.glob("part-*.mp4"))
    check("files that follow each other", status == 0 and [len(pts_of(p)) for p in parts] == [8, 8, 4] and all(pts_of(p)[0] == 0 for p in parts), text)
    status, text = write("one-%02d.mkv", "frame_rate: 25, codec: ffv1", how=", frames: 2", source="src.mkv")
    check("a file for each frame", status == 0 and raw("one-00.mkv", "rgb24") + raw("one-01.mkv", "rgb24") == raw("src.mkv", "rgb24")[:2 * 96 * 64 * 3], text)


def not_written():
    clip("odd.mkv", "ffv1", "bgr0", "", "61x33", "testsrc", n=2)
    for name, options, source, top, code, place, says in (
            ("no.mp4", "codec: h265", "src.mkv", "", 3, "h265", "this libavcodec has no encoder 'h265'; for such a file it has "),
            ("no.webm", "codec: h264", "src.mkv", "", 3, "h264", "cannot hold what 'libx264' makes; for such a file this libavcodec has "),
            ("no.mp4", "preset: bad", "src.mkv", "", 1, "'no.mp4'", "'no.mp4' cannot be encoded: 'libx264' says 'Error setting preset/tune bad/"),
            ("no.mkv", "codec: ffv1, preset: fast", "src.mkv", "", 3, "ffv1", "'ffv1' has no 'preset'"),
            ("no.mkv", "codec: ffv1, crf: 3", "src.mkv", "", 3, "ffv1", "'ffv1' has no 'crf', as it is lossless"),
            ("no.mov", "codec: mjpeg, crf: 40", "src.mkv", "", 3, "mjpeg", "'crf' of 'mjpeg' is from 1 to 31"),
            ("no.mp4", "crf: 60", "src.mkv", "", 3, "'no.mp4'", "'crf' of 'libx264' is from 0 to 51"),
            ("no.mp4", "crf: 20, bitrate: 100000", "src.mkv", "", 3, "100000", "'bitrate' takes the place of 'crf': give one of them"),
            ("no.mp4", "bits: 3", "src.mkv", "", 3, "3", "8 bits are u8, 9 to 16 are u16"),
            ("no.avi", "crf: 3", "src.mkv", "", 3, "'no.avi'", "of which gpipe writes .mp4, .m4v, .mov, .mkv and .webm: let a program"),
            ("no.mp4", "crf: 3", "odd.mkv", "", 3, "'no.mp4'", "is stored as 4:2:0, where colors are of two pixels side by side in two rows, "
             "and has 33 rows of 61 pixels: crop or pad them, or set 'subsampling: 4:4:4'"),
            ("no.mp4", "codec: mjpeg, matrix: bt709", "src.mkv", "", 3, "mjpeg", "'mjpeg' has the full range and BT.601 alone"),
            ("no.mp4", "append: true", "src.mkv", "", 3, "true", "frames can be added to raw data"),
            ("no.mp4", "rotate_size: 1000", "src.mkv", "", 3, "'no.mp4'", "put %05d into it"),
            ("no%d.mp4", "rotate_size: 1000", "src.mkv", "", 3, "1000", "how large video becomes is known once it is finished"),
            ("no.mp4", "live: true", "src.mkv", "resume: r\n", 3, "'no.mp4'", "needs what this one has written: give files several frames")):
        if "libx264" in says and "libx264" not in ENCODERS:
            continue
        status, text = write(name, "frame_rate: 25, " + options, source, top=top)
        with open("write.yaml") as f:
            line = f.read().splitlines()[-1]
        check(f"not written: {options} of {source}", status == code and says in text and f":{line.rindex(place) + 1}: error: " in text, (status, text))
        check("nothing is there", not glob.glob("no.*") + glob.glob("no[0-9]*"), glob.glob("no*"))
    for codec in ("mjpeg", "mpeg4"):
        sizes = [write("q.mov", f"frame_rate: 25, codec: {codec}, crf: {q}", "src.mkv") and os.path.getsize("q.mov") for q in (2, 30)]
        check(f"crf of {codec}", sizes[1] < 0.7 * sizes[0], sizes)
    status, text = write("no.mp4", "crf: 20")
    check("no rate", status == 3 and "set 'frame_rate', for instance to 25 or 30000/1001; or where frames are from videos, say 'metadata: [pts]'" in text, text)
    status, text = write("no.mkv", "frame_rate: 25, subsampling: 4:4:4", "odd.mkv")
    check("an odd size", status == 0 and {"width=61", "height=33", "pix_fmt=yuv444p"} <= set(probe("no.mkv")), text)
    with open("deep.yaml", "w") as f:
        f.write("buffers: {x: {dtype: u16, shape: [16, 16, 3]}}\nstages:\n  - {use: generate, frames: 3, out: x}\n"
                "  - {use: write, path: deep.mp4, frame_rate: 25, in: x}\n")
    status, text = gpipe_says("check", "deep.yaml")
    check("16 bits of H.264", status and "cannot hold 4:2:0 of 16 bits as 'libx264', which takes yuv420p, " in text, text)
    status, text = gpipe_says("run", "--set", "stages.write.bits=10", "deep.yaml")
    check("10 bits of H.264", status == 0 and "pix_fmt=yuv420p10le" in probe("deep.mp4"), text)


def no_room():
    """A file that may not grow: the run fails at a frame; what is there can be played, where it has its name."""
    for name, options in (("full.mkv", "codec: ffv1"), ("full.mp4", "codec: mjpeg, live: true"), ("fuller.mkv", "codec: ffv1, live: true")):
        n = 40000
        status, text = write(name, "frame_rate: 25, " + options, how=", loop: true, frames: 200", limit=n)
        check(f"{name}: no room", status == 1 and f"'{name}' cannot be written: File too large" in text and "error: frame " in text,
              (status, text))
        there = name if "live" in options else name + ".partial"
        check(f"{name}: what is there", os.path.exists(there) and os.path.getsize(there) <= n and os.path.exists(name) == ("live" in options),
              glob.glob("full*"))
        if name.endswith("mkv"):
            p = subprocess.run(["ffmpeg", "-v", "error", "-i", there, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True)
            size, whole = 96 * 64 * 3, raw("src.mkv", "rgb24")
            k = len(p.stdout) // size
            check(f"{name}: plays", k > 1 and p.stdout[:size] == whole[:size] and p.stdout[size:2 * size] == whole[size:2 * size], k)


def ended():
    """Ctrl-C ends a file whole; a file that is live can be played after SIGKILL."""
    for name, options, end in (("int.mp4", "crf: 23", signal.SIGINT), ("kill.mp4", "live: true", signal.SIGKILL), ("kill.mkv", "live: true", signal.SIGKILL),
                               ("kill.mov", "live: true, codec: mjpeg", signal.SIGKILL), ("kill.webm", "live: true, codec: vp9", signal.SIGKILL)):
        with open("end.yaml", "w") as f:
            f.write(f"stages:\n  - {{use: read, path: src.mkv, loop: true, out: x}}\n  - {{use: write, path: {name}, frame_rate: 25, in: x, {options}}}\n")
        p = subprocess.Popen([gpipe, "run", "-q", "end.yaml"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        seen = lambda: [f for f in (name, *glob.glob(f".{name}.gpipe-*")) if os.path.exists(f) and os.path.getsize(f) > 300000]
        while not seen() and p.poll() is None:
            time.sleep(0.01)
        p.send_signal(end)
        said = p.communicate()[1]
        check(f"{name} is ended", p.returncode == (130 if end == signal.SIGINT else -9), (p.returncode, said))
        data = raw(name, "rgb24") or b"" if os.path.exists(name) else b""
        size = 96 * 64 * 3
        one = raw("src.mkv", "rgb24")
        check(f"{name} plays", len(data) >= 25 * size and psnr(data[:len(one)], one) > 27, (len(data) // size, said))
        status, text, got = frames_of(name)
        check(f"{name} is read", status == 0 and len(got) == len(data), (text, len(got), len(data)))
        if end == signal.SIGINT:
            check("an interrupted file is whole", "cut off" not in text and len(pts_of(name)) * size == len(data), text)


def files():
    with open("any.yaml", "w") as f:
        f.write("stages:\n  - {use: read, path: none.mp4, out: x}\n  - {use: discard, in: x}\n")
    open("none.mp4", "w").close()
    if NO_LIBRARY in gpipe_says("check", "any.yaml")[1]:
        print("video: SKIPPED: files, as gpipe was " + NO_LIBRARY)
        return False
    for test in (planes_of_files, colors, stored_as_rgb, turned, odd_sizes, times, which, starts, interrupted, damaged, same_each_time, cut_off,
                 others_messages, refused, encoded, exact, times_written, not_written, no_room, ended):
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
