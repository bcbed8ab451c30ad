// The page of a run, kept alive: fills what is marked data-live from the feed's state.
import { ageSet, siteNow, tickAges } from "./ages.js";
import { combShow } from "./comb.js";
import { reachText, stateNow } from "./evidence.js";
import { eventShow } from "./eventlist.js";
import { Feed } from "./feed.js";
import { evidence, loss, number, percent, seconds, short } from "./format.js";
import { etaText, goalSamples, goalShare } from "./pace.js";
import { Peers } from "./peers.js";
import { counterFloor, nextSeconds, samplesNow } from "./state.js";

const STALE_SECONDS = 20; // as in evidence.js: then nobody knows what the swarm does
const BANNER_MS = 3000;

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
/** @param {string} id */
const data = (id) => JSON.parse(document.getElementById(id)?.textContent || "null");
const wording = data("wording");
const first = data("live-state");
const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
const peers = new Peers(/** @type {HTMLElement} */ (document.getElementById("peers")), wording);

/** What the site says, and what follows from it by now. */
let told = first;
let state = first;
let counted = 0;
let floor = 0; // of what is counted

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
  textSet("[data-trend]", trendText());
  textSet("[data-health]", healthText());
  if (!state.is_partial) textSet("[data-reach]", reachText(state));
}

function healthText() {
  if (!state.heard_at) return "no coordinator has reported yet";
  return silence() > STALE_SECONDS ? "the coordinator is silent" : "coordinator reports";
}

/** Seconds since the coordinator was heard. */
function silence() {
  return state.heard_at ? (siteNow() - Date.parse(state.heard_at)) / 1000 : Infinity;
}

function trendText() {
  if (state.loss == null) return "after the first epoch";
  if (!state.first_loss) return "of the last epoch";
  const change = state.loss / state.first_loss - 1;
  const arrow = change < 0 ? "↓" : change > 0 ? "↑" : "→";
  return `${arrow} ${percent(Math.abs(change))} overall`;
}

function goalText() {
  const goal = goalSamples(state);
  if (goal === null) return "no fixed end: its organiser decides";
  return [`of about ${short(goal)}`, percent(goalShare(state)), etaText(state)].filter(Boolean).join(" · ");
}

/** Evidence gets old without a message: the words follow. @returns {boolean} whether they changed */
function wordsFollow() {
  const said = stateNow(told, siteNow());
  const changed = said.state !== state.state || said.reason !== state.reason;
  state = { ...told, ...said };
  return changed;
}

/** Numbers that move by themselves between two messages. */
function moving() {
  if (!first.is_partial || told !== first) {
    if (wordsFollow()) fieldsShow();
  }
  const age = Math.max(0, silence());
  const isStale = age > STALE_SECONDS;
  for (const element of main.querySelectorAll("[data-fresh]")) element.classList.toggle("is-stale", isStale);
  const elapsed = state.as_of ? Math.max(0, (siteNow() - Date.parse(state.as_of)) / 1000) : 0;
  counted = Math.max(floor, samplesNow(state, isStill || isStale ? 0 : elapsed, STALE_SECONDS));
  textSet("[data-counter]", number(counted));
  textSet("[data-goal]", goalText());
  const rest = isStale ? null : nextSeconds(state, elapsed);
  const text = rest === null ? (state.state === "averaging" && !isStale ? "averaging now" : "") : `averaging in ${seconds(rest)}`;
  textSet("[data-next]", text);
}

let isDrawn = false;
function drawSoon() {
  if (isDrawn) return;
  isDrawn = true;
  const draw = () => {
    isDrawn = false;
    wordsFollow();
    fieldsShow();
    combShow(main, state);
    peers.show(state);
    moving();
    tickAges(main);
  };
  if (document.hidden) draw(); // a hidden page has no animation frames
  else requestAnimationFrame(draw);
}

const banner = /** @type {HTMLElement} */ (main.querySelector("[data-live-banner]"));
/** @type {ReturnType<typeof setTimeout> | undefined} */
let bannerTimer;
const CONNECTION = {
  live: "live", polling: "asked for every 5 s (no websocket)", lost: "reconnecting",
  hidden: "once a minute while this tab is hidden", paused: "paused", ended: "not shown to you any more",
};

/** @type {string} */
let connection = "";
/** @param {keyof typeof CONNECTION} how */
function connectionShow(how) {
  if (how === connection) return;
  connection = how;
  main.dataset.connection = how;
  textSet("[data-connection]", CONNECTION[how]);
  clearTimeout(bannerTimer);
  if (how === "ended") bannerShow("You may not watch this run any more.");
  else if (how === "lost") bannerTimer = setTimeout(() => bannerShow("Reconnecting: these numbers are getting old"), BANNER_MS);
  else banner.hidden = true;
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
    floor = counterFloor(floor, counted, told, next);
    told = next;
    wordsFollow();
    if (event) eventShow(main, event);
    drawSoon();
    document.dispatchEvent(new CustomEvent("livestate", { detail: state }));
  },
  onGap: (known) => document.dispatchEvent(new CustomEvent("eventsmissed", { detail: known })),
  onConnection: connectionShow,
});

document.addEventListener("partschange", drawSoon);
document.addEventListener("visibilitychange", () => (document.hidden ? feed.slow() : feed.start()));
addEventListener("pagehide", () => feed.stop());
addEventListener("pageshow", (event) => event.persisted && feed.start());
main.querySelector("[data-shares]")?.addEventListener("toggle", () => combShow(main, state));
if (!first.is_partial) {
  wordsFollow();
  fieldsShow();
  peers.show(state);
}
setInterval(() => document.hidden || moving(), isStill ? 1000 : 100);
feed.start();
if (document.hidden) feed.slow();
