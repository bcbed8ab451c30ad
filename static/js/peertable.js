// The table of peers: rows are filled in place; of many only those in sight are in the document.
import { ageSet, tickAges } from "./ages.js";
import { short } from "./format.js";

const MANY = 200;
const AROUND = 12;
const SILENT = new Set(["silent", "left"]);

/** @typedef {import("./peerquery.js").Row} Row */

/**
 * Which of many rows to draw. Pure.
 * @param {number} count @param {{top: number, height: number, row: number}} view in pixels
 * @returns {{first: number, last: number}} `last` is not drawn any more
 */
export function windowOf(count, view) {
  if (count <= MANY) return { first: 0, last: count };
  const top = Math.min(view.top, Math.max(0, count * view.row - view.height));
  const first = Math.max(0, Math.floor(top / view.row) - AROUND);
  const last = Math.min(count, Math.floor((top + view.height) / view.row) + AROUND);
  return { first, last };
}

/** @param {Row} row @returns {string} whose the numbers are */
export function badgeOf(row) {
  return row.managed ? "managed" : row.verified ? "verified" : "unverified";
}

export class PeerTable {
  /** @param {HTMLElement} section @param {Record<string, Record<string, string>>} wording */
  constructor(section, wording) {
    this.wording = wording;
    this.scroll = /** @type {HTMLElement} */ (section.querySelector("[data-peers-scroll]"));
    this.table = /** @type {HTMLTableElement} */ (section.querySelector("[data-peers]"));
    this.body = this.table.tBodies[0];
    this.template = /** @type {HTMLTemplateElement} */ (section.querySelector("#peer-row"));
    this.mine = section.dataset.mine || "";
    this.page = section.dataset.peerPage || "";
    /** @type {Row[]} */
    this.rows = [];
    this.rowHeight = 0;
    this.above = this.#spacer();
    this.below = this.#spacer();
    let isWaiting = false;
    this.scroll.addEventListener("scroll", () => {
      if (isWaiting || this.rows.length <= MANY) return;
      isWaiting = true;
      requestAnimationFrame(() => {
        isWaiting = false;
        this.#draw();
      });
    });
  }

  #spacer() {
    const line = document.createElement("tr");
    line.setAttribute("aria-hidden", "true");
    line.className = "spacer";
    line.append(document.createElement("td"));
    return line;
  }

  /** @param {Row[]} rows in order */
  show(rows) {
    this.rows = rows;
    const isMany = rows.length > MANY;
    this.scroll.classList.toggle("is-many", isMany);
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    if (isMany && !this.rowHeight) this.rowHeight = this.#measure();
    this.#draw();
  }

  #measure() {
    const known = this.body.querySelector("tr[data-key]");
    const line = known || this.#line(this.rows[0]);
    if (!known) this.body.append(line);
    return line.getBoundingClientRect().height || 44;
  }

  #draw() {
    const row = this.rowHeight || 44;
    const view = { top: this.scroll.scrollTop, height: this.scroll.clientHeight, row };
    const { first, last } = windowOf(this.rows.length, view);
    /** @type {Map<string, Element>} */
    const known = new Map();
    for (const line of this.body.children) {
      if (line.hasAttribute("data-key")) known.set(line.getAttribute("data-key") || "", line);
    }
    const lines = this.rows.slice(first, last).map((item, index) => {
      const line = known.get(item.key) || this.#line(item);
      known.delete(item.key);
      this.#fill(line, item);
      line.setAttribute("aria-rowindex", String(first + index + 2));
      return line;
    });
    for (const line of known.values()) line.remove();
    this.#place(lines, first * row, (this.rows.length - last) * row);
    tickAges(this.body);
  }

  /** @param {Element[]} lines @param {number} above @param {number} below empty pixels */
  #place(lines, above, below) {
    const wanted = [...(above > 0 ? [this.above] : []), ...lines, ...(below > 0 ? [this.below] : [])];
    for (const [spacer, height] of /** @type {[HTMLElement, number][]} */ ([[this.above, above], [this.below, below]])) {
      /** @type {HTMLElement} */ (spacer.firstElementChild).style.height = `${height}px`;
      /** @type {HTMLTableCellElement} */ (spacer.firstElementChild).colSpan = 9;
      if (height <= 0) spacer.remove();
    }
    wanted.forEach((line, index) => {
      if (this.body.children[index] !== line) this.body.insertBefore(line, this.body.children[index] || null);
    });
    while (this.body.children.length > wanted.length) this.body.lastElementChild?.remove();
  }

  /** @param {Row} row @returns {Element} */
  #line(row) {
    const line = /** @type {Element} */ (this.template.content.firstElementChild?.cloneNode(true));
    line.setAttribute("data-key", row.key);
    line.querySelector("a")?.setAttribute("href", this.page.replace("KEY", encodeURIComponent(row.key)));
    return line;
  }

  /** @param {Element} line @param {Row} row */
  #fill(line, row) {
    const texts = {
      ...row, badge: badgeOf(row), samples_per_second: short(row.samples_per_second),
      state: this.wording.words[row.state] || row.state,
    };
    for (const cell of line.querySelectorAll("[data-cell]")) {
      const name = cell.getAttribute("data-cell") || "";
      if (name === "seen_at") ageSet(/** @type {Element} */ (cell.firstElementChild), row.seen_at);
      else {
        const text = String(/** @type {any} */ (texts)[name] ?? "");
        if (cell.textContent !== text) cell.textContent = text;
      }
      if (name === "state") cell.setAttribute("data-tone", this.wording.tones[row.state] || "idle");
      if (name === "class") cell.setAttribute("title", row.hardware);
    }
    line.classList.toggle("is-stale", SILENT.has(row.state));
    line.classList.toggle("is-mine", !row.managed && this.mine !== "" && row.name === this.mine);
  }
}
