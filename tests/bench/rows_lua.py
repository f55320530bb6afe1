"""rows_lua.py - what a Lua stage costs above a C stage that does the same."""
import os

from tools import KIB, Row, Skip

SCRIPTS = {
    "empty": "function process(frame, x, y) end\n",
    "copy": "function process(frame, x, y) y:copy(x) end\n",
    "loop": "function process(frame, x, y)\n"
            "  for i = 1, #x do y[i] = x[i] * 1.5 + 0.5 end\nend\n",
    "jit": 'if not jit then error("no LuaJIT") end\nfunction process(frame, x) end\n',
}

YAML = """device: cpu
depth: 8
sync: block
stall_timeout: 0
vars: {n: 1024, frames: 1}
buffers: {x: {dtype: f32, shape: [n]}}
stages:
  - {use: generate, out: x, frames: frames, fill: once, pattern: ramp}
"""
ONE = YAML + "  - {name: work, %s}\n  - {use: discard}\n"
BOTH = YAML + """  - {use: %s, in: x, out: a}
  - {use: lua, script: %s.lua, in: x, out: b}
  - {use: compare, in: [a, b]}
"""


def file(b, name, text):
    for script in SCRIPTS:
        if not os.path.exists(b.path(script + ".lua")):
            b.write(script + ".lua", SCRIPTS[script])
    return b.write(name + ".yaml", text)


def busy(b, name, use, size, frames):
    """Microseconds per frame in the stage."""
    sets = ["vars.n=%d" % (size // 4), "vars.frames=%d" % frames]
    return b.host(file(b, name, ONE % use), sets, timed=True)["stage work"][0]


def pair(b, kind, script, size, frames):
    """(Lua, C, its name), after a look at whether both make the same."""
    if kind != "nop":
        b.ever(script, lambda: b.host(file(b, script + "-check", BOTH % (kind, script)), ["vars.frames=20"]))
    zero = ", zero: true" if script == "empty" else ""     # else an output has to be written
    lua = busy(b, script, "use: lua, script: %s.lua%s" % (script, zero), size, frames)
    return lua, busy(b, kind, "use: " + kind, size, frames), "C"


def loop(b):
    def jit():
        text = YAML + "  - {use: lua, script: jit.lua, out: []}\n"
        _, err, code = b.run([b.program("host", "host is not built"), file(b, "jit", text)], ok=(0, 1, 3))
        if code:
            raise Skip("no LuaJIT" if "no LuaJIT" in err else err)
    b.ever("jit", jit)
    return pair(b, "madd", "loop", 256 * KIB, 1000)


ROWS = [
    Row("lua-empty", "empty Lua process, above an empty C stage", "above", 0.25,
        lambda b: pair(b, "nop", "empty", 4, 300000)),
    Row("lua-copy", "Lua y:copy(x) of 256 KiB: memcpy", "rate", 0.8,
        lambda b: pair(b, "copy", "copy", 256 * KIB, 10000)),
    Row("lua-loop", "LuaJIT loop over 256 KiB of f32: C -O2", "time", 2, loop),
]
