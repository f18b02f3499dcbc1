// Live events: one stream per open conversation, and one for the lists of all tabs of this browser.

import { all, one } from "./dom.js";

const WAITS = [1, 2, 4, 8, 15];

/** Stream that continues after its last event, and says so while it is lost.
 * @param {() => string} url @param {(event: any) => void} told @param {() => void} [lost] */
export function stream(url, told, lost) {
  /** @type {EventSource | null} */
  let source = null;
  let tries = 0;
  let timer = 0;
  let late = 0;
  const open = () => {
    clearTimeout(timer);
    source?.close();
    const opened = new EventSource(url());
    source = opened;
    opened.onopen = () => {
      tries = 0;
      clearTimeout(late);
      late = 0;
      offline(false);
    };
    opened.onerror = () => {
      opened.close();
      if (source !== opened) return;
      source = null;
      const wait = WAITS[Math.min(tries, WAITS.length - 1)] ?? 15;
      tries += 1;
      lost?.();
      late ||= window.setTimeout(() => offline(true), 2000);
      timer = window.setTimeout(open, wait * 1000);
    };
    for (const kind of KINDS) opened.addEventListener(kind, (event) => told(JSON.parse(/** @type {MessageEvent} */ (event).data)));
  };
  const again = () => {
    if (!source) open();
  };
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  window.addEventListener("online", again);
  one("[data-reconnect]")?.addEventListener("click", again);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", (event) => event.persisted && again());
  open();
  return { close, again };
}

const KINDS = [
  "turn.accepted", "turn.decided", "turn.started", "turn.ended", "text.delta", "text", "tool.call", "tool.result",
  "question", "approval", "answered", "escalation", "todo", "compacted", "notice", "history.changed",
  "conversation.created", "conversation.changed", "conversation.deleted",
];

/** Kinds of events that change a row of the list, or the inbox. */
export const OF_LISTS = ["turn.accepted", "turn.ended", "question", "approval", "answered", "escalation",
  "history.changed", "conversation.created", "conversation.changed", "conversation.deleted"];

/** @param {boolean} is */
function offline(is) {
  for (const bar of all("[data-offline]")) bar.hidden = !is;
  document.documentElement.toggleAttribute("data-is-offline", is);
}

/** Calls back when a list may have changed. One tab holds the stream and tells the others.
 * @param {() => void} changed */
export function lists(changed) {
  const others = new BroadcastChannel("rejoin-lists");
  let timer = 0;
  const soon = () => {
    if (timer) return;
    timer = window.setTimeout(() => {
      timer = 0;
      changed();
    }, 150);
  };
  others.onmessage = soon;
  const lead = () => new Promise(() => {
    stream(() => "/api/events?types=" + OF_LISTS.join(","), (event) => {
      if (!OF_LISTS.includes(event.type)) return;
      soon();
      others.postMessage(event.type);
    });
  });
  if (navigator.locks) void navigator.locks.request("rejoin-lists", lead);
  else void lead();
}
