import { expect, test } from "vitest";
import { Away, Refusal } from "../client";
import { type Acted, Conflicts, type Envelope, base, behind, compare, parseEdited, title, told, version } from "./conflicts";

const ROW: Envelope = {
  local_seq: 7,
  envelope_id: "01M7E1RKJKKJ30VY8N1C7TQW2E",
  idempotency_key: "k",
  method: "PATCH",
  path: "/tasks/T-88",
  route_class: "replace",
  order_key: "task:T-88",
  precondition: 'match "41"',
  agent: "reviewer",
  session: null,
  principal_hint: null,
  status: "conflict",
  outcome: "not_committed",
  attempts: 1,
  queued_at: "2026-11-15T20:31:00Z",
  ended_at: null,
  last_error: null,
  response_status: 409,
  response_code: "state_conflict",
  superseded_by: null,
  supersedes: null,
  resolution: null,
};

/** A door with prepared answers, by the path up to its query; it notes what was asked. */
function door(answers: Record<string, unknown>) {
  const asked: Array<[string, unknown]> = [];
  const answer = async <T>(path: string, body?: unknown): Promise<T> => {
    asked.push([path, body]);
    const found = answers[path] ?? answers[path.split("?")[0] ?? ""];
    if (found instanceof Error) throw found;
    return found as T;
  };
  return { asked, api: { get: answer, post: answer } };
}

const STATUS = { upstream: "http://hub", reachable: true, paused: null, queued: 1, blocked: 1, conflict: 1 };
const list = (status: string) => `/page/local/relay/envelopes?status=${status}&limit=200`;

test("open, decided and waiting rows are read; only what a person decided is called settled", async () => {
  const decided = { ...ROW, envelope_id: "a", status: "superseded", resolution: "kept mine", ended_at: "2026-11-15T20:00:00Z" };
  const later = { ...ROW, envelope_id: "b", status: "cancelled", resolution: "dropped mine", ended_at: "2026-11-15T21:00:00Z" };
  const { api } = door({
    "/page/local/relay/status": STATUS,
    [list("conflict")]: { envelopes: [ROW] },
    [list("superseded")]: { envelopes: [decided] },
    [list("cancelled")]: { envelopes: [later, { ...later, envelope_id: "c", resolution: null }] },
    [list("queued")]: { envelopes: [] },
  });
  const store = new Conflicts(api);
  await store.lookAtRows();
  expect([store.here.value, store.count.value]).toEqual(["here", 1]);
  expect(store.rows.value?.open.map((row) => row.envelope_id)).toEqual([ROW.envelope_id]);
  expect(store.rows.value?.settled.map((row) => row.envelope_id)).toEqual(["b", "a"]);
});

test("a door that does not exist means elsewhere, and is not asked again; no answer means nothing", async () => {
  const away = door({ "/page/local/relay/status": new Away() });
  const unsure = new Conflicts(away.api);
  await unsure.lookAtRows();
  expect([unsure.here.value, unsure.rows.value]).toEqual(["unknown", undefined]);
  const none = door({ "/page/local/relay/status": new Refusal(404, "not_found", "") });
  const store = new Conflicts(none.api);
  await store.lookAtRows();
  await store.lookAtRows();
  expect([store.here.value, none.asked.length]).toEqual(["elsewhere", 1]);
});

test("a decision names the state that was seen", async () => {
  const path = `/page/local/relay/envelopes/${ROW.envelope_id}/resolve`;
  const { api, asked } = door({ [path]: {} });
  const store = new Conflicts(api);
  await store.resolve({ ...ROW, theirs_etag: '"43"' }, { choice: "keep" });
  await store.resolve(ROW, { choice: "edit", body: { status: "done" } });
  expect(asked).toEqual([
    [path, { choice: "keep", seen_etag: '"43"' }],
    [path, { choice: "edit", body: { status: "done" } }],
  ]);
});

test("fields the write names come first, and clash where the other side has something else", () => {
  const theirs = { id: "T-88", status: "cancelled", note: "x", size: 3 };
  const fields = compare({ method: "PATCH", mine: { status: "done", note: null, size: 3, extra: [1] }, theirs });
  expect(fields.map(({ name, mine, theirs, clashes }) => [name, mine.kind, theirs, clashes])).toEqual([
    ["status", "value", "cancelled", true],
    ["note", "removed", "x", true],
    ["size", "value", "3", false],
    ["extra", "value", undefined, true],
    ["id", "untouched", "T-88", false],
  ]);
  expect(compare({ method: "PUT", mine: {}, theirs: { a: 1 } })[0]?.mine.kind).toBe("removed");
  expect(compare({ method: "PATCH", mine: "no object", theirs: undefined })).toEqual([]);
  const based = compare({ method: "PATCH", base: { status: "todo" }, mine: { status: "done" }, theirs });
  expect(based.map(({ name, base }) => [name, base]).slice(0, 2)).toEqual([["status", "todo"], ["id", undefined]]);
});

test("conditions are said in words", () => {
  expect([base('match "41"'), base("match W/x"), base("unmodified-since 2026"), base(null)]).toEqual([
    "version 41",
    "tag W/x",
    "unchanged since 2026",
    "no condition",
  ]);
  expect([version('"7"'), version("abc"), title(ROW)]).toEqual(["version 7", "tag abc", "task T-88"]);
});

test("only later changes of the same resource wait for the decision", () => {
  const other = (local_seq: number, more: Partial<Envelope> = {}): Envelope => ({ ...ROW, status: "queued", local_seq, ...more });
  const waiting = [other(6), other(8), other(9, { order_key: "task:T-9" }), other(10, { route_class: "append" })];
  expect(behind(ROW, waiting).map((row) => row.local_seq)).toEqual([8]);
});

test("an act is told by what is true, never as done before it is", () => {
  const acted = (did: string, more: Partial<Acted> = {}): Acted => ({ did, envelope: ROW, ...more });
  expect(told(acted("superseded", { successor: { ...ROW, precondition: 'match "43"' } }))).toMatch(/new key on version 43.*confirmed once its ladder says accepted/);
  expect(told(acted("cancelled", { warning: "It may be there." }))).toBe("Withdrawn; what is there stands. It may be there.");
  expect(told(acted("cancelling"))).toMatch(/may have been committed/);
  expect(told(acted("done"))).toMatch(/has it/);
});

test("words that are no object, or numbers a browser would alter, are not sent", () => {
  expect(parseEdited('{"status":"done"}')).toEqual({ kind: "body", body: { status: "done" } });
  for (const typed of ["{", "[]", "null", '"x"', '{"n":{"m":[9007199254740993]}}']) {
    expect(parseEdited(typed).kind, typed).toBe("wrong");
  }
});
