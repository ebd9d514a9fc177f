/** The list of conversations: the broker's rows, with the first words of each one's newest message. */

import { computed, signal } from "@preact/signals";
import { type ConversationList, type ConversationRow, type Message, type Page, address } from "../client";
import { api, me } from "./broker";
import { escalations } from "./escalations";

/** More than anybody scrolls through; the rest is found by its name. */
const LISTED_MAX = 200;
/** Conversations whose newest words are looked up. */
const PREVIEWS_MAX = 40;

export const talks = signal<readonly ConversationRow[] | undefined>(undefined);
export const previews = signal<ReadonlyMap<string, Message>>(new Map());

/** Conversations in which somebody else waits for us. */
export const waiting = computed(() => {
  const others = [...escalations.value.values()].filter((one) => one.sender !== me.value);
  return new Map(others.map((one) => [one.conversation_id, one]));
});

/** Those that wait first, then the last active. */
export const ordered = computed(() => {
  const rows = talks.value ?? [];
  const waits = (row: ConversationRow) => (waiting.value.has(row.conversation) ? 0 : 1);
  return [...rows].sort((a, b) => waits(a) - waits(b) || (b.last_at ?? "").localeCompare(a.last_at ?? ""));
});

export const unread = computed(() => (talks.value ?? []).reduce((sum, row) => sum + (row.unread ?? 0), 0));

/** When the newest row of any conversation came. */
export const newestAt = computed(() =>
  (talks.value ?? []).reduce<string | undefined>((newest, { last_at }) => (last_at && last_at > (newest ?? "") ? last_at : newest), undefined),
);

/** How long the last look took, for the plot of answer times. */
export const answered_ms = signal(0);

export async function lookAtTalks(): Promise<void> {
  const began = performance.now();
  const list = await api.get<ConversationList>(address.conversations(LISTED_MAX));
  answered_ms.value = performance.now() - began;
  if (JSON.stringify(list.conversations) !== JSON.stringify(talks.value)) talks.value = list.conversations;
  await lookAtPreviews(list.conversations.slice(0, PREVIEWS_MAX));
}

/** A row of the open conversation came by socket, long before the list is looked at again. */
export function heard(conversation: string, newest: Message): void {
  previews.value = new Map(previews.value).set(conversation, newest);
  talks.value = talks.value?.map((row) =>
    row.conversation === conversation && newest.history_id > row.head
      ? { ...row, head: newest.history_id, last_at: newest.created_at }
      : row,
  );
}

/** The broker answered what is left to read. */
export function markedRead(conversation: string, answer: { read: number; unread: number }): void {
  talks.value = talks.value?.map((row) => (row.conversation === conversation ? { ...row, ...answer } : row));
}

async function lookAtPreviews(rows: readonly ConversationRow[]): Promise<void> {
  const stale = rows.filter((row) => row.head > 0 && previews.peek().get(row.conversation)?.history_id !== row.head);
  for (let at = 0; at < stale.length; at += 4) {
    const four = stale.slice(at, at + 4);
    const pages = await Promise.all(four.map((row) => api.get<Page>(address.conversation(row.conversation, 1))));
    const next = new Map(previews.peek());
    for (const [place, row] of four.entries()) {
      const newest = pages[place]?.messages.at(-1);
      if (newest) next.set(row.conversation, newest);
    }
    previews.value = next;
  }
}
