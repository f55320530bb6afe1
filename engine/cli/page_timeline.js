/* page_timeline.js - the trace as a drawing: tracks over each other, time to the right.
 *
 * What is narrower than a pixel is drawn as the part of its pixel that is covered, so
 * nothing gets lost however much is in view. */
"use strict";

const RULER = 24, HEAD = 22, ROW = 20, LANE = 15, COUNTER = 26, GAP = 4;
const FONT = "12px system-ui, sans-serif", SMALL = "11px system-ui, sans-serif";

const timeline = {
    canvas: by_id("canvas"), scroll: by_id("scroll"), pen: by_id("canvas").getContext("2d"),
    t0: 0, t1: END, width: 0, height: 0, label: 120, ratio: 1,
    rows: [],                          /* { y, h } and a title, a track or a counter */
    hovered: null, chosen: null,       /* a slice; { first, last, slice or null,
                                          all: slices, work: those that are no waits } */
    of: data.tracks.length ? data.tracks[0].lanes[0][0].of : null,     /* whose frames are chosen */
    pointer: null,                     /* x of the mouse; null: elsewhere */
    colors: {}, queued: false,
    covered: {},                       /* of each kind: by pixel, the part that it covers */
};

function lay_out_rows(tl) {
    let y = RULER, group = null;
    const add = (h, row) => {
        tl.rows.push({ y, h, ...row });
        y += h;
    };
    for (const track of data.tracks) {
        if (track.group !== group)
            add(HEAD, { title: (group = track.group).title });
        const lanes = track.lanes.length;
        add((lanes > 1 ? lanes * LANE : ROW) + GAP, { track });
        track.row = tl.rows[tl.rows.length - 1];
    }
    const several = new Set(data.counters.map(c => c.group)).size > 1;
    group = null;
    for (const counter of data.counters) {
        if (counter.group !== group)
            add(HEAD, { title: `frames held in buffers${several ? `, ${counter.group.title}` : ""}` });
        group = counter.group;
        add(COUNTER + GAP, { counter });
    }
    tl.full = y + 4;
}

/* Where a slice is, as on the screen but for scrolling: x may lie outside. */
function place(tl, slice) {
    const { row, lanes } = slice.track, high = lanes.length > 1 ? LANE : ROW;
    const x = to_x(tl, slice.ts);
    return { x, y: row.y + 2 + slice.lane * high, w: to_x(tl, slice.end) - x, h: high - 1 };
}

const to_x = (tl, t) => tl.label + (t - tl.t0) / (tl.t1 - tl.t0) * (tl.width - tl.label);
const to_t = (tl, x) => tl.t0 + (x - tl.label) / (tl.width - tl.label) * (tl.t1 - tl.t0);

/* ---- drawing --------------------------------------------------------- */

function read_colors(tl) {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "ink", "soft", "rule", "faint", "accent", "on", "held",
                        ...KINDS.map(k => k.replace(" ", "-"))])
        tl.colors[name] = style.getPropertyValue(`--${name}`).trim();
    for (const kind of KINDS)
        tl.colors[kind] = tl.colors[kind.replace(" ", "-")];
}

function fill_rect(pen, style, x, y, w, h) {
    pen.fillStyle = style;
    pen.fillRect(x, y, w, h);
}

function text(tl, s, x, y, most) {
    const pen = tl.pen;
    if (pen.measureText(s).width > most) {
        let n = first_where([...s].map((_, i) => [...s].slice(0, i + 1).join("") + "…"),
                            part => pen.measureText(part).width > most);
        s = n > 1 ? [...s].slice(0, n).join("") + "…" : "";
    }
    pen.fillText(s, x, y);
}

/* A step of 1, 2 or 5 with about so many pixels between marks. */
function ruler_step(tl) {
    const least = (tl.t1 - tl.t0) / Math.max(1, (tl.width - tl.label) / 110);
    const power = 10 ** Math.floor(Math.log10(least));
    return power * [1, 2, 5, 10].find(k => k * power >= least);
}

/* A mark's time in the unit of the step, with the digits that a step needs. */
function mark(t, step) {
    const [unit, name] = [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"]]
        .find(([u]) => step >= u * 0.999 || u === 1e-3) || [1, "µs"];
    const up = t >= 1000 * unit && unit < 1e6;
    const by = up ? unit * 1000 : unit;
    const after = Math.max(0, -Math.floor(Math.log10(step / by) + 1e-9));
    return `${(t / by).toFixed(after)} ${up ? { ms: "s", "µs": "ms", ns: "µs" }[name] : name}`;
}

function draw_ruler(tl) {
    const { pen, colors, height, label, width } = tl, step = ruler_step(tl);
    fill_rect(pen, colors.paper, 0, 0, width, RULER);
    pen.font = SMALL;
    for (let i = Math.ceil(tl.t0 / step); i * step <= tl.t1; i++) {
        const x = Math.round(to_x(tl, i * step));
        fill_rect(pen, colors.rule, x, RULER - 6, 1, height);
        pen.fillStyle = colors.soft;
        if (x + 4 + pen.measureText(mark(i * step, step)).width < width)
            pen.fillText(mark(i * step, step), x + 4, 15);
    }
    fill_rect(pen, colors.rule, 0, RULER - 1, width, 1);
    pen.fillRect(label - 1, 0, 1, height);
}

const is_chosen = (tl, s) => tl.chosen !== null && (tl.chosen.slice === s
    || (s.of === tl.of && has_frames(s, tl.chosen.first, tl.chosen.last)));

/* One slice of some width: with its frame, or its name where it has none. */
function draw_slice(tl, s, at, strong) {
    const { pen, colors, label, width } = tl;
    const x = Math.max(at.x, label), right = Math.min(at.x + at.w, width), w = right - x;
    const wait = s.kind === "wait", y = wait ? at.y + at.h / 2 - 2 : at.y, h = wait ? 4 : at.h;
    pen.globalAlpha = strong ? 1 : (tl.chosen ? 0.28 : 1) * (s.first % 2 === 1 && !wait ? 0.8 : 1);
    fill_rect(pen, colors[s.kind], x, y, Math.max(strong ? 2 : 0.5, w - (w > 3 ? 1 : 0)), h);
    if (w > 14 && !wait && (strong || !tl.chosen)) {
        const frame = s.first < 0 ? "" : s.first === s.last ? `${s.first}` : `${s.first}–${s.last}`;
        const full = s.name === s.track.name && frame ? frame : `${s.name} ${frame}`.trim();
        pen.fillStyle = colors.on;
        pen.font = SMALL;
        text(tl, frame && pen.measureText(full).width > w - 7 ? frame : full, x + 3,
             y + h / 2 + 4, w - 6);
    }
    pen.globalAlpha = 1;
}

/* Adds to how much of each pixel something from `x` to `right` covers. */
function cover(part, x, right) {
    for (let pixel = Math.floor(x); pixel < right; pixel++)
        part[pixel] += Math.min(right, pixel + 1) - Math.max(x, pixel);
}

/* Pixels by how much of them is covered, in the color of what covers most; waits only
 * where there is no work. Empties it. */
function draw_covered(tl, y, h) {
    const { pen, colors, covered } = tl, work = KINDS.filter(k => k !== "wait");
    const run = (kind, x, shade, end) => {
        const thin = kind === "wait";
        pen.globalAlpha = (0.18 + 0.82 * shade / 32) * (tl.chosen ? 0.28 : 1);
        fill_rect(pen, colors[kind], x, thin ? y + h / 2 - 2 : y, end - x, thin ? 4 : h);
    };
    for (const kinds of [["wait"], work]) {
        let begin = 0, kind = null, shade = 0;
        for (let x = tl.label; x <= tl.width; x++) {
            let all = 0, most = null;
            const none = x >= tl.width || (kinds !== work && work.some(k => covered[k][x] > 0));
            for (const k of kinds) {
                const part = none ? 0 : covered[k][x];
                all += part;
                most = part > 0 && (!most || part > covered[most][x]) ? k : most;
            }
            const now = Math.round(32 * Math.min(1, all));
            if (most !== kind || now !== shade) {
                if (kind)
                    run(kind, begin, shade, x);
                [begin, kind, shade] = [x, most, now];
            }
        }
        kinds.forEach(k => covered[k].fill(0));
    }
    pen.globalAlpha = 1;
}

/* All of a lane that is in view. */
function draw_lane(tl, track, lane) {
    const WIDE = 6, scale = (tl.width - tl.label) / (tl.t1 - tl.t0);
    const { y, h } = place(tl, lane[0]);
    const first = first_where(lane, s => s.end > tl.t0);
    let narrow = false;
    for (let i = first; i < lane.length && lane[i].ts < tl.t1; i++) {
        const s = lane[i], x = to_x(tl, s.ts);
        if (s.dur * scale >= WIDE) {
            draw_slice(tl, s, place(tl, s), false);
            continue;
        }
        narrow = true;
        cover(tl.covered[s.kind], Math.max(tl.label, x), Math.min(tl.width, x + s.dur * scale));
    }
    if (narrow)
        draw_covered(tl, y, h);
}

/* Its mean in each pixel. */
function draw_counter(tl, row) {
    const { pen, colors, width, label } = tl, { points, most } = row.counter;
    const bottom = row.y + 2 + COUNTER, high = v => v / most * COUNTER;
    let column = -1, area = 0;
    const flush = () => {
        if (column >= 0)
            pen.fillRect(column, bottom - high(area), 1, high(area));
        column = -1;
    };
    fill_rect(pen, colors.faint, label, bottom - COUNTER, width - label, COUNTER);
    pen.fillStyle = colors.held;
    let i = Math.max(0, first_where(points, p => p.ts > tl.t0) - 1);
    for (; i < points.length && points[i].ts < tl.t1; i++) {
        let x = Math.max(label, to_x(tl, points[i].ts));
        const v = points[i].v, end = i + 1 < points.length ? points[i + 1].ts : END;
        const right = Math.min(width, to_x(tl, end));
        while (x < right) {            /* a piece of a pixel, or all whole pixels */
            const pixel = Math.floor(x);
            if (x === pixel && right - x >= 1) {
                flush();
                const whole = Math.floor(right) - pixel;
                pen.fillRect(pixel, bottom - high(v), whole, high(v));
                x += whole;
                continue;
            }
            if (pixel !== column) {
                flush();
                column = pixel;
                area = 0;
            }
            const until = Math.min(right, pixel + 1);
            area += v * (until - x);
            x = until;
        }
    }
    flush();
}

/* The chosen slices over the rest, and a line through them in the order of time. */
function draw_chosen(tl, seen) {
    const { pen, colors, chosen, label } = tl, { work } = chosen;
    if (chosen.first === chosen.last && chosen.first >= 0) {
        pen.strokeStyle = colors.ink;
        pen.lineWidth = 1;
        pen.globalAlpha = 0.6;
        pen.beginPath();
        for (let i = 1; i < work.length; i++) {
            const a = place(tl, work[i - 1]), b = place(tl, work[i]);
            pen.moveTo(a.x + a.w, a.y + a.h / 2);
            pen.lineTo(b.x, b.y + b.h / 2);
        }
        pen.stroke();
        pen.globalAlpha = 1;
    }
    for (const s of chosen.all) {
        const at = place(tl, s);
        if (at.x + Math.max(at.w, 2) > label && at.x < tl.width && seen(s.track.row))
            draw_slice(tl, s, at, true);
    }
    if (chosen.slice)
        outline(tl, chosen.slice, colors.ink, 2);
}

function outline(tl, s, style, thick) {
    const at = place(tl, s), x = Math.max(at.x, tl.label);
    const w = Math.max(2, Math.min(at.x + at.w, tl.width) - x);
    tl.pen.strokeStyle = style;
    tl.pen.lineWidth = thick;
    tl.pen.strokeRect(x - 0.5, at.y - 0.5, w, at.h + 1);
}

function draw_labels(tl, row) {
    const { pen, colors, label } = tl;
    fill_rect(pen, colors.paper, 0, row.y, label - 1, row.h);
    if (row.title) {
        pen.fillRect(0, row.y, tl.width, row.h);
        fill_rect(pen, colors.rule, 0, row.y, tl.width, 1);
        pen.fillStyle = colors.soft;
        pen.font = SMALL;
        text(tl, row.title, 10, row.y + 15, tl.width - 20);
        return;
    }
    pen.fillStyle = colors.ink;
    pen.font = FONT;
    if (row.track) {
        text(tl, row.track.name, 10, row.y + (row.track.lanes.length > 1 ? 14 : 16), label - 20);
    } else {
        text(tl, row.counter.name, 10, row.y + 19, label - 44);
        pen.fillStyle = colors.soft;
        pen.font = SMALL;
        pen.textAlign = "right";
        pen.fillText(`0–${row.counter.most}`, label - 8, row.y + 19);
        pen.textAlign = "left";
    }
}

/* A line at the mouse, with the time there. */
function draw_pointer(tl) {
    const { pen, colors, width, height } = tl, x = Math.round(tl.pointer);
    pen.font = SMALL;
    const said = duration(to_t(tl, x)), w = pen.measureText(said).width + 8;
    const left = Math.min(x, width - w);
    fill_rect(pen, colors.accent, x, 0, 1, height);
    pen.fillRect(left, 0, w, RULER - 6);
    pen.fillStyle = colors.on;
    pen.fillText(said, left + 4, 13);
}

function draw(tl) {
    const { pen, width, height, ratio } = tl;
    const top = tl.scroll.scrollTop;
    const seen = row => row.y + row.h > top + RULER && row.y < top + height;
    tl.queued = false;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    fill_rect(pen, tl.colors.paper, 0, 0, width, height);
    draw_ruler(tl);
    pen.save();
    pen.beginPath();
    pen.rect(0, RULER, width, height);
    pen.clip();
    pen.translate(0, -top);
    for (const row of tl.rows.filter(seen))
        if (row.track)
            row.track.lanes.forEach(lane => draw_lane(tl, row.track, lane));
        else if (row.counter)
            draw_counter(tl, row);
    if (tl.chosen)
        draw_chosen(tl, seen);
    if (tl.hovered)
        outline(tl, tl.hovered, tl.colors.accent, 1.5);
    for (const row of tl.rows.filter(seen))
        draw_labels(tl, row);
    pen.restore();
    if (tl.pointer !== null)
        draw_pointer(tl);
}

/* Soon, and once however often it is asked for. */
function redraw(tl) {
    if (!tl.queued)
        requestAnimationFrame(() => draw(tl));
    tl.queued = true;
}

function resize(tl) {
    by_id("space").style.height = `${tl.full}px`;
    tl.width = tl.scroll.clientWidth;
    tl.height = Math.min(tl.full, tl.scroll.clientHeight);
    tl.ratio = window.devicePixelRatio || 1;
    tl.pen.font = FONT;
    const widest = Math.max(0, ...tl.rows.map(r => r.track ? tl.pen.measureText(r.track.name).width
        : r.counter ? tl.pen.measureText(r.counter.name).width + 24 : 0));
    tl.label = Math.min(Math.ceil(Math.min(widest + 24, 220)), Math.ceil(tl.width * 0.3));
    tl.canvas.width = Math.round(tl.width * tl.ratio);
    tl.canvas.height = Math.round(tl.height * tl.ratio);
    tl.canvas.style.height = `${tl.height}px`;
    for (const kind of KINDS)
        tl.covered[kind] = new Float32Array(Math.ceil(tl.width) + 1);
    read_colors(tl);
    draw(tl);
}
