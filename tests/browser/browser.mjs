// One browser for all tests. A page of a test fails it on console errors, refused content and failed requests.

import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import assert from "node:assert/strict";

const modules = createRequire(process.env.REJOIN_BROWSER_MODULES + "/");
const { chromium } = modules("playwright-core");
const axe = readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");

export const url = process.env.REJOIN_URL;
export const token = process.env.REJOIN_TOKEN;
export const workdir = process.env.REJOIN_WORKDIR;
const shots = process.env.REJOIN_SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

export const browser = await chromium.launch({
  executablePath: process.env.REJOIN_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
});

export const DESKTOP = { viewport: { width: 1440, height: 900 } };
export const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

/** Opens a context whose pages are watched. `allowed` are texts of expected console errors. */
export async function open(options = {}, allowed = []) {
  const context = await browser.newContext({ ...DESKTOP, ...options });
  const problems = [];
  context.on("console", (message) => {
    const text = `${message.text()} ${message.location().url}`;
    if (message.type() === "error" && !allowed.some((known) => text.includes(known))) problems.push(text);
  });
  context.on("weberror", (error) => problems.push(String(error.error())));
  context.on("requestfailed", (request) => {
    const why = request.failure()?.errorText ?? "";
    // A page that is left ends its requests.
    if (!why.includes("ERR_ABORTED") && !allowed.some((known) => why.includes(known))) problems.push(`${request.url()} ${why}`);
  });
  return {
    context,
    page: () => context.newPage(),
    done: async () => {
      await context.close();
      assert.deepEqual(problems, []);
    },
  };
}

export async function signIn(page, secret = token) {
  await page.goto(url + "/sign-in");
  await page.getByLabel("Token").fill(secret);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL((at) => !at.pathname.startsWith("/sign-in"));
}

/** Runs axe on the page. It is no part of the page's own policy, so it is evaluated from outside. */
export async function accessible(page, name) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const result = await axe.run(document, { resultTypes: ["violations"] });
    return result.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ") + " " + (node.any[0]?.message ?? "")).slice(0, 4).join(" | ")}`);
  });
  return found.map((one) => `${name}: ${one}`);
}

/** True if the page scrolls sideways. */
export const sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1);

export async function shot(page, name) {
  if (shots) await page.screenshot({ path: `${shots}/${name}.png` });
}

/** Sends a request to the API with the token. */
export async function api(method, path, body) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  assert.ok(response.ok, `${path} ${response.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

/** Sends a message with the demo agent, and waits for the answer or a question. */
export const say = (key, text) =>
  api("POST", "/api/send?wait=true", { key, text, agent: "demo", workdir, permission: "edit" });
