// Playing an agent: taking a place, keys and buttons, the countdown, and how long an answer takes.

import { byId, element, remember, remembered, setText, show, soon } from "./dom.js";
import { agentName, keyName, placeName, stepsAway, symbol } from "./names.js";
import { chip } from "./team.js";

const PLACES = {
  north: "up",
  up: "up",
  south: "down",
  down: "down",
  west: "left",
  left: "left",
  east: "right",
  right: "right",
  none: "middle",
  nothing: "middle",
  stay: "middle",
};
const KEPT_TIMES = 1000;
const PRESSED_BY_ITSELF = "button, a, summary";
const TYPING = "input:not([type=range]):not([type=checkbox]), select, textarea, dialog";

/** Times of this page's key presses, for tests and the benchmark; milliseconds. */
export const latency = [];

export class Player {
  constructor(room, { announce, study = false }) {
    this.room = room;
    this.announce = announce;
    this.pending = null;
    this.held = null;
    this.drawnAt = performance.now();
    this.buttons = [];
    this.bar = byId("player");
    this.update = soon(() => this.#update());
    for (const name of ["status", "shown", "acted", "connection", "delay"])
      room.on(name, this.update);
    room.on("welcome", () => this.#build());
    room.on("acted", ({ slot, action }) => this.#acted(slot, action));
    this.listening = new AbortController();
    const { signal } = this.listening;
    document.addEventListener("keydown", (event) => this.#keyDown(event), { signal });
    document.addEventListener("keyup", (event) => this.#keyUp(event), { signal });
    window.addEventListener("blur", () => this.#letGo(), { signal });
    byId("release").hidden = study;
    byId("release").addEventListener("click", () => room.send({ type: "release" }), { signal });
    this.counting = setInterval(() => this.#countdown(), 100);
  }

  /** Stop listening to keys: another room follows. */
  end() {
    this.listening.abort();
    clearInterval(this.counting);
    show(this.bar, false);
  }

  /** Whether a key of the keyboard moves the agent of this page. */
  owns(event) {
    return this.room.mySlot !== null && this.#action(event) !== undefined;
  }

  #action({ key }) {
    const keys = this.room.game?.keys ?? {};
    return keys[key] ?? keys[key.toLowerCase()];
  }

  #keyDown(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest?.(TYPING)) return;
    if (!this.owns(event)) return;
    // A focused button is pressed by these keys, as everywhere.
    if (["Enter", " "].includes(event.key) && event.target.closest?.(PRESSED_BY_ITSELF)) return;
    event.preventDefault();
    if (event.repeat) return;
    const action = this.#action(event);
    this.held = { key: event.key, action };
    this.press(action);
  }

  #keyUp(event) {
    if (this.held && event.key === this.held.key) this.#letGo();
  }

  #letGo() {
    this.held = null;
  }

  /** Choose an action for the newest state. */
  press(action) {
    const { room } = this;
    const slot = room.mySlot;
    if (slot === null || !room.last || room.last.done) return;
    if (!room.live) room.goLive();
    const now = performance.now();
    const { step } = room.last;
    const ms = Math.max(0, Math.round((now - this.drawnAt) * 10) / 10);
    if (!room.send({ type: "act", action, step, ms })) return;
    if (!this.pending || this.pending.step !== step) this.pending = { step, pressed: now, action };
    this.#mark(action);
  }

  /** Called when a frame has just been drawn. */
  drawn(frame) {
    const now = performance.now();
    this.drawnAt = now;
    if (this.pending && frame.step > this.pending.step) {
      const times = {
        ...this.pending,
        pace: this.room.pace,
        drawn: now - this.pending.pressed,
        painted: null,
      };
      this.pending = null;
      latency.push(times);
      if (latency.length > KEPT_TIMES) latency.shift();
      requestAnimationFrame(() => {
        times.painted = performance.now() - times.pressed;
      });
    }
    if (this.pending && frame.step < this.pending.step) this.pending = null;
    if (!this.pending) this.#mark(null);
    // In real time a key that is held goes on.
    if (this.held && this.room.pace === "real_time") this.press(this.held.action);
  }

  #mark(action) {
    for (const [index, button] of this.buttons.entries())
      button.classList.toggle("pressed", index === action);
  }

  #acted(slot, action) {
    if (slot === this.room.mySlot) this.#mark(action);
  }

  /** One button an action: a cross for directions, the others beside it. */
  #build() {
    const { room } = this;
    const { actions, keys } = room.game;
    const cross = byId("cross");
    const others = byId("other-actions");
    cross.replaceChildren();
    others.replaceChildren();
    this.buttons = actions.map((action, index) => {
      const hint = keyHint(keys ?? {}, index);
      const place = PLACES[action];
      const button = element(
        "button",
        {
          type: "button",
          class: `action ${place ? `at-${place}` : "wide"}`,
          "aria-label": hint ? `${action} (key ${keyName(hint)})` : action,
          title: action,
          data: { action: index },
        },
        element("span", { class: "symbol", text: symbol(action), "aria-hidden": "true" }),
        place ? null : element("span", { class: "word", text: action }),
        hint && !place ? element("kbd", { text: keyName(hint), "aria-hidden": "true" }) : null,
      );
      button.addEventListener("pointerdown", (event) => this.#buttonDown(event, index));
      for (const name of ["pointerup", "pointercancel", "pointerleave"])
        button.addEventListener(name, () => this.#letGo());
      // A click without a pointer comes from the keyboard or an assistive tool.
      button.addEventListener("click", (event) => event.detail === 0 && this.press(index));
      (place ? cross : others).append(button);
      return button;
    });
    this.update();
  }

  #buttonDown(event, action) {
    event.preventDefault();
    this.held = { key: null, action };
    this.press(action);
  }

  #update() {
    const { room } = this;
    const slot = room.mySlot;
    const plays = slot !== null && room.known;
    show(this.bar, plays);
    document.body.classList.toggle("plays", plays);
    if (slot !== this.shownSlot) this.#changed(slot);
    if (!plays) return;
    const waiting = Boolean(room.me.waiting);
    setText(byId("player-state"), this.#state(waiting));
    for (const button of this.buttons) button.disabled = waiting;
    const { delay } = room.connection;
    setText(byId("latency"), delay === null ? "" : `${Math.max(1, Math.round(delay))} ms`);
    this.#countdown();
  }

  #state(waiting) {
    const { room } = this;
    if (room.last?.done) return "The episode is over.";
    if (waiting) {
      const steps = stepsAway(room, room.mySlot, room.last);
      const back = steps === null ? "" : `, for ${steps} more ${steps === 1 ? "step" : "steps"}`;
      return `You are out of the team for now${back}. You come back as a newcomer.`;
    }
    if (room.pace === "real_time")
      return `A step every ${room.clock.tick_ms} ms: hold a key to go on.`;
    if (!room.playing && room.waitingFor.includes(room.mySlot))
      return "Paused: your move goes on with the game.";
    if (room.waitingFor.includes(room.mySlot) && this.pending === null) return "Your move.";
    const others = room.waitingFor.filter((slot) => slot !== room.mySlot);
    if (others.length)
      return `Waiting for ${others.map((slot) => agentName(room, slot)).join(" and ")}.`;
    return "…";
  }

  #changed(slot) {
    const { room } = this;
    const before = this.shownSlot;
    this.shownSlot = slot;
    if (slot === null) {
      if (before !== null && before !== undefined)
        this.announce(`You no longer play ${placeName(room, before)}.`);
      return;
    }
    byId("player-chip").replaceChildren(chip(room, slot));
    setText(byId("player-name"), `You are ${placeName(room, slot)}`);
    this.announce(`You play ${placeName(room, slot)}. The learner is told nothing.`);
    byId("board").focus({ preventScroll: true });
  }

  #countdown() {
    const { room } = this;
    if (room.mySlot === null) return;
    const left =
      room.deadline === null || room.deadline === undefined
        ? null
        : room.deadline - performance.now();
    const counts =
      left !== null && room.waitingFor.includes(room.mySlot) && room.clock?.limit_ms > 0;
    show(byId("countdown"), counts);
    if (!counts) return;
    const seconds = Math.max(0, left / 1000);
    byId("countdown-bar").style.setProperty(
      "--share",
      Math.max(0, Math.min(1, left / room.clock.limit_ms)).toFixed(3),
    );
    setText(byId("countdown-text"), `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`);
  }
}

/** The key to show for an action: rather a letter than a digit, and an arrow before both. */
function keyHint(keys, action) {
  const own = Object.keys(keys).filter((key) => keys[key] === action);
  return own.find((key) => key.startsWith("Arrow")) ?? own.find((key) => !/\d/.test(key)) ?? own[0];
}

/** The dialog in which a visitor takes the place of an agent. */
export class TakeDialog {
  constructor(room, { announce }) {
    this.room = room;
    this.announce = announce;
    this.dialog = byId("take-dialog");
    this.name = byId("take-name");
    this.name.value = remembered("name") ?? "";
    byId("take-cancel").addEventListener("click", () => this.dialog.close());
    byId("take-form").addEventListener("submit", (event) => this.#submit(event));
  }

  open(slot) {
    const { room } = this;
    if (room.replay) {
      this.announce("This is a recording: nobody can join it.");
      return;
    }
    if (!room.live) room.goLive();
    this.slot = slot;
    byId("take-chip").replaceChildren(chip(room, slot));
    setText(byId("take-title"), `Take the place of ${placeName(room, slot)}`);
    setText(
      byId("take-text"),
      slot === 0
        ? "You play in the learner’s place, with teammates that come and go."
        : "You enter as a newcomer. The learner is not told that you are a person: it forgets who was here and gets to know you by what you do.",
    );
    const others = room.people.some((person) => person.slot !== null && person.id !== room.you);
    show(byId("take-clock"), !others);
    const kind = room.clock?.kind === "real_time" ? "real_time" : "turns";
    byId(`take-${kind}`).checked = true;
    this.dialog.showModal();
  }

  #submit(event) {
    event.preventDefault();
    const { room, slot } = this;
    const name = this.name.value.trim();
    remember("name", name);
    this.dialog.close();
    const kind = byId("take-real_time").checked ? "real_time" : "turns";
    const take = () => {
      if (!byId("take-clock").hidden && kind !== room.clock?.kind)
        room.send({ type: "clock", kind });
      room.send({ type: "take", slot });
    };
    if (name === (room.connection.person.name ?? "")) take();
    else this.#rename(name, take);
  }

  /** A name is said in the first message only, so the connection is opened again. */
  #rename(name, then) {
    const { room } = this;
    room.connection.person = name ? { ...room.connection.person, name } : {};
    room.addEventListener("welcome", then, { once: true });
    room.connection.reopen();
  }
}
