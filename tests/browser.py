"""browser.py - a headless Chromium that is spoken to through a pipe, in the DevTools protocol
(chromedevtools.github.io/devtools-protocol). Needs nothing but Python."""
import base64, fcntl, json, os, select, shutil, signal, subprocess, tempfile, time

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")


def find():
    """The program; None where there is none that starts."""
    for program in filter(None, map(shutil.which, NAMES)):
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
        if said.returncode == 0 and "Chrom" in said.stdout:
            return program
    return None


class Browser:
    """One page. `said`: what its console had and what it threw; `asked`: what it loaded."""

    def __init__(self, width=1280, height=900):
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        low = [*os.pipe(), *os.pipe(), os.open(os.path.join(self.home.name, "log"), os.O_CREAT | os.O_WRONLY)]
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in low]      # none is 1 to 4 there
        for fd in low:
            os.close(fd)
        theirs_in, self.out, self.inp, theirs_out, log = high
        program = find()
        self.pid = os.posix_spawn(
            program,
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
             f"--user-data-dir={self.home.name}/profile", "--hide-scrollbars", "about:blank"],
            dict(os.environ, HOME=self.home.name), setpgroup=0,
            file_actions=[(os.POSIX_SPAWN_DUP2, theirs_in, 3), (os.POSIX_SPAWN_DUP2, theirs_out, 4),
                          (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)])
        for fd in (theirs_in, theirs_out, log):
            os.close(fd)
        self.rest, self.n, self.session = b"", 0, None
        self.events, self.said, self.asked = [], [], []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(domain + ".enable")
        self.resize(width, height)

    def read(self, seconds):
        """One message, or None after so long."""
        until = time.monotonic() + seconds
        while b"\0" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.inp], [], [], left)[0]:
                return None
            got = os.read(self.inp, 1 << 20)
            if not got:
                raise RuntimeError("the browser is gone")
            self.rest += got
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def heard(self, m):
        what, p = m.get("method"), m.get("params", {})
        if what == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
        elif what == "Runtime.exceptionThrown":
            d = p["exceptionDetails"]
            self.said.append(d.get("exception", {}).get("description", d["text"]))
        elif what == "Log.entryAdded":
            self.said.append(p["entry"]["text"])
        elif what == "Network.requestWillBeSent":
            self.asked.append(p["request"]["url"])
        self.events.append(what)

    def __call__(self, method, **params):
        self.n += 1
        n, m = self.n, {"id": self.n, "method": method, "params": params}
        if self.session:
            m["sessionId"] = self.session
        os.write(self.out, json.dumps(m).encode() + b"\0")
        while True:
            m = self.read(60)
            if m is None:
                raise RuntimeError(f"no answer to {method}")
            if m.get("id") == n:
                if "error" in m:
                    raise RuntimeError(f"{method}: {m['error']['message']}")
                return m["result"]
            self.heard(m)

    def open(self, url):
        self.said, self.asked, self.events = [], [], []
        self("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            m = self.read(60)
            if m is None:
                raise RuntimeError("the page does not load")
            self.heard(m)
        self.settle()

    def js(self, expression):
        """The value of an expression, which may be a promise."""
        r = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            d = r["exceptionDetails"]
            raise RuntimeError(d.get("exception", {}).get("description", d["text"]))
        return r["result"].get("value")

    def settle(self):
        """Until what was asked for is drawn."""
        self.js("new Promise(f => requestAnimationFrame(() => requestAnimationFrame(() => f(1))))")

    def resize(self, width, height, ratio=1):
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False)

    def media(self, media="", scheme="light"):
        self("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.settle()

    def mouse(self, kind, x, y, **more):
        self("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def move(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.settle()

    def click(self, x, y):
        self.drag(x, y, x, y)

    def drag(self, x, y, to_x, to_y, steps=4):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        for i in range(steps * (x != to_x or y != to_y)):
            self.mouse("mouseMoved", x + (to_x - x) * (i + 1) / steps,
                       y + (to_y - y) * (i + 1) / steps, button="left", buttons=1)
        self.mouse("mouseReleased", to_x, to_y, button="left", clickCount=1)
        self.settle()

    def wheel(self, x, y, dy, dx=0):
        self.mouse("mouseWheel", x, y, deltaX=dx, deltaY=dy)
        self.settle()

    def key(self, key, text=None):
        text = text or (key if len(key) == 1 else "\r" if key == "Enter" else None)
        code = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37,
                "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                 **({"text": text} if text and kind == "keyDown" else {}))
        self.settle()

    def picture(self, path, whole=True):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]))

    def pdf(self):
        return base64.b64decode(self("Page.printToPDF", preferCSSPageSize=True, printBackground=False)["data"])

    def close(self):
        self.session = None
        try:
            self("Browser.close")
        except (RuntimeError, OSError):
            pass
        for _ in range(100):
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                break
            time.sleep(0.05)
        else:
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.out)
        os.close(self.inp)
        self.home.cleanup()
