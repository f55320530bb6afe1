#!/usr/bin/env python3
"""lsp.py GPIPE: `gpipe lsp` as editors speak with it: messages in pieces, several at once and broken ones, texts that
are being typed, places in UTF-16; what it says is compared with `gpipe check`. With nvim, Neovim's client, too. --speed
prints how long it takes from an edit until what is wrong is there."""
import glob, json, os, queue, re, shutil, statistics, subprocess, sys, threading, time
from urllib.parse import quote
from kit import check, env, gpipe, path, put, spawn, total

os.chdir(os.path.join(os.path.dirname(__file__), ".."))


def framed(message, head="Content-Length: {n}\r\n\r\n"):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return head.format(n=len(body)).encode() + body


class Server:
    def __init__(self, *args, ready=True):
        self.p = spawn("lsp", *args, text=False, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.got, self.id, self.told = queue.Queue(), 0, []
        threading.Thread(target=self.read, daemon=True).start()
        if ready:
            self.answer = self.ask("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": {}})
            self.tell("initialized", {})

    def read(self):
        while line := self.p.stdout.readline():
            n = int(re.fullmatch(rb"Content-Length: (\d+)\r\n", line)[1])
            assert self.p.stdout.readline() == b"\r\n"
            self.got.put(json.loads(self.p.stdout.read(n)))
        self.got.put(None)

    def send(self, *raw):
        for part in raw:
            self.p.stdin.write(part)
            self.p.stdin.flush()

    def tell(self, method, params=None):
        self.send(framed({"jsonrpc": "2.0", "method": method, "params": params}))

    def next(self):
        return self.got.get(timeout=60)

    def wait(self, is_it):
        """The first message of which is_it() is true; those before it go to `told`."""
        while not is_it(m := self.next() or {"end": True}) and "end" not in m:
            self.told.append(m)
        return m

    def ask(self, method, params=None):
        self.id += 1
        self.send(framed({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}))
        return self.wait(lambda m: m.get("id") == self.id)

    def open(self, text, uri, version=1):
        self.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "yaml", "version": version,
                                                            "text": text}})
        return self.diagnostics(uri, version)

    def change(self, uri, version, *changes):
        self.tell("textDocument/didChange", {"textDocument": {"uri": uri, "version": version},
                                             "contentChanges": [*changes]})
        return self.diagnostics(uri, version)

    def diagnostics(self, uri, version):
        m = self.wait(lambda m: m.get("method") == "textDocument/publishDiagnostics" and m["params"]["uri"] == uri
                      and m["params"]["version"] == version)
        return m.get("params", {}).get("diagnostics")

    def at(self, what, uri, line, character):
        return self.ask("textDocument/" + what, {"textDocument": {"uri": uri},
                                                 "position": {"line": line, "character": character}})["result"]

    def end(self):
        self.ask("shutdown")
        self.tell("exit")
        return self.p.wait(60)


def uri_of(name):
    return "file://" + quote(os.path.abspath(name))


def place(text, mark="|"):
    """A text without its mark, and where that was, in UTF-16."""
    before, after = text.split(mark)
    return before + after, before.count("\n"), len(before.rpartition("\n")[2].encode("utf-16-le")) // 2


# ---- diagnostics: those of `gpipe check`, of every pipeline in the tree, and of those with mistakes

def printed(name):
    """What `gpipe check` prints: (line, column, severity, message)."""
    out = subprocess.run([gpipe, "check", name], env=env, capture_output=True, text=True, errors="replace").stderr
    found, dropped = [], 0
    for line in out.splitlines():
        m = re.match(re.escape(name) + r"(?::(\d+))?(?::(\d+))?: (error|warning): (.*)", line)
        if m:
            found.append((int(m[1] or 1) - 1, int(m[2] or 1) - 1, 1 if m[3] == "error" else 2, m[4]))
    return found


def speed():
    """ms, of spaces typed one by one in each pipeline of the tree, which stays valid: all passes are run."""
    s, took = Server(), {}
    for name in glob.glob("examples/*/*.yaml") + glob.glob("pipelines/*.yaml"):
        text, each, u = open(name).read(), [], uri_of(name)
        line = next(i for i, l in enumerate(text.split("\n")) if "use: " in l)
        at = text.split("\n")[line].index("use: ") + len("use: ")
        s.open(text, u)
        for n in range(20):
            start = time.perf_counter()
            s.change(u, n + 2, {"range": {"start": {"line": line, "character": at}, "end": {"line": line, "character": at}},
                                "text": " "})
            each.append(1e3 * (time.perf_counter() - start))
        took[name] = statistics.median(each), max(each)
    all_of = [m for m, _ in took.values()]
    slow = max(took, key=took.get)
    print(f"ms from an edit to its diagnostics, {len(took)} pipelines: median {statistics.median(all_of):.2f}; the slowest is "
          f"{slow}, {took[slow][0]:.2f}; the slowest edit of all {max(m for _, m in took.values()):.2f}")


if "--speed" in sys.argv:
    sys.exit(speed())
s = Server()
check("initialize", s.answer["result"]["capabilities"]["textDocumentSync"]["change"] == 2, s.answer)
some = sorted(glob.glob("examples/*/*.yaml") + glob.glob("pipelines/*.yaml") + glob.glob("tests/bad/resolve_*.yaml"))
for name in some[::1 if os.environ.get("GPIPE_TESTS") == "all" else 3]:
    name = os.path.abspath(name)
    text = open(name, newline="").read()
    got = [(d["range"]["start"]["line"], d["range"]["start"]["character"], d["severity"], d["message"].split("\n")[0])
           for d in s.open(text, uri_of(name))]
    check("as check: " + name, got == printed(name), (got, printed(name)))

typo = ("stages:\n  - {use: generate, frames: 2, out: made}\n  - {use: blurr, sigma: 2}\n  - {use: discard}\n"
        "buffers: {made: {dtype: f32, shape: [8, 8]}}\n")
u = uri_of(path("typo.yaml"))
d = s.open(typo, u)
check("a typo", [x["range"] for x in d] == [{"start": {"line": 2, "character": 10}, "end": {"line": 2, "character": 15}}]
      and d[0]["severity"] == 1 and d[0]["source"] == "gpipe" and "did you mean 'blur'" in d[0]["message"], d)


def typed(line, a, b, text):
    return {"range": {"start": {"line": line, "character": a}, "end": {"line": line, "character": b}}, "text": text}


check("mended by an edit", s.change(u, 2, typed(2, 14, 15, "")) == [], "")
check("two edits", len(s.change(u, 3, typed(2, 10, 14, "gra"), typed(2, 13, 13, "yy"))) == 1, "")
check("the whole text", s.change(u, 4, {"text": typo.replace("rr", "r")}) == [], "")
over = {"start": {"line": 2, "character": 0}, "end": {"line": 3, "character": 0}}
check("an edit over lines", s.change(u, 5, {"range": over, "text": ""}) == [], "")
check("an edit behind the end", s.change(u, 6, typed(99, 0, 9, "depth: 2\n")) == [], "")
check("no YAML", [x["severity"] for x in s.change(u, 7, {"text": "stages: [{use: ]\n"})] == [1], "")
check("empty", len(s.change(u, 8, {"text": ""})) == 1, "")

# ---- UTF-16: a character outside of the BMP has two units
text = '# \U0001f600\nvars: {a: "\U0001f600\u00e9"}\nstages:\n  - {path: "\U0001f600", usee: read}\n'
d = s.open(text, uri_of(path("wide.yaml")))
check("UTF-16", [x["range"] for x in d]
      == [{"start": {"line": 3, "character": 17}, "end": {"line": 3, "character": 21}}], d)
d = s.change(uri_of(path("wide.yaml")), 2, typed(3, 11, 15, "n"), typed(3, 15, 16, ""))
check("an edit in UTF-16", not any("usee" in x["message"] for x in d), d)
check("within a character", s.change(uri_of(path("wide.yaml")), 3, typed(1, 12, 12, "")) is not None, "")
d = s.open(typo.replace("\n", "\r\n"), uri_of(path("crlf.yaml")))
check("CR LF", [x["range"]["end"] for x in d] == [{"line": 2, "character": 15}], d)

# ---- completion: a text with a mark, labels that must be offered, labels that must not be
top = "stages:\n  - {use: generate, shape: [4, 4], frames: 2, out: first}\n"
for text, offered, not_offered in [
        ("|", "stages depth vars buffers", "use in"),
        (top + "|", "depth device", "stages use"),
        ("de|\n" + top, "depth device", "stages use"),
        (top + "launch: |", "graph stream persistent", "auto"),
        (top + "launch: s|\n", "graph stream", ""),
        (top + "sync: \n  |", "", "graph use"),
        (top + "depth: |", "auto", ""),
        (top + "  - |", "use name in out", "depth sigma"),
        (top + "  - u|\n", "use name", "depth"),
        (top + "  - use: |", "blur generate median", "first use"),
        (top + "  - use: bl|ur\n    sigma: 2\n", "blur", "first"),
        (top + "  - use: blur\n    |", "sigma in out name", "use depth"),
        (top + "  - use: blur\n    |\n  - use: discard\n", "sigma in out name", "use depth"),
        (top + "  - use: blur\n    si|gma: 2\n", "sigma", "use"),
        (top + "  - use: blur\n    in: |", "first", "sigma use"),
        (top + "  - {use: blur, |}", "sigma in", "use first"),
        (top + "  - {use: blur, |\n  - {use: discard}\n", "sigma in", "use first"),
        (top + "  - {use: |\n  - {use: discard}\n", "blur discard", "use first"),
        (top + "  - {use: blur, in: |, sigma: 2}", "first", "use sigma"),
        (top + "  - {use: concat, in: [first, |", "first", "use"),
        (top + "  - {use: concat, in: [\n      first,\n      |\n    ]}", "first", "use"),
        (top + "  - {|, use: blur}", "sigma in", "use"),
        (top + "  - {use: blur, edge: |}", "nearest zero", "first use"),
        (top + "  - {use: cast, dtype: |}", "u8 f32 c64", "first"),
        (top + "  - use: cast\n    dtype: \"|\"\n", "u8 f32 c64", "first"),
        (top + "  - {use: read, loop: |}", "true false", ""),
        (top + "  - {use: matmul, in: {|}}", "a b", "use first"),
        (top + "  - {use: matmul, in: {a: |}}", "first", "use"),
        (top + "  - use: kernel\n    source: |\n", "", "use"),
        ("buffers:\n  raw: {|}\n" + top, "dtype shape const", "use raw"),
        ("buffers:\n  raw:\n    |\n" + top, "dtype shape const", "use raw"),
        ("buffers:\n  |\n" + top, "first", "use depth"),
        ("buffers:\n  raw: {like: |}\n" + top, "first raw", "use"),
        ("stages:\n- |\n", "use", "depth"),
        ("stages:\n- use: blur\n  |\n", "sigma", "use"),
        ("stages:\n- use: blur\n  # a comment: {\n  |\n", "sigma", "use"),
        ("stages:\n- use: expr\n  expr: \"a {\n  |\n", "in out", "use"),
        ("stages:\n- use: kernel\n  source: |\n    x = {^}\n", "", "use in"),
        ("x-blur: &b {use: blur, |}\n" + top, "sigma", "use depth"),
        ("# |\n" + top, "", "")]:
    text, line, character = place(text, "^" if "^" in text else "|")
    v = uri_of(path("typed.yaml"))
    s.tell("textDocument/didOpen", {"textDocument": {"uri": v, "version": 1, "text": top + "  - {use: discard}\n"}})
    s.diagnostics(v, 1)
    s.change(v, 2, {"text": text})
    items = s.at("completion", v, line, character)
    labels = {i["label"] for i in items}
    check(f"completion: {text!r} {line}:{character}", set(offered.split()) <= labels
          and not set(not_offered.split()) & labels and len(labels) == len(items), labels)

text, line, character = place(top + "  - {use: bl|}\n")
s.change(v, 3, {"text": text})
item = [i for i in s.at("completion", v, line, character) if i["label"] == "blur"][0]
check("what a completion replaces", item["textEdit"] == {"newText": "blur", "range": {
    "start": {"line": 2, "character": 10}, "end": {"line": 2, "character": 12}}} and item["detail"], item)
text, line, character = place(top + "  - {use: blur, s|}\n")
s.change(v, 4, {"text": text})
items = s.at("completion", v, line, character)
check("a key gets its colon", [i["textEdit"]["newText"] for i in items if i["label"] == "sigma"] == ["sigma: "], "")

# ---- hover and definition
text = """\
buffers:
  raw: {dtype: f32, shape: [4, 6]}
stages:
  - {name: made, use: generate, frames: 2, out: raw}
  - {use: transpose, name: turned}
  - {use: group, in: turned, frames: 2, out: pairs}
  - {use: scale, in: raw, a: 2}
  - {use: cast, dtype: u8, out: small}
  - {use: discard, in: pairs}
  - {use: discard, in: small}
"""
d = s.open(text, u)
check("hover: sound", d == [], d)
for word, line, has in [
        ("transpose", 4, "transpose - "), ("frames", 5, "integer"), ("use", 5, "its kind"),
        ("u8", 7, r"\*\*dtype\*\* "),
        ("turned", 5, r"turned  f32 \[6, 4\].*turned -> group"), ("raw", 6, "made -> turned"), ("raw", 1, "made -> "),
        ("dtype", 1, "the type of its elements"), ("pairs", 8, "1 frame per 2 frames"), ("stages", 2, "what is done"),
        ("small", 9, "u8"), ("scale", 6, "scale - "), ("2}", 6, r"\*\*a\*\* ")]:
    h = s.at("hover", u, line, text.split("\n")[line].index(word))
    check(f"hover: {word}", h and re.search(has, h["contents"]["value"], re.S), h)
check("hover: nothing", s.at("hover", u, 2, 8) is None, "")
for word, line, lines in [("raw", 6, [1, 3]), ("turned", 5, [4]), ("pairs", 8, [5]), ("scale", 6, [])]:
    g = s.at("definition", u, line, text.split("\n")[line].index(word))
    check(f"definition: {word}", [x["range"]["start"]["line"] for x in g] == lines and all(x["uri"] == u for x in g), g)
s.change(u, 9, {"text": text + "  - {use: ["})
h = s.at("hover", u, 6, text.split("\n")[6].index("raw"))
check("hover in a text that is no YAML: the last sound one's types", "f32" in h["contents"]["value"], h)
os.makedirs(path("there \u00fc%41"))
put("there \u00fc%41/kept.raw", "x" * 16)
d = s.open("stages:\n  - {use: read, path: kept.raw, out: a}\n  - {use: discard}\n"
           "buffers: {a: {dtype: u8, shape: [4]}}\n", uri_of(path("there \u00fc%41/p.yaml")))
check("files beside the document", d == [], d)
d = s.open("stages:\n  - {use: read, path: nothing.png}\n  - {use: discard}\n", "untitled:Untitled-1")
check("a document without a file", [x["range"]["start"]["line"] for x in d] == [1], d)
d = s.open(f"stages:\n  - {{use: read, command: [touch, {path('ran')}], out: a}}\n"
           f"  - {{use: write, path: {path('written')}.npy}}\n"
           "buffers: {a: {dtype: u8, shape: [4]}}\n", uri_of(path("runs.yaml")))
check("it runs and writes nothing", d == [] and not glob.glob(path("ran")) and not glob.glob(path("written*")), d)
s.tell("textDocument/didClose", {"textDocument": {"uri": u}})
check("closed", s.wait(lambda m: m.get("params", {}).get("uri") == u)["params"]["diagnostics"] == [], "")
h = s.ask("textDocument/hover", {"textDocument": {"uri": u}, "position": {"line": 0, "character": 0}})
check("closed: no hover", h["error"]["code"] == -32602, h)
check("the end", s.end() == 0, s.p.returncode)

# ---- the protocol: raw bytes, the code of the error that they give (None: none), does the server go on?
hover = {"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover", "params": {}}
for name, raw, code in [
        ("no method of the protocol", framed({"jsonrpc": "2.0", "id": "a", "method": "textDocument/nothing"}), -32601),
        ("an optional request", framed({"jsonrpc": "2.0", "id": 1, "method": "$/nothing"}), -32601),
        ("a notification that is not known", framed({"jsonrpc": "2.0", "method": "$/cancelRequest"}), None),
        ("no parameters", framed({"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover"}), -32602),
        ("parameters of another type", framed({**hover, "params": [1]}), -32602),
        ("a position that is none", framed({**hover, "params": {"textDocument": {"uri": "u"}, "position": 1}}), -32602),
        ("a notification as a request", framed({"jsonrpc": "2.0", "id": 1, "method": "textDocument/didOpen"}), -32601),
        ("initialized twice", framed({"jsonrpc": "2.0", "id": 1, "method": "initialize"}), -32600),
        ("no object", framed([1]), -32600),
        ("an empty object", framed({}), -32600),
        ("a method that is a number", framed({"jsonrpc": "2.0", "id": 1, "method": 5}), -32600),
        ("an answer to nothing", framed({"jsonrpc": "2.0", "id": 1, "result": None}), None),
        ("not JSON", framed(b"{nothing}"), -32700),
        ("deep JSON", framed(b"[" * 100000), -32700),
        ("not UTF-8", framed(b'{"a": "\xff"}'), -32700),
        ("an empty body", framed(b""), -32700),
        ("no length", b"Content-Length: \r\n\r\n", -32700),
        ("a negative length", b"Content-Length: -5\r\n\r\n", -32700),
        ("a length that is no number", b"Content-Length: 5x\r\n\r\n", -32700),
        ("a huge length", b"Content-Length: 99999999999999999999999\r\n\r\n", -32700),
        ("a length that is too small", b"Content-Length: 5\r\n\r\n" + json.dumps(hover).encode(), -32700),
        ("a header without an end", b"Content-Length: 5" + b" " * 8000, -32700),
        ("no header", b"hello\r\n\r\n", None),
        ("another header, too", framed(hover, "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n"
                                              "Content-Length: {n}\r\n\r\n"), -32602),
        ("a header in other letters", framed(hover, "content-length:{n} \r\n\r\n"), -32602),
        ("... behind it", framed(hover, "Content-Length: {n}\r\nContent-Type: x\r\n\r\n"), -32602)]:
    s = Server()
    s.send(raw)
    h = s.ask("textDocument/hover", {})
    codes = [m["error"]["code"] for m in s.told if "error" in m]
    check("protocol: " + name, codes == ([code] if code else []) and h["error"]["code"] == -32602, (s.told, h))
    check("protocol: " + name + ": the end", s.end() == 0, s.p.returncode)

s = Server()
s.send(*(bytes([b]) for b in framed({"jsonrpc": "2.0", "id": 9, "method": "textDocument/hover"})))
check("byte by byte", s.wait(lambda m: m.get("id") == 9)["error"]["code"] == -32602, "")
s.send(b"".join(framed({"jsonrpc": "2.0", "id": i, "method": "nothing"}) for i in range(10, 60)))
check("many at once", [s.next()["id"] for i in range(50)] == list(range(10, 60)), "")
s.send(framed({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
    "textDocument": {"uri": "u", "version": 2}, "contentChanges": []}}))
check("an edit of no document is told", "didChange" in s.next()["params"]["message"], "")
s.open("", "u", 0)
s.send(b"".join(framed({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
    "textDocument": {"uri": "u", "version": i}, "contentChanges": [{"text": typo[:i]}]}})
                for i in range(1, len(typo) + 1)))
check("a text that is typed fast", len(s.diagnostics("u", len(typo))) == 1, "")
s.send(framed({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
    "textDocument": {"uri": "u", "version": 999},
    "contentChanges": [{"text": ""}, {"text": "", "range": {"start": {"line": -1}, "end": {}}}]}}))
check("a change of no place is told", "no place" in s.next()["params"]["message"], "")
check("... what is checked has the version before it", s.next()["params"]["version"] == len(typo), "")
check("shutdown", s.ask("shutdown")["result"] is None, "")
check("... a request behind it", s.ask("textDocument/hover", {})["error"]["code"] == -32600, "")
s.tell("exit")
check("... exit", s.p.wait(60) == 0, s.p.returncode)
s = Server(ready=False)
check("before initialize", s.ask("textDocument/hover", {})["error"]["code"] == -32002, "")
s.tell("exit")
check("exit without shutdown", s.p.wait(60) == 1, s.p.returncode)
s = Server()
s.p.stdin.close()
check("the client is gone", s.p.wait(60) == 1, s.p.returncode)
s = Server("--set", "vars.n=2")
d = s.open("vars: {n: null}\nstages:\n  - {use: generate, frames: n, out: a}\n  - {use: discard}\n"
           "buffers: {a: {dtype: u8, shape: [n]}}\n", "u")
check("--set", d == [], d)
check("--set: the end", s.end() == 0, s.p.returncode)

# ---- Neovim
if shutil.which("nvim"):
    camera = os.path.abspath("examples/camera/camera.yaml")
    script = put("client.lua", """
local function say(...) io.stdout:write(string.format(...), "\\n") end
local function wait(what, f) if not vim.wait(60000, f, 20) then say("no %s", what) vim.cmd("cquit 1") end end
""" + re.search(r"```lua\n(.*?)```", open("engine/cli/topics/editor.md").read(), re.S)[1] + """
vim.cmd("edit " .. vim.fn.fnameescape(vim.env.CAMERA))
vim.bo.filetype = "yaml"
local b, id = 0, nil
wait("client", function() id = next(vim.lsp.buf_get_clients(b)) return id end)
local line = vim.fn.search("use: median, in: dark") - 1
local col = vim.fn.getline(line + 1):find("median") - 1
vim.api.nvim_buf_set_text(b, line, col, line, col + 6, {"medain"})
wait("diagnostic", function() return #vim.diagnostic.get(b) > 0 end)
for _, d in ipairs(vim.diagnostic.get(b)) do say("diagnostic %d:%d-%d %s", d.lnum, d.col, d.end_col, d.message) end
local function ask(method, l, c)
    local r = vim.lsp.buf_request_sync(b, method, {textDocument = vim.lsp.util.make_text_document_params(b),
                                                   position = {line = l, character = c}}, 60000)
    return r[id].result
end
for _, i in ipairs(ask("textDocument/completion", line, col + 2)) do
    if i.label == "median" then vim.lsp.util.apply_text_edits({i.textEdit}, b, "utf-16") say("completed") end
end
vim.api.nvim_buf_set_text(b, line, col, line, col + #"mediandain", {"median"})
wait("no diagnostic", function() return #vim.diagnostic.get(b) == 0 end)
say("hover %s", ask("textDocument/hover", line, col).contents.value:match("median %- [^\\n]*"))
local g = ask("textDocument/definition", vim.fn.search("in: {raw: raw") - 1, vim.fn.getline("."):find("raw: raw") + 5)
say("defined %d", #g)
vim.lsp.stop_client(id)
wait("end", function() return vim.lsp.get_client_by_id(id) == nil end)
vim.cmd("qall!")
""")
    r = subprocess.run(["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", f"luafile {script}"],
                       capture_output=True, text=True, timeout=300,
                       env=dict(env, CAMERA=camera, PATH=os.path.dirname(gpipe) + ":" + os.environ["PATH"],
                                HOME=path("."), XDG_STATE_HOME=path(".")))
    check("Neovim", r.returncode == 0 and "did you mean 'median'" in r.stdout and "completed" in r.stdout
          and "hover median - " in r.stdout and "defined 2" in r.stdout, r.stdout + r.stderr)
else:
    print("SKIPPED, no nvim: whether Neovim understands 'gpipe lsp'")
total("lsp")
