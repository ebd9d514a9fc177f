/** How far the newest own messages of the open conversation came. They climb silently. */

import { signal } from "@preact/signals";
import { type BrokerExplained, type ExplainedRecord, type Row, address } from "../client";
import { api, me } from "./broker";
import { shown } from "./thread";

/** Messages whose ladders are kept fresh; older ones show theirs when they are opened. */
const FRESH_MAX = 6;

export const receipts = signal<ReadonlyMap<string, ExplainedRecord>>(new Map());

export async function lookAtReceipts(): Promise<void> {
  const rows = shown.peek()?.log.rows ?? [];
  const wanted = rows.filter(isOwn).slice(-FRESH_MAX).filter(({ message }) => !isOver(receipts.peek().get(message.id)));
  for (const { message } of wanted) {
    const explained = await api.get<BrokerExplained>(address.explain(message.id));
    const record = explained.records.find((one) => one.broker_message_id === message.id);
    if (record) learned(record);
  }
}

export function learned(record: ExplainedRecord): void {
  const id = record.broker_message_id;
  if (!id || JSON.stringify(receipts.peek().get(id)) === JSON.stringify(record)) return;
  receipts.value = new Map([...receipts.peek()].slice(-200)).set(id, record);
}

/** `in 4 of 5 inboxes`, and the share for the half bar. */
export function inboxes(record: ExplainedRecord): { part: number | undefined; note: string | undefined } {
  const all = record.recipients.length;
  if (all === 0) return { part: undefined, note: "nobody is subscribed" };
  if (all === 1) return { part: undefined, note: undefined };
  const reached = record.recipients.filter((copy) => copy.delivered_at).length;
  const complete = reached === all;
  return { part: complete ? undefined : reached / all, note: complete ? `in ${all === 2 ? "both" : `all ${all}`} inboxes` : `in ${reached} of ${all} inboxes` };
}

function isOwn(row: Row): row is Extract<Row, { kind: "message" }> {
  return row.kind === "message" && row.message.sender === me.peek();
}

/** Whether no copy can climb any more. */
function isOver(record: ExplainedRecord | undefined): boolean {
  return record !== undefined && record.recipients.every((copy) => copy.processed_at || copy.ended_at);
}
