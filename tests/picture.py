#!/usr/bin/env python3
"""picture.py GPIPE FILE... - drawings that gpipe plan makes of pipelines are well-formed, whole
(beside the plan as JSON) and the same each time; also colored by a report, which is made up here.
Prints what is wrong; the exit code says whether anything is."""
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
HEAT = "#fdf3e7", "#fbdcb8", "#f6bd85", "#ee9c55", "#e27d2f"


def plan(gpipe, *args):
    return subprocess.run([gpipe, "plan", "-q", *args], capture_output=True, text=True, check=True,
                          encoding="utf-8").stdout


def has_class(root, name):
    return [g for g in root.iter(SVG + "g") if name in (g.get("class") or "").split()]


def texts(element):
    return " ".join("".join(e.itertext()) for e in element.iter(SVG + "text"))


def check(text, what, form):
    root = ET.fromstring(text)
    assert root.tag == SVG + "svg" and text.startswith("<svg"), "the element"
    assert root.find(f"{SVG}g/{SVG}title").text == what["pipeline"], "the title"
    plan = form == "plan"
    ids = sorted(g.get("id") for g in has_class(root, "node") if g.get("id").startswith(("stage ", "buffer ")))
    assert ids == sorted([f"stage {s['name']}" for s in what["stages"] + what["prologue"]]
                         + [f"buffer {b['name']}" for b in what["buffers"]]), ids
    copies = [texts(g).split("  ")[0] for g in has_class(root, "copy")]
    wanted = [t["op"] for t in what.get("tasks", []) if t["op"].startswith("copy")] if plan else []
    assert [c[:len(w)] for c, w in zip(sorted(copies), sorted(wanted))] == sorted(wanted), copies
    assert len(has_class(root, "cluster")) == (len(what["segments"]) if plan else 0), "the segments"


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
    root = ET.fromstring(text)
    nodes = {g.get("id"): g for g in has_class(root, "node")}
    for i, s in enumerate(what["stages"]):
        g = nodes[f"stage {s['name']}"]
        fills = {e.get("fill") for e in g.iter() if e.get("fill")}
        assert s["on"] == "device" or HEAT[i % 10 // 2] in fills, f"'{s['name']}' is {fills}"
    assert report(what)["verdict"]["text"].strip() in " ".join(texts(root).split()), texts(root)


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
