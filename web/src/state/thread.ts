/** The conversation that is open. */

import { effect, signal } from "@preact/signals";
import { Conversation, type ReadAnswer, type View, address } from "../client";
import { api, connection, me, standing, world } from "./broker";
import { heard, markedRead } from "./talks";

export const thread = signal<Conversation | undefined>(undefined);
export const shown = signal<View | undefined>(undefined);
/** Rows that came while the reader looked at older ones. */
export const below = signal(0);
/** What is typed but not handed over, per conversation; only in this tab. */
export const typed = new Map<string, string>();

let newest_history_id = 0;

/** Left conversations that still hand something over; leaving a view must not cancel work. */
const unfinished = new Map<string, Conversation>();

/** Opens `id` unless it is open. */
export function openThread(id: string | undefined): void {
  const before = thread.peek();
  if (before?.id === id) return;
  if (before) {
    before.leave();
    if (before.unanswered) unfinished.set(before.id, before);
  }
  shown.value = undefined;
  below.value = 0;
  newest_history_id = 0;
  if (id === undefined) {
    thread.value = undefined;
    return;
  }
  const opened = unfinished.get(id) ?? new Conversation(id, me.peek(), api, connection, world, changed);
  unfinished.delete(id);
  opened.follows = true;
  thread.value = opened;
  void opened.open();
}

/** The reader went to the newest rows, or away from them. */
export function follow(follows: boolean): void {
  const open = thread.peek();
  if (!open) return;
  open.follows = follows;
  if (!follows) return;
  below.value = 0;
  void markRead();
}

function changed(view: View): void {
  shown.value = view;
  const last = view.log.rows.findLast((row) => row.kind === "message");
  if (last?.kind !== "message" || last.message.history_id <= newest_history_id) return;
  const open = thread.peek();
  if (newest_history_id > 0 && open?.follows === false) {
    below.value += view.log.rows.filter((row) => row.kind === "message" && row.message.history_id > newest_history_id).length;
  }
  newest_history_id = last.message.history_id;
  if (!open) return;
  heard(open.id, last.message);
  if (open.follows) void markRead();
}

let told = "";
let telling = false;

/** Says how far was read; only what stands on a screen somebody looks at counts as read. */
async function markRead(): Promise<void> {
  const open = thread.peek();
  const last = shown.peek()?.log.rows.findLast((row) => row.kind === "message");
  if (!open || telling || document.hidden || last?.kind !== "message") return;
  const { cursor } = last.message;
  const fact = `${open.id} ${cursor}`;
  if (fact === told) return;
  telling = true;
  try {
    markedRead(open.id, await api.post<ReadAnswer>(address.read(open.id), { cursor }));
    told = fact;
  } catch {
    // It is told with the next row, or at the next look.
  } finally {
    // A stream of rows is told once a while, not row by row.
    setTimeout(() => {
      telling = false;
      if (thread.peek()?.follows) void markRead();
    }, 500);
  }
}

export function startThread(): void {
  addEventListener("beforeunload", (event) => {
    const open = thread.peek();
    const all = open ? [open, ...unfinished.values()] : [...unfinished.values()];
    // What is only in this tab would be lost without a word.
    if (all.some((one) => one.unanswered)) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => void markRead());
  effect(() => {
    if (standing.value.kind === "live") void markRead();
  });
}
