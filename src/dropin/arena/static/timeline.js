// The time line: entries, exits and rewards of the episode, and a slider to go to any step.

import { byId, format, setText, signed, soon } from "./dom.js";
import { sentences } from "./names.js";
import { circle } from "./marks.js";
import { colour, faded, onTheme } from "./palette.js";

const SIDE = 12;
const SHORTEST = 20;

export class Timeline {
  constructor(room) {
    this.room = room;
    this.slider = byId("seek");
    this.canvas = byId("timeline");
    this.readout = byId("seek-readout");
    const redraw = soon(() => this.draw());
    for (const name of ["shown", "frames", "episode", "welcome"]) room.on(name, redraw);
    onTheme(redraw);
    new ResizeObserver(redraw).observe(this.canvas);
    this.slider.addEventListener("input", () => room.seek(Number(this.slider.value)));
  }

  /** The last step of the axis: room to grow while the episode runs. */
  #end() {
    const { frames, last } = this.room;
    if (last?.done) return Math.max(1, frames.length - 1);
    return Math.max(SHORTEST, Math.ceil((frames.length + 2) / 10) * 10);
  }

  draw() {
    const { room, slider, canvas } = this;
    const newest = Math.max(0, room.frames.length - 1);
    const end = this.#end();
    slider.max = String(end);
    slider.value = String(room.cursor);
    const frame = room.frame;
    const said = frame ? sentences(room, frame).join(". ") : "";
    slider.setAttribute(
      "aria-valuetext",
      `Step ${room.cursor} of ${newest}${said ? `. ${said}` : ""}`,
    );
    setText(this.readout, `step ${room.cursor} of ${newest}`);
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const ctx = canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#axis(ctx, width, height, end, newest);
    this.#marks(ctx, width, height, end);
    this.#cursor(ctx, width, height, end);
  }

  #x(step, width, end) {
    return SIDE + ((width - 2 * SIDE) * step) / end;
  }

  #axis(ctx, width, height, end, newest) {
    const middle = height / 2;
    ctx.lineWidth = 3;
    ctx.lineCap = "round";
    for (const [to, name] of [
      [end, "--line"],
      [newest, "--edge"],
    ]) {
      ctx.strokeStyle = colour(name);
      ctx.beginPath();
      ctx.moveTo(SIDE, middle);
      ctx.lineTo(this.#x(to, width, end), middle);
      ctx.stroke();
    }
  }

  #marks(ctx, width, height, end) {
    const { frames } = this.room;
    const middle = height / 2;
    const largest = Math.max(...frames.map((frame) => Math.abs(frame.reward || 0)), 1e-9);
    frames.forEach((frame, step) => {
      const x = this.#x(step, width, end);
      if (frame.reward) {
        const tall = 4 + (middle - 8) * (Math.abs(frame.reward) / largest);
        ctx.fillStyle = colour(frame.reward > 0 ? "--good" : "--bad");
        ctx.fillRect(x - 1.5, frame.reward > 0 ? middle - tall : middle, 3, tall);
      }
      if (frame.entered?.length) triangle(ctx, x, height - 4, -1, colour("--newcomer"));
      if (frame.left?.length) triangle(ctx, x, height - 11, 1, colour("--muted"));
    });
  }

  #cursor(ctx, width, height, end) {
    const x = this.#x(this.room.cursor, width, end);
    ctx.strokeStyle = faded("--accent", 0.5);
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.moveTo(x, 3);
    ctx.lineTo(x, height - 3);
    ctx.stroke();
    circle(ctx, x, height / 2, 8);
    ctx.fillStyle = colour("--accent");
    ctx.fill();
    ctx.lineWidth = 2.5;
    ctx.strokeStyle = colour("--surface");
    ctx.stroke();
  }
}

/** A small triangle that points up (-1) or down (1). */
function triangle(ctx, x, y, direction, fill) {
  ctx.beginPath();
  ctx.moveTo(x - 5, y);
  ctx.lineTo(x + 5, y);
  ctx.lineTo(x, y + 7 * direction);
  ctx.closePath();
  ctx.fillStyle = fill;
  ctx.fill();
}

/** The facts above the board: step, return, size of the team. */
export class Facts {
  constructor(room) {
    this.room = room;
    const update = soon(() => this.update());
    for (const name of ["shown", "welcome", "status", "episode"]) room.on(name, update);
  }

  update() {
    const { room } = this;
    const { frame } = room;
    if (!frame) return;
    const present = frame.agents.filter((agent) => agent.present);
    const own = present.filter((agent) => agent.side === 0).length;
    const others = present.length - own;
    setText(byId("fact-episode"), String((room.episode ?? 0) + 1));
    setText(byId("fact-seed"), String(room.seed ?? ""));
    setText(byId("fact-return"), format(frame.score));
    setText(byId("fact-reward"), frame.step ? signed(frame.reward ?? 0) : "–");
    setText(byId("fact-team"), others ? `${own} against ${others}` : String(own));
    const over = byId("episode-over");
    over.hidden = !frame.done;
    if (frame.done) {
      setText(over.firstElementChild, `The episode is over: a return of ${format(frame.score)}.`);
    }
  }
}
