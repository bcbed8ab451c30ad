// Loss and throughput of a run: whole history from the server, live points at the end.
import "./history.js";
import { siteNow } from "./ages.js";
import { loss, number, short } from "./format.js";
import { LINEAGE_TINTS, colour, marksDraw, plotMake, widthsKeep } from "./plot.js";
import { chartRows, epochsFetch, lineageLines, markPlace, positive, seriesAppend, seriesFetch, seriesTrim, smoothed } from "./series.js";
import { isZoomed, unzoomed, viewRead, viewSpan, viewWrite, zoomedTo } from "./view.js";

const MAX_POINTS = 4000;
const TABLE_ROWS = 24;

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const section = /** @type {HTMLElement} */ (document.getElementById("charts"));
const seriesUrl = main.dataset.series || "";
let view = viewRead(location.search);
/** @type {import("./series.js").Columns | null} */
let columns = null;
/** @type {Record<string, (number|null)[]> | null} */
let epochs = null;
/** @type {any[]} */
let marks = [];
/** @type {Record<string, any>} */
let plots = {};
let isDue = false;
let loads = 0;
let isBehind = false; // the last load failed
let newest = JSON.parse(document.getElementById("live-state")?.textContent || "{}"); // may be ahead of what is fetched

/** @returns {{x: any[], loss: import("./plot.js").Line[], rate: import("./plot.js").Line[]}} */
function lines() {
  if (view.x === "epoch") return epochLines();
  const axis = /** @type {"time"|"samples"} */ (view.x);
  const [x, losses, rates, peers] = chartRows(/** @type {any} */ (columns), axis, ["loss", "samples_per_second", "num_peers"]);
  return {
    x,
    loss: lossLines("Loss", losses, colour("--honey-strong")),
    rate: [
      { label: "Samples/s", values: rates, colour: colour("--honey-strong"), write: short },
      { label: "Peers", values: peers, colour: colour("--peer-1"), scale: "right", write: String },
    ],
  };
}

function epochLines() {
  const found = lineageLines(/** @type {any} */ (epochs), "loss");
  const rates = lineageLines(/** @type {any} */ (epochs), "samples_per_second");
  const isOne = found.lines.length === 1;
  const tint = (/** @type {number} */ i) => colour(LINEAGE_TINTS[(found.lines.length - 1 - i) % LINEAGE_TINTS.length]);
  return {
    x: found.epochs,
    loss: found.lines.flatMap(({ lineage, values }, i) => lossLines(isOne ? "Loss" : `Loss, lineage ${lineage}`, values, tint(i))),
    rate: rates.lines.map(({ lineage, values }, i) => ({ label: isOne ? "Samples/s" : `Samples/s, lineage ${lineage}`, values, colour: tint(i), write: short })),
  };
}

/** @param {string} label @param {(number|null)[]} raw @param {string} stroke @returns {import("./plot.js").Line[]} */
function lossLines(label, raw, stroke) {
  const values = view.scale === "log" ? positive(raw) : raw;
  const weight = Number(view.smooth);
  if (!weight) return [{ label, values, colour: stroke, write: loss }];
  const faint = stroke.replace(/^rgb\((.*)\)$/, "rgba($1, 0.3)");
  return [
    { label: `${label}, as measured`, values, colour: faint, width: 1, write: loss },
    { label: `${label}, smoothed`, values: smoothed(values, weight), colour: stroke, write: loss },
  ];
}

function build() {
  for (const plot of Object.values(plots)) plot.destroy();
  plots = {};
  if ((view.x === "epoch" ? epochs?.epoch.length || 0 : columns?.t.length || 0) < 2) return;
  for (const hidden of section.querySelectorAll("[hidden].chart, [hidden].chart-second")) hidden.removeAttribute("hidden");
  const found = lines();
  for (const kind of /** @type {("loss"|"rate")[]} */ (["loss", "rate"])) {
    const box = /** @type {HTMLElement | null} */ (section.querySelector(`[data-chart="${kind}"]`));
    if (!box) continue;
    plots[kind] = plotMake(box, {
      x: found.x, lines: found[kind], axis: /** @type {any} */ (view.x), height: kind === "loss" ? 260 : 170, sync: "run",
      isLog: kind === "loss" && view.scale === "log", isFromZero: kind === "rate", zoomed,
      drawn: (plot) => marksDraw(plot, kind === "loss" ? placed() : []),
    });
    plots[kind].over.addEventListener("dblclick", () => isZoomed(view) && viewSet(unzoomed(view)));
  }
}

function placed() {
  return marks.map((mark) => ({ ...mark, place: markPlace(mark, view.x, columns) }));
}

function drawSoon() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    const twin = section.querySelector(".twin");
    if (twin instanceof HTMLDetailsElement && twin.open) tableFill();
    const found = plots.loss ? lines() : null;
    if (!found || found.loss.length + 1 !== plots.loss.series.length) return build(); // another lineage
    for (const kind of /** @type {("loss"|"rate")[]} */ (["loss", "rate"])) plots[kind]?.setData([found.x, ...found[kind].map((line) => line.values)]);
  });
}

async function load() {
  const turn = ++loads;
  const span = viewSpan(view, Date.now() / 1000);
  try {
    const [history, byEpoch, found] = await Promise.all([
      seriesFetch(seriesUrl, span),
      view.x === "epoch" ? epochsFetch(seriesUrl, view) : null,
      marksFetch(view.x === "epoch" ? {} : span),
    ]);
    if (turn !== loads) return; // another view was chosen meanwhile
    [columns, epochs, marks] = [history, byEpoch, found];
    if (!isZoomed(view)) seriesAppend(columns, newest);
    build();
    tableFill();
    behindShow(false);
  } catch {
    if (turn === loads) behindShow(true); // what is shown stays
  }
}

/** @param {boolean} is whether the charts could not be had */
function behindShow(is) {
  isBehind = is;
  const line = section.querySelector("[data-charts-behind]");
  if (line instanceof HTMLElement) line.hidden = !is;
}

/** Bring marks and epochs up to date; the points of time and samples come with the live state. */
async function due() {
  if (!columns || isBehind) return load();
  const turn = loads;
  const isByEpoch = view.x === "epoch";
  const span = isByEpoch ? {} : viewSpan(view, Date.now() / 1000);
  try {
    const [byEpoch, found] = await Promise.all([isByEpoch ? epochsFetch(seriesUrl, view) : null, marksFetch(span)]);
    if (turn !== loads) return;
    [epochs, marks] = [byEpoch, found];
    drawSoon();
  } catch {
    behindShow(true);
  }
}

/** @param {{from?: number, to?: number}} span @returns {Promise<any[]>} none when they cannot be had */
async function marksFetch(span) {
  const query = new URLSearchParams();
  for (const [name, at] of Object.entries(span)) query.set(name, new Date(at * 1000).toISOString());
  const answer = await fetch(`${seriesUrl.replace(/series\/$/, "marks/")}?${query}`);
  return answer.ok ? (await answer.json()).items : [];
}

/** @param {number} low @param {number} high */
function zoomed(low, high) {
  viewSet(zoomedTo(view, low, high, /** @type {any} */ (columns)));
}

/** Show a view and keep it in the address: it can be shared, and the back button undoes it. */
function viewSet(/** @type {import("./view.js").View} */ next) {
  const isSame = next.range === view.range && next.x === view.x && !isZoomed(next) && !isZoomed(view);
  view = next;
  history.pushState(null, "", location.pathname + viewWrite(view, location.search) + location.hash);
  document.dispatchEvent(new CustomEvent("viewchange", { detail: "charts" }));
  viewShow();
  if (isSame) build();
  else void load();
}

function viewShow() {
  for (const link of /** @type {NodeListOf<HTMLElement>} */ (section.querySelectorAll("[data-set]"))) {
    const isOn = /** @type {any} */ (view)[link.dataset.set || ""] === link.dataset.to;
    link.setAttribute("aria-current", String(isOn && !(link.dataset.set === "range" && isZoomed(view))));
  }
  const reset = section.querySelector("[data-unzoom]");
  if (reset instanceof HTMLElement) reset.hidden = !isZoomed(view);
  const csv = section.querySelector("[data-csv]");
  if (csv instanceof HTMLAnchorElement) csv.search = viewWrite(view, "");
}

/** The table shows the same stretch as the charts. */
function tableFill() {
  const body = section.querySelector(".twin tbody");
  if (!body || !columns || !columns.t.length) return;
  const count = columns.t.length, step = Math.max(1, Math.floor(count / TABLE_ROWS)), rows = [];
  for (let i = count - 1; i >= 0; i -= step) {
    const at = new Date(columns.t[i] * 1000).toISOString().slice(0, 19).replace("T", " ");
    const cells = [at, number(columns.epoch[i]), number(columns.samples_total[i]), loss(columns.loss[i]), short(columns.samples_per_second[i]), number(columns.num_peers[i])];
    const row = document.createElement("tr");
    row.append(...cells.map((text, j) => Object.assign(document.createElement("td"), { textContent: text, className: j ? "right" : "" })));
    rows.push(row);
  }
  body.replaceChildren(...rows);
}

section.addEventListener("click", (event) => {
  const link = /** @type {HTMLElement} */ (event.target).closest("[data-set], [data-unzoom]");
  if (!(link instanceof HTMLAnchorElement)) return;
  event.preventDefault();
  const name = link.dataset.set;
  if (!name) return viewSet(unzoomed(view));
  const isAxis = name === "range" || name === "x";
  viewSet({ ...(isAxis ? unzoomed(view) : view), [name]: link.dataset.to });
});
function viewAgain() {
  view = viewRead(location.search);
  viewShow();
  void load();
}
addEventListener("popstate", viewAgain);
document.addEventListener("viewchange", (event) => {
  if (/** @type {CustomEvent} */ (event).detail !== "charts") viewAgain();
});
document.addEventListener("livestate", (event) => {
  newest = /** @type {CustomEvent} */ (event).detail;
  if (!columns || isZoomed(view) || !seriesAppend(columns, newest)) return; // by epoch, for the table
  seriesTrim(columns, viewSpan(view, siteNow() / 1000).from);
  if (columns.t.length > MAX_POINTS) void load();
  else drawSoon();
});
document.addEventListener("historydue", () => void due());
section.querySelector(".twin")?.addEventListener("toggle", tableFill);
document.addEventListener("themechange", build);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", build);
widthsKeep(section, () => Object.values(plots));
viewShow();
void load();
