// When a run will be done; web/monitoring/pace.py says the same on the server. Pure.

const UNDER_WAY = new Set(["training", "averaging", "warming_up"]);
/** @type {[number, number, string][]} */
const UNITS = [[120, 1, "s"], [7200, 60, "min"], [172800, 3600, "h"]];

/** @param {any} live @returns {number | null} how many samples the run takes in all, about */
export function goalSamples(live) {
  return live.max_epochs == null ? null : live.max_epochs * live.target_batch_size;
}

/** @param {any} live @returns {number | null} how much of the run is done, from 0 to 1 */
export function goalShare(live) {
  if (live.max_epochs == null) return null;
  const part = Math.min(1, live.samples_accumulated / live.target_batch_size);
  return Math.min(1, (live.epoch + part) / live.max_epochs);
}

/** @param {any} live @returns {[number, number] | null} seconds at best and at worst */
export function etaSeconds(live) {
  const [goal, share] = [goalSamples(live), goalShare(live)];
  if (goal === null || share === null || !UNDER_WAY.has(live.state)) return null;
  if (!live.pace_low || !live.pace_high) return null;
  const rest = goal * (1 - share);
  return [rest / live.pace_high, rest / live.pace_low];
}

/** @param {number} low @param {number} high seconds @returns {string} "2 to 3 h", "about 40 s" */
export function spanText(low, high) {
  const [, unit, name] = UNITS.find(([limit]) => high < limit) || [0, 86400, "days"];
  const [first, last] = [Math.floor(low / unit), Math.ceil(high / unit)];
  return last - first <= 1 ? `about ${last} ${name}` : `${first} to ${last} ${name}`;
}

/** @param {any} live @returns {string} empty when nobody can say */
export function etaText(live) {
  const found = etaSeconds(live);
  return found ? `${spanText(...found)} left` : "";
}
