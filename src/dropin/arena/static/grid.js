// The picture of games on a grid: level-based foraging and Wolfpack.

import * as marks from "./marks.js";
import { colour } from "./palette.js";

const AGENT_RADIUS = 0.33;
const JUMP = 2.01;
/** Agents that share a cell stand in rows of this many, each as large as this compared with one alone. */
const SHARED = [
  { across: 1, scale: 1 },
  { across: 2, scale: 0.6 },
  { across: 3, scale: 0.42 },
];

/** Painter of scenes of the kind "grid". */
export class GridPainter {
  /** Width divided by height. */
  aspect(scene) {
    return scene.columns / scene.rows;
  }

  /** Positions of everything that moves, by a key that stays the same from step to step. */
  positions(scene) {
    const places = new Map();
    const cells = new Map();
    for (const { slot, row, column } of scene.agents) {
      const key = `${row} ${column}`;
      cells.set(key, [...(cells.get(key) ?? []), { slot, row, column }]);
    }
    for (const together of cells.values()) {
      const { across, scale } =
        SHARED.find((each) => each.across ** 2 >= together.length) ?? SHARED.at(-1);
      const rows = Math.ceil(together.length / across);
      together.forEach(({ slot, row, column }, index) => {
        const x = column + ((index % across) - (across - 1) / 2) / across;
        const y = row + (Math.floor(index / across) - (rows - 1) / 2) / across;
        places.set(`agent ${slot}`, { x, y, scale });
      });
    }
    for (const each of scene.items) places.set(`item ${each.id}`, { x: each.column, y: each.row });
    return places;
  }

  /** A position between two; whoever is far away has not walked there. */
  between(from, to, share) {
    if (Math.abs(from.x - to.x) + Math.abs(from.y - to.y) > JUMP) return to;
    const scale = (from.scale ?? 1) + ((to.scale ?? 1) - (from.scale ?? 1)) * share;
    return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share, scale };
  }

  /** Pixels of a position. */
  pixels(scene, size, place) {
    const cell = size.width / scene.columns;
    const radius = AGENT_RADIUS * cell * (place.scale ?? 1);
    return { x: (place.x + 0.5) * cell, y: (place.y + 0.5) * cell, radius };
  }

  ground(ctx, scene, size) {
    const cell = size.width / scene.columns;
    ctx.fillStyle = colour("--board");
    ctx.fillRect(0, 0, size.width, size.height);
    ctx.fillStyle = colour("--board-alt");
    for (let row = 0; row < scene.rows; row += 1) {
      for (let column = row % 2; column < scene.columns; column += 2) {
        ctx.fillRect(column * cell, row * cell, cell, cell);
      }
    }
  }

  /** Objects and prey, also those that have just been collected. */
  items(ctx, view) {
    const { scene, before, size, progress } = view;
    const cell = size.width / scene.columns;
    for (const item of scene.items) {
      const at = this.pixels(scene, size, view.place(`item ${item.id}`));
      if (item.kind === "prey")
        marks.hare(ctx, at.x, at.y, 0.33 * cell, item.facing, item.captured);
      else marks.fruit(ctx, at.x, at.y, 0.36 * cell, item.level);
    }
    const left = new Set(scene.items.map((item) => item.id));
    for (const item of before?.items ?? []) {
      if (left.has(item.id) || item.kind === "prey" || progress >= 1) continue;
      const at = this.pixels(scene, size, { x: item.column, y: item.row });
      marks.fruit(
        ctx,
        at.x,
        at.y - 0.3 * cell * progress,
        0.36 * cell * (1 + 0.3 * progress),
        item.level,
        1 - progress,
      );
    }
    for (const mark of scene.marks ?? []) this.mark(ctx, view, mark, cell);
  }

  /** Lines from those who collected an object or captured a prey to where it was. */
  mark(ctx, view, mark, cell) {
    const to = this.pixels(view.scene, view.size, { x: mark.column, y: mark.row });
    ctx.save();
    ctx.strokeStyle = colour(mark.kind === "captured" ? "--bad" : "--good");
    ctx.lineWidth = 0.06 * cell;
    ctx.setLineDash([0.1 * cell, 0.08 * cell]);
    for (const slot of mark.slots ?? []) {
      const place = view.place(`agent ${slot}`);
      if (!place) continue;
      const from = this.pixels(view.scene, view.size, place);
      ctx.beginPath();
      ctx.moveTo(from.x, from.y);
      ctx.lineTo(to.x, to.y);
      ctx.stroke();
    }
    ctx.restore();
  }

  /** What an agent looks like on this board beyond what all boards share. */
  look(scene, each) {
    const hunts = scene.items.some((item) => item.kind === "prey");
    return { level: each.level, ears: hunts };
  }

  overlay() {}
}
