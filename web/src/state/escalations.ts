/** Which conversations wait for a person: a level at connect, then edges. Cleared by the server, not by looking. */

import { signal } from "@preact/signals";
import type { Escalation } from "../client";

export const escalations = signal<ReadonlyMap<string, Escalation>>(new Map());
/** The newest change known of each conversation; an edge older than the snapshot must not undo it. */
const revisions = new Map<string, number>();

export function snapshot(open: readonly Escalation[]): void {
  for (const { conversation_id, rev } of open) revisions.set(conversation_id, rev);
  escalations.value = new Map(open.map((one) => [one.conversation_id, one]));
}

export function raised(one: Escalation): void {
  if (!isNews(one)) return;
  escalations.value = new Map(escalations.value).set(one.conversation_id, one);
}

export function cleared(one: { conversation_id: string; rev: number }): void {
  if (!isNews(one)) return;
  const next = new Map(escalations.value);
  next.delete(one.conversation_id);
  escalations.value = next;
}

function isNews({ conversation_id, rev }: { conversation_id: string; rev: number }): boolean {
  if ((revisions.get(conversation_id) ?? -1) >= rev) return false;
  revisions.set(conversation_id, rev);
  return true;
}
