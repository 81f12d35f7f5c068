// The picture of FortAttack: the plane, the fort, lasers, and the bench of those who wait.

import * as marks from "./marks.js";
import { colour, faded } from "./palette.js";

const BENCH = 0.3;

/** Painter of scenes of the kind "plane". Positions have their origin in the middle, up is +y. */
export class PlanePainter {
  aspect(scene) {
    return (scene.width + BENCH) / scene.height;
  }

  positions(scene) {
    const places = new Map();
    for (const each of scene.agents) {
      if (each.alive !== false)
        places.set(`agent ${each.slot}`, { x: each.x, y: each.y, heading: each.heading });
    }
    return places;
  }

  between(from, to, share) {
    let turn = (to.heading - from.heading) % (2 * Math.PI);
    if (turn > Math.PI) turn -= 2 * Math.PI;
    if (turn < -Math.PI) turn += 2 * Math.PI;
    return {
      x: from.x + (to.x - from.x) * share,
      y: from.y + (to.y - from.y) * share,
      heading: from.heading + turn * share,
    };
  }

  pixels(scene, size, place) {
    const scale = size.height / scene.height;
    return {
      x: (place.x + scene.width / 2) * scale,
      y: (scene.height / 2 - place.y) * scale,
      radius: scene.radius * scale,
      heading: place.heading,
    };
  }

  ground(ctx, scene, size) {
    const scale = size.height / scene.height;
    ctx.fillStyle = colour("--board-alt");
    ctx.fillRect(0, 0, size.width, size.height);
    ctx.fillStyle = colour("--board");
    ctx.fillRect(0, 0, scene.width * scale, size.height);
    ctx.strokeStyle = colour("--board-line");
    ctx.lineWidth = 1;
    for (let x = 0; x <= scene.width + 1e-6; x += 0.2)
      line(ctx, x * scale, 0, x * scale, size.height);
    for (let y = 0; y <= scene.height + 1e-6; y += 0.2)
      line(ctx, 0, y * scale, scene.width * scale, y * scale);
    this.fort(ctx, scene, size, scale);
    ctx.strokeStyle = colour("--fort-line");
    ctx.lineWidth = 2;
    line(ctx, scene.width * scale, 0, scene.width * scale, size.height);
  }

  fort(ctx, scene, size, scale) {
    const at = this.pixels(scene, size, { x: scene.fort.x, y: scene.fort.y });
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, 0, scene.width * scale, size.height);
    ctx.clip();
    marks.circle(ctx, at.x, at.y, scene.fort.r * scale);
    ctx.fillStyle = colour("--fort");
    ctx.fill();
    ctx.strokeStyle = colour("--fort-line");
    ctx.lineWidth = 2.5;
    ctx.stroke();
    const wall = 0.045 * scale;
    // The word has room below, in a small fort, too.
    const high = Math.min(1.4 * wall, 0.25 * scene.fort.r * scale);
    ctx.fillStyle = colour("--fort-line");
    for (let k = -2; k <= 2; k += 1)
      ctx.fillRect(at.x + 1.7 * k * wall - wall / 2, 0, wall, high);
    ctx.restore();
    marks.write(
      ctx,
      "fort",
      at.x,
      at.y + 0.55 * scene.fort.r * scale,
      Math.max(11, 0.075 * scale),
      colour("--ink"),
      600,
    );
  }

  /** The lasers of the step that led here, within the walls. */
  items(ctx, view) {
    const { scene, size } = view;
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, 0, (scene.width * size.height) / scene.height, size.height);
    ctx.clip();
    for (const laser of scene.lasers ?? []) {
      const at = this.pixels(scene, size, laser);
      const reach = (laser.reach * size.height) / scene.height;
      ctx.save();
      ctx.beginPath();
      ctx.moveTo(at.x, at.y);
      for (const turn of [laser.half_angle, -laser.half_angle]) {
        const angle = laser.heading + turn;
        ctx.lineTo(at.x + reach * Math.cos(angle), at.y - reach * Math.sin(angle));
      }
      ctx.closePath();
      const name = view.fill(laser.slot);
      ctx.fillStyle = faded(name, 0.2);
      ctx.fill();
      ctx.strokeStyle = faded(name, 0.75);
      ctx.lineWidth = 1.5;
      if (view.isOpponent(laser.slot)) ctx.setLineDash([6, 4]);
      ctx.stroke();
      ctx.restore();
    }
    ctx.restore();
  }

  look(scene, each) {
    return { heading: each.heading };
  }

  /** Those who wait, with the steps they still have to: guards at the top, attackers at the bottom. */
  overlay(ctx, view) {
    const { scene, size } = view;
    const scale = size.height / scene.height;
    const left = scene.width * scale;
    const width = size.width - left;
    const radius = Math.min(0.2 * width, 0.05 * size.height);
    marks.write(
      ctx,
      "waiting",
      left + width / 2,
      0.8 * radius + 4,
      Math.max(10, 0.55 * radius),
      colour("--muted"),
    );
    const counts = [0, 0];
    for (const each of scene.agents) {
      if (each.alive !== false) continue;
      const opponent = view.isOpponent(each.slot);
      const place = counts[opponent ? 1 : 0]++;
      const x = left + width / 2;
      const y = opponent
        ? size.height - (1.9 + 3.6 * place) * radius - 4
        : (3 + 3.6 * place) * radius;
      this.bench(ctx, view, each, { x, y, radius });
    }
  }

  bench(ctx, view, each, { x, y, radius }) {
    marks.agent(ctx, x, y, radius, { ...view.look(each.slot), heading: undefined, alpha: 0.55 });
    if (!Number.isFinite(each.waiting)) return;
    ctx.save();
    ctx.lineWidth = Math.max(2, 0.16 * radius);
    ctx.strokeStyle = colour("--newcomer");
    ctx.beginPath();
    const share = Math.min(1, each.waiting / 80);
    ctx.arc(x, y, 1.32 * radius, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * Math.max(share, 0.02));
    ctx.stroke();
    ctx.restore();
    const text = each.waiting === 1 ? "1 step" : `${each.waiting} steps`;
    marks.write(ctx, text, x, y + 1.75 * radius, Math.max(10, 0.52 * radius), colour("--ink"));
  }
}

function line(ctx, x, y, toX, toY) {
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(toX, toY);
  ctx.stroke();
}
