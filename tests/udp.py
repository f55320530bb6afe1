#!/usr/bin/env python3
"""udp.py GPIPE: packets that this program sends on the loopback device, and what the kind 'udp' makes of them."""
import json, os, shutil, signal, socket, struct, subprocess, time
import numpy as np
from kit import check, env, free_port, gpipe, path, put, quick, spawn, total, until

PER, SIZE = 4, 64                      # packets in a frame, bytes of data in each


def payload(k):
    return bytes((k * 7 + i) % 251 for i in range(SIZE))


def packet(k, header=8, trailer=0, form=">Q", data=None):
    bits = 8 * struct.calcsize(form)
    return struct.pack(form, k % 2**bits).ljust(header, b"\0") + (data or payload(k)) + b"t" * trailer


def is_bound(port):
    return any(f":{port:04X} " in line for name in ("udp", "udp6") if os.path.exists(f"/proc/net/{name}")
               for line in open(f"/proc/net/{name}"))


class Run:
    def __init__(self, options="", frames=4, behind="", sequence="sequence: u64", family=socket.AF_INET):
        self.port = free_port("::1" if family == socket.AF_INET6 else "127.0.0.1", socket.SOCK_DGRAM)
        shutil.rmtree(path("out"), ignore_errors=True)
        put("p.yaml", f"""
metadata: [lost, sequence]
buffers: {{raw: {{dtype: u8, shape: [{PER}, {SIZE}]}}}}
stages:
  - {{use: udp, port: {self.port}, packet: {SIZE}, {sequence}, frames: {frames}, out: raw{options}}}
{behind}
  - {{name: meta, use: lua, script: meta.lua}}
  - {{use: write, path: 'out/%d.npy', durable: none}}
""")
        put("meta.lua", f"""
function process(f, x, y)
  y:copy(x)
  local to = io.open("{path('meta.txt')}", "a")
  to:write(f.index, " ", string.format("%.0f", f.meta.lost or -1), " ", string.format("%.0f", f.meta.sequence or -1), "\\n")
  to:close()
end
""")
        put("meta.txt", "")
        self.p = spawn("run", "--progress", "json", "--device", "cpu", path("p.yaml"), stderr=subprocess.PIPE)
        until(lambda: is_bound(self.port) or self.p.poll() is not None)

    def send(self, packets, to="127.0.0.1", family=socket.AF_INET):
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            for x in packets:
                s.sendto(x, (to, self.port))

    def end(self):
        self.said = [json.loads(x) for x in self.p.communicate(timeout=60)[1].splitlines()]
        self.account = next((x["account"] for x in self.said if "account" in x), {})
        self.warned = " ".join(str(x["warning"]) for x in self.said if "warning" in x)
        self.frames = {int(x.split(".")[0]): np.load(path("out/" + x)) for x in os.listdir(path("out"))} \
            if os.path.isdir(path("out")) else {}
        self.meta = [tuple(map(int, x.split())) for x in open(path("meta.txt"))]
        return self.p.returncode


def frame(numbers, data=payload):
    """Of these packets, None: one that is lost."""
    return np.frombuffer(b"".join(bytes(SIZE) if k is None else data(k) for k in numbers), np.uint8).reshape(PER, SIZE)


L = None
# name; the numbers of the packets as they are sent; what each frame has, or None where there is a hole; lost packets;
# a part of the warning
TABLE = [
    ("in order", range(16), [range(4), range(4, 8), range(8, 12), range(12, 16)], ""),
    ("from a number", range(100, 116), [range(100, 104), range(104, 108), range(108, 112), range(112, 116)], ""),
    ("within a frame", range(2, 20), [range(4, 8), range(8, 12), range(12, 16), range(16, 20)], ""),
    ("other order", [0, 3, 2, 1, 7, 4, 5, 6, 10, 11, 8, 9, 12, 13, 15, 14],
     [range(4), range(4, 8), range(8, 12), range(12, 16)], ""),
    ("frames overtake", [0, 1, 4, 5, 6, 2, 3, 7, 8, 9, 10, 12, 13, 14, 15, 11],
     [range(4), range(4, 8), range(8, 12), range(12, 16)], ""),
    ("one is lost", [0, 1, 3, *range(4, 18)], [[0, 1, L, 3], range(4, 8), range(8, 12), range(12, 16)], "1 lost, and are zeros"),
    ("a frame is lost", [*range(4), *range(8, 16)], [range(4), L, range(8, 12), range(12, 16)], "4 lost, and are zeros"),
    ("many frames are lost", [*range(4), *range(4000, 4004)], [range(4), L, L, L], "12 lost, and are zeros"),
    ("twice", [0, 1, 1, 2, 3, *range(4, 8), 5, *range(8, 16)], [range(4), range(4, 8), range(8, 12), range(12, 16)],
     "2 late or twice"),
    ("too late", [0, 1, 2, *range(4, 12), 3, *range(12, 16)], [[0, 1, 2, L], range(4, 8), range(8, 12), range(12, 16)],
     "1 late or twice"),
    ("strays", [0, 1, 9000, 2, 3, 2**40, 4, 5, *[9001, 7000, 8999], 6, *range(7, 16)],
     [range(4), range(4, 8), range(8, 12), range(12, 16)], "5 with a number far from all others"),
    ("a stray first", [2**50, *range(16)], [[2**50, L, L, L], range(4), range(4, 8), range(8, 12)], "1 a begin anew"),
    ("begins anew", [*range(2**40, 2**40 + 7), *range(5, 16)],
     [range(2**40, 2**40 + 4), [2**40 + 4, 2**40 + 5, 2**40 + 6, L], [L, 5, 6, 7], range(8, 12)], "1 a begin anew"),
    ("begins anew at a frame's end", [*range(2**40, 2**40 + 8), *range(3, 16)],
     [range(2**40, 2**40 + 4), range(2**40 + 4, 2**40 + 8), range(4, 8), range(8, 12)], "1 a begin anew"),
    ("a jump that is lost", [*range(4), *range(1000, 1008)], [range(4), L, L, L], "12 lost")]
for name, sent, want, warning in TABLE:
    r = Run(", header: 8")
    for i in range(0, len(sent), 50):
        r.send([packet(k) for k in sent[i:i + 50]])
    check(name + ": ends", r.end() == 0, r.said)
    ok = all((w is None) == (k not in r.frames) and (w is None or (r.frames[k] == frame(w)).all()) for k, w in enumerate(want))
    check(name + ": frames", ok, r.frames)
    check(name + ": warning", warning in r.warned and (warning or not r.warned), r.warned)
    told = [(k, sum(x is None for x in w), next((x - i for i, x in enumerate(w) if x is not None), 0))
            for k, w in enumerate(want) if w]
    check(name + ": metadata", r.meta == told, (r.meta, told))
    source = r.account["sources"][0]
    check(name + ": account", (source["in"], source["dropped"], source["lost"]) == (4,) + 2 * (sum(w is None for w in want),), source)

# ---- the form of a packet
FORMS = [("u8", "B", "sequence: u8", 248), ("u16", ">H", "sequence: u16", 65528), ("u32", ">I", "sequence: u32", 2**32 - 8),
         ("little", "<Q", "sequence: u64, sequence_order: little", 2**53), ("u64, its end", ">Q", "sequence: u64", 2**64 - 8)]
for name, form, sequence, first in FORMS:
    r = Run(sequence=sequence + ", header: 8")
    numbers = range(first, first + 16)         # which begin anew in the middle
    r.send([packet(k, form=form) for k in numbers])
    check(f"{name}: ends", r.end() == 0 and not r.warned, r.said)
    check(f"{name}: frames", all((r.frames[k] == frame(numbers[4 * k:4 * k + 4])).all() for k in range(4)), r.frames)
# header, trailer, the order of bytes, without sequence, incomplete frames, other lengths, addresses
r = Run(sequence="sequence: u32, sequence_at: 66, header: 2, trailer: 6")
r.send([b"hh" + payload(k) + struct.pack(">IH", k, 0) for k in range(16)])
check("a trailer", r.end() == 0 and all((r.frames[k] == frame(range(4 * k, 4 * k + 4))).all() for k in range(4)), r.said)
r = Run(sequence="header: 0")
r.send([payload(k) for k in (3, 1, 2, *range(13))])
want = [3, 1, 2, *range(13)]
check("no sequence", r.end() == 0 and all((r.frames[k] == frame(want[4 * k:4 * k + 4])).all() for k in range(4)), r.said)
check("no sequence: none is told", {x[1:] for x in r.meta} == {(0, -1)}, r.meta)
r = Run(", incomplete: drop, header: 8")
r.send([packet(k) for k in (0, 1, 3, *range(4, 18))])
check("incomplete: drop", r.end() == 0 and sorted(r.frames) == [1, 2, 3] and "their frames left out" in r.warned, r.said)
r = Run(", reorder: 9, header: 8")
r.send([packet(k) for k in (0, 1, 2, *range(4, 13), 3, 13, 14, 15)])
check("reorder", r.end() == 0 and not r.warned and (r.frames[0] == frame(range(4))).all(), r.said)
r = Run(", header: 8")
r.send([packet(0), packet(1)[:-1], packet(1) + b"x", b"", *map(packet, range(1, 16))])
check("other lengths", r.end() == 0 and "3 of another length" in r.warned and len(r.frames) == 4, r.said)
r = Run(", header: 8, endian: big")
r.p.kill(), r.p.wait()
put("p.yaml", open(path("p.yaml")).read().replace("dtype: u8, shape: [4, 64]", "dtype: i16, shape: [4, 32]"))
r.p = spawn("run", "--progress", "json", "--device", "cpu", path("p.yaml"), stderr=subprocess.PIPE)
until(lambda: is_bound(r.port) or r.p.poll() is not None)
r.send(map(packet, range(16)))
check("big-endian", r.end() == 0 and all((r.frames[k] == frame(range(4 * k, 4 * k + 4)).view(">i2")).all() for k in range(4)),
      r.said)
for name, family, address, to in [("IPv4", socket.AF_INET, ", address: 127.0.0.1", "127.0.0.1"),
                                  ("IPv6", socket.AF_INET6, ", address: '::1'", "::1"),
                                  ("IPv6, all", socket.AF_INET6, "", "::1"),
                                  ("multicast", socket.AF_INET, ", address: 239.1.2.3, interface: lo", "239.1.2.3")]:
    try:
        r = Run(", header: 8" + address, family=family)
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            if to == "239.1.2.3":
                s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            for k in range(16):
                s.sendto(packet(k), (to, r.port))
    except OSError as e:
        print(f"SKIPPED: {name}: {e}")
        continue
    check(name, r.end() == 0 and len(r.frames) == 4 and not r.warned, r.said)

# ---- more than the kernel's buffer holds, while a stage waits: what came is right, and what did not is counted
put("hold.lua", f"function process(f, x, y)\n  y:copy(x)\n  while f.index == 0 and not io.open('{path('go')}') do end\nend\n")
r = Run(", header: 8, receive_buffer: 4096", frames=100, behind="  - {name: hold, use: lua, script: hold.lua}")
r.send(map(packet, range(380)))
put("go", "")
k = 380
while r.p.poll() is None:              # until the run has enough
    r.send([packet(k)])
    k += 1
check("a full buffer: ends", r.end() == 0 and "without room in the kernel's buffer" in r.warned, r.said)
source = r.account["sources"][0]
check("a full buffer: account", source["in"] == 100 and source["out"] + source["dropped"] == 100 and source["out"] < 100
      and len(r.frames) == source["out"], source)
ok = [all((row == frame([4 * i + j] * 4)[0]).all() or not row.any() for j, row in enumerate(f)) for i, f in r.frames.items()]
check("a full buffer: frames", all(ok), ok)
lost = sum(int((~f.any(axis=1)).sum()) for f in r.frames.values()) + PER * source["dropped"]
check("a full buffer: lost", f"{lost} lost, and are zeros" in r.warned, (lost, r.warned))

# ---- Ctrl-C while it waits; retuned meanwhile
r = Run(", header: 8", frames=0)
r.send(map(packet, range(8)))
check("stopped: frames", until(lambda: os.path.exists(path("out/1.npy"))), "")
told, k = spawn("set", str(r.p.pid), "depth=5", stdout=subprocess.PIPE), 8
while told.poll() is None or k % PER:  # who waits for packets pauses when one comes
    r.send([packet(k)])
    k += 1
    time.sleep(0.001)
check("retuned", told.returncode == 0 and "depth" in told.stdout.read(), told)
check("... it goes on", until(lambda: os.path.exists(path(f"out/{k // PER - 1}.npy"))), k)
r.p.send_signal(signal.SIGINT)
check("stopped", r.end() == 130 and len(r.frames) == k // PER and not r.warned
      and all((f == frame(range(PER * i, PER * i + PER))).all() for i, f in r.frames.items()), r.said)

# ---- what is refused
other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
other.bind(("0.0.0.0", 0))
taken = other.getsockname()[1]
BAD = [("packet: 64, sequence: u64, reorder: 1000000000", 3, "250000002 frames of 256 bytes are open at a time"), ("packet: 63", 3, "a frame has 256 bytes, which are no whole packets of 63"), ("packet: 64, reorder: 3", 3, "reorder"),
       ("packet: 64, sequence: u64, sequence_at: 57", 3, "ends at byte 65 of a packet, which has 64 bytes"),
       ("packet: 64, header: 65500", 3, "has at most 65507"),
       ("packet: 64, interface: lo", 3, "which 'all addresses' is not"), ("packet: 1, sequence: u8", 3, "half of what a number of 8 bits counts"), ("packet: 64, address: nowhere", 1, "address 'nowhere'"),
       (f"packet: 64, port: {taken}", 4, "Address already in use"), ("packet: 64, address: 239.1.2.3, interface: none7", 4, "239.1.2.3"),
       ("packet: 64, address: 192.0.2.77", 4, "Cannot assign requested address"), ("header: 8", 3, "packet")]
for options, code, what in BAD:
    port = "" if "port:" in options else f"port: {free_port(kind=socket.SOCK_DGRAM)}, "
    p = subprocess.run([gpipe, "run", "-q", "--device", "cpu", "-"], env=env, capture_output=True, text=True, timeout=60, input=f"""
buffers: {{raw: {{dtype: u8, shape: [4, 64]}}}}
stages:
  - {{use: udp, {port}{options}, out: raw}}
  - {{use: discard}}
""")
    check("refused: " + options, p.returncode == code and what in p.stderr and ":4:" in p.stderr, p)
other.close()
total("udp")
