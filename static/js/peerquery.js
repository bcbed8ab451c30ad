// Peers as the address asks for them; web/pages/peersview.py does the same on the server. Pure.

export const FILTERS = ["role", "class", "version", "reach"];
export const COLUMNS = ["name", "state", "role", "reach", "class", "version", "samples_per_second", "lag", "seen_at"];
const NUMBERS = new Set(["samples_per_second", "lag", "seen_at"]);
const DEFAULT_SORT = "-samples_per_second";
const MAX_WORDS = 80;
const BUBBLE_SIZES = 6;
const MAKER = /\b(NVIDIA|GeForce|Tesla|Quadro|AMD|Radeon|Instinct)\b/gi;
const SERIES = /\b(GTX|RTX) ?(\d{2})\d{2}\b/i;

/**
 * @typedef {Record<string, any> & {key: string, lag: number}} Row
 * @typedef {{words: string, chosen: Record<string, string>, sort: string, isBubbles: boolean}} Query
 */

/** @type {Map<string, string>} */
const classes = new Map();

/** @param {string} device @returns {string} "CPU", "RTX 30 series", "A100" */
export function hardwareClass(device) {
  let found = classes.get(device);
  if (found === undefined) {
    found = classOf(device.split(/\s+/).filter(Boolean).join(" "));
    if (classes.size < 5000) classes.set(device, found);
  }
  return found;
}

/** @param {string} text */
function classOf(text) {
  if (!text) return "unknown";
  if (text.toLowerCase().includes("cpu")) return "CPU";
  const series = SERIES.exec(text);
  if (series) return `${series[1].toUpperCase()} ${series[2]} series`;
  const [word] = text.replace(MAKER, " ").split(" ").filter(Boolean);
  const first = word ? word.split("-")[0] : "";
  return (first || text).slice(0, 24);
}

/** @param {URLSearchParams} params @returns {Query} */
export function queryOf(params) {
  const sort = params.get("sort") || DEFAULT_SORT;
  /** @type {Record<string, string>} */
  const chosen = {};
  for (const name of FILTERS) {
    const value = params.get(`peer-${name}`);
    if (value) chosen[name] = value.slice(0, MAX_WORDS);
  }
  return {
    words: (params.get("peer") || "").slice(0, MAX_WORDS),
    chosen,
    sort: COLUMNS.includes(sort.replace(/^-/, "")) ? sort : DEFAULT_SORT,
    isBubbles: params.get("view") === "bubbles",
  };
}

/** Write a query into an address; what is not asked for is left out. @param {URL} url @param {Query} query */
export function queryWrite(url, query) {
  const set = (/** @type {string} */ name, /** @type {string} */ value) =>
    value ? url.searchParams.set(name, value) : url.searchParams.delete(name);
  set("peer", query.words);
  for (const name of FILTERS) set(`peer-${name}`, query.chosen[name] || "");
  set("sort", query.sort === DEFAULT_SORT ? "" : query.sort);
  set("view", query.isBubbles ? "bubbles" : "");
}

/** What a click on a column asks for. @param {string} sort @param {string} name */
export function nextSort(sort, name) {
  if (sort.replace(/^-/, "") === name) return sort.startsWith("-") ? name : `-${name}`;
  return NUMBERS.has(name) ? `-${name}` : name;
}

/** A row of every peer but the coordinator's. @param {import("./state.js").LiveState} state @returns {Row[]} */
export function rowsAll(state) {
  const rows = [];
  for (const [key, peer] of Object.entries(state.peers)) {
    if (peer.role === "coordinator") continue;
    rows.push({ ...peer, key, lag: Math.max(0, state.epoch - peer.epoch), class: hardwareClass(peer.hardware || "") });
  }
  return rows;
}

/** @param {Row[]} rows @param {Query} query @returns {Row[]} the wanted ones, in order */
export function rowsWanted(rows, query) {
  const words = query.words.toLowerCase().split(/\s+/).filter(Boolean).join(" ");
  const chosen = Object.entries(query.chosen);
  const found = rows.filter((row) =>
    chosen.every(([name, value]) => (row[name] || "unknown") === value) &&
    (!words || `${row.name} ${row.device} ${row.hardware}`.toLowerCase().includes(words)));
  const by = query.sort.replace(/^-/, "");
  const sign = query.sort.startsWith("-") ? -1 : 1;
  const values = new Map(found.map((row) => [row, typeof row[by] === "string" ? row[by].toLowerCase() : row[by]]));
  // Where equal: by name and key, upwards whichever way the column goes, as on the server.
  return found.sort((a, b) => sign * compare(values.get(a), values.get(b)) || compare(a.name, b.name) || compare(a.key, b.key));
}

/** @param {any} a @param {any} b */
function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What can be chosen of one filter. @param {Row[]} rows @param {string} name @param {string} chosen */
export function optionsOf(rows, name, chosen) {
  const found = new Set(rows.map((row) => row[name] || "unknown"));
  if (chosen) found.add(chosen);
  return [...found].sort(compare);
}

/** @param {number} speed @param {number} fastest @returns {number} from 1 to 6; the area goes with the speed */
export function bubbleSize(speed, fastest) {
  if (fastest <= 0 || speed <= 0) return 1;
  return Math.max(1, Math.min(BUBBLE_SIZES, Math.ceil(BUBBLE_SIZES * Math.sqrt(speed / fastest))));
}
