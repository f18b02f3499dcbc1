// Script of the dashboard. Every page works without it; it adds live updates, keys and drafts.

import { one, tick } from "./dom.js";
import * as composer from "./composer.js";
import * as keys from "./keys.js";
import * as list from "./list.js";
import * as talk from "./talk.js";

const link = /** @type {HTMLFormElement | null} */ (one("[data-pair]"));
if (link) {
  // `rejoin pair --open` asks for this: the person has asked to sign in already.
  if (location.hash === "#open") link.requestSubmit();
} else if (document.body.dataset.csrf) {
  talk.start();
  composer.start();
  list.start();
  keys.start();
}
tick();
setInterval(tick, 30_000);
