// The set-up panel: what is played in a new room.

import { post, roomLink, ServerError } from "./api.js";
import { byId, element, setText, show } from "./dom.js";

/** The config of the room that the page opens by itself: a trained learner if there is one. */
export function firstConfig(catalogue) {
  if (catalogue.default) return catalogue.default;
  const agent =
    catalogue.agents.find((each) => each.learner?.startsWith("gpl")) ?? catalogue.agents[0];
  const game = agent?.game ?? catalogue.games[0].name;
  return { game, team_limit: 3, agent: agent?.id ?? "random" };
}

/** Open a room; return its id. */
export async function openRoom(config) {
  return (await post("/api/rooms", config)).room;
}

export class Setup {
  constructor(catalogue) {
    this.catalogue = catalogue;
    this.dialog = byId("setup");
    this.form = byId("setup-form");
    this.schedule = [];
    this.#games();
    this.form.addEventListener("submit", (event) => this.#submit(event));
    this.form.addEventListener("change", (event) => this.#changed(event.target));
    byId("setup-close").addEventListener("click", () => this.dialog.close());
    byId("schedule-add").addEventListener("click", () => this.#addEntry());
    byId("seed-random").addEventListener("click", () => {
      byId("setup-seed").value = String(Math.floor(Math.random() * 100000));
    });
    this.#chooseGame(this.game.name);
    this.#clock();
  }

  get game() {
    const chosen = this.form.elements.game.value;
    return this.catalogue.games.find((game) => game.name === chosen) ?? this.catalogue.games[0];
  }

  /** Open the panel with the config of a room. */
  open(config) {
    show(byId("setup-error"), false);
    if (config) this.#fill(config);
    this.dialog.showModal();
  }

  #fill(config) {
    const { form } = this;
    form.elements.game.value = config.game;
    this.#chooseGame(config.game);
    byId("setup-rules").value = config.rules ?? this.game.rules[0];
    byId("setup-limit").value = config.team_limit;
    byId("setup-openness").value = config.openness ?? "rules";
    byId("setup-agent").value = config.agent;
    this.#modes();
    byId("setup-mode").value = config.mode ?? "greedy";
    byId("setup-seed").value = config.seed ?? 0;
    for (const box of form.querySelectorAll("[name=type]"))
      box.checked = !config.types || config.types.includes(box.value);
    form.elements.clock.value = config.clock?.kind ?? "watch";
    byId("setup-tick").value = config.clock?.tick_ms ?? 250;
    byId("setup-turn").value = (config.clock?.limit_ms ?? 10000) / 1000;
    form.elements.on_leave.value = config.on_leave ?? "type";
    this.schedule = (config.schedule ?? []).map(([step, what, slot]) => ({ step, what, slot }));
    this.initial = config.initial_slots?.length ? [...config.initial_slots] : null;
    this.#scripted();
    this.#clock();
  }

  #games() {
    byId("setup-games").replaceChildren(
      ...this.catalogue.games.map((game, index) =>
        element(
          "label",
          { class: "card-choice" },
          element("input", { type: "radio", name: "game", value: game.name, checked: index === 0 }),
          element("span", { class: "card-title", text: game.title }),
          element("span", { class: "card-text", text: game.summary }),
        ),
      ),
    );
  }

  #changed(target) {
    if (target.name === "game") this.#chooseGame(target.value);
    if (target.id === "setup-agent") this.#modes();
    if (["setup-openness", "setup-limit"].includes(target.id)) this.#scripted();
    if (target.name === "clock") this.#clock();
  }

  #chooseGame() {
    const { game, catalogue } = this;
    options(
      byId("setup-rules"),
      game.rules.map((name) => [name, name]),
    );
    options(
      byId("setup-openness"),
      game.openness.map((name) => [name, OPENNESS[name] ?? name]),
    );
    byId("setup-limit").max = String(game.max_team_limit);
    const trained = catalogue.agents.filter((agent) => agent.game === game.name);
    const own = game.types.filter((type) => (type.side ?? 0) === 0);
    byId("setup-agent").replaceChildren(
      ...(trained.length
        ? [
            group(
              "Trained learners",
              trained.map((agent) => [agent.id, agent.title ?? agent.id]),
            ),
          ]
        : []),
      group(
        "Types",
        own.map((type) => [type.name, `${type.name}: ${type.summary}`]),
      ),
      group("No learner", [["random", "random: any action"]]),
    );
    byId("setup-types").replaceChildren(...game.types.map((type) => this.#type(type)));
    this.schedule = [];
    this.initial = null;
    this.#modes();
    this.#scripted();
  }

  #type(type) {
    const box = element("input", {
      type: "checkbox",
      name: "type",
      value: type.name,
      checked: true,
    });
    const side = this.game.sides?.[type.side];
    return element(
      "label",
      { class: "type-choice", title: type.summary },
      box,
      element("span", { text: type.name }),
      element("span", { class: "sr", text: `${type.summary}${side ? ` (${side})` : ""}` }),
    );
  }

  #modes() {
    const agent = this.catalogue.agents.find((each) => each.id === byId("setup-agent").value);
    options(
      byId("setup-mode"),
      (agent?.modes ?? ["greedy"]).map((mode) => [mode, mode]),
    );
    show(byId("mode-field"), (agent?.modes ?? []).length > 1);
    const scores = Object.entries(agent?.score ?? {});
    const text = scores
      .map(([limit, score]) => `${Number(score).toFixed(2)} at team limit ${limit}`)
      .join(", ");
    setText(byId("agent-note"), text ? `Mean return ${text}.` : "");
  }

  #clock() {
    const kind = this.form.elements.clock.value;
    show(byId("tick-field"), kind === "real_time");
    show(byId("turn-field"), kind === "turns");
  }

  /** The schedule editor: who is there at the start, and who leaves or enters when. */
  #scripted() {
    const scripted = byId("setup-openness").value === "scripted";
    show(byId("schedule"), scripted);
    if (!scripted) return;
    const slots = Array.from(
      { length: Math.max(0, Number(byId("setup-limit").value) - 1) },
      (_, index) => index + 1,
    );
    byId("initial-slots").replaceChildren(
      ...slots.map((slot) =>
        element(
          "label",
          { class: "type-choice" },
          element("input", {
            type: "checkbox",
            name: "initial",
            value: slot,
            checked: this.initial?.includes(slot) ?? true,
          }),
          element("span", { text: `slot ${slot}` }),
        ),
      ),
    );
    byId("schedule-rows").replaceChildren(
      ...this.schedule.map((entry) => this.#entry(entry, slots)),
    );
    show(byId("schedule-empty"), this.schedule.length === 0);
  }

  #entry(entry, slots) {
    const step = element("input", {
      type: "number",
      min: 1,
      max: 1000,
      value: entry.step,
      "aria-label": "Step",
    });
    const what = element(
      "select",
      { "aria-label": "What happens" },
      element("option", { value: "leaves", text: "leaves" }),
      element("option", { value: "enters", text: "enters" }),
    );
    const slot = element(
      "select",
      { "aria-label": "Slot" },
      ...slots.map((each) => element("option", { value: each, text: `slot ${each}` })),
    );
    what.value = entry.what;
    slot.value = String(entry.slot);
    step.addEventListener("input", () => (entry.step = Number(step.value)));
    what.addEventListener("input", () => (entry.what = what.value));
    slot.addEventListener("input", () => (entry.slot = Number(slot.value)));
    const remove = element("button", {
      type: "button",
      class: "button small quiet",
      text: "Remove",
      on: { click: () => this.#removeEntry(entry) },
    });
    return element(
      "li",
      { class: "schedule-row" },
      element("span", { text: "After step" }),
      step,
      slot,
      what,
      remove,
    );
  }

  #addEntry() {
    const last = this.schedule.at(-1);
    const what = last?.what === "leaves" ? "enters" : "leaves";
    this.schedule.push({ step: (last?.step ?? 5) + 5, what, slot: last?.slot ?? 1 });
    this.#keepInitial();
    this.#scripted();
  }

  #removeEntry(entry) {
    this.schedule = this.schedule.filter((each) => each !== entry);
    this.#keepInitial();
    this.#scripted();
    byId("schedule-add").focus();
  }

  #keepInitial() {
    this.initial = this.#checked("initial").map(Number);
  }

  #checked(name) {
    return [...this.form.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value);
  }

  /** What the form says, as the config of a room. */
  config() {
    const { form, game } = this;
    const types = this.#checked("type");
    const openness = byId("setup-openness").value;
    const scripted = openness === "scripted";
    return {
      game: game.name,
      rules: byId("setup-rules").value,
      team_limit: Number(byId("setup-limit").value),
      types: types.length === game.types.length ? null : types,
      openness,
      ...(scripted
        ? {
            initial_slots: this.#checked("initial").map(Number),
            schedule: this.schedule.map(({ step, what, slot }) => [step, what, slot]),
          }
        : {}),
      agent: byId("setup-agent").value,
      mode: byId("setup-mode").value || "greedy",
      seed: Number(byId("setup-seed").value),
      clock: {
        kind: form.elements.clock.value,
        tick_ms: Number(byId("setup-tick").value),
        limit_ms: Math.round(1000 * Number(byId("setup-turn").value)),
      },
      on_leave: form.elements.on_leave.value,
    };
  }

  async #submit(event) {
    event.preventDefault();
    const error = byId("setup-error");
    show(error, false);
    const button = byId("setup-start");
    button.disabled = true;
    try {
      location.assign(roomLink(await openRoom(this.config())));
    } catch (problem) {
      if (!(problem instanceof ServerError)) throw problem;
      setText(error, problem.message);
      show(error, true);
      error.scrollIntoView({ block: "nearest" });
    } finally {
      button.disabled = false;
    }
  }
}

const OPENNESS = {
  rules: "as in the rules",
  closed: "closed: nobody comes or goes",
  scripted: "scripted: you say who comes and goes",
  churn: "churn: come and go by chance",
  durations: "durations: stay and wait for sampled times",
  shooting: "shooting: agents that are hit wait",
};

function options(select, choices) {
  const before = select.value;
  select.replaceChildren(...choices.map(([value, text]) => element("option", { value, text })));
  if (choices.some(([value]) => value === before)) select.value = before;
}

function group(label, choices) {
  return element(
    "optgroup",
    { label },
    ...choices.map(([value, text]) => element("option", { value, text })),
  );
}
