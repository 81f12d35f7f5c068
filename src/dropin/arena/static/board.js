// The board: a canvas that shows the state at the room's cursor and moves smoothly between steps.

import { GridPainter } from "./grid.js";
import { PlanePainter } from "./plane.js";
import * as marks from "./marks.js";
import { agentName, colourOf, label, personIn, sideOf } from "./names.js";
import { signed } from "./dom.js";
import { colour, onTheme } from "./palette.js";

const PAINTERS = { grid: new GridPainter(), plane: new PlanePainter() };
const LONGEST_MOVE_MS = 320;
const MOVE_IN_TURNS_MS = 140;
const NEW_FOR_STEPS = 3;
const LEAST_HEIGHT = 240;
const still = window.matchMedia("(prefers-reduced-motion: reduce)");

/** Draws the frames of a room; clicks on agents are passed on to `onPick(slot)`. */
export class Board {
  constructor(room, { canvas, wrap, onPick, onDrawn }) {
    Object.assign(this, { room, canvas, wrap, onDrawn });
    this.ctx = canvas.getContext("2d");
    this.showEdges = false;
    this.pair = null;
    this.from = new Map();
    this.start = 0;
    this.duration = 0;
    room.on("shown", (detail) => this.show(detail));
    room.on("choice", () => this.draw());
    room.on("status", () => this.draw());
    onTheme(() => this.draw());
    this.watching = new ResizeObserver(() => this.resize());
    this.watching.observe(wrap);
    this.listening = new AbortController();
    const { signal } = this.listening;
    window.addEventListener("resize", () => this.resize(), { signal });
    if (onPick) this.#listen(onPick, signal);
  }

  #listen(onPick, signal) {
    const at = (event) => this.slotAt(event.offsetX, event.offsetY);
    const click = (event) => at(event) !== null && onPick(at(event));
    this.canvas.addEventListener("click", click, { signal });
    const move = (event) => this.canvas.classList.toggle("over-agent", at(event) !== null);
    this.canvas.addEventListener("pointermove", move, { signal });
  }

  /** Stop drawing: another room follows on the same canvas. */
  end() {
    this.listening.abort();
    this.watching.disconnect();
    this.to = null;
  }

  get painter() {
    return PAINTERS[this.room.frame?.scene?.kind] ?? null;
  }

  /** Show another state, from where the figures are now. */
  show({ frame, previous, animate }) {
    const painter = PAINTERS[frame.scene.kind];
    if (!painter) return;
    const moves = animate && !still.matches && this.to;
    this.from = moves ? this.#places(performance.now()) : new Map();
    for (const slot of [...(frame.entered ?? []), ...(frame.left ?? [])])
      this.from.delete(`agent ${slot}`);
    this.to = painter.positions(frame.scene);
    this.before = previous?.scene ?? null;
    this.origin = previous ? painter.positions(previous.scene) : new Map();
    // Half a display frame has passed when the first picture of a move is seen.
    this.start = performance.now() - 16;
    this.duration = moves ? this.#moveTime() : 0;
    if (this.shape !== painter.aspect(frame.scene)) this.resize();
    else this.draw();
    this.onDrawn?.(frame);
    this.#run();
  }

  #moveTime() {
    const { clock, speed, pace } = this.room;
    if (pace === "turns") return MOVE_IN_TURNS_MS;
    const step = pace === "real_time" ? clock.tick_ms : 1000 / speed;
    return Math.min(0.85 * step, LONGEST_MOVE_MS);
  }

  #run() {
    if (this.running) return;
    this.running = true;
    const next = () => {
      this.draw();
      this.running =
        performance.now() < this.start + Math.max(this.duration, this.duration ? 500 : 0);
      if (this.running) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }

  #share(now) {
    if (!this.duration) return 1;
    const share = Math.min(1, (now - this.start) / this.duration);
    return 1 - (1 - share) ** 3;
  }

  #places(now) {
    const share = this.#share(now);
    const painter = this.painter;
    const places = new Map();
    for (const [key, to] of this.to ?? []) {
      const from = this.from.get(key);
      places.set(key, from && painter ? painter.between(from, to, share) : to);
    }
    return places;
  }

  /** Fit the canvas into its place: as wide as it is, but never higher than the window allows. */
  resize() {
    const { frame } = this.room;
    const painter = this.painter;
    if (!frame || !painter) return;
    this.shape = painter.aspect(frame.scene);
    const style = getComputedStyle(this.wrap);
    const room = this.wrap.clientWidth - 2 * Number.parseFloat(style.paddingLeft);
    const share = Number(style.getPropertyValue("--board-share")) || 0.6;
    const highest = Math.max(LEAST_HEIGHT, share * window.innerHeight);
    const width = Math.max(120, Math.floor(Math.min(room, highest * this.shape)));
    const height = Math.floor(width / this.shape);
    const ratio = window.devicePixelRatio || 1;
    this.size = { width, height };
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.ratio = ratio;
    this.draw();
  }

  draw() {
    const { room, ctx, painter } = this;
    const { frame } = room;
    if (!frame || !painter || !this.size || !this.to) return;
    const now = performance.now();
    const places = this.#places(now);
    const progress = this.duration ? Math.min(1, (now - this.start) / 500) : 1;
    const view = {
      scene: frame.scene,
      before: this.before,
      size: this.size,
      progress,
      place: (key) => places.get(key),
      fill: (slot) => colourOf(room, slot),
      isOpponent: (slot) => sideOf(room, slot) === 1,
      look: (slot) => this.look(slot),
    };
    ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    painter.ground(ctx, frame.scene, this.size);
    if (this.showEdges || this.pair) this.#edges(frame, view);
    painter.items(ctx, view);
    this.#ghosts(frame, view);
    this.#agents(frame, view);
    painter.overlay(ctx, view);
    this.#reward(frame, view);
  }

  /** What the agent in a slot looks like on every board. */
  look(slot) {
    const person = personIn(this.room, slot);
    return {
      label: label(slot),
      fill: colourOf(this.room, slot),
      learner: slot === 0,
      opponent: sideOf(this.room, slot) === 1,
      person: person !== null,
      mine: person !== null && person.id === this.room.you,
    };
  }

  #agents(frame, view) {
    const { ctx, painter, room } = this;
    const captions = [];
    for (const each of frame.scene.agents) {
      const place = view.place(`agent ${each.slot}`);
      if (!place || each.alive === false) continue;
      const at = painter.pixels(frame.scene, this.size, place);
      const look = { ...this.look(each.slot), ...painter.look(frame.scene, each) };
      if (at.heading !== undefined) look.heading = at.heading;
      const age = this.#stepsHere(each.slot);
      const person = personIn(room, each.slot);
      if (age < NEW_FOR_STEPS)
        marks.entrance(
          ctx,
          at.x,
          at.y,
          at.radius,
          1 - age / NEW_FOR_STEPS,
          age === 0 ? view.progress : 1,
        );
      if (room.selected === each.slot || look.mine)
        marks.halo(ctx, at.x, at.y, at.radius, look.mine ? "--newcomer" : "--ink");
      marks.agent(ctx, at.x, at.y, at.radius, look);
      if (person) captions.push([agentName(room, each.slot), at]);
      else if (age === 0) captions.push(["new", at]);
    }
    for (const [text, at] of captions) {
      const [ground, ink] =
        text === "new" ? ["--newcomer-soft", "--newcomer"] : ["--surface", "--ink"];
      const above = at.y - 1.9 * at.radius > 8;
      const y = above ? at.y - 1.85 * at.radius : at.y + 1.75 * at.radius;
      marks.plate(
        ctx,
        text,
        at.x,
        y,
        Math.max(10, Math.min(13, 0.55 * at.radius)),
        colour(ground),
        colour(ink),
        this.size.width,
      );
    }
  }

  /** Steps since the agent in a slot arrived; many for those who were there at the start. */
  #stepsHere(slot) {
    const { frames, cursor } = this.room;
    for (let age = 0; age < NEW_FOR_STEPS && cursor - age >= 0; age += 1) {
      if (frames[cursor - age].entered?.includes(slot)) return age;
    }
    return Infinity;
  }

  #ghosts(frame, view) {
    for (const slot of frame.left ?? []) {
      const place = this.origin.get(`agent ${slot}`);
      if (!place) continue;
      const at = this.painter.pixels(frame.scene, this.size, place);
      marks.ghost(this.ctx, at.x, at.y, at.radius, this.look(slot), view.progress, this.size.width);
    }
  }

  #edges(frame, view) {
    const edges = this.room.frame.mind?.edges ?? [];
    const largest = Math.max(...edges.map((each) => each[2]), 1e-9);
    for (const [a, b, weight] of edges) {
      const chosen = this.pair !== null && this.pair.includes(a) && this.pair.includes(b);
      if (!this.showEdges && !chosen) continue;
      const ends = [a, b].map((slot) => view.place(`agent ${slot}`));
      if (!ends[0] || !ends[1]) continue;
      const [from, to] = ends.map((place) => this.painter.pixels(frame.scene, this.size, place));
      marks.edge(this.ctx, from, to, weight / largest, chosen);
    }
  }

  #reward(frame, view) {
    if (!frame.reward) return;
    const place = view.place("agent 0") ?? this.origin.get("agent 0");
    if (!place) return;
    const at = this.painter.pixels(frame.scene, this.size, place);
    const name = frame.reward > 0 ? "--good" : "--bad";
    const size = Math.max(13, 0.62 * at.radius);
    marks.floating(
      this.ctx,
      signed(frame.reward),
      at.x,
      at.y - 1.1 * at.radius,
      size,
      name,
      view.progress,
      this.size.width,
    );
  }

  /** The agent at a point of the canvas, or null. */
  slotAt(x, y) {
    const { frame } = this.room;
    const { painter } = this;
    if (!frame || !painter || !this.to) return null;
    let best = null;
    for (const [key, place] of this.to) {
      if (!key.startsWith("agent ")) continue;
      const at = painter.pixels(frame.scene, this.size, place);
      const distance = Math.hypot(at.x - x, at.y - y);
      if (distance <= Math.max(1.3 * at.radius, 20) && (best === null || distance < best[0])) {
        best = [distance, Number(key.slice(6))];
      }
    }
    return best === null ? null : best[1];
  }
}
