#!/usr/bin/env python3
"""page.py MAKER GPIPE [SHOTS] - the page of a report, in a headless Chromium: clicked, zoomed,
moved, typed at, in light, dark and on paper. MAKER makes pages of made-up runs (tests/page.c).
SHOTS: a folder for pictures to look at. Prints a total; exit 1 after a failure."""
import json, os, re, subprocess, sys, time

sys.dont_write_bytecode = True         # nothing is left beside the sources
from page_kit import like, start

kit = start()
b, check, text, texts, view, at = kit.b, kit.check, kit.text, kit.texts, kit.view, kit.at


# == what stands there ==========================================================
def test_figures(url, report):
    kit.opened("figures", url)
    check("figures: the verdict", text("h1").replace("\xa0", " ") == report["verdict"]["text"], text("h1"))
    size = b.js("parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)")
    check("figures: the verdict is large", size >= 20, size)
    check("figures: the edit", text("#edit")
          == "gpipe run --set stages.clean.workers=4 pipelines/edges.yaml", text("#edit"))
    check("figures: the title", b.js("document.title") == "edges · gpipe", b.js("document.title"))
    heads = texts("h2")
    check("figures: sections", heads == [
        "Timeline", "Host stages", "Segments", "Device", "Latency", "Buffers", "Knobs", "Frames",
        "Environment", "Plan"], heads)
    for i, s in enumerate(report["stages"]):
        row = kit.row("stages", s["name"])
        check(f"figures: stage {s['name']}", row and row[3] == str(s["frames"])
              and row[5] == f"{100 * s['busy']:.0f} %", row)
        parts = b.js(f"""(() => {{
            const strip = document.querySelectorAll('#stages .strip')[{i}];
            return [...strip.children].map(i => i.offsetWidth / strip.clientWidth); }})()""")
        time_s = report["wall_s"] * s["workers"]
        want = [(s["busy_s"] - s["idle_s"]) / time_s, s["idle_s"] / time_s,
                s["wait_in_s"] / time_s, s["wait_out_s"] / time_s]
        check(f"figures: the bar of {s['name']}", all(abs(x - y) < 0.01 for x, y in zip(parts, want)), (parts, want))
    check("figures: the bound stage is marked", texts("tr.bound th") == ["clean"])
    for section, words in (
            ("engines", "copy in compute copy out measured estimate 52.1"),
            ("latency", "p50 p90 p95 p99 max 8.12 ms 10.2 ms 12.8 ms"),
            ("buffers", "3.87 u8 768 × 1024 × 3 gray..blur"),
            ("knobs", "streams depth batch launch graph stages.clean.workers buffers.read.depth"),
            ("environment", "NVIDIA H200 580.1 13.0 442ca58 2026-11-21 AMD"),
            ("figures", "done 59 dropped 8.12 ms 93 %")):
        missing = [w for w in words.split() if w not in text("#" + section)]
        check(f"figures: {section}", not missing, missing)
    held = b.js("""[...document.querySelectorAll('#buffers .cells')].map(cells =>
        [...cells.querySelectorAll('b')].reduce((n, b) => n + parseFloat(b.style.width), 0))""")
    check("figures: cells", all(abs(x / 100 - y["held"]) < 0.01
                                for x, y in zip(held, report["buffers"])), held)
    drawn = b.js("""[...by_id('picture').shadowRoot.querySelectorAll('.node')].map(g => g.id)""")
    check("figures: the plan", set(drawn) >= {f"stage {name}" for name in ("read", "gray", "blur", "write")}, drawn)
    check("figures: the plan's style stays its own", b.js(
        "document.styleSheets.length") == 1 and b.js(
        "by_id('picture').shadowRoot.styleSheets.length") == 2)
    for width in (1400, 900, 390):
        b.resize(width, 900)
        b.settle()
        check(f"figures: fit in {width} pixels", kit.sticks_out() <= 0, kit.sticks_out())
    kit.shot("narrow")


# == the timeline ===============================================================
def test_wheel(url, trace):
    kit.opened("wheel", url)
    end = max(e["ts"] + e.get("dur", 0) for e in trace["traceEvents"] if e["ph"] in "XC") - 1e6
    check("wheel: all is in view at first", view()[0] == 0 and abs(view()[1] - end) < 0.01, view())
    whole = view()
    x, y = at("s.name === 'clean' && s.first === 24")
    b.wheel(x, y, -600)
    t0, t1 = view()
    check("wheel: it zooms in", 0.15 < (t1 - t0) / end < 0.35, view())
    x2, y2 = at("s.name === 'clean' && s.first === 24")
    check("wheel: what is under it stays", abs(x2 - x) < 1 and y2 == y, (x, x2))
    b.wheel(x, y, 0, 200)
    check("wheel: sideways it moves", view()[0] > t0 and abs(view()[1] - view()[0] - (t1 - t0)) < 0.01, (t0, view()))
    b.wheel(x, y, 6000)
    check("wheel: it zooms out to all, and no more", view() == whole, view())
    # where there is nothing to zoom out of it scrolls the page, and goes on to
    b.js("scrollTo(0, 0)")
    b.settle()
    b.js("window.clock = performance.now() + 1000; performance.now = () => clock; 0")  # in no time
    b.wheel(x, 400, 150)
    b.settle()
    b.wheel(x, 300, -50)
    check("wheel: the page can be scrolled", b.js("scrollY") == 100 and view() == whole, (b.js("scrollY"), view()))
    b.js("delete performance.now; 0")


def test_hover(url, trace):
    kit.opened("hover", url)
    one = next(e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] == "clean" and e["args"]["frame"] == 24)
    x, y = at("s.name === 'clean' && s.first === 24")
    b.move(x, y)
    tip = re.sub(r"\s+", " ", b.js("by_id('tip').innerText"))
    check("hover: stage, frame, duration", tip.startswith("clean frame 24 ")
          and f" {one['dur'] / 1000:.2f} ms, " in tip and "stage on clean" in tip, tip)
    check("hover: beside the pointer", b.js(
        f"(() => {{ const r = by_id('tip').getBoundingClientRect(); return r.left > {x} && "
        "r.right <= innerWidth && r.bottom <= innerHeight; })()"))
    b.move(*kit.on_canvas(600, "timeline.rows.find(r => r.counter?.name === 'read').y + 10"))
    check("hover: a buffer", re.search(r"read\s+holds \d of 4", text("#tip")), text("#tip"))
    b.move(5, 5)
    check("hover: it goes", b.js("by_id('tip').hidden"))


def test_click(url):
    kit.opened("click", url)
    b.wheel(*at("s.name === 'clean' && s.first === 24"), -600)
    x, y = at("s.name === 'clean' && s.first === 25")
    before = kit.pixel(x - 4, y - 4)
    x, y = at("s.name === 'clean' && s.first === 24")
    b.drag(x, y, x + 2, y)             # no hand is quite still
    b.move(5, 5)
    names = texts("#chosen tbody th")
    check("click: lists the frame's slices", names == [
        "read", "clean", "launch", "copy in", "gray", "blur", "copy out", "write"], names)
    check("click: of the frame", kit.chosen().startswith("Frame 24: "), kit.chosen())
    check("click: is said", re.fullmatch(
        r"clean, frame 24, [\d.]+ ms, stage on clean, from [\d.]+ ms on", text("#said")),
        text("#said"))
    check("click: the frame is in its box", b.js("by_id('frame').value") == "24")
    kit.click_on("#fit")
    for name, kind in (("read", "stage"), ("clean", "stage"), ("copy in", "copy in"),
                       ("gray", "compute"), ("write", "stage")):
        x, y = at(f"s.name === '{name}' && s.first === 24")
        check(f"click: {name} is lit", like(kit.pixel(x, y + 7), kit.color(kind)),
              (kit.pixel(x, y + 7), kit.color(kind)))
    x, y = at("s.name === 'clean' && s.first === 25")
    dim = kit.pixel(x - 4, y - 4)
    check("click: others are dimmed", not like(dim, before, 30) and sum(dim) > sum(before), (dim, before))
    kit.shot("frame")

    # a drag moves, and chooses nothing
    t0, t1 = view()
    x, y = at("s.name === 'clean' && s.first === 24")
    b.drag(x, y, x - 200, y + 30)
    moved = (view()[0] - t0) * b.js("timeline.width - timeline.label") / (t1 - t0)
    check("drag: moves as far as the mouse", abs(moved - 200) < 1, moved)
    check("drag: chooses nothing", kit.chosen().startswith("Frame 24: "))
    b.drag(x, y, x + 5000, y)
    check("drag: to the beginning, and not beyond", view()[0] == 0, view())
    x, y = at("s.name === 'launch' && s.first === 0")
    b.click(x + 12, y)
    check("click: beside all slices chooses none", b.js("by_id('chosen').hidden"), text("#said"))


def test_buttons(url):
    kit.opened("buttons", url)
    whole, end = view(), view()[1]
    kit.click_on("#in")
    check("buttons: +", abs((view()[1] - view()[0]) * 1.5 - end) < 0.01, view())
    before = view()
    kit.click_on("#right")
    check("buttons: later", view()[0] > before[0])
    kit.click_on("#left")
    check("buttons: earlier", abs(view()[0] - before[0]) < 0.01, (before, view()))
    kit.click_on("#out")
    check("buttons: -", view() == whole, view())
    kit.click_on("#in")
    kit.click_on("#in")
    kit.click_on("#all")
    check("buttons: all", view() == whole, view())
    ms = f"{end / 1e3:.1f} ms"
    check("buttons: what is in view is said", text("#span") == f"0 to {ms}, {ms} of {ms}", text("#span"))


def test_keys(url):
    kit.opened("keys", url)
    order = []
    while order[-1:] != ["canvas"] and len(order) < 12:
        b.key("Tab")
        order.append(b.js("document.activeElement.id"))
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
    check("keys: left", abs(view()[0] - before[0]) < 0.01, (before, view()))
    b.key("-")
    check("keys: -", abs((view()[1] - view()[0]) - end / 1.5) < 0.01, view())
    b.key("End")
    check("keys: End", abs(view()[1] - end) < 1e-6, view())
    b.key("Home")
    check("keys: Home", view()[0] == 0, view())
    b.key("0")
    check("keys: 0", view() == [0, end], view())
    b.js("by_id('frame').focus()")
    b.key("4")
    b.key("1")
    check("keys: a frame's number", kit.chosen().startswith("Frame 41: ")
          and text("#said") == "frame 41, 8 slices", text("#said"))
    b.key("Enter")
    first, last = b.js("time_of_chosen(timeline.chosen)")
    t0, t1 = view()
    check("keys: Enter zooms to the frame", t0 <= first and last <= t1
          and t1 - t0 < 1.3 * (last - first), (view(), first, last))
    b.key("9")
    check("keys: a frame that is not there", text("#said") == "frame 419 is not in the trace"
          and b.js("by_id('fit').disabled"), text("#said"))
    b.js("choose_slice(timeline, data.slices[9]); timeline.canvas.focus()")
    b.key("Escape")
    check("keys: Escape", b.js("by_id('chosen').hidden && timeline.chosen === null"))


# == how it looks ===============================================================
def test_looks(url):
    corner = {}
    for scheme in ("light", "dark"):
        kit.opened(scheme, url, scheme)
        dark = scheme == "dark"
        paper = b.js("getComputedStyle(document.documentElement).backgroundColor")
        check(f"{scheme}: the page", (sum(map(int, re.findall(r"\d+", paper))) < 150) == dark, paper)
        corner[scheme] = kit.pixel(*kit.on_canvas(3, 3))
        check(f"{scheme}: the timeline", (sum(corner[scheme]) < 150) == dark, corner)
        x, y = at("s.name === 'clean' && s.first === 24")
        check(f"{scheme}: its colors", like(kit.pixel(x, y - 7), kit.color("stage"), 40), kit.pixel(x, y - 7))
        b.js("choose_slice(timeline, data.slices[9])")
        check(f"{scheme}: contrast", kit.contrast()[0] >= 4.5, kit.contrast())
        kit.shot(scheme)
    b.media("", "light")
    check("looks: it changes with the scheme",
          kit.pixel(*kit.on_canvas(3, 3)) == corner["light"] != corner["dark"], corner)
    b.resize(1300, 900, 2)
    b.settle()
    check("looks: sharp", b.js("timeline.canvas.width === 2 * timeline.width"))
    b.resize(800, 900)
    b.settle()
    check("looks: as wide as it can be", 600 < b.js("timeline.width") < 800
          and b.js("timeline.width === timeline.scroll.clientWidth"))


def test_access(url):
    """What a screen reader is told."""
    kit.opened("access", url)
    nodes = [n for n in b("Accessibility.getFullAXTree")["nodes"] if not n.get("ignored")]
    named = [(n["role"]["value"], n.get("name", {}).get("value")) for n in nodes]
    roles = {role for role, _ in named}
    check("access: roles", {"banner", "main", "heading", "button", "spinbutton", "application",
                            "status", "table", "columnheader", "rowheader", "image", "region"} <= roles, roles)
    without = [role for role, name in named if not name and role in (
        "button", "spinbutton", "application", "region", "image", "group", "link")]
    check("access: all have names", not without, without)
    bars = [name for role, name in named if role == "image"]
    check("access: bars say their parts", any(re.fullmatch(
        r"busy \d+ %, idle \d+ %, waiting for input [\d.]+ %, waiting for output [\d.]+ %", name)
        for name in bars), bars)


def test_paper(url):
    kit.opened("paper", url, "dark")
    pdf = b.pdf()
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    check("paper: a PDF", pdf.startswith(b"%PDF-") and 1 <= pages <= 4, (pages, len(pdf)))
    b.media("print", "dark")
    paper = b.js("getComputedStyle(document.documentElement).backgroundColor")
    check("paper: light", paper == "rgb(255, 255, 255)", paper)
    shown = [s for s in (".tools", "#keys") if b.js(
        f"getComputedStyle(document.querySelector('{s}')).display") != "none"]
    check("paper: no tools", not shown, shown)
    check("paper: contrast", kit.contrast()[0] >= 4.5, kit.contrast())
    if kit.shots:
        with open(os.path.join(kit.shots, "print.pdf"), "wb") as f:
            f.write(pdf)


# == odd runs ===================================================================
EVIL = ("</script><b>e&amp;\"'<!--<script>鏡🎞\u2028</template>"
        "<img src=x onerror='hacked=1'>")


def test_hostile():
    def change(report, trace):
        report["pipeline"].update(name=EVIL, file=EVIL)
        report["environment"]["cpu"] = EVIL
        report["verdict"]["edit"]["path"] = EVIL
        for e in trace["traceEvents"]:
            if e["name"] == "process_name":
                e["args"]["name"] = EVIL + e["args"]["name"]

    name = "</svg></template></script><b>e</b>"
    plan = kit.plan(kit.put("evil.yaml", f'pipeline: "{name}"\nbuffers: {{a: {{dtype: u8, '
                            'shape: [1]}}\nstages:\n  - {use: generate, frames: 1, out: a}\n'
                            '  - {use: discard}\n'))
    kit.opened("hostile", kit.made("hostile", 30, plan, change, lua=EVIL)[0])
    check("hostile: nothing of it is HTML", b.js("""
        !document.querySelector('b:not(.cells b), img, script:not(body > script)')
        && !by_id('picture').shadowRoot.querySelector('b') && typeof hacked === 'undefined'"""))
    check("hostile: six scripts, one style", b.js("document.scripts.length") == 6
          and b.js("document.styleSheets.length") == 1)
    names = texts("#stages tbody th")
    check("hostile: a name as it is", names == ["read", EVIL, "write"], names)
    check("hostile: the title", b.js("document.title") == f"{EVIL} · gpipe", b.js("document.title"))
    title = b.js("by_id('picture').shadowRoot.querySelector('svg title').textContent")
    check("hostile: the plan's title", title == name, title)
    words = text("#edit")[len("gpipe run --set "):]
    said = subprocess.run(["sh", "-c", f"printf '%s\\n' {words}"], capture_output=True, text=True)
    check("hostile: the edit can be pasted", said.stdout == f"{EVIL}=4\n{EVIL}\n", said)
    x, y = at("s.name.includes('鏡') && s.first === 3")
    b.move(x, y)
    check("hostile: the tip", EVIL in text("#tip")
          and not b.js("document.querySelector('#tip b b, #tip img')"), text("#tip"))
    b.click(x, y)
    check("hostile: the list", EVIL in text("#chosen")
          and not b.js("document.querySelector('#chosen img')"), text("#chosen"))
    check("hostile: still nothing on the console", not b.said and len(b.asked) == 1, (b.said, b.asked))
    check("hostile: nothing sticks out", kit.sticks_out() <= 0, kit.sticks_out())
    kit.shot("hostile")


def test_big():
    frames = 2600
    kit.opened("big", kit.made("big", frames)[0])
    n = b.js("data.slices.length")
    check("big: slices", n > 20000, n)
    # as many strokes as the window has room for, however many slices there are
    b.js("""(() => { const of = Object.getPrototypeOf(timeline.pen);
        window.strokes = 0;
        for (const name of Object.getOwnPropertyNames(of)) {
            const d = Object.getOwnPropertyDescriptor(of, name);
            if (typeof d.value === "function")
                timeline.pen[name] = function (...a) { strokes++; return d.value.apply(this, a); };
        } })(); 0""")
    counts = b.js("""[1, 0.5, 0.1, 0.02, 0.001].map(part => {
        strokes = 0;
        show(timeline, 0, END * part);
        draw(timeline);
        return strokes; })""")
    chosen = b.js("""(() => { strokes = 0;
        show(timeline, 0, END);
        choose_slice(timeline, data.slices[12345]);
        draw(timeline);
        return strokes; })()""")
    room = b.js("timeline.canvas.getBoundingClientRect().width")
    check("big: drawn fluently", max(counts) < 10 * room, (counts, room))
    check("big: a frame is found fluently", chosen < 10 * room, (chosen, room))
    b.js("choose_none(timeline); show(timeline, 0, END)")
    busy, idle = (kit.pixel(*kit.on_canvas(
        700, f"timeline.rows.find(r => r.track?.name === '{name}').y + 5"))
        for name in ("clean", "copy out"))
    check("big: a busy track is full, an idle one pale", like(busy, kit.color("stage"), 8)
          and min(idle) > 180, (busy, idle))
    b.js("by_id('frame').focus()")
    for c in str(frames - 1):
        b.key(c)
    b.key("Enter")
    check("big: the last frame", kit.chosen().startswith(f"Frame {frames - 1}: ")
          and view()[1] - view()[0] < 0.02 * b.js("END"), view())
    kit.shot("big")


def test_devices():
    """Two devices: each engine says of which it is, and each device has tracks of its own."""
    def change(report, trace):
        events = trace["traceEvents"]
        copy = next(e for e in events if e.get("cat") == "copy in")
        for e in report["engines"]:
            e["device"] = "cuda:0"
        report["engines"].append(dict(report["engines"][0], name="peer copy", device="cuda:1", busy=0.25))
        events += [{"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "cuda:1"}},
                   {"ph": "M", "pid": 3, "tid": 900, "name": "thread_name", "args": {"name": "peer copy of blur"}},
                   dict(copy, pid=3, tid=900, name="peer copy", cat="peer copy")]

    kit.opened("devices", kit.made("devices", 64, change=change)[0])
    rows = [r.split("\t") for r in b.js("[...document.querySelectorAll('#engines tbody tr')].map(r => "
                                        "[...r.children].map(c => c.innerText.trim()).join('\\t'))")]
    check("devices: engines of each", [r[:2] for r in rows] == [
        ["copy in", "cuda:0"], ["compute", "cuda:0"], ["copy out", "cuda:0"], ["peer copy", "cuda:1"]], rows)
    last = b.js("(t => [t.name, t.group.title])(data.tracks[data.tracks.length - 1])")
    check("devices: tracks of each", last == ["peer copy of blur", "cuda:1"], last)
    check("devices: a color for peer copies", "peer copy" in text("#key"), text("#key"))


def test_ranks():
    """Two ranks, which share frames out: tracks and counters of each, and frames that are highlighted in one."""
    def change(report, trace):
        alone = json.loads(json.dumps(report))
        events = []
        for r in (0, 1):
            for e in json.loads(json.dumps(trace["traceEvents"])):
                if e["pid"] != 1 or e["ph"] not in "MXC":
                    continue
                if e["ph"] == "X":
                    e["args"] = {"frame": 2 * e["args"]["frame"] + r, "frames": 2, "step": 2}
                if e["name"] == "process_name":
                    e["args"]["name"] = f"rank {r} on {'ab'[r]}"
                events.append(dict(e, pid=r + 1))
        trace["traceEvents"] = events
        sources = [dict(s, out=2 * s["out"]) for s in report["sources"]]
        report.update(rank=1, whole={"ranks": 2, "wall_s": 9.0, "frames_per_s": 4321.0, "sources": sources}, ranks=[
            {"rank": r, "host": "ab"[r], "lost": False, "answered": True,
             "clock_offset_us": 12.5 * r, "clock_error_us": 1.5 * r,
             "sources": report["sources"], "report": alone} for r in (0, 1)])

    kit.opened("ranks", kit.made("ranks", 64, change=change)[0])
    head = text("#figures")
    check("ranks: the head is of all", all(w in head for w in ("4,321", "9.00 s", "ranks")), head)
    check("ranks: whose the rest is", "of rank 1 of 2" in text("#what"), text("#what"))
    check("ranks: a row of each, and the one that bounds is marked", "12.5 µs ± 1.50 µs" in text("#ranks")
          and texts("#ranks tr.bound th") == ["1"], text("#ranks"))
    heads = b.js("timeline.rows.filter(r => r.title).map(r => r.title)")
    check("ranks: tracks and counters of each", heads == [
        "rank 0 on a", "rank 1 on b", "frames held in buffers, rank 0 on a", "frames held in buffers, rank 1 on b"], heads)
    groups = lambda: b.js("[...new Set(timeline.chosen.all.map(s => s.track.group.pid))]")
    b.js("choose(timeline, 21, 21, null); 0")
    check("ranks: a frame is of one rank", groups() == [2] and kit.chosen().startswith("Frame 21: "), groups())
    b.js("choose_slice(timeline, data.slices.find(s => s.name === 'clean' && s.first === 20)); 0")
    said = text("#said")
    check("ranks: of a slice every other frame", groups() == [1] and kit.chosen().startswith("Frames 20 to 22: ")
          and "frames 20 to 22, one in 2" in said and "rank 0 on a" in said, (kit.chosen(), said))


def test_batches():
    """Launches of 8 frames, two at a time on the device; 100 tracks more."""
    def change(report, trace):
        events = trace["traceEvents"]
        stage = next(e for e in events if e.get("cat") == "stage")
        for e in events:
            if e.get("cat") in ("copy in", "compute"):
                e["args"] = {"frame": e["args"]["frame"] // 8 * 8, "frames": 8}
                e["dur"] *= 1.9 if e["cat"] == "compute" else 1
        events += [dict(stage, tid=1000 + i, name=f"more {i}", args={}) for i in range(100)]

    kit.opened("batches", kit.made("batches", 64, change=change)[0])
    lanes = b.js("data.tracks.find(t => t.name === 'compute').lanes.length")
    apart = b.js("data.tracks.every(t => t.lanes.every(l => l.every((s, i) => "
                 "!i || l[i - 1].end <= s.ts + 0.01)))")
    check("batches: what overlaps has lanes of its own", lanes > 1 and apart, lanes)
    check("batches: many tracks scroll", b.js(
        "timeline.scroll.scrollHeight > timeline.scroll.clientHeight + 500 "
        "&& timeline.height === timeline.scroll.clientHeight"))
    b.js("""timeline.scroll.scrollTop = 1e6;
        window.launch = data.slices.find(s => s.name === 'gray' && s.first === 16);
        show(timeline, launch.ts - 2000, launch.ts + 2000)""")
    b.click(*at("s === launch"))
    check("batches: a click chooses all of a launch", kit.chosen().startswith("Frames 16 to 23: ")
          and text("#said").startswith("gray, frames 16 to 23, "), (kit.chosen(), text("#said")))
    clean = b.js("timeline.chosen.all.filter(s => s.name === 'clean').map(s => s.first)")
    check("batches: with the stages before", clean == list(range(16, 24)), clean)
    check("batches: a long list is cut", re.search(r"and \d+ more$", text("#chosen")))
    b.js("timeline.scroll.scrollTop = 600; show(timeline, 0, 2000)")
    b.click(*at("s.name === 'more 40'"))
    check("batches: a slice without a frame", text("#said").startswith("more 40, no frame, ")
          and b.js("by_id('frame').value") == "" and b.js("timeline.chosen.all.length") == 1, text("#said"))
    kit.shot("batches")


def test_rates():
    """Behind where frames are regrouped they have other numbers: frame 7 here is not frame 7 there."""
    page = kit.path("rates.html")
    file = kit.put("rates.yaml", "device: cpu\nbuffers: {g: {dtype: f32, shape: [16, 64]}}\nstages:\n"
                   "  - {use: generate, out: g, frames: 30}\n  - {use: split, out: rows}\n"
                   "  - {use: scale, a: 2, out: s}\n  - {use: group, frames: 4, out: four}\n"
                   "  - {use: discard}\n")
    p = subprocess.run([kit.gpipe, "run", "-q", "--report", page, file], capture_output=True, text=True)
    check("rates: the run", p.returncode == 0, p.stderr)
    kit.opened("rates", "file://" + page)
    lit = lambda: sorted(set(b.js("timeline.chosen.work.map(s => s.name)")))
    all_lit = lambda: b.js("data.slices.filter(s => is_chosen(timeline, s)).every(s => s.of === timeline.of)")
    check("rates: the box says whose", text("label:has(#frame)") == "frame  of g", text("label:has(#frame)"))
    for name, of, names in (("scale", "rows", ["scale"]), ("group", "four", ["discard", "group"]),
                            ("split", "g", ["generate", "split"])):
        b.js(f"window.wanted = data.slices.find(s => s.name === '{name}' && s.kind !== 'wait' && s.first > 6);"
             "choose_slice(timeline, wanted); 0")
        check(f"rates: of {name} what has the same numbers", lit() == names and all_lit(), lit())
        check(f"rates: {name} says whose frame", f" of {of}: " in kit.chosen() and f" of {of}, " in text("#said")
              and text("#of") == f" of {of}", (kit.chosen(), text("#said")))
    b.js("choose_slice(timeline, data.slices.find(s => s.name === 'scale' && s.kind !== 'wait'))")
    b.js("by_id('frame').value = 470; by_id('frame').dispatchEvent(new Event('input')); 0")
    check("rates: a number is one of those", text("#said").startswith("frame 470 of rows, ") and lit() == ["scale"],
          text("#said"))
    kit.shot("rates")


def test_bare():
    least = {"gpipe": "0.1.0", "outcome": "failed", "wall_s": 0, "frames_per_s": 0,
             "pipeline": {"name": "p", "file": "p.yaml"}, "environment": {"gpu": None},
             "sources": [], "stages": [], "segments": [], "engines": [], "buffers": [],
             "latency_us": {"p50": None, "p99": None, "max": None}, "overlap": None,
             "verdict": {"bound": "unknown", "name": None, "text": "too short to tell",
                         "edit": None}}
    kit.opened("bare", kit.make("bare", least, None, None))
    heads = texts("h1, h2")
    check("bare: what there is", heads == ["too short to tell", "Timeline", "Environment"], heads)
    check("bare: without a trace", "without a trace" in text("#timeline"), text("#timeline"))
    check("bare: how it ended", text(".bad dd") == "failed", text(".bad dd"))
    check("bare: no GPU", "CPU back end" in text("#environment"))
    check("bare: no edit", not b.js("by_id('edit')"))
    check("bare: no holes", not kit.holes(), kit.holes())
    kit.opened("empty", kit.make("empty", {}, {"traceEvents": []}, ""))
    check("empty: no holes", not kit.holes(), kit.holes())


def test_real():
    """A page that gpipe itself writes."""
    page = kit.path("real.html")
    file = kit.put("real.yaml", "device: cpu\ndepth: 6\nbuffers: {a: {dtype: f32, shape: [4096]}}\nstages:\n"
                   "  - {use: generate, out: a, frames: 500}\n  - {use: scale, a: 2}\n"
                   "  - {use: discard}\n")
    p = subprocess.run([kit.gpipe, "run", "-q", "--report", page, file], capture_output=True, text=True)
    check("real: the run", p.returncode == 0, p.stderr)
    kit.opened("real", "file://" + page)
    check("real: a verdict", len(text("h1")) > 10, text("h1"))
    check("real: all frames", "500" in text("#figures"), text("#figures"))
    check("real: stages", "generate" in text("#stages") and "scale" in text("#segments"))
    check("real: no holes", not kit.holes(), kit.holes())
    n = b.js("data.slices.length")
    check("real: slices", n > 500, n)
    b.js("choose(timeline, 250, 250, null); show_chosen(timeline)")
    b.click(*at("s.first === 250"))
    check("real: a frame", kit.chosen().startswith("Frame"), kit.chosen())
    kit.shot("real")


try:
    small, of_small, trace_of_small = kit.made("small", 60)
    test_figures(small, of_small)
    test_wheel(small, trace_of_small)
    test_hover(small, trace_of_small)
    test_click(small)
    test_buttons(small)
    test_keys(small)
    test_looks(small)
    test_access(small)
    test_paper(small)
    test_hostile()
    test_big()
    test_batches()
    test_devices()
    test_ranks()
    test_rates()
    test_bare()
    test_real()
finally:
    kit.close()
print(f"page: {kit.passed} passed, {len(kit.failed)} failed")
sys.exit(bool(kit.failed))
