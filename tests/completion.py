#!/usr/bin/env python3
"""completion.py GPIPE: what shells complete: the words that gpipe offers, and bash, zsh and fish, with keys that are
pressed in bash and zsh."""
import os, pty, re, select, shutil, subprocess, time
from kit import check, env, gpipe, path, put, spawn, total, until

os.makedirs(path("d/sub"))
os.makedirs(path("bin"))
put("bin/gpipe", f'#!/bin/sh\n[ "$1" != completion ] || exec "{gpipe}" "$@"\nprintf "<%s>" "$@"; echo .\n')
os.chmod(path("bin/gpipe"), 0o755)
put("d/other.txt", "")
put("d/mine.yaml", """
vars: {dir: x, sigma: 2}
buffers: {raw: {dtype: u8, shape: [4, 4, 3]}}
stages:
  - {use: generate, frames: 2, out: raw}
  - {name: soft, use: blur, sigma: 2}
  - {use: blur, sigma: 1}
  - {use: write, path: "${dir}/%d.png"}
""")
shutil.copy(path("d/mine.yaml"), path("d/sub/my own.yaml"))
put("d/broken.yaml", "stages: [{use: }")
put("endless.yaml", """
buffers: {raw: {dtype: u8, shape: [4]}}
stages:
  - {use: generate, rate: 10, out: raw}
  - {use: write, path: /dev/null, format: raw}
""")
run = spawn("run", "-q", "--device", "cpu", path("endless.yaml")).pid
check("a run to be named", until(lambda: os.path.exists(path(f"gpipe/{run}.sock"))))
shell_env = dict(env, PATH=path("bin") + ":" + os.environ["PATH"], HOME=path("d"), PS1="$ ", TERM="dumb",
                 LC_ALL="C.UTF-8")

# words behind "gpipe", of which the last is completed; what is offered, with ... among others; what is not
TABLE = [
    ("r", "run", ""), ("", "run check lsp --help ...", "mine.yaml"), ("--v", "--version", ""), ("che", "check", ""),
    ("run --rep", "--report", ""), ("run --", "--set --device --help ...", "--man run"),
    ("run -", "--set --help ...", ""), ("check --rep", "", ""), ("nothing ", "", ""),
    ("run ", "sub/ mine.yaml broken.yaml", "other.txt"), ("run m", "mine.yaml", ""), ("run ./m", "./mine.yaml", ""),
    ("plan ../d/s", "../d/sub/", ""), ("run nowhere/", "", ""), ("run -q m", "mine.yaml", ""),
    ("check mine.yaml b", "broken.yaml", ""), ("run --progress ", "auto bar plain json none", ""),
    ("run --progress=p", "--progress=plain", ""), ("run --device c", "cpu cuda:0", ""), ("run --report ", "", ""),
    ("run -- --se", "", ""), ("run mine.yaml --set ", "depth= launch= vars. buffers. stages. ...", "stages="),
    ("run mine.yaml --set de", "device= depth= deadline=", ""), ("run mine.yaml --set vars.", "vars.dir= vars.sigma=", ""),
    ("run mine.yaml --set vars.dir=", "", ""),
    ("run mine.yaml --set buffers.", "buffers.raw. buffers.soft. buffers.blur.", ""),
    ("run mine.yaml --set buffers.raw.d", "buffers.raw.dtype= buffers.raw.depth=", ""),
    ("run mine.yaml --set stages.", "stages.generate. stages.soft. stages.blur. stages.write.", ""),
    ("run mine.yaml --set stages.soft.", "stages.soft.sigma= stages.soft.workers= ...", "stages.soft.path="),
    ("run mine.yaml --set=stages.soft.sig", "--set=stages.soft.sigma=", ""),
    ("run --set launch=", "launch=graph launch=stream launch=persistent", ""),
    ("run --set=launch=g", "--set=launch=graph", ""),
    ("run mine.yaml --set buffers.raw.dtype=u", "buffers.raw.dtype=u8 buffers.raw.dtype=u16 buffers.raw.dtype=u32 "
     "buffers.raw.dtype=u64", ""),
    ("run broken.yaml --set vars.", "", ""), ("run broken.yaml --set dep", "depth=", ""),
    ("run - --set vars.", "", ""), ("bench --cached s mine.yaml", "mine.yaml", ""),
    ("bench mine.yaml --cached s", "soft", ""), ("bench mine.yaml --sweep dep", "depth=", ""),
    ("set 1 dep", "depth=", ""), ("top ", f"{run} ...", ""), ("top --json ", f"{run} ...", ""),
    ("help med", "median", ""), ("help ed", "editor", ""),
    ("help re", "report retune read reduce ...", ""), ("help chec", "check", ""), ("stages med", "median", ""),
    ("stages chec", "", ""), ("new --from k", "kernel", ""), ("completion ", "bash zsh fish", ""),
    ("run mine.yaml --set .", "", ""), ("run mine.yaml --set =", "", ""), ("run --=", "", "")]


def lines(command, stdin=None):
    r = subprocess.run(command, cwd=path("d"), env=shell_env, capture_output=True, text=True, input=stdin, timeout=120)
    return [line for line in r.stdout.split("\n") if line]


def expect(name, got, offered, not_offered, whole=""):
    """`whole`: what a shell leaves out of each, since it is there already."""
    want = {w.removeprefix(whole) for w in offered.split()}
    ok = want - {"..."} <= set(got) if "..." in want else want == set(got)
    check(name, ok and not set(not_offered.split()) & set(got) and len(got) == len(set(got)), (got, sorted(want)))


for line, offered, not_offered in TABLE:
    expect("gpipe: " + line, lines([gpipe, "completion", "bash", "--", *re.split(" +", line)]), offered, not_offered)
check("gpipe: no word", "run" in lines([gpipe, "completion", "bash", "--", ""]), "")
check("gpipe: help", "run\t" in lines([gpipe, "completion", "fish", "--", "ru"])[0], "")
r = subprocess.run([gpipe, "completion", "csh"], capture_output=True, text=True)
check("gpipe: another shell", r.returncode == 2 and "bash, zsh and fish" in r.stderr, r.stderr)

script = path("bash-script")
with open(script, "w") as f:
    f.write("source <(gpipe completion bash)\ncomplete -p gpipe | grep -q 'F _gpipe' || echo WRONG\n")
    for line, _, _ in TABLE:
        f.write("COMPREPLY=(); COMP_LINE=%s; COMP_POINT=${#COMP_LINE}; _gpipe gpipe 2>/dev/null; "
                "printf '%%s\\n' \"${COMPREPLY[@]}\"; echo ---\n" % ("'gpipe " + line + "'"))
got = "\n".join(lines(["bash", "--norc", script])).split("---")
for (line, offered, not_offered), out in zip(TABLE, got):
    word = line.rpartition(" ")[2]
    expect("bash: " + line, out.split(), offered, not_offered, word[:max(word.rfind("="), word.rfind(":")) + 1])

# What a shell would take for a command is quoted; of a device nothing is read.
with open(path("odd.yaml"), "w") as f:
    f.write('vars:\n  "x$(touch no)": 1\n  "a\\nb": 2\nstages: []\n')
with open(script, "w") as f:
    f.write("source <(gpipe completion bash)\nCOMP_LINE='gpipe check %s --set vars.'; COMP_POINT=${#COMP_LINE}\n_gpipe gpipe "
            "2>/dev/null\nprintf '%%s\\n' \"${COMPREPLY[@]}\"\n" % path("odd.yaml"))
got = lines(["bash", "--norc", script])
check("bash: a name that is a command", got == [r"vars.x\$\(touch\ no\)="], got)
silent, kept_open = os.pipe()
r = subprocess.run([gpipe, "completion", "bash", "--", "run", "/dev/stdin", "--set", "v"], stdin=silent, timeout=60)
check("gpipe: a device", r.returncode == 0, r)

if shutil.which("fish"):
    for line, offered, not_offered in TABLE:
        if offered:
            out = lines(["fish", "--no-config", "-c", f"gpipe completion fish | source; complete -C 'gpipe {line}'"])
            expect("fish: " + line, [x.split("\t")[0] for x in out], offered, not_offered)
    out = lines(["fish", "--no-config", "-c", "gpipe completion fish | source; complete -C 'gpipe run --report oth'"])
    check("fish: another file", out == ["other.txt"], out)
else:
    print("SKIPPED, no fish: its completion")


def typed(shell, begin, keys):
    """What an interactive shell shows when these keys are pressed behind its start."""
    pid, fd = pty.fork()
    if not pid:
        os.chdir(path("d"))
        os.execvpe(shell[0], shell, shell_env)
    out, end = "", time.time() + 60
    os.write(fd, (begin + "; echo rea''dy\n").encode())
    for part, until in [("", "ready"), (keys, ">.")]:
        os.write(fd, part.encode())
        seen = len(out)
        while until not in out[seen:] and time.time() < end:
            if select.select([fd], [], [], 1)[0]:
                try:
                    out += os.read(fd, 65536).decode(errors="replace")
                except OSError:
                    break
    os.write(fd, b"\nexit\n")
    os.close(fd)
    os.waitpid(pid, 0)
    return re.findall(r"(<.*>)\.", out)


KEYS = [("ru\tmi\t--prog\tpl\t", "<run><mine.yaml><--progress><plain>"),
        ("run mine.yaml --set stages.so\tsig\t3", "<run><mine.yaml><--set><stages.soft.sigma=3>"),
        ("run mine.yaml --set lau\tper\t", "<run><mine.yaml><--set><launch=persistent>"),
        ("run mine.yaml --report oth\t", "<run><mine.yaml><--report><other.txt>"), ("help edi\t", "<help><editor>"),
        ("check ../d/mi\t", "<check><../d/mine.yaml>"),
        ("run sub/my\\ o\t--set stages.so\tsig\t3", "<run><sub/my own.yaml><--set><stages.soft.sigma=3>")]
for shell, begin in [(["bash", "--norc", "--noprofile", "-i"],
                      "bind 'set enable-bracketed-paste off'; source <(gpipe completion bash)"),
                     (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u; source <(gpipe completion zsh)")]:
    for keys, out in KEYS if shutil.which(shell[0]) else []:
        got = typed(shell, begin, "gpipe " + keys + "\n")
        check(f"{shell[0]}, keys: {keys!r}", out in got, got)
    if not shutil.which(shell[0]):
        print(f"SKIPPED, no {shell[0]}: its completion")
total("completion")
