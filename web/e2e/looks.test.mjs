// How it looks and who can use it: both themes, a phone's width, assistive technology, nothing from elsewhere.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { PATIENCE_MS, Product, browser, file, open, openTalk, visit, waitForText } from "./harness.mjs";
import { types, used } from "../scripts/types.mjs";

/** Where screenshots go, when somebody wants to look at them. */
const SHOTS = process.env.POSTRIDER_SHOTS;

let product;
let chrome;
let message;

before(async () => {
  [product, chrome] = await Promise.all([Product.up(), browser()]);
  await product.agent("reviewer");
  await product.agent("migrator");
  const { person } = (await product.local("GET", "/v1/health")).meshes[0];
  const said = [
    ["#release-0.9", "Plan for 0.9: schema half, backfill, readers switch over. Nothing leaves before all three say done.", "migrator"],
    ["#release-0.9", "Schema half is merged as `4e1c9a7`.\\n\\n- only adds\\n- old readers keep working\\n\\n```\\nALTER TABLE sessions ADD COLUMN epoch INTEGER;\\n```", "reviewer"],
    ["#release-0.9", "Both fixed in 9b02d1f. @reviewer please look again.", undefined],
    ["#release-0.9", `One long word: ${"x".repeat(180)}`, "reviewer"],
    [`@${person}`, "Drop `sessions.token` now, or keep it one more release?", "migrator"],
    ["@reviewer", "Two comments on PR 214, please.", undefined],
  ];
  for (const [to, body, as] of said) {
    await product.send(to, body.replaceAll("\\n", "\n"), { as, ...(as === "migrator" && to.startsWith("@") ? { expects_input: true } : {}), ...(body.includes("@reviewer") ? { mentions: ["reviewer"] } : {}) });
  }
  await product.send("@reviewer", "the draft notes of 0.9", { mentions: ["nobody"] });
  await product.cli("send", "@reviewer", "done", "--wait", "delivered");
  const conversation = await product.conversation("#release-0.9");
  message = { conversation, id: (await product.log(conversation))[2].id };
});
after(async () => {
  await chrome?.close();
  await product?.down();
});

const VIEWS = () => [
  ["conversations", `#/conversations/${message.conversation}`, "article.msg"],
  ["receipt", `#/conversations/${message.conversation}/${message.id}`, "aside.detail .rcpt"],
  ["agents", "#/agents", "tr.node"],
  ["outbox", "#/outbox", "tr.row"],
  ["conflicts", "#/conflicts", ".note"],
  ["explain", `#/explain/${message.id}`, ".road"],
  ["health", "#/health", ".finds"],
  ["new", "#/conversations/new", "form textarea"],
];

async function eachView(context, name, look) {
  const page = await open(context, product);
  for (const [view, hash, ready] of VIEWS()) {
    await visit(page, hash);
    await page.locator(ready).first().waitFor({ timeout: PATIENCE_MS });
    await look(page, view);
    if (SHOTS) {
      mkdirSync(SHOTS, { recursive: true });
      await page.screenshot({ path: join(SHOTS, `${name}-${view}.png`) });
    }
  }
  assert.deepEqual(page.problems, []);
}

for (const theme of ["light", "dark"]) {
  test(`no serious finding of axe in any view, ${theme}`, async () => {
    const context = await chrome.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: theme, reducedMotion: "reduce" });
    try {
      await eachView(context, theme, async (page, view) => {
        assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), theme);
        assert.deepEqual(await findings(page), [], view);
      });
    } finally {
      await context.close();
    }
  });
}

test("a phone of 360 px shows every view without sideways scrolling, with targets for a thumb", async () => {
  const context = await chrome.newContext({ viewport: { width: 360, height: 740 }, reducedMotion: "reduce", hasTouch: true });
  try {
    await eachView(context, "phone", async (page, view) => {
      const wide = await page.evaluate(() => {
        const over = [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest("pre, .seg, .bd table, .vh, .skip, .ell"));
        return { by: document.documentElement.scrollWidth - innerWidth, over: over.slice(0, 3).map((one) => one.outerHTML.slice(0, 120)) };
      });
      assert.deepEqual(wide, { by: 0, over: [] }, view);
      const small = await page.$$eval("nav.tabs a, .compose .btn, .head .back", (all) =>
        all.filter((one) => one.offsetParent).filter((one) => one.getBoundingClientRect().height < 43).map((one) => one.textContent),
      );
      assert.deepEqual(small, [], view);
      assert.deepEqual(await findings(page), [], view);
    });
  } finally {
    await context.close();
  }
});

test("the theme follows the reader's choice and is kept", async () => {
  const context = await chrome.newContext({ colorScheme: "light" });
  try {
    const page = await open(context, product);
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(await background(), "rgb(246, 245, 241)");
    await page.keyboard.press("t");
    await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
    assert.equal(await background(), "rgb(18, 21, 24)");
    await page.reload();
    await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
  } finally {
    await context.close();
  }
});

test("the keyboard goes everywhere: views, rows, the sheet, and out of fields", async () => {
  const context = await chrome.newContext();
  try {
    const page = await open(context, product);
    await page.keyboard.press("g");
    await page.keyboard.press("a");
    await page.waitForFunction(() => location.hash === "#/agents");
    await page.keyboard.press("g");
    await page.keyboard.press("c");
    await page.locator("a.conv").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.locator("article.msg").first().waitFor({ timeout: PATIENCE_MS });
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    assert.deepEqual(await findings(page), []);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.locator(".compose textarea").focus();
    await page.keyboard.type("jg/t?");
    assert.equal(await page.locator(".compose textarea").inputValue(), "jg/t?");
  } finally {
    await context.close();
  }
});

test("a reply says what it answers", async () => {
  const context = await chrome.newContext();
  try {
    const page = await open(context, product);
    await openTalk(page, "reviewer");
    await waitForText(page, "done");
    await page.locator("article.msg", { hasText: "done" }).hover();
    await page.locator("article.msg", { hasText: "done" }).getByRole("button", { name: /Reply to/ }).click();
    await page.keyboard.type("thanks");
    await page.keyboard.press("Enter");
    await page.locator("article.msg[data-id]", { hasText: "thanks" }).getByText(/reply to/).waitFor({ timeout: PATIENCE_MS });
  } finally {
    await context.close();
  }
});

test("the policy allows nothing inline and nothing from elsewhere; the page is under 100 KB", async () => {
  const response = await fetch(product.url);
  const policy = response.headers.get("content-security-policy") ?? "";
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.ok(!/unsafe|\*|https?:/.test(policy), policy);
  assert.equal(response.headers.get("cache-control"), "no-cache");
  const html = await response.text();
  assert.ok(!/<script(?![^>]* src=)|<style| style=| on[a-z]+=/i.test(html), html);
  let size = gzipSync(html).length;
  for (const [, path] of html.matchAll(/(?:src|href)="(\/[^"]+)"/g)) {
    const asset = await fetch(new URL(path, product.url));
    assert.equal(asset.status, 200, path);
    size += gzipSync(Buffer.from(await asset.arrayBuffer())).length;
  }
  assert.ok(size < 100_000, `${size} bytes`);
});

test("the client's types are those of the document the broker serves", async () => {
  const document = await (await fetch(new URL("/openapi.json", product.url))).json();
  assert.equal(types(used(document)), file("src/client/types.ts"), "`npm run types -- URL` in web/ writes them");
});

/** Serious and critical findings, in words. */
async function findings(page) {
  await page.evaluate(file("node_modules/axe-core/axe.min.js"));
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .flatMap(({ id, nodes }) => nodes.slice(0, 3).map((node) => `${id}: ${node.html.slice(0, 160)} ${node.failureSummary ?? ""}`));
  });
}
