// The colours of tokens.css as the canvas needs them, resolved for the present theme.

let probe = null;
const resolved = new Map();

/** Return the colour of a CSS variable, as `rgb(...)`. */
export function colour(name) {
  let value = resolved.get(name);
  if (value === undefined) {
    if (!probe) {
      probe = document.createElement("span");
      probe.hidden = true;
      document.body.append(probe);
    }
    probe.style.color = `var(${name})`;
    value = getComputedStyle(probe).color;
    resolved.set(name, value);
  }
  return value;
}

/** Return a colour with an opacity. */
export function faded(name, alpha) {
  return colour(name).replace("rgb(", "rgba(").replace(")", `, ${alpha})`);
}

/** Forget the colours when the theme changes, then call `changed`. */
export function onTheme(changed) {
  window.addEventListener("dropin-theme", () => {
    resolved.clear();
    changed();
  });
}
