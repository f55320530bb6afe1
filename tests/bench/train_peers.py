"""train_peers.py - examples/train beside PyTorch: the same network, batch, weights and Adam, on one GPU and on two.

    train_peers.py [PART ...]      GPIPE=.../gpipe

A PART is NETWORK-RANKS, as small-1; without any it is each in turn: small-1 small-2 large-1 large-2. Of the small network
(64, 64, 32, 10; batches of 60) a step is launches alone, of the large one (three layers of 4096, batches of 4096, in f32
and in tf32) products of matrices. Prints `NAME NETWORK RANKS US_PER_STEP` as it goes: the median of 5 rounds. All have a
batch in the host's memory, of which each rank takes its share. PyTorch runs under /opt/torch/.venv, or PYTHON; FOLDER
(/dev/shm) takes 2.5 GB; LIMIT is how many seconds a row may take (120). Where something fails its row says so, and the
rest goes on.

gpipe's step is the wall time of a long run less that of a short one, by their steps: `train.yaml` exchanges a gradient
while the next is computed, `after.yaml` all of them at once. PyTorch:

    eager       step by step, Adam in one kernel (fused)
    graph       ... all of the step in a CUDA graph
    compile     torch.compile, of the network and its backward pass; reduce: of mode reduce-overhead
    ddp         DistributedDataParallel (NCCL), which exchanges while it computes; after: with a bucket so large that it
                does not; ddp-compile: with torch.compile
    flat-graph  gradients in one array, their sum and all of the step in a CUDA graph

Behind the rows of a part: how far losses are from those of the first row."""
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN = os.path.join(HERE, "..", "..", "examples", "train")
LIMIT = float(os.environ.get("LIMIT", 120))
ROUNDS, BATCHES = 5, 4
# side: of a digit; steps: of a short and a long run of gpipe, by ranks, and how many of them have one picture; more: what
# PyTorch runs before it is measured, and in each round
NETWORKS = {"small": {"side": 8, "neurons": (64, 32), "size": 60, "steps": {1: (600, 30600), 2: (600, 6600)}, "together": 300,
                      "more": (50, 2000), "precision": ("f32",)},
            "large": {"side": 64, "neurons": (4096, 4096), "size": 4096, "steps": {1: (20, 220), 2: (20, 220)}, "together": 20,
                      "more": (10, 50), "precision": ("f32", "tf32")},
            "tiny": {"side": 4, "neurons": (8, 8), "size": 8, "steps": {1: (60, 600), 2: (60, 300)}, "together": 20,
                     "more": (5, 20), "precision": ("f32",)}}
RATES = {"small": 0.005, "large": 1e-5, "tiny": 0.001}
LOSSES = 20                            # that are compared


def say(*what):
    print(*what, flush=True)


def digits(np, folder, name):
    """Files of a network: weights and biases as it begins, and noise that looks like one of ten pictures."""
    net, rng = NETWORKS[name], np.random.default_rng(1992)
    to, pixels = os.path.join(folder, name), net["side"] ** 2
    os.makedirs(to, exist_ok=True)
    labels = rng.integers(0, 10, BATCHES * net["size"])
    means = rng.integers(0, 9, (10, net["side"], net["side"]))
    np.save(f"{to}/labels.npy", labels.astype(np.int64))
    np.save(f"{to}/digits.npy", (means[labels] + rng.integers(0, 8, (len(labels), net["side"], net["side"]), np.uint8))
            .astype(np.uint8))
    sizes = (pixels, *net["neurons"], 10)
    for k, (wide, high) in enumerate(zip(sizes, sizes[1:]), 1):
        np.save(f"{to}/w{k}.npy", rng.standard_normal((high, wide), np.float32) * np.float32((2 / wide) ** 0.5))
        np.save(f"{to}/b{k}.npy", np.zeros(high, np.float32))


# ---- programs that are run --------------------------------------------------------------


def run(command, limit, heard=None):
    """What it says, line by line to `heard`. Raises RuntimeError, which says why, where it fails or takes too long."""
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         start_new_session=True)
    try:
        out, err = p.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
        err += f"\nnot done in {limit:.0f} s"
    for line in out.splitlines() if heard else ():
        heard(line)
    if p.returncode:
        raise RuntimeError("; ".join(line for line in err.strip().splitlines()[-4:]) or f"exit {p.returncode}")


def gpipe(folder, name, ranks, file, precision):
    net, out = NETWORKS[name], f"{folder}/out"
    n1, n2 = net["neurons"]
    shape = {"n1": n1, "n2": n2} if file == "after" else {}

    def once(steps, limit):
        command = [os.environ.get("GPIPE", "gpipe"), "run", "-q", f"{TRAIN}/{file}.yaml",
                   "--set", f"stages.learn.stages.step.vars.rate={RATES[name]}"]
        if file == "after":
            command += ["--set", f"stages.bias.stages.step.vars.rate={RATES[name]}"]
        else:
            command += ["--set", f"stages.picture.path={out}/curve-%03d-${{rank}}.png"]
            for stage in ("leasts", "mosts", "losses"):
                command += ["--set", f"stages.{stage}.frames={net['together']}"]
        for key, value in {"data": f"{folder}/{name}", "weights": f"{folder}/{name}", "out": out, "steps": steps,
                           "size": net["size"], "side": net["side"], "precision": precision, **shape}.items():
            command += ["--set", f"vars.{key}={value}"]
        if ranks > 1:
            command = os.environ.get("MPIRUN", "mpirun --allow-run-as-root --bind-to none").split() + ["-n", str(ranks)] + command
        shutil.rmtree(out, ignore_errors=True)
        start = time.perf_counter()
        run(command, limit)
        return time.perf_counter() - start

    short, long = net["steps"][ranks]
    end, took = time.monotonic() + LIMIT, []
    for _ in range(ROUNDS + 1):
        took.append((once(long, LIMIT) - once(short, LIMIT)) / (long - short) * 1e6)
        if time.monotonic() > end:
            break
    if len(took) == 1:
        raise RuntimeError(f"two rounds are not done in {LIMIT:.0f} s")
    with open(f"{out}/loss-0.csv") as f:
        losses = [float(line) for line in f][:LOSSES]
    return {"us": statistics.median(took[1:]), "losses": losses, "rounds": len(took) - 1}


def torch_row(folder, name, ranks, what, precision):
    said = []
    command = [os.environ.get("PYTHON", "/opt/torch/.venv/bin/python3")]
    if ranks > 1:
        command += ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    try:
        run(command + [os.path.abspath(__file__), "--child", folder, name, what, precision], LIMIT,
            lambda line: said.append(json.loads(line)) if line.startswith("{") else None)
    except RuntimeError:
        if not any("error" in one for one in said):
            raise
    for one in said:
        if "us" in one:
            return one
    raise RuntimeError(said[0]["error"] if said else "it said nothing")


# ---- PyTorch, in a process of its own ------------------------------------------------------


def child(folder, name, what, precision):
    import numpy as np
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F

    net, gpu = NETWORKS[name], torch.cuda.is_available()
    ranks, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    device = torch.device(f"cuda:{int(os.environ.get('LOCAL_RANK', 0))}" if gpu else "cpu")
    if gpu:
        torch.cuda.set_device(device)
    if ranks > 1:
        os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")      # else it asks for events while a graph is made
        dist.init_process_group("nccl" if gpu else "gloo", **({"device_id": device} if gpu else {}))
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    pixels = torch.from_numpy(np.load(f"{folder}/{name}/digits.npy")).flatten(1)
    labels = torch.from_numpy(np.load(f"{folder}/{name}/labels.npy"))
    batches = []
    for k in range(BATCHES):           # each rank: every so many-th, of each batch
        rows = slice(k * net["size"] + rank, (k + 1) * net["size"], ranks)
        pair = pixels[rows].contiguous(), labels[rows].contiguous()
        batches.append(tuple(t.pin_memory() for t in pair) if gpu else pair)
    sizes = (net["side"] ** 2, *net["neurons"], 10)
    layers = []
    for k, (wide, high) in enumerate(zip(sizes, sizes[1:]), 1):
        layer = torch.nn.Linear(wide, high)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(np.load(f"{folder}/{name}/w{k}.npy"))), layer.bias.zero_()
        layers += [layer] + [torch.nn.ReLU()] * (k < 3)
    model = torch.nn.Sequential(*layers).to(device)
    captured = what.endswith("graph")
    if captured:                       # all of it on one stream, so that nothing that is captured waits for another
        torch.cuda.set_stream(torch.cuda.Stream())
    adam = torch.optim.Adam(model.parameters(), lr=RATES[name], fused=gpu, capturable=captured)
    compiled = {"compile": {}, "ddp-compile": {}, "reduce": {"mode": "reduce-overhead"}}.get(what)
    called, flat = model, None
    if what.startswith("ddp") or what == "after":
        called = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True,
                                                           **({"bucket_cap_mb": 1 << 20} if what == "after" else {}))
    elif what == "flat-graph":         # gradients that are parts of one array
        flat = torch.zeros(sum(p.numel() for p in model.parameters()), device=device)
        at = 0
        for p in model.parameters():
            p.grad = flat[at:at + p.numel()].view_as(p)
            at += p.numel()
    if compiled is not None:
        called = torch.compile(called, **compiled)
    x = torch.empty_like(batches[0][0], device=device)
    y = torch.empty_like(batches[0][1], device=device)
    kept = torch.zeros((), device=device)

    def work():
        if flat is None:
            adam.zero_grad(set_to_none=True)
        else:
            flat.zero_()
        loss = F.cross_entropy(called(x.float() / 16), y)
        loss.backward()
        if flat is not None and ranks > 1:
            dist.all_reduce(flat, op=dist.ReduceOp.AVG)
        adam.step()
        kept.copy_(loss.detach())

    def wait():
        if gpu:
            torch.cuda.synchronize()

    count = [0]

    def step(do):
        for to, of in zip((x, y), batches[count[0] % BATCHES]):
            to.copy_(of, non_blocking=True)
        count[0] += 1
        do()

    losses = []
    for _ in range(LOSSES):            # the mean of the ranks', as `loss` of the pipeline
        step(work)
        mean = kept.clone()
        if ranks > 1:
            dist.all_reduce(mean)
        losses.append(mean.item() / ranks)
    do = work
    if captured:
        wait()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"):
            work()
        do = graph.replay
    before, steps = net["more"]
    for _ in range(before):
        step(do)
    took = []
    for _ in range(ROUNDS):
        if ranks > 1:
            dist.barrier()
        wait()
        start = time.perf_counter()
        for _ in range(steps):
            step(do)
        wait()
        took.append((time.perf_counter() - start) / steps * 1e6)
    if rank == 0:
        say(json.dumps({"us": statistics.median(took), "losses": losses, "rounds": ROUNDS}))
        sys.stdout.flush()
    os._exit(0)                        # graphs with NCCL in them, and its threads, may wait for each other at the end


# ---- all of it -------------------------------------------------------------------------------


def part(folder, name, ranks):
    first = None
    rows = {1: ("eager", "graph", "compile", "reduce"), 2: ("ddp", "after", "ddp-compile", "flat-graph")}[ranks]
    for precision in NETWORKS[name]["precision"]:
        for by, what in [("gpipe", "train"), ("gpipe", "after")] + [("torch", w) for w in rows]:
            if by == "gpipe" and what == "after" and ranks == 1:
                continue
            title = f"{by}-{what}-{precision} {name} {ranks}"
            try:
                row = (gpipe if by == "gpipe" else torch_row)(folder, name, ranks, what, precision)
                first = first or row["losses"]
                far = max(abs(a - b) for a, b in zip(first, row["losses"]))
                say(f"{title} {row['us']:.1f}")
                say(f"#   {row['rounds']} rounds; the first {LOSSES} losses are within {far:.2g} of the first row's, and from "
                    f"{row['losses'][0]:.4f} to {row['losses'][-1]:.4f}")
            except Exception as e:
                say(f"# {title} failed: {e}")


def main():
    if sys.argv[1:2] == ["--child"]:
        try:
            child(*sys.argv[2:])
        except Exception as e:
            say(json.dumps({"error": f"{type(e).__name__}: {' '.join(str(e).split())[:400]}"}))
            os._exit(1)
    try:
        import numpy as np
    except ImportError:
        os.execv(python := os.environ.get("PYTHON", "/opt/torch/.venv/bin/python3"), [python] + sys.argv)
    parts = sys.argv[1:] or ["small-1", "small-2", "large-1", "large-2"]
    names = {p.rsplit("-", 1)[0] for p in parts}
    if not names <= set(NETWORKS) or any(p.rsplit("-", 1)[-1] not in ("1", "2") for p in parts):
        sys.exit(__doc__)
    folder = tempfile.mkdtemp(prefix="gpipe-train-", dir=os.environ.get("FOLDER", "/dev/shm"))
    try:
        for p in parts:
            name, ranks = p.rsplit("-", 1)
            if not os.path.isdir(f"{folder}/{name}"):
                start = time.perf_counter()
                digits(np, folder, name)
                say(f"# {name}: files made in {time.perf_counter() - start:.1f} s")
            part(folder, name, int(ranks))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
