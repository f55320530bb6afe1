#!/usr/bin/env python3
"""picture.py GPIPE FILE... - drawings that gpipe plan makes of pipelines are well-formed, whole (beside the plan as
JSON), the same each time, and nothing lies over something else or outside; also colored by a report, which is made up
here. Prints what is wrong; the exit code says whether anything is."""
import json, re, subprocess, sys, tempfile, xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def plan(gpipe, *args):
    return subprocess.run([gpipe, "plan", "-q", *args], capture_output=True, text=True, check=True,
                          encoding="utf-8").stdout


def box(shape):
    if shape.tag == SVG + "rect":
        x, y, w, h = (float(shape.get(k, 0)) for k in ("x", "y", "width", "height"))
        return x, y, x + w, y + h
    points = [tuple(map(float, p.split(","))) for p in shape.get("points").split()]
    xs, ys = zip(*points)
    return min(xs), min(ys), max(xs), max(ys)


def shape_of(group):
    shapes = [e for e in group if e.tag in (SVG + "rect", SVG + "polygon")]
    assert len(shapes) == 1, f"{len(shapes)} shapes for {group.attrib}"
    return box(shapes[0])


def apart(a, b):
    return a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]


def inside(a, b):
    return a[0] >= b[0] and a[1] >= b[1] and a[2] <= b[2] and a[3] <= b[3]


def numbers(path):
    """Where a path goes: the points of its M, C and V."""
    x = y = 0.0
    for op, rest in re.findall(r"([MCV])([^MCV]*)", path):
        v = [float(n) for n in re.findall(r"-?[\d.]+", rest)]
        if op == "V":
            yield x, y, x, v[0]
            y = v[0]
        else:
            x, y = v[-2:]
            yield x, y, x, y


def check(text, what, form):
    root = ET.fromstring(text)
    assert root.find(SVG + "title").text == what["pipeline"], "the title"
    page = tuple(map(float, root.get("viewBox").split()))
    groups = root.findall(SVG + "g")
    boxes = [(g, shape_of(g)) for g in groups if g.get("class").split()[0] not in ("legend", "segment")]
    frames = [shape_of(g) for g in groups if g.get("class").split()[0] == "segment"]
    legend = [e for g in groups if g.get("class") == "legend" for e in g.iter()
              if e.tag in (SVG + "rect", SVG + "polygon")]

    def names(key):
        return sorted(g.get(key) for g, _ in boxes if g.get(key) is not None)
    stages = what["stages"] + what["prologue"]
    assert names("data-stage") == sorted(s["name"] for s in stages), "the stages"
    assert names("data-buffer") == sorted(b["name"] for b in what["buffers"]), "the buffers"
    copies = [t for t in what.get("tasks", []) if t["op"].startswith("copy")] if form == "plan" else []
    assert names("data-copy") == sorted(t["op"] for t in copies), "the copies"
    assert len(frames) == (len(what["segments"]) if form == "plan" else 0), "the segments"

    everything = [b for _, b in boxes] + [box(e) for e in legend]
    for i, a in enumerate(everything):
        assert inside(a, page), f"{a} is outside of {page}"
        for b in everything[:i]:
            assert apart(a, b), f"{a} lies over {b}"
        for f in frames:
            assert apart(a, f) or inside(a, f), f"{a} is half in {f}"
    for i, a in enumerate(frames):
        assert inside(a, page) and all(apart(a, b) for b in frames[:i]), f"the frame {a}"
    if form == "plan":
        segment = {what["tasks"][t]["stage"]: k for k, s in enumerate(what["segments"]) for t in s["tasks"]}
        for g, b in boxes:
            k = segment.get(g.get("data-stage", ""))
            assert k is None or inside(b, frames[k]), f"{g.attrib} is not in segment {k}"
    for e in root.iter(SVG + "path"):
        if (e.get("class") or "").startswith("line"):
            for x0, y0, x1, y1 in numbers(e.get("d")):
                through = (x0, min(y0, y1) + 1, x1, max(y0, y1) - 1)
                over = [b for b in everything if not apart(through, b)] if abs(y1 - y0) > 2 else []
                assert not over, f"a line {through} goes through {over}"


def report(what):
    """Of a run in which the i-th stage was busy to i % 10 tenths."""
    names = [s["name"] for s in what["stages"]]
    devices = [s["name"] for s in what["stages"] if s["on"] == "device"]
    return {"stages": [{"name": n, "busy": i % 10 / 10, "frame_p50_us": 7.0 ** (i % 9)}
                       for i, n in enumerate(names) if n not in devices],
            "segments": [{"name": "all", "stages": devices, "frame_p50_us": 80}] if devices else [],
            "engines": [{"name": n, "busy": 0.5} for n in ("copy in", "compute", "copy out")],
            "buffers": [{"name": b["name"], "depth": b["depth"], "held": b["depth"] / 3}
                        for b in what["buffers"] if b["from"]],
            "verdict": {"text": "bound by stage 'x' (host, 97 % busy, GPU idle 61 %): " * 3}}


def check_colors(text, what):
    groups = {g.get("data-stage"): g.get("class").split() for g in ET.fromstring(text).findall(SVG + "g")}
    for i, s in enumerate(what["stages"]):
        heat = [c for c in groups[s["name"]] if re.match(r"heat\d", c)]
        want = [] if s["on"] == "device" else [f"heat{i % 10 // 2}"]
        assert heat == want, f"'{s['name']}' is {heat}, not {want}"
    said = [e.text for e in ET.fromstring(text).iter(SVG + "text") if "said" in e.get("class")]
    assert " ".join(said).split() == report(what)["verdict"]["text"].split(), said


def main():
    gpipe, files = sys.argv[1], sys.argv[2:]
    failed = 0
    for file in files:
        for device in "cpu", "cuda":
            for form in "plan", "graph":
                args = ["--device", device, "--form", form, file]
                try:
                    text = plan(gpipe, "--svg", *args)
                    assert text == plan(gpipe, "--svg", *args), "two drawings differ"
                    what = json.loads(plan(gpipe, "--json", *args))
                    check(text, what, form)
                    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
                        json.dump(report(what), f)
                        f.flush()
                        text = plan(gpipe, "--svg", "--with", f.name, *args)
                    check(text, what, form)
                    check_colors(text, what)
                except (AssertionError, ET.ParseError, subprocess.CalledProcessError) as e:
                    print(f"{file}, {device}, {form}: {e}")
                    failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
