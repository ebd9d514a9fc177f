// What others write is shown harmlessly, and what happens to a conversation is seen on the screen.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ground } from "./ground.mjs";
import { PATIENCE_MS, openTalk, texts, until, waitForText, write } from "./harness.mjs";

const here = ground();

test("scripts, control characters and marks of direction in a body are words", async () => {
  const nasty = [
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "![picture](https://elsewhere.example/x.png)",
    "[click](javascript:window.hacked=1)",
    "<style>body{display:none}</style><iframe src='https://elsewhere.example'></iframe>",
    "bell \u0007 escape \u001b[31m back\u0008space",
    "invoice \u202Egnp.exe and \u2066hidden\u2069",
    "<a href='javascript:alert(1)'>x</a> <svg onload=alert(1)>",
  ];
  for (const body of nasty) await here.product.send("#nasty", body, { as: "ci" });
  await here.settled("nasty", nasty.length);
  await here.withPage(async (page) => {
    await openTalk(page, "#nasty");
    await page.waitForFunction((n) => document.querySelectorAll("article.msg[data-id]").length === n, nasty.length);
    const shown = await texts(page);
    assert.equal(shown[0], nasty[0]);
    assert.equal(shown[1], nasty[1]);
    assert.equal(shown[5], "bell \u2407 escape \u241b[31m back\u2408space");
    assert.equal(shown[6], "invoice [U+202E]gnp.exe and [U+2066]hidden[U+2069]");
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    const risky = await page.$$eval(".bd", (all) =>
      all.flatMap((body) => [...body.querySelectorAll("*")].filter((one) => !/^(P|A|BR|CODE|EM|STRONG)$/.test(one.tagName)).map((one) => one.tagName)),
    );
    assert.deepEqual(risky, []);
    const links = await page.$$eval(".bd a", (all) => all.map((one) => [one.getAttribute("href"), one.rel]));
    assert.deepEqual(links, [
      ["https://elsewhere.example/x.png", "noopener noreferrer nofollow"],
      [null, "noopener noreferrer nofollow"],
    ]);
  });
});

test("a long body is folded until one asks for all of it", async () => {
  await here.product.send("#dump", Array.from({ length: 400 }, (_, line) => `line ${line}`).join("\n"), { as: "ci" });
  await here.settled("dump", 1);
  await here.withPage(async (page) => {
    await openTalk(page, "#dump");
    const body = page.locator("article.msg .bd");
    await body.waitFor({ timeout: PATIENCE_MS });
    const height = () => body.evaluate((one) => one.getBoundingClientRect().height);
    assert.ok((await height()) <= 420);
    await page.getByRole("button", { name: "Show all, 400 lines" }).click();
    assert.ok((await height()) > 4_000);
  });
});

test("a question lights the dot, the answer clears it, looking does not", async () => {
  const person = (await here.product.local("GET", "/v1/health")).meshes[0].person;
  await here.product.send(`@${person}`, "Drop the column now?", { as: "ci", expects_input: true });
  await here.withPage(async (page) => {
    await page.locator("a.conv", { hasText: "asks you" }).waitFor({ timeout: PATIENCE_MS });
    assert.match(await page.title(), /^\(1\) /);
    await openTalk(page, "ci");
    await waitForText(page, "Drop the column now?");
    await page.locator(".waits").waitFor();
    await write(page, "Keep it one more release.");
    await page.locator(".waits").waitFor({ state: "detached", timeout: PATIENCE_MS });
    assert.equal(await page.locator("a.conv .dot").count(), 0);
  });
});

test("a log that is emptied empties the screen, which goes on with what follows", async () => {
  const conversation = await here.topic("emptied", 3);
  await here.withPage(async (page) => {
    await openTalk(page, "#emptied");
    await waitForText(page, "emptied 3");
    await asked(page, "DELETE", `/v1/conversations/${conversation}/messages`);
    await page.waitForFunction(() => document.querySelectorAll("article.msg").length === 0, undefined, { timeout: PATIENCE_MS });
    await here.product.send("#emptied", "a new beginning", { as: "ci" });
    await waitForText(page, "a new beginning");
    assert.deepEqual(await texts(page), ["a new beginning"]);
  });
});

test("a closed conversation is shown and takes no messages", async () => {
  const conversation = await here.topic("over", 1);
  await here.withPage(async (page) => {
    await openTalk(page, "#over");
    await waitForText(page, "over 1");
    await page.locator(".compose textarea").waitFor();
    await asked(page, "PATCH", `/v1/conversations/${conversation}`, { state: "closed" });
    // Until the list is looked at again the field is there; what is written then is refused with the reason.
    await write(page, "too late");
    await page.getByText("This conversation is closed").waitFor({ timeout: PATIENCE_MS });
    const draft = page.locator('article.draft[data-draft="refused"]');
    if ((await draft.count()) > 0) {
      await draft.getByRole("button", { name: "Take away" }).click();
      await draft.waitFor({ state: "detached" });
    }
    assert.deepEqual(await texts(page), ["over 1"]);
  });
});

/** A call the page itself does not make, with its session. */
async function asked(page, method, path, body) {
  const status = await page.evaluate(
    async ([how, where, what]) => {
      const init = { method: how, ...(what ? { body: JSON.stringify(what), headers: { "content-type": "application/json" } } : {}) };
      return (await fetch(where, init)).status;
    },
    [method, path, body],
  );
  assert.ok(status < 300, `${method} ${path}: ${status}`);
}
