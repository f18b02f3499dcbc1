// An open conversation: streamed text, turns that change, the drawer, and long messages.

import { all, announce, morph, one, part } from "./dom.js";
import { stream } from "./live.js";

/** Text of turns that runs ahead of the page: event numbers and pieces. @type {Map<string, [number, string][]>} */
const ahead = new Map();
let seq = 0;

/** @param {string} turn @returns {HTMLElement | null} */
const article = (turn) => one(`article[data-turn="${CSS.escape(turn)}"]`);

/** Appends pieces of text that the page does not contain yet. @param {string} turn */
function append(turn) {
  const place = article(turn);
  const live = place && one("[data-live]", place);
  const pieces = ahead.get(turn);
  if (!live || !pieces) return;
  const known = Number(place.dataset.seq ?? 0);
  const fresh = pieces.filter(([at]) => at > known);
  ahead.set(turn, []);
  for (const [at, text] of fresh) {
    live.append(text);
    place.dataset.seq = String(Math.max(at, Number(place.dataset.seq ?? 0)));
  }
  // Kept for the next update of the turn, which may be older than these pieces.
  kept.set(turn, [...(kept.get(turn) ?? []), ...fresh]);
}

/** Pieces that are shown, until the daemon's own text contains them. @type {Map<string, [number, string][]>} */
const kept = new Map();

let frame = 0;
/** @type {Set<string>} */
const dirty = new Set();

/** @param {string} turn */
function paint(turn) {
  dirty.add(turn);
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    for (const one of dirty) append(one);
    dirty.clear();
  });
}

/** Puts what the daemon renders in the place of what is shown. @param {ParentNode} fresh @param {boolean} whole */
function update(fresh, whole) {
  const flow = one("[data-flow]");
  const wanted = one("[data-flow]", fresh);
  if (!flow || !wanted) return;
  if (whole) morph(flow, wanted);
  else {
    // A message that was only sent from here has no turn yet.
    let after = /** @type {Element | null} */ (null);
    for (const turn of all("article.turn", wanted)) {
      const known = turn.dataset.turn ? article(turn.dataset.turn) : document.getElementById(turn.id)?.closest("article");
      if (known) {
        morph(known, turn);
        after = known;
      } else {
        const made = document.importNode(turn, true);
        if (after) after.after(made);
        else flow.append(made);
        after = made;
      }
    }
    const still = new Set(all("article.turn", wanted).map((turn) => turn.dataset.turn));
    for (const queued of all("article.queued", flow)) if (!still.has(queued.dataset.turn)) queued.remove();
    for (const last of all("article.last", flow)) {
      if (!all("article.last", wanted).some((turn) => turn.dataset.turn === last.dataset.turn)) last.classList.remove("last");
    }
    one(".nothing", flow)?.remove();
  }
  flow.dataset.state = wanted.dataset.state;
  for (const turn of all("article.turn", flow)) {
    const id = turn.dataset.turn ?? "";
    const pieces = kept.get(id)?.filter(([at]) => at > Number(turn.dataset.seq ?? 0));
    kept.delete(id);
    if (pieces?.length) {
      ahead.set(id, [...pieces, ...(ahead.get(id) ?? [])]);
      append(id);
    }
  }
  document.dispatchEvent(new CustomEvent("rejoin:updated"));
}

let busy = false;
let again = /** @type {"" | "tail" | "stream"} */ ("");

/** Fetches the last turns, or all of the page. @param {"tail" | "stream"} what */
export async function refresh(what) {
  if (busy) {
    again = again === "stream" ? "stream" : what;
    return;
  }
  busy = true;
  try {
    const address = new URL(location.href);
    const fresh = await part(address.pathname + (what === "stream" ? address.search : ""), what);
    if (fresh) update(fresh, what === "stream");
  } catch {
    again ||= what;
    await new Promise((wait) => setTimeout(wait, 1000));
  }
  busy = false;
  if (again) {
    const next = again;
    again = "";
    void refresh(next);
  }
}

let timer = 0;
/** @param {"tail" | "stream"} what */
function soon(what) {
  if (what === "stream") return void refresh("stream");
  timer ||= window.setTimeout(() => {
    timer = 0;
    void refresh("tail");
  }, 60);
}

/** @param {any} event */
function told(event) {
  if (event.seq <= seq) return;
  seq = event.seq;
  const turn = event.turn_id ?? "";
  if (event.type === "text.delta") {
    ahead.set(turn, [...(ahead.get(turn) ?? []), [event.seq, event.text]]);
    paint(turn);
    return;
  }
  if (event.type === "turn.ended") announce(`The turn ${event.status}`);
  if (event.type === "question" || event.type === "approval") announce("The agent waits for an answer");
  soon(event.type === "history.changed" ? "stream" : "tail");
}

/** Opens the explanation of a turn. @param {string} href */
async function why(href) {
  const fresh = await part(href, "why");
  const drawer = fresh && one("#why", fresh);
  const panes = one(".panes");
  if (!drawer || !panes) return;
  one("#why")?.remove();
  panes.append(drawer);
  panes.classList.add("with-drawer");
  one("#why")?.focus();
}

/** Closes the explanation. @returns {boolean} */
export function close() {
  const drawer = one("#why");
  if (!drawer) return false;
  drawer.remove();
  one(".panes")?.classList.remove("with-drawer");
  if (opener?.isConnected) opener.focus();
  return true;
}

/** @type {HTMLElement | null} */
let opener = null;

/** @param {MouseEvent} event */
function clicked(event) {
  const target = event.target instanceof Element ? event.target : null;
  const link = /** @type {HTMLAnchorElement | null} */ (target?.closest("a"));
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (link.dataset.why) {
    event.preventDefault();
    opener = link;
    void why(link.href).catch(() => location.assign(link.href));
  } else if (link.hasAttribute("data-close")) {
    event.preventDefault();
    close();
  } else if (link.hasAttribute("data-whole")) {
    event.preventDefault();
    const prose = link.closest("p")?.parentElement?.querySelector(".prose");
    void part(link.href, "message").then((fresh) => {
      if (!fresh || !prose) return;
      prose.replaceChildren(fresh);
      link.parentElement?.remove();
    });
  }
}

/** Shows the way back to the end while new text arrives out of sight. */
function jump() {
  const scroller = one(".stream");
  const pill = one("[data-jump]");
  if (!scroller || !pill) return;
  const away = () => scroller.scrollTop < -200;
  scroller.addEventListener("scroll", () => {
    if (!away()) pill.hidden = true;
  }, { passive: true });
  document.addEventListener("rejoin:updated", () => {
    pill.hidden = !away();
  });
  pill.addEventListener("click", (event) => {
    event.preventDefault();
    scroller.scrollTo({ top: 0 });
  });
}

export function start() {
  const flow = one("[data-flow]");
  const id = one("[data-conversation]")?.dataset.conversation;
  if (!flow || !id) return;
  document.addEventListener("click", clicked);
  jump();
  // A page of earlier messages does not change at its end.
  if (new URLSearchParams(location.search).has("before")) return;
  seq = Number(flow.dataset.seq ?? 0);
  const open = stream(() => `/api/conversations/${id}/events?after=${seq}`, told);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) open.close();
    else open.again();
  });
}
