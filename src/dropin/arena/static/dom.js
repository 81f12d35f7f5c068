// Small helpers to build the page. Text is always set as text, never as markup.

/**
 * Create an element.
 * @param {string} tag
 * @param {object} options `class`, `text`, `data` (dataset), `on` (listeners); all else attributes
 * @param {...(Node|string|null)} children strings become text nodes
 */
export function element(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") node.className = value;
    else if (name === "text") node.textContent = value;
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Return the element with an id; a missing one is a mistake of the page. */
export function byId(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`The page has no element ${id}.`);
  return node;
}

/** Set the text of an element only if it differs: live regions and focus stay quiet. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Show or hide an element. */
export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

/** Return a function that runs `work` once, in the next animation frame, however often called. */
export function soon(work) {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      work();
    });
  };
}

/** Format a number for reading: up to `digits` significant digits, with a real minus sign. */
export function format(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const text =
    Math.abs(value) >= 1000 ? value.toFixed(0) : Number(value.toPrecision(digits)).toString();
  return text.replace("-", "−");
}

/** Format numbers that stand together: all with the decimals that the largest has. */
export function formatAlike(values, digits = 3) {
  const largest = Math.max(...values.map(Math.abs), 1e-6);
  const decimals = Math.max(0, Math.min(6, digits - 1 - Math.floor(Math.log10(largest))));
  return values.map((value) =>
    (Math.abs(value) < 0.5 * 10 ** -decimals ? 0 : value).toFixed(decimals).replace("-", "−"),
  );
}

/** Format a reward with its sign. */
export function signed(value) {
  return value > 0 ? `+${format(value)}` : format(value);
}

/** Read a value that the visitor chose earlier; null without storage. */
export function remembered(key) {
  try {
    return localStorage.getItem(`dropin-${key}`);
  } catch {
    return null;
  }
}

/** Keep a value for the next visit, where the browser lets us. */
export function remember(key, value) {
  try {
    localStorage.setItem(`dropin-${key}`, value);
  } catch {
    // Without storage the value is forgotten with the page.
  }
}
