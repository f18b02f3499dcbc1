// Small helpers: elements, requests to the daemon, and updates of one part of a page.

/** @param {string} selector @param {ParentNode} [root] @returns {HTMLElement | null} */
export const one = (selector, root = document) => root.querySelector(selector);

/** @param {string} selector @param {ParentNode} [root] @returns {HTMLElement[]} */
export const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

const csrf = document.body.dataset.csrf ?? "";

/** @type {{createHTML(text: string): any}} */
const trusted = /** @type {any} */ (window).trustedTypes?.createPolicy("rejoin", {
  /** @param {string} text */
  createHTML: (text) => text,
}) ?? { createHTML: (/** @type {string} */ text) => text };

/** Parses HTML that this daemon has rendered. @param {string} html @returns {DocumentFragment} */
function parse(html) {
  const holder = document.createElement("template");
  holder.innerHTML = trusted.createHTML(html);
  return holder.content;
}

/** Fetches a part of a page. Null if the browser is signed out: the page is loaded again.
 * @param {string} url @param {string} name @returns {Promise<DocumentFragment | null>} */
export async function part(url, name) {
  const response = await fetch(url, { headers: { accept: `text/html; part=${name}` }, redirect: "manual" });
  if (response.type === "opaqueredirect") {
    location.reload();
    return null;
  }
  if (!response.ok) throw new Error(`${response.status}`);
  return parse(await response.text());
}

/** Sends JSON to the API. @param {string} path @param {unknown} body @param {string} [key]
 * @returns {Promise<{ok: boolean, status: number, data: any}>} */
export async function post(path, body, key) {
  /** @type {Record<string, string>} */
  const headers = { "content-type": "application/json", "x-csrf-token": csrf };
  if (key) headers["idempotency-key"] = key;
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  const data = await response.json().catch(() => ({}));
  return { ok: response.ok, status: response.status, data };
}

/** Tells people who listen to the page. @param {string} text */
export function announce(text) {
  const place = one("[data-announce]");
  if (place) place.textContent = text;
}

/** Key under which an element is found again. @param {Node} node @returns {string} */
function key(node) {
  if (!(node instanceof Element)) return "";
  return node.getAttribute("data-turn") || node.getAttribute("data-key") || node.getAttribute("data-question") || node.id;
}

/** Makes an element like another one, and keeps what is equal: focus, open folds and typed text stay.
 * @param {Element} from @param {Element} to */
export function morph(from, to) {
  for (const { name } of Array.from(from.attributes)) {
    if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
  }
  for (const { name, value } of Array.from(to.attributes)) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  if (from instanceof HTMLInputElement || from instanceof HTMLTextAreaElement) return;
  children(from, to);
}

/** @param {Element} from @param {Element} to */
function children(from, to) {
  /** @type {Map<string, Element>} */
  const keyed = new Map();
  for (const child of Array.from(from.children)) if (key(child)) keyed.set(key(child), child);
  let at = from.firstChild;
  for (const wanted of Array.from(to.childNodes)) {
    const known = keyed.get(key(wanted));
    if (known && known.nodeName === wanted.nodeName) {
      if (known === at) at = at.nextSibling;
      else from.insertBefore(known, at);
      morph(known, /** @type {Element} */ (wanted));
      continue;
    }
    // The next node of the same kind without a key of its own is the same one.
    if (at && at.nodeName === wanted.nodeName && !key(at) && !key(wanted)) {
      const next = at.nextSibling;
      if (at instanceof Element && wanted instanceof Element) morph(at, wanted);
      else if (at.textContent !== wanted.textContent) at.textContent = wanted.textContent;
      at = next;
      continue;
    }
    from.insertBefore(document.importNode(wanted, true), at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** Age of a time in short. @param {string} at @returns {string} */
function age(at) {
  const seconds = Math.max(0, (Date.now() - Date.parse(at)) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h`;
  if (seconds < 604800) return `${Math.floor(seconds / 86400)}d`;
  return at.slice(0, 10);
}

/** Keeps ages of times right. */
export function tick() {
  for (const time of all("time[datetime]")) {
    const text = age(time.getAttribute("datetime") ?? "");
    if (time.textContent !== text) time.textContent = text;
  }
}
