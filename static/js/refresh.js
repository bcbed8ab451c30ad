// What the live state only hints at and the server writes: brought up to date when it has changed.
import { eventsRenew } from "./eventlist.js";
import { stale } from "./state.js";

const WAIT_MS = 3000;
const SPREAD_MS = 3000; // many watch: not all of them ask in the same moment

let shown = JSON.parse(document.getElementById("live-state")?.textContent || "null");
/** @type {Set<string>} */
const due = new Set();
/** Lines of what happened after this number may be missing. */
let linesFrom = Infinity;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

function refreshSoon() {
  const isDue = due.size || linesFrom < Infinity;
  if (isDue && timer === undefined) timer = setTimeout(() => void refresh(), WAIT_MS + Math.random() * SPREAD_MS);
}

async function refresh() {
  timer = undefined;
  if (document.hidden) return; // goes on when somebody looks
  if (due.delete("history")) document.dispatchEvent(new CustomEvent("historydue"));
  await Promise.all([partsRefresh(), linesRefresh()]);
  refreshSoon();
}

async function partsRefresh() {
  const ids = [...due];
  due.clear();
  if (!ids.length || (await partsSwap(ids).catch(() => false))) return;
  for (const id of ids) due.add(id); // not to be had now, or somebody writes in it
}

async function linesRefresh() {
  const known = linesFrom;
  linesFrom = Infinity;
  if (known === Infinity || (await linesFetch(known).catch(() => false))) return;
  linesFrom = Math.min(known, linesFrom); // not to be had now
}

/** @param {number} known @returns {Promise<boolean>} whether the newest lines are the server's now */
async function linesFetch(known) {
  const answer = await fetch(`${location.pathname}events/`, { cache: "no-cache", headers: { "HX-Request": "true" } });
  if (!answer.ok) return answer.status < 500;
  eventsRenew(document, new DOMParser().parseFromString(await answer.text(), "text/html"), known);
  return true;
}

/** @param {string[]} ids @returns {Promise<boolean>} whether all of them are the server's now */
async function partsSwap(ids) {
  const field = document.activeElement?.closest("input, select, textarea");
  if (field && ids.some((id) => document.getElementById(id)?.contains(field))) return false;
  const answer = await fetch(location.pathname + location.search, { cache: "no-cache" });
  if (!answer.ok) return answer.status < 500; // whoever may not look any more is told elsewhere
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of ids) partSwap(id, page);
  document.dispatchEvent(new CustomEvent("partschange", { detail: ids }));
  return true;
}

/** @param {string} id @param {Document} page */
function partSwap(id, page) {
  const old = document.getElementById(id), part = page.getElementById(id);
  if (!old || !part) return;
  const name = (/** @type {Element} */ details) => details.querySelector("summary")?.textContent || "";
  const open = new Set([...old.querySelectorAll("details[open]")].map(name));
  for (const details of part.querySelectorAll("details")) details.open = open.has(name(details));
  old.replaceWith(document.adoptNode(part));
  /** @type {any} */ (globalThis).htmx?.process(part);
}

document.addEventListener("livestate", (event) => {
  const now = /** @type {CustomEvent} */ (event).detail;
  for (const part of stale(shown, now)) due.add(part);
  shown = now;
  refreshSoon();
});
document.addEventListener("eventsmissed", (event) => {
  linesFrom = Math.min(linesFrom, /** @type {CustomEvent} */ (event).detail);
  refreshSoon();
});
document.addEventListener("visibilitychange", () => document.hidden || refreshSoon());
