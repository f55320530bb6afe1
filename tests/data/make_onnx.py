#!/usr/bin/env python3
"""Makes the models in onnx/ beside it, and for each input and each output of those that run an array: outputs are by
the reference implementation of the package onnx, in NumPy:

    pip install onnx==1.23.2 numpy && python3 tests/data/make_onnx.py"""
import os

import numpy as np
from onnx import TensorProto as T, checker, helper, numpy_helper, save
from onnx.reference import ReferenceEvaluator

there = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnx")
os.makedirs(there, exist_ok=True)
rng = np.random.default_rng(11)
value = helper.make_tensor_value_info


def weights(name, a):
    return numpy_helper.from_array(a, name)


def model(name, nodes, inputs, outputs, constants=(), check=True, domains=(), **arrays):
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    m = helper.make_model(graph, ir_version=8, producer_name="gpipe's tests",
                          opset_imports=[helper.make_opsetid("", 13)] + [helper.make_opsetid(d, 1) for d in domains])
    if check:
        checker.check_model(m)
    save(m, os.path.join(there, name + ".onnx"))
    if not arrays:
        return
    names = [o.name for o in outputs]
    each = ReferenceEvaluator(m).run(names, arrays)
    for n, a in [*arrays.items(), *zip(names, each)]:
        a = np.atleast_1d(np.asarray(a))
        np.save(os.path.join(there, f"{name}_{n}.npy"), a.astype(np.uint8) if a.dtype == bool else a)


node = helper.make_node

# a layer, for a batch of any size: the weights are multiples of 1/8, so that every order of sums has the same bits
w = (rng.integers(-16, 17, (4, 3)) / 8).astype(np.float32)
b = (rng.integers(-16, 17, 3) / 8).astype(np.float32)
x = (rng.integers(-80, 81, (5, 4)) / 8).astype(np.float32)
model("layer", [node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["q"]), node("Relu", ["q"], ["y"])],
      [value("x", T.FLOAT, ["N", 4])], [value("y", T.FLOAT, ["N", 3])], [weights("w", w), weights("b", b)], x=x)

# two inputs, four outputs: one of truths, one of one column
model("pair", [node("Add", ["a", "b"], ["sum"]), node("Sub", ["a", "b"], ["minus"]),
               node("Greater", ["a", "b"], ["greater"]), node("ReduceMax", ["a"], ["most"], axes=[1], keepdims=1)],
      [value("a", T.FLOAT, ["N", 4]), value("b", T.FLOAT, ["N", 4])],
      [value("sum", T.FLOAT, ["N", 4]), value("minus", T.FLOAT, ["N", 4]), value("greater", T.BOOL, ["N", 4]),
       value("most", T.FLOAT, ["N", 1])], a=x, b=x[::-1].copy())

# a picture of any size: the sizes of the output follow by arithmetic
k = (rng.integers(-8, 9, (2, 1, 3, 3)) / 8).astype(np.float32)
photo = (rng.integers(-80, 81, (2, 1, 9, 14)) / 8).astype(np.float32)
model("halves", [node("Conv", ["photo", "k"], ["maps"], strides=[2, 2], pads=[1, 1, 1, 1])],
      [value("photo", T.FLOAT, ["N", 1, "H", "W"])], [value("maps", T.FLOAT, ["N", 2, "H2", "W2"])], [weights("k", k)],
      photo=photo)

# of any shape
model("turn", [node("Transpose", ["x"], ["y"])], [value("x", T.FLOAT, ["H", "W"])], [value("y", T.FLOAT, ["W", "H"])])

# all elements of a frame of one shape: a scalar
model("total", [node("ReduceSum", ["x"], ["y"], keepdims=0)], [value("x", T.FLOAT, [5, 4])], [value("y", T.FLOAT, [])],
      x=x)

# each type of element, handed on
types = [("f32", T.FLOAT, np.float32), ("u8", T.UINT8, np.uint8), ("i8", T.INT8, np.int8), ("u16", T.UINT16, np.uint16),
         ("i16", T.INT16, np.int16), ("i32", T.INT32, np.int32), ("i64", T.INT64, np.int64),
         ("f16", T.FLOAT16, np.float16), ("f64", T.DOUBLE, np.float64), ("u32", T.UINT32, np.uint32),
         ("u64", T.UINT64, np.uint64)]
model("types", [node("Identity", [n], [n + "_out"]) for n, _, _ in types],
      [value(n, t, ["N", 2, 3]) for n, t, _ in types],
      [value(n + "_out", t, ["N", 2, 3]) for n, t, _ in types],
      **{n: rng.integers(0, 100, (4, 2, 3)).astype(d) for n, _, d in types})

# how many there are depends on the data: [2, ?]
model("where", [node("NonZero", ["x"], ["y"])], [value("x", T.FLOAT, ["N", 4])], [value("y", T.INT64, [2, None])])

# takes no frame
same = [node("Identity", ["x"], ["y"])]
model("strings", same, [value("x", T.STRING, ["N"])], [value("y", T.STRING, ["N"])])
model("strings_out", [node("Cast", ["x"], ["y"], to=T.STRING)], [value("x", T.FLOAT, ["N", 4])],
      [value("y", T.STRING, ["N", 4])])
model("truths", same, [value("x", T.BOOL, ["N"])], [value("y", T.BOOL, ["N"])])
model("bfloat", same, [value("x", T.BFLOAT16, ["N"])], [value("y", T.BFLOAT16, ["N"])])
model("axes", same, [value("x", T.FLOAT, [1] * 9)], [value("y", T.FLOAT, [1] * 9)])
model("sequence", [node("SequenceConstruct", ["x"], ["y"])], [value("x", T.FLOAT, ["N", 4])],
      [helper.make_tensor_sequence_value_info("y", T.FLOAT, ["N", 4])])
model("custom", [node("Twice", ["x"], ["y"], domain="somebody")], [value("x", T.FLOAT, ["N", 4])],
      [value("y", T.FLOAT, ["N", 4])], check=False, domains=["somebody"])
model("no_output", same, [value("x", T.FLOAT, ["N", 4])], [], check=False)
model("no_input", [node("Constant", [], ["y"], value=weights("c", x))], [], [value("y", T.FLOAT, [5, 4])])

# an input and an output that are shapes, which a GPU's provider has in memory of the host
model("shapes", [node("Reshape", ["x", "s"], ["z"]), node("Shape", ["x"], ["n"])],
      [value("x", T.FLOAT, ["N", 4]), value("s", T.INT64, [2])],
      [value("z", T.FLOAT, ["A", "B"]), value("n", T.INT64, [2])], x=x, s=np.array([10, 2]))
