"""Trains the decoder of this folder: GPT-2's layers, small (4 of width 128, 4 heads), on the bytes of a text, and
writes its weights as f16 .npy. Needs PyTorch, NumPy and a GPU.

    train.py TEXT [FOLDER [SECONDS]]     FOLDER: weights; SECONDS of training: 150

The gains and biases of the normalizations are folded into the weights behind them. The weights of this folder are of
the King James Bible (1611, in the public domain), a verse a line, of Debian's package bible-kjv:

    bible -f gen1:1-rev22:21 </dev/null | cut -d' ' -f2- > kjv.txt"""
import os
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

LAYERS, WIDTH, HEADS, VOCABULARY, CONTEXT = 4, 128, 4, 256, 256
BATCH, RATE, WARM, DECAY, DROP = 128, 3e-3, 0.03, 0.05, 0.02


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.behind = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.before(x)).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, WIDTH)
        x = x + F.dropout(self.out(o), DROP, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.behind(x)))), DROP, self.training)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02 / (2 * LAYERS) ** 0.5 if "out." in name or "down." in name else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.last(x))


def folded(norm, linear):
    """Weights and biases that do with a normalized row what these do with the gain and bias of `norm`."""
    return linear.weight * norm.weight, linear.bias + linear.weight @ norm.bias


def save(model, folder):
    os.makedirs(folder, exist_ok=True)
    made = {"wte": model.wte.weight, "wpe": model.wpe.weight}
    made["head"], made["head_bias"] = folded(model.last, model.head)
    for k, layer in enumerate(model.layers):
        parts = {"qkv": folded(layer.before, layer.qkv), "out": (layer.out.weight, layer.out.bias),
                 "up": folded(layer.behind, layer.up), "down": (layer.down.weight, layer.down.bias)}
        for name, (w, b) in parts.items():
            made[f"{name}.{k}"], made[f"{name}_bias.{k}"] = w, b
    for name, a in made.items():
        np.save(os.path.join(folder, name + ".npy"), a.detach().cpu().numpy().astype(np.float16))


def main():
    file, folder, seconds = sys.argv[1:] + ["weights", "150"][len(sys.argv) - 2:]
    torch.manual_seed(1611)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    text = torch.from_numpy(np.fromfile(file, np.uint8)).to(device)
    kept = text[-len(text) // 50:]                      # for the loss that is told
    text = text[:-len(kept)]
    model = Decoder().to(device)
    groups = [{"params": [p for p in model.parameters() if (p.dim() == 2) == two], "weight_decay": DECAY * two}
              for two in (True, False)]
    adam = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.99), fused=device == "cuda")
    window = torch.arange(CONTEXT + 1, device=device)

    def loss(of):
        batch = of[torch.randint(len(of) - CONTEXT, (BATCH, 1), device=device) + window].long()
        with torch.autocast(device, torch.bfloat16):
            scores = model(batch[:, :-1])
        return F.cross_entropy(scores.float().flatten(0, 1), batch[:, 1:].flatten())

    start, step, part = time.perf_counter(), 0, 0.0
    while part < 1:
        for group in adam.param_groups:                 # warm up, then a cosine over the time
            group["lr"] = RATE * min(part / WARM, 0.505 + 0.495 * np.cos(np.pi * part))
        adam.zero_grad()
        value = loss(text)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        step += 1
        if step % 1000 == 0 or part == 0:
            print(f"step {step}: loss {value.item():.3f}, {time.perf_counter() - start:.0f} s", flush=True)
        elif step % 20 == 0:
            value.item()                                # the time is the GPU's, not that of queueing
        part = (time.perf_counter() - start) / float(seconds)
    model.eval()
    with torch.no_grad():
        print(f"{step} steps; of text kept back: loss {sum(loss(kept).item() for _ in range(20)) / 20:.3f} a byte")
    save(model, folder)


main()
