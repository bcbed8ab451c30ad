// The peers of a run: search, filters, order and view; all of it stands in the address.
import { MAX_BUBBLES, bubblesShow } from "./bubbles.js";
import { number } from "./format.js";
import { FILTERS, nextSort, optionsOf, queryOf, queryWrite, rowsAll, rowsWanted } from "./peerquery.js";
import { PeerTable } from "./peertable.js";

export class Peers {
  /** @param {HTMLElement} section @param {Record<string, Record<string, string>>} wording */
  constructor(section, wording) {
    this.section = section;
    this.wording = wording;
    this.query = queryOf(new URLSearchParams(location.search));
    this.table = new PeerTable(section, wording);
    /** @type {import("./state.js").LiveState | null} */
    this.state = null;
    this.#controls();
  }

  /** @param {string} hook @returns {HTMLElement} */
  #part(hook) {
    return /** @type {HTMLElement} */ (this.section.querySelector(hook));
  }

  #controls() {
    const form = /** @type {HTMLFormElement} */ (this.#part("[data-peer-filters]"));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => {
      const input = /** @type {HTMLInputElement} */ (event.target);
      const name = input.name.replace(/^peer-/, "");
      if (input.name === "peer") this.query.words = input.value;
      else if (input.value) this.query.chosen[name] = input.value;
      else delete this.query.chosen[name];
      this.#asked();
    });
    this.section.addEventListener("click", (event) => {
      const target = /** @type {Element} */ (event.target);
      const head = target.closest("a[data-sort]");
      const view = target.closest("a[data-view]");
      if (!head && !view) return;
      event.preventDefault();
      if (head) this.query.sort = nextSort(this.query.sort, head.getAttribute("data-sort") || "");
      else this.query.isBubbles = view?.getAttribute("data-view") === "bubbles";
      this.#asked();
    });
    this.#part("[data-peers-clear]").addEventListener("click", (event) => {
      event.preventDefault();
      this.query = { ...this.query, words: "", chosen: {} };
      form.querySelectorAll("select, input[type=search]").forEach((input) => (/** @type {any} */ (input).value = ""));
      this.#asked();
    });
  }

  #asked() {
    const url = new URL(location.href);
    queryWrite(url, this.query);
    history.replaceState(history.state, "", url);
    for (const head of this.section.querySelectorAll("th")) {
      const name = head.querySelector("a[data-sort]")?.getAttribute("data-sort");
      if (name === this.query.sort.replace(/^-/, "")) {
        head.setAttribute("aria-sort", this.query.sort.startsWith("-") ? "descending" : "ascending");
      } else head.removeAttribute("aria-sort");
    }
    for (const link of this.section.querySelectorAll("a[data-view]")) {
      const is = (link.getAttribute("data-view") === "bubbles") === this.query.isBubbles;
      link.setAttribute("aria-current", String(is));
    }
    this.#part("[data-peers-scroll]").scrollTop = 0;
    this.show();
  }

  /** @param {import("./state.js").LiveState | null} state */
  show(state = this.state) {
    if (!state) return;
    this.state = state;
    const all = rowsAll(state);
    const rows = rowsWanted(all, this.query);
    for (const name of FILTERS) this.#options(name, optionsOf(all, name, this.query.chosen[name] || ""));
    this.#part("[data-peers-scroll]").hidden = this.query.isBubbles || rows.length === 0;
    const bubbles = this.#part("[data-bubbles]");
    bubbles.hidden = !this.query.isBubbles || rows.length === 0;
    if (this.query.isBubbles) bubblesShow(bubbles, rows, this.wording, this.table.page);
    else this.table.show(rows);
    this.#counts(rows.length, all.length);
  }

  /** @param {string} name @param {string[]} values */
  #options(name, values) {
    const select = /** @type {HTMLSelectElement} */ (this.#part(`select[name="peer-${name}"]`));
    const known = [...select.options].slice(1).map((option) => option.value);
    if (known.join("\n") === values.join("\n") || select === document.activeElement) return;
    while (select.options.length > 1) select.remove(1);
    for (const value of values) select.add(new Option(value, value));
    select.value = this.query.chosen[name] || "";
  }

  /** @param {number} count @param {number} whole */
  #counts(count, whole) {
    const isNarrowed = this.query.words !== "" || Object.keys(this.query.chosen).length > 0;
    const text = isNarrowed ? `${count} of ${whole}` : String(whole);
    if (this.#part("[data-peer-count]").textContent !== text) this.#part("[data-peer-count]").textContent = text;
    this.#part("[data-peers-empty]").hidden = whole > 0;
    this.#part("[data-peers-none]").hidden = count > 0 || whole === 0;
    const rest = this.query.isBubbles ? count - MAX_BUBBLES : 0; // the table has all rows
    const line = this.#part("[data-peers-more]");
    line.hidden = rest <= 0;
    const more = `The first ${number(MAX_BUBBLES)} of ${number(count)}; search and filters find the other ${number(rest)}.`;
    if (rest > 0 && line.textContent !== more) line.textContent = more;
  }
}
