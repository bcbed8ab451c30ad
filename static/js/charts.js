// Loss and throughput as uPlot charts: whole history from the server, live points at the end.
import { loss, short } from "./format.js";
import { RANGE_SECONDS, chartRows, positive, seriesAppend, seriesFetch } from "./series.js";

const HEIGHTS = { loss: 260, rate: 170 };
const MAX_POINTS = 4000;
const uPlot = /** @type {any} */ (globalThis).uPlot;

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const section = /** @type {HTMLElement} */ (document.getElementById("charts"));
const view = /** @type {{range: "1h"|"24h"|"all", scale: string, x: "time"|"epoch"|"samples"}} */ ({
  range: section.dataset.range, scale: section.dataset.scale, x: section.dataset.x,
});
/** @type {import("./series.js").Columns | null} */
let columns = null;
/** @type {Record<string, any>} */
let plots = {};
let isZoomed = false;
let isDue = false;

/** A token's colour as the browser sees it now: light-dark() is not resolved in the variable. */
function colour(/** @type {string} */ token) {
  const probe = document.createElement("span");
  probe.hidden = true;
  probe.style.color = `var(${token})`;
  section.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** @param {number} value seconds since 1970 @param {number} step seconds between two labels */
function timeLabel(value, step) {
  const at = new Date(value * 1000);
  if (step >= 86400) return at.toLocaleDateString(undefined, { day: "numeric", month: "short" });
  const clock = at.toLocaleTimeString("en-GB", step < 60 ? {} : { hour: "2-digit", minute: "2-digit" });
  return clock === "00:00" ? at.toLocaleDateString(undefined, { day: "numeric", month: "short" }) : clock;
}

/** @param {"loss"|"rate"} kind */
function options(kind) {
  const [text, grid, honey, blue] = ["--muted", "--line", "--honey-strong", "--peer-1"].map(colour);
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const axis = { stroke: text, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  const xValue = (/** @type {any} */ _plot, /** @type {number|null} */ value) =>
    value == null ? "–" : view.x === "time" ? new Date(value * 1000).toLocaleString() : short(value);
  const xAxis = { ...axis, space: 90, values: (/** @type {any} */ _u, /** @type {number[]} */ all, /** @type {number} */ _i, /** @type {number} */ _s, /** @type {number} */ step) =>
    all.map((value) => (view.x === "time" ? timeLabel(value, step) : short(value))) };
  const line = (/** @type {string} */ label, /** @type {string} */ stroke, /** @type {any} */ value, scale = "y") => ({
    label, stroke, width: 2, scale, spanGaps: true, points: { show: false },
    value: (/** @type {any} */ _u, /** @type {number|null} */ v) => (v == null ? "–" : value(v)),
  });
  const isLog = kind === "loss" && view.scale === "log";
  const y = { ...axis, size: 56, values: (/** @type {any} */ _u, /** @type {number[]} */ all) => all.map((v) => (v == null ? "" : short(v))) };
  return {
    width: section.querySelector(".chart")?.clientWidth || 600,
    height: HEIGHTS[kind],
    scales: { x: { time: view.x === "time" }, y: isLog ? { distr: 3, log: 10 } : rangeOf(kind), peers: { range: (/** @type {any} */ _u, /** @type {number} */ _a, /** @type {number} */ b) => [0, Math.max(1, b || 1) * 1.15] } },
    axes: kind === "loss" ? [xAxis, y] : [xAxis, y, { ...axis, side: 1, scale: "peers", size: 40, grid: { show: false }, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }],
    series: [
      { label: { time: "Time", epoch: "Epoch", samples: "Samples" }[view.x], value: xValue },
      ...(kind === "loss" ? [line("Loss", honey, loss)]
        : [line("Samples/s", honey, short), line("Peers", blue, String, "peers")]),
    ],
    cursor: { sync: { key: "run" }, drag: { x: true, y: false } },
    hooks: { setSelect: [zoomed] },
  };
}

/** @param {"loss"|"rate"} kind */
function rangeOf(kind) {
  if (kind === "rate") return { range: (/** @type {any} */ _u, /** @type {number} */ _a, /** @type {number} */ b) => [0, (b || 1) * 1.1] };
  return {};
}

/** @param {"loss"|"rate"} kind */
function rows(kind) {
  if (!columns) return [[]];
  const names = kind === "loss" ? ["loss"] : ["samples_per_second", "num_peers"];
  const found = chartRows(columns, view.x, names);
  return kind === "loss" && view.scale === "log" ? [found[0], ...found.slice(1).map(positive)] : found;
}

function build() {
  for (const plot of Object.values(plots)) plot.destroy();
  plots = {};
  if (!columns || columns.t.length < 2) return;
  for (const kind of /** @type {("loss"|"rate")[]} */ (["loss", "rate"])) {
    const box = section.querySelector(`[data-chart="${kind}"]`);
    if (!box) continue;
    for (const hidden of section.querySelectorAll("[hidden].chart, [hidden].chart-second")) hidden.removeAttribute("hidden");
    box.replaceChildren();
    plots[kind] = new uPlot(options(kind), rows(kind), box);
    plots[kind].over.addEventListener("dblclick", unzoom);
  }
}

function drawSoon() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    if (!plots.loss) build();
    else for (const kind of /** @type {("loss"|"rate")[]} */ (["loss", "rate"])) plots[kind].setData(rows(kind), !isZoomed);
  });
}

async function load(span = rangeSpan()) {
  try {
    columns = await seriesFetch(main.dataset.series || "", span);
    build();
  } catch {
    // The still picture and the table stay; the next change of range tries again.
  }
}

/** @returns {{from?: number, to?: number}} seconds since 1970 */
function rangeSpan() {
  const length = RANGE_SECONDS[view.range];
  return length ? { from: Date.now() / 1000 - length } : {};
}

/** Zoom along time asks the server for finer points. @param {any} plot */
function zoomed(plot) {
  if (view.x !== "time" || plot.select.width < 8) return;
  const from = plot.posToVal(plot.select.left, "x");
  const to = plot.posToVal(plot.select.left + plot.select.width, "x");
  isZoomed = true;
  void load({ from, to });
}

function unzoom() {
  if (!isZoomed) return;
  isZoomed = false;
  void load();
}

section.addEventListener("click", (event) => {
  const link = /** @type {HTMLElement} */ (event.target).closest("[data-set]");
  if (!(link instanceof HTMLAnchorElement)) return;
  event.preventDefault();
  const name = /** @type {"range"|"scale"|"x"} */ (link.dataset.set);
  const isNew = name === "range" || isZoomed;
  /** @type {any} */ (view)[name] = link.dataset.to;
  for (const other of section.querySelectorAll(`[data-set="${name}"]`)) other.setAttribute("aria-current", String(other === link));
  addressKeep();
  isZoomed = false;
  if (isNew) void load();
  else build();
});

/** Keep the view in the address, so that it can be shared and survives a reload. */
function addressKeep() {
  const url = new URL(location.href);
  const usual = /** @type {any} */ ({ range: "all", scale: "linear", x: "time" });
  for (const [name, value] of Object.entries(view)) {
    if (value === usual[name]) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  history.replaceState(null, "", url);
  const csv = section.querySelector("[data-csv]");
  if (csv instanceof HTMLAnchorElement) csv.search = `?range=${view.range}`;
}

document.addEventListener("livestate", (event) => {
  if (!columns || isZoomed) return;
  if (!seriesAppend(columns, /** @type {CustomEvent} */ (event).detail)) return;
  if (columns.t.length > MAX_POINTS) void load();
  else drawSoon();
});
document.addEventListener("themechange", build);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", build);
new ResizeObserver(() => {
  for (const [kind, plot] of Object.entries(plots)) {
    const width = section.querySelector(".chart")?.clientWidth || 0;
    if (width && width !== plot.width) plot.setSize({ width, height: HEIGHTS[/** @type {"loss"|"rate"} */ (kind)] });
  }
}).observe(section);
void load();
