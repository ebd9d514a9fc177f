/**
 * What a thread shows, as a value. Pure: every change is a function from one value to the next.
 *
 * - A row of the log is shown because it came, never because its id looks new: the cursor is what prevents repeats.
 * - An own message that is not in the log yet is a draft. It stands after the log's rows; the row with its
 *   sender and client_message_id takes its place, whether that row or the answer to the POST comes first.
 * - The window is bounded. Rows that fall out at the old end can be read again by paging back.
 */

import type { Message } from "./frames";
import type { AcceptAnswer } from "./types";

/** Rows kept while the reader follows the newest. */
export const ROWS_KEPT = 400;
/** Rows after which the oldest are let go, in one cut instead of one by one. */
export const ROWS_BEFORE_CUT = 600;
/** Rows a reader may gather by paging back, or behind whom new ones may pile up. */
export const ROWS_MAX = 5_000;

export type Row =
  | { kind: "message"; message: Message }
  /** The socket was away between two instants; so many rows were caught up. */
  | { kind: "gap"; key: string; from: number; until: number; rows: number };

export type DraftState =
  | { kind: "sending"; attempts: number }
  /** Durable at the broker; its row has not come yet. */
  | { kind: "accepted"; answer: AcceptAnswer }
  | { kind: "refused"; code: string; message: string };

export interface Draft {
  client_message_id: string;
  body: string;
  mentions: readonly string[];
  reply_to: string | undefined;
  asked_at: number;
  state: DraftState;
}

export interface Log {
  rows: readonly Row[];
  drafts: readonly Draft[];
  /** Where a page further back ends; meaningless without `has_more`. */
  before: string;
  has_more: boolean;
}

export const EMPTY: Log = { rows: [], drafts: [], before: "", has_more: false };

/** The newest page replaces what was shown; drafts stay unless the page holds them. */
export function opened(log: Log, page: { messages: readonly Message[]; before: string; has_more: boolean }, me: string): Log {
  return {
    rows: page.messages.map(row),
    drafts: page.messages.reduce((drafts, message) => without(drafts, message, me), log.drafts),
    before: page.before,
    has_more: page.has_more,
  };
}

/** Rows that came over the socket, in their order, each shown. */
export function received(log: Log, messages: readonly Message[], me: string): Log {
  if (messages.length === 0) return log;
  return {
    ...log,
    rows: [...log.rows, ...messages.map(row)],
    drafts: messages.reduce((drafts, message) => without(drafts, message, me), log.drafts),
  };
}

/** A page further back. */
export function older(log: Log, page: { messages: readonly Message[]; before: string; has_more: boolean }): Log {
  return { ...log, rows: [...page.messages.map(row), ...log.rows], before: page.before, has_more: page.has_more };
}

/** The socket was away and is back. */
export function resumed(log: Log, from: number, until: number, rows: number): Log {
  const gap: Row = { kind: "gap", key: `gap-${from}`, from, until, rows };
  const place = log.rows.length - rows;
  return { ...log, rows: [...log.rows.slice(0, place), gap, ...log.rows.slice(place)] };
}

/** Lets the oldest rows go when there are too many. */
export function trimmed(log: Log): Log {
  if (log.rows.length <= ROWS_BEFORE_CUT) return log;
  let start = log.rows.length - ROWS_KEPT;
  while (log.rows[start]?.kind === "gap") start += 1;
  const first = log.rows[start];
  if (first?.kind !== "message") return log;
  return { ...log, rows: log.rows.slice(start), before: first.message.cursor, has_more: true };
}

export function drafted(log: Log, draft: Draft): Log {
  return { ...log, drafts: [...log.drafts, draft] };
}

/** A draft's state moves; one whose row came already is not there any more, and stays so. */
export function moved(log: Log, client_message_id: string, state: DraftState): Log {
  const drafts = log.drafts.map((draft) => (draft.client_message_id === client_message_id ? { ...draft, state } : draft));
  return { ...log, drafts };
}

export function discarded(log: Log, client_message_id: string): Log {
  return { ...log, drafts: log.drafts.filter((draft) => draft.client_message_id !== client_message_id) };
}

function row(message: Message): Row {
  return { kind: "message", message };
}

function without(drafts: readonly Draft[], message: Message, me: string): readonly Draft[] {
  // Ids are unique per sender only: another member's message under the same id is another message.
  if (drafts.length === 0 || message.sender !== me) return drafts;
  return drafts.filter((draft) => draft.client_message_id !== message.client_message_id);
}
