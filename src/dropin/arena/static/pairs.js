// The pairwise utilities of two agents (Eq. 7), and the weights of all pairs as edges on the board.

import { byId, element, format, formatAlike, setText } from "./dom.js";
import { Matrix } from "./matrix.js";
import { excuse, missing } from "./mind.js";
import { agentName, label, placeName, symbol } from "./names.js";

export class Pairs {
  constructor(room, board) {
    this.room = room;
    this.board = board;
    this.panel = byId("panel-pairs");
    this.matrix = new Matrix(byId("pair-table"), "Pairwise utilities of the two agents");
    this.tables = new Map();
    this.asked = new Set();
    this.first = byId("pair-a");
    this.second = byId("pair-b");
    this.edges = byId("show-edges");
    for (const select of [this.first, this.second])
      select.addEventListener("change", () => this.update());
    this.edges.addEventListener("change", () => {
      board.showEdges = this.edges.checked;
      board.draw();
    });
    room.on("pair", (message) => this.#receive(message));
    room.on("episode", () => this.#forget());
    room.on("welcome", () => this.#forget());
    room.on("frames", () => this.#forgetLater());
  }

  #forget() {
    this.tables.clear();
    this.asked.clear();
    this.known = 0;
  }

  /** After a rewind the steps that follow are other ones. */
  #forgetLater() {
    const { length } = this.room.frames;
    if (length < (this.known ?? 0)) this.#forget();
    this.known = length;
  }

  #receive({ step, a, b, table }) {
    this.tables.set(`${step} ${a} ${b}`, table);
    if (!this.panel.hidden) this.update();
  }

  /** The chosen pair is marked on the board only beside its table. */
  leave() {
    this.board.pair = null;
    this.board.draw();
  }

  update() {
    const { room, panel, board } = this;
    const away = excuse(panel, missing(room, "edges", "has no pairwise utilities."));
    if (away) {
      board.pair = null;
      return;
    }
    const present = room.frame.agents.filter((agent) => agent.present).map((agent) => agent.slot);
    if (present.length < 2) {
      excuse(panel, "A pair needs two agents.");
      return;
    }
    this.#choices(present);
    const [a, b] = [Number(this.first.value), Number(this.second.value)];
    board.pair = a === b ? null : [a, b];
    board.draw();
    this.#edgeList();
    const note = byId("pair-note");
    if (a === b) {
      this.matrix.clear();
      setText(note, "Choose two different agents.");
      return;
    }
    this.#table(a, b, note);
  }

  #table(a, b, note) {
    const { room } = this;
    const { step } = room.frame;
    const key = `${step} ${a} ${b}`;
    const table = this.tables.get(key);
    if (table === undefined) {
      if (!this.asked.has(key)) room.send({ type: "pair", step, a, b });
      this.asked.add(key);
      setText(note, "…");
      return;
    }
    const { actions } = room.game;
    const largest = Math.max(...table.flat().map(Math.abs), 1e-9);
    setText(
      note,
      `Rows: actions of ${agentName(room, a)}. Columns: actions of ${agentName(room, b)}.`,
    );
    const texts = formatAlike(table.flat(), 3);
    const done = room.done;
    this.matrix.show({
      corner: `${label(a)} \\ ${label(b)}`,
      columns: actions.map((action) => ({ text: symbol(action), title: action })),
      rows: table.map((row, mine) => ({
        key: `${a} ${b} ${mine}`,
        head: element(
          "span",
          { class: "pair-head" },
          `${symbol(actions[mine])} `,
          element("span", { class: "word", text: actions[mine] }),
        ),
        cells: row.map((value, theirs) => ({
          value,
          text: texts[mine * row.length + theirs],
          share: value / largest,
          mark: done && done[a] === mine && done[b] === theirs ? "did" : null,
          title: `${actions[mine]} and ${actions[theirs]}: ${format(value, 4)}`,
        })),
      })),
    });
  }

  #choices(present) {
    const { room } = this;
    const names = present.map((slot) => `${slot}:${placeName(room, slot)}`).join();
    if (names === this.names) return;
    this.names = names;
    for (const [select, fallback] of [
      [this.first, present[0]],
      [this.second, present[1]],
    ]) {
      const before = Number(select.value);
      select.replaceChildren(
        ...present.map((slot) => element("option", { value: slot, text: placeName(room, slot) })),
      );
      select.value = String(select.dataset.chosen && present.includes(before) ? before : fallback);
      select.dataset.chosen = "yes";
    }
  }

  #edgeList() {
    const { room } = this;
    const edges = [...room.frame.mind.edges].sort((one, other) => other[2] - one[2]);
    const largest = Math.max(...edges.map((each) => each[2]), 1e-9);
    byId("edge-list").replaceChildren(
      ...edges.map(([a, b, weight]) => {
        const bar = element("span", { class: "bar", "aria-hidden": "true" });
        bar.style.setProperty("--share", (weight / largest).toFixed(3));
        const choose = () => {
          this.first.value = String(a);
          this.second.value = String(b);
          this.update();
        };
        const name = `${label(a)} – ${label(b)}`;
        const chosen = [a, b].every((slot) => this.board.pair?.includes(slot));
        return element(
          "li",
          {},
          element(
            "button",
            {
              type: "button",
              class: "edge",
              "aria-pressed": String(chosen),
              on: { click: choose },
              data: { a, b },
            },
            element("span", { class: "edge-name", text: name }),
            element("span", { class: "track" }, bar),
            element("span", { class: "number", text: format(weight), data: { value: weight } }),
          ),
        );
      }),
    );
  }
}
