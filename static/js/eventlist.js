// What happened, newest first.
import { ageSet } from "./ages.js";

const MAX_EVENTS = 500;

/** @param {ParentNode} page @param {{text: string, at: string}} event */
export function eventShow(page, event) {
  const list = page.querySelector("[data-events]");
  if (!list) return;
  const item = document.createElement("li");
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
