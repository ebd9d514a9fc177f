// One conversation on the screen: each row once, in order, whatever happens between the page and the broker.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ground } from "./ground.mjs";
import { FAULTLESS, PATIENCE_MS, judge, live, open, openTalk, proxy, texts, until, waitForText, write } from "./harness.mjs";

const here = ground();

/** Frames the page writes to its sockets, from the first byte on. */
function frames(page) {
  const sent = [];
  page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => sent.push(JSON.parse(payload))));
  return sent;
}

test("24: the first subscribe carries the cursor of the page that was read", async () => {
  const conversation = await here.topic("join", 3);
  await here.withPage(async (page) => {
    const sent = frames(page);
    const answers = [];
    page.on("response", async (response) => {
      if (response.url().includes(`/v1/conversations/${conversation}?limit=100`)) answers.push((await response.json()).cursor);
    });
    await page.reload();
    await live(page);
    await openTalk(page, "#join");
    await waitForText(page, "join 3");
    await page.waitForFunction(() => true);
    const first = await until(() => sent.find((frame) => frame.type === "subscribe"));
    assert.equal(first.conversation_id, conversation);
    assert.equal(first.since_cursor, answers[0]);
    assert.notEqual(first.since_cursor, "");
  });
});

test("25 and 26: rows of before and after the load stand there once, also two looks later", async () => {
  await here.topic("rows", 5);
  await here.withPage(async (page) => {
    await openTalk(page, "#rows");
    await waitForText(page, "rows 5");
    for (const row of [6, 7, 8]) await here.product.send("#rows", `rows ${row}`, { as: "ci" });
    await waitForText(page, "rows 8");
    // Two looks at the list, which is when a page that mixes the two ways in would repeat itself.
    for (let look = 0; look < 2; look += 1) await page.waitForResponse((response) => response.url().includes("/v1/conversations?limit"));
    assert.deepEqual(judge(await here.settled("rows", 8), await texts(page)), FAULTLESS);
  });
});

test("27: an own message is one entry, and its id is the broker's", async () => {
  const conversation = await here.topic("own", 1);
  await here.withPage(async (page) => {
    await openTalk(page, "#own");
    await waitForText(page, "own 1");
    await write(page, "mine, **once**");
    await waitForText(page, "mine, once");
    await page.waitForFunction(() => document.querySelectorAll("article.draft").length === 0);
    const [, mine] = await here.product.log(conversation);
    const ids = await page.$$eval('article.msg[data-mine="true"]', (all) => all.map((one) => one.dataset.id));
    assert.deepEqual(ids, [mine.id]);
    assert.equal(mine.body, "mine, **once**");
  });
});

test("a reload in the middle of a stream shows every row once, in order", async () => {
  await here.topic("reload", 10);
  await here.withPage(async (page) => {
    await openTalk(page, "#reload");
    await waitForText(page, "reload 10");
    const streaming = (async () => {
      for (let row = 11; row <= 60; row += 1) await here.product.send("#reload", `reload ${row}`, { as: "ci" });
    })();
    await waitForText(page, "reload 20");
    await page.reload();
    await live(page);
    await streaming;
    await waitForText(page, "reload 60");
    assert.deepEqual(judge(await here.settled("reload", 60), await texts(page)), FAULTLESS);
  });
});

test("two tabs that write at once both show both, and swap nothing", async () => {
  const conversation = await here.topic("tabs", 1);
  await here.withPage(async (one, context) => {
    const two = await context.newPage();
    await two.goto(here.product.url);
    await live(two);
    for (const page of [one, two]) {
      await openTalk(page, "#tabs");
      await waitForText(page, "tabs 1");
    }
    const rounds = [...Array(8).keys()];
    const writing = [one, two].map(async (page, tab) => {
      for (const round of rounds) await write(page, `tab ${tab} says ${round}`);
    });
    await Promise.all(writing);
    for (const page of [one, two]) {
      await page.waitForFunction(() => document.querySelectorAll("article.msg[data-id]").length === 17, undefined, { timeout: PATIENCE_MS });
      await page.waitForFunction(() => document.querySelectorAll("article.draft").length === 0);
    }
    const log = await here.product.log(conversation);
    assert.equal(log.length, 17);
    for (const tab of [0, 1]) {
      const said = log.map((row) => row.body).filter((body) => body.startsWith(`tab ${tab}`));
      assert.deepEqual(said, rounds.map((round) => `tab ${tab} says ${round}`));
    }
    for (const page of [one, two]) {
      assert.deepEqual(judge(log.map((row) => row.body), await texts(page)), FAULTLESS);
      const ids = await page.$$eval("article.msg[data-id]", (all) => all.map((entry) => entry.dataset.id));
      assert.deepEqual(ids, log.map((row) => row.id));
    }
  });
});

test("an answer that is eaten on its way leaves one message", async () => {
  const conversation = await here.topic("eaten", 1);
  let appetite = 2;
  const between = await proxy(here.product, (request) => request.method === "POST" && request.url.endsWith("/messages") && appetite-- > 0);
  try {
    await here.withPage(
      async (page) => {
        await openTalk(page, "#eaten");
        await waitForText(page, "eaten 1");
        await write(page, "once");
        await until(() => between.eaten.length === 2);
        await waitForText(page, "once");
        await page.waitForFunction(() => document.querySelectorAll("article.draft").length === 0);
        const log = await here.product.log(conversation);
        assert.deepEqual(judge(log.map((row) => row.body), await texts(page)), FAULTLESS);
        assert.equal(log.length, 2);
      },
      { base: between.url },
    );
  } finally {
    await between.close();
  }
});

test("older rows come as one scrolls up, and the row one looks at stays where it is", async () => {
  await here.topic("long", 150);
  await here.withPage(async (page) => {
    await openTalk(page, "#long");
    await waitForText(page, "long 150");
    const log = page.locator("#log");
    const place = (text) =>
      page.evaluate((wanted) => [...document.querySelectorAll("article.msg .bd")].find((one) => one.textContent.trim() === wanted)?.getBoundingClientRect().top, text);
    await log.evaluate((box) => (box.scrollTop = 60));
    const before = await place("long 53");
    await waitForText(page, "long 1");
    const moved = Math.abs((await place("long 53")) - before);
    assert.ok(moved < 3, `the row moved by ${moved} px`);
    assert.deepEqual(judge(await here.settled("long", 150), await texts(page)), FAULTLESS);
    await here.product.send("#long", "long 151", { as: "ci" });
    await page.getByRole("button", { name: "1 new row" }).click({ timeout: PATIENCE_MS });
    await waitForText(page, "long 151");
  });
});

test("control: a page that recognises rows by their text is caught", async () => {
  for (const body of ["same", "other", "same"]) await here.product.send("#twins", body, { as: "ci" });
  await here.settled("twins", 3);
  const context = await here.chrome.newContext();
  await context.addInitScript(() => {
    const seen = new Set();
    const { set } = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage");
    Object.defineProperty(WebSocket.prototype, "onmessage", {
      set(hear) {
        set.call(this, (event) => {
          const frame = JSON.parse(event.data);
          if (frame.type === "message" && seen.has(frame.body)) return;
          if (frame.type === "message") seen.add(frame.body);
          hear(event);
        });
      },
    });
  });
  try {
    const page = await open(context, here.product);
    await openTalk(page, "#twins");
    // What is read before the socket is not what the planted page drops.
    await waitForText(page, "other");
    for (const body of ["again", "again", "last"]) await here.product.send("#twins", body, { as: "ci" });
    await waitForText(page, "last");
    assert.deepEqual(judge(await here.settled("twins", 6), await texts(page)).missing, ["again"]);
  } finally {
    await context.close();
  }
});
