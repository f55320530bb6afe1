"""soak.py GPIPE MINUTES [DEVICE]: a live run for a long time: packets of which some are lost, come twice or out of order; a reader
that stalls, subscribers and viewers that come and go, settings that change. Each frame that comes out anywhere is whole and in
order, what is missing is counted, and memory, descriptors and threads stay as they are."""
import io, json, os, random, re, signal, socket, struct, subprocess, sys, threading, time, urllib.request
import numpy as np
import zmq
from kit import check, env, free_port, gpipe, path, put, spawn, total, until

signal.alarm(0)                            # it takes as long as it is told to
minutes, device = float(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "cpu"
seed = int(os.environ.get("GPIPE_SEED", time.time()))
print(f"GPIPE_SEED={seed}", flush=True)
os.chdir(path("."))
ROWS, SIZE = 16, 1024
port, http = free_port(kind=socket.SOCK_DGRAM), free_port()
os.mkfifo("fifo")
os.mkdir("out")
put("p.yaml", f"""
metadata: [lost, sequence]
buffers: {{raw: {{dtype: u8, shape: [{ROWS}, {SIZE}]}}, y: {{like: raw}}}}
stages:
  - {{name: in, use: udp, port: {port}, packet: {SIZE}, header: 8, sequence: u64, reorder: 64, out: raw}}
  - {{name: flip, use: expr, expr: 255 - in, out: y}}
  - {{name: files, use: write, path: 'out/%05d.raw', rotate_frames: 500, durable: none, in: y}}
  - {{name: reader, use: write, path: fifo, format: raw, in: y, when_full: drop-oldest}}
  - {{name: pub, use: send, bind: 'ipc://pub', pattern: pub, in: y, when_full: drop-newest}}
""")
run = spawn("run", "--progress", "json", "--device", device, "--metrics", str(http), "--view", "p.yaml", stderr=open("err", "w"))
over, counts, wrong, lock = threading.Event(), {}, [], threading.Lock()
unsent, missing = set(), set()


def count(what, n=1):
    with lock:
        counts[what] = counts.get(what, 0) + n


def row(k):
    a = np.full(SIZE, k % 250 + 1, np.uint8)
    a[:8] = np.frombuffer(struct.pack("<Q", k), np.uint8)
    return a


def number_of(frame, who):
    """The number of a frame of whole rows, of which some may be lost; None: all are."""
    a = 255 - np.frombuffer(frame, np.uint8).reshape(ROWS, SIZE)
    there = [i for i in range(ROWS) if a[i].any()]
    k = [int(a[i, :8].copy().view(np.uint64)[0]) - i for i in there]
    if len(set(k)) > 1 or any((a[i] != row(k[0] + i)).any() for i in there) or (k and k[0] % ROWS):
        wrong.append((who, k[:4], there))
    count("lost rows: " + who, ROWS - len(there))
    if who == "written" and k:
        missing.update(k[0] + i for i in range(ROWS) if i not in there)
    return k[0] // ROWS if k else None


def in_order(frames, who):
    last = -1
    for f in frames:
        k = number_of(f, who)
        if k is not None and k <= last:
            wrong.append((who, "after", last, "came", k))
        last = last if k is None else k
        count(who)


def guarded(f):
    def go():
        r = random.Random(f"{seed} {f.__name__}")
        while not over.is_set():
            try:
                f(r)
            except Exception as e:
                if not over.is_set():
                    wrong.append((f.__name__, repr(e)))
                    time.sleep(1)
    t = threading.Thread(target=go, daemon=True)
    t.start()
    return t


def sends(r):
    s, k = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0
    while not over.is_set():
        some = list(range(k, k + 64))
        if k and r.random() < 0.3:
            for i in range(0, 60, 4):
                some[i], some[i + 3] = some[i + 3], some[i]
        for n in some:
            lost = k and r.random() < 0.002
            count("not sent" if lost else "sent")
            if lost:
                unsent.add(n)
            for _ in range(0 if lost else 1 + (r.random() < 0.002)):
                s.sendto(struct.pack(">Q", n) + row(n).tobytes(), ("127.0.0.1", port))
        k += 64
        time.sleep(0.002)


def sets(r):
    what = r.choice([f"depth={r.randint(2, 12)}", f"streams={r.randint(1, 3)}", f"batch={r.randint(1, 2)}"])
    p = subprocess.run([gpipe, "set", str(run.pid), what], env=env, capture_output=True, text=True, timeout=600)
    if p.returncode and not over.is_set():
        wrong.append(("set", what, p.stderr))
    count("settings changed")
    time.sleep(r.random())


def views(r):
    p = subprocess.run([gpipe, "view", "-q", str(run.pid), "y"], env=env, capture_output=True, timeout=600)
    if not over.is_set():
        number_of(np.load(io.BytesIO(p.stdout)).tobytes(), "viewed")
    count("viewed")
    for page in ("metrics", "health"):
        urllib.request.urlopen(f"http://127.0.0.1:{http}/{page}", timeout=600).read()
    time.sleep(r.random())


def subscribes(r):
    s = zmq.Context.instance().socket(zmq.SUB)
    s.setsockopt(zmq.LINGER, 0), s.setsockopt(zmq.RCVTIMEO, 600000), s.subscribe(b"")
    s.connect("ipc://" + path("pub"))
    in_order([s.recv_multipart()[-1] for _ in range(r.randint(1, 200))], "published")
    s.close()


def reads(r):
    with open("fifo", "rb") as f:
        def frames():
            while True:
                a = f.read(ROWS * SIZE)
                if len(a) < ROWS * SIZE:
                    return
                if r.random() < 0.01:
                    time.sleep(r.random())     # it stalls
                yield a
        in_order(frames(), "read")
    over.wait()


def files():
    """Those that are whole, which are then not needed any more."""
    names = sorted(x for x in os.listdir("out") if x.endswith(".raw"))
    for name in names:
        with open("out/" + name, "rb") as f:
            yield from iter(lambda: f.read(ROWS * SIZE), b"")
        os.remove("out/" + name)


def collects(r):
    def frames():
        while run.poll() is None:
            yield from files()
            time.sleep(0.1)
        yield from files()
    in_order(frames(), "written")


check("begins", until(lambda: os.path.exists(f"gpipe/{run.pid}.sock")), open("err").read())
others = [guarded(f) for f in (sets, views, subscribes, reads)]
collector, sender = guarded(collects), guarded(sends)
memory, descriptors, threads = [], [], []
end = time.time() + 60 * minutes
while time.time() < end and run.poll() is None:
    status = open(f"/proc/{run.pid}/status").read()
    memory.append(int(re.search(r"VmRSS:\s+(\d+)", status).group(1)))
    threads.append(int(re.search(r"Threads:\s+(\d+)", status).group(1)))
    descriptors.append(len(os.listdir(f"/proc/{run.pid}/fd")))
    time.sleep(1)
check("goes on", run.poll() is None, open("err").read()[-2000:])
over.set()
sender.join()
time.sleep(1)
run.send_signal(signal.SIGINT)
check("ends", run.wait(600) == 130, open("err").read()[-2000:])
collector.join(600)
said = [json.loads(x) for x in open("err") if x.startswith("{")]
account = next(x["account"] for x in said if "account" in x)["sources"]
warned = " ".join(x.get("warning", "") for x in said)
lost = int((re.search(r"(\d+) lost", warned) or [0, 0])[1])
print(json.dumps(counts), warned, f"MiB {memory[0] // 1024} to {memory[-1] // 1024}, descriptors up to {max(descriptors)}, "
      f"threads up to {max(threads)}", flush=True)
check("all is whole and in order", not wrong, wrong[:10])
check("all is counted", all(a["in"] == a["out"] + a["dropped"] + a["failed"] + a["cancelled"] for a in account), account)
check("all is written", account[0]["out"] == counts["written"], (account[0], counts))
check("what is lost is counted", lost == counts["lost rows: written"] + ROWS * account[0]["lost"], (lost, counts, account[0]))
check("nothing else is lost", missing <= unsent or "kernel's buffer" in warned, (sorted(missing - unsent), warned))
half, spare = len(memory) // 2, (16 << 10) + 200 * counts["settings changed"]     # what each change keeps, see retuner.h
check("memory is flat", max(memory[half:]) <= 1.05 * max(memory[half // 4:half]) + spare, memory[::max(1, len(memory) // 40)])
check("descriptors are", max(descriptors[half:]) <= max(descriptors[:half]) + 4, descriptors[::max(1, len(memory) // 40)])
check("threads are", max(threads[half:]) <= max(threads[:half]) + 4, threads[::max(1, len(memory) // 40)])
total("soak")
