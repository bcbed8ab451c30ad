// What every page has: theme switch, copy buttons, menus, ages that tick.
import { tickAges } from "./ages.js";

/** @param {string} theme "system", "light" or "dark" */
function themeSet(theme) {
  const root = document.documentElement;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // The choice then lasts as long as the page.
  }
  themeShow(theme);
  document.dispatchEvent(new CustomEvent("themechange"));
}

/** @param {string} theme */
function themeShow(theme) {
  for (const button of document.querySelectorAll("[data-theme-choice]")) {
    const is = button.getAttribute("data-theme-choice") === theme;
    button.setAttribute("aria-pressed", String(is));
  }
}

/** @param {HTMLElement} button */
async function copy(button) {
  const box = button.closest("[data-copy]");
  const code = box && box.querySelector("code");
  const label = button.querySelector("[data-copy-label]");
  if (!code || !label) return;
  const text = code.textContent || "";
  let said = "Copied";
  try {
    await navigator.clipboard.writeText(text.trim());
  } catch {
    // No clipboard outside https and localhost: select, so that one key press copies.
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection()?.removeAllRanges();
    getSelection()?.addRange(range);
    said = "Press Ctrl-C";
  }
  label.textContent = said;
  setTimeout(() => (label.textContent = "Copy"), 2500);
}

document.addEventListener("click", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const choice = target.closest("[data-theme-choice]");
  if (choice) themeSet(choice.getAttribute("data-theme-choice") || "system");
  const button = /** @type {HTMLElement | null} */ (target.closest("[data-copy-button]"));
  if (button) void copy(button);
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(target)) menu.removeAttribute("open");
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.removeAttribute("open");
  menu.querySelector("summary")?.focus();
});

themeShow(document.documentElement.dataset.theme || "system");
setInterval(() => document.hidden || tickAges(document), 1000);

// Nobody looks at a hidden tab: what htmx asks by the clock waits. What a person asked for goes on,
// and what a page asks for once, when it opens, too.
document.addEventListener("htmx:beforeRequest", (event) => {
  const { elt, requestConfig } = /** @type {CustomEvent} */ (event).detail;
  const isPoll = !requestConfig.triggeringEvent && /\bevery\b/.test(elt.getAttribute("hx-trigger") || "");
  if (document.hidden && isPoll) event.preventDefault();
});
