/* page.js - the figures of a run: all of the page but the timeline.
 *
 * What comes from the run gets into the page as text or as an attribute, never as HTML. */
"use strict";

const by_id = id => document.getElementById(id);
const report = JSON.parse(by_id("report").textContent) || {};
const trace = JSON.parse(by_id("trace").textContent);

/* An element with attributes and children; a string is text. Of `style` a property is set
 * by itself, as { width: "3px" }. */
function el(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {}))
        if (key === "style")
            Object.assign(e.style, value);
        else if (value !== false && value != null)
            e.setAttribute(key, value === true ? "" : value);
    e.append(...children.filter(c => c != null).map(c => typeof c === "number" ? String(c) : c));
    return e;
}

/* ---- numbers --------------------------------------------------------- */

const NONE = "–";
const known = v => typeof v === "number" && isFinite(v);

/* Three digits that count, or all before the point. */
function digits(v) {
    const a = Math.abs(v);
    if (a >= 99.95)
        return Math.round(v).toLocaleString("en");
    return v.toFixed(a >= 9.995 ? 1 : 2);
}

function scaled(v, step, units) {
    let i = 0;
    while (i < units.length - 1 && Math.abs(v) >= step * 0.9995) {
        v /= step;
        i++;
    }
    return `${digits(v)} ${units[i]}`;
}

const count = v => known(v) ? v.toLocaleString("en") : NONE;
const rate = v => known(v) ? digits(v) : NONE;
const percent = v => !known(v) ? NONE
    : `${v >= 0.0005 && v < 0.0095 ? (100 * v).toFixed(1) : Math.round(100 * v)} %`;
const bytes = v => !known(v) ? NONE : v < 1024 ? `${v} B`
                                    : scaled(v / 1024, 1024, ["KiB", "MiB", "GiB", "TiB"]);
const bytes_rate = v => !known(v) ? NONE : v < 1000 ? `${Math.round(v)} B/s`
                                         : scaled(v / 1000, 1000, ["kB/s", "MB/s", "GB/s"]);
const duration = us => !known(us) ? NONE : us === 0 ? "0" : Math.abs(us) < 1
    ? `${digits(1000 * us)} ns` : scaled(us, 1000, ["µs", "ms", "s"]);

/* ---- pieces ---------------------------------------------------------- */

const color = name => `var(--${name})`;
const swatch = name => el("i", { class: "swatch", style: { background: color(name) } });

const share = part => `${100 * Math.min(1, Math.max(0, part))}%`;    /* in CSS */

/* Parts of a whole, as [color, part, label]; parts are 0 to 1. */
function strip(parts, thin) {
    const said = parts.filter(p => p[2]).map(([, part, label]) => `${label} ${percent(part)}`);
    return el("div", { class: thin ? "strip thin" : "strip", role: "img",
                       "aria-label": said.join(", "), title: said.join(", ") },
              ...parts.map(([name, part]) => el("i", { style: {
                  width: share(part || 0), background: color(name) } })));
}

/* A table of columns [head, cell(row), class]; a head that is an array has a color before
 * its name. The first column names the row; `mark(row)` is a row's class. */
function table(rows, columns, mark = () => null) {
    const head = ([h, , kind]) => el("th", { scope: "col", class: kind },
                                     ...(Array.isArray(h) ? [swatch(h[0]), h[1]] : [h]));
    const cell = row => ([, of, kind], i) => {
        const inside = of(row);
        return el(i ? "td" : "th", { scope: i ? null : "row", class: kind,
                                     title: kind === "text" ? inside : null }, inside);
    };
    return el("div", { class: "wide" }, el("table", null,
        el("thead", null, el("tr", null, ...columns.map(head))),
        el("tbody", null, ...rows.map(row =>
            el("tr", { class: mark(row) }, ...columns.map(cell(row)))))));
}

function pairs(rows) {
    return el("table", { class: "pairs" }, el("tbody", null, ...rows.map(([name, value]) =>
        el("tr", null, el("th", { scope: "row" }, name), el("td", null, value)))));
}

/* Fills a section, or takes it out where there is nothing to show. */
function fill(id, ...content) {
    if (content.length)
        by_id(id).append(...content);
    else
        by_id(id).remove();
}

const fill_table = (id, rows, ...of) => fill(id, ...rows.length ? [table(rows, ...of)] : []);

/* What a time went into, [color, head, part of a row] each, as columns: all in one strip, then each as a number. */
const shares = (head, parts) => [
    [head, row => strip(parts.map(([name, what, of]) => [name, of(row), what.replace(/^for /, "waiting for ")])), "bar"],
    ...parts.map(([name, what, of]) => [[name, what], row => percent(of(row)), "num"])];

/* ---- the sections ---------------------------------------------------- */

const list = key => Array.isArray(report[key]) ? report[key] : [];
const pipeline = report.pipeline || {}, verdict = report.verdict || {};
/* Of several ranks: what is of all; else this is the report of one process. */
const whole = report.whole || null, of_all = whole || report, ranks = list("ranks");
const sources = Array.isArray(of_all.sources) ? of_all.sources : [];
const stages = list("stages"), segments = list("segments");
const engines = list("engines"), buffers = list("buffers"), latency = report.latency_us || {};
const wall_s = report.wall_s || 0;
const sum = (rows, key) => rows.reduce((total, row) => total + (row[key] || 0), 0);
const of_wall = (s, workers) => wall_s ? s / (wall_s * (workers || 1)) : 0;
const bound = row => row.name === verdict.name && verdict.bound !== "depth" ? "bound" : null;
const bound_buffer = row => row.name === verdict.name && verdict.bound === "depth" ? "bound" : null;

/* As a word of a shell's command line. */
const quoted = s => /^[\w@%+=:,./-]+$/.test(s) ? s : `'${String(s).replace(/'/g, "'\\''")}'`;

function write_head() {
    const file = pipeline.file || "", name = pipeline.name || file;
    document.title = `${name} · gpipe`;
    const date = (report.date || "").replace("T", " ").replace("Z", " UTC");
    const figures_of = whole ? `the figures below are of rank ${report.rank} of ${whole.ranks}` : "";
    by_id("what").append([name, pipeline.device, date, figures_of].filter(Boolean).join("  ·  "));
    by_id("verdict").append((verdict.text || "no verdict").replace(/(\d) %/g, "$1\u00a0%"));
    if (verdict.edit)
        by_id("edit").append(el("code", null, "gpipe run --set "
            + `${quoted(`${verdict.edit.path}=${verdict.edit.value}`)} ${quoted(file)}`));
    else
        by_id("edit").remove();
    const lost = ["dropped", "failed", "cancelled"].map(k => [k, sum(sources, k)])
        .filter(([, n]) => n);
    const figures = [
        ["run", report.outcome || NONE, report.outcome !== "done"],
        ...whole ? [["ranks", count(whole.ranks)]] : [],
        ["frames a second", rate(of_all.frames_per_s)],
        ["frames out", count(sum(sources, "out"))],
        ...lost.map(([k, n]) => [k, count(n), k === "failed"]),
        ["time", duration(1e6 * (of_all.wall_s || 0))],
        ["median latency", duration(latency.p50)],
        ["99 % within", duration(latency.p99)],
        ["overlap", percent(report.overlap)],
    ];
    by_id("figures").append(...figures.map(([name, value, bad]) =>
        el("div", { class: bad ? "bad" : null }, el("dt", null, name), el("dd", null, value))));
}

function write_ranks() {
    const of = r => r.report || {}, device = r => (of(r).pipeline || {}).device;
    const bound = v => [v.bound, v.name].filter(Boolean).join(" ");
    const why = r => r.lost ? "lost" : r.answered ? bound(of(r).verdict || {}) : "did not answer";
    const clock = r => known(r.clock_offset_us)
        ? `${duration(r.clock_offset_us)} ± ${duration(r.clock_error_us)}` : NONE;
    fill_table("ranks", ranks, [
        ["rank", r => r.rank, "name"],
        ["host", r => r.host || "", "text"],
        ["device", r => device(r) || NONE, "text"],
        ["frames out", r => count(sum(r.sources || [], "out")), "num"],
        ["frames a second", r => rate(of(r).frames_per_s), "num"],
        ["time", r => duration(1e6 * of(r).wall_s), "num"],
        ["bound by", why, "text"],
        ["clock ahead", clock, "num"],
    ], r => r.rank === report.rank ? "bound" : null);
}

function write_stages() {
    const own = s => of_wall((s.busy_s || 0) - (s.idle_s || 0), s.workers);
    const part = key => s => of_wall(s[key], s.workers);
    fill_table("stages", stages, [
        ["stage", s => s.name, "name"],
        ["use", s => s.use || "", "text"],
        ["workers", s => s.most_workers > 1 ? `${s.workers} of ${s.most_workers}` : s.workers,
         "num"],
        ["frames", s => count(s.frames), "num"],
        ...shares("of its workers' time", [
            ["stage", "busy", s => known(s.busy) ? s.busy : own(s)], ["idle", "idle", part("idle_s")],
            ["wait-in", "for input", part("wait_in_s")], ["wait-out", "for output", part("wait_out_s")]]),
        ["a frame, p50", s => duration(s.frame_p50_us), "num"],
        ["p99", s => duration(s.frame_p99_us), "num"],
        ["rate", s => bytes_rate(wall_s ? s.bytes / wall_s : null), "num"],
    ], bound);
}

function write_segments() {
    const part = key => s => of_wall(s[key]);
    fill_table("segments", segments, [
        ["segment", s => s.name, "name"],
        ["stages", s => (s.stages || []).join(", "), "text"],
        ["streams", s => s.streams, "num"],
        ["depth", s => s.depth, "num"],
        ["batch", s => s.batch, "num"],
        ["frames", s => count(s.frames), "num"],
        ["launches", s => count(s.launches), "num"],
        ...shares("of its launcher's time", [
            ["launch", "launching", part("launching_s")], ["wait-in", "for input", part("wait_in_s")],
            ["wait-out", "for output", part("wait_out_s")], ["idle", "for a stream", part("wait_stream_s")]]),
        ["a frame, p50", s => duration(s.frame_p50_us), "num"],
        ["p99", s => duration(s.frame_p99_us), "num"],
    ], bound);
}

function write_engines() {
    const of_limit = e => e.limit_gb_s ? e.gb_s / e.limit_gb_s : null;
    const kind = e => e.name.replace(" ", "-");
    fill_table("engines", engines, [
        ["engine", e => e.name, "name"],
        ...engines.some(e => e.device) ? [["device", e => e.device || NONE, "soft"]] : [],
        ["busy; below it: rate, as a part of the limit", e => el("div", null,
            strip([[kind(e), e.busy, "busy"]]), of_limit(e) === null ? null
                : strip([[kind(e), of_limit(e), "of the limit"]], true)), "bar"],
        ["busy", e => percent(e.busy), "num"],
        ["GB/s", e => e.bytes ? rate(e.gb_s) : NONE, "num"],
        ["limit", e => rate(e.limit_gb_s), "num"],
        ["of the limit", e => percent(of_limit(e)), "num"],
        ["total", e => e.bytes ? bytes(e.bytes) : NONE, "num"],
        ["", e => (e.by_kernels ? `kernels moved ${bytes(e.by_kernels)} in its place, ` : "")
            + (e.measured ? "measured" : "an estimate"), "soft"],
    ], bound);
}

function write_latency() {
    const rows = [["half of them", "p50"], ["90 %", "p90"], ["95 %", "p95"], ["99 %", "p99"],
                  ["all", "max"]].filter(r => known(latency[r[1]]));
    fill_table("latency", latency.max > 0 ? rows : [], [
        ["frames", r => r[0], "name"],
        ["within, source to sink",
         r => strip([["stage", latency[r[1]] / latency.max, "of the longest"]]), "bar"],
        ["", r => r[1], "soft"],
        ["", r => duration(latency[r[1]]), "num"],
    ]);
}

/* What a buffer held: a cell for each slot, as full as it was in the mean. */
function cells(b) {
    const n = Math.min(b.depth, 16), full = b.held / b.depth * n;
    const label = `${digits(b.held)} of ${b.depth} held`;
    return el("div", { class: "cells", role: "img", "aria-label": label, title: label },
              ...Array.from({ length: n }, (_, i) =>
                  el("i", null, el("b", { style: { width: share(full - i) } }))));
}

function write_buffers() {
    fill_table("buffers", buffers, [
        ["buffer", b => b.name, "name"],
        ["from", b => b.from, "text"],
        ["to", b => b.to, "text"],
        ["a slot", b => [b.dtype, (b.shape || []).join(" × ")].filter(Boolean).join("  "), "text"],
        ["held", cells, "bar"],
        ["mean", b => digits(b.held), "num"],
        ["of", b => b.depth, "num"],
        ["full", b => percent(b.held / b.depth), "num"],
    ], bound_buffer);
}

function write_rest() {
    const knobs = ["device", "streams", "depth", "batch", "launch", "sync", "on_error"]
        .filter(k => pipeline[k] != null).map(k => [k, el("code", null, pipeline[k])]);
    for (const s of stages)
        if (s.most_workers > 1)
            knobs.push([`stages.${s.name}.workers`, el("code", null, s.workers)]);
    for (const name of new Set(buffers.map(b => b.name)))
        knobs.push([`buffers.${name}.depth`,
                    el("code", null, buffers.find(b => b.name === name).depth)]);
    fill("knobs", ...knobs.length ? [pairs(knobs)] : []);
    fill_table("sources", sources, [
        ["source", s => s.name, "name"],
        ...["in", "out", "dropped", "failed", "cancelled"].map(k => [k, s => count(s[k]), "num"]),
    ]);
    const e = report.environment || {};
    fill("environment", pairs([
        ["GPU", e.gpu || "none, the CPU back end"],
        ["driver", e.driver], ["CUDA toolkit", e.toolkit],
        ["CPU", [e.cpu, e.cores ? `${e.cores} cores` : ""].filter(Boolean).join(", ")],
        ["gpipe", [report.gpipe, report.commit].filter(Boolean).join(", commit ")],
        ["pipeline", pipeline.file], ["date", report.date],
    ].filter(r => r[1])));
}

function write_plan() {
    const root = by_id("picture").shadowRoot;
    if (!root || !root.querySelector("svg, p")) {
        by_id("plan").remove();
        return;
    }
    const bound = root.getElementById(`${verdict.bound === "depth" ? "buffer" : "stage"} ${verdict.name}`);
    if (bound)
        bound.classList.add("bound");
}

write_head();
write_ranks();
write_stages();
write_segments();
write_engines();
write_latency();
write_buffers();
write_plan();
write_rest();
