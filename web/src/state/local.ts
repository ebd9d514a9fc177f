/**
 * The home in the same process as this page: its outbox, its health. Elsewhere these doors do not exist, and the
 * page says where to look instead.
 */

import { computed, signal } from "@preact/signals";
import { Refusal } from "../client";
import { api } from "./broker";

export interface Receipt {
  rung: string;
  by: string;
  at: string;
}

export interface OutboxItem {
  id: string;
  client_message_id: string;
  sender: string;
  to: string;
  status: "pending" | "inflight" | "done" | "dead" | "aborted";
  receipt: Receipt;
  rungs: Receipt[];
  attempts: number;
  enqueued_at: string;
  next_attempt_at: string | null;
  last_error: string | null;
  dead_reason: string | null;
  outcome: string | null;
  broker_message_id: string | null;
  conversation: string | null;
  history_id: number | null;
  superseded_by: string | null;
}

export interface OutboxInspection extends OutboxItem {
  request_fingerprint: string;
  deliver_by: string | null;
  first_attempt_at: string | null;
  message: { body: string; priority?: string } | null;
  chain: OutboxItem[];
}

export interface OutboxCounts {
  pending: number;
  inflight: number;
  done: number;
  dead: number;
  aborted: number;
}

export interface Health {
  daemon_version: string;
  uptime_s: number;
  roles: string[];
  problems: string[];
  meshes: Array<{
    mesh: string;
    node: string;
    person: string;
    connected: boolean;
    link: string;
    link_since: string;
    reason?: string;
    outbox: OutboxCounts;
    oldest_queued_at: string | null;
    inbox_unread: number;
    inbox_total: number;
  }>;
}

export type RequeueAnswer = { aborted_row_id: string; new_row_id: string; new_client_message_id: string; outcome: string };
export type AbortAnswer = { aborted_row_id: string; outcome: string };

/** Rows of one look; the outbox of a healthy home is much shorter. */
const ROWS_MAX = 500;

/** Whether this page stands before the home's own process. */
export const here = signal<"unknown" | "here" | "elsewhere">("unknown");
export const health = signal<Health | undefined>(undefined);
export const outbox = signal<{ items: OutboxItem[]; counts: OutboxCounts; at: number } | undefined>(undefined);

/** Dead rows: each waits for a person. */
export const dead = computed(() => health.value?.meshes.reduce((sum, mesh) => sum + mesh.outbox.dead, 0) ?? 0);

const LOCAL = "/page/local/v1";

export const local = {
  inspect: (row: string) => api.get<OutboxInspection>(`${LOCAL}/outbox/${encodeURIComponent(row)}`),
  life: (id: string) => api.get<{ direction: "out" | "in" } & OutboxItem>(`${LOCAL}/messages/${encodeURIComponent(id)}`),
  requeue: (request: { id: string; patch_body?: string; force_duplicate?: boolean }) =>
    api.post<RequeueAnswer>(`${LOCAL}/outbox/requeue`, request),
  abort: (id: string) => api.post<AbortAnswer>(`${LOCAL}/outbox/abort`, { id }),
};

export async function lookAtHealth(): Promise<void> {
  if (here.value === "elsewhere") return;
  try {
    const next = await api.get<Health>(`${LOCAL}/health`);
    here.value = "here";
    health.value = next;
  } catch (error) {
    if (error instanceof Refusal && !error.transient) here.value = "elsewhere";
  }
}

/** What waits, is on the wire, died or was retired; accepted rows are done with. */
export async function lookAtOutbox(): Promise<void> {
  if (here.value !== "here") return;
  type Page = { items: OutboxItem[]; counts: OutboxCounts };
  const states = ["dead", "inflight", "pending", "aborted"] as const;
  const pages = await Promise.all(states.map((status) => api.get<Page>(`${LOCAL}/outbox?status=${status}&limit=${ROWS_MAX}`)));
  const counts = pages[0]?.counts;
  if (counts) outbox.value = { items: pages.flatMap((page) => page.items), counts, at: Date.now() };
}
