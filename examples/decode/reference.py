"""The decoder of this folder by NumPy, in f32: what its pipeline is compared with.

    reference.py FOLDER PROMPTS STEPS HEADS

Prints, for each line of the file PROMPTS, the STEPS bytes that continue it, each the one of the highest logit (the
first of equal ones)."""
import glob
import math
import os
import sys

import numpy as np

erf = np.frompyfunc(math.erf, 1, 1)


def normalized(x):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-5))


class Decoder:
    """A batch of sequences, a token of each a step."""

    def __init__(self, folder, heads):
        files = glob.glob(os.path.join(folder, "*.npy"))
        self.w = {os.path.basename(f)[:-4]: np.load(f).astype(np.float32) for f in files}
        self.heads, self.layers = heads, sum(name.startswith("qkv.") for name in self.w)
        self.start()

    def start(self):
        self.position, self.keys, self.values = 0, [[] for _ in range(self.layers)], [[] for _ in range(self.layers)]

    def linear(self, x, name, k):
        return x @ self.w[f"{name}.{k}"].T + self.w[f"{name}_bias.{k}"]

    def attention(self, x, k):
        q, key, value = np.split(self.linear(normalized(x), "qkv", k).reshape(len(x), 3 * self.heads, -1), 3, axis=1)
        self.keys[k].append(key)
        self.values[k].append(value)
        keys, values = np.stack(self.keys[k], 2), np.stack(self.values[k], 2)       # [batch, heads, positions, width]
        scores = (keys @ q[..., None])[..., 0] / np.float32(math.sqrt(q.shape[-1]))
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        return self.linear((p[:, :, None] @ values)[:, :, 0].reshape(len(x), -1), "out", k)

    def step(self, tokens):
        """The logits behind these tokens, one of each sequence."""
        x = self.w["wte"][tokens] + self.w["wpe"][self.position]
        self.position += 1
        for k in range(self.layers):
            x = x + self.attention(x, k)
            h = self.linear(normalized(x), "up", k)
            h *= (1 + erf(h / math.sqrt(2)).astype(np.float32)) / 2
            x = x + self.linear(h, "down", k)
        return normalized(x) @ self.w["head"].T + self.w["head_bias"]

    def continued(self, prompts, steps):
        """Tokens [batch, steps] behind `prompts` [batch, length]."""
        self.start()
        for tokens in np.transpose(prompts):
            logits = self.step(tokens)
        made = [logits.argmax(-1)]
        while len(made) < steps:
            made.append(self.step(made[-1]).argmax(-1))
        return np.stack(made, 1)


def main():
    folder, file, steps, heads = sys.argv[1:]
    decoder = Decoder(folder, int(heads))
    for line in open(file, "rb").read().splitlines():
        made = decoder.continued(np.frombuffer(line, np.uint8)[None], int(steps))
        sys.stdout.buffer.write(made[0].astype(np.uint8).tobytes() + b"\n")


if __name__ == "__main__":
    main()
