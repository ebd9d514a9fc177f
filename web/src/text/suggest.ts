/** Names that continue what is being typed after an `@`. */

/** More would hide what one writes to. */
const SUGGESTED_MAX = 5;

export interface Suggestion {
  names: string[];
  /** Where the `@` stands. */
  from: number;
}

/** What fits the word before the caret; nothing when it is no mention, or is one already. */
export function suggest(text: string, caret: number, members: ReadonlySet<string>): Suggestion | undefined {
  const found = /(?:^|[^\w@])@([a-z0-9._-]*)$/.exec(text.slice(0, caret));
  if (!found) return undefined;
  const begun = found[1] ?? "";
  const names = [...members].filter((name) => name.startsWith(begun) && name !== begun).sort().slice(0, SUGGESTED_MAX);
  return names.length === 0 ? undefined : { names, from: caret - begun.length - 1 };
}

/** The text with the name put in, and where the caret goes. */
export function completed(text: string, caret: number, { from }: Suggestion, name: string): { text: string; caret: number } {
  const head = `${text.slice(0, from)}@${name} `;
  return { text: head + text.slice(caret).replace(/^ /, ""), caret: head.length };
}
