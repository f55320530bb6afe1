"""network.py - gpipe's stages `send` and `receive` beside each other and beside pyzmq, over sockets of one machine.

Nothing here relies on time: what is waited for are files, the bytes of a socket, or the end of a process."""
import itertools, json, os, re, shutil, signal, socket, subprocess
import numpy as np
import zmq
from kit import bytes_of, check, env, free_port, gpipe, path, put, spawn, total, until

ctx, push, count = zmq.Context(), None, itertools.count()
__file__ = os.path.abspath(__file__)
os.chdir(path("."))


def sock(kind, **options):
    s = ctx.socket(kind)
    s.setsockopt(zmq.LINGER, 0)
    s.setsockopt(zmq.RCVTIMEO, 60000)
    s.setsockopt(zmq.SNDTIMEO, 60000)
    for name, value in options.items():
        s.setsockopt(getattr(zmq, name), value)
    return s


def ipc(name):
    return "ipc://" + path(name)


class Run:
    def __init__(self, name, text, *args, **more):
        put(name + ".yaml", text)
        self.p = spawn("run", "--progress", "json", "--device", "cpu", *args, path(name + ".yaml"), stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, **more)

    def end(self, signal_=None):
        if signal_:
            self.p.send_signal(signal_)
        try:
            self.text = self.p.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.text = "DID NOT END " + self.p.communicate()[1]
        said = [json.loads(x) for x in self.text.splitlines() if x.startswith("{")]
        self.account = next((x["account"] for x in said if "account" in x), {})
        return self.p.returncode


def pushes():
    """A socket, and where it is: one of its own for each receiver, since what is sent to one that is just going is lost."""
    global push
    if push:
        push.close()
    push = sock(zmq.PUSH)
    push.bind(ipc(f"p{next(count)}"))
    return f"connect: '{push.LAST_ENDPOINT.decode()}'"


def receiver(address, more="", dtype="f32", shape="[4, 8]", keys="", out="got", behind=""):
    """Each frame becomes a file, and a line of text: its number, time, name and the number `exposure`."""
    shutil.rmtree(path(out), ignore_errors=True)
    put(out + ".txt", "")
    put(out + ".lua", f"""
function process(f, x, y)
  y:copy(x)
  local to = io.open("{path(out)}.txt", "a")
  to:write(f.index, " ", string.format("%.0f", f.time * 1e3), " ", f.name or "-", " ", tostring(f.meta.exposure), "\\n")
  to:close()
end
""")
    return Run(out, f"""
metadata: [exposure]
buffers: {{raw: {{dtype: {dtype}, shape: {shape}}}}}
stages:
  - {{name: in, use: receive, {address}, out: raw{more}{keys}}}
{behind}
  - {{use: lua, script: {out}.lua}}
  - {{use: write, path: '{out}/%d.npy', durable: none}}
""")


def got(out="got"):
    return {int(x.split(".")[0]): np.load(path(out + "/" + x)) for x in os.listdir(path(out)) if x.endswith(".npy")} \
        if os.path.isdir(path(out)) else {}


def lines(out="got"):
    return [x.split() for x in open(path(out + ".txt"))]


def frame(k, dtype=np.float32, shape=(4, 8)):
    return (np.arange(np.prod(shape)) + 100 * k).astype(dtype).reshape(shape)


def message(k, a=None, **more):
    a = frame(k) if a is None else a
    return [json.dumps({"dtype": str(a.dtype), "shape": a.shape, **more}).encode(), a.tobytes()]


def array(parts):
    h = json.loads(parts[0])
    return np.frombuffer(parts[1], h["dtype"]).reshape(h["shape"])


END = [b'{"end": true}']
GENERATE = "{use: generate, pattern: ramp, frames: 6, out: x}"
BUFFERS = "buffers: {x: {dtype: f32, shape: [4, 8]}}\n"

# ---- gpipe to pyzmq
pull = sock(zmq.PULL)
port = pull.bind_to_random_port("tcp://127.0.0.1")
r = Run("send", f"""
{BUFFERS}
metadata: [exposure, gain]
stages:
  - {GENERATE}
  - {{use: lua, script: tag.lua}}
  - {{use: send, connect: 'tcp://127.0.0.1:{port}'}}
""") if put("tag.lua", 'function process(f, x, y)\n  y:copy(x)\n  f.meta.exposure = 0.1 * f.index\nend\n') else None
parts = [pull.recv_multipart() for _ in range(7)]
check("to pyzmq: ends", r.end() == 0, r.text)
heads = [json.loads(p[0]) for p in parts]
check("to pyzmq: frames", all((array(p).ravel() == np.arange(32) + 32 * k).all() for k, p in enumerate(parts[:6])), parts)
check("to pyzmq: header", [set(h) for h in heads[:6]] == 6 * [{"dtype", "shape", "frame", "time_ns", "meta", "sender"}], heads)
check("to pyzmq: dtype", heads[0]["dtype"] == "float32" and heads[0]["shape"] == [4, 8], heads[0])
check("to pyzmq: numbers", [(h["frame"], h["meta"]["exposure"]) for h in heads[:6]] == [(k, 0.1 * k) for k in range(6)], heads)
check("to pyzmq: times", 0 < heads[0]["time_ns"] <= heads[5]["time_ns"], heads)
check("to pyzmq: end", len(parts[6]) == 1 and heads[6] == {"end": True, "frame": 6, "sender": heads[0]["sender"]}, parts[6])

# all types, partial frames, names
a = np.arange(30).reshape(10, 3)
for name, t in [("u8", "uint8"), ("i8", "int8"), ("u16", "uint16"), ("i16", "int16"), ("u32", "uint32"), ("i32", "int32"),
                ("u64", "uint64"), ("i64", "int64"), ("f16", "float16"), ("f32", "float32"), ("f64", "float64"), ("c64", "complex64")]:
    np.save(path("cut.npy"), a.astype(t))
    r = Run("cut", f"""
buffers: {{x: {{dtype: {name}, shape: [4, 3]}}}}
stages:
  - {{use: read, path: cut.npy, out: x}}
  - {{use: send, connect: 'tcp://127.0.0.1:{port}'}}
""")
    parts = [pull.recv_multipart() for _ in range(4)]
    check(f"{t}: ends", r.end() == 0, r.text)
    check(f"{t}: frames", json.loads(parts[0][0])["dtype"] == t and (np.concatenate([array(p) for p in parts[:3]]) == a).all(), parts)
    check(f"{t}: names", [json.loads(p[0]).get("name") for p in parts] == 3 * ["cut"] + [None], parts)
pull.close()

# ---- pyzmq to gpipe
r = receiver(pushes())
for k in range(3):
    push.send_multipart(message(k))
push.send_multipart(message(3, time_ns=1700000000123000000, name="a b \u00e4 \U0001f600", meta={"exposure": 0.25, "other": [1]}))
push.send_multipart(message(4, frame(4, ">f4")))
push.send_multipart([b'{"shape":[4,8],"dtype":"<f4","unknown":{"a":[1,{"b":null}]}}', frame(5).tobytes()])
push.send_multipart(message(6, frame(6, shape=(2, 8))))
push.send_multipart(message(7, frame(7, shape=(0, 8))))
push.send_multipart(END)
check("from pyzmq: ends", r.end() == 0, r.text)
g = got()
check("from pyzmq: frames", sorted(g) == list(range(8)) and all((g[k] == frame(k)).all() for k in range(6)), g)
check("from pyzmq: fewer rows", g and (g[6] == frame(6, shape=(2, 8))).all() and g[7].shape == (0, 8), g)
check("from pyzmq: meta", len(lines()) > 3 and lines()[3] == ["3", "1700000000123", "a", "b", "\u00e4", "\U0001f600", "0.25"], lines())
r = receiver(pushes(), shape='["<=9", "<=9"]')
for k in range(4):
    push.send_multipart(message(k, frame(k, shape=(k + 1, 9 - k))))
push.send_multipart(END)
check("shapes that differ", r.end() == 0 and all((got()[k] == frame(k, shape=(k + 1, 9 - k))).all() for k in range(4)), r.text)
r = receiver(pushes(), dtype="u8")
push.send_multipart(message(0, frame(0, bool)))
push.send_multipart(END)
check("bool", r.end() == 0 and (got()[0] == frame(0, bool)).all(), r.text)

# the code of the topic
code = re.findall(r"^```python\n(.*?)^```", open(os.path.join(os.path.dirname(__file__), "../engine/cli/topics/network.md")).read(), re.M | re.S)
port = free_port()
s = Run("send", BUFFERS + f"stages:\n  - {GENERATE}\n  - {{use: send, bind: 'tcp://127.0.0.1:{port}'}}\n")
space = {}
exec(code[0].replace("5555", str(port)), space)
check("the topic's receiver", s.end() == 0 and (space["a"].ravel() == np.arange(32) + 32 * 5).all(), s.text)
port = free_port()
r = receiver(f"bind: 'tcp://127.0.0.1:{port}'")
exec(code[1].replace("5555", str(port)), {**space, "arrays": [frame(0), frame(1).T.copy().T]})
check("the topic's sender", r.end() == 0 and all((got()[k] == frame(k)).all() for k in range(2)), r.text)

# numbers: what is missing is lost, what the sender dropped is dropped; they begin anew
def number(k, **more):
    return message(k, frame=k, **more)


for name, sent, frames, lost, dropped, missing in [
        ("lost", [number(7), number(8), number(11)], {0: 7, 1: 8, 4: 11}, 2, 2, "hole"),
        ("dropped", [number(7), number(12, dropped=3)], {0: 7, 5: 12}, 1, 4, "hole"),
        ("at the end", [number(7), [b'{"end":true,"frame":10,"dropped":1}']], {0: 7}, 1, 2, "hole"),
        ("skipped", [number(7), number(12, dropped=3), number(15)], {0: 7, 1: 12, 2: 15}, 0, 0, "skip"),
        ("anew", [number(7), number(8), number(3), number(4), number(2**62)], {0: 7, 1: 8, 2: 3, 3: 4, 4: 2**62}, 0, 0, "hole"),
        ("another sender", [number(7, sender="a"), number(9, sender="b"), number(10, sender="b")], {0: 7, 1: 9, 2: 10}, 0, 0, "hole")]:
    r = receiver(pushes(), f", missing: {missing}")
    for m in sent + ([] if b"\"end" in sent[-1][0] else [END]):
        push.send_multipart(m)
    check(f"numbers, {name}: ends", r.end() == 0, r.text)
    check(f"numbers, {name}: frames", {k: int(x[0, 0]) for k, x in got().items()} == {k: 100 * v if v < 2**40 else int(frame(v)[0, 0])
          for k, v in frames.items()}, got())
    s = r.account["sources"][0]
    check(f"numbers, {name}: account", (s["lost"], s["dropped"], s["out"]) == (lost, dropped, len(frames)), s)
    check(f"numbers, {name}: told", (f"{lost} lost on the way" in r.text) == (lost > 0)
          and ("begin anew" in r.text) == (name in ("anew", "another sender")), r.text)

# several senders, of which each ends
second = sock(zmq.PUSH)
second.connect(ipc("many"))
third = sock(zmq.PUSH)
third.connect(ipc("many"))
r = receiver("bind: 'ipc://many'", ", senders: 2")
for k in range(4):
    second.send_multipart(number(k, sender="a"))
    third.send_multipart(number(k, sender="b"))
second.send_multipart([b'{"end":true,"frame":4,"sender":"a"}'])
check("two senders: the first ends", until(lambda: len(got()) == 8) and r.p.poll() is None, r.p.poll())
third.send_multipart([b'{"end":true,"frame":4,"sender":"b"}'])
check("two senders", r.end() == 0 and r.account["sources"][0]["lost"] == 0, r.text)
check("two senders: the file of the socket is gone", not os.path.exists(path("many")))

# ---- two gpipes; each of both sides stopped and begun anew, killed and begun anew
SENDER = BUFFERS + """
stages:
  - {use: generate, pattern: ramp, frames: %d, out: x}
  - {name: out, use: send, %s}
"""
for how, one, two in [("tcp", f"bind: 'tcp://127.0.0.1:{free_port()}'", None), ("tcp, the other way", None, f"bind: 'tcp://127.0.0.1:{free_port()}'"),
                      ("ipc", "bind: ipc://x.sock", None), ("ipc, the other way", None, "bind: ipc://x.sock"),
                      ("a name", "bind: 'ipc://@gpipe-%d'" % os.getpid(), None)]:
    r = receiver(two or one.replace("bind", "connect"))
    s = Run("send", SENDER % (1000, one or two.replace("bind", "connect")))
    check(f"{how}: sender ends", s.end() == 0, s.text)
    check(f"{how}: receiver ends", r.end() == 0, r.text)
    g = got()
    check(f"{how}: frames", len(g) == 1000 and all((x.ravel() == 32 * k + np.arange(32)).all() for k, x in g.items()), len(g))

r = receiver("bind: ipc://x.sock")
s = Run("send", SENDER % (0, "connect: ipc://x.sock, queue: 2"))
check("sender is stopped: frames", until(lambda: len(got()) > 5))
check("sender is stopped", s.end(signal.SIGINT) == 130, s.text)
s = Run("send", SENDER % (0, "connect: ipc://x.sock, queue: 2"))
n = len(lines())
check("sender is killed: frames", until(lambda: len(lines()) > n + 20))
s.p.kill(), s.p.wait()
s = Run("send", SENDER % (50, "connect: ipc://x.sock"))
check("sender is there anew: sender", s.end() == 0, s.text)
check("sender is there anew", r.end() == 0 and "another sender" in r.text, r.text)
g = got()
firsts = [int(x[0, 0]) for _, x in sorted(g.items())]
at = len(firsts)                       # what the one before had sent may come among them
for k in reversed(range(50)):
    at = max((i for i in range(at) if firsts[i] == 32 * k), default=-1)
check("sender is there anew: its frames", at >= 0, firsts[-100:])

s = Run("send", SENDER % (0, "bind: ipc://x.sock, queue: 2"))
for how in (signal.SIGINT, signal.SIGKILL, None):
    r = receiver("connect: ipc://x.sock, queue: 2", ", frames: 20" if not how else "")
    check(f"receiver, {how}: frames", until(lambda: len(got()) > 5), r.p.poll())
    check(f"receiver, {how}", r.end(how) == {signal.SIGINT: 130, None: 0}.get(how, -9), r.text)
check("Ctrl-C while no receiver is there", s.p.poll() is None and s.end(signal.SIGINT) == 130, s.text)
check("Ctrl-C: the file of the socket is gone", not os.path.exists(path("x.sock")))
put("ready.lua", f"io.open('{path('ready')}', 'w'):close()\nfunction process(f, x, y) y:copy(x) end\n")
r = receiver("connect: ipc://nobody.sock", behind="  - {name: ready, use: lua, script: ready.lua}")
check("waits for a sender: begins", until(lambda: os.path.exists(path("ready"))))
check("waits for a sender: Ctrl-C", r.end(signal.SIGINT) == 130, r.text)

put("third.lua", f"function process(f, x, y)\n  y:copy(x)\n  if f.index == 2 then io.open('{path('third')}', 'w'):close() end\nend\n")
s = Run("send", SENDER.replace("  - {name: out", "  - {use: lua, script: third.lua}\n  - {name: out") % (3, "connect: ipc://nobody.sock"))
check("its end without a receiver: all is made", until(lambda: os.path.exists(path("third"))))
check("its end without a receiver: Ctrl-C", s.end(signal.SIGINT) in (0, 130) and "have not taken all that was sent" in s.text, s.text)

put("fails.lua", "function process(f, x, y)\n  y:copy(x)\n  assert(f.index < 2)\nend\n")
s = Run("send", SENDER.replace("  - {name: out", "  - {use: lua, script: fails.lua}\n  - {name: out") % (3, "connect: ipc://nobody.sock"))
check("it fails, and nobody took what was sent", s.end() == 1 and "have not taken all that was sent" in s.text, s.text)

# reopen
r = receiver(pushes(), ", reopen: true, frames: 5")
for m in [number(0), number(1), END, number(0), number(1), END, number(0)]:
    push.send_multipart(m)
check("reopen", r.end() == 0 and [int(got()[k][0, 0]) for k in range(5)] == [0, 100, 0, 100, 0] and "anew" not in r.text, r.text)

# several receivers: each is told the end
s = Run("send", SENDER % (200, "bind: ipc://x.sock, receivers: 2, queue: 4"))
r = [receiver("connect: ipc://x.sock, queue: 4", ", missing: hole", out=f"part{i}") for i in range(2)]
check("two receivers", [x.end() for x in r + [s]] == [0, 0, 0], [x.text for x in r + [s]])
parts = [got(f"part{i}") for i in range(2)]
check("two receivers: frames", sum(map(len, parts)) == 200, parts)

# ---- publish and subscribe
s = Run("send", SENDER % (0, "bind: ipc://x.sock, pattern: pub, topic: cam1"))
r = receiver("connect: ipc://x.sock", ", pattern: sub, topic: cam1, frames: 5")
sub = sock(zmq.SUB, SUBSCRIBE=b"cam1")
sub.connect(ipc("x.sock"))
parts = sub.recv_multipart()
check("pub: pyzmq", parts[0] == b"cam1" and array(parts[1:]).shape == (4, 8), parts)
check("pub: gpipe", r.end() == 0 and sorted(got())[0] == 0, r.text)
check("pub: Ctrl-C", s.end(signal.SIGINT) == 130, s.text)
pub = sock(zmq.XPUB)
pub.bind(ipc("pub"))
r = receiver("connect: ipc://pub", ", pattern: sub, topic: a")
check("sub: subscribes", pub.recv() == b"\1a")
for topic, k in [(b"ab", 9), (b"a", 0), (b"b", 9), (b"a", 1)]:
    pub.send_multipart([topic, *number(k)])
pub.send_multipart([b"ab", *END])
pub.send_multipart([b"a", *number(2)])
pub.send_multipart([b"a", *END])
check("sub: its topic", r.end() == 0 and [int(x[0, 0]) for _, x in sorted(got().items())] == [0, 100, 200], r.text)
sub = sock(zmq.SUB, SUBSCRIBE=b"")
sub.bind(ipc("end"))
s = Run("send", BUFFERS + """
stages:
  - {use: read, path: stdin, out: x}
  - {use: send, connect: ipc://end, pattern: pub}
""", stdin=subprocess.PIPE)
n = 0
while not sub.poll(10):                # until it knows of the subscription
    s.p.stdin.buffer.write(frame(n).tobytes()), s.p.stdin.buffer.flush()
    n += 1
s.p.stdin.close()
numbers, last = [], {}
while not last.get("end"):
    last = json.loads(sub.recv_multipart()[0])
    numbers.append(last["frame"])
s.p.stdin = None
check("pub: the end", s.end() == 0 and last["frame"] == n and numbers == list(range(numbers[0], n + 1)), (s.text, numbers))

# ---- no room: frames are dropped, the others keep their numbers
pull = sock(zmq.PULL, RCVHWM=1)
pull.bind(ipc("full"))
put("mark.lua", f"function process(f, x, y)\n  y:copy(x)\n  if f.index == 29999 then io.open('{path('mark')}', 'w'):close() end\nend\n")
s = Run("send", """
buffers: {x: {dtype: u32, shape: [16384]}, y: {dtype: u8, shape: [1]}}
stages:
  - {use: generate, pattern: ramp, frames: 30000, out: x}
  - {use: lua, script: mark.lua}
  - {name: out, use: send, connect: ipc://full, queue: 1, when_full: drop-newest}
  - {use: read, path: stdin, out: y}
  - {use: discard}
""", stdin=subprocess.PIPE)                # as long as that is open others do not wait for 'out' alone
check("no room: all are made", until(lambda: os.path.exists(path("mark"))), s.p.poll())
there, numbers = {}, []
while True:
    parts = pull.recv_multipart()
    h = json.loads(parts[0])
    numbers.append((h["frame"], h.get("dropped", 0)))
    if h.get("end"):
        break
    check_first = array(parts)[0] == (h["frame"] * 16384) % 2**32
    if not check_first:
        check("no room: data", False, (h, array(parts)[:3]))
        break
s.p.stdin.close()
s.p.stdin = None
check("no room: ends", s.end() == 0, s.text)
check("no room: numbers", all(b - a == 1 + d for (a, _), (b, d) in zip(numbers[:-2], numbers[1:-1]))
      and numbers[-1][0] == 30000 and numbers[-1][0] - numbers[-2][0] == 1 + numbers[-1][1], numbers)
check("no room: some are dropped", len(numbers) < 30000 and sum(x["full"] for x in s.account["sources"]) == 30000 - len(numbers) + 1, (len(numbers), s.account))
pull.close()

# ---- messages that are no frames
head = json.dumps({"dtype": "float32", "shape": [4, 8]}).encode()
data = frame(0).tobytes()
BAD = [("empty", [b""], "message 1 is not an object of JSON"), ("one part", [head], "has 1 part, and it is one of 2"),
       ("three parts", [head, data, data], "has 3 parts, and it is one of 2"), ("many parts", [head] + 1000 * [b"x"], "has 1001 parts"),
       ("no JSON", [b"\xff\xfe{", data], "is not an object of JSON"), ("cut", [head[:-3], data], "is not an object of JSON: "),
       ("a list", [b"[1]", data], "is not an object of JSON"), ("nothing", [b"{}", data], "has no 'dtype'"),
       ("no shape", [b'{"dtype":"float32"}', data], "has no 'shape'"), ("gpipe's own dtype", [b'{"dtype":"f32","shape":[4,8]}', data], "has the dtype 'f32', and not one of NumPy's"),
       ("u8", [b'{"dtype":"u8","shape":[4,8]}', data], "has the dtype 'u8'"), ("dtype", [b'{"dtype":["a"],"shape":[4,8]}', data], "has the dtype ''"),
       ("shape", [b'{"dtype":"float32","shape":4}', data], "'shape' that is not a list"), ("axes", [b'{"dtype":"float32","shape":[1,1,1,1,1,1,1,1,1]}', data], "at most 8 numbers"),
       ("negative", [b'{"dtype":"float32","shape":[-4,8]}', data], "not of whole numbers"), ("fraction", [b'{"dtype":"float32","shape":[4.5,8]}', data], "not of whole numbers"),
       ("huge", [b'{"dtype":"float32","shape":[4611686018427387904,4611686018427387904]}', data], "and they have 128 bytes"),
       ("huger", [b'{"dtype":"float32","shape":[99999999999999999999,8]}', data], "not of whole numbers"),
       ("short", [head, data[:-1]], "says that its data are f32 [4, 8], and they have 127 bytes"), ("long", [head, data + b"x"], "they have 129 bytes"),
       ("no data", [head, b""], "they have 0 bytes"), ("number", [b'{"dtype":"float32","shape":[4,8],"frame":-1}', data], "has a 'frame' that is not a whole number"),
       ("time", [b'{"dtype":"float32","shape":[4,8],"time_ns":"now"}', data], "has a 'time_ns'"),
       ("path", [b'{"dtype":"float32","shape":[4,8],"name":"../../x"}', data], "in which there is a '/'"), ("NUL", [b'{"dtype":"float32","shape":[4,8],"name":"a\\u0000b"}', data], "is not an object of JSON: text cannot hold"),
       ("long name", [b'{"dtype":"float32","shape":[4,8],"name":"' + 300 * b"x" + b'"}', data], "a text of at most 255 bytes"),
       ("meta", [b'{"dtype":"float32","shape":[4,8],"meta":{"exposure":"much"}}', data], "says that its 'exposure' is 'much'"),
       ("deep", [b'{"dtype":' + 30000 * b"[", data], "is not an object of JSON"), ("long header", [b"{" + (1 << 16) * b" ", data], "a header has at most 65536"),
       ("another type", message(0, frame(0, np.float64)), "what came is f64 [4, 8], and f32 [4, 8] is declared"),
       ("another shape", number(0, a=None) and message(0, frame(0, shape=(4, 9)), frame=7), "what came, number 7 of its sender, is f32 [4, 9], and f32 [4, 8] is declared"),
       ("more rows", message(0, frame(0, shape=(5, 8))), "what came is f32 [5, 8]"), ("another axis", message(0, frame(0, shape=(32,))), "what came is f32 [32]"),
       ("an end with data", [b'{"end":true}', data], "has 2 parts, and it is one of 1")]
r = receiver(pushes())
push.send_multipart(message(0))
check("damaged: before", until(lambda: 0 in got()))
push.send_multipart(BAD[0][1])
check("damaged: an error", r.end() == 1 and "stage 'in', frame 1: message 2 is not an object of JSON" in r.text and '"line": 5' in r.text, r.text)
r = receiver(pushes(), keys=", on_error: drop")
for name, parts, what in BAD:
    push.send_multipart(parts)
    push.send_multipart(message(7))
push.send_multipart(END)
check("damaged: dropped", r.end() == 0 and sorted(got()) == list(range(1, 2 * len(BAD), 2)) and all((x == frame(7)).all() for x in got().values()), r.text)
r = receiver(pushes(), keys=", on_error: drop")
for m in [message(0), [message(1)[0], b"xx"], message(2), message(3), END]:
    push.send_multipart(m)
check("damaged data: the frames behind keep their numbers", r.end() == 0 and sorted(got()) == [0, 2, 3] and r.account["sources"][0]["failed"] == 1
      and all((got()[k] == frame(k)).all() for k in (0, 2, 3)), r.text)
for name, parts, what in BAD[1:]:
    p = spawn("run", "-q", "--device", "cpu", put("damaged.yaml", f"""
metadata: [exposure]
buffers: {{raw: {{dtype: f32, shape: [4, 8]}}}}
stages:
  - {{name: in, use: receive, {pushes()}, out: raw}}
  - {{use: discard}}
"""), stderr=subprocess.PIPE)
    push.send_multipart(parts)
    text = p.communicate(timeout=60)[1]
    check("damaged, " + name, p.returncode == 1 and what in text and "stage 'in', frame 0" in text and ":5:" in text, text)

# bytes that are no ZeroMQ at all
port = free_port()
r = receiver(f"bind: 'tcp://127.0.0.1:{port}'", keys=", on_error: drop")
def connects():
    try:
        return socket.create_connection(("127.0.0.1", port))
    except OSError:
        return None
box = []
check("no ZeroMQ: listens", until(lambda: box.append(connects()) or box[-1]))
box[-1].sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(range(256)) * 64)
good = sock(zmq.PUSH)
good.connect(f"tcp://127.0.0.1:{port}")
good.send_multipart(message(0))
good.send_multipart(END)
check("no ZeroMQ: goes on", r.end() == 0 and [(x == frame(0)).all() for x in got().values()] == [True], r.text)

# ---- what is refused
put("plain", "somebody's")
taken = sock(zmq.PULL)
port = taken.bind_to_random_port("tcp://*")
taken.bind(ipc("taken"))
LEND = BUFFERS + "stages:\n  - " + GENERATE + "\n  - {use: send, %s}\n"
for options, code, what in [("bind: 'ipc://plain'", 4, "there is a file of that name, which is no socket"), ("bind: ipc://taken", 4, "another listens there"),
                            (f"bind: 'tcp://*:{port}'", 4, "Address already in use"), ("bind: 'tcp://*:5555', connect: 'tcp://a:1'", 3, "exclude each other"),
                            ("pattern: push", 3, "'bind'"), ("bind: 'udp://*:1'", 3, "neither tcp://HOST:PORT nor ipc://PATH"), ("bind: 'ipc://'", 3, "has no path"),
                            ("bind: 'tcp://*:99999'", 3, "does not end with a port"), ("connect: 'tcp://a'", 3, "does not end with a port"), ("bind: 'tcp://192.0.2.77:5555'", 4, "cannot bind"), ("connect: 'tcp://a b:1'", 4, "cannot connect"), ("bind: 'ipc://" + 120 * "x" + "'", 4, "cannot bind"),
                            ("bind: ipc://none/x", 4, "cannot bind"), ("connect: ipc://x, topic: a", 3, "topic"), ("connect: ipc://x, pattern: pub, receivers: 2", 3, "receivers")]:
    put("bad.yaml", LEND % options)
    p = subprocess.run([gpipe, "run", "-q", "--device", "cpu", path("bad.yaml")], env=env, capture_output=True, text=True, timeout=60)
    check("refused: " + options, p.returncode == code and what in p.stderr and ":4:" in p.stderr, p)
check("refused: the file is as it was", bytes_of(path("plain")) == b"somebody's")
# a socket that a killed process left
left = socket.socket(socket.AF_UNIX)
left.bind(path("left"))
left.close()
r = receiver("bind: ipc://left", ", frames: 1")
good = sock(zmq.PUSH)
good.connect(ipc("left"))
good.send_multipart(message(0))
check("a socket that was left", r.end() == 0, r.text)

# ---- without the library
missing = path("missing")
for name in ("libzmq.so.5", "libzmq.so"):
    put("missing/" + name, 100 * "no library ")
put("bad.yaml", LEND % "bind: ipc://x")
p = subprocess.run([gpipe, "run", "-q", "--device", "cpu", path("bad.yaml")], env=dict(env, LD_LIBRARY_PATH=missing), capture_output=True, text=True, timeout=60)
check("no library", p.returncode == 4 and "install libzmq5 (Debian, Ubuntu)" in p.stderr and "stage 'send' needs libzmq.so.5" in p.stderr, p)
p = subprocess.run([gpipe, "check", "-q", path("bad.yaml")], env=dict(env, LD_LIBRARY_PATH=missing), capture_output=True, text=True, timeout=60)
check("no library: check", p.returncode == 0, p)
total("network")
