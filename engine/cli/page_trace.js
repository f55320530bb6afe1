/* page_trace.js - what a trace has: tracks of slices, counters.
 *
 * * Times are us from the first event on. In a lane of a track slices are in order and apart. Where frames are
 * regrouped they have other numbers behind it: a slice says of which buffer its frame is, null: all have the same. One
 * of a rank has each `step`-th frame from `first` to `last`. */
"use strict";

const KINDS = ["stage", "launch", "copy in", "compute", "copy out", "peer copy", "wait"];

/* Slices that overlap get lanes of their own: within a lane they are in order and apart. */
function put_in_lane(track, slice) {
    const EPSILON = 0.005;             /* us: what rounding may make of an end and a start */
    let lane = track.lanes.find(l => l[l.length - 1].end <= slice.ts + EPSILON);
    if (!lane)
        track.lanes.push(lane = []);
    slice.lane = track.lanes.indexOf(lane);
    lane.push(slice);
}

/* Tracks in their order, groups before them; counters come last, also in the order of groups. */
function read_trace(events) {
    const groups = new Map(), tracks = new Map(), counters = new Map();
    const kept = (map, key, make) => {
        if (!map.has(key))
            map.set(key, make());
        return map.get(key);
    };
    const group_of = pid => kept(groups, pid, () => ({ title: `process ${pid}`, pid }));
    const track_of = (pid, tid) => kept(tracks, `${pid} ${tid}`, () => (
        { name: `thread ${tid}`, order: tid, group: group_of(pid), lanes: [] }));
    const counter_of = (pid, name) => kept(counters, `${pid} ${name}`, () => (
        { name: name.replace(/^buffer /, ""), group: group_of(pid), points: [] }));
    const slices = [];
    for (const e of events) {
        const args = e.args || {};
        if (e.ph === "M" && e.name === "process_name")
            group_of(e.pid).title = String(args.name);
        else if (e.ph === "M" && e.name === "thread_name")
            track_of(e.pid, e.tid).name = String(args.name);
        else if (e.ph === "M" && e.name === "thread_sort_index")
            track_of(e.pid, e.tid).order = args.sort_index;
        else if (e.ph === "X") {
            const step = known(args.step) && args.step > 1 ? args.step : 1;
            slices.push({ ts: e.ts, end: e.ts + e.dur, dur: e.dur, name: String(e.name),
                          kind: KINDS.includes(e.cat) ? e.cat : "stage",
                          first: known(args.frame) ? args.frame : -1,
                          last: known(args.frame) ? args.frame + ((args.frames || 1) - 1) * step : -1, step,
                          of: args.of === undefined ? null : String(args.of),
                          track: track_of(e.pid, e.tid) });
        } else if (e.ph === "C")
            counter_of(e.pid, String(e.name)).points
                .push({ ts: e.ts, v: Object.values(args).find(known) || 0 });
    }
    slices.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
    slices.forEach(s => put_in_lane(s.track, s));
    for (const c of counters.values()) {
        c.points.sort((a, b) => a.ts - b.ts);
        const b = buffers.find(buffer => buffer.name === c.name);
        c.most = Math.max(b ? b.depth : 1, c.points.reduce((m, p) => Math.max(m, p.v), 0));
    }
    const in_order = [...counters.values()].sort((a, b) => a.group.pid - b.group.pid);
    return { slices, counters: in_order, tracks: [...tracks.values()]
        .filter(t => t.lanes.length)
        .sort((a, b) => a.group.pid - b.group.pid || a.order - b.order) };
}

/* Times from 0 on. Returns the end. */
function from_zero({ slices, counters }) {
    const points = counters.flatMap(c => c.points);
    const least = (m, e) => Math.min(m, e.ts);
    const start = Math.min(slices.reduce(least, Infinity), points.reduce(least, Infinity));
    let end = 0;
    for (const e of [...slices, ...points]) {
        e.ts -= start;
        if (e.end !== undefined)
            e.end -= start;
        end = Math.max(end, e.end || e.ts);
    }
    return Math.max(end, 1e-3);
}

/* The first of `list` for which `is` holds, which holds from there on. */
function first_where(list, is) {
    let low = 0, high = list.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (is(list[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Has a slice some of the frames from `first` to `last`, which may be those of another slice? */
const has_frames = (s, first, last) => s.first >= 0 && s.first <= last && s.last >= first
    && (first - s.first) % s.step === 0;

const data = read_trace(trace && Array.isArray(trace.traceEvents) ? trace.traceEvents : []);
const END = from_zero(data);
