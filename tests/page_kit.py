"""page_kit.py - what tests/page.py asks of a page: pages to open, and how to look at one that is
open, by what stands on it and by the pixels of its timeline."""
import json, os, re, subprocess, sys, tempfile, time, browser, page_data

here = os.path.dirname(os.path.abspath(__file__))


class Kit:
    def __init__(self, maker, gpipe, shots):
        self.maker, self.gpipe, self.shots = maker, gpipe, shots
        self.tmp = tempfile.TemporaryDirectory()
        self.passed, self.failed = 0, []
        self.b = browser.Browser()

    def close(self):
        self.b.close()
        self.tmp.cleanup()

    def check(self, name, ok, what=""):
        if ok:
            self.passed += 1
        else:
            self.failed.append(name)
            print(f"FAILED: {name}: {what!r:.1500}")

    # == pages ==================================================================
    def path(self, name):
        return os.path.join(self.tmp.name, name)

    def put(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def make(self, name, report, trace, svg):
        """A page as `gpipe run --report` would write it. What is None is not there."""
        parts = [self.put(f"{name}.{kind}", text) if text is not None else "-" for kind, text in (
            ("report", json.dumps(report, ensure_ascii=False)),
            ("trace", json.dumps(trace, ensure_ascii=False) if trace else None), ("svg", svg))]
        with open(self.path(name + ".html"), "wb") as f:
            subprocess.run([self.maker, *parts], stdout=f, check=True)
        return "file://" + self.path(name + ".html")

    def plan(self, file):
        return subprocess.run([self.gpipe, "plan", "-q", "--device", "cpu", "--svg", file],
                              check=True, capture_output=True, text=True, encoding="utf-8").stdout

    def made(self, name, frames, svg=None, change=None, **how):
        """The page of a made-up run, with its report and trace after `change`."""
        stages = page_data.chain(**how)
        trace = page_data.trace(stages, frames)
        report = page_data.report(trace, stages)
        if change:
            change(report, trace)
        svg = svg or self.plan(os.path.join(here, "../pipelines/edges.yaml"))
        return self.make(name, report, trace, svg), report, trace

    # == an open page ===========================================================
    def opened(self, what, url, scheme="light", width=1280, height=900):
        b = self.b
        b.resize(width, height)
        b.media("", scheme)
        b.open(url)
        self.check(f"{what}: nothing on the console", not b.said, b.said)
        # the page is of one piece: its own file, and no more
        self.check(f"{what}: no requests", b.asked == [url], b.asked)

    def text(self, selector):
        return self.b.js(f"document.querySelector({selector!r})?.textContent")

    def texts(self, selector):
        return self.b.js(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")

    def row(self, section, name):
        """The texts of a table's row."""
        return self.b.js(f"""[...document.querySelectorAll('#{section} tbody tr')]
            .map(r => [...r.cells].map(c => c.textContent)).find(r => r[0] === {name!r})""")

    def place(self, of):
        """x, y in the window: of an element's middle."""
        return self.b.js(f"""(() => {{ const r = document.querySelector({of!r})
            .getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; }})()""")

    def on_canvas(self, x, y):
        """x, y in the window: of a point of the canvas; both may be JavaScript."""
        return self.b.js(f"(() => {{ const r = timeline.canvas.getBoundingClientRect();"
                         f"return [r.left + ({x}), r.top + ({y})]; }})()")

    def at(self, where):
        """x, y in the window: of the middle of a slice. `where` is said of a slice `s`."""
        self.b.js(f"window.wanted = place(timeline, data.slices.find(s => {where})); 0")
        return self.on_canvas("wanted.x + wanted.w / 2", "wanted.y + wanted.h / 2 - timeline.scroll.scrollTop")

    def click_on(self, selector):
        self.b.js(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        self.b.settle()
        time.sleep(0.35)               # until a wheel is not taken for the page's
        self.b.click(*self.place(selector))

    def pixel(self, x, y):
        """Red, green, blue of the timeline, at a place in the window."""
        self.b.settle()
        return tuple(self.b.js(f"""(() => {{
            const r = timeline.canvas.getBoundingClientRect(), k = timeline.ratio;
            return [...timeline.pen.getImageData(Math.floor(({x} - r.left) * k),
                    Math.floor(({y} - r.top) * k), 1, 1).data].slice(0, 3); }})()"""))

    def color(self, name):
        """What the timeline draws a kind of slices with."""
        c = self.b.js(f"timeline.colors[{name!r}]").lstrip("#")
        c = "".join(2 * d for d in c) if len(c) == 3 else c
        return tuple(int(c[i:i + 2], 16) for i in (0, 2, 4))

    def view(self):
        return self.b.js("[timeline.t0, timeline.t1]")

    def chosen(self):
        return self.text("#chosen h3") or ""

    def contrast(self):
        """The worst contrast of a text with what is behind it (WCAG 2, 1.4.3), and which."""
        return self.b.js("""(() => {
            const rgb = c => c.match(/[\\d.]+/g).map(Number);
            const light = c => rgb(c).slice(0, 3).map(v => v / 255)
                .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
            let worst = [99, ""];
            for (const e of document.querySelectorAll("body *")) {
                if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())
                    || !e.checkVisibility() || e.closest("script, :disabled"))
                    continue;
                let behind = e;
                while (behind && rgb(getComputedStyle(behind).backgroundColor)[3] === 0)
                    behind = behind.parentElement;
                const root = document.documentElement;
                const [a, c] = [getComputedStyle(e).color,
                                getComputedStyle(behind || root).backgroundColor]
                    .map(light).sort((a, c) => c - a);
                const ratio = (a + 0.05) / (c + 0.05);
                if (ratio < worst[0])
                    worst = [ratio, e.outerHTML.slice(0, 100)];
            }
            return worst; })()""")

    def sticks_out(self):
        """By how many pixels the page is wider than the window."""
        return self.b.js("document.documentElement.scrollWidth - innerWidth")

    def holes(self):
        """Words of a page that show that something was not there."""
        return re.findall("undefined|NaN|null|Infinity", self.b.js("document.body.innerText"))

    def shot(self, name):
        if self.shots:
            os.makedirs(self.shots, exist_ok=True)
            self.b.picture(os.path.join(self.shots, name + ".png"), False)


def like(p, q, by=6):
    return all(abs(a - c) <= by for a, c in zip(p, q))


def start():
    """The kit, from the command line. Where there is no browser the test ends here."""
    if len(sys.argv) not in (3, 4):
        sys.exit("page.py MAKER GPIPE [SHOTS]")
    if not browser.find():
        print("page: SKIPPED, no Chromium starts here: nothing of the page was tested")
        print("page: 0 passed, 0 failed")
        sys.exit()
    shots = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
    return Kit(*map(os.path.abspath, sys.argv[1:3]), shots)
