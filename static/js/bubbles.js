// Peers as bubbles: one link each, as large as it is fast. templates/pages/run_peers.html draws the same.
import { short } from "./format.js";
import { bubbleSize } from "./peerquery.js";

export const MAX_BUBBLES = 200;

/**
 * @param {HTMLElement} list @param {import("./peerquery.js").Row[]} rows
 * @param {Record<string, Record<string, string>>} wording @param {string} page address with KEY in it
 */
export function bubblesShow(list, rows, wording, page) {
  const shown = rows.slice(0, MAX_BUBBLES);
  const fastest = Math.max(0, ...shown.map((row) => row.samples_per_second));
  /** @type {Map<string, Element>} */
  const known = new Map();
  for (const item of list.children) known.set(item.getAttribute("data-key") || "", item);
  shown.forEach((row, index) => {
    const item = known.get(row.key) || bubbleMake(row, page);
    known.delete(row.key);
    bubbleFill(item, row, wording, fastest);
    if (list.children[index] !== item) list.insertBefore(item, list.children[index] || null);
  });
  for (const item of known.values()) item.remove();
}

/** @param {import("./peerquery.js").Row} row @param {string} page */
function bubbleMake(row, page) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  item.dataset.key = row.key;
  link.href = page.replace("KEY", encodeURIComponent(row.key));
  link.append(document.createElement("b"), document.createElement("span"));
  item.append(link);
  return item;
}

/** @param {Element} item @param {import("./peerquery.js").Row} row @param {any} wording @param {number} fastest */
function bubbleFill(item, row, wording, fastest) {
  const link = /** @type {HTMLElement} */ (item.firstElementChild);
  const name = [row.name, row.device].filter(Boolean).join(" · ");
  const words = `${name}: ${short(row.samples_per_second)} samples/s, ${wording.words[row.state] || row.state}`;
  link.dataset.size = String(bubbleSize(row.samples_per_second, fastest));
  link.dataset.tone = wording.tones[row.state] || "idle";
  if (link.title !== words) {
    link.title = words;
    link.setAttribute("aria-label", words);
    /** @type {Element} */ (link.children[0]).textContent = row.name;
    /** @type {Element} */ (link.children[1]).textContent = short(row.samples_per_second);
  }
}
