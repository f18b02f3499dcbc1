// The composer: drafts, the forecast, files, and messages that appear at once and are sent exactly once.

import { announce, one, part, post } from "./dom.js";
import { refresh } from "./talk.js";

/** @type {{name: string, text: string}[]} */
let files = [];
const MOST = 1 << 20;

/** @param {string} name */
const draft = (name) => `rejoin-draft-${name}`;

/** @param {HTMLFormElement} form @param {string} name @returns {string} */
const value = (form, name) => String(new FormData(form).get(name) ?? "");

/** @param {HTMLFormElement} form @param {string} name */
async function forecast(form, name) {
  const place = one("[data-forecast]", form);
  if (!place || one("[data-flow]")?.dataset.state !== "idle") return;
  const query = new URLSearchParams({ as: value(form, "agent"), model: value(form, "model") });
  if (value(form, "fresh")) query.set("fresh", "1");
  try {
    const fresh = await part(`/c/${name}?${query}`, "forecast");
    const line = fresh && one("[data-forecast]", fresh);
    if (line) one("[data-forecast]", form)?.replaceWith(line);
  } catch {
    // The line stays as it is.
  }
}

/** @param {string} text @param {string} key @returns {HTMLElement} */
function pending(text, key) {
  const article = document.createElement("article");
  article.className = "turn queued pending";
  article.dataset.key = key;
  const ask = document.createElement("div");
  ask.className = "ask";
  const by = document.createElement("div");
  by.className = "by";
  const tag = document.createElement("span");
  tag.className = "tag";
  tag.textContent = "Sending";
  by.append(tag);
  const prose = document.createElement("div");
  prose.className = "prose";
  prose.dir = "auto";
  const line = document.createElement("p");
  line.textContent = text;
  prose.append(line);
  ask.append(by, prose);
  article.append(ask);
  return article;
}

/** Sends a message until the daemon has it. The key makes it run once. @param {string} id @param {any} body
 * @param {string} key @param {HTMLElement} shown @param {(problem: string) => void} refused */
async function deliver(id, body, key, shown, refused) {
  for (let wait = 1; ; wait = Math.min(wait * 2, 15)) {
    try {
      const { ok, data } = await post(`/api/conversations/${id}/messages`, body, key);
      if (ok) {
        shown.dataset.turn = data.turn_id;
        announce("Sent");
        await refresh("tail");
        return;
      }
      shown.remove();
      refused([data.detail ?? "The message was not sent.", data.try].filter(Boolean).join(" Next: "));
      return;
    } catch {
      const tag = one(".tag", shown);
      if (tag) tag.textContent = "Not sent yet";
      await new Promise((again) => {
        setTimeout(again, wait * 1000);
        window.addEventListener("online", again, { once: true });
      });
    }
  }
}

/** @param {HTMLFormElement} form @param {File[]} given */
async function attach(form, given) {
  for (const file of given) {
    const text = file.size > MOST ? "\0" : await file.text();
    if (text.includes("\0")) problem(form, `${file.name} is no text file of at most 1 MB; it was not attached.`);
    else files.push({ name: file.name, text });
  }
  const place = one("[data-files]", form);
  if (!place) return;
  place.hidden = files.length === 0;
  place.replaceChildren(...files.map((file) => {
    const tag = document.createElement("button");
    tag.type = "button";
    tag.className = "tag";
    tag.textContent = `${file.name} ×`;
    tag.setAttribute("aria-label", `Remove ${file.name}`);
    tag.addEventListener("click", () => {
      files = files.filter((other) => other !== file);
      void attach(form, []);
    });
    return tag;
  }));
}

/** @param {HTMLFormElement} form @param {string} text */
function problem(form, text) {
  const line = one("[data-forecast]", form);
  const say = line && one(".say", line);
  if (!line || !say) return;
  line.className = "forecast f-bad";
  say.textContent = text;
}

/** @param {HTMLFormElement} form */
function talk(form) {
  const name = one("[data-handle]")?.dataset.handle ?? "";
  const id = one("[data-conversation]")?.dataset.conversation ?? "";
  const text = /** @type {HTMLTextAreaElement} */ (one("textarea", form));
  const send = one("[data-send]", form);
  if (!text.value) text.value = localStorage.getItem(draft(name)) ?? "";
  let typed = 0;
  text.addEventListener("input", () => {
    clearTimeout(typed);
    typed = window.setTimeout(() => {
      if (text.value) localStorage.setItem(draft(name), text.value);
      else localStorage.removeItem(draft(name));
    }, 300);
  });
  let looked = false;
  text.addEventListener("input", () => {
    if (looked) return;
    looked = true;
    setTimeout(() => void forecast(form, name), 400);
  });
  form.addEventListener("change", (event) => {
    const input = /** @type {HTMLInputElement} */ (event.target);
    if (input.type === "file") {
      void attach(form, Array.from(input.files ?? []));
      input.value = "";
    } else void forecast(form, name);
  });
  text.addEventListener("paste", (event) => {
    const given = Array.from(event.clipboardData?.files ?? []);
    if (given.length) {
      event.preventDefault();
      void attach(form, given);
    }
  });
  form.addEventListener("dragover", (event) => event.preventDefault());
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    void attach(form, Array.from(event.dataTransfer?.files ?? []));
  });
  const clip = one("[data-attach]", form);
  if (clip) clip.hidden = false;
  let state = one("[data-flow]")?.dataset.state;
  document.addEventListener("rejoin:updated", () => {
    const now = one("[data-flow]")?.dataset.state;
    if (send) send.textContent = now === "idle" ? "Send" : "Queue";
    if (now === state) return;
    state = now;
    if (now === "idle") void forecast(form, name);
    else {
      const say = one("[data-forecast] .say", form);
      if (say) say.textContent = now === "waiting" ? "The agent waits for an answer." : "A turn runs. Your message waits and runs next.";
    }
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const words = text.value;
    if (!words.trim() && files.length === 0) return;
    const key = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    /** @type {any} */
    const body = { text: words, confirm: true, attachments: files };
    for (const field of ["agent", "model", "permission"]) if (value(form, field)) body[field] = value(form, field);
    if (value(form, "fresh")) body.fresh_session = true;
    const shown = pending(words, key);
    one("[data-flow]")?.append(shown);
    one(".stream")?.scrollTo({ top: 0 });
    text.value = "";
    files = [];
    void attach(form, []);
    localStorage.removeItem(draft(name));
    /** @type {HTMLInputElement | null} */ (form.querySelector("[name=fresh]"))?.removeAttribute("checked");
    void deliver(id, body, key, shown, (why) => {
      text.value = text.value ? `${words}\n${text.value}` : words;
      problem(form, why);
    });
  });
  void forecast(form, name);
}

export function start() {
  for (const area of document.querySelectorAll("[data-composer] textarea, [data-new] textarea")) {
    area.addEventListener("keydown", (event) => {
      const key = /** @type {KeyboardEvent} */ (event);
      if (key.key === "Enter" && (key.ctrlKey || key.metaKey)) {
        event.preventDefault();
        /** @type {HTMLTextAreaElement} */ (area).form?.requestSubmit();
      }
    });
  }
  const form = /** @type {HTMLFormElement | null} */ (one("[data-composer]"));
  if (form) talk(form);
}
