// The page of a run, kept alive: fills what is marked data-live from the feed's state.
import { ageSet, tickAges } from "./ages.js";
import { combShow } from "./comb.js";
import { Feed } from "./feed.js";
import { evidence, loss, number, percent, seconds, short } from "./format.js";
import { PeersTable } from "./peers.js";
import { nextSeconds, samplesNow } from "./state.js";

const STALE_SECONDS = 20;
const BANNER_MS = 3000;
const MAX_EVENTS = 100;

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
/** @param {string} id */
const data = (id) => JSON.parse(document.getElementById(id)?.textContent || "null");
const wording = data("wording");
const first = data("live-state");
const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
const peers = new PeersTable(/** @type {HTMLElement} */ (document.getElementById("peers")), wording);

let state = first;
/** Age of the state when it came, so that a wrong clock here changes nothing but that. */
let cameAt = performance.now();
let ageThen = first.as_of ? Math.max(0, (Date.now() - Date.parse(first.as_of)) / 1000) : Infinity;

/** @type {Record<string, (value: any) => string>} */
const FORMATS = {
  epoch: number, samples_accumulated: number, target_batch_size: number, seq: String,
  samples_per_second: short, loss, run_state: (value) => wording.words[value] || value,
  state: (value) => wording.words[value] || value, reason: (value) => evidence(value),
};

/** @param {string} hook @param {string} text */
function textSet(hook, text) {
  for (const element of main.querySelectorAll(hook)) {
    if (element.textContent !== text) element.textContent = text;
  }
}

function fieldsShow() {
  for (const element of main.querySelectorAll("[data-live]")) {
    const name = element.getAttribute("data-live") || "";
    const value = state[name];
    if (element.hasAttribute("data-age")) ageSet(element, value);
    else {
      const text = (FORMATS[name] || String)(value ?? null);
      if (element.textContent !== text) element.textContent = text;
    }
    if (name === "state") {
      element.setAttribute("data-tone", wording.tones[value] || "idle");
      element.setAttribute("data-pulse", String(value === "training" || value === "averaging"));
    }
  }
  textSet("[data-reach]", reachText());
  textSet("[data-trend]", trendText());
  textSet("[data-health]", state.as_of ? "coordinator reports" : "no coordinator has reported yet");
}

function reachText() {
  const seen = Object.values(state.peers).filter((peer) => peer.role !== "coordinator" && peer.state !== "left");
  const direct = seen.filter((peer) => peer.reach === "direct").length;
  if (!seen.length) return "nobody trains yet";
  return `${direct} of ${seen.length} direct`;
}

function trendText() {
  if (state.loss == null) return "after the first epoch";
  if (!state.first_loss) return "of the last epoch";
  const change = state.loss / state.first_loss - 1;
  const arrow = change < 0 ? "↓" : change > 0 ? "↑" : "→";
  return `${arrow} ${percent(Math.abs(change))} overall`;
}

/** Numbers that move by themselves between two messages. */
function moving() {
  const elapsed = (performance.now() - cameAt) / 1000;
  const isStale = ageThen + elapsed > STALE_SECONDS;
  for (const element of main.querySelectorAll("[data-fresh]")) element.classList.toggle("is-stale", isStale);
  const room = isStale ? 0 : STALE_SECONDS;
  textSet("[data-counter]", number(samplesNow(state, isStill ? 0 : elapsed, room)));
  const rest = isStale ? null : nextSeconds(state, elapsed);
  const text = rest === null ? (state.state === "averaging" && !isStale ? "averaging now" : "") : `averaging in ${seconds(rest)}`;
  textSet("[data-next]", text);
}

/** @param {{text: string, at: string}} event */
function eventShow(event) {
  const list = main.querySelector("[data-events]");
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
  while (list.children.length > MAX_EVENTS) list.lastElementChild?.remove();
  main.querySelector("[data-events-empty]")?.setAttribute("hidden", "");
}

let isDrawn = false;
function drawSoon() {
  if (isDrawn) return;
  isDrawn = true;
  requestAnimationFrame(() => {
    isDrawn = false;
    fieldsShow();
    combShow(main, state);
    peers.show(state);
    moving();
    tickAges(main);
  });
}

const banner = /** @type {HTMLElement} */ (main.querySelector("[data-live-banner]"));
/** @type {ReturnType<typeof setTimeout> | undefined} */
let bannerTimer;
const CONNECTION = {
  live: "live", polling: "asked for every 5 s (no websocket)", lost: "reconnecting",
  paused: "paused while this tab is hidden", ended: "not shown to you any more",
};

/** @type {string} */
let connection = "";
/** @param {keyof typeof CONNECTION} how */
function connectionShow(how) {
  if (how === connection) return;
  connection = how;
  textSet("[data-connection]", CONNECTION[how]);
  clearTimeout(bannerTimer);
  if (how === "live" || how === "paused" || how === "polling") banner.hidden = true;
  else if (how === "ended") bannerShow("You may not watch this run any more.");
  else bannerTimer = setTimeout(() => bannerShow("Reconnecting: these numbers are getting old"), BANNER_MS);
}

/** @param {string} text */
function bannerShow(text) {
  banner.textContent = text;
  banner.hidden = false;
}

const scheme = location.protocol === "https:" ? "wss:" : "ws:";
const feed = new Feed(first, {
  socketUrl: `${scheme}//${location.host}${main.dataset.socket}`,
  stateUrl: main.dataset.state || "",
  onState(next, event) {
    if (next.as_of !== state.as_of || next.samples_accumulated !== state.samples_accumulated) {
      cameAt = performance.now();
      ageThen = next.as_of ? Math.max(0, (Date.now() - Date.parse(next.as_of)) / 1000) : Infinity;
    }
    state = next;
    if (event) eventShow(event);
    drawSoon();
    document.dispatchEvent(new CustomEvent("livestate", { detail: next }));
  },
  onConnection: connectionShow,
});

// A hidden tab stops; coming back asks for what was missed.
document.addEventListener("visibilitychange", () => (document.hidden ? feed.stop() : feed.start()));
addEventListener("pagehide", () => feed.stop());
addEventListener("pageshow", (event) => event.persisted && feed.start());
fieldsShow();
peers.show(state);
setInterval(() => document.hidden || moving(), isStill ? 1000 : 100);
if (!document.hidden) feed.start();
