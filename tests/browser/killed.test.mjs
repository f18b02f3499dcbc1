// The daemon is killed while a turn runs: the page says so, and recovers by itself.

import { after, test } from "node:test";
import { spawn } from "node:child_process";
import assert from "node:assert/strict";
import { api, browser, open, say, signIn, url, workdir } from "./browser.mjs";

let next;
after(async () => {
  next?.kill();
  await browser.close();
});

test("after kill -9 of the daemon nothing is lost and nothing doubled", async () => {
  await say("killed", "first: guava");
  const { page: make, done } = await open({}, ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "net::ERR"]);
  const page = await make();
  await signIn(page);
  await page.goto(url + "/c/killed");
  await page.locator("#say").fill("wait 4s, then note feijoa");
  await page.keyboard.press("Control+Enter");
  await page.locator(".reply[aria-busy]").waitFor();
  process.kill(Number(process.env.REJOIN_PID), "SIGKILL");
  await page.getByText("Connection lost").waitFor();
  next = spawn(process.env.REJOIN_BIN, ["serve", "--listen", new URL(url).host], { cwd: workdir, stdio: "ignore" });
  await page.waitForFunction(() => !document.querySelector("[aria-busy]") && document.querySelector("#m4"), undefined, { timeout: 60_000 });
  await page.getByText("Connection lost").waitFor({ state: "hidden" });
  assert.equal(await page.locator("article.turn").count(), 2);
  assert.equal(await page.locator(".ask .prose", { hasText: "feijoa" }).count(), 1);
  assert.match(await page.locator(".reply .prose").last().innerText(), /guava/);
  const whole = await api("GET", "/api/conversations/killed");
  assert.equal(whole.messages.length, 4);
  await done();
});
