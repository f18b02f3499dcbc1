// The list of conversations and the inbox, kept up to date; the counts in title and icon.

import { all, announce, morph, one, part } from "./dom.js";
import { lists } from "./live.js";

let waiting = -1;

/** @param {number} n */
function count(n) {
  document.title = document.title.replace(/^\(\d+\) /, "");
  if (n > 0) document.title = `(${n}) ${document.title}`;
  if (waiting >= 0 && n > waiting) announce(`${n} waiting for you`);
  waiting = n;
}

/** Fetches what lists show. */
async function refresh() {
  const list = one("[data-part=rows]");
  const inbox = one("[data-part=inbox]");
  if (inbox && !inbox.contains(document.activeElement)) {
    const fresh = one("[data-part=inbox]", (await part(location.pathname, "inbox")) ?? document);
    if (fresh && fresh !== inbox) morph(inbox, fresh);
  }
  const handle = one("[data-handle]")?.dataset.handle;
  const address = new URL(list?.dataset.address ?? "/", location.href);
  if (handle) address.searchParams.set("open", handle);
  const got = await part(address.pathname + address.search, "rows");
  const rows = got && one("[data-part=rows]", got);
  if (!rows) return;
  const n = Number(rows.dataset.waiting ?? 0);
  count(n);
  for (const place of all("[data-waiting]:not(section)")) {
    if (n === 0) place.replaceChildren();
    else {
      const badge = document.createElement("span");
      badge.className = "badge";
      badge.textContent = String(n);
      place.replaceChildren(badge);
    }
  }
  if (!list || list.contains(document.activeElement)) return;
  morph(list, rows);
}

export function start() {
  waiting = Number(one("section[data-waiting]")?.dataset.waiting ?? -1);
  const soon = () => void refresh().catch(() => {});
  lists(soon);
  document.addEventListener("visibilitychange", () => document.hidden || soon());
}
