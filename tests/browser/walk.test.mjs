// The walks of a person through the dashboard, in a real browser.

import { after, test } from "node:test";
import assert from "node:assert/strict";
import { api, browser, open, say, signIn, token, url, workdir } from "./browser.mjs";

after(() => browser.close());

test("first visit: a wrong token is refused in words, the demo agent answers after one click", async () => {
  const { page: make, done } = await open({}, ["/sign-in"]);
  const page = await make();
  await page.goto(url + "/?state=idle");
  assert.match(page.url(), /\/sign-in\?next=/);
  await page.getByLabel("Token").fill("rejoin_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("does not know that token").waitFor();
  await signIn(page);
  await page.goto(url + "/");
  await page.getByRole("heading", { name: "No conversations yet" }).waitFor();
  await page.getByRole("button", { name: "Talk to the demo agent" }).click();
  await page.locator(".reply:not([aria-busy]) .prose").waitFor();
  assert.match(await page.locator(".chip").first().innerText(), /started/);
  await done();
});

test("an idle conversation is continued: both tabs show the message and its answer once", async () => {
  await say("two-tabs", "the word is zanzibar");
  const { context, page: make, done } = await open();
  const one = await make();
  await signIn(one);
  await one.goto(url + "/c/two-tabs");
  const two = await context.newPage();
  await two.goto(url + "/c/two-tabs");
  await one.locator("#say").fill("wait 1s, then also note quokka");
  await one.keyboard.press("Control+Enter");
  await Promise.all([one, two].map((page) => page.locator(".reply[aria-busy]").waitFor()));
  for (const page of [one, two]) {
    await page.locator("#m4").waitFor();
    await page.waitForFunction(() => !document.querySelector("[aria-busy]"));
    assert.equal(await page.locator(".ask .prose", { hasText: "quokka" }).count(), 1);
    assert.equal(await page.locator("article.turn").count(), 2);
    assert.match(await page.locator(".chip").last().innerText(), /^resumed/);
    assert.match(await page.locator(".reply .prose").last().innerText(), /zanzibar/);
  }
  assert.equal(await one.locator("#say").inputValue(), "");
  // A third one that comes late sees the same.
  const late = await context.newPage();
  await late.goto(url + "/c/two-tabs");
  assert.equal(await late.locator("article.turn").count(), 2);
  await done();
});

test("the explanation opens and closes by key, and has an address of its own", async () => {
  const { page: make, done } = await open();
  const page = await make();
  await signIn(page);
  await page.goto(url + "/c/two-tabs");
  await page.keyboard.press("v");
  await page.locator("#why").waitFor();
  assert.match(await page.locator("#why h2").innerText(), /Resumed/);
  await page.keyboard.press("Escape");
  await page.locator("#why").waitFor({ state: "detached" });
  await page.goto(url + "/c/two-tabs?why=4");
  assert.match(await page.locator("#why h2").innerText(), /Resumed/);
  await page.getByRole("link", { name: "Open the turn" }).click();
  await page.getByRole("heading", { name: "Attempts" }).waitFor();
  assert.match(await page.locator("main").innerText(), /turn\.decided/);
  await done();
});

test("an approval is answered once, and leaves the other tab and the inbox", async () => {
  await say("approvals", "approve: touch kiwi");
  const { context, page: make, done } = await open();
  const inbox = await make();
  await signIn(inbox);
  await inbox.goto(url + "/inbox");
  await inbox.getByText("touch kiwi", { exact: true }).waitFor();
  assert.match(await inbox.title(), /^\(1\)/);
  const talk = await context.newPage();
  await talk.goto(url + "/c/approvals");
  await talk.getByRole("button", { name: "Allow once" }).click();
  await talk.waitForFunction(() => !document.querySelector("[aria-busy]") && document.querySelector("#m2"));
  assert.equal(await talk.getByRole("button", { name: "Allow once" }).count(), 0);
  await inbox.getByText("Nothing waits for you").waitFor();
  assert.doesNotMatch(await inbox.title(), /^\(/);
  await done();
});

test("a question is answered with an option", async () => {
  await say("questions", "ask: Which colour? Red | Blue");
  const { page: make, done } = await open();
  const page = await make();
  await signIn(page);
  await page.goto(url + "/inbox");
  await page.getByRole("radio", { name: "Blue" }).check();
  await page.getByRole("button", { name: "Answer" }).click();
  await page.goto(url + "/c/questions");
  await page.locator(".reply .prose", { hasText: "Blue" }).waitFor();
  await done();
});

test("edit, undo, fork, retry and remove say their effect before their button", async () => {
  await say("changes", "first is papaya");
  await say("changes", "second is durian");
  const { page: make, done } = await open();
  const page = await make();
  await signIn(page);
  await page.goto(url + "/c/changes/m/1/edit");
  assert.match(await page.locator(".effects").innerText(), /demo[\s\S]*new session with the transcript/);
  await page.getByLabel("Text").fill("first is mango");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The message was changed").waitFor();
  assert.equal(await page.locator(".ask .prose", { hasText: "mango" }).count(), 1);
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await page.getByText("The last change was undone").waitFor();
  assert.equal(await page.locator(".ask .prose", { hasText: "papaya" }).count(), 1);
  await page.goto(url + "/c/changes/m/2/fork");
  await page.getByRole("button", { name: "Fork" }).click();
  await page.locator(".ask .prose", { hasText: "papaya" }).waitFor();
  assert.equal(await page.locator("article.turn").count(), 1);
  await page.goto(url + "/c/changes/m/3/remove");
  await page.getByText("Removes 2 messages").waitFor();
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByText("were removed").waitFor();
  assert.equal(await page.locator(".ask .prose", { hasText: "durian" }).count(), 0);
  await page.goto(url + "/c/changes/m/1/retry");
  await page.getByRole("button", { name: "Retry" }).click();
  await page.waitForFunction(() => document.querySelector("#m2") && !document.querySelector("[aria-busy]"));
  assert.equal(await page.locator("article.turn").count(), 1);
  await done();
});

test("a message that waits is shown, and withdrawn", async () => {
  const { page: make, done } = await open();
  const page = await make();
  await signIn(page);
  await say("queue", "hello");
  await page.goto(url + "/c/queue");
  await page.locator("#say").fill("wait 4s");
  await page.keyboard.press("Control+Enter");
  await page.locator(".reply[aria-busy]").waitFor();
  await page.locator("#say").fill("later: lychee");
  await page.getByRole("button", { name: "Queue" }).click();
  await page.locator("article.queued", { hasText: "lychee" }).getByRole("button", { name: "Withdraw" }).click();
  await page.waitForFunction(() => !document.body.innerText.includes("lychee"));
  await page.getByRole("button", { name: "Stop" }).click();
  await page.waitForFunction(() => !document.querySelector("[aria-busy]"));
  await done();
});

test("a message sent offline arrives once", async () => {
  const { context, page: make, done } = await open({}, ["ERR_INTERNET_DISCONNECTED", "net::ERR"]);
  const page = await make();
  await signIn(page);
  await say("offline", "hello");
  await page.goto(url + "/c/offline");
  await context.setOffline(true);
  await page.locator("#say").fill("sent while offline: rambutan");
  await page.keyboard.press("Control+Enter");
  await page.getByText("Not sent yet").waitFor();
  await context.setOffline(false);
  await page.locator("#m4").waitFor({ timeout: 20_000 });
  const whole = await api("GET", "/api/conversations/offline");
  assert.equal(whole.messages.filter((message) => message.text.includes("rambutan") && message.role === "user").length, 1);
  await page.waitForFunction(() => document.querySelectorAll("article.turn").length === 2);
  await done();
});

test("search finds a message and leads to it", async () => {
  const { page: make, done } = await open();
  const page = await make();
  await signIn(page);
  await page.keyboard.press("/");
  await page.keyboard.type("zanzibar");
  await page.keyboard.press("Enter");
  await page.locator(".row.hit mark").first().waitFor();
  await page.locator(".row.hit").first().click();
  await page.waitForURL(/#m\d/);
  await done();
});

test("the forecast changes with the agent and with a fresh session", async () => {
  const { page: make, done } = await open();
  const page = await make();
  await signIn(page);
  await page.goto(url + "/c/two-tabs");
  await page.getByText("Resumes the session of demo").waitFor();
  await page.getByLabel("Fresh session").check();
  await page.getByText("new session of demo with the transcript").waitFor();
  await done();
});

test("without script: sign in, send, answer, edit, search", async () => {
  await say("plain", "remember tamarind");
  const { page: make, done } = await open({ javaScriptEnabled: false });
  const page = await make();
  await signIn(page);
  await page.goto(url + "/c/plain");
  await page.locator("#say").fill("approve: ls papaya");
  await page.getByRole("button", { name: "Send" }).click();
  for (let tries = 0; tries < 50 && !(await page.getByRole("button", { name: "Allow once" }).count()); tries += 1) {
    await page.waitForTimeout(100);
    await page.goto(url + "/c/plain");
  }
  await page.getByRole("button", { name: "Allow once" }).click();
  for (let tries = 0; tries < 50 && !(await page.locator("#m4").count()); tries += 1) {
    await page.waitForTimeout(100);
    await page.goto(url + "/c/plain");
  }
  await page.goto(url + "/c/plain/m/1/edit");
  await page.getByLabel("Text").fill("remember soursop");
  await page.getByRole("button", { name: "Save" }).click();
  assert.equal(await page.locator(".ask .prose", { hasText: "soursop" }).count(), 1);
  await page.goto(url + "/?q=soursop");
  assert.equal(await page.locator(".row.hit mark").first().innerText(), "soursop");
  await done();
});

test("a form of another session, and one without its token, change nothing", async () => {
  const { page: make, done } = await open({}, ["403"]);
  const page = await make();
  await signIn(page);
  await page.goto(url + "/c/two-tabs");
  await page.evaluate(() => document.querySelectorAll("[name=csrf]").forEach((field) => { field.value = "x"; }));
  await page.evaluate(() => document.querySelector("form[action$='/undo']").submit());
  await page.getByText("nothing was changed").waitFor();
  const refused = await page.evaluate(async () => (await fetch("/api/conversations/two-tabs/undo", { method: "POST" })).status);
  assert.equal(refused, 403);
  await done();
});

test("signing out everywhere ends every browser and unused links", async () => {
  const made = await api("POST", "/api/tokens", { name: "phone", scope: "send" });
  const here = await open();
  const there = await open();
  const [one, two] = [await here.page(), await there.page()];
  await signIn(one, made.token);
  await one.goto(url + "/settings/sessions");
  await one.getByRole("button", { name: "Create a link" }).click();
  const link = await one.locator(".pair code").innerText();
  await two.goto(link);
  await two.getByRole("button", { name: "Sign in" }).click();
  await two.waitForURL(url + "/");
  // The link worked once.
  await one.goto(link);
  await one.getByText("was used before").waitFor();
  await one.goto(url + "/settings/sessions");
  await one.getByRole("button", { name: "Sign out everywhere" }).click();
  await one.waitForURL(/sign-in/);
  await two.goto(url + "/inbox");
  assert.match(two.url(), /sign-in/);
  await here.done();
  await there.done();
});

test("a token that may read sees everything and is offered nothing", async () => {
  const made = await api("POST", "/api/tokens", { name: "reader", scope: "read" });
  const { page: make, done } = await open();
  const page = await make();
  await signIn(page, made.token);
  await page.goto(url + "/c/two-tabs");
  assert.equal(await page.locator("#say").count(), 0);
  assert.equal(await page.locator(".acts").count(), 0);
  await done();
});

test("hostile words, titles and names are shown and never obeyed", async () => {
  const words = [
    "<script>window.hacked = 1</script>", "<img src=x onerror='window.hacked=1'>", "[x](javascript:window.hacked=1)",
    "![i](https://example.org/i.png)", "<!-- c --><style>body{display:none}</style>", "{{ 7*7 }} {% raw %}",
    "\u001b[31mred\u001b[0m \u202eevil", "<svg onload=window.hacked=1>", "<iframe srcdoc='<script>1</script>'>",
    "<a href='data:text/html,x'>d</a>", "| <b>a</b> |\n|-|\n| <img src=x> |", "```html\n<script>window.hacked=1</script>\n```",
  ];
  await api("POST", "/api/conversations", { key: "hostile", agent: "demo", workdir, title: "<img src=x onerror=window.hacked=1>\u202e" });
  await say("hostile", words.join("\n\n"));
  const { page: make, done } = await open();
  const page = await make();
  await signIn(page);
  await page.goto(url + "/c/hostile");
  await page.locator("#m2").waitFor();
  const found = await page.evaluate(() => ({
    hacked: window.hacked,
    bad: document.querySelectorAll(".prose script, .prose img, .prose iframe, .prose style, .prose svg, .prose [onerror], .prose [style]").length,
    links: Array.from(document.querySelectorAll(".prose a")).map((a) => a.protocol),
    title: document.querySelector("h1").textContent,
  }));
  assert.equal(found.hacked, undefined);
  assert.equal(found.bad, 0);
  assert.ok(found.links.every((protocol) => ["http:", "https:", "mailto:"].includes(protocol)), String(found.links));
  assert.match(found.title, /<img/);
  assert.match(await page.locator(".ask .prose").innerText(), /⟨U\+202E⟩evil/);
  await done();
});
