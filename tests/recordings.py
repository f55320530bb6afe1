#!/usr/bin/env python3
"""recordings.py GPIPE - what Python's wave, csv and json write is read by gpipe, and what gpipe writes by them; with
soundfile and NumPy, where they are installed, FLAC, AIFF, Ogg/Vorbis, floats, np.savetxt and arrays by pipes, too. Prints a total; exit
1 after a failure."""
import csv, io, json, math, os, random, shutil, struct, subprocess, sys, tempfile, wave
from kit import bytes_of, check, gpipe, runs, total

try:
    import numpy as np
    import soundfile as sf
except ImportError:
    sf = None

SIZES = (1, 1), (1, 2), (500, 1), (333, 2), (41, 6)                     # rows, channels
rng = random.Random(5)


def convert(source, sink, dtype, columns, options="", read=""):
    """One file to another, in blocks of 100 rows."""
    shape = "[100]" if columns == 1 else f"[100, {columns}]"
    return runs(f"buffers: {{x: {{dtype: {dtype}, shape: {shape}}}}}\nstages:\n"
               f"  - {{use: read, path: {source}, out: x{read}}}\n  - {{use: write, path: {sink}{options}}}\n")


def read(name, dtype, columns, options=""):
    """What gpipe reads of a file; None after an error."""
    return bytes_of("p.raw") if convert(name, "p.raw", dtype, columns, read=options) else None


def write(name, data, dtype, columns, options=", sample_rate: 22050"):
    with open("q.raw", "wb") as f:
        f.write(data)
    return convert("q.raw", name, dtype, columns, options)


def with_wave(n, c):
    at = f"{n} x {c}"
    for width, dtype in (2, "i16"), (4, "i32"):
        data = rng.randbytes(n * c * width)
        with wave.open("a.wav", "wb") as w:
            w.setparams((c, width, 8000, 0, "NONE", ""))
            w.writeframes(data)
        check(f"{at} {dtype} of wave", read("a.wav", dtype, c) == data)
        ok = write("b.wav", data, dtype, c)
        with wave.open("b.wav" if ok else "a.wav") as w:
            check(f"{at} {dtype} for wave",
                  ok and w.getparams()[:4] == (c, width, 22050, n) and w.readframes(n) == data)


def with_csv(n, c):
    at = f"{n} x {c}"
    values = [[rng.choice((rng.gauss(0, 1), rng.randrange(-99, 99), 10 ** rng.uniform(-300, 300), 0.1, math.inf))
               for _ in range(c)] for _ in range(n)]
    data = b"".join(struct.pack(f"{c}d", *row) for row in values)
    with open("a.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow([f"column_{k}" for k in range(c)])
        w.writerows(values)
    check(f"{at} of csv", read("a.csv", "f64", c) == data)
    with open("a.csv", "w", newline="") as f:
        w = csv.writer(f, delimiter=";", quoting=csv.QUOTE_ALL)
        w.writerow([f'column "{k}"; {k}' for k in range(c)])
        w.writerows([str(x).replace(".", ",") for x in row] for row in values)
    check(f"{at} of csv, quoted", read("a.csv", "f64", c, ", header: yes, decimal: comma") == data)
    with open("a.jsonl", "w") as f:
        f.writelines(json.dumps(row) + "\n" for row in values)
    check(f"{at} of json", read("a.jsonl", "f64", c) == data)
    ok = write("b.csv", data, "f64", c, "") and write("b.jsonl", data, "f64", c, "")
    with open("b.csv" if ok else "a.csv", newline="") as f:
        check(f"{at} for csv", [[float(x) for x in row] for row in csv.reader(f)] == values)
    with open("b.jsonl" if ok else "a.jsonl") as f:
        check(f"{at} for json", [json.loads(line) for line in f] == ([row[0] for row in values] if c == 1 else values))


def with_table(n, c):
    """Any 64 bits of three types at once, and names that have to be quoted."""
    at = f"{n} x {c}"
    names = ["plain", 'a, "b"', "c\nd", "\N{GREEK SMALL LETTER MU}m", " e ", "#f", "g;h\ti"]
    columns, values, buffers, stages = [], [], [], []
    for dtype, word in (("f64", "d"), ("i64", "q"), ("u64", "Q"), ("f32", "f")):
        data = rng.randbytes(n * c * struct.calcsize(word))
        with open(dtype + ".raw", "wb") as f:
            f.write(data)
        values.append(list(struct.iter_unpack(f"={c}{word}", data)))
        columns += [f"{dtype} {rng.choice(names)} {k}" + rng.choice(("", " ")) for k in range(c)]
        buffers.append(f"{dtype}: {{dtype: {dtype}, shape: [7, {c}]}}")
        stages.append(f"  - {{use: read, name: r{dtype}, path: {dtype}.raw, out: {dtype}}}\n")
    listed = ["frame.index", *columns[:c], "frame.file", *columns[c:]]
    for path, separator in ("t.csv", ","), ("t.tsv", "\t"):
        ok = runs(f"buffers: {{{', '.join(buffers)}}}\nstages:\n{''.join(stages)}  - {{use: write, in: [f64, i64, u64, f32], "
                  f"path: {path}, columns: {json.dumps(listed)}}}\n")
        with open(path if ok else "p.yaml", newline="") as f:
            head, *rows = csv.reader(f, delimiter=separator)
        single = struct.Struct("=f")
        got = [[float(x) for x in row[1:1 + c]] + [int(x) for x in row[2 + c:2 + 3 * c]]
               + [single.unpack(single.pack(float(x)))[0] for x in row[2 + 3 * c:]] for row in rows] if ok else []
        want = [list(sum(parts, ())) for parts in zip(*values)]
        check(f"{at} of {path}", ok and head == listed and repr(got) == repr(want)
              and [(r[0], r[1 + c]) for r in rows] == [(str(i // 7), "f64.raw") for i in range(n)], (head, rows[:2]))


def with_soundfile(n, c):
    at = f"{n} x {c}"
    ints = np.frombuffer(rng.randbytes(2 * n * c), "i2").reshape(n, c)
    floats = (ints / 20000).astype("f4")
    for name, subtype, data, dtype in (("flac", "PCM_16", ints, "i16"), ("aiff", "PCM_16", ints, "i16"),
                                       ("wav", "FLOAT", floats, "f32"), ("aiff", "FLOAT", floats, "f32"),
                                       ("wav", "DOUBLE", floats.astype("f8"), "f64"), ("rf64", "PCM_16", ints, "i16"),
                                       ("flac", "PCM_24", ints.astype("i4") << 16 | 0x100, "i32")):
        how = {"format": "RF64"} if name == "rf64" else {}
        sf.write(f"c.{name}", data, 8000, subtype=subtype, **how)
        check(f"{at} {name} {subtype} of soundfile", read(f"c.{name}", dtype, c) == data.tobytes())
        ok = write(f"d.{name}", data.tobytes(), dtype, c)
        got, rate = sf.read(f"d.{name}" if ok else f"c.{name}", dtype=data.dtype.name, always_2d=True)
        check(f"{at} {name} {subtype} for soundfile", ok and rate == 22050 and got.tobytes() == data.tobytes())
    smooth = np.sin(np.arange(n)[:, None] * (1 + np.arange(c)) / 20).astype("f4") / 2
    for name, rate in ("ogg", 22050), ("opus", 24000), ("mp3", 22050):
        if name != "ogg" and (c > 2 or name.upper() not in {**sf.available_formats(), **sf.available_subtypes()}):
            continue                    # of six channels Opus has one for the lowest frequencies
        ok = write(f"d.{name}", smooth.tobytes(), "f32", c, f", sample_rate: {rate}")
        got = sf.read(f"d.{name}", dtype="f4", always_2d=True)[0] if ok else smooth + 1
        check(f"{at} {name} for soundfile", got.shape == smooth.shape and np.abs(got - smooth).max() < 0.2)
        back = np.frombuffer(read(f"d.{name}", "f32", c) or b"", "f4")
        check(f"{at} {name} as soundfile reads it", back.size == got.size and np.abs(back - got.ravel()).max() < 1e-6)
    np.savetxt("e.csv", floats, fmt="%.9g", delimiter=";", header="of NumPy")
    check(f"{at} of np.savetxt", read("e.csv", "f32", c) == floats.tobytes())
    ok = write("f.csv", floats.tobytes(), "f32", c, "")
    check(f"{at} for np.loadtxt", ok and (np.loadtxt("f.csv", "f4", delimiter=",", ndmin=2) == floats).all())


def with_numpy_pipes():
    """Arrays one after the other, by what the reference says of NumPy and pipes."""
    lib = "import sys, types, numpy as np\nlib = np.lib.format\n"
    with open("w.py", "w") as f:
        f.write(lib + "to = types.SimpleNamespace(write=sys.stdout.buffer.write)\n"
                "for k in range(3):\n    lib.write_array(to, np.full((300, 70), k, 'f4'))\n")
    with open("r.py", "w") as f:
        f.write(lib + "pipe = types.SimpleNamespace(read=sys.stdin.buffer.read)\n"
                "assert [lib.read_array(pipe).sum() for k in range(3)] == [0, 21000, 42000]\n")
    check(".npy by programs", runs(f"buffers: {{x: {{dtype: f32, shape: [300, 70]}}}}\nstages:\n"
          f"  - {{use: read, command: [{sys.executable}, w.py], format: npy, out: x}}\n"
          f"  - {{use: write, command: [{sys.executable}, r.py], format: npy}}\n"))


def with_numpy_stream(n, c):
    """Arrays one after the other, by standard input and output."""
    first, stack = np.float32(np.arange(n * c)).reshape(n, c), np.float32(np.arange(3 * n * c)).reshape(3, n, c) / 3
    sent = io.BytesIO()
    np.save(sent, first), np.save(sent, stack)
    with open("p.yaml", "w") as f:
        f.write(f"buffers: {{x: {{dtype: f32, shape: [{n}, {c}]}}}}\nstages:\n  - {{use: read, path: stdin, format: npy, out: x}}\n"
                "  - {use: write, path: stdout, format: npy}\n")
    p = subprocess.run([gpipe, "run", "-q", "--device", "cpu", "p.yaml"], input=sent.getvalue(), stdout=subprocess.PIPE)
    came, got = io.BytesIO(p.stdout), []
    while p.returncode == 0 and came.tell() < len(p.stdout):
        got.append(np.load(came))
    check(f"{n} x {c} .npy by pipes", len(got) == 4 and all((g == w).all() and g.shape == w.shape and g.dtype == w.dtype
                                                          for g, w in zip(got, [first, *stack])))


def with_programs():
    """A FLAC of a FIFO, by the programs that gpipe names."""
    at = os.path.dirname(os.path.abspath(__file__)) + "/data/sound/five"
    with open("p.npy", "wb") as f:
        f.write(bytes_of(at + ".npy"))
    os.mkfifo("fifo.flac")
    for command, dtype, scale in ("ffmpeg, -v, error, -xerror, -i, fifo.flac, -f, f32le, '-'", "f32", 32768), \
                                 ("flac, -dcs, --force-raw-format, --endian=little, --sign=signed, fifo.flac", "i16", 1):
        if not shutil.which(command.split(",")[0]):
            continue
        writer = subprocess.Popen(["cp", at + ".flac", "fifo.flac"])
        check(f"FLAC of a FIFO by {command.split(',')[0]}", runs(
            f"buffers: {{x: {{dtype: {dtype}, shape: [100, 5]}}, w: {{dtype: i16, shape: [100, 5]}}}}\nstages:\n"
            f"  - {{use: read, command: [{command}], out: x}}\n  - {{use: scale, a: {scale}, in: x}}\n"
            "  - {use: cast, dtype: i16, out: got}\n  - {name: want, use: read, path: p.npy, out: w}\n"
            "  - {use: compare, in: [got, w]}\n"))
        writer.kill(), writer.wait()   # where nobody has opened it, it would wait


def with_columns(n, c):
    """Column-major arrays of archives, a row a frame."""
    a = np.asfortranarray(np.float32(np.arange(n * c)).reshape(n, c)[:, ::-1])
    for save in np.savez, np.savez_compressed:
        save("f.npz", a=a)
        check(f"{n} x {c} of {save.__name__}, column-major", convert("f.npz", "f.raw", "f32", c) and bytes_of("f.raw") == a.tobytes())


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for n, c in SIZES:
        with_wave(n, c)
        with_csv(n, c)
        with_table(n, c)
        if sf:
            with_columns(n + 1, c + 1)
            with_soundfile(n, c)
            with_numpy_stream(n, c)
    with_programs()
    if sf:
        with_numpy_pipes()
total("recordings", "" if sf else ", without soundfile")
