// What the learner computes from the state on the board: values, predictions, utilities.

import { byId, element, format, formatAlike, setText, show, soon } from "./dom.js";
import { Matrix } from "./matrix.js";
import { agentName, placeName, symbol } from "./names.js";
import { chip } from "./team.js";

/** The head of a row: the picture of an agent and its name. */
export function agentHead(room, slot) {
  return element(
    "span",
    { class: "agent-head" },
    chip(room, slot),
    element("span", { text: slot === 0 ? "learner" : agentName(room, slot) }),
  );
}

/** Columns of a table, one an action. */
export function actionColumns(room) {
  return room.game.actions.map((action) => ({ text: symbol(action), title: action }));
}

/** Show a sentence in place of a panel's content, or the content. */
export function excuse(panel, sentence) {
  const note = panel.querySelector(".excuse");
  show(note, sentence !== null);
  if (sentence !== null) setText(note, sentence);
  for (const part of panel.querySelectorAll(".content")) show(part, sentence === null);
  return sentence !== null;
}

/** Why a part of the mind is missing, as one sentence. */
export function missing(room, part, what) {
  const { frame } = room;
  if (!frame) return "Nothing has been played yet.";
  if (room.people.some((person) => person.slot === 0)) {
    return "A person plays the learner’s place, and we cannot look into a person’s mind.";
  }
  if (frame.mind?.[part]) return null;
  if (frame.done) return "The episode is over: the learner does not act on this state.";
  return `${room.config.agent} ${what}`;
}

/** The learner's action values (Eq. 9) and its choice. */
export class Values {
  constructor(room) {
    this.room = room;
    this.panel = byId("panel-values");
    this.list = byId("values");
    this.rows = [];
  }

  update() {
    const { room, panel } = this;
    if (excuse(panel, missing(room, "q", "has no action values."))) return;
    const { q, chosen } = room.frame.mind;
    if (this.rows.length !== q.length) this.#build();
    const low = Math.min(...q);
    const range = Math.max(...q) - low || 1;
    const done = room.done?.[0] ?? null;
    const texts = formatAlike(q, 4);
    q.forEach((value, action) => {
      const { row, bar, number, note } = this.rows[action];
      bar.style.setProperty("--share", ((value - low) / range).toFixed(3));
      setText(number, texts[action]);
      number.dataset.value = value;
      row.classList.toggle("chosen", action === chosen);
      const words = action === chosen ? "chosen" : action === done ? "forced" : "";
      setText(note, words);
    });
  }

  #build() {
    this.rows = this.room.game.actions.map((action) => {
      const bar = element("span", { class: "bar", "aria-hidden": "true" });
      const number = element("span", { class: "number" });
      const note = element("span", { class: "note" });
      const name = element(
        "span",
        { class: "action" },
        element("span", { class: "symbol", "aria-hidden": "true", text: symbol(action) }),
        action,
      );
      const row = element(
        "li",
        { class: "value", data: { action } },
        name,
        element("span", { class: "track" }, bar),
        number,
        note,
      );
      return { row, bar, number, note };
    });
    this.list.replaceChildren(...this.rows.map((each) => each.row));
  }
}

/** Predicted action probabilities of each teammate beside what it then did. */
export class Predictions {
  constructor(room) {
    this.room = room;
    this.panel = byId("panel-predictions");
    this.matrix = new Matrix(
      byId("predictions"),
      "Predicted action probabilities of each teammate",
    );
  }

  update() {
    const { room, panel } = this;
    if (excuse(panel, missing(room, "probs", "does not predict what its teammates do."))) return;
    const { probs, accuracy } = room.frame.mind;
    const { done } = room;
    const rows = [];
    probs.forEach((row, slot) => {
      if (!row || slot === 0) return;
      const took = done?.[slot] ?? null;
      const hits = accuracy?.[slot];
      rows.push({
        key: `${slot} ${agentName(room, slot)}`,
        head: agentHead(room, slot),
        note: hits && hits[1] ? `${hits[0]} of ${hits[1]}` : "–",
        cells: row.map((value, action) => ({
          value,
          text: percent(value),
          share: value,
          mark: action === took ? "did" : null,
          title: `${agentName(room, slot)}: ${room.game.actions[action]}, predicted ${format(value)}${action === took ? ", and did it" : ""}`,
        })),
      });
    });
    if (!rows.length) {
      excuse(panel, "The learner has no teammate at the moment.");
      return;
    }
    this.matrix.show({ columns: actionColumns(room), rows, corner: "agent", noteHead: "right" });
    setText(byId("predictions-note"), this.#note());
  }

  #note() {
    const { done, frame } = this.room;
    if (done) return "A frame marks what each agent then did.";
    return frame.done
      ? "The episode is over: nobody acts any more."
      : "What they do is not known yet.";
  }
}

/** A number from 0 to 100. */
function percent(value) {
  const share = Math.round(100 * value);
  return value > 0 && share === 0 ? "<1" : String(share);
}

/** Individual utilities (Eq. 6). */
export class Utilities {
  constructor(room) {
    this.room = room;
    this.panel = byId("panel-utilities");
    this.matrix = new Matrix(byId("utilities"), "Individual utilities of each agent and action");
  }

  update() {
    const { room, panel } = this;
    if (excuse(panel, missing(room, "individual", "has no individual utilities."))) return;
    const { individual } = room.frame.mind;
    const largest = Math.max(...individual.flatMap((row) => (row ? row.map(Math.abs) : [])), 1e-9);
    const rows = [];
    individual.forEach((row, slot) => {
      if (!row) return;
      const texts = formatAlike([...row, largest], 2);
      rows.push({
        key: `${slot} ${agentName(room, slot)}`,
        head: agentHead(room, slot),
        cells: row.map((value, action) => ({
          value,
          text: texts[action],
          share: value / largest,
          title: `${placeName(room, slot)}, ${room.game.actions[action]}: ${format(value, 4)}`,
        })),
      });
    });
    this.matrix.show({ columns: actionColumns(room), rows, corner: "agent" });
  }
}

/** The story of the episode: what happened in each step up to the one on the board. */
export class Story {
  constructor(room, describe) {
    this.room = room;
    this.describe = describe;
    this.list = byId("story");
  }

  update() {
    const { room } = this;
    const lines = [];
    for (const frame of room.frames.slice(0, room.cursor + 1)) {
      for (const text of this.describe(room, frame)) lines.push([frame.step, text]);
    }
    const key = JSON.stringify(lines);
    if (key === this.key) return;
    this.key = key;
    this.list.replaceChildren(
      ...lines.reverse().map(([step, text]) =>
        element(
          "li",
          {},
          element("button", {
            type: "button",
            class: "step-link",
            text: `step ${step}`,
            on: { click: () => room.seek(step) },
          }),
          element("span", { text }),
        ),
      ),
    );
    show(byId("story-empty"), lines.length === 0);
  }
}

/** The panels as tabs; only the open one is drawn. */
export class Mind {
  constructor(room, panels) {
    this.room = room;
    this.always = panels.always;
    this.tabs = panels.tabs;
    this.open = null;
    this.buttons = Object.keys(this.tabs).map((name) => byId(`tab-${name}`));
    for (const button of this.buttons) {
      button.addEventListener("click", () => this.choose(button.dataset.panel));
      button.addEventListener("keydown", (event) => this.#key(event));
    }
    this.update = soon(() => this.#update());
    for (const name of ["shown", "frames", "status", "choice", "welcome"])
      room.on(name, this.update);
    this.choose(this.buttons[0].dataset.panel);
  }

  choose(name) {
    if (name !== this.open) this.tabs[this.open]?.leave?.();
    this.open = name;
    for (const button of this.buttons) {
      const chosen = button.dataset.panel === name;
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      byId(`panel-${button.dataset.panel}`).hidden = !chosen;
    }
    this.update();
  }

  #key(event) {
    const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const ends = { Home: 0, End: this.buttons.length - 1 }[event.key];
    if (turn === undefined && ends === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const at = this.buttons.indexOf(event.currentTarget);
    const to = this.buttons[ends ?? (at + turn + this.buttons.length) % this.buttons.length];
    this.choose(to.dataset.panel);
    to.focus();
  }

  #update() {
    if (!this.room.known || !this.room.frame) return;
    for (const panel of this.always) panel.update();
    this.tabs[this.open]?.update();
  }
}
