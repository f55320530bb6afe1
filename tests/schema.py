#!/usr/bin/env python3
"""schema.py GPIPE: what `gpipe schema` prints takes every pipeline in the tree, and refuses typical mistakes.

YAML is read as editors do, by the core schema of YAML 1.2: `on` and 4:2:0 are texts.
"""
import glob, json, os, re, subprocess, sys
from kit import check as expect, gpipe, total

try:
    import jsonschema, yaml
except ImportError as e:
    print(f"SKIPPED, no {e.name}: whether pipelines are as 'gpipe schema' says")
    sys.exit(0)

os.chdir(os.path.join(os.path.dirname(__file__), ".."))


class Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}


for tag, pattern, first in [
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
        ("int", r"[-+]?[0-9]+", list("-+0123456789")),
        ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
        ("merge", r"<<", ["<"])]:
    Loader.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(f"^(?:{pattern})$"), first)


def wrong(text, other_kinds=False):
    """What is wrong with a pipeline, or None. With `other_kinds` it may use kinds that gpipe does not have."""
    try:
        tree = yaml.load(text, Loader)
    except yaml.YAMLError as e:
        return "not YAML: " + str(e)
    e = jsonschema.exceptions.best_match(e for e in checker.iter_errors(tree)
                                         if not (other_kinds and e.absolute_path and e.absolute_path[-1] == "use"))
    return e and f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}"


schema = json.loads(subprocess.run([gpipe, "schema"], check=True, capture_output=True).stdout)
jsonschema.Draft7Validator.check_schema(schema)
checker = jsonschema.Draft7Validator(schema)
valid = {}
for pattern in ["pipelines/*.yaml", "examples/*/*.yaml", "tests/golden/*.yaml", "tests/bench/*.yaml",
                "engine/cli/starters/*.yaml"]:
    for path in sorted(glob.glob(pattern)):
        valid[path] = open(path).read()
for path in ["README.md", *sorted(glob.glob("engine/cli/topics/*.md"))]:
    text = open(path).read()
    for m in re.finditer(r"^```yaml\n(.*?)^```", text, re.M | re.S):
        valid[f"{path}:{text.count(chr(10), 0, m.start()) + 2}"] = m[1]
for path, text in valid.items():
    why = wrong(text, path.startswith("tests/"))      # whose programs have kinds of their own
    expect(path, not why, why)
expect("the tree", len(valid) > 50, f"only {len(valid)} pipelines")

def cases(path):
    """The texts of a file of cases (tests/test_bad.c), each with the first error that it must give."""
    right, now, begun = [], None, False
    for line in open(path).read().splitlines()[1:]:
        edit, error = re.match(r"(\d+)([|+-]) ?(.*)", line), re.match(r"[\d:]* ?error.*", line)
        if edit:
            now = now if begun else [[]] + [[x] for x in right]
            begun, n, to = True, int(edit[1]), [edit[3]] if edit[2] != "-" else []
            now[n] = now[n] + to if edit[2] == "+" else to
        elif error and begun:
            begun = False
            yield "\n".join(x for lines in now for x in lines), line
        elif not error:
            right.append(line)


# What `gpipe check` says of these, a schema can say, too: a key, a kind, a word, a number written as such.
seen = 0
bad = [(path, text, says[0]) for path in sorted(glob.glob("tests/bad/*.yaml"))
       for text in [open(path, errors="replace").read()] if (says := re.search(r"^# error: .*", text))]
bad += [(path, *case) for path in sorted(glob.glob("tests/bad/*.cases")) for case in cases(path)]
for text in ["x-shared: {a: &n 3.0}\ndepth: *n\nstages: []",
             "depth: 1e3\nstages: [{use: resize, width: 0x10, antialias: True}]"]:
    expect(text, not wrong(text), wrong(text))
for path, text, says in bad:
    if re.search(r"has no option|a (?:pipeline|buffer|window) has no key|no stage kind|must be one of"
                 r"|needs the option '[a-z]+':"
                 r"|is a list; a pipeline is a map", says):
        seen += 1
        expect(path, wrong(text), "is valid, but " + says)
expect("tests/bad", seen >= 15, f"only {seen} of them")

stage = "stages: [{use: generate}, %s, {use: discard}]"
for mistake in ["stage: []", "depth: 3", "stages: {use: gray}", "stages: [gray]", "stages: [{name: gray}]",
                stage % "{use: blurr}", stage % "{use: blur}", stage % "{use: blur, sigma: -1}",
                stage % "{use: blur, sigma: [1, 2]}", stage % "{use: blur, sigma: true}",
                stage % "{use: blur, sigma: 2, radios: 3}", stage % "{use: blur, sigma: 2, edge: mirrored}",
                stage % "{use: cast, dtype: float32}", stage % "{use: gray, workers: 0}",
                stage % "{use: gray, in: {a: [b]}}",
                stage % "{use: fir, taps: taps.npy$}", stage % "{use: kernel}", stage % "{use: gray, on_hole: keep}",
                "stages: [{use: read}]", "stages: [{use: read, command: ls -l}]",
                "stages: [{use: read, path: x, loop: 2}]", *(f"{key}\nstages: []" for key in
                  ["depht: 3", "depth: 0", "depth: 100000", "streams: 2.5", "launch: loop", "stall_timeout: 30",
                   "priority: urgent", "buffers: {a: {const: a.npy, memory: pinned}}", "sync: true",
                   "buffers: []", "buffers: {a: f32}", "buffers: {a: {dtype: u7}}", "buffers: {a: {shape: []}}",
                   "buffers: {a: {shape: [0]}}", "buffers: {a: {size: [3]}}", "vars: [a]", "vars: {a: [1]}",
                   "metadata: gain", "batch_wait: 200 "])]:
    expect(mistake, wrong(mistake), "is valid")

total("schema")
