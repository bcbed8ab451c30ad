import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { cellSlots, epochShares } from "../../static/js/comb.js";
import * as format from "../../static/js/format.js";
import { chartRows, positive, seriesAppend, seriesTrim } from "../../static/js/series.js";
import { applied, backoff, counterFloor, nextSeconds, patched, samplesNow, stale } from "../../static/js/state.js";

const cases = JSON.parse(readFileSync(new URL("cases.json", import.meta.url), "utf8"));
const state = {
  seq: 5, state: "training", epoch: 2, samples_total: 100, samples_pending: 0, samples_accumulated: 10,
  samples_per_second: 4, target_batch_size: 50, as_of: "2026-01-01T00:00:10Z",
  peers: { a: { name: "a", samples_per_second: 1, epoch: 2 }, b: { name: "b", samples_per_second: 3, epoch: 1 } },
};

for (const name of ["number", "short", "loss", "percent", "size", "seconds", "evidence"]) {
  test(`${name} is written as the table says`, () => {
    assert.deepEqual(cases[name].map(([value]) => [value, format[name](value)]), cases[name]);
  });
}

test("the comb gives each peer its cells", () => {
  for (const { state: live, shares, runs } of cases.comb) {
    const found = epochShares(live);
    assert.deepEqual(found.map((s) => [s.key, s.name, s.samples, s.slot]), shares);
    const counted = [];
    for (const slot of cellSlots(found, live.target_batch_size, 108)) {
      if (counted.length && counted.at(-1)[0] === slot) counted.at(-1)[1] += 1;
      else counted.push([slot, 1]);
    }
    assert.deepEqual(counted, runs);
  }
});

test("a patch changes fields, single peers, and removes peers that are null", () => {
  const next = patched(state, { epoch: 3, loss: null, peers: { a: { epoch: 3 }, b: null, c: { name: "c" } } });
  assert.equal(next.epoch, 3);
  assert.equal(next.loss, null);
  assert.deepEqual(next.peers, { a: { name: "a", samples_per_second: 1, epoch: 3 }, c: { name: "c" } });
  assert.ok("b" in state.peers, "the old state is left alone");
});

test("a repeated message is ignored, a patch may stand for several numbers", () => {
  const patch = { type: "run.patch", seq: 6, patch: { epoch: 3 } };
  assert.equal(applied(state, patch).state.seq, 6);
  assert.equal(applied(state, { ...patch, seq: 5 }).changed, false);
  assert.equal(applied(state, { ...patch, seq: 9 }).state.seq, 9);
  assert.equal(applied(state, { type: "run.later", seq: 9 }).changed, false);
  const snapshot = applied(state, { type: "run.snapshot", seq: 40, state: { ...state, epoch: 9, seq: 39 } });
  assert.deepEqual([snapshot.state.seq, snapshot.state.epoch], [40, 9]);
});

test("an event is shown once and moves nothing on: the patch that covers it is still to come", () => {
  const event = { type: "run.event", seq: 7, event: { kind: "x", text: "x", at: "" } };
  const after = applied(state, event);
  assert.deepEqual([after.changed, after.state.seq, after.state.epoch], [true, 5, 2]);
  assert.equal(applied(after.state, event).changed, false);
  const patch = applied(after.state, { type: "run.patch", seq: 6, patch: { epoch: 3 } });
  assert.deepEqual([patch.changed, patch.state.seq, patch.state.epoch], [true, 6, 3]);
});

test("the counter moves with the speed, and stands when stale or not training", () => {
  assert.equal(samplesNow(state, 2, 20), 118);
  assert.equal(samplesNow(state, 100, 20), 190);
  assert.equal(samplesNow(state, 2, 0), 110);
  assert.equal(samplesNow({ ...state, state: "paused" }, 2, 20), 110);
});

/** What the page shows: each state after so many seconds of standing alone. */
function counterOf(steps) {
  let [floor, shown, before] = [0, 0, steps[0][0]];
  return steps.map(([after, elapsed]) => {
    floor = counterFloor(floor, shown, before, after);
    shown = Math.max(floor, samplesNow(after, elapsed, 20));
    before = after;
    return shown;
  });
}

const ending = { epoch: 1, samples_total: 4096, samples_pending: 0, samples_accumulated: 4000, samples_per_second: 10, state: "training" };

test("the large number does not go back while an epoch's report is on its way", () => {
  const begun = { ...ending, epoch: 2, samples_pending: 4000, samples_accumulated: 0 };
  const going = { ...begun, samples_accumulated: 120 };
  const reported = { ...going, samples_total: 8192, samples_pending: 0 };
  const seen = counterOf([[ending, 9], [begun, 0], [going, 0], [reported, 0]]);
  assert.deepEqual(seen, [8186, 8186, 8216, 8312]);
});

test("what was foretold too high is taken back by the next message, also after an epoch's report", () => {
  const paused = { ...ending, state: "paused", samples_accumulated: 4010 };
  assert.deepEqual(counterOf([[ending, 20], [paused, 0]]), [8296, 8106]);
  const begun = { ...ending, epoch: 2, samples_pending: 4000, samples_accumulated: 0 };
  const reported = { ...begun, samples_total: 8192, samples_pending: 0 };
  assert.deepEqual(counterOf([[ending, 20], [begun, 0], [reported, 0]]), [8296, 8296, 8192]);
  assert.deepEqual(counterOf([[ending, 20], [{ ...begun, epoch: 0, samples_total: 0, samples_pending: 0 }, 0]]), [8296, 0]);
});

test("the next averaging is foretold only while training", () => {
  assert.equal(nextSeconds(state, 4), 6);
  assert.equal(nextSeconds({ ...state, state: "averaging" }, 0), null);
  assert.equal(nextSeconds({ ...state, samples_per_second: 0 }, 0), null);
});

test("waiting grows, has jitter and an upper end", () => {
  assert.ok(backoff(1, 0) >= 500 && backoff(1, 1) <= 1000);
  assert.ok(backoff(3, 0) < backoff(3, 1));
  assert.equal(backoff(99, 1), 30000);
});

test("charts grow by newer points only, and along samples each place comes once", () => {
  const columns = { t: [1], loss: [3], samples_per_second: [1], num_peers: [1], epoch: [0], samples_total: [0] };
  assert.equal(seriesAppend(columns, { ...state, loss: 2, num_peers: 2 }), true);
  assert.equal(seriesAppend(columns, { ...state, loss: 1, num_peers: 2 }), false);
  const carried = { ...state, as_of: "2026-01-01T00:00:20Z", loss: 2, loss_at: state.as_of, num_peers: 2 };
  assert.equal(seriesAppend(columns, carried), true);
  assert.deepEqual(columns.loss, [3, 2, null], "a loss that is carried on is no measurement");
  const long = { ...columns, t: [1, 2, 3, 4], loss: [4, 3, 2, 1], epoch: [0, 1, 1, 2] };
  const gained = { ...long, samples_total: [0, 10, 10, 20] };
  assert.deepEqual(chartRows(gained, "samples", ["loss"]), [[0, 10, 20], [4, 2, 1]]);
  assert.deepEqual(positive([1, 0, -1, null]), [1, null, null, null]);
});

test("a chart of an hour leaves out what is older", () => {
  const columns = { t: [1, 2, 3, 4], loss: [4, 3, 2, 1] };
  seriesTrim(columns, 3);
  assert.deepEqual(columns, { t: [3, 4], loss: [2, 1] });
  seriesTrim(columns, undefined);
  assert.deepEqual(columns.t, [3, 4]);
});

test("what the server wrote is old only when what it is made of has changed", () => {
  const live = { ...state, config_version: 1, checkpoint_epoch: 1, run_state: "open" };
  assert.deepEqual(stale(live, { ...live, state: "averaging", loss: 1, samples_accumulated: 20 }), []);
  assert.deepEqual(stale(live, { ...live, epoch: 3 }), ["history"]);
  assert.deepEqual(stale(live, { ...live, state: "stalled" }), ["history"]);
  assert.deepEqual(stale(live, { ...live, checkpoint_epoch: 2 }), ["history", "checkpoints"]);
  assert.deepEqual(stale(live, { ...live, run_state: "paused" }), ["history", "run-head"]);
  assert.deepEqual(stale(live, { ...live, config_version: 2 }), ["history", "run-head", "config"]);
});
