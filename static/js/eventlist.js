// What happened, newest first.
import { ageSet } from "./ages.js";

const MAX_EVENTS = 500;

/** @param {ParentNode} page @param {{text: string, at: string, seq: number}} event */
export function eventShow(page, event) {
  const list = page.querySelector("[data-events]");
  if (!list || list.querySelector(`[data-seq="${event.seq}"]`)) return; // the server wrote it already
  const item = document.createElement("li");
  item.dataset.seq = String(event.seq);
  const text = document.createElement("span");
  const time = document.createElement("time");
  text.className = "event-text";
  text.textContent = event.text;
  time.setAttribute("data-age", "");
  ageSet(time, event.at);
  item.append(text, time);
  list.prepend(item);
  // Far beyond what anybody reads: the line that asks for older ones goes with the last of them.
  while (list.children.length > MAX_EVENTS) list.lastElementChild?.remove();
  page.querySelector("[data-events-empty]")?.setAttribute("hidden", "");
}

/**
 * The newest lines, as the server has them, in the place of those that are shown: some were missed.
 * Older ones that were asked for stay, unless there may be missed ones between.
 * @param {ParentNode} page @param {ParentNode} answer
 * @param {number} known up to this number every line is shown
 */
export function eventsRenew(page, answer, known) {
  const list = page.querySelector("[data-events]");
  const fresh = linesOf(answer), more = answer.querySelector(".events-more");
  if (!list || !fresh.length) return;
  const newest = numberOf(fresh[0]), oldest = numberOf(fresh[fresh.length - 1]);
  const shown = linesOf(list);
  const later = shown.filter((item) => numberOf(item) > newest); // came while this was asked for
  const older = known >= oldest ? shown.filter((item) => numberOf(item) < oldest) : [];
  const end = older.length ? list.querySelector(".events-more") : more;
  list.replaceChildren(...later, ...fresh, ...older, ...(end ? [end] : []));
  /** @type {any} */ (globalThis).htmx?.process(list);
  page.querySelector("[data-events-empty]")?.setAttribute("hidden", "");
}

/** @param {ParentNode} root @returns {Element[]} */
function linesOf(root) {
  return [...root.querySelectorAll("li[data-seq]")];
}

/** @param {Element} item */
function numberOf(item) {
  return Number(item.getAttribute("data-seq"));
}
