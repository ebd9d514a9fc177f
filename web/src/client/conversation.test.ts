import { describe, expect, test } from "vitest";
import { OPEN_MAX_MS, PONG_MAX_MS, QUIET_MAX_MS } from "./connection";
import { ROWS_BEFORE_CUT, ROWS_KEPT, ROWS_MAX } from "./log";
import { FakeSocket, World, frame, message, page, settle } from "./testing/world";

/** The answer to a POST of `client_message_id`. */
function accepted(client_message_id: string, history_id: number, duplicate = false) {
  const body = { broker_message_id: `id-${history_id}`, client_message_id, conversation: "conv", history_id, created_at: "", duplicate };
  return { status: duplicate ? 200 : 201, body };
}

describe("the join of page and subscription", () => {
  test("no socket is opened before the page was read, and the first subscribe carries the page's cursor", async () => {
    const world = new World();
    const opening = world.conversation([message(1), message(2)], "c2");
    expect(world.sockets).toHaveLength(0);
    await opening;
    expect(world.server.protocols).toEqual(["postrider.v1", "ticket.t"]);
    expect(world.server.subscribes()).toEqual([{ type: "subscribe", conversation_id: "conv", since_cursor: "c2", sub: world.server.sub }]);
  });

  test("each row that comes is shown, also one that looks like another", async () => {
    const world = new World();
    await world.conversation([message(1)], "c1");
    const { sub } = world.server;
    for (const n of [2, 3]) world.server.says(frame(n, sub, { body: "again", client_message_id: "same" }));
    expect(world.rows).toEqual(["m1", "again", "again"]);
  });

  test("a frame of a subscription that was replaced is not shown", async () => {
    const world = new World();
    const conversation = await world.conversation([message(1)], "c1");
    const old = world.server.sub;
    const opening = conversation.open();
    await world.call.answer({ status: 200, body: page([message(1), message(2)], "c2") });
    await opening;
    expect(world.server.sub).not.toBe(old);
    world.server.says(frame(2, old));
    world.server.says(frame(3, world.server.sub));
    expect(world.rows).toEqual(["m1", "m2", "m3"]);
  });

  test("a page that comes after a fresh start was asked for is not shown", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const first = conversation.open();
    const early = world.call;
    const second = conversation.open();
    await world.call.answer({ status: 200, body: page([message(2)], "c2") });
    await early.answer({ status: 200, body: page([message(1)], "c1") });
    await Promise.all([first, second]);
    expect(world.rows).toEqual(["m2"]);
    expect(world.server.subscribes().at(-1)).toMatchObject({ since_cursor: "c2" });
  });
});

describe("a socket that drops", () => {
  test("is opened again and subscribes at the cursor of the last row, not at the page's", async () => {
    const world = new World();
    await world.conversation([message(1)], "c1");
    world.server.says(frame(2, world.server.sub));
    world.server.breaks();
    await world.pass(400);
    world.server.accept();
    expect(world.sockets).toHaveLength(2);
    expect(world.server.subscribes()).toMatchObject([{ since_cursor: "c2" }]);
  });

  test("leaves a row that says for how long and how many rows were caught up", async () => {
    const world = new World();
    await world.conversation([message(1)], "c1");
    world.server.breaks();
    await world.pass(400);
    world.server.accept();
    const { sub } = world.server;
    world.server.says(frame(2, sub));
    world.server.says(frame(3, sub));
    world.server.says({ type: "subscribed", conversation_id: "conv", sub, cursor: "c3", generation: 0 });
    world.server.says(frame(4, sub));
    expect(world.rows).toEqual(["m1", "gap of 2", "m2", "m3", "m4"]);
  });

  test("is tried again with doubling waits, and said to be away since it dropped", async () => {
    const world = new World();
    await world.conversation();
    const dropped_at = world.time;
    world.server.breaks();
    expect(world.connection.standing).toEqual({ kind: "away", since: dropped_at });
    for (const [wait, sockets] of [[299, 1], [1, 2]] as const) {
      await world.pass(wait);
      expect(world.sockets).toHaveLength(sockets);
    }
    world.server.breaks();
    await world.pass(599);
    expect(world.sockets).toHaveLength(2);
    await world.pass(1);
    expect(world.sockets).toHaveLength(3);
    expect(world.connection.standing).toEqual({ kind: "away", since: dropped_at });
    world.server.accept();
    expect(world.connection.standing.kind).toBe("live");
  });

  test("that lets in and turns away at once is not asked without pause", async () => {
    const world = new World();
    await world.conversation();
    for (let round = 0; round < 4; round += 1) {
      world.server.breaks(4408);
      await world.pass(300 * 2 ** round);
      expect(world.sockets).toHaveLength(round + 2);
      world.server.accept();
    }
  });

  test("quietly is found out by asking", async () => {
    const world = new World();
    await world.conversation();
    await world.pass(QUIET_MAX_MS);
    expect(world.server.sent.at(-1)).toEqual({ type: "ping" });
    world.server.says({ type: "pong" });
    await world.pass(QUIET_MAX_MS - 1);
    expect(world.connection.standing.kind).toBe("live");
    await world.pass(1 + PONG_MAX_MS);
    expect(world.connection.standing.kind).toBe("away");
    expect(world.server.closed).toBe(true);
  });

  test("and an upgrade that never ends is given up", async () => {
    const world = new World();
    await world.conversation();
    world.server.breaks();
    await world.pass(300);
    const hanging = world.server;
    await world.pass(OPEN_MAX_MS);
    expect(hanging.closed).toBe(true);
    expect(world.connection.standing.kind).toBe("away");
  });

  test("comes back at once when a person or the network says so", async () => {
    const world = new World();
    await world.conversation();
    world.server.breaks();
    world.connection.hurry();
    world.connection.hurry();
    await settle();
    expect(world.sockets).toHaveLength(2);
  });

  test("ends in a sign-in when the session is over", async () => {
    const world = new World();
    await world.conversation();
    world.tickets = "asked";
    world.server.breaks(4401);
    await world.pass(400);
    await world.call.answer({ status: 401, body: { error: "unauthorized", message: "no" } });
    expect(world.connection.standing).toEqual({ kind: "signed_out" });
    await world.pass(60_000);
    expect(world.sockets).toHaveLength(1);
  });
});

describe("a cursor that leads nowhere", () => {
  const ends = (sub: string) =>
    [
      { type: "reset", conversation_id: "conv", sub, generation: 1 },
      { type: "error", code: "invalid_cursor", message: "", conversation_id: "conv", sub },
      { type: "error", code: "cursor_expired", message: "", conversation_id: "conv", sub, first_available: "x" },
    ] as const;

  test.each([0, 1, 2])("drops the view and reads the page again (%i)", async (which) => {
    const world = new World();
    await world.conversation([message(1), message(2)], "c2");
    const end = ends(world.server.sub)[which];
    if (end) world.server.says(end);
    await world.call.answer({ status: 200, body: page([message(7)], "c7") });
    expect(world.rows).toEqual(["m7"]);
    expect(world.server.subscribes().at(-1)).toMatchObject({ since_cursor: "c7" });
    expect(world.sockets).toHaveLength(1);
  });

  test("an error of an earlier subscription changes nothing", async () => {
    const world = new World();
    await world.conversation([message(1)], "c1");
    const calls = world.calls.length;
    world.server.says({ type: "error", code: "invalid_cursor", message: "", conversation_id: "conv", sub: "older" });
    expect(world.calls).toHaveLength(calls);
  });

  test("a broker that cannot serve it now is asked again at the same place", async () => {
    const world = new World();
    await world.conversation([message(1)], "c1");
    const { sub } = world.server;
    world.server.says({ type: "error", code: "unavailable", message: "", conversation_id: "conv", sub });
    await world.pass(10_000);
    expect(world.server.subscribes()).toHaveLength(2);
    expect(world.server.subscribes().at(-1)).toMatchObject({ since_cursor: "c1" });
    expect(world.rows).toEqual(["m1"]);
  });
});

describe("an own message", () => {
  test("is a draft until its row comes, which takes its place", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const id = conversation.send({ body: "hello" });
    expect(world.view?.log.drafts).toMatchObject([{ body: "hello", state: { kind: "sending" } }]);
    await world.call.answer(accepted(id, 1));
    expect(world.view?.log.drafts).toMatchObject([{ state: { kind: "accepted" } }]);
    world.server.says(frame(1, world.server.sub, { sender: "jane", client_message_id: id, body: "hello" }));
    expect(world.view?.log.drafts).toEqual([]);
    expect(world.rows).toEqual(["hello"]);
  });

  test("whose row comes before the answer is shown once", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const id = conversation.send({ body: "hello" });
    world.server.says(frame(1, world.server.sub, { sender: "jane", client_message_id: id, body: "hello" }));
    await world.call.answer(accepted(id, 1));
    expect(world.view?.log.drafts).toEqual([]);
    expect(world.rows).toEqual(["hello"]);
  });

  test("without an answer is asked again under the same id", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const id = conversation.send({ body: "hello", reply_to: "r" });
    const first = world.call;
    await first.answer("away");
    await world.pass(300);
    expect(world.call).not.toBe(first);
    expect(world.call.body).toEqual(first.body);
    expect(world.call.body).toEqual({ body: "hello", client_message_id: id, reply_to: "r" });
    await world.call.answer({ status: 503, body: { error: "unavailable", message: "not now", retry_after_ms: 5_000 } });
    const calls = world.calls.length;
    await world.pass(4_999);
    expect(world.calls).toHaveLength(calls);
    await world.pass(1);
    expect(world.call.body).toEqual(first.body);
    await world.call.answer(accepted(id, 1, true));
    expect(world.view?.log.drafts).toMatchObject([{ state: { kind: "accepted" } }]);
  });

  test("whose row came is not asked again, whatever became of the answer", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const id = conversation.send({ body: "hello" });
    const calls = world.calls.length;
    await world.call.answer("away");
    world.server.says(frame(1, world.server.sub, { sender: "jane", client_message_id: id, body: "hello" }));
    await world.pass(60_000);
    expect(world.calls).toHaveLength(calls);
    expect(world.rows).toEqual(["hello"]);
  });

  test("that is refused says why, stays, and can be asked again under its id or taken away", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const id = conversation.send({ body: "hello" });
    const first = world.call;
    await first.answer({ status: 409, body: { error: "conversation_closed", message: "It is closed." } });
    expect(world.view?.log.drafts).toMatchObject([{ state: { kind: "refused", code: "conversation_closed" } }]);
    conversation.resend(id);
    expect(world.call.body).toEqual(first.body);
    await world.call.answer({ status: 409, body: { error: "conversation_closed", message: "It is closed." } });
    conversation.discard(id);
    expect(world.view?.log.drafts).toEqual([]);
  });

  test("is handed over after the one before it has its answer, or its row", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const calls = world.calls.length;
    const [a, b, c] = ["a", "b", "c"].map((body) => conversation.send({ body }));
    expect(world.calls).toHaveLength(calls + 1);
    const first = world.call;
    await first.answer("away");
    await world.pass(300);
    expect(world.call.body).toEqual(first.body);
    await world.call.answer(accepted(a ?? "", 1));
    expect(world.call.body).toMatchObject({ body: "b", client_message_id: b });
    world.server.says(frame(2, world.server.sub, { sender: "jane", client_message_id: b ?? "", body: "b" }));
    expect(world.call.body).toMatchObject({ body: "c", client_message_id: c });
    await world.call.answer({ status: 422, body: { error: "mention_unknown", message: "who?" } });
    expect(world.calls).toHaveLength(calls + 4);
  });

  test("is handed over although its conversation was left, and is found in its page", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const id = conversation.send({ body: "hello" });
    const first = world.call;
    conversation.leave();
    expect(world.server.sent.at(-1)).toEqual({ type: "unsubscribe", conversation_id: "conv" });
    await first.answer("away");
    await world.pass(300);
    expect(world.call.body).toEqual(first.body);
    expect(conversation.unanswered).toBe(true);
    await world.call.answer(accepted(id, 1));
    expect(conversation.unanswered).toBe(false);
    const opening = conversation.open();
    await world.call.answer({ status: 200, body: page([message(1, { sender: "jane", client_message_id: id })], "c1") });
    await opening;
    expect(world.view?.log.drafts).toEqual([]);
    expect(world.rows).toEqual(["m1"]);
  });

  test("of another member under the same id leaves the draft alone", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const id = conversation.send({ body: "hello" });
    world.server.says(frame(1, world.server.sub, { sender: "ci", client_message_id: id }));
    expect(world.view?.log.drafts).toHaveLength(1);
    expect(world.rows).toEqual(["m1"]);
  });

  test("two of them swap with nobody, in whichever order their rows come", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const a = conversation.send({ body: "a" });
    const b = conversation.send({ body: "b" });
    world.server.says(frame(1, world.server.sub, { sender: "jane", client_message_id: b, body: "b" }));
    expect(world.view?.log.drafts).toMatchObject([{ client_message_id: a }]);
    world.server.says(frame(2, world.server.sub, { sender: "jane", client_message_id: a, body: "a" }));
    expect(world.rows).toEqual(["b", "a"]);
    expect(world.view?.log.drafts).toEqual([]);
  });

  test("survives a reset and is found in the page that follows", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const id = conversation.send({ body: "hello" });
    const post = world.call;
    world.server.says({ type: "reset", conversation_id: "conv", sub: world.server.sub, generation: 1 });
    expect(world.view?.log.drafts).toHaveLength(1);
    await post.answer("away");
    await world.call.answer({ status: 200, body: page([message(1, { sender: "jane", client_message_id: id })], "c1") });
    expect(world.view?.log.drafts).toEqual([]);
    expect(world.rows).toEqual(["m1"]);
  });
});

describe("a long conversation", () => {
  test("is read back page by page, each joined to the one after it", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const opening = conversation.open();
    await world.call.answer({ status: 200, body: page([message(5), message(6)], "c6", "c5", true) });
    await opening;
    const back = conversation.older();
    expect(await conversation.older()).toBe(false);
    expect(world.call.path).toContain("before=c5");
    await world.call.answer({ status: 200, body: page([message(3), message(4)], "c6", "c3", false) });
    expect(await back).toBe(true);
    expect(world.rows).toEqual(["m3", "m4", "m5", "m6"]);
    expect(await conversation.older()).toBe(false);
    world.server.says(frame(7, world.server.sub));
    expect(world.rows.at(-1)).toBe("m7");
  });

  test("lets its oldest rows go while the reader follows, and they can be read back", async () => {
    const world = new World();
    await world.conversation();
    const { sub } = world.server;
    for (let n = 1; n <= ROWS_BEFORE_CUT + 1; n += 1) world.server.says(frame(n, sub));
    const first = ROWS_BEFORE_CUT + 2 - ROWS_KEPT;
    expect(world.rows).toHaveLength(ROWS_KEPT);
    expect(world.rows[0]).toBe(`m${first}`);
    expect(world.view?.log).toMatchObject({ has_more: true, before: `c${first}` });
  });

  test("is not followed without end behind a reader of old rows", async () => {
    const world = new World();
    const conversation = await world.conversation();
    conversation.follows = false;
    const { sub } = world.server;
    for (let n = 1; n <= ROWS_MAX + 1; n += 1) world.server.says(frame(n, sub));
    expect(world.view?.phase).toEqual({ kind: "detached" });
    expect(world.server.sent.at(-1)).toEqual({ type: "unsubscribe", conversation_id: "conv" });
  });

  test("whose page does not come is asked for again", async () => {
    const world = new World();
    const conversation = await world.conversation();
    const opening = conversation.open();
    await world.call.answer("away");
    await world.pass(300);
    await world.call.answer({ status: 200, body: page([message(1)], "c1") });
    await opening;
    expect(world.rows).toEqual(["m1"]);
  });
});

test("what is no frame is passed over and the socket stays", async () => {
  const world = new World();
  await world.conversation();
  for (const data of ["nonsense", "[]", "null", 7, '{"type":"later_invention"}']) world.server.onmessage?.({ data });
  world.server.says(frame(1, world.server.sub));
  expect(world.rows).toEqual(["m1"]);
  expect(world.server).toBeInstanceOf(FakeSocket);
});
