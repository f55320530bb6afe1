"""device_time.py - what a call of CuPy or PyTorch takes of a GPU: the sum of its kernels, copies and fills, as CUPTI has them
through PyTorch's profiler. Raises ImportError where there is no PyTorch.
"""
import sys

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

ROUNDS = 50


def us(work):
    """Microseconds a call."""
    work()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        for _ in range(ROUNDS):
            work()
        torch.cuda.synchronize()
    ns = [e.duration_ns() for e in p.profiler.kineto_results.events()
          if e.device_type() == DeviceType.CUDA and "Sync" not in e.name()]
    if len(ns) < ROUNDS:
        sys.exit("the profiler saw %d kernels of %d calls" % (len(ns), ROUNDS))
    return sum(ns) / ROUNDS * 1e-3
