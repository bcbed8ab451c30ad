// Ages of <time data-age datetime="…">: "8 s ago", and whether what they belong to is stale.
import { seconds } from "./format.js";

/** @param {ParentNode} root @param {number} now milliseconds since the epoch */
export function tickAges(root, now = Date.now()) {
  for (const element of root.querySelectorAll("time[data-age][datetime]")) {
    const at = Date.parse(element.getAttribute("datetime") || "");
    if (Number.isNaN(at)) continue;
    const text = `${seconds(Math.max(0, (now - at) / 1000))} ago`;
    if (element.textContent !== text) element.textContent = text;
  }
}

/**
 * Point a <time data-age> at another instant.
 * @param {Element} element
 * @param {string | null} at ISO text, or null for never
 */
export function ageSet(element, at) {
  if (!at) {
    element.removeAttribute("datetime");
    element.textContent = "never";
    return;
  }
  element.setAttribute("datetime", at);
  element.setAttribute("title", `${at.slice(0, 19).replace("T", " ")} UTC`);
}
