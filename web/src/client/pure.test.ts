import { expect, test } from "vitest";
import { RETRY_FIRST_MS, RETRY_MAX_MS, retryDelay } from "./backoff";
import * as log from "./log";
import { Refusal } from "./refusal";
import { message } from "./testing/world";
import { ulid } from "./ulid";

test("waits double up to their bound, and chance takes at most half of each", () => {
  const full = [0, 1, 2, 3, 4, 5, 6, 60].map((attempt) => retryDelay(attempt, () => 1));
  expect(full).toEqual([300, 600, 1_200, 2_400, 4_800, 9_600, RETRY_MAX_MS, RETRY_MAX_MS]);
  expect(retryDelay(0, () => 0)).toBe(RETRY_FIRST_MS / 2);
});

test("ids sort by their time, are 26 signs long, and two of one instant differ", () => {
  const [early, late] = [ulid(1_000), ulid(2_000_000_000_000)];
  expect(early).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
  expect(early < late).toBe(true);
  expect(ulid(1_000).slice(0, 10)).toBe(early.slice(0, 10));
  expect(ulid(1_000)).not.toBe(early);
  expect(ulid(1_469_918_176_385).slice(0, 10)).toBe("01ARYZ6S41");
});

test("a refusal knows whether the same words may be answered otherwise later", () => {
  const transient = [400, 401, 404, 408, 409, 410, 422, 429, 500, 503].filter((status) => new Refusal(status, "x", "").transient);
  expect(transient).toEqual([408, 429, 500, 503]);
  expect(new Refusal(503, "x", "", { retry_after_ms: 7_000 }).retry_after_ms).toBe(7_000);
  expect(new Refusal(503, "x", "", { retry_after_ms: 9e9 }).retry_after_ms).toBe(60_000);
  expect(new Refusal(503, "x", "", { retry_after_ms: "soon" }).retry_after_ms).toBe(0);
});

test("a gap stands before the rows that were caught up after it", () => {
  const shown = log.received(log.EMPTY, [1, 2, 3].map((n) => message(n)), "jane");
  const kinds = log.resumed(shown, 5, 9, 2).rows.map((row) => (row.kind === "gap" ? "gap" : row.message.body));
  expect(kinds).toEqual(["m1", "gap", "m2", "m3"]);
});

test("a draft that is gone does not come back when its answer does", () => {
  const draft: log.Draft = { client_message_id: "a", body: "", mentions: [], reply_to: undefined, asked_at: 0, state: { kind: "sending", attempts: 1 } };
  const sent = log.drafted(log.EMPTY, draft);
  const echoed = log.received(sent, [message(1, { sender: "jane", client_message_id: "a" })], "jane");
  expect(log.moved(echoed, "a", { kind: "refused", code: "x", message: "" }).drafts).toEqual([]);
});
