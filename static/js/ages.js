// Ages of <time data-age datetime="…">: "8 s ago", and whether what they belong to is stale.
import { seconds } from "./format.js";

let skew = 0;

/** Milliseconds since 1970 by the site's clock: this machine's may be wrong. */
export function siteNow() {
  return Date.now() + skew;
}

/** @param {string | null | undefined} at what the site's clock shows at this moment */
export function siteClockSet(at) {
  const now = Date.parse(at || "");
  if (!Number.isNaN(now)) skew = now - Date.now();
}

siteClockSet(globalThis.document?.querySelector("[data-now]")?.getAttribute("data-now"));

/** @param {ParentNode} root @param {number} now milliseconds since 1970 */
export function tickAges(root, now = siteNow()) {
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
