"""decode_peers.py - a decoder of GPT-2's small size with PyTorch, a token a step: its layers called one by one,
captured in CUDA graphs, and compiled.

    decode_peers.py FOLDER [LOGITS]

FOLDER holds weights as examples/decode/make_random.py FOLDER 12 768 12 50257 1024 writes them. Prints
`NAME B TOKENS_PER_S US_PER_STEP`: 256 tokens behind a prompt of 16, greedy, B sequences at once, the median of 5 runs.
Weights and the KV cache are f16; tokens and positions stay on the device. With LOGITS, which tests/bench/decode.cu has
written, it tells first how far those are from the ones of PyTorch, in f16 and in f32. Exit 3 where PyTorch or a GPU is
missing.

NAME: `eager` has a mask over the whole cache, `slice` reads what of it is in use; `graphN` is N steps in a CUDA graph;
`reduce` is torch.compile of mode reduce-overhead, `compiled` and `tuned` are torch.compile (max-autotune) in a CUDA
graph of 8 steps. Behind it: how it attends (sdpa, or products, or sums that the compiler fuses), and whether it
multiplies by F.linear or, of one sequence, by a sum that the compiler fuses.
"""
import sys
import time

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
    torch.zeros(1, device="cuda")
except Exception:
    sys.exit(3)

WIDTH, HEADS, LAYERS, PROMPT, STEPS = 768, 12, 12, 16, 256
CACHE = PROMPT + STEPS + 8           # positions, of 8 a multiple


def by_sdpa(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def by_products(q, k, v, mask):
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ v


def by_sums(q, k, v, mask):
    scores = (q * k).sum(-1, dtype=torch.float32) * q.shape[-1] ** -0.5
    p = scores.masked_fill(~mask[:, :, 0], float("-inf")).softmax(-1)
    return (p[..., None] * v).sum(-2, keepdim=True).to(v.dtype)


def linear_sum(x, w, b):
    """For one sequence."""
    return ((w * x).sum(-1, dtype=torch.float32) + b).to(x.dtype)[None]


class Decoder(torch.nn.Module):
    def __init__(self, folder, batch, dtype=torch.float16):
        super().__init__()
        self.batch, self.attend, self.linear = batch, by_sdpa, F.linear

        def keep(name, a):
            self.register_buffer(name, a.to("cuda"), persistent=False)
        names = ["wte", "wpe", "head", "head_bias"]
        names += ["%s%s.%d" % (n, b, k) for n in ("qkv", "out", "up", "down") for b in ("", "_bias")
                  for k in range(LAYERS)]
        for name in names:
            keep(name.replace(".", "_"), torch.from_numpy(np.load("%s/%s.npy" % (folder, name))).to(dtype))
        for k in range(LAYERS):
            keep("keys_%d" % k, torch.zeros(batch, HEADS, CACHE, WIDTH // HEADS, dtype=dtype))
            keep("values_%d" % k, torch.zeros(batch, HEADS, CACHE, WIDTH // HEADS, dtype=dtype))
        keep("places", torch.arange(CACHE))
        keep("position", torch.zeros(1, dtype=torch.long))
        keep("token", torch.zeros(batch, dtype=torch.long))
        keep("tokens", torch.zeros(batch, CACHE + 1, dtype=torch.long))

    def by(self, name, k, x):
        return self.linear(x, getattr(self, "%s_%d" % (name, k)), getattr(self, "%s_bias_%d" % (name, k)))

    def forward(self, used=None):
        """One step; with `used`, the positions in use, those of the cache alone are read."""
        x = F.embedding(self.token, self.wte) + self.wpe.index_select(0, self.position)
        mask = (self.places <= self.position)[None, None, None] if used is None else None
        for i in range(LAYERS):
            keys, values = getattr(self, "keys_%d" % i), getattr(self, "values_%d" % i)
            q, k, v = self.by("qkv", i, F.layer_norm(x, (WIDTH,))).view(self.batch, 3, HEADS, 1, -1).unbind(1)
            keys.index_copy_(2, self.position, k)
            values.index_copy_(2, self.position, v)
            o = self.attend(q, keys[:, :, :used], values[:, :, :used], mask)
            x = x + self.by("out", i, o.reshape(self.batch, WIDTH))
            x = x + self.by("down", i, F.gelu(self.by("up", i, F.layer_norm(x, (WIDTH,)))))
        logits = self.linear(F.layer_norm(x, (WIDTH,)), self.head, self.head_bias)
        chosen = logits.argmax(-1)
        self.position.add_(1)
        self.token.copy_(chosen)
        self.tokens.index_copy_(1, self.position, chosen[:, None])
        return logits

    def silent(self):
        self(None)

    def prompt(self, length):
        b, i = torch.arange(self.batch, device="cuda")[:, None], torch.arange(length, device="cuda")
        given = (b * 131 + i * 1717 + 11) % len(self.wte)       # as decode.cu gives them
        self.position.zero_()
        for i in range(length):
            self.token.copy_(given[:, i])
            logits = self(None)
        return logits


def captured(step, count):
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(count):
            step()
    torch.cuda.synchronize()
    return graph.replay, count


expected = {}


def measure(name, model, make):
    """`make` gives what works, and for how many steps."""
    began = time.perf_counter()
    try:
        model.prompt(PROMPT)
        work, count = make()
        attend, linear, took = model.attend, model.linear, []
        for run in range(6):
            model.attend, model.linear = by_sdpa, F.linear      # the prompt is the same one for all
            model.prompt(PROMPT)
            model.attend, model.linear = attend, linear
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(STEPS // count):
                work()
            torch.cuda.synchronize()
            took.append(time.perf_counter() - start)
        middle = sorted(took[1:])[2]
        made = model.tokens[:, PROMPT:PROMPT + STEPS + 1].clone()
        same = (made == expected.setdefault(model.batch, made)).cumprod(1).sum().item() / model.batch
        print("%s %d %.0f %.2f" % (name, model.batch, model.batch * STEPS / middle, 1e6 * middle / STEPS))
        print("#   the first %.0f tokens as eager's; %.1f s in all" % (same, time.perf_counter() - began), flush=True)
    except Exception as error:
        print("# %s %d failed: %s" % (name, model.batch, str(error).strip().splitlines()[:3]), flush=True)


def slices(model):
    at = [PROMPT]

    def work():
        model(at[0] + 1)
        at[0] = at[0] + 1 if at[0] < PROMPT + STEPS - 1 else PROMPT
    return work, 1


def compiled(model, count, linear=F.linear, attend=by_sdpa, **options):
    torch._dynamo.reset()
    model.attend, model.linear = attend, linear
    step = torch.compile(model.silent, fullgraph=True, dynamic=False, **options)
    if not count:
        for _ in range(4):
            step()
        return step, 1
    return captured(step, count)


def variants(model):
    for name, attend in (("sdpa", by_sdpa), ("products", by_products)):
        model.attend = attend
        measure("eager-" + name, model, lambda: (model.silent, 1))
        measure("slice-" + name, model, lambda: slices(model))
        measure("graph1-" + name, model, lambda: captured(model.silent, 1))
        measure("graph8-" + name, model, lambda: captured(model.silent, 8))
    model.attend = by_sdpa


def compiled_variants(models):
    tuned = {"options": {"max_autotune": True, "coordinate_descent_tuning": True}}
    plain = {"options": {"coordinate_descent_tuning": True}}
    trees = {"options": {"triton.cudagraphs": True, "coordinate_descent_tuning": True}}
    rows = [("compiled-sums-sum", 1, (8, linear_sum, by_sums), plain), ("compiled-sdpa-linear", 8, (8,), plain),
            ("reduce-sdpa-linear", 1, (0,), {"mode": "reduce-overhead"}),
            ("reduce-sdpa-linear", 8, (0,), {"mode": "reduce-overhead"}),
            ("compiled-sdpa-sum", 1, (8, linear_sum), plain), ("reduce-sums-sum", 1, (0, linear_sum, by_sums), trees),
            ("compiled-sums-linear", 8, (8, F.linear, by_sums), plain), ("tuned-sdpa-linear", 8, (8,), tuned),
            ("tuned-sums-linear", 1, (8, F.linear, by_sums), tuned)]
    for name, batch, how, options in rows:
        measure(name, models[batch], lambda: compiled(models[batch], *how, **options))
        models[batch].attend, models[batch].linear = by_sdpa, F.linear


def compare(folder, file):
    have = np.fromfile(file, np.float32).reshape(10, -1)
    for batch, part in ((1, have[:1]), (1, have[1:2]), (8, have[2:])):
        made = {}
        for dtype in (torch.float16, torch.float32):
            made[dtype] = Decoder(folder, batch, dtype).prompt(24).float().cpu().numpy()
        for name, a, b in (("decode.cu and PyTorch f16", part, made[torch.float16]),
                           ("decode.cu and PyTorch f32", part, made[torch.float32]),
                           ("PyTorch f16 and f32", made[torch.float16], made[torch.float32])):
            print("# B %d: logits of %s differ by %.5f at most, of %.3f; the same highest in %d of %d" %
                  (batch, name, np.abs(a - b).max(), np.abs(b).max(), (a.argmax(1) == b.argmax(1)).sum(), batch),
                  flush=True)


def main():
    folder, *file = sys.argv[1:]
    torch.set_grad_enabled(False)
    print("# PyTorch %s, %s" % (torch.__version__, torch.cuda.get_device_name()), flush=True)
    if file:
        compare(folder, *file)
    models = {batch: Decoder(folder, batch) for batch in (1, 8)}
    for model in models.values():
        variants(model)
        first = expected[model.batch][0, :8].tolist()
        print("# tokens of B %d: %s" % (model.batch, " ".join(map(str, first))), flush=True)
    compiled_variants(models)


main()
