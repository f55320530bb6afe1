"""torch_loop.py - the pipeline of balanced.yaml, with the least possible kernel, as one
writes it with PyTorch: pinned slots, a stream for each, copies that do not block.

    torch_loop.py BYTES [DEPTH...]

Prints `torch eager DEPTH US` and `torch graph DEPTH US`, microseconds per frame: calls of
PyTorch, and one captured CUDA graph for each slot. What comes out is checked. Exit 3 where
there is no PyTorch, or no GPU for it.
"""
import sys, time

try:
    import torch
except ImportError:
    sys.exit(3)
if not torch.cuda.is_available():
    sys.exit(3)


class Slot:
    def __init__(self, n):
        self.host_in = torch.arange(n, dtype=torch.float32).pin_memory()
        self.host_out = torch.full((n,), -1.0).pin_memory()
        self.dev_in = torch.empty(n, device="cuda")
        self.dev_out = torch.empty(n, device="cuda")
        self.stream = torch.cuda.Stream()
        self.done = torch.cuda.Event()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self.stream):
            self.queue()
        torch.cuda.synchronize()
        with torch.cuda.graph(self.graph, stream=self.stream):
            self.queue()
        torch.cuda.synchronize()

    def queue(self):
        self.dev_in.copy_(self.host_in, non_blocking=True)
        torch.mul(self.dev_in, 2.0, out=self.dev_out)
        self.host_out.copy_(self.dev_out, non_blocking=True)


def eager(slot):
    slot.queue()


def graph(slot):
    slot.graph.replay()


def run(slots, work, frames):
    """Seconds, until the last frame is there."""
    depth = len(slots)
    start = time.perf_counter()
    for i in range(frames):
        slot = slots[i % depth]
        if i >= depth:
            slot.done.synchronize()
        with torch.cuda.stream(slot.stream):
            work(slot)
            slot.done.record(slot.stream)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main():
    size = int(sys.argv[1])
    frames = 500 if size >= 1 << 22 else 10000
    for depth in [int(a) for a in sys.argv[2:]] or [1, 2, 3, 4, 6]:
        slots = [Slot(size // 4) for _ in range(depth)]
        for name, work in (("eager", eager), ("graph", graph)):
            for slot in slots:
                slot.host_out.fill_(-1)
            run(slots, work, frames // 10 + depth)
            took = run(slots, work, frames)
            if not all(torch.equal(s.host_out, s.host_in * 2) for s in slots):
                sys.exit("torch_loop.py: wrong values")
            print("torch %s %d %.3f" % (name, depth, 1e6 * took / frames), flush=True)


if __name__ == "__main__":
    with torch.no_grad():
        main()
