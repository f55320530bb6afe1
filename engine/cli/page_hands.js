/* page_hands.js - the timeline is looked at: zoom, move, point at, choose.
 *
 * Keys zoom and move as a mouse does; they choose a frame by its number. */
"use strict";

const NARROWEST = 0.05;                /* us across the view */

/* ---- looking around -------------------------------------------------- */

function show(tl, t0, t1) {
    const span = Math.min(END, Math.max(NARROWEST, t1 - t0));
    tl.t0 = Math.min(Math.max(0, (t0 + t1 - span) / 2), END - span);
    tl.t1 = tl.t0 + span;
    by_id("span").textContent =
        `${duration(tl.t0)} to ${duration(tl.t1)}, ${duration(span)} of ${duration(END)}`;
    redraw(tl);
}

/* So that what is at `t` stays there; `by` > 1: less is in view. */
function zoom(tl, by, t = (tl.t0 + tl.t1) / 2) {
    const span = Math.min(END, Math.max(NARROWEST, (tl.t1 - tl.t0) / by));
    const t0 = t - (t - tl.t0) * span / (tl.t1 - tl.t0);
    show(tl, t0, t0 + span);
}

function pan(tl, part) {
    const by = part * (tl.t1 - tl.t0);
    show(tl, tl.t0 + by, tl.t1 + by);
}

/* What is at a place of the window: { row, slice } or {}. Narrow slices are found beside it. */
function find(tl, clientX, clientY) {
    const r = tl.canvas.getBoundingClientRect();
    const x = clientX - r.left, y = clientY - r.top + tl.scroll.scrollTop;
    const row = tl.rows.find(q => y >= q.y && y < q.y + q.h);
    if (clientY - r.top < RULER || x < tl.label || !row || row.title)
        return {};
    const t = to_t(tl, x), near = 3 * (tl.t1 - tl.t0) / (tl.width - tl.label);
    if (!row.track)
        return { row, t };
    const lanes = row.track.lanes;
    const lane = lanes[Math.max(0, Math.min(lanes.length - 1, Math.floor(
        (y - row.y - 2) / (lanes.length > 1 ? LANE : ROW))))];
    const i = first_where(lane, s => s.end > t);
    const away = s => s ? Math.max(0, s.ts - t, t - s.end) + (s.kind === "wait" ? near / 2 : 0)
                        : Infinity;
    const slice = [lane[i - 1], lane[i], lane[i + 1]].reduce((a, b) => away(b) < away(a) ? b : a);
    return away(slice) <= near ? { row, t, slice } : { row, t };
}

const behind = of => of === null ? "" : ` of ${of}`;
const frames_of = s => s.first < 0 ? "no frame" : (s.first === s.last ? `frame ${s.first}`
    : `frames ${s.first} to ${s.last}${s.step > 1 ? `, one in ${s.step}` : ""}`) + behind(s.of);
/* Its track, and of several ranks the one that it is of. */
const track_of = s => s.track.name + (report.whole ? `, ${s.track.group.title}` : "");

/* ---- choosing -------------------------------------------------------- */

function describe(s) {
    return `${s.name}, ${frames_of(s)}, ${duration(s.dur)}, ${s.kind} on ${track_of(s)}, `
         + `from ${duration(s.ts)} on`;
}

/* From when to when there is work at what is chosen. */
function time_of_chosen({ work }) {
    return [work[0].ts, work.reduce((m, s) => Math.max(m, s.end), 0)];
}

/* A row for each slice of what is chosen. */
function list_chosen(tl) {
    const MOST = 50, { work, slice, first, last } = tl.chosen;
    const [t0, t1] = time_of_chosen(tl.chosen);
    const name = first < 0 ? slice.name
        : (first === last ? `Frame ${first}` : `Frames ${first} to ${last}`) + behind(tl.of);
    const when = s => el("div", { class: "when" }, el("i", { style: {
        left: `${100 * (s.ts - t0) / (t1 - t0 || 1)}%`, width: `${100 * s.dur / (t1 - t0 || 1)}%`,
        background: color(s.kind.replace(" ", "-")) } }));
    by_id("chosen").replaceChildren(
        el("h3", null, `${name}: ${duration(t1 - t0)}, from ${duration(t0)} on`),
        table(work.slice(0, MOST), [
            ["", s => s.name, "name"],
            ["", s => s.kind, "soft"],
            ["track", track_of, "text"],
            ["after", s => duration(s.ts - t0), "num"],
            ["takes", s => duration(s.dur), "num"],
            ["", when, "bar"],
        ], s => s === slice ? "here" : null),
        work.length > MOST
            ? el("p", { class: "soft small" }, `and ${work.length - MOST} more`) : "");
}

/* Frames `first` to `last`, with a slice of theirs; or a slice without a frame. Without a slice they are of the
 * buffer of which a frame was chosen last. */
function choose(tl, first, last, slice) {
    tl.of = slice ? slice.of : tl.of;
    const all = data.slices.filter(s => s === slice || (first >= 0 && s.of === tl.of && has_frames(s, first, last)));
    const work = all.filter(s => s.kind !== "wait");
    tl.chosen = all.length ? { first, last, slice, all, work: work.length ? work : all } : null;
    by_id("chosen").hidden = by_id("fit").disabled = !tl.chosen;
    if (tl.chosen)
        list_chosen(tl);
    by_id("said").textContent = slice ? describe(slice)
        : tl.chosen ? `frame ${first}${behind(tl.of)}, ${tl.chosen.work.length} slices`
        : first >= 0 ? `frame ${first}${behind(tl.of)} is not in the trace` : "nothing chosen";
    by_id("of").textContent = behind(tl.of);
    redraw(tl);
}

function choose_slice(tl, s) {
    choose(tl, s.first, s.last, s);
    by_id("frame").value = s.first >= 0 ? s.first : "";
}

function choose_none(tl) {
    choose(tl, -1, -1, null);
    by_id("frame").value = "";
}

function show_chosen(tl) {
    const [t0, t1] = time_of_chosen(tl.chosen), more = (t1 - t0) / 12;
    show(tl, t0 - more, t1 + more);
}

/* ---- hands ----------------------------------------------------------- */

function hover(tl, e) {
    const found = find(tl, e.clientX, e.clientY), tip = by_id("tip");
    const r = tl.canvas.getBoundingClientRect(), s = found.slice || null, x = e.clientX - r.left;
    tl.hovered = s;
    tl.pointer = x >= tl.label ? x : null;
    tip.hidden = !s && !(found.row && found.row.counter);
    if (s) {
        tip.replaceChildren(
            el("div", null, el("b", null, s.name), s.first < 0 ? "" : `  ${frames_of(s)}`),
            el("div", null, `${duration(s.dur)}, from ${duration(s.ts)} to ${duration(s.end)}`),
            el("div", null, `${s.kind} on ${track_of(s)}`));
    } else if (!tip.hidden) {
        const c = found.row.counter, i = first_where(c.points, p => p.ts > found.t) - 1;
        tip.replaceChildren(
            el("div", null, el("b", null, c.name),
               `  holds ${i < 0 ? 0 : c.points[i].v} of ${c.most}`),
            el("div", null, `at ${duration(found.t)}`));
    }
    const w = tip.offsetWidth, h = tip.offsetHeight;
    const above = e.clientY + 18 + h > window.innerHeight;
    tip.style.left = `${Math.min(e.clientX + 14, window.innerWidth - w - 8)}px`;
    tip.style.top = `${above ? e.clientY - h - 10 : e.clientY + 18}px`;
    redraw(tl);
}

function leave(tl) {
    tl.hovered = tl.pointer = null;
    by_id("tip").hidden = true;
    redraw(tl);
}

/* A drag moves the view; what moves less than a few pixels is a click. */
function listen_pointer(tl) {
    let down = null, drags = false;
    tl.canvas.addEventListener("pointerdown", e => {
        if (e.button)
            return;
        down = { x: e.clientX, t0: tl.t0, t1: tl.t1 };
        drags = false;
        tl.canvas.setPointerCapture(e.pointerId);
    });
    tl.canvas.addEventListener("pointermove", e => {
        if (!down) {
            hover(tl, e);
            return;
        }
        drags = drags || Math.abs(e.clientX - down.x) > 3;
        if (drags) {
            const by = (down.x - e.clientX) * (down.t1 - down.t0) / (tl.width - tl.label);
            tl.canvas.classList.add("drags");
            leave(tl);
            show(tl, down.t0 + by, down.t1 + by);
        }
    });
    tl.canvas.addEventListener("pointerup", e => {
        const click = down && !drags, s = click && find(tl, e.clientX, e.clientY).slice;
        down = null;
        tl.canvas.classList.remove("drags");
        if (s)
            choose_slice(tl, s);
        else if (click)
            choose_none(tl);
    });
    tl.canvas.addEventListener("pointercancel", () => {
        down = null;
        tl.canvas.classList.remove("drags");
    });
    tl.canvas.addEventListener("pointerleave", () => leave(tl));
}

/* A wheel that turns while the page scrolls goes on scrolling it; so does one that
 * would zoom out where all is in view. */
function listen_wheel(tl) {
    let scrolled = -Infinity;
    window.addEventListener("scroll", () => { scrolled = performance.now(); }, { passive: true });
    tl.canvas.addEventListener("wheel", e => {
        const all = tl.t1 - tl.t0 >= END * 0.9999;
        const sideways = e.shiftKey ? e.deltaY || e.deltaX
            : Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : 0;
        if (performance.now() - scrolled < 300 || (all && (sideways || e.deltaY > 0)))
            return;
        e.preventDefault();
        const pixels = e.deltaMode === 1 ? 20 : e.deltaMode === 2 ? 400 : 1;
        const x = e.clientX - tl.canvas.getBoundingClientRect().left;
        if (sideways)
            pan(tl, sideways * pixels / (tl.width - tl.label));
        else
            zoom(tl, Math.exp(-e.deltaY * pixels / 400), to_t(tl, Math.max(x, tl.label)));
        hover(tl, e);
    }, { passive: false });
}

function listen_keys(tl) {
    const does = {
        "+": () => zoom(tl, 1.5), "=": () => zoom(tl, 1.5), "-": () => zoom(tl, 1 / 1.5),
        "0": () => show(tl, 0, END), Home: () => show(tl, 0, tl.t1 - tl.t0),
        End: () => show(tl, END + tl.t0 - tl.t1, END),
        ArrowLeft: () => pan(tl, -0.15), ArrowRight: () => pan(tl, 0.15),
        Enter: () => tl.chosen && show_chosen(tl), Escape: () => choose_none(tl),
    };
    tl.canvas.addEventListener("keydown", e => {
        if (!does[e.key] || e.ctrlKey || e.metaKey || e.altKey)
            return;
        e.preventDefault();
        does[e.key]();
    });
}

function listen_tools(tl) {
    const on = (id, f) => by_id(id).addEventListener("click", f);
    on("in", () => zoom(tl, 1.5));
    on("out", () => zoom(tl, 1 / 1.5));
    on("left", () => pan(tl, -0.25));
    on("right", () => pan(tl, 0.25));
    on("all", () => show(tl, 0, END));
    on("fit", () => show_chosen(tl));
    by_id("frame").addEventListener("input", e => {
        const n = e.target.valueAsNumber;
        choose(tl, n >= 0 ? n : -1, n >= 0 ? n : -1, null);
    });
    by_id("frame").addEventListener("keydown", e => {
        if (e.key === "Enter" && tl.chosen)
            show_chosen(tl);
    });
}

function start(tl) {
    if (!data.slices.length) {
        by_id("timeline").replaceChildren(by_id("timeline-h"), el("p", { class: "soft" },
            "The report was made without a trace."));
        return;
    }
    const there = new Set(data.slices.map(s => s.kind));
    by_id("key").append(...KINDS.filter(k => there.has(k)).map(k =>
        el("span", null, swatch(k.replace(" ", "-")), k)));
    by_id("of").textContent = behind(tl.of);
    lay_out_rows(tl);
    show(tl, 0, END);
    resize(tl);
    listen_pointer(tl);
    listen_wheel(tl);
    listen_keys(tl);
    listen_tools(tl);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => resize(tl));
    tl.scroll.addEventListener("scroll", () => redraw(tl), { passive: true });
    new ResizeObserver(() => resize(tl)).observe(tl.scroll);
}

start(timeline);
