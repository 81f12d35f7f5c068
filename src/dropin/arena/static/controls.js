// Play, pause, step, speed, restart, next episode, and running again from an earlier step.

import { byId, setText, soon } from "./dom.js";

export class Controls {
  constructor(room) {
    this.room = room;
    this.local = null;
    const press = (id, action) => byId(id).addEventListener("click", action);
    press("play", () => this.toggle());
    press("step-forward", () => this.forward());
    press("step-back", () => this.back());
    press("restart", () => room.send({ type: "restart" }));
    press("next-episode", () => room.send({ type: "next" }));
    press("next-episode-now", () => room.send({ type: "next" }));
    press("live", () => this.catchUp());
    press("run-from-here", () => this.runFromHere());
    byId("speed").addEventListener("input", () => this.#speed());
    const update = soon(() => this.update());
    for (const name of ["status", "shown", "frames", "welcome", "episode"]) room.on(name, update);
  }

  /** Play or pause. From an earlier step, what is known is shown again up to the present. */
  toggle() {
    const { room } = this;
    if (this.local) this.#stopLocal();
    else if (!room.live) this.#playLocal();
    else room.send({ type: room.playing ? "pause" : "play" });
    this.update();
  }

  forward() {
    const { room } = this;
    this.#stopLocal();
    if (!room.live) room.seek(room.cursor + 1, true);
    else room.send({ type: "step" });
  }

  back() {
    this.#stopLocal();
    const { room } = this;
    if (room.playing && room.live && room.pace === "watch") room.send({ type: "pause" });
    room.seek(room.cursor - 1);
  }

  catchUp() {
    this.#stopLocal();
    this.room.goLive();
  }

  runFromHere() {
    this.#stopLocal();
    this.room.send({ type: "rewind", step: this.room.cursor });
  }

  #playLocal() {
    const tick = () => {
      this.room.seek(this.room.cursor + 1, true);
      if (this.room.live) this.#stopLocal();
      else this.local = setTimeout(tick, 1000 / this.room.speed);
    };
    this.local = setTimeout(tick, 0);
  }

  #stopLocal() {
    clearTimeout(this.local);
    this.local = null;
    this.update();
  }

  #speed() {
    const perSecond = SPEEDS[Number(byId("speed").value)];
    this.room.send({ type: "speed", per_second: perSecond });
    this.room.speed = perSecond;
    this.#showSpeed();
  }

  #showSpeed() {
    const { speed } = this.room;
    setText(byId("speed-value"), `${speed} ${speed === 1 ? "step" : "steps"} a second`);
    byId("speed").setAttribute("aria-valuetext", `${speed} steps a second`);
  }

  update() {
    const { room } = this;
    const runs = this.local !== null || (room.live && room.playing);
    const play = byId("play");
    play.dataset.state = runs ? "pause" : "play";
    play.setAttribute("aria-label", runs ? "Pause" : "Play");
    play.title = runs ? "Pause (space)" : "Play (space)";
    byId("step-back").disabled = room.cursor === 0;
    byId("step-forward").disabled = room.live && Boolean(room.last?.done);
    byId("live").hidden = room.live;
    byId("run-from-here").hidden = room.live;
    const { pace } = room;
    byId("speed-field").hidden = pace !== "watch";
    const clock = byId("clock-note");
    clock.hidden = pace === "watch";
    if (pace === "real_time") setText(clock, `real time: a step every ${room.clock.tick_ms} ms`);
    if (pace === "turns") setText(clock, "turns: waits for everyone who plays");
    byId("speed").value = String(nearest(room.speed));
    this.#showSpeed();
  }
}

const SPEEDS = [0.5, 1, 2, 3, 4, 6, 8, 12, 20, 30];

function nearest(speed) {
  return SPEEDS.reduce(
    (best, each, index) => (Math.abs(each - speed) < Math.abs(SPEEDS[best] - speed) ? index : best),
    0,
  );
}
