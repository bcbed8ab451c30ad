// Keeps a run's state fresh: websocket first, polling when sockets do not work, a trickle when hidden.
import { applied, backoff } from "./state.js";

/** @typedef {import("./state.js").LiveState} LiveState @typedef {import("./state.js").Message} Message */

const FAILURES_BEFORE_POLLING = 4;
const POLL_MS = 5000;
const HIDDEN_POLL_MS = 60000;
const RETRY_SOCKET_AFTER_POLLS = 24;
const SILENCE_MS = 45000;

/**
 * @typedef {{socketUrl: string, stateUrl: string,
 *   onState: (state: LiveState, event: {text: string, at: string, seq: number} | null) => void,
 *   onGap?: (known: number) => void,
 *   onConnection: (how: "live" | "polling" | "lost" | "hidden" | "paused" | "ended") => void,
 *   WebSocket?: any, fetch?: any, setTimeout?: any, clearTimeout?: any, random?: () => number}} Options
 */

export class Feed {
  /** @param {LiveState} state @param {Options} options */
  constructor(state, options) {
    this.state = state;
    this.options = options;
    this.failures = 0;
    this.polls = 0;
    this.isRunning = false;
    this.isSlow = false;
    /** @type {any} */
    this.socket = null;
    /** @type {any} */
    this.timer = null;
    /** @type {any} */
    this.silence = null;
  }

  start() {
    if (this.isRunning && !this.isSlow) return;
    this.#clear();
    this.isRunning = true;
    this.isSlow = false;
    this.#connect();
  }

  /** Nobody looks: no socket, and one cheap question a minute. */
  slow() {
    if (!this.isRunning || this.isSlow) return;
    this.isSlow = true;
    this.#clear();
    this.#drop();
    this.options.onConnection("hidden");
    this.#later(() => this.#trickle(), HIDDEN_POLL_MS);
  }

  async #trickle() {
    await this.#fetchState();
    if (this.isRunning && this.isSlow) this.#later(() => this.#trickle(), HIDDEN_POLL_MS);
  }

  /** @param {"paused" | "ended"} why */
  stop(why = "paused") {
    this.isRunning = false;
    this.#clear();
    this.#drop();
    this.options.onConnection(why);
  }

  #connect() {
    const Socket = this.options.WebSocket || WebSocket;
    // A page that carries a part of the state only asks for a whole one.
    const since = this.state.is_partial ? "" : `?since=${this.state.seq}`;
    const socket = new Socket(`${this.options.socketUrl}${since}`);
    this.socket = socket;
    socket.onopen = () => {
      this.#listen();
      this.options.onConnection("live"); // a page that has everything is sent nothing
    };
    socket.onmessage = (/** @type {{data: string}} */ frame) => {
      if (socket === this.socket) this.#receive(JSON.parse(frame.data));
    };
    socket.onclose = (/** @type {{code: number}} */ event) => {
      if (socket !== this.socket) return;
      this.socket = null;
      // 4403, 4404: no access any more, no such run. Trying again would not help.
      if (event.code === 4403 || event.code === 4404) this.stop("ended");
      else this.#failed(0);
    };
  }

  /** @param {Message & {retry_after?: number, reason?: string}} message */
  #receive(message) {
    this.#listen();
    if (message.type !== "run.bye") {
      this.failures = 0;
      this.options.onConnection("live");
      this.#take(message);
    } else if (message.reason === "access_ended") this.stop("ended");
    else {
      this.#drop();
      this.#failed((message.retry_after || 1) * 1000);
    }
  }

  /** @param {Message} message */
  #take(message) {
    const known = Math.max(this.state.seq, this.state.eventSeq || 0);
    const { state, changed } = applied(this.state, message);
    this.state = state;
    if (changed) this.options.onState(state, message.event ? { ...message.event, seq: message.seq } : null);
    // A whole state has what changed meanwhile, but not the lines about what happened.
    if (message.type === "run.snapshot" && message.seq > known) this.options.onGap?.(known);
  }

  // A socket that says nothing for long may be dead without knowing it.
  #listen() {
    const clear = this.options.clearTimeout || clearTimeout.bind(globalThis);
    const later = this.options.setTimeout || setTimeout.bind(globalThis);
    clear(this.silence);
    this.silence = later(() => this.socket && this.#quiet(), SILENCE_MS);
  }

  async #quiet() {
    // Nothing new is legal: ask over HTTP before giving the socket up.
    const seq = this.state.seq;
    if (await this.#fetchState()) {
      if (this.isSlow) return;
      if (this.state.seq > seq && this.socket) {
        this.#drop();
        this.#connect();
      } else this.#listen();
    } else {
      this.#drop();
      this.#failed(0);
    }
  }

  /** @param {number} atLeast milliseconds */
  #failed(atLeast) {
    if (!this.isRunning || this.isSlow) return;
    this.failures += 1;
    this.options.onConnection("lost");
    const random = (this.options.random || Math.random)();
    const wait = Math.max(atLeast * (1 + random), backoff(this.failures, random));
    if (this.failures >= FAILURES_BEFORE_POLLING) this.#later(() => this.#poll(), Math.min(wait, POLL_MS));
    else this.#later(() => this.#connect(), wait);
  }

  async #poll() {
    const ok = await this.#fetchState();
    if (!this.isRunning || this.isSlow) return;
    this.options.onConnection(ok ? "polling" : "lost");
    this.polls += 1;
    if (this.polls % RETRY_SOCKET_AFTER_POLLS === 0) {
      this.failures = FAILURES_BEFORE_POLLING - 1;
      this.#connect();
    } else this.#later(() => this.#poll(), ok ? POLL_MS : POLL_MS * 2);
  }

  async #fetchState() {
    try {
      const answer = await (this.options.fetch || fetch.bind(globalThis))(this.options.stateUrl, { cache: "no-cache" });
      if (!answer.ok) return false;
      const state = await answer.json();
      if (state.seq >= this.state.seq) this.#take({ type: "run.snapshot", seq: state.seq, state });
      return true;
    } catch {
      return false;
    }
  }

  /** @param {() => void} act @param {number} wait */
  #later(act, wait) {
    this.#clear();
    this.timer = (this.options.setTimeout || setTimeout.bind(globalThis))(() => this.isRunning && act(), wait);
  }

  #clear() {
    const clear = this.options.clearTimeout || clearTimeout.bind(globalThis);
    clear(this.timer);
    clear(this.silence);
  }

  #drop() {
    const socket = this.socket;
    this.socket = null;
    if (socket) socket.close();
  }
}
