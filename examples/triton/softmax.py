"""The softmax of each row of a matrix, in Triton's language: a program takes a row, which fits into a block of it."""
import triton
import triton.language as tl


@triton.jit
def softmax(rows, result, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(rows + row * columns + column, mask=inside, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(result + row * columns + column, e / tl.sum(e, axis=0), mask=inside)
