/** A message's life: what the broker, the nodes it asked and this host know, in one order. */

import type { BrokerExplained, ExplainedRecord } from "../client";
import { type OutboxItem, local } from "./local";
import { api } from "./broker";
import { address } from "../client";
import { here } from "./local";

export interface Explained {
  broker: BrokerExplained;
  /** This host's outbox row, where there is one and it is ours to see. */
  row: OutboxItem | undefined;
}

/** Something that became true. */
export interface Event {
  at: string;
  who: string;
  what: string;
  more: string;
}

export async function explain(id: string): Promise<Explained> {
  const [broker, row] = await Promise.all([
    api.get<BrokerExplained>(address.explain(id)),
    here.peek() === "here" ? local.life(id).catch(() => undefined) : Promise.resolve(undefined),
  ]);
  return { broker, row: row?.direction === "out" ? row : undefined };
}

/** Everything that has an instant, oldest first. */
export function events(record: ExplainedRecord | undefined, { broker, row }: Explained): Event[] {
  const all: Event[] = [];
  const add = (at: string | null | undefined, who: string, what: string, more = "") => {
    if (at) all.push({ at, who, what, more });
  };
  for (const rung of row?.rungs ?? []) {
    if (rung.rung === "queued") add(rung.at, rung.by, "queued: outbox row on disk", tries(row?.attempts));
  }
  for (const home of broker.homes) {
    for (const held of home.records ?? []) {
      if (held.held === "outbox" && !row) {
        add(held.enqueued_at, home.node, "queued: outbox row on disk", tries(held.attempts));
      }
    }
  }
  if (record) {
    const place = record.history_id ? `place ${record.history_id} in ${record.conversation_name ?? "its log"}` : "";
    add(record.accepted_at, "broker", `accepted: ${place || "committed"}`);
    for (const copy of record.recipients) {
      const home = copy.home ?? "broker";
      add(copy.delivered_at, home, `delivered: ${copy.name}'s inbox`);
      add(copy.notified_at, home, `notified: handed to ${copy.name}`);
      add(copy.engaged_at, home, `engaged: ${copy.name}'s turn began`);
      add(copy.processed_at, home, `processed: ${copy.name}'s turn ended`);
      add(copy.read_at, home, `read by ${copy.name}`);
      add(copy.ended_at, home, `${copy.rung}: ${copy.name}'s copy ended`, copy.ended_code ?? "");
    }
  }
  if (row && row.receipt.rung !== "queued" && (row.status === "dead" || row.status === "aborted")) {
    add(row.receipt.at, row.receipt.by, `${row.receipt.rung}: ${row.dead_reason ?? "retired by a person"}`, row.last_error ?? "");
  }
  return all.sort((a, b) => a.at.localeCompare(b.at));
}

/** The rung all recipients reached, or how it ended. */
export function standing(explained: Explained): string {
  const record = explained.broker.records[0];
  return record?.standing ?? record?.state ?? explained.row?.receipt.rung ?? explained.broker.verdict;
}

function tries(attempts: number | undefined): string {
  if (!attempts || attempts < 2) return "";
  return `${attempts} tries, same id and fingerprint`;
}
