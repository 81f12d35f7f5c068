// The type vectors of all agents as points of a map, with a trail each.

import { byId, element, soon } from "./dom.js";
import { circle, polygon, write } from "./marks.js";
import { excuse, missing } from "./mind.js";
import { colourOf, label } from "./names.js";
import { colour, faded, onTheme } from "./palette.js";

const SIDE = 22;
const LONGEST_TRAIL = 16;
const SHAPES = [0, 4, 3, 5, 6, 0, 4, 3];

export class TypeMap {
  constructor(room) {
    this.room = room;
    this.panel = byId("panel-types");
    this.canvas = byId("type-map");
    this.toggle = byId("types-map");
    this.toggle.addEventListener("change", () => room.showTypes(this.toggle.checked));
    const redraw = soon(() => this.panel.hidden || this.update());
    onTheme(redraw);
    new ResizeObserver(redraw).observe(this.panel);
  }

  update() {
    const { room, panel } = this;
    this.toggle.checked = room.typesShown;
    if (excuse(panel, missing(room, "points", "has no type vector per agent."))) return;
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const ctx = canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const names = this.#typeNames();
    const place = this.#scale(width, height);
    this.#axes(ctx, width, height, place);
    for (const trail of this.#trails()) this.#draw(ctx, trail, place, names);
    this.#legend(names);
  }

  /** Types seen in this episode, in alphabetical order: each has a colour and a shape. */
  #typeNames() {
    const names = new Set();
    for (const frame of this.room.frames) {
      for (const agent of frame.agents) if (agent.type && agent.slot !== 0) names.add(agent.type);
    }
    return [...names].sort();
  }

  /** One trail for each agent that is present: its points since it arrived. */
  #trails() {
    const { frames, cursor, frame } = this.room;
    const trails = [];
    for (const agent of frame.agents) {
      if (!agent.present || !frame.mind.points[agent.slot]) continue;
      const points = [];
      for (let step = cursor; step >= 0 && points.length < LONGEST_TRAIL; step -= 1) {
        const point = frames[step].mind?.points?.[agent.slot];
        if (!point) break;
        points.unshift(point);
        if (frames[step].entered?.includes(agent.slot)) break;
      }
      trails.push({ slot: agent.slot, type: agent.type, points });
    }
    return trails;
  }

  #scale(width, height) {
    const points = this.room.frames.flatMap((frame) => (frame.mind?.points ?? []).filter(Boolean));
    const xs = points.map((point) => point[0]);
    const ys = points.map((point) => point[1]);
    const middle = [Math.min(...xs) + Math.max(...xs), Math.min(...ys) + Math.max(...ys)].map(
      (sum) => sum / 2,
    );
    const spread = Math.max(
      Math.max(...xs) - Math.min(...xs),
      (Math.max(...ys) - Math.min(...ys)) * ((width - 2 * SIDE) / (height - 2 * SIDE)),
      1e-6,
    );
    const scale = (width - 2 * SIDE) / spread;
    return ([x, y]) => ({
      x: width / 2 + (x - middle[0]) * scale,
      y: height / 2 - (y - middle[1]) * scale,
    });
  }

  #axes(ctx, width, height, place) {
    const origin = place([0, 0]);
    ctx.clearRect(0, 0, width, height);
    ctx.strokeStyle = colour("--line");
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(0, origin.y);
    ctx.lineTo(width, origin.y);
    ctx.moveTo(origin.x, 0);
    ctx.lineTo(origin.x, height);
    ctx.stroke();
  }

  #look(slot, type, names) {
    const { room } = this;
    if (!room.typesShown || slot === 0) return { fill: colourOf(room, slot), corners: 0 };
    const index = names.indexOf(type);
    return { fill: `--agent-${1 + (index % 7)}`, corners: SHAPES[index % SHAPES.length] };
  }

  #draw(ctx, { slot, type, points }, place, names) {
    const { fill, corners } = this.#look(slot, type, names);
    ctx.lineWidth = 2;
    ctx.lineJoin = "round";
    points.forEach((point, index) => {
      if (!index) return;
      const [from, to] = [place(points[index - 1]), place(point)];
      ctx.strokeStyle = faded(fill, 0.08 + (0.6 * index) / points.length);
      ctx.beginPath();
      ctx.moveTo(from.x, from.y);
      ctx.lineTo(to.x, to.y);
      ctx.stroke();
    });
    const at = place(points.at(-1));
    shape(ctx, at.x, at.y, 10, corners);
    ctx.fillStyle = colour(fill);
    ctx.fill();
    ctx.lineWidth = 1.5;
    ctx.strokeStyle = colour(this.room.selected === slot ? "--ink" : "--surface");
    ctx.stroke();
    write(ctx, label(slot), at.x, at.y, 11, colour("--on-agent"), 700);
  }

  #legend(names) {
    const { room } = this;
    const legend = byId("type-legend");
    const key = JSON.stringify([room.typesShown, names]);
    if (legend.dataset.key === key) return;
    legend.dataset.key = key;
    if (!room.typesShown) {
      legend.replaceChildren(
        element("li", {
          text: "One point an agent, with its label from the board; the true types are hidden.",
        }),
      );
      return;
    }
    legend.replaceChildren(
      ...names.map((name, index) => {
        const sign = element("span", {
          class: `sign sign-${SHAPES[index % SHAPES.length]}`,
          "aria-hidden": "true",
        });
        sign.style.setProperty("--fill", `var(--agent-${1 + (index % 7)})`);
        return element("li", {}, sign, element("span", { text: name }));
      }),
    );
  }
}

function shape(ctx, x, y, radius, corners) {
  if (corners) polygon(ctx, x, y, 1.15 * radius, corners);
  else circle(ctx, x, y, radius);
}
