"""rows_cluster.py - what 64 ranks on 8 machines would reach, simulated from the report of a run on this one, beside
one rank that has its share of such a machine.

No such cluster is here: a figure is as good as what is assumed, which is printed on stderr. Of the machines:

host_memory_gb_s, peer_gb_s, nccl_us   measured on two GPUs: copies to and from both at a time; all-reduces by NCCL of
    4 KiB, 4 MiB and 64 MiB
peer_us, network_us   of a step of a ring, "Simple": hwLat in src/graph/tuning.cc of NCCL
network_gb_s   eight adapters of 400 Gb/s, one for each GPU, as in a DGX H100
process_gb_s, process_us   MPI in the memory of a machine, about what Open MPI reaches here
"""
import json, os, sys

from rows_device import BALANCED, BIG, iters, settings
from rows_ranks import HOST, REDUCED
from rows_several import FEW, LARGE, LONG
from tools import HERE, Row

RANKS, NODES = 64, 8
LINKS = {"peer_gb_s": 282, "peer_us": 3.4, "nccl_us": 20, "network_gb_s": 400, "network_us": 9.6, "process_gb_s": 4,
         "process_us": 2}
GPUS = dict(LINKS, cores=128, host_memory_gb_s=158)    # of a machine with eight GPUs
CORES = dict(LINKS, cores=16)


def simulated(b, file, report, machine, ranks, nodes):
    machine = b.write("machine.json", json.dumps(machine))
    out, _, _ = b.run([b.gpipe, "simulate", file, "--with", report, "--machine", machine, "--ranks", ranks, "--nodes",
                       nodes, "--set", "vars.frames=%d" % (300 * ranks), "--json"])
    return json.loads(out)


def cluster(b, row, file, sets, frames, machine):
    """Microseconds per frame of all ranks; of one."""
    report = b.path("cluster.json")
    b.run([b.gpipe, "run", "-q", file, "--report", report]
          + [word for s in sets + ["vars.frames=%d" % frames] for word in ("--set", s)])
    cores = machine["cores"] * NODES // RANKS
    alone = simulated(b, file, report, dict(machine, cores=cores), 1, 1)
    all_of_them = simulated(b, file, report, machine, RANKS, NODES)
    b.once(row, lambda: print("".join("bench: %s: assumed: %s\n" % (row, s) for s in all_of_them["assumed"]), end="",
                              file=sys.stderr))
    return 1e6 / all_of_them["frames_per_s"], 1e6 / alone["frames_per_s"], "one rank, %d cores" % cores


def host(b):
    return cluster(b, "8x8-host", b.write("cluster_host.yaml", HOST), ["device=cpu"], 20000, CORES)


def kernels(b):
    b.has_gpu()
    sets = settings(b, BIG, 3, 1) + ["device=auto", "vars.iters=%d" % (LONG * iters(b, BIG))]
    return cluster(b, "8x8-kernels", BALANCED, sets, 1000, GPUS)


def copies(b):
    b.has_gpu()
    return cluster(b, "8x8-16M", BALANCED, settings(b, BIG, 3, 1) + ["device=auto"], 3000, GPUS)


def reduced(b):
    b.has_gpu()
    file = b.write("cluster_reduced.yaml", REDUCED.replace("SOURCE", os.path.join(HERE, "two_gpus.cu")))
    return cluster(b, "8x8-reduce", file, ["vars.n=%d" % (LARGE // 4), "vars.few=%d" % FEW], 2000, GPUS)


ROWS = [
    Row("8x8-host", "8 machines, 64 ranks, host only, 64 KiB frames, simulated: one", "rate", None, host),
    Row("8x8-kernels", "8 machines with 8 GPUs, kernels of %d copies, simulated: one" % LONG, "rate", None, kernels),
    Row("8x8-16M", "8 machines with 8 GPUs, 16 MiB, balanced, simulated: one", "rate", None, copies),
    Row("8x8-reduce", "8 machines with 8 GPUs, all_reduce of 64 MiB, simulated: one", "rate", None, reduced),
]
