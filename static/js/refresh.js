// What the live state only hints at and the server writes: brought up to date when it has changed.
import { stale } from "./state.js";

const WAIT_MS = 3000;
const SPREAD_MS = 3000; // many watch: not all of them ask in the same moment

let shown = JSON.parse(document.getElementById("live-state")?.textContent || "null");
/** @type {Set<string>} */
const due = new Set();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

function refreshSoon() {
  if (due.size && timer === undefined) timer = setTimeout(() => void refresh(), WAIT_MS + Math.random() * SPREAD_MS);
}

async function refresh() {
  timer = undefined;
  if (document.hidden) return; // goes on when somebody looks
  if (due.delete("history")) document.dispatchEvent(new CustomEvent("historydue"));
  const ids = [...due];
  due.clear();
  if (!ids.length || (await partsSwap(ids).catch(() => false))) return;
  for (const id of ids) due.add(id); // not to be had now, or somebody writes in it
  refreshSoon();
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
document.addEventListener("visibilitychange", () => document.hidden || refreshSoon());
