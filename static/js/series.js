// Columns for the charts: fetched, appended to, and turned into what uPlot draws. Pure but for fetch.

/** @typedef {{t: number[], loss: (number|null)[], samples_per_second: (number|null)[],
 *   num_peers: (number|null)[], epoch: (number|null)[], samples_total: (number|null)[]}} Columns */

export const METRICS = ["loss", "samples_per_second", "num_peers", "epoch", "samples_total"];
export const RANGE_SECONDS = { "1h": 3600, "24h": 86400, all: 0 };
const POINTS = 1000;

/**
 * @param {string} url @param {{from?: number, to?: number}} span seconds since 1970
 * @param {typeof fetch} get @returns {Promise<Columns>}
 */
export async function seriesFetch(url, span, get = fetch) {
  const query = new URLSearchParams({ metrics: METRICS.join(","), points: String(POINTS) });
  if (span.from) query.set("from", new Date(span.from * 1000).toISOString());
  if (span.to) query.set("to", new Date(span.to * 1000).toISOString());
  const answer = await get(`${url}?${query}`);
  if (!answer.ok) throw new Error(`series: ${answer.status}`);
  return answer.json();
}

/**
 * Add the newest numbers of a live state, unless they are there already.
 * @param {Columns} columns @param {any} state @returns {boolean} whether anything was added
 */
export function seriesAppend(columns, state) {
  if (!state.as_of) return false;
  const t = Date.parse(state.as_of) / 1000;
  const last = columns.t[columns.t.length - 1];
  if (last !== undefined && t <= last) return false;
  columns.t.push(t);
  columns.loss.push(state.loss ?? null);
  columns.samples_per_second.push(state.samples_per_second);
  columns.num_peers.push(state.num_peers);
  columns.epoch.push(state.epoch);
  columns.samples_total.push(state.samples_total);
  return true;
}

/**
 * Rows of a chart over time, epochs or samples. Along epochs and samples several points share one
 * place (nothing moves between two updates): the last one stands for it, and rows that go back
 * (a new lineage begins at epoch 0) start anew.
 * @param {Columns} columns @param {"time"|"epoch"|"samples"} axis @param {string[]} names
 * @returns {(number|null)[][]} first x, then one array per name
 */
export function chartRows(columns, axis, names) {
  const source = /** @type {any} */ (columns);
  if (axis === "time") return [columns.t, ...names.map((name) => source[name])];
  const places = axis === "epoch" ? columns.epoch : columns.samples_total;
  /** @type {number[]} */
  let kept = [];
  places.forEach((place, index) => {
    if (place === null || place === undefined) return;
    while (kept.length && /** @type {number} */ (places[kept[kept.length - 1]]) >= place) kept.pop();
    kept.push(index);
  });
  return [places, ...names.map((name) => source[name])].map((column) => kept.map((i) => column[i] ?? null));
}

/**
 * What a logarithmic axis can show: only what is above zero.
 * @param {(number|null)[]} values @returns {(number|null)[]}
 */
export function positive(values) {
  return values.map((value) => (value !== null && value > 0 ? value : null));
}
