// The team: one entry an agent, to select it, to see who plays it and to take its place.

import { byId, element, setText, soon } from "./dom.js";
import { agentName, colourOf, label, personIn, placeName, sideOf, stepsAway } from "./names.js";

/** A small picture of an agent, the same as on the board: its shape, colour and label. */
export function chip(room, slot) {
  const kind = slot === 0 ? "learner" : sideOf(room, slot) === 1 ? "opponent" : "mate";
  const node = element(
    "span",
    { class: `chip chip-${kind}`, "aria-hidden": "true" },
    element("span", { text: label(slot) }),
  );
  node.style.setProperty("--fill", `var(${colourOf(room, slot)})`);
  return node;
}

export class Team {
  constructor(room, { onTake }) {
    this.room = room;
    this.onTake = onTake;
    this.list = byId("team");
    this.rows = new Map();
    const update = soon(() => this.update());
    for (const name of ["shown", "status", "choice", "welcome", "frames"]) room.on(name, update);
    byId("types-team").addEventListener("change", (event) => room.showTypes(event.target.checked));
  }

  update() {
    const { room } = this;
    const { frame } = room;
    if (!frame) return;
    byId("types-team").checked = room.typesShown;
    const slots = frame.agents.map((agent) => agent.slot);
    if (slots.join() !== [...this.rows.keys()].join()) this.#build(slots);
    for (const agent of frame.agents) this.#fill(agent, frame);
  }

  #build(slots) {
    this.rows.clear();
    this.list.replaceChildren();
    for (const slot of slots) {
      const select = element("button", {
        type: "button",
        class: "agent-select",
        on: { click: () => this.#select(slot) },
      });
      const name = element("span", { class: "agent-name" });
      const state = element("span", { class: "agent-state" });
      const words = element("span", { class: "agent-words" }, name, state);
      const holder = element("span", { class: "chip-holder" });
      select.append(holder, words);
      const take = element("button", {
        type: "button",
        class: "button small",
        text: "Play",
        data: { take: slot },
        on: { click: (event) => this.onTake(slot, event.currentTarget) },
      });
      const row = element("li", { class: "agent", data: { slot } }, select, take);
      this.rows.set(slot, { row, select, holder, name, state, take, fill: "" });
      this.list.append(row);
    }
  }

  #select(slot) {
    this.room.select(this.room.selected === slot ? null : slot);
  }

  #fill(agent, frame) {
    const { room } = this;
    const { slot } = agent;
    const parts = this.rows.get(slot);
    const fill = colourOf(room, slot);
    if (parts.fill !== fill) {
      parts.holder.replaceChildren(chip(room, slot));
      parts.fill = fill;
    }
    const person = personIn(room, slot);
    setText(
      parts.name,
      person ? `${agentName(room, slot)} (${placeName(room, slot)})` : placeName(room, slot),
    );
    setText(parts.state, this.#state(agent, frame, person));
    parts.row.classList.toggle("absent", !agent.present);
    parts.row.classList.toggle("new", Boolean(frame.entered?.includes(slot)));
    parts.select.setAttribute("aria-pressed", String(room.selected === slot));
    const mine = room.mySlot === slot;
    parts.take.hidden = person !== null;
    parts.take.disabled = !agent.present || mine;
    parts.take.setAttribute("aria-label", `Take the place of ${placeName(room, slot)}`);
  }

  #state(agent, frame, person) {
    const { room } = this;
    const words = [];
    if (!agent.present) {
      const waiting = stepsAway(room, agent.slot, frame);
      words.push(waiting ? `back in ${waiting}` : "away");
    } else if (frame.entered?.includes(agent.slot)) words.push("new");
    if (person) words.push("a person");
    else if (agent.slot === 0) words.push(room.config?.agent ?? "");
    else if (room.typesShown && agent.present) words.push(`type ${agent.type}`);
    else if (!words.length) words.push("type hidden");
    return words.filter(Boolean).join(", ");
  }
}
