import assert from "node:assert/strict";
import { test } from "node:test";
import { chartRows, epochsFetch, lineageLines, markPlace, marksGather, smoothed, stacked } from "../../static/js/series.js";
import { isZoomed, iso, unzoomed, viewRead, viewSpan, viewWrite, zoomedTo } from "../../static/js/view.js";

test("a view survives the address, and nonsense gives the usual one", () => {
  const search = "?range=1h&scale=log&x=epoch&smooth=0.9&from=2026-03-01T00%3A00%3A00Z&first=3&at=2026-03-01T00:00:00Z";
  const view = viewRead(search);
  assert.deepEqual([view.range, view.scale, view.x, view.smooth, view.from, view.first], ["1h", "log", "epoch", "0.9", "2026-03-01T00:00:00Z", "3"]);
  assert.deepEqual(viewRead(viewWrite(view, search)), view);
  assert.match(viewWrite(view, search), /at=2026/, "what is not the view's stays");
  const usual = viewRead("?range=9y&smooth=2&from=yesterday&first=-1&x=<b>");
  assert.deepEqual(usual, viewRead(""));
  assert.equal(viewWrite(usual, ""), "");
  assert.equal(isZoomed(view), true);
  assert.equal(isZoomed(unzoomed(view)), false);
});

test("a zoom is a stretch of time, or of epochs", () => {
  const columns = { t: [100, 200, 300, 400], samples_total: [0, 10, 20, 30] };
  const time = zoomedTo(viewRead("?range=1h"), 150, 320, columns);
  assert.deepEqual(viewSpan(time, 9e9), { from: 150, to: 320 });
  const epoch = zoomedTo(viewRead("?x=epoch"), 2.4, 7.2, columns);
  assert.deepEqual([epoch.first, epoch.last, epoch.from], ["2", "8", ""]);
  const samples = zoomedTo(viewRead("?x=samples"), 10, 25, columns);
  assert.deepEqual(viewSpan(samples, 0), { from: 200, to: 400 });
  assert.deepEqual(viewSpan(viewRead("?range=1h"), 10000), { from: 6400 });
  assert.deepEqual(viewSpan(viewRead(""), 10000), {});
  assert.equal(iso(0.4), "1970-01-01T00:00:00Z");
});

test("after a roll-back each lineage is a line of its own", () => {
  const columns = { lineage: [1, 1, 1, 2, 2], epoch: [0, 1, 2, 1, 2], loss: [9, 8, 99, 7, 6] };
  const found = lineageLines(columns, "loss");
  assert.deepEqual(found.epochs, [0, 1, 2]);
  assert.deepEqual(found.lines, [{ lineage: 1, values: [9, 8, 99] }, { lineage: 2, values: [null, 7, 6] }]);
});

test("smoothing keeps gaps, begins at the first value and stays between the extremes", () => {
  assert.deepEqual(smoothed([4, null, 4], 0.9), [4, null, 4]);
  const noisy = Array.from({ length: 200 }, (_, i) => (i % 2 ? 1 : 3));
  const calm = smoothed(noisy, 0.97);
  assert.equal(calm[0], 3);
  assert.ok(calm.every((v) => v >= 1 && v <= 3));
  assert.ok(Math.abs(calm[199] - 2) < 0.1);
  assert.equal(smoothed(noisy, 0), noisy);
});

test("a stack's last line is the total, and a gap in one is not a gap in all", () => {
  assert.deepEqual(stacked([[1, null, null], [2, 3, null]]), [[1, null, null], [3, 3, null]]);
});

test("marks find their place on each axis", () => {
  const columns = { t: [100, 200], samples_total: [5, 50] };
  const mark = { at: new Date(150e3).toISOString(), epoch: 7 };
  assert.deepEqual(["time", "epoch", "samples"].map((axis) => markPlace(mark, axis, columns)), [150, 7, 50]);
  assert.equal(markPlace({ at: new Date(900e3).toISOString(), epoch: null }, "samples", columns), null);
});

test("marks that would cover each other are one", () => {
  const placed = [30, 0, 3, 5, 100].map((place) => ({ place, mark: place }));
  assert.deepEqual(marksGather(placed, 7).map((g) => [g.place, g.marks.length]), [[0, 3], [30, 1], [100, 1]]);
});

test("epochs are asked for with their stretch", async () => {
  let asked = "";
  const get = async (url) => ((asked = url), { ok: true, json: async () => ({}) });
  await epochsFetch("/s/", { first: "3", last: "" }, ["loss"], get);
  assert.equal(asked, "/s/?by=epoch&lineage=all&metrics=loss&points=1000&first=3");
  await assert.rejects(epochsFetch("/s/", {}, ["loss"], async () => ({ ok: false, status: 500 })));
});

test("along samples the last of several points at one place stands for it", () => {
  const columns = { t: [1, 2, 3], samples_total: [5, 5, 9], loss: [3, 2, 1] };
  assert.deepEqual(chartRows(columns, "samples", ["loss"]), [[5, 9], [2, 1]]);
});
