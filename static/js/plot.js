// What all charts share: colours, axes, marks on top. uPlot draws.
import { marksGather } from "./series.js";
import { short } from "./format.js";

const uPlot = /** @type {any} */ (globalThis).uPlot;
const TEXT_ROOM = 260;
const ECHO_MS = 300;
export const LINEAGE_TINTS = ["--honey-strong", "--peer-1", "--peer-2", "--peer-3", "--peer-4", "--peer-5", "--peer-6", "--peer-7"];
let zoomedAt = -ECHO_MS;

/** A token's colour as the browser sees it now: light-dark() is not resolved in the variable. */
export function colour(/** @type {string} */ token) {
  const probe = document.createElement("span");
  probe.hidden = true;
  probe.style.color = `var(${token})`;
  document.body.append(probe);
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

/** @typedef {{label: string, values: (number|null)[], colour: string, scale?: string, width?: number,
 *   own?: (number|null)[], fill?: string, write?: (v: number) => string, hasDots?: boolean,
 *   note?: (index: number) => string}} Line `note` is said after a value */

/**
 * Draw lines into a box, in place of what was there.
 * @param {HTMLElement} box
 * @param {{x: (number|null)[], lines: Line[], axis: "time"|"epoch"|"samples", height: number,
 *   isLog?: boolean, write?: (v: number) => string, isFromZero?: boolean, max?: number, sync?: string,
 *   zoomed?: (low: number, high: number) => void, drawn?: (plot: any) => void}} wish
 */
export function plotMake(box, wish) {
  const [text, grid] = ["--muted", "--line"].map(colour);
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const axis = { stroke: text, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  const isTime = wish.axis === "time";
  const hasRight = wish.lines.some((line) => line.scale === "right");
  const fromZero = { range: (/** @type {any} */ _u, /** @type {number} */ _a, /** @type {number} */ b) => [0, wish.max ?? Math.max(b || 1, 1e-9) * 1.1] };
  const options = {
    width: box.clientWidth || 600,
    height: wish.height,
    scales: {
      x: { time: isTime },
      y: wish.isLog ? { distr: 3, log: 10 } : wish.isFromZero ? fromZero : {},
      right: { range: (/** @type {any} */ _u, /** @type {number} */ _a, /** @type {number} */ b) => [0, Math.max(1, b || 1) * 1.15] },
    },
    axes: [
      { ...axis, space: 90, values: (/** @type {any} */ _u, /** @type {number[]} */ all, /** @type {number} */ _i, /** @type {number} */ _s, /** @type {number} */ step) =>
        all.map((value) => (isTime ? timeLabel(value, step) : short(value))) },
      { ...axis, size: 56, values: (/** @type {any} */ _u, /** @type {number[]} */ all) => all.map((v) => (v == null ? "" : (wish.write ?? short)(v))) },
      ...(hasRight ? [{ ...axis, side: 1, scale: "right", size: 40, grid: { show: false }, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }] : []),
    ],
    series: [
      { label: { time: "Time", epoch: "Epoch", samples: "Samples" }[wish.axis],
        value: (/** @type {any} */ _u, /** @type {number|null} */ v) => (v == null ? "–" : isTime ? new Date(v * 1000).toLocaleString() : short(v)) },
      ...wish.lines.map((line) => ({
        label: line.label, stroke: line.colour, width: line.width ?? 2, scale: line.scale ?? "y", spanGaps: true,
        points: { show: line.hasDots || line.values.length < 3, ...(line.hasDots && { size: 6, fill: line.colour }) }, fill: line.fill,
        value: (/** @type {any} */ _u, /** @type {number|null} */ v, /** @type {number} */ _s, /** @type {number|null} */ i) => {
          const own = line.own && i != null ? line.own[i] : v; // what lies below it is not its own
          return own == null ? "–" : (line.write ?? short)(own) + (line.note && i != null ? line.note(i) : "");
        },
      })),
    ],
    cursor: { ...(wish.sync && { sync: { key: wish.sync } }), drag: { x: true, y: false, setScale: false } },
    hooks: {
      setSelect: [(/** @type {any} */ plot) => {
        if (plot.select.width < 8 || !wish.zoomed) return;
        const [low, high] = [plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x")];
        if (performance.now() - zoomedAt < ECHO_MS) return; // a chart in step repeats the selection
        zoomedAt = performance.now();
        plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        wish.zoomed(low, high);
      }],
      draw: [(/** @type {any} */ plot) => wish.drawn?.(plot)],
    },
  };
  box.replaceChildren();
  return new uPlot(options, [wish.x, ...wish.lines.map((line) => line.values)], box);
}

/**
 * Put marks over a chart as elements: each has words, for the mouse and for the keyboard.
 * @param {any} plot @param {{kind: string, text: string, at: string, place: number|null}[]} marks
 * @param {(mark: any) => void} [chosen]
 */
export function marksDraw(plot, marks, chosen) {
  for (const old of plot.over.querySelectorAll(".chart-mark")) old.remove();
  const { min, max } = plot.scales.x;
  const inside = marks.filter(({ place }) => place !== null && place >= min && place <= max);
  const placed = inside.map((mark) => ({ mark, place: plot.valToPos(mark.place, "x") }));
  for (const { place, marks: group } of marksGather(placed, 7)) {
    const worst = ["incident", "rollback", "config", "state", "checkpoint"].find((kind) => group.some((m) => m.kind === kind));
    const line = document.createElement("button");
    line.type = "button";
    line.className = "chart-mark";
    line.dataset.kind = worst;
    line.dataset.text = group.slice(0, 6).map((m) => `${new Date(m.at).toLocaleString()}\n${m.text}`).join("\n")
      + (group.length > 6 ? `\nand ${group.length - 6} more` : "");
    line.setAttribute("aria-label", line.dataset.text);
    if (place > plot.over.clientWidth - TEXT_ROOM) line.dataset.side = "left";
    line.style.left = `${place}px`;
    if (chosen) line.addEventListener("click", () => chosen(group[0]));
    plot.over.append(line);
  }
}

/** Keep charts as wide as their boxes. @param {HTMLElement} root @param {() => Iterable<any>} plots */
export function widthsKeep(root, plots) {
  new ResizeObserver(() => {
    for (const plot of plots()) {
      const width = plot.root.parentElement?.clientWidth || 0;
      if (width && width !== plot.width) plot.setSize({ width, height: plot.height });
    }
  }).observe(root);
}
