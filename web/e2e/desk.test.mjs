// Signing in, and what the home's owner does at the desk: outbox, dead letters, explain, agents and nodes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PATIENCE_MS, Product, browser, live, open, until, visit } from "./harness.mjs";

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

async function withPage(run, hash = "") {
  const context = await chrome.newContext();
  try {
    const page = await open(context, product, { hash });
    await run(page);
    assert.deepEqual(page.problems, []);
  } finally {
    await context.close();
  }
}

/** A row the broker refused for good: it mentions somebody who is not there yet. */
async function deadRow(name, body) {
  const { row } = await product.send("@ci", body, { mentions: [name] });
  await until(async () => (await product.local("GET", `/v1/outbox/${row}`)).status === "dead");
  return row;
}

/** What ci got, oldest first. */
async function delivered() {
  const conversation = await product.conversation("@ci");
  return conversation === undefined ? [] : (await product.log(conversation)).map((row) => row.body);
}

test("a link signs in once; its key leaves the address; a second use says how to get another", async () => {
  const { url: link } = JSON.parse(await product.cli("signin", "--json"));
  const context = await chrome.newContext();
  const stranger = await chrome.newContext();
  try {
    const page = await context.newPage();
    await page.goto(link);
    await live(page);
    assert.ok(!page.url().includes("key="), page.url());
    const [cookie] = await context.cookies();
    assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, "Strict"]);
    await page.reload();
    await live(page);
    const second = await stranger.newPage();
    await second.goto(link);
    await second.getByRole("heading", { name: "This link does not sign in" }).waitFor({ timeout: PATIENCE_MS });
    await second.getByText("postrider signin").waitFor();
    await second.goto(product.url);
    await second.reload();
    await second.getByRole("heading", { name: "Sign in" }).waitFor();
  } finally {
    await context.close();
    await stranger.close();
  }
});

test("signing out ends the session in every tab", async () => {
  const context = await chrome.newContext();
  try {
    const page = await open(context, product);
    const other = await context.newPage();
    await other.goto(product.url);
    await live(other);
    await page.keyboard.press("?");
    await page.getByRole("button", { name: "Sign out" }).click();
    for (const tab of [page, other]) await tab.getByRole("heading", { name: "Sign in" }).waitFor({ timeout: PATIENCE_MS });
    assert.deepEqual(await context.cookies(), []);
  } finally {
    await context.close();
  }
});

test("another home's person sees neither this outbox nor others' words, and is told where to look", async () => {
  await product.send("@ci", "between us");
  await product.cli("send", "@ci", "and this", "--wait", "delivered");
  const secret = await product.conversation("@ci");
  const guest = await Product.join(product, "guest");
  const context = await chrome.newContext();
  try {
    const page = await context.newPage();
    await page.goto(await guest.link(product.url));
    await live(page);
    await visit(page, "#/outbox");
    await page.getByRole("heading", { name: "This host's outbox is not here" }).waitFor({ timeout: PATIENCE_MS });
    await visit(page, `#/conversations/${secret}`);
    await page.locator(".compose textarea").waitFor({ timeout: PATIENCE_MS });
    await page.waitForFunction(() => document.querySelector("[role=log]"));
    assert.equal(await page.locator("article.msg").count(), 0);
  } finally {
    await context.close();
    await guest.down();
  }
});

test("a dead letter is requeued with two clicks, and stored once", async () => {
  const row = await deadRow("latecomer", "the notes");
  await product.agent("latecomer");
  await withPage(async (page) => {
    await page.locator(".nav a", { hasText: "Outbox" }).locator(".dot").waitFor({ timeout: PATIENCE_MS });
    await page.locator(`tr[data-row="${row}"]`).click({ timeout: PATIENCE_MS });
    const detail = page.locator("aside.detail");
    await detail.getByText("No.", { exact: true }).waitFor({ timeout: PATIENCE_MS });
    await detail.getByText("the notes").waitFor();
    await detail.getByRole("button", { name: /Requeue with a new id/ }).click();
    await detail.getByText(/Requeued under a new id/).waitFor({ timeout: PATIENCE_MS });
    await page.locator(".nav a", { hasText: "Outbox" }).locator(".dot").waitFor({ state: "detached", timeout: PATIENCE_MS });
  }, "#/outbox");
  const old = await product.local("GET", `/v1/outbox/${row}`);
  assert.equal(old.status, "aborted");
  assert.equal(old.chain.length, 2);
  await until(async () => (await delivered()).includes("the notes"));
  assert.deepEqual((await delivered()).filter((body) => body === "the notes"), ["the notes"]);
});

test("a body can be put right first, and the keyboard is enough", async () => {
  const row = await deadRow("second-latecomer", "teh notes");
  await product.agent("second-latecomer");
  await withPage(async (page) => {
    await page.locator(`tr[data-row="${row}"]`).waitFor({ timeout: PATIENCE_MS });
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    const detail = page.locator("aside.detail");
    await detail.getByRole("button", { name: "Edit body first…" }).click({ timeout: PATIENCE_MS });
    await detail.getByRole("textbox", { name: "Body" }).fill("the notes, put right");
    await detail.getByRole("button", { name: "Requeue with these words" }).click();
    await detail.getByText(/Requeued under a new id/).waitFor({ timeout: PATIENCE_MS });
    await page.keyboard.press("Escape");
    await detail.waitFor({ state: "detached" });
  }, "#/outbox");
  await until(async () => (await delivered()).includes("the notes, put right"));
  assert.ok(!(await delivered()).includes("teh notes"));
});

test("ticked rows are aborted after one question, each with its own answer, and no other row", async () => {
  const rows = [await deadRow("nobody-one", "first"), await deadRow("nobody-two", "second"), await deadRow("nobody-three", "third")];
  await withPage(async (page) => {
    for (const row of rows.slice(0, 2)) await page.locator(`tr[data-row="${row}"] input`).check({ timeout: PATIENCE_MS });
    await page.getByRole("button", { name: "Abort 2…" }).click();
    await page.getByRole("button", { name: "Really abort 2" }).click();
    for (const row of rows.slice(0, 2)) await page.locator(`tr[data-row="${row}"]`, { hasText: "aborted, " }).waitFor({ timeout: PATIENCE_MS });
  }, "#/outbox");
  const status = async (row) => (await product.local("GET", `/v1/outbox/${row}`)).status;
  assert.deepEqual(await Promise.all(rows.map(status)), ["aborted", "aborted", "dead"]);
});

test("a message's life is drawn from its first disk to its recipient's inbox, in order", async () => {
  const { client_message_id } = await product.send("@ci", "follow me");
  await product.cli("send", "@ci", "another", "--wait", "delivered");
  await withPage(async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type(client_message_id);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Delivered to ci." }).waitFor({ timeout: PATIENCE_MS });
    const facts = await page.$$eval("table.ev tbody tr", (all) => all.map((row) => row.cells[2].textContent.split(":")[0].trim()));
    assert.deepEqual(facts.slice(0, 3), ["queued", "accepted", "delivered"]);
    assert.equal(await page.locator(".stop").count(), 3);
    await page.locator(".bar .ask input").fill("01M7GHXX7R3TQ9V0B2C8K604ZK");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Never seen here" }).waitFor({ timeout: PATIENCE_MS });
  });
});

test("agents stand below their node, with its last contact", async () => {
  await withPage(async (page) => {
    await page.locator("tr.node", { hasText: "this host" }).getByText("live").waitFor({ timeout: PATIENCE_MS });
    await page.locator("tr.row", { hasText: "ci" }).first().waitFor();
    assert.equal(await page.locator("tr.node time").first().textContent(), "now");
  }, "#/agents");
});

test("rates are plotted after two looks", async () => {
  await withPage(async (page) => {
    await page.locator(".fig", { hasText: "since the broker's start" }).waitFor({ timeout: PATIENCE_MS });
    assert.ok((await page.locator(".spark rect").count()) > 0);
  }, "#/health");
});

test("a first message to a new topic opens its conversation", async () => {
  await withPage(async (page) => {
    await page.getByLabel("To").fill("#fresh");
    await page.getByLabel("Message", { exact: true }).fill("first words");
    await page.getByRole("button", { name: "Send" }).click();
    await page.locator("article.msg", { hasText: "first words" }).waitFor({ timeout: PATIENCE_MS });
  }, "#/conversations/new");
});
