// A table of numbers with shaded cells. It keeps its elements from step to step, so that nothing
// flickers and the selection of a reader stays.

import { element, setText } from "./dom.js";

export class Matrix {
  /** @param {HTMLElement} holder where the table goes; @param {string} caption for screen readers */
  constructor(holder, caption) {
    this.holder = holder;
    this.caption = caption;
    this.shape = "";
  }

  /**
   * Show a table.
   * @param {object} content
   *   columns: [{text, title}], corner: string,
   *   rows: [{key, head: Node, note: string, cells: [{value, text, share, mark, title}]}]
   *   `share` (-1 to 1) is how dark a cell is; a `mark` gives it a frame and a sign.
   */
  show({ columns, rows, corner = "", noteHead = null }) {
    const shape = JSON.stringify([columns, rows.map((row) => row.key), corner, noteHead]);
    if (shape !== this.shape) this.#build(columns, rows, corner, noteHead);
    this.shape = shape;
    rows.forEach((row, index) => {
      const parts = this.rows[index];
      if (parts.note) setText(parts.note, row.note ?? "");
      row.cells.forEach((cell, column) => fill(parts.cells[column], cell));
    });
  }

  /** Forget the table, so that the next one is built anew. */
  clear() {
    this.shape = "";
    this.holder.replaceChildren();
  }

  #build(columns, rows, corner, noteHead) {
    const heads = columns.map(({ text, title }) =>
      element(
        "th",
        { scope: "col", title },
        element("span", { "aria-hidden": "true", text }),
        element("span", { class: "sr", text: title }),
      ),
    );
    if (noteHead) heads.push(element("th", { scope: "col", class: "note", text: noteHead }));
    const top = element(
      "tr",
      {},
      element("th", { scope: "col", class: "corner", text: corner }),
      ...heads,
    );
    this.rows = rows.map((row) => {
      const cells = columns.map(() => element("td", {}, element("span", { class: "number" })));
      const note = noteHead ? element("td", { class: "note" }) : null;
      return {
        cells,
        note,
        node: element(
          "tr",
          { data: { key: row.key } },
          element("th", { scope: "row" }, row.head),
          ...cells,
          note,
        ),
      };
    });
    const body = element("tbody", {}, ...this.rows.map((row) => row.node));
    const table = element(
      "table",
      { class: "matrix" },
      element("caption", { class: "sr", text: this.caption }),
      element("thead", {}, top),
      body,
    );
    this.holder.replaceChildren(
      element(
        "div",
        { class: "scroll", tabindex: "0", role: "group", "aria-label": this.caption },
        table,
      ),
    );
  }
}

function fill(node, { value, text, share = 0, mark = null, title = "" }) {
  setText(node.firstChild, text);
  node.dataset.value = value ?? "";
  node.style.setProperty("--share", Math.abs(share).toFixed(3));
  node.classList.toggle("below", share < 0);
  node.classList.toggle("marked", mark !== null);
  if (mark !== null) node.dataset.mark = mark;
  else delete node.dataset.mark;
  node.title = title;
}
