/** The ladder's words, in its order, with the sentence each stands for. */

export const RUNGS = ["queued", "accepted", "delivered", "notified", "engaged", "processed"] as const;
export type Rung = (typeof RUNGS)[number];
export const ENDINGS = ["dead", "rejected", "conflict", "expired", "aborted", "cancelled"] as const;
export type Ending = (typeof ENDINGS)[number];

export const SENTENCE: Record<Rung | Ending, string> = {
  queued: "Safe on this host's disk. Nobody else has confirmed it yet.",
  accepted: "Safe at the broker, hub or receiving node, which carries it on.",
  delivered: "In the recipient's inbox.",
  notified: "Its agent was woken. No turn has begun.",
  engaged: "A turn on it began.",
  processed: "The turn ended, with a reply or a recorded end.",
  dead: "We gave up. It needs a person.",
  rejected: "The other side refused it for good and holds nothing.",
  conflict: "It clashes with what is already there. Nothing was overwritten; you decide.",
  expired: "Its time ran out before the next rung.",
  aborted: "A person retired it. Its id stays used.",
  cancelled: "A person withdrew it. Not committed, unless its outcome was unknown.",
};

export function isRung(word: string): word is Rung {
  return (RUNGS as readonly string[]).includes(word);
}

export function isEnding(word: string): word is Ending {
  return (ENDINGS as readonly string[]).includes(word);
}

/** Ids we mint look alike at their head, so people get the tail; callers' own ids are shown whole. */
export function short(id: string): string {
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(id) ? id.slice(-6) : id;
}

/** `1 row`, `2 rows`. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

/** A conversation as people say it: a topic keeps its `#`, a person needs no sigil. */
export function conversationName(name: string): string {
  return name.startsWith("@") ? name.slice(1) : name;
}
