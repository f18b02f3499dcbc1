// Every page in both colour schemes, on a desktop and on a phone: accessible, without sideways scrolling, and with
// a picture of each.

import { after, test } from "node:test";
import assert from "node:assert/strict";
import { accessible, browser, DESKTOP, open, PHONE, say, shot, sideways, signIn, url } from "./browser.mjs";

after(() => browser.close());

const text = "Look at the **totals**:\n\n1. one\n2. two `code`\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```rs\nfn main() {}\n```\n\n> quoted [link](https://example.org)";
await say("gallery", text);
await say("gallery", "And the second message, about **totals** again.");
await say("gallery-edit", "to be changed");
await say("gallery-wait", "approve: git push origin main");
await say("gallery-ask", "ask: Which colour do you want? Red | Blue\n+ Which sizes? Small | Large");
const turn = (await say("gallery-turn", "a turn to look at")).turn_id;

const PAGES = {
  list: "/",
  search: "/?q=totals",
  new: "/new",
  conversation: "/c/gallery",
  why: "/c/gallery?why=4",
  waiting: "/c/gallery-wait",
  edit: "/c/gallery-edit/m/1/edit",
  remove: "/c/gallery-edit/m/1/remove",
  conversationSettings: "/c/gallery/settings",
  delete: "/c/gallery/delete",
  message: "/c/gallery/m/1",
  turn: `/c/gallery-turn/t/${turn}`,
  inbox: "/inbox",
  settings: "/settings",
  tokens: "/settings/tokens",
  sessions: "/settings/sessions",
  more: "/more",
  keys: "/keys",
  missing: "/c/kzzzz",
};

for (const [device, options] of [["desk", DESKTOP], ["phone", PHONE]]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`every page, ${device}, ${colorScheme}`, async () => {
      const { page: make, done } = await open({ ...options, colorScheme }, ["404"]);
      const page = await make();
      await page.goto(url + "/sign-in");
      const found = await accessible(page, "sign-in");
      await shot(page, `signin-${device}-${colorScheme}`);
      await signIn(page);
      for (const [name, path] of Object.entries(PAGES)) {
        await page.goto(url + path);
        found.push(...(await accessible(page, name)));
        if (await sideways(page)) found.push(`${name} scrolls sideways`);
        await shot(page, `${name}-${device}-${colorScheme}`);
      }
      if (device === "phone") {
        await page.setViewportSize({ width: 320, height: 640 });
        for (const name of ["list", "conversation", "inbox", "new"]) {
          await page.goto(url + PAGES[name]);
          if (await sideways(page)) found.push(`${name} scrolls sideways at 320`);
        }
      }
      assert.deepEqual(found, []);
      await done();
    });
  }
}
