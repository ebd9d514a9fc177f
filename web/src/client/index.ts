/**
 * Reading and writing Postrider conversations from a browser, without gap and without repeat.
 *
 * The rules, each of them a test beside this file:
 *
 * 1. First read the newest page, then subscribe with the cursor of that same answer. Never the other way round.
 * 2. Show every row that comes. Nothing is recognised by id, text or time: the cursor is what prevents repeats.
 * 3. Keep the cursor of the last row, per conversation, and subscribe there after a drop.
 * 4. `invalid_cursor`, `cursor_expired`, `reset`: drop the view, read the page again.
 * 5. An own message is shown at once as a draft. The row with its client_message_id takes its place, whether that
 *    row or the answer to the POST comes first.
 * 6. No answer to a POST: the same request under the same id, until there is one.
 * 7. Come back with growing, jittered waits, and say so meanwhile.
 *
 * ```ts
 * const world = browser();
 * const api = new Api(world);
 * const connection = new Connection(api, world, listener);
 * const talk = new Conversation(id, "jane", api, connection, world, (view) => draw(view));
 * await talk.open();
 * talk.send({ body: "hello" });
 * ```
 */

export { Api, address } from "./api";
export { retryDelay } from "./backoff";
export { Connection, type Listener, type Sink, type Standing } from "./connection";
export { Conversation, PAGE_ROWS, type Phase, type View, type Words } from "./conversation";
export type { Escalation, Frame, Message, MessageFrame } from "./frames";
export { type Draft, type DraftState, type Log, type Row } from "./log";
export { Away, Refusal } from "./refusal";
export { browser, type SocketLike, type Surroundings } from "./surroundings";
export { ulid } from "./ulid";
export type * from "./types";
