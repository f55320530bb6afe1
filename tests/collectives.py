#!/usr/bin/env python3
"""collectives.py GPIPE [DEVICE] - collective stages in the memory of a device, by NCCL: the bytes are those of MPI on
the host, whatever order the stages come to their rounds in, and all ranks end where one fails. DEVICE is that of all
ranks: cpu:0, with a library in NCCL's place (nccl_fake.c), or, with as many GPUs as ranks, auto. Prints a total; exit 1
after a failure."""
import os, re, shutil, sys

sys.dont_write_bytecode = True         # nothing is left beside the sources
from ranks_kit import check, finish, gpipe, ran

device = sys.argv[2] if len(sys.argv) > 2 else "cpu:0"
fake = os.path.join(os.path.dirname(gpipe), "tests", "nccl")
most = 4 if device == "cpu:0" else 2


def run(n, text, *args, wrong="", verb="run", library=True):
    with open("p.yaml", "w") as f:
        f.write(f"device: {device}\n" + text)
    env = dict(os.environ, NCCL_FAKE=wrong)
    if library and device == "cpu:0":
        env["LD_LIBRARY_PATH"] = fake
    start = ["mpirun", "-n", str(n)] if n > 1 else []
    p = ran(start + [gpipe, verb, "p.yaml", *args], env=env)
    return p.returncode, p.stdout + p.stderr


def files(folder):
    found = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        with open(os.path.join(folder, name), "rb") as f:
            found[name] = f.read()
    return found


def same(what, text, kinds, ns=(1, 2, 3, 4)):
    """`text` writes into ${to}; with BY in it for each way."""
    for n in [n for n in ns if n <= most]:
        made = {}
        for by in ("mpi", "auto", "nccl"):
            if by == "nccl" and (n > 2 or n == 1 and device != "cpu:0"):       # which `auto` is, as the plan says below
                continue
            to = f"{what}-{n}-{by}".replace(" ", "-")
            code, said = run(n, f"vars: {{to: {to}}}\n" + text.replace("BY", by))
            check(f"{what}: {n} ranks: {by}", code == 0, (code, said))
            made[by] = files(to)
        check(f"{what}: {n} ranks: the same bytes", made["mpi"] and all(m == made["mpi"] for m in made.values()),
              str({by: {k: len(v) for k, v in m.items()} for by, m in made.items()}))
        if n > 1:
            code, said = run(n, f"vars: {{to: x}}\n" + text.replace("BY", "auto"), verb="plan")
            check(f"{what}: {n} ranks: by NCCL", len(re.findall(r"; NCCL \d", said)) == kinds, said)


if not shutil.which("mpirun"):
    print("collectives: skipped, as there is no mpirun")
    sys.exit()

# Sums are of whole numbers, which are the same in any order.
made = """
depth: 4
stages:
  - {use: generate, pattern: ramp, frames: FRAMES, shard: SHARD, out: a}
  - {use: expr, in: a, out: b, expr: "floor(in * 4) + 7 * rank"}
"""
ramp = "buffers: {a: {dtype: DTYPE, shape: [7, 9]}}\n"


def pipeline(stages, dtype="f32", frames=12, shard="none", tail="cast, dtype: f64"):
    head = made.replace("FRAMES", str(frames)).replace("SHARD", shard)
    return ramp.replace("DTYPE", "f32") + head + (f"  - {{use: cast, dtype: {dtype}}}\n" if dtype != "f32" else "") \
        + stages + f"  - {{use: {tail}}}\n" + '  - {use: write, path: "${to}/${rank}-%03d.npy"}\n'


for dtype in ("f32", "f64", "i32", "u32", "i64", "u64"):
    for op in ("sum", "mean", "min", "max"):
        if dtype[0] == "f" and op in ("min", "max") or dtype[0] != "f" and op == "mean":
            continue
        if (dtype, op) in (("f32", "sum"), ("f32", "mean"), ("i64", "min"), ("u32", "max"), ("f64", "mean"),
                           ("u64", "sum"), ("i32", "max")):
            tail = "cast, dtype: f32" if dtype != "f32" else "cast, dtype: f64"
            same(f"all_reduce {op} {dtype}",
                 pipeline(f"  - {{use: all_reduce, op: {op}, by: BY}}\n", dtype, tail=tail), 1,
                 ns=(2,) if (dtype, op) != ("f32", "sum") else (1, 2, 3, 4))
same("shared frames", pipeline("  - {use: all_reduce, by: BY}\n", shard="auto", frames=24), 1, ns=(2, 3, 4))
same("ranks that end early", pipeline("  - {use: all_reduce, op: mean, by: BY}\n", shard="auto", frames=22), 1,
     ns=(3, 4))
same("all_gather", pipeline("  - {use: all_gather, by: BY}\n"), 1)
same("broadcast", pipeline("  - {use: broadcast, from: 1, by: BY}\n"), 1, ns=(2, 3, 4))
for kind in "{use: gather_ranks, to: 1, by: BY}", "{use: gather_ranks, by: BY}":
    same(kind[1:-9].replace("use: ", "").replace(",", ""), pipeline(f"  - {kind}\n"), 1, ns=(2, 3, 4) if "1" in kind else (1, 2, 3))
same("scatter_ranks", pipeline("  - {use: scatter_ranks, from: 1, by: BY}\n").replace("[7, 9]", "[ranks, 7, 9]"), 1,
     ns=(2, 3, 4))
for edge in ("zero", "hold", "wrap"):
    same(f"exchange {edge}", pipeline(f"  - {{use: exchange, rows: 2, edge: {edge}, by: BY}}\n"), 1)
with open("drops.lua", "w") as f:
    f.write("stateless = true\nfunction process(frame, x, y)\n  if frame.index % 5 == 2 then return 'drop' end\n"
            "  y:copy(x)\nend\n")
same("holes", pipeline("  - {use: all_reduce, by: BY}\n").replace("  - {use: expr,",
                                                                  """  - {use: lua, script: drops.lua, out: c}
  - {use: expr,""").replace("in: a, out: b", "in: c, out: b"), 1, ns=(2, 3))
with open("last.lua", "w") as f:
    f.write("stateless = true\nfunction process(frame, x, y)\n  if frame.index == 23 then return 'drop' end\n"
            "  y:copy(x)\nend\n")
for kind in ("all_reduce", "all_gather"):
    same(f"{kind} hole at the end of one", pipeline(f"  - {{use: {kind}, by: BY}}\n", shard="auto", frames=24).replace(
        "  - {use: expr,", "  - {use: lua, script: last.lua, out: c}\n  - {use: expr,").replace("in: a, out: b",
                                                                                                "in: c, out: b"), 1,
                                                                                                ns=(2, 3))
    for n in [n for n in (2, 3) if n <= most]:
        check(f"{kind}: {n} ranks: a hole at the end of one is one in all",
              sorted(files(f"{kind}-hole-at-the-end-of-one-{n}-auto"))
              == sorted(f"{r}-{k:03}.npy" for r in range(n) for k in range(24 // n - 1)))

# Several at a time, which come to their rounds in different orders on different ranks.
many = """
depth: 3
buffers: {a: {dtype: f32, shape: [16]}}
stages:
  - {use: generate, pattern: ramp, frames: 40, shard: none, out: a}
""" + "".join(f"""
  - {{use: lua, script: waits.lua, params: {{me: {i}, rank: "${{rank}}"}}, in: a, out: w{i}}}
  - {{use: expr, in: w{i}, out: b{i}, expr: "floor(in * 8) * {i + 1} + rank"}}
  - {{use: all_reduce, by: BY, in: b{i}, out: s{i}}}
  - {{use: expr, in: s{i}, out: e{i}, expr: in / 2}}
  - {{use: write, in: e{i}, path: "${{to}}/{i}-${{rank}}.npy"}}""" for i in range(4)) + "\n"
with open("waits.lua", "w") as f:
    f.write("""stateless = true
local me
function init(s) me = s.params end
function process(frame, x, y)
  local n = 0
  for k = 1, (frame.index * 7 + me.me * 13 + me.rank * 29) % 11 * 20000 do n = n + k end
  y:copy(x)
end
""")
same("several at a time", many, 4, ns=(2, 3))

# ---- where it cannot be -------------------------------------------------

host = pipeline("  - {use: all_reduce, by: BY}\n", tail="lua, script: drops.lua")
code, said = run(2, "vars: {to: x}\n" + host.replace("BY", "auto"), verb="plan")
check("what is read on the host is made there", code == 0 and "; MPI, on the host" in said, said)
code, said = run(2, "vars: {to: x}\n" + host.replace("BY", "nccl"), verb="check")
check("NCCL, and what is read on the host", code == 3
      and "NCCL cannot do this: stage 'lua' reads them on the host" in said, said)
code, said = run(2, "vars: {to: x}\n" + pipeline("  - {use: all_reduce, op: max, by: nccl}\n"), verb="check")
check("NCCL, and a max of floats", code == 3 and "NCCL cannot do this: its min and max lose a NaN" in said, said)
code, said = run(2, "vars: {to: x}\nlaunch: persistent\n" + pipeline("  - {use: all_reduce, by: nccl}\n"), verb="check")
check("NCCL, and a resident kernel", code == 3 and "NCCL cannot do this: " in said, said)

if device == "cpu:0":
    reduced = pipeline("  - {use: all_reduce, by: BY}\n")
    code, said = run(2, "vars: {to: w0}\n" + reduced.replace("BY", "nccl"), library=False, verb="check")
    check("no library in NCCL's place", code == 3 and "NCCL cannot do this: " in said, said)
    code, said = run(2, "vars: {to: w1}\n" + reduced.replace("BY", "auto"), wrong="init")
    check("a rank that cannot join: by MPI, and it is said", code == 0
          and files("w1") == files("all_reduce-sum-f32-2-mpi")
          and said.count("sends through the memory of the host, by MPI: "
                         "rank 1 cannot set up NCCL 2.28.7 (unhandled system error)") == 1, said)
    code, said = run(2, "vars: {to: w2}\n" + reduced.replace("BY", "nccl"), wrong="init")
    check("a rank that cannot join, and NCCL is asked for", code == 4 and "rank 1 cannot set up NCCL" in said
          and "it did not end" not in said, said)
    code, said = run(2, "vars: {to: w3}\n" + reduced.replace("BY", "auto"), wrong="op")
    check("an operation that fails on one rank ends all", code == 1 and "it did not end" not in said and len(re.findall(
        r"rank 1: p.yaml:\d+:\d+: error: stage 'all_reduce': NCCL failed \(unhandled system error\)", said)) == 1, said)
    code, said = run(2, "vars: {to: w4}\nstall_timeout: 1s\n" + reduced.replace("BY", "auto"), wrong="hang")
    check("a rank that hangs in an operation ends all", code == 5 and "it did not end" not in said
          and "all_reduce" in said, said)

    two = pipeline("  - {use: all_reduce, name: first}\n  - {use: expr, expr: in}\n  - {use: all_reduce, name: second}\n")
    code, said = run(2, "vars: {to: w6}\nstall_timeout: 1s\n" + two, wrong="hang")
    check("a rank that hangs in an operation, and another stage that waits for it", code == 5
          and "it did not end" not in said, said)
    with open("p.yaml", "w") as f:
        f.write("device: cpu:0-1\nvars: {to: w5}\n" + reduced.replace("BY", "auto"))
    said = ran([gpipe, "check", "p.yaml"]).stderr
    check("a collective in one process with two devices warns", re.search(
        r"p.yaml:\d+:\d+: warning: stage 'all_reduce' exchanges frames between processes, not between the 2 devices",
        said), said)

finish(device)
