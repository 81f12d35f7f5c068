// The web socket of one room: opened again when it is lost, with a steady measure of its delay.

import { credentials, openSocket } from "./api.js";

const PING_EVERY_MS = 2000;
const FIRST_RETRY_MS = 400;
const LAST_RETRY_MS = 8000;
const KEPT_PINGS = 5;

/** Events: "message" (detail: the message), "state" (detail: "connecting", "open", "lost"), "delay". */
export class Connection extends EventTarget {
  /**
   * @param {string} room
   * @param {object} person `name`, and `session` in a study; either may be missing
   */
  constructor(room, person = {}) {
    super();
    this.room = room;
    this.person = person;
    this.delays = [];
    this.retry = FIRST_RETRY_MS;
    this.ended = false;
    this.#open();
  }

  /** The median round trip of the last pings in milliseconds, or null. */
  get delay() {
    if (!this.delays.length) return null;
    return [...this.delays].sort((a, b) => a - b)[this.delays.length >> 1];
  }

  get isOpen() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Send a message; false if there is no connection. */
  send(message) {
    if (!this.isOpen) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  /** Close for good. */
  end() {
    this.ended = true;
    clearTimeout(this.timer);
    clearInterval(this.pinging);
    this.socket?.close();
  }

  /** Drop the connection and open it again, as after a failure of the network. */
  reopen() {
    this.retry = FIRST_RETRY_MS;
    this.socket?.close();
  }

  #open() {
    this.#say("connecting");
    const socket = openSocket(this.room);
    this.socket = socket;
    socket.addEventListener("open", () => {
      this.send({ type: "hello", ...this.person, ...credentials() });
      this.#say("open");
      this.pinging = setInterval(() => this.#ping(), PING_EVERY_MS);
      this.#ping();
    });
    socket.addEventListener("message", (event) => this.#receive(event));
    socket.addEventListener("close", (event) => this.#closed(event));
  }

  #receive(event) {
    const message = JSON.parse(event.data);
    if (message.type === "pong") {
      this.delays = [...this.delays, performance.now() - message.t].slice(-KEPT_PINGS);
      this.dispatchEvent(new CustomEvent("delay", { detail: this.delay }));
      return;
    }
    if (message.type === "welcome") this.retry = FIRST_RETRY_MS;
    this.dispatchEvent(new CustomEvent("message", { detail: message }));
  }

  #closed(event) {
    clearInterval(this.pinging);
    if (this.ended) return;
    this.#say("lost", event.reason);
    this.timer = setTimeout(() => this.#open(), this.retry);
    this.retry = Math.min(2 * this.retry, LAST_RETRY_MS);
  }

  #ping() {
    this.send({ type: "ping", t: Math.round(performance.now() * 100) / 100 });
  }

  #say(state, reason = "") {
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state, reason } }));
  }
}
