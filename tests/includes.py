#!/usr/bin/env python3
"""Checks which folders include which, and that no stage kind is known by name outside its file.

Includes run one way:  include <- base <- compile <- device <- cpu, cuda, run <- api <- report <- simulate, ranks <- cli;
draw sees base and compile, ranks see mpi.
"""
import glob, os, re, sys

os.chdir(os.path.join(os.path.dirname(__file__), ".."))

# A folder, and the folders whose headers its files may include beside its own. The public headers (gpipe/) anybody may.
MAY = {
    "engine/include/gpipe": [],
    "engine/base": [],
    "engine/compile": ["base"],
    "engine/device": ["base", "compile"],
    "engine/cpu": ["base", "compile", "device"],
    "engine/cuda": ["base", "compile", "device"],
    "engine/run": ["base", "compile", "device"],
    "engine/api": ["base", "compile", "device", "run"],
    "engine/report": ["base", "compile", "device", "run", "api"],
    "engine/simulate": ["base", "compile", "api", "report"],
    "engine/draw": ["base", "compile"],
    "engine/mpi": [],
    "engine/packages": [],
    "engine/python": [],
    "engine/ranks": ["base", "report", "mpi"],
    "engine/cli": ["base", "report", "simulate", "draw", "ranks"],
    "stages": ["base", "kernels", "stages/collective", "stages/decode", "stages/expr", "stages/fft", "stages/format", "stages/kernel",
               "stages/lua", "stages/matmul", "stages/onnx", "stages/read", "stages/write", "stages/zmq", "lua"],
    "stages/collective": ["base", "stages/format"],
    "stages/decode": ["base", "stages/format"],
    "stages/fft": ["base", "stages/format"],
    "stages/expr": ["base", "compile", "kernels", "stages/format"],
    "stages/format": ["base", "kernels"],
    "stages/kernel": ["base", "stages/format"],
    "stages/lua": ["base", "lua"],
    "stages/matmul": ["base", "stages/format"],
    "stages/onnx": ["base"],
    "stages/read": ["base", "stages/format"],
    "stages/write": ["base", "stages/format"],
    "stages/zmq": ["base", "stages/format"],
    "lua": ["base"],
    "kernels": ["base", "cpu"],
}
# What stages see of a back end: the libraries for GPUs.
FOR_STAGES = "device/libraries.h"
# The command draws plans, and for that alone looks at the forms.
ALSO = {"engine/cli/plan.c": ["api"], "engine/cli/report.c": ["api"], "engine/cli/simulate.c": ["api"],
        "engine/cli/lsp_answer.c": ["api"],        # of a buffer's type
        "engine/draw/print.c": ["api"],            # for programs
        "engine/simulate/model.h": ["run"],        # timely.h: what chooses in a run chooses on paper
        "engine/cli/machine.c": ["api"], "engine/cli/tune.c": ["api"]}
# Kernels for the CPU run with these, and `expr` shares the trees of expressions; all other files of these folders are
# private.
ONLY = {"kernels": {"base/convert.h", "base/embed.h", "cpu/fiber.h"}, "stages/expr": {"base/memfile.h", "base/num.h", "base/table.h", "compile/expr.h", "compile/fuse.h", "compile/steps.h", "expr.h", "reduction.h"}}

wrong, seen = [], 0


def folder_of(name, path):
    """The folder that a header which is included as `name` lies in, as MAY names it."""
    if name.startswith("gpipe/"):
        return "gpipe"
    if os.path.exists("engine/" + name):
        return name.split("/")[0]
    for folder in [f for f in MAY if f.startswith("stages/")] + ["lua", "kernels"]:
        if os.path.exists(f"{folder}/{name}"):
            return folder
    wrong.append(f"{path}: includes '{name}', which is nowhere")
    return None


for folder, may in MAY.items():
    own = folder.removeprefix("engine/")
    for path in sorted(glob.glob(folder + "/*.[ch]") + glob.glob(folder + "/*.cu") + glob.glob(folder + "/*.cpp")):
        text = open(path).read()
        for name in re.findall(r'^\s*#\s*include\s+(?:"|<(?=gpipe/))([^">]+)[">]', text, re.M):
            seen += 1
            room = folder_of(name, path)
            if room in (None, "gpipe", own) or name == FOR_STAGES and folder.startswith("stages"):
                continue
            if folder == "engine/include/gpipe" or room not in may + ALSO.get(path, []):
                wrong.append(f"{path}: may not include '{name}'")
            elif name not in ONLY.get(folder, {name}):
                wrong.append(f"{path}: may not include '{name}'")

for folder in glob.glob("engine/*/"):
    if folder.rstrip("/") not in MAY and folder != "engine/include/":
        wrong.append(f"{folder}: a folder that no rule names")

# What CUDA and its libraries declare, the files of these, and whether this build has CUDA, is known in the folder of
# the back end alone. Texts may name them to users; ONNX Runtime calls its provider so.
CUDA = re.compile(r'\bGP_CUDA\b|<(cuda|nv|nccl|cu)\w*\.h>|\bgp_backend_cuda\b|\b(cuda|cu|nccl)[A-Z]\w*|'
                  r'\bCU(DA)?_\w+|\bCU[a-z]\w+|'
                  r'\b(gp_|GP_)?(nvml|nvrtc|nvjpeg|nccl_|cufft|cublas|cupti)(?!ns)\w*|"lib(cu|nv|nccl)\w*', re.A)
IGNORED = re.compile(r'/\*.*?\*/|"(?!lib)(\\.|[^"\\\n])*"', re.S)
for path in sorted(p for d in ("engine", "stages", "lua") for p in glob.glob(d + "/**/*.[ch]", recursive=True)):
    seen += 1
    found = None if path.startswith("engine/cuda/") else CUDA.search(IGNORED.sub("", open(path).read()))
    if found:
        wrong.append(f"{path}: knows CUDA ('{found[0]}'); that belongs to engine/cuda, behind engine/device/backend.h")

kinds = {os.path.basename(p)[:-2] for p in glob.glob("stages/*.c")}
# Words that are something else than a kind where they stand.
OTHER = {
    "engine/compile/keys.c": {"window"},       # a key of stages
    "engine/compile/window.c": {"window"},     # the same
    "engine/compile/loop.c": {"window"},       # the same
    "engine/draw/schema.c": {"window"},        # the same
    "engine/cli/lsp_answer.c": {"window", "label"},    # the same; a key of its JSON
    "engine/compile/expr_parse.c": {"power"},  # NumPy's name of pow
    "engine/cli/version.c": {"lua"},           # a line of --version
    "engine/draw/dump_graph.c": {"split"},     # a key of its JSON
    "engine/cli/help.c": {"expr", "lua", "kernel"},    # topics
    "engine/report/trace_json.c": {"kernel"},  # a key of its JSON
    "engine/cli/bench.c": {"window"},          # an option
    "engine/cli/tune.c": {"write"},            # the same
    "engine/cli/metrics.c": {"histogram"},     # a type of Prometheus
}
for path in sorted(glob.glob("engine/*/*.c")):
    text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
    for word in re.findall(r'"([a-z_]+)"', text):
        seen += 1
        if word in kinds and word not in OTHER.get(path, ()) and word not in ("input", "output"):  # ports, too
            wrong.append(f"{path}: knows the kind '{word}' by its name; let it ask the descriptor")

for line in wrong:
    print("FAILED:", line, file=sys.stderr)
print(f"includes: {seen - len(wrong)} passed, {len(wrong)} failed")
sys.exit(bool(wrong) or seen < 500)
