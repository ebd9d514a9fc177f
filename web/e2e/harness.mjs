// The ground of the browser tests: the real binary on a home of its own, and a real browser.
//
// - No fixed port, no shared folder: the product listens on a free port and keeps it over restarts.
// - Waiting is waiting for a condition. What the page shows is judged against what was handed over, by `judge`.
import { spawn, execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

export const WEB = join(dirname(fileURLToPath(import.meta.url)), "..");
const BINARY = process.env.POSTRIDER_BIN ?? join(WEB, "../target/debug/postrider");
const BROWSER = process.env.POSTRIDER_CHROMIUM ?? "/usr/bin/chromium";
/** A busy machine with two cores. */
export const PATIENCE_MS = 20_000;

/** The product on a private home. */
export class Product {
  static async up(options = {}) {
    const product = new Product();
    product.home = mkdtempSync(join(tmpdir(), "postrider-page-"));
    product.env = { ...process.env, ...options.env, POSTRIDER_HOME: product.home };
    product.args = options.args ?? [];
    await product.start("127.0.0.1:0");
    return product;
  }

  /** A broker of its own over `store`, and the home of the mesh's owner beside it. */
  static async apart(store) {
    const broker = new Product();
    broker.home = mkdtempSync(join(tmpdir(), "postrider-broker-"));
    broker.env = { ...process.env, POSTRIDER_HOME: broker.home };
    broker.role = ["broker", "serve", "--store", store];
    await broker.start("127.0.0.1:0");
    const owner = await Product.invited(broker.invite, "owner");
    return Object.assign(owner, { url: broker.url, broker });
  }

  /** A daemon on another home, whose person joined the mesh of `product`. */
  static async join(product, person) {
    const { invite } = JSON.parse(await product.cli("invite", "--json"));
    return Product.invited(invite, person);
  }

  static async invited(invite, person) {
    const guest = new Product();
    guest.home = mkdtempSync(join(tmpdir(), "postrider-guest-"));
    guest.env = { ...process.env, POSTRIDER_HOME: guest.home };
    guest.socket = join(guest.home, "daemon/sock");
    guest.process = spawn(BINARY, ["daemon", "up", "--home", guest.home], { env: guest.env, stdio: "ignore" });
    guest.gone = new Promise((done) => guest.process.once("exit", done));
    await guest.answers();
    await guest.cli("join", invite, "--person", person, "--node", person);
    return guest;
  }

  /** Waits for the local door. */
  async answers() {
    await until(() => this.local("GET", "/v1/health").catch(() => undefined));
  }

  async start(listen = new URL(this.url).host) {
    const args = [...(this.role ?? ["up"]), "--json", "--home", this.home, "--listen", listen, ...(this.args ?? [])];
    this.process = spawn(BINARY, args, { env: this.env, stdio: ["ignore", "pipe", "ignore"] });
    this.gone = new Promise((done) => this.process.once("exit", done));
    for await (const line of createInterface({ input: this.process.stdout })) {
      const event = parsed(line);
      if (event?.event === "ready") {
        this.url = event.url;
        this.socket = event.socket;
        this.relay = event.relay;
        this.invite = event.owner_invite;
        this.process.stdout.resume();
        return;
      }
    }
    throw new Error("the product ended before it was ready");
  }

  /** kill -9; when it returns the process is gone. */
  async kill() {
    this.process.kill("SIGKILL");
    await this.gone;
  }

  async down() {
    await this.kill();
    await this.broker?.down();
    rmSync(this.home, { recursive: true, force: true });
  }

  async cli(...args) {
    const { stdout } = await promisify(execFile)(BINARY, [...args, "--home", this.home], { env: this.env });
    return stdout;
  }

  /** A link that signs in once. */
  async link(base = this.url) {
    const { key } = await this.local("POST", "/v1/ask", { what: "sign_in" });
    return `${base}/#key=${key}`;
  }

  /** A call at the local door. */
  local(method, path, body, headers = {}) {
    return new Promise((done, fail) => {
      const request = http.request(
        { socketPath: this.socket, method, path, headers: { host: "postrider", "content-type": "application/json", ...headers } },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (part) => (text += part));
          response.on("end", () => (response.statusCode < 300 ? done(parsed(text)) : fail(new Error(`${response.statusCode} ${text}`))));
        },
      );
      request.on("error", fail);
      request.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /** Hands a message to the home's outbox, as its person or as somebody else at home here. */
  send(to, body, { as, ...more } = {}) {
    return this.local("POST", "/v1/send", { to, body, ...more }, as === undefined ? {} : { "postrider-as": as });
  }

  agent(name) {
    return this.local("POST", "/v1/agents", { name });
  }

  /** What the broker holds of a conversation, oldest first. */
  async log(conversation) {
    const answer = await this.local("POST", "/v1/ask", { what: "conversation", conversation, limit: 1000 });
    return answer.messages;
  }

  async conversation(name) {
    const rows = await this.local("POST", "/v1/ask", { what: "conversations" });
    return rows.find((row) => row.conversation_name === name)?.conversation;
  }
}

/** A browser of its own for one file of tests. */
export async function browser() {
  const args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath: BROWSER, args });
}

/** A signed-in page; `problems` gathers what must never happen on it. */
export async function open(context, product, { base = product.url, hash = "" } = {}) {
  const page = await context.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const { origin } = new URL(request.url());
    if (origin !== new URL(base).origin) page.problems.push(`a request to ${origin}`);
  });
  page.on("console", (message) => {
    if (/Content.Security.Policy/i.test(message.text())) page.problems.push(message.text());
  });
  await page.goto(await product.link(base));
  await live(page);
  if (hash !== "") await visit(page, hash);
  return page;
}

export async function live(page) {
  await page.waitForFunction(() => document.querySelector("#standing")?.textContent === "Live", undefined, { timeout: PATIENCE_MS });
}

/** Goes to a view of the page that is open. */
export async function visit(page, hash) {
  await page.evaluate((next) => (location.hash = next), hash);
}

/** Opens the conversation that is called so in the list. */
export async function openTalk(page, name) {
  const row = page.locator("a.conv", { hasText: name }).first();
  await row.click({ timeout: PATIENCE_MS });
  await page.locator(`section.thread[aria-label="${name}"]`).waitFor({ timeout: PATIENCE_MS });
}

/** The texts of the thread's log, as they stand on the screen. */
export function texts(page) {
  return page.$$eval("article.msg[data-id] .bd", (all) => all.map((one) => one.textContent.trim()));
}

export async function waitForText(page, text) {
  await page.waitForFunction(
    (wanted) => [...document.querySelectorAll("article.msg[data-id] .bd")].some((one) => one.textContent.trim() === wanted),
    text,
    { timeout: PATIENCE_MS },
  );
}

export async function write(page, text) {
  await page.locator(".compose textarea").fill(text);
  await page.keyboard.press("Enter");
}

/**
 * Compares what stands on the screen with what the log holds, in its order. Pure, so that a planted bug can be shown
 * to be found by the very same judgement.
 */
export function judge(log, shown) {
  const counted = new Map();
  for (const text of shown) counted.set(text, (counted.get(text) ?? 0) + 1);
  const wanted = new Map();
  for (const text of log) wanted.set(text, (wanted.get(text) ?? 0) + 1);
  const missing = [...wanted].filter(([text, times]) => (counted.get(text) ?? 0) < times).map(([text]) => text);
  const repeated = [...counted].filter(([text, times]) => times > (wanted.get(text) ?? 0)).map(([text]) => text);
  const in_order = missing.length > 0 || repeated.length > 0 || log.every((text, place) => text === shown[place]);
  return { missing, repeated, in_order };
}

export const FAULTLESS = { missing: [], repeated: [], in_order: true };

/**
 * A proxy before the product. `eat(request)` says which answers never reach the browser; the request itself does
 * reach the product.
 */
export async function proxy(product, eat) {
  const target = new URL(product.url);
  const eaten = [];
  const onwards = (headers) => ({ ...headers, host: target.host, ...(headers.origin ? { origin: target.origin } : {}) });
  const server = http.createServer((request, response) => {
    const options = { host: target.hostname, port: target.port, method: request.method, path: request.url, headers: onwards(request.headers) };
    const upstream = http.request(options, (answer) => {
      if (eat(request)) {
        eaten.push(`${answer.statusCode} ${request.url}`);
        answer.resume();
        answer.on("end", () => request.socket.destroy());
        return;
      }
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    upstream.on("error", () => request.socket.destroy());
    request.pipe(upstream);
  });
  server.on("upgrade", (request, socket, head) => {
    const options = { host: target.hostname, port: target.port, method: "GET", path: request.url, headers: onwards(request.headers) };
    const upstream = http.request(options);
    upstream.on("upgrade", (answer, other, first) => {
      const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`);
      socket.write(first);
      other.write(head);
      socket.pipe(other).pipe(socket);
      for (const end of [socket, other]) end.on("error", () => [socket, other].forEach((one) => one.destroy()));
    });
    upstream.on("error", () => socket.destroy());
    upstream.end();
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const close = () => {
    server.closeAllConnections();
    return new Promise((done) => server.close(done));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, eaten, close };
}

/** Waits until `look` finds something, and answers with it. */
export async function until(look) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited too long: ${look}`);
    await new Promise((done) => setTimeout(done, 30));
  }
}

export function file(name) {
  return readFileSync(join(WEB, name), "utf8");
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
