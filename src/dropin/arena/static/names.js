// What agents and actions are called, the same in every part of the page.

/** The label of an agent on the board: L for the learner, otherwise its slot. */
export function label(slot) {
  return slot === 0 ? "L" : String(slot);
}

/** The person who plays in a slot in the state on the board, or null; names of the past are lost. */
export function personIn(room, slot) {
  const id = room.frame?.agents.find((agent) => agent.slot === slot)?.person ?? null;
  if (id !== null) return room.people.find((person) => person.id === id) ?? { id, name: "", slot };
  return (room.live && room.people.find((person) => person.slot === slot)) || null;
}

/** What to call the agent in a slot, as `mate 2`; people have their names. */
export function agentName(room, slot) {
  const person = personIn(room, slot);
  if (person) return person.id === room.you ? "you" : person.name || "a person";
  return placeName(room, slot);
}

/** What to call a place, whoever is in it. */
export function placeName(room, slot) {
  if (slot === 0) return "learner";
  const side = sideOf(room, slot);
  return `${room.game?.side_names?.[side] ?? "agent"} ${slot}`;
}

/** In how many steps the absent agent of a slot is back, if the game or the schedule says it. */
export function stepsAway(room, slot, frame) {
  const waiting = frame.scene.agents?.find((each) => each.slot === slot)?.waiting;
  if (waiting) return waiting;
  const entries = (room.config?.schedule ?? []).filter(
    ([step, what, who]) => who === slot && what === "enters" && step > frame.step,
  );
  return entries.length ? Math.min(...entries.map(([step]) => step)) - frame.step : null;
}

/** The side of a slot: 0 is the learner's. */
export function sideOf(room, slot) {
  return room.last?.agents?.find((agent) => agent.slot === slot)?.side ?? 0;
}

/** Whether the game has opponents. */
export function hasOpponents(room) {
  return (room.last?.agents ?? []).some((agent) => agent.side === 1);
}

/** The name of the CSS variable with the colour of an agent. */
export function colourOf(room, slot) {
  if (slot === 0) return "--agent-0";
  if (hasOpponents(room)) return sideOf(room, slot) === 1 ? "--opponent" : "--mate";
  return `--agent-${1 + ((slot - 1) % 7)}`;
}

/** Sentences of a frame, without the types unless they are shown. */
export function sentences(room, frame) {
  const types = new Set(frame.agents.map((agent) => agent.type).filter(Boolean));
  return (frame.text ?? []).map((text) => {
    if (room.typesShown) return text;
    return [...types].reduce((kept, type) => kept.replaceAll(` (${type})`, ""), text);
  });
}

const SYMBOLS = {
  none: "·",
  nothing: "·",
  stay: "·",
  north: "↑",
  up: "↑",
  south: "↓",
  down: "↓",
  west: "←",
  left: "←",
  east: "→",
  right: "→",
  load: "⤒",
  "turn left": "↺",
  "turn right": "↻",
  shoot: "✦",
};

/** A sign for an action, for narrow places; its name if there is none. */
export function symbol(action) {
  return SYMBOLS[action] ?? action;
}

/** Words for a key of the keyboard. */
export function keyName(key) {
  const names = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", " ": "space" };
  return names[key] ?? (key.length === 1 ? key.toUpperCase() : key);
}
