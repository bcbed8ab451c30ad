// The live state and what changes it. Pure: no page, no network, no clock.

/**
 * @typedef {Record<string, any> & {seq: number, peers: Record<string, any>}} LiveState
 * @typedef {{type: string, seq: number, as_of?: string | null, state?: LiveState,
 *   patch?: Record<string, any>, event?: {kind: string, text: string, at: string}}} Message
 */

/**
 * Return the state with a patch: absolute values; peers one by one, null removes a peer.
 * @param {LiveState} state @param {Record<string, any>} patch @returns {LiveState}
 */
export function patched(state, patch) {
  const next = { ...state, ...patch };
  if (patch.peers) {
    next.peers = { ...state.peers };
    for (const [key, peer] of Object.entries(patch.peers)) {
      if (peer === null) delete next.peers[key];
      else next.peers[key] = { ...next.peers[key], ...peer };
    }
  }
  return next;
}

/**
 * Take one message. Numbers may jump: one patch may stand for several messages, and a connection
 * loses none. Events are numbered in the same sequence and do not move the state on: they come
 * before the patch that covers their numbers.
 * @param {LiveState} state @param {Message} message
 * @returns {{state: LiveState, changed: boolean}}
 */
export function applied(state, message) {
  if (message.type === "run.snapshot" && message.state) {
    return { state: { ...message.state, seq: message.seq }, changed: true };
  }
  if (message.type === "run.event") {
    if (message.seq <= Math.max(state.seq, state.eventSeq || 0)) return { state, changed: false };
    return { state: { ...state, eventSeq: message.seq }, changed: true };
  }
  if (message.type !== "run.patch" || message.seq <= state.seq) return { state, changed: false };
  return { state: { ...patched(state, message.patch || {}), seq: message.seq }, changed: true };
}

/**
 * Samples to show: the last known number, moved on at the last known speed until it is stale.
 * @param {LiveState} state @param {number} elapsed seconds since the state came
 * @param {number} limit seconds after which nothing moves any more
 * @returns {number}
 */
export function samplesNow(state, elapsed, limit) {
  const known = state.samples_total + state.samples_pending + state.samples_accumulated;
  const moves = state.state === "training";
  return known + (moves ? state.samples_per_second * Math.min(Math.max(0, elapsed), limit) : 0);
}

/**
 * What the large number must not fall below: between an epoch's end and its report, what was shown
 * when it ended, as the last samples may have been foretold and are in no figure yet. At all other
 * times nothing: what was foretold too high is taken back.
 * @param {number} floor before this message @param {number} shown at this moment
 * @param {LiveState} before @param {LiveState} after the message @returns {number}
 */
export function counterFloor(floor, shown, before, after) {
  if (!(after.samples_pending > 0)) return 0;
  return after.epoch > before.epoch ? Math.max(floor, shown) : floor;
}

/**
 * Seconds until the target batch size is reached, or null when that cannot be said.
 * @param {LiveState} state @param {number} elapsed @returns {number | null}
 */
export function nextSeconds(state, elapsed) {
  const rest = state.target_batch_size - state.samples_accumulated;
  if (state.state !== "training" || !(state.samples_per_second > 0) || rest <= 0) return null;
  return Math.max(0, rest / state.samples_per_second - elapsed);
}

/**
 * Waiting time before try number `failures` (1, 2, …), in milliseconds, with full jitter above half.
 * @param {number} failures @param {number} random from 0 to 1 @returns {number}
 */
export function backoff(failures, random) {
  const most = Math.min(30000, 500 * 2 ** Math.min(failures, 10));
  return most / 2 + (most / 2) * random;
}

const AT_WORK = new Set(["training", "averaging", "warming_up"]);

/** Training and averaging take turns with every epoch: that is no news. @param {LiveState} state */
function condition(state) {
  return AT_WORK.has(state.state) ? "" : state.state;
}

/**
 * Parts of the page that the server wrote from another state than this one, by their ids.
 * `history` stands for all charts and their marks.
 * @param {LiveState} before @param {LiveState} now @returns {string[]}
 */
export function stale(before, now) {
  const differs = (/** @type {string[]} */ ...names) => names.some((name) => before[name] !== now[name]);
  return [
    ...(differs("epoch", "config_version", "checkpoint_epoch", "run_state") || condition(before) !== condition(now) ? ["history"] : []),
    ...(differs("config_version", "run_state") ? ["run-head"] : []),
    ...(differs("checkpoint_epoch") ? ["checkpoints"] : []),
    ...(differs("config_version") ? ["config"] : []),
  ];
}
