"""Weights by chance, of the distribution that GPT-2 begins with, in the files of examples/decode, to measure speed.

    make_random.py FOLDER LAYERS WIDTH HEADS VOCABULARY CONTEXT     GPT-2 small: 12 768 12 50257 1024

The biases are by chance too, so that one which is left out is seen, and so is the head, which GPT-2 shares with wte."""
import os
import sys

import numpy as np

folder = sys.argv[1]
layers, width, heads, vocabulary, context = map(int, sys.argv[2:])
if width % heads:
    sys.exit(f"make_random.py: a width of {width} has no {heads} heads of the same size")
os.makedirs(folder, exist_ok=True)
rng = np.random.default_rng(2019)
small = 0.02 / (2 * layers) ** 0.5


def make(name, deviation, *shape):
    a = rng.standard_normal(shape, np.float32) * np.float32(deviation)
    np.save(os.path.join(folder, name + ".npy"), a.astype(np.float16))


make("wte", 0.02, vocabulary, width)
make("wpe", 0.01, context, width)
make("head", 0.02, vocabulary, width)
make("head_bias", 0.02, vocabulary)
for k in range(layers):
    for name, deviation, rows, columns in [("qkv", 0.02, 3 * width, width), ("out", small, width, width),
                                           ("up", 0.02, 4 * width, width), ("down", small, width, 4 * width)]:
        make(f"{name}.{k}", deviation, rows, columns)
        make(f"{name}_bias.{k}", 0.02, rows)
