import { beforeEach, expect, test } from "vitest";
import type { Escalation } from "../client";
import { cleared, escalations, raised, snapshot } from "./escalations";

function escalation(conversation_id: string, rev: number): Escalation {
  return { conversation_id, conversation_name: "#x", rev, history_id: 1, sender: "ci", question: "?", created_at: "" };
}

beforeEach(() => snapshot([]));

test("the snapshot is the level, edges move it", () => {
  snapshot([escalation("a", 1), escalation("b", 4)]);
  raised(escalation("c", 1));
  cleared({ conversation_id: "b", rev: 5 });
  expect([...escalations.value.keys()]).toEqual(["a", "c"]);
});

test("an edge older than what is known changes nothing", () => {
  snapshot([escalation("d", 7)]);
  cleared({ conversation_id: "d", rev: 6 });
  expect(escalations.value.has("d")).toBe(true);
  cleared({ conversation_id: "d", rev: 8 });
  raised(escalation("d", 7));
  expect(escalations.value.has("d")).toBe(false);
});
