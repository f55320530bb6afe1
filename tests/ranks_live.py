#!/usr/bin/env python3
"""ranks_live.py GPIPE - several ranks are one run while it goes on: who asks one of them for settings changes all or
none, files that are saved are compiled once by all, and what stops or is kept is said once. With each MPI that is
installed; without any it says that it skips. Prints a total; exit 1 after a failure."""
import json, os, re, signal, subprocess, sys, time

sys.dont_write_bytecode = True         # nothing is left beside the sources
import ranks_kit
from ranks_kit import PARAMS_AND_THERE, check, finish, gpipe, has, left_alone, put, ranks_here, tmp

os.environ["XDG_RUNTIME_DIR"] = tmp.name
mpis = ranks_kit.mpis()
COPIES = "stateless = true\nfunction process(frame, x, y) y:copy(x) end\n"


class Run:
    """A run of n ranks, of which all take settings."""
    def __init__(self, m, n, *args, options=(), command=()):
        self.err = open("err", "w+")
        self.p = subprocess.Popen(command or m.start(n, "run", *args, options=options), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=self.err, start_new_session=True)
        end, self.ranks = time.monotonic() + 60, {}
        while time.monotonic() < end and self.p.poll() is None \
                and not (len(self.ranks) == n and all(self.values(r) for r in self.ranks)):
            time.sleep(0.05)
            self.ranks = ranks_here()

    def pid(self, rank):
        return str(self.ranks.get(rank, 0))

    def ask(self, rank, *settings):
        return subprocess.Popen([gpipe, "set", self.pid(rank), *settings], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def set(self, rank, *settings):
        """What it answers, and the exit code."""
        p = self.ask(rank, *settings)
        try:
            return p.communicate(timeout=60)[0], p.returncode
        except subprocess.TimeoutExpired:
            p.kill()
            return p.communicate()[0] + "it gives no answer", None

    def shown(self, rank):
        """How this rank stands now."""
        p = subprocess.Popen([gpipe, "top", "--json", self.pid(rank)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
        line = p.stdout.readline()
        p.kill(), p.communicate()
        return json.loads(line or "{}")

    def values(self, rank):
        """What can be set, as this rank has it now; of one whose frames have not begun to move nothing."""
        shown = self.shown(rank)
        return {x["path"]: x["value"] for x in shown.get("settings", [])} if shown.get("in") else {}

    def said(self):
        with open("err") as f:
            return f.read()

    def heard(self, says, timeout=60):
        """Waits until that is said."""
        end = time.monotonic() + timeout
        while says not in self.said() and time.monotonic() < end and self.p.poll() is None:
            time.sleep(0.05)
        return says in self.said()

    def stop(self, rank=0, signum=signal.SIGINT):
        if self.p.poll() is None and rank is not None:
            os.kill(self.ranks.get(rank, self.p.pid), signum)
        left_alone(self.p, self.ranks)
        self.err.close()
        return self.said()


put("going.yaml", """
depth: 2
buffers: {x: {dtype: u8, shape: [16]}}
stages:
  - {use: generate, rate: 300, out: x}
  - {use: lua, name: own, script: "own-0.lua", out: y}
  - {use: discard}
""")
put("own-0.lua", COPIES)
put("own-1.lua", COPIES)


def test_set(m):
    """On whichever rank: all are changed, or none."""
    run, what = Run(m, 3, "going.yaml", "-v"), f"{m.name}: set"
    for rank, depth in ((1, 5), (0, 6), (2, 3)):
        said, code = run.set(rank, f"depth={depth}")
        check(f"{what} on rank {rank}", code == 0 and re.match(
            rf"retuned: depth \S+ (-> )?{depth} on all 3 ranks; pause [\d.]+ ms .* frames/s before, .* after\n$",
            said), said)
        values = [run.values(r).get("depth") for r in range(3)]
        check(f"{what} on rank {rank}: all have it", values == 3 * [str(depth)], values)
    check(f"{what}: each is said once", run.said().count("gpipe: retuned: ") == run.said().count("on all 3 ranks") == 3,
          run.said())
    said, code = run.set(2, "depth=3")
    check(f"{what}: what all have", (said, code) == ("nothing changes\n", 0), said)
    said, code = run.set(1, "depth=0")
    check(f"{what}: what all refuse is said once", code == 2 and "note" not in said and "rank" not in said
          and said == "--set depth=0: error: 'depth' must be 1 to 65536, not 0\n", said)
    said, code = run.set(1, "stages.generate.rate=7")
    check(f"{what}: what cannot change is said once", code == 2
          and said.count("error: ") == said.count("stage 'generate' is a source") == 1, said)
    said, code = run.set(0, "stages.own.script=own-${rank}.lua", "depth=4")
    check(f"{what}: what one rank refuses", code and said.count("error: ") == 1 and "own-2.lua" in said
          and said.count("this is rank 2, and no rank is changed") == 1, said)
    values = [run.values(r).get("depth") for r in range(3)]
    check(f"{what}: then none is changed", values == 3 * ["3"], values)
    both = [run.ask(1, "depth=7"), run.ask(2, "depth=8")]
    answers = [p.communicate(timeout=60)[0] for p in both]
    values = [run.values(r).get("depth") for r in range(3)]
    check(f"{what} on two ranks at the same time: one after the other", all(p.returncode == 0 for p in both)
          and all("on all 3 ranks" in x for x in answers) and values in (3 * ["7"], 3 * ["8"]), f"{answers} {values}")
    said = run.stop()
    check(f"{what}: that is said at the end", said.count(
        "there is no account of where the time went: all ranks were changed while they ran") == 1
        == said.count("frames in, "), said)


def test_bytes(m):
    """The bytes of collectives and of files that ranks write together do not depend on when each rank changes."""
    put("bytes.yaml", """
vars: {to: '', rate: 0}
on_error: drop
buffers: {x: {dtype: f32, shape: [40, 40]}}
stages:
  - {use: generate, pattern: noise, frames: 1501, rate: rate, out: x}
  - {use: blur, sigma: 1, out: y}
  - {use: lua, script: some.lua, in: y, out: z}
  - {name: joined, use: write, in: z, path: "${to}/all.npy"}
  - {use: all_reduce, op: max, in: y, out: most}
  - {use: expr, expr: in * 2, out: twice}
  - {name: again, use: all_reduce, in: twice, out: sum}
  - {use: mix, op: sum, frames: 3, out: sums}
  - {name: own, use: write, in: sums, path: "${to}/${rank}.npy"}
""")
    put("some.lua", COPIES.replace(") y:", """)
  local asking = frame.index % 10 == 0 and io.open('asking')       -- there is a run to ask for as long as that takes
  if asking then
    asking:close()
    os.execute('sleep 0.2')
  end
  if frame.index % 7 == 3 then return 'drop' end
  y:"""))
    p = m.run(3, "run", "bytes.yaml", "--set", f"vars.to={m.name}-plain")
    put("asking", "")
    run, asked = Run(m, 3, "bytes.yaml", "--set", f"vars.to={m.name}-changed", "--set", "vars.rate=300"), []
    for i, setting in enumerate(("depth=9", "batch=4", "stages.lua.workers=3", "launch=stream", "depth=1", "sync=block",
                                 "streams=3", "depth=6", "launch=graph", "batch=1")):
        asked.append(run.ask(i % 3, setting))
        time.sleep(0.15)
    answers = [q.communicate(timeout=90)[0] for q in asked]
    os.remove("asking")
    said = run.stop(None)
    check(f"{m.name}: changed while it runs: all are", len([x for x in answers if "on all 3 ranks" in x]) >= 5
          and not any("error" in x for x in answers if "the run is over" not in x), f"{answers} {said}")
    check(f"{m.name}: changed while it runs: the same bytes", p.returncode == run.p.returncode == 0
          and sorted(has(f"{m.name}-plain")) == ["0.npy", "1.npy", "2.npy", "all.npy"]
          and has(f"{m.name}-plain") == has(f"{m.name}-changed") and "1501 frames in, " in said, f"{p.stderr} {said}")


def test_ended(m):
    """Frames of rank 1 have ended, and rank 0 still has some, when rank 0 is asked."""
    put("ended.yaml", """
buffers: {x: {dtype: i32, shape: [20]}}
stages:
  - {use: generate, shard: none, rate: 20, frames: "4 + 60 * (1 - rank)", out: x}
  - {use: all_reduce, name: first}
  - {use: all_reduce, name: second}
  - {use: discard}
""")
    run, what = Run(m, 2, "ended.yaml"), f"{m.name}: a change when the frames of one rank have ended"
    end = time.monotonic() + 60
    while run.shown(1).get("in", 4) < 4 and time.monotonic() < end:
        time.sleep(0.05)
    said, code = run.set(0, "depth=7")
    check(what, code == 0 and "depth = 7 on rank 0 of 2" in said or "the run is over" in said, said)
    left = left_alone(run.p, run.ranks, 60)
    check(f"{what}: the run ends", run.p.returncode == 0, (left, run.said()))


def test_branch(m):
    """In one branch the frames of rank 1 have ended, and its file waits for rank 0; the other branch goes on, and would
    stand still in a pause."""
    put("branch.yaml", """
depth: 4
buffers: {x: {dtype: i32, shape: [20]}, y: {dtype: i32, shape: [20]}}
stages:
  - {use: generate, shard: none, rate: 20, frames: "4 + 100 * (1 - rank)", out: x}
  - {use: all_reduce, in: x, out: sum}
  - {use: write, in: sum, path: "branch-NAME/${rank}.npy"}
  - {use: generate, name: other, rate: 100, out: y}
  - {use: discard, in: y}
""".replace("NAME", m.name))
    run, what = Run(m, 2, "branch.yaml"), f"{m.name}: a branch of which one rank has no more frames"
    there, end = lambda: sorted(f for f in has(f"branch-{m.name}") if f[0] != "."), time.monotonic() + 60
    while not any(s["name"] == "generate" and s["in"] == 4 for s in run.shown(1).get("sources", [])) \
            and time.monotonic() < end:
        time.sleep(0.05)
    for rank, depth in (0, 7), (1, 5):
        said, code = run.set(rank, f"depth={depth}")
        check(f"{what}: no rank is changed", code == 1 and "stage 'all_reduce' has no more frames here, and waits until "
              "those of other ranks have ended: the run can be changed after that" in said
              and "this is rank 1" in said, said)
    check(f"{what}: no file has its name yet", there() == [], there())
    while there() != ["0.npy", "1.npy"] and time.monotonic() < end and run.p.poll() is None:
        time.sleep(0.05)
    said, code = run.set(0, "depth=7")
    check(f"{what}: then they are changed, and the files are there", code == 0 and "on all 2 ranks" in said
          and there() == ["0.npy", "1.npy"], (said, there()))
    run.stop()
    check(f"{what}: the run ends", run.p.returncode == 130, run.p.returncode)


def test_meets(m):
    """Rank 0 waits in the first collective for rank 1, and rank 1 in the second for rank 0, when both are to pause."""
    put("holds.lua", PARAMS_AND_THERE + """function process(frame, x, y)
  if p.rank == p.holds and frame.index == p.at then
    io.open(p.says, 'w'):close()
    while not there('go') do os.execute('sleep 0.05') end
  end
  y:copy(x)
end
""")
    put("meets.yaml", """
depth: 4
buffers: {x: {dtype: i32, shape: [20]}}
stages:
  - {use: generate, rate: 100, out: x}
  - {use: lua, name: a, script: holds.lua, params: {rank: "${rank}", holds: 1, at: 101, says: held-a}}
  - {use: all_reduce, name: first}
  - {use: lua, name: b, script: holds.lua, params: {rank: "${rank}", holds: 0, at: 49, says: held-b}}
  - {use: all_reduce, name: second}
  - {use: discard}
""")
    for name in ("go", "held-a", "held-b"):
        if os.path.exists(name):
            os.remove(name)
    run, end, what = Run(m, 2, "meets.yaml"), time.monotonic() + 60, f"{m.name}: ranks that wait for each other"
    while not (os.path.exists("held-a") and os.path.exists("held-b")) and time.monotonic() < end:
        time.sleep(0.05)
    asked = run.ask(1, "depth=7")
    time.sleep(1)                          # by then both are to pause
    put("go", "")
    try:
        said = asked.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        asked.kill()
        said = asked.communicate()[0] + "it gives no answer"
    check(f"{what} in two collectives pause", "depth 4 -> 7 on all 2 ranks" in said, said)
    run.stop()
    put("apart.yaml", """
buffers: {x: {dtype: i32, shape: [20]}, y: {dtype: i32, shape: [20]}}
stages:
  - {use: generate, rate: 100, out: x}
  - {use: generate, name: other, rate: 100, out: y}
  - {use: all_reduce, name: first, in: x, out: z}
  - {use: all_reduce, name: second, in: y, out: w}
  - {use: discard, name: dz, in: z}
  - {use: discard, name: dw, in: w}
""")
    run = Run(m, 2, "apart.yaml")
    said, code = run.set(1, "depth=7")
    check(f"{what}, of sources that nothing joins", code and said.count("error: ") == 1 and said.startswith(
        "apart.yaml:5:27: error: collectives need frames of 'generate' and of 'other', which no stage joins"), said)
    check(f"{what}: it goes on", "stopping" in run.stop() and run.p.returncode in (130, 1), run.said())


def test_over(m):
    """The run of one rank is over before that of another."""
    put("ends.yaml", """
buffers: {x: {dtype: u8, shape: [16]}}
stages: [{use: generate, shard: none, rate: 100, frames: "10 + 100000 * rank", out: x}, {use: discard}]
""")
    run, what, end = Run(m, 2, "ends.yaml"), f"{m.name}: the run of rank 0 is over", time.monotonic() + 60
    time.sleep(0.5)                        # else it is not yet, and the next ones find it
    said = [run.set(r, f"depth={d}")[0] for r, d in ((1, 5), (0, 6), (1, 7))]
    while time.monotonic() < end and "on rank 1 of 2" not in said[-1]:
        said.append(run.set(len(said) % 2, f"depth={len(said) + 10}")[0])
    check(f"{what}: rank 1 is changed, whoever is asked", "on rank 1 of 2" in said[-1]
          and all(x.startswith("retuned: ") for x in said), said[-5:])
    run.stop(1)


def test_stopped(m):
    """A rank is stopped, and so does not vote, when another one is asked."""
    put("stopped.yaml", "stall_timeout: 4s" + has(".")["going.yaml"].decode().replace("own-0", "own-1"))
    run, what = Run(m, 3, "stopped.yaml"), f"{m.name}: a rank is stopped when another one is asked"
    os.kill(run.ranks.get(2, run.p.pid), signal.SIGSTOP)
    said, code = run.set(0, "depth=7")
    check(f"{what}: who asks is answered", (said, code) == ("gpipe: error: the run is over\n", 2), (said, code))
    said = run.stop(None)
    check(f"{what}: it is named, and all end", run.p.returncode and said.count(
        "rank 0: gpipe: error: waited 4 s for rank 2 to give a sign of life") == 1 == said.count("waited"), said)


def test_watch(m):
    """A file that is saved is compiled once by all, and one rank says it."""
    text = """
depth: 4
buffers: {x: {dtype: u8, shape: [16]}}
stages:
  - {use: generate, rate: 300, out: x}
  - {use: lua, script: "mine-${rank}.lua", out: y}
  - {use: discard}
"""
    for r in range(3):
        put(f"mine-{r}.lua", COPIES)
    put("watched.yaml", text)
    run, what = Run(m, 3, "watched.yaml", "--watch", "-v"), f"{m.name}: --watch"

    def save(name, text):
        put(name + ".new", text)
        os.rename(name + ".new", name)

    save("mine-1.lua", COPIES + "-- again\n")
    check(f"{what}: a file of one rank", run.heard("gpipe: retuned: mine-1.lua on rank 1 of 3; "), run.said())
    save("watched.yaml", text.replace("depth: 4", "depth: 0"))
    check(f"{what}: an error", run.heard("gpipe: the run goes on as it was"), run.said())
    time.sleep(0.5)                        # others would say it, too
    check(f"{what}: is said once", run.said().count("watched.yaml:2:8: error: 'depth' must be 1 to 65536, not 0")
          == run.said().count("goes on as it was") == run.said().count("error: ") == 1, run.said())
    save("watched.yaml", text)
    save("mine-2.lua", "no Lua(")
    says = "rank 2: watched.yaml:6:24: error: stage 'lua': mine-2.lua:1: "
    check(f"{what}: an error of one rank", run.heard(says), run.said())
    save("mine-2.lua", COPIES)
    save("watched.yaml", text.replace("depth: 4", "depth: 6"))
    check(f"{what}: the pipeline", run.heard("gpipe: retuned: depth 4 -> 6 on all 3 ranks; "), run.said())
    values = [run.values(r).get("depth") for r in range(3)]
    check(f"{what}: all have it", values == 3 * ["6"], values)
    said = run.stop()
    check(f"{what}: each change is said once", said.count("gpipe: retuned: ") == 2, said)


def test_texts(m):
    """Each rank has a file of its own, with the same text, until one is saved."""
    os.environ["GPIPE_MPI"] = m.so
    text = open("going.yaml").read().replace("own-0", "../own-0")
    put("a/p.yaml", text), put("b/p.yaml", text)
    what, command = f"{m.name}: a text that only one rank has", [m.mpirun]
    for folder in "ab":
        command += ["-n", "1", gpipe, "run", f"{folder}/p.yaml", "--watch"] + [":"] * (folder == "a")
    run = Run(m, 2, command=command)
    put("b/p.yaml", text.replace("depth: 2", "depth: 6"))
    says = "a/p.yaml: error: rank 1 has another text of it than others: all run one pipeline"
    check(f"{what} is refused", run.heard("gpipe: the run goes on as it was") and says in run.said(), run.said())
    said, code = run.set(1, "sync=block")
    check(f"{what}: settings go by the text that all run", code == 0 and said.startswith(
          "retuned: sync = block on all 2 ranks; pause"), said)
    put("a/p.yaml", text.replace("depth: 2", "depth: 6"))
    check(f"{what}: then all have it", run.heard("gpipe: retuned: depth 2 -> 6 on all 2 ranks; "), run.said())
    run.stop()


def test_some(m):
    """Those that were not changed are measured."""
    for r in range(3):
        put(f"mine-{r}.lua", COPIES)
    put("some.yaml", """
buffers: {x: {dtype: u8, shape: [16]}}
stages:
  - {use: generate, rate: 300, out: x}
  - {use: lua, script: "mine-${rank}.lua", out: y}
  - {use: discard}
""")
    for whom in (1, 0):
        run = Run(m, 3, "some.yaml", "--watch", "-v")
        put(f"mine-{whom}.lua", COPIES + f"-- {whom}\n")
        heard = run.heard(f"gpipe: retuned: mine-{whom}.lua on rank {whom} of 3; ")
        said, others = run.stop(), "".join(str(r) for r in range(3) if r != whom)
        check(f"{m.name}: ranks that were retuned are not compared: {whom}", heard and len(re.findall(
            rf"^gpipe: of 3 ranks 2 were measured, (?:which are alike; this is|of which) rank [{others}]", said,
            re.M)) == 1 and said.count("  busy  no input") == 1, said)


def test_stopping(m):
    """Whichever rank is asked to stop, or all of them: that is said once."""
    for whom, signum in ((0, signal.SIGINT), (1, signal.SIGTERM), (2, signal.SIGINT), (None, signal.SIGTERM)):
        run = Run(m, 3, "going.yaml")
        for pid in run.ranks.values() if whom is None else ():
            os.kill(pid, signum)
        said = run.stop(whom, signum)
        check(f"{m.name}: {'all' if whom is None else whom} asked to stop: said once",
              said.count("gpipe: stopping: frames in flight will finish") == said.count("stopping") == 1
              == said.count(" frames in, "), said)
    run = Run(m, 3, "going.yaml", "--progress", "json")
    said = run.stop(2)
    check(f"{m.name}: asked to stop: said once, as JSON", said.count('{"text": "stopping: ') == 1, said)
    run = Run(m, 3, "going.yaml", "-q")
    said = run.stop(2)
    check(f"{m.name}: asked to stop: -q says nothing", "stopping" not in said, said)


def test_kept(m):
    """What a run that failed leaves is told once by all."""
    put("fails.lua", """stateless = true
local p
function init(s) p = s.params end
function process(frame, x, y)
  if p.rank == 1 and frame.index > 300 then error("no luck") end
  y:copy(x)
end
""")
    put("kept.yaml", """
buffers: {x: {dtype: i32, shape: [20]}}
stages:
  - {use: generate, frames: 400000, out: x}
  - {use: lua, script: fails.lua, params: {rank: "${rank}"}, out: y}
  - {use: all_reduce, in: y}
  - {use: write, path: "TO/a-${rank}.raw"}
  - {use: write, name: other, in: x, path: "TO/b-${rank}.npy"}
  - {use: gather_ranks, name: to_2, to: 2, in: y, out: all}
  - {use: write, name: last, in: all, path: "TO/c.npy"}
""".replace("TO", "kept-" + m.name))
    p = m.run(3, "run", "kept.yaml")
    there = sorted(has("kept-" + m.name))
    for line, first, of in ((7, "a-0.raw", [f"a-{r}.raw" for r in range(3)]),
                            (8, "b-0.npy", [f"b-{r}.npy" for r in range(3)]), (10, "c.npy", ["c.npy"])):
        kept = [x for x in there if x[:-len(".partial")] in of]
        says = f"what was written is kept as 'kept-{m.name}/{kept[0]}'" if len(kept) == 1 else \
            f"what was written of {len(kept)} files is kept, of the first as 'kept-{m.name}/{(kept or [''])[0]}'"
        check(f"{m.name}: what is kept is told once: {first}", p.returncode == 1 and len(kept) in (1, 2, 3)
              and len(re.findall(rf"^kept.yaml:{line}:\d+: warning: {re.escape(says)}$", p.stderr, re.M)) == 1,
              f"{there} {p.stderr}")
    check(f"{m.name}: what is kept: nothing else is told", p.stderr.count("is kept") == 3, p.stderr)


def test_first_lost(m):
    """Without rank 0 the next one shows its own account, and the final line."""
    put("lost.yaml", "stall_timeout: 4s" + open("going.yaml").read())
    run = Run(m, 3, "lost.yaml", "-v", options=("--enable-recovery",))
    said = run.stop(0, signal.SIGKILL)
    check(f"{m.name}: rank 0 is killed: rank 1 shows its own account", said.count(
        "gpipe: rank 0, which compares ranks, is lost; this is rank 1\n") == said.count("  busy  no input") == 1
        == said.count(" frames in, ") and "gpipe: bound by " in said, said)


for m in mpis:
    test_set(m), test_bytes(m), test_ended(m), test_branch(m), test_meets(m), test_over(m), test_watch(m), test_texts(m)
    test_some(m), test_stopping(m), test_kept(m), test_stopped(m)
    if m.name == "openmpi":                # with other launchers the others end, too
        test_first_lost(m)
finish(", ".join(m.name for m in mpis))
