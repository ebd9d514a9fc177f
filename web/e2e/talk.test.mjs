// One conversation on the screen: each row once, in order, whatever happens between the page and the broker.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { FAULTLESS, PATIENCE_MS, Product, browser, judge, live, open, openTalk, proxy, texts, waitForText, write } from "./harness.mjs";

let product;
let chrome;

before(async () => {
  [product, chrome] = await Promise.all([Product.up(), browser()]);
  await product.agent("ci");
});
after(async () => {
  await chrome?.close();
  await product?.down();
});

/** A page of its own; the test ends only if nothing forbidden happened on it. */
async function withPage(run, options) {
  const context = await chrome.newContext();
  try {
    const page = await open(context, product, options);
    await run(page, context);
    assert.deepEqual(page.problems, []);
  } finally {
    await context.close();
  }
}

/** A topic with `n` rows by another member; names are unique, so that tests do not meet. */
async function topic(name, n) {
  for (let row = 1; row <= n; row += 1) await product.send(`#${name}`, `${name} ${row}`, { as: "ci" });
  await settled(name, n);
  return product.conversation(`#${name}`);
}

/** The rows of a topic once the broker holds them all. */
async function settled(name, n) {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const conversation = await product.conversation(`#${name}`);
    const rows = conversation === undefined ? [] : (await product.log(conversation)).map((row) => row.body);
    if (rows.length >= n) return rows;
    if (Date.now() > until) throw new Error(`#${name} holds ${rows.length} of ${n} rows`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** Frames the page writes to its sockets, from the first byte on. */
function frames(page) {
  const sent = [];
  page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => sent.push(JSON.parse(payload))));
  return sent;
}

test("24: the first subscribe carries the cursor of the page that was read", async () => {
  const conversation = await topic("join", 3);
  await withPage(async (page) => {
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
  await topic("rows", 5);
  await withPage(async (page) => {
    await openTalk(page, "#rows");
    await waitForText(page, "rows 5");
    for (const row of [6, 7, 8]) await product.send("#rows", `rows ${row}`, { as: "ci" });
    await waitForText(page, "rows 8");
    // Two looks at the list, which is when a page that mixes the two ways in would repeat itself.
    for (let look = 0; look < 2; look += 1) await page.waitForResponse((response) => response.url().includes("/v1/conversations?limit"));
    assert.deepEqual(judge(await settled("rows", 8), await texts(page)), FAULTLESS);
  });
});

test("27: an own message is one entry, and its id is the broker's", async () => {
  const conversation = await topic("own", 1);
  await withPage(async (page) => {
    await openTalk(page, "#own");
    await waitForText(page, "own 1");
    await write(page, "mine, **once**");
    await waitForText(page, "mine, once");
    await page.waitForFunction(() => document.querySelectorAll("article.draft").length === 0);
    const [, mine] = await product.log(conversation);
    const ids = await page.$$eval('article.msg[data-mine="true"]', (all) => all.map((one) => one.dataset.id));
    assert.deepEqual(ids, [mine.id]);
    assert.equal(mine.body, "mine, **once**");
  });
});

test("a reload in the middle of a stream shows every row once, in order", async () => {
  await topic("reload", 20);
  await withPage(async (page) => {
    await openTalk(page, "#reload");
    await waitForText(page, "reload 20");
    const streaming = (async () => {
      for (let row = 21; row <= 80; row += 1) await product.send("#reload", `reload ${row}`, { as: "ci" });
    })();
    await waitForText(page, "reload 30");
    await page.reload();
    await live(page);
    await streaming;
    await waitForText(page, "reload 80");
    assert.deepEqual(judge(await settled("reload", 80), await texts(page)), FAULTLESS);
  });
});

test("two tabs that write at once both show both, and swap nothing", async () => {
  const conversation = await topic("tabs", 1);
  await withPage(async (one, context) => {
    const two = await context.newPage();
    await two.goto(product.url);
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
    const log = await product.log(conversation);
    assert.equal(log.length, 17);
    for (const page of [one, two]) {
      assert.deepEqual(judge(log.map((row) => row.body), await texts(page)), FAULTLESS);
      const ids = await page.$$eval("article.msg[data-id]", (all) => all.map((entry) => entry.dataset.id));
      assert.deepEqual(ids, log.map((row) => row.id));
    }
  });
});

test("an answer that is eaten on its way leaves one message", async () => {
  const conversation = await topic("eaten", 1);
  let appetite = 2;
  const between = await proxy(product, (request) => request.method === "POST" && request.url.endsWith("/messages") && appetite-- > 0);
  try {
    await withPage(
      async (page) => {
        await openTalk(page, "#eaten");
        await waitForText(page, "eaten 1");
        await write(page, "once");
        await until(() => between.eaten.length === 2);
        await waitForText(page, "once");
        await page.waitForFunction(() => document.querySelectorAll("article.draft").length === 0);
        const log = await product.log(conversation);
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
  await topic("long", 260);
  await withPage(async (page) => {
    await openTalk(page, "#long");
    await waitForText(page, "long 260");
    const log = page.locator("#log");
    const place = (text) =>
      page.evaluate((wanted) => [...document.querySelectorAll("article.msg .bd")].find((one) => one.textContent.trim() === wanted)?.getBoundingClientRect().top, text);
    await log.evaluate((box) => (box.scrollTop = 60));
    const before = await place("long 163");
    await waitForText(page, "long 61");
    const moved = Math.abs((await place("long 163")) - before);
    assert.ok(moved < 3, `the row moved by ${moved} px`);
    await log.evaluate((box) => (box.scrollTop = 0));
    await waitForText(page, "long 1");
    assert.deepEqual(judge(await settled("long", 260), await texts(page)), FAULTLESS);
    await product.send("#long", "long 261", { as: "ci" });
    await page.getByRole("button", { name: "1 new row" }).click({ timeout: PATIENCE_MS });
    await waitForText(page, "long 261");
  });
});

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
  for (const body of nasty) await product.send("#nasty", body, { as: "ci" });
  await settled("nasty", nasty.length);
  await withPage(async (page) => {
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

test("a question lights the dot, the answer clears it, looking does not", async () => {
  const person = (await product.local("GET", "/v1/health")).meshes[0].person;
  await product.send(`@${person}`, "Drop the column now?", { as: "ci", expects_input: true });
  await withPage(async (page) => {
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
  const conversation = await topic("emptied", 3);
  await withPage(async (page) => {
    await openTalk(page, "#emptied");
    await waitForText(page, "emptied 3");
    await asked(page, "DELETE", `/v1/conversations/${conversation}/messages`);
    await page.waitForFunction(() => document.querySelectorAll("article.msg").length === 0, undefined, { timeout: PATIENCE_MS });
    await product.send("#emptied", "a new beginning", { as: "ci" });
    await waitForText(page, "a new beginning");
    assert.deepEqual(await texts(page), ["a new beginning"]);
  });
});

test("a closed conversation is shown and takes no messages", async () => {
  const conversation = await topic("over", 1);
  await withPage(async (page) => {
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

test("control: a page that recognises rows by their text is caught", async () => {
  for (const body of ["same", "other", "same"]) await product.send("#twins", body, { as: "ci" });
  await settled("twins", 3);
  const context = await chrome.newContext();
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
    const page = await open(context, product);
    await openTalk(page, "#twins");
    for (const body of ["again", "again", "last"]) await product.send("#twins", body, { as: "ci" });
    await waitForText(page, "last");
    assert.deepEqual(judge(await settled("twins", 6), await texts(page)).missing, ["again"]);
  } finally {
    await context.close();
  }
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

/** Waits for what `look` finds. */
async function until(look) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = look();
    if (found) return found;
    if (Date.now() > end) throw new Error("waited too long");
    await new Promise((done) => setTimeout(done, 20));
  }
}
