"""Trains the network of this folder on 1437 of scikit-learn's digits (8 x 8 pixels), and writes the other 360
(digits.npy), what they are (labels.npy), the network as weights and as a model (*.npy, digits.onnx), and what it takes
them for when NumPy computes it (guesses.npy):

    pip install numpy scikit-learn onnx && python3 train.py"""
import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save
from sklearn.datasets import load_digits

HIDDEN, EPOCHS, BATCH, RATE, MOMENTUM, DECAY = 32, 60, 32, 0.1, 0.9, 1e-4
rng = np.random.default_rng(0)
digits = load_digits()
order = rng.permutation(len(digits.target))
images, labels = digits.images[order].astype(np.uint8), digits.target[order]
train, test = slice(0, 1437), slice(1437, None)

x, y = (images[train].reshape(-1, 64) / 16).astype(np.float32), np.eye(10, dtype=np.float32)[labels[train]]
w = [rng.normal(0, np.sqrt(2 / 64), (HIDDEN, 64)).astype(np.float32), np.zeros(HIDDEN, np.float32),
     rng.normal(0, np.sqrt(2 / HIDDEN), (10, HIDDEN)).astype(np.float32), np.zeros(10, np.float32)]
speed = [np.zeros_like(a) for a in w]
for epoch in range(EPOCHS):
    for i in np.array_split(rng.permutation(len(x)), len(x) // BATCH):
        h = np.maximum(x[i] @ w[0].T + w[1], 0)
        z = h @ w[2].T + w[3]
        p = np.exp(z - z.max(1, keepdims=True))
        dz = (p / p.sum(1, keepdims=True) - y[i]) / len(i)
        dh = (dz @ w[2]) * (h > 0)
        for a, v, g in zip(w, speed, [dh.T @ x[i], dh.sum(0), dz.T @ h, dz.sum(0)]):
            v[:] = MOMENTUM * v - RATE * (g + DECAY * a)
            a += v

w = [a.astype(np.float32) for a in w]
pixels = images[test].reshape(-1, 64).astype(np.float32) / 16
scores = np.maximum(pixels @ w[0].T + w[1], 0) @ w[2].T + w[3]
guesses = scores.argmax(1)
best = np.sort(scores, 1)
print(f"{(guesses == labels[test]).mean():.4f} of {len(guesses)} are right; the nearest two scores differ by "
      f"{(best[:, -1] - best[:, -2]).min():.2g}")
for name, a in [("digits", images[test]), ("labels", labels[test].astype(np.int64)),
                ("guesses", guesses.astype(np.int64)), ("w1", w[0]), ("b1", w[1]), ("w2", w[2]), ("b2", w[3])]:
    np.save(name + ".npy", a)

info, node = helper.make_tensor_value_info, helper.make_node
graph = helper.make_graph(
    [node("Gemm", ["pixels", "w1", "b1"], ["a"], transB=1), node("Relu", ["a"], ["h"]),
     node("Gemm", ["h", "w2", "b2"], ["scores"], transB=1)], "digits",
    [info("pixels", TensorProto.FLOAT, ["batch", 64])], [info("scores", TensorProto.FLOAT, ["batch", 10])],
    [numpy_helper.from_array(a, n) for n, a in zip(["w1", "b1", "w2", "b2"], w)])
model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
checker.check_model(model)
save(model, "digits.onnx")
