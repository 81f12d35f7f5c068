// Light or dark: the system's choice unless the visitor has made one. A classic script, so that
// it runs before the first paint.
(() => {
  const KEY = "dropin-theme";
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  function stored() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  }

  function current() {
    return document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light");
  }

  function label() {
    const button = document.getElementById("theme");
    if (!button) return;
    const other = current() === "dark" ? "light" : "dark";
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
    button.title = `Switch to the ${other} theme`;
  }

  function changed() {
    label();
    window.dispatchEvent(new CustomEvent("dropin-theme"));
  }

  function toggle() {
    const theme = current() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // A browser without storage keeps the choice until the page is closed.
    }
    changed();
  }

  const chosen = stored();
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  system.addEventListener("change", changed);
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme")?.addEventListener("click", toggle);
    label();
  });
})();
