import assert from "node:assert/strict";
import { test } from "node:test";
import { Feed } from "../../static/js/feed.js";

const first = { seq: 5, epoch: 0, peers: {} };

/** A feed with hand-driven sockets, timers and answers. */
function stage(answer = { ok: false }) {
  const sockets = [], timers = [], states = [], said = [], asked = [], gaps = [];
  class FakeSocket {
    constructor(url) {
      this.url = url;
      sockets.push(this);
    }
    close() {
      this.closed = true;
      this.onclose?.({ code: 1000 });
    }
    push(message) {
      this.onmessage({ data: JSON.stringify(message) });
    }
    die(code = 1006) {
      this.onclose({ code });
    }
  }
  const feed = new Feed(first, {
    socketUrl: "ws://x/", stateUrl: "/state/", WebSocket: FakeSocket, random: () => 0.5,
    fetch: async (url) => (asked.push(url), answer),
    setTimeout: (act, wait) => timers.push({ act, wait }) , clearTimeout: (id) => id && (timers[id - 1].act = () => undefined),
    onState: (state, event) => states.push([state, event]), onConnection: (how) => said.push(how),
    onGap: (known) => gaps.push(known),
  });
  const wait = async () => {
    const timer = timers.filter((t) => t.wait < 45000).at(-1);
    timer.act();
    await new Promise((done) => setImmediate(done));
    return timer.wait;
  };
  return { feed, sockets, timers, states, said, asked, gaps, wait };
}

test("it asks for what came after the page and takes patches in order", () => {
  const { feed, sockets, states } = stage();
  feed.start();
  assert.equal(sockets[0].url, "ws://x/?since=5");
  sockets[0].push({ type: "run.patch", seq: 6, patch: { epoch: 1 } });
  sockets[0].push({ type: "run.event", seq: 7, event: { kind: "k", text: "t", at: "a" } });
  assert.deepEqual(states.map(([s, e]) => [s.seq, s.epoch, e?.text]), [[6, 1, undefined], [6, 1, "t"]]);
});

test("a merged patch is taken as it is, and an old socket is not listened to", () => {
  const { feed, sockets, states } = stage();
  feed.start();
  sockets[0].push({ type: "run.patch", seq: 8, patch: { epoch: 1 } });
  assert.ok(!sockets[0].closed);
  feed.stop();
  feed.start();
  assert.equal(sockets[1].url, "ws://x/?since=8");
  sockets[1].push({ type: "run.snapshot", seq: 9, state: { seq: 9, epoch: 4, peers: {} } });
  sockets[0].push({ type: "run.patch", seq: 10, patch: { epoch: 99 } });
  assert.deepEqual(states.map(([s]) => s.epoch), [1, 4]);
});

test("it tries again with growing waits, then polls", async () => {
  const { feed, sockets, states, said, asked, wait } = stage({ ok: true, json: async () => ({ seq: 12, epoch: 3, peers: {} }) });
  feed.start();
  const waits = [];
  for (let i = 0; i < 3; i += 1) {
    sockets.at(-1).die();
    waits.push(await wait());
  }
  assert.deepEqual(waits, [...waits].sort((a, b) => a - b));
  sockets.at(-1).die();
  await wait();
  assert.deepEqual(asked, ["/state/"]);
  assert.equal(states.at(-1)[0].epoch, 3);
  assert.deepEqual(said, ["lost", "lost", "lost", "lost", "polling"]);
  assert.equal(sockets.length, 4);
});

test("a goodbye is waited out as long as it says", () => {
  const { feed, sockets, timers } = stage();
  feed.start();
  sockets[0].push({ type: "run.bye", seq: 5, retry_after: 7 });
  assert.ok(timers.filter((t) => t.wait !== 45000).at(-1).wait >= 7000);
});

test("a hidden tab stops for good until it is started again", () => {
  const { feed, sockets, said } = stage();
  feed.start();
  feed.stop();
  assert.ok(sockets[0].closed);
  assert.deepEqual(said, ["paused"]);
  feed.start();
  assert.equal(sockets.length, 2);
});

test("a hidden tab asks once a minute, and is live again when it is seen", async () => {
  const { feed, sockets, timers, states, said, asked } = stage({ ok: true, json: async () => ({ seq: 9, epoch: 4, peers: {} }) });
  feed.start();
  feed.slow();
  feed.slow();
  assert.ok(sockets[0].closed);
  assert.deepEqual(said, ["hidden"]);
  for (let minute = 0; minute < 2; minute += 1) {
    const timer = timers.at(-1);
    assert.equal(timer.wait, 60000);
    timer.act();
    await new Promise((done) => setImmediate(done));
  }
  assert.equal(asked.length, 2);
  assert.equal(states.at(-1)[0].epoch, 4);
  feed.start();
  assert.equal(sockets[1].url, "ws://x/?since=9");
  assert.equal(sockets.length, 2);
});

test("of a page that carries a part of the state the whole one is asked for", () => {
  const { feed, sockets, states } = stage();
  feed.state = { ...first, is_partial: true };
  feed.start();
  assert.equal(sockets[0].url, "ws://x/");
  sockets[0].push({ type: "run.snapshot", seq: 7, state: { seq: 7, epoch: 1, peers: {} } });
  assert.equal(states.at(-1)[0].is_partial, undefined);
  feed.stop();
  feed.start();
  assert.equal(sockets[1].url, "ws://x/?since=7");
});

test("without access it gives up", () => {
  const { feed, sockets, said } = stage();
  feed.start();
  sockets[0].die(4403);
  assert.deepEqual(said, ["ended"]);
  assert.equal(sockets.length, 1);
  const other = stage();
  other.feed.start();
  other.sockets[0].push({ type: "run.bye", seq: 5, reason: "access_ended", retry_after: 60 });
  assert.equal(other.said.at(-1), "ended");
});

test("a whole state after a gap says from where on lines may be missing", async () => {
  const { feed, sockets, gaps } = stage();
  feed.start();
  sockets[0].push({ type: "run.event", seq: 7, event: { kind: "k", text: "t", at: "a" } });
  sockets[0].push({ type: "run.patch", seq: 7, patch: { epoch: 1 } });
  sockets[0].push({ type: "run.snapshot", seq: 7, state: { seq: 7, epoch: 1, peers: {} } });
  assert.deepEqual(gaps, [], "nothing was missed");
  sockets[0].push({ type: "run.event", seq: 8, event: { kind: "k", text: "t", at: "a" } });
  sockets[0].push({ type: "run.snapshot", seq: 12, state: { seq: 12, epoch: 2, peers: {} } });
  assert.deepEqual(gaps, [8]);
});

test("what is asked for over HTTP, by a hidden tab or without sockets, may have missed lines too", async () => {
  let seq = 9;
  const { feed, sockets, timers, gaps, wait } = stage({ ok: true, json: async () => ({ seq, epoch: 4, peers: {} }) });
  feed.start();
  feed.slow();
  timers.at(-1).act();
  await new Promise((done) => setImmediate(done));
  assert.deepEqual(gaps, [5]);
  feed.start();
  for (let i = 0; i < 3; i += 1) {
    sockets.at(-1).die();
    await wait();
  }
  sockets.at(-1).die();
  await wait();
  assert.deepEqual(gaps, [5], "polled, and nothing new");
  seq = 11;
  await wait();
  assert.deepEqual(gaps, [5, 9]);
});

test("a line comes with its number", () => {
  const { feed, sockets, states } = stage();
  feed.start();
  sockets[0].push({ type: "run.event", seq: 6, event: { kind: "k", text: "t", at: "a" } });
  assert.deepEqual(states[0][1], { kind: "k", text: "t", at: "a", seq: 6 });
});
