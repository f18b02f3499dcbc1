// A turn of a real agent while it streams: in two tabs, and in one that joins late.

import { after, test } from "node:test";
import assert from "node:assert/strict";
import { api, browser, open, signIn, url, workdir } from "./browser.mjs";

after(() => browser.close());

const WORDS = Array.from({ length: 40 }, (_, n) => `word${String(n).padStart(2, "0")}`);

/** Counts each word in the answer of the page. */
const counts = (page) => page.evaluate((words) => {
  const text = Array.from(document.querySelectorAll(".reply .prose")).map((prose) => prose.textContent).join("\n");
  return words.map((word) => text.split(word).length - 1);
}, WORDS);

test("text arrives in pieces, each once, without a jump", async () => {
  const { context, page: make, done } = await open();
  const one = await make();
  await signIn(one);
  const sent = await api("POST", "/api/send", { key: "stream", text: "say the words", workdir });
  const shifts = (page) => page.evaluate(() => {
    window.shifted = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.shifted += entry.value;
    }).observe({ type: "layout-shift", buffered: false });
  });
  const two = await context.newPage();
  for (const page of [one, two]) {
    await page.goto(url + "/c/stream");
    await shifts(page);
  }
  const live = (page) => page.locator("[data-live]").innerText().catch(() => "");
  await one.waitForFunction(() => document.querySelector("[data-live]")?.textContent.includes("word01"));
  const early = await live(one);
  const late = await context.newPage();
  await late.goto(url + "/c/stream");
  assert.ok(!early.includes("word39"), early);
  await one.waitForFunction(() => document.querySelector("[data-live]")?.textContent.includes("word20"));
  for (const page of [one, two, late]) {
    await page.waitForFunction(() => !document.querySelector("[aria-busy]") && document.querySelector("#m2"), undefined, { timeout: 30_000 });
    assert.deepEqual(await counts(page), WORDS.map(() => 1));
  }
  for (const page of [one, two]) {
    const shifted = await page.evaluate(() => window.shifted);
    assert.ok(shifted < 0.02, `shifted by ${shifted}`);
  }
  const turn = await api("GET", `/api/turns/${sent.turn_id}`);
  assert.equal(turn.status, "succeeded");
  await done();
});
