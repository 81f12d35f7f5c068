// The figures on the boards: agents, objects, prey, badges and rings. Sizes are in pixels.

import { colour, faded } from "./palette.js";

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

export function circle(ctx, x, y, radius) {
  ctx.beginPath();
  ctx.arc(x, y, Math.max(radius, 0), 0, 2 * Math.PI);
}

export function polygon(ctx, x, y, radius, corners, turn = -Math.PI / 2) {
  ctx.beginPath();
  for (let k = 0; k < corners; k += 1) {
    const angle = turn + (2 * Math.PI * k) / corners;
    ctx.lineTo(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
  }
  ctx.closePath();
}

export function write(ctx, text, x, y, size, fill, weight = 600, align = "center") {
  ctx.font = `${weight} ${size}px ${FONT}`;
  ctx.textAlign = align;
  ctx.textBaseline = "middle";
  ctx.fillStyle = fill;
  ctx.fillText(text, x, y + 0.04 * size);
}

/** A word on a small plate, below or above a figure; stays within the width of the board. */
export function plate(ctx, text, x, y, size, ground, ink, width) {
  ctx.font = `600 ${size}px ${FONT}`;
  const half = ctx.measureText(text).width / 2 + 0.45 * size;
  const centre = Math.min(Math.max(x, half + 1), width - half - 1);
  ctx.beginPath();
  ctx.roundRect(centre - half, y - 0.75 * size, 2 * half, 1.5 * size, 0.75 * size);
  ctx.fillStyle = ground;
  ctx.fill();
  write(ctx, text, centre, y, size, ink);
}

/** A hexagon with a level: the same sign on agents and objects. */
export function levelBadge(ctx, x, y, radius, level) {
  polygon(ctx, x, y, radius, 6);
  ctx.fillStyle = colour("--surface");
  ctx.fill();
  ctx.lineWidth = Math.max(1.2, 0.14 * radius);
  ctx.strokeStyle = colour("--ink");
  ctx.stroke();
  write(ctx, String(level), x, y, 1.25 * radius, colour("--ink"), 700);
}

/** Head and shoulders: a person plays this agent. */
export function personBadge(ctx, x, y, radius, mine) {
  circle(ctx, x, y, radius);
  ctx.fillStyle = colour("--surface");
  ctx.fill();
  ctx.lineWidth = Math.max(1.2, 0.14 * radius);
  ctx.strokeStyle = mine ? colour("--newcomer") : colour("--ink");
  ctx.stroke();
  ctx.fillStyle = colour("--ink");
  circle(ctx, x, y - 0.28 * radius, 0.28 * radius);
  ctx.fill();
  ctx.beginPath();
  ctx.arc(x, y + 0.58 * radius, 0.48 * radius, Math.PI, 2 * Math.PI);
  ctx.fill();
}

/** The outline of an agent: a rounded square for the learner, a disc for others, a rhomb for opponents. */
export function outline(ctx, x, y, radius, look) {
  if (look.learner) {
    const side = 0.92 * radius;
    ctx.beginPath();
    ctx.roundRect(x - side, y - side, 2 * side, 2 * side, 0.45 * radius);
  } else if (look.opponent) polygon(ctx, x, y, 1.18 * radius, 4);
  else circle(ctx, x, y, radius);
}

/**
 * Draw an agent.
 * @param {object} look label, fill (CSS variable), learner, opponent, person, mine, ears, level, heading, alpha
 */
export function agent(ctx, x, y, radius, look) {
  ctx.save();
  ctx.globalAlpha *= look.alpha ?? 1;
  const fill = colour(look.fill);
  if (Number.isFinite(look.heading)) nose(ctx, x, y, radius, look.heading, fill);
  if (look.ears) ears(ctx, x, y, look.learner ? 1.08 * radius : radius, fill);
  outline(ctx, x, y, radius, look);
  ctx.fillStyle = fill;
  ctx.fill();
  ctx.lineWidth = Math.max(1.5, 0.09 * radius);
  ctx.strokeStyle = look.learner ? colour("--ink") : colour("--board");
  ctx.stroke();
  write(ctx, look.label, x, y, 0.95 * radius, colour("--on-agent"), 700);
  if (Number.isFinite(look.level))
    levelBadge(ctx, x + 0.72 * radius, y + 0.72 * radius, 0.46 * radius, look.level);
  if (look.person) personBadge(ctx, x - 0.78 * radius, y - 0.78 * radius, 0.44 * radius, look.mine);
  ctx.restore();
}

function nose(ctx, x, y, radius, heading, fill) {
  ctx.beginPath();
  ctx.moveTo(x + 1.75 * radius * Math.cos(heading), y - 1.75 * radius * Math.sin(heading));
  for (const turn of [0.62, -0.62]) {
    ctx.lineTo(x + radius * Math.cos(heading + turn), y - radius * Math.sin(heading + turn));
  }
  ctx.closePath();
  ctx.fillStyle = fill;
  ctx.fill();
}

function ears(ctx, x, y, radius, fill) {
  for (const side of [-1, 1]) {
    ctx.beginPath();
    ctx.moveTo(x + side * 0.95 * radius, y - 0.15 * radius);
    ctx.lineTo(x + side * 0.82 * radius, y - 1.28 * radius);
    ctx.lineTo(x + side * 0.2 * radius, y - 0.85 * radius);
    ctx.closePath();
    ctx.fillStyle = fill;
    ctx.fill();
  }
}

/** A dashed outline where an agent was that has left. */
export function ghost(ctx, x, y, radius, look, progress, width) {
  ctx.save();
  ctx.globalAlpha = 1 - 0.35 * progress;
  ctx.setLineDash([0.28 * radius, 0.2 * radius]);
  ctx.lineWidth = Math.max(1.5, 0.1 * radius);
  ctx.strokeStyle = colour(look.fill);
  outline(ctx, x, y, radius, look);
  ctx.stroke();
  ctx.setLineDash([]);
  write(ctx, look.label, x, y, 0.85 * radius, colour(look.fill), 700);
  ctx.restore();
  plate(
    ctx,
    "left",
    x,
    y + 1.35 * radius,
    Math.max(10, 0.5 * radius),
    colour("--raised"),
    colour("--muted"),
    width,
  );
}

/** Rings around a newcomer: one that grows and vanishes, and one that stays for some steps. */
export function entrance(ctx, x, y, radius, strength, progress) {
  ctx.save();
  if (strength === 1 && progress < 1) {
    ctx.globalAlpha = 1 - progress;
    ctx.lineWidth = 0.14 * radius;
    ctx.strokeStyle = colour("--newcomer");
    circle(ctx, x, y, radius * (1.2 + 1.5 * progress));
    ctx.stroke();
  }
  ctx.globalAlpha = strength;
  ctx.lineWidth = Math.max(2, 0.13 * radius);
  ctx.strokeStyle = colour("--newcomer");
  circle(ctx, x, y, 1.36 * radius);
  ctx.stroke();
  ctx.restore();
}

/** A dashed ring around the agent that the visitor selected or plays. */
export function halo(ctx, x, y, radius, name) {
  ctx.save();
  ctx.setLineDash([0.35 * radius, 0.22 * radius]);
  ctx.lineWidth = Math.max(1.5, 0.1 * radius);
  ctx.strokeStyle = colour(name);
  circle(ctx, x, y, 1.55 * radius);
  ctx.stroke();
  ctx.restore();
}

/** An object of level-based foraging: a fruit with its level. */
export function fruit(ctx, x, y, radius, level, alpha = 1) {
  ctx.save();
  ctx.globalAlpha *= alpha;
  ctx.fillStyle = colour("--object");
  for (const side of [-1, 1]) {
    ctx.beginPath();
    ctx.ellipse(
      x + side * 0.33 * radius,
      y + 0.06 * radius,
      0.68 * radius,
      0.88 * radius,
      side * 0.18,
      0,
      2 * Math.PI,
    );
    ctx.fill();
  }
  ctx.strokeStyle = colour("--leaf");
  ctx.lineCap = "round";
  ctx.lineWidth = 0.15 * radius;
  ctx.beginPath();
  ctx.moveTo(x, y - 0.68 * radius);
  ctx.quadraticCurveTo(x + 0.05 * radius, y - 1.0 * radius, x + 0.18 * radius, y - 1.1 * radius);
  ctx.stroke();
  ctx.fillStyle = colour("--leaf");
  ctx.beginPath();
  ctx.ellipse(
    x + 0.42 * radius,
    y - 0.9 * radius,
    0.34 * radius,
    0.15 * radius,
    -0.45,
    0,
    2 * Math.PI,
  );
  ctx.fill();
  levelBadge(ctx, x, y + 0.08 * radius, 0.52 * radius, level);
  ctx.restore();
}

const FACINGS = [-Math.PI / 2, 0, Math.PI / 2, Math.PI];

/** A prey of Wolfpack: a hare that looks where it faces; crossed out when it was captured. */
export function hare(ctx, x, y, radius, facing, captured) {
  const angle = FACINGS[facing ?? 0];
  ctx.save();
  ctx.translate(x, y);
  ctx.rotate(angle);
  ctx.fillStyle = colour("--prey");
  for (const side of [-1, 1]) {
    ctx.beginPath();
    ctx.ellipse(
      -0.42 * radius,
      side * 0.62 * radius,
      0.62 * radius,
      0.19 * radius,
      side * -0.42,
      0,
      2 * Math.PI,
    );
    ctx.fill();
  }
  ctx.beginPath();
  ctx.ellipse(0.12 * radius, 0, 0.74 * radius, 0.58 * radius, 0, 0, 2 * Math.PI);
  ctx.fill();
  ctx.fillStyle = colour("--on-prey");
  for (const side of [-1, 1]) {
    circle(ctx, 0.38 * radius, side * 0.24 * radius, 0.1 * radius);
    ctx.fill();
  }
  circle(ctx, 0.78 * radius, 0, 0.1 * radius);
  ctx.fillStyle = colour("--ink");
  ctx.fill();
  ctx.restore();
  if (captured) {
    ctx.save();
    ctx.strokeStyle = colour("--bad");
    ctx.lineWidth = Math.max(2, 0.16 * radius);
    ctx.lineCap = "round";
    circle(ctx, x, y, 1.22 * radius);
    ctx.stroke();
    for (const side of [-1, 1]) {
      ctx.beginPath();
      ctx.moveTo(x - 0.6 * radius, y - side * 0.6 * radius);
      ctx.lineTo(x + 0.6 * radius, y + side * 0.6 * radius);
      ctx.stroke();
    }
    ctx.restore();
  }
}

/** A number that rises from a place and fades, for rewards. */
export function floating(ctx, text, x, y, size, name, progress, width) {
  ctx.save();
  ctx.globalAlpha = progress < 1 ? 1 : 0.95;
  const rise = size * (0.4 + 0.9 * Math.min(progress, 1));
  plate(ctx, text, x, Math.max(y - rise, size), size, colour("--surface"), colour(name), width);
  ctx.restore();
}

/** An edge of the coordination graph, as wide as its share of the largest weight. */
export function edge(ctx, from, to, share, chosen) {
  ctx.save();
  ctx.lineCap = "round";
  ctx.lineWidth = 1 + 9 * share;
  ctx.strokeStyle = faded("--pair", chosen ? 0.85 : 0.18 + 0.35 * share);
  ctx.beginPath();
  ctx.moveTo(from.x, from.y);
  ctx.lineTo(to.x, to.y);
  ctx.stroke();
  ctx.restore();
}
