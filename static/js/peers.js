// The peers table: sorted, searched, and kept in step with the live state.
import { ageSet, tickAges } from "./ages.js";
import { short } from "./format.js";

const MAX_ROWS = 200;
const SILENT = new Set(["silent", "left"]);

/** @typedef {Record<string, any> & {key: string, lag: number}} Row */

/**
 * Rows to show, in order.
 * @param {import("./state.js").LiveState} state @param {{by: string, down: boolean}} order @param {string} words
 * @returns {Row[]}
 */
export function peerRows(state, order, words) {
  const wanted = words.trim().toLowerCase();
  const rows = Object.entries(state.peers)
    .map(([key, peer]) => ({ ...peer, key, lag: Math.max(0, state.epoch - peer.epoch) }))
    .filter((/** @type {any} */ row) => row.role !== "coordinator")
    .filter((/** @type {any} */ row) =>
      !wanted || `${row.name} ${row.device} ${row.hardware}`.toLowerCase().includes(wanted));
  const sign = order.down ? -1 : 1;
  rows.sort((/** @type {any} */ a, /** @type {any} */ b) => {
    const [x, y] = [a[order.by] ?? "", b[order.by] ?? ""];
    return x === y ? (a.name < b.name ? -1 : 1) : sign * (x < y ? -1 : 1);
  });
  return /** @type {any} */ (rows);
}

export class PeersTable {
  /** @param {HTMLElement} section @param {Record<string, Record<string, string>>} wording */
  constructor(section, wording) {
    this.section = section;
    this.wording = wording;
    this.order = { by: "samples_per_second", down: true };
    this.words = new URLSearchParams(location.search).get("peer") || "";
    /** @type {import("./state.js").LiveState | null} */
    this.state = null;
    this.mine = section.querySelector("tr.is-mine [data-cell='name']")?.textContent || "";
    this.#controls();
  }

  #controls() {
    const search = /** @type {HTMLInputElement} */ (this.section.querySelector("[data-peer-search]"));
    search.value = this.words;
    search.addEventListener("input", () => {
      this.words = search.value;
      const url = new URL(location.href);
      if (this.words) url.searchParams.set("peer", this.words);
      else url.searchParams.delete("peer");
      history.replaceState(null, "", url);
      this.show();
    });
    for (const head of this.section.querySelectorAll("th[data-sort]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => this.#sort(head));
    }
  }

  /** @param {Element} head */
  #sort(head) {
    const by = head.getAttribute("data-sort") || "name";
    const isText = ["name", "state", "reach", "hardware", "version"].includes(by);
    this.order = { by, down: this.order.by === by ? !this.order.down : !isText };
    for (const other of this.section.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
    this.show();
  }

  /** @param {import("./state.js").LiveState | null} state */
  show(state = this.state) {
    if (!state) return;
    this.state = state;
    const rows = peerRows(state, this.order, this.words);
    const body = /** @type {HTMLElement} */ (this.section.querySelector("tbody"));
    /** @type {Map<string, Element>} */
    const known = new Map();
    for (const line of body.children) known.set(line.getAttribute("data-key") || "", line);
    rows.slice(0, MAX_ROWS).forEach((row, index) => {
      const line = known.get(row.key) || this.#line(row.key);
      known.delete(row.key);
      this.#fill(line, row);
      if (body.children[index] !== line) body.insertBefore(line, body.children[index] || null);
    });
    for (const line of known.values()) line.remove();
    this.#counts(rows.length);
    tickAges(body);
  }

  /** @param {string} key */
  #line(key) {
    const template = /** @type {HTMLTemplateElement} */ (this.section.querySelector("#peer-row"));
    const line = /** @type {Element} */ (template.content.firstElementChild?.cloneNode(true));
    line.setAttribute("data-key", key);
    return line;
  }

  /** @param {Element} line @param {Row} row */
  #fill(line, row) {
    const badge = row.managed ? "managed" : row.verified ? "verified" : "unverified";
    const texts = { ...row, badge, samples_per_second: short(row.samples_per_second), state: this.wording.words[row.state] || row.state };
    for (const cell of line.querySelectorAll("[data-cell]")) {
      const name = cell.getAttribute("data-cell") || "";
      if (name === "seen_at") ageSet(/** @type {Element} */ (cell.firstElementChild), row.seen_at);
      else {
        const text = String(/** @type {any} */ (texts)[name] ?? "");
        if (cell.textContent !== text) cell.textContent = text;
      }
      if (name === "state") cell.setAttribute("data-tone", this.wording.tones[row.state] || "idle");
    }
    line.classList.toggle("is-stale", SILENT.has(row.state));
    line.classList.toggle("is-mine", !row.managed && this.mine !== "" && row.name === this.mine);
  }

  /** @param {number} count */
  #counts(count) {
    const set = (/** @type {string} */ hook, /** @type {string} */ text, /** @type {boolean} */ isHidden) => {
      const element = /** @type {HTMLElement} */ (this.section.querySelector(hook));
      if (text) element.textContent = text;
      element.hidden = isHidden;
    };
    set("[data-peer-count]", String(count), false);
    set("[data-peers-empty]", "", count > 0 || this.words !== "");
    const text = count > MAX_ROWS ? `The first ${MAX_ROWS} of ${count}; search finds the others.` : "No peer has that name or hardware.";
    set("[data-peers-more]", text, !(count > MAX_ROWS || (count === 0 && this.words !== "")));
  }
}
