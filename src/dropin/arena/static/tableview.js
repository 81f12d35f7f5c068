// The view of games that have no picture: the features of every agent as a table.

import { byId, element, show, soon } from "./dom.js";

export class TableView {
  constructor(room) {
    this.room = room;
    this.holder = byId("table-view");
    room.on(
      "shown",
      soon(() => this.update()),
    );
  }

  update() {
    const { scene } = this.room.frame;
    const isTable = scene.kind === "table" || !["grid", "plane"].includes(scene.kind);
    show(this.holder, isTable);
    show(byId("board"), !isTable);
    if (!isTable) return;
    const cell = (value) =>
      typeof value === "number" ? String(Number(value.toPrecision(3))) : String(value ?? "–");
    const head = element(
      "tr",
      {},
      ...(scene.columns ?? []).map((name) => element("th", { scope: "col", text: String(name) })),
    );
    const rows = (scene.rows ?? []).map((row) =>
      element("tr", {}, ...row.map((value) => element("td", { text: cell(value) }))),
    );
    const table = element(
      "table",
      { class: "plain" },
      element("thead", {}, head),
      element("tbody", {}, ...rows),
    );
    this.holder.replaceChildren(table);
  }
}
