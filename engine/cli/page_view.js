/* page_view.js - frames of a run: asks for the newest one of the chosen buffer, so many times a second, and draws it as
 * it was chosen. What comes is a line of JSON, and f32 elements, row by row. */
"use strict";
const by_id = id => document.getElementById(id);
const canvas = by_id("canvas"), pen = canvas.getContext("2d");
let frame = null, maps = null, paused = false, timer = 0, asked = 0;

/* ---- drawing ---- */

/* The range of values that is shown: what is typed, else that of the frame. */
function range() {
    const of = (id, value) => by_id(id).value === "" ? value ?? 0 : Number(by_id(id).value);
    return [of("low", frame.view.min), of("high", frame.view.max)];
}

/* Red, green and blue of 256 levels, one after the other. */
function colors() {
    const at = ["viridis", "magma", "turbo"].indexOf(by_id("map").value);
    if (at >= 0 && maps)
        return maps.subarray(768 * at, 768 * at + 768);
    return Uint8Array.from({length: 768}, (_, i) => Math.floor(i / 3));
}

/* An element that is no number has the color of an error. */
function draw_picture() {
    const {rows, columns, channels, data} = frame, [low, high] = range(), table = colors();
    const level = x => Math.max(0, Math.min(255, Math.floor((x - low) * 256 / (high - low || 1))));
    canvas.width = columns, canvas.height = rows;
    canvas.style.width = Math.max(columns, Math.min(columns * 8, 640)) + "px";
    const image = pen.createImageData(columns, rows), to = image.data;
    for (let i = 0; i < rows * columns; i++) {
        const at = i * channels, x = data[at];
        to[4 * i + 3] = 255;
        if (channels >= 3)
            for (let k = 0; k < 3; k++)
                to[4 * i + k] = level(data[at + k]);
        else if (Number.isNaN(x))
            to[4 * i] = 255, to[4 * i + 2] = 255;
        else
            for (let k = 0; k < 3; k++)
                to[4 * i + k] = table[3 * level(x) + k];
    }
    pen.putImageData(image, 0, 0);
}

function axes(x_low, x_high, y_low, y_high) {
    canvas.width = 900, canvas.height = 400, canvas.style.width = "";
    const ink = getComputedStyle(document.body).color;
    pen.fillStyle = pen.strokeStyle = ink;
    pen.font = "12px system-ui, sans-serif";
    pen.strokeRect(70.5, 10.5, 820, 360);
    pen.textAlign = "right";
    pen.fillText(short(y_high), 64, 20);
    pen.fillText(short(y_low), 64, 370);
    pen.fillText(short(x_high), 890, 388);
    pen.textAlign = "left";
    pen.fillText(short(x_low), 70, 388);
    return ink;
}

/* One row, of each channel a line. A gap is an element that is not finite. */
function draw_line() {
    const {rows, columns, channels, data, step} = frame, [low, high] = range();
    const row = Math.max(0, Math.min(rows - 1, Math.floor(Number(by_id("row").value) / step[0])));
    const ink = axes(0, (columns - 1) * step[1], low, high);
    for (let k = 0; k < channels; k++) {
        pen.strokeStyle = channels < 3 ? ink : ["#d33", "#2a4", "#36d", ink][k];
        pen.beginPath();
        let on = false;
        for (let c = 0; c < columns; c++) {
            const x = data[(row * columns + c) * channels + k];
            const px = 70 + 820 * c / Math.max(1, columns - 1), py = 370 - 360 * (x - low) / (high - low || 1);
            if (Number.isFinite(x))
                on ? pen.lineTo(px, py) : pen.moveTo(px, py), on = true;
            else
                on = false;
        }
        pen.stroke();
    }
}

/* How many of the elements that are shown lie where in the range. */
function counts(bins) {
    const [low, high] = range(), n = new Array(bins).fill(0);
    for (const x of frame.data)
        if (x >= low && x <= high)
            n[Math.min(bins - 1, Math.floor((x - low) * bins / (high - low || 1)))]++;
    return n;
}

function draw_histogram() {
    const n = counts(64), most = Math.max(1, ...n), [low, high] = range();
    axes(low, high, 0, most);
    n.forEach((x, i) => pen.fillRect(71 + 820 * i / n.length, 370 - 360 * x / most, 820 / n.length - 1, 360 * x / most));
}

const short = x => x === null || x === undefined ? "–" : String(Number(Number(x).toPrecision(6)));

function show() {
    if (!frame)
        return;
    const v = frame.view, as = by_id("as").value, step = frame.step;
    ({picture: draw_picture, line: draw_line, histogram: draw_histogram})[as]();
    const of = [["frame", v.frame], ["type", `${v.dtype} ${v.shape.join(" × ")}`], ["min", short(v.min)], ["max", short(v.max)],
        ["mean", short(v.mean)], ["std", short(v.std)], ["NaN", v.nan], ["infinite", v.inf], ["holes before it", v.holes]];
    by_id("numbers").replaceChildren(...of.map(([name, value]) => {
        const at = document.createElement("div");
        at.append(document.createElement("dt"), document.createElement("dd"));
        at.firstChild.textContent = name, at.lastChild.textContent = value;
        return at;
    }));
    say(step[0] * step[1] > 1 ? `of ${step[0]} × ${step[1]} elements one is drawn; the numbers are of all` : "");
}

function say(text) {
    if (by_id("said").textContent !== text)
        by_id("said").textContent = text;
}

/* ---- asking ---- */

function read(bytes) {
    const end = new Uint8Array(bytes).indexOf(10) + 1;
    return {...JSON.parse(new TextDecoder().decode(bytes.slice(0, end))), data: new Float32Array(bytes, end)};
}

/* One question at a time; an answer for a buffer that is no longer the chosen one is thrown away. */
async function ask() {
    const mine = ++asked, buffer = by_id("buffer").value, started = performance.now();
    try {
        const after = frame && frame.buffer === buffer ? `&after=${frame.view.frame}` : "";
        const answer = await fetch(`/view/frame?buffer=${encodeURIComponent(buffer)}${after}`);
        const bytes = answer.status === 204 ? null : await answer.arrayBuffer();
        if (mine !== asked)
            return;
        if (answer.status === 200) {
            frame = {...read(bytes), buffer};
            show();
        } else if (answer.status === 404) {
            say(JSON.parse(new TextDecoder().decode(bytes)).error);
        } else if (!frame || frame.buffer !== buffer) {
            say("waiting for a frame");
        }
    } catch (error) {
        if (mine === asked)
            say("the run does not answer: it is over");
    }
    if (mine === asked && !paused)
        timer = setTimeout(ask, Math.max(0, 1000 / Math.max(1, Number(by_id("rate").value)) - (performance.now() - started)));
}

function again() {
    clearTimeout(timer);
    if (!paused)
        ask();
}

async function begin() {
    const names = await (await fetch("/view/buffers")).json();
    maps = new Uint8Array(await (await fetch("/view/colormaps")).arrayBuffer());
    by_id("buffer").replaceChildren(...names.map(name => new Option(name, name)));
    const wanted = decodeURIComponent(location.hash.slice(1));
    if (names.includes(wanted))
        by_id("buffer").value = wanted;
    ask();
}

by_id("controls").addEventListener("submit", e => e.preventDefault());
by_id("buffer").addEventListener("change", () => {
    location.hash = encodeURIComponent(by_id("buffer").value);
    again();
});
for (const id of ["as", "map", "row", "low", "high"])
    by_id(id).addEventListener("input", show);
by_id("rate").addEventListener("change", again);
by_id("pause").addEventListener("click", () => {
    paused = !paused;
    by_id("pause").setAttribute("aria-pressed", paused);
    again();
});
begin();
