// What the charts show, as the address keeps it. Pure.

/** @typedef {{range: string, scale: string, x: string, smooth: string, from: string, to: string, first: string, last: string}} View
 * `from` and `to` (instants) and `first` and `last` (epochs) are a stretch that was zoomed into. */

/** @type {Record<string, string[]>} */
const CHOICES = {
  range: ["all", "1h", "24h"], scale: ["linear", "log"], x: ["time", "epoch", "samples"],
  smooth: ["0", "0.6", "0.9", "0.97"],
};
const STRETCH = ["from", "to", "first", "last"];
export const RANGE_SECONDS = /** @type {Record<string, number>} */ ({ "1h": 3600, "24h": 86400, all: 0 });

/** @param {string} search of an address @returns {View} unknown values give the usual ones */
export function viewRead(search) {
  const params = new URLSearchParams(search);
  const view = /** @type {any} */ ({});
  for (const [name, choices] of Object.entries(CHOICES)) {
    const value = params.get(name);
    view[name] = value !== null && choices.includes(value) ? value : choices[0];
  }
  for (const name of ["from", "to"]) view[name] = instant(params.get(name));
  for (const name of ["first", "last"]) view[name] = /^\d{1,10}$/.test(params.get(name) || "") ? params.get(name) : "";
  return view;
}

/** @param {View} view @param {string} search @returns {string} the address's search with the view in it; other parameters stay */
export function viewWrite(view, search) {
  const params = new URLSearchParams(search);
  for (const name of [...Object.keys(CHOICES), ...STRETCH]) {
    const value = /** @type {any} */ (view)[name];
    if (!value || value === CHOICES[name]?.[0]) params.delete(name);
    else params.set(name, value);
  }
  const text = params.toString();
  return text ? `?${text}` : "";
}

/** @param {View} view @param {number} now seconds since 1970 @returns {{from?: number, to?: number}} seconds since 1970 */
export function viewSpan(view, now) {
  if (view.from || view.to) {
    return { ...(view.from && { from: Date.parse(view.from) / 1000 }), ...(view.to && { to: Date.parse(view.to) / 1000 }) };
  }
  const length = RANGE_SECONDS[view.range];
  return length ? { from: now - length } : {};
}

/** @param {View} view @returns {boolean} */
export function isZoomed(view) {
  return STRETCH.some((name) => /** @type {any} */ (view)[name]);
}

/** @param {View} view @returns {View} the same without the stretch */
export function unzoomed(view) {
  return { ...view, from: "", to: "", first: "", last: "" };
}

/**
 * The stretch between two places of an axis. Along samples it is one of time: they only grow.
 * @param {View} view @param {number} low @param {number} high
 * @param {{t: number[], samples_total?: (number|null)[]}} columns what is shown @returns {View}
 */
export function zoomedTo(view, low, high, columns) {
  if (view.x === "epoch") return { ...unzoomed(view), first: String(Math.max(0, Math.floor(low))), last: String(Math.max(0, Math.ceil(high))) };
  let [from, to] = [low, high];
  if (view.x === "samples") {
    const totals = columns.samples_total || [];
    const begin = totals.findIndex((total) => total !== null && total >= low);
    const end = totals.findIndex((total) => total !== null && total > high);
    from = columns.t[Math.max(0, begin)];
    to = end < 0 ? columns.t[columns.t.length - 1] : columns.t[end];
  }
  return { ...unzoomed(view), from: iso(from), to: iso(Math.max(to, from + 1)) };
}

/** @param {number} seconds since 1970 @returns {string} as the address has it */
export function iso(seconds) {
  return new Date(Math.round(seconds * 1000)).toISOString().replace(/\.\d+Z$/, "Z");
}

/** @param {string | null} text @returns {string} the same in one form, or nothing */
function instant(text) {
  const at = Date.parse(text || "");
  return Number.isNaN(at) ? "" : iso(at / 1000);
}
