/** Members named in a text. */

/** The broker's bound. */
const MENTIONS_MAX = 16;

/** Names after an `@` that are members, in order, each once. Others are only words. */
export function mentioned(body: string, members: ReadonlySet<string>): string[] {
  const found: string[] = [];
  for (const [, word] of body.matchAll(/(?<![\w@])@([a-z0-9][a-z0-9._-]{0,62})/g)) {
    // A full stop ends a sentence more often than a name.
    const name = [word, word?.replace(/[._-]+$/, "")].find((one) => one !== undefined && members.has(one));
    if (name !== undefined && !found.includes(name)) found.push(name);
  }
  return found.slice(0, MENTIONS_MAX);
}
