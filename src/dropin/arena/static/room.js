// What this page knows about one room: its frames, who is there, and which step is shown.

import { Connection } from "./connection.js";
import { unpackFrame } from "./tables.js";

/**
 * Events, each with a detail:
 *   welcome     the room is known anew
 *   shown       {frame, previous, animate}: another state is on the board
 *   frames      the list of frames changed
 *   status      people, play or pause, the clock
 *   episode     a new episode began
 *   pair        a pairwise table arrived
 *   acted       {slot, action, step}: a person has chosen an action
 *   over        the round of a study is over
 *   preparing   the room is not ready yet
 *   fault       one sentence of the server
 *   connection  "connecting", "open" or "lost"
 *   choice      the visitor selected an agent, or shows or hides the true types
 */
export class Room extends EventTarget {
  constructor(id, person = {}) {
    super();
    this.id = id;
    this.frames = [];
    this.people = [];
    this.waitingFor = [];
    this.cursor = 0;
    this.live = true;
    this.playing = false;
    this.speed = 4;
    this.known = false;
    this.typesShown = false;
    this.selected = null;
    this.connection = new Connection(id, person);
    this.connection.addEventListener("message", (event) => this.#receive(event.detail));
    this.connection.addEventListener("state", (event) => this.#emit("connection", event.detail));
    this.connection.addEventListener("delay", (event) => this.#emit("delay", event.detail));
  }

  /** Listen to an event; the listener gets its detail. */
  on(name, listener) {
    this.addEventListener(name, (event) => listener(event.detail));
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  send(message) {
    return this.connection.send(message);
  }

  leave() {
    this.connection.end();
  }

  /** The frame on the board, or undefined before the first one arrived. */
  get frame() {
    return this.frames[this.cursor];
  }

  get previous() {
    return this.frames[this.cursor - 1];
  }

  /** The newest frame. */
  get last() {
    return this.frames.at(-1);
  }

  /** What the agents did in the state on the board; null while it is not known. */
  get done() {
    return this.frames[this.cursor + 1]?.actions ?? null;
  }

  /** The person at this page. */
  get me() {
    return this.people.find((person) => person.id === this.you) ?? null;
  }

  /** The slot of the person at this page, or null. */
  get mySlot() {
    return this.me?.slot ?? null;
  }

  /** How time passes now: "watch", "real_time" or "turns". */
  get pace() {
    if (!this.people.some((person) => person.slot !== null && !person.waiting)) return "watch";
    return this.clock?.kind === "real_time" ? "real_time" : "turns";
  }

  /** Show the state of a step; the newest one again follows the game. */
  seek(step, animate = false) {
    const to = Math.max(0, Math.min(step, this.frames.length - 1));
    const forward = to === this.cursor + 1;
    this.live = to === this.frames.length - 1;
    if (to === this.cursor) return;
    this.cursor = to;
    this.#show(animate && forward);
  }

  goLive() {
    this.seek(this.frames.length - 1);
  }

  select(slot) {
    this.selected = slot;
    this.#emit("choice");
  }

  showTypes(shown) {
    this.typesShown = shown;
    this.#emit("choice");
  }

  #show(animate) {
    if (!this.frame) return;
    this.#emit("shown", { frame: this.frame, previous: this.previous, animate });
  }

  #receive(message) {
    const handler = this[`receive_${message.type}`];
    if (handler) handler.call(this, message);
  }

  receive_welcome(message) {
    const { you, config, game, people, playing, speed, episode, seed } = message;
    const frames = message.frames.map(unpackFrame);
    Object.assign(this, { you, config, game, people, playing, speed, episode, seed, frames });
    this.clock = message.clock ?? config.clock;
    this.replay = Boolean(message.replay);
    this.known = true;
    this.live = true;
    this.cursor = Math.max(0, frames.length - 1);
    this.#emit("welcome");
    this.#emit("status");
    this.#emit("frames");
    this.#show(false);
  }

  receive_frame(message) {
    const frame = unpackFrame(message);
    if (frame.episode !== undefined && frame.episode !== this.episode) {
      this.episode = frame.episode;
      this.frames = [];
    }
    const again = frame.step < this.frames.length;
    this.frames[frame.step] = frame;
    this.#deadline(frame.deadline_ms);
    this.waitingFor = frame.deadline_ms
      ? frame.agents.filter((each) => each.person).map((each) => each.slot)
      : [];
    if (this.live) {
      this.cursor = this.frames.length - 1;
      this.#show(!again);
    } else if (this.cursor === frame.step || this.cursor + 1 === frame.step) this.#show(false);
    this.#emit("frames");
  }

  receive_truncate({ step }) {
    this.frames.length = Math.min(this.frames.length, step + 1);
    this.live = true;
    this.cursor = Math.max(0, this.frames.length - 1);
    this.#emit("frames");
    this.#show(false);
  }

  receive_episode({ episode, seed }) {
    Object.assign(this, { episode, seed, frames: [], cursor: 0, live: true });
    this.#emit("episode");
    this.#emit("frames");
  }

  receive_status(message) {
    this.playing = message.playing ?? this.playing;
    this.speed = message.speed ?? this.speed;
    this.people = message.people ?? this.people;
    this.clock = message.clock ?? this.clock;
    this.waitingFor = message.waiting_for ?? [];
    this.#deadline(message.deadline_ms);
    this.#emit("status");
  }

  receive_acted(message) {
    this.waitingFor = this.waitingFor.filter((slot) => slot !== message.slot);
    this.#emit("acted", message);
  }

  receive_over() {
    this.#emit("over");
  }

  receive_preparing() {
    this.#emit("preparing");
  }

  /** Note until when the room waits for people; on this page's own clock. */
  #deadline(milliseconds) {
    this.deadline =
      milliseconds === null || milliseconds === undefined ? null : performance.now() + milliseconds;
  }

  receive_pair(message) {
    this.#emit("pair", message);
  }

  receive_error({ message }) {
    this.#emit("fault", message);
  }
}
