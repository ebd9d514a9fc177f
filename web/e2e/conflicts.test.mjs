// A real conflict: relay before a hub, a stale change asked for while the hub was away, and a person's word on it.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PATIENCE_MS, Product, browser, file, live, open, until, visit } from "./harness.mjs";

const SHOTS = process.env.POSTRIDER_SHOTS;

let hub;
let product;
let chrome;
let token;

before(async () => {
  [hub, chrome] = await Promise.all([Product.up(), browser()]);
  token = (await hub.cli("token", "create", "--as", "relay", "--scope", "hub", "--quiet")).trim();
  const held = join(hub.home, "relay-token");
  writeFileSync(held, token, { mode: 0o600 });
  product = await Product.up({
    args: [`--relay=${hub.url}/hub`, "--relay-listen=127.0.0.1:0", "--relay-auth-mode=relay", `--relay-token-file=${held}`],
  });
});
after(async () => {
  await chrome?.close();
  await product?.down();
  await hub?.down();
});

/** A request at the hub itself. */
async function atHub(method, path, body, headers = {}) {
  const answer = await fetch(`${hub.url}/hub${path}`, asked(method, body, { authorization: `Bearer ${token}`, ...headers }));
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer;
}

/** The same at the relay. */
function atRelay(method, path, body, headers = {}) {
  const local = readFileSync(join(product.home, "relay/token"), "utf8");
  return fetch(`${product.relay}${path}`, asked(method, body, { "statehub-relay-token": local, "statehub-agent": "reviewer", ...headers }));
}

function asked(method, body, headers) {
  return { method, headers: { "content-type": "application/json", ...headers }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
}

async function task(id) {
  return (await atHub("GET", `/tasks/${id}`)).json();
}

/** A task at version 2, and a change of it that was asked for on version 1 while the hub was away. */
async function conflict(id, more = []) {
  await atHub("POST", "/tasks/", { id, title: "Backfill sessions", status: "todo" });
  const moved = await atHub("PATCH", `/tasks/${id}`, { status: "cancelled" });
  assert.equal(moved.headers.get("etag"), '"2"');
  await hub.kill();
  const receipts = [];
  for (const body of [{ status: "done" }, ...more]) {
    const answer = await atRelay("PATCH", `/tasks/${id}`, body, { "if-match": '"1"' });
    assert.equal(answer.status, 202);
    receipts.push(await answer.json());
  }
  assert.equal(receipts[0].committed, false);
  await hub.start();
  const row = receipts[0].envelope_id;
  await until(async () => JSON.parse(await product.cli("relay", "outbox", "inspect", row, "--json")).status === "conflict");
  return row;
}

async function withPage(run, options = {}) {
  const context = await chrome.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce", ...options });
  try {
    const page = await open(context, product, { hash: "#/conflicts" });
    await run(page);
    assert.deepEqual(page.problems, []);
  } finally {
    await context.close();
  }
}

async function shot(page, name) {
  if (!SHOTS) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`) });
}

test("the relay is a role of this process, and only its home's person reaches its choices", async () => {
  assert.ok((await product.local("GET", "/v1/health")).roles.includes("relay"));
  const door = (base) => `${base}/page/local/relay/status`;
  assert.equal((await fetch(door(product.url))).status, 401);
  const guest = await Product.join(product, "guest");
  const [own, other] = [await chrome.newContext(), await chrome.newContext()];
  try {
    const page = await open(own, product);
    const status = await page.evaluate(async (url) => (await fetch(url)).json(), door(""));
    assert.deepEqual([status.conflict, status.upstream.startsWith(hub.url)], [0, true]);
    const stranger = await other.newPage();
    await stranger.goto(await guest.link(product.url));
    await live(stranger);
    assert.equal(await stranger.evaluate(async (url) => (await fetch(url)).status, door("")), 403);
    const forged = { method: "POST", headers: { "content-type": "application/json" }, body: '{"choice":"drop"}' };
    const act = "/page/local/relay/envelopes/01M7E1RKJKKJ30VY8N1C7TQW2E/resolve";
    assert.equal(await stranger.evaluate(async ([url, ask]) => (await fetch(url, ask)).status, [act, forged]), 403);
    await visit(stranger, "#/conflicts");
    await stranger.getByRole("heading", { name: "No relay of yours runs here" }).waitFor({ timeout: PATIENCE_MS });
    // A process without a relay has no such door, for nobody.
    const without = await open(own, hub, { hash: "#/conflicts" });
    await without.getByText("postrider up --relay URL").waitFor({ timeout: PATIENCE_MS });
    assert.equal(await without.evaluate(async (url) => (await fetch(url)).status, door("")), 404);
  } finally {
    await own.close();
    await other.close();
    await guest.down();
  }
});

test("both sides stand side by side; mine goes out on the version that was seen, and is recorded", async () => {
  const row = await conflict("T-88", [{ title: "Backfill, second half" }]);
  assert.equal((await task("T-88")).status, "cancelled", "nothing was overwritten");
  await withPage(async (page) => {
    await page.locator(".nav a", { hasText: "Conflicts" }).locator(".dot").waitFor({ timeout: PATIENCE_MS });
    await page.locator(`a.conv[data-row="${row}"]`).waitFor({ timeout: PATIENCE_MS });
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    const line = page.locator("table.cmp tr", { hasText: "status" });
    await line.waitFor({ timeout: PATIENCE_MS });
    assert.deepEqual(await line.locator("td").allTextContents(), ["status", "not kept", "done", "cancelled"]);
    const heads = await page.locator("table.cmp th").allTextContents();
    assert.deepEqual(heads, ["Field", "When asked, version 1", "reviewer asked for", "There now, version 2"]);
    await page.locator(".waiting", { hasText: "PATCH /tasks/T-88" }).waitFor({ timeout: PATIENCE_MS });
    await shot(page, "desk-conflict");
    assert.deepEqual(await findings(page), []);
    await page.keyboard.press("2");
    await page.locator("main").getByText(/Queued under a new key on version 2/).waitFor({ timeout: PATIENCE_MS });
    await until(async () => (await task("T-88")).status === "done");
    await page.locator(".sec .ladder", { hasText: "accepted" }).waitFor({ timeout: PATIENCE_MS });
    await shot(page, "desk-conflict-settled");
  });
  const ended = JSON.parse(await product.cli("relay", "outbox", "inspect", row, "--json"));
  assert.deepEqual([ended.status, ended.resolution], ["superseded", "kept mine"]);
});

test("what is there stays when the person says so, with one click", async () => {
  const row = await conflict("T-89");
  await withPage(async (page) => {
    await page.locator(`a.conv[data-row="${row}"]`).click({ timeout: PATIENCE_MS });
    await page.getByRole("button", { name: /Keep what is there/ }).click({ timeout: PATIENCE_MS });
    await page.locator("main").getByText("Withdrawn; what is there stands.").waitFor({ timeout: PATIENCE_MS });
    await page.locator(`a.conv[data-row="${row}"]`, { hasText: "settled: dropped mine" }).waitFor({ timeout: PATIENCE_MS });
  });
  assert.equal((await task("T-89")).status, "cancelled");
});

test("other words go out instead on a phone, and what is no JSON is not asked", async () => {
  const row = await conflict("T-90");
  await withPage(
    async (page) => {
      await page.locator(`a.conv[data-row="${row}"]`).click({ timeout: PATIENCE_MS });
      await page.locator("table.cmp tr", { hasText: "status" }).waitFor({ timeout: PATIENCE_MS });
      await shot(page, "phone-conflict");
      const over = await page.evaluate(() => [...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".ell, .vh")).map((one) => one.outerHTML.slice(0, 100)));
      assert.deepEqual(over, []);
      assert.deepEqual(await findings(page), []);
      await page.getByRole("button", { name: /Edit, then send/ }).click();
      const field = page.getByRole("textbox", { name: "Body to send" });
      await field.fill("{");
      await page.getByRole("button", { name: "Send these words" }).click();
      await page.getByText(/This is not JSON/).waitFor();
      await field.fill('{"status":"in_progress"}');
      await page.getByRole("button", { name: "Send these words" }).click();
      await page.locator("main").getByText(/Queued under a new key on version 2/).waitFor({ timeout: PATIENCE_MS });
    },
    { viewport: { width: 360, height: 740 }, hasTouch: true },
  );
  await until(async () => (await task("T-90")).status === "in_progress");
});

test("a graceful stop ends the relay too and leaves its outbox for the next start", async () => {
  product.process.kill("SIGTERM");
  assert.equal(await product.gone, 0);
  await assert.rejects(fetch(product.relay));
  await product.start();
  const status = JSON.parse(await product.cli("relay", "outbox", "status", "--json"));
  // The change that waited behind T-88 was asked on version 1 as well: it is the next one to decide about.
  assert.deepEqual([status.conflict, status.superseded], [1, 2]);
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
