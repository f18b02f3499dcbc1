// Keys. Each is also a link or button of the page.

import { all, one } from "./dom.js";
import { close } from "./talk.js";

/** @param {number} step */
function move(step) {
  const rows = all(one("[data-view=inbox]") ? ".askcard" : ".rows .row");
  const at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement?.closest(".row, .askcard")));
  const current = rows.findIndex((row) => row.hasAttribute("aria-current"));
  const next = rows[(at < 0 ? current : at) + step];
  if (!next) return;
  if (!next.matches("a")) next.tabIndex = -1;
  next.focus();
}

/** @param {string} decision */
function decide(decision) {
  const card = document.activeElement?.closest(".askcard") ?? one(".askcard");
  /** @type {HTMLButtonElement | null} */ (card?.querySelector(`.answer [value=${decision}]`) ?? null)?.click();
}

/** @type {Record<string, () => void>} */
const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  "/": () => one("input[name=q]")?.focus(),
  n: () => location.assign("/new"),
  r: () => one("[data-composer] textarea")?.focus(),
  v: () => all("[data-why]").at(-1)?.click(),
  x: () => {
    const folds = /** @type {HTMLDetailsElement[]} */ (all("details.tool"));
    const open = folds.every((fold) => fold.open);
    for (const fold of folds) fold.open = !open;
  },
  u: () => one("[data-undo]")?.click(),
  e: () => all("article.turn .acts a[href$='/edit']").at(-1)?.click(),
  a: () => decide("allow"),
  d: () => decide("deny"),
  "?": () => location.assign("/keys"),
};

/** @type {Record<string, string>} */
const GO = { c: "/", i: "/inbox", s: "/settings" };
let went = 0;

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.key === "Escape") {
    const menu = /** @type {HTMLDetailsElement | null} */ (one("details.drop[open]"));
    if (menu) menu.open = false;
    else if (!close() && document.activeElement instanceof HTMLElement) document.activeElement.blur();
    return;
  }
  if ((event.ctrlKey || event.metaKey) && event.key === ".") {
    const button = one("[data-stop] button");
    if (button && confirm("Stop the running turn?")) button.click();
    return;
  }
  const target = event.target instanceof Element ? event.target : null;
  if (event.ctrlKey || event.metaKey || event.altKey || target?.closest("input, textarea, select, [contenteditable]")) return;
  if (Date.now() - went < 1000 && GO[event.key]) {
    location.assign(GO[event.key] ?? "/");
    return;
  }
  if (event.key === "g") {
    went = Date.now();
    return;
  }
  if (event.key === "End") one(".stream")?.scrollTo({ top: 0 });
  const act = KEYS[event.key];
  if (!act || localStorage.getItem("rejoin-keys") === "off") return;
  event.preventDefault();
  act();
}

export function start() {
  const choice = /** @type {HTMLInputElement | null} */ (one("[data-keys]"));
  if (choice) {
    choice.checked = localStorage.getItem("rejoin-keys") !== "off";
    choice.addEventListener("change", () => localStorage.setItem("rejoin-keys", choice.checked ? "on" : "off"));
  }
  document.addEventListener("keydown", pressed);
}
