/** One polite voice for screen readers: away, back, and what an act did. */

import { signal } from "@preact/signals";

export const said = signal("");

export function say(sentence: string): void {
  // The same sentence twice is two events; a reader hears only changes.
  said.value = said.value === sentence ? `${sentence}\u00a0` : sentence;
}
