// Timeline, replay and the stacked charts of a run's history.
import { loss, percent, short } from "./format.js";
import { tablesRenew } from "./historytables.js";
import { colour, marksDraw, plotMake, widthsKeep } from "./plot.js";
import { epochsFetch, markPlace, seriesFetch, stacked } from "./series.js";
import { iso, viewRead, viewSpan, viewWrite, zoomedTo } from "./view.js";

const TINTS = ["--peer-0", "--peer-1", "--peer-2", "--peer-3", "--peer-4", "--peer-5", "--peer-6", "--peer-7"];
const PARTS = { computing: "Computing", matchmaking: "Matchmaking", averaging: "Averaging", waiting: "Waiting, other" };
const SCRUB_STEPS = 1000;
const WAIT_MS = 120;
const DRAW_MS = 15000;
const LIVE_MS = 10000; // moments are kept so far apart

/** @param {HTMLElement} root what holds the history */
export function historyStart(root) {
  const timeline = root.querySelector("[data-history]");
  if (!(timeline instanceof HTMLElement) || root.dataset.started) return;
  root.dataset.started = "true";
  const main = /** @type {HTMLElement} */ (document.getElementById("main"));
  const api = main.dataset.api || (main.dataset.series || "").replace(/series\/$/, "");
  /** @type {Record<string, any>} */
  let plots = {};
  let turns = 0;
  const redraw = () => plots.line?.redraw(false);
  const draw = async () => {
    const turn = ++turns;
    for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (root.querySelectorAll("[data-csv]"))) link.search = viewWrite(viewRead(location.search), "");
    const fetched = await dataFetch(api).catch(() => null);
    if (!fetched || turn !== turns) return; // the tables stay
    for (const plot of Object.values(plots)) plot.destroy();
    plots = chartsMake(root, fetched);
  };
  const renew = async () => {
    const begun = await tablesRenew(root, `${timeline.dataset.part}${location.search}`).catch(() => null); // else they stay
    if (begun?.dataset.first) replayStart(begun, redraw);
    await draw();
  };
  void draw();
  seenAfter(() => root.isConnected && void renew());
  if (timeline.dataset.first) replayStart(timeline, redraw);
  document.addEventListener("themechange", () => void draw());
  document.addEventListener("viewchange", () => void renew());
  addEventListener("popstate", () => void renew());
  widthsKeep(root, () => Object.values(plots));
}

/** After news, some seconds later, or when somebody looks again. @param {() => void} act */
function seenAfter(act) {
  let again = 0, isDue = false;
  const actSeen = () => {
    if (!isDue || document.hidden) return;
    isDue = false;
    act();
  };
  document.addEventListener("historydue", () => {
    // Several answers of any length: not with each of a swarm's short epochs.
    again ||= window.setTimeout(() => {
      again = 0;
      isDue = true;
      actSeen();
    }, DRAW_MS);
  });
  document.addEventListener("visibilitychange", actSeen);
}

/** @typedef {{view: import("./view.js").View, series: import("./series.js").Columns, marks: any[],
 *   rates: Record<string, number[]>, epochs: Record<string, (number|null)[]>}} Fetched */

/** @param {string} api @returns {Promise<Fetched>} */
async function dataFetch(api) {
  const view = { ...viewRead(location.search), x: "time" };
  const span = viewSpan(view, Date.now() / 1000);
  const between = new URLSearchParams();
  for (const [name, at] of Object.entries(span)) between.set(name, iso(/** @type {number} */ (at)));
  const ask = async (/** @type {string} */ path) => (await fetch(`${api}${path}?${between}`)).json();
  const spent = ["averaged_share", ...Object.keys(PARTS).map((part) => `${part}_seconds`)];
  const [series, marks, rates, epochs] = await Promise.all([
    seriesFetch(`${api}series/`, span), ask("marks/"), ask("throughput/"), epochsFetch(`${api}series/`, view, spent),
  ]);
  return { view, series, marks: marks.items, rates, epochs: newestLineage(epochs) };
}

/** @param {HTMLElement} root @param {Fetched} fetched @returns {Record<string, any>} the charts by name */
function chartsMake(root, { view, series, marks, rates, epochs }) {
  const box = (/** @type {string} */ name) => /** @type {HTMLElement | null} */ (root.querySelector(`[data-history-chart="${name}"]`));
  const [line, stack, parts, share] = ["line", "throughput", "spent", "share"].map(box);
  /** @type {Record<string, any>} */
  const made = {};
  if (line && series.t.length > 1) {
    const placed = marks.map((mark) => ({ ...mark, place: markPlace(mark, "time", series) }));
    made.line = plotMake(line, {
      x: series.t, axis: "time", height: 230, sync: "history", lines: [
        { label: "Loss", values: series.loss, colour: colour("--honey-strong"), write: loss },
        { label: "Peers", values: series.num_peers, colour: colour("--peer-1"), scale: "right", write: String },
      ],
      zoomed: (low, high) => zoom(zoomedTo(view, low, high, series)),
      drawn: (plot) => {
        marksDraw(plot, placed, (mark) => momentAsk(root, mark.at));
        nowDraw(plot, root);
      },
    });
    made.line.over.addEventListener("dblclick", () => zoom({ ...view, from: "", to: "" }));
  }
  const names = Object.keys(rates).filter((name) => name !== "t");
  if (stack && names.length && rates.t.length > 1) {
    made.stack = stackMake(stack, "time", rates.t, names, names.map((n) => rates[n]), short);
  }
  if (parts && epochs.epoch.length > 1) {
    const columns = Object.keys(PARTS).map((part) => epochs[`${part}_seconds`]);
    made.parts = stackMake(parts, "epoch", /** @type {number[]} */ (epochs.epoch), Object.values(PARTS), columns, (v) => `${short(v)} s`);
  }
  if (share && epochs.epoch.length > 1) {
    made.share = plotMake(share, { x: epochs.epoch, axis: "epoch", height: 120, isFromZero: true, max: 1.05, sync: "epochs", write: percent,
      lines: [{ label: "Averaged", values: epochs.averaged_share, colour: colour("--peer-2"), write: percent }] });
  }
  return made;
}

/** @param {HTMLElement} box @param {"time"|"epoch"} axis @param {number[]} x @param {string[]} names
 * @param {(number|null)[][]} columns @param {(v: number) => string} write */
function stackMake(box, axis, x, names, columns, write) {
  const tops = stacked(columns);
  const tints = names.map((_, i) => colour(TINTS[i % TINTS.length]));
  // From the top down, so that what lies lower is painted over what lies higher.
  const order = names.map((_, i) => names.length - 1 - i);
  return plotMake(box, {
    x, axis, height: 200, isFromZero: true, sync: axis === "time" ? "history" : "epochs",
    lines: order.map((i) => ({ label: names[i], values: tops[i], own: columns[i], colour: tints[i], width: 1, fill: tints[i], write })),
  });
}

/** @param {Record<string, (number|null)[]>} columns @returns {Record<string, any[]>} the last lineage's rows that say something */
function newestLineage(columns) {
  const last = columns.lineage[columns.lineage.length - 1];
  const kept = columns.lineage.flatMap((lineage, i) => (lineage === last && columns.computing_seconds[i] !== null ? [i] : []));
  return Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, kept.map((i) => values[i])]));
}

/** Show another stretch, here and in the page's other charts. @param {import("./view.js").View} view */
function zoom(view) {
  const { x } = viewRead(location.search);
  history.pushState(null, "", location.pathname + viewWrite({ ...view, x: x === "epoch" ? "time" : x }, location.search) + location.hash);
  document.dispatchEvent(new CustomEvent("viewchange", { detail: "history" }));
}

/** Where the replay stands, as a line. @param {any} plot @param {HTMLElement} root */
function nowDraw(plot, root) {
  plot.over.querySelector(".chart-now")?.remove();
  const shown = root.querySelector("[data-moment-at]");
  const place = shown instanceof HTMLElement ? plot.valToPos(Date.parse(shown.dataset.momentAt || "") / 1000, "x") : NaN;
  if (!(place >= 0 && place <= plot.over.clientWidth)) return;
  const line = document.createElement("div");
  line.className = "chart-now";
  line.style.left = `${place}px`;
  plot.over.append(line);
}

/** @param {HTMLElement} root @param {string} at an instant, or nothing for the newest */
function momentAsk(root, at) {
  root.dispatchEvent(new CustomEvent("historymoment", { detail: at }));
}

/** @param {string} url @param {string} at an instant, or nothing for the newest @returns {Promise<Document>} */
async function momentFetch(url, at) {
  const answer = await fetch(at ? `${url}?at=${encodeURIComponent(at)}` : url);
  if (!answer.ok) throw new Error(`moment: ${answer.status}`);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

/** @param {HTMLElement} timeline @param {() => void} redraw */
function replayStart(timeline, redraw) {
  const root = /** @type {HTMLElement} */ (timeline.closest("[data-started]"));
  const range = /** @type {HTMLInputElement} */ (timeline.querySelector("[data-scrub-range]"));
  const field = /** @type {HTMLInputElement} */ (timeline.querySelector("[name=at]"));
  const box = /** @type {HTMLElement} */ (timeline.querySelector("[data-moment-box]"));
  let asked = 0, timer = 0;

  const behindShow = (/** @type {boolean} */ is) => timeline.querySelector("[data-moment-behind]")?.toggleAttribute("hidden", !is);
  const edges = () => {
    const span = viewSpan({ ...viewRead(location.search) }, Date.now() / 1000);
    const first = span.from ?? Date.parse(timeline.dataset.first || "") / 1000;
    return [first, Math.max(first + 1, span.to ?? Date.parse(timeline.dataset.last || "") / 1000)];
  };
  const follow = () => {
    const shown = box.querySelector("[data-moment-at]");
    if (!(shown instanceof HTMLElement)) return;
    const [first, last] = edges(), at = Date.parse(shown.dataset.momentAt || "") / 1000;
    if (document.activeElement !== range) range.value = String(Math.round(((at - first) / (last - first)) * SCRUB_STEPS));
    range.setAttribute("aria-valuetext", `${iso(at).slice(0, 19).replace("T", " ")} UTC`);
    if (document.activeElement !== field) field.value = iso(at).slice(0, 19);
  };
  /** @param {string} at @param {boolean} [isAsked] by somebody, who then hears of it */
  const show = async (at, isAsked = true) => {
    const turn = ++asked;
    box.setAttribute("aria-live", isAsked ? "polite" : "off");
    const part = await momentFetch(timeline.dataset.moment || "", at).catch(() => null);
    if (turn !== asked) return;
    if (isAsked || part) behindShow(!part);
    if (!part) return; // what is shown stays
    box.replaceChildren(...part.body.childNodes);
    const newest = box.querySelector("[data-moment-at]");
    if (!at && newest instanceof HTMLElement) timeline.dataset.last = newest.dataset.momentAt;
    follow();
    redraw();
  };
  /** @param {string} at @param {boolean} isDone whether the back button should come back to it */
  const go = (at, isDone) => {
    const url = new URL(location.href);
    if (at) url.searchParams.set("at", at);
    else url.searchParams.delete("at");
    history[isDone ? "pushState" : "replaceState"](null, "", url);
    clearTimeout(timer);
    timer = window.setTimeout(() => void show(at), isDone ? 0 : WAIT_MS);
  };
  const scrubbed = () => {
    const [first, last] = edges();
    return iso(first + (Number(range.value) / SCRUB_STEPS) * (last - first));
  };
  range.addEventListener("input", () => go(scrubbed(), false));
  range.addEventListener("change", () => go(scrubbed(), true));
  timeline.querySelector("[data-scrub]")?.addEventListener("submit", (event) => {
    event.preventDefault();
    if (field.value) go(`${field.value.padEnd(19, ":00").slice(0, 19)}Z`, true);
  });
  timeline.addEventListener("click", (event) => {
    const link = /** @type {HTMLElement} */ (event.target).closest("[data-at]");
    if (!(link instanceof HTMLElement)) return;
    event.preventDefault();
    const at = Date.parse(link.dataset.at || "");
    go(Number.isNaN(at) ? "" : iso(at / 1000), true);
  });
  root.addEventListener("historymoment", (event) => go(iso(Date.parse(/** @type {CustomEvent} */ (event).detail) / 1000), true));
  document.addEventListener("viewchange", follow);
  setInterval(() => {
    const isLive = !new URLSearchParams(location.search).has("at");
    const isBusy = document.hidden || timeline.contains(document.activeElement);
    if (isLive && !isBusy && timeline.isConnected) void show("", false);
  }, LIVE_MS);
  addEventListener("popstate", () => void show(new URLSearchParams(location.search).get("at") || ""));
  follow();
}

const page = document.getElementById("history") || document.getElementById("main");
if (page) historyStart(page);
document.addEventListener("htmx:afterSettle", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (target.id === "history") historyStart(target);
});
