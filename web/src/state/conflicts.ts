/**
 * Writes of the relay that clash with what the upstream has: read, compared, decided. Only where the page's process
 * runs the relay; elsewhere the doors do not exist, and the page says where to look instead.
 */

import { computed, signal } from "@preact/signals";
import { type Api, Refusal } from "../client";

export interface Envelope {
  local_seq: number;
  envelope_id: string;
  idempotency_key: string;
  method: string;
  path: string;
  route_class: string;
  order_key: string;
  precondition: string | null;
  agent: string | null;
  session: string | null;
  principal_hint: string | null;
  status: "queued" | "inflight" | "done" | "conflict" | "rejected" | "expired" | "cancelled" | "superseded";
  outcome: string;
  attempts: number;
  queued_at: string;
  ended_at: string | null;
  last_error: string | null;
  response_status: number | null;
  response_code: string | null;
  superseded_by: string | null;
  supersedes: string | null;
  resolution: string | null;
  mine?: unknown;
  theirs?: unknown;
  theirs_etag?: string;
  /** What stood there when the write was asked, where that passed the relay. */
  base?: unknown;
  /** Why it is not known. */
  base_unknown?: string;
}

export interface RelayStatus {
  upstream: string;
  reachable: boolean;
  paused: string | null;
  queued: number;
  blocked: number;
  conflict: number;
}

export interface Acted {
  did: string;
  envelope: Envelope;
  successor?: Envelope;
  warning?: string;
}

/** A person's word: theirs stands, mine goes out on the version that was shown, or other words do. */
export type Choice = { choice: "drop" } | { choice: "keep" } | { choice: "edit"; body: unknown };

/** Rows of one look; a person reads them one by one. */
export const ROWS_MAX = 200;

const DOOR = "/page/local/relay";

export class Conflicts {
  /** Whether this page stands before the process that runs the relay. */
  readonly here = signal<"unknown" | "here" | "elsewhere">("unknown");
  readonly status = signal<RelayStatus | undefined>(undefined);
  /** Undecided ones, oldest first, and decided ones, newest first. */
  readonly rows = signal<{ open: Envelope[]; settled: Envelope[]; waiting: Envelope[]; at: number } | undefined>(undefined);
  /** How many wait for a person. */
  readonly count = computed(() => this.status.value?.conflict ?? 0);

  constructor(private readonly api: Pick<Api, "get" | "post">) {}

  async look(): Promise<void> {
    if (this.here.value === "elsewhere") return;
    try {
      this.status.value = await this.api.get<RelayStatus>(`${DOOR}/status`);
      this.here.value = "here";
    } catch (error) {
      // Away says nothing about where the relay is.
      if (error instanceof Refusal && !error.transient) this.here.value = "elsewhere";
    }
  }

  async lookAtRows(): Promise<void> {
    await this.look();
    if (this.here.value !== "here") return;
    const [open, superseded, cancelled, waiting] = await Promise.all(
      (["conflict", "superseded", "cancelled", "queued"] as const).map((status) => this.#list(status)),
    );
    const settled = [...(superseded ?? []), ...(cancelled ?? [])].filter((row) => row.resolution !== null);
    settled.sort((a, b) => Date.parse(b.ended_at ?? "") - Date.parse(a.ended_at ?? ""));
    this.rows.value = { open: open ?? [], settled, waiting: waiting ?? [], at: Date.now() };
  }

  inspect(id: string): Promise<Envelope> {
    return this.api.get<Envelope>(`${DOOR}/envelopes/${encodeURIComponent(id)}`);
  }

  /** Decides about what was shown: another state at the upstream than `seen` makes a new conflict, never a loss. */
  resolve(seen: Envelope, choice: Choice): Promise<Acted> {
    const tag = seen.theirs_etag === undefined ? {} : { seen_etag: seen.theirs_etag };
    return this.api.post<Acted>(`${DOOR}/envelopes/${encodeURIComponent(seen.envelope_id)}/resolve`, { ...choice, ...tag });
  }

  async #list(status: Envelope["status"]): Promise<Envelope[]> {
    const page = await this.api.get<{ envelopes: Envelope[] }>(`${DOOR}/envelopes?status=${status}&limit=${ROWS_MAX}`);
    return page.envelopes;
  }
}

/** One line of the comparison. */
export interface Field {
  name: string;
  /** What stood there when the write was asked; undefined when it did not, or nobody kept it. */
  base: string | undefined;
  /** What was asked for; `untouched` when the write does not name the field. */
  mine: { kind: "untouched" } | { kind: "removed" } | { kind: "value"; text: string };
  /** What is there now; undefined when it is not there, or nobody could read it. */
  theirs: string | undefined;
  /** Whether the write would change what is there. */
  clashes: boolean;
}

/** Fields of both sides: those the write names first, then the rest as it stands there. */
export function compare({ method, base, mine, theirs }: Pick<Envelope, "method" | "base" | "mine" | "theirs">): Field[] {
  const [before, asked, there] = [object(base), object(mine), object(theirs)];
  const names = [...new Set([...Object.keys(asked), ...Object.keys(there)])];
  // Only a patch leaves alone what it does not name.
  const missing: Field["mine"] = method === "PATCH" ? { kind: "untouched" } : { kind: "removed" };
  return names.map((name) => {
    const base = name in before ? text(before[name]) : undefined;
    const theirs = name in there ? text(there[name]) : undefined;
    const value = asked[name];
    if (!(name in asked)) return { name, base, mine: missing, theirs, clashes: false };
    if (value === null) return { name, base, mine: { kind: "removed" }, theirs, clashes: theirs !== undefined };
    const mine = text(value);
    return { name, base, mine: { kind: "value", text: mine }, theirs, clashes: mine !== theirs };
  });
}

/** `task:T-88` as people say it. */
export function title({ order_key }: Pick<Envelope, "order_key">): string {
  return order_key.replace(":", " ");
}

/** The condition a write was asked under: `version 41`, or since when nobody may have changed it. */
export function base(precondition: string | null): string {
  if (precondition === null) return "no condition";
  const tag = /^match (.+)$/.exec(precondition)?.[1];
  if (tag !== undefined) return version(tag);
  const since = /^unmodified-since (.+)$/.exec(precondition)?.[1];
  return since === undefined ? precondition : `unchanged since ${since}`;
}

/** `"41"` is version 41; a tag of another server is shown as it is. */
export function version(tag: string): string {
  const number = /^"(\d+)"$/.exec(tag)?.[1];
  return number === undefined ? `tag ${tag}` : `version ${number}`;
}

/** Who asked, as far as the caller said. */
export function asker(row: Pick<Envelope, "agent" | "principal_hint" | "session">): string {
  return row.agent ?? row.principal_hint ?? row.session ?? "a caller";
}

/** Later changes of the same resource that wait for the decision. */
export function behind(row: Pick<Envelope, "order_key" | "local_seq">, waiting: readonly Envelope[]): Envelope[] {
  return waiting.filter((other) => other.order_key === row.order_key && other.route_class === "replace" && other.local_seq > row.local_seq);
}

/** What an act did, and what is not yet true. */
export function told({ did, successor, warning }: Acted): string {
  switch (did) {
    case "superseded":
      return `Queued under a new key${successor ? ` on ${base(successor.precondition)}` : ""}. It is confirmed once its ladder says accepted; if the other side moved again, you come back here.`;
    case "cancelled":
      return `Withdrawn; what is there stands.${warning === undefined ? "" : ` ${warning}`}`;
    case "cancelling":
      return warning ?? "It may have been committed; it ends when the upstream has said what became of it.";
    case "done":
      return warning ?? "The upstream has it: nothing is left to do.";
    default:
      return `Recorded: ${did}.`;
  }
}

/** What a person typed instead, or why it is not sent. */
export function parseEdited(typed: string): { kind: "body"; body: unknown } | { kind: "wrong"; why: string } {
  let body: unknown;
  try {
    body = JSON.parse(typed);
  } catch (error) {
    return { kind: "wrong", why: `This is not JSON: ${error instanceof Error ? error.message : String(error)}.` };
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) return { kind: "wrong", why: "A body is one JSON object." };
  if (hasLostDigits(body)) return { kind: "wrong", why: "A number in it is larger than a browser keeps exactly; the command line takes it." };
  return { kind: "body", body };
}

function hasLostDigits(value: unknown): boolean {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && Object.values(value).some(hasLostDigits);
}

function object(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
