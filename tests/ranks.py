#!/usr/bin/env python3
"""ranks.py GPIPE - one pipeline in several processes that mpirun starts: the bytes are those of one process, what
cannot be shared out is refused, and they end together. With each MPI that is installed; without any it says that it
skips. Prints a total; exit 1 after a failure."""
import array, glob, os, re, shutil, signal, subprocess, sys, time, zipfile

sys.dont_write_bytecode = True         # nothing is left beside the sources
import ranks_kit
from ranks_kit import check, finish, gpipe, has, left_alone, put, ran, ranks_here, source, tmp


def npy(name, rows, first):
    """u16 [rows, 40]"""
    head = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({rows}, 40), }}"
    head += " " * (117 - len(head)) + "\n"
    put(name, b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()
        + array.array("H", ((first * 40 + i) % 65536 for i in range(rows * 40))).tobytes())


class Mpi(ranks_kit.Mpi):
    def same(self, what, text, frames=None, ranks=(2, 3, 4)):
        """Writes into ${to}; all that is there is what one process makes."""
        put("p.yaml", "vars: {to: ''}\n" + text)
        if not os.path.exists(f"one/{what}"):
            p = ran([gpipe, "run", "p.yaml", "--set", f"vars.to=one/{what}"])
            check(f"{what}: one process", p.returncode == 0, p.stderr)
        one = has(f"one/{what}")
        for n in ranks:
            p = self.run(n, "run", "p.yaml", "--set", f"vars.to={self.name}/{what}{n}")
            check(f"{self.name}: {what}: {n} ranks", p.returncode == 0 and one
                  and has(f"{self.name}/{what}{n}") == one, p.stderr)
            said = re.findall(r"gpipe: (\d+) frames? in, ", p.stderr)
            check(f"{self.name}: {what}: {n} ranks: the account", said == [str(frames)] or not frames, p.stderr)

    def refused(self, what, text, says, n=3, code=3, verb="check"):
        put("p.yaml", text)
        p = self.run(n, verb, "p.yaml")
        check(f"{self.name}: {what}: refused", p.returncode == code and len(re.findall(says, p.stderr)) == 1, p.stderr)


LONG = "1" * 250                       # a message has no room for it


def plugin(version):
    """tests/data/plugin/kept.c, of this version"""
    name = f"./kept-{version[-4:]}.so"
    if not os.path.exists(name):
        with open(f"{ranks_kit.tests}/data/plugin/kept.c") as f:
            put("kept.c", f.read().replace('"1.0"', f'"{version}"'))
        p = ran(["cc", "-shared", "-fPIC", "-I", f"{source}/include", "-o", name, "kept.c"])
        check(f"plug-in {version[-4:]}", p.returncode == 0, p.stderr)
    return name


# ---- what is there ------------------------------------------------------

mpis = ranks_kit.mpis(Mpi)

# ---- one process, which meets no other ----------------------------------

# Behind a stage of the host it runs there, behind one of the device in its graph: with a hole, and with a last frame of
# fewer rows
put("alone.raw", array.array("f", range(26 * 5)).tobytes())
put("alone.lua", "function process(frame, x, y)\n  if frame.index == 2 then return 'drop' end\n  y:copy(x)\nend\n")
for kind in ("all_reduce, op: mean", "all_gather", "gather_ranks", "broadcast", "scatter_ranks", "exchange",
             "exchange, rows: 2, edge: hold", "exchange, edge: wrap"):
    made = {}
    for where, stage in (("host", "cast, dtype: f32, on: host"), ("device", "expr, expr: in")):
        shape = "[1, 4, 5]" if kind == "scatter_ranks" else "[4, 5]"
        frames = 3 if "gather" in kind or "scatter" in kind else 0         # they take whole frames
        put("alone.yaml", f"""
buffers: {{a: {{dtype: f32, shape: {shape}}}}}
stages:
  - {{use: read, path: alone.raw, frames: {frames}, tail: ignore, out: a}}
  - {{use: lua, script: alone.lua, out: b}}
  - {{use: {stage}}}
  - {{name: k, use: {kind}}}
  - {{use: write, path: "alone-{where}/%d.npy"}}
""")
        p = ran([gpipe, "run", "alone.yaml", "--set", "batch=4"])
        check(f"one process: {kind}: {where}", p.returncode == 0, p.stderr)
        made[where] = has(f"alone-{where}")
        p = ran([gpipe, "plan", "alone.yaml"])
        check(f"one process: {kind}: where", bool(re.search(r"^  k +\w+ +segment", p.stdout, re.M)) == (where == "device"),
              p.stdout)
        shutil.rmtree(f"alone-{where}", ignore_errors=True)
    check(f"one process: {kind}: the same bytes", len(made["host"]) in (2, 6) and made["host"] == made["device"], made)

# Where it says what only a stage of the host has, it is one: a strip too short for its neighbors is dropped.
put("alone.yaml", """
buffers: {a: {dtype: f32, shape: [4, 5]}}
stages:
  - {use: read, path: alone.raw, out: a}
  - {use: expr, expr: in}
  - {use: exchange, rows: 3, on_error: drop}
  - {use: write, path: "alone-drop/%d.npy"}
""")
p = ran([gpipe, "run", "alone.yaml"])
check("one process: on_error", p.returncode == 0 and len(has("alone-drop")) == 6 and "1 failed" in p.stderr, p.stderr)

# ---- the same bytes -----------------------------------------------------

for i in range(11):
    put(f"in/p{i:02}.pgm", f"P5 8 6 255\n".encode() + bytes((i * 7 + k) % 256 for k in range(48)))
put("in/p04.pgm", b"P5 8 6 255\nshort")
for i, rows in enumerate((5, 1, 4, 7, 3)):
    npy(f"in/n{i}.npy", rows, 100 * i)
put("in/n2.npy", b"no array")
put("in/raw.bin", bytes(range(256)) * 5)
npy("a.npy", 23, 5)
with zipfile.ZipFile("in/a.npz", "w", zipfile.ZIP_DEFLATED) as z:
    z.write("a.npy")
put("in/a.csv", "".join(f"{i},{i * i}\n" for i in range(37)))

for m in mpis:
    m.same("generate", """
buffers: {x: {dtype: f32, shape: [33]}}
stages:
  - {use: generate, pattern: noise, seed: 3, frames: 13, out: x}
  - {use: expr, expr: in * 2 + frame.index, out: y}
  - {use: write, path: "${to}/%05d.npy"}
  - {name: raw, use: write, in: x, path: "${to}/x%d.raw", start: 7}
""", 13, (1, 2, 3, 4))
    m.same("few", """
buffers: {x: {dtype: u8, shape: [3]}}
stages: [{use: generate, frames: 2, out: x}, {use: write, path: "${to}/%05d.raw"}]
""", 2, (4,))
    m.same("pictures", """
on_error: drop
stages:
  - {use: read, path: "in/p*.pgm"}
  - {use: write, path: "${to}/%03d-%n.png"}
""", 11)
    m.same("names", """
on_error: drop
stages: [{use: read, path: "in/p*.pgm"}, {use: write, path: "${to}/%n.png"}]
""", 11)
    m.same("pieces", """
on_error: drop
buffers: {x: {dtype: u16, shape: [2, 40]}}
stages:
  - {use: read, path: "in/n*.npy", out: x, workers: 3}
  - {name: rows, use: read, path: in/raw.bin, format: raw, out: r}
  - {use: write, in: x, path: "${to}/%05d.npy"}
  - {name: w, use: write, in: r, path: "${to}/r%05d.raw"}
""".replace("buffers: {", "buffers: {r: {dtype: u8, shape: [60]}, "))
    m.same("packed", """
buffers: {x: {dtype: u16, shape: [2, 40]}}
stages: [{use: read, path: in/a.npz, out: x}, {use: write, path: "${to}/%02d.npy"}]
""", 12)
    m.same("text", """
buffers: {x: {dtype: f32, shape: [4, 2]}}
stages: [{use: read, path: in/a.csv, out: x}, {use: write, path: "${to}/%02d.npy"}]
""", 10)
    put("third.lua", """
stateless = true
function process(frame, x, y)
  if frame.index % 3 == 1 then error("not this one") end
  y:copy(x)
  y[1] = frame.index
end
""")
    put("none.lua", "stateless = true\nfunction process(frame, x, y) return 'drop' end\n")
    put("keeps.lua", "function process(frame, x, y) y:copy(x) end\n")
    m.same("lua", """
on_error: drop
buffers: {x: {dtype: u8, shape: [3]}}
stages:
  - {use: generate, frames: 10, out: x}
  - {use: lua, script: third.lua, out: y, workers: 2}
  - {use: write, path: "${to}/%05d.raw"}
""", 10)
    m.same("joined", """
on_error: drop
buffers: {x: {dtype: u8, shape: [3]}, r: {dtype: u16, shape: [2, 40]}, t: {dtype: f32, shape: [4, 2]}}
stages:
  - {use: generate, frames: 200, out: x}
  - {use: lua, script: third.lua, out: y}
  - {name: a, use: write, in: y, path: "${to}/a.npy"}
  - {name: b, use: write, in: y, path: "${to}/b.npy", stack: true, workers: 3}
  - {name: c, use: write, in: y, path: "${to}/c.raw", durable: file}
  - {name: n, use: read, path: "in/n*.npy", out: r, workers: 3}
  - {name: d, use: write, in: r, path: "${to}/d.npy", workers: 2}
  - {name: e, use: write, in: r, path: "${to}/e.raw"}
  - {name: rows, use: read, path: in/a.csv, out: t}
  - {name: f, use: write, in: t, path: "${to}/f.csv"}
  - {name: g, use: write, in: y, path: "${to}/g.jsonl", stack: true}
  - {name: h, use: write, in: t, path: "${to}/h.csv", columns: [frame.file, frame.index, i, square]}
""", ranks=(2, 3, 4, 5))
    m.same("video", """
on_error: drop
buffers: {x: {dtype: u8, shape: [6, 8]}}
stages:
  - {use: read, path: "in/p*.pgm", out: x}
  - {use: write, path: "${to}/v.y4m", frame_rate: 25, subsampling: mono}
""", 11)
    m.same("one frame", """
buffers: {x: {dtype: u8, shape: [3]}}
stages:
  - {use: generate, frames: 1, out: x}
  - {use: write, path: "${to}/one.npy"}
  - {name: s, use: write, in: x, path: "${to}/one.txt", format: raw}
""", 1, (2, 4))
    m.same("none", """
on_error: drop
buffers: {x: {dtype: u8, shape: [3]}}
stages:
  - {use: generate, frames: 8, out: x}
  - {use: lua, script: none.lua, out: y}
  - {use: write, path: "${to}/none.npy"}
""", 8, (2, 3))
    for name, part in (("odd", 1), ("even", 0)):       # of two ranks one has holes alone
        put(name + ".lua", f"stateless = true\nfunction process(frame, x, y)\n  if frame.index % 2 == {part} then return 'drop' end\n"
            "  y:copy(x)\nend\n")
    m.same("holes of one rank", """
depth: 2
stall_timeout: 5s
buffers: {x: {dtype: u8, shape: [3]}}
stages:
  - {use: generate, frames: 40, out: x}
  - {use: lua, script: odd.lua, in: x, out: y}
  - {use: lua, script: even.lua, in: x, out: z}
  - {name: wy, use: write, in: y, path: "${to}/y.raw"}
  - {name: wz, use: write, in: z, path: "${to}/z.npy"}
  - {use: all_reduce, in: y, out: sy}
  - {name: dy, use: discard, in: sy}
  - {name: ax, use: all_reduce, in: x, out: sx}
  - {name: dx, use: discard, in: sx}
""".replace("u8", "u32"), 40, (2, 3))
    for what, text in (
        ("raw, holes",
         "{x: {dtype: u8, shape: [3]}}|{use: generate, frames: 200, out: x}|{use: lua, script: third.lua, out: y}"
         "|{use: write, path: stdout}"),
        ("raw, large", "{x: {dtype: f32, shape: [900000]}}|{use: generate, frames: 7, out: x, pattern: noise}"
         "|{use: write, path: stdout}"),
        ("npy", "{x: {dtype: u16, shape: [2, 40]}}|{use: read, path: 'in/n*.npy', out: x}"
         "|{use: write, path: stdout, format: npy}"),
        ("csv", "{x: {dtype: f32, shape: [4, 2]}}|{use: read, path: in/a.csv, out: x}"
         "|{use: write, path: stdout, format: csv}"),
        ("a table", "{x: {dtype: f32, shape: [4, 2]}}|{use: read, path: in/a.csv, out: x}"
         "|{use: write, path: stdout, format: csv, columns: [frame.index, i, square, frame.file]}"),
        ("a table, none", "{x: {dtype: u8, shape: [3]}}|{use: generate, frames: 8, out: x}|{use: lua, script: none.lua, out: y}"
         "|{use: write, path: stdout, format: csv, columns: [frame.index, i]}"),
        ("y4m", "{x: {dtype: u8, shape: [6, 8]}}|{use: read, path: 'in/p*.pgm', out: x}"
         "|{use: write, path: stdout, format: y4m, frame_rate: 25, subsampling: mono}"),
        ("y4m, none",
         "{x: {dtype: u8, shape: [6, 8]}}|{use: generate, frames: 8, out: x}|{use: lua, script: none.lua, out: y}"
         "|{use: write, path: stdout, format: y4m, frame_rate: 25, subsampling: mono}"),
    ):
        buffers, *stages = text.split("|")
        put("out.yaml", f"on_error: drop\nbuffers: {buffers}\nstages:\n" + "".join(f"  - {s}\n" for s in stages))
        one = subprocess.run([gpipe, "run", "out.yaml"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for n in (2, 5) if what == "raw, holes" else (3,):
            p = subprocess.run(m.start(n, "run", "out.yaml"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            check(f"{m.name}: to standard output, {what}: {n} ranks", one.returncode == p.returncode == 0 and one.stdout
                  and p.stdout == one.stdout, p.stderr.decode())
    p = m.run(3, "run", "p.yaml", "-q", "--set", "vars.to=quiet-" + m.name)
    check(f"{m.name}: -q says nothing", p.returncode == 0 and "frames" not in p.stderr and has("quiet-" + m.name),
          p.stderr)

# ---- what ranks are -----------------------------------------------------

    put("v.yaml", """
vars: {mine: "${rank}-of-${ranks}"}
buffers: {x: {dtype: i32, shape: ["ranks + 1"]}}
stages:
  - {use: generate, frames: "4 + rank", shard: none, out: x}
  - {use: write, path: "vars-NAME/${mine}.raw"}
""".replace("NAME", m.name))
    p = m.run(2, "run", "v.yaml")
    check(f"{m.name}: vars", p.returncode == 0 and {k: len(v) for k, v in has("vars-" + m.name).items()}
          == {"0-of-2.raw": 48, "1-of-2.raw": 60}, p.stderr)
    check(f"{m.name}: all frames of all ranks", "gpipe: 9 frames in, 9 out" in p.stderr, p.stderr)
    put("j.yaml", """
buffers: {x: {dtype: u8, shape: [3]}}
stages: [{use: generate, frames: 5, out: x}, {use: write, path: "joined-NAME/${rank}.raw"}]
""".replace("NAME", m.name))
    p = m.run(2, "run", "j.yaml")
    check(f"{m.name}: a file a rank", has("joined-" + m.name) == {"0.raw": bytes((0, 1, 2, 6, 7, 8, 12, 13, 14)),
                                                                  "1.raw": bytes((3, 4, 5, 9, 10, 11))}, p.stderr)
    gpu = '{"name": "A", "compute_capability": 9.0, "memory": "80GB"}'
    put("gpus.json", f'{{"devices": [{gpu}, {gpu}]}}')
    for device in "auto", "all", "cuda":
        p = m.run(3, "plan", "j.yaml", "--machine", "gpus.json", "--device", device)
        check(f"{m.name}: device {device}", f"cuda:0 ({device}: A; one of the 2 GPUs here for each rank)" in p.stdout,
              p)
    put("small.json", f'{{"memory": "1GB", "devices": [{gpu}, {gpu}]}}')
    put("much.yaml", """
device: cpu
buffers: {x: {dtype: u8, shape: [600000000], depth: 1}}
stages: [{use: generate, frames: 5, out: x}, {use: discard}]
""")
    p = m.run(2, "plan", "much.yaml", "--machine", "small.json")
    check(f"{m.name}: ranks share memory", p.returncode == 4 and p.stderr.count("much.yaml:3:53: error: the pipeline needs "
          "572.2 MiB of host memory; there are 476.8 MiB for each of the 2 ranks that share it. ") == 1, p)
    p = m.run(1, "plan", "much.yaml", "--machine", "small.json")
    check(f"{m.name}: one has all", p.returncode == 0, p)
    p = m.run(3, "plan", "j.yaml")
    check(f"{m.name}: plan", p.stdout.count("3 ranks: rank r makes frames r, r + 3, r + 6, ...") == 1
          == p.stdout.count("pipeline j"), p.stdout)

# ---- what cannot be shared out ------------------------------------------

    gen = "{use: generate, frames: 8, out: x}"
    for what, more, stages, says in (
        ("group", "", f"{gen}, {{use: group, frames: 2}}, {{use: discard}}",
         "stage 'group' takes or makes several frames"),
        ("window", "", f"{gen}, {{use: window, frames: 2}}, {{use: discard}}", "stage 'window' takes or makes several"),
        ("mix", "", f"{gen}, {{use: mix, op: sum, frames: 2}}, {{use: discard}}", "stage 'mix' takes or makes several"),
        ("state", "", f"{gen}, {{use: iir, sos: [[1, 0, 0, 1, 0.5, 0]]}}, {{use: discard}}",
         "stage 'iir' keeps something"),
        ("carry", ", v: {like: x}, u: {carry: v, init: 0}",
         f"{gen}, {{use: expr, in: {{a: x, u: u}}, expr: a + u, out: v}}, {{use: discard}}",
         "'u' carries the frame before"),
        ("delay", ", u: {carry: x, init: 0}",
         f"{gen}, {{use: expr, in: {{a: u, b: x}}, expr: a + b}}, {{use: discard}}", "'u' carries the frame before"),
        ("script", "", f"{gen}, {{use: lua, script: keeps.lua, out: y}}, {{use: discard}}",
         "stage 'lua' may keep something"),
        ("compare", "", f"{gen}, {{use: compare, file: in/raw.bin}}",
         "stage 'compare' takes all frames in their order"),
        ("process", "", f"{gen}, {{use: write, command: [cat]}}", "stage 'write' takes all frames in their order"),
        ("loop", "", "{use: read, path: in/raw.bin, loop: true, out: x}, {use: discard}", "starts anew"),
        ("stream", "", "{use: read, path: stdin, format: raw, out: x}, {use: discard}",
         "does not find its frames by their num"),
        ("one stream", "", "{use: read, path: stdin, format: raw, shard: none, out: x}, {use: discard}",
         "reads a stream"),
        ("mixture", ", y: {like: x}",
         f"{gen}, {{name: g, use: generate, frames: 8, shard: none, out: y}}, {{use: expr, in: {{a: x, b: y}}, "
         "expr: a + b}, {use: discard}", "beside frames that each rank has, of 'g'"),
        ("names", ", y: {dtype: u16, shape: [2, 40]}",
         f"{gen}, {{use: discard}}, {{name: r, use: read, path: 'in/n*.npy', out: y}}, "
         "{use: write, path: 'o/%n.npy'}", "by the names of frames"),
        ("next", "", f"{gen}, {{use: write, path: 'o/%d.raw', if_exists: next}}",
         "looks for the numbers that are there"),
        ("an archive", "", f"{gen}, {{use: write, path: o/all.npz}}", "one for all frames, and each of 3 ranks"),
        ("a recording", "", f"{gen}, {{use: write, path: o/all.wav, sample_rate: 8000}}",
         "one for all frames, and each of 3"),
        ("a file that is live", "", f"{gen}, {{use: write, path: o/all.npy, live: true}}",
         "one for all frames, and each of 3 ranks"),
        ("files that follow each other", "", f"{gen}, {{use: write, path: 'o/%d.raw', rotate_frames: 2}}",
         "puts several frames into each file, and 3 ranks would write"),
        ("by times", "", f"{gen}, {{use: write, path: 'o/%t.raw', rotate_time: 1s}}", "one for all frames, and each of 3"),
        ("stdout of all", "", "{use: generate, frames: 2, shard: none, out: x}, {use: write, path: stdout}",
         "ranks 0 and 1 would both write 'stdout'"),
        ("one file of all", "", "{use: generate, frames: 2, shard: none, out: x}, {use: write, path: o/a%d.raw}",
         "ranks 0 and 1 would both write 'o/a%d.raw'"),
        ("numbers", "", f"{gen}, {{use: write, path: o/%d.raw, start: rank}}",
         "begin to number 'o/%d.raw' differently"),
        ("no source", "", f"{gen}, {{use: discard, shard: none}}",
         "'shard' has no effect: stage 'discard' is no source"),
    ):
        m.refused(what, f"buffers: {{x: {{dtype: f32, shape: [6]}}{more}}}\nstages: [{stages}]\n", says)
    p = ran([gpipe, "check", "p.yaml"])
    put("j.yaml", "buffers: {x: {dtype: f32, shape: [6]}}\nstages: [%s, {use: write, path: o/all.npy}]\n" % gen)
    check("one process joins", ran([gpipe, "check", "j.yaml"]).returncode == 0)
    check("one rank joins", m.run(1, "run", "j.yaml").returncode == 0)

# ---- ranks that differ --------------------------------------------------

    for k, files in enumerate((("a", "b", "c"), ("a", "c"), ("a", "b", "d"))):
        for name in files:
            put(f"differ{k}/in/{name}.pgm", b"P5 2 1 255\n12")
        put(f"differ{k}/p.yaml", "stages: [{use: read, path: 'in/*.pgm'}, {use: discard}]\n")
    os.environ["GPIPE_MPI"] = m.so
    for k, says in ((0, ""), (1, "rank 1 finds 2 files with 2 frames, and rank 0 3 with 3"), (2, "rank 1 finds files of other names")):
        p = ran([m.mpirun, "-n", "1", "sh", "-c", f"cd differ0; exec {gpipe} run p.yaml", ":",
                 "-n", "1", "sh", "-c", f"cd differ{k}; exec {gpipe} run p.yaml"])
        check(f"{m.name}: ranks that see other files {k}", p.returncode == 3 * bool(says) and p.stderr.count("error: ") == bool(says)
              and says in p.stderr and (not says or "p.yaml:1:16: error: source 'read'" in p.stderr), p.stderr)

    put("a.yaml", "buffers: {x: {dtype: u8, shape: [6]}}\nstages: [%s, {use: discard}]\n" % gen)
    put("b.yaml", "buffers: {x: {dtype: u8, shape: [7]}}\nstages: [%s, {use: discard}]\n" % gen)
    os.environ["GPIPE_MPI"] = m.so
    p = ran([m.mpirun, "-n", "1", gpipe, "run", "a.yaml", ":", "-n", "2", gpipe, "run", "b.yaml"])
    check(f"{m.name}: two texts", p.returncode == 2
          and p.stderr.count("rank 1 has another text of it than rank 0") == 1, p.stderr)
    p = ran([m.mpirun, "-n", "1", gpipe, "run", "a.yaml", ":", "-n", "1", gpipe, "run", "a.yaml", "--set", "depth=5"])
    check(f"{m.name}: two settings", p.returncode == 2 and p.stderr.count("rank 1 was given other settings") == 1,
          p.stderr)
    put("kept.yaml", "stages: [{use: kept_ramp, frames: 3, shard: none}, {use: discard}]\n")
    for version, more, says in (("1.0", (), ""), ("1.1", (), "rank 1 uses other plug-ins than rank 0: kept 1.1, not kept 1.0"),
                                (LONG + "b", (), "rank 1 uses other plug-ins than rank 0: kept 1111"),
                                ("1.1", ("--set", "depth=5"), "rank 1 was given other settings")):
        first = LONG + "a" if version[:-1] == LONG else "1.0"
        p = ran([m.mpirun, "-n", "1", gpipe, "run", "--plugin", plugin(first), "kept.yaml", ":",
                 "-n", "1", gpipe, "run", "--plugin", plugin(version), "kept.yaml", *more])
        check(f"{m.name}: plug-ins {version[-4:]} {more}", p.returncode == 2 * bool(says)
              and p.stderr.count("error: ") == bool(says) and says in p.stderr, p.stderr)
    put("only/0.bin", b"012345")
    m.refused("a file that one rank lacks",
              "buffers: {x: {dtype: u8, shape: [6]}}\nstages: [{use: read, path: 'only/${rank}.bin', "
              "shard: none, out: x}, {use: discard}]\n", r"rank 1: p.yaml:2:\d+: error: .*only/1.bin", 2, verb="run")
    p = m.run(2, "run", "none.yaml")
    check(f"{m.name}: no file", p.returncode == 2 and p.stderr.count("there is no such file") == 1, p.stderr)
    p = m.run(2, "bench", "a.yaml")
    check(f"{m.name}: bench", p.returncode == 2 and p.stderr.count("only 'run', 'check' and 'plan'") == 1, p.stderr)

    # What is printed is printed once: of the command line, and by verbs that ranks do not do together.
    for code, args, says in (
            (2, "", r"^usage: gpipe VERB"), (0, "--version", r"^back ends: "), (0, "run --help", r"^usage: gpipe run "),
            (2, "help no", "no help on 'no'"), (0, "stages blur", "^runs on: device"), (0, "machine", '"page_size"'),
            (0, f"new {m.name}", "made "), (2, "rnu", "no verb 'rnu'"), (2, "run", "no file given"),
            (2, "set", "no setting given"),
            (2, "run --foo", "no option '--foo'"),
            (2, "run a.yaml --watch --report r.json", "--watch: a run with --report"),
            (0, "check a.yaml", "a.yaml: ok"), (0, "plan a.yaml", "^stages$")):
        p = m.run(2, *args.split())
        check(f"{m.name}: gpipe {args}: once", p.returncode == code
              and len(re.findall(says, p.stdout + p.stderr, re.M)) == 1, p.stdout + p.stderr)
    os.environ["GPIPE_MPI"] = m.so
    p = ran([m.mpirun, "-n", "2", gpipe, "run", "a.yaml", ":", "-n", "1", gpipe, "run", "a.yaml", "--foo"])
    check(f"{m.name}: a command line of one rank", p.returncode in (2, 3)
          and p.stderr.count("rank 2: gpipe: error: no option '--foo'") == 1 == p.stderr.count("error:"), p.stderr)
    os.environ["GPIPE_MPI"] = "/nowhere/gpipe-mpi.so"
    p = ran([m.mpirun, "-n", "2", gpipe, "run", "--foo"])
    check(f"{m.name}: no shim, and an error", p.returncode == 2
          and p.stderr.count("no option '--foo'") == 1 == p.stderr.count("error:"),
          p.stderr)
    p = ran([m.mpirun, "-n", "2", gpipe, "run", "a.yaml"])
    check(f"{m.name}: no shim", p.returncode == 4
          and len(re.findall("a run of 2 ranks needs /nowhere/gpipe-mpi.so.*'make' builds it",
                                                                      p.stderr)) == 1, p.stderr)
    check(f"{m.name}: one rank needs no shim", ran([m.mpirun, "-n", "1", gpipe, "run", "a.yaml"]).returncode == 0)
    other = [o for o in mpis if o is not m]
    if other:
        os.environ["GPIPE_MPI"] = other[0].so
        p = ran([m.mpirun, "-n", "2", gpipe, "run", "a.yaml"])
        check(f"{m.name}: the shim of another MPI", p.returncode and len(re.findall(
            "started 2 ranks, and MPI .* knows of 1.* use the mpirun of (Open MPI|MPICH) ", p.stderr)) == 1
              and not re.search("frames in|[Ss]egmentation", p.stderr), p.stderr)

    put("sums.lua", """
-- each part, and what is in all parts before it
function process(frame, x, y)
  local ranks, n = x.shape[1], x.shape[2]
  local before = 100 * frame.index
  for r = 1, ranks do
    local sum = 0
    for i = 1, n do
      y:set(r, i, x:at(r, i) + before)
      sum = sum + x:at(r, i)
    end
    before = before + sum
  end
end
""")

# ---- collectives --------------------------------------------------------

    def values(name, kind="i"):
        """Of a .npy file, those of all its frames."""
        with open(name, "rb") as f:
            data = f.read()
        at = 10 + int.from_bytes(data[8:10], "little")
        return list(array.array(kind, data[at:]))

    def collect(what, n, stage, expect, out="[4]", frames=7, more="", kind="i", dtype="i32"):
        """Frame k of rank r is 4 (n k + r) + [0, 1, 2, 3]: what each rank has then of each round."""
        to = f"collected-{m.name}/{what}-{n}"
        put("c.yaml", f"""
buffers: {{x: {{dtype: {dtype}, shape: [4]}}, y: {{dtype: {dtype}, shape: {out}}}}}
{more}
stages:
  - {{use: generate, frames: {frames}, out: x}}
{stage}
  - {{use: write, path: "{to}/${{rank}}.npy"}}
""")
        p = m.run(n, "run", "c.yaml") if n > 1 else ran([gpipe, "run", "c.yaml"])
        for r in range(n):
            rounds = (frames - r + n - 1) // n
            want = [x for k in range(rounds) for x in expect([[4 * (n * k + q) + i for i in range(4)]
                    for q in range(n) if n * k + q < frames], r, k)]
            got = values(f"{to}/{r}.npy", kind) if os.path.exists(f"{to}/{r}.npy") else None
            check(f"{m.name}: {what}: {n} ranks: rank {r}", p.returncode == 0 and got == want,
                  f"{got}, not {want}\n{p.stderr}")
        return p

    for n in (1, 2, 3):
        for op, f in (("sum", sum), ("min", min), ("max", max)):
            collect(op, n, f"  - {{use: all_reduce, op: {op}, out: y}}", lambda of, r, k: [f(x) for x in zip(*of)])
        collect("mean", n, "  - {use: all_reduce, op: mean, out: y}", 
                lambda of, r, k: [sum(x) / len(x) for x in zip(*of)],
                dtype="f64", kind="d")
        collect("two", n, "  - {use: all_reduce, op: max, out: z}\n  - {use: all_reduce, in: z, out: y}",
                lambda of, r, k: [max(x) * len(of) for x in zip(*of)])
        collect("all_gather", n, "  - {use: all_gather, out: y}", lambda of, r, k: sum(of, []), f"[{n}, 4]", 2 * n)
        collect("broadcast", n, f"  - {{use: broadcast, from: {n - 1}, out: y}}", lambda of, r, k: of[n - 1],
                frames=3 * n)
        collect("scatter", n,
                f"  - {{use: all_gather, out: z}}\n  - {{use: scatter_ranks, in: z, from: {n - 1}, out: y}}",
                lambda of, r, k: of[r], frames=2 * n)
        # Rank n - 1 alone has what is between: the work of one, on parts of all, which have the results.
        work = (f"  - {{use: gather_ranks, to: {n - 1}, out: z}}\n"
                f"  - {{name: once, use: write, in: z, path: 'collected-{m.name}/once-%s-{n}.npy', stack: true}}\n"
                f"  - {{use: lua, script: sums.lua, in: z, out: w}}\n  - {{use: %s, in: w, from: {n - 1}, out: y}}")
        for kind, result in (("scatter_ranks", lambda of, r, k: [x + 100 * k + sum(map(sum, of[:r])) for x in of[r]]),
                             ("broadcast", lambda of, r, k: sum(([x + 100 * k + sum(map(sum, of[:q])) for x in of[q]]
                                                                 for q in range(n)), []))):
            collect("gather-" + kind, n, work % (kind, kind), result, f"[{n}, 4]" if kind == "broadcast" else "[4]",
                    4 * n)
            check(f"{m.name}: gather_ranks, {kind}: {n} ranks: one file",
                  values(f"collected-{m.name}/once-{kind}-{n}.npy") == list(range(16 * n)))
        for edge, before, after in (("zero", lambda of: [0], lambda of: [0]),
                                    ("hold", lambda of: of[0][:1], lambda of: of[-1][3:]),
                                    ("wrap", lambda of: of[-1][3:], lambda of: of[0][:1])):
            collect("exchange-" + edge, n, f"  - {{use: exchange, edge: {edge}, out: y}}", lambda of, r, k:
                    (of[r - 1][3:] if r else before(of)) + of[r] + (of[r + 1][:1] if r + 1 < n else after(of)), "[6]",
                    2 * n)
        collect("decimate", n, "  - {use: all_reduce, out: z}\n  - {use: decimate, in: z, frames: 2, out: y}",
                lambda of, r, k: [] if k % 2 else [sum(x) for x in zip(*of)])
    put("g.yaml", """
on_error: drop
buffers: {x: {dtype: i32, shape: [4]}}
stages:
  - {use: generate, frames: 9, out: x}
  - {use: lua, script: hole.lua, out: y}
  - {use: gather_ranks, to: 1, out: z}
  - {use: mix, op: sum, frames: 3, out: sums}
  - {use: write, path: "gathered-NAME/all.csv", in: rows}
  - {use: compare, in: z, file: want.npy}
  - {use: lua, name: own, script: only.lua, in: z, out: v}
  - {use: write, name: each, in: v, path: "gathered-NAME/%d.raw"}
  - {use: write, name: summed, in: sums, path: "gathered-NAME/sums.npz"}
  - {use: reshape, in: z, shape: [-1], out: rows}
""".replace("NAME", m.name))
    put("want.npy",
        b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '<i4', 'fortran_order': False, 'shape': (6, 4), }".ljust(117)
        + b"\n" + array.array("i", [*range(12), *range(24, 36)]).tobytes())
    put("only.lua", f"function init(s) local f = io.open('opened-{m.name}', 'a') f:write('x') f:close() end\n"
        "function process(frame, x, y) y:copy(x) end\n")
    put("hole.lua",
        "stateless = true\nfunction process(frame, x, y)\n  if frame.index == 4 then error('not this one') end\n"
        "  y:copy(x)\nend\n")
    put("h.yaml", """
on_error: drop
buffers: {x: {dtype: i32, shape: [4]}}
stages:
  - {use: generate, frames: 9, out: x}
  - {use: lua, script: hole.lua, out: y}
  - {use: all_reduce, out: z}
  - {use: write, path: "holes-NAME/${rank}-%d.npy"}
""".replace("NAME", m.name))
    p = m.run(3, "run", "h.yaml")
    check(f"{m.name}: a hole of one is a hole of all", p.returncode == 0 and sorted(has("holes-" + m.name))
          == [f"{r}-{k}.npy" for r in range(3) for k in (0, 2)] and "3 out, 2 dropped, 1 failed" not in p.stderr
          and "9 frames in, 6 out" in p.stderr, p.stderr)
    put("last.lua", "stateless = true\nfunction process(frame, x, y)\n  if frame.index == 7 then return 'drop' end\n"
        "  y:copy(x)\nend\n")
    for use in ("all_reduce", "all_gather", "exchange", "broadcast", "gather_ranks"):
        put("l.yaml", f"""
buffers: {{x: {{dtype: i32, shape: [4]}}}}
stages:
  - {{use: generate, frames: 9, out: x}}
  - {{use: lua, script: last.lua, out: y}}
  - {{use: {use}, out: z}}
  - {{use: write, path: "last-{m.name}/{use}-${{rank}}-%d.npy"}}
""")
        p = m.run(3, "run", "l.yaml")
        got = [f for f in sorted(has("last-" + m.name)) if f.startswith(use + "-")]
        check(f"{m.name}: {use}: the last frame of one is a hole: so it is in all", p.returncode == 0 and got == [
            f"{use}-{r}-{k}.npy" for r in range(1 if use == "gather_ranks" else 3) for k in (0, 1)]
              and "9 frames in, 6 out, 3 dropped" in p.stderr, f"{got} {p.stderr}")
    p = m.run(3, "run", "g.yaml")
    all_of = has("gathered-" + m.name)
    sums = [a + b for a, b in zip(range(12), range(24, 36))]
    check(f"{m.name}: gather_ranks: what is behind runs once", p.returncode == 0
          and sorted(all_of) == ["0.raw", "2.raw", "all.csv", "sums.npz"] and has(".").get("opened-" + m.name) == b"x"
          and all_of["2.raw"] == array.array("i", range(24, 36)).tobytes()
          and all_of["all.csv"] == "".join(f"{i}\n" for i in [*range(12), *range(24, 36)]).encode(), p.stderr)
    with zipfile.ZipFile(f"gathered-{m.name}/sums.npz") as f:
        check(f"{m.name}: gather_ranks: the sum of all",
              f.read(f.namelist()[0]).endswith(array.array("q", sums).tobytes()), p.stderr)
    check(f"{m.name}: gather_ranks: the account", "9 frames in, 6 out, 2 dropped, 1 failed" in p.stderr, p.stderr)
    put("d.yaml", """
buffers: {x: {dtype: i32, shape: ["4 + floor(rank / 2)"]}}
stages:
  - {use: generate, frames: 6, shard: none, out: x}
  - {use: all_reduce, out: z}
  - {use: write, path: "differ-NAME/${rank}.npy"}
""".replace("NAME", m.name))
    p = m.run(3, "run", "d.yaml")
    check(f"{m.name}: shapes that differ", p.returncode == 1 and len(re.findall(
        r"error: stage 'all_reduce': in round 0 rank 0 has i32 \[4\], and rank 2 i32 \[5\]", p.stderr)) == 1
        and not glob.glob(f"differ-{m.name}/*.npy"), p.stderr)
    # Behind a collective that has ended here, and waits for other ranks, another ends, too: they may wait for that.
    for depth in ("1", "auto"):
        put("d.yaml", """
stall_timeout: 20s
buffers: {x: {dtype: i32, shape: [4]}}
stages:
  - {use: generate, frames: "5 + 40 * (1 - rank)", shard: none, out: x}
  - {use: all_reduce, name: first}
  - {use: all_reduce, name: second}
  - {use: write, path: "one-NAME-${rank}.npy", stack: true, if_exists: replace}
""".replace("NAME", m.name))
        p = ran(m.start(2, "run", "d.yaml", "--set", "depth=" + depth), timeout=60)
        check(f"{m.name}: two collectives, and a rank that ends early: depth {depth}", p.returncode == 0
              and "50 frames in, 50 out" in p.stderr and p.stderr.count("in round 5 rank 1 has no frame") == 2, p.stderr)
    put("d.yaml", """
buffers: {x: {dtype: i32, shape: [4]}}
stages: [{use: generate, frames: 7, out: x}, {use: broadcast, out: z}, {use: write, path: "fewer-NAME/${rank}.npy"}]
""".replace("NAME", m.name))
    p = m.run(3, "run", "d.yaml")
    check(f"{m.name}: a rank that lacks a frame", p.returncode == 1 and len(re.findall(
        "error: stage 'broadcast': in round 2 rank 1 has no frame, as its frames have ended", p.stderr)) == 1
        and not glob.glob(f"fewer-{m.name}/*.npy"), p.stderr)
    put("d.yaml", """
on_error: drop
buffers: {x: {dtype: i32, shape: [400]}}
stages:
  - {use: generate, frames: 7, out: x}
  - {use: broadcast, out: z}
  - {use: write, path: "dropped-NAME/${rank}-%d.npy"}
""".replace("NAME", m.name))
    p = m.run(3, "run", "d.yaml")
    check(f"{m.name}: a rank that lacks a frame, which is dropped", p.returncode == 0
          and "7 frames in, 6 out" in p.stderr
          and sorted(has("dropped-" + m.name)) == [f"{r}-{k}.npy" for r in range(3) for k in (0, 1)], p.stderr)
    put("d.yaml", """
buffers: {x: {dtype: f32, shape: [1]}, sum: {like: x}, before: {carry: sum}}
stages:
  - {use: generate, frames: 6, out: x}
  - {use: all_reduce, out: s}
  - {use: expr, in: {a: s, b: before}, out: sum, expr: a + b / 2}
  - {use: write, path: "carried-NAME/${rank}.npy"}
""".replace("NAME", m.name))
    p = m.run(2, "run", "d.yaml")
    sums = array.array("f", (1, 5.5, 11.75)).tobytes()
    check(f"{m.name}: what is made behind a collective is carried", p.returncode == 0
          and [x[-12:] for x in has(f"carried-{m.name}").values()] == [sums, sums], p.stderr)
    m.refused("what is carried, beside frames that are shared out", """
buffers: {x: {dtype: f32, shape: [1]}, sum: {like: x}, before: {carry: sum}}
stages:
  - {use: generate, frames: 6, out: x}
  - {use: expr, in: {a: x, b: before}, out: y, expr: a + b / 2}
  - {use: all_reduce, out: sum}
  - {use: discard}
""", r"p.yaml:5:11: error: stage 'expr' reads frames that are shared out among 2 ranks, beside 'before'", n=2)
    for kind in ("all_gather", "broadcast", "exchange", "gather_ranks, to: 2"):
        put("d.yaml", """
on_error: drop
buffers: {x: {dtype: i32, shape: [4]}}
stages: [{use: generate, frames: 7, out: x}, {use: KIND, out: z}, {use: write, path: "go-on-NAME-KIND/${rank}-%d.npy"}]
""".replace("NAME", m.name).replace("KIND", kind))
        p = m.run(3, "run", "d.yaml")
        check(f"{m.name}: {kind}: a rank that lacks a frame, which is dropped", p.returncode == 0
              and len(has(f"go-on-{m.name}-{kind}")) == (2 if kind[:6] == "gather" else 6), p.stderr)
    put("l.yaml", """
buffers: {x: {dtype: i32, shape: [4]}}
stages: [{use: generate, out: x}, {use: lua, script: fails.lua, out: y}, {use: all_reduce}, {use: discard}]
""")
    put("fails.lua",
        "stateless = true\nfunction process(frame, x, y)\n  if frame.index == 7 then error('no luck') end\n"
        "  y:copy(x)\nend\n")
    p = m.run(3, "run", "l.yaml")
    check(f"{m.name}: an error while others wait in a collective", p.returncode == 1
          and p.stderr.count("no luck") == 1, p.stderr)
    x = "buffers: {x: {dtype: i32, shape: [4]}}\nstages: [{use: generate, frames: 6, out: x}, %s, {use: discard}]\n"
    z = "{use: gather_ranks, to: 1, out: z}, "
    m.refused("to", x % "{use: gather_ranks, to: 3}", "stage 'gather_ranks': 'to' is rank 3, and there are 3 ranks")
    m.refused("parts", x % "{use: scatter_ranks}", r"the parts of i32 \[4\] have no axis")
    m.refused("too many parts", x % "{use: reshape, shape: [4, 1]}, {use: scatter_ranks}",
              r"i32 \[4, 1\] has 4 parts along its first axis, and there are 3 ranks")
    m.refused("a frame of each", x % (z + "{use: all_reduce}"),
              "stage 'all_reduce' needs a frame of each rank, and rank 1 alone has those of 'z'")
    m.refused("the frames of another", x % (z + "{use: broadcast}"),
              "stage 'broadcast' needs the frames of rank 0, and rank 1 alone has those of 'z'")
    m.refused("frames of two ranks", x % (z + "{name: h, use: gather_ranks, in: x, to: 2, out: h}, "
              "{use: expr, in: {a: z, b: h}, expr: a + b}"),
              "stage 'expr' reads 'z', which rank 1 alone has, beside 'h', which rank 2 alone has")
    m.refused("from", x % "{use: broadcast, from: 3}", "stage 'broadcast': 'from' is rank 3, and there are 3 ranks")
    m.refused("the mean of integers", x % "{use: all_reduce, op: mean}", "the mean of integers")
    m.refused("no such rows", x % "{use: exchange, rows: 5}", "a strip of 4 rows has no 5 to give")
    m.refused("the same file", x.replace("discard", "write, path: a.npy") % "{use: all_reduce}",
              "ranks 0 and 1 would both write 'a.npy'")
    strips = os.path.join(source, "..", "examples", "strips")
    for n in (1, 2, 3):
        p = m.run(n, "run", strips + "/strips.yaml", "--set",
                  f"vars.out={tmp.name}/strips-{m.name}-{n}") if n > 1 else \
            ran([gpipe, "run", strips + "/strips.yaml", "--set", f"vars.out={tmp.name}/strips-{m.name}-{n}"])
        check(f"{m.name}: strips: {n} ranks", p.returncode == 0, p.stderr)
    p = ran([gpipe, "run", strips + "/whole.yaml", "--set", f"vars.out={tmp.name}/whole-{m.name}"])
    for k in range(10):
        one = values(f"whole-{m.name}/{k:03}.npy", "f")
        check(f"{m.name}: strips: frame {k}", max(one) == 100 and all(one == sum(
            (values(f"strips-{m.name}-{n}/strip{r}-{k:03}.npy", "f") for r in range(n)), []) for n in (1, 2, 3)),
            p.stderr)

    # The backward pass of three layers: in three segments, of which each is done when its all_reduce begins, or in one.
    for what, segments in ("train", 3), ("after", 1):
        p = m.run(2, "plan", "-q", "--device", "cuda", f"{source}/../examples/train/{what}.yaml")
        check(f"{m.name}: {what}: segments",
              len(set(re.findall(r"(?m)^  network\.dw[123] +matmul +segment (\d+)", p.stdout))) == segments, p.stdout + p.stderr)
        check(f"{m.name}: {what}: no more steps under way than elsewhere, as each waits for the exchange",
              re.search(r"(?m)^  learn\.w1\.step\.next .* depth 6 ", p.stdout), p.stdout + p.stderr)
        for n in (2, 4):
            to = f"{tmp.name}/{what}-{m.name}-{n}"
            p = m.run(n, "run", f"{source}/../examples/train/{what}.yaml", "--set", f"vars.out={to}")
            like = ran([sys.executable, f"{source}/../tests/examples.py", "train", to])
            losses = {name: x for name, x in has(to).items() if name.startswith("loss-")}
            check(f"{m.name}: {what}: {n} ranks", p.returncode == 0 and like.returncode == 0 and len(losses) == n
                  and len(set(losses.values())) == 1, p.stderr + like.stderr)

    drawn = m.run(2, "plan", "-q", "--device", "cuda:0-1", "--svg",
                  os.path.join(source, "..", "pipelines", "mean.yaml"))
    with open(os.path.join(source, "..", "examples", "mean-plan.svg")) as f:
        check(f"{m.name}: examples/mean-plan.svg: 'mpirun -n 2 gpipe plan -q --device cuda:0-1 --svg "
              "pipelines/mean.yaml' draws another", "H200" not in drawn.stdout
              or sorted(re.findall("<text.*>(.*)</text>", drawn.stdout)) == sorted(re.findall("<text.*>(.*)</text>", f.read())),
              drawn.stderr)
    means = []
    for n in (1, 2, 4):
        args = ["run", os.path.join(source, "..", "pipelines", "mean.yaml"), "--set",
                f"vars.out={tmp.name}/mean-{m.name}-{n}"]
        p = m.run(n, *args) if n > 1 else ran([gpipe] + args)
        check(f"{m.name}: mean.yaml: {n} ranks", p.returncode == 0, p.stderr)
        means += [values(f"mean-{m.name}-{n}/mean-{r}.npy", "f") for r in range(n)]
    check(f"{m.name}: mean.yaml: all have the mean", all(
        len(v) == 480 * 640 and max(abs(a - b) for a, b in zip(v, means[0])) < 1e-6 for v in means))

    put("fifths.lua",
        "stateless = true\nfunction process(f, x, y)\n  if f.index % 5 == 0 then return 'drop' end\n  y:copy(x)\nend\n")
    put("row.yaml", """
depth: 2
buffers: {x: {dtype: f32, shape: [65]}}
stages:
  - {use: generate, frames: 200, out: x}
  - {use: lua, script: fifths.lua, out: y}
  - {use: exchange, edge: wrap}
  - {use: exchange, edge: wrap}
  - {use: discard}
""")
    p = m.run(2, "run", "row.yaml")
    check(f"{m.name}: two collectives in a row, behind holes of different ranks", p.returncode == 0, p.stderr)
    put("odd/b0.bin", bytes(6)), put("odd/e0.bin", bytes(2)), put("odd/e1.bin", bytes(8))
    put("two.yaml", """
buffers: {y: {dtype: u8, shape: [4]}, x: {dtype: u8, shape: [4]}}
stages:
  - {use: read, format: raw, path: odd/b0.bin, out: y}
  - {use: write, in: y, path: odd/b.npy, stack: true}
  - {use: read, format: raw, path: "odd/e?.bin", out: x}
  - {use: write, in: x, path: odd/a.npy, stack: true}
""")
    p = m.run(2, "run", "two.yaml")
    check(f"{m.name}: two joined files fail, each on another rank", p.returncode == 1
          and p.stderr.count("error: ") == 1, p.stderr)

# ---- how they end -------------------------------------------------------

    put("fails.lua",
        "stateless = true\nfunction process(frame, x, y)\n  if frame.index == 7 then error('no luck') end\n"
        "  y:copy(x)\nend\n")
    put("f.yaml", """
buffers: {x: {dtype: u8, shape: [3]}}
stages:
  - {use: generate, out: x}
  - {use: lua, script: fails.lua, out: y}
  - {use: write, path: "failed-NAME/${rank}.raw"}
""".replace("NAME", m.name))
    p = m.run(3, "run", "f.yaml")
    check(f"{m.name}: an error of one ends all", p.returncode == 1 and p.stderr.count("no luck") == 1
          and "rank 1: fails.lua:3:" in p.stderr, p.stderr)
    check(f"{m.name}: no file is whole then", not glob.glob(f"failed-{m.name}/*.raw"), p.stderr)
    check(f"{m.name}: no file is left behind", not glob.glob(f"failed-{m.name}/.*"), p.stderr)
    check(f"{m.name}: one account", p.stderr.count("frames in") == 1, p.stderr)
    put("j.yaml", """
buffers: {x: {dtype: u8, shape: [3]}}
stages:
  - {use: generate, frames: 60, out: x}
  - {use: lua, script: fails.lua, out: y}
  - {use: write, path: "fails-NAME/all.npy"}
  - {name: b, use: write, in: x, path: "fails-NAME/b.raw"}
""".replace("NAME", m.name))
    put(f"fails-{m.name}/all.npy", "as it was")
    p = m.run(3, "run", "j.yaml")
    check(f"{m.name}: an error of one in a joined file", p.returncode == 1 and p.stderr.count("no luck") == 1, p.stderr)
    check(f"{m.name}: then the file is as it was, and nothing is left behind",
          {k: v for k, v in has(f"fails-{m.name}").items() if k != "b.raw"} == {"all.npy": b"as it was"}, p.stderr)
    put("j.yaml", """
buffers: {x: {dtype: f32, shape: [3]}}
stages: [{use: generate, frames: 60, out: x}, {use: write, path: "WHERE", if_exists: HOW, format: raw}]
""")
    with open("j.yaml") as f:
        joined = f.read()
    put("k.yaml", joined.replace("WHERE", f"fails-{m.name}/all.npy").replace("HOW", "error"))
    p = m.run(3, "run", "k.yaml")
    check(f"{m.name}: a joined file that is there", p.returncode == 1 and p.stderr.count("is there already") == 1
          and has(f"fails-{m.name}")["all.npy"] == b"as it was", p.stderr)
    os.mkfifo(f"fails-{m.name}/fifo")
    put("k.yaml", joined.replace("WHERE", f"fails-{m.name}/fifo").replace("HOW", "replace"))
    p = m.run(3, "run", "k.yaml")
    check(f"{m.name}: ranks cannot write a FIFO together", p.returncode == 1 and len(re.findall(
        "fifo' is not a regular file, which 3 ranks need to write it together", p.stderr)) == 1, p.stderr)
    os.remove(f"fails-{m.name}/fifo")
    os.symlink("all.npy", f"fails-{m.name}/link")
    put("k.yaml", joined.replace("WHERE", f"fails-{m.name}/link").replace("HOW", "replace"))
    p = m.run(3, "run", "k.yaml")
    check(f"{m.name}: a link to a joined file stays", p.returncode == 0 and os.path.islink(f"fails-{m.name}/link")
          and array.array("f", has(f"fails-{m.name}")["all.npy"]).tolist() == list(range(180)), p.stderr)
    put("set-up.yaml", """
buffers: {x: {dtype: u8, shape: [3]}}
stages:
  - {use: generate, frames: 9, out: x}
  - {use: lua, script: opens.lua, out: y, params: {rank: "${rank}"}}
  - {use: write, path: "begun-NAME/%d.raw"}
""".replace("NAME", m.name))
    put("opens.lua", "stateless = true\nfunction init(s) if s.params.rank == 1 then error('not today') end end\n"
        "function process(frame, x, y) y:copy(x) end\n")
    p = m.run(3, "run", "set-up.yaml")
    check(f"{m.name}: none begins where one cannot", p.returncode == 1 and p.stderr.count("not today") == 1
          and "rank 1: " in p.stderr and not has("begun-" + m.name), p.stderr)

    def begun(to, more="", first="{0:08}.raw", rate=300, options=(), head="", also="", buffers="", shard=""):
        """An endless run of three ranks, of which all have begun and have written a file."""
        path = "%08d-${rank}.raw" if more else "%08d.raw"
        put("e.yaml", f"""
{head}
buffers: {{x: {{dtype: i32, shape: [3]}}{buffers}}}
stages: [{{use: generate, rate: {rate}, {shard}out: x}}, {more}{{use: write, path: "{to}/{path}"}}{also}]
""")
        p = m.begin(3, "run", "e.yaml", options=options)
        end = time.monotonic() + 60
        while not all(os.path.exists(f"{to}/{first.format(i)}") for i in range(3)) and time.monotonic() < end:
            time.sleep(0.02)
        return p, ranks_here()

    for what, signum, whom in (("a rank is asked to stop", signal.SIGTERM, 1), ("a rank is killed", signal.SIGKILL, 2),
                               ("mpirun is asked to stop", signal.SIGINT, None)):
        to = f"ended-{m.name}-{signum}"
        p, ranks = begun(to)
        check(f"{m.name}: {what}: three run", len(ranks) == 3, str(ranks))
        os.kill(p.pid if whom is None else ranks.get(whom, p.pid), signum)
        try:
            said = p.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            said = "it did not end"
            for pid in ranks.values():
                os.kill(pid, signal.SIGKILL)
            p.wait()
        check(f"{m.name}: {what}: all end", p.returncode not in (0, None) and said != "it did not end", said)
        gone = time.monotonic() + 20           # some launchers leave before those whom they end
        while any(os.path.exists(f"/proc/{i}") for i in ranks.values()) and time.monotonic() < gone:
            time.sleep(0.02)
        check(f"{m.name}: {what}: none goes on", not any(os.path.exists(f"/proc/{i}") for i in ranks.values()), said)
        check(f"{m.name}: {what}: files are whole",
              all(len(v) == 12 for k, v in has(to).items() if not k.startswith(".")), said)
        if signum == signal.SIGTERM:
            check(f"{m.name}: {what}: the exit code is that of a signal", p.returncode == 143, said)

    to = f"cut-{m.name}"
    p, ranks = begun(to, also=f", {{name: all, use: write, in: x, path: '{to}/all.npy'}}")
    os.kill(ranks.get(1, p.pid), signal.SIGTERM)
    said = left_alone(p, ranks, 60)
    all_of = values(f"{to}/all.npy") if os.path.exists(f"{to}/all.npy") else []
    check(f"{m.name}: asked to stop: a joined file has all frames up to one", p.returncode == 143 and len(all_of) > 3
          and all_of == [(i // 3) * 3 + i % 3 for i in range(len(all_of))]
          and sorted(has(to)) == sorted([k for k in has(to) if k[0] != "."]), said)

    to = f"rounds-{m.name}"
    p, ranks = begun(to, "{use: all_reduce}, ", "00000000-{0}.raw")
    os.kill(ranks.get(1, p.pid), signal.SIGTERM)
    said = left_alone(p, ranks, 60)
    there = [{k[:8]: v for k, v in has(to).items() if k.endswith(f"-{r}.raw")} for r in range(3)]
    check(f"{m.name}: asked to stop in a collective: all have the same rounds", p.returncode == 143 and there[0]
          and there[0] == there[1] == there[2], f"{[len(t) for t in there]} {said}")

    # Ranks 1 and 2 are ahead of rank 0 by frames of which no round is made. Of a state that is changed twice a frame, the
    # second time by what a collective makes, nothing is half a frame.
    to = f"states-{m.name}"
    p, ranks = begun(to, "{name: r, use: all_reduce}, {use: expr, in: {r: r, s: s}, out: s, expr: s + 1 + 0 * r}, "
                     "{use: expr, in: {x: x, t: t}, out: t, expr: t + 1 + 0 * x}, {use: expr, in: {r: r, t: t}, out: t, "
                     "expr: t + 1 + 0 * r}, {use: expr, in: {r: r, s: s, t: t}, expr: r + 0 * (s + t)}, ",
                     "00000000-{0}.raw", '"100 + 2900 * min(rank, 1)"', shard="shard: none, ", buffers="".join(
                         f', {b}: {{state: true, like: x, init: 5, save: "{to}/{b}-${{rank}}.npy"}}' for b in "st"))
    os.kill(ranks.get(1, p.pid), signal.SIGINT)
    said = left_alone(p, ranks, 60)
    rounds = sum(k.endswith("-0.raw") for k in has(to))
    saved = {k: values(f"{to}/{k}") for k in has(to) if k.endswith(".npy")}
    check(f"{m.name}: asked to stop in a collective: states are saved behind the rounds that all have",
          p.returncode == 130 and rounds and saved == {f"{b}-{r}.npy": 3 * [5 + rounds * (1 + (b == "t"))] for b in "st"
                                                       for r in range(3)}
          and all(b"# after %d frames" % rounds in v for k, v in has(to).items() if k.endswith(".npy")),
          f"{rounds} rounds {saved} {said}")

    # Rank 0 waits in a collective when it stops; the others come there later, and begin the next one before they stop.
    p, ranks = begun(f"left-{m.name}", "{use: all_reduce}, ", "00000000-{0}.raw",
                     '"2000 - 1700 * floor((rank + 1) / 2)"')
    for signum in (signal.SIGINT, signal.SIGTERM):         # twice one may come as one
        os.kill(ranks.get(0, p.pid), signum)
    said = left_alone(p, ranks, 60)
    check(f"{m.name}: stopped at once in a collective: all end", said != "it did not end"
          and p.returncode in (130, 143), said)

# ---- ranks that do not come, and ranks that hang ------------------------

    put("late.sh", """#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 2 ] && exec sleep 100
"$GPIPE" "$@"
exit $?
""")
    os.chmod("late.sh", 0o755)
    os.environ["GPIPE"] = gpipe
    for verb in "run", "check":
        p = ran(m.start(4, verb, "a.yaml", "--join-timeout", "6s", command="./late.sh"))
        check(f"{m.name}: {verb}: a rank that does not start is named", p.returncode
              and p.stderr.count("error: waited 6 s for rank 2 to start\n") == 1 == p.stderr.count("waited"), p.stderr)
    put("slow.c", """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* Rank 0 takes its time to open the pipeline's file. */
FILE *fopen(const char *path, const char *mode)
{
    const char *ompi = getenv("OMPI_COMM_WORLD_RANK"), *pmi = getenv("PMI_RANK");
    if (!strcmp(path, "a.yaml") && !strcmp(ompi ? ompi : pmi ? pmi : "", "0"))
        sleep(100);
    return ((FILE *(*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen"))(path, mode);
}
""")
    put("slow.sh", """#!/bin/sh
LD_PRELOAD=./slow.so ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" exec "$GPIPE" "$@"
""")
    os.chmod("slow.sh", 0o755)
    p = ran(["cc", "-shared", "-fPIC", "-o", "slow.so", "slow.c", "-ldl"])
    check("slow.c", p.returncode == 0, p.stderr)
    p = ran(m.start(3, "check", "a.yaml", "--join-timeout", "6s", command="./slow.sh"))
    check(f"{m.name}: a rank that has not compiled the pipeline in time is named", p.returncode and p.stderr.count(
          "rank 1: gpipe: error: waited 6 s for rank 0 to compile the pipeline") == 1 == p.stderr.count("waited"),
          p.stderr)

    put("hangs.lua", """stateless = true
local p
function init(s)
  p = s.params
  if p.rank == 1 and p.when == 'open' then os.execute('sleep 100') end
  while p.rank == 1 and p.when == 'spin' do end
end
function process(frame, x, y)
  if p.when == 'frame' and frame.index == 7 then os.execute('sleep 100') end
  y:copy(x)
end
""")
    for when, more, says in (("open", "{use: all_reduce}, ",
                              "stage 'lua' is still being opened, waiting for a process"),
                             ("frame", "{use: all_reduce}, ",
                              "stage 'lua' is busy with frame 7, waiting for a process"),
                             ("frame", "", "stage 'lua' is busy with frame 7, waiting for a process")):
        put("hangs.yaml", f"""
stall_timeout: 3s
buffers: {{x: {{dtype: i32, shape: [3]}}}}
stages: [{{use: generate, frames: 100, out: x}},
         {{use: lua, script: hangs.lua, params: {{rank: "${{rank}}", when: {when}}}, out: y}},
         {more}{{use: discard}}]
""")
        p = m.run(3, "run", "hangs.yaml")
        check(f"{m.name}: a rank that hangs ({when}, {more}) says so, and no other", p.returncode == 5
              and len(re.findall(f"rank 1: hangs.yaml:5:.*nothing moved for 3[.0-9]* s: {says}",
                                 p.stderr)) == 1 == p.stderr.count("nothing moved")
              and "waited 3 s for rank" not in p.stderr and p.stderr.count(" frames in, ") == 1, p.stderr)
    for more in "", "{use: all_reduce}, ":     # the others come to the collective, which is not set up there either
        put("hangs.yaml", f"""
buffers: {{x: {{dtype: i32, shape: [3]}}}}
stages: [{{use: generate, frames: 100, out: x}},
         {{use: lua, script: hangs.lua, params: {{rank: "${{rank}}", when: spin}}, out: y}},
         {more}{{use: discard}}]
""")
        p = m.run(3, "run", "hangs.yaml", "--join-timeout", "6s")
        check(f"{m.name}: a rank that is not set up in time is named ({more})", p.returncode == 5
              and p.stderr.count("rank 0: gpipe: error: waited 6 s for rank 1 to be set up") == 1
              == p.stderr.count("waited"), p.stderr)

    for whom, more in ((2, ""), (0, ""), (1, "{use: all_reduce}, ")):
        p, ranks = begun(f"stopped-{m.name}-{whom}", more, "00000000-{0}.raw" if more else "{0:08}.raw",
                         head="stall_timeout: 5s")
        os.kill(ranks.get(whom, p.pid), signal.SIGSTOP)
        said = left_alone(p, ranks)
        check(f"{m.name}: rank {whom} is stopped: another names it", p.returncode and said.count(
              f"rank {int(not whom)}: gpipe: error: waited 5 s for rank {whom} to give a sign of life") == 1
              == said.count("waited") and said.count(" frames in, ") == 1 and "nothing moved" not in said, said)
    if m.name == "openmpi":                # with other launchers the others end, too
        p, ranks = begun("recovered", options=("--enable-recovery",), head="stall_timeout: 5s")
        end = time.monotonic() + 60
        while not os.path.exists("recovered/00000601.raw") and time.monotonic() < end:     # by then it has told some
            time.sleep(0.02)
        os.kill(ranks.get(1, p.pid), signal.SIGKILL)
        said = left_alone(p, ranks)
        check(f"{m.name}: a rank is killed, others live: the account of all", said.count(
              "rank 0: gpipe: error: waited 5 s for rank 1 to give a sign of life") == 1, said)
        counted = re.findall(r"gpipe: (\d+) frames in, (\d+) out", said)
        files = [int(k[:8]) for k in has("recovered") if not k.startswith(".")]
        check(f"{m.name}: a rank is killed, others live: its frames count", len(counted) == 1
              and sum(k % 3 != 1 for k in files) < int(counted[0][1]) <= len(files), f"{len(files)} files\n{said}")

# ---- errors of MPI ------------------------------------------------------

    put("trunc.c", """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
#include "mpi/shim.h"
/* A rank takes less than the others send. */
int main(int argc, char **argv)
{
    void *so = dlopen(argv[argc - 1], RTLD_NOW | RTLD_GLOBAL);
    const gp_mpi *mpi = so ? dlsym(so, "gp_mpi_table") : NULL;
    int rank = 0, ranks, local;
    static char mine[1 << 10], all[2 << 10];
    bool done = false;
    const char *why = mpi ? mpi->start(&rank, &ranks, &local) : dlerror();
    why = why ? why : mpi->gather(0, mine, rank ? 1 << 10 : 4, all);
    while (!why && !done)
        why = mpi->gathered(0, &done), usleep(1000);
    printf("rank %d: %s\\n", rank, why ? why : "done");
    fflush(stdout);
    if (!rank)
        fclose(fopen(argv[argc - 2], "w"));
    for (int i = 0; i < 20000 && access(argv[argc - 2], F_OK); i++)
        usleep(1000);                  /* launchers end the others when one ends like this */
    _exit(0);
}
""")
    p = ran(["cc", "-I", source, "-o", "trunc", "trunc.c", "-ldl"])
    check("trunc.c", p.returncode == 0, p.stderr)
    p = ran(m.start(2, f"said-{m.name}", m.so, command="./trunc"))
    check(f"{m.name}: an error in a gather comes back", p.stdout.count("rank 0: ") == 1
          and ("TRUNCATE" in p.stdout or m.name != "openmpi"), p.stdout + p.stderr)

# ---- what was replaced -----------------------------------------------------

put("again.yaml", """
vars: {to: ''}
buffers: {x: {dtype: u8, shape: [4]}}
stages:
  - {use: generate, frames: 12, out: x}
  - {use: write, name: each, path: "${to}/%03d.raw", in: x}
  - {use: write, name: own, path: "${to}/all-${rank}.raw", in: x}
  - {use: gather_ranks, name: met, to: 1, in: x, out: met}
  - {use: write, name: last, path: "${to}/met.raw", in: met}
""")
for m in mpis:
    for k in range(2):
        if k:                              # that of rank 0 is new
            os.remove(f"again-{m.name}/000.raw")
        p = m.run(3, "run", "again.yaml", "--set", f"vars.to=again-{m.name}")
        lines = p.stderr.splitlines()
        said = sorted(x[x.index("stage"):] for x in lines if "replaced" in x)
        to = f"again-{m.name}"
        check(f"{m.name}: what all ranks replaced is said once, before the last line", p.returncode == 0
              and lines[-1].startswith("gpipe: 12 frames in") and len(lines) == 1 + len(said)
              and said == k * [f"stage 'each' replaced 11 files, the first '{to}/001.raw'",
                               f"stage 'last' replaced a file, '{to}/met.raw'",
                               f"stage 'own' replaced 3 files, the first '{to}/all-0.raw'"], p.stderr)

# ---- the order of what is said ---------------------------------------------

put("breaks.lua", """stateless = true
local p
function init(s) p = s.params end
function process(frame, x, y)
  if p.rank == 1 and frame.index > 100 then error('broken') end
  y:copy(x)
end
""")
put("breaks.yaml", """
buffers: {x: {dtype: u8, shape: [4]}}
stages:
  - {use: generate, frames: 20000, out: x}
  - {use: lua, script: breaks.lua, params: {rank: "${rank}"}}
  - {use: all_gather}
  - {use: discard}
""")
for m in mpis:
    for more in ["-v"], []:                    # into one file: mpirun may pass on what two ranks wrote in another order
        if os.path.exists("order"):
            os.remove("order")
        p = ran(m.start(3, "-c", 'exec "$0" "$@" 2>>order', gpipe, "run", "breaks.yaml", *more, command="sh"))
        with open("order") as f:
            said = f.read()
        lines = [x for x in said.splitlines() if re.match("gpipe: |rank |  ", x)]
        check(f"{m.name}: an error comes before what follows from it {more}", p.returncode and lines
              and lines[0].startswith("rank 1: breaks.lua:5: error: ") and "broken" in lines[0]
              and "not drained" not in said and said.count("error: ") == 1, said)

# ---- who waits, and who is lost -----------------------------------------

put("waits.c", """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "mpi/shim.h"
/* In place of the shim: this is rank 0 of 3, and no gather is ever done. Rank 2 calls for the first time before this
 * one listens, and with CALLS=2 once more. With CALLS=0 nobody does. */
static int looks, calls, heard;
static const char *start(int *rank, int *ranks, int *local) { *rank = *local = 0, *ranks = 3; return NULL; }
static const char *gather(int channel, const void *mine, int n, void *all) { return NULL; }
static const char *call(int to, long number) { calls++; return NULL; }
static const char *nothing(void) { return NULL; }
static const char *library(void) { return "none"; }
static int here(void) { return 3; }
static const char *gathered(int channel, bool *done)
{
    static char why[60];
    *done = false;
    snprintf(why, sizeof why, "it %s after %d looks", calls ? "called" : "did not call", looks);
    return getenv("LOOKS") && (calls || looks++ == atoi(getenv("LOOKS"))) ? why : NULL;
}
static const char *hear(long *of)
{
    if (heard < atoi(getenv("CALLS")))
        heard++, of[2] = 1;
    return NULL;
}
const gp_mpi gp_mpi_table = { .size = sizeof(gp_mpi), .start = start, .gather = gather, .gathered = gathered,
                              .call = call, .heard = hear, .leave = nothing, .library = library,
                              .local_ranks = here };
""")
p = ran(["cc", "-shared", "-fPIC", "-I", source, "-o", "waits.so", "waits.c"])
check("waits.c", p.returncode == 0, p.stderr)
os.environ.update(GPIPE_MPI="./waits.so", OMPI_COMM_WORLD_SIZE="3", OMPI_COMM_WORLD_RANK="0")
for calls, looks, timeout, says in (
        (0, "50", "1h", "MPI failed: it did not call after 50 looks"),
        (1, "50", "1h", "MPI failed: it called after 1 looks"),
        (1, None, "1s", "rank 0: gpipe: error: waited 1 s for ranks 1, 2 to compile the pipeline"),
        (2, None, "1s", "rank 0: gpipe: error: waited 1 s for rank 1 to compile the pipeline")):
    os.environ.update(CALLS=str(calls), LOOKS=looks or "")
    if not looks:
        del os.environ["LOOKS"]
    p = ran([gpipe, "check", "a.yaml", "--join-timeout", timeout])
    check(f"who waits: {calls} calls of rank 2, {timeout}", p.returncode and p.stderr.count(says) == 1, p.stderr)

finish(", ".join(m.name for m in mpis))
