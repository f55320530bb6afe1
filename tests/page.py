#!/usr/bin/env python3
"""page.py MAKER GPIPE [SHOTS] - the page of a report, in a headless Chromium: clicked, zoomed, moved,
typed at, in light, dark and on paper. MAKER makes pages of made-up runs (tests/page.c). SHOTS: a
folder for pictures to look at. Prints a total; exit 1 after a failure."""
import json, os, re, subprocess, sys, tempfile, time
import browser, page_data

if len(sys.argv) not in (3, 4):
    sys.exit(__doc__)
maker, gpipe = map(os.path.abspath, sys.argv[1:3])
shots = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
here = os.path.dirname(os.path.abspath(__file__))
tmp = tempfile.TemporaryDirectory()
passed, failed = 0, []


def check(name, ok, what=""):
    global passed
    if ok:
        passed += 1
    else:
        failed.append(name)
        print(f"FAILED: {name}: {what!r:.1500}")


def done():
    print(f"page: {passed} passed, {len(failed)} failed")
    sys.exit(bool(failed))


if not browser.find():
    print("page: SKIPPED, no Chromium is installed here: nothing of the page was tested")
    done()


# == pages ======================================================================
def path(name):
    return os.path.join(tmp.name, name)


def put(name, text):
    with open(path(name), "w", encoding="utf-8") as f:
        f.write(text)
    return path(name)


def make(name, report, trace, svg):
    """A page as `gpipe run --report` would write it. What is None is not there."""
    parts = [put(f"{name}.{kind}", text) if text is not None else "-" for kind, text in (
        ("report", json.dumps(report, ensure_ascii=False)),
        ("trace", json.dumps(trace, ensure_ascii=False) if trace else None), ("svg", svg))]
    with open(path(name + ".html"), "wb") as f:
        subprocess.run([maker, *parts], stdout=f, check=True)
    return "file://" + path(name + ".html")


def plan(file):
    return subprocess.run([gpipe, "plan", "-q", "--device", "cpu", "--svg", file], check=True,
                          capture_output=True, text=True, encoding="utf-8").stdout


def made(name, frames, svg, depth=4, change=None, **how):
    stages = page_data.chain(**how)
    trace = page_data.trace(stages, frames, depth)
    report = page_data.report(trace, stages, depth)
    if change:
        change(report, trace)
    return make(name, report, trace, svg), report, trace


EVIL = "</script><b>e&amp;\"'<!--<script>鏡🎞\u2028</template><img src=x onerror='hacked=1'>"
edges = plan(os.path.join(here, "../pipelines/edges.yaml"))
evil = plan(put("evil.yaml", "pipeline: \"</svg></template></script><b>e</b>\"\nstages:\n"
                "  - {use: generate, frames: 1, out: a}\n  - {use: discard}\n"
                "buffers: {a: {dtype: u8, shape: [1]}}\n"))


def hostile(report, trace):
    report["pipeline"].update(name=EVIL, file=EVIL)
    report["environment"]["cpu"] = EVIL
    report["verdict"]["edit"]["path"] = EVIL
    for e in trace["traceEvents"]:
        if e["name"] == "process_name":
            e["args"]["name"] = EVIL + e["args"]["name"]


def in_batches(report, trace):
    """Launches of 8 frames, two at a time on the device; 100 stages more."""
    frames = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] in ("copy in", "compute")]
    for e in frames:
        e["args"]["frames"] = 8
        e["args"]["frame"] -= e["args"]["frame"] % 8
        e["dur"] *= 1.9 if e["cat"] == "compute" else 1
    one = next(e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "stage")
    trace["traceEvents"] += [dict(one, tid=1000 + i, name=f"more {i}", args={}) for i in range(100)]


# == looking ====================================================================
b = browser.Browser()


def opened(what, url, scheme="light", width=1280, height=900):
    b.resize(width, height)
    b.media("", scheme)
    b.open(url)
    check(f"{what}: nothing on the console", not b.said, b.said)
    # the page is of one piece: its own file, and no more
    check(f"{what}: no requests", b.asked == [url], b.asked)


def at(where):
    """The middle of a slice, as x, y in the window. `where` is said of a slice `s`."""
    return b.js(f"""(() => {{ const s = data.slices.find(s => {where});
        const a = place(timeline, s), r = timeline.canvas.getBoundingClientRect();
        return [r.left + a.x + a.w / 2, r.top + a.y + a.h / 2 - timeline.scroll.scrollTop]; }})()""")


def pixel(x, y):
    """Of the timeline, at a place in the window."""
    b.settle()
    return tuple(b.js(f"""(() => {{ const r = timeline.canvas.getBoundingClientRect();
        return [...timeline.pen.getImageData(Math.floor(({x} - r.left) * timeline.ratio),
                Math.floor(({y} - r.top) * timeline.ratio), 1, 1).data].slice(0, 3); }})()"""))


def color(name):
    c = b.js(f"timeline.colors[{name!r}]").lstrip("#")
    c = "".join(2 * d for d in c) if len(c) == 3 else c
    return tuple(int(c[i:i + 2], 16) for i in (0, 2, 4))


def like(p, q, by=6):
    return all(abs(a - c) <= by for a, c in zip(p, q))


def text(selector):
    return b.js(f"document.querySelector({selector!r})?.textContent")


def view():
    return b.js("[timeline.t0, timeline.t1]")


def button(id):
    b.js(f"document.getElementById({id!r}).scrollIntoView({{block: 'center'}})")
    time.sleep(0.35)                   # until a wheel is not taken for the page's
    b.click(*b.js(f"""(() => {{ const r = document.getElementById({id!r}).getBoundingClientRect();
        return [r.left + r.width / 2, r.top + r.height / 2]; }})()"""))


def shot(name):
    if shots:
        os.makedirs(shots, exist_ok=True)
        b.picture(os.path.join(shots, name + ".png"), False)


def contrast():
    """The worst contrast of a text with what is behind it (WCAG 2, 1.4.3), and which."""
    return b.js("""(() => {
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
            const [a, c] = [getComputedStyle(e).color,
                            getComputedStyle(behind || document.documentElement).backgroundColor]
                .map(light).sort((a, c) => c - a);
            const ratio = (a + 0.05) / (c + 0.05);
            if (ratio < worst[0])
                worst = [ratio, e.outerHTML.slice(0, 100)];
        }
        return worst; })()""")


def test_figures(url, report):
    opened("figures", url)
    verdict = report["verdict"]["text"]
    check("figures: the verdict", text("h1").replace("\xa0", " ") == verdict, text("h1"))
    size = b.js("parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)")
    check("figures: the verdict is large", size >= 20, size)
    check("figures: the edit", text("#edit")
          == "gpipe run --set stages.clean.workers=4 pipelines/edges.yaml", text("#edit"))
    check("figures: the title", b.js("document.title") == "edges · gpipe", b.js("document.title"))
    heads = b.js("[...document.querySelectorAll('h1, h2')].map(h => h.textContent)")
    check("figures: sections", heads[1:] == ["Timeline", "Host stages", "Segments", "Device", "Latency",
                                             "Buffers", "Knobs", "Frames", "Environment", "Plan"], heads)
    for s in report["stages"]:
        row = b.js(f"""[...document.querySelectorAll('#stages tbody tr')].map(r => [...r.cells]
            .map(c => c.textContent)).find(r => r[0] === {s['name']!r})""")
        check(f"figures: stage {s['name']}", row and row[3] == str(s["frames"])
              and row[5] == f"{100 * s['busy']:.0f} %", row)
        parts = b.js(f"""(() => {{ const row = [...document.querySelectorAll('#stages tbody tr')]
            .find(r => r.cells[0].textContent === {s['name']!r}), strip = row.querySelector('.strip');
            return [...strip.children].map(i => i.offsetWidth / strip.clientWidth); }})()""")
        time_s = report["wall_s"] * s["workers"]
        want = [(s["busy_s"] - s["idle_s"]) / time_s, s["idle_s"] / time_s, s["wait_in_s"] / time_s,
                s["wait_out_s"] / time_s]
        check(f"figures: the bar of {s['name']}", all(abs(x - y) < 0.01 for x, y in zip(parts, want)),
              (parts, want))
    check("figures: the bound stage is marked", b.js(
        "[...document.querySelectorAll('tr.bound th')].map(t => t.textContent)") == ["clean"])
    for section, words in (("engines", "copy in compute copy out measured estimated 52.1"),
                           ("latency", "p50 p90 p95 p99 max 8.12 ms 10.2 ms 12.8 ms"),
                           ("buffers", "3.87 u8 768 × 1024 × 3 gray..blur"),
                           ("knobs", "streams depth batch launch graph stages.clean.workers "
                                     "buffers.read.depth"),
                           ("environment", "NVIDIA H200 580.1 13.0 442ca58 2026-11-21 AMD"),
                           ("figures", "done 59 dropped 8.12 ms 93 %")):
        missing = [w for w in words.split() if w not in text("#" + section)]
        check(f"figures: {section}", not missing, missing)
    held = b.js("""[...document.querySelectorAll('#buffers tbody tr')].map(r =>
        [...r.querySelectorAll('.cells b')].reduce((n, b) => n + parseFloat(b.style.width) / 100, 0))""")
    check("figures: cells", all(abs(x - y["held"]) < 0.01 for x, y in zip(held, report["buffers"])), held)
    drawn = b.js("[...by_id('picture').shadowRoot.querySelectorAll('[data-stage]')].map(g => g.dataset.stage)")
    check("figures: the plan", set(drawn) >= {"read", "gray", "blur", "write"}, drawn)
    check("figures: the plan's style stays its own", b.js(
        "document.styleSheets.length === 1 && by_id('picture').shadowRoot.styleSheets.length === 2"))
    for width in (1400, 900, 390):
        b.resize(width, 900)
        b.settle()
        over = b.js("document.documentElement.scrollWidth - innerWidth")
        check(f"figures: fit in {width} pixels", over <= 0, over)
    shot("narrow")


def test_pointer(url, trace):
    opened("pointer", url)
    all_of_it = view()
    want = max(e["ts"] + e.get("dur", 0) for e in trace["traceEvents"] if e["ph"] in "XC") - 1e6
    check("pointer: all is in view at first", all_of_it[0] == 0 and abs(all_of_it[1] - want) < 0.01,
          (all_of_it, want))
    one = next(e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] == "clean"
               and e["args"]["frame"] == 24)
    x, y = at("s.name === 'clean' && s.first === 24")
    b.wheel(x, y, -600)
    t0, t1 = view()
    part = (t1 - t0) / want
    check("pointer: the wheel zooms in", 0.15 < part < 0.35, part)
    x2, y2 = at("s.name === 'clean' && s.first === 24")
    check("pointer: what is under the wheel stays", abs(x2 - x) < 1 and y2 == y, (x, x2))
    b.wheel(x, y, 0, 200)
    check("pointer: a wheel sideways moves", view()[0] > t0
          and abs(view()[1] - view()[0] - (t1 - t0)) < 0.01, (t0, view()))
    b.wheel(x, y, 0, -200)

    b.move(x2, y2)
    tip = b.js("by_id('tip').hidden ? null : by_id('tip').innerText")
    took = one["dur"] / 1000
    check("pointer: the tip", tip and "clean frame 24" in re.sub(r"\s+", " ", tip)
          and f"{took:.2f} ms" in tip and "stage on clean" in tip, (tip, took))
    check("pointer: the tip is beside the pointer", b.js(
        f"(() => {{ const r = by_id('tip').getBoundingClientRect(); return r.left > {x2} && "
        "r.right <= innerWidth && r.bottom <= innerHeight; })()"))
    b.move(*b.js("""(() => { const r = timeline.canvas.getBoundingClientRect(), row = timeline.rows
        .find(r => r.counter && r.counter.name === 'read'); return [r.left + 600, r.top + row.y + 10]; })()"""))
    check("pointer: the tip of a buffer", re.search(r"read\s+holds \d of 4", text("#tip")), text("#tip"))
    b.move(5, 5)
    check("pointer: the tip goes", b.js("by_id('tip').hidden"))

    # a click: the frame on all tracks, all else dimmed, and listed
    others = {n: at(f"s.name === '{n}' && s.first === 25 && s.end > timeline.t0") for n in ("clean",)}
    before = pixel(*[c - 4 for c in others["clean"]])
    b.click(x2, y2)
    b.move(5, 5)
    want_names = ["read", "clean", "launch", "copy in", "gray", "blur", "copy out", "write"]
    names = b.js("[...document.querySelectorAll('#chosen tbody th')].map(t => t.textContent)")
    check("pointer: a click lists the frame's slices", names == want_names, names)
    check("pointer: of the frame", text("#chosen h3").startswith("Frame 24: "), text("#chosen h3"))
    check("pointer: and it is said", re.fullmatch(
        r"clean, frame 24, [\d.]+ ms, stage on clean, from [\d.]+ ms on", text("#said")), text("#said"))
    check("pointer: the frame is in its box", b.js("by_id('frame').value") == "24")
    b.js("show_chosen(timeline)")
    for name, kind in (("read", "stage"), ("clean", "stage"), ("gray", "compute"), ("write", "stage"),
                       ("copy in", "copy in")):
        x3, y3 = at(f"s.name === '{name}' && s.first === 24")
        check(f"pointer: {name} is lit", like(pixel(x3, y3 + 7), color(kind)),
              (pixel(x3, y3 + 7), color(kind)))
    x3, y3 = at("s.name === 'clean' && s.first === 25")
    dim = pixel(x3 - 4, y3 - 4)
    check("pointer: others are dimmed", not like(dim, before, 30)
          and sum(dim) > sum(before) and not like(dim, color("stage"), 30), (dim, before))
    shot("frame")

    # a drag moves, and chooses nothing
    t0, t1 = view()
    wide = b.js("timeline.width - timeline.label")
    x, y = at("s.name === 'clean' && s.first === 24")
    b.drag(x, y, x - 200, y + 30)
    moved = (view()[0] - t0) * wide / (t1 - t0)
    check("pointer: a drag moves", abs(moved - 200) < 1, moved)
    check("pointer: and chooses nothing", text("#chosen h3").startswith("Frame 24: "))
    b.drag(x, y, x + 5000, y)
    check("pointer: to the beginning, and not beyond", view()[0] == 0, view())
    b.click(*[c + d for c, d in zip(at("s.name === 'launch' && s.first === 0"), (12, 0))])
    check("pointer: a click beside it all chooses none", b.js("by_id('chosen').hidden"), text("#said"))

    # buttons
    button("all")
    check("pointer: all", view() == all_of_it, view())
    button("in")
    check("pointer: +", abs((view()[1] - view()[0]) * 1.5 - want) < 0.01, view())
    before = view()
    button("right")
    check("pointer: later", view()[0] > before[0])
    button("left")
    check("pointer: earlier", abs(view()[0] - before[0]) < 0.01, (before, view()))
    button("out")
    check("pointer: -", view() == all_of_it, view())
    check("pointer: what is in view is said", text("#span") == f"0 to {want / 1e3:.1f} ms, "
          f"{want / 1e3:.1f} ms of {want / 1e3:.1f} ms", text("#span"))

    # where there is nothing to zoom out of, the wheel scrolls the page
    b.js("scrollTo(0, 0)")
    time.sleep(0.35)
    b.wheel(x, 400, 150)
    b.wheel(x, 300, -50)
    check("pointer: the page can be scrolled", b.js("scrollY") == 100 and view() == all_of_it,
          (b.js("scrollY"), view()))


def test_keys(url):
    opened("keys", url)
    order = []
    for _ in range(12):
        b.key("Tab")
        order.append(b.js("document.activeElement.id"))
        if order[-1] == "canvas":
            break
    check("keys: Tab goes through the tools to the timeline",
          order == ["in", "out", "left", "right", "all", "frame", "canvas"], order)
    check("keys: the focus shows", b.js("getComputedStyle(timeline.canvas).outlineStyle") == "solid")
    end = view()[1]
    b.key("+")
    b.key("+")
    check("keys: +", abs((view()[1] - view()[0]) - end / 2.25) < 0.01, view())
    before = view()
    b.key("ArrowRight")
    check("keys: right", view()[0] > before[0], (before, view()))
    b.key("ArrowLeft")
    b.key("-")
    check("keys: -", abs((view()[1] - view()[0]) - end / 1.5) < 0.01, view())
    b.key("End")
    check("keys: End", abs(view()[1] - end) < 1e-6, view())
    b.key("Home")
    check("keys: Home", view()[0] == 0, view())
    b.key("0")
    check("keys: 0", view() == [0, end], view())
    b.key("ArrowRight", shift=True)
    check("keys: a first slice", text("#said").startswith("read, frame 0, "), text("#said"))
    for _ in range(3):
        b.key("ArrowRight", shift=True)
    check("keys: along the track", text("#said").startswith("read, frame 3, "), text("#said"))
    b.key("ArrowLeft", shift=True)
    check("keys: and back", text("#said").startswith("read, frame 2, "), text("#said"))
    b.key("ArrowDown")
    check("keys: another track", text("#said").startswith("clean, frame "), text("#said"))
    b.key("ArrowUp")
    check("keys: and back there", " on read, " in text("#said"), text("#said"))
    b.key("Enter")
    first = b.js("[timeline.chosen.work[0].ts, Math.max(...timeline.chosen.work.map(s => s.end))]")
    t0, t1 = view()
    check("keys: Enter zooms to the frame", t0 <= first[0] and first[1] <= t1
          and t1 - t0 < 1.3 * (first[1] - first[0]), (view(), first))
    b.key("Escape")
    check("keys: Escape", b.js("by_id('chosen').hidden && timeline.chosen === null"))
    b.js("by_id('frame').focus()")
    for c in "41":
        b.key(c)
    check("keys: a frame's number", text("#chosen h3").startswith("Frame 41: ")
          and text("#said") == "frame 41, 8 slices", text("#said"))
    b.key("Enter")
    check("keys: Enter there", view()[1] - view()[0] < end / 3, view())
    b.key("9")
    check("keys: a frame that is not there", text("#said") == "frame 419 is not in the trace"
          and b.js("by_id('fit').disabled"), text("#said"))


def test_looks(url):
    shades = {}
    for scheme, dark in (("light", False), ("dark", True)):
        opened(scheme, url, scheme)
        paper = b.js("getComputedStyle(document.documentElement).backgroundColor")
        back = sum(map(int, re.findall(r"\d+", paper)))
        check(f"{scheme}: the page", (back < 150) == dark, paper)
        x, y = b.js("(() => { const r = timeline.canvas.getBoundingClientRect();"
                    "return [r.left + 3, r.top + 3]; })()")
        shades[scheme] = pixel(x, y)
        check(f"{scheme}: the timeline", (sum(shades[scheme]) < 150) == dark, shades)
        x, y = at("s.name === 'clean' && s.first === 24")
        check(f"{scheme}: its colors", like(pixel(x, y - 7), color("stage"), 40), pixel(x, y))
        b.js("by_id('edit').scrollIntoView(); choose_slice(timeline, data.slices[9])")
        worst = contrast()
        check(f"{scheme}: contrast", worst[0] >= 4.5, worst)
        shot(scheme)
    b.media("", "light")
    check("looks: it changes with the scheme", pixel(*b.js(
        "(() => { const r = timeline.canvas.getBoundingClientRect(); return [r.left + 3, r.top + 3]; })()"))
        == shades["light"])
    b.resize(1280, 900, 2)
    b.settle()
    check("looks: sharp", b.js("timeline.canvas.width === 2 * timeline.width && timeline.ratio === 2"))
    b.resize(800, 900)
    b.settle()
    check("looks: as wide as it can be", b.js(
        "timeline.width === timeline.scroll.clientWidth && timeline.width < 800"))
    nodes = b("Accessibility.getFullAXTree")["nodes"]
    roles = {n["role"]["value"] for n in nodes if not n.get("ignored")}
    no_name = [n for n in nodes if not n.get("ignored") and n["role"]["value"] in (
        "button", "spinbutton", "application", "region", "image", "group", "link")
        and not n.get("name", {}).get("value")]
    check("looks: roles", {"banner", "main", "heading", "button", "spinbutton", "application", "status",
                           "table", "columnheader", "rowheader", "image", "region"} <= roles, roles)
    check("looks: names", not no_name, no_name[:2])
    bars = [n["name"]["value"] for n in nodes if n["role"]["value"] == "image"]
    check("looks: bars say their parts", any(re.fullmatch(
        r"busy \d+ %, idle \d+ %, waiting for input [\d.]+ %, waiting for output [\d.]+ %", n)
        for n in bars), bars)


def test_paper(url):
    opened("paper", url, "dark")
    b.js("""void window.addEventListener('beforeprint', () => { window.printed = [timeline.paper, timeline.width,
        timeline.height === timeline.full, [...timeline.pen.getImageData(3, 3, 1, 1).data].join()]; })""")
    pdf = b.pdf()
    check("paper: a PDF", pdf.startswith(b"%PDF-") and 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 4,
          len(pdf))
    printed = b.js("window.printed")
    check("paper: the timeline is light, whole, as wide as paper", printed
          and printed == [True, 700, True, "255,255,255,255"], printed)
    check("paper: and dark again", b.js("!timeline.paper && timeline.width > 900")
          and sum(pixel(60, b.js("timeline.canvas.getBoundingClientRect().top + 3"))) < 150)
    if shots:
        with open(os.path.join(shots, "print.pdf"), "wb") as f:
            f.write(pdf)
    b.media("print", "dark")
    check("paper: light", b.js("getComputedStyle(document.documentElement).backgroundColor")
          == "rgb(255, 255, 255)")
    check("paper: no tools", b.js("['.tools', '#keys'].every(s => "
                                  "getComputedStyle(document.querySelector(s)).display === 'none')"))
    check("paper: contrast", contrast()[0] >= 4.5, contrast())


def test_hostile(url):
    opened("hostile", url)
    check("hostile: nothing of it is HTML", b.js(
        "!document.querySelector('b:not(.cells b), img, script:not(body > script)') && "
        "!by_id('picture').shadowRoot.querySelector('b') && typeof hacked === 'undefined'"))
    check("hostile: six scripts, one style", b.js(
        "document.scripts.length === 6 && document.styleSheets.length === 1"))
    names = b.js("[...document.querySelectorAll('#stages tbody th')].map(t => t.textContent)")
    check("hostile: a name as it is", names == ["read", EVIL, "write"], names)
    check("hostile: the title", b.js("document.title") == f"{EVIL} · gpipe".replace("\u2028", "\u2028"),
          b.js("document.title"))
    check("hostile: the plan's title", b.js("by_id('picture').shadowRoot.querySelector('svg title')"
                                            ".textContent") == "</svg></template></script><b>e</b>")
    word = text("#edit")[len("gpipe run --set "):]
    said = subprocess.run(["sh", "-c", f"printf '%s\\n' {word}"], capture_output=True, text=True).stdout
    check("hostile: the edit can be pasted", said == f"{EVIL}=4\n{EVIL}\n", said)
    x, y = at("s.name.includes('鏡') && s.first === 3")
    b.move(x, y)
    check("hostile: the tip", EVIL in text("#tip") and not b.js("document.querySelector('#tip b b, #tip img')"),
          text("#tip"))
    b.click(x, y)
    check("hostile: the list", EVIL in text("#chosen") and b.js("!document.querySelector('#chosen img')"))
    check("hostile: still nothing on the console", not b.said and len(b.asked) == 1, (b.said, b.asked))
    over = b.js("document.documentElement.scrollWidth - innerWidth")
    check("hostile: nothing sticks out", over <= 0, over)
    shot("hostile")


def test_big(url, frames):
    opened("big", url)
    n = b.js("data.slices.length")
    check("big: slices", n > 20000, n)
    times = b.js("""(() => { const took = [], zoom_to = [1, 0.5, 0.1, 0.02, 0.001];
        for (let i = 0; i < 25; i++) { show(timeline, 0, END * zoom_to[i % 5]);
            const t = performance.now(); draw(timeline); timeline.pen.getImageData(0, 0, 1, 1);
            took.push(performance.now() - t); }
        return took.sort((a, c) => a - c); })()""")
    check("big: drawn fluently", times[12] < 50 and times[-3] < 150, times)
    took = b.js("""(() => { const t = performance.now(); choose_slice(timeline, data.slices[12345]);
        draw(timeline); return performance.now() - t; })()""")
    check("big: a frame is found fluently", took < 150, took)
    b.js("choose_none(timeline); show(timeline, 0, END)")
    busy, idle = (pixel(*b.js(f"""(() => {{ const r = timeline.canvas.getBoundingClientRect();
        const row = timeline.rows.find(r => r.track && r.track.name === '{n}');
        return [r.left + 700, r.top + row.y + 5]; }})()""")) for n in ("clean", "copy out"))
    check("big: a busy track is full, an idle one pale", like(busy, color("stage"), 8)
          and min(idle) > 180, (busy, idle))
    b.js("by_id('frame').focus()")
    for c in str(frames - 1):
        b.key(c)
    b.key("Enter")
    check("big: the last frame", text("#chosen h3").startswith(f"Frame {frames - 1}: ")
          and view()[1] - view()[0] < 0.02 * b.js("END"), view())
    shot("big")


def test_batches(url):
    opened("batches", url)
    lanes = b.js("data.tracks.find(t => t.name === 'compute').lanes.length")
    check("batches: what overlaps has lanes of its own", lanes > 1 and all(
        a["end"] <= c["ts"] + 0.01 for l in b.js("data.tracks.map(t => t.lanes.map(l => l.map(s => "
        "({ts: s.ts, end: s.end}))))") for lane in l for a, c in zip(lane, lane[1:])), lanes)
    scrolls = b.js("timeline.scroll.scrollHeight > timeline.scroll.clientHeight + 500 && "
                   "timeline.height === timeline.scroll.clientHeight")
    check("batches: many tracks scroll", scrolls)
    b.js("show(timeline, END / 3, END / 2); timeline.scroll.scrollTop = 1e6")
    time.sleep(0.4)
    where = "s.name === 'gray' && s.first === 16 && s.ts > timeline.t0"
    b.js("const wanted = data.slices.find(s => s.name === 'gray' && s.first === 16); "
         "show(timeline, wanted.ts - 2000, wanted.ts + 2000); 0")
    x, y = at("s === wanted")
    b.click(x, y)
    check("batches: a click chooses all of a launch", text("#chosen h3").startswith("Frames 16 to 23: ")
          and text("#said").startswith("gray, frames 16 to 23, "), (text("#chosen h3"), text("#said"), where))
    clean = b.js("timeline.chosen.all.filter(s => s.name === 'clean').map(s => s.first)")
    check("batches: with the stages before", clean == list(range(16, 24)), clean)
    check("batches: a long list is cut", "more" in text("#chosen"), text("#chosen")[-60:])
    b.js("timeline.scroll.scrollTop = 600; 0")
    time.sleep(0.3)
    x, y = at("s.name === 'more 40'")
    b.js("show(timeline, 0, 2000)")
    x, y = at("s.name === 'more 40'")
    b.click(x, y)
    check("batches: a slice without a frame", text("#said").startswith("more 40, no frame, ")
          and b.js("by_id('frame').value") == "" and b.js("timeline.chosen.all.length") == 1, text("#said"))
    b.pdf()
    check("batches: said nothing", not b.said, b.said)
    shot("batches")


def test_bare():
    least = {"gpipe": "0.1.0", "outcome": "failed", "wall_s": 0, "frames_per_s": 0,
             "pipeline": {"name": "p", "file": "p.yaml"}, "environment": {"gpu": None},
             "sources": [], "stages": [], "segments": [], "engines": [], "buffers": [],
             "latency_us": {"p50": None, "p99": None, "max": None}, "overlap": None,
             "verdict": {"bound": "unknown", "name": None, "text": "too short to tell", "edit": None}}
    opened("bare", make("bare", least, None, None))
    heads = b.js("[...document.querySelectorAll('h1, h2')].map(h => h.textContent)")
    check("bare: what there is", heads == ["too short to tell", "Timeline", "Knobs", "Environment"]
          or heads == ["too short to tell", "Timeline", "Environment"], heads)
    check("bare: without a trace", "without a trace" in text("#timeline"), text("#timeline"))
    check("bare: how it ended", text(".bad dd") == "failed", text(".bad dd"))
    check("bare: no GPU", "CPU back end" in text("#environment"))
    check("bare: no edit", not b.js("by_id('edit')"))
    words = text("body")
    check("bare: no holes", not re.search(r"undefined|NaN|null|Infinity", b.js("document.body.innerText")), words)
    opened("empty", make("empty", dict(least, pipeline=None, environment=None, verdict=None),
                         {"traceEvents": []}, ""))


def test_real():
    """A page that gpipe itself writes."""
    if "--report" not in subprocess.run([gpipe, "run", "--help"], capture_output=True, text=True).stdout:
        print("page: this gpipe has no run --report yet")
        return
    page = path("real.html")
    file = put("real.yaml", "device: cpu\nbuffers: {a: {dtype: f32, shape: [4096]}}\nstages:\n"
               "  - {use: generate, out: a, frames: 500}\n  - {use: scale, a: 2}\n  - {use: discard}\n")
    p = subprocess.run([gpipe, "run", "-q", "--report", page, file], capture_output=True, text=True)
    check("real: the run", p.returncode == 0, p.stderr)
    opened("real", "file://" + page)
    check("real: a verdict", len(text("h1")) > 10, text("h1"))
    check("real: all frames", "500" in text("#figures"), text("#figures"))
    check("real: stages", "generate" in text("#stages") and "scale" in text("#segments"))
    check("real: slices", b.js("data.slices.length") > 500, b.js("data.slices.length"))
    check("real: no holes", not re.search(r"undefined|NaN|Infinity", b.js("document.body.innerText")))
    x, y = at("s.first === 250")
    b.js("choose_slice(timeline, data.slices.find(s => s.first === 250)); show_chosen(timeline)")
    b.click(*at("s.first === 250"))
    check("real: a frame", text("#chosen h3").startswith("Frame"), text("#chosen h3"))
    shot("real")


try:
    small, report, trace = made("small", 60, edges)
    test_figures(small, report)
    test_pointer(small, trace)
    test_keys(small)
    test_looks(small)
    test_paper(small)
    test_hostile(made("hostile", 30, evil, change=hostile, lua=EVIL)[0])
    test_big(made("big", 2600, edges)[0], 2600)
    test_batches(made("batches", 64, edges, change=in_batches)[0])
    test_bare()
    test_real()
finally:
    b.close()
done()
