// Keys that steer the page. Those of an agent that somebody plays come first.

import { byId, remember, remembered } from "./dom.js";

const TYPING = "input, select, textarea, dialog, [role=tab]";
const PRESSED_BY_ITSELF = "button, a, summary, label";

export class Shortcuts {
  constructor(room, controls, player) {
    this.room = room;
    this.controls = controls;
    this.player = player;
    this.enabled = byId("single-keys");
    this.enabled.checked = remembered("single-keys") !== "off";
    this.enabled.addEventListener("change", () =>
      remember("single-keys", this.enabled.checked ? "on" : "off"),
    );
    byId("open-help").addEventListener("click", () => byId("help").showModal());
    byId("help-close").addEventListener("click", () => byId("help").close());
    document.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
    if (!this.enabled.checked || event.target.closest?.(TYPING) || this.player.owns(event)) return;
    const action = this.#actions()[event.key];
    if (!action) return;
    if (event.key === " " && event.target.closest?.(PRESSED_BY_ITSELF)) return;
    event.preventDefault();
    action();
  }

  #actions() {
    const { room, controls } = this;
    return {
      " ": () => controls.toggle(),
      k: () => controls.toggle(),
      ArrowRight: () => controls.forward(),
      ArrowLeft: () => controls.back(),
      ".": () => controls.forward(),
      ",": () => controls.back(),
      Home: () => room.seek(0),
      End: () => controls.catchUp(),
      n: () => room.send({ type: "next" }),
      r: () => room.send({ type: "restart" }),
      b: () => room.live || controls.runFromHere(),
      t: () => room.showTypes(!room.typesShown),
      "?": () => byId("help").showModal(),
    };
  }
}
