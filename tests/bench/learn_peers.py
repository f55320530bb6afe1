"""learn_peers.py - examples/learn beside the same training with PyTorch: steps a second, and the return reached.

    learn_peers.py [FOLDER]

GPIPE is the gpipe to run. FOLDER (a new one in TMPDIR) takes weights and tables. Prints, for each size of SIZES and
each way, `NAME CARTS UPDATES FRAMES_PER_S STEPS_PER_S`, the median of SEEDS, where a step is one of one cart, and
behind it the mean length of the episodes that ended in the last 200 of FRAMES, for each seed. Speeds leave out how a
run begins: that of gpipe is of the time that six times as many frames take longer, that of PyTorch of a run behind
compiling and capturing. For each seed all ways take turns. One that fails, or takes longer than LIMIT seconds, says so
and is left out.

The algorithm, hyperparameters and initial weights are those of learn.yaml; random numbers are each program's own. With
PyTorch the carts are tensors on the GPU, and nothing waits for it in the loop:
`eager`     calls one by one
`graph1`    a frame in a CUDA graph; `graph10`: ten of them
`compiled1` what moves the carts, and what computes the loss and its gradient, by torch.compile, in a CUDA graph, as
            LeanRL has them; `compiled10`: ten frames in the graph
Adam is torch.optim.Adam, fused and capturable. Without a GPU there are a short `eager` on the CPU, and gpipe's CPU back
end, to see whether both learn alike. Exit 3 where PyTorch is missing.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit(3)

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(HERE, "..", "..", "examples", "learn")
ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
LIMIT = 60 if ON_GPU else 300               # seconds for one way with one seed
SEEDS = (1, 2, 3, 4, 5)
SIZES = ((64, 1), (1024, 1), (1024, 4)) if ON_GPU else ((64, 1),)
FRAMES, LAST, NEURONS = 1600, 200, 64
KEEP, SIZE, RATE, DISCOUNT, RENEW, EXPLORE, LEAST = 131072, 256, 0.001, 0.99, 100, 800, 0.01
MOST = 500


def moved(cart, age, worth, epsilon, chance):
    """A step of all carts: what is remembered, which episodes ended, and the carts and ages behind it. `chance`: six
    random numbers a cart."""
    action = torch.where(chance[:, 0] < epsilon, (chance[:, 1] < 0.5).long(), worth.argmax(1))
    place, speed, angle, turn = cart[:, :4].unbind(1)
    s, c = angle.sin(), angle.cos()
    push = ((action * 20 - 10) + 0.05 * turn * turn * s) / 1.1
    turning = (9.8 * s - c * push) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
    now = torch.stack((place + 0.02 * speed, speed + 0.02 * (push - 0.05 * turning * c / 1.1), angle + 0.02 * turn,
                       turn + 0.02 * turning, torch.ones_like(place)), 1)
    fell = (now[:, 0].abs() > 2.4) | (now[:, 2].abs() > 0.20943951)
    age = age + 1
    over = fell | (age == MOST)
    step = torch.cat((cart, now, action[:, None].float(), fell[:, None].float()), 1)
    start = torch.cat((chance[:, 2:] * 0.1 - 0.05, torch.ones_like(place)[:, None]), 1)
    ends = torch.stack((over.float().sum(), torch.where(over, age, 0).float().sum()))
    return step, ends, torch.where(over[:, None], start, now), torch.where(over, 0, age)


def worth_of(x, w1, w2, w3):
    return F.linear(F.linear(F.linear(x, w1).relu(), w2).relu(), w3)


def loss_of(some, w1, w2, w3, t1, t2, t3):
    with torch.no_grad():
        best = worth_of(some[:, 5:10], t1, t2, t3).amax(1)
        right = 1 + (1 - some[:, 11]) * DISCOUNT * best
    thought = worth_of(some[:, :5], w1, w2, w3).gather(1, some[:, 10:11].long())[:, 0]
    return F.huber_loss(thought, right)


class Twin:
    """The state of it all, as tensors that stay where they are, so that a graph can hold them."""

    def __init__(self, carts, updates, frames, compiled):
        def zeros(*shape, dtype=torch.float32):
            return torch.zeros(*shape, dtype=dtype, device=DEVICE)
        self.carts, self.updates, self.frames = carts, updates, frames
        self.weights = [zeros(*s).requires_grad_() for s in ((NEURONS, 5), (NEURONS, NEURONS), (2, NEURONS))]
        self.target = [torch.zeros_like(w, requires_grad=False) for w in self.weights]
        self.cart, self.age, self.memory = zeros(carts, 5), zeros(carts, dtype=torch.long), zeros(KEEP, 12)
        self.frame, self.ends = zeros(1, dtype=torch.long), zeros(frames, 2)
        self.which = torch.arange(carts, device=DEVICE)
        more = {"fused": True, "capturable": True} if ON_GPU else {}
        self.adam = torch.optim.Adam(self.weights, lr=RATE, **more)
        compile = (lambda f: torch.compile(f, fullgraph=True, dynamic=False)) if compiled else (lambda f: f)
        self.moved, self.loss_of, self.worth_of = compile(moved), compile(loss_of), compile(worth_of)

    def begin(self, seed, folder):
        torch.manual_seed(seed)
        with torch.no_grad():
            for k, w in enumerate(self.weights, 1):
                w.copy_(torch.from_numpy(np.load(os.path.join(folder, "w%d.npy" % k))))
            for x in (self.age, self.memory, self.frame, self.ends, self.cart):
                x.zero_()
            self.cart[:, 4] = 1
            for kept in self.adam.state.values():
                for x in kept.values():
                    x.zero_()

    def renew(self):
        with torch.no_grad():
            for t, w in zip(self.target, self.weights):
                t.copy_(w)

    def step(self):
        """One frame, but for the target network."""
        with torch.no_grad():
            epsilon = (1 - (1 - LEAST) * self.frame / EXPLORE).clamp(min=LEAST)
            worth = self.worth_of(self.cart, *self.weights)
            chance = torch.rand(self.carts, 6, device=DEVICE)
            step, ends, cart, age = self.moved(self.cart, self.age, worth, epsilon, chance)
            self.memory.index_copy_(0, (self.frame * self.carts + self.which) % KEEP, step)
            self.ends.index_copy_(0, self.frame.clamp(max=self.frames - 1), ends[None])
            self.cart.copy_(cart)
            self.age.copy_(age)
            self.frame.add_(1)
            filled = (self.frame * self.carts).clamp(max=KEEP)
        for _ in range(self.updates):
            drawn = (torch.rand(SIZE, device=DEVICE, dtype=torch.float64) * filled).long()
            loss = self.loss_of(self.memory[drawn], *self.weights, *self.target)
            for w, g in zip(self.weights, torch.autograd.grad(loss, self.weights)):
                w.grad = g
            self.adam.step()

    def captured(self, count):
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.step()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(count):
                self.step()
        torch.cuda.synchronize()
        self.graph = graph              # and what it holds
        return graph.replay


def wait():
    if ON_GPU:
        torch.cuda.synchronize()


def torch_way(name):
    """A function of a size that gives a function of a seed: frames a second, and lengths."""
    compiled, count = name.startswith("compiled"), int(re.sub(r"\D", "", name) or 1)

    def make(carts, updates, folder):
        twin = Twin(carts, updates, FRAMES, compiled)
        work = twin.step if name == "eager" else twin.captured(count)

        def run(seed):
            twin.begin(seed, folder(seed))
            wait()
            start = time.perf_counter()
            for frame in range(0, FRAMES, count):
                if frame % RENEW == 0:
                    twin.renew()
                work()
            wait()
            took = time.perf_counter() - start
            number, lengths = twin.ends[-LAST:].sum(0).tolist()
            return FRAMES / took, lengths / max(number, 1)
        if ON_GPU:
            run(SEEDS[0])
        return run
    return make


def gpipe_way(carts, updates, folder):
    def go(seed, frames, report):
        sets = dict(weights=folder(seed), out=folder(seed), carts=carts, updates=updates, keep=KEEP, size=SIZE,
                    rate=RATE, discount=DISCOUNT, renew=RENEW, explore=EXPLORE, least=LEAST, neurons=NEURONS, seed=seed,
                    frames=frames, report=report)
        p = subprocess.run([os.environ.get("GPIPE", "gpipe"), "run", os.path.join(EXAMPLE, "learn.yaml")]
                           + [a for key, value in sets.items() for a in ("--set", "vars.%s=%s" % (key, value))],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
        took = re.search(r"%d frames in, %d out.* in ([0-9.]+) s" % (frames, frames), p.stdout)
        if p.returncode or not took:
            raise RuntimeError("gpipe: exit %d: %s" % (p.returncode, p.stdout.strip()[-400:]))
        with open(os.path.join(folder(seed), "learn.csv")) as table:
            return float(took[1]), float(list(table)[-1].split(",")[0])

    def run(seed):
        took, length = go(seed, FRAMES, LAST)
        if ON_GPU:
            longer = go(seed, 6 * FRAMES, LAST)[0]
            return 5 * FRAMES / (longer - took), length
        return FRAMES / took, length
    return run


def late(*_):
    raise TimeoutError("more than %d s" % LIMIT)


def tell(name, error):
    print("# %s failed: %s: %s" % (name, type(error).__name__, str(error).strip().splitlines()[:3]), flush=True)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    for seed in SEEDS:
        os.makedirs("%s/%d" % (folder, seed), exist_ok=True)
        subprocess.run([sys.executable, os.path.join(EXAMPLE, "make_weights.py"), "%s/%d" % (folder, seed),
                        str(NEURONS), str(seed)], check=True)
    gpu = torch.cuda.get_device_name() if ON_GPU else "no GPU"
    print("# PyTorch %s, %s, %s" % (torch.__version__, gpu, folder), flush=True)
    signal.signal(signal.SIGALRM, late)
    names = ("gpipe", "eager", "graph1", "graph10", "compiled1", "compiled10") if ON_GPU else ("gpipe", "eager")
    for carts, updates in SIZES:
        ways, rates, lengths = {}, {n: [] for n in names}, {n: [] for n in names}
        for name in names:
            began = time.perf_counter()
            signal.alarm(2 * LIMIT)
            try:
                make = gpipe_way if name == "gpipe" else torch_way(name)
                ways[name] = make(carts, updates, lambda seed: "%s/%d" % (folder, seed))
                print("# %s %d %d: ready in %.1f s" % (name, carts, updates, time.perf_counter() - began), flush=True)
            except Exception as error:
                tell("%s %d %d" % (name, carts, updates), error)
            finally:
                signal.alarm(0)
        for seed in SEEDS:
            for name in list(ways):
                signal.alarm(LIMIT)
                try:
                    rate, length = ways[name](seed)
                    rates[name].append(rate)
                    lengths[name].append(length)
                    print("# %s %d %d, seed %d: %.0f frames a second, length %.0f"
                          % (name, carts, updates, seed, rate, length), flush=True)
                except Exception as error:
                    tell("%s %d %d, seed %d" % (name, carts, updates, seed), error)
                    ways.pop(name)
                finally:
                    signal.alarm(0)
        for name in names:
            if rates[name]:
                middle = sorted(rates[name])[len(rates[name]) // 2]
                print("%s %d %d %.0f %.0f   %s" % (name, carts, updates, middle, middle * carts,
                                                   " ".join("%.0f" % x for x in lengths[name])), flush=True)
        ways.clear()
        if ON_GPU:
            torch.cuda.empty_cache()


main()
