// Columns for the charts: fetched, appended to, and turned into what uPlot draws. Pure but for fetch.

/** @typedef {{t: number[], loss: (number|null)[], samples_per_second: (number|null)[],
 *   num_peers: (number|null)[], epoch: (number|null)[], samples_total: (number|null)[]}} Columns */

export const METRICS = ["loss", "samples_per_second", "num_peers", "epoch", "samples_total"];
export const EPOCH_METRICS = ["loss", "samples_per_second"];
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
 * Every finished epoch of every lineage.
 * @param {string} url @param {{first?: string, last?: string}} span epochs @param {string[]} metrics
 * @param {typeof fetch} get @returns {Promise<Record<string, (number|null)[]>>}
 */
export async function epochsFetch(url, span, metrics = EPOCH_METRICS, get = fetch) {
  const query = new URLSearchParams({ by: "epoch", lineage: "all", metrics: metrics.join(","), points: String(POINTS) });
  if (span.first) query.set("first", span.first);
  if (span.last) query.set("last", span.last);
  const answer = await get(`${url}?${query}`);
  if (!answer.ok) throw new Error(`series: ${answer.status}`);
  return answer.json();
}

/**
 * One line per lineage over a common axis of epochs: after a roll-back an epoch has two values.
 * @param {Record<string, (number|null)[]>} columns with `lineage` and `epoch` @param {string} name
 * @returns {{epochs: number[], lines: {lineage: number, values: (number|null)[]}[]}} newest lineage last
 */
export function lineageLines(columns, name) {
  const lineages = /** @type {number[]} */ (columns.lineage), places = /** @type {number[]} */ (columns.epoch);
  const epochs = [...new Set(places)].sort((a, b) => a - b);
  const index = new Map(epochs.map((epoch, i) => [epoch, i]));
  /** @type {Map<number, (number|null)[]>} */
  const lines = new Map();
  lineages.forEach((lineage, i) => {
    if (!lines.has(lineage)) lines.set(lineage, epochs.map(() => null));
    /** @type {any} */ (lines.get(lineage))[/** @type {any} */ (index.get(places[i]))] = columns[name][i];
  });
  const sorted = [...lines].sort(([a], [b]) => a - b);
  return { epochs, lines: sorted.map(([lineage, values]) => ({ lineage, values })) };
}

/**
 * A moving mean; its beginning is not pulled towards zero, gaps stay gaps.
 * @param {(number|null)[]} values @param {number} weight of what came before, below 1
 * @returns {(number|null)[]}
 */
export function smoothed(values, weight) {
  if (!weight) return values;
  let [sum, norm] = [0, 0];
  return values.map((value) => {
    if (value === null || value === undefined) return null;
    sum = weight * sum + (1 - weight) * value;
    norm = weight * norm + (1 - weight);
    return sum / norm;
  });
}

/**
 * Each column on top of those before it.
 * @param {(number|null)[][]} columns @returns {(number|null)[][]} of which the last is the total
 */
export function stacked(columns) {
  /** @type {(number|null)[]} */
  let below = [];
  return columns.map((column) => {
    below = column.map((value, i) => (value === null && (below[i] ?? null) === null ? null : (value ?? 0) + (below[i] ?? 0)));
    return below;
  });
}

/**
 * Where a mark stands on an axis; null: it has no place there.
 * @param {{at: string, epoch: number|null}} mark @param {string} axis @param {Columns | null} columns
 */
export function markPlace(mark, axis, columns) {
  const at = Date.parse(mark.at) / 1000;
  if (axis === "time") return at;
  if (axis === "epoch") return mark.epoch;
  const after = columns ? columns.t.findIndex((t) => t >= at) : -1;
  return after < 0 ? null : /** @type {Columns} */ (columns).samples_total[after];
}

/**
 * Marks that would lie on each other become one.
 * @template T @param {{place: number, mark: T}[]} placed in pixels @param {number} apart
 * @returns {{place: number, marks: T[]}[]}
 */
export function marksGather(placed, apart) {
  /** @type {{place: number, marks: T[]}[]} */
  const groups = [];
  for (const { place, mark } of [...placed].sort((a, b) => a.place - b.place)) {
    const last = groups[groups.length - 1];
    if (last && place - last.place < apart) last.marks.push(mark);
    else groups.push({ place, marks: [mark] });
  }
  return groups;
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
  // A loss that is carried on from an earlier report was not measured now.
  columns.loss.push(state.loss_at === undefined || state.loss_at === state.as_of ? (state.loss ?? null) : null);
  columns.samples_per_second.push(state.samples_per_second);
  columns.num_peers.push(state.num_peers);
  columns.epoch.push(state.epoch);
  columns.samples_total.push(state.samples_total);
  return true;
}

/**
 * Leave out what is older than the shown stretch.
 * @param {Columns} columns @param {number | undefined} from seconds since 1970; undefined: all stays
 */
export function seriesTrim(columns, from) {
  const first = from === undefined ? 0 : columns.t.findIndex((t) => t >= from);
  if (first <= 0) return;
  for (const values of Object.values(columns)) values.splice(0, first);
}

/**
 * Rows of a chart over time or samples. Along samples several points share one place (nothing
 * moves between two updates): the last one stands for it. Epochs have {@link lineageLines}.
 * @param {Columns} columns @param {"time"|"samples"} axis @param {string[]} names
 * @returns {(number|null)[][]} first x, then one array per name
 */
export function chartRows(columns, axis, names) {
  const source = /** @type {any} */ (columns);
  if (axis === "time") return [columns.t, ...names.map((name) => source[name])];
  const places = columns.samples_total;
  /** @type {number[]} */
  const kept = [];
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
