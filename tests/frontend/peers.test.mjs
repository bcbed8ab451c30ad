import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bubbleSize, hardwareClass, nextSort, optionsOf, queryOf, queryWrite, rowsAll, rowsWanted } from "../../static/js/peerquery.js";
import { windowOf } from "../../static/js/peertable.js";

const cases = JSON.parse(readFileSync(new URL("peer_cases.json", import.meta.url), "utf8"));

test("machines are put into the classes of the table", () => {
  assert.deepEqual(cases.classes.map(([device]) => [device, hardwareClass(device)]), cases.classes);
});

test("peers are searched, filtered and sorted as the table says", () => {
  for (const [query, keys] of cases.queries) {
    const found = rowsWanted(rowsAll(cases.state), queryOf(new URLSearchParams(query)));
    assert.deepEqual(found.map((row) => row.key), keys, query);
  }
});

test("bubbles have the sizes of the table", () => {
  assert.deepEqual(cases.bubbles.map(([speed, fastest]) => [speed, fastest, bubbleSize(speed, fastest)]), cases.bubbles);
});

test("a query goes into the address and comes back, and leaves the rest alone", () => {
  const url = new URL("http://x/?range=1h&peer=old&sort=name");
  const query = { words: "bob", chosen: { role: "trainer" }, sort: "-lag", isBubbles: true };
  queryWrite(url, query);
  assert.equal(url.search, "?range=1h&peer=bob&sort=-lag&peer-role=trainer&view=bubbles");
  assert.deepEqual(queryOf(url.searchParams), query);
  queryWrite(url, queryOf(new URLSearchParams()));
  assert.equal(url.search, "?range=1h");
});

test("a column is first sorted as is useful, then the other way round", () => {
  assert.equal(nextSort("-samples_per_second", "name"), "name");
  assert.equal(nextSort("name", "name"), "-name");
  assert.equal(nextSort("name", "lag"), "-lag");
  assert.equal(nextSort("-lag", "lag"), "lag");
});

test("a chosen value stays among the choices when its last peer has left", () => {
  const rows = rowsAll(cases.state);
  assert.deepEqual(optionsOf(rows, "version", ""), ["0.1.0", "0.2.0", "unknown"]);
  assert.deepEqual(optionsOf(rows, "reach", "gone"), ["client", "direct", "gone", "relayed"]);
});

test("of many rows only those in sight are drawn, and some around them", () => {
  assert.deepEqual(windowOf(150, { top: 0, height: 500, row: 40 }), { first: 0, last: 150 });
  assert.deepEqual(windowOf(10000, { top: 0, height: 500, row: 40 }), { first: 0, last: 24 });
  assert.deepEqual(windowOf(10000, { top: 200000, height: 500, row: 40 }), { first: 4988, last: 5024 });
  assert.deepEqual(windowOf(10000, { top: 399500, height: 500, row: 40 }), { first: 9975, last: 10000 });
  assert.deepEqual(windowOf(300, { top: 99999999, height: 500, row: 40 }), { first: 275, last: 300 });
});
