// What the evidence says of a swarm, in words; web/monitoring/evidence.py says the same on the
// server. Pure: the time is an argument. Needed here because evidence gets old without a message.

const COORDINATOR_SILENT_SECONDS = 20;
const FIRST_REPORT_SECONDS = 120;
const STALL_SECONDS = 300;
const STALL_FACTOR = 4;
const GONE = new Set(["silent", "left", "banned"]);
const LOADING = new Set(["joining", "syncing"]);

/** @param {string | null | undefined} at @param {number} now milliseconds @returns {number | null} */
function secondsSince(at, now) {
  return at ? Math.max(0, (now - Date.parse(at)) / 1000) : null;
}

/** A duration in one coarse unit, so that sentences change seldom. @param {number} seconds */
export function age(seconds) {
  if (seconds < 10) return `${Math.round(seconds)} s`;
  if (seconds < 120) return `${Math.floor(seconds / 10) * 10} s`;
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 2 * 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

/** @param {number} count @param {string} noun */
function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** States of the trainers. @param {import("./state.js").LiveState} live @returns {string[]} */
function trainerStates(live) {
  return Object.values(live.peers).filter((peer) => peer.role === "trainer").map((peer) => peer.state);
}

/**
 * The state of a run as it has to be read at a time, with the sentence that gives its evidence.
 * @param {import("./state.js").LiveState} live @param {number} now milliseconds, by the site's clock
 * @returns {{state: string, reason: string}}
 */
export function stateNow(live, now) {
  const present = trainerStates(live).filter((state) => !GONE.has(state));
  const settled = decided(live, present.length);
  if (settled) return settled;
  const silence = secondsSince(live.heard_at, now);
  if (silence === null) return beforeFirstReport(secondsSince(live.changed_at, now) || 0);
  if (silence > COORDINATOR_SILENT_SECONDS) {
    return { state: "unknown", reason: `unknown: the coordinator was last heard ${age(silence)} ago` };
  }
  if (present.length < live.min_peers) {
    return { state: "waiting_for_peers", reason: `waiting for peers (${present.length} of ${live.min_peers})` };
  }
  return atWork(live, present);
}

/** @param {import("./state.js").LiveState} live @param {number} present */
function decided(live, present) {
  const text = live.run_text;
  switch (live.run_state) {
    case "draft":
      return { state: "draft", reason: `draft: not opened yet${live.config_version ? "" : ", and no config is published"}` };
    case "paused":
      return { state: "paused", reason: text || "paused" };
    case "finishing":
      return { state: "finishing", reason: `finishing: ${counted(present, "trainer")} still to leave; ${text || "finished"}` };
    case "finished":
    case "archived":
      return { state: "finished", reason: text || "finished" };
    default:
      return null;
  }
}

/** @param {number} seconds since the organiser's last move */
function beforeFirstReport(seconds) {
  if (seconds <= FIRST_REPORT_SECONDS) {
    return { state: "warming_up", reason: "warming up: waiting for the coordinator's first report" };
  }
  return { state: "unknown", reason: `unknown: no coordinator has reported in ${age(seconds)}` };
}

/** Seconds of the epoch at the newest snapshot; time in a pause does not count. @param {any} live */
function epochSeconds(live) {
  if (!live.as_of || !live.epoch_started_at) return null;
  const moved = live.changed_at ? Date.parse(live.changed_at) : -Infinity;
  const began = Math.max(Date.parse(live.epoch_started_at), moved);
  return Math.max(0, (Date.parse(live.as_of) - began) / 1000);
}

/** @param {any} live */
function stallSeconds(live) {
  if (live.samples_per_second <= 0) return STALL_SECONDS;
  return Math.max(STALL_SECONDS, (STALL_FACTOR * live.target_batch_size) / live.samples_per_second);
}

/** @param {import("./state.js").LiveState} live @param {string[]} present states of who is there */
function atWork(live, present) {
  const peers = counted(present.length, "peer");
  const part = Math.floor((live.samples_accumulated * 100) / live.target_batch_size);
  const percent = `${Math.min(100, part)} % of the batch`;
  const overdue = epochSeconds(live);
  if (overdue !== null && overdue > stallSeconds(live)) {
    return { state: "stalled", reason: `stalled: no epoch for ${age(overdue)}, ${peers}` };
  }
  if (present.every((state) => LOADING.has(state))) {
    return { state: "warming_up", reason: `warming up: ${peers} loading the state` };
  }
  if (live.samples_accumulated >= live.target_batch_size || present.includes("averaging")) {
    return { state: "averaging", reason: `averaging: epoch ${live.epoch}, ${peers}` };
  }
  if (!(live.samples_total > 0)) {
    return { state: "warming_up", reason: `warming up: first epoch, ${peers}, ${percent}` };
  }
  return { state: "training", reason: `training: epoch ${live.epoch}, ${peers}, ${percent}` };
}

/** How many can be reached directly, of those whose reach is known. @param {import("./state.js").LiveState} live */
export function reachText(live) {
  const seen = Object.values(live.peers).filter((peer) => peer.role !== "coordinator" && peer.state !== "left");
  if (!seen.length) return "nobody trains yet";
  const known = seen.filter((peer) => peer.reach !== "unknown");
  if (!known.length) return "reach not known yet";
  const direct = known.filter((peer) => peer.reach === "direct").length;
  const unknown = known.length < seen.length ? `, ${seen.length - known.length} not known` : "";
  return `${direct} of ${known.length} direct${unknown}`;
}
