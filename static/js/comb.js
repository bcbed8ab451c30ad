// The epoch as a honeycomb; web/pages/comb.py draws the same on the server.
import { number, percent } from "./format.js";

const NUM_SLOTS = 8;
const LEGEND_ROWS = 6;
const MAX_SHARES = 100;

/** @typedef {{key: string, name: string, samples: number, slot: string}} Share */

/** @param {import("./state.js").LiveState} state @returns {Share[]} in the order of the cells */
export function epochShares(state) {
  const shares = [];
  let rest = state.samples_accumulated;
  const keys = Object.keys(state.peers).sort();
  for (const [index, key] of keys.entries()) {
    const peer = state.peers[key];
    if (peer.epoch !== state.epoch || !(peer.samples_accumulated > 0)) continue;
    const name = [peer.name, peer.device].filter(Boolean).join(" · ");
    shares.push({ key, name, samples: peer.samples_accumulated, slot: String(index % NUM_SLOTS) });
    rest -= peer.samples_accumulated;
  }
  if (rest > 0) shares.push({ key: "", name: "Just reported", samples: rest, slot: "others" });
  return shares;
}

/**
 * The slot of each cell; a cell belongs to whoever holds its middle.
 * @param {Share[]} shares @param {number} target @param {number} count @returns {string[]}
 */
export function cellSlots(shares, target, count) {
  const slots = [];
  let index = 0;
  let reached = shares.length ? shares[0].samples : 0;
  for (let cell = 0; cell < count; cell += 1) {
    const middle = ((cell + 0.5) * target) / count;
    while (index < shares.length && reached <= middle) {
      index += 1;
      reached += index < shares.length ? shares[index].samples : 0;
    }
    slots.push(index < shares.length ? shares[index].slot : "");
  }
  return slots;
}

/** @param {ParentNode} page @param {import("./state.js").LiveState} state */
export function combShow(page, state) {
  const bar = page.querySelector("[data-comb]");
  const legend = page.querySelector("[data-legend]");
  if (!bar || !legend) return;
  const shares = epochShares(state);
  const cells = bar.querySelectorAll("use");
  const slots = cellSlots(shares, state.target_batch_size, cells.length);
  cells.forEach((cell, index) => {
    if (cell.getAttribute("data-slot") !== slots[index]) cell.setAttribute("data-slot", slots[index]);
  });
  const filled = Math.min(state.samples_accumulated, state.target_batch_size);
  const words = `${number(state.samples_accumulated)} of ${number(state.target_batch_size)} samples, ${percent(filled / state.target_batch_size)}`;
  bar.setAttribute("aria-valuenow", String(filled));
  bar.setAttribute("aria-valuetext", words);
  bar.setAttribute("aria-valuemax", String(state.target_batch_size));
  bar.closest(".now")?.classList.toggle("is-averaging", state.state === "averaging");
  const largest = [...shares].sort((a, b) => b.samples - a.samples);
  legendShow(legend, largest);
  sharesShow(page, largest, state.target_batch_size);
}

/** The same as a table, for whoever wants all of it. @param {ParentNode} page @param {Share[]} shares @param {number} target */
function sharesShow(page, shares, target) {
  const details = /** @type {HTMLDetailsElement | null} */ (page.querySelector("[data-shares]"));
  const body = page.querySelector("[data-shares-rows]");
  const count = page.querySelector("[data-shares-count]");
  if (!details || !body || !count) return;
  details.hidden = shares.length < 2;
  const text = shares.length > MAX_SHARES ? `The largest ${MAX_SHARES} of ${shares.length} shares` : `All ${shares.length} shares`;
  if (count.textContent !== text) count.textContent = text;
  if (!details.open) return;
  const rows = shares.slice(0, MAX_SHARES).map((share) => {
    const line = document.createElement("tr");
    const name = document.createElement("th");
    const mark = document.createElement("i");
    mark.dataset.slot = share.slot;
    name.scope = "row";
    name.append(mark, ` ${share.name}`);
    line.append(name, cellOf(number(share.samples)), cellOf(percent(share.samples / target)));
    return line;
  });
  body.replaceChildren(...rows);
}

/** @param {string} text */
function cellOf(text) {
  const cell = document.createElement("td");
  cell.className = "right num";
  cell.textContent = text;
  return cell;
}

/** @param {Element} legend @param {Share[]} shares */
function legendShow(legend, shares) {
  const items = shares.slice(0, LEGEND_ROWS).map((share) => {
    const item = document.createElement("li");
    const mark = document.createElement("i");
    const name = document.createElement("b");
    const count = document.createElement("span");
    mark.dataset.slot = share.slot;
    count.className = "muted num";
    count.textContent = number(share.samples);
    name.textContent = share.name;
    item.append(mark, name, count);
    return item;
  });
  if (!shares.length) items.push(muted("Nobody has reported samples of this epoch yet."));
  legend.replaceChildren(...items);
}

/** @param {string} text */
function muted(text) {
  const item = document.createElement("li");
  item.className = "muted";
  item.textContent = text;
  return item;
}
