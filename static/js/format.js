// How numbers are written; web/core/templatetags/ui.py writes them the same way.

const NONE = "–";
const STATE_PREFIX = /^(draft|warming up|training|averaging|stalled|finishing|finished|unknown|paused): /;
const SIZES = ["B", "kB", "MB", "GB", "TB", "PB"];

/** @param {number | null | undefined} value @returns {string} 12,345 */
export function number(value) {
  if (value == null) return NONE;
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** @param {number} value @returns {string} */
function three(value) {
  const size = Math.abs(value);
  const digits = size >= 99.95 || Number.isInteger(value) ? 0 : size >= 9.995 ? 1 : 2;
  return value.toFixed(digits);
}

/** At most three significant digits. @param {number | null | undefined} value @returns {string} */
export function short(value) {
  if (value == null) return NONE;
  /** @type {[number, string][]} */
  const steps = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [limit, suffix] of steps) {
    if (Math.abs(value) >= limit * 0.9995) return three(value / limit) + suffix;
  }
  return three(value);
}

/** @param {number | null | undefined} value @returns {string} */
export function loss(value) {
  if (value == null) return NONE;
  if (value !== 0 && Math.abs(value) < 0.0001) return "< 0.0001";
  if (Math.abs(value) >= 0.1 || value === 0) return value.toFixed(3);
  return String(Number(value.toPrecision(3)));
}

/** @param {number | null | undefined} value a share from 0 to 1 @returns {string} */
export function percent(value) {
  if (value == null) return NONE;
  if (value > 0 && value < 0.0001) return "< 0.01 %";
  return value < 0.9995 ? `${Number((value * 100).toPrecision(3))} %` : "100 %";
}

/** @param {number} value bytes @returns {string} */
export function size(value) {
  let index = 0;
  while (Math.abs(value) >= 999.5 && index < SIZES.length - 1) {
    value /= 1000;
    index += 1;
  }
  return `${three(value)} ${SIZES[index]}`;
}

/** @param {number} value @returns {string} */
export function seconds(value) {
  if (value < 60) return `${Math.max(0, Math.round(value))} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min`;
  if (value < 172800) return `${Math.floor(value / 3600)} h`;
  return `${Math.floor(value / 86400)} days`;
}

/**
 * The evidence of a state without the state's own name, which a chip shows already.
 * @param {string | null | undefined} reason @returns {string}
 */
export function evidence(reason) {
  const text = (reason || "").replace(STATE_PREFIX, "");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
